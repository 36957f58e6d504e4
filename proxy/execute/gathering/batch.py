"""Several statements of the proxy's own in one network write, each with its reply."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic

from proxy.backends.collect import end_of_reply
from proxy.backends.connection import BackendConnection
from proxy.errors import ProxyError
from proxy.wire.packets import Err, ProtocolError, query_packet
from proxy.wire.resultset import decode_row
from proxy.wire.rows import ResultReader, split_rows


@dataclass(slots=True)
class Result:
    """What became of one statement: its error, or the rows that it gave, with their columns' definitions."""

    err: Err | None = None
    rows: list[list[bytes | None]] = field(default_factory=list)
    columns: list[bytes] = field(default_factory=list)


class Batch:
    """Receives the replies, in order. Results are small, and read whole."""

    whole = True
    own = True

    def __init__(self) -> None:
        self.results: list[Result] = []
        self._reader = ResultReader()
        self._rows: list[bytes] = []
        self._count = 0
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, conn: BackendConnection, statements: Sequence[bytes]) -> list[Result]:
        """Send them all, whatever becomes of the first ones, and wait for the replies. ProxyError when the
        connection is lost. Cancelling closes it and ends on the server what runs there.
        """
        self._count = len(statements)
        conn.begun = monotonic()
        conn.send(b"".join(map(query_packet, statements)), self, replies=len(statements))
        await end_of_reply(conn, self._done)
        return self.results

    # -- Receiver
    # ---------------------------------------------------------------------------------------------------

    def accepts(self, conn: BackendConnection, changed: bool) -> bool:
        """On the scratch host all is the proxy's own."""
        return True

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        block = self._reader.feed(data)
        if block:
            self._rows += split_rows(block)

    def reply_done(self, conn: BackendConnection) -> None:
        result = Result(conn.scanner.err, columns=self._reader.columns)
        try:
            result.rows = [decode_row(row, len(self._reader.columns)) for row in self._rows]
        except ProtocolError as problem:
            error = ProxyError("backend_protocol", host=conn.host, reason=str(problem))
            if not self._done.done():
                self._done.set_exception(error)
        self.results.append(result)
        self._reader, self._rows = ResultReader(), []
        if len(self.results) == self._count and not self._done.done():
            self._done.set_result(None)

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        if not self._done.done():
            self._done.set_exception(error)
