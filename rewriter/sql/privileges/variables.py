"""Session variables that servers let only privileged accounts set."""

from __future__ import annotations

from typing import Final

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

ENGINES: Final = frozenset({"default_storage_engine", "default_tmp_storage_engine", "storage_engine"})
"""The session variables with the engine of tables whose definition names none."""
