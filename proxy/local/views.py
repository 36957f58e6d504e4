"""Queries on information_schema, as clients of sharded databases see it: see rewriter/plain/views.py.

The query runs on the default host, beside the session's transaction. What it shows of tables that live on
other hosts is asked there first and written into it as constants.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from config.reserved import OWN
from config.schema import Database, Kind, Table
from config.topology import Keyspace, State
from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.engine.diagnostics import fetch_warnings
from proxy.engine.lease import borrowed
from proxy.engine.rest import Rest
from proxy.errors import ProxyError
from proxy.session.outcome import RESULT_SET, Outcome
from proxy.wire.packets import eof_packet, query_packet
from proxy.wire.resultset import decode_column
from rewriter.plain.views import VIEWS, Shown, introducer, shown_sql, view_sql
from rewriter.plans import SystemViews, Values
from rewriter.route.scope import INFORMATION_SCHEMA, SYSTEM_DATABASES
from rewriter.text.masks import unmask

from .processes import privilege_constants, process_constants
from .rows import AS_WRITTEN, constant
from .view_limits import wanted

if TYPE_CHECKING:
    from config.topology import Topology
    from proxy.engine.exchange import Exchange
    from proxy.engine.services import Services
    from proxy.engine.task import TaskWork

_NAME = re.compile(rb"[0-9A-Za-z_$-]+")
_TOGETHER = 200
"""Rows that are made constants before other clients have their turn."""


async def run_views(
    client: Exchange, work: TaskWork, plan: SystemViews, literals: Values, values: Values
) -> None:
    """Run the query; `values` are the literals and the session's (with a prepared statement's parameters)."""
    services = client.services
    host = plan.host(client.snapshot.topology)
    named = {name.decode() for value in values for name in _NAME.findall(value)}
    limits = wanted(client.session, plan, values)
    known = client.snapshot.schema.databases.keys()
    listed: list[list[bytes | None]] = []
    if not all(one.named and one.schemas is not None and one.schemas <= known for one in limits):
        listed = (await list_databases(client)).values()
    every = shown_databases(client, listed, host, named)
    hosts = {one.host for some in limits for one in some.of(every)}
    if plan.only_views and len(hosts) == 1 and host not in hosts:
        (host,) = hosts
        every = shown_databases(client, listed, host, named)
    shown = [one.of(every) for one in limits]
    async with borrowed(client, host, all_rows=True, utf8=True) as conn:
        columns = await _columns(services, conn, plan.views)
        derived = [
            await _derived(client, conn, view, _read(columns[view], view, plan), some, one.tables)
            for view, some, one in zip(plan.views, shown, limits, strict=True)
        ]
    sql = plan.template.render((*values, *derived))
    if client.session.unsafe_charset:
        sql = unmask(sql)
    if plan.effects is None and not plan.writes:
        async with borrowed(client, host, plan.database) as conn:
            await _stream(client, work, conn, sql)
            return
    client.relay.run(host, sql, plan.database, effects=plan.effects, literals=literals, facts=plan.facts)


async def _stream(client: Exchange, work: TaskWork, conn: BackendConnection, sql: bytes) -> None:
    """Answer with the rows of `sql` as they come: a join of views may have any number."""
    session = client.session
    rest = work.rest = Rest(client)
    work.conns.add(conn)
    try:
        await rest.run(conn, query_packet(sql), 0)
    finally:
        work.conns.discard(conn)
    if rest.err is not None:
        client.fail(rest.err, rest.next_seq)
        return
    diagnostics = await fetch_warnings(conn, rest.warnings) if rest.warnings else []
    session.apply(Outcome(RESULT_SET, found=rest.rows, diagnostics=diagnostics))
    assert rest.next_seq is not None
    client.transport.write(eof_packet(rest.next_seq, session.status(), rest.warnings))
    client.finish("ok")


async def list_databases(client: Exchange) -> Collector:
    """SHOW DATABASES of the default host (the first one when there is none), without the shards: there may be
    thousands.
    """
    topology = client.snapshot.topology
    shards = "|".join(named_like(one.pattern) for one in topology.keyspaces.values() if one.sharded)
    where = f" WHERE `Database` NOT REGEXP '^({shards})$'" if shards else ""
    async with borrowed(client, topology.default or topology.hosts[0], all_rows=True, utf8=True) as conn:
        return await Collector().query(conn, b"SHOW DATABASES" + where.encode())


def named_like(pattern: str) -> str:
    """A regular expression for the names of a keyspace's databases: `db{shard:05d}` gives `db[0-9]{5,}`."""
    before, _, rest = pattern.replace("$", "[$]").partition("{")
    field, _, behind = rest.partition("}")
    digits = field.partition(":")[2].strip("d")
    return f"{before}[0-9]{{{int(digits or 1)},}}{behind}"


def shown_databases(
    client: Exchange, found: list[list[bytes | None]], near: str, named: set[str]
) -> list[Shown]:
    """The databases that the client may see: of those `found` on the default host its own, the schema's, and
    physical ones that are `named`. Of a sharded one's tables those of a shard on host `near` are shown, when
    there is one.
    """
    schema, topology = client.snapshot.schema, client.snapshot.topology
    host = topology.default or topology.hosts[0]
    shown = []
    for row in found:
        name = (row[0] or b"").decode("utf-8", "replace")
        if name in OWN:
            continue
        own = topology.default is not None and name not in schema.databases
        if name in SYSTEM_DATABASES or (own and topology.physical(name) is None):
            shown.append(Shown(host, name, name))
    for database in schema.databases.values():
        shown += parts_of(topology, database, near)
    for name in sorted(named):
        place = topology.physical(name) if name not in schema.databases else None
        at = place[0].host_of(place[1]) if place is not None else None
        if at is not None:
            shown.append(Shown(at, name, name))
    allowed = client.session.user.databases
    if allowed is None:
        return shown
    return [one for one in shown if one.logical in allowed or one.logical == INFORMATION_SCHEMA]


