"""Sinks stand on a client's transport for the time of a command, in a pile, and leave nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from proxy.engine.exchange import Standing
from proxy.engine.sinks import CommandSink, Sink
from proxy.frontend.connection import ClientConnection
from tests.execute.world import Client, World


class Marking(CommandSink):
    """Puts a mark in front of whatever is written."""

    def __init__(self, client: ClientConnection, mark: bytes, stays: int = 0) -> None:
        super().__init__(client)
        self.mark = mark
        self.stays = stays
        self.outcomes: list[str] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.below.write(self.mark + data)

    def answered(self, outcome: str) -> bool:
        self.outcomes.append(outcome)
        if self.stays:
            self.stays -= 1
            return False
        return super().answered(outcome)


@pytest.fixture
def client() -> Iterator[Client]:
    asyncio.set_event_loop(loop := asyncio.new_event_loop())
    yield Client(World())
    loop.close()


def in_place(conn: ClientConnection) -> tuple[asyncio.Transport, Standing | None]:
    return conn.transport, conn.sink


def test_a_pile_is_taken_down_when_the_command_is_answered(client: Client) -> None:
    conn, real = client.conn, client.conn.transport
    below = Marking(conn, b"b")
    above = Marking(conn, b"a")
    conn.write(b"-")
    assert client.transport.take() == b"ba-"
    conn.finish("ok")
    assert in_place(conn) == (real, None)
    assert above.outcomes == below.outcomes == ["ok"]
    conn.write(b"-")
    assert client.transport.take() == b"-"


def test_one_that_stays_gets_the_next_statement_too(client: Client) -> None:
    conn, real = client.conn, client.conn.transport
    below = Marking(conn, b"b", stays=1)
    Marking(conn, b"a")
    conn.finish("ok")
    assert in_place(conn) == (below, below)
    conn.finish("error")
    assert in_place(conn) == (real, None)
    assert below.outcomes == ["ok", "error"]


def test_it_stands_on_one_for_life(client: Client) -> None:
    conn, real = client.conn, client.conn.transport
    conn.transport = bottom = Sink(real)
    Marking(conn, b"a")
    conn.write(b"-")
    conn.finish("ok")
    assert client.transport.take() == b"a-"
    assert in_place(conn) == (bottom, None)
    asked = []
    for ask in (conn.transport.pause_reading, conn.transport.resume_reading):
        ask()
        asked.append(client.transport.reading)
    assert asked == [False, True]
    conn.close()
    assert not client.transport.open


def test_only_the_one_on_top_can_go(client: Client) -> None:
    below = Marking(client.conn, b"b")
    Marking(client.conn, b"a")
    with pytest.raises(RuntimeError):
        below.remove()
