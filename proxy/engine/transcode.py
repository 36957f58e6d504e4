"""Sinks between the text protocol and prepared statements.

A statement that is executed as text is answered by text rows, whoever answers it: `BinarySink` makes them
binary on their way to the client. `Shown` is for the reply to COM_STMT_PREPARE, where only the proxy knows a
statement's columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from proxy.engine.loading import results_form
from proxy.engine.result import ResultSink, Rewritten
from proxy.engine.warned import without_text
from proxy.errors import ProxyError
from proxy.session.outcome import Outcome
from proxy.wire import row_packets
from proxy.wire.binary import Heading, RowEncoder
from proxy.wire.column_metadata import Header
from proxy.wire.constants import BINARY_COLLATION, MAX_PAYLOAD, ColumnFlag, ColumnType
from proxy.wire.packets import PacketReader, eof_packet, frame, lenenc_bytes, parse_ok, read_lenenc_bytes
from proxy.wire.resultset import Column, decode_column, fitted

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import Statement


_NONE: Final = RowEncoder(())
_ERR: Final = 0xFF
_EOF: Final = b"\5\0\0"
_EOF_SIZE: Final = 9
"""An EOF packet: how it begins, and its size."""
_MOST: Final = 8192
"""Bytes of a heading that are worth keeping: dozens of columns."""


class BinarySink(Rewritten):
    """Makes binary rows of the text rows of one command's answer. `exact`: in text some of its columns would
    be rounded. Whoever has binary rows `passes` them on. The statement keeps its result's heading, as it is
    mostly the same the next time: then nothing of it is read again.
    """

    __slots__ = ("_encoder", "exact", "passes", "statement")

    def __init__(self, client: Exchange, statement: Statement, *, exact: bool) -> None:
        super().__init__(client)
        self.statement = statement
        self.exact = exact
        self.passes = False
        self._encoder = _NONE

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.passes:
            self.below.write(data)
            return
        known = self.statement.heading
        if (
            known is not None
            and known.packets[3] == self._seq  # else they would get other numbers
            and not self._begun
            and not self.statement.text_warnings
            and isinstance(data, bytes)
            and data.startswith(known.packets)
            and self._reader.expect_rows(known.columns)
        ):
            self._begun = True
            self._encoder = known.encoder
            kinds = known.encoder.kinds
            made, pos, rows = row_packets.binary_rows(data, len(known.packets), kinds, known.seq, MAX_PAYLOAD)
            self._seq = known.seq + rows
            if len(data) - pos == _EOF_SIZE and data.startswith(_EOF, pos) and data[pos + 4] == 0xFE:
                self._reader.end(data[pos + 4 :])
                end = b"%b%c%b" % (_EOF, self._seq & 0xFF, data[pos + 4 :])
                self.below.write(known.packets + made + end)
                return
            self._pieces += (known.packets, made)
            data = data[pos:]
        super().write(data)

    def columns(self, definitions: list[bytes]) -> None:
        types = [decode_column(one).type for one in definitions]
        self._encoder = RowEncoder(types, results_form(self.client.session))
        super().columns(definitions)
        packets = b"".join(self._pieces)
        if len(packets) <= _MOST:
            self.statement.heading = Heading(packets, self._seq, definitions, self._encoder)

    def block(self, block: bytes) -> None:
        made, pos, rows = row_packets.binary_rows(block, 0, self._encoder.kinds, self._seq, MAX_PAYLOAD)
        self._pieces.append(made)
        self._seq += rows
        if pos < len(block):
            super().block(block[pos:])

    def row(self, payload: bytes) -> bytes:
        return self._encoder.row(payload)

    def end(self, payload: bytes) -> None:
        text = self.statement.text_warnings
        super().end(_warning_less(payload, text) if text else payload)

    def answered(self, outcome: str) -> bool:
        if self.statement.text_warnings and not self.passes:
            session = self.client.session
            session.apply(Outcome(diagnostics=without_text(session.diagnostics)))
        return super().answered(outcome)

    def remove(self) -> None:
        self.client.relay.once = None
        super().remove()


def _warning_less(payload: bytes, less: int) -> bytes:
    """An OK or EOF packet with its number of warnings lowered by `less`; an ERR packet unchanged."""
    if payload[0] == _ERR:
        return payload
    if payload[0] == 0xFE:
        count = int.from_bytes(payload[1:3], "little")
        return payload[:1] + max(count - less, 0).to_bytes(2, "little") + payload[3:]
    ok = parse_ok(payload)
    left = max(ok.warnings - less, 0)
    info, at = read_lenenc_bytes(ok.info, 0) if ok.info else (b"", 0)
    told = b"Warnings: %d" % ok.warnings  # behind the rows of an UPDATE or INSERT
    if info is not None and info.endswith(told):
        info = info[: -len(told)] + b"Warnings: %d" % left
    shown = lenenc_bytes(info or b"") + ok.info[at:] if ok.info else b""
    return payload[: -len(ok.info) - 2] + left.to_bytes(2, "little") + shown


def binary_reply(client: Exchange, statement: Statement, data: bytes, header: Header) -> bytes:
    """A whole reply to a command of one packet, with binary rows. It begins with `header`, and its end is an
    EOF packet. Where the heading is new, or a row not plain, a `BinarySink` stands from now on.
    """
    known = statement.heading
    if known is not None and known.packets == header.shown:
        made, pos, _ = row_packets.binary_rows(data, header.size, known.encoder.kinds, known.seq, MAX_PAYLOAD)
        if len(data) - pos == _EOF_SIZE:
            return b"".join((header.shown, made, data[pos:]))
    BinarySink(client, statement, exact=False)
    return header.shown + data[header.size :]


def exact_sink(client: Exchange) -> BinarySink | None:
    """The sink of an EXECUTE whose rows must be binary from the start; None for any other statement."""
    sink = client.sink
    return sink if isinstance(sink, BinarySink) and sink.exact else None


def refuse_rounded(client: Exchange) -> None:
    """Refuse an EXECUTE whose rows come as text from several hosts, if they would be rounded. Raises
    ProxyError.
    """
    if exact_sink(client) is not None:
        raise ProxyError(
            "not_supported_yet",
            what="RETURNING a FLOAT column from several shards in a prepared statement",
            reason="its text has fewer digits than its value",
            alternative="Name one ID, or send it as text.",
        )


class Shown(ResultSink):
    """The definitions of a result's columns."""

    __slots__ = ("definitions",)

    def __init__(self, client: Exchange) -> None:
        super().__init__(client)
        self.definitions: list[bytes] = []

    def columns(self, definitions: list[bytes]) -> None:
        self.definitions = definitions


