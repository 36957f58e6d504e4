"""``python -m bench``: the options, and the order of a run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status

from bench import cluster as clusters
from bench import haproxy, history, profiling, report, rows
from bench.results import Result, failed
from bench.rounds import Bench, Way
from bench.tools import BenchError, find_tool
from bench.workloads import WORKLOADS, Route, Sizes, Workload
from demo.programs import ServerError, find_program

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False)
if not console.is_terminal:
    console.width = max(console.width, 110)
NAMES = ", ".join(WORKLOADS)
SYSBENCH_MISSING = (
    "sysbench, which is the client, is missing: install it (Debian: apt-get install sysbench)."
    " Without it nothing can be measured."
)
HAPROXY_MISSING = (
    "HAProxy is missing, so nothing is compared with it: install it (Debian: apt-get install haproxy;"
    " its service need not run)"
)
SPY_MISSING = "py-spy is missing: install it (.venv/bin/pip install py-spy)"


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, each with every route once.")] = 5,
    seconds: Annotated[int, typer.Option(min=1, help="Length of one run.")] = 5,
    threads: Annotated[int, typer.Option(min=1, max=400, help="Clients at once.")] = 16,
    only: Annotated[
        list[str] | None, typer.Option(help=f"A workload; may be repeated: {NAMES}.", metavar="WORKLOAD")
    ] = None,
    mysqld: Annotated[
        Path | None, typer.Option(help="The database server's program, or its folder.", metavar="PATH")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="shardgate's processes, and HAProxy's threads.")] = 1,
    no_history: Annotated[bool, typer.Option("--no-history", help="Add nothing to the history.")] = False,
    profile: Annotated[
        str | None, typer.Option(help="Profile shardgate under one workload instead.", metavar="WORKLOAD")
    ] = None,
    native: Annotated[bool, typer.Option("--native", help="Profile compiled code too.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Where the profile goes.", metavar="FILE", show_default=False)
    ] = None,
) -> None:
    """Measure statements direct, through HAProxy and through shardgate, on a cluster of its own."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        load = os.getloadavg()[0]
        chosen = [_workload(name) for name in only or [one.name for one in WORKLOADS.values() if one.usual]]
        routes = [Route.SHARDGATE] if profile else list(Route)
        spied = _workload(profile) if profile else None
        spy = find_tool("py-spy")
        if spied and spy is None:
            raise BenchError(SPY_MISSING)
        with _bench(mysqld, workers, threads, seconds, rounds, routes) as (bench, versions):
            if spied and spy:
                _profile(bench, spied, spy, output or Path("build", f"profile-{spied.name}.txt"), native)
                return
            results = _measure(bench, chosen)
        console.print(report.ratio_table(results))
        if not no_history:
            options = {"rounds": rounds, "seconds": seconds, "threads": threads, "workers": workers}
            now = datetime.now(UTC)
            line = history.entry(results, options=options, versions=versions, load=load, now=now)
            history.append(line)
            console.print(f"added to {os.path.relpath(history.FILE)}")
    except (BenchError, ServerError) as error:
        print(f"bench: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        print("bench: stopped", file=sys.stderr)
        raise typer.Exit(130) from None
    raise typer.Exit(1 if failed(results) else 0)


def _workload(name: str) -> Workload:
    if name not in WORKLOADS:
        raise BenchError(f"there is no workload {name!r}; there are {NAMES}")
    return WORKLOADS[name]


@contextmanager
def _bench(
    mysqld: Path | None, workers: int, threads: int, seconds: int, rounds: int, routes: list[Route]
) -> Iterator[tuple[Bench, dict[str, str | None]]]:
    """Everything up and filled, and the versions of what is used. All is stopped at the end."""
    program = find_tool("sysbench")
    if program is None:
        raise BenchError(SYSBENCH_MISSING)
    other = find_tool("haproxy") if Route.HAPROXY in routes else None
    server = find_program(mysqld)
    versions = {"server": server.title, "sysbench": history.first_line(program, "--version")}
    with ExitStack() as stack:
        with console.status(f"starting 2 × {server.title} and shardgate"):
            cluster = stack.enter_context(clusters.running(server.path, workers))
        with console.status("making the rows"):
            sizes = Sizes()
            rows.load(cluster, sizes)
        ways = {}
        if Route.DIRECT in routes:
            ways[Route.DIRECT] = Way(cluster.direct())
        if other:
            proxy = stack.enter_context(haproxy.running(other, cluster, workers))
            ways[Route.HAPROXY] = Way(cluster.direct(proxy.ports), proxy.pid)
            versions["haproxy"] = history.first_line(other, "-v")
        elif Route.HAPROXY in routes:
            console.print(f"[yellow]{HAPROXY_MISSING}[/]")
        ways[Route.SHARDGATE] = Way(cluster.proxy, cluster.proxy_pid)
        console.print("; ".join(one for one in versions.values() if one), soft_wrap=True)
        yield Bench(cluster, ways, program, sizes, threads, seconds, rounds), versions


def _measure(bench: Bench, workloads: list[Workload]) -> list[Result]:
    """Measure and print, one workload after another."""
    results = []
    for workload in workloads:
        with console.status("") as status:
            result = bench.measure(workload, lambda *where: _show(status, bench, *where))
        console.print(report.workload_table(result))
        for route, text in result.failures.items():
            console.print(f"[red]{route.value} failed:[/] ", end="")
            console.print(text, markup=False)
        results.append(result)
    return results


def _show(status: Status, bench: Bench, workload: Workload, route: Route, number: int) -> None:
    where = f"round {number} of {bench.rounds}" if number else "warming up"
    status.update(f"{workload.name}: {route.value}, {where}")


def _profile(bench: Bench, workload: Workload, spy: str, file: Path, native: bool) -> None:
    with console.status(f"{workload.name}: py-spy for {bench.seconds} s"):
        profile, used, said = profiling.record(bench, workload, spy, file, native=native)
    console.print(profile.table())
    assert said.summary is not None
    statements = max(1, said.summary["events"])
    user, system = (f"{report.number(part * 1e6 / statements)} µs" for part in (used.user, used.system))
    console.print(
        f"{workload.name}: CPU a statement {report.number(used.cpu * 1e6 / statements)} µs while watched"
        f" (user {user}, kernel {system}); samples by stack in {file}"
    )


if __name__ == "__main__":
    app()
