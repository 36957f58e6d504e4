"""The logical view in SHOW: what it says of sharded databases and their tables.

The schema knows the tables. Their columns, keys and definitions are asked of one shard by the client's own
kind of SHOW, so that columns and types are the server's, and the answer's names are rewritten: an object
table's `local_id` is shown as the `id` that clients see. Databases that are not sharded answer for
themselves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from config.schema import Kind, Table
from proxy.backends.collect import Collector
from proxy.engine.lease import borrowed
from proxy.engine.outside_transaction import answer
from proxy.engine.task import TaskWork
from proxy.errors import ProxyError
from proxy.wire.packets import Err
from proxy.wire.resultset import Column, decode_column
from rewriter.plain.views import Shown
from rewriter.plans import Values
from rewriter.plans.builtins import (
    Listing,
    Show,
    ShowColumns,
    ShowCreateDatabase,
    ShowCreateTable,
    ShowDatabases,
    ShowIndex,
    ShowNothing,
    ShowOfTable,
    ShowTables,
    ShowTableStatus,
)
from rewriter.text.tokens import quote_name

from .existing import existing_tables
from .rows import Row, like_text, write_kept, write_rows
from .views import list_databases, parts_of, shard_to_ask, shown_databases

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_MULTIPLIED = frozenset({b"Rows", b"Data_length", b"Index_length", b"Cardinality"})
"""Estimates that are shown for one shard, multiplied by the number of shards."""

_LOCAL_ID = re.compile(rb"(?<![\w$'])([`\"]?)local_id\1(?![\w$'])")
_NEXT_ID = re.compile(rb" AUTO_INCREMENT=[0-9]+")


async def definitions(client: Exchange, database: str, table: str) -> list[Column] | Err:
    """The definitions of a table's columns, in logical terms; or the server's error."""
    snapshot, session = client.snapshot, client.session
    known = snapshot.schema.table(database, table)
    if known is not None:
        keyspace = snapshot.topology.keyspaces[known.keyspace]
        shard, host = shard_to_ask(keyspace)
        name = quote_name(keyspace.database_of(shard).decode()) + b"." + quote_name(table)
        sql = b"SELECT * FROM " + name + b" LIMIT 0"
    else:
        name = b".".join(map(quote_name, (database, table)))
        plan, literals = snapshot.rewriter.plan(b"SELECT * FROM " + name + b" LIMIT 0", session.env)
        statement = plan.bind(literals, snapshot.topology, lambda shards: shards[0]).statements[0]
        host, sql = statement.host, statement.sql
    if host is None:
        raise ProxyError("unknown_table", database=database, table=table)
    async with borrowed(client, host) as conn:
        reply = await Collector().query(conn, sql)
    if reply.err is not None:
        return reply.err
    found = [decode_column(payload) for payload in reply.columns]
    if known is not None:
        found = [replace(column, schema=database.encode()) for column in found]
    if known is not None and known.kind is Kind.OBJECT:
        keys = [one for one in found if one.name.lower() == b"local_id"]
        rest = [one for one in found if one.name.lower() != b"local_id"]
        found = [*(replace(key, name=b"id", org_name=b"id") for key in keys), *rest]
    return found


def own_host(client: Exchange, database: str) -> str | None:
    """The host that answers for a database that is not sharded; None for one the schema describes."""
    snapshot = client.snapshot
    known = snapshot.schema.databases.get(database)
    if known is not None:
        return snapshot.topology.keyspaces[known.keyspace].master if known.keyspace else None
    physical = snapshot.topology.physical(database)
    host = physical[0].host_of(physical[1]) if physical is not None else snapshot.topology.default
    if host is None:
        raise ProxyError("unknown_database", database=database)
    return host


def _to_host(client: Exchange, plan: Show, database: str) -> bool:
    """Relay the client's own statement when its database answers for itself."""
    host = own_host(client, database)
    if host is None:
        return False
    # The database is named in the statement, or is the session's: only then must the connection be in it.
    current = database if database == client.session.database else None
    client.relay.run(host, client.sql, current, facts=plan.facts)
    return True


