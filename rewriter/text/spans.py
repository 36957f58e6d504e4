"""Conditions cut into parts, by parentheses and words."""

from __future__ import annotations

from .facts import Span
from .tokens import Source


def unwrapped(source: Source, span: Span) -> Span:
    """`span` without parentheses around all of it."""
    while source.is_op(span.first, "(") and source.closing[span.first] == span.end - 1:
        if source.is_word(span.first + 1, "SELECT", "WITH", "VALUES", "TABLE"):
            return span
        span = Span(span.first + 1, span.end - 1)
    return span


def split_at(source: Source, span: Span, *separators: str) -> list[Span]:
    """The parts of `span` between separators at its own level."""
    parts, first, at = [], span.first, span.first
    pending = cases = 0
    while at < span.end:
        if source.is_op(at, "("):
            at = source.closing[at]
        elif source.is_word(at, "CASE"):
            cases += 1
        elif source.is_word(at, "END") and cases:
            cases -= 1
        elif cases == 0 and source.is_word(at, "BETWEEN"):
            pending += 1
        elif cases == 0 and source.is_word(at, "AND") and pending:
            pending -= 1
        elif cases == 0 and (source.is_word(at, *separators) or source.is_op(at, *separators)):
            parts.append(Span(first, at))
            first = at + 1
        at += 1
    parts.append(Span(first, span.end))
    return parts
