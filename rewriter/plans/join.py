"""Two tables joined by an ID, as an application would do it itself: rows of the one, then those of the other
that they name. `reads/joined.py` makes these plans, beside the `Gather` that does the same in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from rewriter.plan import Values
from rewriter.route.binding import MAX_ROWS, limit_number
from rewriter.route.values import Value
from rewriter.splice import Template

LINK: Final = b"sg_link"
"""The last column of either read: what the rows are joined by."""


class Shown(NamedTuple):
    """Columns of the result: the next one of the first or the second side (0, 1), or with `star` all of that
    side's table.
    """

    side: int
    star: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """One table's read.

    `label` names it for people. `select` renders what it shows, with a comma behind each; `source` FROM and
    WHERE (`filtered`: there is one). `column` is what it is joined by, as SQL.
    """

    label: str
    select: Template
    source: Template
    filtered: bool
    column: bytes

    def sql(self, values: Values) -> bytes:
        """Its SELECT without ORDER BY and LIMIT."""
        shown = self.select.render(values)
        return b"SELECT " + shown + self.column + b" AS " + LINK + self.source.render(values)


@dataclass(frozen=True, kw_only=True, eq=False)
class Join:
    """Rows of `first` in their `order`, each with those of `second` whose column has the same integer; with
    `outer` also without.

    `shown` are the result's columns. `rows` and `offset` are LIMIT's. `listed` renders the select list, of
    which the column definitions are; `reference` is the statement without rows for one shard, which has a
    hole for the shard's number behind the values.
    """

    first: Side
    second: Side
    shown: tuple[Shown, ...]
    order: Template
    rows: Value | None
    offset: Value | None
    outer: bool
    listed: Template
    reference: Template

    def first_sql(self, values: Values, limit: int | None) -> bytes:
        """The read of the first table; of no more than `limit` rows."""
        sql = self.first.sql(values) + self.order.render(values)
        return sql if limit is None else sql + b" LIMIT %d" % min(limit, MAX_ROWS)

    def second_sql(self, values: Values, ids: bytes) -> bytes:
        """The read of the rows of the second that these `ids` name."""
        side = self.second
        return (
            side.sql(values)
            + (b" AND " if side.filtered else b" WHERE ")
            + side.column
            + b" IN ("
            + ids
            + b")"
        )

    def window(self, values: Values) -> tuple[int | None, int]:
        """LIMIT and OFFSET. Raises BindError when they are no numbers."""
        rows = None if self.rows is None else limit_number(self.rows, values)
        return rows, 0 if self.offset is None else limit_number(self.offset, values)

    def reference_sql(self, values: Values, shard: int) -> bytes:
        """The statement without rows, all of it on one shard."""
        return self.reference.render((*values, b"%d" % shard))
