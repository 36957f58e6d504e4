"""What a worker process has seen of hosts, shards and statements, as plain data for SHOW and the status page.

Each worker gives its own (`hosts_seen`, `shards_seen`, `queries_seen`), lists that JSON has; `add` and
`together` make one of those of all workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from proxy.load import BUCKETS, Counts, Load, quantile
from proxy.stats import BUCKETS as STATEMENT_BOUNDS
from proxy.stats import KEPT_DIGESTS, Digest, Use

if TYPE_CHECKING:
    from config.topology import Topology
    from proxy.backends.connection import BackendConnection
    from proxy.engine.services import Services

_SLOW_TIMES: Final = 4
_SLOW_SECONDS: Final = 0.002
"""A shard is slow when its mean is so many times that of its keyspace, and not less than this."""
_STUCK: Final = 1.0
"""Seconds after which a statement that still runs makes its shard slow, too."""
_FAILING: Final = 0.05
"""The share of statements that fail from which on a shard is failing."""


_AT_ONCE: Final = 500
"""So many shards are looked at in one turn of the loop."""
_NAMED: Final = 8
"""So many shards of one statement are named."""


class Seen(NamedTuple):
    """What one host or shard had to do in the last seconds: `per_second` statements, and of these
    `statements` so many `errors` (and those that did not get there), `seconds` in all, `rows` given or
    changed, `waits` for a connection of `waited` seconds, `buckets` by time. `running` now, the `oldest` for
    so many seconds. From the start: `total` statements, with `total_errors`, `total_seconds`, `total_rows`,
    and `longest`.
    """

    per_second: float
    statements: int
    errors: int
    seconds: float
    rows: int
    waits: int
    waited: float
    running: int
    oldest: float
    total: int
    total_errors: int
    total_seconds: float
    total_rows: int
    longest: float
    buckets: Sequence[int]

    @property
    def mean(self) -> float:
        """Seconds of a statement, of the last ones; 0 without any."""
        return self.seconds / self.statements if self.statements else 0.0

    @property
    def busy(self) -> float:
        """So many statements were at work at the same time, in the mean."""
        return self.mean * self.per_second

    def within(self, share: float) -> float:
        """The seconds within which that share of the last statements was done."""
        return quantile(self.buckets, share, self.longest)

    @property
    def failing(self) -> bool:
        """Whether a part of its statements fails that is not small."""
        return self.errors > 0 and self.errors >= _FAILING * self.statements

    def slow(self, usual: float) -> bool:
        """Whether its statements take far longer than the `usual` mean of its keyspace."""
        return self.oldest >= _STUCK or self.mean >= max(_SLOW_TIMES * usual, _SLOW_SECONDS)

    def state(self, usual: float) -> str:
        """What an operator looks for: failing, slow, or nothing."""
        return "failing" if self.failing else "slow" if self.slow(usual) else ""


NOTHING: Final = Seen(0.0, 0, 0, 0.0, 0, 0, 0.0, 0, 0.0, 0, 0, 0.0, 0, 0.0, (0,) * BUCKETS)


def add(one: Seen, other: Seen) -> Seen:
    """What two workers have seen of the same."""
    return Seen(
        one.per_second + other.per_second,
        one.statements + other.statements,
        one.errors + other.errors,
        one.seconds + other.seconds,
        one.rows + other.rows,
        one.waits + other.waits,
        one.waited + other.waited,
        one.running + other.running,
        max(one.oldest, other.oldest),
        one.total + other.total,
        one.total_errors + other.total_errors,
        one.total_seconds + other.total_seconds,
        one.total_rows + other.total_rows,
        max(one.longest, other.longest),
        [a + b for a, b in zip(one.buckets, other.buckets, strict=True)],
    )


def together(parts: Iterable[Mapping[str, Sequence[Any]]]) -> dict[str, Seen]:
    """Of all workers, by host or by database."""
    found: dict[str, Seen] = {}
    for part in parts:
        for name, values in part.items():
            seen = Seen(*values)
            found[name] = add(found[name], seen) if name in found else seen
    return found


def earlier(hosts: Iterable[Mapping[str, Any]]) -> dict[str, Seen]:
    """By host, the totals of a snapshot's hosts; of the last seconds there is nothing."""
    return {
        one["host"]: NOTHING._replace(
            total=one["statements"],
            total_errors=one["errors"],
            total_seconds=one["seconds"],
            total_rows=one["rows"],
            longest=one["longest"],
        )
        for one in hosts
    }


