"""CPU time and memory of other processes.

CPU time is read from the process's own clock (clock_getcpuclockid(3)): nanoseconds, all its threads, ended
ones included. /proc/PID/stat, which counts in ticks of 10 ms, tells only how user and kernel mode share it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Usage:
    """Seconds of CPU time since the start of some processes, and their resident memory in bytes, summed."""

    cpu: float = 0.0
    user: float = 0.0
    system: float = 0.0
    rss: int = 0

    def since(self, before: Usage) -> Usage:
        """CPU time used since `before`; memory as it is now."""
        return Usage(self.cpu - before.cpu, self.user - before.user, self.system - before.system, self.rss)


@dataclass(frozen=True)
class Stat:
    """Some fields of /proc/PID/stat: parent, CPU time in ticks, resident pages."""

    parent: int
    user: int
    system: int
    pages: int


def parse_stat(text: str) -> Stat:
    """Read /proc/PID/stat, whose second field is a name that may hold anything, brackets too."""
    fields = text[text.rindex(")") + 1 :].split()
    return Stat(int(fields[1]), int(fields[11]), int(fields[12]), int(fields[21]))


def _stat(pid: int) -> Stat:
    return parse_stat(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace"))


def cpu_seconds(pid: int) -> float:
    """CPU time of a process. OSError when there is none of that number."""
    # What glibc makes of a process ID: the complement, and CPUCLOCK_SCHED in the lowest bits
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e9


def usage(pids: Iterable[int]) -> Usage:
    """The sum over processes. OSError when one of them has ended."""
    total = Usage()
    for pid in pids:
        stat = _stat(pid)
        total = Usage(
            total.cpu + cpu_seconds(pid),
            total.user + stat.user / TICKS,
            total.system + stat.system / TICKS,
            total.rss + stat.pages * PAGE,
        )
    return total


def proportional(pids: Iterable[int]) -> int:
    """The bytes of memory that processes have to themselves, and their parts of what they share with others:
    a program's own pages, which `Usage.rss` counts for each. OSError when one of them has ended.
    """
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) << 10
    return total


def family(pid: int) -> tuple[int, ...]:
    """A process and all its descendants, itself first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                children.setdefault(_stat(int(entry.name)).parent, []).append(int(entry.name))
            except OSError:
                continue  # it has just ended
    found = [pid]
    for one in found:
        found += children.get(one, ())
    return tuple(found)


def busiest(pids: Sequence[int]) -> int:
    """The process with the most CPU time so far."""
    return max(pids, key=cpu_seconds)
