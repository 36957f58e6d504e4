"""The second reader: MySQL's grammar, places, and what becomes of statements when it cannot be used."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from typing import Any

import pytest

from rewriter.plans import Env, Reject
from rewriter.text.facts import Block
from rewriter.text.parse import Parser
from rewriter.text.tokens import Source, read
from rewriter.tree import dialect, start, tree
from rewriter.tree.second import MAX_TOKENS, SecondReader
from tests.rewriter.support import TOPOLOGY, expand, first, rewriter, shards_of, values_of


def source_of(sql: str, env: Env) -> Source:
    text = sql.encode()
    return read(text, tuple(one for _, one in env.findall(text + b"\0")), env)


def block_of(source: Source) -> Block:
    block = Parser(source).query(None).terms[0]
    assert isinstance(block, Block)
    return block


PRECEDENCE = [
    ("a = b < c", "<(=(column, column), column)"),
    ("a < b = c", "=(<(column, column), column)"),
    ("a = b IS NULL", "is null(=(column, column))"),
    ("a IS NULL = b", "=(is null(column), column)"),
    ("a IN (1, b) = c", "=(in(column, number, column), column)"),
    ("a LIKE b = c", "=(strict(column, column), column)"),
    ("NOT a = b", "not(=(column, column))"),
    ("NOT a AND b", "and(not(column), column)"),
    ("!a = b", "=(not(column), column)"),
    ("a BETWEEN 1 AND 2 AND b", "and(between(column, number, number), column)"),
    ("a BETWEEN 1 AND b IN (c, 2)", "between(column, number, in(column, column, number))"),
    ("a NOT BETWEEN 1 AND 2", "not(between(column, number, number))"),
    ("a OR b AND c", "or(column, and(column, column))"),
    ("a XOR b OR c", "or(xor(column, column), column)"),
    ("a AND b XOR c", "xor(and(column, column), column)"),
    ("a || b && c", "or(column, and(column, column))"),
    ("a OR (b OR c) OR d", "or(column, column, column, column)"),
    ("((a)) = (((1)))", "=(column, number)"),
    ("a + 1 - 2 = -b", "=(-(+(column, number), number), negative(column))"),
    ("a | b + 1 = c", "=(strict(column, +(column, number)), column)"),
    ("a - b * 2 = c", "=(-(column, strict(column, number)), column)"),
    ("a DIV 2 = b", "=(strict(column, number), column)"),
    ("a = b COLLATE utf8mb4_bin", "=(column, other)"),
    ("a = ALL (SELECT 1)", "=(column, other)"),
    ("a = any", "=(column, column)"),
    ("CASE a WHEN 1 THEN b END", "case(=(column, number), column, null)"),
    ("IFNULL(a, COALESCE(b, 1))", "coalesce(column, coalesce(column, number))"),
    ("a = (SELECT 5)", "=(column, select(number))"),
    ("a = (SELECT 5 FROM t)", "=(column, other)"),
    ("a IN (SELECT 5)", "other"),
    ("offset < 5 OR a", "or(<(column, number), column)"),
    ("t.offset > 5 AND rollback = 1", "and(>(column, number), =(column, number))"),
    ("a = INTERVAL(1, 2)", "=(column, other)"),
    ("ts > NOW() - INTERVAL 1 DAY AND a", "and(>(column, -(other, other)), column)"),
    ("a <=> NULL", "<=>(column, null)"),
    ("(a, b) = (1, 'x')", "=(tuple(column, column), tuple(number, other))"),
    ("MATCH (a) AGAINST ('x' IN BOOLEAN MODE) AND b", "and(other, column)"),
    ("a MEMBER OF ('[1]') OR b", "or(other, column)"),
    ("data->'$.x' = 5", "=(other, number)"),
    ("a REGEXP 'x' AND b SOUNDS LIKE c", "and(strict(column, other), =(other, other))"),
]


@pytest.mark.parametrize(("where", "expected"), PRECEDENCE)
def test_precedence(where: str, expected: str) -> None:
    env = Env(database="demo")
    source = source_of(f"SELECT * FROM t WHERE {where}", env)
    block = block_of(source)
    found = tree.Tree(source, env)
    assert found.agrees(block)
    assert block.where is not None
    assert str(found.condition(block.where, block)) == expected


MODES: list[tuple[dict[str, Any], str, str]] = [
    ({"high_not_precedence": True}, "NOT a = b", "=(not(column), column)"),
    ({"pipes_as_concat": True}, "a || b = c", "=(other, column)"),
    ({"ansi_quotes": True}, '"a" = 5', "=(column, number)"),
    ({}, '"a" = 5', "=(other, number)"),
]


@pytest.mark.parametrize(("settings", "where", "expected"), MODES)
def test_sql_mode(settings: dict[str, Any], where: str, expected: str) -> None:
    env = Env(database="demo", **settings)
    source = source_of(f"SELECT * FROM t WHERE {where}", env)
    block = block_of(source)
    assert block.where is not None
    assert str(tree.Tree(source, env).condition(block.where, block)) == expected


def test_a_condition_is_found_where_the_clause_needs_it_only() -> None:
    env = Env(database="demo")
    source = source_of("SELECT * FROM t JOIN u ON a = 1 WHERE (b = 2 AND (c = 3)) AND (d = 4 OR e = 5)", env)
    block = block_of(source)
    found = tree.Tree(source, env)
    places = {one.name: at for at, one in enumerate(source.tokens)}
    for name, expected in (("a", True), ("b", True), ("c", True), ("d", False), ("e", False)):
        span = type(block.where)(places[name], places[name] + 3)  # type: ignore[misc]
        assert (found.condition(span, block) is not None) is expected, name


DISAGREE = [
    ("SELECT * FROM t WHERE a = 1", "SELECT * FROM t WHERE a = 1 OR b"),
    ("SELECT * FROM t WHERE a = 1", "SELECT * FROM t HAVING a = 1 LIMIT 1"),
    ("SELECT * FROM t WHERE a = 1", "SELECT * FROM t, u WHERE a = 1"),
    ("SELECT * FROM t JOIN u ON a = 1", "SELECT * FROM t JOIN u ON a = 1 AND b"),
]


@pytest.mark.parametrize(("one", "other"), DISAGREE)
def test_blocks_that_do_not_agree(one: str, other: str) -> None:
    env = Env(database="demo")
    block = block_of(source_of(one, env))
    assert not tree.Tree(source_of(other, env), env).agrees(block)


# without it


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    start.load.cache_clear()
    yield monkeypatch
    start.load.cache_clear()


def plan_as_without() -> None:
    """One reader alone: plain conditions narrow, the others do not."""
    found = {}
    for where in ("id = <pins 1 5>", "NOT (id <> <pins 1 5>)"):
        plan, literals = rewriter().plan(
            expand(f"SELECT id FROM pins WHERE {where}").encode(), Env(database="demo")
        )
        found[where[:3]] = shards_of(plan.bind(values_of(plan, literals), TOPOLOGY, first))
    assert found == {"id ": [1], "NOT": [0, 1, 2, 3]}


def test_another_version_is_not_used(unloaded: pytest.MonkeyPatch) -> None:
    unloaded.setattr(start, "version", lambda name: "30.31.0")
    assert start.load().why_not == "sqlglot is of version 30.31.0, not 30.30.0"
    plan_as_without()


def test_it_may_be_missing(unloaded: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    unloaded.setattr(start, "version", missing)
    assert start.load().why_not == "sqlglot is not installed"
    plan_as_without()


def test_a_build_that_cannot_be_extended(unloaded: pytest.MonkeyPatch) -> None:
    def compiled(*_: object) -> None:
        raise TypeError("interpreted classes cannot inherit from compiled")

    unloaded.setattr(tree, "GateParser", compiled)
    assert start.load().why_not.startswith("sqlglot cannot be extended here: TypeError: interpreted classes")
    plan_as_without()


def test_one_that_reads_otherwise(unloaded: pytest.MonkeyPatch) -> None:
    unloaded.setitem(dialect._LEVELS, dialect.T.XOR, dialect._OR)
    assert start.load().read is None
    plan_as_without()


def test_the_very_version_is_asked_for() -> None:
    wanted = [one for one in importlib.metadata.requires("shardgate") or () if one.startswith("sqlglot")]
    assert wanted in ([f"sqlglot=={start.VERSION}"], [])  # none: installed before it was asked for
    assert start.load().why_not == ""


@pytest.mark.parametrize(
    "where",
    [
        "(" * 150 + "id = <pins 1 5>" + ")" * 150,
        "id = <pins 1 5> AND (" + " OR ".join(["ts = 5"] * MAX_TOKENS) + ")",
        "id = <pins 1 5> AND data->>'$.a' MEMBER OF (ts)",
        "id = <pins 1 5> AND JSON_TABLE",
        "id = <pins 1 5> AND MATCH (data) AGAINST ('x' WITH QUERY EXPANSION)",
    ],
)
def test_a_statement_that_it_does_not_read(where: str) -> None:
    """Too deep, too long, or not its language: everything is as without it."""
    planner = rewriter()
    plan, literals = planner.plan(expand(f"SELECT id FROM pins WHERE {where}").encode(), Env(database="demo"))
    assert not isinstance(plan, Reject)
    assert shards_of(plan.bind(values_of(plan, literals), TOPOLOGY, first)) == [1]
    assert planner.differences == 0


@pytest.mark.parametrize(
    "sql", ["INSERT INTO t SELECT 1", "SHOW TABLES", "SELECT 1 FROM", "SELECT (((", "SELECT ]"]
)
def test_what_is_not_read_at_all(sql: str) -> None:
    env = Env(database="demo")
    try:
        source = source_of(sql, env)
    except Exception:
        return
    assert SecondReader(source, env).tree is None


# two votes


def test_the_wider_plan_wins_and_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the tree has another end of WHERE, or another condition, than the clauses."""
    told: list[tuple[str, tuple[str, ...]]] = []

    def plan(where: str) -> bool:
        planner = rewriter()
        planner._differ = lambda digest, differences: told.append((digest, differences))
        sql = expand(f"SELECT id FROM pins WHERE {where}")
        made, literals = planner.plan(sql.encode(), Env(database="demo"))
        assert planner.differences == len(told)
        return made.bind(values_of(made, literals), TOPOLOGY, first).scatter

    assert not plan("id = <pins 1 5>")
    monkeypatch.setattr(tree.Tree, "agrees", lambda self, block: False)
    assert plan("id = <pins 1 5>")
    assert told == [("SELECT id FROM pins WHERE id = ?", ("the clauses of a query block",))]
    monkeypatch.undo()
    told.clear()
    real = tree.Tree.condition
    monkeypatch.setattr(
        tree.Tree,
        "condition",
        lambda self, span, block: (found := real(self, span, block)) and found._replace(kind="or"),
    )
    assert plan("id = <pins 1 5> AND ts = 5")
    assert [differences for _, differences in told] == [("a condition",)]
    assert "5" not in told[0][0]
