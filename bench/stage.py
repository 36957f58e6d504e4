"""What a benchmark runs on: the cluster with its rows, and every way to them that can be had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pymysql
from rich.console import Console

from bench import cluster as clusters
from bench import history, proxies, rows
from bench.cluster import Cluster
from bench.rounds import Way
from bench.tools import BenchError, find_tool
from bench.workloads import Route, Sizes
from demo.programs import find_program

SYSBENCH_MISSING = (
    "sysbench, which is the client, is missing: install it (Debian: apt-get install sysbench)."
    " Without it nothing can be measured."
)
HAPROXY_MISSING = (
    "HAProxy is missing, so nothing is compared with it: install it (Debian: apt-get install haproxy;"
    " its service need not run)"
)


@dataclass
class Stage:
    """`program` is sysbench's path; `versions` of all programs; `missing` says why proxies did not start."""

    cluster: Cluster
    sizes: Sizes
    program: str
    ways: dict[Route, Way] = field(default_factory=dict)
    versions: dict[str, str | None] = field(default_factory=dict)
    missing: dict[Route, str] = field(default_factory=dict)


def find_proxies(given: Mapping[Route, Path | None], routes: Sequence[Route]) -> dict[Route, str]:
    """The paths of the proxies for `routes` that are here. BenchError when one given by path is not."""
    found = {one.route: one.find(given.get(one.route)) for one in proxies.PROGRAMS if one.route in routes}
    return {route: path for route, path in found.items() if path}


@contextmanager
def prepared(
    console: Console,
    *,
    mysqld: Path | None,
    workers: int,
    routes: Sequence[Route] = tuple(Route),
    given: Mapping[Route, Path | None] | None = None,
) -> Iterator[Stage]:
    """Everything up and filled, until the end. `workers` of shardgate, and threads of the other proxies.

    A proxy that is here and does not start is told, and left out.
    """
    program = find_tool("sysbench")
    if program is None:
        raise BenchError(SYSBENCH_MISSING)
    paths = find_proxies(given or {}, routes)
    server = find_program(mysqld)
    with ExitStack() as stack:
        with console.status(f"starting 2 × {server.title} and shardgate"):
            cluster = stack.enter_context(clusters.running(server.path, workers))
        with console.status("making the rows"):
            sizes = Sizes()
            rows.load(cluster, sizes)
        stage = Stage(cluster, sizes, program)
        stage.versions = {"server": server.title, "sysbench": history.version_of(program, "--version")}
        if Route.DIRECT in routes:
            stage.ways[Route.DIRECT] = Way(cluster.direct())
        if Route.HAPROXY in routes and Route.HAPROXY not in paths:
            console.print(f"[yellow]{HAPROXY_MISSING}[/]")
        for one in proxies.PROGRAMS:
            if one.route in paths:
                _add(console, stack, stage, one, paths[one.route], workers)
        if Route.SHARDGATE in routes:
            stage.ways[Route.SHARDGATE] = Way(cluster.proxy, cluster.proxy_pid)
        console.print("; ".join(one for one in stage.versions.values() if one), soft_wrap=True)
        yield stage


def _add(
    console: Console, stack: ExitStack, stage: Stage, one: proxies.Program, path: str, threads: int
) -> None:
    try:
        stage.ways[one.route] = stack.enter_context(proxies.running(one, path, stage.cluster, threads))
    except (BenchError, OSError, pymysql.MySQLError) as error:
        stage.missing[one.route] = str(error)
        console.print(f"[yellow]without {one.route.value}:[/] ", end="")
        console.print(str(error), markup=False)
        return
    said = history.version_of(path, one.version) or ""
    stage.versions[one.name] = (
        said if one.route.value.lower() in said.lower() else f"{one.route.value} {said}".strip()
    )
