"""Several accounts on one host: connections are not mixed up, the limit is one, and a refused account stops
itself only.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from proxy.backends import Backends
from proxy.backends.pool import CAPABILITY_SETS, FOUND_ROWS
from proxy.backends.refusals import AccountRefused
from proxy.backends.settings import LOGIN
from tests.backends.hosts import World

READ, WRITE = CAPABILITY_SETS, 2 * CAPABILITY_SETS


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    made.pool.state.serve(3)
    yield made
    made.pool.close()


async def refuse(world: World, account: str) -> None:
    opening, _ = world.openings.pop(0)
    opening.set_exception(AccountRefused(world.pool.host, account, "Access denied (error 1045)"))
    await world.settle()


async def test_connections_of_another_account_are_never_given(world: World) -> None:
    conn = await world.lent(READ)
    world.pool.release(conn)
    for capability_set in (0, WRITE, READ | FOUND_ROWS):
        assert world.pool.state.take(LOGIN, None, capability_set) is None
    assert world.pool.state.take(LOGIN, None, READ) is conn


async def test_an_idle_one_of_another_account_makes_room(world: World) -> None:
    """All accounts share one limit."""
    first, second = await world.lent(READ), await world.lent(READ)
    world.pool.release(first)
    world.waiter(capability_set=WRITE)
    await world.settle()
    assert first.closed
    assert await world.opened() == WRITE
    assert world.pool.state.size == 2
    assert not second.closed
    assert world.granted[0].capability_set == WRITE


async def test_a_refused_account_stops_nobody_else(world: World) -> None:
    for capability_set in (READ, READ, WRITE):
        world.waiter(capability_set=capability_set)
    await world.settle()
    await refuse(world, "reads")
    assert world.refused == ["account_refused", "account_refused"]
    assert world.pool.failures == 0
    while not world.granted:
        if world.openings[0][1] == WRITE:
            await world.opened()
        else:
            await refuse(world, "reads")
    assert world.granted[0].capability_set == WRITE
    assert "reads" in world.pool.trouble


async def test_it_is_tried_again_after_a_while(world: World) -> None:
    world.waiter(capability_set=READ)
    await world.settle()
    await refuse(world, "reads")
    world.waiter(capability_set=READ)
    assert world.refused == ["account_refused", "account_refused"]
    assert world.openings == []
    world.tick(6)
    world.waiter(capability_set=READ)
    await world.settle()
    await world.opened()
    assert world.granted[0].capability_set == READ
    assert world.pool.trouble == ""


async def test_a_host_that_only_refuses_an_account_is_there(world: World) -> None:
    world.waiter(capability_set=READ)
    await world.settle()
    await world.open_failed("no route")
    assert world.pool.trouble == "no route"
    world.tick(6)
    await world.settle()
    await refuse(world, "own")
    assert world.pool.failures == 0


async def test_a_kill_goes_as_the_same_account(world: World) -> None:
    conn = await world.lent(READ | FOUND_ROWS)
    world.pool.discard(conn, kill=True)
    await world.settle()
    assert await world.opened() == READ


async def test_numbers_of_accounts() -> None:
    world = World()
    backends = Backends(lambda host: world.pool)
    assert backends.pool("h1").state.take(LOGIN, None, 0) is None
    assert [backends.capability_set_of(name) for name in ("", "a", "b", "a")] == [0, READ, WRITE, READ]
    assert [backends.account_of(one) for one in (0, 1, READ, READ | FOUND_ROWS, WRITE)] == [
        "",
        "",
        "a",
        "a",
        "b",
    ]
    assert backends.pool("h1").state.take(LOGIN, None, WRITE | FOUND_ROWS) is None
    world.pool.close()
