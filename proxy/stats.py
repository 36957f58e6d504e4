"""Counters of one worker process, as plain integers: the data path adds, the metrics page reads.

prometheus-client's own counters take a lock each time; these are read by a collector (`status.metrics`) when
somebody asks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Sequence
from heapq import nlargest
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from rewriter.advice.samples import dear
from rewriter.env import database_of
from rewriter.fingerprint import digest_of
from rewriter.plan import Plan

from .load import Load

#: Upper bounds of the latency histogram's buckets, in seconds.
BUCKETS = (
    0.0001,
    0.00025,
    0.0005,
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
)


class KindStats:
    """The statements of one kind of plan: how many, with which outcome, and how long they took."""

    __slots__ = ("counts", "ok", "others", "seconds")

    def __init__(self) -> None:
        self.ok = 0
        self.others: dict[str, int] = {}  # outcome other than "ok": count
        self.counts = [0] * (len(BUCKETS) + 1)  # statements by latency bucket, the last one without bound
        self.seconds = 0.0  # in all

    @property
    def total(self) -> int:
        return self.ok + sum(self.others.values())


class Visit(NamedTuple):
    """A host that a statement has been on, and the shards there."""

    host: str
    shards: Sequence[Load]


Digest = tuple[str, str, str]
"""A statement without its values, the current database ("" for none), and the kind of its plan."""

Kept = Callable[[Container[Plan]], Iterable[tuple[Plan, str, str]]]
"""Gives the digest and the database of plans, as far as they are kept; see `Rewriter.kept`."""

Shape = tuple[bytes, bytes]
"""A statement's fingerprint, and the key of the settings that it was read with."""

LONGEST_SHAPE: Final = 1 << 14
"""Bytes of a fingerprint that is kept for advice."""

KEPT_DIGESTS: Final = 1000
"""So many digests are kept whose plans are not: those that took most time."""


class Use:
    """How often one plan was run. `seconds` in all, `longest` of one statement, `buckets`: statements by
    their time (`BUCKETS`). `rows` given or changed, `shards` that it has been on, each time counted,
    `hosts`: how often it has been on each.
    """

    __slots__ = ("buckets", "count", "errors", "hosts", "longest", "rows", "seconds", "shards")

    def __init__(self) -> None:
        self.count = 0
        self.errors = 0
        self.seconds = 0.0
        self.longest = 0.0
        self.rows = 0
        self.shards = 0
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.hosts: dict[str, int] = {}

    def visited(self, visits: Iterable[Visit]) -> None:
        """A run of it has been on several hosts or shards."""
        for host, loads in visits:
            self.hosts[host] = self.hosts.get(host, 0) + 1
            self.shards += len(loads)

    def data(self) -> list[Any]:
        """All of it as JSON has it."""
        return [
            self.count,
            self.errors,
            round(self.seconds, 6),
            round(self.longest, 6),
            self.rows,
            self.shards,
            self.buckets,
            self.hosts,
        ]

    @classmethod
    def of(cls, data: list[Any]) -> Use:
        """What gave this `data`."""
        use = cls()
        use.count, use.errors, use.seconds, use.longest, use.rows, use.shards, use.buckets, use.hosts = data
        return use

    def add(self, other: Use) -> None:
        """Count what `other` has counted, too."""
        self.count += other.count
        self.errors += other.errors
        self.seconds += other.seconds
        self.longest = max(self.longest, other.longest)
        self.rows += other.rows
        self.shards += other.shards
        self.buckets = [a + b for a, b in zip(self.buckets, other.buckets, strict=True)]
        for host, count in other.hosts.items():
            self.hosts[host] = self.hosts.get(host, 0) + count


