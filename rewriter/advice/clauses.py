"""What the conditions of a statement say of its sharded tables, as the tree has them: which columns equal
constants, which equal columns of other tables, and what names a routing column without narrowing by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from config.schema import Table
from rewriter.fingerprint import digest
from rewriter.route.context import Splicer, Statement
from rewriter.route.outer import strengthen
from rewriter.route.scope import Chain, Refuse, Scope, Target, chain_at, chains
from rewriter.sql.statements.forms import Kind
from rewriter.text.aggregates import is_aggregate
from rewriter.text.facts import Block, Query, Span, TableRef
from rewriter.text.parse import Parser
from rewriter.text.parse_write import WriteParser
from rewriter.text.tokens import Unreadable
from rewriter.tree.terms import COMPARISONS, Term

_PATH: Final = re.compile(
    rb"\s*(?:[`\w]+\.)?`?(\w+)`?\s*->>?\s*['\"](\$[.\w\[\]]+)['\"]\s*"
    rb"|\s*(?:JSON_UNQUOTE\s*\(\s*)?JSON_(?:EXTRACT|VALUE)\s*\(\s*(?:[`\w]+\.)?`?(\w+)`?\s*,\s*['\"](\$[.\w\[\]]+)['\"]\s*\)[\s)]*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Named:
    """A column of a table, or what stands at a JSON path in it."""

    column: str
    path: str = ""

    @property
    def short(self) -> str:
        """What it would be called as a column of its own."""
        return self.path.rpartition(".")[2] if self.path else self.column

    def __str__(self) -> str:
        return f"{self.column}->>'{self.path}'" if self.path else self.column


@dataclass(slots=True, eq=False)
class Used:
    """One reference to a table that the statement does not narrow. `equal`: what equals constants (`lists`:
    those of them that are in lists). `joined`: its columns that equal columns of others. `compared`: what is
    compared otherwise. `spoilt`: conditions, without their literals, that name a routing column and do not
    narrow; `either`: such ORs, which would if all their sides did; `nested`: such that have a subquery.
    `terms`: so many conditions there are.
    """

    name: str
    label: str
    table: Table
    equal: list[Named] = field(default_factory=list)
    lists: list[Named] = field(default_factory=list)
    joined: list[tuple[str, Joint]] = field(default_factory=list)
    compared: list[Named] = field(default_factory=list)
    spoilt: list[str] = field(default_factory=list)
    either: list[str] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    terms: int = 0


@dataclass(frozen=True, slots=True)
class Joint:
    """A column of another reference."""

    target: Target
    name: str
    column: str


@dataclass(slots=True, eq=False)
class Clauses:
    """What there is to see in a statement. `open` are the sharded tables that nothing narrows; `tables` all
    of the schema's that it names; `joined` the equalities of their columns; `verb` its first word. `simple`:
    one SELECT, UPDATE or DELETE of one table. `several`: tables are named. `grouped`: there is GROUP BY.
    `aggregated`: it has aggregates.
    """

    verb: str
    open: list[Used]
    tables: list[Target]
    joined: list[tuple[str, Joint, str, Joint]]
    simple: bool = True
    several: bool = False
    grouped: bool = False
    aggregated: bool = False


def clauses_of(statement: Statement) -> Clauses | None:
    """None for what is no query or change, or cannot be read. Never raises."""
    try:
        return _clauses(statement)
    except (Refuse, Unreadable, RecursionError):
        return None


def _clauses(statement: Statement) -> Clauses | None:
    source = statement.source
    query = _query(statement)
    if query is None:
        return None
    scope = Scope(source)
    scope.add_query(statement.names, query)
    blocks = list(query.all_blocks())
    refs = scope.sharded()
    strengthen(statement, scope, blocks)
    splicer = Splicer(statement, scope)
    splicer.columns.blocks(query.all_blocks())
    routes = dict(zip(refs, splicer.routes(refs), strict=True)) if refs else {}
    reading = _Reading(statement, scope, splicer)
    named = sorted(scope.targets, key=lambda ref: ref.span.first)
    tables = [scope.targets[ref] for ref in named if scope.targets[ref].table is not None]
    return Clauses(
        verb=source.tokens[0].text,
        open=[reading.used(ref) for ref in refs if routes[ref].unbounded],
        tables=tables,
        joined=[pair for block in blocks for pair in reading.pairs(block)],
        simple=len(blocks) == 1 and len(blocks[0].tables) == 1,
        several=len(tables) > 1,
        grouped=any(block.group for block in blocks),
        aggregated=any(is_aggregate(source, at) for at in range(len(source.tokens))),
    )


def _query(statement: Statement) -> Query | None:
    source = statement.source
    if source.is_word(0, "UPDATE", "DELETE"):
        return WriteParser(source).change().whole
    return Parser(source).query(None) if statement.form.kind is Kind.QUERY else None


class _Reading:
    def __init__(self, statement: Statement, scope: Scope, splicer: Splicer) -> None:
        self._statement = statement
        self._source = statement.source
        self._scope = scope
        self._splicer = splicer

    def used(self, ref: TableRef) -> Used:
        """What the conditions say of a reference."""
        table = self._scope.targets[ref].table
        assert table is not None  # it is sharded
        found = Used(ref.name, ref.label, table)
        block = self._scope.blocks[ref]
        routing = {name.lower() for name in (table.routing, table.shard_key, table.strict) if name}
        for span in self._conditions(block, ref):
            for term in self._splicer.conditions.terms(span):
                found.terms += 1
                self._read(self._term(term, block), block, ref, found)
                if not self._splicer.narrowing.route(term, ref).unbounded:
                    continue
                if self._names(term, block, ref, routing):
                    self._spoilt(term, block, found).append(self._masked(term))
        return found

    def _names(self, span: Span, block: Block, ref: TableRef, routing: set[str]) -> bool:
        """Whether a condition names a routing column of `ref`, and no column of another table."""
        owned = [(chain, self._owner(chain, block)) for chain in chains(self._source, span, block)]
        if any(owner not in (None, ref) for _, owner in owned):
            return False
        return any(owner is ref and chain.column.lower() in routing for chain, owner in owned)

    def _spoilt(self, span: Span, block: Block, found: Used) -> list[str]:
        if any(span.first <= query.first < span.end for query in block.queries):
            return found.nested
        term = self._term(span, block)
        return found.either if term is not None and term.kind == "or" else found.spoilt

    def pairs(self, block: Block) -> Iterator[tuple[str, Joint, str, Joint]]:
        """The equalities of columns of two tables of the schema, in one block."""
        for span in [one.span for one in block.conditions] + ([block.where] if block.where else []):
            for part in self._splicer.conditions.terms(span):
                term = self._term(part, block)
                if term is None or term.kind not in ("=", "<=>"):
                    continue
                one, other = (self._joint(side, block) for side in term.parts)
                if one is not None and other is not None and one.name != other.name:
                    yield one.name, one, other.name, other

    def _conditions(self, block: Block, ref: TableRef) -> list[Span]:
        number = block.tables.index(ref)
        spans = [one.span for one in block.conditions if number in one.narrows]
        return [*spans, block.where] if block.where is not None else spans

    def _term(self, span: Span, block: Block) -> Term | None:
        return self._statement.second.condition(span, block)

    def _masked(self, span: Span) -> str:
        """A condition without its literals."""
        return digest(self._source.text(*span), self._statement.names.env.findall)

    def _read(self, term: Term | None, block: Block, ref: TableRef, found: Used) -> None:
        if term is None:
            return
        if term.kind in COMPARISONS:
            for one, other in (term.parts, term.parts[::-1]):
                named = self._named(one, block, ref)
                if named is None:
                    continue
                joint = self._joint(other, block)
                if joint is not None and term.kind in ("=", "<=>"):
                    found.joined.append((named.column, joint))
                elif self._constant(other, block):
                    (found.equal if term.kind in ("=", "<=>") else found.compared).append(named)
        elif term.kind == "in" or term.kind == "between":
            named = self._named(term.parts[0], block, ref)
            if named is not None and all(self._constant(one, block) for one in term.parts[1:]):
                if term.kind == "in":
                    found.equal.append(named)
                    found.lists.append(named)
                else:
                    found.compared.append(named)
        elif term.kind == "strict":
            named = self._named(term.parts[0], block, ref)
            if named is not None:
                found.compared.append(named)

    def _named(self, term: Term, block: Block, ref: TableRef) -> Named | None:
        """The column of `ref` that a term is, or a JSON path in one."""
        if term.span.first < 0:
            return None
        if term.kind == "column":
            chain = chain_at(self._source, term.span.first)
            if chain is None or self._owner(chain, block) is not ref:
                return None
            return Named(chain.parts[-1])
        found = _PATH.fullmatch(self._source.text(*term.span))
        if found is None:
            return None
        column, path = (found[1] or found[3]).decode("utf-8", "replace"), (found[2] or found[4]).decode()
        owners = [
            self._owner(chain, block)
            for chain in chains(self._source, term.span, block)
            if chain.parts[-1] == column
        ]
        return Named(column, path) if owners[:1] == [ref] else None

    def _joint(self, term: Term, block: Block) -> Joint | None:
        if term.kind != "column" or term.span.first < 0:
            return None
        chain = chain_at(self._source, term.span.first)
        ref = None if chain is None else self._owner(chain, block)
        if ref is None or chain is None or self._scope.targets[ref].table is None:
            return None
        return Joint(self._scope.targets[ref], ref.label, chain.parts[-1])

    def _constant(self, term: Term, block: Block) -> bool:
        """Whether it names no column, as far as that is known."""
        if term.kind in ("number", "null", "true", "false"):
            return True
        if term.span.first < 0 or any(
            term.span.first <= query.first < term.span.end for query in block.queries
        ):
            return False
        return all(self._owner(chain, block) is None for chain in chains(self._source, term.span, block))

    def _owner(self, chain: Chain, block: Block) -> TableRef | None:
        try:
            return self._scope.table_of(chain, block)
        except Refuse:
            return None
