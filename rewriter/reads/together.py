"""Statements that every shard answers for its own rows: one table, or tables joined by equal routing values.

    SELECT b.data, m.pin_id FROM boards b LEFT JOIN board_has_pins m ON m.board_id = b.id ORDER BY b.ts

Rows that belong together are on one shard, in subqueries too (`WHERE EXISTS (SELECT 1 FROM board_has_pins m
WHERE m.board_id = b.id)`), and reference tables are everywhere: so the rows of all shards are the rows of the
whole, once each, as every one of them is made of a row that only one shard has.
"""

from __future__ import annotations

from collections.abc import Iterator

from rewriter.route.context import Splicer
from rewriter.route.scope import Chain, chain_at
from rewriter.splice import Part
from rewriter.text.facts import Block, Query, Span, TableRef


def together(splicer: Splicer, query: Query, refs: list[TableRef]) -> Block | None:
    """The block of such a statement, or None. `refs`: its sharded tables."""
    block = query.single()
    if block is None or block.odd_joins:
        return None
    if len(block.tables) == 1 and not list(block.inner_queries()):
        return block
    if not any(ref in refs and at not in block.nullable for at, ref in enumerate(block.tables)):
        return None
    return block if splicer.colocated(refs) else None


def outside(block: Block, span: Span) -> Iterator[int]:
    """The tokens of `span` that are in no subquery of the block."""
    inner = {query.first: query.end for query in block.queries}
    at = span.first
    while at < span.end:
        if at in inner:
            at = inner[at]
            continue
        yield at
        at += 1


def both_ways(splicer: Splicer, query: Query) -> None:
    """Say `b.id = m.board_id` in a second way, of the local id that is stored: for a server `(local_id + K)`
    is no key, so that it could find rows of `m` by those of `b` only. K and local ids have no bit in common.
    """
    for block in query.all_blocks():
        spans = [one.span for one in block.conditions]
        for span in [*spans, block.where] if block.where is not None else spans:
            for match in splicer.conditions.equalities(span):
                right = chain_at(splicer.source, match.column.end + 1)
                if right is None or match.other is None:
                    continue
                sides = ((match.ref, match.column), (match.other, right))
                for (ref, chain), (other, value) in (sides, sides[::-1]):
                    if _is_id(splicer, ref, chain) and _whole(splicer, other, value):
                        id_offset = splicer.columns.id_offset(ref)
                        local = (b" AND ", splicer.columns.qualifier(chain) + b"local_id = (")
                        text = _text(splicer, other, value)
                        splicer.edits.insert_behind(
                            match.span.end - 1, *local, *text, b" ^ ", id_offset, b")"
                        )


def _is_id(splicer: Splicer, ref: TableRef, chain: Chain) -> bool:
    return splicer.scope.targets[ref].is_object and chain.column == "ID"


def _whole(splicer: Splicer, ref: TableRef, chain: Chain) -> bool:
    """Whether a column holds integers."""
    return splicer.scope.whole(ref, chain.column)


def _text(splicer: Splicer, ref: TableRef, chain: Chain) -> tuple[Part, ...]:
    qualifier = splicer.columns.qualifier(chain)
    if _is_id(splicer, ref, chain):
        return (b"(" + qualifier + b"local_id + ", splicer.columns.id_offset(ref), b")")
    return (qualifier + splicer.source.text(chain.end - 1, chain.end),)
