"""Conditions that hold for the rows of a table though they do not name it.

    SELECT x.id FROM (SELECT p.id, p.ts FROM pins p) x WHERE x.id = 5
    SELECT p.id FROM user_likes_pins l JOIN pins p ON p.id = l.pin_id WHERE l.pin_id = 5
    SELECT id, ts FROM pins HAVING id = 5

Only the pin 5 matters. They are conditions on derived tables and CTEs (see `through.py`), on a column that is
equal to one of the table's, and those of HAVING on columns that all rows of a group share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from config.schema import Table
from rewriter.plans.gather import quoted
from rewriter.route.algebra import Place
from rewriter.route.narrowing import Narrowing
from rewriter.route.predicates import Conditions
from rewriter.route.scope import Chain, Refuse, Scope, chain_at, chains
from rewriter.splice import Part
from rewriter.text.edits import Edits
from rewriter.text.facts import Block, Query, Span, TableRef
from rewriter.text.tokens import HEX, LIST, PREFIXED, STRING, VARIABLE, Source
from rewriter.tree.second import SecondReader

from .links import chained
from .through import Origin, Origins, Through, mixed

Filled = Callable[[Span], Edits]
"""The edits of a condition's text that give parameters their values."""
Found = dict[TableRef, list["Pushed | Shared"]]


class Pushed(NamedTuple):
    """A condition, and for the first token of each of its columns the column of the table that it is."""

    span: Span
    columns: dict[int, tuple[Chain, str]]

    def text(self, filled: Filled, label: str) -> tuple[Part, ...]:
        """Its text as a condition on the table, which is called `label`."""
        edits = filled(self.span)
        for chain, name in self.columns.values():
            edits.replace(Span(chain.first, chain.end), quoted(label) + b"." + quoted(name))
        return edits.inside(self.span)

    @property
    def spans(self) -> list[Span]:
        """Where it stands."""
        return [self.span]

    def narrows(self, narrowing: Narrowing, conditions: Conditions, table: Table) -> bool:
        """Whether only some shards can have rows of the table that it is true for."""
        keys = {first: conditions.key(table, name.upper()) for first, (_, name) in self.columns.items()}
        places = {first: None if key is None else Place(key) for first, key in keys.items()}
        return not narrowing.of_columns(self.span, places).unbounded


class Shared(NamedTuple):
    """The conditions on each use of a CTE that is used several times: one use's must hold."""

    uses: tuple[tuple[Pushed, ...], ...]

    def text(self, filled: Filled, label: str) -> tuple[Part, ...]:
        """Their text as a condition on the table, which is called `label`."""
        parts: list[Part] = []
        for number, use in enumerate(self.uses):
            parts.append(b" OR (" if number else b"(")
            for place, one in enumerate(use):
                parts += [b") AND (" if place else b"(", *one.text(filled, label)]
            parts.append(b"))")
        return tuple(parts)

    @property
    def spans(self) -> list[Span]:
        """Where they stand."""
        return [one.span for use in self.uses for one in use]

    def narrows(self, narrowing: Narrowing, conditions: Conditions, table: Table) -> bool:
        """Whether only some shards can have rows of the table that one use's are true for."""
        return all(any(one.narrows(narrowing, conditions, table) for one in use) for use in self.uses)


MOST_ALIKE: Final = 8
"""In a join of more tables conditions are not said of other columns: it takes long, and the text grows."""

_TEXTS: Final = (STRING, PREFIXED, HEX, VARIABLE, "system")
_NO_FUNCTIONS: Final = ("IN", "AND", "OR", "NOT", "XOR", "BETWEEN")

Named = tuple[TableRef | None, str]
"""A table of a block and its column, in upper case."""


class _Pair(NamedTuple):
    """Two columns that are equal where the condition at `span` is true."""

    span: Span
    left: Named
    left_chain: Chain
    right: Named
    right_chain: Chain


