"""A SELECT to pieces and a rest: see gather.py.

What a piece leaves out can never matter: the conditions that it takes over are those that every row of the
table must fulfil, they name nothing but its own columns and constants, and the rest checks them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from rewriter.plain.unsharded import Text
from rewriter.plan import Access, Plan, Reject
from rewriter.plans.gather import SCRATCH, Gather, Home, Link, Piece, Top, quoted
from rewriter.plans.join import Join
from rewriter.route.columns import add_labels
from rewriter.route.context import Splicer, Statement
from rewriter.route.hidden import WITH_DELETED, hiding
from rewriter.route.predicates import Relation
from rewriter.route.scope import Chain, Refuse, Scope, chains
from rewriter.route.values import slot_at
from rewriter.splice import Part, Template
from rewriter.sql.statements.effects import Effects
from rewriter.text.aggregates import is_aggregate
from rewriter.text.edits import Edits
from rewriter.text.facts import Block, Query, Span, TableRef
from rewriter.text.locking import lock_of, locks
from rewriter.text.tokens import WORD
from rewriter.text.written import as_written, encoded

from .deterministic import assigns, deterministic, varies
from .joined import Reads, join_of
from .links import Links, chained
from .partial import Combined, combined
from .pushed import Found, Pushed, Pushing, Shared
from .top import top
from .ungathered import TABLES, refusal

_RESERVED: Final = frozenset(
    {"AND", "OR", "NOT", "IS", "NULL", "LIKE", "IN", "BETWEEN", "TRUE", "FALSE", "DIV", "MOD", "XOR"}
    | {"REGEXP", "RLIKE", "CASE", "WHEN", "THEN", "ELSE", "BINARY"}
)
"""Words in conditions that are never columns. END is one behind CASE."""
_ANY_ORDER: Final = frozenset({"COUNT", "BIT_AND", "BIT_OR", "BIT_XOR"})
"""Aggregates that give the same in any order of rows."""


def plan_gather(statement: Statement, query: Query, scope: Scope) -> Gather | Reject | None:
    """The plan of gathering a SELECT's rows, or why that cannot answer it; None when it is no case for this.
    May raise Refuse.
    """
    refs = [ref for ref, target in scope.targets.items() if target.form in TABLES]
    refs.sort(key=lambda ref: ref.span.first)
    if not refs:
        return None
    refused = refusal(statement, query, scope, refs)
    if refused is not None:
        return refused
    gathering = _Gathering(statement, query, scope, refs)
    full = gathering.plan()
    if full is None:
        return None
    if gathering.effects is not None and gathering.effects.variables:
        return full  # all rows are counted
    found = _combined(statement, query, scope, gathering.reopened())
    if not found:
        return full
    grouped = _Gathering(statement, query, scope, refs, found).plan(gathering.order)
    return full if grouped is None else replace(grouped, full=full)


def _combined(
    statement: Statement, query: Query, scope: Scope, reopened: set[TableRef]
) -> dict[TableRef, Combined]:
    """The references whose blocks are combined from groups that the shards make."""
    if any(block.into is not None for block in query.all_blocks()):
        return {}
    found = {}
    for block in query.all_blocks():
        ref = block.tables[0] if len(block.tables) == 1 else None
        if ref is not None and ref not in reopened and statement.second.agreed(block):
            how = combined(statement, scope, block, ref)
            if how is not None:
                found[ref] = how
    return found


def or_gather(statement: Statement, query: Query, scope: Scope, plan: Plan) -> Plan:
    """`plan`; gathering in its place, or for what it cannot do, where that is possible."""
    refusal = plan.refusal
    if refusal is not None and refusal.error in ("not_supported_yet", "ambiguous_column"):
        return plan_gather(statement, query, scope) or plan
    if plan.scatter_refusal is not None:
        return plan.with_alternative(plan_gather(statement, query, scope))
    return plan


class _Gathering:
    """One statement on its way to pieces and a rest."""

    def __init__(
        self,
        statement: Statement,
        query: Query,
        scope: Scope,
        refs: list[TableRef],
        grouped: dict[TableRef, Combined] | None = None,
    ) -> None:
        self.grouped = grouped or {}
        self._owners: dict[tuple[Span, Block], TableRef | None] = {}
        self._in_orders: dict[Block, bool] = {}
        self._pushed: Found | None = None
        self.order: list[tuple[TableRef, Link | None]] = []
        self.statement = statement
        self.source = statement.source
        self.query = query
        self.scope = scope
        self.refs = refs
        self.blocks = list(query.all_blocks())
        self.splicer = Splicer(statement, scope)
        self.conditions = self.splicer.conditions
        self.narrowing = self.splicer.narrowing
        self.effects = statement.effects
        self.text = Text(statement, parameters=True, on_shards=True, layouts=self.splicer.layouts)
        for block in self.blocks:
            for span in _conditions(block):
                try:
                    self.conditions.find(span, block)
                except Refuse:  # an ambiguous name: the server shall say so
                    continue

    def plan(self, order: list[tuple[TableRef, Link | None]] | None = None) -> Gather | None:
        """The plan; None with hints that choose a shard, which is no case for this. `order`: that of the
        pieces, of another plan of the statement that has the same.
        """
        if self.splicer.hints.shard is not None or self.splicer.hints.same_shard_as is not None:
            return None
        terms = {ref: self._terms(ref) for ref in self.refs}
        found, bounded = self._ordered(terms)
        self.order = order = order or found
        reopened = self.reopened()
        names = self._names()
        pieces = tuple(
            replace(
                self._piece(ref, terms[ref], names),
                link=link,
                bounded=ref in bounded if link is None else link.bounded,
                real=ref in reopened,
                top=self._top(ref, terms[ref]) if link is None else None,
            )
            for ref, link in order
        )
        return self._whole(pieces, [ref for ref, _ in order])

    def bounded(self) -> set[TableRef]:
        """The tables whose rows the statement names."""
        hinted = self.splicer.hints
        if hinted.shard is not None or hinted.same_shard_as is not None:
            return set(self.refs)
        terms = {ref: self._terms(ref) for ref in self.refs}
        order, bounded = self._ordered(terms)
        return {ref for ref, link in order if ref in bounded or (link is not None and link.bounded)}

    def _ordered(
        self, terms: dict[TableRef, list[Span]]
    ) -> tuple[list[tuple[TableRef, Link | None]], set[TableRef]]:
        """The order of the pieces, and those that say themselves which shards they are of."""
        narrowed = {ref for ref in self.refs if self._narrowed(ref, terms[ref])}
        implied = {ref for ref in self.refs if ref not in narrowed and self._implied(ref)}
        second = self.statement.second
        links = Links(self.source, self.scope, self.query, self.refs, self.conditions, second)
        order = links.order(narrowed, implied, {ref for ref in self.refs if terms[ref]})
        return order, narrowed | implied

    def narrowing_terms(self, refs: list[TableRef]) -> dict[TableRef, list[Span]]:
        """The conditions that make a piece no scatter, by tables."""
        found: dict[TableRef, list[Span]] = {}
        for ref in refs:
            found[ref] = [one for one in self._terms(ref) if self._narrowed(ref, [one])]
            table = self.scope.targets[ref].table
            for one in self.pushed(ref) if table is not None else ():
                if table is not None and one.narrows(self.narrowing, self.conditions, table):
                    found[ref] += one.spans
        return found

    # what a piece leaves out

    def _terms(self, ref: TableRef) -> list[Span]:
        """The conditions that a piece takes over."""
        block = self.scope.blocks[ref]
        if not self._agreed(block):
            return []
        if ref in self.grouped:
            return [] if block.where is None else [block.where]
        number = block.tables.index(ref)
        found = []
        for condition in block.conditions:
            if number in condition.narrows and not assigns(self.source, condition.span):
                solid = number in condition.solid
                found += [
                    term
                    for term in self.conditions.terms(condition.span)
                    if self._mine(term, ref, block, solid=solid)
                ]
        if block.where is not None and not assigns(self.source, block.where):
            solid = number not in block.nullable and not block.odd_joins
            terms = self.conditions.terms(block.where)
            found += [term for term in terms if self._mine(term, ref, block, solid=solid)]
        return found

    def _agreed(self, block: Block) -> bool:
        """Whether both readers see the same conditions; also when there are none."""
        return not _conditions(block) or self.statement.second.agreed(block)

    def _mine(self, term: Span, ref: TableRef, block: Block, *, solid: bool) -> bool:
        """Whether rows of `ref` for which `term` is not true can be left out."""
        if self.effects is not None and self.effects.variables and varies(self.source, term):
            return False
        if not self._own(term, ref, block):
            return False
        # one that does not route may be true for a row of NULLs
        return solid or not self.narrowing.route(term, ref).unbounded

    def _own(self, span: Span, ref: TableRef, block: Block) -> bool:
        """Whether an expression names nothing but columns of `ref`, and gives the same everywhere."""
        if any(span.first <= query.first < span.end for query in block.queries):
            return False
        match = self.conditions.matches.get(span)
        if match is not None:
            return match.ref is ref and match.relation is not Relation.COLUMN
        return self._owner(span, block) is ref

    def _owner(self, span: Span, block: Block) -> TableRef | None:
        """The table that all columns in an expression are of, if there is one and the expression gives the
        same everywhere.
        """
        if (span, block) not in self._owners:
            known = deterministic(self.source, span)
            self._owners[span, block] = self._only(span, block) if known else None
        return self._owners[span, block]

    def _only(self, term: Span, block: Block) -> TableRef | None:
        found: TableRef | None = None
        for chain in chains(self.source, term, block):
            if self._keyword(chain, term):
                continue
            try:
                ref = self.scope.table_of(chain, block)
            except Refuse:
                return None
            if ref is None or found not in (None, ref):
                return None
            found = ref
        return found

    def _keyword(self, chain: Chain, term: Span) -> bool:
        if len(chain.parts) > 1 or self.source.tokens[chain.first].kind != WORD:
            return False
        if chain.column == "END":
            return any(self.source.is_word(at, "CASE") for at in range(term.first, chain.first))
        return chain.column in _RESERVED

    def _narrowed(self, ref: TableRef, terms: list[Span]) -> bool:
        """Whether the piece is no scatter."""
        if self.scope.targets[ref].form != "sharded":
            return True
        return any(not self.narrowing.route(term, ref).unbounded for term in terms)

    def _implied(self, ref: TableRef) -> bool:
        """Whether conditions on other columns make it no scatter."""
        table = self.scope.targets[ref].table
        return table is not None and any(
            one.narrows(self.narrowing, self.conditions, table) for one in self.pushed(ref)
        )

    # what there is of a table

    def _in_order(self, block: Block) -> bool:
        """Whether the answer may depend on the order of the block's rows: sums of floating point numbers and
        lists of values are made of them, or groups show one of several equal texts.
        """
        source = self.source
        if block.group or {"DISTINCT", "DISTINCTROW"} & set(block.modifiers):
            return True
        if block not in self._in_orders:
            self._in_orders[block] = any(
                is_aggregate(source, at) and not source.is_word(at, *_ANY_ORDER)
                for _, span in block.expressions()
                for at in range(*span)
            )
        return self._in_orders[block]

    def _top(self, ref: TableRef, terms: list[Span]) -> Top | None:
        """How many of its first rows are enough; None for all."""
        block = self.scope.blocks[ref]
        counted = self.effects is not None and self.effects.variables
        if counted or self.scope.targets[ref].form != "sharded" or ref in self.grouped:
            return None
        if block.limit is None or not self.statement.second.agreed(block):
            return None
        if block.where is not None and not set(self.conditions.terms(block.where)) <= set(terms):
            return None

        def own(span: Span, block: Block) -> bool:
            inside = any(span.first <= query.first < span.end for query in block.queries)
            return not inside and self._owner(span, block) is ref

        return top(self.source, self.query, ref, self.text.slots, own, self._taken)

    def _names(self) -> frozenset[str] | None:
        """All names in the statement, lower case; None when a NATURAL join or an index hint needs more."""
        source = self.source
        if any("*" in block.shared_columns for block in self.blocks):
            return None
        if any(source.is_word(at, "INDEX", "KEY") for at in range(len(source.tokens))):
            return None
        return frozenset(token.name.lower() for token in source.tokens if token.kind in (WORD, "name"))

    def _starred(self, ref: TableRef) -> bool:
        block = self.scope.blocks[ref]
        return any(one.star and ref in self.scope.starred(block, one) for one in block.projections)

    def _piece(self, ref: TableRef, terms: list[Span], names: frozenset[str] | None) -> Piece:
        target = self.scope.targets[ref]
        taken = [self._taken(term) for term in terms] + [
            one.text(self._filled, ref.label) for one in self.pushed(ref)
        ]
        routing = None
        if target.table is not None and target.form == "sharded":
            both = (target.table.routing, target.table.shard_key)
            routing = frozenset(name.lower() for name in both if name)
        wanted = None if self._starred(ref) else names
        shown = b"*"
        if wanted is not None and target.columns:
            shown = b", ".join(quoted(name) for name in target.columns if name in wanted) or b"1"
        how = self.grouped.get(ref)
        return Piece(
            label=self._label(ref),
            home=self._home(ref),
            source=self._source(ref, taken),
            filtered=bool(taken),
            wanted=wanted,
            shown=shown if how is None else b"*",
            groups=None if how is None else how.groups,
            named=quoted(ref.label),
            in_order=self._in_order(self.scope.blocks[ref]),
            database=encoded(target.database),
            is_object=target.is_object and target.form == "sharded",
            routing=routing,
            lock=lock_of(self.source, ref, self.scope.blocks[ref]),
            hint=b"" if self.splicer.hides or not hiding(self.scope, [ref]) else WITH_DELETED,
        )

    def _label(self, ref: TableRef) -> str:
        """The reference's name for people."""
        name = f"{self.scope.targets[ref].database}.{ref.name}"
        return name if ref.alias is None else f"{name} AS {ref.alias}"

    def _source(self, ref: TableRef, conditions: Iterable[tuple[Part, ...]]) -> Template:
        """FROM and WHERE of a SELECT of its rows."""
        parts: list[Part] = [b" FROM ", quoted(self.scope.targets[ref].database) + b"." + quoted(ref.name)]
        if ref.alias is not None:
            parts += [b" AS ", quoted(ref.alias)]
        for number, text in enumerate(conditions):
            parts += [b" AND (" if number else b" WHERE (", *text, b")"]
        return Template(parts)

    def _join(self) -> Join | None:
        """How two reads answer it, without copies."""
        known = (
            Effects() if self.effects is None else self.effects._replace(found_rows="")
        )  # it counts itself
        if known != Effects() or self.grouped:
            return None
        reads = Reads(
            self._narrowed,
            self._own,
            self._taken,
            lambda ref, terms: self._source(ref, map(self._taken, terms)),
            self._label,
        )
        block = self.query.single()
        return join_of(self.statement, self.scope, block, self.conditions, self.text.slots, reads)

    def pushed(self, ref: TableRef) -> list[Pushed | Shared]:
        """The conditions on derived tables that hold for the rows of `ref`."""
        if self.effects is not None and self.effects.variables:
            return []
        if self._pushed is None:
            source, scope = self.source, self.scope
            found = Pushing(
                source,
                scope,
                self.query,
                self.conditions,
                self.statement.second,
                partial(deterministic, source),
                self._keyword,
            )
            self._pushed = found.all(self.refs)
        return self._pushed.get(ref, [])

    def _taken(self, term: Span) -> tuple[Part, ...]:
        """A condition's text, with the values of parameters in it."""
        return self._filled(term).inside(term)

    def _filled(self, term: Span) -> Edits:
        edits = Edits(self.source)
        for at in range(*term):
            slot = slot_at(self.source, at) if at in self.source.marks else None
            if slot is not None:
                edits.replace(Span(at, at + 1), self.text.slots.index(slot[0]))
        return edits

    def _home(self, ref: TableRef) -> Home:
        target = self.scope.targets[ref]
        database: bytes | None = target.physical or encoded(target.database)
        if target.form == "sharded":
            database = None
        keyspace = "" if target.form == "default" else target.keyspace
        return Home(keyspace, target.shard, database, as_written(ref.name))

    def reopened(self) -> set[TableRef]:
        """The tables in CTEs, when one of them is used more than once."""
        found = chained(self.query)
        if not found.several:
            return set()
        return {ref for cte in found.uses for block in cte.all_blocks() for ref in block.tables}

    # the rest

    def _whole(self, pieces: tuple[Piece, ...], refs: list[TableRef]) -> Gather:
        text = self.text
        first = text.slots.end
        for number, ref in enumerate(refs):
            parts: list[Part] = [SCRATCH + b".", first + number]
            if ref.alias is None and not self.source.is_word(ref.span.first - 1, "TABLE"):
                parts += [b" AS ", quoted(ref.name)]
            text.edits.replace(ref.span, *parts)
        for span in self._qualifiers(refs):
            text.edits.replace(span, b"")
        for how in self.grouped.values():
            for span, edit in how.edits:
                text.edits.replace(span, *edit)
        for block in self.blocks:
            add_labels(self.source, block, text.edits, spaces=self.statement.spaces)
            if block.lock is not None:
                text.edits.remove(block.lock)  # the pieces have locked what is copied
        databases = dict.fromkeys(
            target.database for target in self.scope.targets.values() if target.form != "inner"
        )
        return Gather(
            access=Access.WRITE if locks(self.query) else Access.READ,
            session_slots=tuple(text.slots.names),
            databases=tuple(databases),
            effects=self.effects,
            join=self._join(),
            pieces=pieces,
            rest=text.edits.template(),
        )

    def _qualifiers(self, refs: Iterable[TableRef]) -> Iterator[Span]:
        """The databases in `demo.pins.id` and `demo.pins.*`."""
        source = self.source
        known = {(self.scope.targets[ref].database, ref.label) for ref in refs}
        for at in range(len(source.tokens)):
            if not source.is_name(at) or source.is_op(at - 1, ".") or not source.is_op(at + 1, "."):
                continue
            if not source.is_name(at + 2) or not source.is_op(at + 3, "."):
                continue
            if (source.tokens[at].name, source.tokens[at + 2].name) in known:
                yield Span(at, at + 2)


def _conditions(block: Block) -> list[Span]:
    """WHERE and the ONs."""
    spans = [condition.span for condition in block.conditions]
    return [*spans, block.where] if block.where is not None else spans


def bounded(statement: Statement, query: Query, scope: Scope) -> set[TableRef]:
    """The tables of which the conditions say which rows matter, so that reading them is no scatter."""
    refs = [ref for ref, target in scope.targets.items() if target.form in TABLES]
    refs.sort(key=lambda ref: ref.span.first)
    return _Gathering(statement, query, scope, refs).bounded()


def narrowing_terms(statement: Statement, query: Query, scope: Scope) -> dict[TableRef, list[Span]]:
    """The conditions by which the tables of a gathered SELECT find their shards, also those on other columns
    than their own.
    """
    refs = [ref for ref, target in scope.targets.items() if target.form in TABLES]
    return _Gathering(statement, query, scope, refs).narrowing_terms(refs)
