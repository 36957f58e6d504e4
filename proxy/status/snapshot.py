"""The state of one worker process as plain data, read from the live objects when somebody asks.

This is the only file of the room that knows `Services`. Everything here is cheap reads of integers in the
event loop's own thread, so nothing on the data path is locked or counted twice. `/status.json` is this data.
"""

from __future__ import annotations

import asyncio
import os
import resource
import time
from collections import Counter
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final, TypedDict

from config.topology import Keyspace, Range, Topology
from proxy.caching.server import COUNTS
from proxy.load import Load
from proxy.logs import lost
from proxy.stats import Digest, Use
from proxy.tracing.spans import OUTCOMES
from rewriter.tree.start import load

if TYPE_CHECKING:
    from proxy.backends.host import HostPool
    from proxy.engine.services import Services

_PAGE = os.sysconf("SC_PAGE_SIZE")

SLOWEST, COSTLIEST = 10, 30
"""So many of the slowest statements are told, and of those that took most time in all."""

_ASKED = 100
_LONG = 300
"""So many characters of a statement are told."""


class Clients(TypedDict):
    """Connections of clients. `sessions` have logged in; `busy` ones have a statement at work; `logins` have
    not logged in yet. `memory`: bytes kept for them, by `limits.client_memory`. `waiting`: statements that
    wait for another topology; `waited`: those that did, by what became of them, with the seconds in all.
    `distributed`: COMMITs of distributed transactions by outcome, `resolved`: branches that others had left,
    by outcome, `prepared`: those that were seen last, by state.
    """

    connections: int
    sessions: int
    busy: int
    in_transaction: int
    limit: int
    total: int
    refused: dict[str, int]
    logins: int
    memory: int
    memory_refused: int
    waiting: int
    waiting_limit: int
    waited: dict[str, int]
    waited_seconds: float
    distributed: dict[str, int]
    resolved: dict[str, int]
    prepared: dict[str, int]


class Statements(TypedDict):
    """Statements of one kind of plan: counts by outcome, and times as counts per bucket of `BUCKETS`."""

    plan: str
    outcomes: dict[str, int]
    buckets: list[int]
    seconds: float


class Host(TypedDict):
    """One host and this process's pool of connections to it. `gathering`: connections besides, on which rows
    are gathered, idle ones too. `opened`: since the start, and so is what the
    host has had to do: `statements`, by time in `buckets` (`load.BOUNDS`), `errors`, `seconds`, `rows`, and
    `waits` for a connection of `waited` seconds in all. `slaves`: of its shards.
    """

    host: str
    version: str
    busy: int
    idle: int
    opening: int
    gathering: int
    waiting: int
    limit: int
    opened: int
    failures: int
    error: str
    up: bool
    in_topology: bool
    shards: dict[str, int]  # by keyspace
    slaves: list[str]
    statements: int
    errors: int
    seconds: float
    rows: int
    waits: int
    waited: float
    longest: float
    buckets: list[int]


_SEGMENTS: Final = 1000
"""Of a keyspace, so many are drawn at most."""


class Segment(TypedDict):
    """A row of shards on one host: `first` to `last`; the whole of an unsharded keyspace has neither. Of many
    ranges each is several (`Ranges.pieces`).
    """

    first: int | None
    last: int | None
    host: str
    slave: str | None
    state: str
    open: bool


class KeyspaceMap(TypedDict):
    """A keyspace and where its shards are. `rule` says in words how an ID or a key gives the shard. `held`:
    how many of its shards each master has, by their state.
    """

    name: str
    rule: str
    database: str
    shards: int
    segments: list[Segment]
    held: dict[str, dict[str, int]]


class Change(TypedDict):
    """Something that happened to the topology. `time`: seconds since 1970."""

    time: float
    text: str


class ShardProblem(TypedDict):
    """What a shard lacks: how often it was met, and when last. `code`: MySQL's, or 0."""

    code: int
    where: str
    text: str
    count: int
    time: float


