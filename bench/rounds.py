"""The routes in turn, round after round: what else happens on the machine then hits all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench import rows, sysbench
from bench.cluster import Cluster
from bench.results import Cell, Result
from bench.sysbench import Target
from bench.tools import BenchError
from bench.usage import Usage, family, usage
from bench.workloads import Route, Sizes, Workload

WARM_SECONDS = 1

Progress = Callable[[Workload, Route, int], None]
"""Told before each run; round 0 warms up."""


@dataclass(frozen=True)
class Way:
    """A route as it was set up: where it begins, and the proxy's first process, if it has a proxy."""

    target: Target
    pid: int | None = None


@dataclass(frozen=True)
class Bench:
    """A cluster with rows, the ways to it, and how long to measure."""

    cluster: Cluster
    ways: Mapping[Route, Way]
    program: str
    sizes: Sizes
    threads: int
    seconds: int
    rounds: int

    def measure(self, workload: Workload, progress: Progress) -> Result:
        """All rounds of a workload. A route that fails is left out from then on, and the result says why."""
        result = Result(workload, workload.threads(self.threads))
        for number in range(self.rounds + 1):
            for route, way in self.ways.items():
                if route in result.failures or not workload.takes(route):
                    continue
                progress(workload, route, number)
                try:
                    seconds = self.seconds if number else WARM_SECONDS
                    cell = self.run(workload, way, number, seconds)
                except (BenchError, OSError) as error:
                    result.failures[route] = str(error)
                    continue
                if number:
                    result.cells.setdefault(route, []).append(cell)
        return result

    def run(
        self,
        workload: Workload,
        way: Way,
        number: int,
        seconds: int,
        more: Mapping[str, object] | None = None,
    ) -> Cell:
        """One run, with `more` options for sysbench.

        BenchError when the client failed, OSError when a process that is watched has ended.
        """
        watched = _Watched(way.pid, self.cluster)
        argv = self.command(workload, way, seconds, more)
        try:
            output = sysbench.run(argv, seconds, watched.start, watched.end)
        finally:
            if workload.writes:
                rows.empty(self.cluster, workload.writes)
        return Cell.of(number, output, watched.proxy, watched.servers)

    def command(
        self, workload: Workload, way: Way, seconds: int, more: Mapping[str, object] | None = None
    ) -> list[str]:
        """What sysbench is called with."""
        return sysbench.command(
            self.program,
            workload,
            way.target,
            shards=self.cluster.shards,
            sizes=self.sizes,
            threads=workload.threads(self.threads),
            seconds=seconds,
            more=more,
        )


class _Watched:
    """CPU time of the proxy, and of the servers, between start and end of a run."""

    def __init__(self, proxy: int | None, cluster: Cluster) -> None:
        self._proxy = () if proxy is None else family(proxy)
        self._servers = tuple(one.pid for one in cluster.servers)
        self._before = (Usage(), Usage())
        self.proxy: Usage | None = None
        self.servers = Usage()

    def start(self) -> None:
        self._before = usage(self._proxy), usage(self._servers)

    def end(self) -> None:
        self.proxy = usage(self._proxy).since(self._before[0]) if self._proxy else None
        self.servers = usage(self._servers).since(self._before[1])
