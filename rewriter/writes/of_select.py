"""ON DUPLICATE KEY UPDATE with columns of the SELECT whose rows are inserted.

    INSERT INTO counters (n, hits) SELECT c.n, c.hits FROM other c
        ON DUPLICATE KEY UPDATE hits = counters.hits + c.hits

The rows are inserted as VALUES, and what the SELECT has put into `hits` is `VALUES(hits)`: the same value
where both columns are of one type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rewriter.plans.gather import quoted
from rewriter.route.context import Statement
from rewriter.route.scope import Chain, Scope, Unsupported, chain_at, chains
from rewriter.text.aggregates import is_aggregate
from rewriter.text.edits import Edits
from rewriter.text.facts import Block, Query, Span, TableRef
from rewriter.text.parse_write import Insertion

_ALIAS: Final = b"sg_new"
_ALIASES_FROM: Final = 80019
"""Versions of MySQL from this on have names for new rows, and warn of VALUES()."""


class OfSelect:
    """The columns of the SELECT that one INSERT's new values name. `names`: the columns that get its values,
    lower case.
    """

    def __init__(
        self, statement: Statement, found: Insertion, query: Query, scope: Scope, names: Sequence[str]
    ) -> None:
        self._statement = statement
        self._source = statement.source
        self._found = found
        self._scope = scope
        self._names = names
        self._block = query.single()

    def named(self) -> list[tuple[Chain, str]]:
        """Each with the column that has its value. Raises Refuse when none has."""
        found = []
        for assigned in self._found.on_duplicate:
            for chain in chains(self._source, assigned.value, self._found.block):
                ref = self._table(chain)
                if ref is not None:
                    found.append((chain, self._into(chain, ref, assigned.name.lower())))
        return found

    def edit(self, edits: Edits) -> bytes:
        """Write them as what the new row has; what is to stand behind the rows. Raises Refuse."""
        named, env = self.named(), self._statement.names.env
        aliased = bool(named) and env.flavour.row_aliases and env.server_version >= _ALIASES_FROM
        for chain, name in named:
            number = self._names.index(name)
            text = b"%b.sg_%d" % (_ALIAS, number) if aliased else b"VALUES(" + quoted(name) + b")"
            edits.replace(Span(chain.first, chain.end), text)
        if not aliased:
            return b""
        columns = b", ".join([b"sg_%d" % number for number in range(len(self._names))])
        return b" AS %b (%b)" % (_ALIAS, columns)

    def _table(self, chain: Chain) -> TableRef | None:
        """The SELECT's table that a name is of; None for one of the table that is written."""
        block, name = self._block, chain.column.lower()
        if block is None:
            return None
        if len(chain.parts) > 1:
            label = chain.parts[-2].lower()
            if label == self._found.table.label.lower():
                return None
            return next((ref for ref in block.tables if ref.label.lower() == label), None)
        mine = self._scope.targets[self._found.table].columns
        having = [ref for ref in block.tables if name in (self._scope.targets[ref].columns or ())]
        return having[0] if mine is not None and name not in mine and having else None

    def _into(self, chain: Chain, ref: TableRef, assigned: str) -> str:
        """The column that the SELECT's column is inserted into."""
        block = self._block
        if block is not None and not block.group and not self._folds(block):
            shown = self._shown(block)
            for name, one in zip(self._names, shown, strict=False):
                if one == (ref, chain.column.lower()) and self._alike(ref, one[1], name, assigned):
                    return name
        raise Unsupported(
            what="this ON DUPLICATE KEY UPDATE",
            reason=f"'{chain.parts[-1]}' of the SELECT is inserted into no column of its type",
            alternative="Use VALUES(column).",
        )

    def _folds(self, block: Block) -> bool:
        spans = [one.span for one in block.projections]
        distinct = "DISTINCT" in block.modifiers or "DISTINCTROW" in block.modifiers
        return distinct or any(is_aggregate(self._source, at) for span in spans for at in range(*span))

    def _shown(self, block: Block) -> list[tuple[TableRef, str] | None]:
        """What each column of the select list is."""
        found: list[tuple[TableRef, str] | None] = []
        for one in block.projections:
            if one.star:
                for ref in self._scope.starred(block, one):
                    found += [(ref, name) for name in self._scope.targets[ref].columns or ()]
                continue
            chain = chain_at(self._source, one.span.first)
            whole = chain is not None and chain.end == one.span.end
            table = self._scope.table_of(chain, block) if chain is not None and whole else None
            found.append((table, chain.column.lower()) if chain is not None and table is not None else None)
        return found

    def _alike(self, ref: TableRef, name: str, into: str, assigned: str) -> bool:
        """Whether the value is the same in both columns."""
        source, target = self._scope.targets[ref].table, self._scope.targets[self._found.table].table
        one = None if source is None else source.column(name)
        two = None if target is None else target.column(into)
        if one is None or two is None or not one.type.kind:
            return False
        same = [replace(column.facts, primary=False, unique=False) for column in (one, two)]
        if same[0] != same[1]:
            return False
        return source is target or assigned == into or not one.type.textual
