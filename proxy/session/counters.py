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
    b"DEALLOCATE": b"com_dealloc_sql",
    b"DO": b"com_do",
    b"EXECUTE": b"com_execute_sql",
    b"HELP": b"com_help",
    b"KILL": b"com_kill",
    b"LOAD": b"com_load",
    b"LOCK": b"com_lock_tables",
    b"PREPARE": b"com_prepare_sql",
    b"RELEASE": b"com_release_savepoint",
    b"SAVEPOINT": b"com_savepoint",
    b"SIGNAL": b"com_signal",
    b"TRUNCATE": b"com_truncate",
    b"UNLOCK": b"com_unlock_tables",
    b"USE": b"com_change_db",
}
#: Of statements that their first word does not tell apart.
_TWO_WORDS: Final = {
    b"%s %s" % (verb, what): b"com_%s_%s" % (verb.lower(), counted)
    for verb in (b"CREATE", b"ALTER", b"DROP")
    for what, counted in (
        (b"TABLE", b"table"),
        (b"DATABASE", b"db"),
        (b"SCHEMA", b"db"),
        (b"INDEX", b"index"),
        (b"PROCEDURE", b"procedure"),
        (b"FUNCTION", b"function"),
        (b"TRIGGER", b"trigger"),
        (b"VIEW", b"view"),
    )
    if (verb, what) not in ((b"ALTER", b"INDEX"), (b"ALTER", b"TRIGGER"), (b"ALTER", b"VIEW"))
} | {
    b"ROLLBACK TO": b"com_rollback_to_savepoint",
    b"ANALYZE TABLE": b"com_analyze",
    b"RENAME TABLE": b"com_rename_table",
    b"SHOW DATABASES": b"com_show_databases",
    b"SHOW PROCESSLIST": b"com_show_processlist",
    b"SHOW STATUS": b"com_show_status",
    b"SHOW TABLES": b"com_show_tables",
    b"SHOW VARIABLES": b"com_show_variables",
    b"SHOW WARNINGS": b"com_show_warnings",
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
COUNTERS: Final = frozenset({*_WORDS.values(), *_TWO_WORDS.values(), PREPARE, EXECUTE, CLOSE})
_FIRST = re.compile(
    rb"(?:\s|/\*(?!!).*?\*/|--\s[^\n]*\n|#[^\n]*\n|\()*([A-Za-z]+)(?:\s+([A-Za-z]+))?", re.DOTALL
)


def counter_of(sql: bytes) -> bytes:
    """The variable that counts statements like this one, in small letters; OTHER for none that is known."""
    first = _FIRST.match(sql)
    if first is None:
        return OTHER
    verb = first[1].upper()
    found = _TWO_WORDS.get(verb + b" " + (first[2] or b"").upper())
    return found or _WORDS.get(verb, OTHER)