class TopologyState(TypedDict):
    """The topology in use, and what became of others."""

    version: int
    digest: str
    default: str | None
    source: str
    changes: int
    refused: int
    schema_version: str
    schema_changes: int
    schema_refused: int
    settings_refused: int
    problems: list[ShardProblem]
    problem_counts: dict[str, int]
    recent: list[Change]
    keyspaces: list[KeyspaceMap]


class Query(TypedDict):
    """One kind of statement: its text without literals, and seconds in all and at most. `buckets`: by time
    (`stats.BUCKETS`). `rows` given or changed; `shards` and `hosts` that it was on, each time counted.
    """

    digest: str
    database: str
    plan: str
    count: int
    errors: int
    seconds: float
    longest: float
    rows: int
    shards: int
    buckets: list[int]
    hosts: dict[str, int]


class PlanCache(TypedDict):
    """The rewriter's plans by statement fingerprint."""

    entries: int
    limit: int
    hits: int
    misses: int
    differences: int
    second_reader: bool


class CacheState(TypedDict):
    """A cache that tables of the schema have. `used`: its answers are given now."""

    cache: str
    used: bool
    error: str
    counts: dict[str, int]


class Process(TypedDict):
    """What the process costs: CPU seconds since its start, resident bytes, open file descriptors, asyncio's
    tasks that have not ended.
    """

    pid: int
    cpu_seconds: float
    memory_bytes: int
    open_files: int
    tasks: int
    lost_log_lines: int


class Snapshot(TypedDict):
    """Everything. What needs `Services` is None or empty before they exist."""

    version: str
    started: float
    uptime: float
    ready: bool
    reason: str
    draining: bool
    server_version: str
    workers: int  # processes that this is the sum of
    workers_wanted: int  # and so many there should be
    replaced: int  # workers that have died
    process: Process
    clients: Clients | None
    statements: list[Statements]
    errors: dict[str, int]  # that clients got, by MySQL's code
    slowest: list[Query]
    plan_cache: PlanCache | None
    caches: list[CacheState]
    traces: dict[str, int]  # spans by what became of them, and those that are "waiting"
    topology: TopologyState | None
    hosts: list[Host]


def take(
    services: Services | None,
    *,
    ready: bool,
    started: float,
    now: float,
    source: str = "",
    loaded: bool = True,
    trouble: str = "",
    counts_only: bool = False,
) -> Snapshot:
    """The state now. `started` and `now` are seconds since 1970; `source` describes the topology's source,
    which has given one already if `loaded`. `trouble`: what came of asking a server at the start. With
    `counts_only` the topology and the slowest statements are left out, which take longest.
    """
    taken: Snapshot = {
        "version": proxy_version(),
        "started": started,
        "uptime": max(0.0, now - started),
        "ready": ready,
        "reason": why_not_ready(services, ready, loaded, trouble),
        "draining": services is not None and services.clients.draining,
        "server_version": "",
        "workers": 1,
        "workers_wanted": 1,
        "replaced": services.stats.workers_replaced if services is not None else 0,
        "process": _process(),
        "clients": None,
        "statements": [],
        "errors": {},
        "slowest": [],
        "plan_cache": None,
        "caches": [],
        "traces": dict.fromkeys((*OUTCOMES, "waiting"), 0),
        "topology": None,
        "hosts": [],
    }
    if services is not None:
        taken["server_version"] = services.server_version
        taken["clients"] = _clients(services)
        taken["statements"] = _statements(services)
        taken["errors"] = dict(services.backends.loads.codes)
        taken["plan_cache"] = _plan_cache(services)
        taken["caches"] = _caches(services)
        if services.traces is not None:
            exporter = services.traces.exporter
            taken["traces"] = {**exporter.counts, "waiting": len(exporter)}
        taken["hosts"] = _hosts(services)
        if not counts_only:
            taken["slowest"] = _slowest(services)
            taken["topology"] = _topology(services, source)
    return taken


def why_not_ready(services: Services | None, ready: bool, loaded: bool = True, trouble: str = "") -> str:
    """Why clients should not be sent here now; empty when they may. `loaded`: there is a topology."""
    if ready:
        return ""
    if not loaded:
        return "starting: there is no topology yet"
    if services is None and trouble:
        return f"starting: no server of the topology can be used yet: {trouble}"
    if services is None:
        return "starting: no server of the topology has let the proxy in yet; the log says why"
    if services.clients.draining:
        return "draining: clients are asked to connect elsewhere"
    return "starting: not listening yet"


