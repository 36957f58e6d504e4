"""Whatever the text: planning gives a plan, and binding gives statements or one kind of error."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from config.flavour import MARIADB
from rewriter.explain import explain
from rewriter.plans import BindError, Env, OneHost, Plan, Reject
from tests.rewriter import golden
from tests.rewriter.support import SLOTS, TOPOLOGY, expand, first, rewriter, values_of

PLANNER = rewriter()
STATEMENTS = [
    expand(case["sql"]).encode()
    for path in sorted(golden.FOLDER.glob("*.yaml"))
    for case in golden.load(path)
]
WORDS = sorted({word for sql in STATEMENTS for word in re.findall(rb"\w+|[^\w\s]+", sql)})
ENVS = [
    Env(database="demo"),
    Env(database="legacy"),
    Env(database="db00002"),
    Env(),
    Env(database="demo", ansi_quotes=True, no_backslash_escapes=True, pipes_as_concat=True),
    Env(database="demo", scatter_writes=True, flavour=MARIADB, server_version=101106, charset="latin1"),
]


@st.composite
def texts(draw: st.DrawFn) -> bytes:
    kind = draw(st.sampled_from(["words", "cut", "swapped", "mixed", "bytes"]))
    if kind == "bytes":
        return draw(st.binary(max_size=80))
    if kind == "words":
        return b" ".join(draw(st.lists(st.sampled_from(WORDS), max_size=20)))
    sql = draw(st.sampled_from(STATEMENTS))
    if kind == "cut":
        return sql[: draw(st.integers(0, len(sql)))]
    pieces = re.split(rb"(\s+|\b)", sql)
    if kind == "swapped" and len(pieces) > 2:
        one, two = draw(st.integers(0, len(pieces) - 1)), draw(st.integers(0, len(pieces) - 1))
        pieces[one], pieces[two] = pieces[two], pieces[one]
        return b"".join(pieces)
    at = draw(st.integers(0, len(pieces)))
    return b"".join([*pieces[:at], draw(st.sampled_from(WORDS)), b" ", *pieces[at:]])


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(texts(), st.sampled_from(ENVS))
def test_anything_gets_a_plan(sql: bytes, env: Env) -> None:
    plan, literals = PLANNER.plan(sql, env)
    values = values_of(plan, literals)
    opened = b"/*!" in sql or b"/*M!" in sql
    if isinstance(plan, OneHost) and plan.unchanged and not opened:
        assert plan.template.render(values) == sql.removesuffix(b"\0")  # one NUL at the end is C's
    if plan.kind in ("reject", "builtin"):
        return
    try:
        bound = plan.bind(values, TOPOLOGY, first)
    except BindError:
        return
    for statement in bound.statements:
        assert statement.sql
        assert statement.host in TOPOLOGY.hosts


@settings(max_examples=150, deadline=None)
@given(texts(), st.sampled_from(ENVS))
def test_anything_can_be_explained(sql: bytes, env: Env) -> None:
    rows = explain(PLANNER, sql, env, TOPOLOGY, lambda name: SLOTS.get(name, b"NULL"))
    assert rows[0][0] == "plan"
    assert all("\n" not in section for section, _ in rows)


@settings(max_examples=250, deadline=None)
@given(texts(), st.sampled_from(ENVS))
def test_the_cache_changes_nothing(sql: bytes, env: Env) -> None:
    """A plan found by fingerprint does what a plan made for this very statement does."""
    warm, literals = PLANNER.plan(sql, env)
    fresh, same = rewriter().plan(sql, env)
    assert literals == same
    assert type(warm) is type(fresh)
    assert _run(warm, literals) == _run(fresh, literals)


def _run(plan: Plan, literals: tuple[bytes, ...]) -> object:
    if isinstance(plan, Reject):
        return plan.error
    try:
        return plan.bind(values_of(plan, literals), TOPOLOGY, first)
    except BindError as error:
        return error.name


@settings(max_examples=250, deadline=None)
@given(st.sampled_from(STATEMENTS), st.data())
def test_literals_guard_what_they_change(sql: bytes, data: st.DataObject) -> None:
    """A statement of the same fingerprint with other literals gets the plan that a fresh rewriter makes for
    it.
    """
    env = ENVS[0]
    other = re.sub(
        rb"(?<![\w.@$'\"])[0-9]+(?![\w.'\"])",
        lambda found: str(data.draw(st.integers(0, 5) | st.just(int(found[0])))).encode(),
        sql,
    )
    planner = rewriter()
    planner.plan(sql, env)
    warm, literals = planner.plan(other, env)
    fresh, _ = rewriter().plan(other, env)
    assert type(warm) is type(fresh)
    assert _run(warm, literals) == _run(fresh, literals)


DEEP = [
    "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
    "SELECT * FROM pins WHERE " + "(" * 5_000 + "id = 5" + ")" * 5_000,
    "SELECT * FROM pins WHERE " + "NOT " * 20_000 + "id = 5",
    "SELECT * FROM pins WHERE " + " OR ".join(["id = 5"] * 5_000),
    "SELECT * FROM pins WHERE id = " + "-" * 3_000 + "5",
    "SELECT * FROM pins WHERE id = " + "- " * 20_000 + "5",
    "SELECT * FROM pins WHERE id = " + "1 + " * 20_000 + "5",
    "SELECT * FROM " + "(" * 3_000 + "pins" + ")" * 3_000,
    "SELECT * FROM pins WHERE id IN (" + ", ".join(map(str, range(100_000))) + ")",
    "SELECT * FROM pins WHERE id = " + "9" * 100_000,
    "SELECT " + "(SELECT " * 2_000 + "1" + ")" * 2_000,
    "INSERT INTO pins (data) VALUES ('" + "[" * 100_000 + "')",
    "SELECT '" + "\\'" * 50_000,
    "SELECT " + "'a' " * 20_000,
    "/*!" * 10_000,
    "/*!80000 " + "/*" * 20_000,
    "/*!80000 '" + "'/*" * 20_000,
    "SELECT " + "/*! 1 + */" * 5_000 + " 1",
]


@pytest.mark.parametrize("number", range(len(DEEP)))
def test_deep_and_long(number: int) -> None:
    planner = rewriter()
    plan, literals = planner.plan(DEEP[number].encode(), ENVS[0])
    _run(plan, literals)
    plan, _ = planner.plan(b"SELECT 1", ENVS[0])
    assert plan.kind == "any_host"
