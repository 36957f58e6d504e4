"""What the proxy's processes hold: looked at all the time, and compared at rest."""

from __future__ import annotations

import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.usage import PAGE, family
from tests.integration.own import OwnProxy, read_status, wait_idle
from tests.soak.servers import Servers

MB = 1 << 20
MORE_FILES = 12
"""Descriptors of two workers that may be more: of connections that are being opened or closed."""
MORE_TASKS = 6
SHARE, MORE_MEMORY = 0.05, 4 * MB
"""What the memory of a process may grow by between the second and the last quarter of its life."""


@dataclass(frozen=True)
class Rest:
    """What the proxy holds when it serves nobody. `files`: descriptors but for connections to servers.
    `where`: connections that a server has and no pool knows, by server.
    """

    files: int
    threads: int
    tasks: int
    memory: int
    pooled: int
    where: dict[str, int]

    @property
    def strays(self) -> int:
        return sum(self.where.values())

    def compare(self, before: Rest) -> Iterator[str]:
        """What has grown since `before`."""
        for name, more in (("files", MORE_FILES), ("threads", 4), ("tasks", MORE_TASKS), ("strays", 0)):
            one, two = getattr(before, name), getattr(self, name)
            if two > one + more:
                yield f"{name} at rest: {one} at first, {two} at the end"

    def __str__(self) -> str:
        where = "".join(f" ({count} on {name})" for name, count in self.where.items())
        return (
            f"{self.memory / MB:.0f} MB, {self.files} descriptors, {self.threads} threads, "
            f"{self.tasks} tasks, {self.pooled} pooled connections, {self.strays} that no pool knows{where}"
        )


def at_rest(proxy: OwnProxy, servers: Servers, seconds: float = 60.0) -> Rest:
    """Once all clients have gone. What is on its way to its end has some time for it: the least of what was
    seen while there were strays.
    """
    wait_idle(proxy.status, clients=0)
    deadline = time.monotonic() + seconds
    while True:
        found = _look(proxy, servers)
        if not found.strays or time.monotonic() > deadline:
            return found
        threading.Event().wait(0.5)


def _look(proxy: OwnProxy, servers: Servers) -> Rest:
    status: dict[str, Any] = proxy.status()
    known = Counter({servers.name(host): count for host, count in _pools(status).items()})
    pooled = known.total()
    for host, count in _pools(read_status(servers.demo.status_url)).items():  # those of the demo's own proxy
        known[servers.name(host)] += count
    process = status["process"]
    return Rest(
        process["open_files"] - pooled,
        sum(len(list(Path(f"/proc/{pid}/task").glob("*"))) for pid in family(proxy.proxy.pid)),
        process.get("tasks", 0),
        process["memory_bytes"],
        pooled,
        {name: count - known[name] for name, count in servers.connections().items() if count > known[name]},
    )


def _pools(status: dict[str, Any]) -> dict[str, int]:
    """Connections that pools know, by the host's address."""
    states = ("busy", "idle", "opening", "gathering")
    return {one["host"]: sum(one[state] for state in states) for one in status["hosts"]}


class Watch:
    """Looks at the memory of each of the proxy's processes, once a second, in a thread."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.seen: dict[int, list[int]] = defaultdict(list)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(1):
            for pid in family(self.pid):
                with suppress(OSError, IndexError):
                    self.seen[pid].append(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def quarters(self, least: int) -> dict[int, tuple[int, int]]:
        """Median bytes in the second and the last quarter of the life of each process that was seen at least
        so often.
        """
        return {
            pid: (
                int(statistics.median(seen[len(seen) // 4 : len(seen) // 2])),
                int(statistics.median(seen[len(seen) * 3 // 4 :])),
            )
            for pid, seen in self.seen.items()
            if len(seen) >= max(least, 8)
        }


def grown(quarters: dict[int, tuple[int, int]]) -> Iterator[str]:
    for pid, (second, last) in quarters.items():
        if last > second * (1 + SHARE) + MORE_MEMORY:
            yield told(pid, second, last)


def told(pid: int, second: int, last: int) -> str:
    """The memory of a process."""
    words = f"{second / MB:.1f} MB in its second quarter, {last / MB:.1f} in its last"
    return f"memory of process {pid}: {words}"
