"""Assignments to columns that say where a row is: those that cannot change it are none.

    SET k = k                               the column itself
    SET k = 5 … WHERE k = 5                 the constant that the row has there already: compared when bound
    ON DUPLICATE KEY UPDATE k = VALUES(k)   the new row's own value, by which it is on the row's shard

ORMs write these. The first two stay in the statement as the column itself, so that counts are the server's.
"""

from __future__ import annotations

from dataclasses import dataclass

from config.schema import Kind, Table
from config.topology import Keyspace
from rewriter.bound import BindError
from rewriter.plan import Values
from rewriter.route.context import Splicer
from rewriter.route.predicates import Relation
from rewriter.route.routing import Comparison, Key
from rewriter.route.scope import Refuse, Scope, chain_at
from rewriter.route.values import Value
from rewriter.text.facts import Assigned, Block, Span, TableRef
from rewriter.text.literals import NotPlain
from rewriter.text.spans import unwrapped
from rewriter.text.tokens import Source


@dataclass(frozen=True, slots=True)
class Same:
    """`value` must be what comparison number `index` has found the row by, or the assignment is a change of
    `column`.
    """

    value: Value
    index: int
    column: str
    table: str

    def check(self, values: Values, comparisons: tuple[Comparison, ...]) -> None:
        """Raises BindError when it is not."""
        comparison = comparisons[self.index]
        try:
            key = comparison.key
            if key.takes_text:
                alike = all(same_text(self.value, one, values, key) for one in comparison.values)
            else:
                alike = set(comparison.integers(values)) == {self.value.integer(values)}
        except NotPlain:
            alike = False
        if not alike:
            raise BindError("routing_column_update", column=self.column, table=self.table)


@dataclass(frozen=True, slots=True)
class Stays:
    """`value` is assigned to the column of a strict colocation (None: NULL): it must be an ID of the row's
    shard, or NULL where the column takes it.
    """

    value: Value | None
    key: Key
    column: str
    table: str
    nullable: bool

    def check(self, values: Values, shards: list[int], keyspace: Keyspace) -> None:
        """Raises BindError when some of `shards` is not the ID's."""
        value = self.value
        if value is None or (value.kind == "parameter" and values[value.index] == b"NULL"):
            if not self.nullable:
                raise BindError("key_null", column=self.column)
            return
        try:
            shard = self.key.shard_of_integer(value.integer(values), keyspace)
        except NotPlain:
            shard = None
        if shard is None:
            reason = "what it is given is no ID"
            raise BindError("strict_colocation", table=self.table, column=self.column, reason=reason)
        for other in shards:
            if other != shard:
                reason = f"the ID that it is given is of shard {shard}, the row is on shard {other}"
                raise BindError("strict_colocation", table=self.table, column=self.column, reason=reason)


def same_text(one: Value, other: Value, values: Values, key: Key) -> bool:
    """Whether two constants are one text. Raises NotPlain when that cannot be told."""
    if one.is_bytes is not other.is_bytes:
        raise NotPlain
    return one.text(values, key.backslashes) == other.text(values, key.backslashes)


def fixed_columns(table: Table) -> set[str]:
    """The columns (lower case) that say where a row is, but that of a strict colocation."""
    fixed = {one.lower() for one in (table.routing, table.shard_key) if one}
    return fixed | ({"id", "local_id"} if table.kind is Kind.OBJECT else set())


def takes_null(table: Table) -> bool:
    """Whether the column of a strict colocation takes NULL."""
    column = table.column(table.strict or "")
    return column is not None and not column.facts.not_null


def is_itself(scope: Scope, source: Source, block: Block, ref: TableRef, one: Assigned) -> bool:
    """Whether the value is the assigned column."""
    value = unwrapped(source, one.value)
    chain = chain_at(source, value.first)
    if chain is None or chain.end != value.end or chain.column != one.name.upper():
        return False
    return scope.table_of(chain, block) is ref


def stays(splicer: Splicer, table: Table, one: Assigned) -> Stays:
    """What must hold of a value for the column of a strict colocation. Raises Refuse if it is none."""
    source, key = splicer.source, splicer.conditions.key(table, one.name.upper())
    value = splicer.conditions.constant(one.value)
    null = one.value.end - one.value.first == 1 and source.is_word(one.value.first, "NULL")
    as_text = splicer.statement.names.env.flavour.hex_is_text
    if value is not None and (value.kind == "binary" or (value.kind == "bytes" and as_text)):
        value = None  # a text, which the column makes a number of by itself
    if key is None or (value is None and not null):
        reason = "what it is given is no constant"
        raise Refuse("strict_colocation", table=table.name, column=one.name, reason=reason)
    if null and not takes_null(table):
        raise Refuse("key_null", column=one.name)
    return Stays(value, key, one.name, table.name, takes_null(table))


class Keeping:
    """The assignments of an UPDATE to such columns. First `before` the text is edited, then `after`."""

    def __init__(self, splicer: Splicer, block: Block) -> None:
        self.splicer = splicer
        self.source = splicer.source
        self.block = block
        self.constants: list[tuple[TableRef, Table, Assigned, Value]] = []
        self.same: list[Same] = []
        self.stays: list[Stays] = []

    def before(self, ref: TableRef, table: Table, assigned: tuple[Assigned, ...]) -> None:
        """Look at the assignments to one table. Raises Refuse for what may change a row's place."""
        fixed = fixed_columns(table)
        for one in assigned:
            name = one.name.lower()
            if name in fixed:
                self._fixed(ref, table, one)
            elif table.strict is not None and name == table.strict.lower():
                self._strict(ref, table, one)

    def _fixed(self, ref: TableRef, table: Table, one: Assigned) -> None:
        splicer = self.splicer
        virtual = table.kind is Kind.OBJECT and one.name.lower() == "id"
        if virtual:
            splicer.columns.matched[one.column.first] = True  # which is local_id then
        if is_itself(splicer.scope, self.source, self.block, ref, one):
            if virtual:
                splicer.columns.matched[unwrapped(self.source, one.value).first] = True
            return
        value = splicer.conditions.constant(one.value)
        if value is None:
            raise Refuse("routing_column_update", column=one.name, table=table.name)
        self.constants.append((ref, table, one, value))

    def _strict(self, ref: TableRef, table: Table, one: Assigned) -> None:
        if not is_itself(self.splicer.scope, self.source, self.block, ref, one):
            self.stays.append(stays(self.splicer, table, one))

    def after(self) -> None:
        """When the conditions are known: constants are what the row is found by. Raises Refuse."""
        conditions = self.splicer.conditions
        terms = conditions.terms(self.block.where) if self.block.where is not None else []
        assigns = any(token.text == ":=" for token in self.source.tokens)
        for ref, table, one, value in self.constants:
            match = next(
                (
                    match
                    for span in terms
                    if (match := conditions.matches.get(span)) is not None
                    and match.relation is Relation.ONE_OF
                    and match.ref is ref
                    and match.column.column == one.name.upper()
                ),
                None,
            )
            if match is None or assigns:
                raise Refuse("routing_column_update", column=one.name, table=table.name)
            self.same.append(Same(value, match.number, one.name, table.name))
            self.splicer.edits.replace(one.value, self._column(table, one))

    def _column(self, table: Table, one: Assigned) -> bytes:
        """The assigned column as a shard knows it."""
        chain = chain_at(self.source, one.column.first)
        if table.kind is Kind.OBJECT and one.name.lower() == "id":
            return (self.splicer.columns.qualifier(chain) if chain is not None else b"") + b"local_id"
        first = max(one.column.first, one.column.end - 3)
        return self.source.text(*Span(first, one.column.end))
