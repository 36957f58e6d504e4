"""SHOW and DESCRIBE: what the proxy answers, because only it knows the logical view."""

from __future__ import annotations

from typing import Final

from rewriter.plan import Access, Argument, Plan
from rewriter.plans import Builtin
from rewriter.route.context import Statement
from rewriter.route.scope import Refuse
from rewriter.text.facts import Span, TableRef
from rewriter.text.tokens import VARIABLE, WORD, Unreadable

from .builtins import Texts, Words
from .unsharded import About, Place, Text, plan_confined

_OWN: Final = {
    ("SHARDS",): "show_shards",
    ("TOPOLOGY",): "show_topology",
    ("POOLS",): "show_pools",
    ("PROXY", "STATUS"): "show_proxy_status",
    ("PROXY", "QUERIES"): "show_proxy_queries",
    ("PROXY", "SESSIONS"): "show_proxy_sessions",
}


class _Show:
    """Reads one SHOW statement."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.words = Words(statement.source)
        self.texts = Texts(statement)

    def plan(self, name: str, arguments: dict[str, Argument], databases: tuple[str, ...] = ()) -> Plan:
        """The plan, when nothing is left to read."""
        self.words.finish()
        return Builtin(
            name=name,
            access=Access.READ,
            arguments=arguments,
            databases=databases,
            session_slots=tuple(self.texts.slots.names),
        )

    def like_where(self) -> dict[str, Argument]:
        """LIKE 'pattern' and WHERE expression, one of which may stand at the end."""
        found: dict[str, Argument] = {"like": None, "where": None}
        end = len(self.statement.source.tokens)
        for word in ("LIKE", "WHERE"):
            if self.words.take(word):
                found[word.lower()] = self.texts.template(self.words.at, end)
                self.words.at = end
        return found

    def database(self) -> str:
        """FROM database or IN database, else the current one. Raises Refuse when there is none."""
        name = self.statement.names.env.database
        if self.words.take("FROM") or self.words.take("IN"):
            name = self.words.name()
        if name is None:
            raise Refuse("no_database")
        return name

    def table(self) -> tuple[str, str]:
        """table, database.table, or table FROM database: database and table."""
        first = self.words.name()
        if self.words.op("."):
            return first, self.words.name()
        return self.database(), first

    def is_logical(self, database: str) -> bool:
        """Whether only the proxy knows what is in `database`."""
        found = self.statement.names.schema.databases.get(database)
        return found is not None and not found.passes_through


def show(statement: Statement) -> Plan | None:
    """SHOW …, as far as the proxy answers it. Raises Unreadable and Refuse."""
    if not statement.source.is_word(0, "SHOW"):
        return None
    reader = _Show(statement)
    words = reader.words
    words.at = 1
    for sequence, name in _OWN.items():
        if words.take(*sequence):
            return reader.plan(name, {"like": reader.like_where()["like"]})
    if words.take("DATABASES") or words.take("SCHEMAS"):
        return reader.plan("show_databases", reader.like_where())
    if words.take("STATUS") or words.take("SESSION", "STATUS") or words.take("LOCAL", "STATUS"):
        text = reader.texts.template(0, len(statement.source.tokens))
        words.at = len(statement.source.tokens)
        return reader.plan("show_status", {"text": text})
    scope = 2 if statement.source.is_word(1, "SESSION", "LOCAL", "GLOBAL") else 1
    if statement.source.is_word(scope, "VARIABLES"):
        home = plan_confined(statement, Access.READ) or Text(statement).plan(Place(), About(Access.READ))
        return Builtin(name="show_variables", access=Access.READ, home=home)
    diagnostics = _diagnostics(reader)
    if diagnostics is not None:
        return diagnostics
    words.at = 1
    extended, full = words.take("EXTENDED"), words.take("FULL")
    if words.take("PROCESSLIST"):
        return reader.plan("show_process_list", {"full": full})
    if words.take("GRANTS"):
        return _grants(reader)
    for what in _NONE:
        if words.take(*what.split()):
            return _nothing(reader, what)
    if words.take("TABLES"):
        return _tables(reader, full=full)
    if words.take("COLUMNS") or words.take("FIELDS"):
        return _columns(reader, full=full, extended=extended)
    return None if full else _others(reader, extended=extended)


def _grants(reader: _Show) -> Plan:
    """SHOW GRANTS [FOR user [USING role …]]"""
    words = reader.words
    user: str | None = None
    if words.take("FOR"):
        token = words.source.at(words.at)
        words.at += 1
        if token.text == "CURRENT_USER" and token.kind == WORD:
            words.at += 2 if words.source.is_op(words.at, "(") else 0
        else:
            user = token.name.strip("'\"")
            words.at += 1 if words.source.at(words.at).kind == VARIABLE else 0  # @'host'
    return reader.plan("show_grants", {"user": user})


_NONE: Final = ("TRIGGERS", "EVENTS", "OPEN TABLES")
"""What sharded databases have none of."""


def _nothing(reader: _Show, what: str) -> Plan | None:
    database = reader.database()
    if not reader.is_logical(database):
        return None
    reader.like_where()
    return reader.plan("show_nothing", {"database": database, "what": what}, databases=(database,))


def _diagnostics(reader: _Show) -> Plan | None:
    """SHOW WARNINGS, SHOW ERRORS, SHOW COUNT(*) WARNINGS."""
    words = reader.words
    count = words.source.is_word(1, "COUNT") and words.source.is_op(3, "*")
    if count:
        words.at = 5
    name = "show_warnings" if words.take("WARNINGS") else "show_errors" if words.take("ERRORS") else ""
    if not name:
        return None
    arguments: dict[str, Argument] = {"count": count, "offset": None, "limit": None}
    if words.take("LIMIT"):
        first = words.at
        words.at += 1
        if words.op(","):
            arguments["offset"] = reader.texts.template(first, first + 1)
            first = words.at
            words.at += 1
        arguments["limit"] = reader.texts.template(first, first + 1)
    return reader.plan(name, arguments)


def _tables(reader: _Show, *, full: bool) -> Plan | None:
    database = reader.database()
    if not reader.is_logical(database):
        return None
    return reader.plan(
        "show_tables", {"database": database, "full": full, **reader.like_where()}, databases=(database,)
    )


def _columns(reader: _Show, *, full: bool, extended: bool) -> Plan | None:
    if not (reader.words.take("FROM") or reader.words.take("IN")):
        raise Unreadable("expected FROM")
    database, table = reader.table()
    if not reader.is_logical(database):
        return None
    arguments: dict[str, Argument] = {"full": full, "extended": extended, **reader.like_where()}
    return _of_table(reader, "show_columns", database, table, arguments)


def _others(reader: _Show, *, extended: bool) -> Plan | None:
    """SHOW TABLE STATUS, INDEX, CREATE TABLE, CREATE DATABASE of what only the proxy knows."""
    words = reader.words
    if words.take("TABLE", "STATUS"):
        database = reader.database()
        if reader.is_logical(database):
            arguments = {"database": database, **reader.like_where()}
            return reader.plan("show_table_status", arguments, databases=(database,))
    elif words.take("INDEX") or words.take("INDEXES") or words.take("KEYS"):
        if not (words.take("FROM") or words.take("IN")):
            raise Unreadable("expected FROM")
        database, table = reader.table()
        if reader.is_logical(database):
            arguments = {"where": reader.like_where()["where"], "extended": extended}
            return _of_table(reader, "show_index", database, table, arguments)
    elif words.take("CREATE", "TABLE"):
        database, table = reader.table()
        if reader.is_logical(database):
            return _of_table(reader, "show_create_table", database, table, {})
    elif words.take("CREATE", "VIEW"):
        database, table = reader.table()
        if reader.is_logical(database):
            _of_table(reader, "show_create_table", database, table, {})
            raise Refuse("not_a_view", database=database, table=table)
    elif words.take("CREATE", "DATABASE") or words.take("CREATE", "SCHEMA"):
        absent = words.take("IF", "NOT", "EXISTS")
        database = words.name()
        if reader.is_logical(database):
            arguments = {"database": database, "if_not_exists": absent}
            return reader.plan("show_create_database", arguments, databases=(database,))
    return None


def _of_table(reader: _Show, name: str, database: str, table: str, arguments: dict[str, Argument]) -> Plan:
    """A plan about one table, which must exist. Raises Refuse."""
    reader.statement.names.target(TableRef("table", Span(0, 0), table, database))
    arguments = {"database": database, "table": table, **arguments}
    return reader.plan(name, arguments, databases=(database,))


def describe(statement: Statement) -> Plan | None:
    """DESCRIBE table [column], also as EXPLAIN table. Raises Unreadable and Refuse."""
    source = statement.source
    if not source.is_word(0, "DESCRIBE", "DESC", "EXPLAIN"):
        return None
    if not source.is_name(1) or source.is_word(1, *_EXPLAINABLE):
        return None
    reader = _Show(statement)
    words = reader.words
    words.at = 1
    first = words.name()
    database = statement.names.env.database
    if words.op("."):
        database, first = first, words.name()
    if database is None:
        raise Refuse("no_database")
    if not reader.is_logical(database):
        return None
    arguments: dict[str, Argument] = {"full": False, "extended": False, "like": None, "where": None}
    if not words.done:
        arguments["like"] = reader.texts.template(words.at, words.at + 1)
        words.at += 1
    return _of_table(reader, "show_columns", database, first, arguments)


_EXPLAINABLE: Final = (
    "SELECT", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE", "TABLE", "VALUES", "FORMAT", "ANALYZE",
    "EXTENDED", "PARTITIONS", "FOR", "ROUTE", "INTO",
)  # fmt: skip
