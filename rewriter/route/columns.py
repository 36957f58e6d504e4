"""What changes in a statement's text so that a shard understands it.

Tables get their physical database, the virtual `id` becomes `(local_id + K)` (or `local_id`, where it is
compared with constants or only orders rows), `*` of an object table becomes its logical columns, session
values and shardgate's own functions are filled in, its own hints are taken out. Result columns keep the
names that the client would have seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from config.column_type import ColumnType
from rewriter.splice import Label, Part
from rewriter.text.edits import Edits, original
from rewriter.text.facts import Block, Projection, Span, TableRef
from rewriter.text.literals import column_number
from rewriter.text.tokens import INTEGER, WORD, Source, quote_name

from .predicates import Conditions, Match, Relation
from .scope import Chain, Refuse, Scope, Unsupported, chain_at, chains
from .values import slot_at

_NONE: Final = ColumnType("")
_ID: Final = ColumnType("bigint", unsigned=True)


class Extra(NamedTuple):
    """A value that binding computes for one shard, behind the literals and the session's values.

    `kind`: "database", "base" (the K of object type `number`), "constants" (of comparison `number`),
    "offset" (offset `number`), or "limit" (the rows a shard must give).
    """

    kind: str
    number: int = 0


class Extras:
    """Gives each computed value its index among the values."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._indexes: dict[Extra, int] = {}

    @property
    def items(self) -> tuple[Extra, ...]:
        """All that were asked for, in the order of their indexes."""
        return tuple(self._indexes)

    def index(self, extra: Extra) -> int:
        """The index of `extra`."""
        return self._indexes.setdefault(extra, self._first + len(self._indexes))


def add_labels(source: Source, block: Block, edits: Edits, *, spaces: bool = False) -> None:
    """Name the result columns whose text was edited as the client wrote them. `spaces`: with those behind a
    word at the end, as MySQL does with IGNORE_SPACE.
    """
    for projection in block.projections:
        if projection.alias is not None or projection.star or not edits.touches(projection.span):
            continue
        last, bare = projection.span.end - 1, projection.span
        while source.is_op(bare.first, "(") and source.closing[bare.first] == bare.end - 1:
            bare = Span(bare.first + 1, bare.end - 1)  # a column in parentheses is still called as it is
        chain = chain_at(source, bare.first)
        whole = chain is not None and chain.end == bare.end
        if chain is not None and whole and slot_at(source, chain.first) is None:
            if chain.column == "ID":
                edits.insert_behind(last, b" AS " + source.text(bare.end - 1, bare.end))
            continue
        tokens = source.tokens
        end = tokens[last].end
        if spaces and tokens[last].kind == WORD and not source.is_op(last - 1, "."):
            end += len(source.sql) - end - len(source.sql[end:].lstrip())
        text = original(source, tokens[projection.span.first].start, end)
        edits.insert_behind(last, b" AS ", Label(tuple(text)))


