"""One client's connection: commands in, one at a time; answers out; nobody can make it hold too much."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import ProxyError
from proxy.frontend import connection as module
from proxy.frontend.commands import run_command
from proxy.frontend.connection import ClientConnection
from proxy.wire.packets import ProtocolError, frame
from tests.execute.world import Client, Connection, World
from tests.support.waiting import turns
from tests.wire.streams import cuts


class Work:
    """A statement that is answered by hand."""

    def __init__(self, client: ClientConnection) -> None:
        self.client = client
        self.events: list[str] = []
        client.work = self

    def cancel(self) -> None:
        self.events.append("cancel")

    def kill_query(self) -> None:
        self.events.append("kill")
        self.client.fail(ProxyError("killed"))

    def flow(self) -> None:
        self.events.append("flow")


class Session:
    """A client whose commands are written down. `sqls` are the statements begun."""

    def __init__(self) -> None:
        self.world = World()
        self.client = Client(self.world)
        self.conn = self.client.conn
        self.sqls: list[bytes] = []
        self.commands: list[bytes] = []
        self.at_once = True
        self.works: list[Work] = []
        services: Any = self.world.services
        services.execute = self.execute
        services.command = self.command

    def execute(self, client: ClientConnection, sql: bytes) -> None:
        self.sqls.append(sql)
        self.work(client)

    def command(self, client: ClientConnection, payload: bytes) -> None:
        self.commands.append(payload)
        self.work(client)

    def work(self, client: ClientConnection) -> None:
        if self.at_once:
            client.reply_ok(affected=len(self.sqls))
        else:
            self.works.append(Work(client))

    def feed(self, *payloads: bytes) -> None:
        for payload in payloads:
            self.conn.data_received(frame(payload))

    async def settle(self) -> None:
        await turns(50)

    def answers(self) -> list[int | None]:
        """The error codes of all replies, None for OK."""
        return [one.err for one in self.client.answers()]


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session()
    yield session
    session.world.check()


# -- commands
# ----------------------------------------------------------------------------------------------------------


@given(st.data(), st.lists(st.binary(max_size=40), min_size=1, max_size=6), st.booleans())
def test_commands_however_they_are_cut(data: st.DataObject, payloads: list[bytes], at_once: bool) -> None:
    """In order, each answered before the next begins."""
    sent = b"".join(frame(b"\x03" + payload) for payload in payloads)

    async def run() -> None:
        session = Session()
        session.at_once = at_once
        for piece in data.draw(cuts(sent)):
            session.conn.data_received(piece)
            await session.settle()
        while session.works:
            assert len(session.works) == 1, "one at a time"
            session.works.pop().client.reply_ok()
            await session.settle()
        assert session.sqls == payloads
        assert session.answers() == [None] * len(payloads)

    asyncio.run(run())


async def test_other_commands(session: Session) -> None:
    session.feed(b"\x0e", b"\x03SELECT 1", b"\x16PREPARE", b"")
    await session.settle()
    assert session.commands == [b"\x0e", b"\x16PREPARE", b""]
    assert session.sqls == [b"SELECT 1"]


async def test_a_command_of_several_packets(session: Session) -> None:
    """The answer's number follows that of the last packet."""
    sql = b"x" * 0xFFFFFF
    session.conn._reader.limit = 1 << 25
    session.conn.data_received(frame(b"\x03" + sql))
    assert session.sqls == [sql]
    assert session.client.transport.take()[3] == 2


async def test_a_long_pipeline_does_not_nest(session: Session) -> None:
    session.conn.data_received(frame(b"\x03SELECT 1") * 3000)
    for _ in range(70):
        await session.settle()
    assert len(session.sqls) == 3000


@pytest.mark.parametrize("error", [ProxyError("no_database"), ProtocolError("bad"), ZeroDivisionError()])
async def test_errors_are_answered_and_the_connection_goes_on(session: Session, error: Exception) -> None:
    def fails(client: ClientConnection, payload: bytes) -> None:
        raise error

    services: Any = session.world.services
    services.command = services.execute = fails
    session.feed(b"\x0e", b"\x03SELECT 1")
    codes = {ProxyError: [1046, 1046], ProtocolError: [1835, 1105], ZeroDivisionError: [1105, 1105]}
    await session.settle()
    assert session.answers() == codes[type(error)]
    services.execute = session.execute
    session.feed(b"\x03SELECT 2")
    assert session.answers()[2] is None


