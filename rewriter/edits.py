"""Changes to a statement's text, collected by place, then made into a template.

Everything that no edit touches stays the client's very bytes, with its literals as holes.
"""

from __future__ import annotations

from typing import NamedTuple

from .facts import Span
from .splice import Part, Template
from .tokens import Source


class Edit(NamedTuple):
    """`parts` instead of the bytes from `start` to `end` (an insertion when these are equal)."""

    start: int
    end: int
    parts: tuple[Part, ...]


class Edits:
    """The edits of one statement."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._edits: list[Edit] = []

    def copy(self) -> Edits:
        """The same edits, to go on from."""
        other = Edits(self._source)
        other._edits = list(self._edits)
        return other

    def replace(self, span: Span, *parts: Part) -> None:
        """`parts` instead of the tokens of `span`; earlier edits of it, and inside of it, are dropped."""
        tokens = self._source.tokens
        self.replace_bytes(tokens[span.first].start, tokens[span.end - 1].end, *parts)

    def replace_bytes(self, start: int, end: int, *parts: Part) -> None:
        """`parts` instead of the bytes from `start` to `end`."""
        self._edits.append(Edit(start, end, parts))

    def remove(self, span: Span) -> None:
        """Take out the tokens of `span`, leaving a space."""
        self.replace(span, b" ")

    def insert_behind(self, token: int, *parts: Part) -> None:
        """`parts` behind the token with this index."""
        end = self._source.tokens[token].end
        self._edits.append(Edit(end, end, parts))

    def touches(self, span: Span) -> bool:
        """Whether an edit is inside the tokens of `span`."""
        tokens = self._source.tokens
        start, end = tokens[span.first].start, tokens[span.end - 1].end
        return any(start <= edit.start and edit.end <= end for edit in self._edits)

    def __bool__(self) -> bool:
        return bool(self._edits)

    def parts(self, start: int, end: int) -> tuple[Part, ...]:
        """The text from byte `start` to `end`, edited."""
        found: list[Part] = []
        at = start
        for _, edit in sorted((_order(number, edit), edit) for number, edit in enumerate(self._edits)):
            if edit.start < at or edit.end > end:
                continue  # inside of a larger one, or elsewhere
            found += original(self._source, at, edit.start)
            found += edit.parts
            at = edit.end
        return (*found, *original(self._source, at, end))

    def inside(self, span: Span) -> tuple[Part, ...]:
        """The tokens of `span`, edited, without what is inserted at its ends."""
        tokens = self._source.tokens
        start, end = tokens[span.first].start, tokens[span.end - 1].end
        inner = Edits(self._source)
        inner._edits = [edit for edit in self._edits if edit.start < edit.end or start < edit.start < end]
        return inner.parts(start, end)

    def template(self, first: int = 0, end: int | None = None) -> Template:
        """The tokens from `first` to `end` (all of them by default), edited.

        What stands before the first and behind the last token (comments) is left out.
        """
        tokens = self._source.tokens
        last = tokens[(len(tokens) if end is None else end) - 1]
        return Template(self.parts(tokens[first].start, last.end))


def _order(number: int, edit: Edit) -> tuple[int, int, int, int]:
    """By place; an insertion before a replacement there, a larger or later replacement before others."""
    insertion = edit.start == edit.end
    return edit.start, 0 if insertion else 1, -edit.end, number if insertion else -number


def original(source: Source, start: int, end: int) -> list[bytes | int]:
    """The statement's own text from byte `start` to `end`, its literals as holes."""
    found: list[bytes | int] = []
    for first, last, literal in source.pieces:
        if last <= start or first >= end:
            continue
        if literal >= 0 and start <= first and last <= end:
            found.append(literal)
        else:
            found.append(source.sql[max(first, start) : min(last, end)])
    return found
