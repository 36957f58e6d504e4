"""Changes to a statement's text, collected by place, then made into a template.

Everything that no edit touches stays the client's very bytes, with its literals as holes.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from operator import itemgetter
from typing import NamedTuple

from rewriter.splice import Part, Template

from .facts import Span
from .tokens import Source


class Edit(NamedTuple):
    """`parts` instead of the bytes from `start` to `end` (an insertion when these are equal)."""

    start: int
    end: int
    parts: tuple[Part, ...]


class Edits:
    """The edits of one statement."""

    def __init__(self, source: Source, edits: Iterable[Edit] = ()) -> None:
        self._source = source
        #: In the order to apply them, each with what gives that order.
        self._edits: list[tuple[tuple[int, int, int, int], Edit]] = []
        for edit in edits:
            self._add(edit)

    def copy(self) -> Edits:
        """The same edits, to go on from."""
        made = Edits(self._source)
        made._edits = list(self._edits)
        return made

    def replace(self, span: Span, *parts: Part) -> None:
        """`parts` instead of the tokens of `span`; earlier edits of it, and inside of it, are dropped."""
        tokens = self._source.tokens
        self._add(Edit(tokens[span.first].start, tokens[span.end - 1].end, parts))

    def remove(self, span: Span) -> None:
        """Take out the tokens of `span`, leaving a space."""
        self.replace(span, b" ")

    def insert_behind(self, token: int, *parts: Part) -> None:
        """`parts` behind the token with this index."""
        end = self._source.tokens[token].end
        self._add(Edit(end, end, parts))

    def _add(self, edit: Edit) -> None:
        insort(self._edits, (_order(len(self._edits), edit), edit), key=itemgetter(0))

    def _within(self, start: int, end: int) -> list[Edit]:
        """The edits from byte `start` to `end`, in the order to apply them."""
        first = bisect_left(self._edits, start, key=_start)
        last = bisect_right(self._edits, end, key=_start)
        return [edit for _, edit in self._edits[first:last] if edit.end <= end]

    def touches(self, span: Span) -> bool:
        """Whether an edit is inside the tokens of `span`."""
        tokens = self._source.tokens
        return bool(self._within(tokens[span.first].start, tokens[span.end - 1].end))

    def __bool__(self) -> bool:
        return bool(self._edits)

    def parts(self, start: int, end: int) -> tuple[Part, ...]:
        """The text from byte `start` to `end`, edited."""
        return self._apply(self._within(start, end), start, end)

    def inside(self, span: Span) -> tuple[Part, ...]:
        """The tokens of `span`, edited, without what is inserted at its ends."""
        tokens = self._source.tokens
        start, end = tokens[span.first].start, tokens[span.end - 1].end
        edits = self._within(start, end)
        return self._apply(
            [one for one in edits if one.start < one.end or start < one.start < end], start, end
        )

    def _apply(self, edits: list[Edit], start: int, end: int) -> tuple[Part, ...]:
        found: list[Part] = []
        at = start
        for edit in edits:
            if edit.start < at:
                continue  # inside of a larger one
            found += original(self._source, at, edit.start)
            found += edit.parts
            at = edit.end
        return (*found, *original(self._source, at, end))

    def template(self, first: int = 0, end: int | None = None) -> Template:
        """The tokens from `first` to `end` (all of them by default), edited.

        What stands before the first and behind the last token (comments) is left out.
        """
        tokens = self._source.tokens
        last = tokens[(len(tokens) if end is None else end) - 1]
        return Template(self.parts(tokens[first].start, last.end))


def _start(one: tuple[tuple[int, int, int, int], Edit]) -> int:
    return one[1].start


def _order(number: int, edit: Edit) -> tuple[int, int, int, int]:
    """By place; an insertion before a replacement there, a larger or later replacement before others."""
    insertion = edit.start == edit.end
    return edit.start, 0 if insertion else 1, -edit.end, number if insertion else -number


def original(source: Source, start: int, end: int) -> list[bytes | int]:
    """The statement's own text from byte `start` to `end`, its literals as holes."""
    found: list[bytes | int] = []
    number = bisect_right(source.pieces, start, key=itemgetter(1))
    while number < len(source.pieces) and source.pieces[number][0] < end:
        first, last, literal = source.pieces[number]
        number += 1
        if literal >= 0 and start <= first and last <= end:
            found.append(literal)
        else:
            found.append(source.sql[max(first, start) : min(last, end)])
    return found
