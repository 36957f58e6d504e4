"""The logical view: what SHOW DATABASES, TABLES, COLUMNS, INDEX and CREATE TABLE say of sharded databases.

The schema knows the tables; a table's columns and indexes are asked of one of its shards, where an object
table's `local_id` is shown as the `id` that clients see. Databases that are not sharded answer for
themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from config.schema import Kind, Table
from proxy.backends.collect import Collector
from proxy.errors import ProxyError
from proxy.execute.aside import borrowed, write_result
from proxy.execute.task import TaskWork
from proxy.wire.resultset import decode_column, encode_row, text_column
from rewriter.plans import AnyHost, Builtin, Passthrough, ShardSelect, Values
from rewriter.splice import Template

if TYPE_CHECKING:
    from proxy.session.client import ClientConnection


class Fields(Collector):
    """A reply of which the columns matter."""

    __slots__ = ()

    def named_columns(self) -> list[tuple[bytes, str]]:
        return [(payload, decode_column(payload).name.decode("utf-8", "replace")) for payload in self.columns]


async def select_nothing(client: ClientConnection, database: str, table: str) -> Fields:
    """The reply to SELECT * FROM the table with no row: its logical columns' definitions. ProxyError as for a
    SELECT.
    """
    services, session = client.services, client.session
    name = b".".join(b"`" + part.replace("`", "``").encode() + b"`" for part in (database, table))
    plan, literals = services.rewriter.plan(b"SELECT * FROM " + name + b" LIMIT 0", session.env)
    fields = Fields()
    if isinstance(plan, Passthrough | AnyHost):
        host, sql = plan.host(services.topology), plan.template.render(literals)
    elif isinstance(plan, ShardSelect):
        bound = plan.bind(literals, services.topology, lambda shards: shards[0])
        statement = bound.reference or bound.statements[0]
        host, sql = statement.host, statement.sql
    else:
        raise ProxyError("unknown_table", database=database, table=table)
    async with borrowed(client, host) as conn:
        await fields.query(conn, sql)
    return fields


def like_pattern(pattern: str) -> Callable[[str], bool]:
    """A LIKE pattern as a test: % any text, _ one character, backslash escapes; case does not matter.

    Not a regular expression: many % would let one take for ever.
    """
    wanted: list[str] = []
    escaped = False
    for char in pattern.lower():
        if char == "\\" and not escaped:
            escaped = True
            continue
        wanted.append("\\" + char if escaped or char not in "%_" else char)
        escaped = False
    if escaped:
        wanted.append("\\\\")
    return partial(_matches, wanted)


def _matches(wanted: list[str], text: str) -> bool:
    """`wanted`: "%", "_", or a backslash and the character itself. In O(length of both, multiplied)."""
    text = text.lower()
    at = place = 0
    behind, again = -1, 0  # behind the last %, and where in the text its rest is tried next
    while at < len(text):
        here = wanted[place] if place < len(wanted) else ""
        if here == "%":
            place += 1
            behind, again = place, at
        elif here == "_" or here == "\\" + text[at]:
            place += 1
            at += 1
        elif behind >= 0:
            again += 1
            place, at = behind, again
        else:
            return False
    return all(one == "%" for one in wanted[place:])


def like_text(like: Template, values: Values) -> str:
    """The pattern in a LIKE's string literal. Its backslashes stay, for they escape in the pattern too."""
    sql = like.render(values).strip()
    text, quote = sql[1:-1].decode("utf-8", "replace"), sql[:1].decode("latin-1")
    return text.replace(quote * 2, quote)


def _like(plan: Builtin, values: Values) -> tuple[str, Callable[[str], bool]]:
    """The LIKE pattern as text ('' for none) and as a test. WHERE is refused: it would need a server."""
    where = plan.arguments.get("where")
    if where is not None:
        raise ProxyError(
            "not_supported_yet",
            what="SHOW … WHERE",
            reason="the list is the proxy's own.",
            alternative="Use LIKE.",
        )
    like = plan.arguments.get("like")
    if not isinstance(like, Template):
        return "", lambda text: True
    text = like_text(like, values)
    return text, like_pattern(text)


def _own_host(client: ClientConnection, database: str) -> str | None:
    """The host that answers for a database that is not sharded; None for one the schema describes."""
    services = client.services
    known = services.schema.databases.get(database)
    if known is not None:
        return services.topology.keyspaces[known.keyspace].master if known.keyspace else None
    physical = services.topology.physical(database)
    host = physical[0].host_of(physical[1]) if physical is not None else services.topology.default
    if host is None:
        raise ProxyError("unknown_database", database=database)
    return host


