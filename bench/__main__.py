"""``python -m bench``: the options, and the order of a run."""

from __future__ import annotations

import os
import signal
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.status import Status

from bench import history, profiling, report
from bench.results import Result, failed
from bench.rounds import Bench
from bench.stage import prepared
from bench.tools import BenchError, find_tool
from bench.workloads import WORKLOADS, Route, Workload
from demo.programs import ServerError

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False)
if not console.is_terminal:
    console.width = max(console.width, 110)
NAMES = ", ".join(WORKLOADS)
SPY_MISSING = "py-spy is missing: install it (.venv/bin/pip install py-spy)"


ProgramPath = Annotated[Path | None, typer.Option(metavar="PATH", help="Its program, else that on the PATH.")]


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, each with every route once.")] = 5,
    seconds: Annotated[int, typer.Option(min=1, help="Length of one run.")] = 5,
    threads: Annotated[
        list[int] | None, typer.Option(min=1, max=400, help="Clients at once, 16; may be repeated.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help=f"A workload; may be repeated: {NAMES}.", metavar="WORKLOAD")
    ] = None,
    mysqld: Annotated[
        Path | None, typer.Option(help="The database server's program, or its folder.", metavar="PATH")
    ] = None,
    haproxy: ProgramPath = None,
    router: ProgramPath = None,
    proxysql: ProgramPath = None,
    kingshard: ProgramPath = None,
    workers: Annotated[int, typer.Option(min=1, help="shardgate's processes, and the others' threads.")] = 1,
    no_history: Annotated[bool, typer.Option("--no-history", help="Add nothing to the history.")] = False,
    profile: Annotated[
        str | None, typer.Option(help="Profile shardgate under one workload instead.", metavar="WORKLOAD")
    ] = None,
    native: Annotated[bool, typer.Option("--native", help="Profile compiled code too.")] = False,
    output: Annotated[
        Path | None, typer.Option(help="Where the profile goes.", metavar="FILE", show_default=False)
    ] = None,
) -> None:
    """Measure statements direct, through other proxies and through shardgate, on a cluster of its own."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    given = {
        Route.HAPROXY: haproxy,
        Route.ROUTER: router,
        Route.PROXYSQL: proxysql,
        Route.KINGSHARD: kingshard,
    }
    try:
        load = os.getloadavg()[0]
        chosen = [_workload(name) for name in only or [one.name for one in WORKLOADS.values() if one.usual]]
        spied = _workload(profile) if profile else None
        spy = find_tool("py-spy")
        if spied and spy is None:
            raise BenchError(SPY_MISSING)
        routes = [Route.SHARDGATE] if spied else list(Route)
        with prepared(console, mysqld=mysqld, workers=workers, routes=routes, given=given) as stage:
            bench = Bench(stage.cluster, stage.ways, stage.program, stage.sizes, 16, seconds, rounds)
            if spied and spy:
                bench = replace(bench, threads=(threads or [16])[0])
                _profile(bench, spied, spy, output or Path("build", f"profile-{spied.name}.txt"), native)
                return
            results = {count: _measure(replace(bench, threads=count), chosen) for count in threads or [16]}
        for measured in results.values():
            console.print(report.ratio_table(measured))
        console.print(report.latency_table([one for measured in results.values() for one in measured]))
        if not no_history:
            now = datetime.now(UTC)
            for count, measured in results.items():
                options = {"rounds": rounds, "seconds": seconds, "threads": count, "workers": workers}
                history.append(
                    history.entry(measured, options=options, versions=stage.versions, load=load, now=now)
                )
            console.print(f"added to {os.path.relpath(history.FILE)}")
    except (BenchError, ServerError) as error:
        print(f"bench: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        print("bench: stopped", file=sys.stderr)
        raise typer.Exit(130) from None
    raise typer.Exit(1 if stage.missing or any(map(failed, results.values())) else 0)


def _workload(name: str) -> Workload:
    if name not in WORKLOADS:
        raise BenchError(f"there is no workload {name!r}; there are {NAMES}")
    return WORKLOADS[name]


def _measure(bench: Bench, workloads: list[Workload]) -> list[Result]:
    """Measure and print, one workload after another."""
    results = []
    for workload in workloads:
        with console.status("") as status:
            result = bench.measure(workload, lambda *where: _show(status, bench, *where))
        for table in report.workload_tables(result):
            console.print(table)
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
