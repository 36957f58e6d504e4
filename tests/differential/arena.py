"""A world on both sides: its shards on some servers behind a proxy, and all its rows on a plain server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
from pymysql.constants import CLIENT
from pymysql.cursors import Cursor

from config.schema import Kind, Table, quote
from config.topology import Host
from demo.documents import PROXY_USERS, settings_document
from demo.servers import account, hosts_of
from fleet.create import create
from tests.differential.answers import RAW, Answer, Failure, RawRow, ask
from tests.differential.catalog import Row, Value, literal
from tests.differential.world import World
from tests.support.plain import insert_rows, logical_sql
from tests.support.servers import Connection, LocalServer
from tests.support.zygote import ForkedProxy

Connect = Callable[..., Connection]
"""Opens a connection; the arguments are PyMySQL's."""

SESSION = ("SET time_zone = '+00:00'", "SET timestamp = 1400000000")
"""What both sides are told first, so that they agree on the time."""

BACKEND_USER = "differential"

Contents = tuple[Counter[RawRow], Counter[RawRow]]
"""The rows of a table: on the plain server, and on the shards together."""


class NoSession(AssertionError):
    """A fresh session could not be told `statement`."""

    def __init__(self, statement: str, error: Failure) -> None:
        super().__init__(f"{statement}: {error}")
        self.error = error


