"""What a statement has done, as the session goes by it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

RESULT_SET: Final = -1
"""ROW_COUNT() after one."""
ROWS_SENT: Final = ("R", "S")
"""In an open transaction: tables were read, and a result set sent."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One row of SHOW WARNINGS. `sqlstate`: as the server's error said; "" where only the row is known."""

    level: str
    code: int
    message: str
    sqlstate: str = field(default="", compare=False)


class Diagnostics(list[Diagnostic]):
    """The rows that a server has kept. `total`: how many there were, of which `max_error_count` may have left
    out some; 0 where the rows are all. `errors`: how many of those left out were errors. `keeps`: the
    statement has left the warnings of the one before.
    """

    total = 0
    errors = 0
    keeps = False


class Outcome(NamedTuple):
    """For `Session.apply`. What is None stays as it was.

    `affected`: ROW_COUNT(). `insert_id`: LAST_INSERT_ID(). `found`: FOUND_ROWS(). `diagnostics`: what SHOW
    WARNINGS shows. `tables`: it was on tables, so it was the transaction for which something was set, if
    none is open. `touched`: what a client hears of the open transaction (R, W, S).
    """

    affected: int | None = None
    insert_id: int | None = None
    found: int | None = None
    diagnostics: list[Diagnostic] | None = None
    tables: bool = False
    touched: Iterable[str] = ()
