"""The tables of a schema on real servers: they can be created, and hashed keys are bytes, not texts."""

from __future__ import annotations

import re
from itertools import product

import pytest
from pymysql.err import MySQLError

from config.column_sql import definition_problem
from config.load import load_schema
from config.schema import Table
from tests.config.test_read_schema import DEMO
from tests.support.servers import LocalServer

KEYS = ["a", "A", "a ", " a", "á", "a\u0301", "ａ", "ß", "ss", "", "\t", "a\0", "😀"]


def tables() -> list[Table]:
    return [one for one in load_schema(DEMO).databases["demo"].tables.values() if one.columns]


@pytest.fixture
def database(servers: list[LocalServer]) -> str:
    with servers[0].connect() as connection, connection.cursor() as cursor:
        cursor.execute("DROP DATABASE IF EXISTS columns_test")
        cursor.execute("CREATE DATABASE columns_test CHARACTER SET latin1")
    return "columns_test"


@pytest.mark.parametrize("table", tables(), ids=[one.name for one in tables()])
def test_tables_can_be_created_and_again(servers: list[LocalServer], database: str, table: Table) -> None:
    with servers[0].connect() as connection, connection.cursor() as cursor:
        cursor.execute(table.create_sql(database))
        cursor.execute(table.create_sql(database))
        cursor.execute(f"SHOW COLUMNS FROM {database}.{table.name}")
        assert [row[0] for row in cursor.fetchall()] == [one.name for one in table.columns]


@pytest.mark.parametrize("definition", ["VARCHAR(20)", "VARCHAR(20) CHARSET utf8mb4", "VARBINARY(20)"])
def test_equal_for_the_server_means_equal_bytes(
    servers: list[LocalServer], database: str, definition: str
) -> None:
    columns = {"k": f"{definition} NOT NULL PRIMARY KEY", "v": "INT"}
    document = {"kind": "hashed", "keyspace": "l", "key": "k", "columns": columns}
    table = load_schema({"databases": {"d": {"tables": {"t": document}}}}).table("d", "t")
    assert table is not None
    with servers[0].connect(charset="utf8mb4") as connection, connection.cursor() as cursor:
        cursor.execute(table.create_sql(database))
        for number, key in enumerate(KEYS):
            cursor.execute(f"INSERT INTO {database}.t VALUES (%s, %s)", (key, number))
        for number, key in enumerate(KEYS):
            cursor.execute(f"SELECT v FROM {database}.t WHERE k = %s", (key,))
            assert cursor.fetchall() == ((number,),)


OF_ONE_KIND = re.compile(
    "UUID|INET6|SERIAL|CONSTRAINT|SRID|COLUMN_FORMAT|STORAGE|UNSIGNED UNSIGNED"
    "|(NATIONAL|NCHAR).*CHAR(ACTER )?SET"
)
"""Definitions that one of the two kinds of servers has no syntax for."""

TYPES = [
    *(
        "INT",
        "INT(11)",
        "BIGINT UNSIGNED",
        "BIGINT ZEROFILL",
        "TINYINT(1)",
        "BOOL",
        "BIT(8)",
        "BIT(65)",
        "SERIAL",
    ),
    *("DECIMAL(38,0)", "DECIMAL(66)", "DECIMAL(5,6)", "NUMERIC", "FLOAT(7,3)", "DOUBLE PRECISION", "REAL"),
    *(
        "VARCHAR(20)",
        "VARCHAR",
        "CHAR",
        "CHAR(256)",
        "NATIONAL VARCHAR(5)",
        "NCHAR(5)",
        "CHAR VARYING(9)",
        "LONG",
    ),
    *("TEXT", "TEXT(100)", "LONGTEXT(5)", "BLOB", "VARBINARY(9)", "BINARY", "JSON", "JSON(5)"),
    *(
        "ENUM('a','b')",
        "ENUM",
        "ENUM(1)",
        "SET('a')",
        "SET()",
        "DATE",
        "DATE(3)",
        "DATETIME(6)",
        "TIMESTAMP(7)",
    ),
    *("TIME(3)", "YEAR", "YEAR(4)", "GEOMETRY", "POINT", "UUID", "INET6", "VARCHR(20)", "STRING", "5", ""),
]
ATTRIBUTES = [
    *("", "NOT NULL", "NULL", "NOT NUL", "DEFAULT NULL", "NOT NULL DEFAULT NULL", "DEFAULT 5", "DEFAULT 'a'"),
    *(
        "DEFAULT abc",
        "DEFAULT (1 + 1)",
        "DEFAULT -1",
        "DEFAULT CURRENT_TIMESTAMP",
        "DEFAULT NOW(6)",
        "DEFAULT",
    ),
    *(
        "ON UPDATE CURRENT_TIMESTAMP",
        "AUTO_INCREMENT PRIMARY KEY",
        "PRIMARY KEY",
        "UNIQUE",
        "UNIQUE KEY",
        "KEY",
    ),
    *(
        "COMMENT 'x'",
        "COMMENT x",
        "UNSIGNED",
        "COLLATE utf8mb4_bin",
        "CHARACTER SET latin1",
        "CHARSET latin1",
    ),
    *(
        "CHECK (c > 1)",
        "CHECK c > 1",
        "CONSTRAINT k CHECK (c > 1)",
        "AS (1 + 1)",
        "AS (1 + 1) STORED",
        "INVISIBLE",
    ),
    *("GENERATED ALWAYS AS (1 + 1) VIRTUAL", "GENERATED AS (1)", "SRID 0", "COLUMN_FORMAT DYNAMIC", "BINARY"),
    *(
        "AUTO_INCREMENT PRIMARY KEY DEFAULT 5",
        ", d INT",
        "; SELECT 1",
        "(",
        "NONSENSE",
        "DEFAULT TRUE",
        "DEFAULT 'a",
    ),
    *(
        "AS (1 + 1) DEFAULT 5",
        "COMMENT 'x' NOT NULL",
        "PRIMARY KEY NULL DEFAULT NULL",
        "STORAGE DISK",
        "DEFAULT b'1'",
    ),
]


def test_a_definition_is_refused_only_when_no_server_takes_it(
    servers: list[LocalServer], database: str
) -> None:
    """What is refused without a server this one refuses, too; what is no SQL for it is so for the other kind,
    or it is found.
    """
    mine, found = [], 0
    with servers[0].connect() as connection, connection.cursor() as cursor:
        for number, (type_, attribute) in enumerate(product(TYPES, ATTRIBUTES)):
            if number % 3:
                continue
            definition = f"{type_} {attribute}".strip()
            problem = definition_problem(definition)
            found += problem is not None
            try:
                cursor.execute(f"CREATE TEMPORARY TABLE {database}.t (c {definition})")
            except MySQLError as error:
                if problem is None and error.args[0] == 1064 and not OF_ONE_KIND.search(definition):
                    mine.append(f"{definition}: is not found")
            else:
                cursor.execute(f"DROP TEMPORARY TABLE {database}.t")
                if problem is not None and attribute != ", d INT":
                    mine.append(f"{definition}: {problem}")
    assert mine == []
    assert found > 200
