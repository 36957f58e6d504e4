"""Sinks between the text protocol and prepared statements.

A statement that is executed as text is answered by text rows, whoever answers it: `BinarySink` makes them
binary on their way to the client. And `DefinitionsSink` makes of a whole answer the reply to
COM_STMT_PREPARE, for statements of which only the proxy knows the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from proxy.engine.sinks import CommandSink
from proxy.errors import ProxyError
from proxy.wire.binary import RowEncoder
from proxy.wire.constants import BINARY_COLLATION, MAX_PAYLOAD, ColumnFlag, ColumnType, Status
from proxy.wire.packets import eof_packet, frame, read_lenenc
from proxy.wire.resultset import Column, decode_column, fitted

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_MORE = int(Status.MORE_RESULTS_EXISTS)
_FIRST, _DEFINITIONS, _DEFINITIONS_END, _ROWS = range(4)


class Payloads:
    """Cuts what is written into payloads; what is not whole waits."""

    __slots__ = ("_held", "_parts")

    def __init__(self) -> None:
        self._held = b""
        self._parts: list[bytes] = []

    def feed(self, data: bytes | bytearray | memoryview) -> list[tuple[int, bytes]]:
        """The payloads that are whole now, each with its (first) sequence number."""
        data = self._held + bytes(data)
        found = []
        pos, end = 0, len(data)
        while end - pos >= 4:
            length = int.from_bytes(data[pos : pos + 3], "little")
            stop = pos + 4 + length
            if stop > end:
                break
            payload = data[pos + 4 : stop]
            if length == MAX_PAYLOAD or self._parts:
                self._parts.append(payload)
            if length < MAX_PAYLOAD:
                if self._parts:
                    payload, self._parts = b"".join(self._parts), []
                found.append((data[pos + 3], payload))
            pos = stop
        self._held = data[pos:]
        return found


class BinarySink(CommandSink):
    """Makes binary rows of the text rows of one command's answer. `exact`: in text some of its columns would
    be rounded. Whoever has binary rows `passes` them on.
    """

    __slots__ = ("_columns", "_encoder", "_payloads", "_relay", "_seq", "_state", "_types", "exact", "passes")

    def __init__(self, client: Exchange, *, exact: bool) -> None:
        super().__init__(client)
        self.exact = exact
        self.passes = False
        self._payloads = Payloads()
        self._state = _FIRST
        self._columns = 0
        self._types: list[int] = []
        self._encoder = RowEncoder(())
        self._seq = -1
        self._relay = client.relay

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.passes:
            self.below.write(data)
            return
        pieces = []
        for _, payload in self._payloads.feed(data):
            if self._seq < 0:  # not the server's: with values in it the text may have taken more packets
                self._seq = self.client.seq + 1
            changed = self._change(payload)
            pieces.append(frame(changed, self._seq))
            self._seq += 1 + len(changed) // MAX_PAYLOAD
        if pieces:
            self.below.write(b"".join(pieces))

    def _change(self, payload: bytes) -> bytes:
        """The payload as the client of an EXECUTE gets it."""
        first = payload[:1]
        if first == b"\xff" or (self._state == _FIRST and first == b"\0"):
            self._state = _FIRST
        elif self._state == _FIRST:
            self._columns = read_lenenc(payload, 0)[0] or 0
            self._types = []
            self._state = _DEFINITIONS
        elif self._state == _DEFINITIONS:
            self._types.append(decode_column(payload).type)
            if len(self._types) == self._columns:
                self._state = _DEFINITIONS_END
        elif self._state == _DEFINITIONS_END:
            self._encoder = RowEncoder(self._types)
            self._state = _ROWS
        elif first == b"\xfe" and len(payload) < 9:
            self._state = _FIRST
        else:
            return self._encoder.row(payload)
        return payload

    def answered(self, outcome: str) -> None:
        self.client.relay = self._relay
        super().answered(outcome)


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


class DefinitionsSink(CommandSink):
    """Takes a whole answer in; `prepared` gets its column definitions and answers. An error passes."""

    __slots__ = ("_payloads", "_prepared", "_taken")

    def __init__(self, client: Exchange, prepared: Callable[[list[bytes]], bytes]) -> None:
        super().__init__(client)
        self._payloads = Payloads()
        self._taken: list[tuple[int, bytes]] = []
        self._prepared = prepared

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._taken += self._payloads.feed(data)

    def answered(self, outcome: str) -> None:
        seq, last = self._taken[-1]
        if last[:1] == b"\xff":
            self.below.write(frame(last, seq if len(self._taken) == 1 else self.client.seq + 1))
        else:
            count = 0 if self._taken[0][1][:1] == b"\0" else read_lenenc(self._taken[0][1], 0)[0] or 0
            self.below.write(self._prepared([payload for _, payload in self._taken[1 : 1 + count]]))
        super().answered(outcome)


def definitions(data: bytes) -> tuple[list[bytes], list[bytes]]:
    """The definitions of parameters and columns in a server's reply to COM_STMT_PREPARE."""
    columns, parameters = (int.from_bytes(data[at : at + 2], "little") for at in (9, 11))
    payloads = [payload for _, payload in Payloads().feed(data)]
    first = 1 + parameters + bool(parameters)
    return payloads[1 : 1 + parameters], payloads[first : first + columns]


def exact_of(columns: Sequence[bytes]) -> str:
    """`Env.exact` for a result with these columns (payloads): "" when no text of theirs is rounded."""
    marks = "".join("01"[_rounded(decode_column(one))] for one in columns)
    return marks if "1" in marks else ""


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
