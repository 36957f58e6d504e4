"""Framing: payloads come out whole however they are cut, and are refused before too much is held."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire import packets
from proxy.wire.constants import MAX_PAYLOAD
from proxy.wire.packets import (
    Err,
    Ok,
    PacketReader,
    PacketTooLarge,
    ProtocolError,
    eof_packet,
    err_packet,
    frame,
    lenenc,
    lenenc_bytes,
    ok_packet,
    parse_err,
    parse_ok,
    read_lenenc,
    read_lenenc_bytes,
    read_nul_bytes,
    reply_numbers,
)
from tests.wire.streams import cuts, packet, physical

SMALL = 24

# -- integers and strings
# ----------------------------------------------------------------------------------------------------------

INTEGERS = {
    0: "00",
    250: "fa",
    251: "fcfb00",
    0xFFFF: "fcffff",
    0x10000: "fd000001",
    0xFFFFFF: "fdffffff",
    0x1000000: "fe0000000100000000",
    2**64 - 1: "feffffffffffffffff",
}


@pytest.mark.parametrize(("value", "text"), INTEGERS.items(), ids=map(str, INTEGERS))
def test_lenenc(value: int, text: str) -> None:
    data = bytes.fromhex(text)
    assert lenenc(value) == data
    assert read_lenenc(b"x" + data + b"y", 1) == (value, 1 + len(data))
    for cut in range(len(data)):
        with pytest.raises(ProtocolError):
            read_lenenc(data[:cut], 0)


def test_lenenc_null_and_error() -> None:
    assert read_lenenc(b"\xfb", 0) == (None, 1)
    assert read_lenenc_bytes(b"\xfb", 0) == (None, 1)
    with pytest.raises(ProtocolError, match="0xff"):
        read_lenenc(b"\xff", 0)


@given(st.integers(0, 2**64 - 1))
def test_lenenc_round_trip(value: int) -> None:
    assert read_lenenc(lenenc(value), 0) == (value, len(lenenc(value)))


@given(st.binary(max_size=300))
def test_lenenc_bytes_round_trip(value: bytes) -> None:
    data = lenenc_bytes(value)
    assert read_lenenc_bytes(data, 0) == (value, len(data))
    with pytest.raises(ProtocolError):
        read_lenenc_bytes(data[:-1], 0)


def test_nul_bytes() -> None:
    assert read_nul_bytes(b"xab\0c", 1) == (b"ab", 4)
    with pytest.raises(ProtocolError):
        read_nul_bytes(b"ab", 0)


# -- packets
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0, 1, SMALL - 1, SMALL, SMALL + 1, 2 * SMALL, 2 * SMALL + 5])
@pytest.mark.parametrize("seq", [0, 1, 254, 255, 256])
def test_frame(monkeypatch: pytest.MonkeyPatch, length: int, seq: int) -> None:
    monkeypatch.setattr(packets, "MAX_PAYLOAD", SMALL)
    pieces = physical(b"p" * length, SMALL)
    expected = b"".join(packet(piece, seq + number) for number, piece in enumerate(pieces))
    assert frame(b"p" * length, seq) == expected


def test_frame_of_16_megabytes() -> None:
    assert frame(b"p" * 0xFFFFFE, 3)[:4] == b"\xfe\xff\xff\x03"
    assert frame(b"p" * 0xFFFFFF, 255)[-4:] == b"\0\0\0\0"
    assert frame(b"p" * 0x1000000)[-5:] == b"\x01\0\0\x01p"


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.integers(0, 65535),
    st.integers(0, 70000),
    st.binary(),
)
def test_ok_round_trip(affected: int, insert_id: int, status: int, warnings: int, info: bytes) -> None:
    data = ok_packet(7, status, affected=affected, insert_id=insert_id, warnings=warnings, info=info)
    assert data[3] == 7
    assert int.from_bytes(data[:3], "little") == len(data) - 4
    assert parse_ok(data[4:]) == Ok(affected, insert_id, status, min(warnings, 65535), info)


@given(st.integers(0, 65535), st.binary(max_size=600))
def test_err_round_trip(code: int, message: bytes) -> None:
    data = err_packet(300, code, "42S02", message)
    assert data[3] == 300 & 0xFF
    assert parse_err(data[4:]) == Err(code, "42S02", message)


def test_err_without_sqlstate() -> None:
    assert parse_err(b"\xff\x10\x04Too many connections") == Err(1040, "HY000", b"Too many connections")
    assert parse_err(b"\xff\x10\x04#0800") == Err(1040, "HY000", b"#0800")
    assert parse_err(b"\xff\x10\x04") == Err(1040, "HY000", b"")


def test_err_text_that_is_not_utf8() -> None:
    assert err_packet(1, 1, "HY000", "a\udcff").endswith(b"#HY000a?")
    assert Err(1, "HY000", b"a\xff").text() == "a\ufffd"


def test_eof() -> None:
    assert eof_packet(258, 0x0122, 70000) == bytes.fromhex("050000 02 fe ffff 2201")


@given(st.binary(max_size=40))
def test_parsers_and_garbage(garbage: bytes) -> None:
    for parse in (
        parse_ok,
        parse_err,
        lambda data: read_lenenc_bytes(data, 0),
        lambda data: read_nul_bytes(data, 0),
    ):
        with contextlib.suppress(ProtocolError):
            parse(garbage)


# -- the reader
# ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_packets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "MAX_PAYLOAD", SMALL)


def payload_lists() -> st.SearchStrategy[list[bytes]]:
    edges = st.sampled_from((0, 1, SMALL - 1, SMALL, SMALL + 1, 2 * SMALL, 3 * SMALL))
    lengths = st.one_of(st.integers(0, 60), edges)
    return st.lists(st.builds(lambda length: b"p" * length, lengths), min_size=1, max_size=6)


def stream(payloads: list[bytes]) -> tuple[bytes, list[tuple[int, bytes]]]:
    """A client's bytes, each payload numbered from 0, and what the reader is to find."""
    data, found = b"", []
    for payload in payloads:
        pieces = physical(payload, SMALL)
        data += b"".join(packet(piece, seq) for seq, piece in enumerate(pieces))
        found.append((len(pieces) - 1, payload))
    return data, found