class Arena:
    """Connections to both sides, and to the hosts behind the proxy.

    `proxy`, `plain` and `hosts` open connections: as a client, to the plain server, to each host as root.
    """

    def __init__(self, world: World, proxy: Connect, plain: Connect, hosts: Mapping[Host, Connect]) -> None:
        self.world = world
        self._stack = contextlib.ExitStack()
        multi = {"client_flag": CLIENT.MULTI_STATEMENTS}
        self._plain_raw = self._open(plain, RAW | multi | {"database": world.database})
        self._plain_own = self._open(plain, {"database": world.database})
        self._host_raw = {host: self._open(connect, RAW | multi) for host, connect in hosts.items()}
        self._host_own = {host: self._open(connect, {}) for host, connect in hosts.items()}
        self._connects = (proxy, plain)
        self.proxy: Connection
        self.plain: Connection
        self._sides: contextlib.ExitStack = contextlib.ExitStack()
        self.reconnect()
        for own in (self._plain_own, self._plain_raw, *self._host_own.values(), *self._host_raw.values()):
            own.query(SESSION[0])
        self._initial = {
            name: self._read_plain(table) for name, table in world.tables.items() if table.columns
        }

    def _open(self, connect: Connect, arguments: dict[str, Any]) -> Connection:
        return self._stack.enter_context(contextlib.closing(connect(**arguments)))

    def reconnect(self) -> None:
        """Fresh sessions on both sides."""
        self._sides.close()
        found = []
        for connect in self._connects:
            connection = connect(**RAW, database=self.world.database)
            self._sides.callback(_close, connection)
            for statement in SESSION:
                answer = ask(connection, statement)
                if answer.error is not None:
                    raise NoSession(statement, answer.error)
            found.append(connection)
        self.proxy, self.plain = found

    def close(self) -> None:
        self._sides.close()
        self._stack.close()

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- whole tables ----------------------------------------------------------------------------

    def contents(self, name: str) -> Contents:
        """All logical rows of a table: on the plain server, and on the shards together."""
        table = self.world.tables[name]
        return self._read_plain(table), self._read_shards(table)

    def _read_plain(self, table: Table) -> Counter[RawRow]:
        names = ", ".join(map(quote, table.logical_columns))  # also of columns that `*` does not show
        return Counter(_answer(self._plain_raw, f"SELECT {names} FROM {quote(table.name)}").rows)

    def _read_shards(self, table: Table) -> Counter[RawRow]:
        """Rows as a client would see them; of a reference table those of the first host."""
        found: Counter[RawRow] = Counter()
        for host, statements in self._statements(table).items():
            connection = self._host_raw[host]
            first = _answer(connection, ";".join(statements))
            found.update(first.rows)
            for _ in statements[1:]:
                connection.next_result()
                result: Any = connection._result  # type: ignore[attr-defined]
                found.update(tuple(result.rows))
        return found

    def _statements(self, table: Table) -> dict[Host, list[str]]:
        keyspace = self.world.topology.keyspaces[table.keyspace]
        found: dict[Host, list[str]] = {}
        shards: Sequence[int | None] = keyspace.all_shards if keyspace.sharded else (None,)
        for shard in shards:
            names = [quote(name) for name in table.logical_columns]
            if table.kind is Kind.OBJECT and shard is not None:
                names[0] = f"(local_id + {self.world.base(table, shard)}) AS id"
            place = f"{quote(keyspace.database_of(shard).decode())}.{quote(table.name)}"
            host = keyspace.host_of(shard)
            assert host is not None
            found.setdefault(host, []).append(f"SELECT {', '.join(names)} FROM {place}")
        return found

    def restore(self, name: str, contents: Contents | None = None) -> None:
        """Bring a table back to the rows of the world, on both sides, where they have changed.

        `contents`: what is there now, where that is known.
        """
        table = self.world.tables[name]
        index = self.world.routing_index(table)
        before = self._initial[name]
        changed: set[bytes | None] = set()
        for now in contents or self.contents(name):
            changed |= {row[index] for row in ((now - before) + (before - now))}
        if not changed:
            return
        column = table.routing or table.logical_columns[0]
        keys = {_value(key, self.world.rows[name], index) for key in changed}
        rows = [row for row in self.world.rows[name] if row[index] in keys]
        self._replace(self._plain_own, self.world.database, table, column, keys, rows, table.logical_columns)
        places: dict[tuple[Host, str], set[Value]] = {}
        for key in keys:
            for place in self.world.physical(table, key):
                places.setdefault(place, set()).add(key)
        stored = tuple(one.name for one in table.columns)
        for (host, database), here in places.items():
            mine = [self.world.stored(table, row) for row in rows if row[index] in here]
            local = {self._local(table, key) for key in here}
            key_column = "local_id" if table.kind is Kind.OBJECT else column
            self._replace(self._host_own[host], database, table, key_column, local, mine, stored)

    def _local(self, table: Table, key: Value) -> Value:
        if table.kind is not Kind.OBJECT:
            return key
        assert isinstance(key, int)
        return key & self.world.local_mask(table)

    def _replace(
        self,
        connection: Connection,
        database: str,
        table: Table,
        column: str,
        keys: set[Value],
        rows: list[Row],
        columns: tuple[str, ...],
    ) -> None:
        listed = ", ".join(map(literal, keys))
        with connection.cursor() as cursor:
            cursor.execute(
                f"DELETE FROM {quote(database)}.{quote(table.name)} WHERE {quote(column)} IN ({listed})"
            )
            if rows:
                _insert(self.world, cursor, database, table, columns, rows)


def _insert(
    world: World, cursor: Cursor, database: str, table: Table, columns: Sequence[str], rows: list[Row]
) -> None:
    """Insert whole rows, without what is generated."""
    chosen = world.inserted(table)
    if len(chosen) < len(columns):
        columns = [columns[index] for index in chosen]
        rows = [tuple(row[index] for index in chosen) for row in rows]
    insert_rows(cursor, database, table.name, tuple(columns), rows)


def _close(connection: Connection) -> None:
    with contextlib.suppress(pymysql.MySQLError):
        connection.close()


def _value(raw: bytes | None, rows: list[Row], index: int) -> Value:
    """A routing value as Python has it, from its wire form."""
    assert raw is not None
    kind = type(rows[0][index])
    if kind is int:
        return int(raw)
    return raw if kind is bytes else raw.decode()


def _answer(connection: Connection, sql: str) -> Answer:
    answer = ask(connection, sql)
    if answer.error is not None:
        raise RuntimeError(f"{answer.error}: {sql[:200]}")
    return answer


# --- bringing a world up -------------------------------------------------------------------------


