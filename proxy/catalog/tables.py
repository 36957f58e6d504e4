"""The columns that the tables have now.

The schema document declares tables, but an ALTER TABLE adds columns without it, and a document need not name
them all. `SELECT *` and INSERT without a list of columns mean those of now. So the servers are asked: at
start, after every definition that the proxy runs, and now and then, for those that others have run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import structlog

from config.schema import Column, Schema, Table
from config.topology import Keyspace, Topology
from proxy.backends import Backends
from proxy.backends.collect import Collector
from proxy.backends.own import own_connection
from proxy.errors import ProxyError

log = structlog.get_logger("proxy")

#: Seconds between two looks.
PERIOD = 30.0

#: So many shards of a keyspace, besides the first and the last, are looked at each time.
_AT_ONCE = 8

#: Of one shard. MariaDB finds a database at once where it is named by `=`, so several are a UNION.
_ASK = (
    "SELECT {number}, table_name, column_name, column_type, column_key, extra, is_nullable,"
    " ordinal_position FROM information_schema.columns"
    " WHERE table_schema = {database} AND table_name IN ({tables})"
)
_IN_ORDER = " ORDER BY 1, 2, 8"

_LIST = (
    "SELECT table_name FROM information_schema.tables"
    " WHERE table_schema = {database} AND table_type = 'BASE TABLE'"
)


class Looked(NamedTuple):
    """What was found: the schema with the columns that the servers have, the tables that have each column on
    some shard (all names in lower case), and (where, what) some lack.
    """

    schema: Schema
    columns: Mapping[str, frozenset[str]]
    problems: tuple[tuple[str, str], ...]


def differences(before: Schema, after: Schema, *, first: bool) -> list[str]:
    """What the tables have now, e.g. `demo.pins: new color; gone note`. `first`: `before` is the document
    alone, which need not name all columns, and writes types as a person does; so only what the servers lack
    is told.
    """
    found = []
    for database in after.databases.values():
        known = before.databases[database.name].tables
        for table in database.tables.values():
            if table.name not in known or table is known[table.name]:
                continue
            was = {column.name.lower(): column.definition for column in known[table.name].columns}
            now = {column.name.lower(): column.definition for column in table.columns}
            parts = [("gone" if not first else "not on the servers", [one for one in was if one not in now])]
            if not first:
                parts.insert(0, ("new", [one for one in now if one not in was]))
                parts.append(("changed", [one for one in now if was.get(one, now[one]) != now[one]]))
            told = "; ".join(f"{what} {', '.join(names)}" for what, names in parts if names)
            if told:
                found.append(f"{database.name}.{table.name}: {told}")
    return found


async def look(schema: Schema, topology: Topology, backends: Backends, turn: int = 0) -> Looked:
    """Look at the tables, and for those in `others`; what does not answer stays as it is. `turn` says which
    shards between a keyspace's first and last are looked at, too: with every number others.
    """
    schema = schema.with_others(await _others(schema, topology, backends))
    tables: dict[str, list[Table]] = {}
    for database in schema.databases.values():
        for table in database.tables.values():
            tables.setdefault(table.keyspace, []).append(table)
    found: dict[Table, tuple[Column, ...]] = {}
    names: dict[str, set[str]] = {}
    for table in (table for some in tables.values() for table in some):
        _note(names, table, {column.name.lower() for column in table.columns})
    problems: list[tuple[str, str]] = []
    failed: dict[str, list[str]] = {}
    for name, some in tables.items():
        keyspace = topology.keyspaces.get(name)
        if keyspace is None:
            continue
        try:
            found.update(await _keyspace(keyspace, some, backends, names, problems, turn))
        except ProxyError as error:
            failed.setdefault(str(error), []).append(name)
    for reason, keyspaces in failed.items():
        log.info("columns not looked at", keyspaces=keyspaces, reason=reason)
    return Looked(
        schema.with_columns(found),
        {column: frozenset(some) for column, some in names.items()},
        tuple(problems),
    )


def _why(error: ProxyError) -> str:
    """For the log: without what a client is told to do."""
    reason = error.details.get("reason")
    return error.text if reason is None else f"{error.details.get('host', '')}: {reason}"


async def _others(schema: Schema, topology: Topology, backends: Backends) -> dict[str, list[str]]:
    """The tables in the `others` of each database that has some, by the database's name."""
    found: dict[str, list[str]] = {}
    for database in schema.databases.values():
        keyspace = topology.keyspaces.get(database.others) if database.others is not None else None
        if keyspace is None or keyspace.master is None:
            continue
        sql = _LIST.format(database=text_literal(keyspace.database_of(None)))
        try:
            rows = await _asked(keyspace.master, sql, backends)
        except ProxyError as error:
            log.info("tables not looked at", keyspace=keyspace.name, reason=_why(error))
        else:
            found[database.name] = [name for (name,) in rows]
    return found


