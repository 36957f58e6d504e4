"""Filling an empty server with all that another has, so that it can replicate from there: `--provision`.

The rows are those of one moment: four connections begin their snapshots while FLUSH TABLES WITH READ LOCK is
held, and the position is read, which takes milliseconds. The server itself writes each row as the literals of
an INSERT, so nothing is converted on the way. Accounts are not copied. What is copied is in no binary log of
the new server, whose log begins anew. For much data a backup tool of the server is faster: let the new pair
replicate by that, and split without `--provision`.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

import aiomysql
from aiomysql import MySQLError, escape_string

from config.schema import quote
from config.topology import Host
from fleet import distributed, fence, replication
from fleet.core.errors import Failed, HostError
from fleet.core.hosts import Hosts, problem

_READERS: Final = 4
_CHUNK: Final = 1 << 20
"""Characters of an INSERT, about."""
_ROWS: Final = 500
_SYSTEM: Final = ("information_schema", "mysql", "performance_schema", "sys")
_ATTEMPTS: Final = 20
"""To lock: each waits for 2 seconds, in which writes wait, too."""
_PREPARED: Final = 0.5
"""Seconds in which what is prepared may be finished, before the next of them."""
_LOCK_WAIT: Final = 1205
_SESSION: Final = (
    "SET SESSION time_zone = '+00:00', sql_mode = 'NO_AUTO_VALUE_ON_ZERO', lock_wait_timeout = 10, "
    "net_write_timeout = 3600, wait_timeout = 86400"
)
_FILL: Final = "SET SESSION sql_log_bin = 0, foreign_key_checks = 0, unique_checks = 0"
_HEX: Final = ("binary", "blob", "geometry", "point", "linestring", "polygon", "vector")
_NUMBERS: Final = ("int", "decimal", "double", "year", "numeric")


def literal_of(column: str, kind: str) -> str:
    """SQL that gives a column's value as a literal. `kind`: DATA_TYPE of information_schema."""
    name, kind = quote(column), kind.lower()
    if any(one in kind for one in _HEX) or kind == "geomcollection":
        return f"IFNULL(CONCAT('X''', HEX({name}), ''''), 'NULL')"
    if kind == "bit":
        return f"IFNULL(CONCAT('b''', BIN({name} + 0), ''''), 'NULL')"
    if kind in ("float", "double"):
        return f"IFNULL({name} + 0e0, 'NULL')"  # all of its digits, and no -0, which would be an integer
    if any(one in kind for one in _NUMBERS) and "point" not in kind:
        return f"IFNULL({name}, 'NULL')"
    return f"QUOTE(CONVERT({name} USING utf8mb4))"


async def databases(hosts: Hosts, host: Host) -> list[str]:
    """Those of a host that are not the server's own."""
    rows = await hosts.query(host, "SELECT schema_name FROM information_schema.schemata")
    return sorted(str(name) for (name,) in rows if name not in _SYSTEM)


async def fill(hosts: Hosts, host: Host, source: Host, master: Host) -> None:
    """Let `host` replicate from `master`, with a copy of all that `source` has now; what it has itself is
    dropped. HostError, Failed.
    """
    await fence.open_host(hosts, host)
    await replication.forget(hosts, host)
    drops = [f"DROP DATABASE {quote(name)}" for name in await databases(hosts, host)]
    await hosts.run(host, fence.unlogged(drops))
    position = await _Copy(hosts, source, host).run()
    await _begin_at(hosts, host, position)
    await replication.follow(hosts, host, master, *await _account(hosts, master, host))
    await fence.close_host(hosts, host, ())


async def _begin_at(hosts: Hosts, host: Host, position: str) -> None:
    """It has what comes before a position."""
    text = escape_string(position)
    if (await replication.flavour(hosts, host)).replica_word == "SLAVE":
        await hosts.run(host, ["RESET MASTER", f"SET GLOBAL gtid_slave_pos = '{text}'"])
        return
    try:
        await hosts.run(host, ["RESET BINARY LOGS AND GTIDS"])
    except HostError as error:
        if error.code != _SYNTAX:
            raise
        await hosts.run(host, ["RESET MASTER"])
    await hosts.run(host, [f"SET GLOBAL gtid_purged = '{text}'"])


