"""What a statement is and what it names: the access that its user needs, judged by its tokens alone.

Whatever rule plans a statement, the planner asks here, too, and the stricter answer counts. Users without the
role `admin` may use only what is on a list: kinds of statements, functions, views of information_schema,
options of a table. A name before a point is a database, unless it is plainly a table's name or an alias of
the same statement. A statement that runs text which it does not show (a routine) is marked as unseen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from rewriter.plan import Access
from rewriter.route.context import Statement
from rewriter.route.scope import INFORMATION_SCHEMA, SYSTEM_DATABASES, Names
from rewriter.sql.statements.calls import NATIVE_SCHEMAS, sequences, with_plain_calls
from rewriter.sql.statements.forms import Inner, Kind, Objects, StatementForm
from rewriter.sql.statements.functions import as_stored, foreign_calls, is_sequences
from rewriter.sql.statements.inner import behind_explain, behind_set_statement, is_explain, tail
from rewriter.sql.statements.table import form_of, recognize, verbs_of
from rewriter.sql.statements.table_places import tables_expected
from rewriter.text.literals import NotPlain, unquote
from rewriter.text.opening import opened
from rewriter.text.tokens import (
    NAME,
    STRING,
    SYSTEM,
    WORD,
    Source,
    Unreadable,
    read,
)

from .beyond import (
    EVERY_DATABASE,
    hidden_text,
    hints_engine,
    named_as_database,
    sets_for_all,
    sets_other_engine,
    sets_privileged,
    stays_within,
)
from .reachable import is_view_for_all, reached, shown_at, tells_of_others

FOR_ADMINS: Final = frozenset(
    {
        "LOAD_FILE",
        "BINLOG_GTID_POS",
        "MASTER_GTID_WAIT",
        "MASTER_POS_WAIT",
        "SOURCE_POS_WAIT",
        "ROLES_GRAPHML",
    }
    | {
        "WAIT_FOR_EXECUTED_GTID_SET",
        "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS",
        "CURRENT_ROLE_IN",
        "CURRENT_USER_IN",
    }
    | {"WSREP_LAST_SEEN_GTID", "WSREP_LAST_WRITTEN_GTID", "WSREP_SYNC_WAIT_UPTO_GTID", "IS_VISIBLE_DD_OBJECT"}
    | {"REMOVE_DD_PROPERTY_KEY", "VERSION_WITH_UPDATE", "DECODE_HISTOGRAM"}
)
"""Functions that read the server's files, wait for its replication, or are made for its own views."""

_FOR_ADMINS: Final = (
    "INTERNAL_",
    "CAN_ACCESS_",
    "GET_DD_",
    "GET_JDV_",
    "ASYNCHRONOUS_",
    "INNODB_",
    "CONVERT_CPU",
    "CONVERT_INTERVAL_",
)
_TELLING_VARIABLES: Final = (
    "report_password",
    "wsrep_sst_auth",
    "init_connect",
    "init_file",
    "pwd",
    "secret",
)
_ROUTINES: Final = ("PROCEDURE", "FUNCTION", "PACKAGE", "LIBRARY")
_OF_EVERYBODY: Final = (*_ROUTINES, "GRANTS", "PROCESSLIST", "DATABASES", "SCHEMAS", "OPEN")
_FOR_ONE_STATEMENT: Final = frozenset(
    {
        "max_statement_time",
        "max_execution_time",
        "lock_wait_timeout",
        "innodb_lock_wait_timeout",
        "optimizer_switch",
    }
    | {"join_buffer_size", "sort_buffer_size", "read_buffer_size", "read_rnd_buffer_size", "tmp_table_size"}
    | {"max_heap_table_size", "tmp_memory_table_size", "group_concat_max_len", "optimizer_search_depth"}
    | {"optimizer_prune_level", "optimizer_use_condition_selectivity", "use_stat_tables", "join_cache_level"}
    | {"in_predicate_conversion_threshold", "eq_range_index_dive_limit", "max_sort_length", "time_zone"}
    | {"sql_select_limit", "max_join_size", "sql_big_selects", "sql_buffer_result", "div_precision_increment"}
    | {"query_cache_type", "foreign_key_checks", "unique_checks", "rowid_merge_buff_size", "lc_time_names"}
)
_ENGINES: Final = frozenset({"INNODB", "MYISAM", "ARIA", "MEMORY", "HEAP"})
_OPTIONS: Final = frozenset(
    {
        "ENGINE",
        "TYPE",
        "STORAGE",
        "DEFAULT",
        "CHARACTER",
        "CHARSET",
        "SET",
        "COLLATE",
        "COMMENT",
        "AUTO_INCREMENT",
        "ROW_FORMAT",
    }
    | {
        "KEY_BLOCK_SIZE",
        "MAX_ROWS",
        "MIN_ROWS",
        "AVG_ROW_LENGTH",
        "CHECKSUM",
        "TABLE_CHECKSUM",
        "PAGE_CHECKSUM",
    }
    | {"DELAY_KEY_WRITE", "PACK_KEYS", "STATS_PERSISTENT", "STATS_AUTO_RECALC", "STATS_SAMPLE_PAGES"}
    | {"TRANSACTIONAL", "COMPRESSION", "IGNORE", "REPLACE"}
)


