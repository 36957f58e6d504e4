"""Who frees a connection when the client has gone: each is freed once, then it may be another's."""

from __future__ import annotations

import pytest

from proxy.engine import lease
from tests.execute.world import Client, World, rows


@pytest.fixture
def freed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    found: list[object] = []
    monkeypatch.setattr(lease, "free", found.append)
    return found


async def test_a_gone_clients_own_connections_are_freed_once(
    world: World, client: Client, freed: list[object]
) -> None:
    exchange = client.conn
    kept = await lease.outside(exchange, "h1")
    taken = await lease.outside(exchange, "h2")
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
    closed, other = await lease.outside(exchange, "h1"), await lease.outside(exchange, "h2")
    transaction.held = {"h1": closed, "h2": other}
    transaction.explicit = True
    closed.close()
    lease.give_all_back(exchange, [closed])
    assert transaction.held == {}
    assert freed == [other]
    assert "server h1" in transaction.lost
