"""Requests that are never finished, by whom and in what number ever, hold nothing for long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from config.address import Address
from proxy.status.doors import Doors
from proxy.status.server import StatusServer
from tests.support.waiting import async_wait_until

MANY = 8


@pytest.fixture
async def doors() -> Doors:
    return Doors(patience=0.5, most=MANY)


@pytest.fixture
async def server(services: Any, doors: Doors) -> AsyncIterator[StatusServer]:
    made = StatusServer(lambda: services, lambda: True, doors=doors)
    await made.start(Address("127.0.0.1", 0))
    yield made
    await made.stop()


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(server: StatusServer, source: str = "127.0.0.1") -> Ends:
    host, _, port = server.address.rpartition(":")
    return await asyncio.open_connection(host, int(port), local_addr=(source, 0))


async def ask(server: StatusServer, path: str = "/metrics") -> bytes:
    reader, writer = await connect(server)
    writer.write(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
    answer = await reader.read()
    writer.close()
    return answer


async def ends(end: Ends) -> bytes:
    """What comes until the connection is over."""
    try:
        return await end[0].read()
    except ConnectionResetError:
        return b"reset"


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET /met",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\n",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 4000,
        b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nabc",
        b"GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nabc",
    ],
)
async def test_a_request_that_is_never_finished(server: StatusServer, doors: Doors, begun: bytes) -> None:
    end = await connect(server)
    end[1].write(begun)
    async with asyncio.timeout(5):
        await ends(end)
        await async_wait_until(lambda: len(doors) == 0, "its place is free")
        assert b" 200 OK" in await ask(server)
    end[1].close()


async def test_drop_by_drop(server: StatusServer) -> None:
    """Each byte in time does not make the request one."""
    end = await connect(server)

    async def drip() -> None:
        for _ in range(1000):
            end[1].write(b"x")
            await asyncio.sleep(0.01)

    dripping = asyncio.ensure_future(drip())
    async with asyncio.timeout(5):
        await ends(end)
    dripping.cancel()


@pytest.mark.parametrize("huge", [b"GET /" + b"x" * 100_000, b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000])
async def test_huge_requests(server: StatusServer, huge: bytes) -> None:
    end = await connect(server)
    end[1].write(huge + b"\r\n\r\n")
    async with asyncio.timeout(5):
        answer = await ends(end)
    assert answer == b"reset" or b" 400 " in answer[:30], answer[:100]
    assert b" 200 OK" in await ask(server)


async def test_too_many(services: Any) -> None:
    """The newest is let in; of the address that has most, the oldest goes."""
    doors = Doors(patience=60, most=MANY)
    server = StatusServer(lambda: services, lambda: True, doors=doors)
    await server.start(Address("127.0.0.1", 0))
    first = await connect(server, "127.0.0.2")
    others = [await connect(server) for _ in range(4 * MANY)]
    async with asyncio.timeout(5):
        for end in others[: 3 * MANY]:
            await ends(end)
        assert len(doors) <= MANY
        for path in ("/metrics", "/healthz", "/readyz", "/", "/status.json"):
            assert b" 200 OK" in await ask(server, path)
        first[1].write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b" 200 OK" in await first[0].read(), "another address keeps its place"
    for _, writer in others:
        writer.close()
    await server.stop()
    assert len(doors) == 0


async def test_one_request_a_connection(server: StatusServer) -> None:
    """What is sent behind it is not answered."""
    end = await connect(server)
    end[1].write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 50)
    answer = await ends(end)
    assert answer.count(b"HTTP/1.1 200 OK") == 1
    assert b"Connection: close" in answer


async def test_pages_leave_time_for_others(server: StatusServer) -> None:
    """Many pages at once are made one after another, and all are answered."""
    answers = await asyncio.gather(*(ask(server) for _ in range(MANY)))
    assert all(b" 200 OK" in one for one in answers)
