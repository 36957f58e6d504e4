"""A host's pool at work: lending, waiting, back-off, time-outs, resets, kills and the end."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from proxy.backends.pool import FOUND_ROWS
from proxy.backends.settings import LOGIN
from proxy.errors import ProxyError
from proxy.wire.packets import frame
from tests.backends.fakes import OK, Recorder
from tests.backends.hosts import ERROR, LIMITS, RESET, World

# -- lending
# ----------------------------------------------------------------------------------------------------------


async def test_open_lend_and_lend_again(world: World) -> None:
    assert world.pool.state.take(LOGIN, None, False) is None
    conn = await world.lent()
    assert conn in world.pool.state.busy
    assert (world.pool.version, world.pool.opened_total) == ("9.7.0", 1)
    world.pool.release(conn)
    assert world.pool.state.take(LOGIN, None, False) is conn


async def test_given_back_to_the_next_in_the_queue(world: World) -> None:
    conns = [await world.lent(), await world.lent()]
    world.waiter()
    world.waiter()
    await world.settle()
    assert not world.openings, "both connections are in use"
    for conn in conns:
        world.pool.release(conn)
    assert world.granted == conns
    assert not world.pool.state.waiting


async def test_the_queue_is_full(world: World) -> None:
    for _ in range(5):
        world.waiter()
    assert world.refused == ["pool_full", "pool_full"]


async def test_a_connection_of_the_other_kind_makes_room_at_once(world: World) -> None:
    first, second = await world.lent(), await world.lent()
    world.pool.release(first)
    world.waiter(capability_set=FOUND_ROWS)
    await world.settle()
    assert first.closed
    assert await world.opened()
    assert world.granted[0].capability_set
    world.pool.release(second)


async def test_a_connection_of_the_other_kind_makes_room_when_it_is_given_back(world: World) -> None:
    first, _ = await world.lent(), await world.lent()
    world.waiter(capability_set=FOUND_ROWS)
    await world.settle()
    assert not world.openings
    world.pool.release(first)
    await world.settle()
    assert first.closed
    assert await world.opened()
    assert len(world.granted) == 1


async def test_lost_connections_are_replaced_for_those_who_wait(world: World) -> None:
    first, _ = await world.lent(), await world.lent()
    world.waiter()
    first.connection_lost(None)
    await world.settle()
    await world.opened()
    assert len(world.granted) == 1


async def test_an_idle_connection_that_the_server_closes_is_forgotten(world: World) -> None:
    conn = await world.lent()
    world.pool.release(conn)
    conn.data_received(ERROR)
    assert conn.closed
    assert world.pool.state.take(LOGIN, None, False) is None
    assert world.pool.state.size == 0


async def test_whatever_opening_raises_its_place_is_free_again(world: World) -> None:
    world.waiter()
    await world.settle()
    world.openings.pop()[0].set_exception(RuntimeError("a bug"))
    await world.settle()
    assert world.pool.state.size == 0
    world.tick()
    await world.settle()
    await world.opened()
    assert len(world.granted) == 1
    world.tasks.pop(0)


# -- for coroutines
# ----------------------------------------------------------------------------------------------------------


async def test_connection_is_take_or_wait(world: World) -> None:
    task = asyncio.create_task(world.pool.connection(LOGIN, None, 0))
    await world.settle()
    await world.opened()
    conn = await task
    world.pool.release(conn)
    assert await world.pool.connection(LOGIN, None, 0) is conn


async def test_connection_refused(world: World) -> None:
    task = asyncio.create_task(world.pool.connection(LOGIN, None, 0))
    await world.settle()
    await world.open_failed("no route")
    with pytest.raises(ProxyError, match="no route"):
        await task


async def test_cancelled_while_waiting(world: World) -> None:
    task = asyncio.create_task(world.pool.connection(LOGIN, None, 0))
    await world.settle()
    task.cancel()
    await world.settle()
    await world.opened()
    assert world.pool.state.idle_count == 1


@pytest.mark.parametrize("cancel_first", [True, False])
async def test_cancelled_in_the_very_turn_it_is_granted(world: World, cancel_first: bool) -> None:
    """The connection must not stay lent to nobody."""
    conn = await world.lent()
    other = await world.lent()
    task = asyncio.create_task(world.pool.connection(LOGIN, None, 0))
    await world.settle()
    if cancel_first:
        task.cancel()
    world.pool.release(conn)
    task.cancel()
    await world.settle()
    assert task.cancelled()
    assert world.pool.state.busy.keys() == {other}
    assert world.pool.state.take(LOGIN, None, False) is conn


# -- a host that is away
# ----------------------------------------------------------------------------------------------------------


async def test_refused_when_it_cannot_be_reached(world: World) -> None:
    world.waiter()
    world.waiter()
    await world.settle()
    await world.open_failed()
    assert world.refused == [], "another one is being opened"
    await world.open_failed()
    assert world.refused == ["host_unreachable"] * 2
    assert (world.pool.failures, world.pool.last_error) == (2, "refused")


async def test_refused_at_once_while_it_is_known_to_be_away(world: World) -> None:
    world.waiter()
    await world.settle()
    await world.open_failed()
    world.refused.clear()
    world.waiter()
    assert world.refused == ["host_unreachable"]
    await world.settle()
    assert not world.openings


async def test_back_off(world: World) -> None:
    """The times between two attempts double up to five seconds; a success ends it."""
    pauses = []
    for _ in range(8):
        world.waiter()
        await world.settle()
        await world.open_failed()
        begun = world.now
        while not world.openings:
            world.now += 0.05
            world.waiter()
            await world.settle()
        pauses.append(round(world.now - begun, 2))
        await world.open_failed()
        world.pool.failures -= 1
        world.now += 10
    assert pauses == pytest.approx([0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0], abs=0.06)
    await world.lent()
    assert world.pool.failures == 0


async def test_waiting_goes_on_while_a_connection_is_open(world: World) -> None:
    conn = await world.lent()
    world.waiter()
    await world.settle()
    await world.open_failed()
    assert world.refused == []
    world.waiter()
    assert world.refused == []
    world.pool.release(conn)
    assert world.granted == [conn]


async def test_tick_tries_again(world: World) -> None:
    conn = await world.lent()
    world.waiter()
    await world.settle()
    await world.open_failed()
    world.tick()
    await world.settle()
    assert not world.openings
    world.tick(0.3)
    await world.settle()
    assert len(world.openings) == 1
    conn.close()
    await world.settle()
    await world.opened()
    assert len(world.granted) == 1


# -- time
# ----------------------------------------------------------------------------------------------------------


async def test_waiting_has_a_limit(world: World) -> None:
    await world.lent()
    await world.lent()
    world.waiter()
    world.tick(9.9)
    assert world.refused == []
    world.tick(0.1)
    assert world.refused == ["pool_timeout"]
    world.tick(100)
    assert world.refused == ["pool_timeout"]


@pytest.mark.parametrize(("share", "own", "expected"), [
    (0.7, 0, "pool_timeout"), (0.7, 1, "user_share_timeout"), (1.0, 1, "pool_timeout"),
    (0.7, 3, "pool_timeout"),
])  # fmt: skip
async def test_a_full_pool_is_no_user_s_share(share: float, own: int, expected: str) -> None:
    """Others have all connections; only who has had its share is told so."""
    world = World(replace(LIMITS, max_connections=3, user_share=share))
    for number in range(3):
        conn = await world.lent()
        world.pool.state.busy[conn] = "mine" if number < own else f"other {number}"
    refused: list[Any] = []
    world.pool.wait(LOGIN, None, 0, world.granted.append, refused.append, "mine")
    world.tick(LIMITS.wait_timeout)
    assert [error.kind.name for error in refused] == [expected]


async def test_who_has_had_its_share_is_told_how_long_it_has_waited() -> None:
    """And with how many others, none of which waits any more then."""
    world = World(replace(LIMITS, max_connections=3, max_waiting=9, user_share=0.7))
    for number in range(2):
        world.pool.state.busy[await world.lent()] = "mine" if number else "other"
    refused: list[Exception] = []
    waiters = [world.pool.wait(LOGIN, None, 0, world.granted.append, refused.append, "mine") for _ in "1234"]
    world.pool.state.busy[await world.lent()] = "other"
    waiters[3].cancel()
    world.tick(LIMITS.wait_timeout)
    assert len(set(map(str, refused))) == 1
    assert str(refused[0]).startswith(
        "No connection to h1:3306 became free for user 'mine' within 10 s (backends.queue_timeout):"
        " it has 1 in use, which is its share, and had 3 statements waiting for one. "
    )
    assert len(refused) == 3


async def test_what_the_proxy_asks_for_itself_is_no_statement_that_waits(world: World) -> None:
    await world.lent()
    await world.lent()
    world.waiter()
    waiter = world.pool.wait(LOGIN, None, 0, world.granted.append, print, "mine")
    assert (len(world.pool.state.waiting), world.pool.state.waiting.of_clients) == (2, 1)
    waiter.cancel()
    assert world.pool.state.waiting.of_clients == 0


async def test_what_the_proxy_asks_for_itself_takes_no_place_in_the_queue(world: World) -> None:
    """As when it looks at tables, or for branches that are left, while all connections are in use."""
    await world.lent()
    await world.lent()
    refused: list[Exception] = []
    world.pool.wait(LOGIN, None, 0, world.granted.append, refused.append)
    for user in ("a", "b", "c"):
        world.pool.wait(LOGIN, None, 0, world.granted.append, refused.append, user)
    assert (len(world.pool.state.waiting), refused) == (LIMITS.max_waiting + 1, [])
    world.pool.wait(LOGIN, None, 0, world.granted.append, refused.append, "d")
    world.pool.wait(LOGIN, None, 0, world.granted.append, refused.append)
    assert ["3 statements already wait" in str(refused[0]), "4 statements" in str(refused[1])] == [True, True]


async def test_waiting_for_a_host_that_went_away(world: World) -> None:
    await world.lent()
    world.waiter()
    await world.settle()
    await world.open_failed()
    reasons: list[str] = []
    world.pool.wait(LOGIN, None, 0, world.granted.append, lambda error: reasons.append(str(error)))
    world.tick(10)
    assert world.refused == ["host_unreachable"]
    assert "refused; and no other connection to it became free within 10 s" in reasons[0]


async def test_a_wait_in_vain_is_counted_however_it_ends(world: World) -> None:
    """For the host, and for who has waited."""

    def wait() -> Any:
        asker: Any = SimpleNamespace(queued=0.5)
        waiter = world.pool.wait(LOGIN, None, 0, world.granted.append, refused.append, asker=asker)
        waiters.append(waiter)
        return asker

    refused: list[Exception] = []
    waiters: list[Any] = []
    await world.lent()
    load = world.pool.load
    before = load.waits, load.waited
    last = await world.lent()
    assert (load.waits, load.waited) == (before[0] + 1, before[1])
    late, gone = wait(), wait()
    world.tick(4)
    waiters[1].cancel()
    assert (gone.queued, load.waits - before[0], load.waited - before[1]) == (4.5, 2, 4.0)
    world.tick(6)
    assert [error.kind.name for error in refused if isinstance(error, ProxyError)] == ["pool_timeout"]
    assert (late.queued, load.waits - before[0], load.waited - before[1]) == (10.5, 3, 14.0)
    served = wait()
    world.tick(1)
    world.pool.release(last)
    waiters[2].cancel()  # its task was cancelled in the same turn
    assert (served.queued, load.waits - before[0], load.waited - before[1]) == (1.5, 4, 15.0)


async def test_a_cancelled_waiter_hears_nothing(world: World) -> None:
    await world.lent()
    await world.lent()
    world.waiter().cancelled = True
    world.tick(11)
    assert world.refused == []
    assert not world.pool.state.waiting


async def test_a_statement_that_runs_too_long(world: World) -> None:
    conn = await world.lent()
    receiver = Recorder()
    conn.begun = world.now
    conn.send(b"statement", receiver)
    world.tick(30.0)
    assert not receiver.ends
    world.tick(0.1)
    assert receiver.lost == [("statement_timeout", True)]
    assert conn.closed
    assert world.pool.state.size == 0
    await world.settle()
    await world.opened()
    assert world.answer(world.last, OK) == frame(b"\x03KILL 1")
    await world.settle()
    assert world.last.closed
    assert world.pool.state.size == 0


async def test_the_wait_for_a_connection_is_not_counted(world: World) -> None:
    """A write that has waited would be sent and ended at once: perhaps executed."""
    conns = [await world.lent(), await world.lent()]
    came = world.now
    world.waiter()
    world.tick(9)
    world.pool.release(conns[0])
    assert world.granted == [conns[0]]
    receiver = Recorder()
    conns[0].begun = came
    conns[0].send(b"statement", receiver)
    world.tick(30.0)
    assert not receiver.ends
    world.tick(0.1)
    assert receiver.lost == [("statement_timeout", True)]


async def test_only_statements_under_way_run_too_long(world: World) -> None:
    """A transaction may pause; and what asks a question on an old connection has time for it."""
    conn = await world.lent()
    world.tick(100)
    assert not conn.closed
    world.now = asyncio.get_running_loop().time()
    conn.pinned = True
    world.pool.release(conn)
    await world.settle()
    world.tick()
    assert not conn.closed
    assert world.answer(conn, OK + OK + OK) == RESET
    await world.settle()


async def test_no_limit() -> None:
    world = World(replace(LIMITS, statement_timeout=None))
    conn = await world.lent()
    conn.send(b"statement", Recorder())
    world.tick(1e6)
    assert not conn.closed


async def test_idle_connections_are_closed(world: World) -> None:
    conns = [await world.lent(), await world.lent()]
    for conn in conns:
        world.pool.release(conn)
    world.tick(60)
    assert not any(conn.closed for conn in conns)
    world.tick(0.1)
    assert [conn.closed for conn in conns] == [True, False]
