"""The tables of a schema on real servers: they can be created, and hashed keys are bytes, not texts."""

from __future__ import annotations

import pytest

from config.load import load_schema
from config.schema import Table
from fleet.demo.servers import LocalServer
from tests.config.test_read_schema import DEMO

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
