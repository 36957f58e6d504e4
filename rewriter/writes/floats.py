"""FLOATs that a SELECT reads for a write: their text has fewer digits than they have.

As the DOUBLE `x * 1e0` such a value comes whole, and what is stored of it is the same. Only columns of text
get the text that the server itself would make of the FLOAT. Of an expression that may be something else (a
date, a text, an ID of 64 bits) only columns of DOUBLEs get that: elsewhere it would spoil the value. If it is
a FLOAT after all, whoever reads the rows refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence

from config.schema import Table
from rewriter.reads.digits import perhaps_rounded, rounded, whole
from rewriter.route.context import Splicer, Statement
from rewriter.route.scope import Refuse, Scope
from rewriter.splice import Part
from rewriter.text.edits import Edits
from rewriter.text.facts import Block, Projection, Query, Span
from rewriter.text.tokens import quote_name


def exact_list(statement: Statement, scope: Scope, query: Query, edits: Edits, names: Sequence[str],
               table: Table | None) -> None:  # fmt: skip
    """Edit the select lists of a query whose rows are to be written into these columns (lower case)."""
    splicer = Splicer(statement, scope)
    pending: list[Block | Query] = [query]
    while pending:
        term = pending.pop()
        if isinstance(term, Query):
            pending += term.terms
        else:
            _Exact(splicer, term, edits).edit(names, table)


def exact_value(
    splicer: Splicer, block: Block, span: Span, parts: tuple[Part, ...], table: Table | None, name: str
) -> tuple[Part, ...]:
    """An expression that is to be written into a column of `table`."""
    column = None if table is None else table.column(name)
    doubles = column is not None and column.type.floating
    return _as_stored(parts, table, name) if _inexact(splicer, block, span, perhaps=doubles) else parts


def _inexact(splicer: Splicer, block: Block, span: Span, *, perhaps: bool) -> bool:
    """Whether an expression, or the one column of a subquery, is such a FLOAT, or `perhaps` is one."""
    for query in block.queries:
        if query.first == span.first + 1 and query.end == span.end - 1:
            inner = query.single()
            shown = inner.projections if inner is not None else []
            if inner is None or len(shown) != 1:
                return False
            return _inexact(splicer, inner, shown[0].span, perhaps=perhaps)
    try:
        return rounded(splicer, block, span) or (perhaps and perhaps_rounded(splicer, block, span))
    except Refuse:
        return False


def _as_stored(parts: tuple[Part, ...], table: Table | None, name: str) -> tuple[Part, ...]:
    column = None if table is None else table.column(name)
    if column is not None and (column.type.textual or column.type.binary):
        return (b"CAST(", *parts, b" AS CHAR)")
    return whole(parts)


class _Exact:
    """The select list of one block."""

    def __init__(self, splicer: Splicer, block: Block, edits: Edits) -> None:
        self.splicer = splicer
        self.block = block
        self.edits = edits

    def edit(self, names: Sequence[str], table: Table | None) -> None:
        at = 0
        for one in self.block.projections:
            width = self.splicer.columns.width(self.block, one)
            into = [*names[at : at + width], *[""] * (width - len(names[at : at + width]))]
            at += width
            if one.star:
                self._star(one, into, table)
                continue
            text = self.edits.inside(one.span)
            written = exact_value(self.splicer, self.block, one.span, text, table, into[0])
            if written is not text:
                self.edits.replace(one.span, *written)

    def _star(self, star: Projection, into: Sequence[str], table: Table | None) -> None:
        """Spell it out, where there is something to change and all its columns are known."""
        parts: list[Part] = []
        found = False
        names = iter(into)
        for ref in self.splicer.scope.starred(self.block, star):
            target = self.splicer.scope.targets[ref]
            if target.table is None or target.columns is None or self.block.shared_columns:
                return
            for name in target.table.logical_columns:
                column = target.table.column(name)
                text: tuple[Part, ...] = (quote_name(ref.label) + b"." + quote_name(name),)
                if column is not None and column.type.rounded:
                    text, found = _as_stored(text, table, next(names, "")), True
                else:
                    next(names, "")
                parts += [b", ", *text] if parts else text
        if found:
            self.edits.replace(star.span, *parts)
