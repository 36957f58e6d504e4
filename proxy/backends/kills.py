"""KILL, over connections of its own: one at a time to a host, however many are to be ended.

Each goes as the account of the connection that it ends, so that it takes no privilege. A host that hangs, or
has no connection to spare, gets them when it answers again; one that refuses connections has none any more
that could be ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import structlog

from proxy.errors import ProxyError
from proxy.wire.packets import frame

from .collect import Collector
from .connection import BackendConnection

log = structlog.get_logger("backends")


class Kill(NamedTuple):
    """What is to be ended of a thread: all of it, or its query."""

    account: int
    query_only: bool


class Kills:
    """The kills that one host is still to get."""

    def __init__(
        self, host: str, connect: Callable[[int], Awaitable[BackendConnection]], timeout: float, most: int
    ) -> None:
        """`connect`: as an account. `timeout`: seconds for an answer. `most`: so many are remembered, of the
        latest.
        """
        self._host = host
        self._connect = connect
        self._timeout = timeout
        self._most = most
        #: By thread, in order.
        self.pending: dict[int, Kill] = {}
        self.running = False

    def add(self, thread: int, account: int, *, query_only: bool) -> bool:
        """Remember to end a connection, or only what it runs; whether `run` must be called."""
        before = self.pending.get(thread)
        self.pending[thread] = Kill(account, query_only and (before is None or before.query_only))
        if len(self.pending) > self._most:
            del self.pending[next(iter(self.pending))]
        return not self.running

    def withdraw(self, thread: int) -> None:
        """What ran there has ended: a KILL QUERY that is still to be sent would end what comes next."""
        kill = self.pending.get(thread)
        if kill is not None and kill.query_only:
            del self.pending[thread]

    async def run(self) -> None:
        """Send them; the caller has set `running`. What cannot be sent now stays for the next time."""
        try:
            while self.pending:
                await self._run_one_account(next(iter(self.pending.values())).account)
        except (ProxyError, TimeoutError) as error:
            if isinstance(error, ProxyError) and error.details.get("refused"):
                self.pending.clear()
            log.warning("cannot kill", host=self._host, pending=len(self.pending), reason=str(error))
        finally:
            self.running = False

    async def _run_one_account(self, account: int) -> None:
        conn = await self._connect(account)
        newest, conn.thread_id = conn.thread_id, 0  # nobody kills the killer when it is too slow
        try:
            while (found := self._next(account)) is not None:
                thread, kill = found
                if newest > thread:  # else the server was started again since: it is another's now
                    async with asyncio.timeout(self._timeout):
                        sql = b"KILL %s%d" % (b"QUERY " if kill.query_only else b"", thread)
                        await Collector().run(conn, frame(b"\x03" + sql), kill=False)
                if self.pending.get(thread) is kill:
                    del self.pending[thread]
        finally:
            conn.close()

    def _next(self, account: int) -> tuple[int, Kill] | None:
        return next((one for one in self.pending.items() if one[1].account == account), None)
