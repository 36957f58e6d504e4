"""What the page's charts and its map show, and `shardgate top`: the last ten minutes, and the shards of now.

Each worker takes a sample every two seconds of the clock (`History`), so that those of all workers are of
the same moments. The one that has the page adds them up (`Live`), once for all who look, and at most once a
second.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypedDict

from proxy.engine.seen import Seen, add, hosts_seen, seen_of, shards_seen, together, usual
from proxy.load import quantile
from proxy.peers import of_all
from proxy.stats import BUCKETS

if TYPE_CHECKING:
    from config.topology import Keyspace, Topology
    from proxy.engine.services import Services
    from proxy.peers import Peers

STEP: Final = 2
"""Seconds between samples."""
KEPT: Final = 300
"""So many samples are kept: ten minutes."""
_LATE: Final = 1
"""So many samples are not given yet: another worker may be a moment late."""
_FRESH: Final = 1.0
"""Seconds that an answer is given again."""
PATIENCE: Final = 0.5
"""Seconds that a worker gets to answer: one that is busy for longer is left out, and what it has counted
before stays in the sums."""
CELLS: Final = 4096
"""So many cells a keyspace has on the map; of more shards several are one cell."""
_HOT: Final = 20

Sample = list[Any]
"""Number (of STEP seconds since 1970), clients, busy sessions, statements that wait, statements, errors,
their times by bucket, and by host statements, errors, seconds, waits, connections busy and idle, waiting."""

_HOST_COUNTS: Final = 7


class History:
    """The samples of one worker process."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._samples: deque[Sample] = deque(maxlen=KEPT)
        self._number = 0
        self._statements = 0
        self._errors = 0
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._hosts: dict[str, tuple[int, int, float, int]] = {}

    def tick(self, services: Services) -> None:
        """A few times a second."""
        number = int(self._now() // STEP)
        if number != self._number:
            first, self._number = not self._number, number
            sample = self._take(services)
            if not first:  # else what came since the start of the process
                self._samples.append(sample)

    def _take(self, services: Services) -> Sample:
        kinds = services.stats.kinds.values()
        statements, right = services.stats.total, sum(one.ok for one in kinds)
        buckets = [sum(counts) for counts in zip(*(one.counts for one in kinds), strict=True)] or [
            0 for _ in self._buckets
        ]
        errors = statements - right
        busy = sum(not client.ready for client in services.clients.sessions.values())
        sample = [
            self._number,
            len(services.clients.connections),
            busy,
            len(services.waiting_room),
            statements - self._statements,
            errors - self._errors,
            [now - then for now, then in zip(buckets, self._buckets, strict=True)],
            self._take_hosts(services),
        ]
        self._statements, self._errors, self._buckets = statements, errors, buckets
        return sample

    def _take_hosts(self, services: Services) -> dict[str, list[float]]:
        found: dict[str, list[float]] = {}
        for pool in services.backends.pools:
            load, state = pool.load, pool.state
            now = (load.count, load.errors, load.seconds, load.waits)
            then = self._hosts.get(pool.host, (0, 0, 0.0, 0))
            self._hosts[pool.host] = now
            sums = [round(a - b, 6) for a, b in zip(now, then, strict=True)]
            found[pool.host] = [*sums, len(state.busy), state.idle_count, state.waiting.of_clients]
        return found

    def after(self, number: int) -> list[Sample]:
        """The samples of later numbers."""
        return [sample for sample in self._samples if sample[0] > number]


def merged(samples: Iterable[Sample]) -> list[Sample]:
    """The samples of several workers, in order, one of each number."""
    found: dict[int, Sample] = {}
    for sample in samples:
        known = found.get(sample[0])
        if known is None:
            found[sample[0]] = [
                *sample[:6],
                list(sample[6]),
                {host: [*one] for host, one in sample[7].items()},
            ]
            continue
        for place in range(1, 6):
            known[place] += sample[place]
        known[6] = [a + b for a, b in zip(known[6], sample[6], strict=True)]
        for host, one in sample[7].items():
            mine = known[7].setdefault(host, [0] * _HOST_COUNTS)
            known[7][host] = [a + b for a, b in zip(mine, one, strict=True)]
    return [found[number] for number in sorted(found)]


class HostPoint(TypedDict):
    """A host in one sample: rates a second, `mean` in seconds, connections."""

    statements: float
    errors: float
    mean: float
    waits: float
    busy: int
    idle: int
    waiting: int


class Point(TypedDict):
    """One sample as a chart shows it: rates a second, times in seconds. `at`: seconds since 1970."""

    at: int
    clients: int
    busy: int
    waiting: int
    statements: float
    errors: float
    p50: float
    p95: float
    p99: float
    hosts: dict[str, HostPoint]


def point(sample: Sample) -> Point:
    """A merged sample for a chart."""
    number, clients, busy, waiting, statements, errors, buckets, hosts = sample
    return {
        "at": number * STEP,
        "clients": clients,
        "busy": busy,
        "waiting": waiting,
        "statements": statements / STEP,
        "errors": errors / STEP,
        "p50": quantile(buckets, 0.5, BUCKETS[-1], BUCKETS),
        "p95": quantile(buckets, 0.95, BUCKETS[-1], BUCKETS),
        "p99": quantile(buckets, 0.99, BUCKETS[-1], BUCKETS),
        "hosts": {
            host: {
                "statements": one[0] / STEP,
                "errors": one[1] / STEP,
                "mean": one[2] / one[0] if one[0] else 0.0,
                "waits": one[3] / STEP,
                "busy": one[4],
                "idle": one[5],
                "waiting": one[6],
            }
            for host, one in hosts.items()
        },
    }


class Load(TypedDict):
    """What a host, or a shard, has had to do in the last seconds; times in seconds. `state`: failing, slow or
    nothing. `busy`: statements at work at the same time, in the mean.
    """

    state: str
    per_second: float
    mean: float
    p95: float
    busy: float
    errors: int
    statements: int
    running: int
    oldest: float


def load_of(seen: Seen, usually: float) -> Load:
    """For a page. `usually`: the mean of others."""
    return {
        "state": seen.state(usually),
        "per_second": round(seen.per_second, 2),
        "mean": round(seen.mean, 6),
        "p95": round(seen.within(0.95), 6),
        "busy": round(seen.busy, 4),
        "errors": seen.errors,
        "statements": seen.statements,
        "running": seen.running,
        "oldest": seen.oldest,
    }


class HotShard(Load):
    """A shard, and where it is."""

    keyspace: str
    shard: int
    host: str


class Cells(TypedDict):
    """A keyspace on the map: from the shard `first` on, `size` shards are one cell. `cells` has those that
    had something to do: number, state (0 nothing, 1 slow, 2 failing), busy, statements a second, mean and p95
    in seconds, errors, running.
    """

    name: str
    first: int
    count: int
    size: int
    cells: list[list[float]]


class LiveState(TypedDict):
    """All of it. `points` after the number that was asked for; `number`: that of the last one."""

    now: float
    number: int
    step: int
    points: list[Point]
    hosts: dict[str, Load]
    hot: list[HotShard]
    map: list[Cells]


_CODES: Final = {"": 0, "slow": 1, "failing": 2}


def cells_of(keyspace: Keyspace, seen: Mapping[int, Seen], usually: float) -> Cells:
    """The map of a keyspace, of whose shards `seen` is known."""
    shards = keyspace.all_shards
    first, count = (shards[0], shards[-1] - shards[0] + 1) if shards else (0, 0)
    size = -(-count // CELLS) or 1
    found: dict[int, list[float]] = {}
    sums: dict[int, Seen] = {}
    for shard, one in sorted(seen.items()):
        number = (shard - first) // size
        sums[number] = add(sums[number], one) if number in sums else one
        total, before = sums[number], found.get(number)
        found[number] = [
            number,
            max(_CODES[one.state(usually)], before[1] if before else 0),
            round(total.busy, 4),
            round(total.per_second, 2),
            round(total.mean, 6),
            round(total.within(0.95), 6),
            total.errors,
            total.running,
        ]
    return {
        "name": keyspace.name,
        "first": first,
        "count": count,
        "size": size,
        "cells": list(found.values()),
    }


def hot_of(topology: Topology, seen: dict[str, Seen], usually: dict[str, float]) -> list[HotShard]:
    """The shards that fail, that are slow, and that have most work."""
    found: list[tuple[tuple[object, ...], HotShard]] = []
    for database, one in seen.items():
        keyspace, shard = topology.physical(database) or (None, None)
        if keyspace is None or shard is None:
            continue
        placed = keyspace.range_of(shard)
        usual_mean = usually[keyspace.name]
        host = placed.master if placed is not None else ""
        key = (not one.failing, not one.slow(usual_mean), -one.busy)
        hot: HotShard = {
            **load_of(one, usual_mean), "keyspace": keyspace.name, "shard": shard, "host": host
        }  # fmt: skip
        found.append((key, hot))
    found.sort(key=lambda pair: pair[0])
    return [hot for _, hot in found[:_HOT]]


async def own_part(services: Services | None, history: History, after: int) -> list[Any]:
    """What this worker has for `Live`."""
    if services is None:
        return [[], {}, {}]
    return [history.after(after), hosts_seen(services), await shards_seen(services)]


class Live:
    """What the page's process adds up."""

    def __init__(
        self,
        services: Callable[[], Services | None],
        history: History,
        peers: Peers | None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._services = services
        self._history = history
        self._peers = peers
        self._now = now
        self._points: deque[Point] = deque(maxlen=KEPT)
        self._number = 0
        self._made = 0.0
        self._lock = asyncio.Lock()
        self._state: LiveState | None = None

    async def state(self, after: int) -> LiveState:
        """Of now, or of a moment ago, with the points after that time (seconds since 1970)."""
        async with self._lock:
            if self._state is None or not 0 <= self._now() - self._made < _FRESH:
                self._state = await self._make()
                self._made = self._now()
        points = [one for one in self._points if one["at"] > after]
        return {**self._state, "points": points}

    async def _make(self) -> LiveState:
        services = self._services()
        own = await own_part(services, self._history, self._number)
        parts = await of_all(self._peers, "live", own, patience=PATIENCE, after=self._number)
        ready = int(self._now() // STEP) - _LATE
        for sample in merged(sample for part in parts for sample in part[0]):
            if self._number < sample[0] <= ready:
                self._points.append(point(sample))
                self._number = sample[0]
        hosts = together([part[1] for part in parts])
        seen = together([part[2] for part in parts])
        usually: dict[str, float] = {}
        cells: list[Cells] = []
        hot: list[HotShard] = []
        if services is not None:
            topology = services.serving.topology
            by_shard = await seen_of(topology, seen)
            for keyspace in topology.keyspaces.values():
                mine = by_shard[keyspace.name]
                usually[keyspace.name] = usual(mine.values())
                if keyspace.sharded:
                    cells.append(cells_of(keyspace, mine, usually[keyspace.name]))
                await asyncio.sleep(0)
            hot = hot_of(topology, seen, usually)
        across = usual(hosts.values())
        return {
            "now": self._now(),
            "number": self._number * STEP,
            "step": STEP,
            "points": [],
            "hosts": {host: load_of(one, across) for host, one in hosts.items()},
            "hot": hot,
            "map": cells,
        }
