"""INSERT, REPLACE and DELETE … RETURNING (MariaDB) on a sharded table: the columns that a client sees."""

from __future__ import annotations

from config.schema import Kind, Table
from rewriter.route.column_metadata import ColumnMetadata, Virtual
from rewriter.route.scope import Chain, Unsupported, chain_at
from rewriter.splice import Part
from rewriter.text.edits import Edits
from rewriter.text.facts import Span
from rewriter.text.tokens import STRING, Source, quote_name
from rewriter.text.written import encoded


def edit_returning(source: Source, edits: Edits, span: Span, table: Table, id_offset: int) -> ColumnMetadata:
    """Edit the clause at `span` (from its word on). `id_offset` is the index of the shard's K. Gives where
    its columns come from. Raises Refuse.
    """
    virtual: dict[int, Virtual] = {}
    bare = 0  # columns so far for which the server knows no origin
    for item in by_commas(source, Span(span.first + 1, span.end)):
        last = item.end - 1
        if source.is_op(last, "*") and (last == item.first or source.is_op(last - 1, ".")):
            if table.kind is Kind.OBJECT:
                edits.replace(item, *_all(table, id_offset))
                virtual[bare] = _virtual(table, b"id")
                bare += 1
            elif last - item.first > 2:  # the database before the table
                edits.remove(Span(item.first, last - 2))
            continue
        chain = chain_at(source, item.first)
        whole = chain is not None and chain.end == item.end
        changed = _expression(source, edits, item, table, id_offset)
        if changed and (whole or _is_alias(source, chain, item)):
            virtual[bare] = _virtual(table, source.text(last, last + 1).strip(b"`"))
        bare += changed or not (whole or _is_alias(source, chain, item))
        if changed and whole and chain is not None:
            edits.insert_behind(last, b" AS ", source.text(chain.end - 1, chain.end))
        elif changed and not _named(source, item):
            raise Unsupported(
                what="an expression of `id` without a name in RETURNING",
                reason="the result's column would have another name",
                alternative="Write AS and a name behind it.",
            )
    return ColumnMetadata({_bytes(table.name): _bytes(table.database)}, virtual)


def _virtual(table: Table, label: bytes) -> Virtual:
    return Virtual(label, _bytes(table.name), _bytes(table.name), _bytes(table.database))


def _is_alias(source: Source, chain: Chain | None, item: Span) -> bool:
    """Whether an item is a column with another name."""
    if chain is None:
        return False
    behind = chain.end + source.is_word(chain.end, "AS")
    return behind + 1 == item.end and (source.is_name(behind) or source.at(behind).kind == STRING)


def _bytes(name: str) -> bytes:
    return encoded(name)


def _expression(source: Source, edits: Edits, item: Span, table: Table, id_offset: int) -> bool:
    """Edit the names in one item; whether `id` is among them."""
    changed = False
    at = item.first
    while at < item.end:
        chain = chain_at(source, at)
        if chain is None:
            at += 1
            continue
        name = Span(chain.first, chain.end)
        if table.kind is Kind.OBJECT and chain.column == "ID" and not source.is_word(at - 1, "AS"):
            edits.replace(name, b"(local_id + ", id_offset, b")")
            changed = True
        elif len(chain.parts) > 1:
            edits.replace(name, source.text(chain.end - 1, chain.end))
        at = chain.end
    return changed


def _named(source: Source, item: Span) -> bool:
    """Whether an alias stands at the item's end."""
    return item.end - item.first > 2 and source.is_word(item.end - 2, "AS")


def _all(table: Table, id_offset: int) -> list[Part]:
    """What `*` shows."""
    parts: list[Part] = []
    for name in table.logical_columns:
        parts += [b", "] if parts else []
        parts += [b"(local_id + ", id_offset, b") AS id"] if name == "id" else [quote_name(name)]
    return parts


def by_commas(source: Source, span: Span) -> list[Span]:
    """The parts of a list, cut at its own commas."""
    found, first, at = [], span.first, span.first
    while at < span.end:
        if source.is_op(at, ","):
            found.append(Span(first, at))
            first = at + 1
        at = source.closing.get(at, at) + 1
    if first < span.end:
        found.append(Span(first, span.end))
    return found
