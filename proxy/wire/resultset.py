"""Column definitions and text rows: built for what the proxy answers itself, read for what it merges.

A text row is its values one after another, each a length-encoded string, NULL as 0xFB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from struct import Struct

from .constants import BINARY_COLLATION, UTF8MB4_GENERAL_CI, ColumnFlag, ColumnType
from .packets import (
    ProtocolError,
    eof_packet,
    frame,
    lenenc,
    lenenc_bytes,
    read_lenenc,
    read_lenenc_bytes,
)

_TAIL = Struct("<HIBHBxx")
_FIXED = 1 + _TAIL.size

#: Types whose text is a number, compared by value.
NUMERIC = frozenset(
    {
        ColumnType.DECIMAL,
        ColumnType.TINY,
        ColumnType.SHORT,
        ColumnType.LONG,
        ColumnType.FLOAT,
        ColumnType.DOUBLE,
        ColumnType.LONGLONG,
        ColumnType.INT24,
        ColumnType.YEAR,
        ColumnType.NEWDECIMAL,
    }
)
#: Types whose text sorts as bytes do (fixed width), but for TIME, which has a sign and any number of hours.
TEMPORAL = frozenset({ColumnType.TIMESTAMP, ColumnType.DATE, ColumnType.DATETIME, ColumnType.NEWDATE})


@dataclass(frozen=True, slots=True)
class Column:
    """A column definition (ColumnDefinition41). Names are bytes in the connection's character set.

    `extended` is MariaDB's extended metadata (its own names of type and format), b"" for none; None where it
    was not agreed on and the field is missing.
    """

    name: bytes
    type: int = ColumnType.VAR_STRING
    collation: int = UTF8MB4_GENERAL_CI
    length: int = 255 * 4
    flags: int = 0
    decimals: int = 0
    schema: bytes = b""
    table: bytes = b""
    org_table: bytes = b""
    org_name: bytes = b""
    extended: bytes | None = None

    def encode(self) -> bytes:
        """The packet's payload."""
        names = [b"def", self.schema, self.table, self.org_table, self.name, self.org_name]
        if self.extended is not None:
            names.append(self.extended)
        fixed = _TAIL.pack(self.collation, self.length, self.type, self.flags, self.decimals)
        return b"".join(map(lenenc_bytes, names)) + b"\x0c" + fixed

    def renamed(self, name: bytes) -> Column:
        return replace(self, name=name)


def text_column(name: str) -> Column:
    return Column(name.encode())


def integer_column(name: str, *, unsigned: bool = True) -> Column:
    flags = ColumnFlag.NOT_NULL | ColumnFlag.BINARY | ColumnFlag.NUM
    if unsigned:
        flags |= ColumnFlag.UNSIGNED
    return Column(name.encode(), ColumnType.LONGLONG, BINARY_COLLATION, 21, int(flags))


def decode_column(payload: bytes) -> Column:
    """Read a ColumnDefinition41 payload."""
    pos = 0
    names: list[bytes] = []
    for _ in range(6):
        value, pos = read_lenenc_bytes(payload, pos)
        names.append(value or b"")
    extended = None
    if len(payload) - pos > _FIXED:
        extended, pos = read_lenenc_bytes(payload, pos)
    _, pos = read_lenenc(payload, pos)
    if len(payload) < pos + 12:
        raise ProtocolError("a column definition is cut short")
    collation, length, type_, flags, decimals = _TAIL.unpack_from(payload, pos)
    _, schema, table, org_table, name, org_name = names
    return Column(
        name, type_, collation, length, flags, decimals, schema, table, org_table, org_name, extended
    )


def fitted(payload: bytes, *, extended: bool) -> bytes:
    """A column definition as a client gets it that has agreed on MariaDB's extended metadata, or has not."""
    if not extended:
        return payload
    column = decode_column(payload)
    return payload if column.extended is not None else replace(column, extended=b"").encode()


def text_value(value: object) -> bytes:
    """A Python value as it stands in a text row; str as UTF-8, bool as 0 or 1."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"1" if value else b"0"
    return str(value).encode("utf-8", "surrogateescape")


def encode_row(values: Iterable[object]) -> bytes:
    """A text row's payload; None is NULL."""
    return b"".join(b"\xfb" if value is None else lenenc_bytes(text_value(value)) for value in values)


def decode_row(payload: bytes, columns: int) -> list[bytes | None]:
    """A text row's values. ProtocolError when they do not fill the row."""
    values: list[bytes | None] = []
    pos = 0
    for _ in range(columns):
        value, pos = read_lenenc_bytes(payload, pos)
        values.append(value)
    if pos != len(payload):
        raise ProtocolError("a row has more than its columns")
    return values


def value_offsets(payload: bytes, columns: int) -> list[int]:
    """Where each value of a text row begins, and the row's end: `columns + 1` offsets. ProtocolError when the
    values do not fill the row.
    """
    offsets = [0] * (columns + 1)
    pos, end = 0, len(payload)
    for index in range(columns):
        offsets[index] = pos
        if pos < end and payload[pos] < 251:
            pos += 1 + payload[pos]
        else:
            length, pos = read_lenenc(payload, pos)
            pos += length or 0
    if pos != end:
        raise ProtocolError("a row's values do not fill it")
    offsets[columns] = pos
    return offsets


def header_packets(
    definitions: Sequence[bytes], status: int, seq: int = 1, warnings: int = 0, *, extended: bool
) -> tuple[bytes, int]:
    """Column count, definitions (payloads) and EOF as packets; and the sequence number of the first row.
    `extended`: whether the client has agreed on MariaDB's extended metadata.
    """
    pieces = [frame(lenenc(len(definitions)), seq)]
    for payload in definitions:
        seq += 1
        pieces.append(frame(fitted(payload, extended=extended), seq))
    pieces.append(eof_packet(seq + 1, status, warnings))
    return b"".join(pieces), (seq + 2) & 0xFF


def text_resultset(
    columns: Sequence[Column],
    rows: Iterable[Iterable[object]],
    status: int,
    *,
    warnings: int = 0,
    seq: int = 1,
    extended: bool,
) -> bytes:
    """A whole text result set as packets."""
    head, seq = header_packets(
        [column.encode() for column in columns], status, seq, warnings, extended=extended
    )
    pieces = [head]
    for row in rows:
        payload = encode_row(row)
        pieces.append(frame(payload, seq))
        seq += 1 + len(payload) // 0xFFFFFF
    pieces.append(eof_packet(seq, status, warnings))
    return b"".join(pieces)
