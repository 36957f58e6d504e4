"""What all sessions of one worker process share. `app` makes it; sessions and executors are given it.

It holds, and swaps when the topology changes: the rewriter, the topology, the pools. It decides nothing about
statements.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from math import inf
from typing import Protocol

import structlog

from config.backends import Backends as BackendSettings
from config.schema import Schema
from config.settings import Settings as ProxySettings
from config.settings import User as UserSettings
from config.topology import Topology
from proxy import open_files
from proxy.backends import OWN_ACCOUNT, Backends
from proxy.backends.connecting import EXTENDED as OFFERED
from proxy.backends.memory import Memory
from proxy.catalog.facts import Collations, ServerFacts
from proxy.catalog.references import look_at_references
from proxy.catalog.routines import hosts_of
from proxy.catalog.routines import look as look_at_routines
from proxy.catalog.tables import differences, look
from proxy.certificates import Certificates
from proxy.engine.definitions import PlansDefinitions
from proxy.engine.problems import ShardProblems
from proxy.errors import ProxyError
from proxy.peers import Peers
from proxy.planning.pool import Planners
from proxy.session.reading import sql_modes
from proxy.session.state import Role, Session, User
from proxy.stats import Stats
from proxy.tasks import Tasks
from proxy.throttle import FailedLogins, Logins
from proxy.wire.compression import Algorithm
from proxy.wire.server_auth import Authority
from rewriter.planner import LONG, Rewriter
from rewriter.plans import Plan
from rewriter.text.routines import Routines

from .snapshot import Snapshot
from .work import Phase, Work

log = structlog.get_logger("proxy")


_BY_COLUMNS = frozenset({"select", "gather", "insert", "write", "read_write"})
"""Kinds of plans in which the tables' columns may be written out."""


#: Bytes of a statement that is planned in the loop: some milliseconds. And of all in one turn of the loop.
_PLANNED_AT_ONCE = 250
_PLANNED_IN_A_TURN = 750


class Connected(Protocol):
    """What others may ask of a client: those who list the clients, end one, or wait for them to go."""

    begun: float
    closed: bool
    kind: str
    phase: Phase | None
    plan: Plan | None
    ready: bool
    session: Session
    sql: bytes
    transport: asyncio.Transport
    work: Work | None

    def close(self) -> None: ...

    def cut_off(self) -> None: ...

    def end_soon(self) -> None: ...

    def leave_books(self) -> None: ...


def _log_difference(digest: str, differences: tuple[str, ...]) -> None:
    """A plan is wider than it could be, since the two readers of its statement did not agree."""
    log.warning(
        "a statement is read in two ways: its plan is the wider one", digest=digest, of=list(differences)
    )


