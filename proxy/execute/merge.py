"""Merging the hosts' answers into the one that a single MySQL would give. No I/O: row blocks in, packets out.

Three ways, by what the plan asks for: `Concatenation` (UNION ALL order is free), `OrderedMerge` (each run is
sorted by its server; runs are merged by the values of the key columns, text by its server-made weights) and
`Combination` (one partial row a shard becomes one row). Each is a `Merger`: it takes row blocks of numbered
runs and gives back whole packets for the client.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial, total_ordering
from typing import Any, Protocol

from proxy.errors import ProxyError
from proxy.wire.constants import BINARY_COLLATION, ColumnType
from proxy.wire.packets import frame
from proxy.wire.resultset import (
    NUMERIC,
    TEMPORAL,
    Column,
    decode_row,
    encode_row,
    value_offsets,
)
from proxy.wire.rows import renumber, split_rows
from rewriter.plans import Aggregate, Merge, SortKey

_FLOATS = frozenset({ColumnType.FLOAT, ColumnType.DOUBLE})

#: Bytes of rows of one run that may wait for the other runs before its backend is not read from any more.
RUN_BUFFER = 1 << 18


class Merger(Protocol):
    """Rows in, packets out. `seq` is the sequence number of the next packet, `emitted` counts rows given to
    the client.
    """

    seq: int
    emitted: int

    def rows(self, run: int, block: bytes) -> bytes:
        """A row block of `run`; returns packets for the client."""

    def ended(self, run: int) -> bytes:
        """`run` has no more rows; returns packets for the client."""

    def full(self, run: int) -> bool:
        """Whether `run` has delivered more than can be used for now."""


class Window:
    """OFFSET and LIMIT over merged rows, and a ceiling above which the statement fails."""

    __slots__ = ("ceiling", "left", "skip")

    def __init__(self, limit: int | None, offset: int, ceiling: int | None) -> None:
        self.left = limit
        self.skip = offset
        self.ceiling = ceiling

    @property
    def open(self) -> bool:
        """Every row passes, uncounted."""
        return self.left is None and not self.skip and self.ceiling is None

    def passes(self) -> bool:
        """Whether the next row is given to the client."""
        if self.skip:
            self.skip -= 1
            return False
        if self.left is not None:
            if self.left <= 0:
                return False
            self.left -= 1
        return True


class Concatenation:
    """Rows as they come, from whichever run."""

    def __init__(self, seq: int, window: Window, hidden: int, columns: int) -> None:
        self.seq = seq
        self.emitted = 0
        self._window = window
        self._hidden = hidden
        self._columns = columns

    def rows(self, run: int, block: bytes) -> bytes:
        window = self._window
        if not self._hidden and window.left is None and not window.skip:
            out, self.seq, count = renumber(block, self.seq)
            self.emitted += count
            return bytes(out)
        passing = (payload for payload in split_rows(block) if window.passes())
        return b"".join([_visible(self, payload, self._columns, self._hidden) for payload in passing])

    def ended(self, run: int) -> bytes:
        return b""

    def full(self, run: int) -> bool:
        return False


class OrderedMerge:
    """A merge of sorted runs. A row leaves as soon as every run that may still bring a smaller one has shown
    its next.
    """

    def __init__(
        self,
        seq: int,
        window: Window,
        hidden: int,
        columns: Sequence[Column],
        keys: Sequence[SortKey],
        runs: int,
        pads: Mapping[int, bytes],
    ) -> None:
        self.seq = seq
        self.emitted = 0
        self._window = window
        self._hidden = hidden
        self._columns = len(columns)
        self._key = sort_key(keys, columns, pads)
        self._queues: list[deque[tuple[Any, bytes]]] = [deque() for _ in range(runs)]
        self._bytes = [0] * runs
        self._over = [False] * runs
        self._heap: list[tuple[Any, int]] = []
        self._absent = set(range(runs))  # runs whose next row is not in the heap and that have not ended

    def rows(self, run: int, block: bytes) -> bytes:
        queue = self._queues[run]
        count = self._columns
        for payload in split_rows(block):
            queue.append((self._key(decode_row(payload, count)), payload))
        self._bytes[run] += len(block)
        if run in self._absent and queue:
            self._absent.discard(run)
            heapq.heappush(self._heap, (queue[0][0], run))
        return self._pump()

    def ended(self, run: int) -> bytes:
        self._over[run] = True
        if not self._queues[run]:
            self._absent.discard(run)
        return self._pump()

    def full(self, run: int) -> bool:
        return self._bytes[run] > RUN_BUFFER

    def _pump(self) -> bytes:
        pieces: list[bytes] = []
        heap, window = self._heap, self._window
        while heap and not self._absent:
            run = heap[0][1]
            queue = self._queues[run]
            payload = queue.popleft()[1]
            self._bytes[run] -= len(payload) + 4
            if queue:
                heapq.heapreplace(heap, (queue[0][0], run))
            else:
                heapq.heappop(heap)
                if not self._over[run]:
                    self._absent.add(run)
            if window.passes():
                pieces.append(_visible(self, payload, self._columns, self._hidden))
        return b"".join(pieces)


class Combination:
    """Aggregates over partial rows, one row at the end."""

    def __init__(
        self,
        seq: int,
        window: Window,
        hidden: int,
        columns: Sequence[Column],
        aggregates: Sequence[Aggregate],
        runs: int,
        pads: Mapping[int, bytes],
    ) -> None:
        self.seq = seq
        self.emitted = 0
        self._window = window
        self._hidden = hidden
        self._columns = columns
        self._aggregates = aggregates
        self._pads = pads
        self._partials: list[list[bytes | None]] = []
        self._missing = runs

    def rows(self, run: int, block: bytes) -> bytes:
        count = len(self._columns)
        self._partials.extend(decode_row(payload, count) for payload in split_rows(block))
        return b""

    def ended(self, run: int) -> bytes:
        self._missing -= 1
        if self._missing or not self._partials:
            return b""
        row: list[bytes | None] = list(self._partials[0])
        for aggregate in self._aggregates:
            row[aggregate.column] = combine(aggregate, self._columns, self._partials, self._pads)
        if not self._window.passes():
            return b""
        self.emitted = 1
        visible = len(self._columns) - self._hidden
        packet = frame(encode_row(row[:visible]), self.seq)
        self.seq += 1
        return packet

    def full(self, run: int) -> bool:
        return False


def _visible(merger: Concatenation | OrderedMerge, payload: bytes, columns: int, hidden: int) -> bytes:
    """A row as a packet, without its hidden trailing columns."""
    if hidden:
        payload = payload[: value_offsets(payload, columns)[columns - hidden]]
    packet = frame(payload, merger.seq)
    merger.seq = (merger.seq + 1 + len(payload) // 0xFFFFFF) & 0xFF
    merger.emitted += 1
    return packet


def make_merger(
    merge: Merge,
    columns: Sequence[Column],
    runs: int,
    seq: int,
    ceiling: int | None,
    pads: Mapping[int, bytes],
) -> Merger:
    """The merger that `merge` asks for. `columns` are the servers' definitions, hidden ones included.

    `pads`: for each PAD SPACE collation by its id, the weight of a space.
    """
    window = Window(merge.limit, merge.offset, ceiling)
    if merge.aggregates:
        return Combination(seq, window, merge.hidden, columns, merge.aggregates, runs, pads)
    if merge.order:
        return OrderedMerge(seq, window, merge.hidden, columns, merge.order, runs, pads)
    return Concatenation(seq, window, merge.hidden, len(columns))


# -- comparing
# ----------------------------------------------------------------------------------------------------------


class _Descending:
    """A value that sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