_WRITES: Final = verbs_of(Kind.CHANGE)


class Rights(NamedTuple):
    """What a user must be allowed for a statement.

    `databases`: those that it names, or may name, as written; EVERY_DATABASE for what shows all, or acts on a
    whole server. `reserved`: the system databases among them, which are for admins and for users whose list
    names them. `unseen`: in words, the routine that it has a server run, and `hidden`: the text, or "": the
    proxy does not judge what that does.
    """

    access: Access
    databases: tuple[str, ...] = ()
    reserved: tuple[str, ...] = ()
    unseen: str = ""
    hidden: str = ""

    def __or__(self, other: Rights) -> Rights:
        return Rights(
            max(self.access, other.access),
            tuple(dict.fromkeys(self.databases + other.databases)),
            tuple(dict.fromkeys(self.reserved + other.reserved)),
            self.unseen or other.unseen,
            self.hidden or other.hidden,
        )


def rights_of(statement: Statement) -> Rights:
    """The rights that a statement asks for."""
    source, names = statement.source, statement.names
    found = _of_source(source, names)
    read_as = readings(statement)[1:]
    at = _prepared(_asked_of_route(source))
    if at >= 0:
        source = _asked_of_route(source)
        literal = source.tokens[at].literal
        statement.guards.add(literal)
        if not source.literals[literal].isascii() or not read_as:
            # MySQL keeps it in UTF-8 and reads it in character_set_client, MariaDB converts it to
            # character_set_connection: what is no character to the one may be half a quote to the other
            found |= Rights(Access.ADMIN, hidden=hidden_text(source, 0))
        for inner in read_as:
            if inner.tokens and form_of(inner).objects is Objects.PREPARED:
                databases = _of_source(inner, names).databases
                found |= Rights(Access.ADMIN, databases, hidden=hidden_text(source, 0))
            else:
                found |= _of_source(inner, names) | _run_by_server(inner, names)
    for asked in (statement.source, *read_as):
        other, judged = sets_other_engine(asked)
        if asked is statement.source:
            statement.guards.update(judged)
        if other or hints_engine(asked):
            found |= Rights(Access.ADMIN, (EVERY_DATABASE,))
    if source.is_word(0, "SHOW"):
        found = found._replace(databases=(*found.databases, *_all_shown(source)))
    return found if source is statement.source else _of_explained(found)


def _asked_of_route(source: Source) -> Source:
    """The statement in EXPLAIN ROUTE; any other statement as it is."""
    routes = source.is_word(0, "EXPLAIN") and source.is_word(1, "ROUTE")
    return tail(source, 2) if routes else source


def _of_explained(rights: Rights) -> Rights:
    """The rights for EXPLAIN ROUTE of a statement that needs `rights`: it runs nothing."""
    return rights._replace(access=Access.READ, unseen="", hidden="")


def databases_named(source: Source, names: Names) -> frozenset[str]:
    """The databases that a statement names or may name, as its rights are judged: aliases are none of them,
    whatever databases there are.
    """
    return frozenset(_of_source(source, names).databases) - {EVERY_DATABASE}


