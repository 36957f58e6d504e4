"""Which pieces of a gathered statement follow from which: the application's own way of joining.

After `p.id = m.pin_id`, `u.id IN (SELECT user_id FROM …)` or `EXISTS (SELECT 1 FROM m WHERE m.pin_id = p.id)`
only those rows of `p` and `u` matter whose routing column is among the values of the other table's rows. So
that table is gathered first, and the next one is read by these values: user, boards, pins, comments.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rewriter.plans.gather import Link, quoted
from rewriter.route.predicates import Conditions
from rewriter.route.scope import Chain, Refuse, Scope, chain_at, chains
from rewriter.text.facts import Block, Query, Span, TableRef
from rewriter.text.tokens import Source
from rewriter.tree.second import SecondReader

from .through import Through


@dataclass(slots=True)
class Chained:
    """`cte_of`: the CTE that a reference names. `uses`: the same, without a recursive one's own."""

    cte_of: dict[TableRef, Query] = field(default_factory=dict)
    uses: list[Query] = field(default_factory=list)

    def read(self, query: Query, known: dict[str, Query], own: Query | None = None) -> None:
        """Look for references to CTEs in `query`, which is the body of `own`."""
        for name, cte in query.ctes.items():
            self.read(cte, known | {name: cte} if query.recursive else known, cte)
            known = known | {name: cte}
        for term in [*query.terms, *([query.tail] if query.tail is not None else [])]:
            if isinstance(term, Query):
                self.read(term, known, own)
                continue
            for ref in term.tables:
                found = known.get(ref.name) if ref.form == "table" and ref.database is None else None
                if found is not None:
                    self.cte_of[ref] = found
                    if found is not own:
                        self.uses.append(found)
            for inner in term.inner_queries():
                self.read(inner, known, own)

    @property
    def once(self) -> dict[TableRef, Query]:
        """The references to CTEs that are used once, and not by themselves."""
        found = [id(cte) for cte in self.cte_of.values()]
        return {ref: cte for ref, cte in self.cte_of.items() if found.count(id(cte)) == 1}

    def shared(self) -> list[dict[TableRef, Query]]:
        """The references to each CTE that is used more than once, and not by itself."""
        found: dict[int, dict[TableRef, Query]] = {}
        for ref, cte in self.cte_of.items():
            found.setdefault(id(cte), {})[ref] = cte
        uses = [id(one) for one in self.uses]
        return [refs for cte, refs in found.items() if 1 < uses.count(cte) == len(refs)]

    @property
    def several(self) -> bool:
        """Whether some CTE is used more than once."""
        return len({id(cte) for cte in self.uses}) < len(self.uses)


def chained(query: Query) -> Chained:
    """The CTEs of a statement and what refers to them."""
    found = Chained()
    found.read(query, {})
    return found


class Edge(NamedTuple):
    """Rows of `ref` matter only when their routing column (as SQL) is among `values` of `source`. `below`: it
    is a derived table's.
    """

    ref: TableRef
    column: bytes
    source: TableRef
    values: str
    below: bool = False


