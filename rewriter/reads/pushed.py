"""Conditions on the columns of derived tables and CTEs, which hold for the rows that these are made of, too.

    SELECT x.id FROM (SELECT p.id, p.ts FROM pins p) x WHERE x.id = 5

Only the pin 5 matters. It is so where each row of the derived table is one of the table's rows, with nothing
between them that looks at several (groups, aggregates, windows, LIMIT), and no outer join makes up rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from rewriter.gather import quoted
from rewriter.route.predicates import Conditions
from rewriter.route.scope import Chain, Refuse, Scope, chain_at, chains
from rewriter.splice import Part
from rewriter.text.aggregates import is_aggregate
from rewriter.text.edits import Edits
from rewriter.text.facts import Block, Query, Span, TableRef
from rewriter.text.tokens import Source

from .links import chained


class Pushed(NamedTuple):
    """A condition, and for the first token of each of its columns the column of the table that it is."""

    span: Span
    columns: dict[int, tuple[Chain, str]]

    def replaced(self, edits: Edits, label: str) -> tuple[Part, ...]:
        """Its text as a condition on the table, which is called `label`. `edits`: what else changes in it."""
        for chain, name in self.columns.values():
            edits.replace(Span(chain.first, chain.end), quoted(label) + b"." + quoted(name))
        return edits.inside(self.span)


class Pushing:
    """Finds such conditions in one statement. `pure`: whether a condition gives the same everywhere."""

    def __init__(
        self,
        source: Source,
        scope: Scope,
        query: Query,
        conditions: Conditions,
        pure: Callable[[Span], bool],
        keyword: Callable[[Chain, Span], bool],
    ) -> None:
        self._source = source
        self._scope = scope
        self._conditions = conditions
        self._pure = pure
        self._keyword = keyword
        found = chained(query)
        once = {id(cte) for cte in found.uses if sum(one is cte for one in found.uses) == 1}
        self._cte_of = {ref: cte for ref, cte in found.cte_of.items() if id(cte) in once}
        self._blocks = list(query.all_blocks())

    def all(self, refs: Iterable[TableRef]) -> dict[TableRef, list[Pushed]]:
        """The conditions by the tables that they are about."""
        wanted, found = set(refs), dict[TableRef, list[Pushed]]()
        for block in self._blocks:
            if not any(self._scope.targets[ref].form == "inner" for ref in block.tables):
                continue
            for term in self._terms(block):
                about = self._about(term, block, wanted)
                if about is not None:
                    found.setdefault(about[0], []).append(about[1])
        return found

    def _terms(self, block: Block) -> list[Span]:
        if block.where is None or block.odd_joins or self._has(block.where, ":="):
            return []
        terms = self._conditions.terms(block.where)
        inner = [query.first for query in block.queries]
        return [one for one in terms if not any(one.first <= at < one.end for at in inner)]

    def _about(self, term: Span, block: Block, wanted: set[TableRef]) -> tuple[TableRef, Pushed] | None:
        if not self._pure(term):
            return None
        columns: dict[int, tuple[Chain, str]] = {}
        refs: set[TableRef] = set()
        for chain in chains(self._source, term, block):
            if self._keyword(chain, term):
                continue
            origin = self._origin(chain, block, 8)
            if origin is None:
                return None
            refs.add(origin[0])
            columns[chain.first] = chain, origin[1]
        if len(refs) != 1 or not refs <= wanted or refs <= set(block.tables):
            return None
        return refs.pop(), Pushed(term, columns)

    def _origin(self, chain: Chain, block: Block, depth: int) -> tuple[TableRef, str] | None:
        """The table, and its column, that a column comes from as it is."""
        try:
            ref = self._scope.table_of(chain, block)
        except Refuse:
            return None
        if ref is None or not depth or ref not in block.tables or block.odd_joins:
            return None
        if block.tables.index(ref) in block.nullable:
            return None
        name = chain.parts[-1].lower()
        if self._scope.targets[ref].form != "inner":
            known = self._scope.targets[ref].columns
            return (ref, name) if known is not None and name in known else None
        query = ref.query if ref.query is not None else self._cte_of.get(ref)
        inner = query.single() if query is not None else None
        if query is None or inner is None or ref.renamed or self._source.is_op(query.first - 3, ")"):
            return None
        return self._shown(name, inner, depth) if self._transparent(inner) else None

    def _shown(self, name: str, inner: Block, depth: int) -> tuple[TableRef, str] | None:
        """Where the column comes from that a select list shows under this name, once."""
        found: list[tuple[TableRef, str] | None] = []
        for one in inner.projections:
            if one.star:
                for ref in self._scope.starred(inner, one):
                    columns = self._scope.targets[ref].columns
                    if columns is None or ref.form != "table" or self._scope.targets[ref].form == "inner":
                        return None
                    nullable = inner.tables.index(ref) in inner.nullable
                    found += [None if nullable else (ref, name)] * columns.count(name)
            elif self._scope.label(one).lower() == name:
                chain = chain_at(self._source, one.span.first)
                whole = chain is not None and chain.end == one.span.end
                found.append(self._origin(chain, inner, depth - 1) if chain is not None and whole else None)
        return found[0] if len(found) == 1 else None

    def _transparent(self, block: Block) -> bool:
        """Whether each of the block's rows is made of one row of each of its tables, by themselves."""
        if block.group or block.having is not None or block.windows is not None or block.limit is not None:
            return False
        if block.odd is not None or block.into is not None or block.lock is not None or block.odd_joins:
            return False
        if not set(block.modifiers) <= {"ALL"} or block.shared_columns:
            return False  # of equal texts DISTINCT shows one, and the condition may tell them apart
        spans = [span for _, span in block.expressions()]
        return not any(
            self._source.is_word(at, "OVER") or is_aggregate(self._source, at) or self._source.is_op(at, ":=")
            for span in spans
            for at in range(*span)
        )

    def _has(self, span: Span, operator: str) -> bool:
        return any(self._source.is_op(at, operator) for at in range(*span))
