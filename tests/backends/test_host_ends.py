"""A host's pool at the end of things: what is given back, resets, kills, and a host that leaves."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from proxy.backends.host import HostPool
from proxy.backends.pool import FOUND_ROWS
from proxy.backends.settings import LOGIN, Settings
from proxy.wire.packets import frame
from tests.backends.fakes import IN_TRANS, OK, Recorder
from tests.backends.hosts import ERROR, LIMITS, RESET, World
from tests.wire.streams import Rows, reply_packets

# -- clean or closed
# ----------------------------------------------------------------------------------------------------------


async def test_a_pinned_connection_is_reset(world: World) -> None:
    """RESET leaves the server's own character set (as MySQL 9 and MariaDB do), so it is set again."""
    conn = await world.lent()
    conn.pinned = True
    conn.settings = Settings.of({"time_zone": b"'+00:00'"})
    world.pool.release(conn)
    assert world.pool.state.take(LOGIN, None, False) is None
    await world.settle()
    assert world.answer(conn, OK + OK + OK) == RESET
    await world.settle()
    assert world.pool.state.take(LOGIN, None, False) is conn
    assert (conn.pinned, conn.settings) == (False, LOGIN)


async def test_an_open_transaction_is_reset(world: World) -> None:
    conn = await world.lent()
    world.waiter()
    conn.scanner.feed(IN_TRANS)
    world.pool.release(conn)
    await world.settle()
    assert world.granted == []
    world.answer(conn, OK + OK + OK)
    await world.settle()
    assert world.granted == [conn]


@pytest.mark.parametrize(
    "answers",
    [
        [ERROR, OK, OK],
        [OK, ERROR, OK],
        [OK, OK, ERROR],
        [OK, OK, IN_TRANS],
        [OK, OK, b"".join(reply_packets([Rows()]))],
        [b"\0\0\0\1"],
    ],
    ids=["RESET fails", "SET fails", "role fails", "still in a transaction", "rows", "nonsense"],
)
async def test_what_cannot_be_reset_is_closed(world: World, answers: list[bytes]) -> None:
    conn = await world.lent()
    conn.pinned = True
    world.pool.release(conn)
    await world.settle()
    world.answer(conn, b"".join(answers))
    await world.settle()
    assert conn.closed
    assert world.pool.state.size == 0


async def test_a_connection_lost_during_its_reset(world: World) -> None:
    conn = await world.lent()
    conn.pinned = True
    world.pool.release(conn)
    await world.settle()
    conn.connection_lost(None)
    await world.settle()
    assert world.pool.state.size == 0


async def test_a_reset_that_is_not_answered() -> None:
    world = World(replace(LIMITS, connect_timeout=0.001))
    conn = await world.lent()
    conn.pinned = True
    world.pool.release(conn)
    await asyncio.wait(world.tasks[-1:])
    assert conn.closed
    world.check()


async def test_given_back_in_the_middle_of_a_reply(world: World) -> None:
    """Its end would come as the reply to somebody else's statement."""
    conn = await world.lent()
    conn.send(b"statement", Recorder())
    conn.scanner.feed(IN_TRANS[:5])
    world.pool.release(conn)
    assert conn.closed


async def test_a_kill_may_come_late(world: World) -> None:
    conn = await world.lent()
    conn.doomed = True
    world.pool.release(conn)
    assert conn.closed


async def test_a_closed_connection_cannot_be_given_back(world: World) -> None:
    conn = await world.lent()
    conn.close()
    world.pool.release(conn)
    assert world.pool.state.size == 0


# -- kills
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("query_only", "sql"), [(False, b"KILL 2"), (True, b"KILL QUERY 2")])
@pytest.mark.parametrize("answer", [OK, ERROR], ids=["ok", "unknown thread"])
async def test_kill(world: World, query_only: bool, sql: bytes, answer: bytes) -> None:
    """Over a connection of its own, which is not one of the pool's."""
    await world.lent()
    await world.lent()
    world.pool.kill_soon(2, 0, query_only=query_only)
    await world.settle()
    await world.opened()
    assert world.answer(world.last, answer) == frame(b"\x03" + sql)
    await world.settle()
    assert world.last.closed
    assert world.pool.state.size == 2


async def test_a_kill_that_cannot_be_sent(world: World) -> None:
    world.pool.kill_soon(7, 0)
    await world.settle()
    await world.open_failed()
    assert world.pool.failures == 0


async def test_discard(world: World) -> None:
    conn = await world.lent()
    world.pool.discard(conn, kill=False)
    await world.settle()
    assert conn.closed
    assert not world.openings


# -- the end
# ----------------------------------------------------------------------------------------------------------


async def test_retire(world: World) -> None:
    idle, busy = await world.lent(), await world.lent()
    world.pool.release(idle)
    world.waiter(capability_set=FOUND_ROWS)
    world.waiter(capability_set=FOUND_ROWS)
    await world.settle()
    assert len(world.openings) == 1
    world.pool.retire()
    assert [busy.closed, idle.closed] == [False, True]
    await world.opened()
    assert len(world.granted) == 1
    world.pool.release(busy)
    assert busy.closed
    world.pool.release(world.granted[0])  # for the other one that waits: both were planned for this host
    assert len(world.granted) == 2
    assert not world.refused
    world.tick(1)
    await world.settle()
    while world.openings:
        await world.opened()
    world.pool.release(world.granted[1])
    assert world.pool.state.size == 0


async def test_close(world: World) -> None:
    idle, busy = await world.lent(), await world.lent()
    world.pool.release(idle)
    busy.send(b"statement", Recorder())
    world.pool.close()
    assert idle.closed
    assert busy.closed
    assert world.pool.state.size == 0


def test_a_pool_is_only_made_of_calls() -> None:
    """Making one needs no event loop."""
    world = World()
    assert isinstance(world.pool, HostPool)
    assert world.pool.state.size == 0
