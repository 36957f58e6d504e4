"""`Link`: a TCP proxy in front of a database server that can be told to fail.

It runs an event loop in a thread of its own; its methods may be called from the test at any time, and have
taken effect when they return. Rules hold for all connections, present and later ones:

    pass_on()           bytes pass (as at the start)
    stall()             none passes; connections stay open
    slow(seconds)       each piece takes so long, both ways
    cut_after(n)        n more bytes come from the server, then every connection is closed
    garbage(data)       the server's next bytes are replaced by `data`
    spoil(change)       `change(number, piece)` says what becomes of the piece 0, 1 … of what the server sends
                        from now on, and whether the connection is closed behind it
    reset()             every connection gets RST, now
    refuse(), accept()  nobody listens at the port, and again
    silent()            connections are accepted, and nothing is ever said
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Self, TypeVar

T = TypeVar("T")
Change = Callable[[int, bytes], tuple[bytes, bool]]

_CHUNK = 1 << 16


class Link:
    """`address` is what a topology names in the place of the server's."""

    def __init__(self, host: str, port: int) -> None:
        self.target = (host, port)
        self.port = 0
        self.from_server = 0  # bytes the server has sent
        self.to_server = 0
        self.accepted = 0  # connections in all
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._go = asyncio.Event()
        self._left: int | None = None
        self._change: Change | None = None
        self._changed = 0  # pieces that went through it
        self._silent = False
        self._delay = 0.0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """How many are open."""
        return len(self._writers) // 2

    def __enter__(self) -> Self:
        self._thread.start()
        self.pass_on()
        self.accept()
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        self._run(self._cancel_all)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # -- rules

    def pass_on(self) -> None:
        def change() -> None:
            self._left = self._change = None
            self._silent = False
            self._delay = 0.0
            self._go.set()

        self._call(change)

    def stall(self) -> None:
        self._call(self._go.clear)

    def slow(self, seconds: float) -> None:
        def change() -> None:
            self._delay = seconds

        self._call(change)

    def cut_after(self, count: int) -> None:
        def change() -> None:
            self._left = count
            if count == 0:
                self._close_all()

        self._call(change)

    def garbage(self, data: bytes) -> None:
        self.spoil(lambda number, piece: (piece if number else data, False))

    def spoil(self, how: Change) -> None:
        def change() -> None:
            self._change = how
            self._changed = 0

        self._call(change)

    def reset(self) -> None:
        def change() -> None:
            for writer in list(self._writers):
                sock = writer.get_extra_info("socket")
                if sock is not None:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._close_all()

        self._call(change)

    def refuse(self) -> None:
        async def change() -> None:
            server, self._server = self._server, None
            if server is not None:
                server.close()
            self._close_all()

        self._run(change)

    def accept(self) -> None:
        async def change() -> None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

        self._run(change)

    def silent(self) -> None:
        def change() -> None:
            self._silent = True

        self._call(change)

    # -- inside the loop

    def _call(self, function: Callable[[], None]) -> None:
        async def change() -> None:
            function()

        self._run(change)

    def _run(self, function: Callable[[], Awaitable[T]]) -> T:
        async def run() -> T:
            return await function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    async def _cancel_all(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _close_all(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._writers.add(writer)
        behind: asyncio.StreamWriter | None = None
        try:
            if self._silent:
                await reader.read()
                return
            answers, behind = await asyncio.open_connection(*self.target, limit=_CHUNK)
            self._writers.add(behind)
            await asyncio.gather(self._up(reader, behind), self._down(answers, writer))
        except OSError:
            pass
        finally:
            for one in (writer, behind):
                if one is not None:
                    self._writers.discard(one)
                    one.transport.abort()

    async def _pass(self) -> None:
        """Until a piece may go on."""
        if self._delay:
            await asyncio.sleep(self._delay)
        await self._go.wait()

    async def _up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            await self._pass()
            self.to_server += len(data)
            writer.write(data)
            await writer.drain()
        writer.transport.abort()

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(_CHUNK):
            await self._pass()
            self.from_server += len(data)
            closing = False
            if self._change is not None:
                data, closing = self._change(self._changed, data)
                self._changed += 1
            if self._left is not None:
                data = data[: self._left]
                self._left -= len(data)
            writer.write(data)
            with suppress(ConnectionError):
                await writer.drain()
            if self._left == 0:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
                self._close_all()
                return
            if closing:
                break
        writer.close()
