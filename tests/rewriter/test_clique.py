"""Joins in which every table is equal to every other one: what is said of all tables is read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from rewriter.env import Env
from rewriter.plans import Sharded
from rewriter.route import equal, predicates
from tests.rewriter.support import TOPOLOGY, first, new_id, rewriter, values_of

ENV = Env(database="demo")
STEPS = {
    "cut": (predicates, "split_at"),
    "sides": (equal, "_side"),
    "equalities": (predicates.Conditions, "_anded"),
}


def clique(tables: int, rest: str = "") -> bytes:
    names = ", ".join(f"pins t{n}" for n in range(tables))
    alike = " AND ".join(f"t{one}.id = t{two}.id + 0" for one in range(tables) for two in range(one))
    return f"SELECT t0.id FROM {names} WHERE {alike}{rest}".encode()


def steps(monkeypatch: pytest.MonkeyPatch, tables: int) -> Counter[str]:
    """How often conditions are looked at to plan such a join."""
    found: Counter[str] = Counter()

    def counted(name: str, one: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any, **more: Any) -> Any:
            found[name] += 1
            return one(*args, **more)

        return step

    with monkeypatch.context() as patched:
        for name, (home, function) in STEPS.items():
            patched.setattr(home, function, counted(name, getattr(home, function)))
        rewriter().plan(clique(tables), ENV)
    return found


def test_each_condition_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not once for each table: four times the tables are sixteen times the conditions."""
    few, many = steps(monkeypatch, 6), steps(monkeypatch, 24)
    conditions = (24 * 23) / (6 * 5)
    assert set(few) == set(STEPS)
    for name, count in few.items():
        assert many[name] <= count * conditions * 1.1, name


@pytest.mark.parametrize("known", [0, 11])
def test_it_goes_to_the_shard_of_one_that_is_known(known: int) -> None:
    sql = clique(12, f" AND t{known}.id = {new_id('pins', 2, 5)}")
    plan, literals = rewriter().plan(sql, ENV)
    assert isinstance(plan, Sharded)
    bound = plan.bind(values_of(plan, literals), TOPOLOGY, first)
    assert [shard for one in bound.statements for shard in one.shards] == [2]
