"""What there is to say of one statement, in rows of (section, detail): for SHOW PROXY ADVICE."""

from __future__ import annotations

from collections.abc import Iterator

from proxy.errors import error_lines
from rewriter.advice.changes import Trials
from rewriter.advice.cost import Cost, Way
from rewriter.advice.remedies import Advice, advise
from rewriter.env import Env
from rewriter.planner import Rewriter

PLAN, SHARDS, ADVICE = "plan", "shards", "advice"


def advice_rows(rewriter: Rewriter, sql: bytes, env: Env) -> Iterator[tuple[str, str]]:
    """The plan in words, the number of shards ("" where that depends on values), and remedies. None where
    there is nothing to advise.
    """
    trials = Trials(rewriter)
    cost = trials.cost(sql, env)
    if cost.good:
        return
    yield PLAN, {Way.REFUSED: "refused", Way.GATHER: "gather"}.get(cost.way, "scatter")
    yield SHARDS, _shards(cost)
    if cost.error is not None:
        yield ADVICE, " ".join(error_lines(cost.error.name, cost.error.arguments))
    for one in advise(trials, sql, env, cost):
        yield ADVICE, in_one_line(one)


def _shards(cost: Cost) -> str:
    return str(cost.of if cost.way is Way.SCATTER or cost.pieces else cost.shards or "")


def in_one_line(advice: Advice) -> str:
    """A remedy with what is to be written for it."""
    parts = [advice.text + ("" if advice.to is None else f" ({advice.to.words})")]
    if advice.change is not None:
        parts.append("schema: " + " ".join(advice.change.lines))
    if advice.sql:
        parts.append("instead: " + "; ".join(advice.sql))
    return "; ".join(parts)
