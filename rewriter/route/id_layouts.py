"""The layout of the ID in a call of SHARD_OF, TYPE_OF or LOCAL_OF."""

from __future__ import annotations

from config.layout import Layout
from config.schema import Kind, Table
from rewriter.text.facts import Span
from rewriter.text.tokens import Source

from .scope import Names, Refuse, Scope, chains


class IdLayouts:
    """The layouts of a statement's IDs: for a column, the layout of its table; else `default`. Without a
    `scope` no column is known.
    """

    def __init__(self, default: Layout | None, source: Source, names: Names, scope: Scope | None) -> None:
        self.default = default
        self._source = source
        self._names = names
        self._scope = scope

    def of(self, span: Span) -> Layout | None:
        """The layout of the ID in an expression."""
        if self._scope is None:
            return self.default
        for block in dict.fromkeys(self._scope.blocks.values()):
            if any(query.first <= span.first < query.end for query in block.queries):
                continue  # it is of a block within
            if not any(one.first <= span.first < one.end for _, one in block.expressions()):
                continue
            for chain in chains(self._source, span, block):
                try:
                    ref = self._scope.table_of(chain, block)
                except Refuse:  # an ambiguous name: the server shall say so
                    continue
                table = None if ref is None else self._scope.targets[ref].table
                found = None if table is None else self._of_column(table, chain.column)
                if found is not None:
                    return found
        return self.default

    def _of_column(self, table: Table, column: str) -> Layout | None:
        """The layout of a table's IDs. Where a table is placed by another key than an ID, its other columns
        may hold IDs of any keyspace.
        """
        keyspace = self._names.topology.keyspaces.get(table.keyspace)
        if keyspace is None or (table.kind is Kind.TIMED and column.lower() != "id"):
            return None
        return keyspace.layout
