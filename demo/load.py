"""Write the sample rows straight to the hosts, each where its ID or key says; the proxy is not involved."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from pymysql.cursors import Cursor

from config.schema import Kind, Schema, Table, quote
from config.topology import Host, Topology
from demo import words
from demo.sample import Row, Rows, Sample
from fleet.create import Connect, Connection

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


def load(schema: Schema, topology: Topology, sample: Sample, connect: Connect) -> int:
    """Write all rows, one transaction a host, hosts in parallel; gives the number of rows stored."""
    placed = place(schema, topology, sample)
    with ThreadPoolExecutor(max(1, len(placed)), thread_name_prefix="load") as pool:
        counts = pool.map(lambda host: _load_host(connect(host, 0), placed[host]), placed)
        return sum(counts)


def _load_host(connection: Connection, tables: dict[tuple[str, Table], list[Row]]) -> int:
    with connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        connection.begin()
        for (database, table), rows in tables.items():
            insert_rows(cursor, database, table.name, tuple(one.name for one in table.columns), rows)
        connection.commit()
    return sum(map(len, tables.values()))


def insert_rows(cursor: Cursor, database: str, table: str, columns: tuple[str, ...], rows: list[Row]) -> None:
    """INSERT rows in statements of some hundred each."""
    names = ", ".join(map(quote, columns))
    marks = ", ".join(["%s"] * len(columns))
    statement = f"INSERT INTO {quote(database)}.{quote(table)} ({names}) VALUES ({marks})"
    for start in range(0, len(rows), ROWS_PER_INSERT):
        cursor.executemany(statement, rows[start : start + ROWS_PER_INSERT])


def load_legacy(connection: Connection, database: str = "legacy") -> None:
    """Tables and rows of the application that was never sharded."""
    with connection, connection.cursor() as cursor:
        cursor.execute(f"USE {quote(database)}")
        for statement in LEGACY_TABLES:
            cursor.execute(statement)
        connection.begin()
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
        insert_rows(cursor, database, "customers", ("id", "name", "email", "city", "created"), customers)
        columns = ("customer_id", "product", "quantity", "total", "status", "placed")
        insert_rows(cursor, database, "orders", columns, orders)
        connection.commit()
