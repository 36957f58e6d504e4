"""The binary protocol of prepared statements: parameters in, rows out. Values only.

An EXECUTE packet carries a NULL bitmap, the parameters' types (only when they are new) and their values. A
binary row is 0x00, a NULL bitmap that begins at its third bit, and the values by their columns' types:
numbers little-endian, dates and times as a length and that many fields, everything else as a length-encoded
string.

`parse_execute` reads an EXECUTE packet, `literal` writes a parameter as an SQL literal, `RowEncoder` makes
binary rows of text rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from struct import error as StructError
from typing import Final, NamedTuple

from .constants import ColumnFlag, ColumnType
from .packets import ProtocolError, lenenc, lenenc_bytes, read_lenenc, read_lenenc_bytes
from .wide import ASCII, Form

UNSIGNED: Final = 0x8000
#: The flag of EXECUTE that says: the number of parameters is in the packet, though the statement has none
#: (those are query attributes).
COUNT_AVAILABLE: Final = 0x08
CURSOR_READ_ONLY: Final = 0x01

_HEAD = Struct("<IBI")
_NONE_SENT: Final[Mapping[int, bytes]] = {}
_F32, _F64 = Struct("<f"), Struct("<d")


class Attributes(NamedTuple):
    """Query attributes of a COM_STMT_EXECUTE: `nulls` as a number, `named` the types with the names."""

    number: int = 0
    nulls: int = 0
    named: bytes = b""
    values: bytes = b""


class Execute(NamedTuple):
    """A COM_STMT_EXECUTE. `nulls` is the bitmap, `types` two bytes a parameter (b"" when they were not sent),
    `values` what follows. `extra`: what is no parameter of the statement.
    """

    statement: int
    flags: int
    nulls: bytes
    types: bytes
    values: bytes
    extra: Attributes = Attributes()

    def all_null(self, parameters: int) -> bool:
        """Whether all parameters are NULL."""
        return all(self.nulls[number >> 3] >> (number & 7) & 1 for number in range(parameters))

    def packet(self, statement: int, types: bytes, parameters: int) -> bytes:
        """The payload for a server, with its number of the statement, and always with the types."""
        head = b"\x17" + _HEAD.pack(statement, self.flags & ~COUNT_AVAILABLE, 1)
        return head + self.nulls + b"\x01" + types + self.values if parameters else head

    def attributed(self, statement: int, types: bytes, parameters: int) -> bytes:
        """`packet` for a server that knows query attributes."""
        extra = self.extra
        count = parameters + extra.number
        flags = self.flags | COUNT_AVAILABLE if count else self.flags & ~COUNT_AVAILABLE
        head = b"\x17" + _HEAD.pack(statement, flags, 1)
        if not count:
            return head
        nulls = int.from_bytes(self.nulls, "little") & (1 << parameters) - 1 | extra.nulls << parameters
        named = b"".join(types[2 * place : 2 * place + 2] + b"\0" for place in range(parameters))
        bitmap = nulls.to_bytes((count + 7) // 8, "little") + b"\x01"
        return head + lenenc(count) + bitmap + named + extra.named + self.values + extra.values


def parse_execute(
    payload: bytes, parameters: int, known: bytes, attributes: bool, sent: Mapping[int, bytes] = _NONE_SENT
) -> Execute:
    """Read an EXECUTE packet of a statement with so many `parameters`. `known` are the types that were sent
    before. `attributes`: the connection has CLIENT_QUERY_ATTRIBUTES. `sent`: what SEND_LONG_DATA brought.

    Raises ProtocolError.
    """
    if len(payload) < 10:
        raise ProtocolError("COM_STMT_EXECUTE is cut short")
    statement, flags, _ = _HEAD.unpack_from(payload, 1)
    pos, count = 10, parameters
    if attributes and (parameters or flags & COUNT_AVAILABLE):
        found, pos = read_lenenc(payload, pos)
        count = found or 0
        if count < parameters:
            raise ProtocolError("COM_STMT_EXECUTE has too few parameters")
    if not count:
        return Execute(statement, flags, b"", b"", b"")
    size = (count + 7) // 8
    if pos + size + 1 > len(payload):
        raise ProtocolError("COM_STMT_EXECUTE is cut short")
    nulls = payload[pos : pos + size]
    bound, pos = payload[pos + size], pos + size + 1
    types = b""
    named: list[Named] = []
    if bound:
        if attributes:
            named, pos = read_named(payload, pos, count)
            types = b"".join(bytes(one[:2]) for one in named[:parameters])
            named = named[parameters:]
        else:
            types, pos = payload[pos : pos + 2 * count], pos + 2 * count
        if len(types) < 2 * parameters:
            raise ProtocolError("the parameters' types are cut short")
    if not _TYPE_FLAGS.issuperset(types[1::2]):
        raise ProtocolError("a parameter has an unknown type")
    values = payload[pos:]
    if count > parameters:
        if not bound:
            raise ProtocolError("the types of the query attributes are missing")
        ends = value_ends(nulls, types or known, values, parameters, sent)
        end = ends[-1] if parameters else 0
        others = int.from_bytes(nulls, "little") >> parameters
        extra, _ = attributes_of(others, named, values, end)
        keep = (parameters + 7) // 8
        return Execute(statement, flags, nulls[:keep], types, values[:end], extra)
    return Execute(statement, flags, nulls, types, values)


Named = tuple[int, int, bytes]
"""Type, flags and name of a parameter or of a query attribute."""

_TYPE_FLAGS: Final = frozenset((0, 0x80))
"""The flags of a type, of which only one has a meaning."""


def read_named(payload: bytes, pos: int, count: int) -> tuple[list[Named], int]:
    """What stands before the values of `count` parameters that have names, and where it ends. Raises
    ProtocolError.
    """
    found: list[Named] = []
    for _ in range(count):
        name, end = read_lenenc_bytes(payload, pos + 2)
        if name is None:
            raise ProtocolError("a parameter has NULL for its name")
        found.append((payload[pos], payload[pos + 1], name))
        pos = end
    return found, pos


def attributes_of(nulls: int, named: Sequence[Named], payload: bytes, pos: int) -> tuple[Attributes, int]:
    """The query attributes whose values begin at `pos`, and where these end. Raises ProtocolError.

    They are written anew, in the one form that everybody reads alike: what stands behind them may be a
    statement, and a server must find it where the proxy has found it. So what is not usual is refused: other
    types than clients have for attributes, flags without a meaning, times of other lengths.
    """
    heads, values, null = [], [], 0
    for number, (type_, flags, name) in enumerate(named):
        if flags not in _TYPE_FLAGS or type_ not in _ATTRIBUTE_TYPES:
            raise ProtocolError("a query attribute has an unknown type")
        heads.append(bytes((type_, flags)) + lenenc_bytes(name))
        if nulls >> number & 1 or type_ == ColumnType.NULL:
            null |= 1 << number
            continue
        end = value_end(payload, pos, type_)
        if type_ in _FIXED:
            values.append(payload[pos:end])
        else:
            value, _ = read_lenenc_bytes(payload, pos)
            if value is None or (type_ in _TIMES and len(value) not in _TIME_LENGTHS):
                raise ProtocolError("a query attribute has a value that is none of its type")
            values.append(lenenc_bytes(value))
        pos = end
    return Attributes(len(named), null, b"".join(heads), b"".join(values)), pos


_FIXED: Final[Mapping[int, int]] = {
    ColumnType.TINY: 1,
    ColumnType.SHORT: 2,
    ColumnType.YEAR: 2,
    ColumnType.LONG: 4,
    ColumnType.INT24: 4,
    ColumnType.LONGLONG: 8,
    ColumnType.FLOAT: 4,
    ColumnType.DOUBLE: 8,
}
_TIMES: Final = frozenset(
    {ColumnType.DATE, ColumnType.DATETIME, ColumnType.TIMESTAMP, ColumnType.TIME, ColumnType.NEWDATE}
)
_BLOBS: Final = frozenset(
    {
        ColumnType.TINY_BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB,
        ColumnType.BIT,
        ColumnType.GEOMETRY,
        ColumnType.VECTOR,
    }
)
_DECIMALS: Final = frozenset({ColumnType.DECIMAL, ColumnType.NEWDECIMAL})
_TIME_LENGTHS: Final = frozenset((0, 4, 7, 8, 11, 12))
_ATTRIBUTE_TYPES: Final = (
    (_FIXED.keys() - {ColumnType.YEAR, ColumnType.INT24})
    | _TIMES - {ColumnType.NEWDATE}
    | _DECIMALS
    | {ColumnType.TINY_BLOB, ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB, ColumnType.BLOB}
    | {ColumnType.VARCHAR, ColumnType.VAR_STRING, ColumnType.STRING, ColumnType.NULL}
)
"""Those that servers read as the manual says."""


def value_ends(nulls: bytes, types: bytes, values: bytes, count: int, sent: Mapping[int, bytes]) -> list[int]:
    """Where each parameter's value ends in `values`. `sent`: parameters that came by SEND_LONG_DATA.

    Raises ProtocolError when they do not fit.
    """
    if len(types) < 2 * count:
        raise ProtocolError("the types of the parameters were never sent")
    ends = []
    pos = 0
    for number in range(count):
        type_ = types[2 * number]
        if number not in sent and not nulls[number >> 3] >> (number & 7) & 1 and type_ != ColumnType.NULL:
            pos = value_end(values, pos, type_)
        ends.append(pos)
    return ends


def value_end(values: bytes, pos: int, type_: int) -> int:
    """Where the value ends that begins at `pos`. Raises ProtocolError."""
    fixed = _FIXED.get(type_)
    if fixed is None:
        length, pos = read_lenenc(values, pos)
        fixed = length or 0
    if pos + fixed > len(values):
        raise ProtocolError("a parameter's value is cut short")
    return pos + fixed


# -- parameters as SQL


@dataclass(frozen=True, slots=True)
class Quoting:
    """How strings are written: `charset` is character_set_client; `backslashes` escape in literals; `unsafe`:
    bytes of its characters can look like quotes.
    """

    charset: str
    backslashes: bool
    unsafe: bool


_INTEGERS: Final[Mapping[int, tuple[str, str]]] = {
    ColumnType.TINY: ("b", "B"),
    ColumnType.SHORT: ("h", "H"),
    ColumnType.LONG: ("i", "I"),
    ColumnType.LONGLONG: ("q", "Q"),
}


@lru_cache(maxsize=256)
def integers(types: bytes) -> Struct | None:
    """How to read the values of parameters of these types, which are all integers; None when they are not."""
    forms = []
    for type_, flags in zip(types[::2], types[1::2], strict=True):
        if type_ not in _INTEGERS:
            return None
        forms.append(_INTEGERS[type_][flags >> 7])
    return Struct("<" + "".join(forms))


def integer_places(nulls: bytes, types: bytes) -> tuple[tuple[int, int, bool], ...]:
    """Where the values of the leading parameters begin and end, and whether they are signed, as far as all of
    them are integers that are not NULL.
    """
    found = []
    begin = 0
    for number, (type_, flags) in enumerate(zip(types[::2], types[1::2], strict=True)):
        if type_ not in _INTEGERS or nulls[number >> 3] >> (number & 7) & 1:
            break
        end = begin + _FIXED[type_]
        found.append((begin, end, not flags & 0x80))
        begin = end
    return tuple(found)


def literals(
    nulls: bytes, types: bytes, values: bytes, count: int, sent: Mapping[int, bytes], quoting: Quoting
) -> tuple[bytes, ...]:
    """The parameters as SQL literals. Raises ProtocolError."""
    whole = integers(types)
    if whole is not None and len(values) == whole.size and not (sent or any(nulls)):
        return tuple([b"%d" % value for value in whole.unpack(values)])
    ends = value_ends(nulls, types, values, count, sent)
    found = []
    begin = 0
    for number, end in enumerate(ends):
        type_ = types[2 * number]
        if number in sent:
            found.append(_text(sent[number], type_, quoting))
        elif nulls[number >> 3] >> (number & 7) & 1 or type_ == ColumnType.NULL:
            found.append(b"NULL")
        else:
            unsigned = bool(types[2 * number + 1] & 0x80)
            found.append(_literal(values[begin:end], type_, unsigned, quoting))
        begin = end
    return tuple(found)


def _literal(raw: bytes, type_: int, unsigned: bool, quoting: Quoting) -> bytes:
    if type_ in (ColumnType.FLOAT, ColumnType.DOUBLE):
        number = (_F32 if type_ == ColumnType.FLOAT else _F64).unpack(raw)[0]
        if not math.isfinite(number):
            raise ProtocolError("a number is infinite or none")
        return float_literal(number)
    if type_ in _FIXED:
        return b"%d" % int.from_bytes(raw, "little", signed=not unsigned)
    if type_ in _TIMES:
        return _time_literal(raw[1:], type_)
    text, _ = read_lenenc_bytes(raw, 0)
    return _text(text or b"", type_, quoting)


def float_literal(number: float) -> bytes:
    """A double as an SQL literal of just that value and type."""
    text = repr(number)
    return (text if "e" in text else text + "e0").encode()


_UTF8: Final = frozenset({"utf8mb4", "utf8mb3", "utf8"})
_PLAIN_DECIMAL: Final = re.compile(rb"[-+]?(?:[0-9]{1,65}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})\Z")


def _is_text(text: bytes, charset: str) -> bool:
    """Whether a parameter of a type for texts is one. Some drivers send bytes so, and a server takes them as
    they are, but in a statement's text it would warn of them, or convert them.
    """
    if text.isascii() or charset not in _UTF8:
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(text: bytes, type_: int, quoting: Quoting) -> bytes:
    if type_ in _DECIMALS and _PLAIN_DECIMAL.match(text):
        return text if b"." in text else text + b"."  # with its point it is DECIMAL however short
    introducer = b""
    if type_ in _BLOBS or not _is_text(text, quoting.charset):
        introducer = b"_binary"
    elif quoting.unsafe and not text.isascii():
        introducer = b"_" + quoting.charset.encode()
    if introducer and (quoting.unsafe or not quoting.backslashes):
        return introducer + b" x'" + text.hex().encode() + b"'"
    if quoting.backslashes:
        text = text.replace(b"\\", b"\\\\").replace(b"\0", b"\\0")
    return introducer + b"'" + text.replace(b"'", b"''") + b"'"


_DAYS = Struct("<HBB")
_CLOCK = Struct("<BBB")
_DURATION = Struct("<BIBBB")
_MICROS = Struct("<I")


def _time_literal(raw: bytes, type_: int) -> bytes:
    """DATE'…', TIMESTAMP'…' or TIME'…'; a plain string when such a literal may be refused (zero dates)."""
    try:
        if type_ == ColumnType.TIME:
            return b"TIME'" + _duration(raw) + b"'"
        year, month, day = _DAYS.unpack_from(raw) if raw else (0, 0, 0)
        hour, minute, second = _CLOCK.unpack_from(raw, 4) if len(raw) > 4 else (0, 0, 0)
        micros = _MICROS.unpack_from(raw, 7)[0] if len(raw) > 7 else 0
    except StructError:
        raise ProtocolError("a date is cut short") from None
    text = b"%04d-%02d-%02d" % (year, month, day)
    name = b"DATE"
    if type_ not in (ColumnType.DATE, ColumnType.NEWDATE):
        text += b" %02d:%02d:%02d" % (hour, minute, second)
        name = b"TIMESTAMP"
    if len(raw) > 7:
        text += b".%06d" % micros
    return (name if month and day else b"") + b"'" + text + b"'"


def _duration(raw: bytes) -> bytes:
    if not raw:
        return b"00:00:00"
    negative, days, hour, minute, second = _DURATION.unpack_from(raw)
    text = b"%s%02d:%02d:%02d" % (b"-" if negative else b"", days * 24 + hour, minute, second)
    return text + (b".%06d" % _MICROS.unpack_from(raw, 8)[0] if len(raw) > 8 else b"")


# -- rows


def _integer(size: int) -> Callable[[bytes], bytes]:
    mask = (1 << 8 * size) - 1
    return lambda text: (int(text) & mask).to_bytes(size, "little")


def _date(text: bytes) -> bytes:
    """`2020-01-31`, `2020-01-31 12:00:00.000001`: the shortest of 0, 4, 7 and 11 bytes that hold it."""
    day, _, clock = text.partition(b" ")
    year, month, date = (int(part) for part in day.split(b"-"))
    hour = minute = second = micros = 0
    if clock:
        clock, _, fraction = clock.partition(b".")
        hour, minute, second = (int(part) for part in clock.split(b":"))
        micros = int(fraction.ljust(6, b"0")) if fraction else 0
    packed = _DAYS.pack(year, month, date)
    if micros:
        return b"\x0b" + packed + _CLOCK.pack(hour, minute, second) + _MICROS.pack(micros)
    if hour or minute or second:
        return b"\x07" + packed + _CLOCK.pack(hour, minute, second)
    return b"\x04" + packed if year or month or date else b"\0"


def _time(text: bytes) -> bytes:
    """`-838:59:59.000001`: 0, 8 or 12 bytes."""
    negative = text.startswith(b"-")
    clock, _, fraction = text.lstrip(b"-").partition(b".")
    hours, minute, second = (int(part) for part in clock.split(b":"))
    micros = int(fraction.ljust(6, b"0")) if fraction else 0
    if not (hours or minute or second or micros):
        return b"\0"
    packed = _DURATION.pack(negative, hours // 24, hours % 24, minute, second)
    return b"\x0c" + packed + _MICROS.pack(micros) if micros else b"\x08" + packed


_ENCODERS: Final[Mapping[int, Callable[[bytes], bytes]]] = {
    ColumnType.TINY: _integer(1),
    ColumnType.SHORT: _integer(2),
    ColumnType.YEAR: _integer(2),
    ColumnType.INT24: _integer(4),
    ColumnType.LONG: _integer(4),
    ColumnType.LONGLONG: _integer(8),
    ColumnType.FLOAT: lambda text: _F32.pack(float(text)),
    ColumnType.DOUBLE: lambda text: _F64.pack(float(text)),
    ColumnType.DATE: _date,
    ColumnType.NEWDATE: _date,
    ColumnType.DATETIME: _date,
    ColumnType.TIMESTAMP: _date,
    ColumnType.TIME: _time,
}


_KINDS: Final = {
    _ENCODERS[ColumnType.TINY]: b"1",
    _ENCODERS[ColumnType.SHORT]: b"2",
    _ENCODERS[ColumnType.YEAR]: b"2",
    _ENCODERS[ColumnType.INT24]: b"4",
    _ENCODERS[ColumnType.LONG]: b"4",
    _ENCODERS[ColumnType.LONGLONG]: b"8",
    _ENCODERS[ColumnType.DOUBLE]: b"d",
    _date: b"t",
}


class RowEncoder:
    """Makes binary rows of text rows, for columns of these types. `kinds`: as `row_packets.binary_rows`.
    `form`: that of numbers in the text rows.
    """

    __slots__ = ("_encoders", "_form", "_size", "kinds")

    def __init__(self, types: Sequence[int], form: Form = ASCII) -> None:
        self._form = form
        self._encoders = [_ENCODERS.get(type_) for type_ in types]
        self._size = (len(self._encoders) + 9) // 8
        self.kinds = b"".join(_KINDS.get(one, b"-") if one else b"s" for one in self._encoders)

    def row(self, payload: bytes) -> bytes:
        """The binary row of a text row's payload. Raises ProtocolError."""
        nulls = bytearray(self._size)
        pieces: list[bytes] = [b"\0", b""]
        pos = 0
        try:
            for number, encoder in enumerate(self._encoders, 2):
                begin = pos
                length, pos = read_lenenc(payload, pos)
                if length is None:
                    nulls[number >> 3] |= 1 << (number & 7)
                    continue
                at, pos = pos, pos + length
                made = payload[begin:pos] if encoder is None else encoder(self._form.read(payload[at:pos]))
                pieces.append(made)
        except (ValueError, StructError, OverflowError):
            raise ProtocolError("a value is none of its column's type") from None
        if pos != len(payload):
            raise ProtocolError("a row's values do not fill it")
        pieces[1] = bytes(nulls)
        return b"".join(pieces)


class Heading(NamedTuple):
    """What the rows of a statement's result stand behind, as `packets`: its definitions and an EOF packet.
    `seq`: the number of the packet that follows.
    """

    packets: bytes
    seq: int
    columns: list[bytes]
    encoder: RowEncoder


__all__ = [
    "ColumnFlag",
    "Execute",
    "Heading",
    "Quoting",
    "RowEncoder",
    "float_literal",
    "integers",
    "lenenc_bytes",
    "literals",
    "parse_execute",
    "read_named",
    "value_ends",
]
