"""What goes wrong, each with its end: a schedule of it by a seed."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.usage import family
from tests.faults.link import Link
from tests.integration.own import Document, OwnProxy
from tests.soak.clients import Traffic
from tests.soak.journal import CLOSED
from tests.soak.readers import flood
from tests.soak.servers import Servers
from tests.support.demo import gone, stop_process
from tests.support.waiting import wait_until

RECOVER = 40.0
"""Seconds within which each client must be served after a fault's end: a pool that waits is tried again after
`backends.health_interval`, a statement may have waited for `timeouts.buffer` and one more for a lock.
"""
#: A transaction whose master changes, or whose connection is cut.
AGAIN = frozenset({"transaction_cut", "transaction_moved", "transaction_undone"})
#: What docs/errors.md allows when a host cannot be reached or its connections are lost.
LOST = AGAIN | {
    "connection_gone",
    "state_gone",
    "host_hangs",
    "host_lost",
    "host_unreachable",
    "partial_commit",
    "partial_write",
    "pool_full",
    "pool_timeout",
    "reply_missing",
    "transaction_lost",
    "user_share",
    "user_share_timeout",
    "xa_later",
    "xa_not_ready",
    "xa_unknown",
    "xa_forgotten",
}


@dataclass
class Scene:
    """What faults can be done to."""

    traffic: Traffic
    servers: Servers
    proxy: OwnProxy
    link: Link
    random: random.Random

    def hold(self, least: float, most: float) -> None:
        """As long as the fault shall last; less when there is a problem."""
        end = time.monotonic() + self.random.uniform(least, most)
        wait_until(lambda: time.monotonic() > end or bool(self.traffic.journal.problems), "its end")


def kill_master(scene: Scene) -> None:
    """A master dies as if the machine had, and is started again."""
    host = scene.servers.master(scene.random.randrange(2))
    words = scene.servers.kill(host)
    scene.hold(0.5, 3)
    scene.servers.start(host, words)


def stop_master(scene: Scene) -> None:
    """A master says nothing for a while: less than `backends.hang_timeout`, or more."""
    pid = scene.servers.pid(scene.servers.master(scene.random.randrange(2)))
    stop_process(pid)
    try:
        scene.hold(*scene.random.choice([(1, 4), (1, 4), (12, 14)]))
    finally:
        os.kill(pid, signal.SIGCONT)


def cut(scene: Scene) -> None:
    """The network to a host: connections are reset, new ones are refused."""
    scene.link.refuse()
    scene.hold(1, 4)
    scene.link.accept()


def cut_within(scene: Scene) -> None:
    """Replies end in their middle, again and again."""
    for _ in range(3):
        scene.link.cut_after(scene.random.randrange(5000))
        scene.hold(0.3, 1)
    scene.link.pass_on()


def stall(scene: Scene) -> None:
    """The network passes nothing on; connections stay."""
    scene.link.stall()
    scene.hold(1, 5)
    scene.link.pass_on()


def slow(scene: Scene) -> None:
    """The network takes a while for each piece."""
    scene.link.slow(scene.random.uniform(0.02, 0.1))
    scene.hold(3, 6)
    scene.link.pass_on()


def kill_worker(scene: Scene) -> None:
    """Always the youngest, so that the other one shows what a long life does to a worker's memory."""
    pid = workers(scene.proxy)[-1]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: gone(pid) and len(workers(scene.proxy)) == 2, "another worker")
    scene.hold(0.5, 1.5)


def workers(proxy: OwnProxy) -> list[int]:
    """Those of the proxy, the oldest first."""
    return sorted((pid for pid in family(proxy.proxy.pid)[1:] if _parent(pid) == proxy.proxy.pid), key=_start)


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ["X"] + ["0"] * 30


def _parent(pid: int) -> int:
    return int(_stat(pid)[1]) if _stat(pid)[0] not in "XZ" else 0


def _start(pid: int) -> tuple[int, int]:
    return int(_stat(pid)[19]), pid


def freeze(scene: Scene) -> None:
    """Some shards wait for another topology, which comes before `timeouts.buffer`."""
    for state in ("frozen", "serving"):
        document: Document = json.loads(scene.proxy.topology_file.read_text())
        document["version"] += 1
        for name in ("main", "lookup", "media"):
            one = document["keyspaces"][name]["ranges"][scene.random.randrange(2) if state == "frozen" else 0]
            one["state"] = state
        if state == "serving":
            for keyspace in document["keyspaces"].values():
                for one in keyspace.get("ranges", ()):
                    one.pop("state", None)
        scene.proxy.change_topology(document)
        if state == "frozen":
            scene.hold(1, 4)


def promote(scene: Scene) -> None:
    """The first host's slave becomes the master; next time it goes back."""
    scene.servers.promote()


def reload(scene: Scene) -> None:
    """The settings are read again, several times."""
    for _ in range(5):
        scene.proxy.signal(signal.SIGHUP)
        scene.hold(0.1, 0.5)


def connects(scene: Scene) -> None:
    """Hundreds of clients come at once, and go."""
    flood(scene.traffic, 300)


@dataclass(frozen=True)
class Fault:
    """`allowed`: errors that clients may get for what was under way."""

    run: Callable[[Scene], None]
    allowed: frozenset[str] = frozenset()
    cheap: bool = False

    @property
    def name(self) -> str:
        return self.run.__name__.replace("_", " ")


FAULTS: Sequence[Fault] = (
    Fault(kill_master, LOST),
    Fault(stop_master, LOST),
    Fault(cut, LOST, cheap=True),
    Fault(cut_within, LOST, cheap=True),
    Fault(stall, LOST),
    Fault(slow, frozenset(), cheap=True),
    Fault(kill_worker, frozenset({CLOSED})),
    Fault(freeze, frozenset(), cheap=True),
    Fault(promote, AGAIN),
    Fault(reload, frozenset(), cheap=True),
    Fault(connects, frozenset(), cheap=True),
)


class Schedule:
    """Faults one after another, all of them before one comes again."""

    def __init__(self, faults: Sequence[Fault], seed: int) -> None:
        self.faults, self.dice = list(faults), random.Random(f"faults {seed}")
        self.queue: list[Fault] = []

    def next(self) -> Fault:
        self.queue = self.queue or self.dice.sample(self.faults, len(self.faults))
        return self.queue.pop()
