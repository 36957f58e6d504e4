"""Whether databases may be given another master: asked of the hosts before a topology is published.

The new master must be the current copy. It takes writes, replicates from nobody, and has all rows that the
old master has, which nobody writes there meanwhile. What has no rows may go anywhere that has the tables.
Where the old master is only a replica of the new one, or both are one server by two names, nothing moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from config.topology import Host
from fleet import replication
from fleet.core.errors import HostError
from fleet.core.hosts import Hosts
from fleet.replication import Replica
from fleet.rows import databases_with_rows

Moved = Mapping[tuple[Host, Host], Sequence[str]]
"""Databases by the master that has them and the one that is to have them."""

_SHOWN: Final = 5
_NO_RIGHT: Final = 1227


@dataclass(frozen=True)
class Server:
    """What one host says of itself. `name`: the same under each address of the server; `closed`: it takes no
    writes at all; `read_only`: databases that take none; `source`: whom it replicates from, as far as the
    account may see that.
    """

    host: Host
    name: str
    identity: str
    closed: bool
    read_only: frozenset[str] = frozenset()
    source: Replica | None = None

    def replicates_from(self, other: Server) -> bool:
        """Whether `other` is its source."""
        return self.source is not None and self.source.source_id == other.identity


async def look(hosts: Hosts, host: Host) -> Server:
    """HostError when it cannot be asked."""
    number = await replication.identity(hosts, host)
    ((name, port, folder, closed),) = await hosts.query(
        host, "SELECT @@GLOBAL.hostname, @@GLOBAL.port, @@GLOBAL.datadir, @@GLOBAL.read_only"
    )
    try:
        source = await replication.replica(hosts, host)
    except HostError as error:
        if error.code != _NO_RIGHT:
            raise
        source = None
    read_only = await read_only_databases(hosts, host)
    return Server(host, f"{name}:{port}:{folder}:{number}", number, bool(int(closed)), read_only, source)


async def read_only_databases(hosts: Hosts, host: Host) -> frozenset[str]:
    """The databases that are READ ONLY, where a server has that. HostError."""
    if not (await replication.flavour(hosts, host)).read_only_databases:
        return frozenset()
    asked = (
        "SELECT schema_name FROM information_schema.schemata_extensions WHERE options LIKE '%READ ONLY=1%'"
    )
    return frozenset(str(name) for (name,) in await hosts.query(host, asked))


async def problems(hosts: Hosts, moved: Moved) -> list[str]:
    """Why databases must not go to the master that is to have them, each with what to do instead."""
    found = await asyncio.gather(*(_problem(hosts, *pair, names) for pair, names in moved.items() if names))
    return [one for one in found if one]


async def _problem(hosts: Hosts, source: Host, target: Host, names: Sequence[str]) -> str:
    """Of the databases that go from one master to another; "" when they may."""
    try:
        new = await look(hosts, target)
    except HostError as error:
        return f"{target}: {error}: whether it has the rows of {some(names)} is not known"
    try:
        old = await look(hosts, source)
        if old.name == new.name:
            return ""
        return _roles(old, new, names) or await _rows(hosts, old, new, names)
    except HostError as error:
        host, dead = error.host, ""
        if host == source:
            dead = f". If {host} is dead: shardgate fleet promote --host {host} --dead"
        return f"{host}: {error}: whether {target} has all rows of {some(names)} is not known{dead}"


def _roles(old: Server, new: Server, names: Sequence[str]) -> str:
    """Why the new master is none, as its server says. Pure."""
    command = f"shardgate fleet promote --host {old.host} --to {new.host}"
    if new.replicates_from(old):
        return (
            f"{new.host} replicates from {old.host}, which takes the writes: {command} makes it the master "
            "when it has everything"
        )
    if new.source is not None:
        return f"{new.host} is a replica of {new.source.source}, and no master"
    if new.closed:
        return f"{new.host} takes no writes: it is read_only"
    shut = sorted(new.read_only & set(names))
    if shut:
        return f"{some(shut)} on {new.host} take no writes: they are READ ONLY, as databases that have moved"
    return ""


async def _rows(hosts: Hosts, old: Server, new: Server, names: Sequence[str]) -> str:
    """Why rows would be missing on the new master. HostError."""
    if old.replicates_from(new) and old.closed:
        return ""
    full = await databases_with_rows(hosts, old.host, names)
    lacking = await _lacking(hosts, old.host, new.host, names)
    if lacking:
        rows = " with rows" if {name.partition(".")[0] for name in lacking} & set(full) else ""
        return f"{new.host} has no {some(lacking)}, which {old.host} has{rows}"
    if not full:
        return ""
    without = sorted(set(full) - set(await databases_with_rows(hosts, new.host, full)))
    if without:
        return f"{old.host} has rows in {some(without)}, {new.host} has none there"
    if not (old.closed or set(full) <= old.read_only):
        return f"{old.host} takes writes to {some(full)}, which {new.host} does not get"
    sums = [await replication.checksums(hosts, one.host, full) for one in (old, new)]
    differing = replication.differing(*sums)
    if differing:
        tables = [f"{database}.{table}" for database, table in differing]
        return f"{some(tables)} have not the same rows on {old.host} and on {new.host}"
    return ""


async def _lacking(hosts: Hosts, source: Host, target: Host, names: Sequence[str]) -> list[str]:
    """The tables that the new master does not have."""
    held = await replication.tables(hosts, source, await _present(hosts, source, names))
    there = await replication.tables(hosts, target, await _present(hosts, target, names))
    return [f"{database}.{table}" for database, table in sorted(held - there)]


async def _present(hosts: Hosts, host: Host, names: Collection[str]) -> list[str]:
    listed = {
        str(name)
        for (name,) in await hosts.query(host, "SELECT schema_name FROM information_schema.schemata")
    }
    return [name for name in names if name in listed]


def some(names: Iterable[str]) -> str:
    """The first of some names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more
