"""SHOW CREATE TABLE of random tables, as it is read, says what information_schema says: of the table, and of
the scratch table that is made of it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from pymysql.err import MySQLError

from config.column_type import read_definition
from proxy.execute.gathering.scratch import Shape, shape_of
from tests.support.servers import Connection, LocalServer

TYPES = [
    *("INT", "BIGINT UNSIGNED", "TINYINT(1)", "SMALLINT ZEROFILL", "DECIMAL(9,2)", "DOUBLE", "DOUBLE(9,2)"),
    *("FLOAT", "BIT(5)", "YEAR", "DATE", "DATETIME(3)", "TIMESTAMP NULL", "TIME(6)", "JSON", "BLOB", "TEXT"),
    *("VARCHAR(20)", "VARCHAR(20) COLLATE utf8mb4_bin", "CHAR(3) CHARACTER SET latin1", "VARBINARY(9)"),
    *(
        "BINARY(3)",
        "ENUM('a','it''s (,) `x`','\\\\')",
        "SET('x','y') CHARACTER SET ucs2",
        "GEOMETRY",
        "POINT",
    ),
]
DEFAULTS = {
    "INT": ("5", "(1 + (2 * 3))", "NULL"),
    "VARCHAR(20)": ("'it''s \\\\ x'", "(CONCAT('a)', \"b'\", '\\n'))", "' CHECK (a) AS (b) INVISIBLE'"),
    "BIT(5)": ("b'101'",),
    "DATETIME(3)": ("CURRENT_TIMESTAMP(3)", "CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3)"),
    "TIMESTAMP NULL": ("CURRENT_TIMESTAMP", "NULL"),
    "VARBINARY(9)": ("'abc'", "0x0041"),
}
NAMES = ["a", "B", "`a b`", "`q``t`", "`(`", "`CHECK`", "é", "`'`", "`local_id`"]
COMPUTED = [
    "INT AS (1 + 2) VIRTUAL",
    "VARCHAR(9) AS (CONCAT('x', ')')) STORED",
    "INT GENERATED ALWAYS AS ((3)) STORED",
]


def random_table(source: random.Random) -> str:
    """The elements of a CREATE TABLE."""
    names = source.sample(NAMES, source.randint(1, 6))
    elements, kinds = [], {}
    for name in names:
        if source.random() < 0.15:
            elements.append(f"{name} {source.choice(COMPUTED)}")
            continue
        kinds[name] = kind = source.choice(TYPES)
        parts = [name, kind]
        if source.random() < 0.3 and "NULL" not in kind:
            parts.append("NOT NULL")
        elif kind in DEFAULTS and source.random() < 0.8:
            parts.append("DEFAULT " + source.choice(DEFAULTS[kind]))
        if source.random() < 0.2:
            parts.append("COMMENT 'KEY (a), CHECK (b) ''x''\\n'")
        if source.random() < 0.2:
            parts.append("INVISIBLE")
        if source.random() < 0.2 and "INT" in kind:
            parts.append(f"CHECK ({name} <> 7 OR ')' = '(')")
        elements.append(" ".join(parts))
    for number in range(source.randint(0, 3)):
        of = source.sample(names, source.randint(1, min(2, len(names))))
        listed = ", ".join(
            name
            + ("(2)" if kinds.get(name, "")[:4] in ("TEXT", "BLOB", "VARC", "VARB") else "")
            + source.choice(["", " DESC"])
            for name in of
        )
        elements.append(f"{source.choice(['KEY', 'UNIQUE KEY'])} `k{number} (``` ({listed})")
    if source.random() < 0.5:
        elements.append(f"PRIMARY KEY ({source.choice(names)})")
    if source.random() < 0.3:
        elements.append("KEY ex ((1 + 1))" if source.random() < 0.5 else "CONSTRAINT c CHECK (1 <> 2)")
    return ", ".join(elements)


def rows(connection: Connection, sql: str, *values: object) -> Sequence[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values or None)
        return cursor.fetchall()


def columns_of(connection: Connection, table: str) -> list[tuple[Any, ...]]:
    """What information_schema says of the columns that the scratch table is to have like these."""
    asked = (
        "SELECT column_name, column_type, collation_name, is_nullable, column_default, extra, column_comment"
        " FROM information_schema.columns WHERE table_schema = 'shardgate_scratch' AND table_name = %s"
        " ORDER BY ordinal_position"
    )
    found = []
    for name, type_, collation, null, default, extra, comment in rows(connection, asked, table):
        if "GENERATED" in extra.replace("DEFAULT_GENERATED", ""):
            default, extra = None, extra.replace("VIRTUAL GENERATED", "").replace("STORED GENERATED", "")
        if default == "NULL":
            default = None
        found.append((name, type_, collation, null, default, extra.strip(" ,"), comment))
    return found


def keys_of(connection: Connection, table: str) -> dict[str, tuple[bool, tuple[tuple[Any, ...], ...]]]:
    asked = (
        "SELECT index_name, non_unique, column_name, sub_part, collation FROM information_schema.statistics"
        " WHERE table_schema = 'shardgate_scratch' AND table_name = %s AND index_type <> 'SPATIAL'"
        " ORDER BY index_name, seq_in_index"
    )
    found: dict[str, tuple[bool, tuple[tuple[Any, ...], ...]]] = {}
    for name, scattered, *part in rows(connection, asked, table):
        found[name] = (not scattered, (*found.get(name, (0, ()))[1], tuple(part)))
    return {name: one for name, one in found.items() if all(part[0] is not None for part in one[1])}


def check_facts(connection: Connection, shape: Shape) -> None:
    """What was read, against information_schema."""
    there = rows(
        connection,
        "SELECT column_name, column_type, is_nullable, extra FROM information_schema.columns"
        " WHERE table_schema = 'shardgate_scratch' AND table_name = 't' ORDER BY ordinal_position",
    )
    assert [one.name for one in shape.columns] == [row[0] for row in there]
    for column, (_, type_, null, extra) in zip(shape.columns, there, strict=True):
        one, two = column.type, read_definition(type_).type
        assert (one.kind, one.length, one.decimals) == (two.kind, two.length, two.decimals)
        assert (one.unsigned, one.zerofill, one.members) == (two.unsigned, two.zerofill, two.members)
        assert read_definition(column.definition).not_null is (null == "NO")
        assert column.invisible is ("INVISIBLE" in extra)
    keys = keys_of(connection, "t")
    assert len(shape.keys) == len(keys)
    for kind, _, of in shape.keys:
        name = "PRIMARY" if kind == "PRIMARY KEY" else kind.partition("`")[2][:-1].replace("``", "`")
        unique, parts = keys[name]
        assert (unique, [part[0].lower() for part in parts]) == (not kind.startswith("KEY"), list(of))


@pytest.mark.parametrize("seed", range(3))
def test_it_says_what_information_schema_says(servers: list[LocalServer], seed: int) -> None:
    source = random.Random(seed)
    made = 0
    with servers[0].connect(charset="utf8mb4") as connection:
        rows(connection, "DROP DATABASE IF EXISTS shardgate_scratch")
        rows(connection, "CREATE DATABASE shardgate_scratch")
        rows(connection, "SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'")
        for _ in range(150):
            try:
                rows(connection, f"CREATE TABLE shardgate_scratch.t ({random_table(source)})")
            except MySQLError:
                continue
            made += 1
            ((_, create),) = rows(connection, "SHOW CREATE TABLE shardgate_scratch.t")
            shape = shape_of(create, is_object=False, routing=None)
            check_facts(connection, shape)
            scratch = shape.select(None)
            rows(connection, scratch.create(b"g1", real=True).decode())
            if any(not one.invisible for one in shape.columns):
                assert columns_of(connection, "g1") == columns_of(connection, "t"), create
            assert keys_of(connection, "g1") == keys_of(connection, "t"), create
            rows(connection, "DROP TABLE shardgate_scratch.t, shardgate_scratch.g1")
    assert made > 40
