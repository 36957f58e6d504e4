"""What a condition does besides being true or not: may it be evaluated elsewhere, or for fewer rows?"""

from __future__ import annotations

from rewriter.route.values import slot_at
from rewriter.text.facts import Span
from rewriter.text.tokens import HINT, SYSTEM, VARIABLE, Source

from .pure import NARROWING


def assigns(source: Source, span: Span) -> bool:
    """Whether a condition counts the rows that it looks at, so that it must see them all."""
    return any(source.is_op(at, ":=") for at in range(*span))


def varies(source: Source, span: Span) -> bool:
    """Whether a user variable is named."""
    return any(source.tokens[at].kind == VARIABLE for at in range(*span))


def deterministic(source: Source, span: Span) -> bool:
    """Whether the condition gives the same wherever and whenever it is evaluated."""
    for at in range(*span):
        token = source.tokens[at]
        if slot_at(source, at) is not None:
            continue  # the session knows its value
        if token.kind in (VARIABLE, SYSTEM, HINT) or token.text == "{":
            return False
        if token.text == "?" and at not in source.marks:
            return False
        if source.is_op(at + 1, "(") and source.is_name(at) and not source.is_word(at, *NARROWING):
            return False
    return True