@dataclass(slots=True, eq=False)
class Columns:
    """Edits the blocks of one statement on sharded (or schema's single) tables."""

    source: Source
    scope: Scope
    edits: Edits
    extras: Extras
    conditions: Conditions | None = None
    guard: Callable[[Span], None] | None = None  # told of literals that the edits depend on
    spaces: bool = False  # see `add_labels`
    matched: dict[int, bool] = field(default_factory=dict)

    def block(self, block: Block) -> None:
        """Edit one block; not the queries in it. Raises Refuse."""
        for ref in block.tables:
            self.table(ref)
        by_id = "*" in block.shared_columns or "ID" in block.shared_columns
        if by_id and any(self.scope.targets[ref].is_object for ref in block.tables):
            raise Unsupported(
                what="a join by common column names",
                reason="the tables' `id` is not stored",
                alternative="Write the condition with ON.",
            )
        for projection in block.projections:
            if projection.star:
                self._star(block, projection)
            else:
                self._expression(projection.span, block)
        for clause, span in block.expressions():
            if clause in ("on clause", "where clause", "window clause"):
                self._expression(span, block)
        for assigned in block.assignments:
            self._expression(assigned.column, block)
            self._expression(assigned.value, block)
        self._keys(block)
        if block.having is not None:
            self._having(block, block.having)

    def blocks(self, blocks: Iterable[Block]) -> None:
        """Edit these blocks, then name the result columns that were edited: also by what is inside of one."""
        found = list(blocks)
        for block in found:
            self.block(block)
        for block in found:
            add_labels(self.source, block, self.edits, spaces=self.spaces)

    def table(self, ref: TableRef) -> None:
        """Qualify a table's name with its physical database."""
        target = self.scope.targets[ref]
        name = self.source.text(ref.span.end - 1, ref.span.end)
        if target.form == "sharded":
            self.edits.replace(ref.span, b"`", self.extras.index(Extra("database")), b"`." + name)
        elif target.form == "single":
            self.edits.replace(ref.span, target.qualified(name))

    def id_offset(self, ref: TableRef) -> int:
        """The index of the K of an object table."""
        table = self.scope.targets[ref].table
        return self.extras.index(Extra("base", (table.type or 0) if table is not None else 0))

    def _expression(self, span: Span, block: Block) -> None:
        if self.conditions is not None:
            for match in self.conditions.find(span, block):
                self._comparison(match)
        for chain in chains(self.source, span, block):
            self._chain(chain, block)

    def _comparison(self, match: Match) -> None:
        """Write a comparison of a routing column with constants as one of what is stored."""
        for span, number in match.offsets:
            self.edits.replace(span, self.extras.index(Extra("offset", number)))
            self.matched[match.column.first] = match.relation is not Relation.TEXTS
        if self.conditions is None or match.relation not in (Relation.ONE_OF, Relation.NONE_OF):
            return
        comparison = self.conditions.comparisons[match.number]
        if comparison.rewritten:
            self.edits.replace(match.constants, self.extras.index(Extra("constants", match.number)))
            self.matched[match.column.first] = comparison.key.local

    def _chain(self, chain: Chain, block: Block) -> None:
        if len(chain.parts) == 1 and chain.column != "ID":
            return
        ref = self.scope.table_of(chain, block)
        target = None if ref is None else self.scope.targets[ref]
        if ref is None or target is None or target.table is None:
            return
        if chain.column == "ID" and target.is_object:
            self._id(chain, ref, local=self.matched.get(chain.first, False))
        elif len(chain.parts) > 2:
            self.edits.replace(Span(chain.first, chain.end - 3), b"")

    def _id(self, chain: Chain, ref: TableRef, *, local: bool) -> None:
        qualifier = self.qualifier(chain)
        span = Span(chain.first, chain.end)
        if local:
            self.edits.replace(span, qualifier + b"local_id")
        else:
            self.edits.replace(span, b"(" + qualifier + b"local_id + ", self.id_offset(ref), b")")

    def qualifier(self, chain: Chain) -> bytes:
        """The table part of a column's name with its dot, without the database."""
        if len(chain.parts) == 1:
            return b""
        return self.source.text(chain.end - 3, chain.end - 2) + b"."

    def _star(self, block: Block, projection: Projection) -> None:
        refs = self.scope.starred(block, projection)
        if not any(self.scope.targets[ref].is_object for ref in refs):
            if projection.span.end - projection.span.first == 5:  # demo.pins.*
                self.edits.replace(Span(projection.span.first, projection.span.first + 2), b"")
            return
        if block.shared_columns and projection.qualifier is None:
            raise Unsupported(
                what="SELECT * over USING or NATURAL JOIN",
                reason="the columns that the tables share come once, and first",
                alternative="Name the columns.",
            )
        shown: list[Part] = []
        for ref in refs:
            label = quote_name(ref.label) + b"."
            qualifier = label if len(block.tables) > 1 or projection.qualifier is not None else b""
            shown += [b", "] if shown else []
            shown += self._all_columns(ref, qualifier)
        self.edits.replace(projection.span, *shown)

    def _all_columns(self, ref: TableRef, qualifier: bytes) -> list[Part]:
        target = self.scope.targets[ref]
        if not target.is_object or target.table is None:
            return [(qualifier or b"") + b"*"]
        shown: list[Part] = []
        for name in target.table.logical_columns:
            shown += [b", "] if shown else []
            if name == "id":
                shown += [b"(" + qualifier + b"local_id + ", self.id_offset(ref), b") AS id"]
            else:
                shown.append(qualifier + quote_name(name))
        return shown

    def _keys(self, block: Block) -> None:
        """GROUP BY and ORDER BY: a key that is just `id` groups and orders as the local id does."""
        folded = "DISTINCT" in block.modifiers or "DISTINCTROW" in block.modifiers or bool(block.group)
        for item in block.group:
            if not self._numbered_id(item.span, block):
                self._key(item.span, block, local=True)
        for item in block.order:
            if self.aliased(item.span, block) is None:
                self._key(item.span, block, local=not folded)
            else:
                self._check_alias(item.span, block)

    def _numbered_id(self, span: Span, block: Block) -> bool:
        """`GROUP BY 1` where that column is the virtual `id`: MySQL takes the group's other columns to follow
        from the local id, but not from an expression of it.
        """
        token = self.source.tokens[span.first]
        if self.guard is None or token.kind != INTEGER or span.end - span.first > 1 or len(block.tables) > 1:
            return False
        self.guard(span)
        number = column_number(token.text) or 0
        for projection in block.projections:
            width = self.width(block, projection)
            if projection.star and 0 < number <= width:
                target = self.scope.targets[block.tables[0]]
                if target.is_object and (target.columns or ())[number - 1] == "id":
                    self.edits.replace(span, b"local_id")
                    return True
                return False
            chain = chain_at(self.source, projection.span.first)
            if number == 1 and chain is not None and self._is_column(projection):
                ref = self.scope.table_of(chain, block)
                if chain.column == "ID" and ref is not None and self.scope.targets[ref].is_object:
                    self.edits.replace(span, self.qualifier(chain) + b"local_id")
                    return True
            number -= width
        return False

    def _check_alias(self, span: Span, block: Block) -> None:
        """`ORDER BY x` when several result columns are named so, perhaps the virtual one.

        For a server an expression of that name goes before a column, and two columns are ambiguous. But here
        the virtual column is an expression, too: so the one that is meant is named by its number.
        """
        name = self.source.tokens[span.first].name.lower()
        if not any(self.scope.targets[ref].is_object for ref in block.tables):
            return
        columns: set[tuple[TableRef | None, str]] = set()
        number, first = 1, 0
        for projection in block.projections:
            if projection.star:
                refs = self.scope.starred(block, projection)
                columns.update((ref, name) for ref in refs if name in (self.scope.targets[ref].columns or ()))
                first = first or (number if columns else 0)
            elif self.scope.label(projection).lower() == name:
                first = first or number
                chain = chain_at(self.source, projection.span.first)
                if chain is not None and self._is_column(projection):
                    columns.add((self.scope.table_of(chain, block), chain.column.lower()))
                elif number > first:
                    self.edits.replace(span, b"%d" % number)
                    return
                else:
                    return
            number += self.width(block, projection)
        if len(columns) > 1:
            raise Refuse("ambiguous_column", column=name)

    def _is_column(self, projection: Projection) -> bool:
        chain = chain_at(self.source, projection.span.first)
        return chain is not None and chain.end == projection.span.end

    def width(self, block: Block, projection: Projection) -> int:
        """How many columns a projection shows."""
        if not projection.star:
            return 1
        return sum(
            len(self.scope.targets[ref].columns or ()) for ref in self.scope.starred(block, projection)
        )

    def type_of(self, block: Block, span: Span) -> ColumnType:
        """The type of the column that `span` is; that of the kind "" for anything else."""
        chain = chain_at(self.source, span.first)
        if chain is None or chain.end != span.end:
            return _NONE
        ref = self.scope.table_of(chain, block)
        target = None if ref is None else self.scope.targets[ref]
        if target is None or target.table is None:
            return _NONE
        if target.is_object and chain.column == "ID":
            return _ID
        column = target.table.column(chain.column)
        return _NONE if column is None else column.type

    def _key(self, span: Span, block: Block, *, local: bool) -> None:
        chain = chain_at(self.source, span.first)
        if chain is not None and chain.end == span.end and chain.column == "ID":
            ref = self.scope.table_of(chain, block)
            if ref is not None and self.scope.targets[ref].is_object:
                self._id(chain, ref, local=local)
            elif ref is not None:
                self._chain(chain, block)
            return
        self._expression(span, block)  # as in the select list: it may have to be the same there

    def aliased(self, span: Span, block: Block) -> Projection | None:
        """The select expression that an ORDER BY key names by its alias."""
        if span.end - span.first != 1 or not self.source.is_name(span.first):
            return None
        name = self.source.tokens[span.first].name.lower()
        found = [one for one in block.projections if one.alias is not None and one.alias.lower() == name]
        expressions = [one for one in found if not self._is_column(one)]
        return next(iter(expressions or found), None)

    def _having(self, block: Block, span: Span) -> None:
        """`id` in HAVING means the select list's column of that name, if there is one."""
        for chain in chains(self.source, span, block):
            if chain.column == "ID":
                self._judged(block, chain)
            if chain.column == "ID" and self._shows_id(block, chain):
                if len(chain.parts) > 1:
                    self.edits.replace(Span(chain.first, chain.end), b"id")
            else:
                self._chain(chain, block)

    def _judged(self, block: Block, chain: Chain) -> None:
        """Refuse an `id` in the HAVING of a join: which one it means, if any, only a server can say."""
        if len(block.tables) > 1 and any(self.scope.targets[ref].is_object for ref in block.tables):
            raise Unsupported(
                what="HAVING",
                reason=f"which of the tables '{chain.parts[-1]}' means is a server's business",
                alternative="Put the condition into WHERE.",
            )

    def _shows_id(self, block: Block, chain: Chain) -> bool:
        if block.group:
            return False
        for one in block.projections:
            if one.star:
                return True
            if self.scope.label(one).lower() == chain.parts[-1].lower():
                return True
        return False
