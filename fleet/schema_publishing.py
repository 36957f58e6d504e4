"""`shardgate schema put` and `rollback`: a document that the topology can serve becomes the schema."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from config.checks import access_problems, fit_problems
from config.document import ConfigError
from config.load import load_schema, load_topology
from config.schema import Schema
from config.settings import Settings
from config.sources.schema import digest_of
from config.topology import Topology
from fleet.core.errors import Refused
from fleet.core.interrupt import to_end
from fleet.core.journal import Operation
from fleet.core.publish import publish_schema, wait_for_schema
from fleet.core.run import Tool
from fleet.core.steps import Step
from fleet.core.store import Store, Stored

_SHOWN = 10


class PublishingSchema:
    """One run. `content`: the document, `source` what it is called."""

    def __init__(self, settings: Settings, store: Store, content: bytes, source: str) -> None:
        """Refused, ConfigError: the schema is no document of this store, or none at all."""
        if settings.topology.zookeeper is not None and settings.schema_file is not None:
            raise Refused(
                f"the schema is the file {settings.schema_file} on each machine that has a proxy: write it "
                "there, or keep it in ZooKeeper (topology.zookeeper.schema_path, in place of schema)"
            )
        self._settings, self._store = settings, store
        self._content, self._source = content, source
        self._schema = load_schema(content, name=source)
        self._stored: Stored | None = None
        self._reason = ""
        self.summary = ""
        """What changes, in a line, once the steps are known."""

    def tool(self, name: str, arguments: Mapping[str, Any]) -> Tool:
        """For the runner."""
        actions = {"publish": self._publish, "served": self._served}
        self._reason = Operation(0, name, arguments).command
        return Tool(name, arguments, self._steps, actions=actions)

    async def _steps(self, operation: Operation | None) -> Sequence[Step]:
        """ConfigError: the topology cannot serve it, or users are let into what it has not."""
        self._stored = await asyncio.to_thread(self._store.schema)
        served = Step("served", "wait until all proxies serve it", action="served", stage=1)
        if self._stored is not None and self._stored.content == self._content:
            return [served] if operation is not None else []
        topology = await asyncio.to_thread(self._topology)
        if topology is not None:
            databases = [one for user in self._settings.users for one in user.databases]
            problems = fit_problems(self._schema, topology, source=self._source)
            problems += access_problems(self._schema, topology, databases, self._source)
            if problems:
                raise ConfigError(problems)
        self.summary = self._differences()
        publish = Step(
            "publish", f"make {self._source} the schema: {self.summary}", action="publish", final=True
        )
        return [publish, served]

    def _differences(self) -> str:
        """What changes, in a line: one that was cut off at a line's end may be valid, and lacks tables."""
        try:
            old = load_schema(self._stored.content) if self._stored is not None else None
        except ConfigError:
            old = None
        before, after = (_tables(old) if old is not None else {}), _tables(self._schema)
        changes = {
            "new": after.keys() - before.keys(),
            "gone": before.keys() - after.keys(),
            "other": {name for name in before.keys() & after.keys() if before[name] != after[name]},
        }
        told = [f"{what}: {_shortened(sorted(names))}" for what, names in changes.items() if names]
        return "; ".join(told) or "all tables as before"

    def _topology(self) -> Topology | None:
        """None when there is none that can be used: that one is mended after the schema."""
        found = self._store.topology()
        if found is None:
            return None
        try:
            return load_topology(found.content, layouts=self._settings.all_layouts)
        except ConfigError:
            return None

    async def _publish(self, step: Step) -> Mapping[str, Any]:
        await to_end(publish_schema, self._store, self._content, self._stored, self._reason)
        return {}

    async def _served(self, step: Step) -> Mapping[str, Any]:
        await wait_for_schema(self._store, digest_of(self._content))
        return {}


def _tables(schema: Schema) -> dict[str, str]:
    """The tables by their names, as texts that can be compared."""
    databases = schema.databases.items()
    return {f"{name}.{table}": repr(one) for name, found in databases for table, one in found.tables.items()}


def _shortened(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
