"""Merging the hosts' answers into the one that a single MySQL would give. No I/O: row blocks in, packets out.

Three ways, by what the plan asks for: `Concatenation` (UNION ALL order is free), `OrderedMerge` (each run is
sorted by its server; runs are merged by the values of the key columns, text by its server-made weights) and
`Combination` (one partial row a shard becomes one row). Each is a `Merger`: it takes row blocks of numbered
runs and gives back whole packets for the client.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from proxy.wire.packets import frame
from proxy.wire.resultset import Column, decode_row, encode_row
from proxy.wire.rows import renumber, split_rows
from proxy.wire.wide import ASCII, Form
from rewriter.plans import Merge

from .compare import RowKeys, combine, readable

RUN_BUFFER: Final = 1 << 18
"""Bytes of rows of one run that may wait for the other runs before its backend is not read from any more."""
_ROW_COST: Final = 120
"""What a waiting row costs beyond its bytes on the wire: two objects, and a key as long as its values."""
_SLICE: Final = 1024
"""Rows of one run that are merged at once."""
_TURN: Final = 4096
"""When so many rows are merged in a turn of the loop, the others come in the next one."""


class Merger(Protocol):
    """Rows in, packets out. `seq` is the sequence number of the next packet, `emitted` counts rows given to
    the client, `found` those and the ones before them that OFFSET leaves out. While it is `pending`, there is
    more to come from `more`, which is asked for in other turns of the loop.
    """

    seq: int
    emitted: int
    pending: bool

    @property
    def found(self) -> int: ...

    def rows(self, run: int, block: bytes) -> bytes:
        """A row block of `run`; returns packets for the client."""

    def ended(self, run: int) -> bytes:
        """`run` has no more rows; returns packets for the client."""

    def more(self) -> bytes:
        """The next packets for the client, of rows that were there already."""

    def full(self, run: int) -> bool:
        """Whether `run` has delivered more than can be used for now."""


class Window:
    """OFFSET and LIMIT over merged rows."""

    __slots__ = ("left", "skip")

    def __init__(self, limit: int | None, offset: int) -> None:
        self.left = limit
        self.skip = offset

    @property
    def open(self) -> bool:
        """All rows are the client's."""
        return self.left is None and not self.skip

    def cut(self, rows: list[bytes]) -> list[bytes]:
        """Those of the next rows that are given to the client."""
        if self.skip:
            skipped = min(self.skip, len(rows))
            self.skip -= skipped
            rows = rows[skipped:]
        if self.left is not None:
            rows = rows[: self.left]
            self.left -= len(rows)
        return rows


class _Output:
    """What all mergers do with merged rows: OFFSET and LIMIT, and packets without the hidden columns."""

    __slots__ = ("_columns", "_hidden", "_offset", "_window", "emitted", "seq")

    pending = False

    def __init__(self, merge: Merge, columns: Sequence[Column], seq: int) -> None:
        self.seq = seq
        self.emitted = 0
        self._offset = merge.offset
        self._window = Window(merge.limit, merge.offset)
        self._columns = columns
        self._hidden = merge.hidden

    def full(self, run: int) -> bool:
        return False

    def more(self) -> bytes:
        return b""

    @property
    def found(self) -> int:
        return self.emitted + self._offset - self._window.skip

    def _give(self, packets: list[bytes]) -> bytes:
        """The next rows, as packets of their visible columns, to the client."""
        if not self._window.open:
            packets = self._window.cut(packets)
        out, self.seq, count = renumber(b"".join(packets), self.seq)
        self.emitted += count
        return out


class Concatenation(_Output):
    """Rows as they come, from whichever run. `all`: whole, and all of them."""

    __slots__ = ("_keys", "all")

    def __init__(self, merge: Merge, columns: Sequence[Column], seq: int) -> None:
        super().__init__(merge, columns, seq)
        self.all = not merge.hidden and self._window.open
        self._keys = None if self.all else RowKeys((), columns, len(columns) - merge.hidden, {})

    def rows(self, run: int, block: bytes) -> bytes:
        if self._keys is not None:
            return self._give(self._keys.of(block)[1])
        out, self.seq, count = renumber(block, self.seq)
        self.emitted += count
        return out

    def ended(self, run: int) -> bytes:
        return b""


class _Run:
    """A sorted run: the rows that wait, with their keys, about so many bytes of them."""

    __slots__ = ("keys", "over", "packets", "size")

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.packets: list[bytes] = []
        self.size = 0
        self.over = False

    def take(self, keys: list[bytes], packets: list[bytes], size: int) -> None:
        self.keys += keys
        self.packets += packets
        self.size += size + _ROW_COST * len(keys)

    def give(self, count: int) -> list[bytes]:
        """The first so many rows, which leave."""
        packets = self.packets[:count]
        self.size -= self.size * count // len(self.keys)
        del self.keys[:count], self.packets[:count]
        return packets