def fill_plain(world: World, connection: Connection) -> None:
    """Create the world's database on the plain server, with all rows."""
    with connection.cursor() as cursor:
        cursor.execute(SESSION[0])
        cursor.execute(f"CREATE DATABASE {quote(world.database)} CHARACTER SET utf8mb4")
        for name, table in world.tables.items():
            cursor.execute(logical_sql(table, world.database))
            _insert(world, cursor, world.database, table, table.logical_columns, world.rows.get(name, []))


def fill_shards(world: World, servers: Mapping[Host, LocalServer]) -> None:
    """Create the world's databases and tables on the hosts, with the rows where they belong."""

    async def make() -> list[str]:
        async with hosts_of(servers.values()) as hosts:
            return (await create(world.schema, world.topology, hosts)).problems

    assert asyncio.run(make()) == []
    placed: dict[Host, dict[tuple[str, str], list[Row]]] = {host: {} for host in world.topology.hosts}
    for name, rows in world.rows.items():
        table = world.tables[name]
        index = world.routing_index(table)
        for row in rows:
            for host, database in world.physical(table, row[index]):
                placed[host].setdefault((database, name), []).append(world.stored(table, row))

    def load(host: Host) -> None:
        with servers[host].connect() as connection, connection.cursor() as cursor:
            cursor.execute(SESSION[0])
            connection.begin()
            for (database, name), rows in placed[host].items():
                table = world.tables[name]
                _insert(world, cursor, database, table, [one.name for one in table.columns], rows)
            connection.commit()

    with ThreadPoolExecutor(len(placed)) as pool:
        list(pool.map(load, placed))


@contextmanager
def deployed(
    world: World, servers: Sequence[LocalServer], plain: LocalServer, directory: Path
) -> Iterator[Arena]:
    """The world on `servers`, behind a proxy of its own, and on `plain`; taken down at the end."""
    by_address = {one.address: one for one in servers}
    password = secrets.token_hex(12)
    with contextlib.ExitStack() as stack:
        stack.callback(_drop, world, servers, plain)
        for server in servers:
            with server.connect() as connection, connection.cursor() as cursor:
                for statement in account(BACKEND_USER, password):
                    cursor.execute(statement)
        with plain.connect() as connection:
            fill_plain(world, connection)
        fill_shards(world, by_address)
        proxy = stack.enter_context(_proxy(world, directory, password))
        connects = {host: server.connect for host, server in by_address.items()}
        yield stack.enter_context(Arena(world, _client(proxy), plain.connect, connects))


@contextmanager
def _proxy(world: World, directory: Path, password: str) -> Iterator[ForkedProxy]:
    directory.mkdir(parents=True, exist_ok=True)
    for name, document in world.documents.items():
        (directory / name).write_text(json.dumps(document))
    proxy = ForkedProxy(directory, port=0, page=False)
    settings = settings_document(
        port=proxy.port,
        status_port=None,
        workers=1,
        backends={"user": BACKEND_USER, "password": password},
        zookeeper=None,
    )
    try:
        proxy.configure(settings)
        proxy.start()
        yield proxy
    finally:
        proxy.stop()
        proxy.release()


def _client(proxy: ForkedProxy) -> Connect:
    user = PROXY_USERS[0]
    settings: dict[str, Any] = {
        "host": proxy.host,
        "port": proxy.port,
        "user": user["name"],
        "password": user["password"],
        "charset": "utf8mb4",
        "autocommit": True,
        "connect_timeout": 10,
        "read_timeout": 20,
    }
    return lambda **arguments: pymysql.connect(**(settings | arguments))


def _drop(world: World, servers: Sequence[LocalServer], plain: LocalServer) -> None:
    """Remove the world from servers that go on."""
    own = {keyspace.database_of(shard).decode() for keyspace in world.topology.keyspaces.values()
           for shard in (keyspace.all_shards if keyspace.sharded else (None,))}  # fmt: skip
    for server in (*servers, plain):
        if not server.alive:
            continue
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP USER IF EXISTS {BACKEND_USER}@'%'")
            cursor.execute("SHOW DATABASES")
            for (name,) in cursor.fetchall():
                if name in own or (server is plain and name == world.database):
                    cursor.execute(f"DROP DATABASE {quote(name)}")
