"""Planning CALL of what the schema names a procedure: reordering the rows of a mapping table."""

from __future__ import annotations

from config.schema import Database, Table
from rewriter.plan import Plan, Reject
from rewriter.plans.reorder import OrderedRows, Reorder
from rewriter.route.context import Statement, not_yet
from rewriter.route.values import ConstantReader, Slots, Value
from rewriter.text.facts import Span
from rewriter.text.tokens import Source

_ARGUMENTS = 4


def reorder(statement: Statement) -> Plan | None:
    """The rule for CALL of an orderable table's procedure; of any other it is not for this rule to say."""
    source = statement.source
    if not source.is_word(0, "CALL"):
        return None
    found = _called(statement)
    if found is None:
        return None
    (database, table), at = found
    spans = _arguments(source, at)
    if spans is None:
        return None
    if len(spans) != _ARGUMENTS:
        told = {"procedure": f"{database.name}.{table.procedure}", "count": str(len(spans))}
        return Reject(error="reorder_argument_count", arguments=told)
    slots = Slots(len(source.literals))
    reader = ConstantReader(source, slots, statement.layout([table]))
    values: list[Value | None] = []
    for number, span in enumerate(spans, 1):
        value = reader.read(*span) if not _is_null(source, span) else None
        if value is None and not _is_null(source, span):
            reason = f"its argument {number} is no constant"
            return not_yet(f"CALL {table.procedure}", reason, "Give the ID itself, or a user variable.")
        values.append(value)
    return Reorder(
        session_slots=tuple(slots.names),
        databases=(database.name,),
        keyspace=table.keyspace,
        table=f"{database.name}.{table.name}",
        procedure=table.procedure,
        rows=OrderedRows.of(table, database.name),
        arguments=tuple(values),
    )


def _called(statement: Statement) -> tuple[tuple[Database, Table], int] | None:
    """The database and table whose procedure is called, and where its name ends."""
    source, names = statement.source, statement.names
    at, database = 1, names.env.database
    if source.is_name(1) and source.is_op(2, "."):
        at, database = 3, source.tokens[1].name
    if database is None or not source.is_name(at):
        return None
    logical = names.schema.databases.get(database)
    table = logical.reordered_by(source.tokens[at].name) if logical is not None else None
    return None if logical is None or table is None else ((logical, table), at + 1)


def _arguments(source: Source, at: int) -> list[Span] | None:
    """The spans between the commas of `(…)`, which the statement ends with; None for another form."""
    if at == len(source.tokens):
        return []  # CALL name: without parentheses, as servers allow it
    close = source.closing.get(at) if source.is_op(at, "(") else None
    if close is None or close != len(source.tokens) - 1:
        return None
    if close == at + 1:
        return []
    spans, first, depth = [], at + 1, 0
    for token in range(at + 1, close):
        depth += source.is_op(token, "(") - source.is_op(token, ")")
        if not depth and source.is_op(token, ","):
            spans.append(Span(first, token))
            first = token + 1
    return [*spans, Span(first, close)]


def _is_null(source: Source, span: Span) -> bool:
    return span.end - span.first == 1 and source.is_word(span.first, "NULL")
