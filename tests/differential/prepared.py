"""A statement through the binary protocol: its literals as parameters, its rows' values as their very bits.

Numbers are given as text, FLOAT and DOUBLE as hexadecimal digits (so that -0 and the last bit count; but for
sums), times as the bytes on the wire. PyMySQL knows no prepared statements; only its packets are used.
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pymysql
from pymysql.protocol import FieldDescriptorPacket

from tests.differential.answers import Answer, ColumnInfo, Failure, Lost, RawRow, ask
from tests.support.servers import Connection

PREPARE, EXECUTE, CLOSE = 0x16, 0x17, 0x19
TINY, SHORT, LONG, FLOAT, DOUBLE, NULL, TIMESTAMP, LONGLONG, INT24, DATE, TIME, DATETIME, YEAR = range(1, 14)
NEWDECIMAL, BLOB, VAR_STRING, STRING = 246, 252, 253, 254
_INTEGERS: Final = {TINY: 1, SHORT: 2, YEAR: 2, INT24: 4, LONG: 4, LONGLONG: 8}
_TIMES: Final = (TIMESTAMP, DATE, TIME, DATETIME)
_UNSIGNED: Final = 32
_SHOWN: Final = 1 | 2 | 512
"""The status flags that are compared: in a transaction, autocommit, no backslash escapes."""
NOT_PREPARED: Final = 1295
_SUMS: Final = re.compile(r"\b(?:SUM|AVG|STD\w*|VAR\w*)\s*\(", re.IGNORECASE)
"""What is computed in the order of rows: there the last bits of a DOUBLE are not certain."""


@dataclass(frozen=True)
class Parameter:
    """A parameter: its type (0x8000: unsigned) and its bytes on the wire; None is NULL."""

    type: int
    data: bytes | None


@dataclass(frozen=True)
class Prepared:
    """What an EXECUTE gave, and what PREPARE had said of the columns (`promised`) before."""

    answer: Answer
    promised: tuple[ColumnInfo, ...] = ()
    parameters: int = 0
    status: int = 0


def run(connection: Connection, sql: str, parameters: Sequence[Parameter] = ()) -> Prepared:
    """Prepare, execute and close; what cannot be prepared is run as text. Raises Lost."""
    try:
        return _run(connection, sql, parameters)
    except pymysql.MySQLError as error:
        if not connection.open or not error.args or not isinstance(error.args[0], int):
            raise Lost(f"{error}: {sql[:2000]}") from error
        failure = Failure(error.args[0] & 0xFFFF, str(error.args[-1]))
    if failure.code == NOT_PREPARED and not parameters:
        return Prepared(ask(connection, sql))
    return Prepared(Answer(error=failure))


def _run(connection: Any, sql: str, parameters: Sequence[Parameter]) -> Prepared:
    connection._execute_command(PREPARE, sql)
    first = connection._read_packet().get_all_data()
    number, columns, count = struct.unpack_from("<IHH", first, 1)
    _definitions(connection, count)
    promised = _definitions(connection, columns)
    try:
        connection._execute_command(EXECUTE, _packet(number, parameters))
        packet = connection._read_packet()
        if packet.is_ok_packet():
            answer, status = _ok(packet.get_all_data())
        else:
            answer, status = _result(connection, packet.get_all_data(), loose=_SUMS.search(sql) is not None)
    finally:
        if connection.open:
            connection._execute_command(CLOSE, struct.pack("<I", number))
    return Prepared(answer, tuple(map(_info, promised)), count, status & _SHOWN)


def _packet(number: int, parameters: Sequence[Parameter]) -> bytes:
    body = struct.pack("<IBI", number, 0, 1)
    if parameters:
        nulls = bytearray((len(parameters) + 7) // 8)
        for place, one in enumerate(parameters):
            if one.data is None:
                nulls[place >> 3] |= 1 << (place & 7)
        body += bytes(nulls) + b"\1" + b"".join(struct.pack("<H", one.type) for one in parameters)
        body += b"".join(one.data for one in parameters if one.data is not None)
    return body


def _definitions(connection: Any, count: int) -> list[Any]:
    found = [connection._read_packet(FieldDescriptorPacket) for _ in range(count)]
    if count:
        connection._read_packet()
    return found


def _info(one: Any) -> ColumnInfo:
    return ColumnInfo(one.name.encode(), one.type_code, one.flags, one.charsetnr, one.scale)


def _ok(data: bytes) -> tuple[Answer, int]:
    affected, at = _lenenc(data, 1)
    insert_id, at = _lenenc(data, at)
    status, warnings = struct.unpack_from("<HH", data, at)
    info = data[at + 4 :]
    text = info[_lenenc(info, 0)[1] :] if info else b""
    return Answer(affected=affected, insert_id=insert_id, warnings=warnings, info=text), status


def _result(connection: Any, first: bytes, *, loose: bool) -> tuple[Answer, int]:
    columns = tuple(map(_info, _definitions(connection, _lenenc(first, 0)[0])))
    rows = []
    while True:
        data = connection._read_packet().get_all_data()
        if data[0] == 0xFE and len(data) < 9:
            break
        rows.append(_row(data, columns, loose=loose))
    warnings, status = struct.unpack_from("<HH", data, 1)
    return Answer(columns=columns, rows=tuple(rows), warnings=warnings), status


def _row(data: bytes, columns: Sequence[ColumnInfo], *, loose: bool) -> RawRow:
    at = 1 + (len(columns) + 9) // 8
    values: list[bytes | None] = []
    for number, column in enumerate(columns, 2):
        if data[1 + (number >> 3)] >> (number & 7) & 1:
            values.append(None)
            continue
        size = _INTEGERS.get(column.type)
        if size is not None:
            signed = not column.flags & _UNSIGNED
            values.append(b"%d" % int.from_bytes(data[at : at + size], "little", signed=signed))
        elif column.type in (FLOAT, DOUBLE):
            size = 4 if column.type == FLOAT else 8
            raw = data[at : at + size]
            if column.type == DOUBLE and loose:
                values.append(repr(struct.unpack("<d", raw)[0]).encode())
            else:
                values.append(b"bits " + raw[::-1].hex().encode())
        else:
            length, begin = _lenenc(data, at)
            size = begin - at + length
            raw = data[begin : begin + length]
            values.append(b"time " + raw.hex().encode() if column.type in _TIMES else raw)
        at += size
    assert at == len(data), (data, columns)
    return tuple(values)


def _lenenc(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    if first < 0xFB:
        return first, at + 1
    size = {0xFC: 2, 0xFD: 3, 0xFE: 8}[first]
    return int.from_bytes(data[at + 1 : at + 1 + size], "little"), at + 1 + size


# --- literals to parameters


_TOKEN: Final = re.compile(
    r"(?P<name>[A-Za-z_@$\u0080-\U0010ffff][\w@$]*|`[^`]*`)"
    r"|(?P<exponent>\d+(?:\.\d*)?[eE][-+]?\d+)"
    r"|(?P<number>\d+\.\d+(?![\w.])|\d+(?![\w.]))|(?P<text>'(?:[^'\\]|\\.|'')*')"
    r'|(?P<other>"(?:[^"\\]|""|\\.)*"|\d[\w.]*|/\*.*?\*/|--[^\n]*)|(?P<space>\s+)|(?P<sign>.)',
    re.DOTALL,
)
_NOT_BEHIND: Final = frozenset(
    {
        "DATE",
        "TIME",
        "TIMESTAMP",
        "N",
        "X",
        "B",
        "SEPARATOR",
        "AS",
        "COLLATE",
        "USING",
        "BY",
        "ESCAPE",
        "NAMES",
    }
    | {"PATH", "COLUMNS", "ROWS", "PRECEDING", "FOLLOWING", "NTILE", "LIMIT", "OFFSET", "SET", "MODE"}
)
"""Words behind which a literal is no expression, or one that decides what a statement is."""
_SIZED: Final = frozenset(
    {"CHAR", "VARCHAR", "BINARY", "DECIMAL", "DATETIME", "TIME", "TIMESTAMP", "FLOAT", "DOUBLE", "NOW"}
    | {
        "JSON_VALUE",
        "JSON_TABLE",
        "CURRENT_TIMESTAMP",
        "LAG",
        "LEAD",
        "NTH_VALUE",
        "NTILE",
        "ROUND",
        "TRUNCATE",
    }
    | {"MAX", "MIN", "SUM", "AVG", "COUNT", "BIT_AND", "BIT_OR", "BIT_XOR", "DISTINCT", "GROUP_CONCAT"}
    | {"FORMAT", "CONV", "STR_TO_DATE", "WEIGHT_STRING", "REPEAT", "SPACE", "LPAD", "RPAD", "LEFT", "RIGHT"}
    | {"SUBSTRING", "SUBSTR", "INSERT", "ELT", "MAKE_SET", "SEC_TO_TIME", "FROM_UNIXTIME", "CAST"}
)
"""Functions and types whose type, or length, follows from the value of a literal in the parentheses; and
aggregates, as MySQL 9.7 gives `MAX(?)` of some groups as NULL, and `HAVING MAX(?) = ?` as never true.
"""


_READING: Final = re.compile(
    r"\W*(?:/\*.*?\*/\s*)?\(*\s*(?:SELECT|WITH|VALUES|TABLE)\b", re.IGNORECASE | re.DOTALL
)


def with_parameters(
    sql: str, rng: random.Random, share: float, *, backslashes: bool = True
) -> tuple[str, tuple[Parameter, ...]]:
    """The statement with some of its literals as parameters."""
    pieces: list[str] = []
    found: list[Parameter] = []
    words: list[str] = [""]  # the word before each open parenthesis
    before, listed = "", False
    nulls = _READING.match(sql) is not None  # else both sides make up values of their own
    for token in _TOKEN.finditer(sql):
        text, kind = token[0], token.lastgroup
        if kind == "space":
            pieces.append(text)
            continue
        parameter = None
        sized = any(word in _SIZED for word in words[-1:])
        if kind in ("number", "text") and before not in _NOT_BEHIND and not sized and not listed:
            introduced = before.startswith("_") or before in (".", "->", "->>", ":=")
            if not introduced and rng.random() < share:
                parameter = _parameter(text, kind, rng, backslashes=backslashes, nulls=nulls)
        if parameter is not None:
            pieces.append("?")
            found.append(parameter)
        else:
            pieces.append(text)
        if text == "(":
            words.append(before)
        elif text == ")" and len(words) > 1:
            words.pop()
        if kind == "name" and text.upper() in ("ORDER", "GROUP", "PARTITION"):
            listed = True  # a number is a column there
        elif text == ")" or (kind == "name" and text.upper() in ("LIMIT", "HAVING", "UNION")):
            listed = False
        before = (before + text if text == ">" and before in ("-", "->") else text.upper()) if kind else text
    return "".join(pieces), tuple(found)


def _parameter(
    text: str, kind: str, rng: random.Random, *, backslashes: bool, nulls: bool
) -> Parameter | None:
    if nulls and rng.random() < 0.03:
        return Parameter(rng.choice((NULL, LONGLONG, VAR_STRING)), None)
    if kind == "text":
        inner = text[1:-1].replace("''", "'")
        if "\\" in inner and backslashes:
            return None
        return Parameter(rng.choice((VAR_STRING, VAR_STRING, STRING)), _text(inner.encode()))
    if "." in text:
        if rng.random() < 0.5:
            return Parameter(DOUBLE, struct.pack("<d", float(text)))
        return Parameter(NEWDECIMAL, _text(text.encode()))
    number = int(text)
    if number >= 1 << 64:
        return None
    if number >= 1 << 63:
        return Parameter(LONGLONG | 0x8000, struct.pack("<Q", number))
    size, code = rng.choice(((LONGLONG, "q"), (LONGLONG, "q"), (LONG, "i"), (SHORT, "h"), (TINY, "b")))
    bits = 8 * struct.calcsize(code)
    if number >> (bits - 1):
        size, code = LONGLONG, "q"
    return Parameter(size, struct.pack("<" + code, number))


def _text(data: bytes) -> bytes:
    return bytes([len(data)]) + data if len(data) < 251 else b"\xfc" + struct.pack("<H", len(data)) + data
