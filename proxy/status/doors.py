"""Who may talk to the status server, how long, and how much of the event loop its pages take.

A connection has some seconds for a request, from its beginning to the last byte of the answer, and ends with
it. There are only so many at the same time: the newest takes the place of the one that has been there longest
of the address that has most. So requests that are never finished, by whoever in whatever number, hold
nothing for long, and `/metrics` is there for the others.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import cast

from aiohttp import web

from config.address import Address

#: Seconds for a request and its answer.
PATIENCE = 15.0
#: Connections at the same time.
MOST = 128
#: The pages take at most one part in so many of the event loop's time.
_PART = 4


class Doors:
    """The connections of a status server."""

    def __init__(self, patience: float = PATIENCE, most: int = MOST) -> None:
        self._patience = patience
        self._most = most
        #: Oldest first, each with its address and the timer that ends it.
        self._open: dict[asyncio.Transport, tuple[str, asyncio.TimerHandle]] = {}
        self._turn = asyncio.Lock()
        self._wanted = 0  # pages that are asked for now

    def __len__(self) -> int:
        self._forget_closed()
        return len(self._open)

    def opened(self, transport: asyncio.Transport) -> None:
        """A connection has come; another may have to go for it."""
        self._forget_closed()
        if len(self._open) >= self._most:
            self._end(self._next_to_go())
        peer = transport.get_extra_info("peername")
        address = str(peer[0]) if isinstance(peer, tuple) and peer else ""
        timer = asyncio.get_running_loop().call_later(self._patience, self._end, transport)
        self._open[transport] = address, timer

    def _next_to_go(self) -> asyncio.Transport:
        most = Counter(address for address, _ in self._open.values()).most_common(1)[0][0]
        return next(transport for transport, (address, _) in self._open.items() if address == most)

    def _end(self, transport: asyncio.Transport) -> None:
        found = self._open.pop(transport, None)
        if found is not None:
            found[1].cancel()
            transport.abort()

    def _forget_closed(self) -> None:
        for transport in [one for one in self._open if one.is_closing()]:
            self._open.pop(transport)[1].cancel()

    def close(self) -> None:
        """End all."""
        for transport in list(self._open):
            self._end(transport)

    async def page(self, make: Callable[[], Awaitable[web.Response]]) -> web.Response:
        """A page that takes time to make: one after another, with pauses for what else there is to do."""
        self._wanted += 1
        try:
            async with self._turn:
                begun = monotonic()
                response = await make()
                if self._wanted > 1:
                    await asyncio.sleep(min((monotonic() - begun) * (_PART - 1), 1.0))
            return response
        finally:
            self._wanted -= 1


class Door(asyncio.Protocol):
    """Lets a connection in and hands it to what `make` makes."""

    def __init__(self, doors: Doors, make: Callable[[], asyncio.Protocol]) -> None:
        self._doors = doors
        self._make = make

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        incoming = cast(asyncio.Transport, transport)  # uvloop's is one, but not by inheritance
        self._doors.opened(incoming)
        handler = self._make()
        incoming.set_protocol(handler)
        handler.connection_made(incoming)


class Site(web.BaseSite):
    """Where a runner listens: a TCP address, shared, or a Unix socket."""

    def __init__(self, runner: web.AppRunner, listen: Address, doors: Doors) -> None:
        super().__init__(runner)
        self._listen = listen
        self._doors = doors

    @property
    def name(self) -> str:
        return str(self._listen)

    async def start(self) -> None:
        await super().start()
        server = self._runner.server
        assert server is not None
        loop, listen = asyncio.get_running_loop(), self._listen

        def door() -> Door:
            return Door(self._doors, server)

        if listen.path is not None:
            self._server = await loop.create_unix_server(door, listen.path)
        else:
            self._server = await loop.create_server(
                door, listen.host, listen.port, reuse_address=True, reuse_port=True
            )
