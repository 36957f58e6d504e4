"""What must stay true while others send nonsense: a canary gets its answers, and nothing grows."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.integration.own import OwnProxy
from tests.integration.raw import Raw

#: What the proxy's memory may grow by between two looks, with thousands of cases between them.
MORE_MEMORY = 24 << 20
#: Open files that may be more, of connections that are just being opened or closed.
MORE_FILES = 16
#: Seconds that an answer to the canary may take, on a machine that has other things to do.
PATIENCE = 30.0
#: `timeouts.statement` is over: here that says how busy the machine is.
_TOO_LATE = 3024


class Canary:
    """A client that asks for rows all the time, in a thread; leaving the context raises what went wrong."""

    def __init__(self, proxy: OwnProxy, id: int) -> None:
        self._client: Raw = proxy.raw(timeout=PATIENCE)
        self._id = id
        self._row = self._ask()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self.asked = 0
        self.slowest = 0.0

    def check(self) -> None:
        """AssertionError when something went wrong."""
        if self._error is not None:
            raise AssertionError(f"the canary: {self._error!r}") from self._error

    def _ask(self) -> object:
        deadline = time.monotonic() + PATIENCE
        reply = self._client.ask(f"SELECT id, data FROM users WHERE id = {self._id}")
        while reply.code == _TOO_LATE and time.monotonic() < deadline:
            reply = self._client.ask(f"SELECT id, data FROM users WHERE id = {self._id}")
        assert reply.kind == "rows", reply
        return reply.rows

    def _run(self) -> None:
        try:
            while not self._stop.wait(0.002):
                begun = time.monotonic()
                assert self._ask() == self._row, "another row"
                self.slowest = max(self.slowest, time.monotonic() - begun)
                self.asked += 1
        except BaseException as error:
            self._error = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()
        if error is None:
            self.check()


@dataclass(frozen=True)
class Books:
    """What a proxy holds when it is idle."""

    files: int
    memory: int
    sessions: int
    backends: int

    @classmethod
    def of(cls, proxy: OwnProxy, clients: int = 0) -> Books:
        """Once all but so many clients have gone."""
        proxy.wait_idle(clients=clients)
        status: dict[str, Any] = proxy.status()
        hosts = status["hosts"]
        assert all(one["idle"] <= one["limit"] for one in hosts), hosts
        return cls(
            status["process"]["open_files"],
            status["process"]["memory_bytes"],
            status["clients"]["sessions"],
            sum(one["idle"] + one["opening"] for one in hosts),
        )

    def compare(self, later: Books) -> None:
        """AssertionError when something has grown."""
        assert later.sessions == self.sessions, (self, later)
        assert later.files - later.backends <= self.files - self.backends + MORE_FILES, (self, later)
        assert later.memory <= self.memory + MORE_MEMORY, (self, later)


def some_users(proxy: OwnProxy) -> tuple[int, int]:
    """IDs of a user on the first host and of one on the other."""
    with proxy.raw() as client:
        ids = [int(row[0] or 0) for row in client.ask("SELECT id FROM users").rows]
        return min(ids), max(ids)
