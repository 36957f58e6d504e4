"""What a statement's first words say of it."""

from __future__ import annotations

from typing import Final

from rewriter.plan import Access

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
