"""`shardgate topology put` and `rollback`: a document that was checked against the schema, the version in use
and the hosts becomes the topology.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from config.checks import succession_problems
from config.document import ConfigError, parse
from config.load import load_topology
from config.ranges import joined, outside
from config.reserved import reserved
from config.schema import Schema
from config.settings import Settings
from config.topology import Host, Topology
from fleet import moves
from fleet.changes import Change, changes, moved_databases, placed
from fleet.core.errors import Failed, HostError, Refused
from fleet.core.hosts import Hosts
from fleet.core.interrupt import to_end
from fleet.core.journal import Operation
from fleet.core.publish import history, latest_version, publish, version_of, wait_until_served
from fleet.core.run import Tool
from fleet.core.steps import Step
from fleet.core.store import Store, Stored
from fleet.document import read_document, with_dropped, written
from fleet.rows import databases_with_rows

_SHOWN = 5
_MOVE = (
    "`shardgate fleet split` moves shards with their rows, `shardgate fleet promote` all that a master has. "
    "A copy that was made by hand is accepted when it has the same rows and the master that it leaves takes "
    "no writes. If you know that nothing is missing: --move-shards"
)


class Publishing:
    """One run. `content`: the document, `source` what it is called. `hosts`: as the proxies' own account;
    `tools`: as the tools' account, where the settings name one. Not `move`: refused when databases go to a
    master that is not their current copy. `drops`: shards of the topology in use that the document lacks are
    listed in it as dropped. In any case the hosts must say first that such shards have no rows.
    """

    def __init__(
        self,
        settings: Settings,
        schema: Schema,
        store: Store,
        hosts: Hosts,
        content: bytes,
        source: str,
        *,
        tools: Hosts | None = None,
        move: bool = False,
        drops: bool = False,
    ) -> None:
        self._settings, self._schema, self.store, self._hosts = settings, schema, store, hosts
        self._tools = tools or hosts
        self._source = source
        self._move, self._drops = move, drops
        self.content, self.new = content, self._load(content)
        self.old: Topology | None = None
        self.changes: Sequence[Change] = ()
        self._stored: Stored | None = None
        self._reason = ""

    def tool(self, name: str, arguments: Mapping[str, Any]) -> Tool:
        """For the runner."""
        actions = {"publish": self._publish, "served": self._served, "empty": self._still_empty}
        made = Tool(name, arguments, self._steps, actions=actions)
        self._reason = Operation(0, name, arguments).command
        return made

    @property
    def summary(self) -> str:
        """What changes, in a line."""
        return "; ".join(map(str, self.changes)) or "nothing but the version"

    def _load(self, content: bytes) -> Topology:
        layouts = self._settings.all_layouts
        return load_topology(content, name=self._source, layouts=layouts, schema=self._schema)

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        """Refused, ConfigError: nothing may be published."""
        self._stored = await asyncio.to_thread(self.store.topology)
        self.old = await asyncio.to_thread(self._in_use, self._stored)
        if self._drops and self.old is not None:
            self._list_dropped(self.old)
        served = Step(
            "served", f"wait until all proxies serve version {self.new.version}", action="served", stage=1
        )
        if self._stored is not None and self._stored.content == self.content:
            return [served] if operation is not None else []
        self.changes = changes(self.old, self.new)
        latest = version_of(self._stored.content) if self._stored is not None else 0
        self._follows(max(latest, await asyncio.to_thread(latest_version, self.store)))
        if self.old is not None:
            problems = succession_problems(self.old, self.new)
            if problems:
                raise ConfigError(problems)
            await self._are_there(self.old)
            await self._refuse_rows(self.old)
            await self._refuse_other_rows(self.old)
        text = f"publish version {self.new.version}: {self.summary}"
        steps = [Step("publish", text, action="publish", final=True), served]
        if self.old is not None and (
            self._gone(self.old) or (self.old.default is not None and self.new.default is None)
        ):
            asked = "ask once more whether the dropped databases have rows"
            steps.append(Step("empty", asked, action="empty", stage=2))
        return steps

    def _list_dropped(self, old: Topology) -> None:
        """Let the document say which shards of `old` are given up, now and before."""
        listed = dict(self.new.lacks(old))
        for name, runs in old.dropped.items():
            keyspace = self.new.keyspaces.get(name)
            held = keyspace.columns.runs if keyspace is not None else ()
            listed[name] = joined((*listed.get(name, ()), *outside(runs, held)))
        document = with_dropped(read_document(self.content), listed)
        names = {*self.new.dropped_keyspaces, *old.dropped_keyspaces}
        names |= {one.name for one in self.new.hidden_keyspaces(old)}
        names -= self.new.keyspaces.keys()
        if names:
            document["dropped_keyspaces"] = sorted(names)
        if self.new.default is None and (old.default is not None or old.dropped_default):
            document["dropped_default"] = True
        self.content = written(document)
        self.new = self._load(self.content)

    def _gone(self, old: Topology) -> dict[Host, list[str]]:
        """The databases of the shards and unsharded keyspaces that `old` has and the document has not, by
        their master.
        """
        found: dict[Host, list[str]] = {}
        for keyspace in old.keyspaces.values():
            for first, last in self.new.gone(keyspace) if keyspace.sharded else ():
                for shard in range(first, last + 1):
                    host, database = keyspace.places[shard]
                    found.setdefault(host, []).append(database.decode())
        for keyspace in self.new.hidden_keyspaces(old):
            if keyspace.master is not None:
                found.setdefault(keyspace.master, []).append(keyspace.database_of(None).decode())
        return found

    async def _of_default(self, old: Topology) -> list[str]:
        """The databases that only the default host of `old` says the place of. HostError."""
        assert old.default is not None
        listed = await self._tools.query(old.default, "SELECT schema_name FROM information_schema.schemata")
        names = [str(name) for (name,) in listed]
        return [name for name in names if reserved(name) is None and self.new.physical(name) is None]

    async def _rows_of_gone(self, old: Topology) -> list[str]:
        """The hosts with databases that have rows and are found no more, in words. HostError."""
        found = []
        gone = self._gone(old)
        if old.default is not None and self.new.default is None:
            gone.setdefault(old.default, []).extend(await self._of_default(old))
        for host, names in gone.items():
            full = await databases_with_rows(self._hosts, host, names)
            if full:
                more = f" and {len(full) - _SHOWN} more" if len(full) > _SHOWN else ""
                found.append(f"{host} has rows in {', '.join(full[:_SHOWN])}{more}")
        return found

    async def _refuse_rows(self, old: Topology) -> None:
        """Refused when shards that the document gives up have rows."""
        try:
            found = await self._rows_of_gone(old)
        except HostError as error:
            raise Refused(
                f"{error.host}: {error}: whether databases that this document lacks have rows is not known"
            ) from error
        if found:
            raise Refused(
                "; ".join(found) + ", and this document lacks these databases: nobody would find the rows. "
                "Put them back into the document, or move their rows first"
            )

    async def _refuse_other_rows(self, old: Topology) -> None:
        """Refused when databases go to a master that is not the current copy of them."""
        if self._move:
            return
        moved = moved_databases(old, self.new)
        if old.default is not None and self.new.default not in (None, old.default):
            assert self.new.default is not None
            try:
                names = await self._of_default(old)
            except HostError as error:
                raise Refused(
                    f"{error.host}: {error}: which databases are on the default host is not known. {_MOVE}"
                ) from error
            moved.setdefault((old.default, self.new.default), []).extend(names)
        found = await moves.problems(self._tools, moved)
        if found:
            told = "; ".join(str(one) for one in self.changes if one.moves)
            raise Refused(f"{told}: {'; '.join(found)}. {_MOVE}")

    async def _still_empty(self, step: Step) -> Mapping[str, Any]:
        """Failed when the proxies have written rows before they followed."""
        assert self.old is not None
        found = await self._rows_of_gone(self.old)
        if found:
            raise Failed(
                "; ".join(found) + ", which was written before all proxies served this version. Put "
                f"them back: shardgate topology rollback {self.old.version}"
            )
        return {}

    def _in_use(self, stored: Stored | None) -> Topology | None:
        """The topology that is replaced. Where the document is missing or cannot be read, proxies serve what
        they have read before: the last version of the history. None when there is none, either.
        """
        layouts = self._settings.all_layouts
        with contextlib.suppress(ConfigError):
            if stored is not None:
                return load_topology(stored.content, layouts=layouts)
        for one in reversed(history(self.store)):
            with contextlib.suppress(ConfigError):
                return load_topology(one.content, layouts=layouts)
        return None

    def _follows(self, version: int) -> None:
        if self.new.version <= version:
            raise Refused(
                f"version {self.new.version} cannot follow version {version}, which is in use: "
                f"give it version {version + 1}, if it is made of that one"
            )

    async def _are_there(self, old: Topology) -> None:
        """Refused when databases are not on the masters that the document says."""
        missing = []
        for host, names in placed(old, self.new).items():
            try:
                rows = await self._hosts.query(host, "SELECT schema_name FROM information_schema.schemata")
            except HostError as error:
                raise Refused(f"{host}: {error}: whether its databases are there is not known") from error
            there = {str(name) for (name,) in rows}
            lacking = [name for name in names if name not in there]
            if lacking:
                more = f" and {len(lacking) - _SHOWN} more" if len(lacking) > _SHOWN else ""
                missing.append(f"{host} has no databases {', '.join(lacking[:_SHOWN])}{more}")
        if missing:
            raise Refused(
                "; ".join(missing) + ". Make new shards with `shardgate fleet open`, move some with "
                "`shardgate fleet split`"
            )

    async def _publish(self, step: Step) -> Mapping[str, Any]:
        await to_end(publish, self.store, self.content, self._stored, self._reason)
        return {"version": self.new.version}

    async def _served(self, step: Step) -> Mapping[str, Any]:
        await wait_until_served(self.store, self.new.version)
        return {}


def rolled_back(content: bytes, version: int) -> bytes:
    """The document with another version."""
    value = parse(content).value
    assert isinstance(value, dict)
    return (json.dumps(value | {"version": version}, indent=2) + "\n").encode()