def _of_source(source: Source, names: Names) -> Rights:
    if not source.tokens:
        return Rights(Access.NONE)
    explained = _asked_of_route(source)
    if explained is not source:
        return _of_explained(_of_source(explained, names))
    access, first = _kind(source, 0)
    within = Rights(Access.NONE)
    if form_of(source).words == "SET STATEMENT":
        behind = behind_set_statement(source)
        if sets_privileged(source, behind, flavour=names.env.flavour):
            within |= Rights(Access.ADMIN, (EVERY_DATABASE,))
        if behind < len(source.tokens):
            inner = tail(source, behind)
            within |= _of_source(inner, names) | _run_by_server(inner, names)
    told, called = _told(source, first), _calls(source, names)
    found = within | Rights(max(access, told), *_named(source, names, first))
    if called.access > found.access or called.unseen:
        found |= called
    if Access.ADMIN in (told, called.access):
        found |= Rights(Access.ADMIN, (EVERY_DATABASE,))
    if access is Access.ADMIN:
        hidden = hidden_text(source, first)
        beyond = not hidden and not stays_within(source, first)
        found |= Rights(access, (EVERY_DATABASE,) if beyond else (), hidden=hidden)
    if found.reserved and found.access >= Access.WRITE:  # a list allows to read them
        found |= Rights(Access.ADMIN, (EVERY_DATABASE,))
    return found


# -- kinds of statements


def _kind(source: Source, first: int) -> tuple[Access, int]:
    """The access that the kind of statement at `first` needs, and where the innermost one begins."""
    form = form_of(source, first)
    if form.kind is Kind.EXPLAIN:
        return _explained(source, form, first)
    if form.words == "SET STATEMENT":
        return _set_statement(source, first)
    if form.inner is Inner.TEXT:
        return (Access.READ if first == 0 and _prepared(source) >= 0 else Access.ADMIN), first
    if form.words == "CREATE TEMPORARY TABLE" and not _is_plain_table(source, recognize(source, first).end):
        return Access.ADMIN, first
    return form.access, first


def _explained(source: Source, form: StatementForm, first: int) -> tuple[Access, int]:
    if form.inner is Inner.NONE or form.access is Access.ADMIN:
        return form.access, first
    at = behind_explain(source, first).at
    if form_of(source, at).kind not in (Kind.QUERY, Kind.CHANGE):
        return Access.ADMIN, first
    access, inner = _kind(source, at)
    return max(access, form.access), inner


def _set_statement(source: Source, first: int) -> tuple[Access, int]:
    inner = behind_set_statement(source, first)
    access = Access.NONE
    at = first + 2
    while at < inner - 1:
        name = source.at(at)
        if not source.is_name(at) or name.name.lower() not in _FOR_ONE_STATEMENT:
            access = Access.ADMIN
        while at < inner - 1 and not source.is_op(at, ","):
            access = max(access, Access.ADMIN if source.is_word(at, "NEXT", "PREVIOUS") else Access.NONE)
            at = source.closing.get(at, at) + 1
        at += 1
    if inner >= len(source.tokens):
        return Access.ADMIN, first
    needed, innermost = _kind(source, inner)
    return max(access, needed), innermost


def _all_shown(source: Source) -> tuple[str, ...]:
    """EVERY_DATABASE for SHOW of what is open in all of them, unless it says of which it is. Of other things
    the proxy chooses the rows by who asks.
    """
    everywhere = source.is_word(1, "OPEN") and not source.is_word(3, "FROM", "IN")
    return (EVERY_DATABASE,) if everywhere else ()


def _run_by_server(source: Source, names: Names) -> Rights:
    """What a text needs beside its tables where a server runs it as the account of the connection, SHOW, USE,
    SET and KILL, too, which the proxy would carry out by itself: prepared, or behind SET STATEMENT.
    """
    found = Rights(Access.NONE)
    if form_of(source).kind is Kind.TRANSACTION:  # the proxy would not know of the transaction
        return found | Rights(Access.ADMIN)
    if source.is_word(0, "KILL") or sets_for_all(source, flavour=names.env.flavour):
        return found | Rights(Access.ADMIN, (EVERY_DATABASE,))
    at = shown_at(source)
    if not source.is_word(0, "SHOW") or not source.is_word(at, *_OF_EVERYBODY):
        return found
    access = Access.ADMIN if source.is_word(at, "GRANTS", "PROCESSLIST") else Access.NONE
    return found | Rights(access, (EVERY_DATABASE,))


