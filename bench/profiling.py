"""``--profile``: what the proxy's Python does under a workload, by py-spy's samples.

py-spy samples by the wall clock, and a process that was pushed off its core by the one it has just written to
looks as if it were writing all the time. So the proxy gets a core of its own, where there are two.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from rich.table import Table

from bench import sysbench
from bench.rounds import WARM_SECONDS, Bench
from bench.tools import BenchError
from bench.usage import Usage, busiest, family, usage
from bench.workloads import Route, Workload

RATE = 500
TOP = 30
IDLE = ("Condition.wait (threading.py",)
"""Where threads wait that py-spy takes for busy ones."""


class Profile:
    """Samples of one process by function: of itself, and of it with all it calls."""

    def __init__(self, stacks: Iterable[str]) -> None:
        """`stacks` as py-spy's raw format has them: ``outer (file);inner (file) COUNT``."""
        self.total = 0
        self.own: Counter[str] = Counter()
        self.all: Counter[str] = Counter()
        for line in stacks:
            frames, _, count = line.strip().rpartition(" ")
            if not frames or not count.isdigit():
                continue
            names = frames.split(";")
            if any(name.startswith(IDLE) for name in names):
                continue
            self.total += int(count)
            self.own[names[-1]] += int(count)
            for name in set(names):
                self.all[name] += int(count)

    def table(self, top: int = TOP) -> Table:
        """The functions with the most samples of their own."""
        table = Table(title=f"self time, {self.total} samples", title_justify="left", title_style="bold")
        for name in ("self %", "with callees %"):
            table.add_column(name, justify="right")
        table.add_column("function")
        for name, count in self.own.most_common(top):
            share, whole = 100 * count / self.total, 100 * self.all[name] / self.total
            table.add_row(f"{share:.1f}", f"{whole:.1f}", name.replace("[", r"\["))
        return table


def _part(proxy: Iterable[int], others: Iterable[int]) -> None:
    """Give the processes of `proxy` one core, and `others`, this process and its children the rest."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return
    for pids, allowed in ((proxy, cores[:1]), (others, cores[1:]), ((os.getpid(),), cores[1:])):
        for pid in pids:
            for thread in Path(f"/proc/{pid}/task").iterdir():
                os.sched_setaffinity(int(thread.name), allowed)


def record(
    bench: Bench, workload: Workload, spy: str, file: Path, *, native: bool
) -> tuple[Profile, Usage, sysbench.Output]:
    """Run the workload through shardgate with py-spy on the (busiest) serving process.

    Gives the samples, which are also in `file`; what all the proxy's processes used; what the client said.
    BenchError with the message of whichever program fails.
    """
    way = bench.ways[Route.SHARDGATE]
    first = way.pid
    assert first is not None
    bench.run(workload, way, 0, WARM_SECONDS)
    pids = family(first)
    _part(pids, (one.pid for one in bench.cluster.servers))
    argv = [spy, "record", "--pid", str(busiest(pids)), "--rate", str(RATE), "--format", "raw", "--function"]
    argv += ["--duration", str(bench.seconds), "--output", str(file), *(["--native"] if native else [])]
    file.parent.mkdir(parents=True, exist_ok=True)
    spies: list[subprocess.Popen[str]] = []
    readings: list[Usage] = []

    def start() -> None:
        readings.append(usage(pids))
        spies.append(subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))

    try:
        command = bench.command(workload, way, bench.seconds + 1)  # py-spy takes a while to begin
        output = sysbench.run(command, bench.seconds, start, lambda: readings.append(usage(pids)))
        _, said = spies[0].communicate(timeout=bench.seconds + 30)
    except subprocess.TimeoutExpired as error:
        raise BenchError("py-spy does not end") from error
    finally:
        for one in spies:
            if one.poll() is None:
                one.kill()
                one.wait()
    if spies[0].returncode:
        raise BenchError(f"py-spy: {said.strip()}")
    profile = Profile(file.read_text(encoding="utf-8").splitlines())
    if not profile.total:
        raise BenchError(f"py-spy took no sample: {said.strip()}")
    return profile, readings[-1].since(readings[0]), output
