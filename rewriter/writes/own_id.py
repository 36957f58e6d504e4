"""`id` in the values of a row that is inserted: what the row has so far.

A server goes through a row's columns in the order of their list. So `id` in a value is what was given for it
before, and 0 (its default) when it comes later, or is not given, or is NULL. The stored column is another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rewriter.route.context import Splicer
from rewriter.route.scope import Chain, Unsupported, chains_within
from rewriter.splice import Part
from rewriter.text.facts import Span
from rewriter.text.parse_write import Insertion
from rewriter.text.tokens import Source

_NONE: Final[tuple[Part, ...]] = (b"CAST(0 AS UNSIGNED)",)


def edit_own_ids(
    splicer: Splicer, found: Insertion, row: Sequence[tuple[str, Span]], local_id: int, given: Sequence[Span]
) -> None:
    """Edit the values of a row of an object table. `row`: columns' names in lower case, each with its value.
    `local_id`: the index of the row's local id, behind that of K. `given`: values that are no NULL or
    DEFAULT. Raises Refuse.
    """
    known = _NONE
    for name, value in row:
        for at in range(*value):
            check_no_other_id(splicer.source, at)
        for chain, block in chains_within(splicer.source, value, found.block):
            if splicer.scope.table_of(chain, block) is found.table:
                _edit(splicer, chain, known)
        if name == "id":
            known = _given(local_id) if value in given else _NONE


def check_no_other_id(source: Source, at: int) -> None:
    """Raises Refuse where LAST_INSERT_ID(value) begins in an INSERT into an object table."""
    if source.is_word(at, "LAST_INSERT_ID") and source.is_op(at + 1, "(") and not source.is_op(at + 2, ")"):
        raise Unsupported(
            what="LAST_INSERT_ID of something else than the `id`",
            reason="it would be taken for an ID of its shard",
            alternative="Write id = LAST_INSERT_ID(id), or SELECT the value.",
        )


def _given(local_id: int) -> tuple[Part, ...]:
    """The ID that is given, unsigned as its column. NULL and 0 ask for the next number, and are 0 so far."""
    return (b"CAST(COALESCE(NULLIF(", local_id, b", 0) + ", local_id - 1, b", 0) AS UNSIGNED)")


def _edit(splicer: Splicer, chain: Chain, known: tuple[Part, ...]) -> None:
    source, edits = splicer.source, splicer.edits
    whole = Span(chain.first, chain.end)
    if chain.column != "ID":
        if len(chain.parts) > 2:  # the database, which has another name there
            edits.remove(Span(chain.first, chain.end - 3))
    elif source.is_op(chain.first - 1, "(") and source.is_word(chain.first - 2, "DEFAULT", "VALUES", "VALUE"):
        edits.replace(whole, b"local_id")
    else:
        edits.replace(whole, *known)
