"""Text rows that the compiled module makes binary are as `RowEncoder` makes them; others are left whole."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.wire import row_packets
from proxy.wire.binary import RowEncoder
from proxy.wire.constants import MAX_PAYLOAD
from proxy.wire.constants import ColumnType as T
from proxy.wire.packets import ProtocolError, frame
from proxy.wire.resultset import encode_row
from proxy.wire.rows import split_rows

pytestmark = pytest.mark.skipif(not row_packets.COMPILED, reason="no compiler: the twin in C is NOT tested")

_INTEGERS = {T.TINY: 1, T.SHORT: 2, T.YEAR: 2, T.INT24: 4, T.LONG: 4, T.LONGLONG: 8}
_DATES = (T.DATE, T.NEWDATE, T.DATETIME, T.TIMESTAMP)
_TYPES = (*_INTEGERS, *_DATES, T.DOUBLE, T.FLOAT, T.TIME, T.VAR_STRING, T.BLOB, T.NEWDECIMAL, T.JSON)


def clock(parts: tuple[int, int, int, int, int, int, int], decimals: int) -> bytes:
    text = b"%04d-%02d-%02d %02d:%02d:%02d" % parts[:6]
    return text + (b"." + b"%06d" % parts[6])[: decimals + 1] if decimals else text


def texts(type_: int) -> st.SearchStrategy[bytes]:
    """Mostly values of the type, and some that are none."""
    odd = st.sampled_from(
        [b"", b"-", b"+1", b" 1", b"1_0", b"1.5", b"9" * 25, b"nan", b"-inf", b"1e999", b"2024-1-01"]
    )
    plain: st.SearchStrategy[bytes]
    if type_ in _INTEGERS:
        plain = st.integers(-(1 << 63), (1 << 64) - 1).map(b"%d".__mod__)
        return st.one_of(plain, plain, st.sampled_from([b"00042", b"-0"]), odd)
    if type_ in _DATES:
        parts = st.tuples(*(st.integers(0, most) for most in (9999, 12, 31, 23, 59, 59, 999999)))
        plain = st.builds(clock, parts, st.integers(0, 6))
        return st.one_of(plain, plain.map(lambda text: text[:10]), st.just(b"0000-00-00 00:00:00.000"), odd)
    if type_ in (T.DOUBLE, T.FLOAT):
        return st.one_of(
            st.floats(allow_nan=False, allow_infinity=False).map(lambda one: repr(one).encode()), odd
        )
    if type_ == T.TIME:
        return st.sampled_from([b"00:00:00", b"-838:59:59.5"])
    return st.one_of(st.binary(max_size=40), st.integers(250, 70_000).map(lambda size: b"x" * size))


@st.composite
def results(draw: st.DrawFn) -> tuple[list[int], list[list[bytes | None]]]:
    types: list[int] = draw(st.lists(st.sampled_from(_TYPES), min_size=1, max_size=12))
    row = st.tuples(*(st.none() | texts(one) for one in types)).map(list)
    return types, draw(st.lists(row, max_size=6))


def by_both(types: Sequence[int], block: bytes, seq: int) -> tuple[list[bytes], list[bytes], int]:
    """Binary rows by RowEncoder alone, and with the compiled function first; how many that one has made."""
    encoder = RowEncoder(types)
    made, pos, count = row_packets.binary_rows(block, 0, encoder.kinds, seq, MAX_PAYLOAD)
    alone = [encoder.row(one) for one in split_rows(block)]
    assert [made[at] for at in numbers(made)] == [(seq + n) & 0xFF for n in range(count)]
    return alone, [*split_rows(made), *(encoder.row(one) for one in split_rows(block[pos:]))], count


def numbers(block: bytes) -> list[int]:
    """Where the packets' numbers stand."""
    found, pos = [], 0
    while pos < len(block):
        found.append(pos + 3)
        pos += 4 + int.from_bytes(block[pos : pos + 3], "little")
    return found


