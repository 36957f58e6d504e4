"""Counters of one worker process, as plain integers: the data path adds, the metrics page reads.

prometheus-client's own counters take a lock each time; these are read by a collector (`status.metrics`) when
somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left

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


class Histogram:
    """How many statements took how long."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0


class Stats:
    """What happened since the start of the process."""

    __slots__ = (
        "histograms",
        "refusals",
        "started_connections",
        "statements",
        "topology_changes",
        "topology_refused",
    )

    def __init__(self) -> None:
        self.statements: dict[tuple[str, str], int] = {}  # (kind of plan, outcome): count
        self.histograms: dict[str, Histogram] = {}  # by kind of plan
        self.refusals: dict[str, int] = {}  # connections refused, by error
        self.started_connections = 0
        self.topology_changes = 0
        self.topology_refused = 0

    def observe(self, kind: str, outcome: str, seconds: float) -> None:
        """A statement was answered."""
        key = (kind, outcome)
        statements = self.statements
        statements[key] = statements.get(key, 0) + 1
        histogram = self.histograms.get(kind)
        if histogram is None:
            histogram = self.histograms[kind] = Histogram()
        histogram.counts[bisect_left(BUCKETS, seconds)] += 1
        histogram.total += seconds

    def refused(self, error: str) -> None:
        """A connection was refused before it became a session."""
        self.refusals[error] = self.refusals.get(error, 0) + 1

    @property
    def total(self) -> int:
        return sum(self.statements.values())
