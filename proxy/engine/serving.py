"""What is served, and how it changes: topology, schema, and what the tables were seen to have."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

import structlog

from config.moves import moves
from config.schema import Schema
from config.topology import Topology
from proxy.backends import Backends
from proxy.catalog.references import look_at_references
from proxy.catalog.tables import differences, look
from proxy.peers import Peers
from proxy.stats import Stats
from proxy.tasks import Tasks
from rewriter.planner import Rewriter
from rewriter.plans import Plan

from .problems import ShardProblems
from .snapshot import Snapshot

log = structlog.get_logger("proxy")

_MANY = 4096
"""Ranges of two topologies that are compared at once: some milliseconds."""


class Serving:
    """`snapshot` is what statements go by from now on. Only here it is changed."""

    __slots__ = (
        "_backends",
        "_changed",
        "_coming",
        "_doubt_from",
        "_looks",
        "_patience",
        "_peers",
        "_settled",
        "_spawn",
        "_stats",
        "columns_seen",
        "problems",
        "snapshot",
    )

    def __init__(
        self,
        rewriter: Rewriter,
        backends: Backends,
        stats: Stats,
        tasks: Tasks,
        peers: Peers | None,
        patience: float,
        changed: Callable[[Topology], None],
    ) -> None:
        """`patience`: seconds that a new schema waits for the tables to be looked at. `changed`: called when
        another topology is in use.
        """
        self.snapshot = Snapshot.of(rewriter)
        self.problems = ShardProblems()
        self.columns_seen: Mapping[str, frozenset[str]] = {}  # the tables that have a column, on some shard
        self._backends = backends
        self._stats = stats
        self._spawn = tasks.spawn
        self._peers = peers
        self._patience = patience
        self._changed = changed
        self._coming, self._settled = rewriter.schema, True  # the schema's document, and whether it is in use
        self._looks = 0
        self._doubt_from = 0.0  # when to look at the tables again after an unknown column

    @property
    def topology(self) -> Topology:
        """The one of now; a statement goes by its own snapshot."""
        return self.snapshot.topology

    @property
    def schema(self) -> Schema:
        """The one of now, with the columns that the tables were seen to have."""
        return self.snapshot.schema

    # -- changes
    # ----------------------------------------------------------------------------------------------------

    def set_topology(self, topology: Topology, schema: Schema | None = None) -> None:
        """Serve a new topology, and with it the schema that goes with it, from the next statement on; those
        under way finish where they began.
        """
        before = self.topology
        topology.take_over(before)
        if schema is not None:
            self._coming = schema
            self._settled = False
        if self._settled:
            self._serve(topology, self.schema)
        else:  # the one of before need not fit
            self._use_schema(topology, self._coming, self._coming.version)
            self._spawn(self.look_at_tables(), "tables")
        self._backends.keep_only(topology.hosts)
        self._backends.loads.keep_only(topology, before)
        self._stats.topology_changes += 1
        self._changed(topology)
        if before.size + topology.size > _MANY:
            self._spawn(self._tell_later(before, topology), "topology")
        else:
            self._tell(topology, moves(before, topology))

    async def _tell_later(self, before: Topology, topology: Topology) -> None:
        """It takes a while to see what is different."""
        self._tell(topology, await asyncio.to_thread(moves, before, topology))

    def _tell(self, topology: Topology, moved: list[str]) -> None:
        self._stats.remember("\n".join([f"version {topology.version} in use", *moved]))
        log.info("topology changed", version=topology.version, hosts=len(topology.hosts), moved=moved)

    async def set_schema(self, schema: Schema) -> None:
        """Serve a new schema from the next statement on, with the columns that the tables have now."""
        self._coming, self._settled = schema, False
        found = schema
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                found = (await look(schema, self.topology, self._backends)).schema
        if self._coming is schema and not self._settled:  # no other has come meanwhile
            self._use_schema(self.topology, found, schema.version)

    def _serve(self, topology: Topology, schema: Schema) -> None:
        rewriter = self.snapshot.rewriter
        self._stats.retire(rewriter.fingerprints())
        self.snapshot = Snapshot.of(rewriter.replaced(topology, schema))

    def _use_schema(self, topology: Topology, schema: Schema, version: int | str) -> None:
        self._settled = True
        self._serve(topology, schema)
        self._stats.schema_changes += 1
        self._stats.remember(f"schema {version} in use")
        log.info("schema changed", version=version)

    # -- changes that are refused
    # ------------------------------------------------------------------------------------

    def topology_refused(self, reason: str, *, told: bool = False) -> None:
        """`told`: the log has it already."""
        self._stats.topology_refused += 1
        self._stats.remember(f"refused: {reason}")
        if not told:
            log.error("topology refused, the old one stays", version=self.topology.version, reason=reason)

    def schema_refused(self, reason: str) -> None:
        self._stats.schema_refused += 1
        self._stats.remember(f"schema refused: {reason}")
        log.error("schema refused, the old one stays", version=self.schema.version, reason=reason)

    def settings_refused(self, reason: str) -> None:
        self._stats.settings_refused += 1
        self._stats.remember(f"settings refused: {reason}")
        log.error("settings refused, the users from before stay", reason=reason)

    # -- the tables
    # --------------------------------------------------------------------------------------------------

    async def look_at_tables(self) -> None:
        """Learn the columns that the tables have now."""
        while True:
            known = self.schema
            self._looks += 1
            looked = await look(known, self.topology, self._backends, self._looks)
            found = looked.schema
            if self.schema is known:
                break  # else somebody else has looked meanwhile, and perhaps later
        self.columns_seen = looked.columns
        for where, text in looked.problems:
            self.problems.note(0, where, text)
        if found is not known:
            self._serve(self.topology, found)
            if told := differences(known, found, first=known is self._coming):
                log.info("tables have other columns", tables=told)

    async def look_at_references(self) -> None:
        """Whether all hosts have the rows of reference tables."""
        for where, text in await look_at_references(self.schema, self.topology, self._backends):
            self.problems.note(0, where, text)

    def columns_doubted(self, plan: Plan | None) -> None:
        """A shard does not know a column of a statement with this plan. Perhaps it was changed elsewhere:
        look at the tables now, if that was not done just before.
        """
        now = time.monotonic()
        if plan is not None and plan.lists_columns and now >= self._doubt_from:
            self._doubt_from = now + 1
            self._spawn(self.look_at_tables(), "tables")

    async def tables_changed(self) -> None:
        """Read the tables again after a definition, here and in the other workers, so that its result is
        visible everywhere when the client has the answer.
        """
        others = () if self._peers is None else (self._peers.ask_others("tables"),)
        await asyncio.gather(self.look_at_tables(), *others)
