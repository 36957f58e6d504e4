"""What a statement says, as spans: query blocks, tables, conditions, keys.

`parse.py` makes these. Places are token indexes: a `Span` runs from its first token to the one behind
its last. Nothing here is interpreted yet: names are as written, expressions are spans.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple


class Span(NamedTuple):
    """Tokens from `first` to `end` - 1."""

    first: int
    end: int


@dataclass(slots=True, eq=False)
class TableRef:
    """One table of a FROM clause or of a write.

    `form`: "table" (`database` as written, or None), "derived" (`query`), or "odd" (a table function and
    other things that are not looked into). `name` is as written; `alias` None when there is none. `span`
    is the qualified name alone.
    """

    form: Literal["table", "derived", "odd"]
    span: Span
    name: str = ""
    database: str | None = None
    alias: str | None = None
    query: Query | None = None
    renamed: bool = False  # a derived table whose columns are named behind its alias

    @property
    def label(self) -> str:
        """The name that columns are qualified with."""
        return self.alias if self.alias is not None else self.name


class Condition(NamedTuple):
    """An ON condition and the tables (indexes in the block) whose rows it restricts.

    `solid` are those of them that no outer join inside of this one gives rows of NULLs: any part of the
    condition restricts these, also one that is true for NULLs.
    """

    span: Span
    narrows: frozenset[int]
    solid: frozenset[int] = frozenset()


class Projection(NamedTuple):
    """One column of a select list: the expression, and its alias (None when there is none).

    `star`: it is `*` or `t.*`, and `qualifier` is the `t` (None: all tables).
    """

    span: Span
    alias: str | None
    star: bool = False
    qualifier: str | None = None


class SortItem(NamedTuple):
    """One item of ORDER BY or GROUP BY."""

    span: Span
    descending: bool


class Limit(NamedTuple):
    """A LIMIT clause: the whole, the number of rows, and the offset (None: 0)."""

    span: Span
    rows: Span
    offset: Span | None


@dataclass(slots=True, eq=False)
class Block:
    """One SELECT (or the tables and conditions of an UPDATE or DELETE), without its set operations.

    `outer`: the block whose columns it also sees. `queries`: the subqueries in its expressions; those of
    derived tables are in `tables`. `odd_joins`: the ON conditions restrict nothing that is known. `nullable`
    are the tables (indexes) that an outer join may give rows of NULLs, and `outer_on` has those of them that
    it does give such rows by the text, each with the ON of the innermost such join (None: it has USING, or is
    NATURAL). `from_end` is the token behind the tables of FROM; 0 without FROM.
    """

    first: int
    outer: Block | None = None
    modifiers: dict[str, int] = field(default_factory=dict)
    projections: list[Projection] = field(default_factory=list)
    select_end: int = 0  # the token behind the select list
    tables: list[TableRef] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)
    odd_joins: bool = False
    nullable: set[int] = field(default_factory=set)
    outer_on: dict[int, Span | None] = field(default_factory=dict)
    from_end: int = 0
    shared_columns: list[str] = field(default_factory=list)  # of USING, upper case; "*" for NATURAL
    where: Span | None = None
    group: list[SortItem] = field(default_factory=list)
    group_span: Span | None = None
    having: Span | None = None
    windows: Span | None = None
    order: list[SortItem] = field(default_factory=list)
    order_span: Span | None = None
    limit: Limit | None = None
    lock: Span | None = None
    into: Span | None = None
    odd: Span | None = None  # a clause that is not looked into
    assignments: list[Assigned] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    end: int = 0

    def expressions(self) -> Iterator[tuple[str, Span]]:
        """Every expression with the clause it is in, in no special order."""
        for projection in self.projections:
            if not projection.star:
                yield "field list", projection.span
        for condition in self.conditions:
            yield "on clause", condition.span
        for assigned in self.assignments:
            yield "field list", assigned.value
        for clause, span in (
            ("where clause", self.where),
            ("having clause", self.having),
            ("window clause", self.windows),
        ):
            if span is not None:
                yield clause, span
        for item in self.group:
            yield "group statement", item.span
        for item in self.order:
            yield "order clause", item.span

    def all_blocks(self) -> Iterator[Block]:
        """This block and every one inside it."""
        yield self
        for query in self.inner_queries():
            yield from query.all_blocks()

    def inner_queries(self) -> Iterator[Query]:
        """The subqueries of expressions and of derived tables."""
        yield from self.queries
        for table in self.tables:
            if table.query is not None:
                yield table.query


class Assigned(NamedTuple):
    """`column = value` in UPDATE … SET, INSERT … SET or ON DUPLICATE KEY UPDATE."""

    column: Span
    name: str
    value: Span


@dataclass(slots=True, eq=False)
class Query:
    """A query expression: one block, or several joined by UNION and the like.

    `tail` carries ORDER BY, LIMIT, locks and INTO of a compound (its other fields are empty). `ctes` maps
    the names of WITH to their queries, which see themselves when it is `recursive`.
    """

    first: int
    terms: list[Block | Query] = field(default_factory=list)
    operators: list[str] = field(default_factory=list)
    ctes: dict[str, Query] = field(default_factory=dict)
    recursive: bool = False
    tail: Block | None = None
    end: int = 0

    def all_blocks(self) -> Iterator[Block]:
        """Every block in it, also in subqueries, with the tail of a compound."""
        for cte in self.ctes.values():
            yield from cte.all_blocks()
        for term in self.terms:
            yield from term.all_blocks()
        if self.tail is not None:
            yield from self.tail.all_blocks()

    def single(self) -> Block | None:
        """The block, when this is a plain SELECT without WITH or set operations (parentheses allowed)."""
        if self.ctes or self.operators or len(self.terms) != 1:
            return None
        term = self.terms[0]
        if isinstance(term, Block):
            return term
        return term.single() if self.tail is None else None
