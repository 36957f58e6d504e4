"""Sequences between others, and rows that make room: a list in memory beside a plain Python list."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Coroutine, Sequence
from itertools import pairwise
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from proxy.reordering.room import Row, Wish, make_room
from proxy.reordering.spacing import MOST, STEP, between, halvings, narrowest, widened
from rewriter.plans.reorder import Move

SEQUENCES = st.integers(0, MOST) | st.integers(0, 100) | st.integers(MOST - 100, MOST)


@given(st.none() | SEQUENCES, st.none() | SEQUENCES)
def test_between(above: int | None, below: int | None) -> None:
    found = between(above, below)
    high = MOST + 1 if above is None else above
    low = -1 if below is None else below
    if high - low < 2:
        assert found is None
    else:
        assert found is not None
        assert low < found < high


def test_the_gap_of_a_millisecond_takes_83_rows() -> None:
    """Each is put between the one before and the lower neighbour."""
    high, low, rows = 1700000000001 * STEP, 1700000000000 * STEP, 0
    while (sequence := between(high, low)) is not None:
        high, rows = sequence, rows + 1
    assert rows == 83
    assert halvings(STEP) == 83
    assert between(1700000000001 * STEP, None) == low
    assert between(None, low) == 1700000000001 * STEP
    assert between(None, MOST) is None
    assert between(0, None) is None
    assert [between(None, MOST - 7), between(7, None)] == [MOST - 3, 3]


@given(st.data(), st.integers(0, 80), st.booleans(), st.booleans())
def test_widened(data: st.DataObject, wanted: int, top: bool, bottom: bool) -> None:
    listed = sorted(data.draw(st.lists(SEQUENCES, min_size=1, max_size=40)), reverse=True)
    at = data.draw(st.integers(0, len(listed) - 1))
    window = widened(listed, at, wanted, top=top, bottom=bottom)
    if window is None:
        return
    new = listed[: window.first] + window.sequences + listed[window.end :]
    assert window.first <= at < window.end
    assert window.first > 0 or top
    assert window.end < len(listed) or bottom
    assert all(0 <= one <= MOST for one in window.sequences)
    rim = new[max(window.first - 1, 0) : window.end + 1]
    whole = top and bottom and len(window.sequences) == len(listed)
    assert all(halvings(a - b) >= (0 if whole else wanted) and a > b for a, b in pairwise(rim))


class Rows:
    """A list of rows, whose statements are answered by `ask`."""

    name = "`d`.`t`"

    def __init__(self, sequences: Sequence[int]) -> None:
        self.listed = sorted((sequence, target) for target, sequence in enumerate(sequences))
        self.written = 0

    def targets(self) -> list[int]:
        """The largest sequence first."""
        return [target for _, target in reversed(self.listed)]

    def behind(self, _: int, sequence: int, target: int, rows: int, *, at_once: bool) -> list[Row]:
        end = bisect_left(self.listed, (sequence, target + 1))
        return [(to, one) for one, to in reversed(self.listed[max(end - rows, 0) : end])]

    def ahead(self, _: int, sequence: int, target: int, rows: int, *, at_once: bool) -> list[Row]:
        first = bisect_left(self.listed, (sequence, target))
        return [(to, one) for one, to in self.listed[first : first + rows]]

    def spread(self, _: int, moves: Sequence[Move]) -> list[Row]:
        for one in moves:
            self.listed.remove((one.old, one.target))
        for one in moves:
            self.listed.append((one.new, one.target))
        self.listed.sort()
        self.written += len(moves)
        return []

    def make_room(self, row: Row, wish: Wish) -> int:
        async def ask(answer: object) -> list[Row]:
            return cast("list[Row]", answer)

        return finished(make_room(cast("Any", ask), cast("Any", self), 1, row, wish))


def finished(coroutine: Coroutine[Any, Any, int]) -> int:
    """What a coroutine gives that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast("int", end.value)
    raise AssertionError("it waits")


def test_100_000_moves_are_those_of_a_plain_list() -> None:
    """Most of them go to few places, so that gaps become narrow; one in ten thousand rows of the background's
    work is lost, as with its process.
    """
    choice, wish = random.Random(11), Wish(16, 64)
    rows = Rows([1700000000000 * STEP + number * STEP for number in range(60)])
    rows.listed[20:40] = [(rows.listed[20][0], target) for _, target in rows.listed[20:40]]  # of one moment
    plain = rows.targets()
    moves = lost = 0
    for turn in range(100_000):
        target = choice.choice(plain)
        old = next(one for one in rows.listed if one[1] == target)
        plain.remove(target)
        place = choice.choice([0, 1, 30, 30, 30, 31, len(plain), choice.randrange(len(plain) + 1)])
        rows.listed.remove(old)
        size = len(rows.listed)
        sequence = None
        while sequence is None:
            above = rows.listed[size - place] if place else None
            below = rows.listed[size - place - 1] if place < size else None
            sequence = between(above and above[0], below and below[0])
            if sequence is None:
                near = above or below
                assert near is not None
                assert rows.make_room((near[1], near[0]), Wish(64, 64))
        rows.listed.insert(size - place, (sequence, target))
        plain.insert(place, target)
        moves += 1
        if narrowest(above and above[0], sequence, below and below[0]) < wish.least:
            if turn % 1000 < 900:
                rows.make_room((target, sequence), wish)
            else:
                lost += 1
        if turn % 97 == 0:
            assert rows.targets() == plain
            assert rows.listed == sorted(rows.listed)
    assert rows.targets() == plain
    assert moves == 100_000
    assert lost > 50
    assert 0 < rows.written < moves  # far less than one more row for each that is moved
