"""What a query's conditions say of the rows of a view of information_schema."""

from __future__ import annotations

from typing import NamedTuple


class Operand(NamedTuple):
    """What a column is compared with: `value` is the index among the literals and the session's values.
    `literal`: it is a string of the statement. `pattern`: of LIKE.
    """

    value: int
    literal: bool = False
    pattern: bool = False


class Limits(NamedTuple):
    """The values that the columns with the database's and the table's name may have; None: any."""

    schemas: tuple[Operand, ...] | None = None
    tables: tuple[Operand, ...] | None = None
