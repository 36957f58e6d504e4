"""Values that a query's conditions allow in the rows of a view of information_schema."""

from __future__ import annotations

from typing import NamedTuple


class Operand(NamedTuple):
    """The value that a column is compared with: `value` is its index among the literals and the session's
    values. `literal`: it is a string of the statement, or, `listed`, all strings of an IN list. `pattern`: of
    LIKE.
    """

    value: int
    literal: bool = False
    pattern: bool = False
    listed: bool = False


class Limits(NamedTuple):
    """The values that the columns with the database's and the table's name may have; None: any."""

    schemas: tuple[Operand, ...] | None = None
    tables: tuple[Operand, ...] | None = None