def _part(client: Exchange, database: str) -> Shown:
    """A sharded database's first part."""
    parts = parts_of(client.snapshot.topology, client.snapshot.schema.databases[database])
    if not parts:
        raise ProxyError("unknown_database", database=database)
    return parts[0]


async def _asked(client: Exchange, host: str, sql: bytes) -> Collector | None:
    """The reply of a host, in utf8mb4; None when it is an error, which the client then has got."""
    async with borrowed(client, host, utf8=True) as conn:
        reply = await Collector().query(conn, sql)
    if reply.err is not None:
        client.fail(reply.err)
        return None
    return reply


def _titled(definition: bytes, title: str) -> bytes:
    """A column definition under another name."""
    return decode_column(definition).renamed(title.encode("utf-8", "surrogateescape")).encode()


def _title(client: Exchange, plan: Listing, values: Values, name: str) -> str:
    """The name of a list's column, which repeats the LIKE pattern."""
    if plan.like is None:
        return name
    return f"{name} ({like_text(plan.like, values, client.session.env.codec)})"


# -- databases
# ------------------------------------------------------------------------------------------------------


def databases(client: Exchange, plan: ShowDatabases, values: Values) -> None:
    TaskWork(client).start(_databases(client, plan, values))


async def _databases(client: Exchange, plan: ShowDatabases, values: Values) -> None:
    reply = await list_databases(client)
    if reply.err is not None:
        client.fail(reply.err)
        return
    shown = shown_databases(client, reply.values(), "", set())
    names = sorted({one.logical for one in shown})
    columns = [_titled(reply.columns[0], _title(client, plan, values, "Database"))]
    await write_kept(client, plan, values, columns, [[name.encode()] for name in names], files=True)


def create_database(client: Exchange, plan: ShowCreateDatabase, values: Values) -> None:
    if not _to_host(client, plan, plan.database):
        TaskWork(client).start(_create_database(client, plan.database, plan.if_not_exists))


async def _create_database(client: Exchange, database: str, if_not_exists: bool) -> None:
    absent = b"IF NOT EXISTS " if if_not_exists else b""
    part = _part(client, database)
    reply = await _asked(client, part.host, b"SHOW CREATE DATABASE " + absent + _name(part.physical))
    if reply is not None:
        rows: list[Row] = [
            [database.encode(), (sql or b"").replace(part.physical.encode(), database.encode(), 1)]
            for _, sql in reply.values()
        ]
        write_rows(client, reply.columns, rows)


def nothing(client: Exchange, plan: ShowNothing, values: Values) -> None:
    """SHOW TRIGGERS, EVENTS, OPEN TABLES of a sharded database: it has none, but the answer has columns."""
    if not _to_host(client, plan, plan.database):
        TaskWork(client).start(_nothing(client, plan.database, plan.what.encode()))


async def _nothing(client: Exchange, database: str, what: bytes) -> None:
    part = _part(client, database)
    async with borrowed(client, part.host) as conn:
        answer(
            client, await Collector().query(conn, b"SHOW %b FROM %b WHERE 0" % (what, _name(part.physical)))
        )


# -- tables
# ---------------------------------------------------------------------------------------------------------


def tables(client: Exchange, plan: ShowTables, values: Values) -> None:
    if not _to_host(client, plan, plan.database):
        TaskWork(client).start(_tables(client, plan, values))


async def _tables(client: Exchange, plan: ShowTables, values: Values) -> None:
    database, full = plan.database, plan.full
    part = _part(client, database)
    kind = b"FULL " if full else b""
    reply = await _asked(client, part.host, b"SHOW %bTABLES FROM %b WHERE 0" % (kind, _name(part.physical)))
    if reply is None:
        return
    columns = [
        _titled(reply.columns[0], _title(client, plan, values, f"Tables_in_{database}")),
        *reply.columns[1:],
    ]
    names = await existing_tables(client, database)
    rows: list[Row] = [[name.encode(), b"BASE TABLE"] if full else [name.encode()] for name in names]
    await write_kept(client, plan, values, columns, rows, files=True)


