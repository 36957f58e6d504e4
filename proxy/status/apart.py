"""The status server in a thread with an event loop of its own, so that it answers while the worker's is busy.

What it tells is read in the worker's loop, which alone may look at the live objects (`Home`). While that one
does not turn, the pages tell what was read last, and say so.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from config.address import Address

T = TypeVar("T")

PATIENCE: Final = 1.5
"""Seconds that the worker's loop gets to answer."""


class Home(Protocol):
    """Runs what reads the worker's state where that may be done. TimeoutError when it does not come to it
    within `patience` seconds.
    """

    async def __call__(self, make: Callable[[], Coroutine[Any, Any, T]], patience: float | None) -> T: ...


async def here(make: Callable[[], Coroutine[Any, Any, T]], patience: float | None = None) -> T:
    """`Home` where the server runs in the worker's own loop."""
    return await make()


class Away:
    """`Home` for a server in another thread than `loop`, the worker's."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def __call__(self, make: Callable[[], Coroutine[Any, Any, T]], patience: float | None) -> T:
        future = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(make(), self._loop))
        return await asyncio.wait_for(future, patience)


class Server(Protocol):
    """What `StatusServer` is here."""

    async def start(self, listen: Address) -> None: ...

    async def step_aside(self) -> None: ...

    async def stop(self) -> None: ...


class Apart:
    """The thread. `server` has an `Away` as its home."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="status", daemon=True)

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def start(self, listen: Address) -> None:
        """See `StatusServer.start`."""
        self._thread.start()
        await self._there(self._server.start(listen))

    async def step_aside(self) -> None:
        """See `StatusServer.step_aside`."""
        await self._there(self._server.step_aside())

    async def stop(self) -> None:
        """Stop the server, and end the thread. May be called again, or after a failed `start`."""
        if not self._thread.is_alive():
            return
        await self._there(self._server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()
