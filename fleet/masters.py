"""Changing who the master of a pair is, in the topology: freeze, publish, and whether the proxies follow.

What the tools that do so share; `promote` has the documents as they are on the way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final

from config.checks import fit_problems
from config.document import ConfigError
from config.load import load_topology
from config.schema import Schema
from config.settings import Settings
from config.topology import Topology
from fleet.core.errors import Failed, Refused
from fleet.core.interrupt import to_end
from fleet.core.publish import behind, publish
from fleet.core.store import Store, Stored
from fleet.document import Document, read_document, written

FILE_SECONDS: Final = 0.3
"""For proxies to have read a topology file, which they look at ten times a second."""


class Masters:
    """The topology as it is in the store. `reason`: the command, for the history."""

    def __init__(self, settings: Settings, schema: Schema, store: Store, reason: str) -> None:
        self._settings, self._schema, self._store = settings, schema, store
        self._reason = reason
        self._stored: Stored | None = None
        self.document: Document = {}

    async def read(self) -> Topology:
        """The topology of now, in `document` as it is written. Refused when there is none."""
        self._stored = await asyncio.to_thread(self._store.topology)
        if self._stored is None:
            raise Refused(f"there is no topology in {self._store.where}")
        self.document = read_document(self._stored.content)
        return self.load(self.document)

    def load(self, document: Document) -> Topology:
        """What the document says. ConfigError when the schema cannot be served by it."""
        made = load_topology(document, name=self._store.where, layouts=self._settings.all_layouts)
        problems = fit_problems(self._schema, made)
        if problems:
            raise ConfigError(problems)
        return made

    async def publish(self, document: Document) -> Mapping[str, Any]:
        """Make it the topology, if that is still the one that was read; what the journal remembers."""
        self.load(document)
        await to_end(publish, self._store, written(document), self._stored, self._reason)
        return {"version": document["version"]}

    async def followed(self, seconds: float) -> list[str]:
        """Wait until all proxies serve what was published last; those that do not within that time."""
        version = int((await self.read()).version)
        started = time.monotonic()
        if not self._store.registers:
            await asyncio.sleep(FILE_SECONDS)
        late = await behind(self._store, version, seconds - (time.monotonic() - started))
        return [f"{one.name} serves version {one.version}" for one in late]

    async def must_follow(self, seconds: float) -> None:
        """The same; Failed names them."""
        late = await self.followed(seconds)
        if late:
            raise Failed(
                f"version {self.document['version']} is published, but within {seconds:g} s "
                f"{', '.join(late)}: look at their logs"
            )
