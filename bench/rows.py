"""The rows that are read. They go straight to the servers; the proxy is not involved.

The first shard of each server is filled from here, the others are copied from it in the server. So a shard's
objects have the local IDs 1 to n, and the Lua scripts need no list of what there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pymysql
from pymysql.cursors import Cursor

from bench.cluster import Cluster, Server
from bench.tools import BenchError
from bench.workloads import SHARDS, Sizes
from config.layout import BUILTIN

LAYOUT = BUILTIN["pinterest"]
PINS, BOARDS, USERS = 1, 2, 3
MOMENT = 1_330_000_000_000  # milliseconds, 2012
TEXT = "The quick brown fox jumps over the lazy dog, again and again. "

Row = tuple[object, ...]


def pins(shard: int, sizes: Sizes) -> Iterator[Row]:
    """(local_id, data)."""
    board, user = LAYOUT.base(shard, BOARDS) + 1, LAYOUT.base(shard, USERS) + 1
    text = (TEXT * (sizes.text // len(TEXT) + 1))[: sizes.text]
    for local in range(1, sizes.pins + 1):
        yield local, json.dumps({"board_id": board, "user_id": user, "details": text})


def mapping(shard: int, sizes: Sizes) -> Iterator[Row]:
    """(board_id, pin_id, sequence), the pins of a board in their order."""
    for board in range(1, sizes.boards + 1):
        for nth in range(sizes.board_pins):
            pin = LAYOUT.base(shard, PINS) + (board + nth) % sizes.pins + 1
            yield LAYOUT.base(shard, BOARDS) + board, pin, (MOMENT + nth * 1000) * 10**25


def users(count: int) -> Iterator[Row]:
    """(local_id, data), small ones."""
    for local in range(1, count + 1):
        name = f"Jane Doe {local}"
        yield local, json.dumps({"name": name, "email": f"jane.{local}@example.com", "active": True})


def items(sizes: Sizes) -> Iterator[Row]:
    """(id, body) of the table that is not sharded."""
    text = (TEXT * (sizes.text // len(TEXT) + 2))[: sizes.text + 100]
    for id in range(1, sizes.items + 1):
        yield id, text


def users_of(shard: int, sizes: Sizes) -> int:
    """How many of the scattered rows are on a shard: as many as on any other, or one more."""
    each, rest = divmod(sizes.scatter, SHARDS)
    return each + (shard < rest)


def copies(source: int, target: int, sizes: Sizes) -> tuple[str, ...]:
    """The statements that fill the shard `target` from `source`."""
    there, here = f"db{source:05d}", f"db{target:05d}"
    step = LAYOUT.base(target) - LAYOUT.base(source)
    return (
        f"INSERT INTO {here}.pins SELECT * FROM {there}.pins",
        f"INSERT INTO {here}.board_has_pins (board_id, pin_id, sequence)"
        f" SELECT board_id + {step}, pin_id + {step}, sequence FROM {there}.board_has_pins",
        f"INSERT INTO {here}.users SELECT * FROM {there}.users WHERE local_id <= {users_of(target, sizes)}",
    )


def load(cluster: Cluster, sizes: Sizes) -> None:
    """Fill all servers, in parallel."""
    with ThreadPoolExecutor(len(cluster.servers), thread_name_prefix="rows") as pool:
        for future in [pool.submit(_load, server, sizes) for server in cluster.servers]:
            future.result()


def _load(server: Server, sizes: Sizes) -> None:
    first = server.shards[0]
    with server.connect() as connection, connection.cursor() as cursor:
        connection.begin()
        _insert(cursor, f"db{first:05d}.pins", ("local_id", "data"), list(pins(first, sizes)))
        columns = ("board_id", "pin_id", "sequence")
        _insert(cursor, f"db{first:05d}.board_has_pins", columns, list(mapping(first, sizes)))
        rows = list(users(users_of(first, sizes)))
        _insert(cursor, f"db{first:05d}.users", ("local_id", "data"), rows)
        for shard in server.shards[1:]:
            for statement in copies(first, shard, sizes):
                cursor.execute(statement)
        connection.commit()
        if first == 0:
            cursor.execute("CREATE TABLE legacy.items (id INT PRIMARY KEY, body VARCHAR(2000) NOT NULL)")
            connection.begin()
            _insert(cursor, "legacy.items", ("id", "body"), list(items(sizes)))
            connection.commit()
            for number in range(1, sizes.sbtest_tables + 1):
                _fill_sbtest(cursor, f"legacy.sbtest{number}", sizes.sbtest_rows)


def _fill_sbtest(cursor: Cursor, table: str, count: int) -> None:
    """A table as sysbench makes it, by the server itself."""
    cursor.execute(
        f"CREATE TABLE {table} (id INT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0,"
        " c CHAR(120) NOT NULL DEFAULT '', pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k))"
    )
    numbers = " CROSS JOIN ".join(
        f"(VALUES {', '.join(f'({n})' for n in range(10))}) AS t{i}" for i in range(5)
    )
    cursor.execute("SET @n = 0")
    cursor.execute(
        f"INSERT INTO {table} (k, c, pad) SELECT 1 + FLOOR(RAND() * {count}),"
        f" REPEAT(LPAD(@n := @n + 1, 11, '0'), 10), REPEAT(LPAD(@n, 11, '1'), 5) FROM {numbers} LIMIT {count}"
    )


def _insert(cursor: Cursor, table: str, columns: Sequence[str], rows: list[Row]) -> None:
    marks = ", ".join(["%s"] * len(columns))
    cursor.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)


def empty(cluster: Cluster, table: str) -> None:
    """Empty a table on all shards. BenchError when a server does not do it."""
    try:
        for server in cluster.servers:
            with server.connect() as connection, connection.cursor() as cursor:
                for shard in server.shards:
                    cursor.execute(f"TRUNCATE TABLE db{shard:05d}.{table}")
    except pymysql.MySQLError as error:
        raise BenchError(f"{table} could not be emptied: {error}") from error
