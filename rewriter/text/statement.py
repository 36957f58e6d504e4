"""What a statement's first words say of it."""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Access(IntEnum):
    """What a statement does to data, for the user's role; each includes the ones before it."""

    NONE = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "("})
WRITES: Final = frozenset({"INSERT", "REPLACE", "UPDATE", "DELETE"})
READS: Final = QUERIES | {"SHOW", "DESCRIBE", "DESC", "EXPLAIN", "DO", "HELP", "CHECKSUM", "HANDLER"}
PINNED: Final = frozenset({"LOCK", "UNLOCK", "PREPARE", "EXECUTE", "DEALLOCATE"})
DEFINITIONS: Final = frozenset(
    {"CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "OPTIMIZE", "REPAIR", "CHECK", "ANALYZE", "GRANT"}
    | {"REVOKE", "FLUSH", "INSTALL", "UNINSTALL", "IMPORT", "CACHE", "RESET", "PURGE", "CHANGE", "START"}
    | {"STOP", "SHUTDOWN", "RESTART", "CLONE", "BINLOG", "SIGNAL", "BACKUP"}
)
#: What follows ANALYZE of tables; else it is MariaDB's ANALYZE of a statement, which is an EXPLAIN.
_ANALYZED: Final = frozenset({"TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG"})
#: Session variables for which servers want a privilege of the administrator: replication depends on them.
_PRIVILEGED: Final = """
binlog_annotate_row_events binlog_direct_non_transactional_updates binlog_format binlog_row_image
binlog_row_value_options binlog_rows_query_log_events binlog_transaction_compression
binlog_transaction_compression_level_zstd debug enforce_storage_engine gtid_domain_id gtid_next gtid_seq_no
immediate_server_version innodb_tmpdir log_disabled_statements original_commit_timestamp
original_server_version pseudo_replica_mode pseudo_slave_mode pseudo_thread_id rbr_exec_mode
require_row_format server_id skip_parallel_replication skip_replication sql_log_bin sql_log_off
sql_require_primary_key default_table_encryption transaction_write_set_extraction wsrep_on
"""
_PRIVILEGED_MYSQL: Final = """
bulk_insert_buffer_size character_set_database character_set_filesystem connection_memory_chunk_size
connection_memory_limit global_connection_memory_tracking histogram_generation_max_mem_size
innodb_strict_mode internal_tmp_mem_storage_engine low_priority_updates max_delayed_threads max_error_count
max_insert_delayed_threads min_examined_row_limit preload_buffer_size select_into_buffer_size
select_into_disk_sync_delay sql_generate_invisible_primary_key xa_detach_on_prepare
"""
PRIVILEGED: Final = {
    "mariadb": frozenset(_PRIVILEGED.split()),
    "mysql": frozenset((_PRIVILEGED + _PRIVILEGED_MYSQL).split()),
}
"""The session variables that servers let only privileged accounts set, by the flavour: as
MariaDB 10.11 and MySQL 9.7 refuse them (1227), and some that concern replication alone."""
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
    if verb == "GET":  # DIAGNOSTICS
        return Access.READ, False
    if verb in PINNED:
        return Access.READ, verb == "LOCK"
    if verb in DEFINITIONS:
        return Access.ADMIN, verb not in _NO_COMMIT
    return Access.ADMIN, False
