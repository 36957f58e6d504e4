"""`shardgate fleet cleanup`: drops what splits have left behind, when nobody uses it any more.

A split leaves the databases that it has moved on the old master, behind their fence; and the new master has
all others, since it was a copy. Both are dropped here, and the fence is taken away. What a split has left is
what the journal says. A database is dropped only when the topology's history (`succession`) and the hosts
show that the master in use has all its rows. Otherwise it is kept, and the command prints why.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from config.document import ConfigError
from config.load import load_topology
from config.schema import quote
from config.settings import Settings
from config.topology import Host, State, Topology
from fleet import fence, replication
from fleet.core.errors import HostError, Refused
from fleet.core.hosts import Hosts
from fleet.core.journal import Journal, Operation
from fleet.core.publish import behind, history
from fleet.core.run import Report, Tool
from fleet.core.steps import Step
from fleet.core.store import Store
from fleet.create import existing
from fleet.faults import looks_like
from fleet.fence import Fence
from fleet.moves import read_only_databases, some
from fleet.promote import slaves_of
from fleet.rows import databases_with_rows
from fleet.succession import Served, declared_dead, doubt

_OPERATIONS: Final = 10_000
"""So many of the latest are looked through."""
_SHOWN: Final = 5

Left = tuple[Host, str, Host]
"""A database that splits have left: where it is, its name, and the master that serves it."""


@dataclass(frozen=True)
class Split:
    """One that is done: what the journal remembers of it."""

    number: int
    old: Host
    new: Host
    fence: Fence
    version: int = 0
    """Of the topology that gave the databases to `new`; 0: not known."""

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
            int(one.done.get("publish", {}).get("version", 0)),
        )
        for one in operations
        if one.tool == "split" and one.outcome == "done" and "rights" in one.done
    ]
    return [one for one in found if one.key not in cleaned]


def left_over(
    found: Mapping[Host, frozenset[str]], topology: Topology, listed: Sequence[Split]
) -> Iterator[Left]:
    """The databases that splits have left. Pure. `found`: the databases of each host."""
    moved = {name for one in listed for name in one.fence.databases}
    copies = {one.new for one in listed}
    for name in moved:
        held = topology.range_with(name)
        copies |= {held.master} if held is not None else set()  # may be who has followed that master
    for host, names in found.items():
        for name in sorted(names):
            if not looks_like(topology, name):
                continue
            held = topology.range_with(name)
            if held is None or host in (held.master, held.slave):
                continue
            if (name in moved or host in copies) and held.state is not State.FROZEN:
                yield host, name, held.master


def _served_again(split: Split, topology: Topology) -> list[str]:
    """A message if the topology gives databases back to the old master of a split: their fence stays."""
    held = {name: topology.range_with(name) for name in split.fence.databases}
    names = [name for name, one in held.items() if one is not None and one.master == split.old]
    if not names:
        return []
    return [
        f"{split.old}: {some(names)} left as it is: the topology has it here again, behind the fence of "
        f"operation {split.number}; {split.new} may have newer rows. `shardgate topology history` shows the "
        "version of the split"
    ]


def _drop(host: Host, name: str) -> str:
    """The key of the step that drops a database."""
    return f"drop\t{host}\t{name}"


class Cleaning:
    """One run."""

    def __init__(self, settings: Settings, store: Store, hosts: Hosts, topology: Topology) -> None:
        self._settings, self._store, self._hosts, self._topology = settings, store, hosts, topology
        self.left: list[str] = []
        """The databases that are not dropped, and the reasons; a line each."""

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
        yield from self.left
        if not report.steps and not self.left:
            yield "nothing is left over"

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        """Refused while anything still uses what would be dropped."""
        operations = await asyncio.to_thread(Journal(self._store).latest, _OPERATIONS)
        listed = splits(operations)
        if not listed:
            return []
        again = [text for one in listed for text in _served_again(one, self._topology)]
        found = await self._found(listed)
        drops = await self._sure(list(left_over(found, self._topology, listed)), listed, operation)
        self.left += again
        await self._refuse_used(drops, found)
        closed = {(one.old, name) for one in listed for name in one.fence.databases}
        steps = []
        for host, name, _ in drops:
            drop = [f"DROP DATABASE IF EXISTS {quote(name)}"]
            if (host, name) in closed and (await replication.flavour(self._hosts, host)).read_only_databases:
                unlogged = fence.unlogged([f"ALTER DATABASE {quote(name)} READ ONLY = 0"])
                drop = [*unlogged, *drop]
            steps.append(Step(_drop(host, name), f"drop {name}", host, tuple(drop), final=True))
        # While something is left, the splits stay known: a later run looks at it again.
        return steps if self.left else [*steps, *[await self._opening(one) for one in listed]]

    async def _found(self, listed: Sequence[Split]) -> dict[Host, frozenset[str]]:
        """The databases of the masters, and of the hosts of splits. HostError, but for a host that is in the
        topology no more: what it has may wait.
        """
        found = {host: frozenset(await existing(self._hosts, host)) for host in self._topology.hosts}
        others = dict.fromkeys(host for one in listed for host in (one.old, one.new) if host not in found)
        for host in others:
            with contextlib.suppress(HostError):
                found[host] = frozenset(await existing(self._hosts, host))
        return found

    async def _opening(self, split: Split) -> Step:
        """Takes the rest of a split's fence away, and notes that nothing of it is left."""
        opening: list[str] = []
        if not (await replication.flavour(self._hosts, split.old)).read_only_databases:
            opening = fence.unlogged(split.fence.open())
        text = f"give the accounts the rights that they had before operation {split.number}"
        if not opening:
            text, opening = f"note that nothing of operation {split.number} is left", ["DO 0"]
        shown = () if len(opening) > 1 else (text,)
        return Step(split.key, text, split.old, tuple(opening), shown, stage=1)

    async def _sure(
        self, found: Sequence[Left], listed: Sequence[Split], operation: Operation | None
    ) -> list[Left]:
        """Those whose rows the master that serves them has, too; the others are in `left`."""
        planned = operation.planned if operation is not None else {}
        open_again = await self._open_again(found, listed)
        served = await asyncio.to_thread(self._served)
        gone = declared_dead(served) - {*self._topology.hosts, *self._topology.slaves}
        earliest = min(one.version for one in listed)
        sure, reasons = [], dict[tuple[Host, str], list[str]]()
        for host, name, owner in found:
            why = doubt(name, host, served, earliest)
            if not why and (host, name) in open_again and _drop(host, name) not in planned:
                why = "it is not READ ONLY any more, as the split has left it: it may have been written to"
            if host in gone:
                why = "its host was declared dead (promote --dead): it must become a slave first"
            if why:
                reasons.setdefault((host, why), []).append(name)
            else:
                sure.append((host, name, owner))
        for host, owner in dict.fromkeys((host, owner) for host, _, owner in sure):
            names = [name for at, name, by in sure if (at, by) == (host, owner)]
            full = await databases_with_rows(self._hosts, host, names)
            lacking = set(full) - set(await databases_with_rows(self._hosts, owner, full))
            sure = [one for one in sure if not (one[0] == host and one[1] in lacking)]
            if lacking:
                reasons[host, f"it has rows, and {owner}, which serves it, has none"] = sorted(lacking)
        self.left = [
            f"{host}: {some(names)} left as it is: {why}. Compare its rows with those that are served"
            for (host, why), names in reasons.items()
        ]
        return sure

    async def _open_again(self, found: Sequence[Left], listed: Sequence[Split]) -> set[tuple[Host, str]]:
        """The databases that a split has made READ ONLY, and that are so no more."""
        closed = {(one.old, name) for one in listed for name in one.fence.databases}
        hosts = dict.fromkeys(host for host, name, _ in found if (host, name) in closed)
        opened: set[tuple[Host, str]] = set()
        for host in hosts:
            if (await replication.flavour(self._hosts, host)).read_only_databases:
                shut = await read_only_databases(self._hosts, host)
                opened |= {(at, name) for at, name in closed if at == host and name not in shut}
        return opened

    def _served(self) -> list[Served]:
        """The versions of the topology in the history, and the one in use."""
        layouts = self._settings.all_layouts
        found = []
        for one in history(self._store):
            try:
                topology = load_topology(one.content, layouts=layouts)
            except ConfigError:
                topology = None
            found.append(Served(one.number, one.reason, topology))
        if [one.version for one in found[-1:]] != [self._topology.version]:
            found.append(Served(self._topology.version, "", self._topology))
        return found

    async def _refuse_used(
        self,
        drops: Sequence[Left],
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
