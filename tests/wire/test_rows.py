"""Result sets taken apart: nothing of a row is lost or torn, whatever packets come together."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire import rows
from proxy.wire.rows import ResultReader, renumber, split_rows
from tests.wire.streams import Err, Ok, Result, Rows, cut_packets, read_reply, reply_packets, results

SMALL = 24


@pytest.fixture(autouse=True, scope="module")
def small_packets():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "MAX_PAYLOAD", SMALL)
        yield


def blocks(data: st.DataObject, packets: list[bytes]) -> list[bytes]:
    """The packets in blocks of some each, as a connection gives them on."""
    points = data.draw(st.lists(st.integers(1, len(packets)), max_size=6, unique=True))
    edges = [0, *sorted({*points, len(packets)})]
    return [b"".join(packets[a:b]) for a, b in itertools.pairwise(edges)]


@given(st.data(), results(SMALL))
def test_reader(data: st.DataObject, some: list[Result]) -> None:
    packets = reply_packets(some, SMALL)
    reader = ResultReader()
    found: list[bytes] = []
    for block in blocks(data, packets):
        given_on = reader.feed(block)
        found += split_rows(given_on)
        assert b"".join(packet_ends(given_on)) == given_on
    assert reader.ended
    first = some[0]
    if isinstance(first, Rows):
        assert found == list(first.rows)
        assert reader.columns == [b"\x03def" + bytes((number,)) for number in range(first.columns)]
        assert reader.rows_begun
    else:
        assert not found
        assert not reader.rows_begun


def packet_ends(block: bytes) -> list[bytes]:
    """The block's rows, each as its packets; an unfinished one is not among them."""
    found, start, goes_on = [], 0, False
    for end, _, piece in cut_packets(block):
        goes_on = len(piece) == SMALL
        if not goes_on:
            found.append(block[start:end])
            start = end
    return found


def test_rows_begin_with_the_last_definition() -> None:
    reader = ResultReader()
    packets = reply_packets([Rows([b"\x011"], 2)], SMALL)
    begun = []
    for packet in packets:
        reader.feed(packet)
        begun.append(reader.rows_begun)
    assert begun == [False, False, False, True, True, True]


def test_a_row_of_several_packets_is_held_until_it_is_whole() -> None:
    reader = ResultReader()
    row = b"r" * (2 * SMALL)
    *head, one, two, three, end = reply_packets([Rows([row])], SMALL)
    assert reader.feed(b"".join(head)) == b""
    assert reader.feed(one) == b""
    assert reader.feed(two) == b""
    assert reader.feed(three + end) == one + two + three
    assert reader.ended


def test_whole_rows_before_an_unfinished_one_are_given_on() -> None:
    reader = ResultReader()
    *head, small, one, two, end = reply_packets([Rows([b"\x011", b"r" * (SMALL + 1)])], SMALL)
    assert reader.feed(b"".join(head) + small + one) == small
    assert reader.feed(two + end) == one + two


@pytest.mark.parametrize(
    "results", [[Ok()], [Err()], [Ok(), Rows([b"\x011"])]], ids=["ok", "err", "ok, rows"]
)
def test_no_result_set(results: list[Result]) -> None:
    reader = ResultReader()
    assert reader.feed(b"".join(reply_packets(results, SMALL))) == b""
    assert reader.ended
    assert not reader.rows_begun


def test_an_error_among_the_definitions() -> None:
    packets = reply_packets([Rows([], 3)], SMALL)
    reader = ResultReader()
    reader.feed(b"".join(packets[:2]) + reply_packets([Err()], SMALL, 3)[0])
    assert reader.ended
    assert not reader.rows_begun


@given(results(SMALL), st.integers(0, 600))
def test_renumber(some: list[Result], seq: int) -> None:
    packets = reply_packets(some, SMALL)
    block = ResultReader().feed(b"".join(packets))
    out, behind, count = renumber(block, seq)
    before, after = cut_packets(block), cut_packets(bytes(out))
    assert [piece for _, _, piece in after] == [piece for _, _, piece in before]
    assert [number for _, number, _ in after] == [(seq + index) & 0xFF for index in range(len(after))]
    assert behind == (seq + len(after)) & 0xFF
    assert (
        count
        == len(split_rows(block))
        == len(read_reply(b"".join(packets), SMALL).rows[: len(split_rows(block))])
    )


def test_renumber_does_not_touch_what_it_was_given() -> None:
    block = reply_packets([Rows([b"\x011"] * 3)], SMALL)[3]
    before = bytes(block)
    renumber(block, 99)
    assert block == before


def test_nothing() -> None:
    assert split_rows(b"") == []
    assert renumber(b"", 300) == (b"", 44, 0)
    assert ResultReader().feed(b"") == b""


@pytest.mark.parametrize("length", [0xFFFFFE, 0xFFFFFF, 0x1000000])
def test_rows_of_16_megabytes(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setattr(rows, "MAX_PAYLOAD", 0xFFFFFF)
    row = b"\xfb" * length
    reader = ResultReader()
    found: list[bytes] = []
    for packet in reply_packets([Rows([b"\xfb", row, b"\xfb"])]):
        found += split_rows(reader.feed(packet))
    assert found == [b"\xfb", row, b"\xfb"]
