"""The registry of every error the proxy makes: name, MySQL code, SQLSTATE, text, remedy.

Errors of the servers behind pass through as they came; these are the proxy's own. Codes are MySQL's where
MySQL has the case (a driver then reacts as it would to MySQL), else 1105 (ER_UNKNOWN_ERROR) with SQLSTATE
HY000. The text says what happened and where, the remedy what to do; both reach the client in one message.
docs/errors.md lists them, and a test compares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from proxy.load import Load


@dataclass(frozen=True, slots=True)
class ErrorKind:
    """One entry. `text` and `remedy` are format strings."""

    name: str
    code: int
    sqlstate: str
    text: str
    remedy: str = ""


#: The reply to a statement did not come, or not whole, and its connection is gone.
_LOST: Final = frozenset({"host_lost", "host_hangs", "reply_missing", "backend_protocol"})
_GONE: Final = frozenset({"connection_gone", "state_gone"})
"""The connection is gone, and the statement was not sent."""
_UNSURE: Final = _LOST | {"settings_failed"}
#: There was no connection to a host, so nothing was sent to it; or none for this user, which others may have.
_NO_SHARE: Final = frozenset({"user_share", "user_share_timeout"})
_UNSENT: Final = frozenset(
    {
        "host_unreachable", "account_refused", "pool_full", "pool_timeout", "connection_gone", "xa_not_ready",
        *_NO_SHARE,
    }
)  # fmt: skip
_UNKNOWN: Final = frozenset(
    {"partial_write", "partial_commit", "transaction_unknown", "xa_unknown", "xa_forgotten"}
)


def in_parts(done: str, failed: str, unsure: str) -> str:
    """What became of something in several places, any of which may be none: `is done on A, failed on B, and
    may or may not be done on C`.
    """
    parts = [
        f"{said} on {places}"
        for said, places in (("is done", done), ("failed", failed), ("may or may not be done", unsure))
        if places
    ]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


class ProxyError(Exception):
    """An error for the client. `kind` is its registry entry; `str()` is the message as sent. `shards`: of what
    was not sent, those that it was for, as far as whoever was to send it knows.
    """

    shards: Sequence[Load] = ()

    def __init__(self, name: str, /, **details: Any) -> None:
        self.kind = REGISTRY.get(name) or REGISTRY["internal"]
        self.details = details
        filled = _Details(details)
        message = self.kind.text.format_map(filled)
        if self.kind.remedy:
            remedy = self.kind.remedy.format_map(filled).strip()
            message = f"{_ended(message)} {remedy}" if remedy else message
        super().__init__(message)

    @property
    def text(self) -> str:
        """The message without what to do about it."""
        return self.kind.text.format_map(_Details(self.details))

    @property
    def unsure(self) -> bool:
        """Whether the statement may have been executed."""
        return self.kind.name in _UNSURE

    @property
    def unsent(self) -> str:
        """The host that nothing was sent to, as there was no connection; "" for any other error."""
        return str(self.details.get("host", "")) if self.kind.name in _UNSENT else ""

    @property
    def failing(self) -> bool:
        """Whether nobody gets there: it is no fault of the client's."""
        return self.kind.name not in _NO_SHARE

    @property
    def unknown(self) -> bool:
        """Whether something may still be executed, now or a while later."""
        return self.unsure or self.kind.name in _UNKNOWN

    @property
    def lost(self) -> bool:
        """Whether a connection is gone, by no doing of the proxy's or the client's."""
        return self.kind.name in _LOST or self.kind.name in _GONE

    @property
    def code(self) -> int:
        return self.kind.code

    @property
    def sqlstate(self) -> str:
        return self.kind.sqlstate


class Held(ProxyError):
    """The statement waits for another topology; this is the client's if none comes. `until`: the shards that
    it waits for, as (keyspace, shard).
    """

    def __init__(self, name: str, until: tuple[tuple[str, int], ...], /, **details: Any) -> None:
        super().__init__(name, **details)
        self.until = until


