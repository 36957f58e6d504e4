"""Rows that no ID places, while a host is away: they go where somebody is."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import load_schema, load_topology
from demo.documents import SCHEMA, topology_document
from proxy import pipeline
from tests.execute.world import Client, World
from tests.wire.streams import Ok

FIRST, SECOND = "127.0.0.1:1", "127.0.0.1:2"
DEMO = load_schema(SCHEMA)
TOPOLOGY = load_topology(topology_document(8, [(FIRST, None), (SECOND, None)]), schema=DEMO)
INSERTS = [b"INSERT INTO pins (data) VALUES ('{}')", b"INSERT INTO pins (data) VALUES ('{}'), ('{}')"]


async def places(sql: bytes, away: set[str], times: int) -> dict[str, int]:
    """So many of the INSERTs have reached each host, when `away` are known to be."""
    world = World(schema=DEMO, topology=TOPOLOGY)
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


@pytest.mark.parametrize("sql", INSERTS)
async def test_and_to_each_while_all_do(sql: bytes) -> None:
    found = await places(sql, set(), 60)
    assert sum(found.values()) == 60
    assert min(found.values()) > 10