def table_status(client: Exchange, plan: ShowTableStatus, values: Values) -> None:
    if not _to_host(client, plan, plan.database):
        TaskWork(client).start(_table_status(client, plan, values))


async def _table_status(client: Exchange, plan: ShowTableStatus, values: Values) -> None:
    """The tables of every keyspace, each as one shard has it."""
    rows: list[Row] = []
    columns: list[bytes] = []
    for part in parts_of(client.snapshot.topology, client.snapshot.schema.databases[plan.database]):
        listed = ", ".join(f"'{name}'" for name in part.tables or ())
        sql = b"SHOW TABLE STATUS FROM %b WHERE Name IN (%b)" % (_name(part.physical), listed.encode())
        reply = await _asked(client, part.host, sql)
        if reply is None:
            return
        columns = reply.columns
        found = _multiplied(columns, reply.values(), part.shards)
        next_id = next(
            (at for at, one in enumerate(columns) if decode_column(one).name == b"Auto_increment"), None
        )
        for row in found:
            if next_id is not None and (row[0] or b"").decode() in part.objects:
                row[next_id] = None
        rows += found
    await write_kept(client, plan, values, columns, sorted(rows, key=lambda row: row[0] or b""), files=True)


def _multiplied(columns: Sequence[bytes], rows: list[Row], shards: int) -> list[Row]:
    """Estimates of one shard, for all of them."""
    places = [at for at, one in enumerate(columns) if decode_column(one).name in _MULTIPLIED]
    for row in rows:
        for at in places:
            value = row[at]
            row[at] = b"%d" % (int(value) * shards) if value is not None else None
    return rows


# -- one table
# ------------------------------------------------------------------------------------------------------


def columns(client: Exchange, plan: ShowColumns, values: Values) -> None:
    words = (b"EXTENDED " if plan.extended else b"") + (b"FULL " if plan.full else b"")
    _describe(client, plan, values, b"SHOW " + words + b"COLUMNS FROM ")


def index(client: Exchange, plan: ShowIndex, values: Values) -> None:
    words = b"EXTENDED " if plan.extended else b""
    _describe(client, plan, values, b"SHOW " + words + b"INDEX FROM ")


def create_table(client: Exchange, plan: ShowCreateTable, values: Values) -> None:
    _describe(client, plan, values, b"SHOW CREATE TABLE ")


def _describe(client: Exchange, plan: ShowOfTable, values: Values, sql: bytes) -> None:
    if _to_host(client, plan, plan.database):
        return
    table = client.snapshot.schema.table(plan.database, plan.table)
    if table is None:
        raise ProxyError("unknown_table", database=plan.database, table=plan.table)
    TaskWork(client).start(_describe_table(client, plan, values, table, sql))


async def _describe_table(
    client: Exchange, plan: ShowOfTable, values: Values, table: Table, sql: bytes
) -> None:
    """Ask one shard, and show the answer in logical terms."""
    keyspace = client.snapshot.topology.keyspaces[table.keyspace]
    shard, host = shard_to_ask(keyspace)
    if host is None:
        raise ProxyError("unknown_table", database=table.database, table=table.name)
    database = keyspace.database_of(shard).decode()
    reply = await _asked(client, host, sql + _name(database) + b"." + _name(table.name))
    if reply is None:
        return
    rows = _multiplied(reply.columns, reply.values(), max(1, len(keyspace.all_shards)))
    if table.kind is Kind.OBJECT:
        rows = [[_logical(value) for value in row] for row in rows]
    await write_kept(client, plan, values, reply.columns, rows)


def _logical(value: bytes | None) -> bytes | None:
    """An object table's stored key is shown as the ID that clients use."""
    if value is None or not value.startswith(b"CREATE TABLE "):
        return b"id" if value == b"local_id" else value
    return _LOCAL_ID.sub(rb"\1id\1", _NEXT_ID.sub(b"", value, count=1))


def _name(name: str) -> bytes:
    """A quoted name."""
    return b"`" + name.replace("`", "``").encode() + b"`"
