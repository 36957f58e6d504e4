"""Conditions drawn at random on the rows of one or two tables, and what they are worth: SQL's three values,
computed here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.rewriter.support import SHARDS, new_id
from tests.rewriter.test_soundness import Truth, compare, conjunction, disjunction, exclusive, invert, truth

Row = dict[str, int | None]
Value = Callable[[Row], Any]
Drawn = tuple[str, Value]
"""A condition, or an expression, in parentheses where it needs them, and its value for a row."""

PINS = [new_id("pins", shard, local) for shard in range(SHARDS) for local in (1, 2)]
BOARDS = [new_id("boards", shard, local) for shard in range(SHARDS) for local in (1, 2)]
ODD = [0, 5, 1 << 62, new_id("users", 1, 1), new_id("pins", 1, 1) + (9 << 46)]

Columns = dict[str, list[int]]
"""The columns by their names in a statement, with values that they may have."""


def constant(draw: st.DrawFn, values: Sequence[int], *, nulls: bool = True) -> Drawn:
    """An expression that is one of a few integers, or NULL."""
    one = draw(st.sampled_from([*values, *values, *values, *ODD]))
    other = draw(st.sampled_from([*values, *ODD]))
    first = draw(st.integers(0, 1))
    forms: list[Drawn] = [
        (str(one), lambda row: one),
        (str(one), lambda row: one),
        (f"({one} + 3 - 3)", lambda row: one),
        (f"CAST('{one}' AS UNSIGNED)", lambda row: one),
        (f"CAST({one} AS SIGNED)", lambda row: one),
        (f"(SELECT {one})", lambda row: one),
        (f"IF({first} = 1, {one}, {other})", lambda row: one if first else other),
        (f"CASE {first} WHEN 1 THEN {one} ELSE {other} END", lambda row: one if first else other),
        (f"COALESCE(NULL, {one}, {other})", lambda row: one),
        (f"IFNULL({one}, {other})", lambda row: one),
    ]
    if nulls:
        forms += [
            ("NULL", lambda row: None),
            (f"IF({first}, {one}, NULL)", lambda row: one if first else None),
        ]
    found: Drawn = draw(st.sampled_from(forms))
    return found


def varying(draw: st.DrawFn, values: Sequence[int], small: str) -> Drawn:
    """An expression that depends on the row, also in the way of COALESCE and CASE."""
    one, (text, value) = draw(st.sampled_from([*values, *ODD])), constant(draw, values)
    forms: list[Drawn] = [
        (f"IF({small} = 1, {text}, {one})", lambda row: value(row) if row[small] == 1 else one),
        (f"COALESCE({small}, {one})", lambda row: one if row[small] is None else row[small]),
    ]
    found: Drawn = draw(st.sampled_from(forms))
    return found


def member(value: Any, items: list[Any]) -> Truth:
    found: Truth = 0
    for item in items:
        found = disjunction(found, compare("=", value, item))
    return found


def tuples(operator: str, left: list[Any], right: list[Any]) -> Truth:
    if operator == "<>":
        return invert(tuples("=", left, right))
    found: Truth = 1
    for one, other in zip(left, right, strict=True):
        found = conjunction(found, compare(operator, one, other))
    return found


@st.composite
def leaves(draw: st.DrawFn, columns: Columns, small: str) -> Drawn:
    """A comparison of a column with constants, or what looks like one."""
    name = draw(st.sampled_from(list(columns)))
    values = columns[name]
    text, value = varying(draw, values, small) if draw(st.booleans()) else constant(draw, values)
    other, low = constant(draw, values), constant(draw, values, nulls=False)
    kind = draw(
        st.sampled_from(
            ["op"] * 4 + ["in", "in", "between", "bounds", "outside", "tuple", "tuple", "row", "moved"]
        )
    )
    if kind == "op":
        operator = draw(st.sampled_from(["=", "=", "=", "<=>", "<>", "<", ">=", ">", "<="]))
        return f"{name} {operator} {text}", lambda row: compare(operator, row[name], value(row))
    if kind == "moved":
        shift = draw(st.integers(0, 3))
        form = draw(st.sampled_from([f"{name} + {shift}", f"{shift} + {name}"]))
        return f"{form} = {text} + {shift}", lambda row: compare("=", row[name], value(row))
    if kind == "in":
        negated = draw(st.booleans())
        sql = f"{name} {'NOT ' if negated else ''}IN ({text}, {other[0]})"

        def among(row: Row) -> Truth:
            found = member(row[name], [value(row), other[1](row)])
            return invert(found) if negated else found

        return sql, among
    if kind in ("between", "bounds", "outside"):
        high = draw(st.integers(0, 3))

        def within(row: Row) -> Truth:
            bottom = low[1](row)
            above = compare(">=", row[name], bottom)
            return conjunction(above, compare("<=", row[name], bottom + high))

        between = f"{name} BETWEEN {low[0]} AND {low[0]} + {high}"
        bounds = f"({name} >= {low[0]} AND {name} <= {low[0]} + {high})"
        outside = f"NOT ({name} < {low[0]} OR {name} > {low[0]} + {high})"
        return {"between": between, "bounds": bounds, "outside": outside}[kind], within
    if kind == "row":
        rows = [(constant(draw, values), constant(draw, [0, 1])) for _ in range(2)]
        inside = ", ".join(f"({one[0]}, {two[0]})" for one, two in rows)

        def in_rows(row: Row) -> Truth:
            found: Truth = 0
            for one, two in rows:
                found = disjunction(found, tuples("=", [row[name], row[small]], [one[1](row), two[1](row)]))
            return found

        return f"({name}, {small}) IN ({inside})", in_rows
    operator = draw(st.sampled_from(["=", "=", "<=>", "<>"]))
    two = constant(draw, [0, 1])
    return (
        f"({small}, {name}) {operator} ({two[0]}, {text})",
        lambda row: tuples(operator, [row[small], row[name]], [two[1](row), value(row)]),
    )


def conditions(columns: Columns, small: str) -> st.SearchStrategy[Drawn]:
    """Conditions on these columns, and on one more, `small`, which is 0, 1 or NULL."""
    simple: list[Drawn] = [
        ("1", lambda row: 1),
        ("FALSE", lambda row: 0),
        ("NULL", lambda row: None),
        ("(1 = 0)", lambda row: 0),
        (f"{small} = 1", lambda row: compare("=", row[small], 1)),
        (f"{small} IS NULL", lambda row: int(row[small] is None)),
        *(_is_null(f"{name} IS NULL", name, 1) for name in columns),
        # SQLAlchemy's empty list, and its negation
        *((f"({name} IN (NULL) AND (1 != 1))", lambda row: 0) for name in columns),
        *((f"({name} NOT IN (NULL) OR (1 = 1))", lambda row: 1) for name in columns),
    ]
    either = st.one_of(*[leaves(columns, small)] * 4, st.sampled_from(simple))
    return st.recursive(either, _grown, max_leaves=6)


def plain_conditions(columns: Columns) -> st.SearchStrategy[Drawn]:
    """Short ones on NULL and not NULL, which say much of outer joins."""
    found: list[Drawn] = [("FALSE", lambda row: 0), ("NULL", lambda row: None)]
    for name, values in columns.items():
        found += [
            _compared(name, sign, value) for value in (*values[:2], None) for sign in ("=", "<=>", "<>")
        ]
        found += [_is_null(f"{name} IS NULL", name, 1), _is_null(f"{name} + 1 IS NOT NULL", name, 0)]
    return st.recursive(st.sampled_from(found), _grown, max_leaves=3)


def _compared(name: str, sign: str, value: int | None) -> Drawn:
    text = "NULL" if value is None else str(value)
    return f"{name} {sign} {text}", lambda row: compare(sign, row[name], value)


def _is_null(sql: str, name: str, if_null: int) -> Drawn:
    return sql, lambda row: if_null if row[name] is None else 1 - if_null


def _grown(inner: st.SearchStrategy[Drawn]) -> st.SearchStrategy[Drawn]:
    def two(sign: str, of: Callable[[Truth, Truth], Truth]) -> st.SearchStrategy[Drawn]:
        def both(pair: tuple[Drawn, Drawn]) -> Drawn:
            (one, left), (other, right) = pair
            return f"(({one}) {sign} ({other}))", lambda row: of(truth(left(row)), truth(right(row)))

        return st.tuples(inner, inner).map(both)

    def one(form: str, of: Callable[[Truth], Truth]) -> st.SearchStrategy[Drawn]:
        return inner.map(lambda drawn: (form.format(drawn[0]), lambda row: of(truth(drawn[1](row)))))

    def chosen(drawn: tuple[Drawn, Drawn, Drawn]) -> Drawn:
        (when, first), (then, second), (other, third) = drawn
        return (
            f"CASE WHEN {when} THEN {then} ELSE {other} END",
            lambda row: second(row) if truth(first(row)) == 1 else third(row),
        )

    def filled(drawn: tuple[Drawn, Drawn]) -> Drawn:
        (one, left), (other, right) = drawn
        return (
            f"COALESCE(({one}), ({other}))",
            lambda row: right(row) if truth(left(row)) is None else truth(left(row)),
        )

    return st.one_of(
        two("AND", conjunction),
        two("OR", disjunction),
        two("XOR", exclusive),
        one("NOT ({})", invert),
        one("NOT ({})", invert),
        one("({}) IS TRUE", lambda found: int(found == 1)),
        one("({}) IS NOT TRUE", lambda found: int(found != 1)),
        one("({}) IS FALSE", lambda found: int(found == 0)),
        one("({}) IS NULL", lambda found: int(found is None)),
        one("(({}) = 1)", lambda found: found),
        one("(({}) <> 0)", lambda found: found),
        one("(({}) <=> 0)", lambda found: int(found == 0)),
        one("IF({}, 1, 0)", lambda found: int(found == 1)),
        one("IF({}, NULL, 1)", lambda found: None if found == 1 else 1),
        st.tuples(inner, inner, inner).map(chosen),
        st.tuples(inner, inner).map(filled),
    )
