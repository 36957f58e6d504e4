"""The status variables that count a session's statements (Com_insert …).

A server counts them for its own connections, which many sessions share. So they are counted here, from a
session's first SHOW STATUS on: until then nobody looks, and a statement costs nothing.
"""

from __future__ import annotations

from typing import Final

_WORDS: Final = {
    "BEGIN": b"com_begin",
    "CALL": b"com_call_procedure",
    "COMMIT": b"com_commit",
    "DELETE": b"com_delete",
    "INSERT": b"com_insert",
    "REPLACE": b"com_replace",
    "ROLLBACK": b"com_rollback",
    "SELECT": b"com_select",
    "SET": b"com_set_option",
    "START": b"com_begin",
    "UPDATE": b"com_update",
    "DEALLOCATE": b"com_dealloc_sql",
    "DO": b"com_do",
    "EXECUTE": b"com_execute_sql",
    "HELP": b"com_help",
    "KILL": b"com_kill",
    "LOAD": b"com_load",
    "LOCK": b"com_lock_tables",
    "PREPARE": b"com_prepare_sql",
    "RELEASE": b"com_release_savepoint",
    "SAVEPOINT": b"com_savepoint",
    "SIGNAL": b"com_signal",
    "TRUNCATE": b"com_truncate",
    "UNLOCK": b"com_unlock_tables",
    "USE": b"com_change_db",
}
#: Of statements that their first word does not tell apart.
_TWO_WORDS: Final = {
    f"{verb} {what}": f"com_{verb.lower()}_{counted}".encode()
    for verb in ("CREATE", "ALTER", "DROP")
    for what, counted in (
        ("TABLE", "table"),
        ("DATABASE", "db"),
        ("SCHEMA", "db"),
        ("INDEX", "index"),
        ("PROCEDURE", "procedure"),
        ("FUNCTION", "function"),
        ("TRIGGER", "trigger"),
        ("VIEW", "view"),
    )
    if (verb, what) not in (("ALTER", "INDEX"), ("ALTER", "TRIGGER"), ("ALTER", "VIEW"))
} | {
    "ROLLBACK TO": b"com_rollback_to_savepoint",
    "ANALYZE TABLE": b"com_analyze",
    "RENAME TABLE": b"com_rename_table",
    "SHOW DATABASES": b"com_show_databases",
    "SHOW PROCESSLIST": b"com_show_processlist",
    "SHOW STATUS": b"com_show_status",
    "SHOW TABLES": b"com_show_tables",
    "SHOW VARIABLES": b"com_show_variables",
    "SHOW WARNINGS": b"com_show_warnings",
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


def counter_of(words: str) -> bytes:
    """The variable that counts statements that begin so (`Nature.words`); OTHER for none that is known."""
    return _TWO_WORDS.get(words) or _WORDS.get(words.partition(" ")[0], OTHER)
