"""``python -m bench.tables [RUNS]``: the last runs of the history as Markdown, for docs/benchmarks.md."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.history import FILE
from bench.report import number
from bench.workloads import Route

Line = Mapping[str, Any]


def last_runs(count: int = 1, file: Path = FILE) -> list[Line]:
    """The lines of the last runs of `python -m bench`: of each, one for each number of clients."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    runs = [line for line in lines if "workloads" in line]
    dates = list(dict.fromkeys(line["date"] for line in runs))[-count:]
    return [line for line in runs if line["date"] in dates]


def markdown(run: Sequence[Line]) -> str:
    """How it was measured, CPU times and latencies."""
    return "\n".join((*_about(run), "", *_cpu(run), "", "### Latency by clients", "", *_latency(run)))


def _about(run: Sequence[Line]) -> Iterator[str]:
    for line in {line["date"]: line for line in run}.values():
        yield _about_one(line)


def _about_one(line: Line) -> str:
    machine, options = line["machine"], line["options"]
    known = [one for name, one in line["versions"].items() if name not in ("shardgate", "uvloop", "sysbench")]
    programs = ", ".join(" ".join(one.split(" - ")[0].split()) for one in known)
    names = ", ".join(f"`{name}`" for name in line["workloads"])
    return (
        f"{names}: {line['date'][:16].replace('T', ' ')} UTC, commit {line['commit']},"
        f" {machine['cores']} × {machine['cpu']}, kernel {machine['kernel']},"
        f" load before {machine['load_before']}; {programs}; Python {machine['python']},"
        f" uvloop {line['versions'].get('uvloop')}; {options['rounds']} rounds of {options['seconds']} s,"
        f" {options['workers']} worker. Median (least–greatest).\n"
    )


def _routes(run: Sequence[Line], measure: str) -> list[Route]:
    cells = [one["routes"] for line in run for one in line["workloads"].values()]
    return [route for route in Route if any(measure in one.get(route.value, {}) for one in cells)]


def _cell(spread: Sequence[float] | None) -> str:
    if spread is None:
        return ""
    median, low, high = (number(one) for one in spread)
    return median if low == high else f"{median} ({low}–{high})"


def _rows(run: Sequence[Line], routes: Sequence[Route], measure: str) -> Iterator[tuple[list[str], Line]]:
    """Workload, clients and a cell for each route; and the workload's part of the history."""
    for name in dict.fromkeys(name for line in run for name in line["workloads"]):
        for line in run:
            if name in line["workloads"]:
                found = line["workloads"][name]
                cells = [_cell(found["routes"].get(one.value, {}).get(measure)) for one in routes]
                yield [f"`{name}`", str(found["threads"]), *cells], found


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def _cpu(run: Sequence[Line]) -> Iterator[str]:
    routes = _routes(run, "cpu_us")
    head = ["proxy CPU µs", "clients", *(one.value for one in routes), "shardgate / HAProxy"]
    rows = _rows(run, routes, "cpu_us")
    return _table(head, ([*row, _cell(found.get("cpu_to_haproxy"))] for row, found in rows))


def _latency(run: Sequence[Line]) -> Iterator[str]:
    for measure, title in (("p50_ms", "median latency, ms"), ("p99_ms", "99 %, ms")):
        routes = _routes(run, measure)
        head = [title, "clients", *(one.value for one in routes)]
        yield from _table(head, (row for row, _ in _rows(run, routes, measure)))
        yield ""


if __name__ == "__main__":
    print(markdown(last_runs(int(sys.argv[1]) if sys.argv[1:] else 1)))