@cache
def proxy_version() -> str:
    """shardgate's own version."""
    try:
        return version("shardgate")
    except PackageNotFoundError:
        return "unknown"


def _process() -> Process:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    memory = open_files = 0
    try:
        with open("/proc/self/statm", "rb") as statm:
            memory = int(statm.read().split()[1]) * _PAGE
        open_files = len(os.listdir("/proc/self/fd"))
    except OSError:
        memory = usage.ru_maxrss * 1024  # no /proc: the peak is better than nothing
    return {
        "pid": os.getpid(),
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "memory_bytes": memory,
        "open_files": open_files,
        "tasks": _tasks(),
        "lost_log_lines": lost(),
    }


def _tasks() -> int:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # asked outside of the loop
        return 0


def _clients(services: Services) -> Clients:
    busy = in_transaction = 0
    for client in services.clients.sessions.values():
        busy += not client.ready
        in_transaction += client.session.transaction.open
    return {
        "connections": len(services.clients.connections),
        "sessions": len(services.clients.sessions),
        "busy": busy,
        "in_transaction": in_transaction,
        "limit": services.clients.most,
        "total": services.stats.started_connections,
        "refused": dict(services.stats.refusals),
        "logins": len(services.clients.logins),
        "memory": services.clients.memory.used,
        "memory_refused": services.clients.memory.refused,
        "waiting": len(services.waiting_room),
        "waiting_limit": services.waiting_room.limit,
        "waited": dict(services.waiting_room.outcomes),
        "waited_seconds": services.waiting_room.seconds,
        "distributed": dict(services.resolver.counts),
        "resolved": dict(services.resolver.resolved),
        "prepared": dict(Counter(one.state for one in services.resolver.prepared.values())),
    }


def _statements(services: Services) -> list[Statements]:
    return [
        {
            "plan": plan,
            "outcomes": dict(sorted(({"ok": one.ok} if one.ok else {}).items() | one.others.items())),
            "buckets": list(one.counts),
            "seconds": one.seconds,
        }
        for plan, one in sorted(services.stats.kinds.items())
    ]


def _slowest(services: Services) -> list[Query]:
    stats = services.stats
    found = stats.by_digest(services.serving.snapshot.rewriter.kept, _ASKED, slowest=_ASKED)
    return slowest([told(digest, use) for digest, use in found.items()])


def told(kind: Digest, use: Use) -> Query:
    """One kind of statement as pages have it."""
    digest, database, plan = kind
    return {
        "digest": digest if len(digest) <= _LONG else digest[:_LONG] + " …",
        "database": database,
        "plan": plan,
        "count": use.count,
        "errors": use.errors,
        "seconds": use.seconds,
        "longest": use.longest,
        "rows": use.rows,
        "shards": use.shards,
        "buckets": list(use.buckets),
        "hosts": dict(use.hosts),
    }


def slowest(queries: Sequence[Query]) -> list[Query]:
    """Those that take longest in the mean, and those that took most time in all; the latter come first."""
    costly = sorted(queries, key=lambda one: -one["seconds"])
    slow = sorted(costly[COSTLIEST:], key=lambda one: -one["seconds"] / one["count"])[:SLOWEST]
    return costly[:COSTLIEST] + slow


def _caches(services: Services) -> list[CacheState]:
    now = time.monotonic()
    return [
        {
            "cache": one.title,
            "used": one.trusted(now),
            "error": one.trouble,
            "counts": {name: one.counts[name] for name in COUNTS},
        }
        for one in services.caches
    ]


def _plan_cache(services: Services) -> PlanCache:
    rewriter = services.serving.snapshot.rewriter
    return {
        "entries": rewriter.entries,
        "limit": services.settings.plan_cache_size,
        "hits": rewriter.hits,
        "misses": rewriter.misses,
        "differences": rewriter.differences,
        "second_reader": load().read is not None,
    }


