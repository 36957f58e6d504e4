"""Columns that are equal to a routing column where the conditions of a block are true.

    SELECT p.id FROM pins p, boards b WHERE p.id = b.id + 0 AND b.id = 5

What is said of `b.id` is said of `p.id`, too. Columns of integers only: their equality is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rewriter.text.facts import Block, Span, TableRef
from rewriter.tree.second import SecondReader
from rewriter.tree.terms import Term

from .algebra import Place
from .predicates import Conditions
from .scope import Refuse, Scope, chain_at
from .values import Value

Named = tuple[TableRef, str]
"""A table and the name of its column, in upper case."""


class _Side(NamedTuple):
    """`column` plus, or minus, a constant (`sign` "" for neither)."""

    column: Named
    sign: str = ""
    constant: Value | None = None


def equals(
    scope: Scope,
    conditions: Conditions,
    second: SecondReader,
    block: Block,
    ref: TableRef,
    spans: Iterable[Span],
) -> dict[Named, Place]:
    """The columns of other tables that tell where rows of `ref` are, when the conditions at `spans` hold."""
    pairs = [pair for span in spans for pair in _pairs(scope, conditions, second, block, span)]
    table = scope.targets[ref].table
    found: dict[Named, Place] = {}
    for one, _ in (*pairs, *((right, left) for left, right in pairs)):
        key = conditions.key(table, one.column[1]) if table is not None and one.column[0] is ref else None
        if key is not None and not key.takes_text:
            found[one.column] = Place(key)
    pending = list(found)
    for known in pending:
        for one, other in (*pairs, *((right, left) for left, right in pairs)):
            if one.column == known and other.column not in found:
                found[other.column] = _undone(found[known], one, other)
                pending.append(other.column)
    return {named: place for named, place in found.items() if named[0] is not ref}


def _undone(place: Place, one: _Side, other: _Side) -> Place:
    """Where the rows are, by the column of `other`, which equals `one`, whose column tells it by `place`."""
    steps: list[tuple[str, Value]] = []
    if other.constant is not None:
        steps.append((other.sign, other.constant))
    if one.constant is not None:
        steps.append(("-" if one.sign == "+" else "+", one.constant))
    return place._replace(undo=(*steps, *place.undo), exact=place.exact or bool(steps))


def _pairs(
    scope: Scope, conditions: Conditions, second: SecondReader, block: Block, span: Span
) -> Iterator[tuple[_Side, _Side]]:
    term = second.condition(span, block)
    for one in () if term is None else term.parts if term.kind == "and" else (term,):
        if one.kind == "=":
            left, right = (_side(scope, conditions, block, part) for part in one.parts)
            if left is not None and right is not None:
                yield left, right


def _side(scope: Scope, conditions: Conditions, block: Block, term: Term) -> _Side | None:
    if term.kind == "column":
        named = _named(scope, conditions, block, term)
        return None if named is None else _Side(named)
    if term.kind not in ("+", "-"):
        return None
    left, right = term.parts
    if term.kind == "+" and left.kind != "column":
        left, right = right, left
    named = _named(scope, conditions, block, left)
    value = conditions.constant(right.span) if right.span.first >= 0 else None
    plain = value is not None and value.kind in ("integer", "negative")
    return _Side(named, term.kind, value) if named is not None and plain else None


def _named(scope: Scope, conditions: Conditions, block: Block, term: Term) -> Named | None:
    """The table, of this block, and the name of a column of integers."""
    chain = chain_at(conditions.source, term.span.first) if term.kind == "column" else None
    if chain is None or chain.end != term.span.end:
        return None
    try:
        ref = scope.table_of(chain, block)
    except Refuse:
        return None
    if ref is None or ref not in block.tables or not scope.whole(ref, chain.column):
        return None
    return ref, chain.column
