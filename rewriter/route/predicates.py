"""WHERE and ON to routes, soundly.

Two passes over the tokens of a condition. `Conditions.find` finds every comparison of a routing column
with constants, wherever it stands between boundaries that bind less than a comparison does (AND, OR, a
parenthesis, a comma …). `Conditions.route` then reads a condition's ANDs, ORs and parentheses exactly as
MySQL's grammar does; a leaf that is one of those comparisons narrows, and everything else does not.

So that `x + id = 5`, `id = 5 = 1`, `NOT id = 5`, `a BETWEEN 1 AND id = 5` and `id = 5 COLLATE y` are left
alone without this having to know what they mean.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple

from config.schema import Table
from rewriter.text.aggregates import is_aggregate
from rewriter.text.facts import Block, Span, TableRef
from rewriter.text.spans import split_at, unwrapped
from rewriter.text.tokens import HEX, LIST, PREFIXED, STRING, VARIABLE, Source, Unreadable

from .keys import Keys
from .routing import ALL, Between, Comparison, Key, Offset, Route, both, either
from .scope import Chain, Scope, chain_at
from .values import ConstantReader, Value

_TEXTS: Final = (STRING, PREFIXED, HEX, VARIABLE)
_AS_DOUBLES: Final = frozenset({"string", "national", "hex", "bytes", "bits", "fixed"})
"""Constants that MySQL compares as doubles where they stand in a list with numbers, and it scans."""
_AS_TEXT: Final = frozenset({"string", "slot", "parameter", "hex", "bytes", "bits", "binary"})
_LEFT: Final = frozenset({"OR", "XOR", "WHEN", "THEN", "ELSE", "CASE"})
_RIGHT: Final = frozenset({"OR", "XOR", "WHEN", "THEN", "ELSE", "END", "AS"})
_SOME: Final = ("OR", "||", "XOR")
_ALL: Final = ("AND", "&&")


class Relation(Enum):
    """What a comparison says of a routing column."""

    ONE_OF = auto()
    NONE_OF = auto()
    COLUMN = auto()
    """It equals another table's."""
    BETWEEN = auto()
    ORDER = auto()
    """< and the like."""
    TEXTS = auto()
    """It is in a list with strings, and other things that are no constants."""


class Match(NamedTuple):
    """A comparison in the text.

    `number` is the comparison's index (for BETWEEN the range's); `constants` is the span of the constants and
    `column` the routing column's name. For COLUMN, `other` is the other table. `offsets` are the spans of
    constants to be written as offsets, with the indexes of these.
    """

    span: Span
    ref: TableRef
    relation: Relation
    number: int
    column: Chain
    constants: Span
    other: TableRef | None = None
    offsets: tuple[tuple[Span, int], ...] = ()


