"""INSERT … SELECT over shards: the SELECT is read whole, then its rows are inserted as VALUES.

Both run by the ordinary way, so each goes where it belongs, whatever its kind: a sink takes the SELECT's rows
instead of the client, and then has the INSERT follow. The rows are bounded by `gather_bytes`. Over several
shards the INSERT is what any multi-row INSERT is: atomic in a transaction, else each shard commits by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.errors import ProxyError
from proxy.session.sinks import CommandSink
from proxy.session.values import quote
from proxy.wire.constants import ColumnType
from proxy.wire.packets import PacketReader, ProtocolError, frame, lenenc_bytes, ok_packet, parse_ok
from proxy.wire.resultset import Column, decode_column, decode_row

if TYPE_CHECKING:
    from proxy.session.client import ClientConnection

_NUMBERS: Final = frozenset(
    {
        ColumnType.DECIMAL,
        ColumnType.TINY,
        ColumnType.SHORT,
        ColumnType.LONG,
        ColumnType.LONGLONG,
        ColumnType.INT24,
        ColumnType.DOUBLE,
        ColumnType.YEAR,
        ColumnType.NEWDECIMAL,
        ColumnType.NULL,
    }
)
_BYTES: Final = frozenset({ColumnType.BIT, ColumnType.GEOMETRY})
_STRINGS: Final = frozenset(
    {
        ColumnType.VARCHAR,
        ColumnType.VAR_STRING,
        ColumnType.STRING,
        ColumnType.TINY_BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB,
    }
)
_BINARY: Final = 63
"""The collation of columns of bytes."""


class InsertSelect(CommandSink):
    """The statement at work. First it takes the rows, then the reply to the INSERT passes through."""

    __slots__ = ("columns", "count", "error", "head", "reader", "rows", "seq", "size", "state", "tail")

    def __init__(self, client: ClientConnection, head: bytes, tail: bytes) -> None:
        super().__init__(client)
        self.head = head
        self.tail = tail
        self.seq = client.seq
        self.reader: PacketReader | None = PacketReader(1 << 32)
        self.state = "count"  # of the SELECT's reply: count, columns, rows, over
        self.count = 0
        self.columns: list[Column] = []
        self.rows: list[bytes] = []
        self.size = 0
        self.error: bytes | ProxyError | None = None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.reader is None:
            self.below.write(self._reply(bytes(data)))
            return
        for _, payload in self.reader.feed(bytes(data)):
            self._take(payload)

    def _take(self, payload: bytes) -> None:
        """A packet of the SELECT's reply."""
        if payload[:1] == b"\xff":
            self.error = payload
        elif self.state == "count":
            self.count = payload[0] if payload[0] < 251 else int.from_bytes(payload[1:3], "little")
            self.state = "columns" if self.count else "over"
        elif self.state == "columns" and len(self.columns) < self.count:
            self.columns.append(decode_column(payload))
        elif self.state == "columns":
            self.state = "rows"  # the EOF packet behind the definitions
        elif payload[:1] == b"\xfe" and len(payload) < 9:
            self.state = "over"
        elif self.error is None:
            self._row(payload)

    def _row(self, payload: bytes) -> None:
        try:
            values = decode_row(payload, self.count)
            literals = [self._literal(*pair) for pair in zip(values, self.columns, strict=True)]
        except ProtocolError:
            self.error = ProxyError("merge_failed", reason="a row that cannot be read")
            return
        except ProxyError as error:
            self.error = error
            return
        row = b"(" + b", ".join(literals) + b")"
        self.size += len(row) + 2
        limit = self.client.services.settings.limits.gather_bytes
        if limit and self.size > limit:
            self.error = ProxyError("gather_limit", limit=limit, unit="bytes", setting="gather_bytes")
            self.rows.clear()
        else:
            self.rows.append(row)

    def _literal(self, value: bytes | None, column: Column) -> bytes:
        """A value as it is written in VALUES."""
        if value is None:
            return b"NULL"
        if column.type in _NUMBERS:
            return value
        if column.type == ColumnType.FLOAT:
            raise ProxyError(
                "not_supported_yet",
                what="INSERT … SELECT of a FLOAT column",
                reason="its text has fewer digits than its value",
                alternative="Select it as (column + 0e0).",
            )
        if column.type in _BYTES or (column.type in _STRINGS and column.collation == _BINARY):
            return b"x'" + value.hex().encode() + b"'"
        session = self.client.session
        if not value.isascii() and (session.unsafe_charset or not _same_charset(self.client)):
            raise ProxyError("charset_refused", charset=session.env.charset)
        return quote(value, session.no_backslash_escapes)

    def _reply(self, data: bytes) -> bytes:
        """The INSERT's reply: of a single row, too, the client is told how many there were."""
        if data[4:5] != b"\0" or len(self.rows) != 1:
            return data
        ok = parse_ok(data[4:])
        if ok.info:
            return data
        info = b"Records: 1  Duplicates: %d  Warnings: %d" % (ok.affected != 1, ok.warnings)
        return ok_packet(
            data[3],
            ok.status,
            affected=ok.affected,
            insert_id=ok.insert_id,
            warnings=ok.warnings,
            info=lenenc_bytes(info),
        )

    def answered(self, outcome: str) -> None:
        if self.reader is None:
            super().answered(outcome)
            return
        self.reader = None
        error = self.error
        if isinstance(error, ProxyError):
            self.client.fail(error)  # which comes back here
        elif error is not None or not self.columns:
            self.below.write(frame(error or b"\xff\0\0no rows", self.seq + 1))
            super().answered(outcome)
        elif not self.rows:
            self._nothing()
            super().answered(outcome)
        else:
            sql = self.head + b" VALUES " + b", ".join(self.rows) + self.tail
            self.client.go_on(self.seq, sql)

    def _nothing(self) -> None:
        """There was no row to insert."""
        session = self.client.session
        session.row_count = 0
        info = lenenc_bytes(b"Records: 0  Duplicates: 0  Warnings: 0")
        self.below.write(ok_packet(self.seq + 1, session.status(), info=info))


def _same_charset(client: ClientConnection) -> bool:
    """Whether text comes in the character set that statements are written in."""
    settings = client.session.settings
    return settings.get("character_set_results") == settings.get("character_set_client")
