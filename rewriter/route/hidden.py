"""Rows that reads do not see: those of a table with `soft_delete` whose flag is false.

    SELECT p.id FROM boards b LEFT JOIN pins p ON p.board_id = b.id WHERE b.id = 5

The condition goes where the table's rows come in: to WHERE; where an outer join would give rows of NULLs for
them, to the ON of that join. It is written into the text that the shards get, when all else is decided: so
it narrows nothing, and neither reader of the statement sees it.
"""

from __future__ import annotations

from typing import Final

from config.schema import SoftDelete
from rewriter.text.edits import Edits
from rewriter.text.facts import Block, Span, TableRef
from rewriter.text.tokens import quote_name

from .scope import Scope, Unsupported

WITH_DELETED: Final = b"/*+ with_deleted */"
"""The hint of a statement that sees them."""


def seen(label: str, flag: SoftDelete) -> bytes:
    """The condition that is true for the rows of the table called `label` that reads see.

    A flag is false when it is JSON's `false` or the number 0. Rows without one are seen, and those whose text
    is no JSON: JSON_EXTRACT of such a text is an error on MySQL.
    """
    column = quote_name(label) + b"." + quote_name(flag.column)
    if flag.path is None:
        return b"(" + column + b" = 0) IS NOT TRUE"
    path = b"'" + flag.path.replace("'", "''").encode() + b"'"
    if not flag.path.isascii():  # whatever the connection's character set is
        path = b"_utf8mb4 0x" + flag.path.encode().hex().encode()
    value = b"CAST(JSON_EXTRACT(" + column + b", " + path + b") AS CHAR)"
    return b"(IF(JSON_VALID(" + column + b"), " + value + b", NULL) IN ('false', '0')) IS NOT TRUE"


def hiding(scope: Scope, refs: list[TableRef]) -> dict[TableRef, SoftDelete]:
    """Those of these tables that have hidden rows, each with its flag."""
    tables = ((ref, scope.targets[ref]) for ref in refs)
    return {
        ref: target.table.soft_delete
        for ref, target in tables
        if target.form == "sharded" and target.table is not None and target.table.soft_delete is not None
    }


def hide(block: Block, scope: Scope, edits: Edits) -> None:
    """Have a block see no hidden rows. Raises Unsupported where there is no place for the condition: copies
    of the rows that are seen can be read then.
    """
    conditions: dict[Span | None, list[bytes]] = {}
    for ref, flag in hiding(scope, block.tables).items():
        number = block.tables.index(ref)
        if block.odd_joins and block.outer_on:
            raise _no_place(ref, "which ON belongs to which outer join is not looked into")
        place = block.outer_on.get(number, block.where)
        if place is None and number in block.outer_on:
            raise _no_place(ref, "an outer join by common column names has no place for that condition")
        if not block.from_end:
            raise _no_place(ref, "it has no WHERE")
        conditions.setdefault(place, []).append(seen(ref.label, flag))
    first = conditions.pop(None, None)
    for span, found in conditions.items():
        if span is not None:
            edits.insert_behind(span.first - 1, b" (")
            edits.insert_behind(span.end - 1, b") AND " + b" AND ".join(found))
    if first is not None:  # behind what is added to the last ON
        edits.insert_behind(block.from_end - 1, b" WHERE " + b" AND ".join(first))


def _no_place(ref: TableRef, reason: str) -> Unsupported:
    return Unsupported(
        what="this statement",
        reason=f"rows of '{ref.label}' whose flag is false are hidden, and {reason}",
        alternative="Write the join with ON, or /*+ with_deleted */ behind the first word.",
    )
