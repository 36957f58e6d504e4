"""A statement at work as a coroutine: for what needs several questions in a row."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from proxy.backends.connection import BackendConnection
from proxy.errors import ProxyError

if TYPE_CHECKING:
    from proxy.session.client import ClientConnection


class TaskWork:
    """Runs a coroutine as the client's work. It must answer the client (`finish`, `fail`, …) or raise
    ProxyError.
    """

    __slots__ = ("client", "conns", "killed", "task")

    def __init__(self, client: ClientConnection) -> None:
        self.client = client
        self.task: asyncio.Task[None] | None = None
        self.conns: set[BackendConnection] = set()  # what KILL QUERY must reach
        self.killed = False

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.client.work = self
        self.task = self.client.services.spawn(self._run(coroutine), "statement")

    async def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        client = self.client
        try:
            await coroutine
        except ProxyError as error:
            if not client.closed:
                client.fail(error)
        except asyncio.CancelledError:
            if not self.killed or client.closed:
                raise
            client.fail(ProxyError("killed"))
        except Exception as error:
            if not client.closed:
                client.crashed(error)

    def cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def kill_query(self) -> None:
        self.killed = True
        if self.task is not None:
            self.task.cancel()

    def flow(self) -> None:
        """Results of coroutines are small and whole: nothing streams."""