@total_ordering
class _Padded:
    """A weight in a PAD SPACE collation: the shorter of two goes on with the weight of a space."""

    __slots__ = ("pad", "weight")

    def __init__(self, weight: bytes, pad: bytes) -> None:
        self.weight = weight
        self.pad = pad

    def _pair(self, other: _Padded) -> tuple[bytes, bytes]:
        a, b = self.weight, other.weight
        longest = max(len(a), len(b))
        fill = self.pad * (longest // len(self.pad) + 1)
        return (a + fill)[:longest], (b + fill)[:longest]

    def __lt__(self, other: _Padded) -> bool:
        a, b = self._pair(other)
        return a < b

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Padded):
            return NotImplemented
        a, b = self._pair(other)
        return a == b

    __hash__ = None  # type: ignore[assignment]


Reader = Callable[[bytes], Any]


def sort_key(
    keys: Sequence[SortKey], columns: Sequence[Column], pads: Mapping[int, bytes]
) -> Callable[[list[bytes | None]], Any]:
    """A function from a row's values to something that sorts as MySQL's ORDER BY does: NULL first, or last
    descending.
    """
    parts = [(*_reader(key.column, key.weight, columns, pads), key.descending) for key in keys]

    def of(row: list[bytes | None]) -> Any:
        out: list[Any] = []
        for position, convert, descending in parts:
            value = row[position]
            if value is None:
                out.append((1, 0) if descending else (0, 0))
            elif descending:
                out.append((0, _Descending(convert(value))))
            else:
                out.append((1, convert(value)))
        return out

    return of


