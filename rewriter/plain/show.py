"""SHOW and DESCRIBE: what the proxy answers, because only it knows the logical view."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rewriter.plan import Plan
from rewriter.plans.builtins import (
    Listing,
    Show,
    ShowColumns,
    ShowCreateDatabase,
    ShowCreateTable,
    ShowDatabases,
    ShowErrors,
    ShowGrants,
    ShowHotShards,
    ShowIndex,
    ShowNothing,
    ShowPools,
    ShowProcessList,
    ShowProxyAdvice,
    ShowProxyCaches,
    ShowProxyQueries,
    ShowProxySessions,
    ShowProxyStatus,
    ShowProxyTransactions,
    ShowRoutines,
    ShowShards,
    ShowStatus,
    ShowTables,
    ShowTableStatus,
    ShowTopology,
    ShowVariables,
    ShowWarnings,
)
from rewriter.route.context import Statement
from rewriter.route.scope import Refuse, Unsupported
from rewriter.splice import Template
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.facts import facts_of
from rewriter.text.facts import Span, TableRef
from rewriter.text.tokens import VARIABLE, WORD, Unreadable

from .builtins import Texts, Words
from .unsharded import About, Place, Text, plan_confined

_OWN: Final[dict[tuple[str, ...], type[Listing]]] = {
    ("SHARDS",): ShowShards,
    ("HOT", "SHARDS"): ShowHotShards,
    ("TOPOLOGY",): ShowTopology,
    ("POOLS",): ShowPools,
    ("PROXY", "STATUS"): ShowProxyStatus,
    ("PROXY", "ADVICE"): ShowProxyAdvice,
    ("PROXY", "CACHES"): ShowProxyCaches,
    ("PROXY", "QUERIES"): ShowProxyQueries,
    ("PROXY", "SESSIONS"): ShowProxySessions,
    ("PROXY", "TRANSACTIONS"): ShowProxyTransactions,
}


class _Show:
    """Reads one SHOW statement."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement
        self.words = Words(statement.source)
        self.texts = Texts(statement)

    def finished(self, plan: Show) -> Plan:
        """The plan, when nothing is left to read. Raises Refuse: the proxy asks for the rows by itself, on
        any connection, which may not keep anything of it.
        """
        self.words.finish()
        effects = self.statement.effects or Effects()
        if effects.pins or effects.unpins or effects.locks or effects.variables or effects.calls:
            raise Unsupported(
                what="SHOW … WHERE with locks, assignments or stored functions",
                reason="the proxy answers it over several connections",
                alternative="SELECT them by themselves.",
            )
        slots = tuple(self.texts.slots.names)
        return replace(plan, session_slots=slots) if slots else plan

    def like_where(self) -> tuple[Template | None, Template | None]:
        """LIKE 'pattern' and WHERE expression, one of which may stand at the end."""
        return self._rest("LIKE"), self._rest("WHERE")

    def like(self, what: str) -> Template | None:
        """LIKE 'pattern', of what has no WHERE: a server would have to judge it, which may be away just when
        this is looked at. Raises Refuse.
        """
        like = self.token() if self.words.take("LIKE") else None
        if self.words.take("WHERE"):
            raise Refuse("own_where", what=what)
        return like  # what stands behind it nobody has read

    def token(self) -> Template:
        """The next one."""
        self.words.at += 1
        return self.texts.template(self.words.at - 1, self.words.at)

    def _rest(self, word: str) -> Template | None:
        if not self.words.take(word):
            return None
        first, self.words.at = self.words.at, len(self.statement.source.tokens)
        return self.texts.template(first, self.words.at)

    def database(self) -> str:
        """FROM database or IN database, else the current one. Raises Refuse when there is none."""
        name = self.statement.names.env.database
        if self.words.take("FROM") or self.words.take("IN"):
            name = self.words.name()
        if name is None:
            raise Refuse("no_database")
        return name

    def table(self) -> tuple[str, str]:
        """table or database.table, and FROM database, which counts if both are given: database and table."""
        first = self.words.name()
        if not self.words.op("."):
            return self.database(), first
        table = self.words.name()
        said = self.words.source.is_word(self.words.at, "FROM", "IN")
        return self.database() if said else first, table

    def check(self, database: str, table: str) -> None:
        """Raises Refuse when there is no such table."""
        self.statement.names.target(TableRef("table", Span(0, 0), table, database))

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
    for sequence, variant in _OWN.items():
        if words.take(*sequence):
            return reader.finished(variant(like=reader.like(" ".join(sequence))))
    if words.take("DATABASES") or words.take("SCHEMAS"):
        like, where = reader.like_where()
        return reader.finished(ShowDatabases(like=like, where=where))
    if words.take("STATUS") or words.take("SESSION", "STATUS") or words.take("LOCAL", "STATUS"):
        text = reader.texts.template(0, len(statement.source.tokens))
        words.at = len(statement.source.tokens)
        return reader.finished(ShowStatus(text=text))
    scope = 2 if statement.source.is_word(1, "SESSION", "LOCAL", "GLOBAL") else 1
    if statement.source.is_word(scope, "VARIABLES"):
        return ShowVariables(home=_as_for_a_server(statement))
    for what in _OF_ROUTINES:
        if words.take(*what.split(), "STATUS"):
            like = reader.token() if words.take("LIKE") else None  # alone: it goes into another text
            where = None if like is not None else reader.like_where()[1]
            home = _as_for_a_server(statement)
            return reader.finished(ShowRoutines(what=what, like=like, where=where, home=home))
    diagnostics = _diagnostics(reader)
    if diagnostics is not None:
        return diagnostics
    words.at = 1
    extended, full = words.take("EXTENDED"), words.take("FULL")
    if words.take("PROCESSLIST"):
        return reader.finished(ShowProcessList(full=full))
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


