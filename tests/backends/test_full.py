"""A server that takes no more connections, and what the pool says of a host whose connections still work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from proxy.backends.pool import CAPABILITY_SETS, FOUND_ROWS
from proxy.backends.refusals import AccountRefused
from proxy.backends.settings import LOGIN
from tests.backends.hosts import LIMITS, World

READ, WRITE = CAPABILITY_SETS, 2 * CAPABILITY_SETS
FULL = "Too many connections (error 1040)"


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World(replace(LIMITS, max_connections=4))
    made.pool.state.serve(3)
    yield made
    made.check()
    made.pool.close()


async def idle(world: World, *capability_sets: int) -> None:
    """Idle connections of these variants, the first for longest."""
    conns = [await world.lent(capability_set) for capability_set in capability_sets]
    for conn in conns:
        world.tick(1)
        world.pool.release(conn)


async def wait_in_vain(world: World, capability_set: int, whose: str = "host") -> None:
    world.waiter(capability_set=capability_set)
    await world.settle()
    await world.open_failed(FULL, full=whose)


# -- what is said of the host
# ----------------------------------------------------------------------------------------------------------


async def test_a_look_finds_that_it_takes_connections_again(world: World) -> None:
    """Nobody needs another connection: there are idle ones."""
    await idle(world, READ)
    await wait_in_vain(world, READ | FOUND_ROWS)
    world.pool.state.all_waiting()
    for _ in range(3):
        world.tick(4.9)
        await world.settle()
        assert not world.openings
        world.tick(0.2)
        await world.settle()
        assert len(world.openings) == 1, "one look at a time"
        world.tick(20)
        assert len(world.openings) == 1
        await world.open_failed(FULL, full="host")
    assert (world.pool.failures, world.pool.trouble) == (4, FULL)
    world.tick(5.1)
    await world.settle()
    await world.opened()
    assert (world.pool.failures, world.pool.trouble, world.pool.up) == (0, "", True)
    world.tick(60)
    await world.settle()
    assert not world.openings


async def test_a_look_where_the_pool_is_full(world: World) -> None:
    """Its own connection is in nobody's way."""
    for _ in range(3):
        await world.lent(READ)
    for _ in range(2):
        world.waiter(capability_set=READ)
    await world.settle()
    assert len(world.openings) == 1
    await world.open_failed(FULL, full="host")
    world.tick(0.3)
    await world.settle()
    await world.opened()
    assert (world.pool.failures, world.pool.state.size) == (0, 4)
    world.pool.hangs(10)  # while it says nothing; it keeps what is not read from
    size = world.pool.state.size
    for reason in ("no answer", ""):
        world.tick(6)
        await world.settle()
        assert len(world.openings) == 1
        world.tick(6)
        assert len(world.openings) == 1
        await (world.open_failed(reason) if reason else world.opened())
        assert world.pool.state.size == size
    assert world.last.closed
    assert (world.pool.failures, world.pool.trouble) == (0, "")


async def test_a_host_that_answers_is_up(world: World) -> None:
    await idle(world, READ, READ)
    await wait_in_vain(world, WRITE)
    assert world.pool.up, "it takes no more connections, and serves those that there are"
    assert (world.pool.failures, world.pool.trouble) == (1, FULL)
    while (conn := world.pool.state.take(LOGIN, None, READ)) is not None:
        world.pool.discard(conn, kill=False)
    assert world.pool.away, "it serves nobody"
    assert not world.pool.up


async def test_a_refused_account_is_looked_at_though_nobody_needs_it(world: World) -> None:
    """Its password is right again, and idle connections serve its users: nobody else would find out."""
    pauses = []
    world.waiter(capability_set=READ)
    await world.settle()
    for count in range(1, 16):
        opening, capability_set = world.openings.pop(0)
        assert capability_set == READ
        opening.set_exception(AccountRefused(world.pool.host, "reads", "Access denied (error 1045)"))
        await world.settle()
        assert world.pool.refusals[1].count == count
        begun = world.now
        while not world.openings:
            world.tick(1)
            await world.settle()
        pauses.append(world.now - begun)
    assert pauses == [5.0 * min(count, 12) for count in range(1, 16)], "or servers would lock it for ever"
    await world.opened()
    assert world.pool.trouble == ""


async def test_the_newest_trouble_is_told_first(world: World) -> None:
    world.waiter(capability_set=READ)
    await world.settle()
    opening, _ = world.openings.pop(0)
    opening.set_exception(AccountRefused(world.pool.host, "reads", "Access denied (error 1045)"))
    await world.settle()
    world.now += 1
    await wait_in_vain(world, WRITE)
    assert world.pool.trouble == f"{FULL}; account reads: Access denied (error 1045)"


async def test_new_passwords_are_tried_at_once(world: World) -> None:
    world.waiter(capability_set=READ)
    await world.settle()
    opening, _ = world.openings.pop(0)
    opening.set_exception(AccountRefused(world.pool.host, "reads", "Access denied (error 1045)"))
    await world.settle()
    world.pool.renew()
    world.waiter(capability_set=READ)
    await world.settle()
    await world.opened()
    assert len(world.granted) == 1


# -- room for another
# ----------------------------------------------------------------------------------------------------------


async def test_an_idle_one_of_another_account_makes_room(world: World) -> None:
    """The one that was used longest ago; and the server gets a moment to notice."""
    await idle(world, WRITE, WRITE)
    first, second = world.pool.state.idle[WRITE]
    await wait_in_vain(world, READ)
    assert (first.closed, second.closed) == (True, False)
    world.tick()
    await world.settle()
    assert not world.openings
    world.tick(0.25)
    await world.settle()
    assert await world.opened() == READ
    assert len(world.granted) == 1
    assert world.pool.failures == 0


async def test_one_for_each_that_waits(world: World) -> None:
    """Somebody else may take the place that became free: not all that the pool has goes for one."""
    await idle(world, WRITE, WRITE, WRITE)
    await wait_in_vain(world, READ)
    for _ in range(3):
        world.tick(6)
        await world.settle()
        if world.openings:
            await world.open_failed(FULL, full="host")
    assert len(world.pool.state.idle[WRITE]) == 2


async def test_nobody_waits_any_more(world: World) -> None:
    await idle(world, WRITE)
    world.waiter(capability_set=READ).cancelled = True
    world.waiter(capability_set=READ)
    await world.settle()
    for waiter in world.pool.state.waiting:
        waiter.cancelled = True
    await world.open_failed(FULL, full="host")
    assert world.pool.state.idle_count == 1


async def test_the_limit_of_an_account_is_its_own(world: World) -> None:
    await idle(world, WRITE, READ | FOUND_ROWS)
    await wait_in_vain(world, READ, "account")
    assert [len(world.pool.state.idle[one]) for one in (WRITE, READ | FOUND_ROWS)] == [1, 0]


async def test_another_error_makes_no_room(world: World) -> None:
    await idle(world, WRITE)
    world.waiter(capability_set=READ)
    await world.settle()
    await world.open_failed("no route")
    assert world.pool.state.idle_count == 1
