"""``python -m bench.growth``: what a statement costs as things grow, as plots.

    python -m bench.growth [--rounds 5] [--seconds 3] [--only SUBJECT] …
    python -m bench.figures             the plots again, of the figures kept

Each subject has lines (routes, or workloads) of points along one axis. A round measures every point once; the
rounds follow each other after one that warms up. Raw figures go to docs/plots/SUBJECT.json, beside the plots.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console

from bench import figures, history
from bench.plots import shown
from bench.results import MEASURES, Cell, Result, Spread
from bench.rounds import WARM_SECONDS, Bench, Way
from bench.stage import Stage, prepared
from bench.tools import BenchError
from bench.workloads import SHARDS, WORKLOADS, Route, Workload
from demo.programs import ServerError
from demo.proxy import LocalProxy

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False)

THREADS: Final = 16
LISTS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500)
CLIENTS: Final = (1, 4, 16, 64, 256, 1000)
FLEETS: Final = (64, 4096, 65_536)
SCATTERED: Final = {"pins": 64, "comments": 1000, "boards": 10_000, "users": 100_000}
"""Tables with so many equal rows. Filling them empties `pins`, so this subject is the last."""
HOST_CONNECTIONS: Final = 3000


@dataclass(frozen=True)
class Case:
    """A point of a line: where it lies, and what is run for it."""

    line: str
    x: float
    workload: Workload
    way: Way
    more: Mapping[str, object] = field(default_factory=dict)
    """Options for sysbench."""


@dataclass(frozen=True)
class Subject:
    """What grows. `cases` sets up what is needed and gives the points; `log`: measures drawn by logarithm."""

    name: str
    title: str
    x_label: str
    cases: Callable[[Stage, ExitStack], list[Case]]
    threads: int | None = THREADS
    """Clients at once; None where they are what grows."""
    log: tuple[str, ...] = ()


@contextmanager
def proxy_of(stage: Stage, name: str, *, shards: int = SHARDS, workers: int = 1) -> Iterator[Way]:
    """A proxy of its own before the stage's servers: with so many shards, each in a range of its own."""
    folder = stage.cluster.folder / name
    folder.mkdir()
    proxy = LocalProxy(folder, port=0, page=False)
    (folder / "topology.json").write_text(json.dumps(topology(stage, shards)))
    settings: dict[str, Any] = json.loads((stage.cluster.folder / "shardgate.yaml").read_text())
    settings |= {
        "listen": f"{proxy.host}:{proxy.port}",
        "workers": workers,
        "schema": str(stage.cluster.folder / "schema.yaml"),
        "topology": {"file": str(folder / "topology.json")},
        "limits": {**settings.get("limits", {}), "scatter_rows": 0, "scatter_bytes": 0},
    }
    settings["backends"] |= {"queue_length": 5000, "queue_timeout": "60s"}
    settings["status"] = {"listen": None}
    proxy.configure(settings)
    proxy.start()
    try:
        target = replace(stage.cluster.proxy, addresses=((proxy.host, proxy.port),))
        yield Way(target, proxy.pid)
    finally:
        proxy.stop()
        proxy.release()


def topology(stage: Stage, shards: int) -> dict[str, Any]:
    """The cluster's topology with so many shards; those that it does not have are closed, and never asked."""
    document: dict[str, Any] = json.loads((stage.cluster.folder / "topology.json").read_text())
    if shards > SHARDS:
        hosts = [one.address for one in stage.cluster.servers]
        document["keyspaces"]["main"]["ranges"] += [
            {"range": [shard, shard], "master": hosts[shard % len(hosts)], "open": False}
            for shard in range(SHARDS, shards)
        ]
    return document


def _fleets(stage: Stage, stack: ExitStack) -> list[Case]:
    ways = {count: stack.enter_context(proxy_of(stage, f"of-{count}", shards=count)) for count in FLEETS}
    names = {"point": "point", "prepared": "prepared", "ids": "50 IDs"}
    return [
        Case(title, count, WORKLOADS[name], way)
        for name, title in names.items()
        for count, way in ways.items()
    ]


