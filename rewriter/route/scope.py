"""Whose is a name: tables of a statement to what they are, columns to their tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from config import reserved
from config.schema import Kind, Schema, Table
from config.topology import Keyspace, Topology
from rewriter.env import Env
from rewriter.text.facts import Block, Projection, Query, Span, TableRef
from rewriter.text.spans import unwrapped
from rewriter.text.tokens import NAME, WORD, Source

INFORMATION_SCHEMA: Final = "information_schema"
SYSTEM_DATABASES: Final = reserved.SERVERS | reserved.OWN
_NO_COLUMN_BEHIND: Final = ("AS", "COLLATE", "OVER", "USING", "CHARSET")


_OF_SCHEMA: Final = ("sharded", "single", "inner")

Ctes = Mapping[str, tuple[str, ...] | None]
"""The CTEs that are known at a place: their columns, lower case; None when those are not known."""

_NO_CTES: Final[Ctes] = MappingProxyType({})


class Refuse(Exception):
    """The statement is refused: `error` is an entry of the error registry."""

    def __init__(self, error: str, **arguments: str) -> None:
        super().__init__(error, arguments)
        self.error = error
        self.arguments = arguments


class Unsupported(Refuse):
    """The rule cannot do it; another may be able to."""

    def __init__(self, *, what: str, reason: str, alternative: str) -> None:
        super().__init__("not_supported_yet", what=what, reason=reason, alternative=alternative)


@dataclass(frozen=True, slots=True)
class Target:
    """What a table reference stands for.

    `form`: "sharded" and "single" (a `table` of the schema), "passthrough" (a table of a database that
    passes through), "physical" (`keyspace` and `shard`), "system", "default" (a database the schema does
    not name, on the default host), "inner" (a derived table, a CTE, a table function). `database` is the
    name of the database it is in. `columns`: the names a client sees, lower case; None when not known.
    `physical` is the physical database of a "single" table.
    """

    form: Literal["sharded", "single", "passthrough", "physical", "system", "default", "inner"]
    database: str = ""
    table: Table | None = None
    keyspace: str = ""
    shard: int | None = None
    columns: tuple[str, ...] | None = None
    physical: bytes = b""

    @property
    def is_object(self) -> bool:
        """Whether it has a virtual `id`."""
        return self.table is not None and self.table.kind is Kind.OBJECT

    def qualified(self, name: bytes) -> bytes:
        """The name of a single table, as written, with its physical database."""
        return b"`" + self.physical.replace(b"`", b"``") + b"`." + name


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a statement may ask of the planner; see `Rewriter`."""

    in_list: int = 10_000
    parse_depth: int = 200


@dataclass(frozen=True, slots=True)
class Names:
    """All that gives names a meaning (the schema, the topology, the session), and the limits."""

    schema: Schema
    topology: Topology
    env: Env
    limits: Limits = Limits()
    _others: dict[tuple[str, str], Table] = field(default_factory=dict, repr=False, compare=False)

    def target(self, ref: TableRef) -> Target:
        """What a table's name stands for (CTEs are not looked at). Raises Refuse."""
        database = ref.database if ref.database is not None else self.env.database
        if database is None:
            raise Refuse("no_database")
        logical = self.schema.databases.get(database)
        if logical is None:
            return self._unnamed(database)
        if logical.keyspace is not None:
            return Target("passthrough", database, keyspace=logical.keyspace)
        table = logical.tables.get(ref.name)
        if table is None and logical.others is not None and ref.name:
            other = Table(database, ref.name, Kind.SINGLE, logical.others, learnt=True)
            table = self._others.setdefault((database, ref.name), other)
        if table is None:
            raise Refuse("unknown_table", database=database, table=ref.name)
        columns = tuple(name.lower() for name in table.logical_columns) or None
        if table.kind not in (Kind.SINGLE, Kind.REFERENCE):
            return Target("sharded", database, table, table.keyspace, columns=columns)
        keyspace = self.topology.keyspaces.get(table.keyspace)
        if keyspace is None or keyspace.sharded:
            raise Refuse("unknown_database", database=table.keyspace)
        physical = keyspace.database_of(None)
        return Target("single", database, table, table.keyspace, columns=columns, physical=physical)

    def physical(self, database: str) -> tuple[Keyspace, int | None] | None:
        """The keyspace and shard of a physical database; None when it is none."""
        return self.topology.physical(database.encode("utf-8", "surrogateescape"))

    def _unnamed(self, database: str) -> Target:
        found = self.physical(database)
        if found is not None:
            return Target("physical", database, keyspace=found[0].name, shard=found[1])
        if database.lower() in SYSTEM_DATABASES:
            return Target("system", database)
        if self.topology.default is None:
            raise Refuse("unknown_database", database=database)
        return Target("default", database)


