"""Making room between rows that are too close: within a transaction, whoever runs its statements."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from proxy.errors import ProxyError
from rewriter.plans.reorder import Move, OrderedRows

from .spacing import MOST, narrowest, widened

Row = tuple[int, int]
"""To-ID and sequence."""

Ask = Callable[[bytes], Awaitable[list[Row]]]
"""Runs a statement and gives its rows, if it has some."""

MOST_ROWS: Final = 10_000
"""So many rows on either side of one are looked at, and locked."""

_FIRST_REACH: Final = 4
_AT_ONCE: Final = 200
"""So many rows are written by one statement."""


class Wish(NamedTuple):
    """`least`: as long as the gaps beside a row take so many halvings, there is room. `wanted`: so many shall
    they take afterwards, and those of all rows that are written.
    """

    least: int
    wanted: int


async def make_room(
    ask: Ask,
    rows: OrderedRows,
    source: int,
    row: Row,
    wish: Wish,
    *,
    at_once: bool = False,
    beyond: bool = False,
) -> int:
    """Spread the rows around one of the list of `source`, or around the place where it stood. Gives how many
    were written. `at_once`: it fails rather than wait for a lock. `beyond`: there shall be room between the
    list's ends and the largest and smallest sequence, too. Raises ProxyError (reorder_full).
    """
    most, least = (MOST + 1, -1) if beyond else (None, None)
    target, sequence = row
    reach = _FIRST_REACH
    while True:
        behind = await ask(rows.behind(source, sequence, target, reach + 1, at_once=at_once))
        ahead = await ask(rows.ahead(source, sequence, target, reach + 1, at_once=at_once))
        over = ahead[1:] if ahead[:1] == [row] else ahead
        listed = [*reversed(over), *behind]
        if not listed:
            return 0
        at, sequences = min(len(over), len(listed) - 1), [one[1] for one in listed]
        above = sequences[at - 1] if at else most
        below = sequences[at + 1] if at + 1 < len(sequences) else least
        if narrowest(above, sequences[at], below) >= wish.least:
            return 0
        top, bottom = len(ahead) <= reach, len(behind) <= reach
        window = widened(sequences, at, wish.wanted, top=top, bottom=bottom)
        if window is not None:
            break
        if reach >= MOST_ROWS or (top and bottom):
            raise ProxyError("reorder_full", rows=rows.name.replace("`", ""), count=len(listed))
        reach = min(reach * 4, MOST_ROWS)
    moves = [
        Move(*old, new)
        for old, new in zip(listed[window.first : window.end], window.sequences, strict=True)
        if old[1] != new
    ]
    for first in range(0, len(moves), _AT_ONCE):
        await ask(rows.spread(source, moves[first : first + _AT_ONCE]))
    return len(moves)
