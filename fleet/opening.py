"""`shardgate fleet open`: new shards, made, verified, published closed, opened when every proxy knows them.

A proxy that does not know a shard finds nothing there. So the shards are opened for new objects, by a second
version, only when all proxies serve the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from config.checks import fit_problems
from config.document import ConfigError
from config.load import load_topology
from config.schema import Schema
from config.settings import Settings
from config.topology import Host, Keyspace, Range, Topology
from fleet import accounts, create, distributed
from fleet.accounts import accounts_on
from fleet.core.errors import Failed, NoWayBack, Refused
from fleet.core.hosts import Hosts
from fleet.core.interrupt import to_end
from fleet.core.journal import Operation
from fleet.core.progress import Silent
from fleet.core.publish import publish, wait_until_served
from fleet.core.run import Tool
from fleet.core.steps import Step
from fleet.core.store import Store, Stored
from fleet.create import Plan
from fleet.document import Document, read_document, with_range, without_range, written
from fleet.log_ins import new_log_ins
from fleet.rows import databases_with_rows
from fleet.verifying import Verifying


class Opening:
    """One run: shards `first` to `last` of `keyspace` on a pair."""

    def __init__(
        self,
        settings: Settings,
        schema: Schema,
        store: Store,
        hosts: Hosts,
        keyspace: str,
        first: int,
        last: int,
        master: Host,
        slave: Host | None,
    ) -> None:
        self._settings, self._schema, self._store, self._hosts = settings, schema, store, hosts
        self._keyspace, self._first, self._last = keyspace, first, last
        self._master, self._slave = master, slave
        self._reason = ""
        self.was_open = False
        """Whether there is nothing to do."""
        self._stored: Stored | None = None
        self._document: Document = {}

    def tool(self) -> Tool:
        """For the runner."""
        arguments: dict[str, Any] = {"keyspace": self._keyspace, "shards": f"{self._first}-{self._last}"}
        arguments |= {"master": self._master} | ({"slave": self._slave} if self._slave else {})
        actions = {
            "verify": self._verify,
            "publish": self._publish,
            "open": self._open,
            "served": self._served,
            "withdraw": self._withdraw,
        }
        made = Tool("open", arguments, self._steps, self._undo, actions, blocks=True)
        self._reason = Operation(0, "open", arguments).command
        return made

    # --- the steps -------------------------------------------------------------------------------

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        old = await self._read()
        found = self._range_in(old)
        if found is not None and found.open:
            self.was_open = operation is None
            return [] if self.was_open else [self._step("served", "wait until all proxies serve it", 9)]
        steps: list[Step] = []
        if found is None:
            new = self._next(old)
            plan = self._plan(new)
            actual = await create.look(self._schema, new, self._hosts, create.wanted(self._schema, new))
            problems = [*actual.problems, *create.left_over(actual)]
            if problems:
                raise Refused("; ".join(problems))
            if operation is None:
                await self._refuse_databases(actual.found.get(self._master, {}))
            for host in filter(None, [self._master, self._slave]):
                problems += await new_log_ins(self._settings.backends, self._hosts, host)
            if problems:
                raise Refused("; ".join(problems))
            steps += create.steps(plan, actual)
            if self._settings.xa.enabled:
                steps += distributed.steps(actual.found)
            steps += await self._accounts(new)
            steps.append(self._step("verify", "verify what was made", 2))
            steps.append(self._step("publish", f"publish {self.what}, closed for new objects", 3))
        steps.append(self._step("served", "wait until all proxies know the shards", 4))
        steps.append(self._step("open", f"open {self.what} for new objects", 5, final=True))
        steps.append(self._step("served", "wait until all proxies serve it", 6, key="opened"))
        return steps

    @property
    def what(self) -> str:
        """For people."""
        return f"{self._keyspace} {self._first}-{self._last} on {self._master}"

    def _step(self, action: str, text: str, stage: int, *, final: bool = False, key: str = "") -> Step:
        return Step(key or action, text, action=action, stage=stage, final=final)

    async def _read(self) -> Topology:
        self._stored = await asyncio.to_thread(self._store.topology)
        if self._stored is None:
            raise Refused(f"there is no topology in {self._store.where}")
        self._document = read_document(self._stored.content)
        return load_topology(self._stored.content, name=self._store.where, layouts=self._settings.all_layouts)

    def _keyspace_in(self, topology: Topology) -> Keyspace:
        found = topology.keyspaces.get(self._keyspace)
        if found is None or found.layout is None or found.shards is not None:
            growing = [one.name for one in topology.keyspaces.values() if one.layout and one.shards is None]
            why = "is not there" if found is None else "has a number of shards that never changes"
            raise Refused(
                f"keyspace {self._keyspace} {why}: shards can be opened in {', '.join(growing) or 'none'}"
            )
        return found

    def _range_in(self, topology: Topology) -> Range | None:
        """The range, when it was published already; one of several when all are open as they should be.
        Refused when some of the shards are held otherwise.
        """
        keyspace = self._keyspace_in(topology)
        held = [one for one in keyspace.ranges if one.first <= self._last and one.last >= self._first]
        if not held:
            return None
        same = [one for one in held if (one.first, one.last) == (self._first, self._last)]
        if same and (same[0].master, same[0].slave) == (self._master, self._slave):
            return same[0]
        wanted = [
            one.open and one.master == self._master and self._slave in (None, one.slave) for one in held
        ]
        shards = sum(min(one.last, self._last) - max(one.first, self._first) + 1 for one in held)
        if all(wanted) and shards == self._last - self._first + 1:
            return held[0]
        one = held[0]
        raise Refused(f"shards {one.first}-{one.last} of {self._keyspace} are on {one.master} already")

    def _next(self, old: Topology) -> Topology:
        """With the new range. ConfigError: a gap, a host in two roles, no room in the IDs."""
        return self._load(self._closed())

    def _closed(self) -> Document:
        fields = {"master": self._master, "slave": self._slave, "open": False}
        return with_range(self._document, self._keyspace, self._first, self._last, fields)

    def _load(self, document: Document) -> Topology:
        made = load_topology(
            document, name="the topology with these shards", layouts=self._settings.all_layouts
        )
        problems = fit_problems(self._schema, made)
        if problems:
            raise ConfigError(problems)
        return made

    def _plan(self, new: Topology) -> Plan:
        """The new shards' databases, and what else the master needs."""
        names = set(self._names(new))
        wanted = create.wanted(self._schema, new)[self._master]
        others = [one for one in wanted if (found := new.physical(one.name)) is None or not found[0].sharded]
        return {self._master: [*(one for one in wanted if one.name in names), *others]}

    def _names(self, new: Topology) -> list[str]:
        keyspace = new.keyspaces[self._keyspace]
        return [keyspace.database_of(shard).decode() for shard in range(self._first, self._last + 1)]

    async def _refuse_databases(self, found: create.Existing) -> None:
        """Refused when a database of a new shard is there already: it may be somebody's."""
        there = [name for name in self._names(self._load(self._closed())) if name in found]
        if there:
            full = await databases_with_rows(self._hosts, self._master, there)
            rows = f"with rows in {', '.join(full[:5])}" if full else "without rows"
            raise Refused(
                f"{self._master} has databases {', '.join(there[:5])} already, {rows}. If they are these "
                "shards, publish their range with `shardgate topology put`; else give another range or host"
            )

    async def _accounts(self, new: Topology) -> list[Step]:
        wanted = accounts_on(self._settings.backends, self._master, distributed=self._settings.xa.enabled)
        held = await accounts.look(self._hosts, self._master, [one.user for one in wanted])
        names = [one.name for one in self._plan(new)[self._master]]
        return accounts.steps(wanted, self._schema, new, self._master, held, databases=names, stage=1)

    # --- the actions -----------------------------------------------------------------------------

    async def _verify(self, step: Step) -> Mapping[str, Any]:
        new = self._next(await self._read())
        verifying = Verifying(
            self._settings, self._schema, new, self._hosts, Silent(), deep=False, plan=self._plan(new)
        )
        names = {"", *self._names(new)}
        faults = [one for one in await verifying.faults() if one.database in names]
        if faults:
            raise Failed("; ".join(f"{one.host} {one.database}: {one.text}" for one in faults[:5]))
        return {}

    async def _publish(self, step: Step) -> Mapping[str, Any]:
        await self._read()
        return await self._published(self._closed())

    async def _open(self, step: Step) -> Mapping[str, Any]:
        await self._read()
        fields = {"open": True}
        return await self._published(
            with_range(self._document, self._keyspace, self._first, self._last, fields)
        )

    async def _withdraw(self, step: Step) -> Mapping[str, Any]:
        await self._read()
        return await self._published(without_range(self._document, self._keyspace, self._first, self._last))

    async def _published(self, document: Document) -> Mapping[str, Any]:
        await to_end(publish, self._store, written(document), self._stored, self._reason)
        return {"version": document["version"]}

    async def _served(self, step: Step) -> Mapping[str, Any]:
        await self._read()
        await wait_until_served(self._store, int(self._document["version"]))
        return {}

    # --- back ------------------------------------------------------------------------------------

    async def _undo(self, operation: Operation) -> Sequence[Step]:
        steps: list[Step] = []
        found = self._range_in(await self._read())
        if found is not None and found.open:
            raise NoWayBack(f"{self.what} is open for new objects: there is no way back, go on with it")
        there, full = await create.with_rows(self._hosts, operation)
        if found is not None and self._holds_rows(full):
            raise NoWayBack(f"{self.what} has rows by now: there is no way back, go on with it")
        if found is not None:
            steps.append(self._step("withdraw", f"publish the topology without {self.what}", 0))
            steps.append(self._step("served", "wait until no proxy knows the shards", 1))
        drops = create.undo_steps(operation, there, full)
        return [*steps, *(Step(one.key, one.text, one.host, one.statements, stage=2) for one in drops)]

    def _holds_rows(self, full: Collection[tuple[str, str]]) -> bool:
        """Whether some of these tables, by host and name, are the shards'."""
        names = set(self._names(self._load(self._document)))
        return any(table.partition(".")[0] in names for _, table in full)
