"""The columns of groups that shards make: the keys, and the partial aggregates, each once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from rewriter.plans.gather import Groups, quoted
from rewriter.route.context import Statement
from rewriter.route.scope import Chain, chain_at
from rewriter.splice import Part, Template
from rewriter.text.aggregates import is_aggregate
from rewriter.text.edits import Edits
from rewriter.text.facts import Span, TableRef
from rewriter.text.tokens import SYSTEM, VARIABLE, WORD
from rewriter.text.written import encoded

from .pure import PURE

_WORDS = """
AND OR NOT IS NULL LIKE IN BETWEEN TRUE FALSE DIV MOD XOR REGEXP RLIKE CASE WHEN THEN ELSE END BINARY AS
SIGNED UNSIGNED CHAR INTERVAL DAY HOUR MINUTE SECOND MONTH YEAR DATE DATETIME TIME DECIMAL JSON ASC DESC
UNKNOWN ESCAPE INTEGER
"""
KEYWORDS: Final = frozenset(_WORDS.split())
"""Words that may be no columns."""


class Uncombined(Exception):
    """The block cannot be combined from partial groups."""


class Item(NamedTuple):
    """A token, or a column's name as a whole, in a form that is equal for what means the same."""

    what: tuple[object, ...]
    span: Span


What = tuple[tuple[object, ...], ...]


@dataclass(frozen=True, slots=True)
class Key:
    """An expression that shards group by, and its column's name. `plain`: it is a column of the table, whose
    name stays. `closed`: whatever stands around it, nothing binds to a part of it.
    """

    what: What
    span: Span
    name: bytes
    plain: bool = False
    closed: bool = False