def error_lines(name: str, arguments: Mapping[str, Any]) -> list[str]:
    """What a client would read of an error, in lines: its code and text, and what to do."""
    error = ProxyError(name, **arguments)
    remedy = str(error).removeprefix(error.text).lstrip(". ")
    text = _ended(error.text) if remedy else error.text  # the lines may be put together again
    return [f"{error.code} ({error.sqlstate}): {text}", *([remedy] if remedy else [])]


def told_to_operators(error: ProxyError) -> str:
    """What the status page and the log say of it, as part of a sentence: "try again, and see the status page"
    is for clients.
    """
    return (error.text if error.kind.name == "host_unreachable" else str(error)).rstrip(".")


def _ended(text: str) -> str:
    """The text as a sentence that another may follow."""
    return text if text.endswith((".", ":", "?", "!")) else f"{text}."


class _Details(dict[str, Any]):
    """What fills a text. A missing detail shows as its name in angle brackets rather than failing the report
    of an error.
    """

    def __init__(self, details: Mapping[str, Any]) -> None:
        super().__init__(details)
        if isinstance(reason := details.get("reason"), str):
            self["reason"] = reason.removesuffix(".")  # often another error's message, with its own end

    def __missing__(self, key: str) -> str:
        return f"<{key}>"


_KINDS = (
    # Connection phase
    ErrorKind("access_denied", 1045, "28000", "Access denied for user '{user}'@'{address}' (using password: {using})"),
    ErrorKind(
        "too_many_connections", 1040, "08004", "Too many connections: the proxy serves {limit} at once.",
        "Close idle connections, or raise limits.max_connections (and ulimit -n).",
    ),
    ErrorKind(
        "too_many_logins", 1040, "08004", "Too many connections that have not logged in yet (limits.logins: {limit}).", "Connect again.",
    ),
    ErrorKind(
        "too_many_user_connections", 1226, "42000",
        "User '{user}' has exceeded the 'max_user_connections' resource (current value: {limit}).",
        "Close idle connections, or raise max_connections of this user.",
    ),
    ErrorKind(
        "secure_transport_required", 3159, "HY000",
        "Connections using insecure transport are prohibited while --require_secure_transport=ON.",
        "Connect over TLS (--ssl-mode=REQUIRED), or set tls.required to false.",
    ),
    ErrorKind("handshake_error", 1043, "08S01", "Bad handshake: {reason}"),
    ErrorKind("shutting_down", 1053, "08S01", "Server shutdown in progress: this proxy is draining.", "Connect again."),
    ErrorKind(
        "client_too_old", 1251, "08004", "Client does not support the authentication protocol requested by the server.",
        "Use a client that speaks the 4.1 protocol or later.",
    ),
    # Commands and packets
    ErrorKind("unknown_command", 1047, "08S01", "Unknown command: {command} is not spoken by this proxy."),
    ErrorKind(
        "packet_too_large", 1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes ({limit}).",
        "Send less at once, or raise limits.max_packet.",
    ),
    ErrorKind(
        "one_result_only", 1312, "0A000", "PROCEDURE {procedure} can't return a result set in the given context",
        "Use a client that sets MULTI_RESULTS.",
    ),
    ErrorKind("uncompress_error", 1157, "08S01", "Couldn't uncompress communication packet: {reason}"),
    ErrorKind("malformed_packet", 1835, "HY000", "Malformed communication packet: {reason}"),
    ErrorKind("unknown_statement", 1243, "HY000", "Unknown prepared statement handler ({id}) given to {command}"),
    ErrorKind("too_many_statements", 1461, "42000", "Can't create more than max_prepared_stmt_count statements (current value: {limit})"),
    ErrorKind(
        "variables_too_large", 1041, "HY000",
        "Out of memory: the user variables of one session may have {limit} bytes, as SQL (limits.user_variables).",
        "Set some to NULL.",
    ),
    ErrorKind(
        "session_memory", 1041, "HY000",
        "Out of memory: user variables, prepared statements and their long data of one session may have {limit} bytes (limits.session_memory).",
        "Set variables to NULL, or close statements.",
    ),
    ErrorKind(
        "client_memory", 1041, "HY000", "Out of memory: this user's clients, or all, keep as much as limits.client_memory allows.",
        "Send less at the same time, or try again.",
    ),
    ErrorKind(
        "packet_memory", 1041, "08S01",
        "Out of memory: packets of this user's clients, or of all, that are not complete or not done have as many bytes as limits.client_memory allows.",
        "Send less at the same time, or try again.",
    ),
    ErrorKind("unpreparable", 1295, "HY000", "This command is not supported in the prepared statement protocol yet"),
    ErrorKind("no_open_cursor", 1421, "HY000", "The statement ({id}) has no open cursor."),
    ErrorKind("wrong_arguments", 1210, "HY000", "Incorrect arguments to {command}"),
    ErrorKind(
        "long_data_too_large", 1105, "HY000",
        "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes",
    ),
    ErrorKind("read_only", 1792, "25006", "Cannot execute statement in a READ ONLY transaction."),
    ErrorKind("read_only_mariadb", 1792, "25006", "Cannot execute statement in a READ ONLY transaction"),
    ErrorKind("empty_query", 1065, "42000", "Query was empty"),
    ErrorKind(
        "local_files_off", 3948, "42000",
        "Loading local data is disabled; this must be enabled on both the client and server sides",
    ),
    ErrorKind(
        "local_files_off_mariadb", 4166, "HY000",
        "The used command is not allowed because the MariaDB server or client has disabled the local infile capability",
    ),
    ErrorKind(
        "idle_too_long", 4031, "HY000",
        "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout "
        "for configuring this behavior.",
    ),
    # Names
    ErrorKind("no_database", 1046, "3D000", "No database selected"),
    ErrorKind("unknown_database", 1049, "42000", "Unknown database '{database}'"),
    ErrorKind("database_exists", 1007, "HY000", "Can't create database '{database}'; database exists"),
    ErrorKind("unknown_table", 1146, "42S02", "Table '{database}.{table}' doesn't exist"),
    ErrorKind("key_missing", 1364, "HY000", "Field '{column}' doesn't have a default value"),
    ErrorKind("key_null", 1048, "23000", "Column '{column}' cannot be null"),
    ErrorKind("target_read", 1093, "HY000", "You can't specify target table '{table}' for update in FROM clause"),
    ErrorKind(
        "target_read_mariadb", 1093, "HY000",
        "Table '{table}' is specified twice, both as a target for '{verb}' and as a separate source for data",
    ),
    ErrorKind("wrong_usage", 1221, "HY000", "Incorrect usage of {verb} and {clause}"),
    ErrorKind("unknown_dropped", 1051, "42S02", "Unknown table '{tables}'"),
    ErrorKind("unknown_star", 1051, "42S02", "Unknown table '{table}'"),
    ErrorKind("unknown_target", 1109, "42S02", "Unknown table '{table}' in MULTI DELETE"),
    ErrorKind("not_unique_table", 1066, "42000", "Not unique table/alias: '{table}'"),
    ErrorKind("unknown_column", 1054, "42S22", "Unknown column '{column}' in '{clause}'"),
    ErrorKind("ambiguous_column", 1052, "23000", "Column '{column}' in field list is ambiguous"),
    ErrorKind("ambiguous_on_duplicate", 1052, "23000", "Column '{column}' in {clause} is ambiguous"),
    ErrorKind("wrong_value_count", 1136, "21S01", "Column count doesn't match value count at row {row}"),
    ErrorKind("unknown_function", 1305, "42000", "FUNCTION {function} does not exist"),
    ErrorKind(
        "native_function_name", 1630, "42000",
        "FUNCTION {function} does not exist. Check the 'Function Name Parsing and Resolution' section in the Reference Manual",
    ),
    ErrorKind("wrong_parameter_count", 1582, "42000", "Incorrect parameter count in the call to native function '{function}'"),
    ErrorKind("unknown_shard", 1105, "HY000", "Keyspace '{keyspace}' has no shard {shard}.", "SHOW SHARDS lists those there are."),
    ErrorKind(
        "shard_missing", 1105, "HY000",
        "{named} is of shard {shard} of keyspace '{keyspace}', which the topology has in no range: its row cannot be found.",
        "If the shard has existed, put its range back (`shardgate topology history` and `rollback`). `shardgate id` decodes an ID.",
    ),
    ErrorKind(
        "no_sequence", 1105, "HY000", "No ID could be made for {table} on shard {shard}: {host} says: {reason}.",
        "If the table shardgate_sequences is missing there, create it (docs/configuration.md, timed tables).",
    ),
    ErrorKind("database_denied", 1044, "42000", "Access denied for user '{user}'@'%' to database '{database}'"),
    ErrorKind(
        "role_denied", 1142, "42000", "{statement} command denied to user '{user}'@'%': the role '{role}' does not allow it.",
        "Ask for the role '{needed}'.",
    ),
    ErrorKind(
        "list_denied", 1227, "42000",
        "Access denied for user '{user}'@'%': {statement} reaches more than the databases in the user's list.",
        "Ask for a user without a list of databases.",
    ),
    ErrorKind(
        "routine_denied", 1370, "42000",
        "execute command denied to user '{user}'@'%' for {what}: the user is confined to databases, and shardgate does not see what it does.",
        "Use the tables themselves, write a prepared text out, or have the user's statements run under an account of its own (backends.accounts).",
    ),
    ErrorKind(
        "function_not_on_shards", 1305, "42000",
        "FUNCTION {function} does not exist on the shards: a statement on sharded tables can call the servers' own functions.",
        "Call a stored function in a statement of its own.",
    ),
    ErrorKind(
        "procedure_not_on_shards", 1305, "42000",
        "PROCEDURE {procedure} does not exist: a sharded database has the tables that the schema names, and no procedures.",
        "CALL one of a database that is not sharded, or of a shard's ({place}).",
    ),
    ErrorKind(
        "lock_elsewhere", 1235, "42000",
        "{function}() cannot be called here: all named locks are on one host, and this statement {where}.",
        "Call it in a statement without tables, as SELECT {function}(…), before or behind this one.",
    ),
    # Routing
    ErrorKind("syntax_error", 1064, "42000", "{reason}"),
    ErrorKind(
        "not_supported_yet", 1235, "42000", "shardgate does not support {what} over shards: {reason}", "{alternative}"
    ),
    ErrorKind("unsupported", 1235, "42000", "shardgate does not support {what}: {reason}", "{alternative}"),
    ErrorKind(
        "own_where", 1235, "42000",
        "SHOW {what} takes no WHERE: its rows are shardgate's own, and the server that could judge them may be away",
        "Use LIKE 'pattern', or choose among the rows in the client.",
    ),
    ErrorKind("unroutable_write", 1105, "HY000", "Cannot tell which shard {what} belongs to: {reason}", "{alternative}"),
    ErrorKind(
        "scatter_denied", 1105, "HY000", "{statement} names no ID, so it would run on all {shards} shards: {reason}",
        "Add a condition on {column}, or {alternative}.",
    ),
    ErrorKind(
        "scatter_limit", 1104, "42000", "The scatter returned more than {limit} rows, the limit of user '{user}'.",
        "Add a condition on the routing column or a LIMIT.",
    ),
    ErrorKind("scatter_bytes", 1104, "42000", "The scatter returned more than {limit} bytes (limits.scatter_bytes).", "Add a condition on the routing column or a LIMIT."),
    ErrorKind(
        "gather_limit", 1104, "42000", "The statement would gather more than {limit} {unit} from the shards (limits.{setting}).",
        "Add conditions on single tables, best on a routing column: only rows that they let through are gathered.",
    ),
    ErrorKind(
        "routing_column_update", 1105, "HY000", "Cannot change '{column}' of '{table}': a row does not move to another shard.",
        "INSERT the row with its new value, then DELETE the old one.",
    ),
    ErrorKind(
        "strict_colocation", 1105, "HY000", "A row of '{table}' lies on the shard of its '{column}': {reason}.",
        "Give an ID of that shard, or INSERT the row anew and DELETE the old one.",
    ),
    # Reordering
    ErrorKind("reorder_argument_count", 1318, "42000", "Incorrect number of arguments for PROCEDURE {procedure}; expected 4, got {count}"),
    ErrorKind(
        "reorder_arguments", 1210, "HY000", "Incorrect arguments to {procedure}: {reason}.",
        "CALL {procedure}(from-ID, the row to move, the row before it, the row after it); NULL where there is none.",
    ),
    ErrorKind(
        "reorder_missing", 1032, "HY000", "Can't find record in '{table}': {to_column} {target} is not in the list of {from_column} {source}.",
        "Read the list again.",
    ),
    ErrorKind(
        "reorder_moved", 1020, "HY000",
        "Record has changed since last read in table '{table}': {to_column} {before} does not stand ahead of {after} any more in the list of {from_column} {source}.",
        "Read the list again, newest first, and name the neighbours of now.",
    ),
    ErrorKind(
        "reorder_several", 1105, "HY000", "'{table}' has {count} rows of {from_column} {source} and {to_column} {target}: which is meant cannot be told.",
        "DELETE all but one; a UNIQUE KEY ({from_column}, {to_column}) keeps it so.",
    ),
    ErrorKind(
        "reorder_alone", 1210, "HY000", "Incorrect arguments to {procedure}: {to_column} {moved} is not alone in the list of {from_column} {source}.",
        "Name the row before it or the row after it, or both.",
    ),
    ErrorKind(
        "no_cache", 1105, "HY000", "The schema names no cache for {table}.",
        "Give the table a `cache` in the schema, or name one that has.",
    ),
    ErrorKind(
        "cache_ids", 1105, "HY000", "FLUSH CACHE FOR {table} takes IDs with commas between them.",
        "Write FLUSH CACHE FOR {table} 241294492511762325, or no ID at all for the whole table.",
    ),
    ErrorKind(
        "cache_unreachable", 1105, "HY000", "The cache {address} cannot be reached: {reason}.",
        "Nothing is answered from it after a lease; what was to be flushed is, before anything is answered from it again.",
    ),
    ErrorKind(
        "reorder_full", 1105, "HY000", "There is no room between the rows of one list in {rows}: {count} rows in a row are too close to each other.",
        "Give them other sequences by an UPDATE, best 13-digit milliseconds and 25 zeros.",
    ),
    ErrorKind(
        "reorder_between", 1105, "HY000",
        "Other rows stand between {to_column} {before} and {after} by now: {moved} was put right behind {before}.",
    ),
    ErrorKind(
        "reorder_swapped", 1105, "HY000", "{to_column} {before} stands behind {after} by now: {moved} was put between them.",
    ),
    ErrorKind(
        "reorder_no_end", 1105, "HY000", "{to_column} {anchor} is not at that end of the list any more: {moved} was put right beside it.",
    ),
    ErrorKind(
        "unique_per_shard", 1503, "HY000", "{key} of '{table}' cannot hold over shards, each of which knows only its own rows: it must have {columns} in it.",
        "Keep what must be unique in a hashed or single table; if each shard by itself is enough, write `unique: {declared}` for the table in the schema.",
    ),
    ErrorKind(
        "auto_increment_per_shard", 1075, "42000", "AUTO_INCREMENT of '{column}' of '{table}' cannot hold over shards, each of which counts by itself.",
        "Leave it out and give the values, or write `unique: {declared}` for the table in the schema.",
    ),
    ErrorKind(
        "foreign_key_over_shards", 1506, "HY000", "FOREIGN KEY ({columns}) REFERENCES {table} ({wanted}) cannot hold over shards.",
        "Leave the constraint out; an ORM keeps the relation without it: {orms}.",
    ),
    ErrorKind(
        "id_matches_nothing", 1105, "HY000", "ID {id} matches no row of '{table}': {reason}.",
        "Look at it with `shardgate id {id}`.",
    ),
    ErrorKind("one_shard_explained", 1003, "HY000", "This is the plan of shard {shard} of keyspace '{keyspace}', one of {shards} that are asked.", "EXPLAIN ROUTE shows the whole."),
    ErrorKind("key_too_long", 1406, "22001", "Data too long for the key of '{table}': {size} characters, the column holds {limit}.", "The row's shard is that of the whole key, so none is cut; send a shorter one."),
    ErrorKind("invalid_key", 1366, "HY000", "Incorrect string value for the key of '{table}': its bytes are no text in the column's character set.", "The row's shard is that of the key as it is sent, so none is mended; send it as it is to be stored."),
    ErrorKind("invalid_id", 1264, "22003", "{what} {id} cannot be a row of '{table}': {reason}.", "{alternative}"),
    ErrorKind("no_open_shard", 1105, "HY000", "No shard of keyspace '{keyspace}' is open for new objects.", "Open a range in the topology."),
    ErrorKind("xa_outside", 1400, "XAE09", "XAER_OUTSIDE: Some work is done outside global transaction"),
    ErrorKind("table_not_locked", 1100, "HY000", "Table '{table}' was not locked with LOCK TABLES", "UNLOCK TABLES first: LOCK TABLES locks no sharded tables."),
    ErrorKind("tables_not_locked", 1105, "HY000", "LOCK TABLES locks nothing on {tables}: their rows are on many servers.", "Use START TRANSACTION and SELECT … FOR UPDATE."),
    ErrorKind("shard_offline", 1105, "HY000", "Shard {shard} of keyspace '{keyspace}' is {state}.", "Try again when the topology serves it."),
    ErrorKind(
        "second_shard", 1105, "HY000",
        "This transaction is on {first}; {second} would be a second one, which transaction_mode = 'single' refuses.",
        "COMMIT first, or use transaction_mode = 'multi'.",
    ),
    ErrorKind(
        "partial_write", 1105, "HY000", "The statement {outcome}: {reason}.",
        "{advice}",
    ),
    ErrorKind(
        "ddl_failed", 1105, "HY000", "{done} of {count} {places} have done the definition, {failed} have not: {reason}.",
        "{advice} SHOW WARNINGS names them.",
    ),
    ErrorKind(
        "definition_killed", 1317, "70100",
        "Query execution was interrupted: {done} of {count} {places} have done the definition, {failed} have not.",
        "{advice} SHOW WARNINGS names them.",
    ),
    ErrorKind(
        "definition_not_run", 1105, "HY000", "The definition was not run: {reason}.",
        "Nothing was changed there.",
    ),
    ErrorKind(
        "partial_commit", 1105, "HY000", "COMMIT {outcome}: {reason}.",
        "Look at what the transaction should have written on each of them.",
    ),
    ErrorKind(
        "transaction_lost", 1105, "HY000", "The transaction was rolled back: {reason}.", "Run the whole transaction again."
    ),
    ErrorKind(
        "transaction_cut", 1053, "08S01", "The transaction was rolled back: {reason}.",
        "Run the whole transaction again: on this connection after ROLLBACK, or on another.",
    ),
    ErrorKind(
        "transaction_undone", 1213, "40001", "The transaction was rolled back: {reason}; try restarting transaction.",
    ),
    ErrorKind(
        "transaction_unknown", 1105, "HY000", "Whether the transaction was committed is not known: {reason}.",
        "Say ROLLBACK, and look at what it should have written before you run any of it again.",
    ),
    ErrorKind(
        "xa_off", 1231, "42000", "Variable 'transaction_mode' can't be set to the value of 'xa': distributed transactions are not enabled here.",
        "Write `enabled: true` under `xa` in the settings, run `shardgate fleet create`, and restart the proxy.",
    ),
    ErrorKind(
        "xa_not_ready", 1105, "HY000",
        "The transaction cannot be on several hosts with transaction_mode = 'xa': {hosts} cannot hold its decision, or could not be asked yet.",
        "Run `shardgate fleet create`; `shardgate check --connect` shows what is missing. Or use transaction_mode = 'multi'.",
    ),
    ErrorKind(
        "xa_unknown", 1105, "HY000",
        "Whether the transaction {gtrid} is committed cannot be told now: {reason}. It is so on all of its hosts or on none.",
        "SHOW PROXY TRANSACTIONS LIKE '{gtrid}' tells it when the host is back; do not run it again before you know.",
    ),
    ErrorKind(
        "xa_forgotten", 1105, "HY000",
        "Whether the transaction {gtrid} was committed is not known any more: {reason}. It is so on all of its hosts or on none.",
        "Say ROLLBACK, and look at what it should have written before you run any of it again.",
    ),
    ErrorKind(
        "xa_later", 1105, "HY000",
        "The transaction is committed; what it wrote on {host} is not to be seen there before the host has been told, which the proxy goes on trying.",
    ),
    ErrorKind(
        "transaction_idle", 1213, "40001",
        "The transaction was rolled back after {reason} s without a statement (timeouts.idle_transaction); try restarting transaction.",
    ),
    ErrorKind(
        "transaction_moved", 1213, "40001",
        "The transaction was rolled back: its shards get another master, and {host} takes no more writes; try restarting transaction.",
    ),
    # Hosts behind
    ErrorKind("host_unreachable", 1429, "HY000", "Can't connect to MySQL server {host}: {reason}.", "Try again; see the proxy's status page."),
    ErrorKind(
        "account_refused", 1045, "28000", "Access denied: server {host} refuses {account}.",
        "`shardgate check --connect` shows the operator what is missing.",
    ),
    ErrorKind(
        "host_lost", 1158, "HY000", "Lost connection to MySQL server {host} during query: {reason}.",
        "The statement may or may not have been executed: the proxy does not send it again.",
    ),
    ErrorKind(
        "connection_gone", 1158, "HY000",
        "Lost connection to MySQL server {host} before the statement was sent.",
        "It was not executed. What the session had on that connection (locks, temporary tables) is gone.",
    ),
    ErrorKind("state_gone", 1158, "HY000", "Lost connection to MySQL server {reason}: what the session had on that connection (locks, temporary tables, what the last statement has set) is gone.", "This statement was not executed."),
    ErrorKind(
        "host_hangs", 1159, "HY000",
        "Got timeout reading communication packets: MySQL server {host} has said nothing for {seconds} s and answers no new connection.",
        "The statement may or may not have been executed: the proxy does not send it again.",
    ),
    ErrorKind(
        "reply_missing", 1158, "HY000",
        "Got an error reading communication packets: MySQL server {host} has nothing more to say to this statement, but its reply did not come whole.",
        "The statement may or may not have been executed: the proxy does not send it again.",
    ),
    ErrorKind(
        "settings_failed", 1105, "HY000",
        "Server {host} refused this session's settings ({reason}); the statement that followed them may have run there.",
        "Set the session variables again.",
    ),
    ErrorKind(
        "unclean_connection", 1105, "HY000",
        "Server {host} answered in a state that is not this session's: {state}. The connection was closed, and what"
        " the statement wrote in a transaction is rolled back.",
        "Run the statement again; if it happens again, look for what turns autocommit off or opens transactions on that server.",
    ),
    ErrorKind("pool_timeout", 1040, "HY000", "No connection to {host} became free within {seconds} s ({limit} are open).", "Raise backends.max_connections, or send less at once."),
    ErrorKind("pool_full", 1040, "HY000", "{waiting} statements already wait for a connection to {host}.", "Raise backends.queue_length, or send less at once."),
    ErrorKind(
        "user_share", 1203, "42000",
        "User '{user}' has {have} connections to {host} in use and {waiting} statements waiting for one, which is its share.",
        "End idle transactions and long statements, or raise backends.max_connections or backends.user_share.",
    ),
    ErrorKind(
        "user_share_timeout", 1203, "42000",
        "No connection to {host} became free for user '{user}' within {seconds} s (backends.queue_timeout): it has {have} in use,"
        " which is its share, and had {waiting} statements waiting for one.",
        "End idle transactions and long statements, or raise backends.max_connections or backends.user_share.",
    ),
    ErrorKind("statement_timeout", 3024, "HY000", "Query execution was interrupted, maximum statement execution time ({seconds} s) exceeded on {host}."),
    ErrorKind("backend_protocol", 1835, "HY000", "Malformed packet from MySQL server {host}: {reason}.", "The connection to it was closed."),
    ErrorKind("unread_definition", 1105, "HY000", "The server's definition of a table cannot be read: it {reason}. The definition begins: {begin}", "Please report the whole of it (SHOW CREATE TABLE)."),
    ErrorKind("merge_failed", 1105, "HY000", "Cannot merge the shards' answers: {reason}.", "Check that the table is the same on all shards."),
    ErrorKind("killed", 1317, "70100", "Query execution was interrupted"),
    ErrorKind("session_ended", 3169, "HY000", "The session was ended: {reason}.", "Connect again; a transaction that was open was rolled back."),
    ErrorKind("connection_killed", 1927, "70100", "Connection was killed"),
    ErrorKind("no_such_thread", 1094, "HY000", "Unknown thread id: {id}"),
    ErrorKind("no_grant", 1141, "42000", "There is no such grant defined for user '{user}' on host '%'"),
    ErrorKind("not_a_view", 1347, "HY000", "'{database}.{table}' is not VIEW"),
    ErrorKind("not_owner", 1095, "HY000", "You are not owner of thread {id}"),
    # Sessions
    ErrorKind("wrong_variable_value", 1231, "42000", "Variable '{variable}' can't be set to the value of '{value}'"),
    ErrorKind("unknown_variable", 1193, "HY000", "Unknown system variable '{variable}'"),
    ErrorKind("global_variable", 1227, "42000", "Access denied; SET GLOBAL is for the role admin.", "Use a user of that role, or SET SESSION."),
    ErrorKind(
        "session_variable", 1228, "HY000",
        "Variable '{variable}' is a SESSION variable and can't be used with SET GLOBAL",
        "Set it in the session, or for a user in the settings.",
    ),
    ErrorKind(
        "transaction_in_progress", 1568, "25001",
        "Transaction characteristics can't be changed while a transaction is in progress",
    ),
    ErrorKind(
        "too_many_savepoints", 1041, "HY000", "Out of memory: a transaction may have {limit} savepoints.", "RELEASE SAVEPOINT those that are not needed.",
    ),
    ErrorKind("name_too_long", 1059, "42000", "Identifier name '{name}' is too long"),
    ErrorKind("unknown_savepoint", 1305, "42000", "SAVEPOINT {name} does not exist"),
    ErrorKind("charset_refused", 1115, "42000", "Character set '{charset}' cannot be used for statements on sharded tables.", "Use utf8mb4 or latin1."),
    ErrorKind(
        "needs_reprepare", 1615, "HY000",
        "Prepared statement needs to be re-prepared: sql_mode or character_set_client has changed, and its text may read otherwise now",
        "Prepare it again.",
    ),
    ErrorKind(
        "variable_name", 1235, "42000",
        "User variable @{name}: names outside ASCII are not supported with the character set '{charset}'",
        "SET NAMES utf8mb4, or choose another name.",
    ),
    ErrorKind(
        "reading_refused", 1231, "42000",
        "Variable '{variable}' can't be set to the value of '{value}': the proxy cannot read statements as a server would under it",
        "Choose another value.",
    ),
    ErrorKind(
        "auto_is_null", 1231, "42000",
        "Variable 'sql_auto_is_null' can't be set to the value of '1': servers would read the insert id of their connection, which sessions share",
        "Leave it off, and ask with = LAST_INSERT_ID() for the row that was inserted last.",
    ),
    ErrorKind("statement_too_long", 1153, "HY000", "The statement has {size} bytes; limits.max_statement allows {limit}.", "Send less at once."),
    ErrorKind("statement_too_deep", 1105, "HY000", "The statement is nested deeper than limits.parse_depth allows ({limit}).", "Write it with fewer levels."),
    ErrorKind("statement_too_complex", 3170, "HY000", "Planning the statement took more time or memory than one may take (timeouts.planning).", "Write it in several statements, or with fewer tables, columns and conditions."),
    ErrorKind("planning_lost", 1105, "HY000", "The proxy's process that planned the statement has died, twice. Nothing was executed.", "Try again; if it is always this statement, write it in several. The proxy's log says how the process died."),
    ErrorKind("too_many_tables", 1116, "HY000", "Too many tables; a server can only use {limit} tables in a join ({count} are named).", "Join fewer tables at once."),
    ErrorKind("too_many_values", 1105, "HY000", "The statement has {count} values besides lists of plain numbers or strings; five times limits.in_list ({limit}) are allowed.", "Send it in parts."),
    ErrorKind("in_list_too_long", 1105, "HY000", "The IN list has {size} values; limits.in_list allows {limit}.", "Send the list in parts."),
    ErrorKind("internal", 1105, "HY000", "Internal error of the proxy: {reason}.", "The log has the details; please report it."),
)  # fmt: skip

#: Every entry by its name.
REGISTRY = {kind.name: kind for kind in _KINDS}
