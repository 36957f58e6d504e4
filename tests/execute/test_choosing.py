"""Rows that no ID places, while a host is away: they go where somebody is."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import load_schema, load_topology
from config.topology import Topology
from demo.documents import SCHEMA, topology_document
from proxy import pipeline
from proxy.backends.settings import LOGIN
from proxy.engine.choosing import _choose
from proxy.errors import ProxyError
from tests.execute.world import Client, World
from tests.wire.streams import Ok

FIRST, SECOND = "127.0.0.1:1", "127.0.0.1:2"
DEMO = load_schema(SCHEMA)
TOPOLOGY = load_topology(topology_document(8, [(FIRST, None), (SECOND, None)]), schema=DEMO)
INSERTS = [b"INSERT INTO pins (data) VALUES ('{}')", b"INSERT INTO pins (data) VALUES ('{}'), ('{}')"]


async def places(sql: bytes, away: set[str], times: int, topology: Topology = TOPOLOGY) -> dict[str, int]:
    """So many of the INSERTs have reached each host, when `away` are known to be."""
    world = World(schema=DEMO, topology=topology)
    services: Any = world.services
    services.execute, services.run_plan = pipeline.execute, pipeline.run_plan
    for name in (FIRST, SECOND):
        world.server(name).script = lambda conn, text: [Ok(1)]
        world.server(name).down = name in away
    client = Client(world)
    client.session.database = "demo"
    client.session.refresh_env()
    for shard in (1, 5):  # one on each host
        client.send(b"UPDATE pins SET data = '{}' WHERE id = %d" % (shard << 46 | 1 << 36 | 7))
        await world.quiet()
    for _ in range(times):
        client.send(sql)
        await world.quiet()
    return {
        name: sum(b"INSERT" in text for conn in world.server(name).conns for text in conn.log)
        for name in (FIRST, SECOND)
    }


@pytest.mark.parametrize("sql", INSERTS)
async def test_they_go_to_a_host_that_serves(sql: bytes) -> None:
    assert await places(sql, {FIRST}, 40) == {FIRST: 0, SECOND: 40}
    assert await places(sql, {SECOND}, 40) == {FIRST: 40, SECOND: 0}


async def test_however_few_its_shards_are() -> None:
    """15 of 16 open shards are on the host that is away; shards that are closed stay so."""
    document: Any = topology_document(32, [(FIRST, None), (SECOND, None)])
    document["keyspaces"]["main"]["ranges"] = [
        {"range": [0, 14], "master": FIRST, "open": True},
        {"range": [15, 15], "master": SECOND, "open": True},
        {"range": [16, 31], "master": SECOND, "open": False},
    ]
    topology = load_topology(document, schema=DEMO)
    assert set(topology.keyspaces["main"].open_by_host) == {FIRST, SECOND}
    assert topology.keyspaces["main"].open_by_host[SECOND] == (15,)
    assert await places(INSERTS[0], {FIRST}, 60, topology) == {FIRST: 0, SECOND: 60}


async def test_where_all_are_away_the_error_tells() -> None:
    world = World(schema=DEMO, topology=TOPOLOGY)
    backends: Any = world.services.backends
    backends.away = lambda host: True
    chosen = {_choose(backends, TOPOLOGY, "main", (1, 2, 5)) for _ in range(60)}
    assert chosen == {1, 2, 5}


async def test_a_host_that_is_full_serves() -> None:
    """No further connection is let in, and one is at work."""
    world = World(schema=DEMO, topology=TOPOLOGY)
    pool = world.services.backends.pool(FIRST)
    conn = await pool.connection(LOGIN, None, 0)
    full = {"host": FIRST, "reason": "Too many connections (error 1040)", "full": "host"}
    pool._failed(ProxyError("host_unreachable", **full))
    assert (pool.failures, pool.away, pool.up) == (1, False, True)
    pool.discard(conn, kill=False)
    assert (pool.away, pool.up) == (True, False)
    pool._failed(ProxyError("host_unreachable", host=FIRST, reason="refused"))
    assert pool.away


@pytest.mark.parametrize("sql", INSERTS)
async def test_and_to_each_while_all_do(sql: bytes) -> None:
    found = await places(sql, set(), 60)
    assert sum(found.values()) == 60
    assert min(found.values()) > 10
