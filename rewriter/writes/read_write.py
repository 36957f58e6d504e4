"""INSERT … SELECT over shards, and what the writes that read first have in common."""

from __future__ import annotations

from rewriter.plan import Plan
from rewriter.plans.read_write import InsertRows, ReadThenWrite
from rewriter.route.context import Statement
from rewriter.route.hidden import WITH_DELETED, hiding
from rewriter.route.scope import Scope, Unsupported
from rewriter.route.slot_filling import fill_parameters, take_hints
from rewriter.route.values import Slots
from rewriter.splice import Part, Template
from rewriter.sql.statements.effects import assigns_insert_id
from rewriter.text.edits import Edits
from rewriter.text.facts import Query
from rewriter.text.parse_write import Insertion
from rewriter.text.tokens import Source

from .floats import exact_list
from .of_select import OfSelect


def plan_insert(statement: Statement, found: Insertion, query: Query, scope: Scope) -> Plan:
    """The plan of INSERT or REPLACE … SELECT."""
    source = statement.source
    tokens, (edits, slots) = source.tokens, edits_of(source)
    begin, end = tokens[query.first].start, tokens[query.end - 1].end
    table = scope.targets[found.table].table
    names = [tokens[span.end - 1].name.lower() for span in found.columns or ()]
    if found.columns is None and table is not None:
        names = [name.lower() for name in table.logical_columns]
    alias = OfSelect(statement, found, query, scope, names).edit(edits)
    exact_list(statement, scope, query, edits, names, table)
    _hint(source, query, edits, hint_for(source, scope))
    rest = edits.parts(end, tokens[-1].end) if query.end < len(tokens) else ()
    return ReadThenWrite(
        databases=databases_of(scope),
        session_slots=tuple(slots.names),
        select=Template(edits.parts(begin, end)),
        writes=InsertRows(Template(edits.parts(tokens[0].start, begin)), Template((alias + b" ", *rest))),
        nothing=b"Records: 0  Duplicates: 0  Warnings: 0",
        rows=True,
        ignore=found.ignore,
        on_duplicate=bool(found.on_duplicate),
        assigns_id=assigns_insert_id(source),
    )


def _hint(source: Source, query: Query, edits: Edits, hint: bytes) -> None:
    """Put a hint of the INSERT into its SELECT. Raises Refuse when that is no SELECT."""
    first = next((at for at in range(query.first, query.end) if source.is_word(at, "SELECT")), None)
    if hint and first is None:
        raise Unsupported(what="TABLE", reason="it takes no hint", alternative="Write SELECT * FROM.")
    if hint and first is not None:
        edits.insert_behind(first, b" " + hint)


def edits_of(source: Source) -> tuple[Edits, Slots]:
    """The client's text, with the parameters of a prepared statement filled in."""
    edits, slots = Edits(source), Slots(len(source.literals))
    fill_parameters(source, slots, edits)
    return edits, slots


def parts_of(source: Source, edits: Edits, first: int, end: int) -> list[Part]:
    """The text from one token to before another."""
    return list(edits.parts(source.tokens[first].start, source.tokens[end - 1].end))


def hint_for(source: Source, scope: Scope) -> bytes:
    """What is to stand behind the SELECT of a write whose own hint says that it sees hidden rows."""
    asked = take_hints(source, Edits(source)).with_deleted
    return WITH_DELETED + b" " if asked and hiding(scope, list(scope.targets)) else b""


def databases_of(scope: Scope) -> tuple[str, ...]:
    """The databases that a statement names."""
    named = (target.database for target in scope.targets.values() if target.form != "inner")
    return tuple(dict.fromkeys(named))
