"""Joins of two tables by an ID, which two reads can answer: see plans/join.py.

    SELECT p.*, m.sequence FROM board_has_pins m JOIN pins p ON p.id = m.pin_id
    WHERE m.board_id = X AND p.ts > '2024-01-01' ORDER BY m.sequence DESC LIMIT 50

The first table's shards are known, and its rows say which of the second are wanted. It must be certain that
the answer is the server's: each condition is one table's own or the equality that joins them, each column
shown is one table's, and the order is the first one's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from rewriter.plain.unsharded import Text
from rewriter.plans.gather import quoted
from rewriter.plans.join import Join, Shown, Side
from rewriter.route.context import Statement
from rewriter.route.predicates import Conditions
from rewriter.route.scope import Chain, Refuse, Scope, chain_at, chains
from rewriter.route.values import Slots, Value
from rewriter.splice import Part, Template
from rewriter.text.aggregates import is_aggregate
from rewriter.text.facts import Block, Projection, Span, TableRef
from rewriter.text.spans import unwrapped
from rewriter.text.tokens import HINT

from .deterministic import assigns, deterministic
from .top import meant, number_of

_MODIFIERS: Final = frozenset({"ALL"})


class Reads(NamedTuple):
    """What the rule asks of the gathering that it stands beside."""

    narrowed: Callable[[TableRef, list[Span]], bool]
    """Whether these conditions make reading the table no scatter."""
    own: Callable[[Span, TableRef, Block], bool]
    """Whether an expression is one of nothing but the table's columns, the same everywhere."""
    text: Callable[[Span], tuple[Part, ...]]
    source: Callable[[TableRef, list[Span]], Template]
    """FROM and WHERE of the table's read with these conditions."""
    label: Callable[[TableRef], str]


class _Cannot(Exception):
    """It is no case for this."""


def join_of(
    statement: Statement,
    scope: Scope,
    block: Block | None,
    conditions: Conditions,
    slots: Slots,
    reads: Reads,
) -> Join | None:
    """How a statement that is this block is answered by two reads; None when that is not certain."""
    if block is None or len(block.tables) != 2 or not _plain(statement, scope, block):
        return None
    for second in (1, 0):
        try:
            return _Joining(statement, scope, block, conditions, slots, reads, second).plan()
        except (_Cannot, Refuse):
            continue
    return None


def _plain(statement: Statement, scope: Scope, block: Block) -> bool:
    """Whether the statement has nothing but tables, conditions, order and LIMIT."""
    source = statement.source
    targets = [scope.targets[ref] for ref in block.tables]
    if any(target.form != "sharded" or target.table is None for target in targets):
        return False
    if targets[0].keyspace != targets[1].keyspace or not set(block.modifiers) <= _MODIFIERS:
        return False
    odd = (block.group, block.having, block.windows, block.lock, block.into, block.odd, block.queries)
    if any(odd) or block.odd_joins or block.shared_columns or statement.names.env.exact:
        return False
    if any(token.kind == HINT for token in source.tokens) or not statement.second.agreed(block):
        return False
    spans = [span for _, span in block.expressions()]
    return not any(
        source.is_word(at, "OVER") or is_aggregate(source, at) or assigns(source, span)
        for span in spans
        for at in range(*span)
    )


