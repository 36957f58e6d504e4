"""The planner's short way: a statement known but for an integer at its end is not cut again."""

from __future__ import annotations

import pytest

from rewriter.planner import MAX_SHORT, Rewriter
from rewriter.plans import BindError, Env
from tests.rewriter.support import SCHEMA_MODEL, TOPOLOGY, new_id

ENV = Env(database="demo")
HEADS = [
    "SELECT * FROM pins WHERE id =",
    "SELECT id, data FROM demo.pins p WHERE p.id IN (1) OR id =",
    "UPDATE boards SET data = NULL WHERE id =",
    "SELECT COUNT(*) FROM pins ORDER BY",
    "SELECT * FROM pins WHERE id = 70437463654407 LIMIT",
    "SELECT * FROM user_likes_pins WHERE user_id =",
    "SELECT 'a' , /* 1 */",
    "SELECT @@x, 1 -- 5",
    "USE",
]
TAILS = [str(new_id("pins", 1, 5)), str(new_id("boards", 3, 1 << 33)), "0", "1", "007", "9" * 45]


def outcome(rewriter: Rewriter, sql: str, env: Env) -> object:
    plan, literals = rewriter.plan(sql.encode(), env)
    values = literals + (b"NULL",) * len(plan.session_slots)
    try:
        return plan.kind, literals, plan.bind(values, TOPOLOGY, lambda shards: shards[0])
    except BindError as error:
        return plan.kind, literals, error.name, error.arguments


@pytest.mark.parametrize("head", HEADS)
def test_it_gives_what_the_long_way_gives(head: str) -> None:
    used = Rewriter(SCHEMA_MODEL, TOPOLOGY)
    for env in (ENV, Env(database="legacy"), ENV):
        for tail in [*TAILS, *TAILS]:
            sql = f"{head} {tail}"
            assert outcome(used, sql, env) == outcome(Rewriter(SCHEMA_MODEL, TOPOLOGY), sql, env)


def test_it_is_taken_counted_bounded_and_forgotten() -> None:
    rewriter = Rewriter(SCHEMA_MODEL, TOPOLOGY)
    plans = [rewriter.plan(b"SELECT * FROM pins WHERE id = %d" % number, ENV)[0] for number in range(4)]
    assert len(set(map(id, plans))) == 1
    assert (rewriter.hits, rewriter.misses) == (3, 1)
    rewriter = rewriter.replaced(TOPOLOGY)
    assert (rewriter.hits, rewriter.misses) == (3, 1)
    assert rewriter.plan(b"SELECT * FROM pins WHERE id = 5", ENV)[0] is not plans[0]
    for number in range(2 * MAX_SHORT):
        sql = b"SELECT data AS c%d FROM pins WHERE id = 5" % number
        assert rewriter.plan(sql, ENV)[0] is rewriter.plan(sql, ENV)[0]
    assert len(rewriter._short) <= MAX_SHORT
