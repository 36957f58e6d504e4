"""Query attributes are stepped over, whatever their types, and nothing but they; and put into commands."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.attributes import NOTHING, attributed, named_values, read, values_of
from proxy.wire.binary import parse_execute
from proxy.wire.constants import ColumnType
from proxy.wire.packets import ProtocolError, frame, lenenc, lenenc_bytes, query_packet

VALUES = {
    ColumnType.TINY: b"\x05",
    ColumnType.SHORT: b"ab",
    ColumnType.LONG: b"abcd",
    ColumnType.LONGLONG: b"abcdefgh",
    ColumnType.FLOAT: b"abcd",
    ColumnType.DOUBLE: b"abcdefgh",
    ColumnType.STRING: lenenc_bytes(b"x" * 300),
    ColumnType.BLOB: lenenc_bytes(b""),
    ColumnType.DATETIME: b"\x07abcdefg",
    ColumnType.TIME: b"\0",
    ColumnType.NULL: b"",
}

USUAL = {0, 15, 249, 250, 251, 252, 253, 254, 246, 10, 7, *map(int, VALUES)}
"""The types of attributes that clients have."""


def prefix(attributes: list[tuple[int, bytes, bytes | None]]) -> bytes:
    """As libmysqlclient writes them: type, name, value; None for NULL."""
    count = len(attributes)
    if not count:
        return NOTHING
    bits = sum(1 << number for number, one in enumerate(attributes) if one[2] is None)
    head = lenenc(count) + b"\1" + bits.to_bytes((count + 7) // 8, "little") + b"\1"
    names = b"".join(pack("<H", type_) + lenenc_bytes(name) for type_, name, _ in attributes)
    return head + names + b"".join(value or b"" for _, _, value in attributes)


@given(
    st.lists(st.tuples(st.sampled_from(list(VALUES)), st.binary(max_size=9), st.booleans()), max_size=20),
    st.binary(),
)
def test_the_text_behind_them(attributes: list[tuple[ColumnType, bytes, bool]], sql: bytes) -> None:
    before = prefix([(type_, name, None if null else VALUES[type_]) for type_, name, null in attributes])
    packet = b"\x03" + before + sql
    found, begin = read(packet, 1)
    assert packet[begin:] == sql
    assert read(found + sql, 0) == (found, len(found))


@pytest.mark.parametrize(
    "packet",
    [b"", b"\0", b"\0\2", b"\xfb\1", b"\1\1\0", b"\1\1\0\0", b"\1\1\0\1\x08\0", b"\1\1\0\1\x08\0\1aabcdefg",
     b"\1\1\0\1\xfd\0\1a\5abcd", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1"],
)  # fmt: skip
def test_damaged(packet: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(packet, 0)


def test_put_into_commands() -> None:
    """Into each COM_QUERY, those given into the last command alone; no other command has any."""
    one = b"\1\1\0\1\xfd\0\1a\1b"
    execute = frame(b"\x17....")
    assert attributed(query_packet(b"SET x"), one) == frame(b"\x03" + one + b"SET x")
    both = attributed(query_packet(b"SET x") + query_packet(b"SELECT 1"), one)
    assert both == frame(b"\x03\0\1SET x") + frame(b"\x03" + one + b"SELECT 1")
    assert attributed(query_packet(b"SET x") + execute, one) == frame(b"\x03\0\1SET x") + execute


@pytest.mark.parametrize("size", [0xFFFFFC, 0xFFFFFD, 0xFFFFFE, 0xFFFFFF, 0x1FFFFFC])
def test_put_into_large_commands(size: int) -> None:
    sql = b"x" * size
    assert attributed(query_packet(sql) + frame(b"\x0e"), NOTHING) == frame(b"\x03\0\1" + sql) + frame(
        b"\x0e"
    )


def test_texts_by_name() -> None:
    attributes: list[tuple[int, bytes, bytes | None]] = [
        (ColumnType.LONG, b"n", b"abcd"),
        (ColumnType.VAR_STRING, b"traceparent", lenenc_bytes(b"00-ab")),
        (ColumnType.STRING, b"none", None),
        (ColumnType.BLOB, b"long", lenenc_bytes(b"x" * 300)),
        (ColumnType.DATETIME, b"at", b"\x07abcdefg"),
        (ColumnType.STRING, b"", lenenc_bytes(b"")),
    ]
    written = prefix(attributes)
    found = {name: written[start:stop] for name, (start, stop) in named_values(written).items()}
    assert found == {b"traceparent": b"00-ab", b"long": b"x" * 300, b"": b""}
    assert named_values(NOTHING) == {}
    for end in range(len(NOTHING), len(written)):
        try:
            named_values(written[:end])
        except ProtocolError:
            continue
        raise AssertionError(end)


def test_texts_of_an_execute() -> None:
    head = b"\x17" + (5).to_bytes(4, "little") + b"\x08" + b"\1\0\0\0"
    types = pack("<H", ColumnType.LONG) + b"\0" + pack("<H", ColumnType.STRING) + lenenc_bytes(b"traceparent")
    packet = head + b"\2\0\1" + types + b"abcd" + lenenc_bytes(b"00-ab")
    extra = parse_execute(packet, 1, b"", True).extra
    ((name, (start, stop)),) = values_of(extra).items()
    assert (name, extra.values[start:stop]) == (b"traceparent", b"00-ab")
    assert packet.endswith(extra.values)
    with pytest.raises(ProtocolError):  # without the name
        parse_execute(head + b"\2\0\0" + b"abcd", 1, pack("<HH", ColumnType.LONG, ColumnType.NULL), True)


@pytest.mark.parametrize("flags", [*range(1, 0x80), *range(0x81, 0x100)])
def test_a_type_with_unknown_flags_is_refused(flags: int) -> None:
    """A server that takes the flags for a part of the type reads another length, and so another statement."""
    for type_ in (*VALUES, ColumnType.YEAR, ColumnType.INT24, 244):
        value = next((one for key, one in VALUES.items() if key == type_), b"\x05")
        with pytest.raises(ProtocolError):
            read(b"\1\1\0\1" + bytes((type_, flags)) + b"\1a" + value + b"SELECT 1", 0)
        head = b"\x17" + (5).to_bytes(4, "little") + b"\x08" + b"\1\0\0\0"
        with pytest.raises(ProtocolError):
            parse_execute(head + b"\1\0\1" + bytes((type_, flags)) + b"\1a" + value, 0, b"", True)
        with pytest.raises(ProtocolError):
            parse_execute(head + b"\0\1" + bytes((type_, flags)) + value, 1, b"", False)


@pytest.mark.parametrize("type_", sorted(set(range(256)) - set(map(int, VALUES)) - USUAL))
def test_other_types_are_refused(type_: int) -> None:
    with pytest.raises(ProtocolError):
        read(b"\1\1\0\1" + bytes((type_, 0)) + b"\1a" + b"\1x" + b"SELECT 1", 0)


@pytest.mark.parametrize(
    "written",
    [
        b"\xfc\1\0\1\0\1\xfd\0\1a\1b",  # the number of attributes in three bytes
        b"\1\xfc\1\0\0\1\xfd\0\1a\1b",
        b"\1\1\0\1\xfd\0\xfc\1\0a\1b",
        b"\1\1\0\1\xfd\0\1a\xfe\1\0\0\0\0\0\0\0b",
        b"\1\1\xfe\1\xfd\0\1a\1b",  # bits of attributes that there are not
    ],
)
def test_a_server_gets_them_in_one_form(written: bytes) -> None:
    sql = b"SELECT 1"
    assert read(written + sql, 0) == (b"\1\1\0\1\xfd\0\1a\1b", len(written))


def test_one_of_type_null_is_null_for_a_server() -> None:
    assert read(b"\1\1\0\1\x06\0\1aSELECT 1", 0) == (b"\1\1\1\1\x06\0\1a", 8)


@pytest.mark.parametrize("value", [b"\xfb", b"\1x", b"\x0dabcdefghijklm", b"\xfc\7\0abcdefg" * 50])
def test_a_time_has_one_of_its_lengths(value: bytes) -> None:
    head = b"\1\1\0\1" + bytes((ColumnType.DATETIME, 0)) + b"\1a"
    if value[:1] == b"\xfc":
        assert read(head + value, 0)[0] == head + b"\7abcdefg"
        return
    with pytest.raises(ProtocolError):
        read(head + value, 0)
