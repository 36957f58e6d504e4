"""The benchmark of misses: which statements the second reader is asked for, and that it is switched off."""

from __future__ import annotations

from bench.misses import Miss, measure, table
from rewriter.env import Env
from rewriter.tree import second, start


def test_what_is_measured() -> None:
    env = Env(database="demo")
    found = measure([("SELECT id FROM pins WHERE id = 5", env), ("SELECT 1", env)], 2)
    assert [one.read for one in found] == [True, False]
    assert all(one.alone > 0 and one.both > 0 for one in found)
    assert vars(second)["load"] is start.load


def test_the_table_tells_those_with_a_tree_apart() -> None:
    shown = table([Miss("a", 1.0, 1.5, True), Miss("b", 1.0, 1.0, False), Miss("c", 2.0, 3.0, True)])
    columns = {str(one.header): list(one.cells) for one in shown.columns}
    assert columns["number"] == ["3"] * 3 + ["2"] * 3
    assert columns["mean"] == ["1.33", "1.83", "0.50", "1.50", "2.25", "0.75"]
    assert columns["median"][5] == "0.75"
