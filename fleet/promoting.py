"""`shardgate fleet promote`: the slave of a pair becomes its master, and the master its slave. Planned: both
are there, nothing is lost, clients wait for a moment.

    freeze    the shards wait in the proxies; transactions that are open end
    fence     the old master takes no writes any more, whoever sends them
    reach     the new one has applied all that the old one has
    release   it takes writes
    publish   the topology says so: from here on there is no way back
    follow    the old master and the other slaves replicate from the new one

What goes wrong from `freeze` to `publish`, and Ctrl-C, the runner takes back at once, since clients wait.
`failover` is for a dead master.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from config.address import parse_address
from config.schema import Schema
from config.settings import Settings
from config.topology import Host, Topology
from fleet import distributed, fence, promote, replication, servers
from fleet.core.errors import Failed, HostError, NoWayBack, Refused
from fleet.core.hosts import Hosts
from fleet.core.journal import Operation
from fleet.core.progress import Silent
from fleet.core.publish import SERVED_SECONDS
from fleet.core.run import Tool
from fleet.core.steps import Step
from fleet.core.store import Store
from fleet.create import wanted
from fleet.log_ins import log_ins
from fleet.masters import Masters
from fleet.promote import Server
from fleet.verifying import Verifying

LAG_SECONDS: Final = 10.0
"""A slave that needs longer for what its master has now is not promoted."""
FROZEN_SECONDS: Final = 2.0
"""For all proxies to hold what comes: the fence does not depend on them."""
END_SECONDS: Final = 1.0
"""For transactions that are open to end by themselves."""
PATIENCE_SECONDS: Final = 0.5
"""For what is still open when the fence comes, before it is ended."""
REACH_SECONDS: Final = 5.0
"""For the new master to have all: clients wait."""
BACK_SECONDS: Final = 15.0
"""For it to be a slave again, when all is taken back: clients wait."""

_SHOWN: Final = 5
_HARMLESS: Final = ("headroom", "misplaced", "prepared")
"""Faults that do not matter to clients: what a split has left is on the new pair, too, until `cleanup`; what
is prepared on a slave can only be finished when that is the master.
"""


class Promoting:
    """One run: `host` is the master that goes; `to` the one that comes, None for its only slave."""

    def __init__(
        self,
        settings: Settings,
        schema: Schema,
        store: Store,
        hosts: Hosts,
        host: Host,
        to: Host | None,
        *,
        dead: bool = False,
    ) -> None:
        self._settings, self._schema, self._store, self._hosts = settings, schema, store, hosts
        self._old, self._to = address(host), None if to is None else address(to)
        self._new: Host = ""
        self._others: list[Host] = []
        self._arguments: dict[str, Any] = {"host": self._old}
        self._arguments |= ({"to": self._to} if self._to else {}) | ({"dead": True} if dead else {})
        self._masters = Masters(settings, schema, store, Operation(0, "promote", self._arguments).command)
        self._frozen = 0.0
        self.paused: float | None = None
        """Seconds between the publication that froze and the one that serves; None when not of this run."""
        self._unnamed: list[int] = []
        self._encrypted = False
        """Whether the new master was reached over TLS as a slave: so are its slaves."""

    def told(self, *, undo: bool) -> str:
        """What has come of it."""
        if undo:
            return f"{self._old} is the master as before"
        waited = f"; clients have waited for {self.paused:.2f} s" if self.paused is not None else ""
        numbers = ", ".join(map(str, self._unnamed))
        unnamed = (
            f". {self._old} has slaves that the topology does not name, server_id {numbers}: they follow it "
            f"still, and get through it what {self._new} does"
        )
        return f"{self._new} is the master, {self._old} its slave{waited}{unnamed if self._unnamed else ''}"

    def tool(self) -> Tool:
        """For the runner."""
        actions = {
            "freeze": self._freeze,
            "wait": self._wait,
            "fence": self._fence,
            "reach": self._reach,
            "release": self._release,
            "publish": self._publish,
            "served": self._served,
            "follow": self._follow,
            "serve": self._serve,
            "replicate": self._replicate,
        }
        return Tool(
            "promote",
            self._arguments,
            self._steps,
            self._undo,
            actions,
            blocks=True,
            as_before=lambda: f"{self._old} serves as before",
            no_way_back=lambda: f"{self._new} is the master and serves: there is no way back",
        )

    # --- the steps -------------------------------------------------------------------------------

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        topology = await self._masters.read()
        self._new = self._planned(operation) or self._chosen(topology)
        begun = operation is not None
        if self._old in topology.hosts:
            self._others = [one for one in promote.slaves_of(topology, self._old) if one != self._new]
            frozen = promote.is_frozen(topology, self._old)
            under_way = operation is not None and await self._under_way(topology, operation)
            if frozen and not begun:
                raise Refused(
                    f"shards of {self._old} are frozen already: see why, and publish them as serving"
                )
            if not under_way:
                await self._check(topology)
            return self._from("wait" if under_way else "freeze")
        if begun and self._new in topology.hosts:
            listed = promote.slaves_of(topology, self._new)
            self._others = [one for one in listed if one != self._old]
            return self._from("follow")
        raise Refused(f"{self._old} is no master of this topology")

    def _from(self, first: str) -> list[Step]:
        """The steps from one on."""
        listed = self._listed()
        published = [name for name, _, _ in listed].index("publish")
        made = [
            Step(
                f"{name}\t{self._new}" if name == "freeze" else name,
                text,
                host,
                action=name,
                stage=stage,
                final=name == "publish",
                holds=stage <= published,
            )
            for stage, (name, host, text) in enumerate(listed)
        ]
        return made[[one.action for one in made].index(first) :]

    def _listed(self) -> list[tuple[str, Host, str]]:
        """Every step: the action, the host when it is one host's, what is done."""
        old, new = self._old, self._new
        slaves = ", ".join([old, *self._others])
        return [
            ("freeze", "", f"publish the shards of {old} as frozen: from now on clients wait"),
            ("wait", "", f"wait until all proxies hold what comes for {old}, and transactions there end"),
            ("fence", old, "no writes any more, whoever sends them"),
            ("reach", new, f"wait until it has applied all that {old} has"),
            ("release", new, "replicate no more, and take writes"),
            ("publish", "", f"publish {new} as the master in the place of {old}: clients go on"),
            ("follow", "", f"let {slaves} replicate from {new}"),
            ("served", "", f"wait until all proxies serve {new}"),
        ]

    async def _under_way(self, topology: Topology, operation: Operation) -> bool:
        """Whether the operation has changed what clients see, and that was not taken back."""
        return promote.is_frozen(topology, self._old) or await fence.is_closed(self._hosts, self._old)

    def _planned(self, operation: Operation | None) -> Host:
        """Whom the operation that this goes on with has begun to promote."""
        keys = operation.planned if operation is not None else ()
        hosts = (key.partition("\t")[2] for key in keys if key.startswith("freeze\t"))
        return next((one for one in hosts if one != self._old), "")

    def _chosen(self, topology: Topology) -> Host:
        slaves = promote.slaves_of(topology, self._old)
        if self._to is not None:
            other = next(
                (one for one, slave, _ in promote.pairs_of(topology) if self._to in (one, slave)), ""
            )
            if other not in ("", self._old):
                raise Refused(f"{self._to} is in the topology already, {self._role(topology, other)}")
            return self._to
        if len(slaves) == 1:
            return slaves[0]
        if self._old not in topology.hosts:
            masters = ", ".join(topology.hosts)
            raise Refused(f"{self._old} is no master of this topology: its masters are {masters}")
        which = f"has several, {', '.join(slaves)}" if slaves else "names none"
        raise Refused(f"--to is needed: which slave of {self._old}? The topology {which}")

    def _role(self, topology: Topology, master: Host) -> str:
        return "as a master" if self._to == master else f"as the slave of {master}"

    # --- what is looked at first -----------------------------------------------------------------

    async def _check(self, topology: Topology) -> None:
        """Refused unless the new master can take the place of the old one."""
        try:
            old, new = await asyncio.gather(
                *(servers.look(self._hosts, one) for one in (self._old, self._new))
            )
        except HostError as error:
            if not error.lost or error.host != self._old:
                raise
            raise Refused(f"{error.host}: {error}. {self._if_dead(self._old)}") from error
        problems = list(promote.server_problems(old, new))
        if old.flavour is new.flavour:
            found = await asyncio.gather(*(self._replicates(old, one) for one in (self._new, *self._others)))
            problems += [one for one in found if one]
        self._refuse(problems)
        extra = await servers.only_on(self._hosts, new, self._old)
        if extra:
            problems.append(f"{self._new} has transactions of its own, which {self._old} has not: {extra}")
        problems += await self._lags()
        if not problems:
            problems += await self._lacks(topology) or await self._prepared()
        self._refuse(problems)

    async def _prepared(self) -> list[str]:
        """What is not finished where nothing may be prepared behind the fence. Nobody waits yet."""
        if (await replication.flavour(self._hosts, self._old)).fence_holds_prepared:
            return []
        if not await distributed.used(self._hosts, self._old):
            return []
        try:
            await distributed.finished(self._hosts, self._old)
        except Failed as error:
            return [str(error)]
        return []

    def _if_dead(self, host: Host) -> str:
        return f"If it is dead: shardgate fleet promote --host {host} --dead"

    def _refuse(self, problems: Sequence[str]) -> None:
        if problems:
            more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
            raise Refused(f"{self._new} cannot be promoted: {'; '.join(problems[:_SHOWN])}{more}")

    async def _replicates(self, master: Server, slave: Host) -> str:
        """Why a slave is none of the master's that can be relied on, or ""."""
        found = await replication.replica(self._hosts, slave)
        if found is None:
            return f"{slave} does not replicate: let it, from a copy of all that is on {master.host}"
        if found.source_id and found.source_id != await replication.identity(self._hosts, master.host):
            return f"{slave} replicates from {found.source}, not from {master.host}"
        return f"{slave}: {found.problem}" if found.problem else ""

    async def _lags(self) -> list[str]:
        position = await replication.position(self._hosts, self._old)
        try:
            await replication.wait_until(self._hosts, self._new, position, LAG_SECONDS)
        except Failed as error:
            return [str(error)]
        return []

    async def _lacks(self, topology: Topology) -> list[str]:
        """What clients would miss on the new master: databases, tables, rights, log-ins."""
        first = await servers.tables(self._hosts, self._old)
        await self._lags()
        problems = list(promote.table_problems(first, await servers.tables(self._hosts, self._new)))
        if problems:  # or has it been dropped meanwhile?
            now = await servers.tables(self._hosts, self._old)
            problems = list(promote.table_problems(now, await servers.tables(self._hosts, self._new)))
        return problems or await self._faults()

    async def _faults(self) -> list[str]:
        """What clients would miss on it if it were the master: of the schema, rights, log-ins."""
        after = self._masters.load(promote.promoted(self._masters.document, self._old, self._new, None))
        verifying = Verifying(
            self._settings,
            self._schema,
            after,
            self._hosts,
            Silent(),
            deep=False,
            plan={self._new: wanted(self._schema, after)[self._new]},
        )
        faults = [
            one for one in await verifying.faults() if one.host == self._new and one.kind not in _HARMLESS
        ]
        problems = [f"{one.database} {one.text}".strip() for one in faults]
        return problems + await log_ins(self._settings.backends, self._new)

    # --- the actions -----------------------------------------------------------------------------

    async def _freeze(self, step: Step) -> Mapping[str, Any]:
        await self._masters.read()
        facts = await self._masters.publish(promote.frozen(self._masters.document, self._old))
        self._frozen = time.monotonic()
        return facts

    async def _wait(self, step: Step) -> Mapping[str, Any]:
        late = await self._masters.followed(FROZEN_SECONDS)
        ended = await servers.transactions_end(self._hosts, self._old, END_SECONDS)
        return {"late": late} | ({} if ended else {"transactions": "some did not end by themselves"})

    async def _fence(self, step: Step) -> Mapping[str, Any]:
        users = fence.proxy_users(self._settings.backends, self._old)
        await fence.close_master(self._hosts, self._old, users, PATIENCE_SECONDS)
        return {}

    async def _close(self, host: Host) -> None:
        users = fence.proxy_users(self._settings.backends, host)
        await fence.close_host(self._hosts, host, users, PATIENCE_SECONDS)

    async def _reach(self, step: Step) -> Mapping[str, Any]:
        position = await replication.position(self._hosts, self._old)
        await replication.wait_until(self._hosts, self._new, position, REACH_SECONDS)
        return {"position": position}

    async def _release(self, step: Step) -> Mapping[str, Any]:
        await replication.stop(self._hosts, self._new)
        await fence.open_host(self._hosts, self._new)
        return {}

    async def _publish(self, step: Step) -> Mapping[str, Any]:
        return await self._published(self._old)

    async def _published(self, slave: Host | None) -> Mapping[str, Any]:
        await self._masters.read()
        document = promote.promoted(self._masters.document, self._old, self._new, slave)
        facts = await self._masters.publish(document)
        if self._frozen:
            self.paused = time.monotonic() - self._frozen
            return {**facts, "paused": round(self.paused, 3)}
        return facts

    async def _served(self, step: Step) -> Mapping[str, Any]:
        await self._masters.must_follow(SERVED_SECONDS)
        return {}

    async def _follow(self, step: Step) -> Mapping[str, Any]:
        try:
            await self._leads()
            await self._all_follow([self._old, *self._others])
        except HostError as error:
            if not error.lost or error.host != self._new:
                raise
            raise Failed(f"{error.host}: {error}. {self._if_dead(self._new)}") from error
        self._unnamed = await servers.unnamed_slaves(
            self._hosts, self._old, [self._old, self._new, *self._others]
        )
        return {}

    async def _leads(self) -> None:
        """The new master has forgotten whom it has replicated from, and takes writes after a restart, too."""
        was = await replication.replica(self._hosts, self._new)
        self._encrypted = was is not None and was.encrypted
        await replication.forget(self._hosts, self._new)
        await fence.keep(self._hosts, self._new)

    async def _all_follow(self, slaves: Sequence[Host]) -> None:
        """They replicate from the new master, and have applied all that it has now."""
        login = await servers.replication_account(self._hosts, self._new)
        for slave in slaves:
            await self._close(slave)
            await servers.end_transactions(self._hosts, slave)
            await servers.follow(self._hosts, slave, self._new, *login, encrypted=self._encrypted)
        position = await replication.position(self._hosts, self._new)
        for slave in slaves:
            await replication.wait_until(self._hosts, slave, position, SERVED_SECONDS)

    # --- back ------------------------------------------------------------------------------------

    async def _undo(self, operation: Operation) -> Sequence[Step]:
        topology = await self._masters.read()
        self._new = self._planned(operation)
        if self._old not in topology.hosts:
            raise NoWayBack(f"{self._old} is the master no more: there is no way back, go on with it")
        if not self._new or not await self._under_way(topology, operation):
            return []
        return [
            Step("replicate", f"replicate from {self._old} again", self._new, action="replicate", holds=True),
            Step(
                "serve",
                f"let {self._old} take writes, and publish its shards as serving",
                action="serve",
                stage=1,
                holds=True,
            ),
        ]

    async def _replicate(self, step: Step) -> Mapping[str, Any]:
        """The new master is a slave as before, if it is there: clients do not wait for it."""
        try:
            async with asyncio.timeout(BACK_SECONDS):
                await self._close(self._new)
                await replication.start(self._hosts, self._new)
        except TimeoutError:
            return {"lost": f"no answer within {BACK_SECONDS:g} s"}
        except HostError as error:
            if not error.lost or error.host != self._new:
                raise
            return {"lost": str(error)}
        return {}

    async def _serve(self, step: Step) -> Mapping[str, Any]:
        """The old master is the master as before."""
        await fence.open_host(self._hosts, self._old)
        await self._masters.read()
        return await self._masters.publish(promote.serving(self._masters.document, self._old))


def address(text: str) -> Host:
    """A host as the topology names it. Refused for what is no address."""
    try:
        return str(parse_address(text))
    except ValueError as error:
        raise Refused(str(error)) from None