class Conditions:
    """The comparisons of one statement, collected condition by condition.

    `strict`: only constants that cannot turn out to be something else narrow (no strings, no session
    values): the plan to fall back on.
    """

    def __init__(
        self, source: Source, scope: Scope, keys: Keys, constants: ConstantReader, *, strict: bool
    ) -> None:
        self._source = source
        self._scope = scope
        self._keys = keys
        self._constants = constants
        self.source = source
        self.strict = self._strict = strict
        tables = [scope.targets[ref].table for ref in scope.sharded()]
        self._routing_names = {
            name.upper()
            for table in tables
            if table
            for name in (table.routing, table.shard_key, table.strict)
            if name
        }
        self.comparisons: list[Comparison] = []
        self.ranges: list[Between] = []
        self.offsets: list[Offset] = []
        self.matches: dict[Span, Match] = {}
        self._splits: dict[tuple[Span, tuple[str, ...]], list[Span]] = {}
        self._terms: dict[Span, list[Span]] = {}
        self._assigning: dict[Span, bool] = {}
        self._folds = keys.env.flavour.folds_constants and any(
            source.is_word(at, "GROUP", "DISTINCT", "DISTINCTROW") or is_aggregate(source, at)
            for at in range(len(source.tokens))
        )

    def constant(self, span: Span) -> Value | None:
        """The constant that these tokens are, or None."""
        return self._constants.read(*span)

    def constant_of(self, key: Key, span: Span) -> Value | None:
        """The constant that these tokens are, if a column with this key may be compared with it."""
        found = self._constant(key, *span)
        return found[0] if found is not None and found[1] == span.end else None

    def routing_column(self, chain: Chain, block: Block) -> tuple[TableRef, Key] | None:
        """The table and the key of a column that routes. Raises Refuse."""
        return self._routing_column(chain, block)

    def routes_in(self, span: Span) -> bool:
        """Whether the name of a routing column stands there."""
        names = self._routing_names
        return any(token.name.upper() in names for token in self._source.tokens[span.first : span.end])

    def key(self, table: Table, column: str) -> Key | None:
        """How the values of a column (upper case) tell their shard; None when it does not route."""
        return self._keys.key(table, column)

    def groups_by(self, table: Table, column: str) -> bool:
        """Whether rows of `table` that are alike in this column (upper case) are on one shard, also those
        without a value. Equal texts may be on several.
        """
        if column != table.routing.upper():
            stored = table.column(column)
            if stored is None or not stored.facts.not_null:
                return False
        return self.routes_by_number(table, column)

    def routes_by_number(self, table: Table, column: str) -> bool:
        """Whether rows of `table` are found by this column (upper case), and it holds integers."""
        key = self._keys.key(table, column)
        return key is not None and not key.takes_text

    # finding comparisons

    def find(self, span: Span, block: Block) -> list[Match]:
        """Collect the comparisons in `span`, outside of subqueries: those that are new."""
        new: list[Match] = []
        booleans = self._booleans(span, block)
        inner = {query.first: query.end for query in block.queries}
        at = span.first
        while at < span.end:
            if at in inner:
                at = inner[at]
                continue
            match = None
            found = len(self.comparisons), len(self.ranges), len(self.offsets)
            if at == span.first or self._opens(at - 1, booleans):
                match = self._match(at, span.end, block)
            if match is not None and (match.span.end == span.end or self._closes(match.span.end, booleans)):
                self.matches[match.span] = match
                new.append(match)
                at = match.span.end
            else:  # what was read is a part of something else
                del self.comparisons[found[0] :], self.ranges[found[1] :], self.offsets[found[2] :]
                at += 1
        return new

    def _booleans(self, span: Span, block: Block) -> set[int]:
        """The ANDs in `span` that are no part of a BETWEEN."""
        source, found = self._source, set()
        inner = {query.first: query.end for query in block.queries}
        pending = [0]
        at = span.first
        while at < span.end:
            if at in inner:
                at = inner[at]
                continue
            if source.is_op(at, "(") or source.is_word(at, "CASE"):
                pending.append(0)
            elif (source.is_op(at, ")") or source.is_word(at, "END")) and len(pending) > 1:
                pending.pop()
            elif source.is_word(at, "BETWEEN"):
                pending[-1] += 1
            elif source.is_word(at, "AND"):
                if pending[-1]:
                    pending[-1] -= 1
                else:
                    found.add(at)
            at += 1
        return found

    def _opens(self, at: int, booleans: set[int]) -> bool:
        """Whether the token at `at` binds what follows less than a comparison does."""
        source = self._source
        if at in booleans or source.is_op(at, "(", ",", "&&"):
            return True
        if source.is_op(at, "||"):
            return not self._keys.env.pipes_as_concat
        if source.is_word(at, "NOT"):
            return not self._keys.env.high_not_precedence
        return source.is_word(at, *_LEFT)

    def _closes(self, at: int, booleans: set[int]) -> bool:
        """Whether the token at `at` binds what stands before it less than a comparison does."""
        source = self._source
        if at in booleans or source.is_op(at, ")", ",", "&&"):
            return True
        if source.is_op(at, "||"):
            return not self._keys.env.pipes_as_concat
        return source.is_word(at, *_RIGHT)

    def _match(self, at: int, end: int, block: Block) -> Match | None:
        chain = chain_at(self._source, at)
        if chain is not None:
            found = self._routing_column(chain, block)
            return None if found is None else self._column_first(chain, *found, end, block)
        return self._constant_first(at, end, block)

    def _routing_column(self, chain: Chain, block: Block) -> tuple[TableRef, Key] | None:
        if chain.column not in self._routing_names:
            return None
        ref = self._scope.table_of(chain, block)
        target = None if ref is None else self._scope.targets[ref]
        if ref is None or target is None or target.table is None or target.form != "sharded":
            return None
        key = self._keys.key(target.table, chain.column)
        return None if key is None else (ref, key)

    def _column_first(self, chain: Chain, ref: TableRef, key: Key, end: int, block: Block) -> Match | None:
        source, at = self._source, chain.end
        if source.is_op(at, "=", "<=>", "!=", "<>"):
            relation = Relation.ONE_OF if source.is_op(at, "=", "<=>") else Relation.NONE_OF
            found = self._constant(key, at + 1, end)
            if found is not None:
                span = Span(chain.first, found[1])
                return self._single(span, ref, relation, key, found[0], chain, Span(at + 1, found[1]))
            return self._columns(chain, ref, key, at, block) if source.is_op(at, "=") else None
        if source.is_op(at, "<", "<=", ">", ">="):
            found = self._constant(key, at + 1, end)
            constants = Span(at + 1, found[1] if found is not None else at + 1)
            return None if found is None else self._order(chain, ref, key, found[0], constants, constants.end)
        negated = source.is_word(at, "NOT")
        at += negated
        if source.is_word(at, "IN") and source.is_op(at + 1, "("):
            return self._in(chain, ref, key, at + 1, Relation.NONE_OF if negated else Relation.ONE_OF)
        if source.is_word(at, "BETWEEN"):
            return self._between(chain, ref, key, at + 1, end, negated=negated)
        return None

    def _order(
        self, chain: Chain, ref: TableRef, key: Key, value: Value, constants: Span, end: int
    ) -> Match | None:
        if not key.local:
            return None
        self.offsets.append(Offset(key.type, "alone", value, value))
        span = Span(min(chain.first, constants.first), max(chain.end, end))
        return Match(
            span, ref, Relation.ORDER, -1, chain, constants, None, ((constants, len(self.offsets) - 1),)
        )

    def _constant(self, key: Key, at: int, end: int) -> tuple[Value, int] | None:
        found = self._constants.prefix(at, end)
        if found is None:
            return None
        value = found[0]
        if key.takes_text and value.kind not in _AS_TEXT:
            return None
        as_text = self._keys.env.flavour.hex_is_text
        if not key.takes_text and (value.kind == "binary" or (value.kind == "bytes" and as_text)):
            return None  # a text there, a number on MySQL
        return None if self._strict and Comparison(key, (value,)).may_fail else found

    def _single(
        self,
        span: Span,
        ref: TableRef,
        relation: Relation,
        key: Key,
        value: Value,
        chain: Chain,
        constants: Span,
    ) -> Match:
        self.comparisons.append(Comparison(key, (value,), rewritten=key.local))
        return Match(span, ref, relation, len(self.comparisons) - 1, chain, constants)

    def _columns(self, chain: Chain, ref: TableRef, key: Key, at: int, block: Block) -> Match | None:
        """`column = column`, both routing alike."""
        other = chain_at(self._source, at + 1)
        found = None if other is None else self._routing_column(other, block)
        if other is None or found is None or found[0] is ref or not key.places_as(found[1]):
            return None
        span = Span(chain.first, other.end)
        return Match(span, ref, Relation.COLUMN, -1, chain, Span(at, at), found[0])

    def _in(self, chain: Chain, ref: TableRef, key: Key, open_: int, relation: Relation) -> Match | None:
        source = self._source
        close = source.closing[open_]
        span, inside = Span(chain.first, close + 1), Span(open_ + 1, close)
        token = source.at(open_ + 1)
        if token.kind == LIST:
            if key.takes_text and token.text != "string":
                return None
            comparison = Comparison(key, (), token.literal, token.text, several=self._folds)
        else:
            constants, nulls = self._constant_list(key, inside)
            if constants is None:
                return self._texts(chain, ref, key, span, inside)
            texts = key.rule == "id" and any(one.kind in _AS_DOUBLES for one in constants)
            rewritten = (key.local or texts) and not nulls  # a text in a list may be compared as a double
            comparison = Comparison(key, tuple(constants), rewritten=rewritten, several=self._folds)
        if self._strict and comparison.may_fail:
            return None
        self.comparisons.append(comparison)
        return Match(span, ref, relation, len(self.comparisons) - 1, chain, inside)

    def _texts(self, chain: Chain, ref: TableRef, key: Key, span: Span, inside: Span) -> Match | None:
        """Strings and the like among other values of an IN list, as the integers that they are for a BIGINT
        column (`local_id + K` is none, and compared with a string it would be made a double).
        """
        source, found = self._source, []
        if key.rule not in ("object", "id") or self._strict:
            return None
        for at in range(*inside):
            alone = source.is_op(at - 1, "(", ",") and source.is_op(at + 1, ")", ",")
            text = source.at(at).kind in _TEXTS or at in source.marks
            value = self._constant(key, at, at + 1) if alone and text else None
            if value is not None:
                self.offsets.append(Offset(key.type, "whole", value[0], value[0]))
                found.append((Span(at, at + 1), len(self.offsets) - 1))
        constants = Span(inside.first, inside.first)
        return Match(span, ref, Relation.TEXTS, -1, chain, constants, None, tuple(found)) if found else None

    def _constant_list(self, key: Key, inside: Span) -> tuple[list[Value] | None, bool]:
        """The constants of an IN list (None: it has others), and whether NULL is in it, too."""
        found: list[Value] = []
        nulls = False
        at = inside.first
        if at == inside.end or self._source.is_op(inside.end - 1, ","):
            raise Unreadable("a value is missing in an IN list")
        while at < inside.end:
            if self._source.is_word(at, "NULL"):
                nulls, at = True, at + 1
            else:
                constant = self._constant(key, at, inside.end)
                if constant is None:
                    return None, nulls
                found.append(constant[0])
                at = constant[1]
            if at < inside.end and not self._source.is_op(at, ","):
                return None, nulls
            at += 1
        return found, nulls

    def _between(
        self, chain: Chain, ref: TableRef, key: Key, at: int, end: int, *, negated: bool
    ) -> Match | None:
        low = self._constants.prefix(at, end)
        if low is None or not self._source.is_word(low[1], "AND") or key.rule not in ("object", "id"):
            return None
        high = self._constants.prefix(low[1] + 1, end)
        if high is None or (self._strict and (low[0].may_fail or high[0].may_fail)):
            return None
        offsets: tuple[tuple[Span, int], ...] = ()
        if key.local:
            number = len(self.offsets)
            self.offsets.append(Offset(key.type, "low", low[0], high[0]))
            self.offsets.append(Offset(key.type, "high", high[0], high[0]))
            offsets = (Span(at, low[1]), number), (Span(low[1] + 1, high[1]), number + 1)
        span = Span(chain.first, high[1])
        if negated:
            return Match(span, ref, Relation.ORDER, -1, chain, Span(at, at), None, offsets)
        self.ranges.append(Between(key, low[0], high[0]))
        return Match(span, ref, Relation.BETWEEN, len(self.ranges) - 1, chain, Span(at, at), None, offsets)

    def _constant_first(self, at: int, end: int, block: Block) -> Match | None:
        source = self._source
        found = self._constants.prefix(at, end)
        if found is None or not source.is_op(found[1], "=", "<=>", "!=", "<>", "<", "<=", ">", ">="):
            return None
        chain = chain_at(source, found[1] + 1)
        column = None if chain is None else self._routing_column(chain, block)
        if chain is None or column is None:
            return None
        ref, key = column
        value = self._constant(key, at, end)
        if value is None:
            return None
        if source.is_op(found[1], "<", "<=", ">", ">="):
            return self._order(chain, ref, key, value[0], Span(at, found[1]), chain.end)
        relation = Relation.ONE_OF if source.is_op(found[1], "=", "<=>") else Relation.NONE_OF
        return self._single(Span(at, chain.end), ref, relation, key, value[0], chain, Span(at, found[1]))

    # reading a condition

    def route(self, span: Span, ref: TableRef) -> Route:
        """The shards on which rows of `ref` can be that the condition is true for."""
        return ALL if self._assigns(span) else self._or(span, ref)

    def _assigns(self, span: Span) -> bool:
        if span not in self._assigning:
            self._assigning[span] = any(self._source.is_op(at, ":=") for at in range(*span))
        return self._assigning[span]

    def _or(self, span: Span, ref: TableRef) -> Route:
        span = unwrapped(self._source, span)
        parts = self._split(span, *_SOME)
        if len(parts) == 1:
            return both([self._leaf(part, ref) for part in self._split(span, *_ALL)])
        if any(self._source.is_word(part.first - 1, "XOR") for part in parts[1:]):
            return ALL
        if any(self._source.is_op(part.first - 1, "||") for part in parts[1:]) and (
            self._keys.env.pipes_as_concat
        ):
            return ALL
        return either([self._or(part, ref) for part in parts])

    def _leaf(self, span: Span, ref: TableRef) -> Route:
        bare = unwrapped(self._source, span)
        if bare != span:
            return self._or(bare, ref)
        match = self.matches.get(span)
        if match is None or match.ref is not ref:
            return ALL
        if match.relation is Relation.ONE_OF:
            return Route("in", match.number)
        return Route("between", match.number) if match.relation is Relation.BETWEEN else ALL

    def terms(self, span: Span) -> list[Span]:
        """The parts of a condition that must all be true for it to be: itself, when it is no AND."""
        found = self._terms.get(span)
        if found is None:
            found = self._terms[span] = self._anded(span)
        return found

    def _anded(self, span: Span) -> list[Span]:
        bare = unwrapped(self._source, span)
        if len(self._split(bare, *_SOME)) > 1:
            return [span]
        parts = self._split(bare, *_ALL)
        if len(parts) == 1:
            return [bare]
        return [term for part in parts for term in self.terms(part)]

    def _split(self, span: Span, *separators: str) -> list[Span]:
        """As `split_at`; each table of a join asks for the same."""
        found = self._splits.get((span, separators))
        if found is None:
            found = self._splits[span, separators] = split_at(self._source, span, *separators)
        return found

    def equalities(self, span: Span) -> list[Match]:
        """The `column = column` leaves that must be true for the condition to be."""
        if self._assigns(span):
            return []
        found = (self.matches.get(term) for term in self.terms(span))
        return [match for match in found if match is not None and match.relation is Relation.COLUMN]
