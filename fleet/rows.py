"""Databases with rows. Tools ask before they drop a database, and before a topology leaves its shard out."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from config.references import Name
from config.schema import quote
from config.topology import Host
from fleet.core.errors import HostError
from fleet.core.hosts import Hosts

_TOGETHER: Final = 200
"""Tables, or databases, that one statement asks for."""
_UNKNOWN: Final = 1049


async def tables_with_rows(hosts: Hosts, host: Host, tables: Collection[Name]) -> set[Name]:
    """Those of `tables` (database and name) that have rows. HostError."""
    listed, found = sorted(tables), set()
    for at in range(0, len(listed), _TOGETHER):
        asked = " UNION ALL ".join(
            f"(SELECT {number} FROM {quote(database)}.{quote(table)} LIMIT 1)"
            for number, (database, table) in enumerate(listed[at : at + _TOGETHER], at)
        )
        found |= {listed[int(number)] for (number,) in await hosts.query(host, asked)}
    return found


async def databases_with_rows(hosts: Hosts, host: Host, names: Iterable[str]) -> list[str]:
    """Those of the databases that have rows, ascending; one that is not there has none. HostError, also when
    the account may not see one of them.
    """
    wanted = sorted(set(names))
    listed = await hosts.query(host, "SELECT schema_name FROM information_schema.schemata")
    there = {str(name) for (name,) in listed}
    for name in wanted:
        if name not in there:
            await _not_there(hosts, host, name)
    seen = [name for name in wanted if name in there]
    tables: list[Name] = []
    for at in range(0, len(seen), _TOGETHER):
        texts = ", ".join(f"'{name}'" for name in seen[at : at + _TOGETHER])
        rows = await hosts.query(
            host,
            "SELECT table_schema, table_name FROM information_schema.tables "
            f"WHERE table_schema IN ({texts}) AND table_type NOT IN ('VIEW', 'SEQUENCE')",
        )
        tables += [(str(database), str(table)) for database, table in rows]
    return sorted({database for database, _ in await tables_with_rows(hosts, host, tables)})


async def _not_there(hosts: Hosts, host: Host, name: str) -> None:
    """Return when there is no such database. HostError when the account may not know."""
    try:
        await hosts.query(host, f"SHOW TABLES FROM {quote(name)}")
    except HostError as error:
        if error.code != _UNKNOWN:
            raise
