"""Columns that are equal to a routing column where the conditions of a block are true.

    SELECT p.id FROM pins p, boards b WHERE p.id = b.id + 0 AND b.id = 5

What is said of `b.id` is said of `p.id`, too. Columns of integers only: their equality is exact. A derived
table of constants says which ones: `JOIN (SELECT 5 AS id UNION ALL SELECT 7) w ON w.id = p.id`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rewriter.text.facts import Block, Span, TableRef
from rewriter.text.spans import split_at
from rewriter.text.tokens import Source
from rewriter.tree.second import SecondReader
from rewriter.tree.terms import Term

from .algebra import Place
from .predicates import Conditions
from .routing import Comparison, Route, both
from .scope import Chain, Refuse, Scope, chain_at
from .values import Value

Named = tuple[TableRef, str]
"""A table and the name of its column, in upper case."""


class Side(NamedTuple):
    """`column` plus, or minus, a constant (`sign` "" for neither)."""

    column: Named
    sign: str = ""
    constant: Value | None = None


Pairs = dict[Named, list[tuple[Side, Side]]]
"""By columns what they, or sums with them, are equal to: the side of the column, and the other one."""


def equals(
    scope: Scope,
    conditions: Conditions,
    second: SecondReader,
    block: Block,
    ref: TableRef,
    spans: Iterable[Span],
    known_pairs: dict[Span, Pairs],
) -> dict[Named, Place]:
    """The columns of other tables that tell where rows of `ref` are, when the conditions at `spans` hold.
    `known_pairs`: what was found for other tables of the statement.
    """
    pairs = []
    for span in spans:
        if span not in known_pairs:
            known_pairs[span] = _pairs(scope, conditions, second, block, span)
        pairs.append(known_pairs[span])
    table = scope.targets[ref].table
    found: dict[Named, Place] = {}
    for name in () if table is None else (table.routing, table.shard_key, table.strict):
        key = conditions.key(table, name.upper()) if table is not None and name else None
        if name and key is not None and not key.takes_text:
            found[ref, name.upper()] = Place(key)
    pending = list(found)
    for known in pending:
        for one, other in (pair for some in pairs for pair in some.get(known, ())):
            if other.column not in found:
                found[other.column] = _undone(found[known], one, other)
                pending.append(other.column)
    return found


def listed(
    scope: Scope,
    conditions: Conditions,
    second: SecondReader,
    block: Block,
    known: dict[Named, Place],
    spans: Iterable[Span],
) -> Route:
    """The shards by the constants of derived tables that the `known` columns are equal to, as `equals` has
    found them.
    """
    routes = []
    for one in (one for span in spans for one in _equalities(second, block, span)):
        for left, right in (one.parts, one.parts[::-1]):
            named = _named(scope, conditions, block, left)
            place = known.get(named) if named is not None else None
            values = None if place is None else _constants(scope, conditions, block, right)
            if place is None or values is None:
                continue
            for step, operand in place.undo:
                values = [Value(step, parts=(value, operand)) for value in values]
            conditions.comparisons.append(Comparison(place.key, tuple(values), rewritten=False))
            routes.append(Route("in", len(conditions.comparisons) - 1))
    return both(routes)


def _constants(scope: Scope, conditions: Conditions, block: Block, term: Term) -> list[Value] | None:
    """The integers of a column of a derived table without tables in it."""
    chain = chain_at(conditions.source, term.span.first) if term.kind == "column" else None
    ref = _table(scope, block, chain) if chain is not None and chain.end == term.span.end else None
    if chain is None or ref is None or ref.query is None or ref not in block.tables:
        return None
    found: list[Value] = []
    names = _names(conditions.source, ref)
    for one in ref.query.terms:
        if not isinstance(one, Block) or one.tables:
            return None
        rows = _rows(conditions.source, one)
        if not names:
            names = [scope.label(shown).lower() for shown in one.projections] or [
                f"column_{number}" for number in range(len(rows[0]) if rows else 0)
            ]
        if names.count(chain.parts[-1].lower()) != 1:
            return None
        for row in rows:
            value = (
                conditions.constant(row[names.index(chain.parts[-1].lower())])
                if len(row) == len(names)
                else None
            )
            if value is None or value.kind not in ("integer", "negative"):
                return None
            found.append(value)
    return found


def _names(source: Source, ref: TableRef) -> list[str]:
    """The names of a derived table's columns that stand behind its alias; none when they do not."""
    at = ref.span.end + source.is_word(ref.span.end, "AS") + 1
    if not ref.renamed or not source.is_op(at, "("):
        return []
    return [token.name.lower() for token in source.tokens[at + 1 : source.closing[at] : 2]]


def _rows(source: Source, block: Block) -> list[list[Span]]:
    """The rows of a SELECT without tables, or of VALUES: where their values stand."""
    if block.projections:
        return [] if any(one.star for one in block.projections) else [[one.span for one in block.projections]]
    found, at = [], block.first + 1
    while at < block.end:
        if source.is_op(at, "("):
            found.append(split_at(source, Span(at + 1, source.closing[at]), ","))
        at = source.closing.get(at, at) + 1
    return found


def _undone(place: Place, one: Side, other: Side) -> Place:
    """Where the rows are, by the column of `other`, which equals `one`, whose column tells it by `place`."""
    steps: list[tuple[str, Value]] = []
    if other.constant is not None:
        steps.append((other.sign, other.constant))
    if one.constant is not None:
        steps.append(("-" if one.sign == "+" else "+", one.constant))
    return place._replace(undo=(*steps, *place.undo), exact=place.exact or bool(steps))


def _pairs(scope: Scope, conditions: Conditions, second: SecondReader, block: Block, span: Span) -> Pairs:
    found: Pairs = {}
    for one in _equalities(second, block, span):
        left, right = (_side(scope, conditions, block, part) for part in one.parts)
        if left is not None and right is not None:
            found.setdefault(left.column, []).append((left, right))
            found.setdefault(right.column, []).append((right, left))
    return found


def _equalities(second: SecondReader, block: Block, span: Span) -> Iterator[Term]:
    """The parts of a condition that must be true for it to be, and say that two things are equal."""
    term = second.condition(span, block)
    for one in () if term is None else term.parts if term.kind == "and" else (term,):
        if one.kind == "=":
            yield one


def _side(scope: Scope, conditions: Conditions, block: Block, term: Term) -> Side | None:
    if term.kind == "column":
        named = _named(scope, conditions, block, term)
        return None if named is None else Side(named)
    if term.kind not in ("+", "-"):
        return None
    left, right = term.parts
    if term.kind == "+" and left.kind != "column":
        left, right = right, left
    named = _named(scope, conditions, block, left)
    value = conditions.constant(right.span) if right.span.first >= 0 else None
    plain = value is not None and value.kind in ("integer", "negative")
    return Side(named, term.kind, value) if named is not None and plain else None


def _named(scope: Scope, conditions: Conditions, block: Block, term: Term) -> Named | None:
    """The table, of this block, and the name of a column of integers."""
    chain = chain_at(conditions.source, term.span.first) if term.kind == "column" else None
    if chain is None or chain.end != term.span.end:
        return None
    ref = _table(scope, block, chain)
    if ref is None or ref not in block.tables or not scope.whole(ref, chain.column):
        return None
    return ref, chain.column


def _table(scope: Scope, block: Block, chain: Chain) -> TableRef | None:
    try:
        return scope.table_of(chain, block)
    except Refuse:
        return None
