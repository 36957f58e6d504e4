r"""Many rows of INSERT … VALUES that differ in literals only: planned as one, whatever their number.

Without this each number of rows were a fingerprint of its own, and 100,000 rows took seconds to plan. Rows
may be of some kinds (`(1, 'a')`, `(2, NULL)`), in any order; what is planned is a statement with one row of
each.

>>> one = fold(b"INSERT INTO t VALUES (\0, '\0), (\0, '\0)\0", (b"1", b"a'", b"2", b"b'", b""))
>>> one.fingerprint, one.literals
(b"INSERT INTO t VALUES (\x00, '\x00)\x00", (b'1', b"a'", b''))
>>> list(one.repeat.views((b"1", b"a'", b"2", b"b'", b""), 0))
[(0, (b'1', b"a'", b'')), (0, (b'2', b"b'", b''))]
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import chain, count
from typing import Any, Final, NamedTuple, cast

from .splice import Template

_PLAIN: Final = rb"""[\0\w\s,.+]|['"](?=\0)|-(?!-)"""
"""What may stand in a row: literals, words, calls of functions. No comment, no name in quotes and no
parameter: each parenthesis is one."""

_HEAD: Final = re.compile(
    rb"\s*+(?:INSERT|REPLACE)\b[^()]*?(?:\([^()]*+\)\s*+)?\bVALUES?\s*+(?=\()", re.IGNORECASE
)
_ROW: Final = re.compile(rb"\((?:" + _PLAIN + rb"|\((?:" + _PLAIN + rb")*\))+\)")
_BETWEEN: Final = re.compile(rb"\s*+,\s*+")

MAX_KINDS: Final = 16
"""Rows of more kinds are not folded: few statements would share a plan."""


class Repeat(NamedTuple):
    """The rows of one fingerprint: `kinds`, the number of each row's kind, and where their literals are.

    Before the rows `first` literals stand, behind them `behind`. `widths`: so many literals has a row of each
    kind.
    """

    kinds: tuple[int, ...]
    widths: tuple[int, ...]
    first: int
    behind: int

    def views(self, values: tuple[bytes, ...], slots: int) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        """For each row its kind, and the values as a statement with one row of each kind would have them, the
        other rows' being empty. `slots`: so many of the values are no literals.
        """
        before = values[: self.first]
        behind = values[len(values) - slots - self.behind :]
        around = []
        for kind, width in enumerate(self.widths):
            left, right = sum(self.widths[:kind]), sum(self.widths[kind + 1 :])
            around.append((before + (b"",) * left, width, (b"",) * right + behind))
        start = self.first
        for kind in self.kinds:
            left_of, width, right_of = around[kind]
            yield kind, left_of + values[start : start + width] + right_of
            start += width


class Folded(NamedTuple):
    """A statement with the first row of each kind only, and what was folded. `begin`, `end`: where these rows
    are in the fingerprint. `between`: the text between any two rows.
    """

    sql: bytes
    fingerprint: bytes
    literals: tuple[bytes, ...]
    repeat: Repeat
    begin: int
    end: int
    between: bytes


class RowsTemplate(Template):
    """The whole text of a statement that was folded, which has no holes but its literals."""

    __slots__ = ("_before", "_behind", "_between", "_repeat", "_rows")

    def __init__(self, folded: Folded) -> None:
        fingerprint, begin, end = folded.fingerprint, folded.begin, folded.end
        numbers = count()
        between = folded.between.join
        self._before = Template(_parts(fingerprint[:begin], numbers))
        rows = _ROW.findall(fingerprint, begin, end)
        self._rows = [Template(_parts(row, numbers)) for row in rows]
        self._behind = Template(_parts(fingerprint[end:].removesuffix(b"\0"), numbers))
        texts = [row.parts for row in self._rows]
        super().__init__([*self._before.parts, *chain.from_iterable(texts), *self._behind.parts])
        self._repeat, self._between = folded.repeat, between

    def _state(self) -> tuple[object, ...]:
        return self._before, self._rows, self._behind, self._repeat, self._between

    def _restore(self, state: tuple[Any, ...]) -> None:
        self._before, self._rows, self._behind, self._repeat, self._between = state

    def render(self, values: Sequence[bytes | int]) -> bytes:
        views = list(self._repeat.views(cast("tuple[bytes, ...]", tuple(values)), 0))
        rows = self._between([self._rows[kind].render(view) for kind, view in views])
        return self._before.render(views[0][1]) + rows + self._behind.render(views[0][1])


def _parts(text: bytes, numbers: Iterator[int]) -> Iterator[bytes | int]:
    for at, part in enumerate(text.split(b"\0")):
        if at:
            yield next(numbers)
        yield part


def fold(fingerprint: bytes, literals: tuple[bytes, ...]) -> Folded | None:
    """None unless the statement inserts several rows of few kinds. See fingerprint.py for what is given."""
    head = _HEAD.match(fingerprint)
    found = _ROW.match(fingerprint, head.end()) if head is not None else None
    if found is None:
        return None
    between = _BETWEEN.match(fingerprint, found.end())
    if between is None:
        return None
    split = _rows(fingerprint, found.start(), between.group())
    if split is None:
        return None
    numbers, kinds, end = split
    widths = tuple([row.count(b"\0") for row in numbers])
    first = fingerprint.count(b"\0", 0, found.start())
    behind = fingerprint.count(b"\0", end)
    rows = between.group().join(numbers)
    folded = fingerprint[: found.start()] + rows + fingerprint[end:]
    repeat = Repeat(tuple(kinds), widths, first, behind)
    kept = (*literals[:first], *_firsts(repeat, literals), *literals[len(literals) - behind :])
    sql = b"".join(chain.from_iterable(zip(folded.split(b"\0"), kept, strict=False)))
    begin = found.start()
    return Folded(sql, folded, kept, repeat, begin, begin + len(rows), between.group())


def _rows(fingerprint: bytes, start: int, between: bytes) -> tuple[dict[bytes, int], list[int], int] | None:
    """The rows' kinds with their numbers, each row's number, and where they end. None: they do not fold."""
    numbers: dict[bytes, int] = {}
    kinds: list[int] = []
    last, kind, end = b"", 0, start - len(between)
    while True:
        if last and fingerprint.startswith(last, end):
            kinds.append(kind)
            end += len(last)
            continue
        if kinds and not fingerprint.startswith(between, end):
            break
        found = _ROW.match(fingerprint, end + len(between))
        if found is None:
            return None
        kind = numbers.setdefault(found.group(), len(numbers))
        last, end = between + found.group(), found.end()
        kinds.append(kind)
        if len(numbers) > MAX_KINDS:
            return None
    return None if len(kinds) == 1 or _BETWEEN.match(fingerprint, end) else (numbers, kinds, end)


def _firsts(repeat: Repeat, literals: tuple[bytes, ...]) -> Iterator[bytes]:
    """The literals of the first row of each kind, which are numbered as they come."""
    start, seen = repeat.first, 0
    for kind in repeat.kinds:
        width = repeat.widths[kind]
        if kind == seen:
            yield from literals[start : start + width]
            seen += 1
        start += width