@given(st.data(), payload_lists())
def test_reader_at_any_cut(data: st.DataObject, payloads: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packets, "MAX_PAYLOAD", SMALL)
        sent, expected = stream(payloads)
        reader = PacketReader(1000)
        found = [one for piece in data.draw(cuts(sent)) for one in reader.feed(piece)]
        assert found == expected
        assert reader.pending == 0


def test_reader_byte_by_byte(small_packets: None) -> None:
    sent, expected = stream([b"", b"a", b"b" * SMALL, b"c" * (SMALL + 1), b"d" * 2 * SMALL, b"e" * 7])
    reader = PacketReader(1000)
    found: list[tuple[int, bytes]] = []
    for byte in sent:
        found += reader.feed(bytes((byte,)))
    assert found == expected


@given(st.data(), payload_lists())
def test_one_at_a_time(data: st.DataObject, payloads: list[bytes]) -> None:
    """`feed_one` finds what `feed` does, and `rest` gives what it has not looked at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packets, "MAX_PAYLOAD", SMALL)
        sent, expected = stream(payloads)
        reader = PacketReader(1000)
        found: list[tuple[int, bytes]] = []
        for piece in data.draw(cuts(sent)):
            while (one := reader.feed_one(piece)) is not None:
                found.append(one)
                piece = b""
        assert found == expected
        assert reader.rest() == b""


def test_what_follows_one() -> None:
    """The hello of TLS is no packet: its header would ask for a large one."""
    reader = PacketReader(100)
    hello = b"\x16\xff\xff\x01\0"
    assert reader.feed_one(packet(b"ask", 1)[:5]) is None
    assert reader.feed_one(packet(b"ask", 1)[5:] + hello) == (1, b"ask")
    assert reader.pending == len(hello)
    assert reader.rest() == hello
    assert (reader.rest(), reader.pending) == (b"", 0)
    assert reader.feed(packet(b"next", 2)) == [(2, b"next")]
    with pytest.raises(PacketTooLarge):
        reader.feed_one(hello)


def test_pending() -> None:
    reader = PacketReader(100)
    assert reader.feed(b"\x05\0") == []
    assert reader.pending == 2
    assert reader.feed(b"\0\0ab") == []
    assert reader.pending == 6
    assert reader.feed(b"cde\x01") == [(0, b"abcde")]
    assert reader.pending == 1


@pytest.mark.parametrize("size", [99, 100])
def test_limit_allows(size: int) -> None:
    assert PacketReader(100).feed(packet(b"p" * size, 0)) == [(0, b"p" * size)]


def test_too_large_is_known_from_the_header() -> None:
    reader = PacketReader(100)
    with pytest.raises(PacketTooLarge):
        reader.feed((101).to_bytes(3, "little") + b"\x05")
    assert reader.seq == 5


def test_too_large_in_pieces(small_packets: None) -> None:
    """The sum counts; it is refused at the header that makes it too large."""
    reader = PacketReader(2 * SMALL)
    assert reader.feed(packet(b"p" * SMALL, 0) + packet(b"p" * SMALL, 1)) == []
    assert reader.pending == 2 * SMALL
    with pytest.raises(PacketTooLarge):
        reader.feed(b"\x01\0\0\x02")
    assert reader.seq == 2
    reader = PacketReader(2 * SMALL)
    assert reader.feed(packet(b"p" * SMALL, 0) + packet(b"p" * SMALL, 1) + b"\0\0\0\2") == [
        (2, b"p" * 2 * SMALL)
    ]


@given(st.data(), st.binary(max_size=300))
def test_reader_and_garbage(data: st.DataObject, garbage: bytes) -> None:
    """Nothing but PacketTooLarge, and never more held than one packet may have."""
    reader = PacketReader(100)
    try:
        for piece in data.draw(cuts(garbage)) if garbage else []:
            for _, payload in reader.feed(piece):
                assert len(payload) <= 100
            assert reader.pending <= 104
    except PacketTooLarge:
        pass


def test_a_large_packet_in_small_reads() -> None:
    """17 MB in reads of 256 KB: joined once, not once a read."""
    payload = b"p" * (17 << 20)
    sent = frame(payload)
    reader = PacketReader(64 << 20)
    found = []
    for start in range(0, len(sent), 1 << 18):
        found += reader.feed(sent[start : start + (1 << 18)])
    assert found == [(1, payload)]


def test_the_numbers_of_replies() -> None:
    """Behind a command's last packet; commands without an answer have none."""
    full = b"\xff\xff\xff"
    one = frame(b"\x03SELECT 1")
    exact = frame(b"\x03" + b"x" * (MAX_PAYLOAD - 1))
    assert exact[:4] == full + b"\0"
    assert exact[-4:] == b"\0\0\0\1"
    assert reply_numbers(one) == [1]
    assert reply_numbers(exact + one) == [2, 1]
    assert reply_numbers(frame(b"\x18" + exact) + one + frame(b"\x19\1\0\0\0")) == [1]
