"""The status variables that count a session's statements (Com_insert …).

A server counts them for its own connections, which many sessions share. So they are counted here, from a
session's first SHOW STATUS on: until then nobody looks, and a statement costs nothing.
"""

from __future__ import annotations

from typing import Final

from rewriter.sql.statements.forms import StatementForm
from rewriter.sql.statements.table import FORMS

#: Of prepared statements' commands.
PREPARE, EXECUTE, CLOSE, RESET = (
    b"com_stmt_prepare",
    b"com_stmt_execute",
    b"com_stmt_close",
    b"com_stmt_reset",
)
OTHER: Final = b""
_OF_THE_PROXY: Final = "-"
COUNTERS: Final = frozenset(
    {f"com_{form.counter}".encode() for form in FORMS.values() if form.counter not in ("", _OF_THE_PROXY)}
    | {PREPARE, EXECUTE, CLOSE}
)
"""All variables that are counted; of others the servers' own are shown."""


def counter_of(form: StatementForm) -> bytes:
    """The variable that counts statements with this row; OTHER for none."""
    counter = f"com_{form.counter}".encode()
    return counter if counter in COUNTERS else OTHER
