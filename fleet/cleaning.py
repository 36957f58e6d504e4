"""`shardgate fleet cleanup`: drops what splits have left behind, when nobody uses it any more.

A split leaves the databases that it has moved on the old master, behind their fence; and the new master has
all others, since it was a copy. Both go with this, the fence, too. What a split has left is what the journal
says, what may be dropped is what the topology and the hosts say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from config.schema import quote
from config.settings import Settings
from config.topology import Host, State, Topology
from fleet import fence, replication
from fleet.core.errors import HostError, Refused
from fleet.core.hosts import Hosts
from fleet.core.journal import Journal, Operation
from fleet.core.publish import behind
from fleet.core.run import Report, Tool
from fleet.core.steps import Step
from fleet.core.store import Store
from fleet.create import existing
from fleet.faults import looks_like
from fleet.fence import Fence
from fleet.promote import slaves_of

_OPERATIONS: Final = 10_000
"""So many of the latest are looked through."""
_SHOWN: Final = 5


@dataclass(frozen=True)
class Split:
    """One that is done: what the journal remembers of it."""

    number: int
    old: Host
    new: Host
    fence: Fence

    @property
    def key(self) -> str:
        """Of the step that takes the rest of the fence away."""
        return f"open\t{self.number}"


def splits(operations: Sequence[Operation]) -> list[Split]:
    """Those that are done and not cleaned up, the oldest first. Pure."""
    cleaned = {key for one in operations if one.tool == "cleanup" for key in one.done}
    found = [
        Split(
            one.number,
            str(one.done["rights"]["host"]),
            str(one.arguments["master"]),
            Fence.read(one.done["rights"]["fence"]),
        )
        for one in operations
        if one.tool == "split" and one.outcome == "done" and "rights" in one.done
    ]
    return [one for one in found if one.key not in cleaned]


def left_over(
    found: Mapping[Host, frozenset[str]], topology: Topology, listed: Sequence[Split]
) -> Iterator[tuple[Host, str, Host]]:
    """The databases that splits have left: where they are, their names, and the master that serves them.
    Pure. `found`: the databases of each host.
    """
    moved = {name for one in listed for name in one.fence.databases}
    copies = {one.new for one in listed}
    for name in moved:
        physical = topology.physical(name)
        owner = physical[0].host_of(physical[1]) if physical is not None else None
        copies |= {owner} if owner is not None else set()  # may be who has followed that master
    for host, names in found.items():
        for name in sorted(names):
            if not looks_like(topology, name):
                continue
            physical = topology.physical(name)
            if physical is None:
                continue
            keyspace, shard = physical
            held = None if shard is None else keyspace.range_of(shard)
            if held is None or host in (held.master, held.slave):
                continue
            if (name in moved or host in copies) and held.state is not State.FROZEN:
                yield host, name, held.master


class Cleaning:
    """One run."""

    def __init__(self, settings: Settings, store: Store, hosts: Hosts, topology: Topology) -> None:
        self._settings, self._store, self._hosts, self._topology = settings, store, hosts, topology

    def tool(self) -> Tool:
        """For the runner."""
        return Tool("cleanup", {}, self._steps)

    def told(self, report: Report) -> Iterator[str]:
        """What was done, a line for each host."""
        dropped: dict[Host, int] = {}
        for one in report.done:
            if one.key.startswith("drop\t"):
                dropped[one.host] = dropped.get(one.host, 0) + 1
        for host, count in dropped.items():
            yield f"{host}: dropped {count} databases"
        if not report.steps:
            yield "nothing is left over"

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        """Refused while anything still uses what would be dropped."""
        operations = await asyncio.to_thread(Journal(self._store).latest, _OPERATIONS)
        listed = splits(operations)
        if not listed:
            return []
        places = dict.fromkeys([*self._topology.hosts, *(one.old for one in listed)])
        found = {host: frozenset(await existing(self._hosts, host)) for host in places}
        drops = list(left_over(found, self._topology, listed))
        await self._refuse_used(drops, found)
        closed = {(one.old, name) for one in listed for name in one.fence.databases}
        steps = []
        for host, name, _ in drops:
            drop = [f"DROP DATABASE IF EXISTS {quote(name)}"]
            if (host, name) in closed and (await replication.flavour(self._hosts, host)).read_only_databases:
                unlogged = fence.unlogged([f"ALTER DATABASE {quote(name)} READ ONLY = 0"])
                drop = [*unlogged, *drop]
            steps.append(Step(f"drop\t{host}\t{name}", f"drop {name}", host, tuple(drop), final=True))
        for one in listed:
            opening: list[str] = []
            if not (await replication.flavour(self._hosts, one.old)).read_only_databases:
                opening = fence.unlogged(one.fence.open())
            text = f"give the accounts the rights that they had before operation {one.number}"
            if not opening:
                text, opening = f"note that nothing of operation {one.number} is left", ["DO 0"]
            shown = () if len(opening) > 1 else (text,)
            steps.append(Step(one.key, text, one.old, tuple(opening), shown, stage=1))
        return steps

    async def _refuse_used(
        self,
        drops: Sequence[tuple[Host, str, Host]],
        found: Mapping[Host, frozenset[str]],
    ) -> None:
        problems = [
            f"{host} has {name}, but {owner}, which serves it, has not"
            for host, name, owner in drops
            if name not in found.get(owner, ())
        ]
        problems += [
            f"proxy {late.name} serves version {late.version}, not {self._topology.version}"
            for late in await behind(self._store, self._topology.version, 0.0)
        ]
        by_host: dict[Host, list[str]] = {}
        for host, name, _ in drops:
            by_host.setdefault(host, []).append(name)
        for host, names in by_host.items():
            problems += await self._used(host, frozenset(names))
        if problems:
            more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
            raise Refused("; ".join(problems[:_SHOWN]) + more)

    async def _used(self, host: Host, names: frozenset[str]) -> list[str]:
        """Who uses the databases of a host still."""
        if await replication.replica(self._hosts, host) is not None:
            return [f"{host} replicates from another host: what it drops would be missing there"]
        problems = []
        inside = sorted(await fence.databases_in_use(self._hosts, host) & names)
        if inside:
            problems.append(
                f"{host}: somebody uses {', '.join(inside[:_SHOWN])} now: see SHOW PROCESSLIST there"
            )
        own = slaves_of(self._topology, host)
        identity = await replication.identity(self._hosts, host)
        for other in dict.fromkeys([*self._topology.hosts, *self._topology.slaves]):
            if other == host or other in own:
                continue
            try:
                found = await replication.replica(self._hosts, other)
            except HostError as error:
                problems.append(f"{other}: {error}: whether it replicates from {host} is not known")
                continue
            if found is not None and found.source_id == identity:
                problems.append(f"{other} replicates from {host}, and would drop its own: end that first")
        return problems
