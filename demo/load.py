"""Write the sample rows straight to the hosts, each where its ID or key says; the proxy is not involved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from aiomysql import escape_string

from config.schema import Kind, Schema, Table, quote
from config.topology import Host, Topology
from demo import words
from demo.sample import Row, Rows, Sample
from fleet.core.hosts import Hosts

ROWS_PER_INSERT = 500

Placed = dict[Host, dict[tuple[str, Table], list[Row]]]
"""Stored rows by host, then by physical database and table."""

LEGACY_TABLES = (
    "CREATE TABLE customers (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(64) NOT NULL,"
    " email VARCHAR(128) NOT NULL UNIQUE, city VARCHAR(64), created DATE NOT NULL)",
    "CREATE TABLE orders (id INT AUTO_INCREMENT PRIMARY KEY, customer_id INT NOT NULL,"
    " product VARCHAR(64) NOT NULL, quantity INT NOT NULL, total DECIMAL(10,2) NOT NULL,"
    " status ENUM('new','paid','shipped') NOT NULL, placed DATETIME NOT NULL,"
    " KEY (customer_id, placed), FOREIGN KEY (customer_id) REFERENCES customers (id))",
)


def place(schema: Schema, topology: Topology, sample: Sample) -> Placed:
    """Where each row of the database ``demo`` is stored, and how: an object's `id` becomes its local ID."""
    placed: Placed = {host: {} for host in topology.hosts}
    for name, rows in sample.items():
        table = schema.databases["demo"].tables[name]
        for host, database, row in _places(table, rows, topology):
            placed[host].setdefault((database, table), []).append(row)
    return placed


def _places(table: Table, rows: Rows, topology: Topology) -> Iterator[tuple[Host, str, Row]]:
    keyspace = topology.keyspaces[table.keyspace]
    if not keyspace.sharded:
        everywhere = table.kind is Kind.REFERENCE
        hosts = topology.hosts if everywhere else (keyspace.master,)
        for row in rows.rows:
            for host in hosts:
                assert host is not None
                yield host, keyspace.database, row
        return
    shard_of, stored = _router(table, rows, topology)
    for row in rows.rows:
        shard = shard_of(row)
        host = keyspace.host_of(shard)
        if shard is None or host is None:
            raise ValueError(f"a row of {table.name} has no shard: {row!r}")
        yield host, keyspace.database_of(shard).decode(), stored(row)


def _router(
    table: Table, rows: Rows, topology: Topology
) -> tuple[Callable[[Row], int | None], Callable[[Row], Row]]:
    """For a sharded table: the shard of a logical row, and the row as it is stored."""
    keyspace = topology.keyspaces[table.keyspace]
    index = rows.columns.index(table.routing)
    layout = keyspace.layout
    if layout is None:
        return lambda row: keyspace.shard_of_key(str(row[index]).encode()), lambda row: row
    if table.kind is Kind.OBJECT:
        mask = layout.local_mask
        return lambda row: layout.shard_of(row[0]), lambda row: (row[0] & mask, *row[1:])
    return lambda row: layout.shard_of(row[index]), lambda row: row


async def load(schema: Schema, topology: Topology, sample: Sample, hosts: Hosts) -> int:
    """Write all rows, a transaction a host, hosts in parallel; gives the number of rows stored. HostError."""
    placed = place(schema, topology, sample)
    return sum(await asyncio.gather(*(_load_host(hosts, host, tables) for host, tables in placed.items())))


async def _load_host(hosts: Hosts, host: Host, tables: dict[tuple[str, Table], list[Row]]) -> int:
    statements = ["SET time_zone = '+00:00'", "BEGIN"]
    for (database, table), rows in tables.items():
        statements += inserts(database, table.name, tuple(one.name for one in table.columns), rows)
    await hosts.run(host, [*statements, "COMMIT"])
    return sum(map(len, tables.values()))


def inserts(database: str, table: str, columns: tuple[str, ...], rows: list[Row]) -> Iterator[str]:
    """INSERT statements of some hundred rows each."""
    start = f"INSERT INTO {quote(database)}.{quote(table)} ({', '.join(map(quote, columns))}) VALUES "
    for first in range(0, len(rows), ROWS_PER_INSERT):
        chunk = rows[first : first + ROWS_PER_INSERT]
        yield start + ", ".join(f"({', '.join(map(_literal, row))})" for row in chunk)


def _literal(value: Any) -> str:
    """A value of a row as SQL: numbers as they are, all else as text."""
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{escape_string(str(value))}'"


def legacy(database: str = "legacy") -> list[str]:
    """What makes tables and rows of the application that was never sharded."""
    customers: list[Row] = []
    orders: list[Row] = []
    for number in range(1, 61):
        first = words.FIRST_NAMES[number * 7 % len(words.FIRST_NAMES)]
        last = words.LAST_NAMES[number * 11 % len(words.LAST_NAMES)]
        email = f"{words.plain(first)}.{words.plain(last)}.{number}@example.com"
        city = words.CITIES[number % len(words.CITIES)]
        customers.append((number, f"{first} {last}", email, city, f"2009-{number % 12 + 1:02d}-15"))
        for nth in range(number % 4):
            product = words.PRODUCTS[(number + nth) % len(words.PRODUCTS)]
            status = ("new", "paid", "shipped")[(number + nth) % 3]
            placed = f"2011-{(number + nth) % 12 + 1:02d}-{nth + 3:02d} 10:{number % 60:02d}:00"
            orders.append((number, product, nth + 1, f"{(nth + 1) * 12.5:.2f}", status, placed))
    columns = ("customer_id", "product", "quantity", "total", "status", "placed")
    return [
        f"USE {quote(database)}",
        *LEGACY_TABLES,
        "BEGIN",
        *inserts(database, "customers", ("id", "name", "email", "city", "created"), customers),
        *inserts(database, "orders", columns, orders),
        "COMMIT",
    ]
