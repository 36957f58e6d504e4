"""A host's pool in a world of its own: a clock to turn, connections opened by hand, tasks watched."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import chain, count
from typing import Any

from proxy.backends.connection import BackendConnection
from proxy.backends.host import HostLimits, HostPool
from proxy.backends.settings import LOGIN, LOGIN_STATEMENT, Settings
from proxy.errors import ProxyError
from proxy.wire.packets import frame
from tests.backends.fakes import FakeTransport, connection
from tests.support.waiting import turns
from tests.wire.streams import err_packet

LIMITS = HostLimits(
    max_connections=2,
    max_waiting=3,
    wait_timeout=10.0,
    connect_timeout=5.0,
    health_interval=5.0,
    idle_timeout=60.0,
    statement_timeout=30.0,
)

RESET = frame(b"\x1f") + frame(b"\x03" + LOGIN_STATEMENT) + frame(b"\x03SET ROLE DEFAULT")
"""What resets a connection: COM_RESET_CONNECTION, and the settings of a new one."""

ERROR = err_packet(1, 1064, "42000", "no")

Opening = asyncio.Future[None]


class World:
    """What a HostPool needs, faked. `openings` are connections that are being opened, oldest first."""

    def __init__(self, limits: HostLimits = LIMITS, host: str = "h1:3306") -> None:
        self.now = 1000.0
        self.openings: list[tuple[Opening, int]] = []
        self.transports: dict[BackendConnection, FakeTransport] = {}
        self.granted: list[BackendConnection] = []
        self.refused: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        self._threads = count(1)
        self.pool = HostPool(host, limits, self.connect, self.spawn, lambda: self.now)

    async def connect(self, host: str, owner: HostPool, capability_set: int) -> BackendConnection:
        opening: Opening = asyncio.get_running_loop().create_future()
        self.openings.append((opening, capability_set))
        await opening
        conn, transport = connection(owner, host)
        conn.capability_set = capability_set
        conn.thread_id = next(self._threads)
        conn.version = "9.7.0"
        self.transports[conn] = transport
        return conn

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self.tasks.append(task)
        return task

    async def settle(self) -> None:
        """Let the tasks go on as far as they can."""
        await turns(6)

    async def opened(self) -> int:
        """The oldest opening succeeds; its FOUND_ROWS flag."""
        opening, capability_set = self.openings.pop(0)
        opening.set_result(None)
        await self.settle()
        return capability_set

    async def open_failed(self, reason: str = "refused", **details: str) -> None:
        opening, _ = self.openings.pop(0)
        opening.set_exception(ProxyError("host_unreachable", host=self.pool.host, reason=reason, **details))
        await self.settle()

    def waiter(self, settings: Settings = LOGIN, capability_set: int = 0) -> Any:
        """Wait for a connection; `granted` or `refused` tells."""
        return self.pool.wait(
            settings,
            None,
            capability_set,
            self.granted.append,
            lambda error: self.refused.append(error.kind.name if isinstance(error, ProxyError) else "?"),
        )

    async def lent(self, capability_set: int = 0) -> BackendConnection:
        """A new connection, in use."""
        self.waiter(capability_set=capability_set)
        await self.settle()
        await self.opened()
        return self.granted.pop()

    def answer(self, conn: BackendConnection, data: bytes) -> bytes:
        """The server answers; what had been asked."""
        asked = self.transports[conn].take()
        conn.data_received(data)
        return asked

    def tick(self, seconds: float = 0.0) -> None:
        self.now += seconds
        self.pool.tick()

    @property
    def last(self) -> BackendConnection:
        """The connection opened last."""
        return list(self.transports)[-1]

    def check(self) -> None:
        """No task has failed, and the pool's books are right."""
        for task in self.tasks:
            if task.done() and not task.cancelled():
                task.result()
        state = self.pool.state
        places = [*chain(*state.idle), *state.busy]
        assert len(places) == len(set(map(id, places)))
        assert state.size <= state.max_connections
        assert not any(conn.closed for conn in places)
