"""Two votes on where rows can be: the first reader's routes and the second one's.

The first reader knows where clauses and comparisons stand, and narrows by plain ones. The second one has the
tree, on which the algebra narrows by more. A plan is narrowed only as far as both readings allow: the block
must have the same tables and the same clauses to both, and of two routes that differ the wider one is taken.
"""

from __future__ import annotations

from collections.abc import Callable

from rewriter.text.facts import Block, Span, TableRef
from rewriter.text.tokens import INTEGER, Source
from rewriter.tree.second import SecondReader

from .algebra import Algebra
from .predicates import Conditions, Match
from .routing import ALL, Route, either
from .scope import Scope


class Narrowing:
    """The routes of one statement. `steer` is told of the literals that they depend on."""

    def __init__(
        self,
        source: Source,
        scope: Scope,
        conditions: Conditions,
        second: SecondReader,
        steer: Callable[[Span], None],
    ) -> None:
        self._source = source
        self._scope = scope
        self._conditions = conditions
        self._second = second
        self._steer = steer

    def route(self, span: Span, ref: TableRef) -> Route:
        """The shards on which rows of `ref` can be that the condition, of WHERE or ON, is true for."""
        own = self._conditions.route(span, ref)
        if own.unbounded and not self._may_narrow(span):
            return own
        block = self._scope.blocks[ref]
        if self._second.tree is None:
            return own
        if own.unbounded:
            if block.odd_joins or self._has_assignment(span) or not self._second.alike(block):
                return own
            return self._by_algebra(span, block, ref, own)
        if not self._second.agreed(block):
            return ALL
        return self._by_algebra(span, block, ref, own)

    def equalities(self, span: Span, block: Block) -> list[Match]:
        """The equalities of routing columns that must be true for the condition of `block` to be."""
        found = self._conditions.equalities(span)
        return found if found and self._second.agreed(block) else []

    def _by_algebra(self, span: Span, block: Block, ref: TableRef, own: Route) -> Route:
        conditions = self._conditions
        before = len(conditions.comparisons), len(conditions.ranges)
        algebra = Algebra(conditions, block, ref)
        term = self._second.condition(span, block)
        try:
            found = ALL if term is None else algebra.true(term)
        except RecursionError:
            return own
        if found.unbounded or (own.covers(found) and not own.unbounded):
            del conditions.comparisons[before[0] :], conditions.ranges[before[1] :]
        if not own.unbounded and own.covers(found):
            return own
        for literal in algebra.steering:
            self._steer(literal)
        if own.unbounded:
            return own if found.unbounded else found
        self._second.differ("a condition")
        return found if found.covers(own) else either([own, found])

    def _may_narrow(self, span: Span) -> bool:
        """Whether the algebra is worth a tree: there is a routing column, or a constant that may be false."""
        source = self._source
        if self._conditions.routes_in(span):
            return True
        return any(
            source.is_word(at, "FALSE", "NULL")
            or (source.at(at).kind == INTEGER and (at == span.first or source.is_word(at - 1, "AND")))
            for at in range(*span)
        )

    def _has_assignment(self, span: Span) -> bool:
        return any(self._source.is_op(at, ":=") for at in range(*span))