_SYNTAX: Final = 1064


async def _account(hosts: Hosts, master: Host, slave: Host) -> tuple[str, str]:
    """One on `master` for this slave alone, with a new password."""
    user = f"shardgate_{hashlib.sha256(slave.encode()).hexdigest()[:12]}"
    password = secrets.token_urlsafe(18)
    closed = await fence.is_closed(hosts, master)
    statements = fence.unlogged(
        [
            f"CREATE USER IF NOT EXISTS '{user}'@'%' IDENTIFIED BY '{password}'",
            f"ALTER USER '{user}'@'%' IDENTIFIED BY '{password}'",
            f"GRANT REPLICATION SLAVE ON *.* TO '{user}'@'%'",
        ]
    )
    if closed and (await replication.flavour(hosts, master)).read_only_databases:
        statements = ["SET GLOBAL super_read_only = OFF", *statements, "SET GLOBAL super_read_only = ON"]
    await hosts.run(master, statements)
    return user, password


class _Copy:
    """One copy of all databases."""

    def __init__(self, hosts: Hosts, source: Host, target: Host) -> None:
        self._hosts, self._source, self._target = hosts, source, target
        self._tables: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    async def run(self) -> str:
        """The position of the copy."""
        async with AsyncExitStack() as stack:
            connections = [
                await stack.enter_async_context(self._hosts.own(self._source)) for _ in range(_READERS)
            ]
            position = await self._snapshots(connections)
            names = await databases(self._hosts, self._source)
            await self._define(names)
            for name in sorted(await replication.tables(self._hosts, self._source, names)):
                self._tables.put_nowait(name)
            await asyncio.gather(*(self._read(conn) for conn in connections))
        await self._others(names)
        return position

    async def _snapshots(self, connections: Sequence[aiomysql.Connection]) -> str:
        async with self._hosts.own(self._source) as lock:
            await self._ask(lock, _SESSION)
            await self._lock(lock)
            for conn in connections:
                await self._ask(conn, _SESSION)
                await self._ask(conn, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                await self._ask(conn, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
            position = await replication.position(self._hosts, self._source)
            await self._ask(lock, "UNLOCK TABLES")
        return position

    async def _lock(self, conn: aiomysql.Connection) -> None:
        """While nothing is prepared: its rows would not be in the copy, and what commits it behind the
        position would find nothing there.
        """
        await self._ask(conn, "SET SESSION lock_wait_timeout = 2")
        for left in reversed(range(_ATTEMPTS)):
            try:
                await self._ask(conn, "FLUSH TABLES WITH READ LOCK")
                found = await distributed.all_prepared(self._hosts, self._source)
                if not found:
                    return
                await self._ask(conn, "UNLOCK TABLES")
                if not left:
                    names = ", ".join(sorted({_shown(*one) for one in found}))
                    raise Failed(f"{self._source}: no copy can be made while these are prepared: {names}")
                await asyncio.sleep(_PREPARED)
                continue
            except HostError as error:
                if error.code != _LOCK_WAIT or not left:
                    raise
            await asyncio.sleep(2)  # a long statement is at work: let others write meanwhile

    async def _ask(self, conn: aiomysql.Connection, sql: str) -> list[tuple[Any, ...]]:
        return await self._hosts.rows(conn, self._source, sql, None)

    async def _define(self, names: Iterable[str]) -> None:
        """Databases and tables."""
        for name in names:
            ((_, create, *_),) = await self._hosts.query(self._source, f"SHOW CREATE DATABASE {quote(name)}")
            statements = [str(create), f"USE {quote(name)}"]
            for _, table in sorted(await replication.tables(self._hosts, self._source, [name])):
                shown = f"SHOW CREATE TABLE {quote(name)}.{quote(table)}"
                statements.append(str((await self._hosts.query(self._source, shown))[0][1]))
            await self._write(statements)

    async def _write(self, statements: Sequence[str]) -> None:
        """On the new server, by a connection of its own: each leaves its session as it is."""
        async with self._hosts.own(self._target) as conn:
            for sql in (_SESSION, _FILL, *statements):
                await self._hosts.rows(conn, self._target, sql, None)

    async def _read(self, conn: aiomysql.Connection) -> None:
        """Tables, one after another, as long as there are any."""
        async with self._hosts.own(self._target) as target:
            for sql in (_SESSION, _FILL):
                await self._hosts.rows(target, self._target, sql, None)
            while not self._tables.empty():
                await self._table(conn, target, *self._tables.get_nowait())

    async def _table(
        self, conn: aiomysql.Connection, target: aiomysql.Connection, database: str, table: str
    ) -> None:
        columns = await self._ask(
            conn,
            "SELECT column_name, data_type, extra FROM information_schema.columns"
            f" WHERE table_schema = '{escape_string(database)}' AND table_name = '{escape_string(table)}'"
            " ORDER BY ordinal_position",
        )
        kept = [(str(name), str(kind)) for name, kind, extra in columns if "GENERATED" not in _virtual(extra)]
        literals = ", ',', ".join(literal_of(*one) for one in kept)
        place = f"{quote(database)}.{quote(table)}"
        insert = f"INSERT INTO {place} ({', '.join(quote(name) for name, _ in kept)}) VALUES "
        rows: list[str] = []
        size = 0
        try:
            async with conn.cursor(aiomysql.SSCursor) as cursor:
                await cursor.execute(f"SELECT CONCAT('(', {literals}, ')') FROM {place}")
                while some := await cursor.fetchmany(_ROWS):
                    for (row,) in some:
                        if row is None:
                            raise Failed(
                                f"{self._source}: a row of {place} is larger than max_allowed_packet"
                            )
                        rows.append(row)
                        size += len(row)
                        if size >= _CHUNK:
                            await self._hosts.rows(target, self._target, insert + ",".join(rows), None)
                            rows, size = [], 0
        except (MySQLError, OSError) as error:
            raise problem(self._source, error) from error
        if rows:
            await self._hosts.rows(target, self._target, insert + ",".join(rows), None)

    async def _others(self, names: Iterable[str]) -> None:
        """Views, routines, triggers and events."""
        wanted = frozenset(names)
        for kind, listed, column in _OTHERS:
            left = [
                (str(database), str(name))
                for database, name in await self._hosts.query(self._source, listed)
                if database in wanted
            ]
            while left:
                again: list[tuple[str, str]] = []
                for database, name in left:
                    shown = f"SHOW CREATE {kind} {quote(database)}.{quote(name)}"
                    (row,) = await self._hosts.query(self._source, shown)
                    mode = [] if kind == "VIEW" else [f"SET SESSION sql_mode = '{row[1]}'"]
                    try:
                        await self._write([*mode, f"USE {quote(database)}", str(row[column])])
                    except HostError as error:
                        if kind != "VIEW" or len(left) == len(again) + 1:
                            raise
                        again.append((database, name))
                        last = error
                if len(again) == len(left):
                    raise last
                left = again


def _shown(format_id: int, gtrid: bytes, bqual: bytes) -> str:
    """A prepared transaction, as XA COMMIT and XA ROLLBACK name it."""
    return f"X'{gtrid.hex()}',X'{bqual.hex()}',{format_id}"


def _virtual(extra: object) -> str:
    """What information_schema says of a column, but for MySQL's DEFAULT_GENERATED: not such a column."""
    return str(extra).upper().replace("DEFAULT_GENERATED", "")


_ROUTINES: Final = "SELECT routine_schema, routine_name FROM information_schema.routines"
_OTHERS: Final = (
    ("FUNCTION", f"{_ROUTINES} WHERE routine_type = 'FUNCTION'", 2),
    ("VIEW", "SELECT table_schema, table_name FROM information_schema.views", 1),
    ("PROCEDURE", f"{_ROUTINES} WHERE routine_type = 'PROCEDURE'", 2),
    ("TRIGGER", "SELECT trigger_schema, trigger_name FROM information_schema.triggers", 2),
    ("EVENT", "SELECT event_schema, event_name FROM information_schema.events", 3),
)
"""What each is listed by, and the column of SHOW CREATE that has its definition."""
