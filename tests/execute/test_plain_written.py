"""Answers that go to a socket at once: in order, whole, and never to one that is closed."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from proxy.descriptors import DIRECT, descriptor_of
from proxy.frontend import plain
from proxy.frontend.client import Client
from tests.execute.two_worlds import STATEMENTS, Side
from tests.support.waiting import async_wait_until

pytestmark = pytest.mark.skipif(plain.ask is None, reason="no compiler: the way in C is NOT tested")

POINT = STATEMENTS[0]
LINGER = struct.pack("ii", 1, 0)
"""SO_LINGER that makes a close a reset."""


def tcp() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = socket.create_connection(listening.getsockname())
        return listening.accept()[0], there


FAMILIES = {"tcp": tcp, "unix": socket.socketpair}


class _Opened(asyncio.Protocol):
    """What a transport begins with."""


async def transport_of(sock: socket.socket) -> Any:
    loop = asyncio.get_running_loop()
    connect: Any = loop.create_unix_connection if sock.family == socket.AF_UNIX else loop.create_connection
    return (await connect(_Opened, sock=sock))[0]


async def said(side: Side, rows: int) -> None:
    """A point SELECT has been sent, and its server has so many rows for it."""
    side.reply = (rows, 0, False)
    side.send(0, POINT)
    await side.world.turn()
    assert len(side.ready) == 1


class Scene:
    """One client on a real socket, and one that is told the same, whose transport only keeps it."""

    def __init__(self, transport: Any, there: socket.socket) -> None:
        self.side, self.twin = (Side(short=True, begins=True, clients=1) for _ in range(2))
        self.there = there
        self.client: Client = self.side.clients[0]
        self.client.transport, self.client.descriptor = transport, descriptor_of(transport)
        transport.set_protocol(self.client)

    async def begin(self, rows: int = 1) -> bytes:
        """A point SELECT is sent. Returns what the client is to get when the server has answered."""
        for side in (self.side, self.twin):
            await said(side, rows)
        self.twin.deliver(0, None, changed=False)
        kept: Any = self.twin.clients[0].transport
        return bytes(kept.take())

    def end(self) -> None:
        """The server answers."""
        self.side.deliver(0, None, changed=False)

    async def ask(self, rows: int) -> bytes:
        """The same, answered by the compiled way."""
        answered, reply = self.side.answered, await self.begin(rows)
        self.end()
        assert self.side.answered == answered + 1
        return reply

    async def read(self, size: int) -> bytes:
        """So much of what comes, or all of it up to the end."""
        loop, found = asyncio.get_running_loop(), b""
        self.there.setblocking(False)
        while len(found) < size:
            piece = await asyncio.wait_for(loop.sock_recv(self.there, 1 << 20), 30)
            if not piece:
                break
            found += piece
        return found


def on_sockets(family: str, test: Callable[[Scene], Awaitable[None]], buffer: int = 0) -> None:
    """Run `test` on uvloop, with send and receive buffers of so many bytes."""

    async def run() -> None:
        here, there = FAMILIES[family]()
        for one, name in ((here, socket.SO_SNDBUF), (there, socket.SO_RCVBUF)):
            if buffer:
                one.setsockopt(socket.SOL_SOCKET, name, buffer)
        transport = await transport_of(here)
        try:
            scene = Scene(transport, there)
            assert scene.client.descriptor == here.fileno()
            for _ in range(2):  # the first ones open and learn
                reply = await scene.begin()
                scene.end()
                await scene.read(len(reply))
            await test(scene)
        finally:
            transport.abort()
            there.close()

    uvloop.run(run())


@pytest.mark.parametrize("family", FAMILIES)
def test_it_goes_at_once(family: str) -> None:
    async def test(scene: Scene) -> None:
        scene.there.setblocking(False)
        reply = await scene.ask(3)
        assert scene.there.recv(1 << 16) == reply  # within the same turn of the loop

    on_sockets(family, test)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_waits_goes_first(family: str) -> None:
    async def test(scene: Scene) -> None:
        transport, before = scene.client.transport, 0
        while not transport.get_write_buffer_size():
            transport.write(b"b" * 1000)
            before += 1000
        assert not scene.client.writing_paused
        reply = await scene.ask(2)
        assert await scene.read(before + len(reply)) == b"b" * before + reply

    on_sockets(family, test, 1 << 14)


@pytest.mark.parametrize("family", FAMILIES)
def test_what_the_socket_does_not_take_follows(family: str) -> None:
    async def test(scene: Scene) -> None:
        reply = await scene.ask(8_000)
        assert scene.client.writing_paused
        assert len(reply) > 120_000
        assert await scene.read(len(reply)) == reply
        await async_wait_until(lambda: not scene.client.writing_paused, "the client reads again")

    on_sockets(family, test, 1 << 14)


@pytest.mark.parametrize("family", FAMILIES)
def test_nothing_goes_to_one_that_is_closing(family: str) -> None:
    async def test(scene: Scene) -> None:
        await scene.begin()
        scene.client.transport.abort()  # nobody has heard of it yet
        scene.end()
        await async_wait_until(lambda: scene.client.closed, "the client's end")
        assert await scene.read(1 << 20) == b""

    on_sockets(family, test)


def test_a_client_that_has_reset_is_lost() -> None:
    async def test(scene: Scene) -> None:
        scene.there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER)
        await scene.begin()
        scene.there.close()
        scene.end()  # raises nothing
        await async_wait_until(lambda: scene.client.closed, "the client's end")
        (one,) = scene.side.world.everywhere()
        assert one.conn.receiver is None

    on_sockets("tcp", test)


async def test_only_of_known_transports() -> None:
    assert len(DIRECT) == 4, "another uvloop: the way in C is NOT tested"
    here, there = tcp()
    transport = await transport_of(here)  # of asyncio's loop
    assert descriptor_of(transport) == -1
    transport.abort()
    there.close()