def usual(seen: Iterable[Seen]) -> float:
    """The median of the means of those that had something to do; 0 without any."""
    means = sorted(one.mean for one in seen if one.statements)
    return means[(len(means) - 1) // 2] if means else 0.0


async def seen_of(topology: Topology, seen: Mapping[str, Seen]) -> dict[str, dict[int, Seen]]:
    """By keyspace and shard, what is known by physical database. Those that nobody has asked for a while are
    not there, so it takes no time to have 65,536.
    """
    found: dict[str, dict[int, Seen]] = {name: {} for name in topology.keyspaces}
    for number, (database, one) in enumerate(seen.items()):
        if not number % _AT_ONCE:
            await asyncio.sleep(0)
        keyspace, shard = topology.physical(database) or (None, None)
        if keyspace is not None and shard is not None:
            found[keyspace.name][shard] = one
    return found


# -- of this worker
# -------------------------------------------------------------------------------------------------------


def _seen(load: Load, recent: Counts, running: Sequence[float]) -> Seen:
    return Seen(
        round(recent.statements / max(recent.at, 0.001), 3),
        recent.statements,
        recent.errors,
        round(recent.seconds, 6),
        recent.rows,
        recent.waits,
        round(recent.waited, 6),
        len(running),
        round(max(running, default=0.0), 3),
        load.count,
        load.errors,
        round(load.seconds, 6),
        load.rows,
        round(load.longest, 6),
        recent.buckets,
    )


def _at_work(services: Services) -> Iterator[BackendConnection]:
    """The connections on which statements of clients run now."""
    for pool in services.backends.every_pool:
        for conn in pool.state.busy:
            if conn.receiver is not None and conn.sent:
                yield conn


def places_now(services: Services) -> dict[int, list[str]]:
    """By session, where its statement runs now: `db1:3306`, or `db1:3306 (main/3429)`."""
    found: dict[int, list[str]] = {}
    for conn in _at_work(services):
        client = getattr(conn.receiver, "client", None)  # the proxy's own questions have none
        if client is None or client.session is None:
            continue
        loads = conn.shards if conn.shard is None else (conn.shard,)
        names = [f"{load.keyspace}/{load.shard}" for load in loads[:_NAMED]]
        if len(loads) > _NAMED:
            names.append(f"and {len(loads) - _NAMED} more")
        found.setdefault(client.session.id, []).append(
            f"{conn.host} ({', '.join(names)})" if names else conn.host
        )
    return found


def threads_now(services: Services) -> dict[int, list[tuple[str, int]]]:
    """By session, the hosts and numbers of the connections on which its statement runs now."""
    found: dict[int, list[tuple[str, int]]] = {}
    for conn in _at_work(services):
        client = getattr(conn.receiver, "client", None)
        if client is not None and client.session is not None:
            found.setdefault(client.session.id, []).append((conn.host, conn.thread_id))
    return found


def waits_now(services: Services) -> dict[int, str]:
    """By session, for whose connections its statement waits now: `connection db1:3306`."""
    found: dict[int, dict[str, None]] = {}
    for pool in services.backends.every_pool:
        for waiter in pool.state.waiting:
            client = None if waiter.cancelled else waiter.asker
            if client is not None:
                found.setdefault(client.session.id, {})[f"connection {pool.host}"] = None
    return {id: ", ".join(names) for id, names in found.items()}


def hosts_seen(services: Services) -> dict[str, Seen]:
    """By host; the totals with those of the workers in whose place this one is."""
    now = monotonic()
    running: dict[str, list[float]] = {}
    for conn in _at_work(services):
        running.setdefault(conn.host, []).append(now - conn.sent)
    before = services.earlier_hosts
    return {
        host: add(_seen(load, load.recent(now), running.get(host, ())), Seen(*before.get(host, NOTHING)))
        for host, load in services.backends.loads.hosts.items()
    }


async def shards_seen(services: Services, *, all: bool = False) -> dict[str, Seen]:
    """By physical database, those that had something to do in the last seconds; with `all`, since the
    start. With pauses: there may be many.
    """
    now = monotonic()
    running: dict[int, list[float]] = {}
    for conn in _at_work(services):
        for load in conn.shards if conn.shard is None else (conn.shard,):
            running.setdefault(id(load), []).append(now - conn.sent)
    found: dict[str, Seen] = {}
    for number, (database, load) in enumerate(list(services.backends.loads.shards.items()), 1):
        if all or id(load) in running or not load.quiet:
            found[database.decode()] = _seen(load, load.recent(now), running.get(id(load), ()))
        if not number % _AT_ONCE:
            await asyncio.sleep(0)
    return found


# -- statements
# -----------------------------------------------------------------------------------------------------------


class Query(NamedTuple):
    """One kind of statement: its text without literals, and what was counted of it."""

    digest: str
    database: str
    plan: str
    use: Use

    def within(self, share: float) -> float:
        """The seconds within which that share of them was answered."""
        return quantile(self.use.buckets, share, self.use.longest, STATEMENT_BOUNDS)


def queries_seen(
    services: Services, wanted: Callable[[str], bool] | None = None, most: int = KEPT_DIGESTS
) -> list[tuple[Digest, list[Any]]]:
    """The kinds of statements that took most time, at most so many, each with the data of its `Use`: of those
    whose digest is `wanted`.
    """
    stats, kept = services.stats, services.serving.snapshot.rewriter.kept
    if wanted is None:
        used = stats.by_digest(kept, most)
    else:
        of_all = stats.by_digest(kept, len(stats.uses) + len(stats.digests))
        used = {digest: use for digest, use in of_all.items() if wanted(digest[0])}
    found = nlargest(most, used.items(), key=lambda pair: pair[1].seconds)
    return [(digest, use.data()) for digest, use in found]


def queries_together(parts: Iterable[Iterable[tuple[Sequence[str], list[Any]]]]) -> list[Query]:
    """Those of all workers, the costliest first."""
    found: dict[tuple[str, ...], Use] = {}
    for part in parts:
        for digest, data in part:
            found.setdefault(tuple(digest), Use()).add(Use.of(data))
    made = [Query(digest, database, plan, use) for (digest, database, plan), use in found.items()]
    return sorted(made, key=lambda one: -one.use.seconds)
