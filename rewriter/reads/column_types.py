"""What is known of the values of an expression: the declared type of a column, and how values of it order."""

from __future__ import annotations

from typing import Final

from rewriter.route.context import Splicer, not_yet
from rewriter.text.facts import Block, Span
from rewriter.text.spans import unwrapped
from rewriter.text.tokens import HEX, INTEGER, NUMBER, OPERATOR, PREFIXED, STRING, Source

from .json_values import is_json
from .pure import PURE

_BY_VALUE: Final = ("integer", "exact", "real", "bits", "day", "time", "moment", "bytes", "blob")
"""The families of types whose values order by themselves."""


class Cannot(Exception):
    """Why a SELECT cannot run on several shards."""

    def __init__(self, what: str, reason: str, alternative: str = "") -> None:
        super().__init__(what)
        self.plan = not_yet(what, reason, alternative)


def by_value(splicer: Splicer, block: Block, span: Span) -> bool:
    """Whether values order by themselves: numbers, dates, bytes; not text."""
    source = splicer.source
    declared = splicer.columns.type_of(block, span)
    if declared.kind:
        return declared.family in _BY_VALUE
    if source.is_word(span.first, "COUNT", "SUM", "LENGTH", "CHAR_LENGTH", "ABS", "RAND", "UNIX_TIMESTAMP"):
        return source.is_op(span.first + 1, "(") and source.closing[span.first + 1] == span.end - 1
    return False


def is_exact(splicer: Splicer, block: Block, span: Span) -> bool:
    """Whether the sum of these values is certainly the same in any order."""
    source = splicer.source
    declared = splicer.columns.type_of(block, span)
    if declared.kind:
        return declared.integer or declared.kind in ("decimal", "year")
    if source.is_word(span.first, "LENGTH", "CHAR_LENGTH", "SIGN", "YEAR") and source.is_op(
        span.first + 1, "("
    ):
        return source.closing[span.first + 1] == span.end - 1
    return span.end - span.first == 1 and source.tokens[span.first].kind == "integer"


def enumerated(splicer: Splicer, block: Block, span: Span) -> bool:
    """Whether this is an ENUM or SET column, which orders by number."""
    return splicer.columns.type_of(block, span).listed


def refuse_json(splicer: Splicer, block: Block, span: Span) -> None:
    """JSON values have an order of their own, which only a server knows."""
    if is_json(splicer, block, span):
        raise Cannot("ordering JSON values", "their order is not known here", "Use ->> or CAST.")


_CONSTANTS: Final = frozenset({INTEGER, NUMBER, HEX, PREFIXED, STRING, OPERATOR})


_WORDS: Final = ("NULL", "AND", "OR", "NOT", "AS", "SIGNED", "UNSIGNED", "DECIMAL")


def constant(splicer: Splicer, span: Span) -> bool:
    """Whether an expression is certainly the same for all rows, so that nothing is ordered by it."""
    source = splicer.source
    if position(source, span):
        return False
    for at in range(*span):
        token = source.tokens[at]
        called = source.is_op(at + 1, "(") and source.is_word(at, *PURE)
        if token.kind not in _CONSTANTS and not called and not source.is_word(at, *_WORDS):
            return False
    return not any(source.is_op(at, ":=", "?") for at in range(*span))


def position(source: Source, span: Span) -> bool:
    """Whether this is a number, also with signs and in parentheses, so that in ORDER BY it may mean a column:
    for MariaDB `- -2` is 2.
    """
    span = unwrapped(source, span)
    while source.is_op(span.first, "+", "-"):
        span = unwrapped(source, Span(span.first + 1, span.end))
    return span.end - span.first == 1 and source.tokens[span.first].kind == INTEGER