class Services:
    """Shared by all sessions of a process. Attributes are read by the data path; only `app` and
    `set_topology` change them.
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
        mariadb = "mariadb" in self.server_version.lower()
        #: MariaDB's capabilities that clients are offered.
        self.extended = facts.extended & OFFERED if mariadb else 0
        slow = settings.logging.slow_query_ms
        self.slow_after = float("inf") if slow is None else slow / 1000  # seconds
        self.max_statement = settings.limits.max_statement
        self.long_statement = min(LONG, self.max_statement)  # bytes; longer ones are planned apart
        #: By host, of those only that have any which leave something behind in a session.
        self.routines: dict[str, Routines] = {}
        self.bodies: dict[str, Routines] = {}  # of all that were looked at
        self.binders = ThreadPoolExecutor(1, "binder")  # of the rows of long statements
        self.planners = Planners(tasks.spawn, settings.timeouts.planning)
        self._turn = 0.0  # the turn of the loop in which was planned last, and how many bytes
        self._planned = 0
        self.spawn = tasks.spawn
        self.peers = peers  # the other workers, when there are any
        self.stats = Stats()
        self.failed_logins = FailedLogins()
        self.logins: Logins[Connected] = Logins(settings.limits.logins)
        self.memory = Memory(settings.limits.client_memory)
        self.clients: dict[int, Connected] = {}
        self.connections: set[Connected] = set()
        self.draining = False
        self._routines_doubt_from = 0.0
        self._looks = 0
        self._doubt_from = 0.0  # when to look at the tables again after an unknown column
        self.started = time.time()
        self.users: dict[str, User] = {}
        self.set_users(settings.users, settings.backends)
        rewriter = Rewriter(
            schema,
            topology,
            cache_size=settings.plan_cache_size,
            in_list=settings.limits.in_list,
            parse_depth=settings.limits.parse_depth,
            differ=_log_difference,
        )
        self.snapshot = Snapshot.of(rewriter)  # of now; each statement keeps the one of its time
        pools = sum(map(settings.backends.max_connections_for, topology.hosts))
        self.most_clients = open_files.room(settings.limits.max_connections, pools, open_files.limit())
        self._dropped = 0  # parts of its cache, when it was looked at last
        self._coming, self._settled = schema, True  # the schema's document, and whether it is in use
        self.problems = ShardProblems()
        self.columns_seen: Mapping[str, frozenset[str]] = {}  # the tables that have a column, on some shard
        self.recent_changes: list[tuple[float, str]] = []
        self.view_columns: dict[str, dict[str, tuple[str, ...]]] = {}  # by server version and view
        self.definitions = PlansDefinitions()
        self._next_id = worker << 24

    @property
    def topology(self) -> Topology:
        """The one of now; a statement goes by its own snapshot."""
        return self.snapshot.topology

    @property
    def schema(self) -> Schema:
        """The one of now, with the columns that the tables were seen to have."""
        return self.snapshot.schema

    @property
    def rewriter(self) -> Rewriter:
        """The one of now."""
        return self.snapshot.rewriter

    # -- for sessions
    # -----------------------------------------------------------------------------------------------

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

    # -- connections
    # ------------------------------------------------------------------------------------------------

    def next_connection_id(self) -> int:
        """A connection id that no session has; the worker's number is in its upper bits."""
        base = self._next_id & 0xFF000000
        for _ in range(1 << 24):
            self._next_id = base | (self._next_id + 1) & 0xFFFFFF
            if self._next_id not in self.clients and self._next_id & 0xFFFFFF:
                break
        return self._next_id

    def open_session(self, client: Connected, id: int, user_name: str, address: str) -> Session:
        """A session for a client that has logged in, perhaps in place of another. ProxyError when the user
        has too many, or statements cannot be read with the servers' sql_mode.
        """
        sql_modes(self.facts.defaults.get("sql_mode", b"''"))
        user = self.users.get(user_name)
        if user is None:  # just removed
            raise ProxyError("access_denied", user=user_name, address=address, using="YES")
        if user.max_connections is not None:
            others = [other for other in self.clients.values() if other is not client]
            count = sum(other.session.user.name == user_name for other in others)
            if count >= user.max_connections:
                raise ProxyError("too_many_user_connections", user=user_name, limit=user.max_connections)
        if client.session is not None:
            client.leave_books()
        session = Session(id, user, address, self.server_version, self.facts.defaults)
        session.transaction_mode = user.transaction_mode
        session.lock_holders = self.lock_holders
        session.memory, session.memory_limit = self.memory, self.settings.limits.session_memory
        session.variables_limit = self.settings.limits.user_variables
        session.tls = self.client_tls is not None
        session.idle_default = float(self.facts.defaults.get("wait_timeout", inf))
        self.clients[id] = client
        self.logins.end(client)
        return session

    def lock_holders(self) -> dict[int, int]:
        """The sessions of this worker that are tied to a connection of the default host, by its number there:
        so those that may have a lock.
        """
        default = self.topology.default or self.topology.hosts[0]
        ties = ((client.session.transaction.held.get(default), id) for id, client in self.clients.items())
        return {conn.thread_id: id for conn, id in ties if conn is not None and conn.tied}

    def client_gone(self, client: Connected) -> None:
        self.connections.discard(client)
        self.logins.end(client)
        if client.session is not None:
            self.clients.pop(client.session.id, None)

    def set_users(self, users: Iterable[UserSettings], accounts: BackendSettings) -> None:
        """What users may do from their next statement on, and as which of the servers' accounts."""
        self.users = {}
        for user in users:
            account = accounts.account_for(user.role, user.databases)
            name = OWN_ACCOUNT if account is None else account.user
            self.users[user.name] = _user(user, self.backends.variant_of(name))

    def renew(self, defaults: Mapping[str, bytes]) -> None:
        """Something was set for all sessions (SET GLOBAL): use new connections, and these defaults."""
        self.facts.defaults.update(defaults)
        self.backends.renew()

    # -- changes
    # ----------------------------------------------------------------------------------------------------

    def set_topology(self, topology: Topology, schema: Schema | None = None) -> None:
        """Serve a new topology, and with it the schema that goes with it, from the next statement on; those
        under way finish where they began.
        """
        if schema is not None:
            self._coming = schema
            self._settled = False
        if self._settled:
            self._serve(topology, self.schema)
        else:  # the one of before need not fit
            self._use_schema(topology, self._coming, self._coming.version)
            self.spawn(self.look_at_tables(), "tables")
        self.backends.keep_only(topology.hosts)
        self.stats.topology_changes += 1
        self._remember(f"version {topology.version} in use")
        log.info("topology changed", version=topology.version, hosts=len(topology.hosts))

    async def set_schema(self, schema: Schema) -> None:
        """Serve a new schema from the next statement on, with the columns that the tables have now."""
        self._coming, self._settled = schema, False
        found = schema
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.backends.connect_timeout):
                found = (await look(schema, self.topology, self.backends)).schema
        if self._coming is schema and not self._settled:  # no other has come meanwhile
            self._use_schema(self.topology, found, schema.version)

    def _serve(self, topology: Topology, schema: Schema) -> None:
        """By these from the next statement on."""
        self.snapshot = Snapshot.of(self.rewriter.replaced(topology, schema))

    def _use_schema(self, topology: Topology, schema: Schema, version: int | str) -> None:
        self._settled = True
        self._serve(topology, schema)
        self.stats.schema_changes += 1
        self._remember(f"schema {version} in use")
        log.info("schema changed", version=version)

    def schema_refused(self, reason: str) -> None:
        self.stats.schema_refused += 1
        self._remember(f"schema refused: {reason}")
        log.error("schema refused, the old one stays", version=self.schema.version, reason=reason)

    async def look_at_tables(self) -> None:
        """Learn the columns that the tables have now."""
        while True:
            known = self.schema
            self._looks += 1
            looked = await look(known, self.topology, self.backends, self._looks)
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
        for where, text in await look_at_references(self.schema, self.topology, self.backends):
            self.problems.note(0, where, text)

    def columns_doubted(self, plan: Plan | None) -> None:
        """A shard does not know a column of a statement with this plan. Perhaps it was changed elsewhere:
        look at the tables now, if that was not done just before.
        """
        now = time.monotonic()
        if plan is not None and plan.kind in _BY_COLUMNS and now >= self._doubt_from:
            self._doubt_from = now + 1
            self.spawn(self.look_at_tables(), "tables")

    async def tables_changed(self) -> None:
        """A definition was run: learn what it has changed, here and in the other workers."""
        await self.look_at_tables()
        if self.peers is not None:
            await self.peers.ask_others("tables")

    async def learn_routines(self, hosts: Sequence[str] = ()) -> None:
        """Learn which triggers, functions and procedures these hosts, or all, have now."""
        wanted = hosts or hosts_of(self.topology)
        for host, found in (await look_at_routines(self.topology, self.backends, wanted)).items():
            if found is not None:
                self.bodies[host] = found
            if found:
                self.routines[host] = found
            elif found is not None:
                self.routines.pop(host, None)

    def routines_doubted(self, host: str) -> None:
        """A host has run code that is not among what is known: look now, if that was not done just before."""
        now = time.monotonic()
        if now >= self._routines_doubt_from:
            self._routines_doubt_from = now + 1
            self.spawn(self.learn_routines((host,)), "routines")

    async def routines_changed(self, host: str) -> None:
        """A definition was run there: learn what it has changed, here and in the other workers."""
        await self.learn_routines((host,))
        if self.peers is not None:
            await self.peers.ask_others("routines", host=host)

    def settings_refused(self, reason: str) -> None:
        self.stats.settings_refused += 1
        self._remember(f"settings refused: {reason}")
        log.error("settings refused, the users from before stay", reason=reason)

    def topology_refused(self, reason: str, *, told: bool = False) -> None:
        """`told`: the log has it already."""
        self.stats.topology_refused += 1
        self._remember(f"refused: {reason}")
        if not told:
            log.error("topology refused, the old one stays", version=self.topology.version, reason=reason)

    def _remember(self, text: str) -> None:
        self.recent_changes = [*self.recent_changes[-19:], (time.time(), text)]

    def tick(self) -> None:
        """A few times a second: what time asks for."""
        self.backends.tick()
        self.planners.tend()
        if len(self.stats.uses) > 2 * self.settings.plan_cache_size:
            self.stats.forget({plan for plan, _, _ in self.rewriter.kept()})

    # -- what people ask
    # --------------------------------------------------------------------------------------------

    @property
    def uptime(self) -> int:
        """Seconds since the start, in COM_STATISTICS and SHOW STATUS."""
        return max(1, int(time.time() - self.started))

    def statistics_line(self, mariadb: bool) -> str:
        """COM_STATISTICS, in mysqladmin's words, which drivers look for."""
        uptime = self.uptime
        total = self.stats.total
        flushes = "" if mariadb else "Flush tables: 1  "
        return (
            f"Uptime: {uptime}  Threads: {len(self.clients)}  Questions: {total}  Slow queries: 0  Opens: 0  "
            f"{flushes}Open tables: 0  Queries per second avg: {total / uptime:.3f}"
        )

    def status_values(self) -> dict[str, object]:
        """SHOW PROXY STATUS."""
        values: dict[str, object] = {
            "Uptime": int(time.time() - self.started),
            "Connections": len(self.connections),
            "Connections_total": self.stats.started_connections,
            "Connections_logging_in": len(self.logins),
            "Client_memory": self.memory.used,
            "Client_memory_refused": self.memory.refused,
            "Statements": self.stats.total,
            "Topology_version": self.topology.version,
            "Topology_changes": self.stats.topology_changes,
            "Topology_refused": self.stats.topology_refused,
            "Schema_version": self.schema.version,
            "Schema_changes": self.stats.schema_changes,
            "Schema_refused": self.stats.schema_refused,
            "Settings_refused": self.stats.settings_refused,
            "Shard_problems": self.problems.counts.total(),
            "Plan_cache_entries": self.rewriter.entries,
        }
        for (kind, outcome), count in sorted(self.stats.statements.items()):
            values[f"Statements_{kind}_{outcome}"] = count
        return values


def _user(user: UserSettings, account: int) -> User:
    """A user of the settings as sessions use it."""
    databases = None if "*" in user.databases else frozenset(user.databases)
    return User(
        user.name,
        Role[user.role.name],
        databases,
        user.scatter.allowed,
        user.scatter.limit,
        user.transaction_mode,
        user.max_connections or None,
        account,
    )