def readings(statement: Statement) -> list[Source]:
    """The statement, and what it prepares, as each sql_mode reads that."""
    source = _asked_of_route(statement.source)
    at = _prepared(source)
    within = _read_as(source.literals[source.tokens[at].literal], statement.names) if at >= 0 else []
    return [statement.source, *within]


def _prepared(source: Source) -> int:
    """The string of PREPARE … FROM '…' and EXECUTE IMMEDIATE '…', if it is written out; else -1."""
    last = len(source.tokens) - 1
    prepares = source.is_word(0, "PREPARE") and source.is_word(2, "FROM") and last == 3
    runs = source.is_word(0, "EXECUTE") and source.is_word(1, "IMMEDIATE") and last == 2
    token = source.at(last)
    return last if (prepares or runs) and token.kind == STRING and token.literal >= 0 else -1


def _read_as(literal: bytes, names: Names) -> list[Source]:
    """A prepared text as each sql_mode reads it: a server reads it again when a table has changed. Whatever
    stands in front of a parenthesis may be a comment in the text, which `opened` makes blanks.
    """
    found = []
    env = names.env
    for ansi in (False, True):
        for raw in (False, True):
            mode = replace(env, ansi_quotes=ansi, no_backslash_escapes=raw, ignore_space=False)
            try:
                text = opened(unquote(literal, not env.no_backslash_escapes), mode)
                literals = tuple(one for _, one in mode.findall(text + b"\0"))
                if not literals[-1] and literals.count(b"") == 1:
                    inner = as_stored(read(text, literals, mode))
                    found.append(with_plain_calls(inner, flavour=mode.flavour))
            except (NotPlain, Unreadable):
                continue
    return found


def _is_plain_table(source: Source, at: int) -> bool:
    """Whether CREATE TEMPORARY TABLE, whose name stands at `at`, has no option that reaches beyond its
    database.
    """
    while source.is_word(at, "IF", "NOT", "EXISTS"):
        at += 1
    at += 3 if source.is_op(at + 1, ".") else 1
    if source.is_op(at, "("):
        if source.is_word(at + 1, "SELECT", "WITH", "VALUES", "TABLE", "LIKE") or source.is_op(at + 1, "("):
            return True
        at = source.closing[at] + 1
    while at < len(source.tokens):
        token = source.at(at)
        if source.is_word(at, "AS", "SELECT", "VALUES", "TABLE", "LIKE") or source.is_op(at, "("):
            return True
        if source.is_word(at, "WITH"):
            return not source.is_word(at + 1, "SYSTEM")
        if source.is_op(at, ",", "="):
            at += 1
            continue
        if token.kind != WORD or token.text not in _OPTIONS:
            return False
        value = at + 1 + source.is_op(at + 1, "=")
        if token.text in ("ENGINE", "TYPE") and source.at(value).name.strip("'\"").upper() not in _ENGINES:
            return False
        takes = token.text not in ("DEFAULT", "STORAGE", "CHARACTER", "IGNORE", "REPLACE")
        at = value + 1 if takes else at + 1
    return True


# -- words anywhere


def _told(source: Source, first: int) -> Access:
    """What words within the statement need: locks, writes behind WITH, files."""
    needed = Access.NONE
    helps = source.is_word(first, "HELP")
    for at, token in enumerate(source.tokens):
        if token.kind == SYSTEM:
            if any(part in token.text for part in _TELLING_VARIABLES):
                return Access.ADMIN
            continue
        if token.kind != WORD or source.is_op(at - 1, "."):
            continue
        text = token.text
        if text == "OUTFILE" or (text == "DUMPFILE" and source.is_word(at - 1, "INTO")):
            return Access.ADMIN
        locks = text == "SHARE" and source.is_word(at - 1, "FOR", "IN")
        draws = text == "VALUE" and source.is_word(at - 1, "NEXT") and source.is_word(at + 1, "FOR")
        function = text in ("INSERT", "REPLACE") and source.is_op(at + 1, "(")
        if locks or draws or (text in _WRITES and not helps and not function):
            needed = Access.WRITE
    return needed


# -- functions


