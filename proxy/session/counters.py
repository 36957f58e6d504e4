"""The status variables that count a session's statements (Com_insert …).

A server counts them for its own connections, which many sessions share. So they are counted here, from a
session's first SHOW STATUS on: until then nobody looks, and a statement costs nothing.
"""

from __future__ import annotations

import re
from typing import Final

_WORDS: Final = {
    b"BEGIN": b"com_begin",
    b"CALL": b"com_call_procedure",
    b"COMMIT": b"com_commit",
    b"DELETE": b"com_delete",
    b"INSERT": b"com_insert",
    b"REPLACE": b"com_replace",
    b"ROLLBACK": b"com_rollback",
    b"SELECT": b"com_select",
    b"SET": b"com_set_option",
    b"START": b"com_begin",
    b"UPDATE": b"com_update",
}
#: Of prepared statements' commands.
PREPARE, EXECUTE, CLOSE, RESET = (
    b"com_stmt_prepare",
    b"com_stmt_execute",
    b"com_stmt_close",
    b"com_stmt_reset",
)
OTHER: Final = b""
#: All that are counted; servers' own are shown of the others.
COUNTERS: Final = frozenset({*_WORDS.values(), PREPARE, EXECUTE, CLOSE})
_FIRST = re.compile(rb"(?:\s|/\*(?!!).*?\*/|--\s[^\n]*\n|#[^\n]*\n|\()*([A-Za-z]+)", re.DOTALL)


def counter_of(sql: bytes) -> bytes:
    """The variable that counts statements like this one, in small letters; OTHER for none that is known."""
    first = _FIRST.match(sql)
    return OTHER if first is None else _WORDS.get(first[1].upper(), OTHER)