class Links:
    """The edges of one statement, and the order that follows from them."""

    def __init__(
        self,
        source: Source,
        scope: Scope,
        query: Query,
        refs: list[TableRef],
        conditions: Conditions,
        second: SecondReader,
    ) -> None:
        self._source = source
        self._scope = scope
        self._refs = refs
        self._conditions = conditions
        found = chained(query)
        self._cte_of = found.cte_of
        self._through = Through(source, scope, found.once, second)
        self.edges = [
            edge for block in query.all_blocks() for edge in self._of_block(block) if second.agreed(block)
        ]

    def order(
        self, narrowed: set[TableRef], implied: set[TableRef], filtered: set[TableRef]
    ) -> list[tuple[TableRef, Link | None]]:
        """All references in the order to gather them in, each with the link that narrows it.

        `narrowed` are those that name their shards themselves, `implied` those of which conditions on other
        columns do: a link may leave less of these. `filtered` are those with a condition of any kind.
        """
        found: list[tuple[TableRef, Link | None]] = []
        places: dict[TableRef, int] = {}
        bounded: set[TableRef] = set()
        pending = list(self._refs)
        while pending:
            ref, link = self._next(pending, (narrowed, implied, filtered), places, bounded)
            if ref in narrowed | implied or (link is not None and link.bounded):
                bounded.add(ref)
            places[ref] = len(found)
            found.append((ref, link))
            pending.remove(ref)
        return found

    def _next(
        self,
        pending: list[TableRef],
        known: tuple[set[TableRef], set[TableRef], set[TableRef]],
        places: dict[TableRef, int],
        bounded: set[TableRef],
    ) -> tuple[TableRef, Link | None]:
        narrowed, implied, filtered = known
        for ref in pending:
            if ref in narrowed:
                return ref, None
        usable = [edge for edge in self.edges if edge.ref in pending and edge.source in places]
        usable.sort(key=lambda edge: edge.source not in bounded)
        if not usable or usable[0].source not in bounded:
            for ref in pending:
                if ref in implied:
                    return ref, None
        for edge in usable:
            link = Link(places[edge.source], edge.values, edge.column, edge.source in bounded)
            return edge.ref, link
        linked = {edge.ref for edge in self.edges if edge.source in pending and not edge.below}
        return min(pending, key=lambda ref: (ref not in filtered, ref in linked)), None

    # finding edges

    def _of_block(self, block: Block) -> Iterator[Edge]:
        for condition in block.conditions:
            for term in self._conditions.terms(condition.span):
                yield from self._of_term(term, block, {block.tables[at] for at in condition.narrows})
        if block.where is not None:
            for term in self._conditions.terms(block.where):
                yield from self._of_term(term, block, set(block.tables))

    def _of_term(self, term: Span, block: Block, narrowable: set[TableRef]) -> Iterator[Edge]:
        """`narrowable` are the tables whose rows the condition restricts."""
        source = self._source
        if source.is_word(term.first, "EXISTS") and source.is_op(term.first + 1, "("):
            if source.closing[term.first + 1] == term.end - 1:
                yield from self._of_exists(self._subquery(term.first + 2, block), block, narrowable)
            return
        left = chain_at(source, term.first)
        if left is None:
            return
        right = chain_at(source, left.end + 1) if source.is_op(left.end, "=") else None
        if right is not None and right.end == term.end:
            yield from self._edge(left, block, narrowable, right, block)
            yield from self._edge(right, block, narrowable, left, block)
        opening = self._among(left.end)
        if opening and source.closing.get(opening) == term.end - 1:
            inner = self._subquery(opening + 1, block)
            shown = None if inner is None else self._shown(inner)
            single = source.is_op(left.end, "=") and opening == left.end + 1
            if inner is not None and shown is not None and (not single or self._own(inner)):
                yield from self._edge(left, block, narrowable, shown, inner)

    def _own(self, inner: Block) -> bool:
        """Whether a subquery is the same for each row around it. If not, `= (SELECT …)` may be an error for a
        row: with more than one value.
        """
        if any(inner.inner_queries()):
            return False
        named = [one for _, span in inner.expressions() for one in chains(self._source, span, inner)]
        return all(ref is None or ref in inner.tables for ref in (self._table(one, inner) for one in named))

    def _among(self, at: int) -> int:
        """The parenthesis of a subquery behind `IN`, `=`, `= ANY` or `= SOME` at `at`; 0 for none."""
        source = self._source
        if source.is_op(at, "="):
            at += source.is_word(at + 1, "ANY", "SOME")
        elif not source.is_word(at, "IN"):
            return 0
        return at + 1 if source.is_op(at + 1, "(") else 0

    def _subquery(self, first: int, block: Block) -> Block | None:
        for query in block.queries:
            if query.first == first:
                return query.single()
        return None

    def _shown(self, block: Block) -> Chain | None:
        """The one column that a subquery shows."""
        if len(block.projections) != 1:
            return None
        span = block.projections[0].span
        chain = chain_at(self._source, span.first)
        return chain if chain is not None and chain.end == span.end else None

    def _of_exists(self, inner: Block | None, block: Block, narrowable: set[TableRef]) -> Iterator[Edge]:
        """EXISTS of a subquery that has no row when its WHERE is never true."""
        source = self._source
        if inner is None or inner.group or inner.having is not None or inner.where is None:
            return
        if any(source.is_op(at, "(") for at in range(inner.first, inner.select_end)):
            return  # perhaps an aggregate: it has a row in any case
        for term in self._conditions.terms(inner.where):
            left = chain_at(source, term.first)
            right = (
                None if left is None or not source.is_op(left.end, "=") else chain_at(source, left.end + 1)
            )
            if left is not None and right is not None and right.end == term.end:
                yield from self._edge(left, inner, narrowable, right, inner)
                yield from self._edge(right, inner, narrowable, left, inner)

    def _edge(
        self, chain: Chain, block: Block, narrowable: set[TableRef], other: Chain, inner: Block
    ) -> Iterator[Edge]:
        """The edge by which `other` (in `inner`) narrows the table of `chain` (in `block`), if it does."""
        ref = self._table(chain, block)
        origin = self._origin(other, inner, 10) if ref is not None and ref in narrowable else None
        if ref is None or origin is None:
            return
        targets = [(ref, chain.parts[-1])]
        if ref not in self._refs:  # a derived table, of which a piece may be narrowed
            below = self._through.origins([chain], block, joined=True)
            targets = [(one[0].ref, one[0].name) for one in below if one is not None]
        for target, name in targets:
            table = self._scope.targets[target].table
            known = table is not None and self._conditions.routes_by_number(table, name.upper())
            if known and target in self._refs and origin[0] is not target:
                yield Edge(target, quoted(target.label) + b"." + quoted(name), *origin, target is not ref)

    def _table(self, chain: Chain, block: Block) -> TableRef | None:
        try:
            return self._scope.table_of(chain, block)
        except Refuse:
            return None

    def _origin(self, chain: Chain, block: Block, depth: int) -> tuple[TableRef, str] | None:
        """The table, and its column, that a column comes from, through derived tables and CTEs."""
        ref = self._table(chain, block)
        if ref is None or not depth:
            return None
        name = chain.parts[-1].lower()
        if ref in self._refs:
            return ref, name
        query = ref.query if ref.query is not None else self._cte_of.get(ref)
        if query is None or ref.renamed or self._source.is_op(query.first - 3, ")"):
            return None  # its columns may have other names
        inner = query.single()
        if inner is None:
            return None
        for projection in inner.projections:
            if projection.star or self._scope.label(projection).lower() != name:
                continue
            found = chain_at(self._source, projection.span.first)
            if found is not None and found.end == projection.span.end:
                return self._origin(found, inner, depth - 1)
        if len(inner.tables) == 1 and inner.projections[0].star and inner.tables[0] in self._refs:
            return inner.tables[0], name
        return None