async def test_a_command_that_is_not_spoken(session: Session) -> None:
    services: Any = session.world.services
    services.command = run_command
    session.feed(b"\x12", b"\x77", b"\x0e")
    await session.settle()
    assert session.answers() == [1047, 1047, None]


@pytest.mark.parametrize("payload", [b"", b"\x0c", b"\x0c\x01\x02", b"\x04no end"])
async def test_malformed_commands(session: Session, payload: bytes) -> None:
    services: Any = session.world.services
    services.command = run_command
    session.feed(payload, b"\x0e")
    await session.settle()
    assert session.answers() == [1835, None]


# -- too much
# ----------------------------------------------------------------------------------------------------------


async def test_a_packet_that_is_too_large(session: Session) -> None:
    """It is refused as soon as its length is known, with the number that follows."""
    session.conn._reader.limit = 50
    session.conn.data_received(frame(b"\x03" + b"x" * 49))
    session.client.transport.take()
    session.conn.data_received((51).to_bytes(3, "little") + b"\x05")
    assert session.client.transport.take()[3:7] == b"\x06\xff\x81\x04"
    assert not session.client.transport.open


async def test_further_commands_are_held_up_to_a_limit(session: Session) -> None:
    session.at_once = False
    command = frame(b"\x03" + b"x" * 10_000)
    for _ in range(12):
        session.conn.data_received(command)
    reading = [session.client.transport.reading]
    while session.works:
        session.works.pop().client.reply_ok()
        await session.settle()
        reading.append(session.client.transport.reading)
    assert reading == [False] * 5 + [True] * 8
    assert len(session.sqls) == 12


async def test_before_the_log_in_only_little_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    conn = Connection(world.services)
    assert conn._reader.limit == module._LOGIN_PACKET < world.services.settings.limits.max_packet
    client = Client(world)
    assert client.conn._reader.limit == world.services.settings.limits.max_packet


async def test_a_client_that_does_not_read(session: Session) -> None:
    """Its commands wait until it does."""
    session.conn.pause_writing()
    session.feed(*[b"\x03SELECT 1"] * 5)
    await session.settle()
    assert len(session.sqls) == 1
    session.conn.resume_writing()
    session.conn.resume_writing()
    await session.settle()
    assert len(session.sqls) == 5


async def test_writing_is_paused_and_resumed_while_at_work(session: Session) -> None:
    session.at_once = False
    session.feed(b"\x03SELECT 1", b"\x03SELECT 2")
    session.conn.pause_writing()
    session.conn.resume_writing()
    [work] = session.works
    assert work.events == ["flow", "flow"]
    assert len(session.sqls) == 1
    session.works.clear()
    work.client.reply_ok()
    await session.settle()
    assert len(session.sqls) == 2


# -- ends
# ----------------------------------------------------------------------------------------------------------


async def test_a_client_that_leaves(session: Session) -> None:
    session.at_once = False
    session.feed(b"\x03SELECT 1", b"\x03SELECT 2")
    session.client.leave()
    assert session.works[0].events == ["cancel"]
    await session.settle()
    assert len(session.sqls) == 1
    assert not session.world.services.clients.sessions


async def test_a_client_that_leaves_without_reading(session: Session) -> None:
    """Closing alone would wait until it has read what is buffered, and the statement with it."""
    session.at_once = False
    session.feed(b"\x03SELECT 1")
    session.conn.pause_writing()
    assert session.conn.eof_received() is False
    assert session.works[0].events == ["flow", "cancel"]
    assert session.client.transport.aborted


async def test_killed_after_its_statement(session: Session) -> None:
    session.at_once = False
    session.feed(b"\x03SELECT 1", b"\x03SELECT 2")
    session.conn.end_soon()
    session.works[0].kill_query()
    await session.settle()
    assert session.answers() == [1317]
    assert not session.client.transport.open
    assert len(session.sqls) == 1


async def test_quit(session: Session) -> None:
    services: Any = session.world.services
    services.command = run_command
    session.feed(b"\x01")
    assert not session.client.transport.open
    assert session.client.unread == b""


async def test_nothing_is_read_after_the_end(session: Session) -> None:
    services: Any = session.world.services
    services.command = run_command
    session.conn.data_received(frame(b"\x01") + frame(b"\x03SELECT 1"))
    await session.settle()
    assert session.sqls == []


def test_the_end_of_the_stream_ends_the_connection(session: Session) -> None:
    assert session.conn.eof_received() is False


async def test_statistics_count_every_answer(session: Session) -> None:
    session.feed(b"\x03SELECT 1", b"\x0e")
    await session.settle()
    assert session.world.services.stats.total == 2
