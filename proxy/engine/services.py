"""What all sessions of one worker process share. `app` makes it; sessions and the ways are given it. It
decides nothing about statements.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import structlog

from config.backends import Backends as BackendSettings
from config.flavour import Flavour, flavour_of
from config.schema import Schema
from config.settings import Settings as ProxySettings
from config.settings import User as UserSettings
from config.topology import Topology
from proxy import open_files
from proxy.backends import OWN_ACCOUNT, Backends
from proxy.backends.connecting import EXTENDED as OFFERED
from proxy.caching.caches import Caches
from proxy.catalog.facts import Collations, ServerFacts
from proxy.catalog.routines import KnownRoutines
from proxy.certificates import Certificates
from proxy.engine.clients import Clients, Connected
from proxy.engine.definitions import PlansDefinitions
from proxy.engine.given_ids import GivenIds
from proxy.engine.serving import Serving
from proxy.engine.waiting_room import WaitingRoom
from proxy.peers import Peers
from proxy.planning.pool import Planners
from proxy.reordering.respacing import Respacing
from proxy.reordering.room import Wish
from proxy.session.state import Session
from proxy.stats import Stats
from proxy.tasks import Tasks
from proxy.tracing.traces import traces_of
from proxy.wire.compression import Algorithm
from proxy.wire.server_auth import Authority
from proxy.xa.resolver import Resolver
from rewriter.planner import LONG, Rewriter

log = structlog.get_logger("proxy")


#: Bytes of a statement that is planned in the loop: some milliseconds. And of all in one turn of the loop.
_PLANNED_AT_ONCE = 250
_PLANNED_IN_A_TURN = 750

_NEW_MASTERS = 1.0
"""Seconds that a topology waits at most for what is to be known of its masters."""


def _log_difference(digest: str, differences: tuple[str, ...]) -> None:
    """A plan is wider than it could be, since the two readers of its statement did not agree."""
    log.warning(
        "a statement is read in two ways: its plan is the wider one", digest=digest, of=list(differences)
    )


def _nothing() -> None:
    """Nobody takes this worker's place."""


