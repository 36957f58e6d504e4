"""`shardgate topology put` and `rollback`: a document that was checked against the schema, the version in use
and the hosts becomes the topology.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from config.checks import succession_problems
from config.document import ConfigError, parse
from config.load import load_topology
from config.schema import Schema
from config.settings import Settings
from config.topology import Topology
from fleet.changes import Change, changes, placed
from fleet.core.errors import HostError, Refused
from fleet.core.hosts import Hosts
from fleet.core.interrupt import to_end
from fleet.core.journal import Operation
from fleet.core.publish import publish, version_of, wait_until_served
from fleet.core.run import Tool
from fleet.core.steps import Step
from fleet.core.store import Store, Stored

_SHOWN = 5


class Publishing:
    """One run. `content`: the document, `source` what it is called. Not `moves`: refused when shards change
    their master.
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
        moves: bool = True,
    ) -> None:
        self._settings, self.store, self._hosts = settings, store, hosts
        self.content = content
        self._moves = moves
        self.new = load_topology(content, name=source, layouts=settings.all_layouts, schema=schema)
        self.old: Topology | None = None
        self.changes: Sequence[Change] = ()
        self._stored: Stored | None = None
        self._reason = ""

    def tool(self, name: str, arguments: Mapping[str, Any]) -> Tool:
        """For the runner."""
        made = Tool(name, arguments, self._steps, actions={"publish": self._publish, "served": self._served})
        self._reason = Operation(0, name, arguments).command
        return made

    @property
    def summary(self) -> str:
        """What changes, in a line."""
        return "; ".join(map(str, self.changes)) or "nothing but the version"

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        """Refused, ConfigError: nothing may be published."""
        self._stored = await asyncio.to_thread(self.store.topology)
        served = Step(
            "served", f"wait until all proxies serve version {self.new.version}", action="served", stage=1
        )
        if self._stored is not None and self._stored.content == self.content:
            return [served] if operation is not None else []
        self.old = self._in_use(self._stored)
        self.changes = changes(self.old, self.new)
        self._follows(version_of(self._stored.content) if self._stored is not None else 0)
        if self.old is not None:
            problems = succession_problems(self.old, self.new)
            if problems:
                raise ConfigError(problems)
            moved = [one for one in self.changes if one.moves]
            if moved and not self._moves:
                raise Refused(
                    "; ".join(map(str, moved))
                    + ": what was written since these shards have left that master "
                    "is not there. Move them with `shardgate fleet split` or `promote`; or, if you know that "
                    "nothing is missing, give --move-shards"
                )
            await self._are_there(self.old)
        text = f"publish version {self.new.version}: {self.summary}"
        return [Step("publish", text, action="publish", final=True), served]

    def _in_use(self, stored: Stored | None) -> Topology | None:
        """The topology that is replaced; None when there is none that can be read."""
        if stored is None:
            return None
        try:
            return load_topology(stored.content, layouts=self._settings.all_layouts)
        except ConfigError:
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
