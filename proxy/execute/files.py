"""LOAD DATA LOCAL INFILE: the server asks, the client sends its file in packets, and the server answers.

    client ── LOAD DATA LOCAL … ─▶ server        client ◀── 0xFB and a file's name ── server
    client ── content … ── an empty packet ─▶ server        client ◀── OK or ERR ── server

The proxy reads no file, ever: it passes on the request, once, to a client that allowed it (LOCAL_FILES), and
the client's packets as they come. While the server reads slowly the client is not read from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.backends.connection import BackendConnection
from proxy.engine import lease
from proxy.engine.passthrough import Request
from proxy.engine.work import FILE
from proxy.errors import ProxyError
from proxy.wire.constants import MAX_PAYLOAD
from proxy.wire.packets import frame, query_packet

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


class FileRequest(Request):
    """One LOAD DATA LOCAL, and the client's `Phase` from the server's request to the file's end."""

    __slots__ = ("asked", "client", "error", "outcome", "paused", "seq")

    def __init__(self, client: Exchange) -> None:
        super().__init__(client.relay)
        self.client = client
        self.asked = False
        self.seq = 0  # number of the next packet, as the server counts them
        self.paused = False
        self.outcome = ""  # the reply came before the file's end
        self.error: ProxyError | None = None  # the connection was lost before it

    def send(self, conn: BackendConnection) -> None:
        conn.scanner.files = True
        if self.client.writing_paused:
            conn.transport.pause_reading()
        packets, count = self.relay.packets_before(conn)
        conn.send(packets + query_packet(self.relay.sql), self, count)

    # -- Phase
    # ----------------------------------------------------------------------------------------------------

    def payload(self, seq: int, payload: bytes) -> None:
        """Some of the file; an empty payload is its end."""
        if self.relay.conn is not None:
            self.relay.conn.transport.write(frame(payload, self.seq))
        self.seq = self.seq + 1 + len(payload) // MAX_PAYLOAD & 0xFF
        if payload:
            return
        self._over()
        if self.error is not None:
            self.client.fail(self.error, self.seq)
        elif self.outcome:
            self.client.finish(self.outcome)

    def abandon(self) -> None:
        """The client is gone; `cancel` follows."""

    def _over(self) -> None:
        """No more of the file: what the client sends are commands."""
        self.client.phase = None
        self._filled(False)

    def _filled(self, full: bool) -> None:
        """The server reads slowly, or fast enough again."""
        if full and not self.paused and self.client.phase is self:
            self.client.hush(FILE)
        elif self.paused and not full:
            self.client.listen(FILE)
        else:
            return
        self.paused = full

    # -- Receiver
    # -------------------------------------------------------------------------------------------------

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        self.relay.reply_data(conn, data)
        if not self.asked and not conn.scanner.files:
            self.asked = True
            self.seq = conn.scanner.seq + 1
            conn.filled = self._filled
            self.client.phase = self
            self.client.take_waiting()

    def reply_done(self, conn: BackendConnection) -> None:
        conn.scanner.files = False
        conn.filled = None
        if self.client.phase is not self:
            self.relay.reply_done(conn)
            return
        # the client still sends, and must be heard out; whether the server would be, nobody knows
        self.relay.conn = None
        self.outcome = "ok"
        if conn.scanner.err is not None:
            self.outcome = "error"
            session = self.client.session
            error = conn.scanner.err
            session.note_error(error.code, error.text(session.results_codec), error.sqlstate)
        conn.close()
        lease.lost(self.client, conn, None)
        self._filled(False)

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        if self.client.phase is not self or not clean:
            self.relay.reply_lost(conn, error, clean)
            return
        self.relay.conn = None
        self.error = error  # told behind the file: until then the client does not listen
        lease.lost(self.client, conn, error)
        self._filled(False)
