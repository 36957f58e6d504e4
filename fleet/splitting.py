"""`shardgate fleet split`: shards of one master go to another pair, which replicates from it. Nothing is
lost, clients wait for a moment.

    fill      the new pair gets a copy, and replicates: with `--provision`, when it does not yet
    check     whether it can take over
    accounts  the proxies' accounts on the new pair
    rights    how the databases will be closed, and opened again: for the journal
    freeze    the shards wait in the proxies
    wait      until all proxies hold what comes
    fence     the old master takes no writes there any more, whoever sends them
    reach     the new pair has applied all that the old master has
    compare   checksums of every table that moves
    release   the new master replicates no more, and takes writes
    publish   the topology says so: from here on there is no way back
    forget    the new master cannot begin to replicate again
    verify    what the new master has

What goes wrong from `freeze` to `publish`, and Ctrl-C, the runner takes back at once. The old databases
stay behind their fence: `shardgate fleet cleanup`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

from config.references import reference_tables
from config.schema import Schema, quote
from config.settings import Settings
from config.topology import Host, State, Topology
from fleet import accounts, fence, filling, promote, replication, servers
from fleet.accounts import accounts_on
from fleet.core.errors import Failed, HostError, NoWayBack, Refused
from fleet.core.hosts import Hosts
from fleet.core.journal import Operation
from fleet.core.progress import Silent
from fleet.core.publish import SERVED_SECONDS
from fleet.core.run import Tool
from fleet.core.steps import Step
from fleet.core.store import Store
from fleet.create import Plan, wanted
from fleet.faults import Fault
from fleet.fence import Fence
from fleet.log_ins import new_log_ins
from fleet.masters import Masters
from fleet.references import how_to_copy, shown
from fleet.split import Move, Part
from fleet.verifying import Verifying

LAG_SECONDS: Final = 10.0
"""A pair that needs longer for what the old master has now is refused."""
FROZEN_SECONDS: Final = 2.0
"""For all proxies to hold what comes: the fence does not depend on them."""
FILL_SECONDS: Final = 3600.0
"""For a pair that was filled to apply what has come since."""
PATIENCE_SECONDS: Final = 2.0
"""For transactions that are open when the fence comes, before they are ended."""
REACH_SECONDS: Final = 5.0
"""For the new pair to have all: clients wait."""
_SHOWN: Final = 5
_LOOKS: Final = 5
_BETWEEN_SECONDS: Final = 0.3

Action = Callable[[Step], Awaitable[Mapping[str, Any]]]


class Splitting:
    """One run."""

    def __init__(
        self,
        settings: Settings,
        schema: Schema,
        store: Store,
        hosts: Hosts,
        move: Move,
        *,
        provision: bool = False,
    ) -> None:
        self._settings, self._schema, self._hosts = settings, schema, hosts
        self._move, self._provision = move, provision
        self._old: Host = ""
        self._parts: list[Part] = []
        self._databases: list[str] = []
        self._fence: Fence | None = None
        self._was_open = False
        self.not_filled: list[Host] = []
        """Those that replicate already, although they were to be filled."""
        self._moved_on = False
        arguments = {"keyspace": ",".join(move.keyspaces), "shards": f"{move.first}-{move.last}"}
        arguments |= {"master": move.master} | ({"slave": move.slave} if move.slave else {})
        self._arguments: dict[str, Any] = arguments | ({"provision": True} if provision else {})
        self._masters = Masters(settings, schema, store, Operation(0, "split", self._arguments).command)
        self._frozen = 0.0
        self._compared = 0.0
        self.paused: float | None = None
        """Seconds between the publication that froze and the one that serves; None when not of this run."""

    def tool(self) -> Tool:
        """For the runner."""
        actions: dict[str, Action] = {
            "fill": self._fill,
            "check": self._checked,
            "rights": self._rights,
            "freeze": self._freeze,
            "wait": self._wait,
            "fence": self._close,
            "reach": self._reach,
            "compare": self._compare,
            "release": self._release,
            "publish": self._publish,
            "served": self._served,
            "forget": self._forget,
            "verify": self._verify,
            "replicate": self._replicate,
            "serve": self._serve,
        }
        what, new = self._move.what, self._move.master
        return Tool(
            "split",
            self._arguments,
            self._steps,
            self._undo,
            actions,
            blocks=True,
            as_before=lambda: f"{self._old} serves {what} as before",
            no_way_back=lambda: f"{new} serves {what}: there is no way back",
        )

    def told(self, *, undo: bool) -> str:
        """What has come of it."""
        if undo:
            return f"{self._move.what} is on {self._old} as before"
        if self._moved_on:
            return f"{self._move.what} was moved, and is on {self._old} by now: nothing is left to do"
        waited = f"; clients have waited for {self.paused:.2f} s" if self.paused is not None else ""
        left = f". What {self._old} still has of it goes with `shardgate fleet cleanup`" if self._old else ""
        return f"{self._move.what} is on {self._move.master}{waited}{left}"

    @property
    def _pair(self) -> list[Host]:
        return [self._move.master, *filter(None, [self._move.slave])]

    # --- the steps -------------------------------------------------------------------------------

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        topology = await self._masters.read()
        self._look(topology, operation)
        if self._old == self._move.master:
            self._old = str(operation.done.get("rights", {}).get("host", "")) if operation else ""
            published = operation is not None and operation.final
            return self._listed("served" if published else "publish") if operation is not None else []
        if operation is not None and operation.final:
            self._moved_on = True
            return []
        states = {one.held.state for one in self._parts}
        if states == {State.FROZEN} and self._fence is not None:
            return self._listed("wait")
        if states != {State.SERVING}:
            raise Refused(
                f"some of {self._move.what} is {', '.join(sorted(states - {State.SERVING}))} already: see "
                "why, and publish it as serving"
            )
        after = self._after()
        empty = await self._to_fill(topology, operation)
        if not empty:
            await self._check(topology, after)
        made = [await self._accounts(after, host, filled=host in empty) for host in self._pair]
        return [*self._filling(empty), *(step for some in made for step in some), *self._listed("rights")]

    def _filling(self, empty: Sequence[Host]) -> list[Step]:
        """The steps that fill hosts, one after another: the slave follows the new master."""
        steps = [
            Step(
                f"fill\t{host}",
                f"copy all that {self._old} has, and replicate",
                host,
                action="fill",
                stage=at,
            )
            for at, host in enumerate(empty, -10)
        ]
        text = f"see whether {self._move.master} can take {self._move.what}"
        return [*steps, Step("check", text, action="check", stage=-1)] if steps else []

    async def _to_fill(self, topology: Topology, operation: Operation | None) -> list[Host]:
        """The hosts that are to be filled: those that do not replicate. Refused when one is not empty, unless
        it has been begun.
        """
        if not self._provision:
            return []
        found = []
        for host in self._pair:
            if host in (*topology.hosts, *topology.slaves):
                raise Refused(f"{host} is in use: a pair that is to be filled must be an empty one")
            done = operation is not None and f"fill\t{host}" in operation.done
            if done:
                continue
            if await replication.replica(self._hosts, host) is not None:
                self.not_filled.append(host)
                continue
            begun = operation is not None and f"fill\t{host}" in operation.planned
            there = await filling.databases(self._hosts, host)
            if there and not begun:
                raise Refused(f"{host} is not empty: it has {', '.join(there[:_SHOWN])}. Give an empty one")
            found.append(host)
        if found:
            servers_of = await asyncio.gather(
                *(servers.look(self._hosts, host) for host in (self._old, *found))
            )
            for server in servers_of[1:]:
                self._refuse(list(promote.server_problems(servers_of[0], server)))
        return found

    def _look(self, topology: Topology, operation: Operation | None) -> None:
        self._parts = self._move.parts(topology)
        self._old = self._parts[0].held.master
        self._databases = self._move.databases(topology)
        known = operation.done.get("rights") if operation is not None else None
        if known is not None:
            self._fence, self._was_open = Fence.read(known["fence"]), bool(known["open"])

    def _listed(self, first: str) -> list[Step]:
        """The steps from one on."""
        what, new = self._move.what, self._move.master
        pair = " and ".join(self._pair)
        about = f", about {self._compared:.0f} s for comparing" if self._compared >= 1 else ""
        texts = {
            "rights": f"note how {what} can be closed on {self._old}",
            "freeze": f"publish {what} as frozen: from now on clients wait{about}",
            "wait": f"wait until all proxies hold what comes for {what}",
            "fence": f"no writes to {what} any more, whoever sends them",
            "reach": f"wait until all that {self._old} has is applied on {pair}",
            "compare": f"compare every table with that on {self._old}",
            "release": "replicate no more, and take writes",
            "publish": f"publish {what} on {new}: clients go on",
            "served": f"wait until all proxies serve {what} from {new}",
            "forget": f"forget {self._old} as the source of replication",
            "verify": f"verify {what} on {new}",
        }
        places = {"fence": self._old} | dict.fromkeys(("reach", "compare", "release", "forget"), new)
        names = list(texts)
        waiting = names[names.index("freeze") : names.index("publish") + 1]
        return [
            Step(
                name,
                texts[name],
                places.get(name, ""),
                action=name,
                stage=stage,
                final=name == "publish",
                holds=name in waiting,
            )
            for stage, name in list(enumerate(names, 1))[names.index(first) :]
        ]

    def _after(self) -> Topology:
        """The topology with the shards on the new pair. ConfigError when that cannot be."""
        return self._masters.load(self._move.moved(self._masters.document, self._parts))

    async def _accounts(self, after: Topology, host: Host, *, filled: bool) -> list[Step]:
        """What makes the proxies' accounts on a host of the new pair, in no binary log: each has its own."""
        needed = accounts_on(self._settings.backends, host, distributed=self._settings.xa.enabled)
        if not needed:
            return []
        held = await accounts.look(self._hosts, host, [one.user for one in needed])
        made = accounts.steps(needed, self._schema, after, host, held, databases=self._databases)
        if not made:
            return []
        statements = fence.unlogged([sql for one in made for sql in one.statements])
        if held.server.flavour.read_only_databases and (filled or await fence.is_closed(self._hosts, host)):
            statements = ["SET GLOBAL super_read_only = OFF", *statements, "SET GLOBAL super_read_only = ON"]
        texts = [one.text for one in made]
        shown = tuple(sql for one in made for sql in one.shown or one.statements)
        return [Step(f"accounts\t{host}", "; ".join(texts), host, tuple(statements), shown)]

    # --- what is looked at first -----------------------------------------------------------------

    async def _check(self, topology: Topology, after: Topology) -> None:
        """Refused unless the new pair can take over."""
        new = self._move.master
        if new in topology.hosts:
            raise Refused(
                f"{new} is the master of other shards already, and so does not replicate from {self._old} "
                "to the end: move what a pair shall have at once, --keyspace K1,K2, or take another pair"
            )
        old, server = await asyncio.gather(*(servers.look(self._hosts, one) for one in (self._old, new)))
        problems = list(promote.server_problems(old, server))
        if old.flavour is server.flavour:
            problems += await self._replicates(self._old, new)
            if self._move.slave is not None:
                problems += await self._replicates(new, self._move.slave)
        self._refuse(problems)
        position = await replication.position(self._hosts, self._old)
        problems += await self._behind(position)
        self._refuse(problems)
        problems += [
            f"{one.host if one.host != new else ''} {one.database} {one.text}".replace("  ", " ").strip()
            for one in await self._faults(after)
        ]
        problems += await self._unequal() if not problems else []
        for host in () if problems else self._pair:
            problems += await new_log_ins(
                self._settings.backends, self._hosts, host, self._old, self._databases
            )
        patience = self._settings.timeouts.buffer
        if 0 < patience < self._compared * 2:
            problems.append(
                f"comparing takes about {self._compared:.0f} s, and statements wait for {patience:g} s at "
                "most: raise timeouts.buffer first"
            )
        self._refuse(problems)

    def _refuse(self, problems: Sequence[str]) -> None:
        if problems:
            more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
            raise Refused(
                f"{self._move.master} cannot take {self._move.what}: {'; '.join(problems[:_SHOWN])}{more}"
            )

    async def _replicates(self, source: Host, host: Host) -> list[str]:
        """Why `host` does not replicate from `source` so that it can be relied on."""
        found = await replication.replica(self._hosts, host)
        if found is None:
            return [
                f"{host} does not replicate: let it, from a copy of all that is on {source}, or let this do "
                "so, --provision"
            ]
        if found.source_id and found.source_id != await replication.identity(self._hosts, source):
            return [f"{host} replicates from {found.source}, not from {source}"]
        return [f"{host}: {found.problem}"] if found.problem else []

    async def _behind(self, position: str) -> list[str]:
        """What the new pair lacks of a position, after some time."""
        try:
            await self._wait_for(position, LAG_SECONDS)
        except Failed as error:
            return [str(error)]
        return []

    async def _wait_for(self, position: str, seconds: float) -> None:
        """The new master, then its slave, has all: Failed."""
        await replication.wait_until(self._hosts, self._move.master, position, seconds)
        if self._move.slave is not None:
            own = await replication.position(self._hosts, self._move.master)
            await replication.wait_until(self._hosts, self._move.slave, own, seconds)

    async def _faults(self, after: Topology, *, accounts: bool = False) -> list[Fault]:
        """What is wrong on the new pair with what it is to have."""
        new, names = self._move.master, set(self._databases)
        moved = [one for one in wanted(self._schema, after)[new] if one.name in names]
        plan: Plan = dict.fromkeys(self._pair, moved)
        verifying = Verifying(
            self._settings, self._schema, after, self._hosts, Silent(), deep=False, plan=plan
        )
        kinds = ("missing", "definition", "unreachable", *(("grants",) if accounts else ()))
        return [
            one
            for one in await verifying.faults()
            if one.host in plan and (one.database in names or not one.database) and one.kind in kinds
        ]

    async def _unequal(self) -> list[str]:
        """Tables that nobody writes now, and that are not the same on the new pair."""
        began = time.monotonic()
        before = await replication.checksums(self._hosts, self._old, self._databases)
        self._compared = time.monotonic() - began
        problems = await self._behind(await replication.position(self._hosts, self._old))
        if problems:
            return problems
        others = [await replication.checksums(self._hosts, host, self._databases) for host in self._pair]
        after = await replication.checksums(self._hosts, self._old, self._databases)
        for host, other in zip(self._pair, others, strict=True):
            names = replication.differing(before, other)
            problems += self._differences(host, [one for one in names if before.get(one) == after.get(one)])
        return problems

    def _differences(self, host: Host, names: Sequence[tuple[str, str]]) -> list[str]:
        if not names:
            return []
        shown = ", ".join(f"{database}.{table}" for database, table in names[:_SHOWN])
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return [
            f"{host}: {shown}{more} have not the same rows there as on {self._old}: copy that pair anew, "
            "since something else has written there"
        ]

    # --- the actions -----------------------------------------------------------------------------

    async def _fill(self, step: Step) -> Mapping[str, Any]:
        master = self._old if step.host == self._move.master else self._move.master
        await filling.fill(self._hosts, step.host, self._old, master)
        await replication.wait_until(
            self._hosts, step.host, await replication.position(self._hosts, master), FILL_SECONDS
        )
        return {}

    async def _checked(self, step: Step) -> Mapping[str, Any]:
        """What was filled replicates, and is equal: Failed."""
        try:
            await self._check(await self._masters.read(), self._after())
        except Refused as error:
            raise Failed(str(error)) from error
        return {}

    async def _rights(self, step: Step) -> Mapping[str, Any]:
        users = fence.proxy_users(self._settings.backends, self._old)
        self._fence = await fence.fence_of(self._hosts, self._old, self._databases, users)
        asked = "SELECT @@GLOBAL.read_only"
        self._was_open = not int((await self._hosts.query(self._move.master, asked))[0][0])
        return {"host": self._old, "fence": self._fence.document(), "open": self._was_open}

    async def _freeze(self, step: Step) -> Mapping[str, Any]:
        self._parts = self._move.parts(await self._masters.read())
        facts = await self._masters.publish(self._move.frozen(self._masters.document, self._parts))
        self._frozen = time.monotonic()
        return facts

    async def _wait(self, step: Step) -> Mapping[str, Any]:
        return {"late": await self._masters.followed(FROZEN_SECONDS)}

    async def _close(self, step: Step) -> Mapping[str, Any]:
        assert self._fence is not None
        await fence.close_databases(self._hosts, self._old, self._fence, PATIENCE_SECONDS)
        return {}

    async def _reach(self, step: Step) -> Mapping[str, Any]:
        position = await replication.position(self._hosts, self._old)
        await replication.start(self._hosts, self._move.master)  # a run that was killed may have stopped it
        await self._wait_for(position, REACH_SECONDS)
        return {"position": position}

    async def _compare(self, step: Step) -> Mapping[str, Any]:
        places = [self._old, *self._pair]
        found = await asyncio.gather(
            *(replication.checksums(self._hosts, host, self._databases) for host in places)
        )
        for host, other in zip(places[1:], found[1:], strict=True):
            for text in self._differences(host, replication.differing(found[0], other)):
                raise Failed(text)
        return {"tables": len(found[0])}

    async def _release(self, step: Step) -> Mapping[str, Any]:
        await replication.stop(self._hosts, self._move.master)
        await fence.open_host(self._hosts, self._move.master)
        return {}

    async def _publish(self, step: Step) -> Mapping[str, Any]:
        self._parts = self._move.parts(await self._masters.read())
        if all(one.held.master == self._move.master for one in self._parts):
            return {}  # a run that was killed has done it, and could not say so
        facts = await self._masters.publish(self._move.moved(self._masters.document, self._parts))
        if self._frozen:
            self.paused = time.monotonic() - self._frozen
            return {**facts, "paused": round(self.paused, 3)}
        return facts

    async def _served(self, step: Step) -> Mapping[str, Any]:
        await self._masters.must_follow(SERVED_SECONDS)
        return {}

    async def _forget(self, step: Step) -> Mapping[str, Any]:
        new = self._move.master
        try:
            await fence.open_host(self._hosts, new)  # it may have been started anew
            await replication.forget(self._hosts, new)
            await fence.keep(self._hosts, new)
        except HostError as error:
            if not error.lost:
                raise
            raise Failed(
                f"{new}: {error}. {self._move.what} is there: start it, or let its slave take over, "
                f"shardgate fleet promote --host {new} --dead"
            ) from error
        return {}

    async def _verify(self, step: Step) -> Mapping[str, Any]:
        faults = await self._faults(await self._masters.read(), accounts=True)
        if faults:
            raise Failed("; ".join(f"{one.host} {one.database}: {one.text}" for one in faults[:_SHOWN]))
        await self._references()
        return {}

    async def _references(self) -> None:
        """Reference tables are not frozen: what was written to the old master between `release` and `served`
        is not on the new one. Failed says which, and how to copy them.
        """
        new, topology = self._move.master, await self._masters.read()
        others = [one for one in topology.hosts if one != new][:1]
        for name in reference_tables(self._schema, topology) if others else ():
            for attempt in range(_LOOKS):
                sums = [
                    (await self._hosts.query(host, f"CHECKSUM TABLE {quote(name[0])}.{quote(name[1])}"))[0][1]
                    for host in (others[0], new)
                ]
                if sums[0] == sums[1]:
                    break
                if attempt == _LOOKS - 1:
                    raise Failed(
                        f"{new}: {shown(name)} is not as on {others[0]}. {how_to_copy(name, others[0], new)}"
                    )
                await asyncio.sleep(_BETWEEN_SECONDS)  # it is being written

    # --- back ------------------------------------------------------------------------------------

    async def _undo(self, operation: Operation) -> Sequence[Step]:
        self._look(await self._masters.read(), operation)
        if self._old == self._move.master:
            raise NoWayBack(f"{self._move.what} is on {self._old}: there is no way back, go on with it")
        if self._fence is None:
            return []
        what = self._move.what
        text = f"open {what} on {self._old}, and publish it as serving"
        serve = Step("serve", text, action="serve", holds=True)
        text = f"{self._move.master} replicates from {self._old} again"
        steps = [Step("replicate", text, action="replicate", stage=1)]
        return [serve, *steps] if {one.held.state for one in self._parts} == {State.FROZEN} else steps

    async def _replicate(self, step: Step) -> Mapping[str, Any]:
        """The new master is a slave as before, if it is there."""
        try:
            if not self._was_open:
                users = fence.proxy_users(self._settings.backends, self._move.master)
                await fence.close_host(self._hosts, self._move.master, users)
            await replication.start(self._hosts, self._move.master)
        except HostError as error:
            if not error.lost:
                raise
            return {"lost": str(error)}
        return {}

    async def _serve(self, step: Step) -> Mapping[str, Any]:
        """The old master has the shards as before."""
        assert self._fence is not None
        await fence.open_databases(self._hosts, self._old, self._fence)
        self._parts = self._move.parts(await self._masters.read())
        return await self._masters.publish(self._move.serving(self._masters.document, self._parts))
