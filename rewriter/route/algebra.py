"""For which shards can a condition be true, and for which can it be false?

SQL's logic has three values: what is not true need not be false. So a condition is asked for both, each
by itself: NOT a is true where a is false; a XOR b where one is true and the other false. `_TRUE` and `_FALSE`
say for each kind of term what that means for its parts; a kind that is not there narrows nothing.

Every answer but ALL also means that the condition is not so (true, or false) for a row all of whose columns
of this table are NULL, as outer joins make them: narrowing may leave out what would stand there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from rewriter.text.facts import Span, TableRef
from rewriter.text.literals import NotPlain, plain_integer
from rewriter.text.tokens import INTEGER, LIST
from rewriter.tree.terms import TRUTHS, Term

from .predicates import Conditions, Relation
from .routing import ALL, NONE, Between, Comparison, Key, Route, both, either
from .scope import Chain, chain_at
from .values import Value

_MIRRORED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_NEGATED: Final = {"<": ">=", ">": "<=", "<=": ">", ">=": "<"}
_ORDERS: Final[dict[str, Callable[[int, int], bool]]] = {
    "=": operator.eq, "<=>": operator.eq, "<>": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_INTEGERS: Final = frozenset({"integer", "negative", "+", "-", "*"})
_GIVEN: Final = frozenset({"slot", "parameter"})
_CAST: Final = frozenset({"integer", "string", "slot", "parameter"})
_IDS: Final = ("object", "id")
_BOUNDS: Final = _INTEGERS | _GIVEN | {"string", "hex", "bits", "fixed"}

Bound = tuple[str, Term, Term]
"""A comparison: its operator and the two sides."""


MAX_STEPS: Final = 5000
"""So many terms are asked for; of further ones nothing is known. A XOR asks twice for all that is in it."""


class Place(NamedTuple):
    """A routing column in an expression. A value of the expression is one of the column's after the steps of
    `undo`, the outermost first: an operation, and its second operand. `exact`: it is not the bare column, so
    that a text or double next to it is compared as a double.
    """

    key: Key
    undo: tuple[tuple[str, Value], ...] = ()
    exact: bool = False


class Algebra:
    """The conditions on one table's rows. Appends to the comparisons and ranges of `conditions`.

    `guards`: the places of literals that the answers depend on.
    """

    def __init__(
        self, conditions: Conditions, column: Callable[[Chain], Place | None], ref: TableRef | None
    ) -> None:
        """`column`: what a column says of where rows are; `ref`: the table whose comparisons the first reader
        has found, None for none.
        """
        self._conditions = conditions
        self._column = column
        self._ref = ref
        self.guards: list[Span] = []
        self._steps = 0

    def true(self, term: Term) -> Route:
        """The shards on which a row can be that the condition is true for. Raises RecursionError."""
        return self._of(term, 1, _TRUE)

    def false(self, term: Term) -> Route:
        """The same for a row that the condition is false for, and not just NULL. Raises RecursionError."""
        return self._of(term, 0, _FALSE)

    def _of(self, term: Term, wanted: int, rules: dict[str, _Rule]) -> Route:
        self._steps += 1
        constant = self._constant_truth(term)
        if constant is not None:
            return ALL if constant == wanted else NONE
        found = rules.get(term.kind)
        return ALL if found is None or self._steps > MAX_STEPS else found(self, term)

    # constants

    def _constant_truth(self, term: Term) -> int | None:
        """1, 0, or -1 for NULL; None for what is no constant that is known."""
        if term.kind in ("true", "false"):
            return int(term.kind == "true")
        if term.kind == "null":
            return -1
        try:
            if term.kind in _ORDERS:
                if not {one.kind for one in term.parts} <= {"number", "negative"}:
                    return None
                left, right = map(self._number, term.parts)
                return int(_ORDERS[term.kind](left, right))
            return int(self._number(term) != 0) if term.kind in ("number", "negative") else None
        except NotPlain:
            return None

    def _number(self, term: Term) -> int:
        """An integer, which the plan then depends on. Raises NotPlain: texts compare by their collations."""
        if term.kind == "negative":
            return -self._number(term.parts[0])
        source = self._conditions.source
        token = source.at(term.span.first)
        if token.kind != INTEGER or term.span.end != term.span.first + 1:
            raise NotPlain
        self.guards.append(term.span)
        return plain_integer(source.literals[token.literal] if token.literal >= 0 else token.text.encode())

    # true, false

    def _all_true(self, term: Term) -> Route:
        bounds = self._bounds((one.kind, *_two(one)) for one in term.parts if one.kind in _MIRRORED)
        return both([*map(self.true, term.parts), *bounds])

    def _all_false(self, term: Term) -> Route:
        terms = (one for one in term.parts if one.kind in _MIRRORED)
        bounds = self._bounds((_NEGATED[one.kind], *_two(one)) for one in terms)
        return both([*map(self.false, term.parts), *bounds])

    def _some_true(self, term: Term) -> Route:
        return either([self.true(one) for one in term.parts])

    def _some_false(self, term: Term) -> Route:
        return either([self.false(one) for one in term.parts])

    def _part_true(self, term: Term) -> Route:
        return self.true(term.parts[0])

    def _part_false(self, term: Term) -> Route:
        return self.false(term.parts[0])

    def _differ(self, term: Term) -> Route:
        one, other = term.parts
        first = both([self.true(one), self.false(other)])
        return either([first, both([self.false(one), self.true(other)])])

    def _alike(self, term: Term) -> Route:
        one, other = term.parts
        first = both([self.true(one), self.true(other)])
        return either([first, both([self.false(one), self.false(other)])])

    def _case(self, term: Term, wanted: Callable[[Term], Route]) -> Route:
        """One of the values is as wanted, where its condition is true."""
        parts = term.parts
        found = [
            both([self.true(when), wanted(then)])
            for when, then in zip(parts[:-1:2], parts[1::2], strict=True)
        ]
        return either([*found, wanted(parts[-1])])

    def _case_true(self, term: Term) -> Route:
        return self._case(term, self.true)

    def _case_false(self, term: Term) -> Route:
        return self._case(term, self.false)

    # comparisons

    def _matched(self, term: Term) -> Route | None:
        """The route of a comparison that the first reader has found at the same place."""
        match = self._conditions.matches.get(term.span)
        if match is None or match.ref is not self._ref:
            return None
        if match.relation is Relation.ONE_OF and term.kind in ("=", "<=>", "in"):
            return Route("in", match.number)
        if match.relation is Relation.BETWEEN and term.kind == "between":
            return Route("between", match.number)
        return None

    def _of_truth(self, term: Term) -> Route | None:
        """A condition that is compared with 1 or 0; None when this is none."""
        for one, other in (term.parts, term.parts[::-1]):
            if one.kind not in TRUTHS or other.kind not in ("true", "false", "number"):
                continue
            try:
                number = int(other.kind == "true") if other.kind != "number" else self._number(other)
            except NotPlain:
                continue
            if number in (0, 1):
                return self.true(one) if (number == 1) is (term.kind != "<>") else self.false(one)
        return None

    def _equal_true(self, term: Term) -> Route:
        found = self._matched(term) or self._of_truth(term)
        if found is not None:
            return found
        written = term.span.first >= 0  # else CASE x WHEN y, where MySQL compares with a text as doubles
        return self._equal(*term.parts, safe=term.kind == "<=>", plain=written)

    def _unequal_true(self, term: Term) -> Route:
        return self._of_truth(term) or ALL

    def _unequal_false(self, term: Term) -> Route:
        return self._equal(*term.parts, safe=False, plain=True)

    def _equal(self, left: Term, right: Term, *, safe: bool, plain: bool) -> Route:
        """`safe`: by <=>, which is true for two NULLs. `plain`: as a comparison by itself, where servers make
        of a text the column's type; else the other side must be an integer.
        """
        if left.kind == right.kind == "tuple":
            if len(left.parts) != len(right.parts):
                return ALL
            pairs = zip(left.parts, right.parts, strict=True)
            return both([self._equal(one, other, safe=safe, plain=False) for one, other in pairs])
        for one, other in ((left, right), (right, left)):
            place = self._place(one)
            values = None if place is None else self._values(place, other, plain=plain)
            if place is not None and values is not None and not (safe and None in values):
                return self._one_of(place, values)
        return ALL

    def _among(self, term: Term) -> Route:
        found = self._matched(term)
        if found is not None:
            return found
        left, *rows = term.parts
        if left.kind == "tuple":
            width = len(left.parts)
            if any(row.kind != "tuple" or len(row.parts) != width for row in rows):
                return ALL
            columns = enumerate(left.parts)
            return both([self._in(one, [row.parts[at] for row in rows]) for at, one in columns])
        return self._in(left, rows)

    def _in(self, left: Term, items: list[Term]) -> Route:
        place = self._place(left)
        if place is None:
            return ALL
        token = self._conditions.source.at(items[0].span.first)
        if len(items) == 1 and token.kind == LIST:
            return self._in_list(place, token.literal, token.text)
        values: list[Value | None] = []
        for one in items:
            found = self._values(place, one, plain=False)
            if found is None:
                return ALL
            values += found
        return self._one_of(place, values)

    def _in_list(self, place: Place, literal: int, kind: str) -> Route:
        if (place.exact and kind == "string") or place.undo or (place.key.takes_text and kind != "string"):
            return ALL
        comparison = Comparison(place.key, (), literal, kind, rewritten=False)
        if self._conditions.strict and comparison.may_fail:
            return ALL
        return self._add(comparison)

    def _between(self, term: Term) -> Route:
        column, low, high = term.parts
        found = self._matched(term)
        return both(self._bounds([(">=", column, low), ("<=", column, high)])) if found is None else found

    def _one_of(self, place: Place, values: list[Value | None]) -> Route:
        found = []
        for value in values:
            if value is not None:
                for step, operand in place.undo:
                    value = Value(step, parts=(value, operand))
                found.append(value)
        return self._add(Comparison(place.key, tuple(found), rewritten=False)) if found else NONE

    def _add(self, comparison: Comparison) -> Route:
        self._conditions.comparisons.append(comparison)
        return Route("in", len(self._conditions.comparisons) - 1)

    def _bounds(self, terms: Iterable[Bound]) -> list[Route]:
        """The ranges of lower and upper bounds of a column, all of which hold."""
        low: dict[Key, Value] = {}
        high: dict[Key, Value] = {}
        for sign, left, right in terms:
            for kind, one, other in ((sign, left, right), (_MIRRORED[sign], right, left)):
                place = self._place(one)
                if place is None or place.exact or place.key.rule not in _IDS:
                    continue
                value = self._plain(place.key, other)
                if value is not None and value.kind in _BOUNDS:
                    (low if kind[0] == ">" else high).setdefault(place.key, value)
        ranges, found = self._conditions.ranges, []
        for key, value in low.items():
            if key in high:
                ranges.append(Between(key, value, high[key]))
                found.append(Route("between", len(ranges) - 1))
        return found

    # columns and values

    def _place(self, term: Term) -> Place | None:
        """The routing column of this table that the term is, perhaps with integers added to it."""
        if term.kind == "column":
            chain = chain_at(self._conditions.source, term.span.first)
            return self._column(chain) if chain is not None and chain.end == term.span.end else None
        if term.kind == "integer":
            place = self._place(term.parts[0])
            return place._replace(exact=True) if place is not None and place.key.rule in _IDS else None
        if term.kind not in ("+", "-"):
            return None
        left, right = term.parts
        steps = [(left, right, "-" if term.kind == "+" else "+")]
        steps += [(right, left, "-")] if term.kind == "+" else []
        for one, other, step in steps:
            place = self._place(one)
            value = None if place is None or place.key.takes_text else self._plain(place.key, other)
            if place is not None and value is not None and value.kind in _INTEGERS:
                return place._replace(undo=((step, value), *place.undo), exact=True)
        return None

    def _plain(self, key: Key, term: Term) -> Value | None:
        return self._conditions.constant_of(key, term.span) if term.span.first >= 0 else None

    def _values(self, place: Place, term: Term, *, plain: bool) -> list[Value | None] | None:
        """The constants one of which the term is, with None for NULL; None when that is not known."""
        if term.kind == "null":
            return [None]
        key = place.key
        value = self._plain(key, term)
        if value is not None:
            if (plain and not place.exact) or key.takes_text or value.kind in _INTEGERS:
                return [value]
            if value.kind in _GIVEN and not self._conditions.strict:
                return [Value("exact", parts=(value,))]
            return None
        if key.takes_text:
            return None
        if term.kind == "integer":
            return self._cast(place, term.parts[0])
        if term.kind == "select":
            return self._values(place, term.parts[0], plain=False)
        if term.kind == "coalesce":
            return self._first(place, term.parts)
        return self._chosen(place, term) if term.kind == "case" else None

    def _cast(self, place: Place, term: Term) -> list[Value | None] | None:
        """What CAST makes an integer of."""
        if term.kind == "null":
            return [None]
        value = self._plain(place.key, term)
        if value is None or value.kind not in _CAST or self._conditions.strict:
            return None
        return [Value("cast", parts=(value,))]

    def _first(self, place: Place, parts: tuple[Term, ...]) -> list[Value | None] | None:
        """COALESCE: up to the first that is an integer, and so not NULL. All must be integers: a text or a
        double among them makes all of them what it is.
        """
        found: list[Value | None] = []
        certain = False
        for part in parts:
            values = self._values(place, part, plain=False)
            if values is None:
                return None
            found += _typing(values) if certain else values
            certain = certain or all(one is not None and one.kind in _INTEGERS for one in values)
        return [one for one in found if one is not None] if certain else found

    def _chosen(self, place: Place, term: Term) -> list[Value | None] | None:
        """CASE and IF: the value of the first condition that is true, if that is known; else all of them."""
        found: list[Value | None] = []
        certain = False
        whens = (*map(self._constant_truth, term.parts[:-1:2]), 1)
        for when, then in zip(whens, (*term.parts[1::2], term.parts[-1]), strict=True):
            values = self._values(place, then, plain=False)
            if values is None:
                return None
            found += _typing(values) if certain or when in (0, -1) else values
            certain = certain or when == 1
        return found


def _typing(values: list[Value | None]) -> list[Value | None]:
    """Those of values that are never chosen whose type is not certain: it makes what is chosen a double."""
    return [one for one in values if one is not None and one.may_fail and one.kind != "cast"]


def _two(term: Term) -> tuple[Term, Term]:
    one, other = term.parts
    return one, other


_Rule = Callable[[Algebra, Term], Route]

_TRUE: Final[dict[str, _Rule]] = {
    "and": Algebra._all_true,
    "or": Algebra._some_true,
    "not": Algebra._part_false,
    "xor": Algebra._differ,
    "is true": Algebra._part_true,
    "is false": Algebra._part_false,
    "case": Algebra._case_true,
    "coalesce": Algebra._some_true,
    "=": Algebra._equal_true,
    "<=>": Algebra._equal_true,
    "<>": Algebra._unequal_true,
    "in": Algebra._among,
    "between": Algebra._between,
}
_FALSE: Final[dict[str, _Rule]] = {
    "and": Algebra._some_false,
    "or": Algebra._all_false,
    "not": Algebra._part_true,
    "xor": Algebra._alike,
    "case": Algebra._case_false,
    "coalesce": Algebra._some_false,
    "<>": Algebra._unequal_false,
}
