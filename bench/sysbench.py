"""The client: one run of sysbench, and what it says.

A run's CPU times are taken when sysbench says that all its threads have logged in, and when it is done:
log-ins are not part of what is measured.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.tools import BenchError
from bench.workloads import FOLDER, Sizes, Workload

STARTED = "Threads started!"
GRACE = 60.0
"""Seconds that a run may take beyond its time before it is killed."""

_BUCKET = re.compile(r"\s*(\d+\.\d+) \|[* ]*\s(\d+)\s*\Z")

Histogram = list[tuple[float, int]]
"""Latencies in milliseconds with how often each occurred, ascending."""


@dataclass(frozen=True)
class Target:
    """Where a run connects: one address a host, or the proxy's. `physical`: it names what the hosts hold."""

    addresses: tuple[tuple[str, int], ...]
    user: str
    password: str
    physical: bool
    database: str = ""


@dataclass
class Output:
    """What sysbench has said. `summary` is our own line (client.lua), None until it has come."""

    summary: dict[str, Any] | None = None
    histogram: Histogram = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def add(self, line: str) -> None:
        """Take one line of output."""
        if line.startswith("bench {"):
            self.summary = json.loads(line.removeprefix("bench "))
        elif found := _BUCKET.match(line):
            self.histogram.append((float(found[1]), int(found[2])))
        elif line.startswith(("FATAL:", "ALERT:", "PANIC:")):
            self.errors.append(line.partition(":")[2].strip())

    @property
    def failure(self) -> str:
        """The first error, without the place in the script."""
        first = next((one for one in self.errors if one), "sysbench said nothing")
        return re.sub(r"^`?thread_\w+' function failed: |^`event' function failed: ", "", first)


def percentile(histogram: Histogram, share: float) -> float:
    """The latency that `share` of the statements did not exceed; 0 when there were none."""
    wanted = share * sum(count for _, count in histogram)
    seen = 0
    for latency, count in histogram:
        seen += count
        if seen >= wanted:
            return latency
    return 0.0


def command(
    program: str,
    workload: Workload,
    target: Target,
    *,
    shards: str,
    sizes: Sizes,
    threads: int,
    seconds: int,
    more: Mapping[str, object] | None = None,
) -> list[str]:
    """sysbench's arguments. `shards` are those of each host, like ``0-31,32-63``; `more` options win."""
    options: Mapping[str, object] = {
        "threads": threads,
        "time": seconds,
        "histogram": "on",
        "rand-type": "uniform",
        "targets": ",".join(f"{host}:{port}" for host, port in target.addresses),
        "user": target.user,
        "password": target.password,
        "database": target.database,
        "physical": "on" if target.physical else "off",
        "shards": shards,
        "pins": sizes.pins,
        "boards": sizes.boards,
        "items": sizes.items,
        "scatter": sizes.scatter,
        "text": sizes.text,
        **(_of_standard(target, sizes) if workload.standard else {}),
        **workload.options,
        **(more or {}),
    }
    return [program, str(workload.script), *(f"--{name}={value}" for name, value in options.items()), "run"]


def _of_standard(target: Target, sizes: Sizes) -> Mapping[str, object]:
    """Options of sysbench's own scripts. The database that is not sharded is on the first host."""
    host, port = target.addresses[0]
    return {
        "mysql-host": host,
        "mysql-port": port,
        "mysql-user": target.user,
        "mysql-password": target.password,
        "mysql-db": "legacy",
        "tables": sizes.sbtest_tables,
        "table-size": sizes.sbtest_rows,
    }


def run(
    argv: Sequence[str], seconds: int, at_start: Callable[[], None], at_end: Callable[[], None]
) -> Output:
    """Run sysbench. `at_start` is called when the clients begin, `at_end` when they have ended.

    BenchError with its message when it fails, or does not end in time.
    """
    environment = os.environ | {"LUA_PATH": f"{FOLDER}/?.lua;;"}
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    guard = threading.Timer(seconds + GRACE, _kill, (process,))
    guard.daemon = True
    guard.start()
    output = Output()
    try:
        started = ended = False
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith(STARTED):
                started = True
                at_start()
            elif started and not ended and line.strip():
                ended = True
                at_end()
            output.add(line.rstrip("\n"))
        code = process.wait()
    finally:
        late = not guard.is_alive()
        guard.cancel()
        _kill(process)
        process.wait()
    if late:
        raise BenchError(f"no answer: stopped {GRACE:.0f} s after its time")
    if code or output.errors or output.summary is None:
        raise BenchError(output.failure)
    return output


def _kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
