"""Which of a sharded database's tables exist, as the servers say now.

A table that the schema names and no shard has is none yet. One that some shards lack is, and those are told
to the log and the status page.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from config.schema import Kind, Table
from proxy.backends.collect import Collector
from proxy.catalog.tables import text_literal
from proxy.engine.lease import borrowed
from proxy.engine.problems import place
from proxy.errors import ProxyError

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_TOLD: Final = 20
"""Of so many shards that lack a table it is said one by one."""
_FROM: Final = (
    " FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({databases}) AND TABLE_NAME IN ({tables})"
)


@dataclass(frozen=True, slots=True)
class _Place:
    """The databases of one host where these tables should be."""

    host: str
    databases: tuple[str, ...]
    tables: tuple[str, ...]

    def sql(self, select: str, tables: tuple[str, ...], behind: str = "") -> bytes:
        databases = ", ".join(map(text_literal, self.databases))
        listed = ", ".join(map(text_literal, tables))
        return (select + _FROM.format(databases=databases, tables=listed) + behind).encode()


async def existing_tables(client: Exchange, database: str) -> list[str]:
    """The names of the tables of `database` that some shard has, or may have: one whose host does not answer.
    Sorted.
    """
    by_host: dict[str, list[_Place]] = {}
    for one in _places(client, tuple(client.snapshot.schema.databases[database].tables.values())):
        by_host.setdefault(one.host, []).append(one)
    found = await asyncio.gather(*(_ask(client, host, places) for host, places in by_host.items()))
    return sorted({name for names in found for name in names})


def _places(client: Exchange, tables: tuple[Table, ...]) -> list[_Place]:
    topology = client.snapshot.topology
    kept: dict[tuple[str, bool], list[str]] = {}
    for table in tables:
        kept.setdefault((table.keyspace, table.kind is Kind.REFERENCE), []).append(table.name)
    places = []
    for (name, everywhere), names in kept.items():
        keyspace = topology.keyspaces[name]
        by_host: dict[str, list[str]] = {}
        if keyspace.sharded:
            for host, physical in keyspace.places.values():
                by_host.setdefault(host, []).append(physical.decode())
        else:
            own = keyspace.database_of(None).decode()
            hosts = topology.hosts if everywhere else [one for one in (keyspace.master,) if one]
            by_host = {host: [own] for host in hosts}
        places += [_Place(host, tuple(some), tuple(names)) for host, some in by_host.items()]
    return places


async def _ask(client: Exchange, host: str, places: list[_Place]) -> set[str]:
    """The tables that one host has."""
    found: set[str] = set()
    try:
        async with borrowed(client, host, all_rows=True, utf8=True) as conn:
            for one in places:
                counts: Counter[str] = Counter()
                sql = one.sql("SELECT TABLE_NAME, COUNT(*)", one.tables, " GROUP BY TABLE_NAME")
                for name, count in (await Collector().query(conn, sql)).values():
                    counts[(name or b"").decode()] = int(count or 0)
                found |= counts.keys()
                for table in one.tables:
                    if 0 < counts[table] < len(one.databases):
                        reply = await Collector().query(conn, one.sql("SELECT TABLE_SCHEMA", (table,)))
                        _tell(client, one, table, {(row[0] or b"").decode() for row in reply.values()})
    except ProxyError:
        found.update(name for one in places for name in one.tables)
    return found


def _tell(client: Exchange, where: _Place, table: str, having: set[str]) -> None:
    services = client.services
    for database in [one for one in where.databases if one not in having][:_TOLD]:
        text = f"Table '{database}.{table}' doesn't exist"
        services.serving.problems.note(1146, place(client.snapshot.topology, database, where.host), text)
