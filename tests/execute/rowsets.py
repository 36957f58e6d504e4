"""Random result sets whose order is known: rows with keys of all types, in runs that are sorted each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from hypothesis import strategies as st

from proxy.wire.constants import ColumnFlag, ColumnType
from proxy.wire.resultset import Column, encode_row
from rewriter.plans import SortKey
from tests.wire.streams import packet, physical

#: A PAD SPACE collation and a NO PAD one; characters weigh two bytes, case does not matter. On the wire both
#: have the number of character_set_results.
PADDED, UNPADDED = b"padded_ci", b"unpadded_ci"
PADS = {PADDED: b"\x00\x20", UNPADDED: b""}
WIRE = 45

Value = Any
"""None, or what a column's text stands for."""


@dataclass(frozen=True)
class Kind:
    """A column type: values, their text, and how a server compares two of them."""

    column: Column
    values: st.SearchStrategy[Value]
    text: Callable[[Value], bytes]
    key: Callable[[Value], Any] = lambda value: value
    collation: bytes = b""

    @property
    def weighed(self) -> bool:
        return bool(self.collation)


def weight(text: str) -> bytes:
    return text.upper().encode("utf-16-be")


def _time_text(micros: int) -> bytes:
    seconds, fraction = divmod(abs(micros), 10**6)
    sign = "-" if micros < 0 else ""
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:06d}".encode()


def _column(type_: ColumnType, collation: int = 63, flags: int = 0) -> Column:
    return Column(b"c", type_, collation, flags=flags)


_INTEGERS = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**64 - 1))
_WORDS = st.text("aAbB \t!", max_size=4)

KINDS = {
    "integer": Kind(_column(ColumnType.LONGLONG), _INTEGERS, lambda value: b"%d" % value),
    "zerofill": Kind(
        _column(ColumnType.LONG, flags=int(ColumnFlag.ZEROFILL)),
        st.integers(0, 99),
        lambda value: b"%05d" % value,
    ),
    "decimal": Kind(
        _column(ColumnType.NEWDECIMAL),
        st.decimals(-(10**38), 10**38, places=2, allow_nan=False),
        lambda value: format(value, "f").encode(),
        Decimal,
    ),
    "double": Kind(
        _column(ColumnType.DOUBLE),
        st.floats(allow_nan=False, allow_infinity=False),
        lambda value: repr(value).encode(),
    ),
    "time": Kind(_column(ColumnType.TIME), st.integers(-838 * 3600 * 10**6, 838 * 3600 * 10**6), _time_text),
    "datetime": Kind(
        _column(ColumnType.DATETIME),
        st.datetimes(),
        lambda value: value.isoformat(" ", "microseconds").encode(),
    ),
    "binary": Kind(_column(ColumnType.VAR_STRING), st.binary(max_size=3), bytes),
    "text": Kind(
        _column(ColumnType.VAR_STRING, WIRE), _WORDS, lambda value: value.encode(), str.upper, UNPADDED
    ),
    "padded text": Kind(
        _column(ColumnType.VAR_STRING, WIRE), _WORDS, lambda value: value.encode(), str.upper, PADDED
    ),
}


def compare(kind: Kind, descending: bool, a: Value, b: Value) -> int:
    """How a server orders two values: NULL is the smallest, and PAD SPACE text goes on with spaces."""
    if a is None or b is None:
        found = (a is not None) - (b is not None)
    else:
        if kind is KINDS["padded text"]:
            longest = max(len(a), len(b))
            a, b = a.ljust(longest), b.ljust(longest)
        one, two = kind.key(a), kind.key(b)
        found = (one > two) - (one < two)
    return -found if descending else found


def places(kinds: Sequence[Kind]) -> list[tuple[int | None, int | None]]:
    """For each key, where its weight and its collation stand among the hidden columns."""
    hidden = 2 * sum(kind.weighed for kind in kinds)
    found: list[tuple[int | None, int | None]] = []
    for kind in kinds:
        found.append((-hidden, 1 - hidden) if kind.weighed else (None, None))
        hidden -= 2 * kind.weighed
    return found


