"""Counters of one worker process, as plain integers: the data path adds, the metrics page reads.

prometheus-client's own counters take a lock each time; these are read by a collector (`status.metrics`) when
somebody asks.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Collection

from rewriter.plan import Plan

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


class Use:
    """How often one plan was run. `seconds` in all, `longest` of one statement."""

    __slots__ = ("count", "errors", "longest", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.errors = 0
        self.seconds = 0.0
        self.longest = 0.0

    def add(self, other: Use) -> None:
        """Count what `other` has counted, too."""
        self.count += other.count
        self.errors += other.errors
        self.seconds += other.seconds
        self.longest = max(self.longest, other.longest)


class Stats:
    """What happened since the start of the process."""

    __slots__ = (
        "kinds",
        "recent_changes",
        "refusals",
        "schema_changes",
        "schema_refused",
        "settings_refused",
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

    def observe(self, kind: str, outcome: str, seconds: float, plan: Plan | None = None) -> None:
        """A statement was answered."""
        if plan is not None:
            use = self.uses.get(plan)
            if use is None:
                use = self.uses[plan] = Use()
            use.count += 1
            use.seconds += seconds
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
        one.counts[bisect_left(BUCKETS, seconds)] += 1
        one.seconds += seconds

    def forget(self, kept: Collection[Plan]) -> None:
        """Of all plans but these, forget how often they were run."""
        self.uses = {plan: use for plan, use in self.uses.items() if plan in kept}

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