async def _keyspace(
    keyspace: Keyspace,
    tables: list[Table],
    backends: Backends,
    names: dict[str, set[str]],
    problems: list[tuple[str, str]],
    turn: int,
) -> dict[Table, tuple[Column, ...]]:
    """The columns of a keyspace's tables: what its first shard has, and its last one too, as an ALTER TABLE
    may be on its way through the shards. What any shard of this `turn` has is added to `names`, what one
    lacks to `problems`.
    """
    shards: Iterable[int | None] = (None,)
    if keyspace.sharded:
        shards = sorted({keyspace.all_shards[0], keyspace.all_shards[-1]}) if keyspace.all_shards else ()
    ends: dict[int | None, Mapping[str, list[Column]]] = {shard: {} for shard in shards}
    for host, some in _by_host(keyspace, shards).items():
        ends.update(await _shards(keyspace, host, some, tables, backends))
    seen = list(ends.values())
    every = ends | await _between(keyspace, tables, backends, turn)
    _compare(keyspace, tables, every, names, problems)
    found: dict[Table, tuple[Column, ...]] = {}
    for table in tables:
        columns = [one[table.name] for one in seen if table.name in one]
        if not columns or len(columns) < len(seen):
            continue
        others = {column.name for column in columns[-1]}
        found[table] = tuple(column for column in columns[0] if column.name in others)
    return found


async def _between(
    keyspace: Keyspace, tables: list[Table], backends: Backends, turn: int
) -> dict[int | None, Mapping[str, list[Column]]]:
    """What some of the shards between the first and the last have, as far as they answer."""
    shards = keyspace.all_shards[1:-1] if keyspace.sharded else ()
    begin = turn * _AT_ONCE % max(len(shards), 1)
    found: dict[int | None, Mapping[str, list[Column]]] = {}
    for host, some in _by_host(keyspace, (*shards[begin:], *shards[:begin])[:_AT_ONCE]).items():
        with suppress(ProxyError):  # of a host that does not answer the log says more
            found.update(await _shards(keyspace, host, some, tables, backends))
    return found


def _by_host(keyspace: Keyspace, shards: Iterable[int | None]) -> dict[str, list[int | None]]:
    found: dict[str, list[int | None]] = {}
    for shard in shards:
        host = keyspace.host_of(shard)
        if host is not None:
            found.setdefault(host, []).append(shard)
    return found


def _compare(
    keyspace: Keyspace,
    tables: list[Table],
    every: Mapping[int | None, Mapping[str, list[Column]]],
    names: dict[str, set[str]],
    problems: list[tuple[str, str]],
) -> None:
    """Note what some of these shards lack and others have."""
    columns: dict[str, set[str]] = {}
    for shard in every.values():
        for name, some in shard.items():
            columns.setdefault(name, set()).update(column.name.lower() for column in some)
    for table in tables:
        _note(names, table, columns.get(table.name, set()))
    for number, shard in every.items():
        where = _where(keyspace, number)
        lacking = [table.name for table in tables if table.name in columns and table.name not in shard]
        if len(lacking) > 1 and not shard:
            problems.append((where, "it has none of its tables: is the database there?"))
            continue
        problems.extend((where, f"it has no table '{name}'") for name in lacking)
        for name, some in shard.items():
            if missing := columns[name] - {column.name.lower() for column in some}:
                problems.append((where, f"its table '{name}' lacks {', '.join(sorted(missing))}"))


def _note(names: dict[str, set[str]], table: Table, columns: set[str]) -> None:
    for column in columns:
        names.setdefault(column, set()).add(table.name.lower())


def _where(keyspace: Keyspace, shard: int | None) -> str:
    shown = f"shard {shard}" if shard is not None else "database"
    return f"{shown} ({keyspace.database_of(shard).decode()}) on {keyspace.host_of(shard)}"


async def _shards(
    keyspace: Keyspace, host: str, shards: Sequence[int | None], tables: list[Table], backends: Backends
) -> dict[int | None, Mapping[str, list[Column]]]:
    """The columns of the tables of each of these shards, which are on the host."""
    names = ", ".join(text_literal(table.name) for table in tables)
    databases = [text_literal(keyspace.database_of(shard)) for shard in shards]
    parts = [_ASK.format(number=at, database=one, tables=names) for at, one in enumerate(databases)]
    rows: list[list[list[str]]] = [[] for _ in shards]
    for number, *row in await _asked(host, " UNION ALL ".join(parts) + _IN_ORDER, backends):
        rows[int(number)].append(row)
    return {shard: _columns(some) for shard, some in zip(shards, rows, strict=True)}


def _columns(rows: list[list[str]]) -> Mapping[str, list[Column]]:
    """Of one shard, by table."""
    keys: dict[str, int] = {}
    for table, _, _, key, *_ in rows:
        keys[table] = keys.get(table, 0) + (key == "PRI")
    found: dict[str, list[Column]] = {}
    for table, name, type_, key, extra, nullable, _ in rows:
        if "INVISIBLE" in extra.upper():
            continue
        definition = type_ + (" NOT NULL" if nullable == "NO" else "")
        if "auto_increment" in extra.lower():
            definition += " AUTO_INCREMENT"
        if key == "PRI" and keys[table] == 1:
            definition += " PRIMARY KEY"
        found.setdefault(table, []).append(Column(name, definition))
    return found


def text_literal(value: str | bytes) -> str:
    """A name as a text literal, whatever the server's sql_mode says of backslashes."""
    return "x'" + (value.encode() if isinstance(value, str) else value).hex() + "'"


async def _asked(host: str, sql: str, backends: Backends) -> list[list[str]]:
    """The rows that a host gives. Raises ProxyError."""
    async with own_connection(backends, host) as conn:
        reply = await Collector().query(conn, sql.encode())
    if reply.err is not None:
        raise ProxyError("host_unreachable", host=host, reason=reply.err.text())
    return [[(value or b"").decode() for value in row] for row in reply.values()]
