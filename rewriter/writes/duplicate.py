"""ON DUPLICATE KEY UPDATE on sharded tables: no row moves, and `id` is right in the new values."""

from __future__ import annotations

from config.schema import Kind, Table
from rewriter.plans.unchanged import Stays, fixed_columns, is_itself, stays
from rewriter.route.context import Splicer
from rewriter.route.scope import Chain, Refuse, Scope, chain_at, chains
from rewriter.route.values import Value
from rewriter.text.facts import Assigned, Block, Query, Span
from rewriter.text.parse_write import Insertion
from rewriter.text.spans import unwrapped
from rewriter.text.tokens import Source

from .own_id import check_no_other_id


def ambiguous_name(source: Source, found: Insertion, query: Query, scope: Scope) -> str:
    """A column in a new value that both the table and the SELECT have: which is meant, no server guesses."""
    block = query.single()
    if block is None or block.group_span is not None:
        return ""
    mine = scope.targets[found.table].columns or ()
    theirs = {name for ref in block.tables for name in scope.targets[ref].columns or ()}
    for assigned in found.on_duplicate:
        for chain in chains(source, assigned.value, found.block):
            name = chain.column.lower()
            of_row = source.is_word(chain.first - 2, "VALUES", "VALUE") and source.is_op(chain.first - 1, "(")
            if len(chain.parts) == 1 and name in mine and name in theirs and not of_row:
                return chain.parts[-1]
    return ""


