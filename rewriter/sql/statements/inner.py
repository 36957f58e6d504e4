"""Where a statement begins that stands inside of another one: behind SET STATEMENT … FOR, behind EXPLAIN."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from rewriter.text.tokens import STRING, VARIABLE, Source

from .forms import Kind
from .table import form_of


class Explained(NamedTuple):
    """`at`: the statement that is explained, or the table's name; the end where there is none. `database`:
    the index of the name behind FOR SCHEMA. `others`: it is what another connection runs.
    """

    at: int
    database: int | None = None
    others: bool = False


def behind_set_statement(source: Source, first: int = 0) -> int:
    """The statement behind MariaDB's SET STATEMENT … FOR at `first`; the end where there is none."""
    at = first + 2
    while at < len(source.tokens):
        if source.is_word(at, "FOR") and not (
            source.is_word(at - 1, "VALUE") and source.is_word(at - 2, "NEXT", "PREVIOUS")
        ):
            return at + 1
        at = source.closing.get(at, at) + 1
    return at


def tail(source: Source, first: int) -> Source:
    """The statement that begins at `first`, by itself."""
    closing = {at - first: close - first for at, close in source.closing.items() if at >= first}
    return replace(source, tokens=source.tokens[first:], closing=closing)


def is_explain(source: Source, first: int) -> bool:
    """Whether EXPLAIN, or a word for it, stands at `first`."""
    return form_of(source, first).kind is Kind.EXPLAIN


def behind_explain(source: Source, first: int) -> Explained:
    """What the EXPLAIN at `first` is of."""
    at = first + 1
    database = None
    while at < len(source.tokens):
        if source.is_word(at, "FOR") and source.is_word(at + 1, "CONNECTION"):
            return Explained(len(source.tokens), database, others=True)
        if source.is_word(at, "FOR") and source.is_word(at + 1, "SCHEMA", "DATABASE"):
            database, at = at + 2, at + 3
        elif source.is_word(at, "FORMAT") and source.is_op(at + 1, "="):
            at += 3
        elif source.is_word(at, "INTO") and source.at(at + 1).kind in (VARIABLE, STRING):
            at += 2
        elif source.is_word(at, "EXTENDED", "PARTITIONS", "ANALYZE") and not source.is_op(at + 1, "."):
            at += 1
        else:
            break
    return Explained(at, database)
