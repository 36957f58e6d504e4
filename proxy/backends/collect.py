"""A reply as values, for the proxy's own questions: small results, read whole."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Final

from proxy.errors import ProxyError
from proxy.wire.attributes import NOTHING
from proxy.wire.charsets import WIDE
from proxy.wire.packets import Err, Ok, ProtocolError, frame
from proxy.wire.replies import FIRST
from proxy.wire.resultset import NUMERIC, decode_column, decode_row
from proxy.wire.rows import ResultReader, split_rows

from .connection import BackendConnection

_KILLED: Final = 1317


async def end_of_reply(conn: BackendConnection, end: asyncio.Future[None], *, kill: bool = True) -> None:
    """Wait for what a receiver on `conn` sets at the end. Cancelling closes the connection and, with `kill`,
    ends the statement on the server.
    """
    try:
        await end
    except asyncio.CancelledError:
        conn.owner.discard(conn, kill=kill)
        raise


class ServerError(Exception):
    """A server's error, for the client as it is."""

    def __init__(self, err: Err) -> None:
        super().__init__(err.text())
        self.err = err


class Collector:
    """Collects the reply to one statement. After `run`: `ok`, or `err`, or `columns` (definition payloads)
    and `rows` (payloads).
    """

    __slots__ = (
        "_future",
        "_host",
        "_reader",
        "attributes",
        "client",
        "err",
        "ok",
        "own",
        "rows",
        "status",
        "warnings",
    )
    whole = True
    state = FIRST
    """Of the reply at its begin, see `ReplyScanner`."""

    def __init__(self, attributes: bytes = NOTHING, *, own: bool = True, client: object = None) -> None:
        """`attributes`: query attributes that go with the statement. `own`: see `Receiver`. `client`: whose
        statement it is, for connections that tell the server.
        """
        self.own = own
        self.client = client
        self.attributes = attributes
        self.ok: Ok | None = None
        self.err: Err | None = None
        self.rows: list[bytes] = []
        self.status = 0
        self.warnings = 0
        self._reader = ResultReader()
        self._future: asyncio.Future[None] | None = None
        self._host = ""

    @property
    def columns(self) -> list[bytes]:
        return self._reader.columns

    async def run(
        self, conn: BackendConnection, packets: bytes, sync_packets: int = 0, *, kill: bool = True
    ) -> Collector:
        """Send and wait for the reply. ProxyError when the connection is lost, or the columns are none.
        Cancelling closes the connection and, with `kill`, ends the statement on the server.
        """
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._future = future
        self._host = conn.host
        conn.begun = monotonic()
        conn.send(packets, self, sync_packets, state=self.state)
        await end_of_reply(conn, future, kill=kill)
        return self

    async def query(self, conn: BackendConnection, sql: bytes) -> Collector:
        return await self.run(conn, frame(b"\x03" + sql))

    @classmethod
    async def after_statement(cls, conn: BackendConnection, sql: bytes) -> Collector:
        """Ask about a statement that has ended. A KILL QUERY for that statement may come late and end the
        question, which is then asked again.
        """
        found = await cls().query(conn, sql)
        if found.err is not None and found.err.code == _KILLED:
            found = await cls().query(conn, sql)
        return found

    def values(self, *, first: int = 0, most: int | None = None) -> list[list[bytes | None]]:
        """The rows as values, or `most` of them from `first` on; None is NULL. Texts are as the session's
        results are; but of character sets that are not read byte by byte (ucs2 and its kin) they come in
        UTF-8. ProxyError when they are none.
        """
        try:
            chosen = self.rows if most is None else self.rows[first : first + most]
            rows = [decode_row(row, len(self.columns)) for row in chosen]
        except ProtocolError as problem:
            raise ProxyError("backend_protocol", host=self._host, reason=str(problem)) from None
        for place, payload in enumerate(self.columns):
            column = decode_column(payload)
            if column.collation in WIDE:
                codec = WIDE[column.collation]
                for row in rows:
                    row[place] = (
                        None if (value := row[place]) is None else value.decode(codec, "replace").encode()
                    )
            elif column.type in NUMERIC:  # MariaDB makes their digits wide, too
                for row in rows:
                    row[place] = None if (value := row[place]) is None else value.replace(b"\0", b"")
        return rows

    # -- Receiver
    # ---------------------------------------------------------------------------------------------------

    def accepts(self, conn: BackendConnection, changed: bool) -> bool:
        """Who asks by a collector knows what he asks for."""
        return True

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        block = self._reader.feed(data)
        if block:
            self.rows.extend(split_rows(block))

    def reply_done(self, conn: BackendConnection) -> None:
        said = conn.scanner
        self.ok, self.err, self.status, self.warnings = said.ok, said.err, said.status, said.warnings
        if self._future is None or self._future.done():
            return
        try:
            for definition in self.columns:
                decode_column(definition)  # so that who reads them need not expect nonsense
        except ProtocolError as problem:
            self._future.set_exception(ProxyError("backend_protocol", host=conn.host, reason=str(problem)))
        else:
            self._future.set_result(None)

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_exception(error)
