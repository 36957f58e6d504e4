"""Definitions of single tables: those that the schema names, and those that it leaves to `others`.

They run on the one host that has the tables, as the client wrote them but for the tables' names, each of
which gets its physical database.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from config.schema import Kind
from rewriter.plan import Plan
from rewriter.route.context import Statement
from rewriter.route.scope import Refuse, Scope, Target, Unsupported
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.forms import Objects
from rewriter.text.facts import Span, TableRef
from rewriter.text.parse import Parser
from rewriter.text.tokens import Source, quote_name

from .definitions import query_of
from .unsharded import About, Place, Text


def define_single(statement: Statement, span: Span, target: Target) -> Plan:
    """The plan of a definition of `target`, whose name is `span`. Raises Refuse and Unreadable."""
    source = statement.source
    text = Text(statement)
    begin = query_of(source, span) if source.is_word(0, "CREATE") else len(source.tokens)
    for name in (span, *_others(statement, span, begin)):
        other = statement.names.target(_reference(source, name))
        if other.form != "single" or other.table is None or other.table.kind is not Kind.SINGLE:
            raise _elsewhere(source, name, "it is not a single table")
        if other.keyspace != target.keyspace:
            raise _elsewhere(source, name, f"it is in another keyspace than {source.at(span.end - 1).name}")
        last = source.text(name.end - 1, name.end)
        text.edits.replace(name, quote_name(other.physical.decode()), b".", last)
    if begin < len(source.tokens):
        _edit_select(statement, text, begin, target)
    about = About((target.database,))
    plan = text.plan(Place((target.keyspace,)), about)
    return replace(plan, effects=(plan.effects or Effects())._replace(tables=True))


def rename(statement: Statement) -> Plan | None:
    """RENAME TABLE a TO b, c TO d, when all are single tables; None when they are not. Raises Refuse."""
    source = statement.source
    if not source.is_word(0, "RENAME") or not source.is_word(1, "TABLE", "TABLES"):
        return None
    at = 2
    while source.is_word(at, "IF", "EXISTS"):
        at += 1
    span = name_at(source, at)
    if span is None:
        return None
    target = statement.names.target(_reference(source, span))
    if target.form != "single" or target.table is None or target.table.kind is not Kind.SINGLE:
        return None
    return define_single(statement, span, target)


def name_at(source: Source, at: int) -> Span | None:
    """The table's name that stands there."""
    if not source.is_name(at):
        return None
    qualified = source.is_op(at + 1, ".") and source.is_name(at + 2)
    return Span(at, at + 3 if qualified else at + 1)


def _reference(source: Source, span: Span) -> TableRef:
    database = source.tokens[span.first].name if span.end - span.first > 1 else None
    return TableRef("table", span, source.tokens[span.end - 1].name, database)


def _others(statement: Statement, span: Span, end: int) -> Iterator[Span]:
    """The further tables that the definition names."""
    source, listed = statement.source, statement.form.objects is Objects.TABLES
    at = span.end
    while at < end:
        name = None
        if source.is_word(at, "REFERENCES") or (source.is_word(at, "LIKE") and source.is_word(0, "CREATE")):
            name = name_at(source, at + 1)
        elif listed and (source.is_op(at, ",") or source.is_word(at, "TO")):
            name = name_at(source, at + 1 + (2 * source.is_word(at + 1, "IF")))
        elif source.is_word(at, "RENAME") and not source.is_word(at + 1, "COLUMN", "INDEX", "KEY"):
            name = name_at(source, at + 1 + (source.is_word(at + 1, "TO", "AS") or source.is_op(at + 1, "=")))
        if name is not None:
            yield name
            at = name.end
        else:
            at += 1


def _edit_select(statement: Statement, text: Text, begin: int, target: Target) -> None:
    """The query's tables, which must be where the new one is. Raises Refuse and Unreadable."""
    source = statement.source
    parser = Parser(source)
    parser.at = begin
    query = parser.query(None)
    if parser.at < parser.end:
        raise parser.unreadable("the end")
    scope = Scope(source)
    scope.add_query(statement.names, query)
    for ref, one in scope.targets.items():
        if one.form not in ("inner", "system") and (one.form != "single" or one.keyspace != target.keyspace):
            raise _elsewhere(
                source, ref.span, "its rows are elsewhere", "CREATE the table, then INSERT … SELECT."
            )
    text.blocks(query.all_blocks(), scope)


def _elsewhere(
    source: Source, span: Span, reason: str, alternative: str = "Name the tables one by one."
) -> Refuse:
    name = source.text(*span).decode("utf-8", "replace")
    what = f"this {source.tokens[0].text} with '{name}'"
    return Unsupported(what=what, reason=reason, alternative=alternative)
