"""Who frees a connection when the client has gone: each is freed once, then it may be another's."""

from __future__ import annotations

import pytest

from proxy.backends.connection import BackendConnection
from proxy.engine import lease
from proxy.engine.exchange import Exchange
from tests.backends.fakes import FakeOwner
from tests.execute.world import Client, World, rows


@pytest.fixture
def freed() -> list[object]:
    return []


class Owner(FakeOwner):
    """Notes which connections are given back."""

    def __init__(self, freed: list[object]) -> None:
        super().__init__()
        self.freed = freed

    def release(self, conn: BackendConnection) -> None:
        self.freed.append(conn)


async def taken_from(exchange: Exchange, host: str, freed: list[object]) -> BackendConnection:
    """One of the pool's, which is to be given back to these."""
    conn = await lease.outside(exchange, host)
    conn.owner = Owner(freed)
    return conn


async def test_a_gone_clients_own_connections_are_freed_once(
    world: World, client: Client, freed: list[object]
) -> None:
    exchange = client.conn
    kept = await taken_from(exchange, "h1", freed)
    taken = await taken_from(exchange, "h2", freed)
    exchange.session.transaction.held["h1"] = kept
    exchange.closed = True
    lease.leave(exchange)
    assert freed == [kept]
    lease.give_all_back(exchange, [kept, taken])
    assert freed == [kept, taken]
    lease.lost(exchange, kept, None)
    assert exchange.session.transaction.held == {"h1": kept}
    assert freed == [kept, taken]


async def test_closed_ones_are_lost(world: World, client: Client, freed: list[object]) -> None:
    """One that was closed meanwhile takes its transaction with it, and the session's others are freed."""
    world.server("h1").script = world.server("h2").script = lambda conn, sql: [rows("a")]
    exchange = client.conn
    transaction = exchange.session.transaction
    closed, other = await taken_from(exchange, "h1", freed), await taken_from(exchange, "h2", freed)
    transaction.held = {"h1": closed, "h2": other}
    transaction.explicit = True
    closed.close()
    lease.give_all_back(exchange, [closed])
    assert transaction.held == {}
    assert freed == [other]
    assert "server h1" in transaction.lost