class _Joining:
    """The rule at work; `second` is the index of the table to be read by the other one's rows."""

    def __init__(
        self,
        statement: Statement,
        scope: Scope,
        block: Block,
        conditions: Conditions,
        slots: Slots,
        reads: Reads,
        second: int,
    ) -> None:
        self.statement = statement
        self.source = statement.source
        self.scope = scope
        self.block = block
        self.conditions = conditions
        self.slots = slots
        self.reads = reads
        self.refs = (block.tables[1 - second], block.tables[second])
        self.outer = bool(block.nullable)
        if block.nullable and block.nullable != {second}:
            raise _Cannot
        self.terms: tuple[list[Span], list[Span]] = ([], [])
        self.links: list[tuple[Chain, Chain]] = []

    def plan(self) -> Join:
        """The plan. Raises _Cannot and Refuse."""
        self._sort_terms()
        if len(self.links) != 1 or not self.reads.narrowed(self.refs[0], self.terms[0]):
            raise _Cannot
        shown, selects = self._shown()
        limit = self.block.limit
        offset = None if limit is None or limit.offset is None else limit.offset
        first, second = (
            Side(
                label=self.reads.label(ref),
                select=Template(select),
                source=self.reads.source(ref, terms),
                filtered=bool(terms),
                column=quoted(ref.label) + b"." + quoted(chain.parts[-1]),
            )
            for ref, select, terms, chain in zip(self.refs, selects, self.terms, self.links[0], strict=True)
        )
        listed = Span(self.block.projections[0].span.first, self.block.select_end)
        return Join(
            first=first,
            second=second,
            shown=shown,
            order=Template(self._order()),
            rows=None if limit is None else self._number(limit.rows),
            offset=None if offset is None else self._number(offset),
            outer=self.outer,
            listed=Template(self.reads.text(listed)),
            reference=self._reference(),
        )

    # conditions

    def _sort_terms(self) -> None:
        """Each condition to the table that it is of."""
        block = self.block
        for condition in block.conditions:
            for term in self.conditions.terms(condition.span):
                self._sort(term, joining=True)
        for term in self.conditions.terms(block.where) if block.where is not None else ():
            self._sort(term, joining=False)

    def _sort(self, term: Span, *, joining: bool) -> None:
        """An ON condition of an outer join says which rows of the second table there are, WHERE which rows of
        the first.
        """
        for number, ref in enumerate(self.refs):
            if self.reads.own(term, ref, self.block):
                if self.outer and joining != bool(number):
                    raise _Cannot
                self.terms[number].append(term)
                return
        if self.outer and not joining:
            raise _Cannot
        self.links.append(self._link(term))

    def _link(self, term: Span) -> tuple[Chain, Chain]:
        """The columns that the tables are joined by, of the first and the second."""
        left = chain_at(self.source, term.first)
        if left is None or not self.source.is_op(left.end, "="):
            raise _Cannot
        right = chain_at(self.source, left.end + 1)
        if right is None or right.end != term.end:
            raise _Cannot
        for one, other in ((left, right), (right, left)):
            if self._table(one) is self.refs[0] and self._table(other) is self.refs[1]:
                table = self.scope.targets[self.refs[1]].table
                if table is not None and self.conditions.routes_by_number(table, other.column):
                    return one, other
        raise _Cannot

    def _table(self, chain: Chain) -> TableRef | None:
        return self.scope.table_of(chain, self.block)

    # what is shown

    def _shown(self) -> tuple[tuple[Shown, ...], tuple[list[Part], list[Part]]]:
        """The columns of the result, and what each read shows."""
        shown: list[Shown] = []
        selects: tuple[list[Part], list[Part]] = ([], [])
        for projection in self.block.projections:
            if projection.star:
                refs = self.scope.starred(self.block, projection)
                if not refs:
                    raise _Cannot
                for ref in refs:
                    side = self.refs.index(ref)
                    selects[side].append(quoted(ref.label) + b".*, ")
                    shown.append(Shown(side, star=True))
                continue
            side = self._side(projection)
            selects[side].extend([*self.reads.text(projection.span), b", "])
            shown.append(Shown(side, star=False))
        return tuple(shown), selects

    def _side(self, projection: Projection) -> int:
        """The side whose a column is. What is computed may be other than NULL where there is no row."""
        span = projection.span
        chain = chain_at(self.source, unwrapped(self.source, span).first)
        whole = chain is not None and chain.end == unwrapped(self.source, span).end
        for side, ref in enumerate(self.refs):
            if self.reads.own(span, ref, self.block) and (whole or not (side and self.outer)):
                return side
        if deterministic(self.source, span) and not any(chains(self.source, span, self.block)):
            return 0
        raise _Cannot

    # order

    def _order(self) -> list[Part]:
        """ORDER BY, of nothing but the first table's columns."""
        order: list[Part] = []
        aliases = {one.alias.lower() for one in self.block.projections if one.alias is not None}
        for item in self.block.order:
            span = meant(self.source, self.block, item.span)
            if span is None or not self.reads.own(span, self.refs[0], self.block):
                raise _Cannot
            if span is item.span and span.end - span.first > 1:
                names = [one for one in chains(self.source, span, self.block) if len(one.parts) == 1]
                if any(one.parts[0].lower() in aliases for one in names):
                    raise _Cannot
            order += [b", " if order else b" ORDER BY ", *self.reads.text(span)]
            order += [b" DESC"] if item.descending else []
        return order

    def _number(self, span: Span) -> Value:
        found = number_of(self.source, self.slots, span)
        if found is None:
            raise _Cannot
        return found

    # column definitions

    def _reference(self) -> Template:
        """The client's own text for one shard, without rows and without order."""
        text = Text(self.statement, parameters=True, on_shards=True)
        if text.slots.names != self.slots.names:
            raise _Cannot
        text.edits.insert_behind(self.block.first, b" /*+ shard(", self.slots.end, b") */")
        if self.block.order_span is not None:
            text.edits.remove(self.block.order_span)
        if self.block.limit is not None:
            text.edits.replace(self.block.limit.span, b"LIMIT 0")
        else:
            text.edits.insert_behind(self.block.end - 1, b" LIMIT 0")
        return text.edits.template()
