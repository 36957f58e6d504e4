"""Which columns a group determines, as far as MySQL's ONLY_FULL_GROUP_BY may see it otherwise on a shard.

    SELECT m.board_id, b.ts, COUNT(*) FROM board_has_pins m JOIN boards b ON b.id = m.board_id GROUP BY 1

To a server with a column `id` the equality says that `m.board_id` determines the board. On a shard `id` is an
expression, which says nothing, and the statement would be an error (1055, 1140, 3065). So it runs where it is
a column: over gathered rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rewriter.route.context import Splicer
from rewriter.route.predicates import Relation
from rewriter.route.scope import Chain, Refuse, chain_at
from rewriter.text.aggregates import is_aggregate
from rewriter.text.facts import Block, Span, TableRef
from rewriter.text.literals import column_number
from rewriter.text.spans import split_at, unwrapped

from .grouping import KEYWORDS
from .together import outside

_SHOWN: Final = ("field list", "having clause", "order clause")


def seen_alike(splicer: Splicer, block: Block) -> bool:
    """Whether a shard takes what a server with a column `id` takes, as far as the groups of the block go."""
    return _Groups(splicer, block).seen_alike()


class _Groups:
    """The groups of one block, whose conditions have been looked at."""

    def __init__(self, splicer: Splicer, block: Block) -> None:
        self.splicer = splicer
        self.source = splicer.source
        self.scope = splicer.scope
        self.block = block

    def seen_alike(self) -> bool:
        block, source = self.block, self.source
        shown = [span for clause, span in block.expressions() if clause in _SHOWN]
        folds = bool(block.group) or any(
            is_aggregate(source, at) for span in shown for at in outside(block, span)
        )
        distinct = "DISTINCT" in block.modifiers or "DISTINCTROW" in block.modifiers
        if not (folds or (distinct and block.order)) or not self._known_by_id():
            return True
        keys = [self._meant(item.span) for item in block.group]
        if not folds:
            keys = [one.span for one in block.projections if not one.star]
        chains = [chain for key in keys if (chain := chain_at(source, key.first)) and chain.end == key.end]
        known = {(self._table(chain), chain.column) for chain in chains}
        whole = {ref for ref, column in known if ref is not None and self._is_id(ref, column)} | self._named()
        stars = [ref for one in block.projections if one.star for ref in self.scope.starred(block, one)]
        if folds and not whole.issuperset(stars):
            return False
        return all(self._determined(self._meant(span), keys, known, whole) for span in shown)

    def _conditions(self) -> list[Span]:
        """The terms of WHERE and of the ONs."""
        spans = [one.span for one in self.block.conditions]
        spans += [self.block.where] if self.block.where is not None else []
        return [
            unwrapped(self.source, term)
            for span in spans
            for term in split_at(self.source, unwrapped(self.source, span), "AND", "&&", "OR", "||")
        ]

    def _known_by_id(self) -> bool:
        """Whether an object's `id` says something of other columns: by an equality, or in a derived table."""
        targets = self.scope.targets
        if any(targets[ref].form == "inner" for ref in self.block.tables):
            return any(target.is_object for target in targets.values())
        if len(self.block.tables) < 2:
            return False
        for term in self._conditions():
            left = chain_at(self.source, term.first)
            if left is None or not self.source.is_op(left.end, "="):
                continue
            right = chain_at(self.source, left.end + 1)
            if right is None or right.end != term.end:
                continue
            for chain in (left, right):
                ref = self._table(chain)
                if ref is not None and self._is_id(ref, chain.column):
                    return True
        return False

    def _named(self) -> set[TableRef]:
        """The tables of which WHERE names one row."""
        if self.block.where is None:
            return set()
        conditions = self.splicer.conditions
        found = set()
        for term in conditions.terms(self.block.where):
            match = conditions.matches.get(term)
            if match is not None and match.relation is Relation.ONE_OF:
                one = conditions.comparisons[match.number]
                if (
                    len(one.values) == 1
                    and one.list_index < 0
                    and self._is_id(match.ref, match.column.column)
                ):
                    found.add(match.ref)
        return found

    def _is_id(self, ref: TableRef, column: str) -> bool:
        return column == "ID" and self.scope.targets[ref].is_object

    def _table(self, chain: Chain) -> TableRef | None:
        try:
            return self.scope.table_of(chain, self.block)
        except Refuse:
            return None

    def _meant(self, span: Span) -> Span:
        """The expression that a key is: the select list's, for a number or an alias."""
        token = self.source.tokens[span.first]
        if span.end - span.first > 1:
            return span
        shown = self.block.projections
        if token.kind == "integer":
            self.splicer.statement.guard(span)
            number = (column_number(token.text) or 0) - 1
            return shown[number].span if 0 <= number < len(shown) else span
        named = [one for one in shown if (one.alias or "").lower() == token.name.lower()]
        return named[0].span if named else span

    def _determined(
        self, span: Span, keys: list[Span], known: set[tuple[TableRef | None, str]], whole: set[TableRef]
    ) -> bool:
        """Whether an expression has one value for each group, as a shard sees it."""
        if any(self._text(span) == self._text(key) for key in keys):
            return True
        aliases = {one.alias.upper() for one in self.block.projections if one.alias is not None}
        for chain in self._bare(span):
            ref = self._table(chain)
            if ref is None and len(chain.parts) == 1 and chain.column in aliases:
                continue
            mine = ref is None or ref in self.block.tables
            if mine and ref not in whole and (ref, chain.column) not in known:
                return False
        return True

    def _text(self, span: Span) -> list[bytes]:
        return [self.source.text(at, at + 1).lower() for at in range(*span)]

    def _bare(self, span: Span) -> Iterator[Chain]:
        """The columns that are named outside of aggregates and subqueries."""
        behind = span.first
        for at in outside(self.block, span):
            if at < behind:
                continue
            if is_aggregate(self.source, at):
                behind = self.source.closing[at + 1] + 1
                continue
            chain = chain_at(self.source, at)
            if chain is None or self.source.is_word(at - 1, "AS", "COLLATE", "USING"):
                continue
            behind = chain.end
            if len(chain.parts) > 1 or chain.column not in KEYWORDS or self._table(chain) is not None:
                yield chain