class GroupColumns:
    """The columns of the groups of one reference to a table, as they are found in its block."""

    def __init__(
        self, statement: Statement, ref: TableRef, columns: tuple[str, ...], *, numbered: bool
    ) -> None:
        """`columns`: the table's, as far as they are known. `numbered`: its primary key is `id`."""
        self._numbered = numbered
        self._statement = statement
        self._source = statement.source
        self._ref = ref
        self._columns = columns
        self.keys: list[Key] = []
        self._partials: dict[What, tuple[bytes, tuple[Part, ...]]] = {}
        self.decimals: set[str] = set()
        self.integers: set[str] = set()
        self.absent: set[str] = set()

    def groups(self) -> Groups:
        """All of them. Raises Uncombined when there are none."""
        parts: list[Part] = []
        for key in self.keys:
            parts += [b", ", *((quoted(key.name),) if key.plain else self._of_key(key))]
        for name, text in self._partials.values():
            parts += [b", ", *text, b" AS " + name]
        if not parts:
            raise Uncombined
        return Groups(
            select=Template(parts[1:]),
            keys=len(self.keys),
            decimals=frozenset(self.decimals),
            integers=frozenset(self.integers),
            absent=frozenset(self.absent),
            first=self._numbered and bool(self.keys),
        )

    def _of_key(self, key: Key) -> tuple[Part, ...]:
        """An expression's text. YEAR(…) is a number; a column made of it would be a YEAR that shows 0000."""
        number = key.closed and self._source.is_word(key.span.first, "YEAR")
        return (*self._text(key.span), b" + 0 AS " if number else b" AS ", key.name)

    def _text(self, span: Span) -> tuple[Part, ...]:
        return Edits(self._source).inside(span)

    def items(self, span: Span) -> list[Item]:
        """The tokens of `span`; a column's name is one, whatever qualifies it."""
        source, at = self._source, span.first
        found = []
        while at < span.end:
            chain = chain_at(source, at)
            if chain is not None and chain.end <= span.end:
                name = (chain.parts[-1].lower(),)
                what = ("column", *(name if self.fits(chain) else chain.parts))
                found.append(Item(what, Span(at, chain.end)))
                at = chain.end
                continue
            token = source.tokens[at]
            text = source.text(at, at + 1) if token.literal >= 0 else token.text
            found.append(Item((token.kind, text), Span(at, at + 1)))
            at += 1
        return found

    def what(self, span: Span) -> What:
        """What is equal for expressions that are."""
        return tuple(one.what for one in self.items(span))

    def fits(self, chain: Chain) -> bool:
        """Whether a name is qualified by the table, or not at all."""
        return len(chain.parts) == 1 or chain.parts[-2] == self._ref.label

    def maybe_no_column(self, chain: Chain) -> bool:
        """Whether this may be a keyword; the table must then have no such column."""
        word = self._source.tokens[chain.first].kind == WORD
        return word and len(chain.parts) == 1 and chain.column in KEYWORDS

    def check(self, span: Span) -> None:
        """That an expression gives the same on a shard as anywhere, and has no aggregate in it."""
        source = self._source
        for at in range(*span):
            token = source.tokens[at]
            if token.kind in (VARIABLE, SYSTEM) or token.text in ("?", "{") or is_aggregate(source, at):
                raise Uncombined
            if source.is_op(at + 1, "(") and source.is_name(at) and not source.is_word(at, *PURE):
                raise Uncombined

    # keys

    def has(self, chain: Chain) -> bool:
        """Whether this is a column that is a key."""
        what = (("column", chain.parts[-1].lower()),)
        return self.fits(chain) and any(key.what == what for key in self.keys)

    def plain(self, chain: Chain) -> Key:
        """A column as a key."""
        name = chain.parts[-1]
        if not self.fits(chain) or (self.maybe_no_column(chain) and name.lower() not in self._columns):
            raise Uncombined
        what = (("column", name.lower()),)
        for key in self.keys:
            if key.what == what:
                return key
        self.keys.append(Key(what, Span(chain.first, chain.end), encoded(name), plain=True))
        return self.keys[-1]

    def key(self, span: Span) -> Key:
        """An expression as a key."""
        chain = chain_at(self._source, span.first)
        if chain is not None and chain.end == span.end:
            return self.plain(chain)
        what = self.what(span)
        for key in self.keys:
            if key.what == what:
                return key
        self.check(span)
        if any(self._source.is_op(at, "/") for at in range(*span)):
            raise Uncombined  # a quotient has more digits than it shows
        self._statement.guard(span)
        self.keys.append(Key(what, span, self._name(), closed=self._closed(span)))
        return self.keys[-1]

    def _name(self) -> bytes:
        return b"sg_%d" % (len(self.keys) + len(self._partials) + 1)

    def _closed(self, span: Span) -> bool:
        """`F(…)` or `column->'…'`."""
        source = self._source
        if source.is_name(span.first) and source.is_op(span.first + 1, "("):
            return source.closing[span.first + 1] == span.end - 1
        chain = chain_at(source, span.first)
        return chain is not None and source.is_op(chain.end, "->", "->>") and chain.end + 2 == span.end

    def key_at(self, items: list[Item], number: int) -> Key | None:
        """The expression that is a key and stands here as a whole."""
        for key in self.keys:
            end = number + len(key.what)
            if key.plain or end > len(items) or tuple(one.what for one in items[number:end]) != key.what:
                continue
            if key.closed and not self._source.is_op(items[number].span.first - 1, "."):
                return key
            opened = number == 0 or items[number - 1].what in (("operator", "("), ("operator", ","))
            shut = end == len(items) or items[end].what in (("operator", ")"), ("operator", ","))
            if opened and shut:
                return key
        return None

    # partial aggregates

    def partial(self, function: str, arguments: Span) -> bytes:
        """The name of the column of an aggregate over a shard's rows."""
        what = (("aggregate", function), *self.what(arguments))
        if what not in self._partials:
            self._statement.guard(arguments)
            text = (function.encode() + b"(", *self._text(arguments), b")")
            self._partials[what] = self._name(), text
        return self._partials[what][0]

    def sum(self, arguments: Span) -> bytes:
        """The name of the column of a sum, which must be DECIMAL."""
        if any(self._source.is_op(at, "/") for at in range(*arguments)):
            raise Uncombined  # each shard would round its part
        name = self.partial("SUM", arguments)
        self.decimals.add(name.decode())
        return name
