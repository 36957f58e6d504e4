"""What is read of a column's definition, by itself and as servers understand it."""

from __future__ import annotations

from itertools import product

import pytest
from pymysql.err import MySQLError

from config.column_type import ColumnType, Definition, read_definition
from tests.config.test_columns_servers import ATTRIBUTES, TYPES
from tests.support.servers import LocalServer

READ = {
    "INTEGER(5) UNSIGNED ZEROFILL": ColumnType("int", 5, unsigned=True, zerofill=True),
    "double precision": ColumnType("double"),
    "FLOAT(24)": ColumnType("float", 24),
    "FLOAT(25)": ColumnType("double", 25),
    "DEC ( 38 , 2 )": ColumnType("decimal", 38, 2),
    "CHARACTER VARYING(9)": ColumnType("varchar", 9),
    "NATIONAL VARCHAR(9)": ColumnType("varchar", 9, charset="utf8mb3"),
    "varchar(9) /*!80017 COLLATE utf8mb4_0900_bin */ /*M!100202 COLLATE 'utf8mb4_nopad_bin' */": ColumnType(
        "varchar", 9, collations=("utf8mb4_0900_bin", "utf8mb4_nopad_bin")
    ),
    "CHAR(3) CHARACTER SET latin1 BINARY": ColumnType("char", 3, charset="latin1", bytewise=True),
    "enum('a','it''s','\\'',\"x\"\"y\")": ColumnType("enum", members=("a", "it's", "'", 'x"y')),
    "xmltype(7)": ColumnType("xmltype", 7),
    "TEXT COMMENT 'UNSIGNED NOT NULL'": ColumnType("text"),
    "'": ColumnType(""),
    "": ColumnType(""),
}


@pytest.mark.parametrize(("definition", "type_"), READ.items(), ids=READ)
def test_the_type(definition: str, type_: ColumnType) -> None:
    assert read_definition(definition) == Definition(type_)


FACTS = {
    "INT NOT NULL": Definition(ColumnType("int"), not_null=True),
    "INT COMMENT 'NOT NULL' DEFAULT 'NOT NULL'": Definition(ColumnType("int"), default="'NOT NULL'"),
    "INT PRIMARY KEY AUTO_INCREMENT": Definition(
        ColumnType("int"), not_null=True, primary=True, auto_increment=True
    ),
    "SERIAL": Definition(
        ColumnType("bigint", unsigned=True), not_null=True, unique=True, auto_increment=True
    ),
    "INT UNIQUE KEY DEFAULT NULL": Definition(ColumnType("int"), unique=True, default="NULL"),
    "INT DEFAULT (1 + (2))": Definition(ColumnType("int"), default="("),
    "INT GENERATED ALWAYS AS (a + 1) STORED": Definition(ColumnType("int"), generated=True),
    "INT CHECK (a IS NOT NULL)": Definition(ColumnType("int")),
}


@pytest.mark.parametrize(("definition", "facts"), FACTS.items(), ids=FACTS)
def test_the_facts(definition: str, facts: Definition) -> None:
    assert read_definition(definition) == facts


ASK = (
    "SELECT data_type, column_type, is_nullable, column_key, extra, generation_expression"
    " FROM information_schema.columns WHERE table_schema = %s AND table_name = 't'"
    " ORDER BY ordinal_position"
)


def test_as_servers_understand_it(servers: list[LocalServer]) -> None:
    """Every definition that a server takes means to it what was read."""
    wrong, taken = [], 0
    with servers[0].connect() as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS facts_test")
        cursor.execute("CREATE DATABASE facts_test")
        cursor.execute("SET sql_mode = 'NO_ENGINE_SUBSTITUTION'")
        for number, (type_, attribute) in enumerate(product(TYPES, ATTRIBUTES)):
            definition = f"{type_} {attribute}".strip()
            if number % 5 or attribute == ", d INT" or definition == "VARBINARY(9) COLLATE utf8mb4_bin":
                continue
            try:
                cursor.execute(f"CREATE TABLE facts_test.t (x INT, c {definition})")
            except MySQLError:
                continue
            cursor.execute(ASK, ("facts_test",))
            kind, shown, null, key, extra, expression = cursor.fetchall()[-1]
            cursor.execute("DROP TABLE facts_test.t")
            taken += 1
            facts, understood = read_definition(definition), read_definition(shown).type
            seen = (
                # TEXT(100) becomes the shortest text that holds so much
                kind if type_ == "TEXT(100)" else facts.type.kind,
                facts.type.unsigned,
                facts.type.zerofill,
                facts.type.decimals if facts.type.kind != "decimal" else understood.decimals,
                facts.type.members,
                facts.not_null,
                facts.primary or (facts.unique and facts.not_null),
                facts.auto_increment,
                facts.generated,
            )
            there = (
                # MariaDB has JSON as texts that are checked
                "json" if (kind, facts.type.kind) == ("longtext", "json") else kind,
                understood.unsigned,
                understood.zerofill,
                understood.decimals,
                understood.members,
                null == "NO",
                key == "PRI",
                "auto_increment" in extra.lower(),
                bool(expression),
            )
            if seen != there:
                wrong.append((definition, seen, there))
    assert not wrong, wrong
    assert taken > 80
