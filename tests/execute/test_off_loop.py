"""Planning a long statement apart: what the cache has to do with it, and a topology that changes."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any

import pytest

from proxy.engine.planning import bind_insert, plan_off_loop
from proxy.engine.snapshot import Snapshot
from proxy.errors import ProxyError
from rewriter.env import Env
from rewriter.planner import LONG, Rewriter
from rewriter.plans import Insert, ShardSelect
from tests.execute.world import Client, World
from tests.rewriter.support import TOPOLOGY, new_id, rewriter
from tests.support.planning import InProcess

ENV = Env(database="demo")


def client(made: Rewriter) -> Any:
    """One whose statements are planned by `made`, without another process."""
    world = World()
    world.services.planners = InProcess()
    asking = Client(world).conn
    asking.snapshot = Snapshot.of(made)
    return asking


def test_a_short_fingerprint_is_kept() -> None:
    """A long list of IDs has a short fingerprint: the next one is found."""
    made = rewriter()
    ids = ", ".join(str(new_id("pins", n % 4, n)) for n in range(1, 3000))
    sql = f"SELECT id FROM pins WHERE id IN ({ids})".encode()
    assert len(sql) > LONG
    plan, literals, *_ = asyncio.run(plan_off_loop(client(made), sql, ENV))
    assert isinstance(plan, ShardSelect)
    assert (made.hits, made.misses, made.entries) == (0, 1, 1)
    assert asyncio.run(plan_off_loop(client(made), sql, ENV))[:2] == (plan, literals)
    assert made.plan(b"SELECT id FROM pins WHERE id IN (5)", ENV)[0] is plan
    assert (made.hits, made.misses) == (2, 1)


def test_a_long_fingerprint_is_not_kept() -> None:
    made = rewriter()
    rows = ", ".join(f"({new_id('boards', n % 4, n)}, 5, '{{}}'{' ' * (n % 50)})" for n in range(1, 3000))
    sql = f"INSERT INTO board_has_pins VALUES {rows}".encode()
    for _ in range(2):
        plan, literals, *_ = asyncio.run(plan_off_loop(client(made), sql, ENV))
        assert isinstance(plan, Insert)
        assert len(plan.bind(literals, TOPOLOGY, max).statements) == 4
    assert (made.hits, made.misses, made.entries) == (0, 2, 0)


def test_many_rows_of_one_fingerprint_are_found_by_the_first() -> None:
    made = rewriter()
    rows = [f"({new_id('boards', n % 4, n)}, 5, 1)" for n in range(1, 3000)]
    for count in (2999, 2000, 2):
        sql = f"INSERT INTO board_has_pins VALUES {', '.join(rows[:count])}".encode()
        plan, literals, *_ = asyncio.run(plan_off_loop(client(made), sql, ENV))
        assert isinstance(plan, Insert)
        assert sum(one.rows for one in plan.bind(literals, TOPOLOGY, max).inserted) == count
    assert (made.hits, made.misses, made.entries) == (2, 1, 2)


def test_rows_are_bound_in_another_thread() -> None:
    made = rewriter()
    rows = ", ".join(f"({new_id('boards', n % 4, n)}, 5, 1)" for n in range(1, 30))
    sql = f"INSERT INTO board_has_pins VALUES {rows}".encode()
    plan, literals = made.plan(sql, ENV)
    assert isinstance(plan, Insert)
    threads = []

    def choose(shards: Any) -> int:
        threads.append(threading.current_thread())
        return int(max(shards))

    pins, values = made.plan(b"INSERT INTO pins (data) VALUES ('{}')", ENV)
    assert isinstance(pins, Insert)
    known = client(made).services
    known.long_statement = 100
    for length in (100, 101):
        bound, wanted = asyncio.run(bind_insert(known, length, pins, values, TOPOLOGY, choose, {}))
        assert (len(bound.statements), wanted) == (1, {})
    assert threads[0] is threading.main_thread() is not threads[1]
    wrong = tuple(b"9" * 18 if literal.isdigit() else literal for literal in literals)
    with pytest.raises(ProxyError) as error:
        asyncio.run(bind_insert(known, len(sql), plan, wrong, TOPOLOGY, choose, {}))
    assert error.value.kind.name == "shard_missing"


def test_the_topology_changes_meanwhile() -> None:
    """A statement keeps to the one that it has begun with, and its plan is not for others."""
    made = rewriter()
    asking = client(made)
    changed: list[Rewriter] = []

    class Changing(InProcess):
        async def plan(
            self, user: str, sql: bytes, env: Env, rewriter: Rewriter, *, masked: bool = False
        ) -> Any:
            changed.append(made.replaced(replace(TOPOLOGY, version=TOPOLOGY.version + 1)))
            return await super().plan(user, sql, env, rewriter, masked=masked)

    asking.services.planners = Changing()
    plan, literals, *_ = asyncio.run(plan_off_loop(asking, b"SELECT id FROM pins WHERE ts = 5", ENV))
    assert isinstance(plan, ShardSelect)
    assert len(plan.bind(literals, asking.snapshot.topology, max).statements) > 1
    assert changed[0].find(b"SELECT id FROM pins WHERE ts = 5", ENV) is None
