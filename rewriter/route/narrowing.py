"""Two votes on where rows can be: the first reader's routes and the second one's.

The first reader knows where clauses and comparisons stand, and narrows by plain ones. The second one has the
tree, on which the algebra narrows by more. A plan is narrowed only as far as both readings allow: the block
must have the same tables and the same clauses to both, and of two routes that differ the wider one is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rewriter.text.facts import Block, Span, TableRef
from rewriter.text.tokens import INTEGER, Source
from rewriter.tree.second import SecondReader
from rewriter.tree.terms import Term

from .algebra import Algebra, Place
from .predicates import Conditions, Match
from .routing import ALL, Route, either
from .scope import Chain, Refuse, Scope

Column = Callable[[Chain], Place | None]


def _opens(source: Source, at: int) -> bool:
    return source.is_op(at, "(") or source.is_word(at, "AND", "OR", "NOT")


class Narrowing:
    """The routes of one statement. `guard` is told of the literals that they depend on."""

    def __init__(
        self,
        source: Source,
        scope: Scope,
        conditions: Conditions,
        second: SecondReader,
        guard: Callable[[Span], None],
    ) -> None:
        self._source = source
        self._scope = scope
        self._conditions = conditions
        self._second = second
        self._guard = guard

    def route(self, span: Span, ref: TableRef) -> Route:
        """The shards on which rows of `ref` can be that the condition, of WHERE or ON, is true for."""
        own = self._conditions.route(span, ref)
        if own.unbounded and not self._may_narrow(span):
            return own
        block = self._scope.blocks[ref]
        if self._second.tree is None:
            return own
        if own.unbounded:
            if not self._readable(span, block):
                return own
        elif not self._second.agreed(block):
            return ALL
        return self._voted(own, self._second.condition(span, block), self._own_column(block, ref), ref)

    def by_equals(self, span: Span, ref: TableRef, equals: Mapping[tuple[TableRef, str], Place]) -> Route:
        """The same by conditions on columns that tell the routing column of `ref`: `equals` by table and name
        (upper case).
        """
        block = self._scope.blocks[ref]
        if not self._readable(span, block):
            return ALL

        def column(chain: Chain) -> Place | None:
            try:
                table = self._scope.table_of(chain, block)
            except Refuse:
                return None
            return None if table is None else equals.get((table, chain.column))

        return self._voted(ALL, self._second.condition(span, block), column, None)

    def of_having(self, block: Block, ref: TableRef, kept: Callable[[Block, Chain], bool]) -> Route:
        """The shards of rows of `ref` whose groups pass HAVING. `kept`: whether HAVING means a column that
        all rows of a group share.
        """
        span = block.having
        if span is None or not self._conditions.routes_in(span) or not self._readable(span, block):
            return ALL
        own = self._own_column(block, ref)
        return self._voted(
            ALL, self._expression(span), lambda chain: own(chain) if kept(block, chain) else None, None
        )

    def of_columns(self, span: Span, places: Mapping[int, Place | None]) -> Route:
        """The shards by a condition whose columns are known by their first tokens."""
        return self._voted(ALL, self._expression(span), lambda chain: places.get(chain.first), None)

    def equalities(self, span: Span, block: Block) -> list[Match]:
        """The equalities of routing columns that must be true for the condition of `block` to be."""
        found = self._conditions.equalities(span)
        return found if found and self._second.agreed(block) else []

    def _expression(self, span: Span) -> Term | None:
        return self._second.expression(span)

    def _readable(self, span: Span, block: Block) -> bool:
        """Whether the algebra may look at the condition."""
        if block.odd_joins or any(self._source.is_op(at, ":=") for at in range(*span)):
            return False
        return self._second.tree is not None and self._second.alike(block)

    def _own_column(self, block: Block, ref: TableRef) -> Column:
        def column(chain: Chain) -> Place | None:
            try:
                found = self._conditions.routing_column(chain, block)
            except Refuse:
                return None
            return Place(found[1]) if found is not None and found[0] is ref else None

        return column

    def _voted(self, own: Route, term: Term | None, column: Column, ref: TableRef | None) -> Route:
        """The wider one of the first reader's route and the algebra's; its own where the first has none."""
        conditions = self._conditions
        before = len(conditions.comparisons), len(conditions.ranges)
        algebra = Algebra(conditions, column, ref)
        try:
            found = ALL if term is None else algebra.true(term)
        except RecursionError:
            found = own
        agree = not own.unbounded and own.covers(found)
        if agree or found.unbounded:
            del conditions.comparisons[before[0] :], conditions.ranges[before[1] :]
        if agree:
            return own
        for literal in algebra.guards:
            self._guard(literal)
        if own.unbounded:
            return ALL if found.unbounded else found
        self._second.differ("a condition")
        return found if found.covers(own) else either([own, found])

    def _may_narrow(self, span: Span) -> bool:
        """Whether the algebra is worth a tree: there is a routing column, or a constant that may be false."""
        source = self._source
        if self._conditions.routes_in(span):
            return True
        return any(
            source.is_word(at, "FALSE", "NULL")
            or (source.at(at).kind == INTEGER and (at == span.first or _opens(source, at - 1)))
            for at in range(*span)
        )