class Chain:
    """A column's name as written: its tokens and parts (the last is the column)."""

    __slots__ = ("column", "end", "first", "parts")

    def __init__(self, first: int, end: int, parts: list[str]) -> None:
        self.first = first
        self.end = end
        self.parts = parts
        self.column = parts[-1].upper()


def chain_at(source: Source, at: int) -> Chain | None:
    """The name, perhaps qualified, that begins at `at`; None for a function and for no name."""
    if source.at(at).kind not in (WORD, NAME) or source.is_op(at - 1, "."):
        return None
    parts, end = [source.tokens[at].name], at + 1
    while source.is_op(end, ".") and source.is_name(end + 1):
        parts.append(source.tokens[end + 1].name)
        end += 2
    if source.is_op(end, "(", "."):
        return None
    return Chain(at, end, parts)


def chains(source: Source, span: Span, block: Block) -> Iterator[Chain]:
    """Every column name in `span` that is not in a subquery, with words that may be keywords."""
    inner = {query.first: query.end for query in block.queries}
    at = span.first
    while at < span.end:
        if at in inner:
            at = inner[at]
            continue
        chain = chain_at(source, at)
        if chain is None:
            at += 1
            continue
        at = chain.end
        if not source.is_word(chain.first - 1, *_NO_COLUMN_BEHIND):
            yield chain


def chains_within(source: Source, span: Span, block: Block) -> Iterator[tuple[Chain, Block]]:
    """Every column name in `span`, an expression of `block`, and in its subqueries, each with its block."""
    for chain in chains(source, span, block):
        yield chain, block
    for query in block.queries:
        if span.first <= query.first < span.end:
            for inner in query.all_blocks():
                for _, expression in inner.expressions():
                    for chain in chains(source, expression, inner):
                        yield chain, inner