def definitions(data: bytes) -> tuple[list[bytes], list[bytes]]:
    """The definitions of parameters and columns in a server's reply to COM_STMT_PREPARE."""
    columns, parameters = (int.from_bytes(data[at : at + 2], "little") for at in (9, 11))
    payloads = [payload for _, payload in PacketReader(1 << 32).feed(data)]
    first = 1 + parameters + bool(parameters)
    return payloads[1 : 1 + parameters], payloads[first : first + columns]


def exact_of(columns: Sequence[bytes]) -> str:
    """`Env.exact` for a result with these columns (payloads): "" when no text of theirs is rounded."""
    marks = "".join("01"[_rounded(decode_column(one))] for one in columns)
    return marks if "1" in marks else ""


def depends_on_types(columns: Sequence[bytes]) -> bool:
    """Whether `exact_of` these columns may change with the types of the parameters: on MariaDB the expression
    `price * ?` is a DOUBLE at PREPARE, and a DECIMAL if a whole number is bound.
    """
    return any(_rounded(one) and not one.org_name for one in map(decode_column, columns))


def _rounded(column: Column) -> bool:
    """Whether the text of a column's values has fewer digits than they have."""
    if column.type == ColumnType.FLOAT:
        return True
    return column.type == ColumnType.DOUBLE and column.decimals < _AS_MANY_AS_NEEDED


_AS_MANY_AS_NEEDED: Final = 31
"""`decimals` of a DOUBLE without (M,D)."""


#: What MariaDB says of every parameter.
_ANY_PARAMETER = Column(b"?", ColumnType.NULL, BINARY_COLLATION, 0, int(ColumnFlag.BINARY)).encode()


def prepare_reply(
    statement: int,
    seq: int,
    status: int,
    parameters: int,
    known: Sequence[bytes],
    columns: Sequence[bytes],
    *,
    extended: bool,
) -> bytes:
    """The reply to COM_STMT_PREPARE. `known` are the parameters' definitions as far as they are known.
    `extended`: whether the client has agreed on MariaDB's extended metadata.
    """
    head = statement.to_bytes(4, "little") + len(columns).to_bytes(2, "little")
    pieces = [frame(b"\0" + head + parameters.to_bytes(2, "little") + b"\0\0\0", seq)]
    filled = known if len(known) == parameters else [_ANY_PARAMETER] * parameters
    for block in (filled, columns):
        for payload in block:
            seq += 1
            pieces.append(frame(fitted(payload, extended=extended), seq))
        if block:
            seq += 1
            pieces.append(eof_packet(seq, status))
    return b"".join(pieces)
