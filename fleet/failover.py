"""`shardgate fleet promote --dead`: a slave becomes the master in the place of one that is dead.

    freeze    the shards wait in the proxies, so that nobody writes to the master if it comes back now
    wait      the proxies hold them
    fence     the dead master takes no writes, if it answers after all
    reach     the slaves receive no more, and have applied all that they had received
    release   the one that has most takes writes
    publish   the topology says so: from here on there is no way back
    follow    the other slaves replicate from it
    bury      the dead master is tried once more

What the master had committed and not sent is not there; nobody can say how much until it is back. Run again
then, this fences it, says what only it has, and makes it a slave if that is nothing.

One that has died right after its own promotion has no slave yet: its predecessor, which is fenced and has all
that was there before, takes its place again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from config.schema import Schema
from config.settings import Settings
from config.topology import Host, Topology
from fleet import fence, orphans, promote, replication, servers
from fleet.core.errors import Failed, HostError, Refused
from fleet.core.hosts import Hosts
from fleet.core.journal import Journal, Operation
from fleet.core.publish import SERVED_SECONDS
from fleet.core.run import Tool
from fleet.core.steps import Step
from fleet.core.store import Store
from fleet.orphans import Orphan
from fleet.promoting import FROZEN_SECONDS, Promoting

APPLY_SECONDS: Final = 600.0
"""For a slave to apply what it has received."""
_FENCE_SECONDS: Final = 10.0


class FailingOver(Promoting):
    """One run, as `Promoting`: the same steps, but nothing can be asked of the old master."""

    def __init__(
        self, settings: Settings, schema: Schema, store: Store, hosts: Hosts, host: Host, to: Host | None
    ) -> None:
        super().__init__(settings, schema, store, hosts, host, to, dead=True)
        self._journal = Journal(store)
        self._positions = False
        self._received = ""
        self._fenced = False
        self._joined = False
        self._predecessor: Host = ""
        """The master before the dead one, if the promotion of that was not finished: it may have none."""
        self._tool = super().tool()

    def tool(self) -> Tool:
        """See `Promoting.tool`. Goes on with a planned promotion when one of its two masters has died."""
        self._tool.actions = {**self._tool.actions, "bury": self._fence, "join": self._join}
        self._tool.as_before = lambda: f"{self._old} is the master as before, if it is there"
        self._tool.resumes = lambda one: one.arguments.get("host") == self._old or self._succeeded(one)
        return self._tool

    def _succeeded(self, operation: Operation) -> bool:
        """Whether the dead master was made one by this operation."""
        return operation.final and f"freeze\t{self._old}" in operation.planned

    def told(self, *, undo: bool) -> str:
        """What has come of it."""
        if undo:
            return f"{self._old} is the master as before, if it is there"
        if self._joined:
            return f"{self._old} is a slave of {self._new}: it had nothing that is not there"
        waited = f"; clients have waited for {self.paused:.2f} s for this" if self.paused is not None else ""
        received = f", up to {self._received}" if self._received else ""
        back = (
            f"{self._old} has answered, and takes no writes any more: run this again, and it becomes a slave "
            "if it has nothing that is not there"
            if self._fenced
            else f"{self._old} could not be reached, so it is not fenced: started again, it takes writes "
            "from whoever does not follow the topology. Start it with read_only = ON, then run this again: "
            "it is fenced, and becomes a slave if it has nothing that is not there"
        )
        return (
            f"{self._new} is the master{waited}. It has all that it had received{received}; what {self._old} "
            f"had committed after that is lost, unless it is on its disk. {back}"
        )

    # --- the steps -------------------------------------------------------------------------------

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        topology = await self._masters.read()
        if self._old not in topology.hosts and operation is None:
            return await self._back(topology)
        if operation is not None and self._succeeded(operation):
            self._predecessor = str(operation.arguments["host"])
        self._positions = await self._has_positions(topology, self._planned(operation))
        return await super()._steps(operation)

    async def _has_positions(self, topology: Topology, planned: Host) -> bool:
        """Asked of the slaves: one of them has to answer."""
        errors = []
        slaves = promote.slaves_of(topology, self._old)
        for host in dict.fromkeys(one for one in (planned, self._to, *slaves) if one):
            try:
                return (await replication.flavour(self._hosts, host)).gtid_positions
            except HostError as error:
                errors.append(f"{host}: {error}")
        raise Refused(f"no slave of {self._old} answers: {'; '.join(errors) or 'the topology names none'}")

    async def _under_way(self, topology: Topology, operation: Operation) -> bool:
        return promote.is_frozen(topology, self._old) or f"freeze\t{self._new}" in operation.done

    def _listed(self) -> list[tuple[str, Host, str]]:
        old, new = self._old, self._new
        others = ", ".join(self._others)
        return [
            ("freeze", "", f"publish the shards of {old} as frozen"),
            ("wait", "", f"wait until all proxies hold what comes for {old}"),
            ("fence", "", f"no writes on {old} any more, if it answers after all"),
            ("reach", "", f"wait until {new} has applied all that it has received"),
            ("release", new, "replicate no more, and take writes"),
            ("publish", "", f"publish {new} as the master in the place of {old}: clients go on"),
            ("follow", "", f"let {others} replicate from {new}" if others else "forget the old master"),
            ("served", "", f"wait until all proxies serve {new}"),
            ("bury", "", f"no writes on {old} any more, if it answers by now"),
        ]

    # --- what is looked at first -----------------------------------------------------------------

    def _chosen(self, topology: Topology) -> Host:
        """The first slave; `_check` finds the one that has most."""
        if self._to is not None or self._old not in topology.hosts:
            return super()._chosen(topology)
        slaves = promote.slaves_of(topology, self._old)
        return slaves[0] if slaves else super()._chosen(topology)

    async def _check(self, topology: Topology) -> None:
        try:
            await self._hosts.query(self._old, "SELECT 1", _FENCE_SECONDS)
        except HostError as error:
            if not error.lost:
                raise
        else:
            raise Refused(
                f"{self._old} answers, so it is not dead: promote without --dead, which loses nothing, or "
                "stop it"
            )
        slaves = list(dict.fromkeys([self._new, *promote.slaves_of(topology, self._old)]))
        found: dict[Host, Orphan] = {}
        for host in slaves:
            try:
                alone = host == self._predecessor
                found[host] = await orphans.orphan(self._hosts, host, self._positions, alone=alone)
            except HostError as error:
                if self._to is None or host == self._to:
                    raise Refused(
                        f"{host}: {error}: it may have more than others. If it is lost, too, say which slave "
                        "is to be promoted, with --to"
                    ) from error
        await self._most(found)
        self._others = [one for one in found if one != self._new]
        self._refuse(await self._unfit(found))

    async def _most(self, found: Mapping[Host, Orphan]) -> None:
        """The new master is one that has all that the others have."""
        chosen = [self._to] if self._to else sorted(found, key=lambda one: one != self._predecessor)
        for host in chosen:
            lacks = {other: await self._lacking(found, host, other) for other in found if other != host}
            more = {other: text for other, text in lacks.items() if text}
            if not more:
                self._new = host
                self._received = found[host].received
                return
        if self._to is not None:
            other, text = next(iter(more.items()))
            raise Refused(
                f"{other} has received more than {self._to}: {text}. Promote that one: --to {other}"
            )
        raise Refused(f"none of {', '.join(found)} has all that the others have received: choose, with --to")

    async def _lacking(self, found: Mapping[Host, Orphan], host: Host, other: Host) -> str:
        one, two = found[host].received, found[other].received
        return await orphans.missing(self._hosts, host, one, two, self._positions)

    async def _unfit(self, found: Mapping[Host, Orphan]) -> list[str]:
        problems = []
        for host, one in found.items():
            if one.master not in ("", self._old, self._predecessor):
                problems.append(f"{host} replicates from {one.master}, not from {self._old}")
            if one.error and host == self._new:
                problems.append(f"{host}: {one.error}")
        if not problems and await orphans.still_receives(self._hosts, self._new, self._positions):
            problems.append(f"it still receives from {self._old}, which is not dead: stop that first")
        new = await servers.look(self._hosts, self._new)
        if not new.logs:
            problems.append("it has no binary log of what it replicates, by GTID")
        return problems or await self._faults()

    # --- the actions -----------------------------------------------------------------------------

    async def _wait(self, step: Step) -> Mapping[str, Any]:
        return {"late": await self._masters.followed(FROZEN_SECONDS)}

    async def _fence(self, step: Step) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(_FENCE_SECONDS):
                await self._close(self._old)
        except (HostError, Failed, TimeoutError) as error:
            return {"fenced": False, "reason": str(error)}
        self._fenced = True
        return {"fenced": True}

    async def _reach(self, step: Step) -> Mapping[str, Any]:
        received = await self._apply_all(self._new)
        for other in self._others:
            theirs = await self._apply_all(other)
            more = await orphans.missing(self._hosts, self._new, received, theirs, self._positions)
            if more:
                raise Failed(f"{other} has more than {self._new}: {more}. Take this back with --undo")
        self._received = received
        return {"received": received}

    async def _apply_all(self, host: Host) -> str:
        alone = host == self._predecessor
        return await orphans.apply_all(self._hosts, host, self._positions, APPLY_SECONDS, alone=alone)

    async def _publish(self, step: Step) -> Mapping[str, Any]:
        return await self._published(None)

    async def _follow(self, step: Step) -> Mapping[str, Any]:
        await self._leads()
        if self._others:
            await self._all_follow(self._others)
        return {}

    # --- back ------------------------------------------------------------------------------------

    async def _undo(self, operation: Operation) -> Sequence[Step]:
        topology = await self._masters.read()
        slaves = promote.slaves_of(topology, self._old)
        self._others = [one for one in slaves if one != self._planned(operation)]
        return await super()._undo(operation)

    async def _replicate(self, step: Step) -> Mapping[str, Any]:
        """All slaves receive again what the master sends, if it comes back."""

        async def again(host: Host) -> None:
            with contextlib.suppress(HostError, TimeoutError):
                async with asyncio.timeout(_FENCE_SECONDS):
                    if host == self._new:
                        await self._close(host)
                    if await replication.replica(self._hosts, host) is not None:
                        await replication.start(self._hosts, host)

        await asyncio.gather(*map(again, (self._new, *self._others)))
        return {}

    async def _serve(self, step: Step) -> Mapping[str, Any]:
        """It is the master as before; what it is when it comes back is its own affair."""
        with contextlib.suppress(HostError, TimeoutError):
            async with asyncio.timeout(_FENCE_SECONDS):
                await fence.open_host(self._hosts, self._old)
        await self._masters.read()
        return await self._masters.publish(promote.serving(self._masters.document, self._old))

    # --- when it is back -------------------------------------------------------------------------

    async def _back(self, topology: Topology) -> Sequence[Step]:
        """The dead master answers again: fence it, and let it replicate."""
        self._tool.blocks = False
        if self._old in topology.slaves:
            return []
        self._new = self._to or self._before()
        if self._new not in topology.hosts:
            raise Refused(f"{self._old} is no master of this topology, and its successor is not known: --to")
        await self._hosts.query(self._old, "SELECT 1")
        return [
            Step("bury", "no writes any more, whoever sends them", self._old, action="bury"),
            Step(
                "join", f"replicate from {self._new}, unless it has more", self._old, action="join", stage=1
            ),
        ]

    def _before(self) -> Host:
        """Who was promoted in its place."""
        for one in reversed(self._journal.latest()):
            mine = one.arguments.get("host") == self._old or self._succeeded(one)
            if one.tool == "promote" and mine and self._planned(one):
                return self._planned(one)
        return ""

    async def _join(self, step: Step) -> Mapping[str, Any]:
        await self._close(self._old)
        old = await servers.look(self._hosts, self._old)
        extra = await servers.only_on(self._hosts, old, self._new)
        if extra:
            raise Failed(
                f"{self._old} has transactions that {self._new} has not: {extra}. It takes no writes now. "
                "Read them in its binary log, write again what is needed, then make it anew from a copy of "
                f"{self._new}"
            )
        await self._all_follow([self._old])
        await self._masters.read()
        facts = await self._masters.publish(promote.with_slave(self._masters.document, self._new, self._old))
        await self._masters.must_follow(SERVED_SECONDS)
        self._joined = True
        return facts
