"""The two kinds of servers, and by name what each does otherwise than the other.

Code asks for the difference that it needs, `flavour.hex_is_text`, and never for the brand: what a third kind
of server does can then be said here, in one place. Where two lists of words differ they are kept under the
flavour's `name`. A test keeps the brand out of all other code.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal


@dataclass(frozen=True, slots=True, eq=False)
class Flavour:
    """One kind of server; each field is a difference, true of MariaDB or of MySQL as it says."""

    name: Literal["mariadb", "mysql"]

    # -- the text of statements
    marked_comments: bool
    """`/*M! … */` is opened."""
    skips_newer_comments: bool
    """`/*!50700` to `/*!99999` are meant for others, and are left alone."""
    six_digit_comments: bool
    """The version in an executable comment may have six digits, whatever follows them."""
    dollar_quotes: bool
    """`$a$ … $a$` is a text."""
    set_var_hints: bool
    """`/*+ SET_VAR(x = 1) */` sets a variable for a statement, as SET STATEMENT does elsewhere."""
    compound_statements: bool
    """IF, WHILE and LOOP may stand outside of a routine, and labels before them."""
    row_aliases: bool
    """The rows of an INSERT may have an alias, which ON DUPLICATE KEY UPDATE names."""
    sequences: bool
    """NEXTVAL(s) and its kin read sequences; functions may be hidden behind a schema's name."""
    explains_for_schema: bool
    """EXPLAIN FOR SCHEMA reads names in another database."""
    digests: bool
    """MD5, SHA and SHA1 are functions of the server: MySQL 9.6 and later have them with a component only."""
    natives_by_arguments: bool
    """Stored functions may be called like POINT(…), but for as many arguments as that takes."""
    changes_behind_with: bool
    """An UPDATE or DELETE may follow WITH."""
    kills_by_user: bool
    """KILL takes HARD and SOFT, the name of a user, and the id of a query."""
    labels_keep_spaces: bool
    """Under IGNORE_SPACE names of result columns go on with the spaces behind a word."""

    # -- values and types
    hex_is_text: bool
    """x'31' is a text to an integer column, not a number."""
    unions_lose_columns: bool
    """Columns of a UNION may be too short for values that would be seen in one SELECT's, as its columns tell
    before it runs."""
    chosen_decimals_differ: bool
    """IF, CASE and NULLIF give a DECIMAL as many decimals as the value has that is chosen."""
    averages_in_bits: bool
    """ASCII(…) and BIT_COUNT(…) are thought shorter than they are."""
    derives_types: bool
    """A parameter's type follows from its place, and an answer's types from the parameters'."""
    views_in_utf8mb3: bool
    """Texts of information_schema are utf8mb3, and a UNION takes the larger character set."""
    looks_up_schemas: bool
    """A view of information_schema is read quickly where it names a schema by `=`, and not within another."""
    constants_need_collation: bool
    """Constants beside columns of information_schema must be given its collation."""
    widens_numbers: bool
    """In results of ucs2, utf16 and utf32 all numbers and times of text rows are in it, not only decimal
    numbers that are computed."""

    unknown_stars_are_qualified: bool
    """The error of `t.*` for an unknown `t` names the current database."""

    functions_need_database: bool
    """Without a current database, a stored function's name alone is an error of its own (1046)."""

    # -- what is allowed
    groups_are_checked: bool
    """Which columns follow from GROUP BY is judged by the columns' keys, under ONLY_FULL_GROUP_BY."""
    folds_constants: bool
    """A column that a condition makes constant may stand beside aggregates."""
    orders_by_hidden: bool
    """Groups may be ordered by what is no key of them, but that cannot be shown then."""
    limits_joined_updates: bool
    """UPDATE of several tables takes ORDER BY and LIMIT."""
    reads_changed_table: bool
    """A subquery may read the one table that an UPDATE or DELETE changes."""
    ignores_by_row: bool
    """INSERT IGNORE of one row fails where one of several rows is changed to fit."""
    finding_is_strict: bool
    """Strict mode also applies to the conditions of DELETE and of a single table's UPDATE … ORDER BY."""
    sets_max_error_count: bool
    """Every account may change its max_error_count."""
    strict_warnings: frozenset[int] | None
    """The warnings that strict mode turns into errors; None: all, except a text that CAST has shortened."""
    prepares_diagnostics: bool
    """SHOW WARNINGS and the like can be prepared."""
    prepared_text_is_kept: bool
    """A prepared statement means what it meant when it was prepared, whatever sql_mode is now."""
    more_commands: bool
    """COM_REFRESH and COM_PROCESS_INFO are known."""

    # -- what is told
    found_rows_of_selects: bool
    """FOUND_ROWS() tells of SELECTs alone: UPDATE and DO leave it."""
    tells_of_impossible_updates: bool
    """The OK packet of an UPDATE whose condition is never true has the text `Rows matched: 0 …`."""
    lock_holders_are_unsigned: bool
    """IS_USED_LOCK() is BIGINT UNSIGNED, which is DECIMAL beside a plain number."""
    tells_changes_at_once: bool
    """What a statement's functions have changed is in its own OK, not in that of the next."""
    looks_open_nothing: bool
    """SHOW and DESCRIBE open no transaction, also where they look at tables or a dictionary."""
    counts_temporary_tables: bool
    """Com_create_temporary_table counts those that are made by routines, too."""
    keeps_warnings: bool
    """Statements without tables leave SHOW WARNINGS as it was."""
    commands_keep_warnings: bool
    """COM_PING and COM_INIT_DB tell how many warnings there were before."""
    warned_in_statement: bool
    """@@warning_count in a statement tells of the one before."""
    numbers_in_statement: bool
    """LAST_INSERT_ID() and the like are constants of a statement."""
    in_transaction_variable: bool
    """There is @@in_transaction."""
    tells_ansi_quotes: bool
    """The status of an OK tells of ANSI_QUOTES."""
    tracks_in_own_order: bool
    """Changed variables are told in an order of its own, not by name."""
    ends_with_error: bool
    """Who is sent away is told why."""
    counts_flushed_tables: bool
    """COM_STATISTICS has `Flush tables`."""
    noted_create_counts: bool
    """CREATE DATABASE IF NOT EXISTS of one that is there counts one row."""
    notes_tables_together: bool
    """DROP TABLE IF EXISTS gives one note for all tables that do not exist."""
    warns_of_utf8mb3: bool
    """SET NAMES utf8mb3 gives a warning."""
    greets_without_autocommit: bool
    """Where it is off by itself, the greeting says so."""
    set_counts_subqueries: bool
    """FOUND_ROWS() and the like tell of the subqueries of a SET."""
    nested_begin_keeps_mode: bool
    """START TRANSACTION within a transaction is as READ ONLY as that was."""
    sets_default_role: bool
    """SET ROLE DEFAULT is a statement."""
    resets_to_server_charset: bool
    """After COM_RESET_CONNECTION character sets are the server's own, not those of the log-in."""

    names_origins: bool
    """GET DIAGNOSTICS says which standard a SQLSTATE is of."""
    numbers_conditions: bool
    """GET DIAGNOSTICS says which row of the statement a condition is about."""

    # -- how it is talked to
    native_password: bool
    """Accounts have mysql_native_password unless something else is said."""
    query_attributes: bool
    """COM_QUERY may bring attributes."""
    own_capabilities: bool
    """There is a second set of capabilities (extended metadata, bulk execution)."""
    latest_statement: bool
    """-1 is the number of the statement that was prepared last."""
    names_prepared_command: bool
    """Errors about a prepared statement name the command as it is, not a check before it."""
    underscores_in_grants: bool
    """`_` and `%` in a database's name in GRANT are always patterns."""
    passes_read_only: bool
    """ALL PRIVILEGES has the right to write on a server that is read_only."""
    read_only_databases: bool
    """ALTER DATABASE … READ ONLY: nobody writes there."""
    calls_need_database: bool
    """A function that is not known is so (1305) only where there is a current database: else 1046. Elsewhere
    nobody may EXECUTE in information_schema."""
    fence_holds_prepared: bool
    """A server that is read_only commits and rolls back no transaction that is prepared."""
    recovers_freely: bool
    """XA RECOVER takes no right of its own."""
    persists_variables: bool
    """SET PERSIST: what is set stays over a restart."""
    routines_in_proc: bool
    """The bodies of routines are in mysql.proc, which SELECT there shows."""
    gtid_positions: bool
    """Where a server is in the stream of changes is a number for each domain, not a set of transactions."""
    replica_word: str
    """SHOW … STATUS tells of replication."""
    old_transaction_names: Callable[[int], bool]
    """Whether a server of this version number calls transaction_isolation tx_isolation."""

    # -- the words of its errors and metadata
    read_only_error: str
    local_files_error: str
    changed_table_error: str
    unknown_column_clause: str
    order_clause: str
    ambiguous_column_clause: str
    counter_width: tuple[int, int]
    """The decimals of texts and the digits of codes in SHOW WARNINGS."""

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle: each flavour is there once."""
        return _of_name, (self.name,)


MARIADB: Final = Flavour(
    name="mariadb",
    marked_comments=True,
    skips_newer_comments=True,
    six_digit_comments=True,
    dollar_quotes=False,
    set_var_hints=False,
    compound_statements=True,
    row_aliases=False,
    sequences=True,
    explains_for_schema=False,
    digests=True,
    natives_by_arguments=True,
    changes_behind_with=False,
    kills_by_user=True,
    labels_keep_spaces=False,
    hex_is_text=True,
    unions_lose_columns=True,
    chosen_decimals_differ=False,
    averages_in_bits=True,
    derives_types=False,
    views_in_utf8mb3=True,
    looks_up_schemas=True,
    constants_need_collation=False,
    widens_numbers=True,
    unknown_stars_are_qualified=True,
    functions_need_database=False,
    groups_are_checked=False,
    folds_constants=False,
    orders_by_hidden=True,
    limits_joined_updates=True,
    reads_changed_table=True,
    ignores_by_row=True,
    finding_is_strict=False,
    sets_max_error_count=True,
    strict_warnings=None,
    prepares_diagnostics=True,
    prepared_text_is_kept=True,
    more_commands=True,
    found_rows_of_selects=True,
    tells_of_impossible_updates=False,
    lock_holders_are_unsigned=False,
    tells_changes_at_once=True,
    looks_open_nothing=True,
    counts_temporary_tables=True,
    keeps_warnings=True,
    commands_keep_warnings=False,
    warned_in_statement=False,
    numbers_in_statement=True,
    in_transaction_variable=True,
    tells_ansi_quotes=True,
    tracks_in_own_order=True,
    ends_with_error=False,
    counts_flushed_tables=False,
    noted_create_counts=False,
    notes_tables_together=True,
    warns_of_utf8mb3=False,
    greets_without_autocommit=True,
    set_counts_subqueries=True,
    nested_begin_keeps_mode=False,
    sets_default_role=False,
    resets_to_server_charset=False,
    names_origins=False,
    numbers_conditions=True,
    native_password=True,
    query_attributes=False,
    own_capabilities=True,
    latest_statement=True,
    names_prepared_command=True,
    underscores_in_grants=True,
    passes_read_only=True,
    read_only_databases=False,
    calls_need_database=False,
    fence_holds_prepared=True,
    recovers_freely=True,
    persists_variables=False,
    routines_in_proc=True,
    gtid_positions=True,
    replica_word="SLAVE",
    old_transaction_names=lambda version: version < 110101,
    read_only_error="read_only_mariadb",
    local_files_error="local_files_off_mariadb",
    changed_table_error="target_read_mariadb",
    unknown_column_clause="INSERT INTO",
    order_clause="ORDER BY",
    ambiguous_column_clause="UPDATE",
    counter_width=(39, 4),
)
MYSQL: Final = Flavour(
    name="mysql",
    marked_comments=False,
    skips_newer_comments=False,
    six_digit_comments=False,
    dollar_quotes=True,
    set_var_hints=True,
    compound_statements=False,
    row_aliases=True,
    sequences=False,
    explains_for_schema=True,
    digests=True,
    natives_by_arguments=False,
    changes_behind_with=True,
    kills_by_user=False,
    labels_keep_spaces=True,
    hex_is_text=False,
    unions_lose_columns=False,
    chosen_decimals_differ=True,
    averages_in_bits=False,
    derives_types=True,
    views_in_utf8mb3=False,
    looks_up_schemas=False,
    constants_need_collation=True,
    widens_numbers=False,
    unknown_stars_are_qualified=False,
    functions_need_database=True,
    groups_are_checked=True,
    folds_constants=True,
    orders_by_hidden=False,
    limits_joined_updates=False,
    reads_changed_table=False,
    ignores_by_row=False,
    finding_is_strict=True,
    sets_max_error_count=False,
    strict_warnings=frozenset(
        {1048, 1260, 1261, 1262, 1263, 1264, 1265, 1292, 1301, 1364, 1365, 1366, 1406, 1411, 1441}
        | {3020, 3156, 6527}
    ),
    prepares_diagnostics=False,
    prepared_text_is_kept=False,
    more_commands=False,
    found_rows_of_selects=False,
    tells_of_impossible_updates=True,
    lock_holders_are_unsigned=True,
    tells_changes_at_once=False,
    looks_open_nothing=False,
    counts_temporary_tables=False,
    keeps_warnings=False,
    commands_keep_warnings=True,
    warned_in_statement=True,
    numbers_in_statement=False,
    in_transaction_variable=False,
    tells_ansi_quotes=False,
    tracks_in_own_order=False,
    ends_with_error=True,
    counts_flushed_tables=True,
    noted_create_counts=True,
    notes_tables_together=False,
    warns_of_utf8mb3=True,
    greets_without_autocommit=False,
    set_counts_subqueries=False,
    nested_begin_keeps_mode=True,
    sets_default_role=True,
    resets_to_server_charset=True,
    names_origins=True,
    numbers_conditions=False,
    native_password=False,
    query_attributes=True,
    own_capabilities=False,
    latest_statement=False,
    names_prepared_command=False,
    underscores_in_grants=False,
    passes_read_only=False,
    read_only_databases=True,
    calls_need_database=True,
    fence_holds_prepared=False,
    recovers_freely=False,
    persists_variables=True,
    routines_in_proc=False,
    gtid_positions=False,
    replica_word="REPLICA",
    old_transaction_names=lambda version: False,
    read_only_error="read_only",
    local_files_error="local_files_off",
    changed_table_error="target_read",
    unknown_column_clause="field list",
    order_clause="order clause",
    ambiguous_column_clause="field list",
    counter_width=(31, 5),
)

MYSQL_WITHOUT_DIGESTS: Final = replace(MYSQL, digests=False)
FLAVOURS: Final = {one.name: one for one in (MARIADB, MYSQL)}
"""By name."""


def flavour_of(version: str, *, digests: bool = True) -> Flavour:
    """The flavour of a server that greets with this version: `10.11.6-MariaDB`, `9.7.0`. `digests`: False for
    one that was asked for MD5 and has it not.
    """
    if "mariadb" in version.lower():
        return MARIADB
    return MYSQL if digests else MYSQL_WITHOUT_DIGESTS


def _of_name(name: Literal["mariadb", "mysql"]) -> Flavour:
    return FLAVOURS[name]
