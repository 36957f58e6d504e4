"""The binary protocol's values: EXECUTE packets read, parameters as literals, text rows made binary."""

from __future__ import annotations

import math
import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.binary import (
    Attributes,
    Execute,
    Quoting,
    RowEncoder,
    float_literal,
    literals,
    parse_execute,
)
from proxy.wire.constants import ColumnType as T
from proxy.wire.packets import ProtocolError, lenenc_bytes
from proxy.wire.resultset import encode_row
from rewriter.text.literals import NotPlain, parameter_integer, parameter_text

UTF8 = Quoting("utf8mb4", True, False)
RAW = Quoting("utf8mb4", False, False)
GBK = Quoting("gbk", True, True)


def execute(*parameters: tuple[int, bytes | None], bound: bool = True, flags: int = 0) -> bytes:
    nulls = bytearray((len(parameters) + 7) // 8)
    types = values = b""
    for number, (type_, value) in enumerate(parameters):
        types += struct.pack("<H", type_)
        if value is None:
            nulls[number >> 3] |= 1 << (number & 7)
        else:
            values += value
    head = b"\x17" + struct.pack("<IBI", 7, flags, 1)
    return head + bytes(nulls) + bytes([bound]) + (types if bound else b"") + values


def one(type_: int, value: bytes | None, quoting: Quoting = UTF8) -> bytes:
    """The literal of a single parameter."""
    request = parse_execute(execute((type_, value)), 1, b"", False)
    return literals(request.nulls, request.types, request.values, 1, {}, quoting)[0]


@pytest.mark.parametrize(
    ("type_", "value", "literal"),
    [
        (T.TINY, b"\xff", b"-1"),
        (T.TINY | 0x8000, b"\xff", b"255"),
        (T.SHORT, b"\x00\x80", b"-32768"),
        (T.LONG | 0x8000, b"\xff\xff\xff\xff", b"4294967295"),
        (T.LONGLONG, b"\xff" * 8, b"-1"),
        (T.LONGLONG | 0x8000, b"\xff" * 8, b"18446744073709551615"),
        (T.DOUBLE, struct.pack("<d", 0.1), b"0.1e0"),
        (T.DOUBLE, struct.pack("<d", -1e300), b"-1e+300"),
        (T.FLOAT, struct.pack("<f", 0.1), b"0.10000000149011612e0"),
        (T.NULL, b"", b"NULL"),
        (T.LONG, None, b"NULL"),
        (T.NEWDECIMAL, b"\x041.50", b"1.50"),
        (T.NEWDECIMAL, b"\x03-15", b"-15."),
        (T.NEWDECIMAL, b"\x041; x", b"'1; x'"),
        (T.VAR_STRING, b"\x04it's", b"'it''s'"),
        (T.VAR_STRING, b"\x03a\\\0", b"'a\\\\\\0'"),
        (T.VARCHAR, b"\x00", b"''"),
        (T.STRING, b"\x02\xc3\xbc", b"'\xc3\xbc'"),
        (T.STRING, b"\x02a\xff", b"_binary'a\xff'"),
        (T.BLOB, b"\x02'\xff", b"_binary''''\xff'".replace(b"''''", b"'''", 1)),
        (T.DATE, b"\x04\xe8\x07\x02\x1d", b"DATE'2024-02-29'"),
        (T.DATE, b"\x00", b"'0000-00-00'"),
        (T.DATETIME, b"\x07\xe8\x07\x02\x1d\x01\x02\x03", b"TIMESTAMP'2024-02-29 01:02:03'"),
        (
            T.TIMESTAMP,
            b"\x0b\xe8\x07\x02\x1d\x01\x02\x03\x04\0\0\0",
            b"TIMESTAMP'2024-02-29 01:02:03.000004'",
        ),
        (T.DATETIME, b"\x04\xe8\x07\x00\x00", b"'2024-00-00 00:00:00'"),
        (T.TIME, b"\x08\x01\x22\0\0\0\x16\x3b\x3b", b"TIME'-838:59:59'"),
        (T.TIME, b"\x0c\x00\0\0\0\0\x00\x00\x00\x05\0\0\0", b"TIME'00:00:00.000005'"),
    ],
)
def test_literals(type_: int, value: bytes | None, literal: bytes) -> None:
    assert one(type_, value) == literal


def test_quoting() -> None:
    """Without backslashes nothing is escaped by one; where bytes may look like quotes, nothing but ASCII is
    written.
    """
    assert one(T.STRING, b"\x03a\\'", RAW) == b"'a\\'''"
    assert one(T.BLOB, b"\x03a\\'", RAW) == b"_binary x'615c27'"
    assert one(T.STRING, b"\x02\xbf\x27", GBK) == b"_gbk x'bf27'"
    assert one(T.STRING, b"\x03a\\b", GBK) == b"'a\\\\b'"
    assert one(T.BLOB, b"\x02\xbf\x27", GBK) == b"_binary x'bf27'"


@given(st.binary(), st.booleans())
def test_text_is_read_back(text: bytes, backslashes: bool) -> None:
    """What routing reads in a literal is what the client sent."""
    literal = one(T.VAR_STRING, lenenc_bytes(text), Quoting("utf8mb4", backslashes, False))
    assert parameter_text(literal, backslashes) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_are_exact(number: float) -> None:
    literal = one(T.DOUBLE, struct.pack("<d", number))
    assert b"e" in literal
    assert float(literal) == number
    assert float_literal(number) == literal


@given(st.integers(-(1 << 63), (1 << 64) - 1))
def test_integers_route(number: int) -> None:
    """An ID as an integer, a text, a DECIMAL, and a double if that is exact."""
    unsigned = T.LONGLONG | 0x8000 * (number >= 0)
    assert parameter_integer(one(unsigned, (number % (1 << 64)).to_bytes(8, "little"))) == number
    assert parameter_integer(one(T.NEWDECIMAL, lenenc_bytes(b"%d" % number))) == number
    if number >= 0:
        assert parameter_integer(one(T.STRING, lenenc_bytes(b"%d" % number))) == number
    literal = one(T.DOUBLE, struct.pack("<d", number))
    if abs(float(number)) < 1 << 53:
        assert parameter_integer(literal) == number
    else:
        with pytest.raises(NotPlain):
            parameter_integer(literal)


@pytest.mark.parametrize("literal", [b"NULL", b"?", b"'x'", b"'5 x'", b"_binary'5'", b"1.5", b"0.5e0", b"''"])
def test_what_is_no_integer(literal: bytes) -> None:
    with pytest.raises(NotPlain):
        parameter_integer(literal)


def test_not_finite() -> None:
    for number in (math.inf, -math.inf, math.nan):
        with pytest.raises(ProtocolError):
            one(T.DOUBLE, struct.pack("<d", number))


def test_types_are_always_sent() -> None:
    first = parse_execute(execute((T.LONG, b"abcd"), (T.STRING, b"\x01x")), 2, b"", False)
    second = parse_execute(execute((0, b"efgh"), (0, None), bound=False), 2, first.types, False)
    assert second.types == b""
    packet = second.packet(99, first.types, 2)
    assert parse_execute(packet, 2, b"", False) == Execute(99, 0, b"\x02", first.types, b"efgh")
    assert Execute(1, 1, b"", b"", b"").packet(5, b"", 0) == b"\x17\x05\0\0\0\x01\x01\0\0\0"


def test_attributes() -> None:
    """Query attributes stand behind the parameters, with names. Servers that know none get none."""
    types = b"\x03\x00\x00" + b"\xfe\x00\x04name"
    payload = b"\x17" + struct.pack("<IBI", 7, 8, 1) + b"\x02\x00\x01" + types + b"abcd" + b"\x05value"
    request = parse_execute(payload, 1, b"", True)
    extra = Attributes(1, 0, b"\xfe\x00\x04name", b"\x05value")
    assert request == Execute(7, 8, b"\x00", b"\x03\x00", b"abcd", extra)
    assert request.attributed(7, b"\x03\x00", 1) == payload
    parameter = struct.pack("<IBI", 9, 0, 1) + b"\x00\x01\x03\x00abcd"
    assert request.packet(9, b"\x03\x00", 1) == b"\x17" + parameter
    alone = (
        b"\x17" + struct.pack("<IBI", 7, 8, 1) + b"\x02\x01\x01" + b"\x08\0\x01a" + b"\xfe\0\x01b" + b"\x01c"
    )
    assert parse_execute(alone, 0, b"", True).attributed(7, b"", 0) == alone
    # the number is there without its flag, too, when the statement has parameters
    plain = b"\x17" + struct.pack("<IBI", 7, 0, 1) + b"\x01\x00\x01" + b"\x03\x00\x00" + b"abcd"
    assert parse_execute(plain, 1, b"", True) == Execute(7, 0, b"\x00", b"\x03\x00", b"abcd")
    none = b"\x17" + struct.pack("<IBI", 7, 8, 1) + b"\x00"
    assert parse_execute(none, 0, b"", True) == Execute(7, 8, b"", b"", b"")
    assert Execute(1, 8, b"", b"", b"").attributed(5, b"", 0) == b"\x17\x05\0\0\0\0\x01\0\0\0"


def test_cut_short() -> None:
    """At every byte: read, or refused by the one error; never anything else."""
    whole = execute((T.LONG, b"abcd"), (T.DATETIME, b"\x04\xe8\x07\x02\x1d"), (T.STRING, b"\x03abc"))
    for end in range(len(whole)):
        with pytest.raises(ProtocolError):
            read(whole[:end], 3)


def read(payload: bytes, parameters: int, *, attributes: bool = False) -> tuple[bytes, ...]:
    """An EXECUTE packet's parameters as literals."""
    request = parse_execute(payload, parameters, b"", attributes)
    return literals(request.nulls, request.types, request.values, parameters, {}, UTF8)


@given(st.binary(min_size=1), st.integers(0, 5), st.booleans())
def test_garbage(data: bytes, parameters: int, attributes: bool) -> None:
    with suppress(ProtocolError):
        read(b"\x17" + data, parameters, attributes=attributes)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (T.TINY, b"-128", b"\x80"),
        (T.TINY, b"255", b"\xff"),
        (T.SHORT, b"00042", b"\x2a\0"),
        (T.YEAR, b"2024", b"\xe8\x07"),
        (T.INT24, b"-8388608", b"\0\0\x80\xff"),
        (T.LONGLONG, b"18446744073709551615", b"\xff" * 8),
        (T.DOUBLE, b"0.1", struct.pack("<d", 0.1)),
        (T.FLOAT, b"1e-7", struct.pack("<f", 1e-7)),
        (T.DATE, b"2024-02-29", b"\x04\xe8\x07\x02\x1d"),
        (T.DATE, b"0000-00-00", b"\x00"),
        (T.DATETIME, b"2024-02-29 00:00:00", b"\x04\xe8\x07\x02\x1d"),
        (T.DATETIME, b"2024-02-29 01:02:03.5", b"\x0b\xe8\x07\x02\x1d\x01\x02\x03\x20\xa1\x07\0"),
        (T.TIMESTAMP, b"2024-02-29 01:02:03.000", b"\x07\xe8\x07\x02\x1d\x01\x02\x03"),
        (T.TIME, b"-838:59:59", b"\x08\x01\x22\0\0\0\x16\x3b\x3b"),
        (T.TIME, b"-00:00:00.000001", b"\x0c\x01\0\0\0\0\0\0\0\x01\0\0\0"),
        (T.TIME, b"00:00:00", b"\x00"),
        (T.NEWDECIMAL, b"1.50", b"\x041.50"),
        (T.BIT, b"\x01\xff", b"\x02\x01\xff"),
        (T.VAR_STRING, b"x" * 300, b"\xfc\x2c\x01" + b"x" * 300),
    ],
)
def test_rows(type_: int, text: bytes, value: bytes) -> None:
    """One column, and the same among NULLs."""
    assert RowEncoder([type_]).row(encode_row([text])) == b"\0\0" + value
    row = RowEncoder([T.NULL, type_, T.LONG, *[T.LONG] * 6]).row(encode_row([None, text, *[None] * 7]))
    assert row == b"\0\xf4\x07" + value


@given(st.binary(max_size=40), st.lists(st.sampled_from(list(T)), max_size=5))
def test_rows_of_garbage(data: bytes, types: list[int]) -> None:
    with suppress(ProtocolError):
        RowEncoder(types).row(data)
