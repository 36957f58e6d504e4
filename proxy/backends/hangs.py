"""Finds out that a host hangs: what it owes stands still, and it answers no new connection either."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, Protocol

from proxy.errors import ProxyError
from proxy.wire.packets import query_packet

from .collect import Collector
from .connection import BackendConnection
from .pool import account_of
from .silence import Silence

Spawn = Callable[[Coroutine[Any, Any, None], str], object]


class Suspect(Protocol):
    """The pool of the host."""

    host: str

    def in_use(self) -> Iterable[BackendConnection]: ...

    def heard_since(self, moment: float) -> bool:
        """Whether a statement has ended there since, or a connection was opened."""

    def end(self, conn: BackendConnection, error: ProxyError) -> None:
        """End the statement under way on it."""

    def hangs(self, seconds: float) -> None:
        """It has said nothing for so long, and does not answer."""


class HangWatch:
    """Watches the replies of one host. A reply that has stood still for half of `timeout` (seconds) makes it
    ask; within the other half the host must say something.
    """

    def __init__(
        self,
        pool: Suspect,
        timeout: float,
        connect: Callable[[int], Awaitable[BackendConnection]],
        spawn: Spawn,
        now: Callable[[], float],
    ) -> None:
        self._pool = pool
        self._timeout = timeout
        self._patience = timeout / 2
        self._connect = connect
        self._spawn = spawn
        self._now = now
        self._silence = Silence(self._patience)
        self._asking = False
        self._look_at = self._ask_at = 0.0

    def tick(self, now: float) -> None:
        """Call it a few times a second."""
        if now < self._look_at:
            return
        self._look_at = now + min(1.0, self._patience / 8)
        silent = self._silence.look(self._pool.in_use(), now)
        if silent and not self._asking and now >= self._ask_at:
            self._asking = True
            self._spawn(self._ask(silent), f"ask {self._pool.host}")

    async def _ask(self, silent: list[BackendConnection]) -> None:
        begun = self._now()
        alive = False
        try:
            for account in {account_of(conn.capability_set) for conn in silent}:
                asked = [conn for conn in silent if account_of(conn.capability_set) == account]
                working: list[int] | None = None
                while working is None and (left := begun + self._patience - self._now()) > 0:
                    working = await self._working(account, asked, left)
                if working is not None:
                    alive = True
                    self._end_missing(asked, working)
        finally:
            self._asking = False
            self._ask_at = self._now() + self._patience
        alive = alive or self._pool.heard_since(begun)
        if not alive and self._silence.look(self._pool.in_use(), self._now()):
            self._pool.hangs(self._timeout)

    def _end_missing(self, asked: list[BackendConnection], working: list[int]) -> None:
        """End the statements that will get no more of their replies."""
        for conn in self._silence.told(asked, working):
            self._pool.end(conn, ProxyError("reply_missing", host=self._pool.host))

    async def _working(
        self, account: int, silent: list[BackendConnection], seconds: float
    ) -> list[int] | None:
        """Which of these threads of one account run something, as the host says to that account; all, if it
        does not tell. None: it says nothing.
        """
        threads = [conn.thread_id for conn in silent]
        try:
            async with asyncio.timeout(seconds):
                conn = await self._connect(account)
                conn.thread_id = 0
                try:
                    reply = await Collector().run(conn, _who_works(threads), kill=False)
                    return threads if reply.err is not None else [int(row[0] or 0) for row in reply.values()]
                finally:
                    conn.close()
        except TimeoutError:
            return None
        except ProxyError as error:
            return None if error.details.get("silent") else threads


def _who_works(threads: list[int]) -> bytes:
    listed = b",".join(b"%d" % thread for thread in threads)
    return query_packet(
        b"SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Sleep' AND ID IN (%s)" % listed
    )