_OF_ROUTINES: Final = ("PROCEDURE", "FUNCTION", "PACKAGE BODY", "PACKAGE", "LIBRARY")


def _as_for_a_server(statement: Statement) -> Plan:
    """The plan of a SHOW that a server answers."""
    home = plan_confined(statement) or Text(statement).plan(Place(), About())
    return replace(home, facts=facts_of(statement.source, flavour=statement.names.env.flavour))


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
    return reader.finished(ShowGrants(user=user))


_NONE: Final = ("TRIGGERS", "EVENTS", "OPEN TABLES")
"""What sharded databases have none of."""


def _nothing(reader: _Show, what: str) -> Plan | None:
    database = reader.database()
    if not reader.is_logical(database):
        return None
    reader.like_where()
    return reader.finished(ShowNothing(database=database, what=what, databases=(database,)))


def _diagnostics(reader: _Show) -> Plan | None:
    """SHOW WARNINGS, SHOW ERRORS, SHOW COUNT(*) WARNINGS."""
    words = reader.words
    count = words.source.is_word(1, "COUNT") and words.source.is_op(3, "*")
    if count:
        words.at = 5
    variant = ShowWarnings if words.take("WARNINGS") else ShowErrors if words.take("ERRORS") else None
    if variant is None:
        return None
    offset: Template | None = None
    limit: Template | None = None
    if words.take("LIMIT"):
        limit = reader.token()
        if words.op(","):
            offset, limit = limit, reader.token()
    return reader.finished(variant(count=count, offset=offset, limit=limit))


def _tables(reader: _Show, *, full: bool) -> Plan | None:
    database = reader.database()
    if not reader.is_logical(database):
        return None
    like, where = reader.like_where()
    return reader.finished(
        ShowTables(database=database, full=full, like=like, where=where, databases=(database,))
    )


def _columns(reader: _Show, *, full: bool, extended: bool) -> Plan | None:
    if not (reader.words.take("FROM") or reader.words.take("IN")):
        raise Unreadable("expected FROM")
    database, table = reader.table()
    if not reader.is_logical(database):
        return None
    like, where = reader.like_where()
    reader.check(database, table)
    return reader.finished(
        ShowColumns(
            database=database,
            table=table,
            full=full,
            extended=extended,
            like=like,
            where=where,
            databases=(database,),
        )
    )


def _others(reader: _Show, *, extended: bool) -> Plan | None:
    """SHOW TABLE STATUS, INDEX, CREATE TABLE, CREATE DATABASE of what only the proxy knows."""
    words = reader.words
    if words.take("TABLE", "STATUS"):
        database = reader.database()
        if reader.is_logical(database):
            like, where = reader.like_where()
            status = ShowTableStatus(database=database, like=like, where=where, databases=(database,))
            return reader.finished(status)
    elif words.take("INDEX") or words.take("INDEXES") or words.take("KEYS"):
        if not (words.take("FROM") or words.take("IN")):
            raise Unreadable("expected FROM")
        database, table = reader.table()
        if reader.is_logical(database):
            where = reader.like_where()[1]
            reader.check(database, table)
            index = ShowIndex(
                database=database, table=table, extended=extended, where=where, databases=(database,)
            )
            return reader.finished(index)
    elif words.take("CREATE", "TABLE"):
        database, table = reader.table()
        if reader.is_logical(database):
            reader.check(database, table)
            return reader.finished(ShowCreateTable(database=database, table=table, databases=(database,)))
    elif words.take("CREATE", "VIEW"):
        database, table = reader.table()
        if reader.is_logical(database):
            reader.check(database, table)
            words.finish()
            raise Refuse("not_a_view", database=database, table=table)
    elif words.take("CREATE", "DATABASE") or words.take("CREATE", "SCHEMA"):
        absent = words.take("IF", "NOT", "EXISTS")
        database = words.name()
        if reader.is_logical(database):
            created = ShowCreateDatabase(database=database, if_not_exists=absent, databases=(database,))
            return reader.finished(created)
    return None


def describe(statement: Statement) -> Plan | None:
    """DESCRIBE table [column], also as EXPLAIN table. Raises Unreadable and Refuse."""
    source = statement.source
    if statement.form.words != "DESCRIBE" or not source.is_name(1):
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
    like = None if words.done else reader.token()
    reader.check(database, first)
    return reader.finished(ShowColumns(database=database, table=first, like=like, databases=(database,)))
