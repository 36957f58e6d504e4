"""Routing is sound: a row that a condition is true for is on one of the shards that are asked.

Conditions are drawn at random, written with as few parentheses as MySQL's precedence allows, and evaluated
here, in three-valued logic, over rows of every shard.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewriter.plans import BindError, Bound, Env, Gather, Opened, Reject
from tests.rewriter.support import (
    LAYOUT,
    SHARDS,
    TOPOLOGY,
    first,
    new_id,
    rewriter,
    shards_of,
    values_of,
)

Row = dict[str, int]
Truth = int | None
ROWS = [
    {"id": new_id("pins", shard, local), "a": a}
    for shard in range(SHARDS)
    for local in (1, 2)
    for a in (0, 1)
]
IDS = [row["id"] for row in ROWS[::2]]
MISSING = new_id("pins", 1, 1) + (9 << 46)
"""An ID of a shard that there is not: where it names a row, the statement is refused."""
ODD = [0, 1, -5, 1 << 62, 1 << 70, new_id("boards", 1, 1), MISSING]

# from loose to tight, as in MySQL's manual
OR, XOR, AND, NOT, COMPARE, ATOM = range(6)


@dataclass(frozen=True)
class Condition:
    """SQL, how tight it binds, and its value for a row."""

    sql: str
    level: int
    value: Callable[[Row], Truth]

    def inside(self, level: int) -> str:
        return self.sql if self.level >= level else f"({self.sql})"


def truth(value: Any) -> Truth:
    return None if value is None else int(bool(value))


def compare(operator: str, left: Any, right: Any) -> Truth:
    if operator == "<=>":
        return int(left == right)
    if left is None or right is None:
        return None
    return int({
        "=": left == right, "!=": left != right, "<>": left != right, "<": left < right, ">": left > right,
        "<=": left <= right, ">=": left >= right,
    }[operator])  # fmt: skip


def member(value: int, items: list[int | None]) -> Truth:
    if value in items:
        return 1
    return None if None in items else 0


def invert(value: Truth) -> Truth:
    return None if value is None else 1 - value


def conjunction(left: Truth, right: Truth) -> Truth:
    if left == 0 or right == 0:
        return 0
    return None if left is None or right is None else 1


def disjunction(left: Truth, right: Truth) -> Truth:
    return invert(conjunction(invert(left), invert(right)))


numbers = st.sampled_from(IDS + ODD)


def written(number: int) -> st.SearchStrategy[str]:
    forms = [st.just(str(number))]
    if number >= 0:
        forms += [st.just(f"'{number}'"), st.just(f"(1 + {number} - 1)")]
    if 0 <= number < 1 << 63:
        forms.append(st.just(hex(number)))
    return st.one_of(*forms)


@st.composite
def comparisons(draw: st.DrawFn) -> Condition:
    column = draw(st.sampled_from(["id", "id", "id", "p.id", "`id`", "a", "p.a"]))
    name = "id" if "id" in column else "a"
    number = draw(numbers if name == "id" else st.sampled_from([0, 1]))
    text = draw(written(number))
    kind = draw(st.sampled_from(["op", "op", "swapped", "in", "not in", "between", "not between", "null in"]))
    if kind == "op":
        operator = draw(st.sampled_from(["=", "=", "=", "<=>", "!=", "<>", "<", ">=", ">", "<="]))
        return Condition(
            f"{column} {operator} {text}", COMPARE, lambda row: compare(operator, row[name], number)
        )
    if kind == "swapped":
        operator = draw(st.sampled_from(["=", "<=>", "!=", "<", ">="]))
        return Condition(
            f"{text} {operator} {column}", COMPARE, lambda row: compare(operator, number, row[name])
        )
    if kind.endswith("between"):
        low, high = number, draw(numbers if name == "id" else st.sampled_from([0, 1]))
        sql = f"{column} {kind.upper()} {text} AND {draw(written(high))}"
        negated = kind.startswith("not")
        return Condition(sql, COMPARE, lambda row: int((low <= row[name] <= high) != negated))
    others: list[int | None] = list(draw(st.lists(numbers, max_size=3)))
    texts = [text] + [draw(written(one)) for one in others if one is not None]
    items: list[int | None] = [number, *others]
    if kind == "null in":
        items.append(None)
        texts.append("NULL")
    if draw(st.booleans()) and None not in items:
        texts = [str(one) for one in items]
    inside = ", ".join(texts)
    if kind == "not in":
        return Condition(f"{column} NOT IN ({inside})", COMPARE, lambda row: invert(member(row[name], items)))
    return Condition(f"{column} IN ({inside})", COMPARE, lambda row: member(row[name], items))


leaves = st.one_of(
    comparisons(),
    comparisons(),
    comparisons(),
    st.sampled_from(
        [
            Condition("1", ATOM, lambda row: 1),
            Condition("0", ATOM, lambda row: 0),
            Condition("NULL", ATOM, lambda row: None),
            Condition("a", ATOM, lambda row: truth(row["a"])),
            Condition("p.a = 1", COMPARE, lambda row: row["a"]),
        ]
    ),
)


def join(parts: list[Condition], sign: str, level: int, value: Callable[[Truth, Truth], Truth]) -> Condition:
    def evaluate(row: Row) -> Truth:
        result = truth(parts[0].value(row))
        for part in parts[1:]:
            result = value(result, truth(part.value(row)))
        return result

    # the operators are associative: an operand of the same level needs no parentheses
    return Condition(f" {sign} ".join(part.inside(level) for part in parts), level, evaluate)


def exclusive(left: Truth, right: Truth) -> Truth:
    return None if left is None or right is None else left ^ right


def grow(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    scattered = st.lists(inner, min_size=2, max_size=3)

    def chain(parts: list[Condition], operator: str) -> Condition:
        # MySQL's comparisons all bind alike, and associate to the left
        left, right = parts[0], parts[1]
        sql = f"{left.inside(COMPARE)} {operator} {right.inside(ATOM)}"
        return Condition(sql, COMPARE, lambda row: compare(operator, left.value(row), right.value(row)))

    return st.one_of(
        st.tuples(scattered, st.sampled_from(["AND", "and", "&&"])).map(
            lambda t: join(t[0], t[1], AND, conjunction)
        ),
        st.tuples(scattered, st.sampled_from(["OR", "||"])).map(lambda t: join(t[0], t[1], OR, disjunction)),
        scattered.map(lambda parts: join(parts, "XOR", XOR, exclusive)),
        inner.map(
            lambda one: Condition(f"NOT {one.inside(NOT)}", NOT, lambda row: invert(truth(one.value(row))))
        ),
        inner.map(lambda one: Condition(f"!({one.sql})", ATOM, lambda row: invert(truth(one.value(row))))),
        inner.map(lambda one: Condition(f"(({one.sql}))", ATOM, one.value)),
        inner.map(
            lambda one: Condition(
                f"({one.sql}) IS TRUE", COMPARE, lambda row: int(truth(one.value(row)) == 1)
            )
        ),
        inner.map(
            lambda one: Condition(
                f"({one.sql}) IS NOT TRUE", COMPARE, lambda row: int(truth(one.value(row)) != 1)
            )
        ),
        inner.map(
            lambda one: Condition(f"IF({one.sql}, 0, 1)", ATOM, lambda row: int(truth(one.value(row)) != 1))
        ),
        inner.map(
            lambda one: Condition(
                f"CASE WHEN {one.sql} THEN 0 ELSE 1 END", ATOM, lambda row: int(truth(one.value(row)) != 1)
            )
        ),
        st.tuples(st.tuples(inner, inner).map(list), st.sampled_from(["=", "<", "<=>"])).map(
            lambda t: chain(*t)
        ),
    )


conditions = st.recursive(leaves, grow, max_leaves=8)


def run(sql: str) -> Bound | None:
    plan, literals = rewriter().plan(sql.encode(), Env(database="demo"))
    assert not isinstance(plan, Reject), plan.arguments
    try:
        return plan.bind(values_of(plan, literals), TOPOLOGY, first)
    except BindError as error:
        if error.name == "shard_missing" and int(error.arguments["shard"]) == 10:
            return None
        pytest.fail(f"{sql}: {error.name} {error.arguments}")


@settings(max_examples=250, deadline=None)
@given(conditions)
def test_no_matching_row_is_left_out(condition: Condition) -> None:
    bound = run(f"SELECT p.id FROM pins p WHERE {condition.sql}")
    if bound is None:
        return
    asked = set(shards_of(bound))
    matching = {row["id"] for row in ROWS if truth(condition.value(row)) == 1}
    assert LAYOUT is not None
    assert {LAYOUT.shard_of(one) for one in matching} <= asked


@settings(max_examples=100, deadline=None)
@given(conditions)
def test_what_a_shard_is_asked_is_true_for_the_same_rows(condition: Condition) -> None:
    """The rewritten condition, evaluated by SQLite over a shard's stored rows, has the same rows."""
    sqlite3 = pytest.importorskip("sqlite3")
    if any(word in condition.sql for word in ("XOR", "<=>", "||", "&&", "!(", "IF(", "0x", " = (")):
        return  # not SQLite's language
    if re.search(r" < (\(|CASE|NULL|a|[01]\b)", condition.sql):
        return  # SQLite lets < bind tighter than =; an operand like these may be a comparison's
    if any(abs(number) > 1 << 63 for number in ODD if str(number) in condition.sql):
        return
    bound = run(f"SELECT p.id FROM pins p WHERE {condition.sql}")
    if bound is None:
        return
    found: set[int] = set()
    for statement in bound.statements:
        text = statement.sql.decode()
        if len(statement.shards) > 1:
            text = text[1:-1]
        for sql in text.split(") UNION ALL ("):
            found |= _sqlite(sqlite3, sql)
    assert found == {row["id"] for row in ROWS if truth(condition.value(row)) == 1}


