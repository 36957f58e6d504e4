"""Workers that live and do nothing: stopped, or turning in a circle. The kernel goes on giving them clients.

Each worker keeps its counters every two seconds (`kept`), from the loop that serves its clients. The
supervisor looks whether it does, as it is the one that waits for nothing of theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from .kept import Kept

log = structlog.get_logger("proxy")

EVERY: Final = 2.0
"""Seconds between two looks."""
LONG: Final = 10.0
"""Seconds after which a worker is told of. No statement keeps a loop for so long."""


@dataclass(slots=True)
class _Worker:
    pid: int
    number: int  # of what it keeps
    since: float
    heard: bool = False  # it has kept something: at its start it may wait for servers
    told: bool = False


class Silence:
    """Looks at the places of `kept`."""

    def __init__(self, kept: Kept, now: Callable[[], float] = time.monotonic) -> None:
        self._kept = kept
        self._now = now
        self._workers: dict[int, _Worker] = {}

    def begins(self, worker: int, pid: int) -> None:
        """This process is the worker of that number now."""
        self._workers[worker] = _Worker(pid, self._kept.version(worker), self._now())

    def look(self) -> None:
        """The log tells of each that has become silent, once, and of its end."""
        now = self._now()
        for worker, one in self._workers.items():
            number = self._kept.version(worker)
            if number != one.number:
                if one.told:
                    log.warning("a worker answers again", worker=worker, process=one.pid)
                one.number, one.since, one.heard, one.told = number, now, True, False
            elif one.heard and not one.told and now - one.since >= LONG:
                one.told = True
                log.error(
                    "a worker does not answer: its clients hang, and some of the new ones; kill -9 of its"
                    " process lets another take its place",
                    worker=worker,
                    process=one.pid,
                    seconds=round(now - one.since),
                )