def _lists(stage: Stage, stack: ExitStack) -> list[Case]:
    return [
        Case(route.value, count, WORKLOADS["ids"], way, {"ids": count})
        for count in LISTS
        for route, way in stage.ways.items()
    ]


def _clients(name: str) -> Callable[[Stage, ExitStack], list[Case]]:
    def cases(stage: Stage, stack: ExitStack) -> list[Case]:
        for server in stage.cluster.servers:
            with server.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"SET GLOBAL max_connections = {HOST_CONNECTIONS}")
        ways = {route.value: way for route, way in stage.ways.items() if route is not Route.SHARDGATE}
        for workers, title in ((1, "shardgate"), (2, "shardgate, 2 workers")):
            ways[title] = stack.enter_context(proxy_of(stage, f"{name}-{workers}", workers=workers))
        return [
            Case(title, count, WORKLOADS[name], way, {"threads": count})
            for count in CLIENTS
            for title, way in ways.items()
        ]

    return cases


def _rows(stage: Stage, stack: ExitStack) -> list[Case]:
    for server in stage.cluster.servers:
        with server.connect() as connection, connection.cursor() as cursor:
            for shard in server.shards:
                for table, rows in SCATTERED.items():
                    if table != "users":  # they have theirs
                        cursor.execute(f"TRUNCATE db{shard:05d}.{table}")
                        cursor.execute(_copy(shard, table, rows))
    way = stack.enter_context(proxy_of(stage, "rows"))
    ways = {**stage.ways, Route.SHARDGATE: way}
    return [
        Case(route.value, rows, WORKLOADS["scatter"], one, {"table": table, "scatter": rows})
        for table, rows in SCATTERED.items()
        for route, one in ways.items()
    ]


def _copy(shard: int, table: str, rows: int) -> str:
    """The statement that gives a shard's table its part of so many rows."""
    each = rows // SHARDS + (shard < rows % SHARDS)
    return (
        f"INSERT INTO db{shard:05d}.{table} (local_id, data)"
        f" SELECT local_id, data FROM db{shard:05d}.users WHERE local_id <= {each}"
    )


SUBJECTS: Final = {
    one.name: one
    for one in (
        Subject(
            "shards",
            "Shards of the topology",
            "shards, each a range of its own",
            _fleets,
            log=("cpu_us", "p50_ms"),
        ),
        Subject("ids", "IDs in a list", "IDs in the list", _lists, log=("cpu_us", "p50_ms")),
        Subject("clients", "Clients, point SELECT", "clients at once", _clients("point"), None, ("p50_ms",)),
        Subject(
            "prepared",
            "Clients, prepared point SELECT",
            "clients at once",
            _clients("prepared"),
            None,
            ("p50_ms",),
        ),
        Subject("rows", "Rows of a scatter", "rows, of 64 shards", _rows, 2, ("cpu_us", "p50_ms")),
    )
}


class Figures:
    """What was measured of a subject, as the document that is kept."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.cells: dict[tuple[str, float], list[Cell]] = {}
        self.failures: dict[tuple[str, float], str] = {}

    def document(self, *, loads: Sequence[float], **about: Any) -> dict[str, Any]:
        """`about`: date, commit, versions, machine and options."""
        lines: dict[str, list[dict[str, Any]]] = {}
        for (line, x), cells in sorted(self.cells.items(), key=lambda one: one[0][1]):
            spreads = {name: Spread.of(measure(cell) for cell in cells) for name, measure in MEASURES.items()}
            point = {name: one.as_list() for name, one in spreads.items() if one}
            lines.setdefault(line, []).append({"x": x, **point})
        order = dict.fromkeys(line for line, _ in self.cells)
        return {
            "subject": self.subject.name,
            "title": self.subject.title,
            "x_label": self.subject.x_label,
            "log": list(self.subject.log),
            **about,
            "load": [min(loads), max(loads)],
            "lines": {line: lines[line] for line in order},
            "ratios": {name: points for name in figures.RATIOS if (points := self._ratios(name))},
            "failures": [f"{line}, {x:g}: {text}" for (line, x), text in self.failures.items()],
        }

    def _ratios(self, name: str) -> list[dict[str, Any]]:
        """shardgate's measure over that of a neighbour in time, round by round."""
        found = []
        for x in sorted({x for _, x in self.cells}):
            by_route = {
                Route(line): cells for (line, at), cells in self.cells.items() if at == x and _named(line)
            }
            result = Result(WORKLOADS["point"], 0, by_route)
            ratio = result.cpu_ratio if name == "cpu_to_haproxy" else result.latency_ratio
            if ratio:
                found.append({"x": x, "ratio": ratio.as_list()})
        return found