def _reader(
    column: int, weight: int | None, columns: Sequence[Column], pads: Mapping[int, bytes]
) -> tuple[int, Reader]:
    """Which column of the row to compare, and how to read it."""
    convert = value_reader(columns[column])
    if convert is not None:
        return column, convert
    if weight is None:
        name = columns[column].name.decode("utf-8", "replace")
        raise ProxyError("merge_failed", reason=f"no order is known for column {name}")
    pad = pads.get(columns[column].collation)
    return weight, (partial(_Padded, pad=pad) if pad else bytes)


def value_reader(column: Column) -> Reader | None:
    """How to compare a column's text by value; None for text, which only a server can weigh."""
    kind = column.type
    if kind in _FLOATS:
        return float
    if kind in (ColumnType.NEWDECIMAL, ColumnType.DECIMAL):
        return _decimal
    if kind in NUMERIC:
        return int
    if kind in TEMPORAL:
        return bytes
    if kind == ColumnType.TIME:
        return _time
    if kind == ColumnType.NULL or column.collation == BINARY_COLLATION:
        return bytes
    return None


def _decimal(text: bytes) -> Decimal:
    return Decimal(text.decode("ascii"))


def _time(text: bytes) -> tuple[int, str] | float:
    """`-12:34:56.789` in seconds."""
    sign = -1 if text.startswith(b"-") else 1
    hours, minutes, seconds = text.lstrip(b"-").decode("ascii").split(":")
    return sign * (int(hours) * 3600 + int(minutes) * 60 + float(seconds))


# -- combining
# ----------------------------------------------------------------------------------------------------------


def combine(
    aggregate: Aggregate,
    columns: Sequence[Column],
    partials: Sequence[list[bytes | None]],
    pads: Mapping[int, bytes],
) -> bytes | None:
    """One aggregate over the shards' partial values."""
    present = [row for row in partials if row[aggregate.column] is not None]
    values = [row[aggregate.column] or b"" for row in present]
    if aggregate.function == "count":
        return str(sum(map(int, values))).encode()
    if not present:
        return None
    if aggregate.function == "sum":
        return _sum(values, columns[aggregate.column])
    position, convert = _reader(aggregate.column, aggregate.weight, columns, pads)
    ranked = ((convert(row[position] or b""), value) for row, value in zip(present, values, strict=True))
    pick = min if aggregate.function == "min" else max
    return pick(ranked, key=lambda pair: pair[0])[1]


def _sum(values: Sequence[bytes], column: Column) -> bytes:
    if column.type in _FLOATS:
        return float_text(sum(float(value) for value in values))
    total = sum((_decimal(value) for value in values), Decimal(0))
    return format(total, "f").encode()


def float_text(value: float) -> bytes:
    """A DOUBLE as MySQL prints it: shortest digits that read back the same, `1e20` without a plus sign."""
    text = repr(value)
    if text.endswith(".0"):
        text = text[:-2]
    mantissa, _, exponent = text.partition("e")
    if exponent:
        number = int(exponent)
        if 0 < number < 15:
            return format(value, ".0f").encode()
        return f"{mantissa.removesuffix('.0')}e{number}".encode()
    return text.encode()
