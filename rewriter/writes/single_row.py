"""A row that is alone on its shard, but not in the client's INSERT.

Without strict mode, NULL for a column that takes none is an error in an INSERT of one row, and a warning in
one of several. So it is for MariaDB with IGNORE and a value that a CHECK (or JSON's own) refuses. A server
takes what comes from a SELECT for several rows; so such a row is sent as one.

With IGNORE and ON DUPLICATE KEY UPDATE the number of affected rows does not say how a server counts
duplicates. It says so itself of an INSERT … SELECT, also of one row, and not of one row of VALUES.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from config.flavour import Flavour
from config.schema import Table
from rewriter.text.facts import Span
from rewriter.text.parse_write import Insertion
from rewriter.text.tokens import HEX, INTEGER, NUMBER, PREFIXED, STRING, Source

_CONSTANTS: Final = (STRING, INTEGER, HEX, NUMBER, PREFIXED)


def single_row(
    source: Source, found: Insertion, table: Table, row: Sequence[tuple[str, Span]], *, flavour: Flavour
) -> bool:
    """Whether the row, if it is alone on its shard, has to be sent as a SELECT. `row` has the values by
    columns' names in lower case.
    """
    ignore = found.ignore and (flavour.ignores_by_row or bool(found.on_duplicate))
    if (found.ignore and not ignore) or found.alias or found.alias_columns or found.assigned:
        return False
    if not found.ignore and not any(_refused(source, table, *one) for one in row):
        return False
    return all(_plain(source, one[1]) for one in row)


def _refused(source: Source, table: Table, name: str, value: Span) -> bool:
    """Whether this is a NULL for a column that takes none."""
    column = table.column(name)
    null = value.end - value.first == 1 and source.is_word(value.first, "NULL")
    return null and column is not None and column.facts.not_null


def _plain(source: Source, value: Span) -> bool:
    """Whether a value is a constant, which means the same in a SELECT."""
    for at in range(*value):
        token = source.tokens[at]
        if token.kind not in _CONSTANTS and token.text not in ("+", "-", "NULL", "TRUE", "FALSE"):
            return False
    return True