def _calls(source: Source, names: Names) -> Rights:
    """What the functions that are called need."""
    access, unseen = Access.NONE, ""
    if source.is_word(0, "CALL"):
        unseen = f"routine '{source.at(1).name}'"
    for at, token in enumerate(source.tokens):
        if not source.is_op(at + 1, "(") or token.kind not in (WORD, NAME):
            continue
        name = token.name.upper()
        if source.is_op(at - 1, "."):
            of_servers = source.at(at - 2).name.lower() in NATIVE_SCHEMAS
            if name in FOR_ADMINS and of_servers:
                access = Access.ADMIN
        elif name in FOR_ADMINS or name.startswith(_FOR_ADMINS):
            access = Access.ADMIN
        elif token.kind == WORD and is_sequences(name, flavour=names.env.flavour):
            access = max(access, Access.READ if name == "LASTVAL" else Access.WRITE)
        elif token.kind == WORD and name == "DEFAULT" and names.env.flavour.sequences:
            access = max(access, Access.WRITE)  # of a column, whose default may be NEXTVAL(…)
    for at in foreign_calls(source, flavour=names.env.flavour):
        access, unseen = max(access, Access.WRITE), unseen or f"routine '{source.at(at).name}'"
    return Rights(access, unseen=unseen)


# -- databases


def _named(source: Source, names: Names, first: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The databases that a statement names or may name, and the system's own of them."""
    database = named_as_database(source)
    found = dict.fromkeys((database,) if database and database.lower() != INFORMATION_SCHEMA else ())
    found |= dict.fromkeys(reached(source))
    labels: set[str] | None = None
    named = sequences(source)
    kind = form_of(source, first).kind
    for at, token in enumerate(source.tokens):
        if token.kind not in (WORD, NAME) or not source.is_op(at + 1, ".") or source.is_op(at - 1, "."):
            continue
        name = token.name
        if name in found:
            continue
        lower = name.lower()
        if lower == INFORMATION_SCHEMA:
            if not is_view_for_all(source.at(at + 2).name):
                found[name] = None
            continue
        if lower in SYSTEM_DATABASES or at in named:
            found[name] = None
        elif not (lower in ("new", "old") and source.is_word(0, "CREATE")):  # a row, in a trigger's body
            labels = _labels(source) if labels is None else labels
            if lower not in labels:
                found[name] = None
    behind = behind_explain(source, 0) if is_explain(source, 0) else None
    if behind is not None and behind.database is not None:
        found[source.at(behind.database).name] = None
    current = names.env.database or ""
    if current.lower() == INFORMATION_SCHEMA and _tells(source):
        found[INFORMATION_SCHEMA] = None
    elif current.lower() in SYSTEM_DATABASES - {INFORMATION_SCHEMA} and kind in _IN_CURRENT:
        found[current] = None
    return tuple(found), tuple(name for name in found if name.lower() in SYSTEM_DATABASES)


_IN_CURRENT: Final = frozenset(
    {
        Kind.QUERY,
        Kind.CHANGE,
        Kind.EXPLAIN,
        Kind.DEFINITION,
        Kind.MAINTENANCE,
        Kind.HANDLER,
        Kind.LOCK,
        Kind.LOAD,
    }
)
"""Statements whose tables belong to the current database if they name no other."""


def _labels(source: Source) -> set[str]:
    """What may qualify a column: names that stand without a point behind them."""
    return {
        token.name.lower()
        for at, token in enumerate(source.tokens)
        if token.kind in (WORD, NAME) and not source.is_op(at + 1, ".")
    }


def _tells(source: Source) -> bool:
    """Whether a statement in information_schema names one of its views that is not for all."""
    tables, ctes = tables_expected(source), _ctes(source)
    shown = reached(source) if form_of(source).kind is Kind.SHOW else ()
    for at, token in enumerate(source.tokens):
        if source.is_name(at) and not source.is_op(at + 1, ".", "("):
            table = at in tables and token.name not in shown  # SHOW TABLES FROM database
            unknown = table and token.name not in ctes and not is_view_for_all(token.name)
            if unknown or tells_of_others(token.name):
                return True
    return False


def _ctes(source: Source) -> set[str]:
    """The names that WITH gives to queries, and DUAL."""
    found = {"DUAL", "dual"}
    for at, token in enumerate(source.tokens):
        end = source.closing[at + 1] + 1 if source.is_op(at + 1, "(") else at + 1
        if source.is_name(at) and source.is_word(end, "AS") and source.is_op(end + 1, "("):
            found.add(token.name)
    return found
