"""Where the columns of derived tables and CTEs come from, and whether a condition on them holds below.

    SELECT * FROM (SELECT board_id, COUNT(*) AS c FROM board_has_pins GROUP BY board_id) g WHERE board_id = 5

Each row of `g` is made of rows that have its very board_id: only such rows matter. It is so where a row is
made of one row of each table, and for the columns that all rows of a group, of a DISTINCT row, or of each
window's partition share. Of equal texts a group shows one, which a condition may tell from the others: so
there only integers. The rows of a UNION are those of its terms, each with columns of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from rewriter.route.scope import Chain, Refuse, Scope, chain_at
from rewriter.text.aggregates import is_aggregate
from rewriter.text.facts import Block, Query, Span, TableRef
from rewriter.text.tokens import INTEGER, Source
from rewriter.tree.second import SecondReader

from .together import outside

_DEPTH: Final = 8
"""So many derived tables within each other are looked through."""
_PLAIN: Final = frozenset({"ALL"})
_DISTINCT: Final = _PLAIN | {"DISTINCT", "DISTINCTROW"}


class Origin(NamedTuple):
    """A column of a table that the schema knows; `whole`: it holds integers, `unsigned` ones."""

    ref: TableRef
    name: str
    whole: bool
    unsigned: bool


Origins = list[Origin]


class Through:
    """Looks for the origins of columns in one statement. `cte_of`: the CTEs that may be looked into."""

    def __init__(
        self, source: Source, scope: Scope, cte_of: Mapping[TableRef, Query], second: SecondReader
    ) -> None:
        self._source = source
        self._scope = scope
        self._second = second
        self.cte_of = dict(cte_of)

    def origins(
        self, columns: Sequence[Chain], block: Block, *, joined: bool = False, depth: int = _DEPTH
    ) -> list[Origins | None]:
        """Where the values of columns of one row of `block` come from: of each column its origin, in their
        order. Several such lists for the terms of a UNION, None for a term without tables; an empty list when
        it is not known. `joined`: also of tables that an outer join may give rows of NULLs.
        """
        refs = [self._table(one, block) for one in columns]
        ref = refs[0] if refs else None
        if ref is None or not depth or block.odd_joins:
            return []
        if any(one is not ref for one in refs):
            each = [self.origins([one], block, joined=joined, depth=depth) for one in columns]
            single = [one[0] for one in each if len(one) == 1 and one[0] is not None]
            return [[found for one in single for found in one]] if len(single) == len(each) else []
        if ref not in block.tables or (block.tables.index(ref) in block.nullable and not joined):
            return []
        if self._scope.targets[ref].form != "inner":
            return self._known(ref, columns)
        query = ref.query if ref.query is not None else self.cte_of.get(ref)
        if query is None or ref.renamed or self._source.is_op(query.first - 3, ")"):
            return []
        names = [one.parts[-1].lower() for one in columns]
        inner = query.single()
        if inner is not None:
            return self._below(inner, [self._shown(name, inner) for name in names], depth)
        return self._united(query, names, depth)

    def _table(self, chain: Chain, block: Block) -> TableRef | None:
        try:
            return self._scope.table_of(chain, block)
        except Refuse:
            return None

    def _known(self, ref: TableRef, columns: Sequence[Chain]) -> list[Origins | None]:
        known = self._scope.targets[ref].columns
        names = [one.parts[-1].lower() for one in columns]
        if known is None or not set(names) <= set(known):
            return []
        return [[self._origin(ref, name) for name in names]]

    def _origin(self, ref: TableRef, name: str) -> Origin:
        return Origin(ref, name, self._scope.whole(ref, name), self._scope.unsigned(ref, name))

    def _below(
        self, inner: Block, shown: Sequence[Chain | Origin | None], depth: int
    ) -> list[Origins | None]:
        """The origins of columns that the block `inner` shows."""
        transparent = self._transparent(inner)
        found: Origins = []
        chains = [one for one in shown if isinstance(one, Chain)]
        if len(chains) == len(shown) and chains:
            below = self.origins(chains, inner, depth=depth - 1)
            if not transparent:
                below = below if self._grouped(inner, chains) and _whole(below) else []
            return below
        for one in shown:  # some of them of a star
            below = self.origins([one], inner, depth=depth - 1) if isinstance(one, Chain) else []
            single = below[0][0] if len(below) == 1 and below[0] is not None else one
            if not isinstance(single, Origin) or not transparent:
                return []
            found.append(single)
        return [found]

    def _united(self, query: Query, names: list[str], depth: int) -> list[Origins | None]:
        """The origins of columns of a UNION or the like, in each of its terms."""
        terms = [one for one in query.terms if isinstance(one, Block)]
        tail = query.tail
        limited = tail is not None and (
            tail.limit is not None or tail.lock is not None or tail.into is not None
        )
        if (
            query.ctes
            or limited
            or len(terms) != len(query.terms)
            or any(one.star for term in terms for one in term.projections)
        ):
            return []
        labels = [self._scope.label(one).lower() for one in terms[0].projections]
        if any(labels.count(name) != 1 for name in names):
            return []
        places = [labels.index(name) for name in names]
        found: list[Origins | None] = []
        for term in terms:
            if len(term.projections) != len(labels):
                return []
            spans = [term.projections[at].span for at in places]
            if not term.tables and all(self._is_integer(span) for span in spans):
                found.append(None)
                continue
            below = self._below(term, [self._column(span) for span in spans], depth)
            if not below or not _whole(below):
                return []  # with a text among them all of them are texts
            found += below
        return found

    def _is_integer(self, span: Span) -> bool:
        return span.end - span.first == 1 and self._source.at(span.first).kind == INTEGER

    def _column(self, span: Span) -> Chain | None:
        chain = chain_at(self._source, span.first)
        return chain if chain is not None and chain.end == span.end else None

    def _shown(self, name: str, inner: Block) -> Chain | Origin | None:
        """The column that a select list shows under this name, once."""
        found: list[Chain | Origin | None] = []
        for one in inner.projections:
            if one.star:
                for ref in self._scope.starred(inner, one):
                    columns = self._scope.targets[ref].columns
                    if columns is None or ref.form != "table" or self._scope.targets[ref].form == "inner":
                        return None
                    nullable = inner.tables.index(ref) in inner.nullable
                    origin = self._origin(ref, name)
                    found += [None if nullable else origin] * columns.count(name)
            elif self._scope.label(one).lower() == name:
                found.append(self._column(one.span))
        return found[0] if len(found) == 1 else None

    def kept(self, block: Block, column: Chain) -> bool:
        """Whether HAVING may name this column, and means a row's own, or what all rows of a group share."""
        if self._second.tree is None or not self._second.alike(block):
            return False
        if block.shared_columns or block.odd_joins or "ROLLUP" in block.modifiers or block.into is not None:
            return False
        if any(self._source.is_op(at, ":=") for _, span in block.expressions() for at in range(*span)):
            return False
        name, shown = column.parts[-1].lower(), False
        for one in block.projections:
            if one.star:
                shown = True
            elif self._scope.label(one).lower() == name:
                if not self._same(one.span, column, block):
                    return False  # it may be what is meant
                shown = True
        if any(self._source.is_word(at, "OVER") for _, span in block.expressions() for at in range(*span)):
            return False
        if block.group:
            return self._keys_agree(block) and any(self._same(one.span, column, block) for one in block.group)
        return shown and not self._aggregates(block)

    # blocks

    def _transparent(self, block: Block) -> bool:
        """Whether each of the block's rows is made of one row of each of its tables, by themselves."""
        if block.group or block.having is not None or not self._has_rows(block, _PLAIN):
            return False  # of equal texts DISTINCT shows one, and the condition may tell them apart
        spans = [span for _, span in block.expressions()]
        return not any(
            self._source.is_word(at, "OVER") or is_aggregate(self._source, at)
            for span in spans
            for at in range(*span)
        )

    def _has_rows(self, block: Block, modifiers: frozenset[str]) -> bool:
        """Whether nothing but groups, windows and `modifiers` stands between the rows and the result."""
        if block.windows is not None or block.limit is not None or block.odd is not None:
            return False
        if block.into is not None or block.lock is not None or block.odd_joins or block.shared_columns:
            return False
        return set(block.modifiers) <= modifiers and not any(
            self._source.is_op(at, ":=") for _, span in block.expressions() for at in range(*span)
        )

    def _grouped(self, block: Block, columns: Sequence[Chain]) -> bool:
        """Whether all rows that a row of the block's result is made of have the same values of these columns,
        which it shows.
        """
        if not self._has_rows(block, _DISTINCT) or not self._second.agreed(block):
            return False
        return all(self._shared(block, one) for one in columns)

    def _shared(self, block: Block, column: Chain) -> bool:
        if not self._windowed(block, column):
            return False
        if block.group:
            return self._keys_agree(block) and any(self._same(one.span, column, block) for one in block.group)
        return block.having is None and not self._aggregates(block)

    def _same(self, span: Span | None, column: Chain, block: Block) -> bool:
        """Whether this is the column, by the same name or another."""
        other = None if span is None else self._column(span)
        if other is None or other.column != column.column:
            return False
        ref = self._table(other, block)
        return ref is not None and ref is self._table(column, block)

    def _keys_agree(self, block: Block) -> bool:
        """Whether both readers see the same keys. There must be a tree: it knows ROLLUP."""
        tree = self._second.tree
        keys = None if tree is None else tree.groups(block)
        return keys is not None and keys == [one.span for one in block.group]

    def _windowed(self, block: Block, column: Chain) -> bool:
        """Whether the column is among those by which every window is partitioned."""
        source = self._source
        spans = [span for _, span in block.expressions()]
        overs = sum(source.is_word(at, "OVER") for span in spans for at in outside(block, span))
        if not overs:
            return True
        tree = self._second.tree
        windows = [] if tree is None else list(tree.windows(block))
        return len(windows) == overs and all(
            any(self._same(span, column, block) for span in partition) for partition in windows
        )

    def _aggregates(self, block: Block) -> bool:
        """Whether an aggregate that is no window function makes one group of all rows."""
        source = self._source
        return any(
            is_aggregate(source, at) and not source.is_word(source.closing[at + 1] + 1, "OVER")
            for _, span in block.expressions()
            for at in outside(block, span)
        )


def _whole(found: list[Origins | None]) -> bool:
    return all(one.whole for origins in found if origins is not None for one in origins)


def mixed(found: list[Origins | None]) -> bool:
    """Whether a UNION's columns, as `Through.origins` gives them, are perhaps DECIMALs: of signed integers
    and unsigned ones. A DECIMAL is compared with texts in another way.
    """
    legs = [tuple(one.unsigned for one in origins) if origins is not None else None for origins in found]
    some = next((one for one in legs if one is not None), ())
    return any((one if one is not None else (False,) * len(some)) != some for one in legs)
