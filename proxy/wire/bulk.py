"""MariaDB's COM_STMT_BULK_EXECUTE: one statement, many rows of parameters. Values only.

Behind the statement's number and the flags come the parameters' types, two bytes each, when a flag says so,
and then the rows: for each parameter a byte that tells whether a value follows it, in the binary protocol.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from .binary import Execute, Quoting, literals, value_end
from .constants import Command
from .packets import ProtocolError

_HEAD = Struct("<BIH")
SEND_TYPES: Final = 128
VALUE, NULL, DEFAULT, IGNORE = range(4)


class BulkExecute(NamedTuple):
    """A COM_STMT_BULK_EXECUTE. `types` are two bytes a parameter, b"" when they were not sent; `rows` is all
    that follows.
    """

    statement: int
    types: bytes
    rows: bytes
    flags: int = 0  # of an EXECUTE: a bulk one opens no cursor

    def packet(self, statement: int, types: bytes, parameters: int) -> bytes:
        """The payload for a server, with its number of the statement, and always with the types."""
        return _HEAD.pack(Command.STMT_BULK_EXECUTE, statement, SEND_TYPES) + types + self.rows

    def attributed(self, statement: int, types: bytes, parameters: int) -> bytes:
        """`packet` for a server that knows query attributes: none knows both."""
        return self.packet(statement, types, parameters)


def parse_bulk(payload: bytes, parameters: int) -> BulkExecute:
    """Read the packet. ProtocolError when it is cut short or wants what was not agreed on."""
    if len(payload) < _HEAD.size:
        raise ProtocolError("COM_STMT_BULK_EXECUTE is cut short")
    _, statement, flags = _HEAD.unpack_from(payload)
    if flags & ~SEND_TYPES:
        raise ProtocolError("unknown flags of COM_STMT_BULK_EXECUTE")
    begin = _HEAD.size
    end = begin + 2 * parameters if flags & SEND_TYPES else begin
    if end > len(payload):
        raise ProtocolError("the parameters' types are cut short")
    return BulkExecute(statement, payload[begin:end], payload[end:])


def rows_of(bulk: BulkExecute, types: bytes, parameters: int) -> Iterator[list[tuple[int, bytes]]]:
    """The rows one by one: what stands before each value (VALUE, NULL …) and, for VALUE, its bytes.

    ProtocolError when they cannot be read.
    """
    rows, pos = bulk.rows, 0
    if len(types) < 2 * parameters or not parameters:
        raise ProtocolError("the types of the parameters were never sent")
    while pos < len(rows):
        row = []
        for number in range(parameters):
            if pos >= len(rows):
                raise ProtocolError("a row of parameters is cut short")
            kind, begin = rows[pos], pos + 1
            if kind > IGNORE:
                raise ProtocolError("an unknown indicator stands before a parameter")
            pos = value_end(rows, begin, types[2 * number]) if kind == VALUE else begin
            row.append((kind, rows[begin:pos]))
        yield row


def execute_of(row: list[tuple[int, bytes]], types: bytes) -> Execute | None:
    """The same row as a COM_STMT_EXECUTE; None when it has values that there cannot be named."""
    nulls = 0
    for number, (kind, _) in enumerate(row):
        if kind == NULL:
            nulls |= 1 << number
        elif kind != VALUE:
            return None
    bitmap = nulls.to_bytes((len(row) + 7) // 8, "little")
    return Execute(0, 0, bitmap, types, b"".join(value for _, value in row))


def bulk_literals(bulk: BulkExecute, types: bytes, parameters: int, quoting: Quoting) -> tuple[bytes, ...]:
    """All values of all rows as SQL literals. ProtocolError when they cannot be read."""
    found: list[bytes] = []
    for row in rows_of(bulk, types, parameters):
        for number, (kind, value) in enumerate(row):
            if kind == VALUE:
                found += literals(b"\0", types[2 * number : 2 * number + 2], value, 1, {}, quoting)
    return tuple(found)
