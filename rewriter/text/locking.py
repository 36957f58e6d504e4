"""The locking clauses of a block (FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE): which table gets which."""

from __future__ import annotations

from collections.abc import Iterator

from .facts import Block, Query, Span, TableRef
from .tokens import Source


def locks(query: Query) -> bool:
    """Whether some block of a query reads with locks."""
    return any(block.lock is not None for block in query.all_blocks())


def lock_of(source: Source, ref: TableRef, block: Block) -> bytes:
    """The clause for a SELECT of `ref` alone; b"" when the block does not lock it."""
    if block.lock is None:
        return b""
    for clause in _clauses(source, block.lock):
        first, end = clause
        of = next((at for at in range(first, end) if source.is_word(at, "OF")), None)
        if of is None:
            return source.text(first, end)
        at, named = of + 1, False
        while at < end and source.is_name(at):
            named = named or source.tokens[at].name == ref.label
            at += 1
            if at < end and source.is_op(at, ","):
                at += 1
            else:
                break
        if named:
            return b" ".join([source.text(first, of), *([source.text(at, end)] if at < end else [])])
    return b""


def _clauses(source: Source, span: Span) -> Iterator[Span]:
    """Several may follow each other: FOR UPDATE OF a FOR SHARE OF b."""
    starts = [at for at in range(*span) if source.is_word(at, "FOR", "LOCK")]
    for first, end in zip(starts, [*starts[1:], span.end], strict=True):
        yield Span(first, end)
