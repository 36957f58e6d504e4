"""Conditions as small values: what the second reader says a condition is, with the places of its parts.

`kind` of a `Term`:

    and, or        of two parts and more; parentheses, and operators of the same kind in them, are gone
    xor, not       of two, of one
    =, <=>, <>, <, <=, >, >=       of two
    in             the first part among the others (a subquery is `other`)
    between        the first part between the other two
    is null, is true, is false     of one
    case           condition, value, condition, value …, and the value of ELSE: also of IF() and CASE x WHEN
    coalesce       of one and more: also of IFNULL()
    integer        what CAST(… AS SIGNED or UNSIGNED) makes of its part
    tuple          (a, b)
    select         a scalar subquery without tables: of its one expression
    +, -           of two; `negative` of one
    strict         other operators of two, LIKE and REGEXP among them: NULL when one of the two is
    column, number, null, true, false
    other          anything else, which nothing is known of
"""

from __future__ import annotations

from typing import Final, NamedTuple

from rewriter.text.facts import Span

NOWHERE: Final = Span(-1, -1)
"""The place of what is not written as one piece of text."""

COMPARISONS: Final = frozenset({"=", "<=>", "<>", "<", "<=", ">", ">="})
TRUTHS: Final = COMPARISONS | {
    *("and", "or", "xor", "not", "in", "between", "is null", "is true", "is false", "true", "false"),
}
"""Kinds whose value is 1, 0 or NULL."""


class Term(NamedTuple):
    """A condition, or a part of one; `span` is its place, without parentheses around it."""

    kind: str
    span: Span = NOWHERE
    parts: tuple[Term, ...] = ()

    def __str__(self) -> str:
        if not self.parts:
            return self.kind
        return f"{self.kind}({', '.join(map(str, self.parts))})"


class Joined(NamedTuple):
    """A join: its `side` ("LEFT", "RIGHT" or ""), where the ON condition stands, if there is one, and whether
    its right side is a single table or derived table that no USING or NATURAL joins.
    """

    side: str
    on: Span | None
    plain: bool