class Services:
    """The parts of a worker, each with its own subject: `serving` (topology, schema, rewriter), `clients`,
    `routines`, `backends`, `stats` …
    """

    def __init__(
        self,
        settings: ProxySettings,
        schema: Schema,
        topology: Topology,
        backends: Backends,
        authority: Authority,
        facts: ServerFacts,
        tasks: Tasks,
        worker: int = 0,
        peers: Peers | None = None,
        client_tls: Certificates | None = None,
    ) -> None:
        self.settings = settings
        self.backends = backends
        self.authority = authority
        self.compression = tuple(map(Algorithm, settings.compression))
        self.client_tls = client_tls  # None: TLS is not offered
        self.tls_required = settings.tls is not None and settings.tls.required
        self.facts = facts
        self.collations: Collations = facts.collations
        self.pads = facts.collations.pads
        self.server_version = settings.server_version or facts.version
        extended = flavour_of(self.server_version).own_capabilities
        #: MariaDB's capabilities that clients are offered.
        self.extended = facts.extended & OFFERED if extended else 0
        slow = settings.logging.slow_query_ms
        self.slow_after = float("inf") if slow is None else slow / 1000  # seconds
        self.max_statement = settings.limits.max_statement
        self.long_statement = min(LONG, self.max_statement)  # bytes; longer ones are planned off the loop
        self.spawn = tasks.spawn
        self._lock_holders = self.lock_holders  # the same one for all sessions
        self.peers = peers  # the other workers, when there are any
        self.stats = Stats()
        #: Values of `Seen` by host: what workers have counted in whose place this one is.
        self.earlier_hosts: Mapping[str, Sequence[Any]] = {}
        self.keep: Callable[[], None] = _nothing  # what is counted: done before it is told
        self.traces = traces_of(settings.tracing, tasks.spawn, worker)
        rewriter = Rewriter(
            schema,
            topology,
            cache_size=settings.plan_cache_size,
            in_list=settings.limits.in_list,
            parse_depth=settings.limits.parse_depth,
            differ=_log_difference,
            leaving=self.stats.left,
        )
        self.waiting_room = WaitingRoom(
            settings.limits.buffered,
            settings.timeouts.buffer,
            backends.up,
            share=settings.backends.user_share,
        )
        self.serving = Serving(
            rewriter,
            backends,
            self.stats,
            tasks,
            peers,
            settings.backends.connect_timeout,
            self.waiting_room.topology_changed,
        )
        wish = Wish(settings.reorder.threshold, settings.reorder.bisections)
        self.caches = Caches(tasks)
        #: Finishes what is left of distributed transactions; that of one worker does it by itself.
        self.resolver = Resolver(
            backends,
            tasks,
            lambda: self.serving.topology,
            settings.xa,
            regular=worker == 0,
            committing=self.caches.all_held,
        )
        self._next: tuple[Topology, Schema | None] = (topology, None)  # to be served, or the one that is
        self.respacing = Respacing(backends, tasks, lambda: self.serving.topology, wish, self.caches)
        self.routines = KnownRoutines(backends, tasks, peers)
        pools = sum(map(settings.backends.max_connections_for, topology.hosts))
        most = open_files.room(settings.limits.max_connections, pools, open_files.limit())
        self.clients = Clients(settings.limits, most, worker)
        self.binders = ThreadPoolExecutor(1, "binder")  # of the rows of long statements
        self.planners = Planners(tasks.spawn, settings.timeouts.planning)
        self._turn = 0.0  # the turn of the loop in which was planned last, and how many bytes
        self._planned = 0
        self.definitions = PlansDefinitions()
        self.given_ids = GivenIds()
        self.view_columns: dict[str, dict[str, tuple[str, ...]]] = {}  # by server version and view

    def plans_at_once(self, size: int) -> bool:
        """Whether a statement of so many bytes, which is not in the cache, may be planned by the loop itself
        in this turn: what is longer, or comes with many others, goes to the planning processes.
        """
        if size > _PLANNED_AT_ONCE:
            return False
        turn = asyncio.get_running_loop().time()
        if turn != self._turn:
            self._turn, self._planned = turn, 0
        self._planned += size
        return self._planned <= _PLANNED_IN_A_TURN

    def set_users(self, users: Iterable[UserSettings], accounts: BackendSettings) -> None:
        """What users may do from their next statement on, and as which of the servers' accounts."""
        found = []
        for user in users:
            account = accounts.account_for(user.role, user.databases)
            name = OWN_ACCOUNT if account is None else account.user
            found.append((user, self.backends.capability_set_of(name)))
        self.clients.set_users(found)

    def lock_holders(self) -> dict[int, int]:
        """`Clients.lock_holders` of the default host."""
        topology = self.serving.topology
        return self.clients.lock_holders(topology.default or topology.hosts[0])

    def open_session(self, client: Connected, id: int, user: str, address: str) -> Session:
        """`Clients.open_session` with what servers say of themselves."""
        session = self.clients.open_session(
            client,
            id,
            user,
            address,
            server_version=self.server_version,
            defaults=self.facts.defaults,
            digests=self.facts.digests,
        )
        session.lock_holders = self._lock_holders
        session.identities = self.resolver.decisions.identities
        session.undeciding = self.resolver.decisions.refused
        session.tls = self.client_tls is not None
        return session

    def set_topology(self, topology: Topology, schema: Schema | None, served: Callable[[], None]) -> None:
        """Serve a topology, and the schema that goes with it (None: the same as before), and say so. It is
        first known where transactions over its masters are decided: who waits for them needs it at once.
        """
        self._next = topology, schema or self._next[1]
        if self.resolver.knows(topology.hosts):
            self._set_topology(served)
        else:
            self.spawn(self._set_later(topology, served), "topology")

    async def _set_later(self, topology: Topology, served: Callable[[], None]) -> None:
        await self.resolver.ready(_NEW_MASTERS, topology.hosts)
        if self._next[0] is topology:  # else another one has come meanwhile
            self._set_topology(served)

    def _set_topology(self, served: Callable[[], None]) -> None:
        topology, schema = self._next
        self._next = topology, None
        self.serving.set_topology(topology, schema)
        served()

    def renew(self, defaults: Mapping[str, bytes]) -> None:
        """Something was set for all sessions (SET GLOBAL): use new connections, and these defaults."""
        self.facts.defaults.update(defaults)
        self.backends.renew()

    def tick(self) -> None:
        """A few times a second: what time asks for."""
        self.backends.tick()
        self.backends.loads.tick(time.monotonic())
        self.waiting_room.tick()
        self.planners.tend()
        self.respacing.tick()
        self.resolver.tick()
        self.caches.follow(self.serving.schema)
        if self.traces is not None:
            self.traces.exporter.tick()
        if len(self.stats.uses) > 2 * self.settings.plan_cache_size:
            self.stats.forget(self.serving.snapshot.rewriter.fingerprints())

    async def close(self) -> None:
        """Nobody is served any more."""
        await self.caches.stop()
        self.backends.close()
        self.planners.close()
        if self.traces is not None:
            await self.traces.exporter.stop()

    def statistics_line(self, flavour: Flavour) -> str:
        """COM_STATISTICS, in mysqladmin's words, which drivers look for."""
        uptime = max(1, int(self.stats.uptime))
        total = self.stats.total
        flushes = "Flush tables: 1  " if flavour.counts_flushed_tables else ""
        threads = len(self.clients.sessions)
        return (
            f"Uptime: {uptime}  Threads: {threads}  Questions: {total}  Slow queries: 0  Opens: 0  "
            f"{flushes}Open tables: 0  Queries per second avg: {total / uptime:.3f}"
        )

    def status_values(self) -> dict[str, object]:
        """SHOW PROXY STATUS."""
        values: dict[str, object] = {
            "Uptime": int(self.stats.uptime),
            "Connections": len(self.clients.connections),
            "Connections_total": self.stats.started_connections,
            "Connections_logging_in": len(self.clients.logins),
            "Client_memory": self.clients.memory.used,
            "Client_memory_refused": self.clients.memory.refused,
            "Statements": self.stats.total,
            "Statements_waiting": len(self.waiting_room),
            "Statements_waited_seconds": round(self.waiting_room.seconds, 3),
            "Topology_version": self.serving.topology.version,
            "Topology_changes": self.stats.topology_changes,
            "Topology_refused": self.stats.topology_refused,
            "Schema_version": self.serving.schema.version,
            "Schema_changes": self.stats.schema_changes,
            "Schema_refused": self.stats.schema_refused,
            "Settings_refused": self.stats.settings_refused,
            "Shard_problems": self.serving.problems.counts.total(),
            "Rows_respaced": self.respacing.done,
            "Rows_to_respace": len(self.respacing),
            "Distributed_committed": self.resolver.counts["committed"],
            "Distributed_aborted": self.resolver.counts["aborted"],
            "Distributed_unknown": self.resolver.counts["unknown"],
            "Distributed_resolved": self.resolver.resolved.total(),
            "Distributed_prepared": len(self.resolver.prepared),
            "Plan_cache_entries": self.serving.snapshot.rewriter.entries,
        }
        if self.traces is not None:
            exporter = self.traces.exporter
            values["Trace_spans_waiting"] = len(exporter)
            values |= {f"Trace_spans_{outcome}": count for outcome, count in exporter.counts.items()}
        for (kind, outcome), count in sorted(self.stats.statements.items()):
            values[f"Statements_{kind}_{outcome}"] = count
        return values
