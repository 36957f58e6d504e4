"""Before a statement is parsed: executable comments opened, and what its first word says."""

from __future__ import annotations

import re
from typing import Final

from rewriter.env import Env
from rewriter.plan import Access


def _scanner(ansi_quotes: bool, no_backslash_escapes: bool) -> re.Pattern[bytes]:
    """Finds executable comments and ends of comments, and steps over what these may not be read in.

    What is not closed goes to the end, so that nothing is tried twice.
    """
    raw, escaped = rb"'(?:[^']++|'')*(?:'|\Z)", rb"'(?:[^'\\]++|\\.|'')*(?:'|\Z)"
    single = raw if no_backslash_escapes else escaped
    double = (raw if no_backslash_escapes or ansi_quotes else escaped).replace(b"'", b'"')
    comment = rb"/\*(?:[^*]++|\*(?!/))*(?:\*/|\Z)|--(?=[\s\x00-\x20]|\Z)[^\n]*+|#[^\n]*+"
    skip = b"|".join((single, double, rb"`[^`]*+(?:`|\Z)", comment))
    return re.compile(rb"(?P<open>/\*M?!)|(?P<close>\*/)|(?P<skip>" + skip + b")", re.DOTALL)


_SCAN: Final = {(ansi, raw): _scanner(ansi, raw) for ansi in (False, True) for raw in (False, True)}
_VERSION: Final = re.compile(rb"[0-9]{5,6}")
_NESTED: Final = re.compile(rb"/\*|\*/")


def open_comments(sql: bytes, env: Env) -> bytes:
    """The statement with its executable comments opened, as the server of `env` would.

    `/*!80000 …*/` becomes its content when the server is of that version or later, and blanks otherwise; so
    does `/*M! …*/` on MariaDB alone. Nothing else moves: all offsets stay.
    """
    if b"/*!" not in sql and b"/*M!" not in sql:
        return sql
    text = bytearray(sql)
    scan = _SCAN[env.ansi_quotes, env.no_backslash_escapes]
    at = 0
    opened = 0
    while (found := scan.search(sql, at)) is not None:
        at = found.end()
        if found.lastgroup == "open":
            version = _VERSION.match(sql, at)
            if not opens(found[0], int(version[0]) if version is not None else None, env):
                at = end_of_comment(sql, at)
            else:
                at = version.end() if version is not None else at
                opened += 1
            _blank(text, found.start(), at)
        elif found.lastgroup == "close" and opened:
            opened -= 1
            _blank(text, found.start(), at)
    return bytes(text)


def opens(mark: bytes, version: int | None, env: Env) -> bool:
    """Whether the server of `env` runs what is in an executable comment that begins with `mark` (`/*!` or
    `/*M!`) and this version number.
    """
    if mark == b"/*M!" and not env.mariadb:
        return False
    if version is None:
        return True
    if env.mariadb and 50700 <= version <= 99999:
        return False  # MariaDB leaves what is meant for later MySQLs alone
    return version <= env.server_version


def end_of_comment(sql: bytes, at: int) -> int:
    """The end of a comment from inside of it; comments in it nest one level."""
    depth = 1
    while (found := _NESTED.search(sql, at)) is not None:
        at = found.end()
        depth += 1 if found[0] == b"/*" else -1
        if depth == 0:
            return at
    return len(sql)


def _blank(text: bytearray, start: int, end: int) -> None:
    text[start:end] = b" " * (end - start)


QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "("})
WRITES: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE"})
READS: Final = QUERIES | {"SHOW", "DESCRIBE", "DESC", "EXPLAIN", "DO", "HELP", "CHECKSUM", "HANDLER"}
TIED: Final = frozenset({"LOCK", "UNLOCK", "PREPARE", "EXECUTE", "DEALLOCATE"})
DEFINITIONS: Final = frozenset(
    {"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "OPTIMIZE", "REPAIR", "CHECK", "ANALYZE", "GRANT"}
    | {"REVOKE", "FLUSH", "INSTALL", "UNINSTALL", "IMPORT", "CACHE", "RESET", "PURGE", "CHANGE", "START"}
    | {"STOP", "SHUTDOWN", "RESTART", "CLONE", "BINLOG", "SIGNAL", "BACKUP"}
)
#: What follows ANALYZE of tables; else it is MariaDB's ANALYZE of a statement, which is an EXPLAIN.
_ANALYZED: Final = frozenset({"TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG"})
#: Session variables for which servers want a privilege of the administrator: replication depends on them.
PRIVILEGED: Final = frozenset(
    {"sql_log_bin", "sql_log_off", "binlog_format", "binlog_row_image", "binlog_row_value_options"}
    | {
        "binlog_rows_query_log_events",
        "binlog_direct_non_transactional_updates",
        "binlog_annotate_row_events",
    }
    | {"gtid_next", "gtid_domain_id", "gtid_seq_no", "server_id", "skip_replication", "wsrep_on"}
    | {"pseudo_slave_mode", "pseudo_replica_mode", "pseudo_thread_id", "original_commit_timestamp"}
    | {"original_server_version", "immediate_server_version", "rbr_exec_mode", "require_row_format"}
    | {"transaction_write_set_extraction", "sql_require_primary_key", "default_table_encryption", "debug"}
)
_NO_COMMIT: Final = frozenset({"SIGNAL", "BINLOG", "SHUTDOWN", "RESTART"})


def access_of(verb: str, second: str) -> tuple[Access, bool]:
    """What a statement with these first words needs, and whether it commits an open transaction."""
    if verb == "SHOW" and second in ("BINLOG", "RELAYLOG", "ENGINE"):  # other sessions' statements
        return Access.ADMIN, False
    if verb in READS or (verb == "ANALYZE" and second not in _ANALYZED):
        return Access.READ, False
    if verb in WRITES or verb in ("LOAD", "CALL"):
        return Access.WRITE, False
    if verb in ("CREATE", "DROP") and second == "TEMPORARY":
        return Access.WRITE, False
    if verb == "DROP" and second == "PREPARE":
        return Access.READ, False
    if verb in TIED:
        return Access.READ, verb == "LOCK"
    if verb in DEFINITIONS:
        return Access.ADMIN, verb not in _NO_COMMIT
    return Access.ADMIN, False