def _topology(services: Services, source: str) -> TopologyState:
    topology = services.serving.topology
    return {
        "version": topology.version,
        "digest": topology.digest,
        "default": topology.default,
        "source": source,
        "changes": services.stats.topology_changes,
        "refused": services.stats.topology_refused,
        "schema_version": str(services.serving.schema.version),
        "schema_changes": services.stats.schema_changes,
        "schema_refused": services.stats.schema_refused,
        "settings_refused": services.stats.settings_refused,
        "problems": [
            {"code": one.code, "where": one.where, "text": one.text, "count": one.count, "time": one.last}
            for one in services.serving.problems.recent
        ],
        "problem_counts": {str(code): count for code, count in services.serving.problems.counts.items()},
        "recent": [{"time": when, "text": text} for when, text in reversed(services.stats.recent_changes)],
        "keyspaces": [_keyspace(keyspace) for keyspace in topology.keyspaces.values()],
    }


def _keyspace(keyspace: Keyspace) -> KeyspaceMap:
    columns = keyspace.columns
    segments = [_segment(one, first=one.first, last=one.last) for one in columns.pieces(_SEGMENTS)]
    if not keyspace.sharded:
        segments = [_segment(Range(0, 0, keyspace.master or "", keyspace.slave), first=None, last=None)]
    return {
        "name": keyspace.name,
        "rule": _rule(keyspace),
        "database": keyspace.pattern if keyspace.sharded else keyspace.database,
        "shards": len(keyspace.all_shards),
        "segments": segments,
        "held": {
            host: {state.value: shards for state, shards in one.shards.items()}
            for host, one in columns.held().items()
        },
    }


def _segment(one: Range, *, first: int | None, last: int | None) -> Segment:
    return {
        "first": first,
        "last": last,
        "host": one.master,
        "slave": one.slave,
        "state": one.state.value,
        "open": one.open,
    }


def _rule(keyspace: Keyspace) -> str:
    if keyspace.layout is not None:
        return f"layout {keyspace.layout.name}"
    if keyspace.hash is not None:
        return f"{keyspace.hash} % {keyspace.shards}"
    return "unsharded"


def _hosts(services: Services) -> list[Host]:
    """The topology's masters in its order, then hosts that it no longer names but that have connections."""
    topology = services.serving.topology
    backends = services.backends
    pools = {pool.host: pool for pool in backends.pools}
    names = [*topology.hosts, *(host for host in pools if host not in topology.hosts)]
    limit_of = services.settings.backends.max_connections_for
    loads, nothing = backends.loads.hosts, Load()
    return [
        _host(
            name,
            topology,
            pools.get(name),
            backends.gathering(name),
            limit_of(name),
            loads.get(name, nothing),
        )
        for name in names
    ]


def _host(
    name: str, topology: Topology, pool: HostPool | None, gathering: int, limit: int, load: Load
) -> Host:
    shards: dict[str, int] = {}
    slaves: dict[str | None, None] = {}
    for keyspace in topology.keyspaces.values():
        held = keyspace.columns.held().get(name)
        if held is not None:
            shards[keyspace.name] = sum(held.shards.values())
            slaves.update(held.slaves)
        if keyspace.master == name:
            slaves[keyspace.slave] = None
    state = pool.state if pool is not None else None
    return {
        "host": name,
        "version": pool.version if pool else "",
        "busy": len(state.busy) if state else 0,
        "idle": state.idle_count if state else 0,
        "opening": state.opening if state else 0,
        "gathering": gathering,
        "waiting": state.waiting.of_clients if state else 0,
        "limit": limit,
        "opened": pool.opened_total if pool else 0,
        "failures": pool.failures if pool else 0,
        "error": pool.trouble if pool else "",
        "up": pool is not None and pool.up,
        "in_topology": name in topology.hosts,
        "shards": shards,
        "slaves": [slave for slave in slaves if slave is not None],
        "statements": load.count,
        "errors": load.errors,
        "seconds": load.seconds,
        "rows": load.rows,
        "waits": load.waits,
        "waited": load.waited,
        "longest": load.longest,
        "buckets": list(load.buckets),
    }


def clock() -> float:
    """Seconds since 1970."""
    return time.time()
