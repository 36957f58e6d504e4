"""All hosts' pools together, as the topology comes and goes."""

from __future__ import annotations

import pytest

from proxy.backends import Backends
from proxy.backends.host import HostPool
from proxy.backends.settings import LOGIN
from proxy.wire.packets import frame
from tests.backends.fakes import OK, Recorder
from tests.backends.hosts import World


class Worlds:
    """A world for each host."""

    def __init__(self) -> None:
        self.by_host: dict[str, list[World]] = {}
        self.backends = Backends(self.make)

    def make(self, host: str) -> HostPool:
        world = World(host=host)
        self.by_host.setdefault(host, []).append(world)
        return world.pool

    async def lent(self, host: str) -> tuple[World, object]:
        self.backends.pool(host)
        world = self.by_host[host][-1]
        return world, await world.lent()


@pytest.fixture
def worlds() -> Worlds:
    return Worlds()


def test_one_pool_for_a_host(worlds: Worlds) -> None:
    assert worlds.backends.pool("h1") is worlds.backends.pool("h1")
    assert worlds.backends.pool("h2") is not worlds.backends.pool("h1")
    assert [pool.host for pool in worlds.backends.pools] == ["h1", "h2"]


async def test_release_goes_to_the_pool_it_came_from(worlds: Worlds) -> None:
    """Also when the host has left the topology and has come back with a new pool."""
    world, _ = await worlds.lent("h1")
    conn = world.last
    worlds.backends.keep_only([])
    worlds.backends.pool("h1")
    worlds.backends.release(conn)
    assert conn.closed
    assert worlds.backends.pool("h1").state.take(LOGIN, None, False) is None


async def test_connections_for_gathering_are_known_and_renewed(worlds: Worlds) -> None:
    """Rows are gathered under what was set for all sessions, too."""
    backends = worlds.backends
    assert backends.gathering("h1") == 0
    backends.scratch("h1")
    world = worlds.by_host["h1"][-1]
    await world.lent()
    backends.release(world.last)
    assert (backends.gathering("h1"), backends.gathering("h2")) == (1, 0)
    assert "h1" not in [pool.host for pool in backends.pools]
    backends.renew()
    assert world.last.closed
    assert backends.gathering("h1") == 0


async def test_keep_only(worlds: Worlds) -> None:
    world, _ = await worlds.lent("h1")
    await worlds.lent("h2")
    old = worlds.backends.pool("h1")
    worlds.backends.keep_only(["h2"])
    assert [pool.host for pool in worlds.backends.pools] == ["h2"]
    assert old.retired
    assert not world.last.closed, "its statement goes on"
    worlds.backends.tick()
    worlds.backends.release(world.last)
    worlds.backends.tick()
    assert old.state.size == 0
    assert worlds.backends.pool("h1") is not old


async def test_kill_query(worlds: Worlds) -> None:
    world, _ = await worlds.lent("h1")
    conn = world.last
    worlds.backends.kill_query(conn)
    await world.settle()
    await world.opened()
    assert world.answer(world.last, OK) == frame(b"\x03KILL QUERY 1")
    worlds.backends.release(conn)
    assert conn.closed, "the KILL may still hit what runs there next"


async def test_discard_of_a_retired_hosts_connection(worlds: Worlds) -> None:
    """No new pool comes to life for a host that has left."""
    world, _ = await worlds.lent("h1")
    worlds.backends.keep_only([])
    conn = world.last
    conn.send(b"statement", Recorder())
    worlds.backends.discard(conn)
    assert conn.closed
    assert list(worlds.backends.pools) == []
    await world.settle()
    await world.opened()
    assert world.answer(world.last, OK) == frame(b"\x03KILL 1")


async def test_a_tick_may_bring_a_new_host(worlds: Worlds) -> None:
    """Who is refused may give something back, and whoever gets it may go on to a host not seen before."""
    worlds.backends.pool("h1")
    world = worlds.by_host["h1"][0]

    def refused(error: Exception) -> None:
        worlds.backends.pool("h9")

    world.pool.wait(LOGIN, None, False, lambda conn: None, refused)
    world.now += 1000
    worlds.backends.tick()
    assert [pool.host for pool in worlds.backends.pools] == ["h1", "h9"]


async def test_close(worlds: Worlds) -> None:
    one, _ = await worlds.lent("h1")
    two, _ = await worlds.lent("h2")
    worlds.backends.keep_only(["h2"])
    worlds.backends.close()
    assert one.last.closed
    assert two.last.closed
