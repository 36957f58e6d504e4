"""Which conditions narrow a statement, and what would narrow one that runs on all shards: for EXPLAIN ROUTE.

Not a part of any plan: the statement is looked at once more, when somebody asks.
"""

from __future__ import annotations

from .reads.pieces import bounded, narrowing_terms
from .reads.through import Through
from .route.context import Splicer, Statement
from .route.hidden import WITH_DELETED, hiding
from .route.outer import strengthen
from .route.scope import Refuse, Scope
from .sql.statements.forms import Kind
from .text.facts import Block, Query, Span, TableRef
from .text.parse import Parser
from .text.parse_write import WriteParser
from .text.tokens import Unreadable

Reasons = list[tuple[str, str]]
"""Rows of (section, detail)."""


def reasons(statement: Statement) -> Reasons:
    """What narrows each sharded table of a query or change, or would. Never raises."""
    try:
        return _reasons(statement)
    except (Refuse, Unreadable, RecursionError):
        return []


def _reasons(statement: Statement) -> Reasons:
    source = statement.source
    query = _query(statement)
    if query is None:
        return []
    scope = Scope(source)
    scope.add_query(statement.names, query)
    refs = scope.sharded()
    if not refs:
        return []
    strengthen(statement, scope, query.all_blocks())
    splicer = Splicer(statement, scope)
    found = _hidden(splicer, refs)
    if splicer.hints.shard is not None or splicer.hints.same_shard_as is not None:
        return found
    splicer.columns.blocks(query.all_blocks())
    through = Through(source, scope, {}, statement.second)
    routes = dict(zip(refs, splicer.routes(refs, through.kept), strict=True))
    by_pieces, few = narrowing_terms(statement, query, scope), bounded(statement, query, scope)
    for ref in refs:
        spans = _own_terms(splicer, ref) or by_pieces.get(ref, [])
        told = [("narrowed by", f"{_label(ref)}: {_text(statement, span)}") for span in spans]
        if not told and (ref in few or not routes[ref].unbounded):
            told = [("narrowed by", f"{_label(ref)}: what other tables' rows are equal to")]
        found += told or _would(splicer, ref)
    return found


def _query(statement: Statement) -> Query | None:
    """The query, or a change as one."""
    source = statement.source
    if source.is_word(0, "UPDATE", "DELETE"):
        return WriteParser(source).change().whole
    if statement.form.kind is not Kind.QUERY:
        return None
    parser = Parser(source)
    return parser.query(None)


def _hidden(splicer: Splicer, refs: list[TableRef]) -> Reasons:
    """The tables of which a read does not see all rows."""
    if not splicer.hides or splicer.source.is_word(0, "UPDATE", "DELETE"):
        return []
    told = f"({WITH_DELETED.decode()} shows them)"
    return [
        ("hides", f"{_label(ref)}: rows whose {flag} is false {told}")
        for ref, flag in hiding(splicer.scope, refs).items()
    ]


def _own_terms(splicer: Splicer, ref: TableRef) -> list[Span]:
    """The parts of WHERE and ON that narrow the table's rows."""
    block = splicer.scope.blocks[ref]
    return [
        term
        for span in _conditions(block, ref)
        for term in splicer.conditions.terms(span)
        if not splicer.narrowing.route(term, ref).unbounded
    ]


def _conditions(block: Block, ref: TableRef) -> list[Span]:
    number = block.tables.index(ref)
    spans = [one.span for one in block.conditions if number in one.narrows]
    return [*spans, block.where] if block.where is not None else spans


def _would(splicer: Splicer, ref: TableRef) -> Reasons:
    """What would narrow a table that nothing narrows."""
    table = splicer.scope.targets[ref].table
    assert table is not None  # it is sharded
    columns = [name for name in (table.routing, table.shard_key, table.strict) if name]
    found = [
        ("does not narrow", f"{_label(ref)}: {_text(splicer.statement, term)}")
        for span in _conditions(splicer.scope.blocks[ref], ref)
        for term in splicer.conditions.terms(span)
        if any(token.name in columns for token in splicer.source.tokens[term.first : term.end])
    ]
    names = " or ".join(f"`{name}`" for name in columns)
    return [*found, ("would narrow", f"{_label(ref)}: a condition on {names}, by = or IN with constants")]


def _label(ref: TableRef) -> str:
    return ref.name if ref.alias is None else f"{ref.name} {ref.alias}"


def _text(statement: Statement, span: Span) -> str:
    return " ".join(statement.source.text(*span).decode("utf-8", "replace").split())
