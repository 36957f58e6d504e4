"""Nobody gets more than a share of a turn of the loop, whatever he sends at once. Counted, not timed."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
import zstandard

from proxy.engine.work import Phase
from proxy.frontend import compressed
from proxy.frontend import connection as module
from proxy.frontend.compressed import compress
from proxy.frontend.connection import ClientConnection
from proxy.wire.compression import Algorithm
from proxy.wire.packets import frame
from tests.execute.world import Client, World
from tests.support.waiting import turns

PING = frame(b"\x0e")


class Counting:
    """A client whose commands are counted, each answered at once."""

    def __init__(self, world: World, algorithm: Algorithm | None = None) -> None:
        services: Any = world.services
        services.command = self.command
        services.execute = self.command
        self.conn = Client(world).conn
        self.done: dict[ClientConnection, int] = services.__dict__.setdefault("done", {})
        self.incoming: Any = self.conn
        if algorithm is not None:
            compress(self.conn, algorithm, 3)
            sink: Any = self.conn.transport
            self.incoming = sink.incoming

    def command(self, client: ClientConnection, payload: bytes) -> None:
        self.done[client] = self.done.get(client, 0) + 1
        client.reply_ok()

    @property
    def count(self) -> int:
        return self.done.get(self.conn, 0)


def packed(payload: bytes, algorithm: Algorithm) -> bytes:
    small = zlib.compress(payload) if algorithm is Algorithm.ZLIB else zstandard.compress(payload)
    return (len(small) | len(payload) << 32).to_bytes(7, "little") + small


def raw(client: Counting) -> Any:
    """The transport at the bottom."""
    transport: Any = client.conn.transport
    return getattr(transport, "below", transport)


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("command", [b"\x0e", b"\x03SELECT 1"])
async def test_one_command_in_each_turn(world: World, command: bytes) -> None:
    hostile, other = Counting(world), Counting(world)
    hostile.conn.data_received(frame(command) * 1000)
    assert hostile.count == 1
    for turn in range(1, 10):
        other.conn.data_received(PING)
        assert other.count == turn, "at once"
        assert hostile.count <= turn + 1
        await turns()
    await turns(1000)
    assert hostile.count == 1000


async def test_commands_without_an_answer(world: World) -> None:
    hostile = Counting(world)

    def closes(client: ClientConnection, payload: bytes) -> None:
        hostile.done[client] = hostile.count + 1
        client.unanswered()

    services: Any = world.services
    services.command = closes
    hostile.conn.data_received(frame(b"\x19\1\0\0\0") * 1000)
    assert hostile.count == 1
    await turns(10)
    assert hostile.count <= 11
    await turns(1000)
    assert hostile.count == 1000


async def test_the_packets_of_a_phase(world: World) -> None:
    """As of a file that comes in packets of a byte; what follows it is a command."""
    hostile = Counting(world)
    taken: list[bytes] = []

    class File:
        def payload(self, seq: int, payload: bytes) -> None:
            taken.append(payload)
            if not payload:
                hostile.conn.phase = None

        def abandon(self) -> None: ...

    phase: Phase = File()
    hostile.conn.phase = phase
    hostile.conn.data_received(frame(b"x") * 1000 + frame(b"") + PING)
    most = module._PACKETS
    assert len(taken) == most
    assert not raw(hostile).reading
    await turns(3)
    assert most < len(taken) <= 4 * most
    await turns(1000 // most + 3)
    assert (len(taken), hostile.count) == (1001, 1)
    assert raw(hostile).reading
    hostile.conn.data_received(PING)
    assert hostile.count == 2


@pytest.mark.parametrize("algorithm", list(Algorithm))
@pytest.mark.parametrize("frames", [1, 200])
async def test_what_is_compressed_is_expanded_in_turns(
    world: World, algorithm: Algorithm, frames: int
) -> None:
    hostile = Counting(world, algorithm)
    hostile.incoming.data_received(packed(PING * (1_000_000 // frames), algorithm) * frames)
    assert hostile.count == 1
    await turns(100)
    assert 1 < hostile.count <= 101
    assert hostile.conn._reader.pending <= compressed._AT_ONCE


@pytest.mark.parametrize("algorithm", list(Algorithm))
async def test_a_bomb_takes_no_memory_before_it_is_read(world: World, algorithm: Algorithm) -> None:
    """16 MB in 16 KB, again and again, behind a statement that is at work."""
    hostile = Counting(world, algorithm)
    services: Any = world.services
    services.execute = lambda client, sql: None
    hostile.incoming.data_received(packed(frame(b"\x03SELECT 1"), algorithm))
    bomb = packed(b"\xff\xff\xff\0\x03" + b" " * 16_000_000, algorithm)
    for _ in range(8):
        hostile.incoming.data_received(bomb)
    await turns(100)
    assert hostile.conn._reader.pending <= compressed._AT_ONCE
    assert not raw(hostile).reading


async def test_many_small_compressed_packets(world: World) -> None:
    """A packet's bytes, one in each compressed packet."""
    hostile = Counting(world, Algorithm.ZLIB)
    packet = frame(b"\x03" + b"x" * 10_000)
    hostile.incoming.data_received(b"".join(b"\1\0\0\0\0\0\0" + bytes((one,)) for one in packet))
    assert 0 < hostile.conn._reader.pending <= compressed._PACKETS
    assert hostile.count == 0
    await turns(len(packet) // compressed._PACKETS + 2)
    assert hostile.count == 1
