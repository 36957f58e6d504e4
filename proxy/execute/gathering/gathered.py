"""The rows of the pieces, on their way into tables of the scratch connection.

What comes is written as INSERTs of about 1 MB, one at a time whosesoever they are; while one is at work the
hosts may be some ahead, then they are not read from. A turn of the loop makes literals of some hundred rows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from proxy.backends.settings import Settings
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostics
from proxy.wire.packets import ProtocolError
from proxy.wire.rows import split_rows

from .batch import Result
from .reading import Reading
from .scratch import Scratch, read_rows, row_literal

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

    from .gather_work import GatherWork

_BATCH: Final = 1 << 20
#: Bytes of all pieces that may wait for the scratch connection before the hosts are not read from.
_AHEAD: Final = 4 << 20
#: Rows of which literals are made in one turn of the loop.
_SLICE: Final = 500


Put = Callable[[Settings, bytes], Awaitable[list[Result]]]
"""Runs a statement on the scratch connection, with these settings."""


class Loading:
    """The scratch connection while rows go in: one INSERT at a time."""

    def __init__(self, put: Put) -> None:
        self.size = 0  # bytes that wait, of all fillings
        self.fillings: set[Filling] = set()
        self._put = put
        self._turn = asyncio.Lock()

    async def put(self, settings: Settings, sql: Callable[[], bytes]) -> Result:
        """Run what `sql` makes when its turn comes."""
        async with self._turn:
            (result,) = await self._put(settings, sql())
        self.flow()
        return result

    def flow(self) -> None:
        """Read on from the hosts, or not while too much waits."""
        for filling in self.fillings:
            filling.pause(self.size > _AHEAD)


class Filling(Reading):
    """One piece's rows on the way into its table."""

    def __init__(
        self,
        client: Exchange,
        work: GatherWork,
        settings: Settings,
        loading: Loading,
        scratch: Scratch,
        columns: Sequence[tuple[int, set[bytes]]],
        *,
        put_with: Settings,
        insert: bytes,
        ceiling: int | None,
        told: Diagnostics,
    ) -> None:
        """`columns`: the values of these columns go into these sets. `insert` is the INSERT up to its rows,
        `put_with` what the scratch connection is set to for it. `told` gets the warnings.
        """
        super().__init__(client, work, settings, ceiling=ceiling, told=told)
        self._loading = loading
        self._scratch = scratch
        self._columns = columns
        self._put_with = put_with
        self._insert = insert
        self._raw: deque[tuple[str, int, list[bytes]]] = deque()  # host, bytes, payloads
        self._pending: list[bytes] = []
        self._size = self._raw_size = 0

    def rows(self, host: str, columns: list[bytes], block: bytes) -> int:
        """Take them for the next turns."""
        if len(columns) != len(self._scratch.columns):
            raise ProxyError("merge_failed", reason=f"{host} has other columns than the others")
        payloads = split_rows(block)
        self._raw.append((host, len(block), payloads))
        self._raw_size += len(block)
        self._grow(len(block))
        self._loading.flow()
        self.wake.set()
        return len(payloads)

    async def _make_literals(self) -> None:
        """Of what has come."""
        mine = self._scratch.columns
        while self._raw and self.error is None:
            host, size, payloads = self._raw.popleft()
            self._raw_size -= size
            for start in range(0, len(payloads), _SLICE):
                try:
                    rows = read_rows(payloads[start : start + _SLICE], len(mine))
                except ProtocolError as problem:
                    self.fail(ProxyError("backend_protocol", host=host, reason=str(problem)))
                    return
                for place, values in self._columns:
                    values.update([value for row in rows if (value := row[place]) is not None])
                self._pending += [row_literal(mine, row) for row in rows]
                await asyncio.sleep(0)

    def _grow(self, size: int) -> None:
        self._size += size
        self._loading.size += size

    def pause(self, wanted: bool) -> None:
        """Read from no host, or go on."""
        for source in self._sources:
            source.pause(wanted)

    async def _take(self) -> None:
        """Put rows in until all have come, or something fails."""
        self._loading.fillings.add(self)
        try:
            while self.error is None:
                if self._raw:
                    await self._make_literals()
                    continue
                over = all(source.over for source in self._sources)
                if not self._pending and over:
                    return
                # what waits of all pieces together may be much, when none has a whole batch
                if self._size < _BATCH and not over and not (self._pending and self._loading.size > _AHEAD):
                    await self.wake.wait()
                    self.wake.clear()
                    continue
                self.work.check()
                result = await self._loading.put(self._put_with, partial(self._batch))
                if result.err is not None:
                    self.fail(result.err)
        finally:
            self._loading.fillings.discard(self)
            self._grow(-self._size)
            self._loading.flow()

    def _batch(self) -> bytes:
        """An INSERT of the next rows, about 1 MB of them."""
        size = count = 0
        while count < len(self._pending) and size < _BATCH:
            size += len(self._pending[count])
            count += 1
        batch, self._pending = self._pending[:count], self._pending[count:]
        made = self._size - self._raw_size
        self._grow(made * len(self._pending) // (count + len(self._pending)) - made)
        return self._insert + b",".join(batch)
