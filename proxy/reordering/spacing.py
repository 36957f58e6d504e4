"""Sequences of 38 digits, and the room between them: pure functions.

A list runs from its largest sequence to its smallest. A row that is moved gets the sequence halfway between
its new neighbours, so only its own row is written; a gap of g takes log2(g) such halvings. Rows that were
added a millisecond apart begin with 83. When a gap becomes too narrow, some rows around it are spread evenly
over the room that they have together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

MOST: Final = 10**38 - 1
"""The largest sequence; the smallest is 0."""

STEP: Final = 10**25
"""A millisecond: from an end of the list to the row that is put there."""


def between(above: int | None, below: int | None) -> int | None:
    """The sequence of a row between these, `above` being the larger one; None for an end of the list. None
    when there is no room.
    """
    high = MOST + 1 if above is None else above
    low = -1 if below is None else below
    if above is None and below is not None and below + STEP <= MOST:
        return max(below + STEP, 0)
    if below is None and above is not None and above - STEP >= 0:
        return min(above - STEP, MOST)
    middle = (high + low) // 2
    return middle if low < middle < high else None


def halvings(gap: int) -> int:
    """How many rows can be put into a gap, each beside the one before."""
    return max(gap, 1).bit_length() - 1


def narrowest(above: int | None, sequence: int, below: int | None) -> int:
    """The halvings that the gaps on both sides of a row take; an end of the list is no gap."""
    gaps = [above - sequence] if above is not None else []
    gaps += [sequence - below] if below is not None else []
    return min(map(halvings, gaps), default=halvings(MOST))


class Window(NamedTuple):
    """Some rows of a list that are next to each other: from `first` to before `end`, by their places in it,
    and the sequences that they shall have.
    """

    first: int
    end: int
    sequences: list[int]


def widened(sequences: Sequence[int], at: int, wanted: int, *, top: bool, bottom: bool) -> Window | None:
    """The smallest window around the row at place `at` of a list (descending) whose rows can be so spread
    that each gap of theirs takes `wanted` halvings. `top`, `bottom`: the list ends where `sequences` does.

    None: the rows given do not suffice. When they are the whole list, they share whatever room there is,
    unless there is none.
    """
    reach = 1
    while True:
        first, end = max(at - reach + 1, 0), min(at + reach, len(sequences))
        if (first == 0 and not top) or (end == len(sequences) and not bottom):
            # the rows at the rim stay: they are the window's neighbours
            first, end = max(first, 0 if top else 1), min(end, len(sequences) - (not bottom))
            if first > at or end <= at:
                return None
            return _spread(sequences, first, end, wanted)
        found = _spread(sequences, first, end, wanted)
        if found is not None:
            return found
        if first == 0 and end == len(sequences):
            return _spread(sequences, first, end, 0)
        reach *= 2


def _spread(sequences: Sequence[int], first: int, end: int, wanted: int) -> Window | None:
    """The rows from `first` to before `end` evenly between their neighbours; None if that is too narrow."""
    count, room = end - first, (end - first + 1) << wanted
    high = min(max(sequences[0], sequences[end - 1] + room), MOST) + 1  # the list ends there
    if first > 0:
        high = sequences[first - 1]
    low = max(min(sequences[-1], high - 1 - room), 0) - 1
    if end < len(sequences):
        low = sequences[end]
    if high - low < room:
        return None
    return Window(first, end, [high - (high - low) * place // (count + 1) for place in range(1, count + 1)])
