"""Numbers whose text has fewer digits than they have: FLOAT, and DOUBLE with a fixed number of decimals.

`x * 1e0` is the same number as a DOUBLE, whose text has all digits. (`x + 0e0` would lose the sign of -0.)
"""

from __future__ import annotations

from typing import Final

from rewriter.route.context import Splicer
from rewriter.route.scope import chains_within
from rewriter.splice import Part
from rewriter.text.aggregates import is_aggregate
from rewriter.text.edits import Edits
from rewriter.text.facts import Block, Projection, Span
from rewriter.text.tokens import quote_name

_KEEPING: Final = (
    *("IF", "CASE", "IFNULL", "NVL", "NVL2", "NULLIF", "COALESCE", "GREATEST", "LEAST", "MIN", "MAX"),
    *("ANY_VALUE", "FIRST_VALUE", "LAST_VALUE", "NTH_VALUE", "LAG", "LEAD", "VALUES", "VALUE"),
)
"""What may give a FLOAT of a FLOAT; arithmetic and other functions give a DOUBLE."""


def whole(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """An expression with all its digits."""
    return (b"((", *parts, b") * 1e0)")


def rounded(splicer: Splicer, block: Block, span: Span) -> bool:
    """Whether this is such a column, or its MIN or MAX."""
    source = splicer.source
    if source.is_word(span.first, "MIN", "MAX") and source.is_op(span.first + 1, "("):
        if source.closing[span.first + 1] != span.end - 1:
            return False
        span = Span(span.first + 2, span.end - 1)
    return splicer.columns.type_of(block, span).rounded


def perhaps_rounded(splicer: Splicer, block: Block, span: Span) -> bool:
    """Whether this may be rounded, for all that is known: an expression with such a column, or a column of a
    derived table, or a subquery.
    """
    keeping = any(splicer.source.is_word(at, *_KEEPING) for at in range(*span))
    for chain, within in chains_within(splicer.source, span, block):
        ref = splicer.scope.table_of(chain, within)
        if ref is not None and splicer.scope.targets[ref].form == "inner":
            return True
        found = splicer.columns.type_of(within, Span(chain.first, chain.end))
        if not found.rounded:
            continue
        if keeping or within is not block or found.decimals is not None:
            return True
    return False


def show_all(splicer: Splicer, block: Block, edits: Edits, exact: str) -> bool:
    """Have the result columns that `exact` marks (`Env.exact`) come with all their digits. False where that
    may change more than their form.
    """
    if block.having is not None or ({"DISTINCT", "DISTINCTROW"} & set(block.modifiers) and block.order):
        return False  # what is shown is named there
    first = 0
    for projection in block.projections:
        width = splicer.columns.width(block, projection)
        marks = exact[first : first + width]
        first += width
        if "1" not in marks:
            continue
        if projection.star:
            shown = _star(splicer, block, projection, marks)
            if not shown:
                return False
            edits.replace(projection.span, *shown)
        elif block.group and not is_aggregate(splicer.source, projection.span.first):
            return False  # a server may not take an expression of a key for one of the key
        else:
            edits.replace(projection.span, *whole(edits.inside(projection.span)))
    return first == len(exact)


def _star(splicer: Splicer, block: Block, projection: Projection, marks: str) -> tuple[Part, ...]:
    """The columns of `*`; () when they are not those that were looked at."""
    parts: list[Part] = []
    number = 0
    for ref in splicer.scope.starred(block, projection):
        table = splicer.scope.targets[ref].table
        if table is None:
            return ()
        qualifier = quote_name(ref.label) + b"."
        for name in table.logical_columns:
            parts += [b", "] if parts else []
            column = table.column(name)
            wanted = marks[number : number + 1] == "1"
            if wanted and not (column is not None and column.type.rounded):
                return ()
            if column is None:
                parts += [b"(" + qualifier + b"local_id + ", splicer.columns.id_offset(ref), b")"]
            elif wanted:
                parts += whole((qualifier + quote_name(name),))
            else:
                parts.append(qualifier + quote_name(name))
            number += 1
    return tuple(parts)
