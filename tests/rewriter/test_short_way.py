"""The planner's short way: a statement known but for an integer at its end is not cut again."""

from __future__ import annotations

import pytest

from rewriter.around import MAX_AROUND, Around
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


AROUND = [
    ("SELECT * FROM board_has_pins WHERE board_id = ", " ORDER BY sequence DESC LIMIT 50"),
    ("SELECT * FROM board_has_pins WHERE board_id = ", " ORDER BY sequence DESC LIMIT 20"),
    ("SELECT * FROM board_has_pins WHERE board_id=", " ORDER BY 2 LIMIT 1, 5"),
    ("SELECT 7, 'a' FROM pins WHERE id IN (", ") AND ts > '2024-01-01' /* 3 */ LIMIT 1"),
    ("SELECT * FROM pins WHERE id = ", ".5 LIMIT 1"),
    ("SELECT * FROM pins WHERE id = ", "e1 LIMIT 1"),
    ("SELECT * FROM pins WHERE id = 0x", " LIMIT 1"),
    ("SELECT * FROM pins WHERE id = 0", "x41 LIMIT 1"),
    ("SELECT * FROM pins WHERE id = '", "' LIMIT 1"),
    ("SELECT * FROM pins WHERE id = -", " LIMIT 1"),
    ("SELECT * FROM pins AS p", " WHERE id = 70437463654407 LIMIT 1"),
    ("SELECT * FROM pins WHERE id = 70437463654407 AND local_id < ", " OR 1 = 2"),
    ("UPDATE boards SET data = NULL, ts = ts WHERE id = ", " -- 5"),
    ("DELETE FROM pins WHERE `id` = ", " AND data = '{\"a\": 1}'"),
    ("(SELECT * FROM pins WHERE id = ", " LIMIT 1)"),
]
MIDDLES = [*TAILS[::2], "", "1, 2", "1 OR id = 2", "5 -- ", "5'", "0x1", "1.5", *TAILS[1::2]]


@pytest.mark.parametrize(("head", "tail"), AROUND)
def test_a_statement_known_but_for_its_id_is_not_cut(head: str, tail: str) -> None:
    used = Rewriter(SCHEMA_MODEL, TOPOLOGY)
    for env in (ENV, Env(database="legacy")):
        for middle in MIDDLES:
            sql = f"{head}{middle}{tail}"
            expected = outcome(Rewriter(SCHEMA_MODEL, TOPOLOGY), sql, env)
            assert [outcome(used, sql, env) for _ in range(3)] == [expected] * 3


def test_those_are_counted_bounded_and_forgotten() -> None:
    rewriter = Rewriter(SCHEMA_MODEL, TOPOLOGY)
    text = b"SELECT data FROM pins WHERE id = %d LIMIT 1"
    plans = [rewriter.plan(text % number, ENV)[0] for number in range(4)]
    assert len(set(map(id, plans))) == 1
    assert (rewriter.hits, rewriter.misses, len(rewriter._around)) == (3, 1, 1)
    around = Around()
    for number in range(MAX_AROUND + 10):
        name = f"{number:b}".replace("0", "a").replace("1", "b").encode()
        around.put(b"SELECT " + name + b" 5", b"", plans[0], (b"SELECT " + name + b" ", b"\0"), (b"5", b""))
    assert len(around) == 10
    rewriter = rewriter.replaced(TOPOLOGY)
    assert len(rewriter._around) == 0
    assert rewriter.plan(text % 5, ENV)[0] is not plans[0]


def test_plans_in_use_stay_in_the_cache() -> None:
    """What is found by a short way is looked for in the cache again when a part of that goes."""
    rewriter = Rewriter(SCHEMA_MODEL, TOPOLOGY, cache_size=8)
    texts = (b"SELECT data FROM pins WHERE id = %d LIMIT 1", b"SELECT data FROM pins WHERE id = %d")
    for number in range(100):
        for text in texts:
            plan = rewriter.plan(text % number, ENV)[0]
            assert plan in [kept for kept, _, _ in rewriter.kept()]
        rewriter.plan(b"SELECT data AS c%d FROM pins WHERE id = 5" % number, ENV)
    assert rewriter.misses == 102