def _sqlite(sqlite3: Any, sql: str) -> set[int]:
    database = sql.split(" FROM `", 1)[1].split("`", 1)[0]
    shard = int(database[2:])
    connection = sqlite3.connect(":memory:")
    connection.execute(f"ATTACH ':memory:' AS {database}")
    connection.execute(f"CREATE TABLE {database}.pins (local_id INTEGER, a INTEGER)")
    assert LAYOUT is not None
    for row in ROWS:
        if LAYOUT.shard_of(row["id"]) == shard:
            values = (row["id"] & LAYOUT.local_mask, row["a"])
            connection.execute(f"INSERT INTO {database}.pins VALUES (?, ?)", values)
    text = sql.replace("'", "")  # SQLite does not compare numbers with strings
    found = {one for (one,) in connection.execute(text)}
    connection.close()
    return found


SAME = [
    ("id = {0} OR id = {1}", {}, {0, 1}),
    ("id = {0} || id = {1}", {}, {0, 1}),
    ("id = {0} || id = {1}", {"pipes_as_concat": True}, None),
    ("NOT id = {0}", {}, None),
    ("NOT id = {0}", {"high_not_precedence": True}, None),
    ("id = {0} AND @a := 1 OR 1", {}, None),
    ("id = {0} < 5", {}, None),
    ("5 > id = {0}", {}, None),
    ("id = {0} IS TRUE", {}, {0}),
    ("id = {0} COLLATE binary", {}, None),
    ("- id = {0}", {}, None),
    ("BINARY id = {0}", {}, None),
    ("id = {0} + a", {}, None),
    ("a + id = {0}", {}, None),
    ("a BETWEEN 0 AND id = {0}", {}, None),
    ("a BETWEEN 0 AND 1 AND id = {0}", {}, {0}),
    ("a LIKE 'x' AND (id = {0})", {}, {0}),
    ("(a, id) = (1, {0})", {}, {0}),
    ("id IN (SELECT {0})", {}, None),
    ("EXISTS (SELECT 1 WHERE a AND p.id = {0} AND a)", {}, None),
    ("(SELECT a AND p.id = {0} AND a)", {}, None),
    ("CASE WHEN a THEN a AND id = {0} AND a END", {}, {0}),
    ("CASE t.end WHEN 1 THEN a AND id = {0} AND a END", {}, {0}),
    ("id = {0} AND CASE WHEN a OR 1 THEN 2 END", {}, {0}),
    ("id = INTERVAL(1, 2) OR id = {0}", {}, None),
    ("id = {0} = 1", {}, {0}),
    ("id <=> {0}", {}, {0}),
    ("id SOUNDS LIKE {0}", {}, None),
    ("id REGEXP {0}", {}, None),
    ("id = '{0}'", {}, {0}),
    ("id = ' {0}'", {}, {0}),
    ("id = '0{0}.0\t'", {}, {0}),
    ("id = '{0}x'", {}, None),
    ("id = '{0}.4'", {}, None),
    ("id = '{0}' 'x'", {}, None),
    ("id = _utf8'{0}'", {}, {0}),
    ("id = _utf16'{0}'", {}, None),
    ("id IN (1, N'{0}')", {}, {0}),
    ("id = {0}.0", {}, None),
    ("id = {0}e0", {}, {0}),
    ("id = 1e-3", {}, None),
    ("id = (({0}))", {}, {0}),
    ("id = -(-{0})", {}, {0}),
    ("id = {0} * 2 - {0}", {}, {0}),
    ("id = {0} DIV 1", {}, None),
    ("id IN ({0}, {1})", {}, {0, 1}),
    ("id IN ({0}, a)", {}, None),
    ("id IN ({0}) = 0", {}, None),
    ("id = ANY (SELECT {0})", {}, None),
    ("id = {0} /* OR 1 */", {}, {0}),
    ("id = {0} /*!50000 OR 1 */", {}, None),
    ("id = {0} /*!99999 OR 1 */", {}, {0}),
    ("id = {0} -- x\n OR id = {1}", {}, {0, 1}),
    ("id = {0}--1", {}, {0}),
    ("id = {0}-- 1", {}, {0}),
    ("id = {0}--1 OR id = {1}", {}, {0, 1}),
    ("`id`=({0})", {}, {0}),
    ("demo.pins.id = {0}", {}, None),
    ("id = \"{0}\"", {"ansi_quotes": True}, None),
    ("id = \"{0}\"", {}, {0}),
]  # fmt: skip


@pytest.mark.parametrize(("where", "env", "expected"), SAME)
def test_forms(where: str, env: dict[str, Any], expected: Any) -> None:
    ids = [new_id("pins", shard, 1) for shard in range(SHARDS)]
    sql = f"SELECT p.id FROM pins p WHERE {where.format(*ids)}"
    plan, literals = rewriter().plan(sql.encode(), Env(database="demo", **env))
    if isinstance(plan, Opened):
        plan, literals = rewriter().plan(plan.text, Env(database="demo", **env))
    if isinstance(plan, Reject):
        assert expected is None
        assert plan.error == "not_supported_yet"
        return
    if isinstance(plan, Gather):  # then the piece is what routes
        (piece,) = plan.pieces
        plan, literals = rewriter().plan(piece.sql(literals, b"*"), Env(database="demo", **env))
    bound = plan.bind(values_of(plan, literals), TOPOLOGY, first)
    assert set(shards_of(bound)) == (set(range(SHARDS)) if expected is None else expected)
    assert bound.scatter == (expected is None)