@dataclass(slots=True, eq=False)
class Scope:
    """The tables of all blocks of one statement, resolved."""

    source: Source
    targets: dict[TableRef, Target] = field(default_factory=dict)
    blocks: dict[TableRef, Block] = field(default_factory=dict)

    def add_query(self, names: Names, query: Query, ctes: Ctes = _NO_CTES) -> None:
        """Resolve the tables of a query and of all queries in it. Raises Refuse."""
        for name, cte in query.ctes.items():
            self.add_query(names, cte, {**ctes, name: None} if query.recursive else ctes)
            renamed = self.source.is_op(cte.first - 3, ")")  # WITH name (columns) AS (
            ctes = {**ctes, name: None if renamed or query.recursive else self._query_columns(cte)}
        for term in [*query.terms, *([query.tail] if query.tail is not None else [])]:
            if isinstance(term, Query):
                self.add_query(names, term, ctes)
            else:
                self.add_block(names, term, ctes)

    def add_block(self, names: Names, block: Block, ctes: Ctes = _NO_CTES) -> None:
        """Resolve the tables of a block and of its subqueries. Raises Refuse."""
        for ref in block.tables:
            self.blocks[ref] = block
            if ref.query is not None:
                self.add_query(names, ref.query, ctes)
                columns = None if ref.renamed else self._query_columns(ref.query)
                self.targets[ref] = Target("inner", columns=columns)
            elif ref.form == "odd":
                self.targets[ref] = Target("inner")
            elif ref.database is None and ref.name in ctes:
                self.targets[ref] = Target("inner", columns=ctes[ref.name])
            elif ref.database is None and ref.name.upper() == "DUAL":
                self.targets[ref] = Target("inner", columns=())
            else:
                self.targets[ref] = names.target(ref)
        self._check_stars(names, block)
        for query in block.queries:
            self.add_query(names, query, ctes)

    def _check_stars(self, names: Names, block: Block) -> None:
        """Refuse `t.*` of no table of the block: a server's own error depends on the current database of the
        connection. In EXISTS a server takes it.
        """
        stars = [one for one in block.projections if one.qualifier is not None]
        if not stars or any(self.targets[ref].form not in _OF_SCHEMA for ref in block.tables):
            return
        before = block.first - 1
        while self.source.is_op(before, "("):
            before -= 1
        for star in stars:
            parts = [token.name for token in self.source.tokens[star.span.first : star.span.end : 2]][:-1]
            fits = [one for one in self.starred(block, star) if self._of_database(one, parts)]
            if not fits and not self.source.is_word(before, "EXISTS"):
                if len(parts) == 1 and names.env.flavour.unknown_stars_are_qualified:
                    if names.env.database is None:
                        raise Refuse("no_database")
                    parts.insert(0, names.env.database)
                raise Refuse("unknown_star", table=".".join(parts))

    def _of_database(self, ref: TableRef, parts: list[str]) -> bool:
        """Whether the database that stands before a table's label is the table's."""
        return len(parts) < 2 or self.targets[ref].database == parts[-2]

    def _query_columns(self, query: Query) -> tuple[str, ...] | None:
        first = query.terms[0]
        if isinstance(first, Query):
            return self._query_columns(first)
        if not first.projections:
            return None  # VALUES
        names: list[str] = []
        for projection in first.projections:
            if projection.star:
                for ref in self.starred(first, projection):
                    columns = self.targets[ref].columns
                    if columns is None:
                        return None
                    names += columns
            else:
                names.append(self.label(projection).lower())
        return tuple(names)

    def starred(self, block: Block, star: Projection) -> list[TableRef]:
        """The tables whose columns `*` or `t.*` shows."""
        if star.qualifier is None:
            return block.tables
        return [ref for ref in block.tables if ref.label == star.qualifier]

    def label(self, projection: Projection) -> str:
        """The name that the client sees for a column of a select list."""
        if projection.alias is not None:
            return projection.alias
        span = unwrapped(self.source, projection.span)
        chain = chain_at(self.source, span.first)
        if chain is not None and chain.end == span.end:
            return chain.parts[-1]
        return self.source.text(*projection.span).decode("utf-8", "surrogateescape")

    def table_of(self, chain: Chain, block: Block) -> TableRef | None:
        """The table that a column belongs to; None when it cannot be told, or is no column.

        Raises Refuse when it may be the virtual `id` of a table and that cannot be told.
        """
        at: Block | None = block
        while at is not None:
            found = self._in_block(chain, at)
            if found is not None or chain.parts[-2:-1] == [""]:
                return found
            at = at.outer
        return None

    def _in_block(self, chain: Chain, block: Block) -> TableRef | None:
        if len(chain.parts) > 1:
            label = chain.parts[-2]
            for ref in block.tables:
                if ref.label == label and self._fits(ref, chain):
                    return ref
            return None
        name = chain.column.lower()
        having = [ref for ref in block.tables if name in (self.targets[ref].columns or ())]
        unknown = [ref for ref in block.tables if self.targets[ref].columns is None]
        if len(having) == 1 and not unknown:
            return having[0]
        if len(having) > 1 and chain.column in block.shared_columns:
            return having[0]
        if having and any(self._virtual(ref, chain) for ref in having):
            raise Refuse("ambiguous_column", column=chain.parts[-1])
        return None

    def _fits(self, ref: TableRef, chain: Chain) -> bool:
        """Whether the database of a name is the table's, which goes with its alias, too."""
        return self._of_database(ref, chain.parts[:-1])

    def _virtual(self, ref: TableRef, chain: Chain) -> bool:
        return self.targets[ref].is_object and chain.column == "ID"

    def whole(self, ref: TableRef, column: str) -> bool:
        """Whether a column (in any case) of a table holds integers, as far as the schema knows. Not those of
        ZEROFILL, whose texts are others.
        """
        target = self.targets[ref]
        if target.table is None:
            return False
        if target.is_object and column.upper() == "ID":
            return True
        found = target.table.column(column.upper())
        return found is not None and found.type.integer and not found.type.zerofill

    def unsigned(self, ref: TableRef, column: str) -> bool:
        """Whether a column that is `whole` is UNSIGNED."""
        target = self.targets[ref]
        if target.table is None or (target.is_object and column.upper() == "ID"):
            return True
        found = target.table.column(column.upper())
        return found is not None and found.type.unsigned

    def sharded(self) -> list[TableRef]:
        """The references to sharded tables, in the order of the text."""
        found = [ref for ref, target in self.targets.items() if target.form == "sharded"]
        return sorted(found, key=lambda ref: ref.span.first)
