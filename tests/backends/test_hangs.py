"""A host that hangs: whom it is asked about, what it may answer, and what becomes of its statements."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from proxy.backends.connection import BackendConnection
from proxy.backends.silence import Silence
from proxy.errors import ProxyError
from proxy.wire.resultset import encode_row
from tests.backends.fakes import OK, Recorder, connection
from tests.backends.hosts import LIMITS, World
from tests.wire.streams import Rows, definitions, err_packet, reply_packets

PATIENT = replace(LIMITS, hang_timeout=10.0, statement_timeout=None)


def running(number: int = 7) -> BackendConnection:
    conn, _ = connection()
    conn.thread_id = number
    conn.send(b"statement", Recorder())
    return conn


# -- which replies stand still
# ----------------------------------------------------------------------------------------------------------


def test_silent_from_the_first_look_on() -> None:
    conn, silence = running(), Silence(5.0)
    assert [silence.look([conn], now) for now in (100.0, 104.9, 105.0)] == [[], [], [conn]]


def test_every_byte_counts() -> None:
    """Also such that end no row: a row of 60 KB that comes in pieces."""
    conn, silence = running(), Silence(5.0)
    reply = b"".join(reply_packets([Rows(rows=[encode_row([b"x" * 60_000])])]))
    silence.look([conn], 0.0)
    for number, start in enumerate(range(0, len(reply) - 1000, 1000), 1):
        conn.data_received(reply[start : start + 1000])
        assert silence.look([conn], 4.9 * number) == []


def test_what_the_server_still_reads_counts() -> None:
    conn, silence = running(), Silence(5.0)
    for number in range(4):
        conn.transport.unsent = 1000 - number  # type: ignore[attr-defined]
        assert silence.look([conn], 4.9 * number) == []
    assert silence.look([conn], 4.9 * 3 + 5) == [conn]


def test_a_slow_reader_is_no_silent_host() -> None:
    conn, silence = running(), Silence(5.0)
    silence.look([conn], 0.0)
    conn.transport.pause_reading()
    assert silence.look([conn], 100.0) == []
    conn.transport.resume_reading()
    assert silence.look([conn], 104.0) == []
    assert silence.look([conn], 109.0) == [conn]


def test_a_connection_without_a_statement_is_not_silent() -> None:
    conn, _ = connection()
    silence = Silence(5.0)
    assert silence.look([conn], 0.0) == silence.look([conn], 100.0) == []


def test_the_next_statement_begins_anew() -> None:
    conn, silence = running(), Silence(5.0)
    silence.look([conn], 0.0)
    conn.data_received(OK)
    conn.send(b"statement", Recorder())
    assert silence.look([conn], 6.0) == []


def test_the_host_says_twice_that_nothing_runs() -> None:
    lost, busy, silence = running(1), running(2), Silence(5.0)
    silence.look([lost, busy], 0.0)
    silent = silence.look([lost, busy], 5.0)
    assert silence.told(silent, [2]) == []
    silence.look([lost, busy], 10.0)
    assert silence.told(silent, [2]) == [lost]


def test_a_reply_that_was_on_its_way() -> None:
    conn, silence = running(1), Silence(5.0)
    silence.look([conn], 0.0)
    assert silence.told([conn], []) == []
    conn.data_received(OK)
    conn.send(b"statement", Recorder())
    silence.look([conn], 5.0)
    assert silence.told([conn], []) == []


# -- what becomes of them
# ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def world() -> World:
    return World(PATIENT)


async def a_silent_statement(world: World) -> tuple[BackendConnection, Recorder]:
    conn, receiver = await world.lent(), Recorder()
    conn.begun = world.now
    conn.send(b"statement", receiver)
    await passing(world, 6)
    return conn, receiver


async def passing(world: World, seconds: float) -> None:
    for _ in range(int(seconds * 2)):
        world.tick(0.5)
        await world.settle()


def listed(threads: Sequence[int]) -> bytes:
    rows = [encode_row([b"%d" % thread]) for thread in threads]
    return b"".join(reply_packets([Rows(rows=rows, definitions=definitions(1))]))


async def test_a_host_that_answers_keeps_its_statements(world: World) -> None:
    conn, receiver = await a_silent_statement(world)
    for _ in range(10):
        assert len(world.openings) == 1
        await world.opened()
        asked = world.answer(world.last, listed([conn.thread_id]))
        assert b"AND ID IN (%d)" % conn.thread_id in asked
        await world.settle()
        assert world.last.closed
        await passing(world, 6)
    assert not receiver.ends
    assert world.pool.state.size == 1
    conn.data_received(OK)
    assert receiver.done == [(0, None)]


@pytest.mark.parametrize("answer", ["refused", "error"])
async def test_a_host_that_cannot_tell_is_alive(world: World, answer: str) -> None:
    _, receiver = await a_silent_statement(world)
    for _ in range(4):
        if answer == "refused":
            await world.open_failed("Too many connections (error 1040)")
        else:
            await world.opened()
            world.answer(world.last, err_packet(1, 1109, "42S02", "Unknown table"))
            await world.settle()
        await passing(world, 6)
    assert not receiver.ends


async def test_a_reply_that_was_lost_on_its_way(world: World) -> None:
    conn, receiver = await a_silent_statement(world)
    for _ in range(2):
        assert not receiver.ends
        await world.opened()
        world.answer(world.last, listed([]))
        await passing(world, 6)
    assert receiver.lost == [("reply_missing", True)]
    assert conn.closed


async def no_answer(world: World) -> None:
    """What the host is asked gets no answer, for as long as it may take."""
    opening, _ = world.openings.pop(0)
    world.now += 5
    opening.set_exception(ProxyError("host_unreachable", host="h1:3306", reason="no answer", silent=True))
    await world.settle()


async def test_a_host_that_hangs(world: World) -> None:
    conn, receiver = await a_silent_statement(world)
    world.waiter()
    await world.settle()
    assert len(world.openings) == 2
    await no_answer(world)
    assert receiver.lost == [("host_hangs", True)]
    assert conn.closed
    assert world.pool.failures == 1
    assert "has not answered for 10 s" in world.pool.last_error
    assert len(world.openings) == 2, "for the one that waits, and to end the statement there"
    await world.open_failed()
    assert world.refused == ["host_unreachable"]
    await no_answer(world)
    assert not world.openings
    world.tick(5)
    await world.settle()
    assert len(world.openings) == 2, "a look at the host, and the KILL that it is still to get"
    await world.opened()
    await world.opened()
    assert any(b"KILL %d" % conn.thread_id in bytes(one.written) for one in world.transports.values())


async def test_it_answers_somebody_else_meanwhile(world: World) -> None:
    _, receiver = await a_silent_statement(world)
    world.waiter()
    await world.settle()
    asking = world.openings.pop(0)
    world.now += 1
    await world.opened()
    world.openings.insert(0, asking)
    await no_answer(world)
    assert not receiver.ends
    assert not world.pool.failures


async def test_idle_connections_to_it_are_not_used(world: World) -> None:
    idle, (_, receiver) = await world.lent(), await a_silent_statement(world)
    world.pool.state.busy.pop(idle)
    world.pool.state.idle[0].append(idle)
    await no_answer(world)
    assert receiver.ends
    assert idle.closed
    assert not world.pool.state.size


async def test_no_limit() -> None:
    world = World(replace(PATIENT, hang_timeout=None))
    await a_silent_statement(world)
    await passing(world, 60)
    assert not world.openings


# -- kills
# ----------------------------------------------------------------------------------------------------------


async def test_kills_take_one_connection(world: World) -> None:
    for thread in range(100, 104):
        world.pool.kill_soon(thread, 0)
    await world.settle()
    assert len(world.openings) == 1
    world._threads = iter([1000])  # type: ignore[assignment]
    await world.opened()
    killer = world.last
    for thread in range(100, 104):
        assert b"KILL %d" % thread in world.transports[killer].take()
        killer.data_received(OK)
        await world.settle()
    assert killer.closed
    assert not world.pool._kills.pending


async def test_what_has_ended_meanwhile_is_not_killed(world: World) -> None:
    """The next statement would be. A whole connection that is to end still is."""
    for thread in (100, 101):
        world.pool.kill_soon(thread, 0, query_only=True)
    world.pool.kill_soon(102, 0)
    for thread in (100, 102, 103):
        world.pool.withdraw_kill(thread)
    await world.settle()
    world._threads = iter([1000])  # type: ignore[assignment]
    await world.opened()
    killer = world.last
    for sql in (b"KILL QUERY 101", b"KILL 102"):
        assert sql in world.transports[killer].take()
        killer.data_received(OK)
        await world.settle()
    assert killer.closed


async def test_kills_wait_for_a_host_that_hangs_and_not_for_one_that_is_gone(world: World) -> None:
    world.pool.kill_soon(1, 0)
    await world.settle()
    await no_answer(world)
    assert list(world.pool._kills.pending) == [1]
    world.tick(5)
    await world.settle()
    assert len(world.openings) == 1
    opening, _ = world.openings.pop(0)
    opening.set_exception(ProxyError("host_unreachable", host="h", reason="refused", refused=True))
    await world.settle()
    assert not world.pool._kills.pending


async def test_a_server_that_was_started_again_has_other_threads(world: World) -> None:
    """Its numbers begin anew: a kill of before would hit somebody else."""
    world.pool.kill_soon(500, 0)
    await world.settle()
    await world.opened()
    assert world.last.thread_id == 0
    assert world.transports[world.last].take() == b""
    assert world.last.closed


async def test_kills_are_bounded(world: World) -> None:
    for thread in range(1000):
        world.pool.kill_soon(thread, 0)
    assert len(world.pool._kills.pending) == 2 * PATIENT.max_connections
    for task in world.tasks:
        task.cancel()
    await asyncio.gather(*world.tasks, return_exceptions=True)