def parts_of(topology: Topology, database: Database, near: str | None = None) -> list[Shown]:
    """The parts of one of the schema's databases: one for each keyspace that its tables are in."""
    keyspaces = topology.keyspaces
    if database.keyspace is not None:
        master = keyspaces[database.keyspace].master
        return [Shown(master, database.name, database.name)] if master is not None else []
    by_keyspace: dict[str, list[Table]] = {}
    for table in database.tables.values():
        by_keyspace.setdefault(table.keyspace, []).append(table)
    parts: list[Shown] = []
    for name, tables in by_keyspace.items():
        keyspace = keyspaces[name]
        shard, host = shard_to_ask(keyspace, near)
        if host is not None:
            part = Shown(
                host,
                keyspace.database_of(shard).decode(),
                database.name,
                tuple(table.name for table in tables),
                tuple(table.name for table in tables if table.kind is Kind.OBJECT),
                max(1, len(keyspace.all_shards)),
                first=not parts,
            )
            parts.append(part)
    return parts


def shard_to_ask(keyspace: Keyspace, near: str | None = None) -> tuple[int | None, str | None]:
    """A shard (None for an unsharded keyspace) that can tell of the keyspace's tables, and its host: one on
    host `near` when there is one.
    """
    if not keyspace.sharded:
        return None, keyspace.master
    found = None
    other = near not in keyspace.columns.masters
    for one in keyspace.ranges:
        if one.state is State.OFFLINE:
            continue
        if other or one.master == near:
            return one.first, one.master
        found = found or one
    return (found.first, found.master) if found is not None else (None, None)


async def _columns(
    services: Services, conn: BackendConnection, views: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The columns of each view on this server; none for one that it does not have."""
    known = services.view_columns.setdefault(conn.version, {})
    missing = sorted({view for view in views if view not in known})
    if missing:
        listed = ", ".join(f"'{view}'" for view in missing)
        reply = await Collector().query(
            conn,
            b"SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA ="
            b" 'information_schema' AND TABLE_NAME IN (%b) ORDER BY ORDINAL_POSITION" % listed.encode(),
        )
        found: dict[str, list[str]] = {view: [] for view in missing}
        for view, column in reply.values():
            found[(view or b"").decode().upper()].append((column or b"").decode())
        known.update({view: tuple(columns) for view, columns in found.items()})
    return known


def _read(columns: tuple[str, ...], view: str, plan: SystemViews) -> Sequence[str]:
    """The columns of a view that the query can read: at least one, if there are any."""
    if plan.reads is None or VIEWS[view].of_users:
        return columns
    return [one for one in columns if one.upper() in plan.reads] or columns[:1]


async def _derived(
    client: Exchange,
    conn: BackendConnection,
    view: str,
    names: Sequence[str],
    shown: Sequence[Shown],
    tables: Sequence[str] | None,
) -> bytes:
    """The derived table for a view, on the host of `conn`. `names`: its columns. `tables`: rows of others are
    not wanted.
    """
    if not names:
        return f"SELECT * FROM information_schema.{view}".encode()  # the server says that it has no such view
    flavour = client.session.env.flavour
    if view == "PROCESSLIST":
        nothing = await Collector().query(conn, view_sql(view, names, (), (), flavour=flavour))
        sessions = await process_constants(client, conn, nothing.columns, introducer(flavour))
        return view_sql(view, names, (), sessions, flavour=flavour)
    if VIEWS[view].of_users:
        if client.session.user.sees_others and not VIEWS[view].schema:
            return f"SELECT * FROM information_schema.{view}".encode()
        if not client.session.user.sees_others:
            nothing = await Collector().query(conn, view_sql(view, names, (), (), flavour=flavour))
            own = privilege_constants(client.session.user, view, nothing.columns, introducer(flavour))
            return view_sql(view, names, (), own, flavour=flavour)
    local = [one for one in shown if one.host == conn.host]
    constants = []
    for one in shown:
        elsewhere = one.host != conn.host
        sql = shown_sql(view, names, one, flavour=flavour, tables=tables) if elsewhere else b""
        if sql:
            constants += await _constants(client, one.host, sql)
    confined = not client.session.user.sees_others
    sql = view_sql(view, names, local, constants, flavour=flavour, confined=confined, tables=tables)
    return sql.replace(b"SELECT ", b"SELECT " + AS_WRITTEN, 1) if client.session.unsafe_charset else sql


async def _constants(client: Exchange, host: str, sql: bytes) -> list[bytes]:
    """The rows of a SELECT on another host, as lists of constants."""
    async with borrowed(client, host, all_rows=True, utf8=True) as conn:
        reply = await Collector().query(conn, sql)
    if reply.err is not None:
        raise ProxyError("host_unreachable", host=host, reason=reply.err.text())
    kinds = [decode_column(payload) for payload in reply.columns]
    text = introducer(client.session.env.flavour)
    found: list[bytes] = []
    for first in range(0, len(reply.rows), _TOGETHER):
        found += [
            b", ".join([constant(*pair, text) for pair in zip(row, kinds, strict=True)])
            for row in reply.values(first=first, most=_TOGETHER)
        ]
        await asyncio.sleep(0)  # other clients have their turn
    return found
