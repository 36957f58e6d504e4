"""Where mysql-replication reads a binary log otherwise than servers write it, `mend` puts what follows in
the place of its own: some values came out wrong without a word, and columns of kinds that it does not know
stopped the whole log, whatever table they were of.
"""

from __future__ import annotations

import codecs
import datetime as dt
import functools
import zlib
from base64 import b64encode
from typing import Any, Final

_STRING, _BLOB, _VARCHAR, _JSON, _GEOMETRY = 254, 252, 15, 245, 255
_VECTOR: Final = 242
_COMPRESSED: Final = {140: _BLOB, 141: _VARCHAR}
"""Columns that are COMPRESSED, by what they are otherwise."""
_DATES: Final = frozenset({7, 10, 12, 17, 18})
_TIMES: Final = frozenset({11, 19})
_DECIMALS: Final = frozenset({0, 246})
_UNSTORED: Final = 7
"""The type of geometries: said of a column, and used for nothing."""

#: Character sets that Python calls otherwise, or reads in another order of bytes.
_CODECS: Final = {
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "eucjpms": "euc_jp",
    "hp8": "hp_roman8",
    "macce": "mac_latin2",
}
#: The servers' latin1 is cp1252, and has control characters where that has nothing.
_LATIN1: Final = "".join(bytes([one]).decode("cp1252", "ignore") or chr(one) for one in range(256))


class Null:
    """The JSON value `null`, which is not NULL."""


@functools.cache
def mend() -> None:
    """Once, before the first log is read."""
    from pymysqlreplication import json_binary, packet
    from pymysqlreplication.column import Column
    from pymysqlreplication.event import QueryEvent
    from pymysqlreplication.row_event import MetadataFieldType, RowsEvent

    defined = Column._Column__parse_column_definition
    by_index, opaque = MetadataFieldType.by_index, json_binary.parse_opaque
    json_of = packet.BinLogPacketWrapper.read_binary_json

    def define(column: Any, type_: int, source: Any) -> None:
        column.compressed = type_ in _COMPRESSED
        # a vector is bytes with their length before them, and has no character set, as geometries
        defined(column, _GEOMETRY if type_ == _VECTOR else _COMPRESSED.get(type_, type_), source)

    def metadata(index: int) -> Any:
        try:
            return by_index(index)
        except ValueError:  # of a newer server
            return by_index(_UNSTORED)

    def value_of_json(source: Any, size: int, is_partial: bool) -> Any:
        found = json_of(source, size, is_partial)
        return Null() if found is None and not is_partial else found

    QueryEvent._read_status_vars_value_for_key = _leave_out
    Column._Column__parse_column_definition = define
    MetadataFieldType.by_index = staticmethod(metadata)
    RowsEvent._RowsEvent__read_string = _string
    RowsEvent._RowsEvent__read_time2 = _time
    packet.BinLogPacketWrapper.read_binary_json = value_of_json
    json_binary.parse_opaque = functools.partial(_opaque, opaque)


def _leave_out(event: Any, key: int) -> None:
    """All that is said of a statement's session before its text: servers say more than the library knows, and
    then it would not read the statement at all. Called with the first key.
    """
    event.packet.advance(event.status_vars_length - 1)


def _string(event: Any, size: int, column: Any) -> str | bytes:
    """Text; bytes where the column has bytes, or what is no text of its character set."""
    raw: bytes = event.packet.read_length_coded_pascal_string(size)
    if column.compressed:
        raw = _expanded(raw)
    charset = column.character_set_name
    if charset == "binary":  # servers cut off the zeros at the end of BINARY(n)
        return raw.ljust(column.max_length, b"\0") if column.type == _STRING else raw
    if charset == "cp1252":
        return codecs.charmap_decode(raw, "strict", _LATIN1)[0]
    try:
        return raw.decode(_CODECS.get(charset) or event.charset_to_encoding(charset or "utf8mb4"))
    except (UnicodeDecodeError, LookupError):
        return raw


def _expanded(raw: bytes) -> bytes:
    """What a COMPRESSED column has: a byte that says how, and how many say the length, before it."""
    if not raw or raw[0] == 0:
        return raw[1:]
    bits = -zlib.MAX_WBITS if raw[0] & 8 else zlib.MAX_WBITS
    return zlib.decompress(raw[1 + (raw[0] & 7) :], bits)


def _time(event: Any, column: Any) -> dt.timedelta:
    """TIME is one number with its fraction, from an offset: below it is negative."""
    width = (column.fsp + 1) // 2
    number = int.from_bytes(event.packet.read(3 + width), "big") - (0x800000 << 8 * width)
    whole, fraction = divmod(abs(number), 1 << 8 * width)
    found = dt.timedelta(
        hours=whole >> 12 & 0x3FF,
        minutes=whole >> 6 & 0x3F,
        seconds=whole & 0x3F,
        microseconds=fraction * 10 ** (6 - 2 * width),
    )
    return found if number >= 0 else -found


def _opaque(decimal_of: Any, data: bytes) -> Any:
    """A value within JSON that JSON has not, as the servers write it."""
    from pymysqlreplication.json_binary import decode_variable_length

    kind = data[0]
    if kind in _DECIMALS:
        return decimal_of(data)
    length, read = decode_variable_length(data[1:])
    value = data[1 + read : 1 + read + length]
    if kind not in _DATES | _TIMES:
        return f"base64:type{kind}:{b64encode(value).decode()}"
    number = int.from_bytes(value, "little", signed=True)
    sign = "-" if number < 0 else ""
    whole, fraction = divmod(abs(number), 1 << 24)
    clock = f"{sign}{whole >> 12 & (0x3FF if kind in _TIMES else 0x1F):02d}"
    clock += f":{whole >> 6 & 0x3F:02d}:{whole & 0x3F:02d}.{fraction:06d}"
    if kind in _TIMES:
        return clock
    year, month = divmod(whole >> 22, 13)
    date = f"{year:04d}-{month:02d}-{whole >> 17 & 0x1F:02d}"
    return date if kind == 10 else f"{date} {clock}"
