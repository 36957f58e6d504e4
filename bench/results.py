"""What was measured: cells, and what they come to over the rounds."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.sysbench import Output, percentile
from bench.usage import Usage
from bench.workloads import Route, Workload


@dataclass(frozen=True)
class Cell:
    """One run: a workload on a route, in one round. `proxy` is None on the direct route."""

    round: int
    events: int
    seconds: float
    p50: float
    p95: float
    p99: float
    """Milliseconds, as are the others."""
    proxy: Usage | None
    servers: Usage

    @classmethod
    def of(cls, round: int, output: Output, proxy: Usage | None, servers: Usage) -> Cell:
        """A cell from what sysbench has said; `output.summary` must be there."""
        assert output.summary is not None
        p50, p95, p99 = (percentile(output.histogram, share) for share in (0.5, 0.95, 0.99))
        events, seconds = output.summary["events"], output.summary["seconds"]
        return cls(round, events, seconds, p50, p95, p99, proxy, servers)

    @property
    def rate(self) -> float:
        """Statements a second."""
        return self.events / self.seconds

    def each(self, seconds: float) -> float:
        """CPU seconds of the whole run as microseconds a statement."""
        return seconds * 1e6 / self.events if self.events else 0.0

    @property
    def cpu(self) -> float | None:
        """Microseconds of the proxy's CPU time a statement."""
        return None if self.proxy is None else self.each(self.proxy.cpu)

    @property
    def user_share(self) -> float | None:
        """The part of the proxy's CPU time that is not the kernel's, 0 to 1."""
        if self.proxy is None or not self.proxy.user + self.proxy.system:
            return None
        return self.proxy.user / (self.proxy.user + self.proxy.system)


@dataclass(frozen=True)
class Spread:
    """The median of some numbers, the least and the greatest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """None when there are no values."""
        known = [one for one in values if one is not None]
        return cls(statistics.median(known), min(known), max(known)) if known else None

    def as_list(self) -> list[float]:
        """For the history: median, least, greatest; six significant digits."""
        return [float(f"{one:.6g}") for one in (self.median, self.low, self.high)]


MEASURES: dict[str, Callable[[Cell], float | None]] = {
    "cpu_us": lambda cell: cell.cpu,
    "user_share": lambda cell: cell.user_share,
    "servers_cpu_us": lambda cell: cell.each(cell.servers.cpu),
    "per_second": lambda cell: cell.rate,
    "p50_ms": lambda cell: cell.p50,
    "p95_ms": lambda cell: cell.p95,
    "p99_ms": lambda cell: cell.p99,
    "rss_mb": lambda cell: cell.proxy.rss / 1e6 if cell.proxy else None,
}


@dataclass
class Result:
    """All cells of one workload, by route, and why routes gave none."""

    workload: Workload
    threads: int
    cells: dict[Route, list[Cell]] = field(default_factory=dict)
    failures: dict[Route, str] = field(default_factory=dict)

    def spread(self, route: Route, measure: str) -> Spread | None:
        """A measure of `MEASURES` over the rounds."""
        return Spread.of(MEASURES[measure](cell) for cell in self.cells.get(route, ()))

    def ratio(self, measure: str, base: Route) -> Spread | None:
        """shardgate's measure over that of `base`, round by round: neighbours in time are compared."""
        before = {cell.round: MEASURES[measure](cell) for cell in self.cells.get(base, ())}
        pairs = (
            (MEASURES[measure](cell), before.get(cell.round)) for cell in self.cells.get(Route.SHARDGATE, ())
        )
        return Spread.of(here / there for here, there in pairs if here is not None and there)

    @property
    def cpu_ratio(self) -> Spread | None:
        """shardgate's CPU time a statement over HAProxy's."""
        return self.ratio("cpu_us", Route.HAPROXY)

    @property
    def latency_ratio(self) -> Spread | None:
        """shardgate's median latency over the direct one."""
        return self.ratio("p50_ms", Route.DIRECT)

    def as_dict(self) -> dict[str, Any]:
        """For the history; every measure is [median, least, greatest]."""
        routes: dict[str, Any] = {}
        for route in self.cells:
            spreads = {name: self.spread(route, name) for name in MEASURES}
            routes[route.value] = {name: one.as_list() for name, one in spreads.items() if one}
        ratios = {"cpu_to_haproxy": self.cpu_ratio, "p50_to_direct": self.latency_ratio}
        return {
            "threads": self.threads,
            "routes": routes,
            **{name: one.as_list() for name, one in ratios.items() if one},
            **(
                {"failures": {route.value: text for route, text in self.failures.items()}}
                if self.failures
                else {}
            ),
        }


def failed(results: Sequence[Result]) -> bool:
    """Whether a route could not be measured."""
    return any(one.failures for one in results)