def _to_host(client: ClientConnection, database: str) -> bool:
    """Relay the client's own statement when its database answers for itself."""
    host = _own_host(client, database)
    if host is None:
        return False
    # The database is named in the statement, or is the session's: only then must the connection be in it.
    current = database if database == client.session.database else None
    client.relay.run(host, client.sql, current)
    return True


def databases(client: ClientConnection, plan: Builtin, values: Values) -> None:
    TaskWork(client).start(_databases(client, plan, values))


async def _databases(client: ClientConnection, plan: Builtin, values: Values) -> None:
    text, matches = _like(plan, values)
    services, session = client.services, client.session
    names = set(services.schema.databases)
    if services.topology.default is not None:
        async with borrowed(client, services.topology.default) as conn:
            reply = await Collector().query(conn, b"SHOW DATABASES")
        found = [(row[0] or b"").decode("utf-8", "replace") for row in reply.values()]
        names.update(name for name in found if services.topology.physical(name) is None)
    else:
        names.add("information_schema")
    allowed = session.user.databases
    shown = sorted(name for name in names if matches(name) and (allowed is None or name in allowed))
    title = f"Database ({text})" if text else "Database"
    write_result(client, [text_column(title).encode()], [encode_row([name]) for name in shown])


def tables(client: ClientConnection, plan: Builtin, values: Values) -> None:
    database = str(plan.arguments["database"])
    if _to_host(client, database):
        return
    text, matches = _like(plan, values)
    full = bool(plan.arguments.get("full"))
    title = f"Tables_in_{database} ({text})" if text else f"Tables_in_{database}"
    columns = [text_column(title).encode()]
    if full:
        columns.append(text_column("Table_type").encode())
    names = sorted(name for name in client.services.schema.databases[database].tables if matches(name))
    rows = [encode_row([name, "BASE TABLE"] if full else [name]) for name in names]
    write_result(client, columns, rows)


def create_database(client: ClientConnection, plan: Builtin, values: Values) -> None:
    database = str(plan.arguments["database"])
    if _to_host(client, database):
        return
    columns = [text_column("Database").encode(), text_column("Create Database").encode()]
    write_result(client, columns, [encode_row([database, f"CREATE DATABASE `{database}`"])])


def table_status(client: ClientConnection, plan: Builtin, values: Values) -> None:
    if not _to_host(client, str(plan.arguments["database"])):
        raise ProxyError(
            "not_supported_yet",
            what="SHOW TABLE STATUS",
            reason="it would have to be summed up.",
            alternative="Ask one shard: SHOW TABLE STATUS FROM db00000.",
        )


def columns(client: ClientConnection, plan: Builtin, values: Values) -> None:
    if _to_host(client, str(plan.arguments["database"])):
        return
    matches = _like(plan, values)[1]
    full = b"FULL " if plan.arguments.get("full") else b""
    _describe(client, plan, b"SHOW " + full + b"COLUMNS FROM ", lambda row: matches((row[0] or b"").decode()))


def index(client: ClientConnection, plan: Builtin, values: Values) -> None:
    _describe(client, plan, b"SHOW INDEX FROM ", lambda row: True)


def create_table(client: ClientConnection, plan: Builtin, values: Values) -> None:
    _describe(client, plan, b"SHOW CREATE TABLE ", lambda row: True)


def _describe(
    client: ClientConnection, plan: Builtin, sql: bytes, keep: Callable[[list[bytes | None]], bool]
) -> None:
    database, name = str(plan.arguments["database"]), str(plan.arguments["table"])
    if _to_host(client, database):
        return
    table = client.services.schema.table(database, name)
    if table is None:
        raise ProxyError("unknown_table", database=database, table=name)
    TaskWork(client).start(_describe_table(client, table, sql, keep))


async def _describe_table(
    client: ClientConnection, table: Table, sql: bytes, keep: Callable[[list[bytes | None]], bool]
) -> None:
    """Ask one shard, and show the answer in logical terms."""
    keyspace = client.services.topology.keyspaces[table.keyspace]
    shard = keyspace.all_shards[0] if keyspace.sharded else None
    host = keyspace.host_of(shard)
    if host is None:
        raise ProxyError("unknown_table", database=table.database, table=table.name)
    physical = b"`%s`.`%s`" % (keyspace.database_of(shard), table.name.replace("`", "``").encode())
    async with borrowed(client, host) as conn:
        reply = await Collector().query(conn, sql + physical)
    if reply.err is not None:
        client.fail(reply.err)
        return
    rows = reply.values()
    if table.kind is Kind.OBJECT:
        rows = [[_logical(value) for value in row] for row in rows]
    write_result(client, reply.columns, [encode_row(row) for row in rows if keep(row)])


def _logical(value: bytes | None) -> bytes | None:
    """An object table's stored key is shown as the ID that clients use."""
    if value is None:
        return None
    return b"id" if value == b"local_id" else value.replace(b"`local_id`", b"`id`")
