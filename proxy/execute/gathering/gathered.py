"""The rows of one piece: from all its hosts at once into one table of the scratch connection.

Each host sends its statements' rows over one connection, the session's own where a transaction is open. What
comes is written as INSERTs of about 1 MB; while one is at work the hosts may be some ahead, then they are not
read from. The first error ends them all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

from proxy.backends.connection import BackendConnection
from proxy.backends.settings import Settings
from proxy.engine.ends import (
    connection_lost_in_transaction,
    discard,
    fetch_warnings,
    give_all_back,
    opens,
    settle,
)
from proxy.engine.preludes import preludes
from proxy.engine.warned import without_phantoms
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostics
from proxy.wire.packets import Err, ProtocolError, query_packet
from proxy.wire.rows import ResultReader, split_rows
from rewriter.plans import HostStatement

from .batch import Result
from .scratch import Scratch, read_rows, row_literal

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

    from .gather_work import GatherWork

_BATCH: Final = 1 << 20
#: Bytes that may wait for the scratch connection before the hosts are not read from.
_AHEAD: Final = 4 << 20


Put = Callable[[bytes], Awaitable[list[Result]]]
"""Runs a statement on the scratch connection."""


class ServerError(Exception):
    """A server's error, for the client as it is."""

    def __init__(self, err: Err) -> None:
        super().__init__(err.text())
        self.err = err


class Source:
    """One host's share: the `Receiver` of its replies, one statement after another."""

    whole = True
    own = False

    def __init__(self, reading: Reading, host: str) -> None:
        self.reading = reading
        self.host = host
        self.statements: list[bytes] = []
        self.conn: BackendConnection | None = None
        self.over = False
        self.failed = False
        self.paused = False
        self.warnings = 0
        self._reader = ResultReader()

    def send_next(self, settings: Settings) -> None:
        """Send the next statement, with what brings the connection into the session's state."""
        conn, client = self.conn, self.reading.client
        assert conn is not None
        self._reader = ResultReader()
        packets, count = preludes(client.session, conn, settings)
        conn.begun = client.begun
        conn.send(packets + query_packet(self.statements.pop(0)), self, count)

    def pause(self, wanted: bool) -> None:
        """Stop reading from the host, or go on."""
        if self.conn is None or self.over or wanted is self.paused:
            return
        self.paused = wanted
        if wanted:
            self.conn.transport.pause_reading()
        else:
            self.conn.transport.resume_reading()

    # -- Receiver
    # ---------------------------------------------------------------------------------------------------

    def accepts(self, conn: BackendConnection, changed: bool) -> bool:
        return opens(self.reading.client.session, conn)

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        block = self._reader.feed(data, conn.scanner.ending)
        if block and self.reading.error is None:
            self.reading.rows(self, block, len(self._reader.columns))

    def reply_done(self, conn: BackendConnection) -> None:
        if self.paused:
            self.paused = False
            conn.transport.resume_reading()
        self.warnings += conn.scanner.warnings
        if conn.scanner.err is not None:
            self.failed = True
            self.reading.fail(conn.scanner.err)
        elif self.statements and self.reading.error is None:
            self.send_next(self.reading.settings)
            return
        self.over = True
        self.reading.wake.set()

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        self.over = True
        self.reading.lost.append((conn, error))
        self.reading.fail(error)