class Pushing:
    """Finds such conditions in one statement. `pure`: whether a condition gives the same everywhere."""

    def __init__(
        self,
        source: Source,
        scope: Scope,
        query: Query,
        conditions: Conditions,
        second: SecondReader,
        pure: Callable[[Span], bool],
        keyword: Callable[[Chain, Span], bool],
    ) -> None:
        self._source = source
        self._scope = scope
        self._conditions = conditions
        self._second = second
        self._pure = pure
        self._keyword = keyword
        self._chained = chained(query)
        self._through = Through(source, scope, self._chained.once, second)
        self._blocks = list(query.all_blocks())
        self._pairs_of: dict[Block, list[_Pair]] = {}

    def all(self, refs: Iterable[TableRef]) -> Found:
        """The conditions by the tables that they are about."""
        wanted = set(refs)
        found: Found = {}
        for block in self._blocks:
            inner = any(self._scope.targets[ref].form == "inner" for ref in block.tables)
            for term in self._terms(block, block.where) if inner or len(block.tables) > 1 else ():
                self._add(found, self._about(term, block) if inner else [], wanted)
                self._add(found, self._alike(term, block), wanted)
            for term in self._terms(block, block.having):
                self._add(found, self._of_having(term, block), wanted)
        for uses in self._chained.shared():
            self._of_uses(uses, found, wanted)
        return found

    def _add(self, found: Found, about: Iterable[tuple[TableRef, Pushed]], wanted: set[TableRef]) -> None:
        for ref, one in about:
            if ref in wanted and one not in found.get(ref, ()):
                found.setdefault(ref, []).append(one)

    def _terms(self, block: Block, span: Span | None) -> list[Span]:
        if span is None or block.odd_joins or self._has(span, ":="):
            return []
        inner = [query.first for query in block.queries]
        terms = [
            one
            for one in self._conditions.terms(span)
            if not any(one.first <= at < one.end for at in inner) and self._pure(one)
        ]
        return terms if terms and self._second.agreed(block) else []

    def _columns(self, term: Span, block: Block) -> list[Chain]:
        return [one for one in chains(self._source, term, block) if not self._keyword(one, term)]

    def _about(self, term: Span, block: Block) -> list[tuple[TableRef, Pushed]]:
        """The tables below derived ones that a condition of WHERE is about."""
        columns = self._columns(term, block)
        found = []
        found_below = self._origins(self._through, term, columns, block)
        if len(found_below) > 1 and self._may_overflow(term):
            return []
        for origins in found_below:
            refs = {one.ref for one in origins or ()}
            if origins is not None and len(refs) == 1 and not refs <= set(block.tables):
                found.append((refs.pop(), self._pushed(term, columns, origins)))
        return found

    def _origins(
        self, through: Through, term: Span, columns: list[Chain], block: Block, *, joined: bool = False
    ) -> list[Origins | None]:
        """Where the columns of a condition come from; an empty list when it may mean something else there."""
        found = through.origins(columns, block, joined=joined)
        return [] if len(found) > 1 and mixed(found) and not self._of_integers(term) else found

    def _of_integers(self, term: Span) -> bool:
        """Whether only integers are compared with the columns, without functions."""
        source = self._source
        for at in range(*term):
            token = source.at(at)
            if token.kind in _TEXTS or at in source.marks or (token.kind == LIST and token.text == "string"):
                return False
            if source.is_op(at + 1, "(") and source.is_name(at) and not source.is_word(at, *_NO_FUNCTIONS):
                return False
        return True

    def _pushed(self, term: Span, columns: list[Chain], origins: list[Origin]) -> Pushed:
        pairs = zip(columns, origins, strict=True)
        return Pushed(term, {chain.first: (chain, one.name) for chain, one in pairs})

    # a column that is equal to another one

    def _alike(self, term: Span, block: Block) -> Iterator[tuple[TableRef, Pushed]]:
        """A condition on one column, said of those that are equal to it. Not where outer joins make rows of
        NULLs: it may be true for these, which stand there when rows are left out.
        """
        if block.nullable or len(block.tables) > MOST_ALIKE:
            return
        columns = self._columns(term, block)
        named = {(self._table(one, block), one.column) for one in columns}
        if len(named) != 1 or self._may_overflow(term):
            return
        start = named.pop()
        if not self._origins(self._through, term, columns[:1], block, joined=True):
            return
        if not any(start in (pair.left, pair.right) for pair in self._pairs(block)):
            return
        for number, target in enumerate(block.tables):
            if target is start[0]:
                continue
            spans = {one.span for one in block.conditions if number in one.narrows} | {block.where}
            for other in self._equal(start, [pair for pair in self._pairs(block) if pair.span in spans]):
                if self._table(other, block) is not target:
                    continue
                for origins in self._through.origins([other], block, joined=True):
                    if origins is not None:
                        yield origins[0].ref, self._pushed(term, columns, origins * len(columns))

    def _equal(self, start: Named, pairs: list[_Pair]) -> list[Chain]:
        """The columns that are equal to this one where the conditions of `pairs` are true."""
        found: dict[Named, Chain | None] = {start: None}
        pending = [start]
        for one in pending:
            for pair in pairs:
                for known, other, chain in (
                    (pair.left, pair.right, pair.right_chain),
                    (pair.right, pair.left, pair.left_chain),
                ):
                    if known == one and other not in found:
                        found[other] = chain
                        pending.append(other)
        return [chain for chain in found.values() if chain is not None]

    def _pairs(self, block: Block) -> list[_Pair]:
        """The equalities of two columns of integers that must be true for WHERE, or an ON, to be."""
        if block not in self._pairs_of:
            spans = [*(one.span for one in block.conditions), *([block.where] if block.where else [])]
            self._pairs_of[block] = [pair for span in spans for pair in self._equalities(span, block)]
        return self._pairs_of[block]

    def _equalities(self, span: Span, block: Block) -> Iterator[_Pair]:
        source = self._source
        for term in () if self._has(span, ":=") else self._conditions.terms(span):
            left = chain_at(source, term.first)
            if left is None or not source.is_op(left.end, "="):
                continue
            right = chain_at(source, left.end + 1)
            if right is None or right.end != term.end:
                continue
            if self._integer(left, block) and self._integer(right, block):
                mine, theirs = self._table(left, block), self._table(right, block)
                yield _Pair(span, (mine, left.column), left, (theirs, right.column), right)

    def _integer(self, chain: Chain, block: Block) -> bool:
        found = self._through.origins([chain], block, joined=True)
        return bool(found) and all(origins is None or origins[0].whole for origins in found)

    def _table(self, chain: Chain, block: Block) -> TableRef | None:
        try:
            return self._scope.table_of(chain, block)
        except Refuse:
            return None

    # HAVING

    def _of_having(self, term: Span, block: Block) -> list[tuple[TableRef, Pushed]]:
        """A condition on what all rows of a group, or each row by itself, have."""
        columns = self._columns(term, block)
        if not columns or not all(self._through.kept(block, one) for one in columns):
            return []
        return [
            (origins[0].ref, self._pushed(term, columns, origins))
            for origins in self._origins(self._through, term, columns, block)
            if origins is not None and len({one.ref for one in origins}) == 1
        ]

    # CTEs that are used several times

    def _of_uses(self, uses: dict[TableRef, Query], found: Found, wanted: set[TableRef]) -> None:
        each: list[dict[TableRef, list[Pushed]]] = []
        for use, cte in uses.items():
            block = self._scope.blocks[use]
            through = Through(self._source, self._scope, {**self._chained.once, use: cte}, self._second)
            mine: dict[TableRef, list[Pushed]] = {}
            for term in self._terms(block, block.where):
                columns = self._columns(term, block)
                if not columns or any(self._table(one, block) is not use for one in columns):
                    continue
                for origins in self._origins(through, term, columns, block):
                    if origins is not None and len({one.ref for one in origins}) == 1:
                        mine.setdefault(origins[0].ref, []).append(self._pushed(term, columns, origins))
            each.append(mine)
        for ref in set.intersection(*(set(one) for one in each)) & wanted:
            found.setdefault(ref, []).append(Shared(tuple(tuple(one[ref]) for one in each)))

    def _may_overflow(self, term: Span) -> bool:
        """Whether the condition may be an error for one type of integers and none for another."""
        return any(self._source.is_op(at, "-", "~", "<<") for at in range(*term))

    def _has(self, span: Span, operator: str) -> bool:
        return any(self._source.is_op(at, operator) for at in range(*span))