class OrderedMerge(_Output):
    """A merge of sorted runs. A row leaves when every run that may still bring a smaller one has shown its
    next; of equal rows those of the first run leave first.

    Rows are merged in slices: what leaves of each run is found by bisection, and sorted as one list, since
    Python's sort merges the runs that it finds in a list.
    """

    def __init__(
        self,
        merge: Merge,
        columns: Sequence[Column],
        runs: int,
        seq: int,
        pads: Mapping[bytes, bytes],
        form: Form,
    ) -> None:
        super().__init__(merge, columns, seq)
        self._keys = RowKeys(merge.order, columns, len(columns) - merge.hidden, pads, form)
        self._runs = [_Run() for _ in range(runs)]
        self._absent = runs  # runs that have not ended and of which no row is there
        self._waiting = 0  # rows

    def rows(self, run: int, block: bytes) -> bytes:
        if self._window.left == 0:
            return b""
        with readable():
            keys, packets = self._keys.of(block)
        if keys:
            one = self._runs[run]
            self._absent -= not one.keys
            self._waiting += len(keys)
            one.take(keys, packets, len(block))
        return b"" if self.pending else self.more()

    def ended(self, run: int) -> bytes:
        one = self._runs[run]
        one.over = True
        self._absent -= not one.keys
        return b"" if self.pending else self.more()

    def full(self, run: int) -> bool:
        return self._runs[run].size > RUN_BUFFER

    def more(self) -> bytes:
        pieces, count = [], 0
        while self._waiting and not self._absent and count < _TURN:
            packets = self._merge_slices()
            count += len(packets)
            pieces.append(self._give(packets))
            if self._window.left == 0:  # nobody needs the others
                self._runs = [_Run() for _ in self._runs]
                self._waiting = 0
        self.pending = self._waiting > 0 and not self._absent
        return b"".join(pieces)

    def _merge_slices(self) -> list[bytes]:
        """The next rows in their order, one at least: up to the smallest of the runs' last rows that are
        looked at, since behind it the same run may have smaller ones than the other runs.
        """
        live = [(number, run) for number, run in enumerate(self._runs) if run.keys]
        last, bound = None, -1
        for number, run in live:
            if not run.over or len(run.keys) > _SLICE:
                key = run.keys[min(len(run.keys), _SLICE) - 1]
                if last is None or key < last:
                    last, bound = key, number
        keys: list[bytes] = []
        packets: list[bytes] = []
        sources = 0
        for number, run in live:
            count = min(len(run.keys), _SLICE)
            if last is not None and number != bound:  # whose rows leave, in whatever order a server has them
                bisect = bisect_right if number < bound else bisect_left
                count = bisect(run.keys, last, 0, count)
            if count:
                sources += 1
                keys += run.keys[:count]
                packets += run.give(count)
                self._absent += not (run.keys or run.over)
        self._waiting -= len(packets)
        if sources > 1:
            packets = [packets[index] for index in sorted(range(len(keys)), key=keys.__getitem__)]
        return packets


class Combination(_Output):
    """Aggregates over partial rows, one row at the end."""

    def __init__(
        self,
        merge: Merge,
        columns: Sequence[Column],
        runs: int,
        seq: int,
        pads: Mapping[bytes, bytes],
        form: Form,
    ) -> None:
        super().__init__(merge, columns, seq)
        self._aggregates = merge.aggregates
        self._pads = pads
        self._form = form
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
        with readable():
            for aggregate in self._aggregates:
                row[aggregate.column] = combine(
                    aggregate, self._columns, self._partials, self._pads, self._form
                )
        return self._give([frame(encode_row(row[: len(self._columns) - self._hidden]))])


def make_merger(
    merge: Merge,
    columns: Sequence[Column],
    runs: int,
    seq: int,
    pads: Mapping[bytes, bytes],
    form: Form = ASCII,
) -> Merger:
    """The merger that `merge` asks for. `columns` are the servers' definitions, hidden ones included.

    `pads`: for each collation by its name, the weight of a space if it is PAD SPACE, else b"".
    `form`: that of names and numbers in the rows.
    """
    if merge.aggregates:
        return Combination(merge, columns, runs, seq, pads, form)
    if merge.order:
        return OrderedMerge(merge, columns, runs, seq, pads, form)
    return Concatenation(merge, columns, seq)
