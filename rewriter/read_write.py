"""Writes of rows that a SELECT gives, over shards: INSERT … SELECT, and changes whose rows it must find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from config.schema import Kind, Table

from .context import Statement
from .edits import Edits
from .facts import Query
from .fills import fill_parameters
from .parse_write import Change, Insertion
from .plan import Access, Plan, Values
from .scope import Scope, chain_at
from .splice import Part, Template
from .tokens import Source, quote_name
from .values import Slots

_ENDS: Final = ("WHERE", "ORDER", "LIMIT")


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadThenWrite(Plan):
    """A write of rows that a SELECT gives: `select` is planned and run by itself, then the write.

    INSERT … SELECT becomes `head` VALUES rows `tail`. An UPDATE or DELETE whose rows a SELECT must find has
    the `key` that names them: it becomes `head` WHERE key IN (the values) `tail`. `nothing`: what the client
    is told when there is no row. `ignore`: it says IGNORE.
    """

    kind: ClassVar[str] = "read_write"
    access: Access = Access.WRITE
    select: Template
    head: Template
    tail: Template
    key: bytes = b""
    nothing: bytes = b""
    ignore: bool = False

    def write(self, values: Values, rows: bytes) -> bytes:
        """The write of these rows (joined by commas)."""
        head, tail = self.head.render(values), self.tail.render(values)
        if self.key:
            return head + b" WHERE " + self.key + b" IN (" + rows + b")" + tail
        return head + b" VALUES " + rows + tail


def plan_insert(statement: Statement, found: Insertion, query: Query, scope: Scope) -> Plan:
    """The plan of INSERT or REPLACE … SELECT."""
    source = statement.source
    tokens, (edits, slots) = source.tokens, _edits(source)
    begin, end = tokens[query.first].start, tokens[query.end - 1].end
    rest = edits.parts(end, tokens[-1].end) if query.end < len(tokens) else ()
    return ReadThenWrite(
        databases=_databases(scope),
        session_slots=tuple(slots.names),
        select=Template(edits.parts(begin, end)),
        head=Template(edits.parts(tokens[0].start, begin)),
        tail=Template((b" ", *rest)),
        nothing=b"Records: 0  Duplicates: 0  Warnings: 0",
        ignore=found.ignore,
    )


def plan_found(
    statement: Statement, found: Change, scope: Scope, *, may_scatter: bool
) -> ReadThenWrite | None:
    """The plan of an UPDATE or DELETE whose rows a SELECT finds by their key; None when it cannot be so.

    `may_scatter`: the statement may concern all shards. Else a subquery must say which rows.
    """
    source, block = statement.source, found.block
    if len(block.tables) != 1 or found.targets or found.returning is not None:
        return None
    ref = block.tables[0]
    table = scope.targets[ref].table
    if ref.form != "table" or table is None or not _unique(table):
        return None
    first = _clauses(source, ref.span.end)
    if first is None or any(query.first < first for query in block.queries):
        return None  # a subquery in SET is of another row on each shard
    if not (may_scatter or _by_subquery(source, table, first)):
        return None
    key = quote_name(ref.label) + b"." + quote_name(table.routing)
    edits, slots = _edits(source)
    parts: list[Part] = [b"SELECT " + key + b" FROM "]
    parts += _parts(source, edits, ref.span.first, ref.span.end)
    if ref.alias is not None:
        parts.append(b" AS " + quote_name(ref.alias))
    parts += [b" ", *_parts(source, edits, first, len(source.tokens))]
    return ReadThenWrite(
        databases=_databases(scope),
        session_slots=tuple(slots.names),
        select=Template(parts),
        head=Template(_parts(source, edits, 0, first)),
        tail=Template(_still_true(source, edits, found)),
        key=key,
        nothing=b"Rows matched: 0  Changed: 0  Warnings: 0" if found.verb == "UPDATE" else b"",
        ignore=found.ignore,
    )


def _unique(table: Table) -> bool:
    """Whether the routing column names one row."""
    if table.kind in (Kind.OBJECT, Kind.TIMED):
        return True
    column = table.column(table.routing)
    return table.kind is Kind.HASHED and column is not None and "PRIMARY KEY" in column.definition.upper()


def _clauses(source: Source, first: int) -> int | None:
    """Where WHERE, ORDER BY or LIMIT begins; None when there is none."""
    at = first
    while at < len(source.tokens):
        if source.is_word(at, *_ENDS) and not source.is_op(at - 1, "."):
            return at
        at = source.closing.get(at, at) + 1
    return None


def _by_subquery(source: Source, table: Table, first: int) -> bool:
    """Whether the routing column is compared with a subquery."""
    for at in range(first, len(source.tokens)):
        chain = chain_at(source, at)
        if chain is None or chain.column != table.routing.upper():
            continue
        opens = chain.end + 1 if source.is_word(chain.end, "IN") or source.is_op(chain.end, "=") else -1
        if opens > 0 and source.is_op(opens, "(") and source.is_word(opens + 1, "SELECT", "WITH"):
            return True
    return False


def _still_true(source: Source, edits: Edits, found: Change) -> list[Part]:
    """The condition once more, so that no row is changed that somebody else has changed meanwhile; nothing
    when it has subqueries, which the write itself could not answer.
    """
    where = found.block.where
    if where is None or any(where.first <= query.first < where.end for query in found.block.queries):
        return []
    return [b" AND (", *_parts(source, edits, *where), b")"]


def _edits(source: Source) -> tuple[Edits, Slots]:
    """The client's text, with the parameters of a prepared statement filled in."""
    edits, slots = Edits(source), Slots(len(source.literals))
    fill_parameters(source, slots, edits)
    return edits, slots


def _parts(source: Source, edits: Edits, first: int, end: int) -> list[Part]:
    """The text from one token to before another."""
    return list(edits.parts(source.tokens[first].start, source.tokens[end - 1].end))


def _databases(scope: Scope) -> tuple[str, ...]:
    named = (target.database for target in scope.targets.values() if target.form != "inner")
    return tuple(dict.fromkeys(named))
