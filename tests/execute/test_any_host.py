"""Statements without tables while the default host is away: another one answers those that change nothing."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import load_schema, load_topology
from demo.documents import SCHEMA, topology_document
from proxy import pipeline
from tests.execute.world import Client, World, rows

FIRST, SECOND = "127.0.0.1:1", "127.0.0.1:2"
DEMO = load_schema(SCHEMA)
TOPOLOGY = load_topology(topology_document(8, [(FIRST, None), (SECOND, None)]), schema=DEMO)


async def answered_by(sql: bytes, *, database: str = "demo", away: bool = True) -> list[str]:
    """The hosts that `sql` reaches, once the default host is known to be `away`."""
    world = World(schema=DEMO, topology=TOPOLOGY)
    services: Any = world.services
    services.execute, services.run_plan = pipeline.execute, pipeline.run_plan
    for name in (FIRST, SECOND):
        world.server(name).script = lambda conn, text: [rows("1")]
    client = Client(world)
    client.session.database = database
    client.session.refresh_env()
    for text in (b"SELECT 1", b"SELECT id FROM pins WHERE id = %d" % (5 << 46 | 1 << 36 | 7)):
        client.send(text)
        await world.quiet()
    if away:
        world.server(FIRST).down = True
        for conn in world.server(FIRST).live:
            conn.lose()
        world.now += 1.0
        other = Client(world)
        other.send(b"SELECT id FROM demo.pins WHERE id = %d" % (1 << 46 | 1 << 36 | 7))  # there
        await world.turn()
    before = {name: len(world.server(name).log) for name in (FIRST, SECOND)}
    client.send(sql)
    await world.turn()
    return [name for name in (FIRST, SECOND) if sql in world.server(name).log[before[name] :]]


@pytest.mark.parametrize("sql", [b"SELECT 1", b"SELECT @@version_comment", b"SHOW VARIABLES LIKE 'port'"])
async def test_another_host_answers(sql: bytes) -> None:
    assert await answered_by(sql) == [SECOND]
    assert await answered_by(sql, away=False) == [FIRST]


@pytest.mark.parametrize("sql", [b"SELECT GET_LOCK('a', 1)", b"FLUSH STATUS"])
async def test_what_leaves_something_does_not(sql: bytes) -> None:
    assert await answered_by(sql) == []


async def test_nor_in_a_database_of_the_default_host() -> None:
    assert await answered_by(b"SELECT 1", database="legacy") == []
