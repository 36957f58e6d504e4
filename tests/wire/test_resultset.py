"""Result sets built and read again; text rows; what a damaged row does."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.constants import ColumnFlag, ColumnType
from proxy.wire.packets import ProtocolError
from proxy.wire.replies import ReplyScanner
from proxy.wire.resultset import (
    Column,
    decode_column,
    decode_row,
    encode_row,
    fitted,
    header_packets,
    integer_column,
    text_column,
    text_resultset,
    text_value,
    value_offsets,
)
from proxy.wire.rows import ResultReader, split_rows
from tests.wire.streams import cut_packets

rows_of_values = st.lists(st.one_of(st.none(), st.binary(max_size=300)), max_size=8)


@given(rows_of_values)
def test_row_round_trip(values: list[bytes | None]) -> None:
    payload = encode_row(values)
    assert decode_row(payload, len(values)) == values
    offsets = value_offsets(payload, len(values))
    assert len(offsets) == len(values) + 1
    assert offsets[-1] == len(payload)
    for value, start, stop in zip(values, offsets, offsets[1:], strict=False):
        assert decode_row(payload[start:stop], 1) == [value]


@pytest.mark.parametrize("length", [250, 251, 0xFFFF, 0x10000])
def test_long_values(length: int) -> None:
    payload = encode_row([b"v" * length, None])
    assert decode_row(payload, 2) == [b"v" * length, None]
    assert value_offsets(payload, 2)[1] == len(payload) - 1


@given(rows_of_values.filter(bool), st.data())
def test_a_row_cut_short_or_too_long(values: list[bytes | None], data: st.DataObject) -> None:
    payload = encode_row(values)
    cut = data.draw(st.integers(0, len(payload) - 1))
    for wrong in (payload[:cut], payload + b"\xfb"):
        for read in (decode_row, value_offsets):
            with pytest.raises(ProtocolError):
                read(wrong, len(values))


@given(st.binary(max_size=60), st.integers(0, 6))
def test_rows_of_garbage(garbage: bytes, columns: int) -> None:
    for read in (decode_row, value_offsets):
        with contextlib.suppress(ProtocolError):
            read(garbage, columns)


names = st.binary(max_size=70)


@given(
    st.builds(
        Column, names, st.sampled_from(list(ColumnType)), st.integers(0, 65535), st.integers(0, 2**32 - 1),
        st.integers(0, 65535), st.integers(0, 255), names, names, names, names,
    )
)  # fmt: skip
def test_column_round_trip(column: Column) -> None:
    assert decode_column(column.encode()) == column


@pytest.mark.parametrize("extended", [None, b"", b"\x01\x04json", b"\x00\x05point"])
def test_extended_metadata(extended: bytes | None) -> None:
    column = Column(b"a", table=b"t", extended=extended)
    payload = column.encode()
    assert decode_column(payload) == column
    assert fitted(payload, extended=False) == payload
    assert decode_column(fitted(payload, extended=True)) == replace(column, extended=extended or b"")


@given(st.binary(max_size=60))
def test_columns_of_garbage(garbage: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        decode_column(garbage)


def test_column_cut_short() -> None:
    payload = text_column("name").encode()
    for cut in range(len(payload)):
        with pytest.raises(ProtocolError):
            decode_column(payload[:cut])


def test_a_servers_definition() -> None:
    """As MariaDB sends `SELECT id FROM db03429.pins` under SET NAMES utf8mb4."""
    payload = bytes.fromhex(
        "03646566 07646230333432 39 0470696e73 0470696e73 026964 026964 0c 3f00 14000000 08 2342 00 0000"
    )
    column = decode_column(payload)
    assert (column.name, column.schema, column.table, column.org_name) == (b"id", b"db03429", b"pins", b"id")
    assert column.type == ColumnType.LONGLONG
    assert column.collation == 63
    assert column.flags & ColumnFlag.UNSIGNED
    assert column.encode() == payload
    assert column.renamed(b"x").name == b"x"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"\xff", b"\xff"),
        ("é", b"\xc3\xa9"),
        ("\udcff", b"\xff"),
        (12, b"12"),
        (True, b"1"),
        (False, b"0"),
        (1.5, b"1.5"),
    ],
)
def test_text_value(value: object, text: bytes) -> None:
    assert text_value(value) == text


@pytest.mark.parametrize("seq", [1, 3, 250])
@pytest.mark.parametrize("count", [0, 1, 300])
def test_text_resultset(seq: int, count: int) -> None:
    columns = [text_column("a"), integer_column("b", unsigned=False)]
    rows = [["text", number] for number in range(count)]
    data = text_resultset(columns, rows, 2, warnings=3, seq=seq, extended=False)
    scanner, reader = ReplyScanner(), ResultReader()
    assert scanner.feed(data) == len(data)
    assert (scanner.status, scanner.warnings) == (2, 3)
    payloads = split_rows(reader.feed(data))
    assert [decode_row(payload, 2) for payload in payloads] == [[b"text", b"%d" % n] for n in range(count)]
    assert [decode_column(payload) for payload in reader.columns] == columns
    numbers = [number for _, number, _ in cut_packets(data)]
    assert numbers == [(seq + index) & 0xFF for index in range(len(numbers))]


@pytest.mark.parametrize("count", [1, 252, 253, 254, 300, 1000])
def test_header_of_many_columns(count: int) -> None:
    """The number of the first row is below 256 whatever the columns."""
    data, seq = header_packets([b"\x03def"] * count, 2, extended=False)
    numbers = [number for _, number, _ in cut_packets(data)]
    assert numbers == [(1 + index) & 0xFF for index in range(count + 2)]
    assert seq == (count + 3) & 0xFF


def test_a_row_of_16_megabytes() -> None:
    data = text_resultset([text_column("a")], [[b"v" * 0xFFFFFA]] * 2, 2, extended=False)
    payloads = split_rows(ResultReader().feed(data))
    assert [len(payload) for payload in payloads] == [0xFFFFFA + 4, 0xFFFFFA + 4]
    assert ReplyScanner().feed(data) == len(data)
    assert [number for _, number, _ in cut_packets(data)] == list(range(1, 7))