@given(results(), st.integers(0, 255))
@example(([T.LONGLONG], [[b"18446744073709551615"]]), 254)
@example(([T.LONGLONG] * 7, [[None] * 7, [b"1"] * 7]), 255)
def test_as_the_encoder(result: tuple[list[int], list[list[bytes | None]]], seq: int) -> None:
    types, rows = result
    encoder = RowEncoder(types)
    whole = b"".join(frame(encode_row(row), number & 0xFF) for number, row in enumerate(rows))
    made, _, count = row_packets.binary_rows(whole, 0, encoder.kinds, seq, MAX_PAYLOAD)
    assert split_rows(made) == [encoder.row(encode_row(row)) for row in rows[:count]]
    good = b"".join(frame(encode_row(row), 0) for row in rows if is_one(encoder, row))
    alone, both, _ = by_both(types, good, seq)
    assert alone == both


def is_one(encoder: RowEncoder, row: list[bytes | None]) -> bool:
    try:
        encoder.row(encode_row(row))
    except ProtocolError:
        return False
    return True


def test_plain_rows_are_made_at_once() -> None:
    """Otherwise the test above would be one of the encoder with itself."""
    types = [T.LONGLONG, T.TINY, T.DOUBLE, T.DATETIME, T.DATE, T.VAR_STRING, T.NEWDECIMAL, T.JSON, T.LONG]
    row: list[bytes | None] = [
        b"-5",
        b"255",
        b"0.1",
        b"2024-02-29 01:02:03.5",
        b"2024-02-29",
        b"x" * 300,
        b"1.50",
        b"{}",
    ]
    block = frame(encode_row([*row, None]), 3) * 1000
    alone, both, count = by_both(types, block, 7)
    assert (alone == both, count) == (True, 1000)
    assert alone[0].startswith(b"\0" + b"\0\x04" + struct.pack("<qB", -5, 255) + struct.pack("<d", 0.1))


def test_it_stops_before_what_is_not_plain() -> None:
    encoder = RowEncoder([T.LONGLONG])
    plain = frame(encode_row([b"5"]), 1)
    for other in (
        frame(encode_row([b"5"]) + b"x", 2),  # more than the columns
        frame(b"", 2),
        frame(b"\xfe\0\0\x02\0", 2),
        frame(encode_row([b"five"]), 2),
        frame(encode_row([b"55"])[:2], 2),
        plain[:-1],
    ):
        made, pos, count = row_packets.binary_rows(plain + other + plain, 0, encoder.kinds, 0, MAX_PAYLOAD)
        assert (pos, count) == (len(plain), 1)
        assert split_rows(made) == [encoder.row(encode_row([b"5"]))]
    row = frame(encode_row([b"x" * 20]), 0)
    assert row_packets.binary_rows(row, 0, b"s", 0, 22)[1:] == (0, 0)  # it would be as long as a first part
    assert row_packets.binary_rows(row, 0, b"s", 0, 30)[2] == 1


@given(st.binary(max_size=80), st.binary(max_size=6), st.integers(0, 90))
def test_any_bytes(data: bytes, kinds: bytes, pos: int) -> None:
    made, end, count = row_packets.binary_rows(data, pos, kinds, 0, MAX_PAYLOAD)
    assert pos <= end <= max(pos, len(data))
    assert len(numbers(made)) == count


def test_arguments() -> None:
    with pytest.raises(ValueError, match="negative"):
        row_packets.binary_rows(b"", -1, b"", 0, 1)
    wrong: tuple[Any, ...]
    for wrong in ((b"", 0, "s", 0, 1), ("", 0, b"s", 0, 1), (b"", None, b"s", 0, 1), (b"", 0, b"s", 0)):
        with suppress(TypeError):
            row_packets.binary_rows(*wrong)
            pytest.fail(f"{wrong} was taken")
