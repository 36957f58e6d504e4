"""A plain database with the demo's logical tables and rows: what one MySQL would answer.

An object table has its `id` stored, in the place of the `local_id` of the shards.
"""

from __future__ import annotations

from collections.abc import Sequence

from pymysql.cursors import Cursor

from config.load import load_schema, load_topology
from config.schema import Kind, Table, quote
from demo.documents import SCHEMA, topology_document
from demo.load import ROWS_PER_INSERT, legacy
from demo.sample import Row, generate
from tests.support.servers import Connection


def fill_plain(connection: Connection, *, shards: int = 64, database: str = "demo") -> None:
    """Create `database`, as clients of a demo with `shards` shards see its ``demo``, and ``legacy``."""
    schema = load_schema(SCHEMA)
    topology = load_topology(topology_document(shards, [("127.0.0.1:1", None)]), schema=schema)
    sample = generate(schema, topology)
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        for name in (database, "legacy"):
            cursor.execute(f"CREATE DATABASE {quote(name)} CHARACTER SET utf8mb4")
        for name, table in schema.databases["demo"].tables.items():
            cursor.execute(logical_sql(table, database))
            if name in sample:
                insert_rows(cursor, database, name, sample[name].columns, sample[name].rows)
        for statement in legacy():
            cursor.execute(statement)


def insert_rows(
    cursor: Cursor, database: str, table: str, columns: Sequence[str], rows: Sequence[Row]
) -> None:
    """INSERT rows in statements of some hundred each."""
    names = ", ".join(map(quote, columns))
    marks = ", ".join(["%s"] * len(columns))
    statement = f"INSERT INTO {quote(database)}.{quote(table)} ({names}) VALUES ({marks})"
    for start in range(0, len(rows), ROWS_PER_INSERT):
        cursor.executemany(statement, rows[start : start + ROWS_PER_INSERT])


def logical_sql(table: Table, database: str) -> str:
    """`CREATE TABLE` for what a client sees of `table`."""
    sql = table.create_sql(database)
    if table.kind is Kind.OBJECT:
        sql = sql.replace("`local_id` ", "`id` ", 1)
    return sql
