"""LOAD DATA LOCAL: the client's file goes to the server that asked for it, whatever happens meanwhile."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.pipeline import execute
from proxy.wire.packets import frame
from rewriter.planner import Rewriter
from rewriter.plans import AnyHost, LoadLocal, MultiStatement, Passthrough, Plan, Values
from rewriter.splice import Template
from rewriter.text.split import has_many_statements
from tests.execute.ends import done
from tests.execute.world import AUTOCOMMIT, Client, ServerConn, World
from tests.local.places import place
from tests.wire.streams import Ok, Result, err_packet, ok_packet

REQUEST = frame(b"\xfbnames.csv", 1)


class Planned(Rewriter):
    """LOAD needs a file, everything else none."""

    def __init__(self) -> None:
        """Without a schema."""

    def plan(self, sql: bytes, env: Any) -> tuple[Plan, Values]:
        if has_many_statements(sql, env):
            return MultiStatement(), (b"",)
        if not sql.startswith(b"LOAD"):
            return AnyHost(template=Template((sql,))), (b"",)
        inner = Passthrough(template=Template((sql,)), keyspaces=("legacy",))
        return LoadLocal(statement=inner), (b"",)

    def find(self, sql: bytes, env: Any) -> tuple[Plan, Values]:
        return self.plan(sql, env)


@pytest.fixture
def world() -> World:
    world = place()
    services: Any = world.services
    world.plan_with(Planned())
    services.execute = execute
    services.max_statement = services.long_statement = 1000

    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        return [] if sql.startswith(b"LOAD") else [Ok(1)]

    world.server("h1").script = script
    return world


@pytest.fixture
def client(world: World) -> Client:
    client = Client(world)
    client.session.local_files = True
    client.session.multi_statements = True
    return client


async def asked(world: World, client: Client, sql: bytes = b"LOAD") -> ServerConn:
    """The server has asked the client for the file."""
    client.send(sql)
    await world.turn()
    server = world.server("h1").one
    server.conn.data_received(REQUEST)
    return server


def send(client: Client, *payloads: bytes, seq: int = 2) -> None:
    for number, payload in enumerate(payloads):
        client.conn.data_received(frame(payload, seq + number))


async def test_a_file(world: World, client: Client) -> None:
    server = await asked(world, client)
    assert client.transport.take() == REQUEST
    send(client, b"one", b"two" * 10, b"")
    sent = frame(b"one", 2) + frame(b"two" * 10, 3) + frame(b"", 4)
    assert server.transport.take() == sent
    server.conn.data_received(ok_packet(5, AUTOCOMMIT, affected=2))
    assert client.transport.take()[3:6] == b"\5\0\2"
    client.asked = 0
    client.send(b"SELECT 1")
    await done(world, client)
    assert client.last.ok == (1, 0)


async def test_no_file_and_commands_at_once_behind_it(world: World, client: Client) -> None:
    server = await asked(world, client)
    client.transport.take()
    client.conn.data_received(frame(b"", 2) + frame(b"\x03SELECT 1"))
    assert server.transport.take() == frame(b"", 2)
    server.conn.data_received(ok_packet(3, AUTOCOMMIT))
    assert client.transport.take()[3:5] == b"\3\0"
    client.asked = 1
    await done(world, client)
    assert server.log == [b"LOAD", b"SELECT 1"]


async def test_an_error_instead_of_the_request(world: World, client: Client) -> None:
    client.send(b"LOAD")
    await world.turn()
    server = world.server("h1").one
    server.conn.data_received(err_packet(1, 1146, "42S02", "no table"))
    await done(world, client)
    assert client.last.err == 1146
    assert not server.conn.scanner.files


async def test_an_error_before_the_files_end(world: World, client: Client) -> None:
    server = await asked(world, client)
    send(client, b"one")
    server.conn.data_received(err_packet(3, 1062, "23000", "twice"))
    client.transport.take()
    assert server.gone, "whether it waits for the rest, nobody knows"
    send(client, b"two", b"", seq=3)
    assert client.conn.ready
    client.asked = 0
    await done(world, client)


async def test_the_server_is_lost_before_the_files_end(world: World, client: Client) -> None:
    server = await asked(world, client)
    client.transport.take()
    send(client, b"one")
    server.lose()
    send(client, b"two", seq=3)
    assert client.transport.take() == b"", "the client does not listen yet"
    send(client, b"", seq=4)
    assert client.transport.take()[3:7] == b"\5\xff" + (1158).to_bytes(2, "little")
    client.asked = 0
    await done(world, client)


@pytest.mark.parametrize("when", ["before", "during", "after"])
async def test_the_client_leaves(world: World, client: Client, when: str) -> None:
    server = await asked(world, client)
    if when != "before":
        send(client, b"one")
    if when == "after":
        send(client, b"", seq=3)
    client.leave()
    await world.quiet()
    assert server.gone
    world.check(client)


async def test_a_slow_server_stops_the_client(world: World, client: Client) -> None:
    server = await asked(world, client)
    reading = []
    for change in (server.conn.pause_writing, server.conn.resume_writing, server.conn.pause_writing):
        change()
        reading.append(client.transport.reading)
    send(client, b"one", b"")
    assert [*reading, client.transport.reading] == [False, True, False, True]
    server.conn.data_received(ok_packet(4, AUTOCOMMIT))
    server.conn.resume_writing()
    server.transport.take()
    client.transport.take()
    client.asked = 0
    await done(world, client)


async def test_nobody_else_is_asked_for_files(world: World, client: Client) -> None:
    """Not for another statement, not twice, and not a client that did not allow it."""
    client.send(b"SELECT 1")
    await world.turn()
    server = world.server("h1").one
    server.out = b""
    server.conn.data_received(REQUEST)
    assert server.gone
    assert client.last.err == 1835
    server = await asked(world, client)
    server.conn.data_received(frame(b"\xfb/etc/passwd", 2))
    assert server.gone
    send(client, b"")
    client.session.local_files = False
    client.send(b"LOAD")
    client._read += client.transport.take()
    assert (3948).to_bytes(2, "little") in client._read
    assert b"passwd" not in client._read
    client.asked = 0
    client._read = b""
    await done(world, client)


async def test_among_other_statements(world: World, client: Client) -> None:
    """Sequence numbers run on, and the server's own stay its own."""
    client.send(b"SELECT 1; SELECT 2; LOAD; SELECT 3")
    for _ in range(4):
        await world.turn()
        server = world.server("h1").one
        server.deliver()
    client.transport.take()
    server.conn.data_received(REQUEST)
    assert client.transport.take()[3] == 3
    send(client, b"one", b"", seq=4)
    assert server.transport.take() == frame(b"one", 2) + frame(b"", 3)
    server.conn.data_received(ok_packet(4, AUTOCOMMIT))
    assert client.transport.take()[3] == 6
    for _ in range(3):
        await world.turn()
        server.deliver()
    assert client.transport.take()[3] == 7
    client.asked = 0
    await done(world, client)
