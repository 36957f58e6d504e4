"""``python -m bench.calls [WORKLOAD…]``: calls of Python and of C functions a transaction in the proxy.

A figure that does not depend on the machine or its load. `sys.setprofile` counts in the worker's main thread,
while one client runs; the difference of a long and a short run is without log-in and planning.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench import sysbench
from bench.rounds import Bench
from bench.stage import prepared
from bench.tools import BenchError
from bench.usage import busiest, family
from bench.workloads import WORKLOADS, Route, Workload

SHORT, LONG = 50, 250
TOP = 40
SIGNAL = signal.SIGRTMIN + 3
STATEMENTS = {"oltp-rw": 20, "oltp-ro": 16, "oltp-wo": 6}
"""Statements of an event; one for other workloads."""

HOOK = """
import collections, json, os, signal, sys

counted = collections.Counter()

def count(frame, event, arg):
    if event == "call":
        code = frame.f_code
        file = code.co_filename.rpartition("/")[2]
        counted["call", f"{code.co_qualname} ({file}:{code.co_firstlineno})"] += 1
    elif event == "c_call":
        counted["c_call", getattr(arg, "__qualname__", None) or repr(arg)] += 1

def switch(number, frame):
    if sys.getprofile() is None:
        counted.clear()
        sys.setprofile(count)
    else:
        sys.setprofile(None)
        path = os.path.join(FOLDER, f"{os.getpid()}.json")
        with open(path + ".new", "w") as file:
            json.dump([[*key, value] for key, value in counted.items()], file)
        os.rename(path + ".new", path)

signal.signal(NUMBER, switch)
"""

Counted = Counter[tuple[str, str]]
"""How often a function was called, by ``call`` or ``c_call`` and its name."""


@contextmanager
def hooked() -> Iterator[Path]:
    """Python processes started within count their calls between two signals, and write them to the folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = f"FOLDER = {name!r}\nNUMBER = {int(SIGNAL)}\n{HOOK}"
        (folder / "sitecustomize.py").write_text(text)
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (name, before)))
        try:
            yield folder
        finally:
            if before is None:
                del os.environ["PYTHONPATH"]
            else:
                os.environ["PYTHONPATH"] = before


def count(bench: Bench, workload: Workload, folder: Path, events: int) -> Counted:
    """Count the calls in the busiest process of the proxy during a run of `events` events."""
    way = bench.ways[Route.SHARDGATE]
    assert way.pid is not None
    pid = busiest(family(way.pid))
    argv = bench.command(workload, way, 0, {"threads": 1, "events": events, "time": 0})

    def switch() -> None:
        os.kill(pid, SIGNAL)

    sysbench.run(argv, 60, switch, switch)
    file = folder / f"{pid}.json"
    deadline = time.monotonic() + 10
    while not file.exists():
        if time.monotonic() > deadline:
            raise BenchError("the proxy has not written its counts")
        time.sleep(0.05)
    found: Counted = Counter({(kind, name): number for kind, name, number in json.loads(file.read_text())})
    file.unlink()
    return found


def table(workload: Workload, calls: Counted, top: int) -> Table:
    """The functions that are called most, a statement."""
    statements = STATEMENTS.get(workload.like or workload.name, 1) * (LONG - SHORT)
    totals = {kind: sum(n for (of, _), n in calls.items() if of == kind) for kind in ("call", "c_call")}
    title = (
        f"{workload.name}: {totals['call'] / statements:.1f} calls of Python functions"
        f" and {totals['c_call'] / statements:.1f} of C functions a statement"
    )
    rows = Table(title=title, title_justify="left", title_style="bold")
    rows.add_column("a statement", justify="right")
    rows.add_column("function")
    for (kind, name), number in calls.most_common(top):
        rows.add_row(f"{number / statements:.2f}", name if kind == "call" else f"{name} (C)")
    return rows


def main(
    workloads: Annotated[list[str] | None, typer.Argument(help="Their names; all if none is given.")] = None,
    top: Annotated[int, typer.Option(help="So many functions are shown.")] = TOP,
) -> None:
    """Count the calls of workloads, which need sysbench."""
    console = Console(highlight=False)
    try:
        with hooked() as folder, prepared(console, mysqld=None, workers=1, routes=[Route.SHARDGATE]) as stage:
            bench = Bench(stage.cluster, stage.ways, stage.program, stage.sizes, 1, 0, 1)
            for name in workloads or list(WORKLOADS):
                count(bench, WORKLOADS[name], folder, SHORT)  # plans are made
                short, long = (count(bench, WORKLOADS[name], folder, events) for events in (SHORT, LONG))
                console.print(table(WORKLOADS[name], long - short, top))
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    typer.run(main)