class Duplicates:
    """The clause of one INSERT. `names` are those of the row's columns (lower case), `id_offset` is the index
    of the shard's K. After `edit`, `asks` says whether LAST_INSERT_ID(id) is assigned to the row there is,
    `same` has the constants that must be those of the rows, by the columns that place them, and `stays` those
    that must be of the rows' shard.
    """

    def __init__(
        self, splicer: Splicer, found: Insertion, table: Table, names: list[str], id_offset: int
    ) -> None:
        self.source = splicer.source
        self.splicer = splicer
        self.found = found
        self.table = table
        self.names = names
        self.id_offset = id_offset
        self.is_object = table.kind is Kind.OBJECT
        self.asks = False
        self.same: dict[str, Value] = {}
        self.stays: list[Stays] = []

    def edit(self) -> None:
        """ON DUPLICATE KEY UPDATE: no row moves, and `id` is right in its expressions. Raises Refuse."""
        block = self.found.block
        fixed, strict = fixed_columns(self.table), (self.table.strict or "").lower()
        for assigned in self.found.on_duplicate:
            name = assigned.name.lower()
            if name in fixed and self._keeps(assigned):
                continue
            if name == strict and not self._strict(assigned):
                self.stays.append(stays(self.splicer, self.table, assigned))
            self._column(assigned)
            for at in range(*assigned.value):
                self._name(at, block)

    def _keeps(self, assigned: Assigned) -> bool:
        """Whether an assignment to a column that places the row is edited; it keeps the row's shard, or is
        an error. The new row's own value does, whichever key the rows share: by it the new row is here.
        """
        virtual = self.is_object and assigned.name.lower() == "id"
        if virtual and self._keeps_id(assigned):
            return True
        table, stored = self.table, "local_id" if virtual else assigned.name.lower()
        own = is_itself(self.splicer.scope, self.source, self.found.block, self.found.table, assigned)
        if not own:
            keys = table.unique_keys + table.per_shard  # () stands for keys that nobody has named
            always = all(stored in key for key in keys)
            hints, of_row = self.splicer.hints, self._of_row(assigned)
            value = self.splicer.conditions.constant(assigned.value)
            # where the new row is not by this value, the old row might become another shard's
            elsewhere = hints.shard is not None or hints.same_shard_as is not None
            elsewhere = elsewhere or assigned.name.lower() != table.routing.lower()
            if not (of_row or value is not None) or (not always and (elsewhere or (virtual and not of_row))):
                raise Refuse("routing_column_update", column=assigned.name, table=table.name)
            if value is not None:
                self.same[assigned.name.lower()] = value
            if virtual and not always:
                self._local_id_of_row(assigned)
                return True
        if virtual:
            name = self.source.text(self.found.table.span.end - 1, self.found.table.span.end)
            self.splicer.edits.replace(assigned.column, b"local_id")
            self.splicer.edits.replace(assigned.value, name + b".local_id")  # and not the new row's
        return virtual

    def _local_id_of_row(self, assigned: Assigned) -> None:
        """The `id` becomes the new row's, on the same shard: VALUES(id), or by the row's alias."""
        value = unwrapped(self.source, assigned.value)
        self.splicer.edits.replace(assigned.column, b"local_id")
        if self.source.is_word(value.first, "VALUES", "VALUE"):
            self.splicer.edits.replace(Span(value.first + 2, value.end - 1), b"local_id")
        elif not self.found.alias_columns:
            self.splicer.edits.replace(Span(value.end - 1, value.end), b"local_id")

    def _strict(self, assigned: Assigned) -> bool:
        """Whether the column of a strict colocation gets its own value, or the new row's, of this shard."""
        scope, block = self.splicer.scope, self.found.block
        return self._of_row(assigned) or is_itself(scope, self.source, block, self.found.table, assigned)

    def _of_row(self, assigned: Assigned) -> bool:
        """Whether the value is the new row's in the same column: VALUES(k), or `new.k` by the row's alias."""
        source, found = self.source, self.found
        value = unwrapped(source, assigned.value)
        column = assigned.name.lower()
        if source.is_word(value.first, "VALUES", "VALUE") and source.is_op(value.first + 1, "("):
            chain = chain_at(source, value.first + 2)
            inside = source.closing[value.first + 1]
            whole = chain is not None and chain.end == inside and inside == value.end - 1
            return whole and chain is not None and chain.column.lower() == column
        chain = chain_at(source, value.first)
        if chain is None or chain.end != value.end or not found.alias:
            return False
        if len(chain.parts) > 1 and chain.parts[-2].lower() != found.alias:
            return False
        if not found.alias_columns:
            return len(chain.parts) == 2 and chain.column.lower() == column
        if column not in self.names or self.names.index(column) >= len(found.alias_columns):
            return False
        return chain.column.lower() == found.alias_columns[self.names.index(column)]

    def _column(self, assigned: Assigned) -> None:
        """The assigned column, without the name of the database."""
        if assigned.column.end - assigned.column.first > 3:
            self.splicer.edits.remove(Span(assigned.column.first, assigned.column.first + 2))

    def _name(self, at: int, block: Block) -> None:
        """One name in an assignment's value: that of a column, of the row's alias, or VALUES(id)."""
        source, edits, id_offset = self.source, self.splicer.edits, self.id_offset
        if self.is_object:
            check_no_other_id(source, at)
        chain = chain_at(source, at)
        if chain is None:
            return
        whole = Span(chain.first, chain.end)
        if self.is_object and self._of_new_row(chain):
            name = source.text(chain.end - 1, chain.end) if self.found.alias_columns else b"local_id"
            qualifier = b"" if len(chain.parts) == 1 else source.text(chain.first, chain.end - 1)
            edits.replace(whole, b"(" + qualifier + name + b" + ", id_offset, b")")
        elif (
            self.is_object and chain.column == "ID" and self.splicer.scope.table_of(chain, block) is not None
        ):
            if source.is_word(at - 2, "VALUES", "VALUE") and source.is_op(at - 1, "("):
                edits.replace(Span(at - 2, chain.end + 1), b"(VALUES(local_id) + ", id_offset, b")")
            else:
                qualifier = source.text(chain.end - 3, chain.end - 1) if len(chain.parts) > 1 else b""
                edits.replace(whole, b"(" + qualifier + b"local_id + ", id_offset, b")")
        elif len(chain.parts) > 2:
            edits.replace(Span(chain.first, chain.end - 3), b"")

    def _of_new_row(self, chain: Chain) -> bool:
        """Whether this is the `id` of the row that could not be inserted, by the row's alias."""
        found = self.found
        if not found.alias or (len(chain.parts) > 1 and chain.parts[-2].lower() != found.alias):
            return False
        if not found.alias_columns:
            return len(chain.parts) > 1 and chain.column == "ID"
        names = self.names
        if "id" not in names or names.index("id") >= len(found.alias_columns):
            return False
        return chain.column.lower() == found.alias_columns[names.index("id")]

    def _keeps_id(self, assigned: Assigned) -> bool:
        """`id = LAST_INSERT_ID(id)`, the idiom that reports the ID of the row there is, or `id = id`."""
        source, value = self.source, assigned.value
        inside = value
        if source.is_word(value.first, "LAST_INSERT_ID") and source.is_op(value.first + 1, "("):
            inside = Span(value.first + 2, value.end - 1)
        chain = chain_at(source, inside.first)
        if chain is None or chain.end != inside.end or chain.column != "ID":
            return False
        if len(chain.parts) > 1 and chain.parts[-2] != self.found.table.name:
            return False  # the new row's, by its alias
        self.splicer.edits.replace(assigned.column, b"local_id")
        self.splicer.edits.replace(inside, b"local_id")
        self.asks = self.asks or inside != value
        return True
