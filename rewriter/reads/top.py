"""The first rows of a gathered statement: ORDER BY and LIMIT that a piece takes over.

    SELECT p.*, b.data FROM pins p LEFT JOIN boards b ON b.ts = p.ts ORDER BY p.ts DESC LIMIT 20

Every row of `pins` gives at least one row of the result, and all that ORDER BY names is its own: so no more
than the first 20 rows of each shard matter. The rest sorts and cuts again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rewriter.plans.gather import Top
from rewriter.route.values import Slots, Value, slot_at
from rewriter.splice import Part, Template
from rewriter.text.aggregates import is_aggregate
from rewriter.text.facts import Block, Query, Span, TableRef
from rewriter.text.tokens import Source

_NOT_FIRST: Final = frozenset({"DISTINCT", "DISTINCTROW", "SQL_CALC_FOUND_ROWS", "ROLLUP"})


def top(
    source: Source,
    query: Query,
    ref: TableRef,
    slots: Slots,
    own: Callable[[Span, Block], bool],
    text: Callable[[Span], tuple[Part, ...]],
) -> Top | None:
    """How many rows of `ref` are enough, and which; None for all. `own`: whether an expression is one of
    nothing but its columns, the same everywhere; `text` gives it.

    That all of WHERE is taken over by the piece is the caller's to know.
    """
    block = query.single()
    if block is None or block.limit is None or not block.tables or block.tables[0] is not ref:
        return None
    if block.odd_joins or block.nullable != set(range(1, len(block.tables))):
        return None
    if block.group or block.having is not None or block.windows is not None or block.odd is not None:
        return None
    if _NOT_FIRST & set(block.modifiers) or block.lock is not None:
        return None
    spans = [span for _, span in block.expressions()]
    if any(source.is_word(at, "OVER") or is_aggregate(source, at) for span in spans for at in range(*span)):
        return None
    order: list[Part] = []
    for item in block.order:
        span = meant(source, block, item.span)
        if span is None or not own(span, block):
            return None
        order += [b", " if order else b" ORDER BY ", *text(span), b" DESC" if item.descending else b""]
    rows = number_of(source, slots, block.limit.rows)
    offset = None if block.limit.offset is None else number_of(source, slots, block.limit.offset)
    if rows is None or (offset is None and block.limit.offset is not None):
        return None
    return Top(Template(order), rows, offset)


def meant(source: Source, block: Block, span: Span) -> Span | None:
    """The expression that an item of ORDER BY is: the select list's, for an alias; None for a number."""
    token = source.tokens[span.first]
    if span.end - span.first > 1:
        return span
    if token.kind == "integer":
        return None
    named = [one for one in block.projections if (one.alias or "").lower() == token.name.lower()]
    return named[0].span if len(named) == 1 else None if named else span


def number_of(source: Source, slots: Slots, span: Span) -> Value | None:
    """A number of LIMIT."""
    token = source.tokens[span.first]
    if span.end - span.first == 1 and token.kind == "integer" and token.literal >= 0:
        return Value("integer", token.literal)
    mark = slot_at(source, span.first)
    if mark is not None and mark[0][0] == "?" and mark[1] == span.end:
        return Value("parameter", slots.index(mark[0]))
    return None