class Stats:
    """What happened since the start of the process."""

    __slots__ = (
        "digests",
        "kinds",
        "names",
        "recent_changes",
        "refusals",
        "schema_changes",
        "schema_refused",
        "settings_refused",
        "shapes",
        "started",
        "started_connections",
        "topology_changes",
        "topology_refused",
        "uses",
        "workers_replaced",
    )

    def __init__(self) -> None:
        self.kinds: dict[str, KindStats] = {}
        self.uses: dict[Plan, Use] = {}  # of plans that are kept, and of some that were; see `forget`
        #: Of those plans that the cache has dropped meanwhile; prepared statements may run them on.
        self.names: WeakKeyDictionary[Plan, Shape] = WeakKeyDictionary()
        self.digests: dict[Digest, Use] = {}  # of plans that are kept no more
        self.shapes: dict[Digest, Shape] = {}  # of those digests that may need advice
        self.refusals: dict[str, int] = {}  # connections refused, by error
        self.started = time.time()
        self.started_connections = 0
        self.recent_changes: list[tuple[float, str]] = []  # of topology, schema and settings
        self.topology_changes = 0
        self.topology_refused = 0
        self.schema_changes = 0
        self.schema_refused = 0
        self.settings_refused = 0
        self.workers_replaced = 0  # of the whole proxy, when this one began

    @property
    def uptime(self) -> float:
        """Seconds since the start."""
        return time.time() - self.started

    def remember(self, text: str) -> None:
        """A change of topology, schema or settings, or one that was refused."""
        self.recent_changes = [*self.recent_changes[-19:], (time.time(), text)]

    def observe(self, kind: str, outcome: str, seconds: float, plan: Plan | None = None) -> Use | None:
        """A statement was answered. What is counted of its plan, if it has one."""
        use: Use | None = None
        number = 0
        for bound in BUCKETS:  # most are quick
            if seconds <= bound:
                break
            number += 1
        if plan is not None:
            use = self.uses.get(plan)
            if use is None:
                use = self.uses[plan] = Use()
            use.count += 1
            use.seconds += seconds
            use.buckets[number] += 1
            if seconds > use.longest:
                use.longest = seconds
            if outcome != "ok":
                use.errors += 1
        one = self.kinds.get(kind)
        if one is None:
            one = self.kinds[kind] = KindStats()
        if outcome == "ok":
            one.ok += 1
        else:
            one.others[outcome] = one.others.get(outcome, 0) + 1
        one.counts[number] += 1
        one.seconds += seconds
        return use

    def left(self, plans: Iterable[tuple[Shape, Plan]]) -> None:
        """The cache has dropped these: what is counted of them goes by their names now."""
        uses, names = self.uses, self.names
        for shape, plan in plans:
            if plan in uses:
                names[plan] = shape

    def forget(self, kept: Iterable[tuple[Plan, bytes, bytes]]) -> None:
        """There are too many: of plans that are not among these, what was counted is kept by their digests,
        of those that took most time.
        """
        current = {plan for plan, _, _ in kept}
        uses = self.uses
        self.uses = {plan: use for plan, use in uses.items() if plan in current}
        left = ((use, plan) for plan, use in uses.items() if plan not in current and plan in self.names)
        for use, plan in nlargest(KEPT_DIGESTS, left, key=lambda pair: pair[0].seconds):
            self._keep(plan, self.names[plan], use)
        self._trim()

    def retire(self, kept: Iterable[tuple[Plan, bytes, bytes]]) -> None:
        """Another topology or schema is in use, and with it other plans: what was counted of the statements
        that took most time stays. `kept` are the plans of before.
        """
        costliest = self._costliest(KEPT_DIGESTS)
        for plan, fingerprint, key in kept:
            if plan in costliest:
                costliest.discard(plan)
                self._keep(plan, (fingerprint, key), self.uses[plan])
        for plan in costliest:
            if plan in self.names:
                self._keep(plan, self.names[plan], self.uses[plan])
        self.uses = {}
        self._trim()

    def _keep(self, plan: Plan, shape: Shape, use: Use) -> None:
        digest = digest_of(shape[0]), database_of(shape[1]), plan.kind
        self.digests.setdefault(digest, Use()).add(use)
        if len(shape[0]) <= LONGEST_SHAPE and dear(plan):
            self.shapes[digest] = shape

    def _trim(self) -> None:
        if len(self.digests) > 2 * KEPT_DIGESTS:
            most = nlargest(KEPT_DIGESTS, self.digests.items(), key=lambda pair: pair[1].seconds)
            self.digests = dict(most)
            self.shapes = {digest: shape for digest, shape in self.shapes.items() if digest in self.digests}

    def by_digest(self, kept: Kept, most: int, *, slowest: int = 0) -> dict[Digest, Use]:
        """What was counted of statements: of those that took `most` time, and the `slowest` in the mean.
        `kept` are the plans of now.
        """
        uses = self.uses
        wanted = self._costliest(most)
        wanted |= set(nlargest(slowest, uses, key=lambda plan: uses[plan].seconds / uses[plan].count))
        found: dict[Digest, Use] = {}
        for plan, text, database in kept(wanted):
            if plan in wanted:  # a plan may be kept twice
                wanted.discard(plan)
                found.setdefault((text, database, plan.kind), Use()).add(uses[plan])
        for plan in wanted:
            if plan in self.names:
                fingerprint, key = self.names[plan]
                digest = digest_of(fingerprint), database_of(key), plan.kind
                found.setdefault(digest, Use()).add(uses[plan])
        for digest in nlargest(most, self.digests, key=lambda one: self.digests[one].seconds):
            found.setdefault(digest, Use())
        for digest, use in found.items():
            if digest in self.digests:
                use.add(self.digests[digest])
        return found

    def _costliest(self, most: int) -> set[Plan]:
        uses = self.uses
        return set(nlargest(most, uses, key=lambda plan: uses[plan].seconds))

    def refused(self, error: str) -> None:
        """A connection was refused before it became a session."""
        self.refusals[error] = self.refusals.get(error, 0) + 1

    @property
    def statements(self) -> dict[tuple[str, str], int]:
        """Statements by (kind of plan, outcome)."""
        found: dict[tuple[str, str], int] = {}
        for kind, one in self.kinds.items():
            if one.ok:
                found[kind, "ok"] = one.ok
            for outcome, count in one.others.items():
                found[kind, outcome] = count
        return found

    @property
    def total(self) -> int:
        return sum(one.total for one in self.kinds.values())