def _named(line: str) -> bool:
    return line in {one.value for one in Route}


def measure(bench: Bench, subject: Subject, cases: Sequence[Case], loads: list[float]) -> Figures:
    """All rounds. A point that fails is left out from then on, and it is said why."""
    found = Figures(subject)
    bench = replace(bench, threads=subject.threads or 1)
    for round in range(bench.rounds + 1):
        for number, case in enumerate(cases, 1):
            place = (case.line, case.x)
            if place in found.failures:
                continue
            where = f"{subject.name}: {case.line}, {shown(case.x)}"
            with console.status(f"{where}: round {round} of {bench.rounds}, {number} of {len(cases)}"):
                try:
                    seconds = bench.seconds if round else WARM_SECONDS
                    cell = bench.run(case.workload, case.way, round, seconds, case.more)
                except (BenchError, OSError) as error:
                    found.failures[place] = str(error)
                    console.print(f"{where} failed: {error}", markup=False)
                    continue
            if round:
                found.cells.setdefault(place, []).append(cell)
            loads.append(load_now())
    return found


def load_now() -> float:
    """The machine's load over the last minute, to a tenth."""
    return float(f"{os.getloadavg()[0]:.1f}")


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, each with every point once.")] = 5,
    seconds: Annotated[int, typer.Option(min=1, help="Length of one run.")] = 3,
    only: Annotated[
        list[str] | None, typer.Option(help=f"May be repeated: {', '.join(SUBJECTS)}.", metavar="SUBJECT")
    ] = None,
    mysqld: Annotated[
        Path | None, typer.Option(help="The database server's program, or its folder.", metavar="PATH")
    ] = None,
    folder: Annotated[
        Path, typer.Option(help="Where figures and plots go.", metavar="FOLDER")
    ] = figures.PLOTS,
) -> None:
    """Measure statements by number of shards, IDs, clients, workers and rows, and draw plots."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    failed = False
    try:
        unknown = set(only or ()) - set(SUBJECTS)
        if unknown:
            raise BenchError(f"there is no subject {unknown.pop()!r}; there are {', '.join(SUBJECTS)}")
        chosen = [one for one in SUBJECTS.values() if not only or one.name in only]
        before = os.getloadavg()[0]
        routes = (Route.DIRECT, Route.HAPROXY, Route.SHARDGATE)
        folder.mkdir(parents=True, exist_ok=True)
        with prepared(console, mysqld=mysqld, workers=1, routes=routes) as stage:
            bench = Bench(stage.cluster, stage.ways, stage.program, stage.sizes, THREADS, seconds, rounds)
            for subject in chosen:
                with ExitStack() as stack:
                    loads = [load_now()]
                    found = measure(bench, subject, subject.cases(stage, stack), loads)
                options = {"rounds": rounds, "seconds": seconds, "threads": subject.threads}
                versions = {name: one for name, one in stage.versions.items() if one}
                document = found.document(
                    loads=loads,
                    date=datetime.now(UTC).isoformat(timespec="seconds"),
                    commit=history.commit(),
                    versions={**versions, **history.packages()},
                    machine=history.machine() | {"load_before": round(before, 2)},
                    options={name: one for name, one in options.items() if one},
                )
                failed = failed or bool(found.failures)
                if found.cells:
                    figures.save(document, folder)
                    console.print(f"{subject.name}: {len(found.cells)} points")
        for path in figures.draw(folder):
            console.print(os.path.relpath(path))
    except (BenchError, ServerError) as error:
        print(f"growth: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        print("growth: stopped", file=sys.stderr)
        raise typer.Exit(130) from None
    raise typer.Exit(1 if failed else 0)


if __name__ == "__main__":
    app()