class Reading:
    """One piece at work."""

    def __init__(
        self,
        client: Exchange,
        work: GatherWork,
        scratch: Scratch,
        columns: Sequence[tuple[int, set[bytes]]],
        ceiling: int | None,
        settings: Settings,
        told: Diagnostics | None,
    ) -> None:
        """`columns`: the values of these columns go into these sets. `ceiling`: the rows of a scatter that
        the user may read. `told` gets the warnings, where the rest does not say them again.
        """
        self._told = told
        self.client = client
        self.work = work
        self.settings = settings
        self.error: ProxyError | Err | None = None
        self.wake = asyncio.Event()
        self.lost: list[tuple[BackendConnection, ProxyError]] = []
        self._scratch = scratch
        self._columns = columns
        self._ceiling = ceiling
        self._sources: list[Source] = []
        self._pending: list[bytes] = []
        self._size = 0

    async def run(self, put: Put, insert: bytes, statements: Sequence[HostStatement]) -> None:
        """Read what `statements` give, and put it in. Raises ServerError and ProxyError."""
        by_host: dict[str, Source] = {}
        for statement in statements:
            source = by_host.setdefault(statement.host, Source(self, statement.host))
            source.statements.append(statement.sql)
        self._sources = [by_host[host] for host in sorted(by_host)]  # everywhere in this order: see FanOut
        try:
            for source in self._sources:
                source.conn = await self._connection(source.host)
                self.work.conns.add(source.conn)
            self.work.check()
            for source in self._sources:
                source.send_next(self.settings)
            await self._load(put, insert)
            await self._end()
            await self._tell()
        except BaseException:
            for source in self._sources:
                if source.conn is not None and source.conn.receiver is not None:
                    discard(self.client, source.conn)
            self._give_back()
            raise
        self._give_back()
        if isinstance(self.error, Err):
            raise ServerError(self.error)
        if self.error is not None:
            raise self.error

    async def _connection(self, host: str) -> BackendConnection:
        session = self.client.session
        held = session.transaction.held.get(host)
        if held is not None:
            return held
        pool = self.client.services.backends.pool(host)
        return await pool.connection(session.settings, None, session.variant, session.user.name)

    # -- rows in
    # ----------------------------------------------------------------------------------------------------

    def rows(self, source: Source, block: bytes, width: int) -> None:
        """A row block of a host."""
        columns = self._scratch.columns
        try:
            if width != len(columns):
                raise ProxyError("merge_failed", reason=f"{source.host} has other columns than the others")
            rows = read_rows(split_rows(block), width)
        except ProtocolError as problem:
            self.fail(ProxyError("backend_protocol", host=source.host, reason=str(problem)))
            return
        except ProxyError as error:
            self.fail(error)
            return
        for place, values in self._columns:
            values.update([value for row in rows if (value := row[place]) is not None])
        self._pending += [row_literal(columns, row) for row in rows]
        self._size += len(block)
        excess = self.work.count(len(rows), len(block), self._ceiling)
        if excess is not None:
            self.fail(excess)
            return
        if self._size > _AHEAD:
            for one in self._sources:
                one.pause(True)
        self.wake.set()

    def fail(self, error: ProxyError | Err) -> None:
        """The first error decides."""
        self.error = self.error or error
        self.wake.set()

    # -- rows out
    # ---------------------------------------------------------------------------------------------------

    async def _load(self, put: Put, insert: bytes) -> None:
        """Put rows in until all have come, or something fails."""
        while self.error is None:
            over = all(source.over for source in self._sources)
            if not self._pending and over:
                return
            if self._size < _BATCH and not over:
                await self.wake.wait()
                self.wake.clear()
                continue
            self.work.check()
            (result,) = await put(insert + b",".join(self._batch()))
            if result.err is not None:
                self.fail(result.err)
            for source in self._sources:
                source.pause(False)

    def _batch(self) -> list[bytes]:
        """The next rows, about 1 MB of them."""
        size = count = 0
        while count < len(self._pending) and size < _BATCH:
            size += len(self._pending[count])
            count += 1
        batch, self._pending = self._pending[:count], self._pending[count:]
        self._size = self._size * len(self._pending) // (count + len(self._pending))
        return batch

    async def _end(self) -> None:
        """After an error: end what still runs, and wait where a transaction must go on."""
        client = self.client
        transaction = client.session.transaction
        for source in self._sources:
            conn = source.conn
            if conn is None or source.over:
                continue
            source.pause(False)
            if transaction.explicit or transaction.held.get(source.host) is conn:
                client.services.backends.kill_query(conn)
            else:
                discard(client, conn)
                source.over = True
        while not all(source.over for source in self._sources):
            self.wake.clear()
            await self.wake.wait()
        for source in self._sources:
            if source.failed and source.conn is not None and not source.conn.closed:
                await settle(client, source.conn)

    async def _tell(self) -> None:
        """Fetch the warnings, of each host's last statement that has some."""
        if self._told is None or self.error is not None:
            return
        for source in self._sources:
            if source.warnings and source.conn is not None and not source.conn.closed:
                found = without_phantoms(await fetch_warnings(source.conn, source.warnings))
                self._told += found
                self._told.total += found.total

    def _give_back(self) -> None:
        """No source is at work any more."""
        conns = [source.conn for source in self._sources if source.conn is not None]
        self.work.conns.difference_update(conns)
        give_all_back(self.client, [conn for conn in conns if not conn.closed], failed=self.error is not None)
        for conn, error in self.lost:
            connection_lost_in_transaction(self.client, conn, error)
        for conn in conns:
            if conn.closed:
                connection_lost_in_transaction(self.client, conn, None)
