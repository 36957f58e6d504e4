"""A statement at work as a coroutine: for what needs several questions in a row."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

from proxy.backends.connection import BackendConnection
from proxy.engine.lease import forget_closed
from proxy.errors import ProxyError

from .result import Failed

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


class Streams(Protocol):
    """What gives rows to the client as they come."""

    def flow(self) -> None:
        """The client reads slowly, or goes on reading."""


class TaskWork:
    """Runs a coroutine as the client's work. It must answer the client (`finish`, `fail`, …) or raise
    ProxyError or Failed.

    A KILL, or the client's end, cancels it. While statements of `conns` are at work, a KILL goes to these
    instead, and what they answer decides. With `steady` nothing stops it: a COMMIT over several hosts must
    not end halfway.
    """

    __slots__ = ("_coming", "client", "conns", "killed", "rest", "steady", "stopping", "task")

    def __init__(self, client: Exchange, *, steady: bool = False) -> None:
        self.client = client
        self.task: asyncio.Task[None] | None = None
        self.conns: set[BackendConnection] = set()
        self.rest: Streams | None = None  # set while rows stream to the client
        self.killed = False  # it ends by that
        self.stopping = False  # KILL was said: what has several steps takes no further one
        self.steady = steady
        self._coming: Coroutine[Any, Any, None] | None = None  # until the task has begun

    def start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.client.work = self
        self._coming = coroutine
        self.task = self.client.services.spawn(self._run(coroutine), "statement")

    async def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        client = self.client
        self._coming = None
        try:
            await coroutine
            if client.work is self and not client.closed:
                raise RuntimeError("the statement was not answered")
        except ProxyError as error:
            if not client.closed:
                client.fail(error)
        except Failed as failed:
            if not client.closed:
                failed.tell(client)
        except asyncio.CancelledError:
            if not self.killed or client.closed:
                raise
            forget_closed(client)
            client.fail(ProxyError("killed"))
        except Exception as error:
            if not client.closed:
                client.crashed(error)
        finally:
            # a task that was cancelled keeps the exception, which keeps this frame, and the statement with it
            self.task = None
            if client.closed:
                client.let_go()

    def cancel(self) -> None:
        if self.task is not None and not self.steady:
            self._prevent()
            self.task.cancel()

    def _prevent(self) -> bool:
        """Whether the coroutine had not begun; then it never will. (A task that is cancelled before its first
        step runs nothing of it, not even what answers the client.)
        """
        coroutine, self._coming = self._coming, None
        if coroutine is not None:
            coroutine.close()
        return coroutine is not None

    def kill_query(self) -> None:
        self.stopping = not self.steady
        running = [conn for conn in self.conns if conn.receiver is not None]
        for conn in running:
            self.client.services.backends.kill_query(conn)
        if self.task is not None and not running and not self.steady:
            self.killed = True
            self.task.cancel()
            if self._prevent():
                self.client.fail(ProxyError("killed"))

    def flow(self) -> None:
        if self.rest is not None:
            self.rest.flow()
