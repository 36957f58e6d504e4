r"""Many rows of INSERT … VALUES that differ in literals only: planned as one, whatever their number.

Without this each number of rows were a shape of its own, and 100,000 rows took seconds to plan.

>>> one = fold(b"INSERT INTO t VALUES (\0, '\0), (\0, '\0)\0", (b"1", b"a'", b"2", b"b'", b""))
>>> one.shape, one.literals, one.repeat
(b"INSERT INTO t VALUES (\x00, '\x00)\x00", (b'1', b"a'", b''), Repeat(first=0, width=2, fixed=1))
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Final, NamedTuple, cast

from .splice import Template

_PLAIN: Final = rb"""[\0\w\s,.+]|['"](?=\0)|-(?!-)"""
"""What may stand in a row: literals, words, calls of functions. No comment, no name in quotes and no
parameter: each parenthesis is one."""

_FIRST: Final = re.compile(
    rb"\s*+(?:INSERT|REPLACE)\b[^()]*?(?:\([^()]*+\)\s*+)?\bVALUES?\s*+"
    rb"(\((?:" + _PLAIN + rb"|\((?:" + _PLAIN + rb")*\))+\))",
    re.IGNORECASE,
)
_BETWEEN: Final = re.compile(rb"\s*+,\s*+")


class Repeat(NamedTuple):
    """Where the literals of the rows are: `width` for each from number `first` on, and `fixed` others."""

    first: int
    width: int
    fixed: int

    def views(self, values: tuple[bytes, ...], slots: int) -> Iterator[tuple[bytes, ...]]:
        """For each row the values as if there were no other. `slots`: so many of them are no literals."""
        first, width = self.first, self.width
        end = len(values) - slots - self.fixed + first
        before, behind = values[:first], values[end:]
        for start in range(first, end, width):
            yield before + values[start : start + width] + behind


class Folded(NamedTuple):
    """A statement with its first row only.

    `begin`, `end`: where the row is in the shape. `between`: the text between the rows.
    """

    sql: bytes
    shape: bytes
    literals: tuple[bytes, ...]
    repeat: Repeat
    begin: int
    end: int
    between: bytes

    @property
    def key(self) -> bytes:
        """Equal keys mean equal texts around the literals, in the rows and between them."""
        return self.shape + b"\0" + self.between


class RowsTemplate(Template):
    """The whole text of a statement of any number of rows, which has no holes but its literals."""

    __slots__ = ("_before", "_behind", "_between", "_repeat", "_row")

    def __init__(self, folded: Folded) -> None:
        shape, begin, end = folded.shape, folded.begin, folded.end
        numbers = count()
        texts = (shape[:begin], shape[begin:end], shape[end:].removesuffix(b"\0"))
        before, row, behind = (tuple(_parts(text, numbers)) for text in texts)
        super().__init__((*before, *row, *behind))
        self._before, self._row, self._behind = Template(before), Template(row), Template(behind)
        self._repeat, self._between = folded.repeat, folded.between

    def render(self, values: Sequence[bytes | int]) -> bytes:
        views = list(self._repeat.views(cast("tuple[bytes, ...]", tuple(values)), 0))
        rows = self._between.join([self._row.render(view) for view in views])
        return self._before.render(views[0]) + rows + self._behind.render(views[0])


def _parts(text: bytes, numbers: Iterator[int]) -> Iterator[bytes | int]:
    for at, part in enumerate(text.split(b"\0")):
        if at:
            yield next(numbers)
        yield part


def fold(shape: bytes, literals: tuple[bytes, ...]) -> Folded | None:
    """None unless the statement inserts several rows of one shape. See shape.py for what is given."""
    found = _FIRST.match(shape)
    if found is None:
        return None
    row = found[1]
    width, first = row.count(b"\0"), shape.count(b"\0", 0, found.start(1))
    between = _BETWEEN.match(shape, found.end(1))
    if between is None or not width:
        return None
    more = between.group() + row
    rows, end = 1, found.end(1)
    while shape.startswith(more, end):
        rows, end = rows + 1, end + len(more)
    if rows == 1 or _BETWEEN.match(shape, end):
        return None  # rows of several shapes
    folded = shape[: found.end(1)] + shape[end:]
    kept = literals[: first + width] + literals[first + rows * width :]
    sql = b"".join(chain.from_iterable(zip(folded.split(b"\0"), kept, strict=False)))
    repeat = Repeat(first, width, len(kept) - width)
    return Folded(sql, folded, kept, repeat, *found.span(1), between.group())
