"""Groups made on the shards: which blocks of a gathered statement can be combined from partial groups.

    SELECT city, COUNT(*), AVG(age) FROM users WHERE age > 18 GROUP BY city HAVING COUNT(*) > 5

Each shard gives its groups (`city`, and a count and a sum of each); they are the rows of the piece, in the
place of the table's. The block is then run over these: COUNT(*) becomes a sum of counts, AVG a quotient of
sums, and all else (HAVING, ORDER BY, ROLLUP, DISTINCT, functions, collations) stays as the client wrote it.
An aggregate over distinct values stays as it is, too: its argument is one more key of the shards' groups.

Only what combines exactly is done so. Sums of floating point numbers, STDDEV and the like depend on the order
of their rows, GROUP_CONCAT and JSON_ARRAYAGG show it: whatever is not known to combine leaves the block as it
is, and its rows are gathered. Types are known only to a server, so the executor looks again (see `Groups`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from config.schema import Kind
from rewriter.plans.gather import Groups
from rewriter.route.context import Statement
from rewriter.route.scope import Chain, Refuse, Scope, chain_at, chains
from rewriter.splice import Part
from rewriter.text.aggregates import is_aggregate
from rewriter.text.facts import Block, Projection, Span, TableRef
from rewriter.text.literals import column_number
from rewriter.text.tokens import HEX, NUMBER, PREFIXED, STRING, WORD

from .grouping import GroupColumns, Uncombined
from .pure import HARMLESS

_SCALED: Final = ("decimal", "bit", "year")
_SAME: Final = frozenset({"MIN", "MAX", "BIT_AND", "BIT_OR", "BIT_XOR", "ANY_VALUE"})
"""What combines partial values by itself."""
_MODIFIERS: Final = frozenset(
    {"ALL", "DISTINCT", "DISTINCTROW", "SQL_SMALL_RESULT", "SQL_BIG_RESULT", "SQL_BUFFER_RESULT", "ROLLUP"}
    | {"SQL_NO_CACHE", "SQL_CACHE", "SQL_CALC_FOUND_ROWS", "HIGH_PRIORITY"}
)


@dataclass(frozen=True, slots=True)
class Combined:
    """A block that is combined: `groups` for its piece, and what changes in its own text."""

    groups: Groups
    edits: tuple[tuple[Span, tuple[Part, ...]], ...]


def combined(statement: Statement, scope: Scope, block: Block, ref: TableRef) -> Combined | None:
    """How a block over `ref` is combined from partial groups, or None."""
    combining = _Combining(statement, scope, block, ref)
    if not combining.fits():
        return None
    try:
        return combining.combined()
    except Uncombined:
        return None


class _Combining:
    """One block on its way."""

    def __init__(self, statement: Statement, scope: Scope, block: Block, ref: TableRef) -> None:
        self.statement = statement
        self.source = statement.source
        self.scope = scope
        self.block = block
        self.ref = ref
        target = scope.targets[ref]
        self.known = target.columns or ()
        numbered = target.table is not None and target.table.kind in (Kind.OBJECT, Kind.TIMED)
        self.columns = GroupColumns(statement, ref, self.known, numbered=numbered)
        self.edits: list[tuple[Span, tuple[Part, ...]]] = []
        self.aliases = {one.alias.lower() for one in block.projections if one.alias is not None}
        spans = [span for _, span in block.expressions()]
        self.spans = spans
        self.aggregated = any(is_aggregate(self.source, at) for span in spans for at in range(*span))

    def fits(self) -> bool:
        """Whether the block is one table's groups, with nothing in it that needs single rows."""
        block, source = self.block, self.source
        if len(block.tables) != 1 or self.scope.targets[self.ref].form != "sharded":
            return False
        if block.queries or block.windows is not None or block.odd is not None or block.lock is not None:
            return False
        if not set(block.modifiers) <= _MODIFIERS or any(one.star for one in block.projections):
            return False
        tokens = (at for span in self.spans for at in range(*span))
        if any(source.is_word(at, "OVER") or source.is_op(at, ":=") for at in tokens):
            return False
        names = (chain for span in self.spans for chain in self._chains(span))
        if block.outer is not None and not all(self._mine(chain) for chain in names):
            return False  # perhaps a column of the block around it
        distinct = "DISTINCT" in block.modifiers or "DISTINCTROW" in block.modifiers
        return bool(block.group) or self.aggregated or distinct

    def _chains(self, span: Span) -> Iterator[Chain]:
        return chains(self.source, span, self.block)

    def _mine(self, chain: Chain) -> bool:
        """Whether a name is certainly none of another block's columns."""
        if len(chain.parts) == 1 and chain.parts[0].lower() in self.aliases:
            return True
        if self.columns.maybe_no_column(chain) and chain.parts[0].lower() not in self.known:
            return True
        try:
            return self.scope.table_of(chain, self.block) is self.ref
        except Refuse:
            return False

    def combined(self) -> Combined:
        """Look at all clauses. Raises Uncombined."""
        block = self.block
        for item in block.group:
            self._group(item.span)
        if "ROLLUP" in block.modifiers and any(not list(self._chains(key.span)) for key in self.columns.keys):
            raise Uncombined  # over no rows MySQL shows constants in the total, if they are its keys
        if any(self._of_scales(key.span) for key in self.columns.keys):
            raise Uncombined
        for projection in block.projections:
            if block.group or self.aggregated:
                self._cover(projection.span, "field list")
            else:
                self._distinct(projection)
        if block.having is not None:
            self._cover(block.having, "having clause")
        for item in block.order:
            self._cover(item.span, "order clause")
        if block.where is not None:
            self.edits.append((Span(block.where.first - 1, block.where.end), (b" ",)))
        return Combined(self.columns.groups(), tuple(self.edits))

    def _of_scales(self, span: Span) -> bool:
        """Whether a key's values may have several numbers of decimals, as those of `IF(a, price, 0)`, which a
        column of them does not keep.
        """
        source = self.source
        if not any(source.is_word(at, "IF", "CASE", "NULLIF") for at in range(*span)):
            return False
        if any(source.tokens[at].kind == NUMBER for at in range(*span)):
            return True
        table = self.scope.targets[self.ref].table
        columns = [None if table is None else table.column(chain.column) for chain in self._chains(span)]
        return any(one is not None and one.type.kind in _SCALED for one in columns)

    def _as_key(self, span: Span) -> None:
        """Make an expression a key, and name it here."""
        key = self.columns.key(span)
        if not key.plain:
            self.edits.append((span, (key.name,)))

    def _group(self, span: Span) -> None:
        """An item of GROUP BY: a column, a number or an alias of the select list, or an expression."""
        token = self.source.tokens[span.first]
        if span.end - span.first == 1 and token.kind == "integer":
            self.statement.guard(span)
            place = column_number(token.text) or 0
            if not 0 < place <= len(self.block.projections):
                raise Uncombined
            self.columns.key(self.block.projections[place - 1].span)
            return
        chain = chain_at(self.source, span.first)
        name = chain.parts[-1].lower() if chain is not None and chain.end == span.end else ""
        if chain is not None and len(chain.parts) == 1 and name in self.aliases and name not in self.known:
            self.columns.absent.add(name)
            named = [one for one in self.block.projections if (one.alias or "").lower() == name]
            self.columns.key(named[0].span)
            return
        self._as_key(span)

    def _distinct(self, projection: Projection) -> None:
        """A column of SELECT DISTINCT without groups."""
        if any(True for _ in self._chains(projection.span)):
            self._as_key(projection.span)
        else:
            self.columns.check(projection.span)  # a constant

    # expressions over groups

    def _cover(self, span: Span, clause: str) -> None:
        """Check that an expression is made of keys, aggregates and constants; write these as combined."""
        source = self.source
        items = self.columns.items(span)
        number = 0
        while number < len(items):
            at = items[number].span.first
            if is_aggregate(source, at):
                end = source.closing[at + 1] + 1
                shown = span == (at, end) and clause != "having clause" and self.block.outer is None
                self._aggregate(Span(at, end), shown=shown)
                while number < len(items) and items[number].span.first < end:
                    number += 1
                continue
            key = self.columns.key_at(items, number)
            if key is not None:
                last = number + len(key.what) - 1
                self.edits.append((Span(at, items[last].span.end), (key.name,)))
                number = last + 1
                continue
            if source.is_op(at + 1, "(") and source.is_name(at) and not source.is_word(at, *HARMLESS):
                raise Uncombined
            chain = chain_at(source, at)
            if chain is not None and not source.is_word(at - 1, "COLLATE", "USING", "CHARSET"):
                self._name(chain, clause, whole=chain.end == span.end and at == span.first)
            number += 1

    def _name(self, chain: Chain, clause: str, *, whole: bool) -> None:
        """A name outside of aggregates: a key, an alias, or no column at all."""
        if self.columns.has(chain):
            return
        name = chain.parts[-1].lower()
        if len(chain.parts) == 1 and name in self.aliases and clause in ("having clause", "order clause"):
            if not whole and clause == "order clause":
                self.columns.absent.add(name)
        elif self.columns.maybe_no_column(chain):
            self.columns.absent.add(name)
        else:
            raise Uncombined

    # aggregates

    def _aggregate(self, span: Span, *, shown: bool) -> None:
        """Write an aggregate as one over partial values. `shown`: its value is a result column's."""
        source, columns = self.source, self.columns
        name = source.tokens[span.first].text
        arguments = Span(span.first + 2, span.end - 1)
        if arguments.first == arguments.end or source.is_word(arguments.first, "ALL"):
            raise Uncombined
        if source.is_word(arguments.first, "DISTINCT"):
            self._of_distinct(name, Span(arguments.first + 1, arguments.end))
            return
        columns.check(arguments)
        if name == "COUNT":
            text = b"CAST(IFNULL(SUM(" + columns.partial("COUNT", arguments) + b"), 0) AS SIGNED)"
        elif name == "SUM":
            text = b"SUM(" + columns.sum(arguments) + b")"
        elif name == "AVG":
            if not shown:
                raise Uncombined  # servers compute on with more digits than they show; a quotient has not
            total, count = columns.sum(arguments), columns.partial("COUNT", arguments)
            text = b"(SUM(" + total + b") / SUM(" + count + b"))"
        elif name in _SAME:
            column = columns.partial(name, arguments)
            if name.startswith("BIT_"):
                columns.integers.add(column.decode())
            text = name.encode() + b"(" + column + b")"
        else:
            raise Uncombined
        self.edits.append((span, (text,)))

    def _of_distinct(self, name: str, arguments: Span) -> None:
        """An aggregate over distinct values: these become keys."""
        if name == "GROUP_CONCAT":
            self._concatenation(arguments)
            return
        parts = list(self._split(arguments))
        if name not in ("COUNT", "SUM", "AVG", "MIN", "MAX") or (len(parts) > 1 and name != "COUNT"):
            raise Uncombined
        for part in parts:
            self._as_key(part)

    def _concatenation(self, arguments: Span) -> None:
        """GROUP_CONCAT(DISTINCT …) whose ORDER BY says the order of all that it shows."""
        source = self.source
        places = self._top(arguments, "ORDER", "SEPARATOR", "LIMIT")
        if not places or not source.is_word(places[0], "ORDER"):
            raise Uncombined
        shown = list(self._split(Span(arguments.first, places[0])))
        behind = places[1] if len(places) > 1 else arguments.end
        ordered = [
            Span(one.first, one.end - source.is_word(one.end - 1, "ASC", "DESC"))
            for one in self._split(Span(places[0] + 2, behind))
        ]
        if {self.columns.what(one) for one in ordered} != {self.columns.what(one) for one in shown}:
            raise Uncombined
        for part in (*shown, *ordered):
            self._as_key(part)
        separator = source.tokens[behind : arguments.end]
        if any(token.kind not in (STRING, WORD, PREFIXED, HEX) for token in separator):
            raise Uncombined

    def _top(self, span: Span, *words: str) -> list[int]:
        """Where these words stand outside of parentheses."""
        found, at = [], span.first
        while at < span.end:
            if self.source.is_word(at, *words):
                found.append(at)
            at = self.source.closing.get(at, at) + 1
        return found

    def _split(self, span: Span) -> Iterator[Span]:
        """The parts between commas."""
        first = at = span.first
        while at < span.end:
            if self.source.is_op(at, ","):
                yield Span(first, at)
                first = at + 1
            at = self.source.closing.get(at, at) + 1
        if first == span.end:
            raise Uncombined
        yield Span(first, span.end)