def weights(kinds: Sequence[Kind], row: Sequence[Value]) -> list[bytes | None]:
    """The hidden columns of a row."""
    found: list[bytes | None] = []
    for kind, value in zip(kinds, row, strict=True):
        if kind.weighed:
            found += [None if value is None else weight(value), kind.collation]
    return found


@dataclass(frozen=True)
class Shape:
    """A result's columns: the sort keys first, then a number for each row, then the hidden weights."""

    kinds: tuple[Kind, ...]
    descending: tuple[bool, ...]

    @property
    def columns(self) -> list[Column]:
        hidden = [_column(ColumnType.VAR_STRING)] * self.hidden
        return [*(kind.column for kind in self.kinds), _column(ColumnType.LONGLONG), *hidden]

    @property
    def hidden(self) -> int:
        return 2 * sum(kind.weighed for kind in self.kinds)

    @property
    def order(self) -> tuple[SortKey, ...]:
        keys = []
        for column, (place, descending) in enumerate(zip(places(self.kinds), self.descending, strict=True)):
            keys.append(SortKey(column, descending, *place))
        return tuple(keys)

    def payload(self, number: int, row: Sequence[Value], *, hidden: bool = True) -> bytes:
        values: list[bytes | None] = [
            None if value is None else kind.text(value) for kind, value in zip(self.kinds, row, strict=True)
        ]
        values.append(b"%d" % number)
        if hidden:
            values += weights(self.kinds, row)
        return encode_row(values)

    def sort(self, rows: Sequence[tuple[int, tuple[Value, ...]]]) -> list[tuple[int, tuple[Value, ...]]]:
        """Rows (number, key values) as a server sorts them."""

        def before(a: tuple[int, tuple[Value, ...]], b: tuple[int, tuple[Value, ...]]) -> int:
            for kind, descending, one, two in zip(self.kinds, self.descending, a[1], b[1], strict=True):
                found = compare(kind, descending, one, two)
                if found:
                    return found
            return 0

        return sorted(rows, key=cmp_to_key(before))

    def equal(self, a: tuple[Value, ...], b: tuple[Value, ...]) -> bool:
        return all(not compare(kind, False, x, y) for kind, x, y in zip(self.kinds, a, b, strict=True))


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    kinds = draw(st.lists(st.sampled_from(list(KINDS.values())), min_size=1, max_size=3))
    return Shape(tuple(kinds), tuple(draw(st.booleans()) for _ in kinds))


@st.composite
def keyed_rows(draw: st.DrawFn, shape: Shape) -> list[tuple[int, tuple[Value, ...]]]:
    values = st.tuples(*(st.one_of(st.none(), kind.values) for kind in shape.kinds))
    return list(enumerate(draw(st.lists(values, max_size=20))))


def block(payloads: Sequence[bytes], most: int = 0xFFFFFF, seq: int = 4) -> bytes:
    """Row packets as they come from a server."""
    pieces = [piece for payload in payloads for piece in physical(payload, most)]
    return b"".join(packet(piece, seq + number) for number, piece in enumerate(pieces))


@st.composite
def arrivals(draw: st.DrawFn, runs: Sequence[Sequence[bytes]]) -> list[tuple[int, list[bytes] | None]]:
    """The rows of all runs as they may come: (run, rows of a block), and (run, None) when it has ended."""
    waiting: list[list[list[bytes] | None]] = []
    for rows in runs:
        points = draw(st.lists(st.integers(0, len(rows)), max_size=3))
        edges = [0, *sorted(points), len(rows)]
        parts = [list(rows[a:b]) for a, b in itertools.pairwise(edges) if b > a]
        waiting.append([*parts, None])
    found: list[tuple[int, list[bytes] | None]] = []
    while any(waiting):
        run = draw(st.sampled_from([run for run, left in enumerate(waiting) if left]))
        found.append((run, waiting[run].pop(0)))
    return found
