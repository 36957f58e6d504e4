"""`Child`: a server program of the demo's own, from its start to its end."""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from demo.process import stop_all, tail
from demo.programs import ServerError

START_TIMEOUT = 60.0  # seconds for a server to answer; it takes a few at most on an idle machine
_MOVES = 5


class Child(ABC):
    """A child process that listens on a port of 127.0.0.1 and writes to `log`.

    `title` names it in errors. Subclasses write `spawn`, which sets `_process` and, while it is 0, `port`.
    `_settled`: its port is known to others and must not change any more.
    """

    host = "127.0.0.1"

    def __init__(self, title: str, log: Path) -> None:
        self.title = title
        self.log = log
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._settled = False

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        return self._process

    @property
    def pid(self) -> int:
        """The process, dead or alive; ServerError before the first start."""
        if self._process is None:
            raise ServerError(f"{self.title} was never started")
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> Self:
        """Start and wait until it serves. ServerError with the end of its log when it does not."""
        self.spawn()
        self.wait()
        return self

    @abstractmethod
    def spawn(self) -> None:
        """Start the process without waiting. Nothing while it runs."""

    @abstractmethod
    def _unready(self) -> str:
        """Why it does not serve yet; empty once it does."""

    def wait(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until it serves. ServerError with the end of its log otherwise.

        When somebody has taken its port since it was chosen, it is started again on another.
        """
        deadline = time.monotonic() + timeout
        moves = 0
        while True:
            if not self.alive:
                if self._settled or moves == _MOVES or "already in use" not in tail(self.log, 200):
                    raise ServerError(f"{self.title} ended at start:\n{tail(self.log)}")
                moves += 1
                self.port = 0
                self.spawn()
            elif not (reason := self._unready()):
                self._settled = True
                return
            elif time.monotonic() > deadline:
                words = tail(self.log)
                self.stop()
                raise ServerError(f"{self.title} is not ready after {timeout:.0f} s ({reason}):\n{words}")
            time.sleep(0.02)

    def stop(self, timeout: float = 10.0) -> None:
        """SIGTERM, and SIGKILL after `timeout` seconds, also to its own children. The files stay."""
        if self._process is not None:
            stop_all([self._process], timeout)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
