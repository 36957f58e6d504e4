"""Conditions on a view of information_schema that say in which databases, and of which tables, its rows are.

    WHERE table_schema = 'crm' AND table_name IN ('a', 'b')

With these only the databases that can match are asked. A condition counts if it must be true for every row
that the view gives: one of the parts that AND joins in WHERE or in an ON that restricts the view. A condition
on another view counts if the query joins both by that column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import NamedTuple

from rewriter.plans.limits import Limits, Operand
from rewriter.route.values import Slots, slot_at, variable_of
from rewriter.text.facts import Block, Span
from rewriter.text.tokens import LIST, STRING, Source


class ViewColumns(NamedTuple):
    """The columns of a view with the name of a row's database, and with that of its table."""

    schemas: tuple[str, ...]
    tables: tuple[str, ...]


class _Reader:
    """Reads the conditions of one view in its block."""

    def __init__(self, source: Source, slots: Slots, block: Block, number: int) -> None:
        self._source = source
        self._slots = slots
        self._label = block.tables[number].label.lower()
        self._alone = len(block.tables) == 1
        self._shared = _shared(block) if not block.nullable else frozenset()
        spans = [] if block.where is None else [block.where]
        if not block.odd_joins:
            spans += [one.span for one in block.conditions if number in one.narrows]
        self._parts = [part for span in spans for part in conjuncts(source, span)]

    def values(self, columns: Iterable[str]) -> tuple[Operand, ...] | None:
        """What a condition compares one of the columns with; None if none does."""
        compared = (self._compared(span, column) for span, column in product(self._parts, columns))
        return next((one for one in compared if one is not None), None)

    def joins(self, own: Iterable[str], other: _Reader, columns: Iterable[str]) -> bool:
        """Whether one of the own columns is equal to one of another view's."""
        return any(
            self._equal((self, mine), (other, its), part) or self._equal((other, its), (self, mine), part)
            for mine, its, part in product(own, columns, self._parts)
        )

    def _equal(self, left: tuple[_Reader, str], right: tuple[_Reader, str], span: Span) -> bool:
        at = left[0]._column(span.first, span.end, left[1])
        if at is None or not self._source.is_op(at, "="):
            return False
        return right[0]._column(at + 1, span.end, right[1]) == span.end

    def _compared(self, span: Span, column: str) -> tuple[Operand, ...] | None:
        source, (first, end) = self._source, span
        behind = self._column(first, end, column)
        if behind is None:
            if source.is_op(end - 1, ")"):
                return None
            value = self._value(first)
            if value is None or not source.is_op(value[1], "="):
                return None
            return (value[0],) if self._column(value[1] + 1, end, column) == end else None
        if source.is_word(behind, "IN") and source.is_op(behind + 1, "("):
            inner = Span(behind + 2, source.closing[behind + 1])
            return self._list(inner) if inner.end == end - 1 else None
        pattern = source.is_word(behind, "LIKE")
        if not pattern and not source.is_op(behind, "=", "<=>"):
            return None
        value = self._value(behind + 1)
        if value is None or value[1] != end:
            return None
        if source.is_op(behind, "<=>") and not value[0].literal:
            return None  # with NULL it is true for the rows that an outer join adds
        return (value[0]._replace(pattern=pattern),)

    def _list(self, span: Span) -> tuple[Operand, ...] | None:
        token = self._source.at(span.first)
        if token.kind == LIST and token.text == STRING and token.literal >= 0 and span.first + 1 == span.end:
            return (Operand(token.literal, literal=True, listed=True),)
        found = []
        at = span.first
        while True:
            value = self._value(at)
            if value is None:
                return None
            found.append(value[0])
            at = value[1]
            if at == span.end:
                return tuple(found)
            if not self._source.is_op(at, ","):
                return None
            at += 1

    def _column(self, first: int, end: int, column: str) -> int | None:
        """Where the view's column ends that stands at `first`; None if it is something else."""
        source, at = self._source, first
        while at + 2 < end and source.is_name(at) and source.is_op(at + 1, "."):
            at += 2
        if at >= end or not source.is_name(at) or source.at(at).name.upper() != column:
            return None
        if at == first:
            named = self._alone or column in self._shared
            return at + 1 if named and not source.is_op(at + 1, "(") else None
        return at + 1 if source.at(at - 2).name.lower() == self._label else None

    def _value(self, at: int) -> tuple[Operand, int] | None:
        """The value at `at` and where it ends."""
        source = self._source
        token = source.at(at)
        if token.kind == STRING and token.literal >= 0:
            return Operand(token.literal, literal=True), at + 1
        found = slot_at(source, at)
        if found is None or not (found[0][0] == "?" or found[0] == "DATABASE()" or variable_of(found[0])):
            return None
        return Operand(self._slots.index(found[0])), found[1]


def limits_of(
    source: Source, slots: Slots, block: Block, number: int, views: Mapping[int, ViewColumns]
) -> Limits:
    """The limits of a view. `number`: its index in the block; `views`: the columns of all views there."""
    if any(source.is_op(at, ":=") for at in range(len(source.tokens))):
        return Limits()
    readers = {index: _Reader(source, slots, block, index) for index in views}
    shared = _shared(block)

    def limit(of: Callable[[ViewColumns], tuple[str, ...]]) -> tuple[Operand, ...] | None:
        own, reader = of(views[number]), readers[number]
        found = reader.values(own)
        for index, columns in views.items():
            others = of(columns)
            if found is None and index != number:
                joined = shared.intersection(own, others) or reader.joins(own, readers[index], others)
                found = readers[index].values(others) if joined else None
        return found

    return Limits(limit(lambda columns: columns.schemas), limit(lambda columns: columns.tables))


def _shared(block: Block) -> frozenset[str]:
    """The columns by which USING joins the block's two tables."""
    return frozenset(block.shared_columns if len(block.tables) == 2 and not block.odd_joins else ())


def conjuncts(source: Source, span: Span) -> Iterator[Span]:
    """The parts of a condition that AND joins. None where it has an OR, or CASE, in which AND may stand."""
    first, end = span
    while source.is_op(first, "(") and source.closing.get(first) == end - 1:
        first, end = first + 1, end - 1
    parts: list[Span] = []
    at, start, between = first, first, False
    while at < end:
        if at in source.closing:
            at = source.closing[at] + 1
            continue
        if source.is_word(at, "OR", "XOR", "CASE") or source.is_op(at, "||"):
            return
        if source.is_word(at, "BETWEEN"):
            between = True
        elif source.is_word(at, "AND") or source.is_op(at, "&&"):
            if not between:
                parts.append(Span(start, at))
                start = at + 1
            between = False
        at += 1
    if not parts:
        yield Span(first, end)
        return
    for part in (*parts, Span(start, end)):
        yield from conjuncts(source, part)
