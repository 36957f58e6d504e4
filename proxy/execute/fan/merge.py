"""Merging the hosts' answers into the one that a single MySQL would give. No I/O: row blocks in, packets out.

Three ways, by what the plan asks for: `Concatenation` (UNION ALL order is free), `OrderedMerge` (each run is
sorted by its server; runs are merged by the values of the key columns, text by its server-made weights) and
`Combination` (one partial row a shard becomes one row). Each is a `Merger`: it takes row blocks of numbered
runs and gives back whole packets for the client.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from proxy.wire.constants import MAX_PAYLOAD
from proxy.wire.packets import frame
from proxy.wire.resultset import Column, decode_row, encode_row, value_offsets
from proxy.wire.rows import renumber, split_rows
from rewriter.plans import Merge

from .compare import combine, readable, sort_key

#: Bytes of rows of one run that may wait for the other runs before its backend is not read from any more.
RUN_BUFFER = 1 << 18
#: What a waiting row costs beyond its bytes.
_ROW_COST = 200


class Merger(Protocol):
    """Rows in, packets out. `seq` is the sequence number of the next packet, `emitted` counts rows given to
    the client, `found` those and the ones before them that OFFSET leaves out.
    """

    seq: int
    emitted: int

    @property
    def found(self) -> int: ...

    def rows(self, run: int, block: bytes) -> bytes:
        """A row block of `run`; returns packets for the client."""

    def ended(self, run: int) -> bytes:
        """`run` has no more rows; returns packets for the client."""

    def full(self, run: int) -> bool:
        """Whether `run` has delivered more than can be used for now."""


class Window:
    """OFFSET and LIMIT over merged rows."""

    __slots__ = ("left", "skip")

    def __init__(self, limit: int | None, offset: int) -> None:
        self.left = limit
        self.skip = offset

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


class _Output:
    """What all mergers do with a merged row: OFFSET and LIMIT, and a packet without the hidden columns."""

    def __init__(self, merge: Merge, columns: Sequence[Column], seq: int) -> None:
        self.seq = seq
        self.emitted = 0
        self._offset = merge.offset
        self._window = Window(merge.limit, merge.offset)
        self._columns = columns
        self._hidden = merge.hidden

    def full(self, run: int) -> bool:
        return False

    @property
    def found(self) -> int:
        return self.emitted + self._offset - self._window.skip

    def _packet(self, payload: bytes) -> bytes:
        packet = frame(payload, self.seq)
        self.seq = (self.seq + 1 + len(payload) // MAX_PAYLOAD) & 0xFF
        self.emitted += 1
        return packet

    def _visible(self, payload: bytes) -> bytes:
        """A row as a packet, without its hidden trailing columns."""
        if self._hidden:
            count = len(self._columns)
            payload = payload[: value_offsets(payload, count)[count - self._hidden]]
        return self._packet(payload)


class Concatenation(_Output):
    """Rows as they come, from whichever run."""

    def rows(self, run: int, block: bytes) -> bytes:
        window = self._window
        if not self._hidden and window.left is None and not window.skip:
            out, self.seq, count = renumber(block, self.seq)
            self.emitted += count
            return out
        passing = (payload for payload in split_rows(block) if window.passes())
        return b"".join([self._visible(payload) for payload in passing])

    def ended(self, run: int) -> bytes:
        return b""


class OrderedMerge(_Output):
    """A merge of sorted runs. A row leaves as soon as every run that may still bring a smaller one has shown
    its next.
    """

    def __init__(
        self, merge: Merge, columns: Sequence[Column], runs: int, seq: int, pads: Mapping[bytes, bytes]
    ) -> None:
        super().__init__(merge, columns, seq)
        self._key = sort_key(merge.order, columns, pads)
        self._queues: list[deque[tuple[Any, bytes]]] = [deque() for _ in range(runs)]
        self._bytes = [0] * runs
        self._over = [False] * runs
        self._heap: list[tuple[Any, int]] = []
        self._absent = set(range(runs))  # runs whose next row is not in the heap and that have not ended

    def rows(self, run: int, block: bytes) -> bytes:
        queue = self._queues[run]
        count = len(self._columns)
        with readable():
            for payload in split_rows(block):
                queue.append((self._key(decode_row(payload, count)), payload))
                self._bytes[run] += len(payload) + _ROW_COST
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
            self._bytes[run] -= len(payload) + _ROW_COST
            if queue:
                heapq.heapreplace(heap, (queue[0][0], run))
            else:
                heapq.heappop(heap)
                if not self._over[run]:
                    self._absent.add(run)
            if window.passes():
                pieces.append(self._visible(payload))
        return b"".join(pieces)


class Combination(_Output):
    """Aggregates over partial rows, one row at the end."""

    def __init__(
        self, merge: Merge, columns: Sequence[Column], runs: int, seq: int, pads: Mapping[bytes, bytes]
    ) -> None:
        super().__init__(merge, columns, seq)
        self._aggregates = merge.aggregates
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
        with readable():
            for aggregate in self._aggregates:
                row[aggregate.column] = combine(aggregate, self._columns, self._partials, self._pads)
        if not self._window.passes():
            return b""
        return self._packet(encode_row(row[: len(self._columns) - self._hidden]))


def make_merger(
    merge: Merge,
    columns: Sequence[Column],
    runs: int,
    seq: int,
    pads: Mapping[bytes, bytes],
) -> Merger:
    """The merger that `merge` asks for. `columns` are the servers' definitions, hidden ones included.

    `pads`: for each collation by its name, the weight of a space if it is PAD SPACE, else b"".
    """
    if merge.aggregates:
        return Combination(merge, columns, runs, seq, pads)
    if merge.order:
        return OrderedMerge(merge, columns, runs, seq, pads)
    return Concatenation(merge, columns, seq)
