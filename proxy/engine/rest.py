"""The rest of a gathered statement: its reply on the way to the client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from proxy.backends.collect import end_of_reply
from proxy.backends.connection import BackendConnection
from proxy.errors import ProxyError
from proxy.session.outcome import RESULT_SET, ROWS_SENT, Diagnostic, Outcome
from proxy.wire.column_metadata import Place, changed
from proxy.wire.packets import Err, Ok, eof_packet
from proxy.wire.resultset import header_packets
from proxy.wire.rows import ResultReader, renumber

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


class Rest:
    """Receives the reply. Rows go on as the bytes that they are; the status flags are the session's own: its
    transaction is not on this connection.
    """

    whole = True
    own = False

    def __init__(
        self, client: Exchange, place: Place | None = None, definitions: list[bytes] | None = None
    ) -> None:
        """`definitions`: what the client gets in the place of the reply's own column definitions; with the
        origins that `place` gives, if it is given.
        """
        self.client = client
        self.place = place
        self.definitions = definitions
        self.err: Err | ProxyError | None = None
        self.ok: Ok | None = None
        self.warnings = 0
        self.rows = 0
        self.next_seq: int | None = None  # of the next packet, once something was sent
        self._conn: BackendConnection | None = None
        self._reader = ResultReader()
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, conn: BackendConnection, packets: bytes, sync_packets: int) -> None:
        """Send, and wait for the end. ProxyError when the connection is lost before anything was sent on.
        Cancelling closes it, and ends the statement on the server.
        """
        self._conn = conn
        conn.begun = self.client.begun
        if self.client.writing_paused:
            conn.transport.pause_reading()
        conn.send(packets, self, sync_packets)
        try:
            await end_of_reply(conn, self._done)
        finally:
            self._conn = None
            if not conn.closed:
                conn.transport.resume_reading()

    def flow(self) -> None:
        """The client reads slowly, or goes on reading."""
        if self._conn is None:
            return
        if self.client.writing_paused:
            self._conn.transport.pause_reading()
        else:
            self._conn.transport.resume_reading()

    def finish(self, diagnostics: list[Diagnostic]) -> None:
        """The end of the rows, and the command is done."""
        client, session = self.client, self.client.session
        affected = RESULT_SET
        if self.next_seq is None:  # SELECT … INTO @x
            affected = self.ok.affected if self.ok is not None else 0
        session.apply(Outcome(affected, diagnostics=diagnostics, tables=True, touched=ROWS_SENT))
        if self.next_seq is None:
            client.reply_ok(affected=affected, warnings=self.warnings)
            return
        client.transport.write(eof_packet(self.next_seq, session.status(), self.warnings))
        client.finish("ok")

    # -- Receiver
    # ---------------------------------------------------------------------------------------------------

    def accepts(self, conn: BackendConnection, changed: bool) -> bool:
        """On the scratch host all is the proxy's own."""
        return True

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        block = self._reader.feed(data, conn.scanner.ending)
        client = self.client
        if client.closed or not self._reader.rows_begun:
            return
        out = b""
        if self.next_seq is None:
            columns = self.definitions or self._reader.columns
            out, self.next_seq = header_packets(
                columns if self.place is None else changed(columns, self.place),
                client.session.status(),
                client.seq + 1,
                extended=client.session.extended,
            )
        if block:
            numbered, self.next_seq, count = renumber(block, self.next_seq)
            self.rows += count
            out += numbered
        if out:
            client.transport.write(out)

    def reply_done(self, conn: BackendConnection) -> None:
        self.client.visited(conn, ())
        scanned = conn.scanner
        self.err, self.ok, self.warnings = scanned.err, scanned.ok, scanned.warnings
        if not self._done.done():
            self._done.set_result(None)

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        if self._done.done():
            return
        if self.next_seq is None:
            self._done.set_exception(error)
        else:
            self.err = error
            self._done.set_result(None)
