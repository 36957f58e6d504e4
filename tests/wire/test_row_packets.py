"""The loops over row packets, and that their two forms, Python's and C's, say the same of any bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.wire import row_packets
from proxy.wire.constants import MAX_PAYLOAD
from tests.support.compiler import may_compile
from tests.wire.streams import cut_packets, packet, physical

#: Instead of 16 MB - 1.
SMALL = 24

Loops = tuple[Callable[..., tuple[int, int, int]], Callable[..., tuple[bytes, int, int]]]
LOOPS: dict[str, Loops] = {"Python": row_packets.PYTHON[:2]}
if row_packets.COMPILED:
    LOOPS["C"] = (row_packets.walk_rows, row_packets.renumber)


@pytest.fixture(params=list(LOOPS.values()), ids=list(LOOPS))
def loops(request: pytest.FixtureRequest) -> Loops:
    chosen: Loops = request.param
    return chosen


both = pytest.mark.skipif(not row_packets.COMPILED, reason="no compiler: the twin in C is NOT tested")


@pytest.mark.skipif(not may_compile(), reason="no compiler, or no headers of Python")
def test_where_it_can_be_compiled_the_twin_is_used() -> None:
    assert row_packets.COMPILED, "run: make setup"
    assert row_packets.walk_rows is not row_packets.PYTHON[0]
    assert row_packets.renumber is not row_packets.PYTHON[1]
    assert row_packets.binary_rows is not row_packets.PYTHON[2]
    assert row_packets.keyed_rows is not row_packets.PYTHON[3]
    assert row_packets.split_rows is not row_packets.PYTHON[4]
    assert row_packets.whole_rows is not row_packets.PYTHON[5]


# -- what they do
# ----------------------------------------------------------------------------------------------------------

ROW = packet(b"\x01a", 7)
EOF = packet(b"\xfe\0\0\x02\0", 9)


@pytest.mark.parametrize(
    ("behind", "why"),
    [
        (b"", "nothing"),
        (EOF, "an EOF packet"),
        (packet(b"\xff\x15\x04", 9), "an ERR packet"),
        (packet(b"\xfe" + b"r" * 12, 9), "what begins as an EOF packet does"),
        (packet(b"", 9) + ROW, "an empty payload"),
        (packet(b"r" * SMALL, 9) + packet(b"", 10), "a payload that goes on"),
        (packet(b"r" * (SMALL + 1), 9), "a payload above the limit"),
        (ROW[:-1], "a row without its last byte"),
        (ROW[:5], "a row's first byte"),
        (ROW[:4], "a header alone"),
        (ROW[:3], "half a header"),
    ],
)
def test_rows_are_walked_up_to_what_is_none(loops: Loops, behind: bytes, why: str) -> None:
    rows = packet(b"\xfb", 5) + packet(b"\xfd" + b"r" * (SMALL - 2), 6) + ROW
    assert loops[0](b"xyz" + rows + behind, 3, SMALL) == (3 + len(rows), 3, 7 << 24 | 2), why
    assert loops[0](behind, 0, SMALL) == (0, 0, 0), why


@pytest.mark.parametrize("split", {row_packets.PYTHON[4], row_packets.split_rows})
def test_rows_are_split_up_to_what_is_none(split: Callable[..., tuple[list[bytes], int]]) -> None:
    rows = packet(b"\xfb", 5) + packet(b"\xfd" + b"r" * (SMALL - 2), 6) + ROW
    found = [b"\xfb", b"\xfd" + b"r" * (SMALL - 2), b"\x01a"]
    assert split(b"xyz" + rows + EOF, 3, SMALL) == (found, 3 + len(rows))
    assert split(rows[:-1], 0, SMALL) == (found[:2], len(rows) - len(ROW))
    assert split(EOF, 0, SMALL) == ([], 0)
    assert split(ROW, 1 << 40, SMALL) == ([], 1 << 40)
    with pytest.raises(ValueError, match="negative"):
        split(ROW, -1, SMALL)


@pytest.mark.parametrize("whole", {row_packets.PYTHON[5], row_packets.whole_rows})
def test_whole_rows_end_in_one_eof_packet(whole: Callable[..., tuple[int, int, int] | None]) -> None:
    end = packet(b"\xfe\x01\x02\x22\x80", 9)
    assert whole(b"xyz" + ROW * 300 + end, 3, SMALL) == (300, 0x201, 0x8022)
    assert whole(end, 0, SMALL) == (0, 0x201, 0x8022)
    assert whole(bytearray(ROW + EOF), 0, SMALL) == (1, 0, 2)
    others = (
        ROW, ROW + end[:-1], ROW + end + b"x", end + end, ROW + packet(b"\xff\x15\x04\0\0", 9), b"",
        ROW + packet(b"\xfe\0\0\0\0\0", 9), ROW + b"\4\0\0\0\xfe\0\0\0\0", ROW + packet(b"", 9) + end[4:],
    )  # fmt: skip
    for other in others:
        assert whole(other, 0, SMALL) is None
    assert whole(end, 1 << 40, SMALL) is None
    with pytest.raises(ValueError, match="negative"):
        whole(end, -1, SMALL)


@pytest.mark.parametrize("pos", [0, 6, 7, 1 << 40])
def test_from_the_end_on_there_is_nothing_to_walk(loops: Loops, pos: int) -> None:
    assert loops[0](ROW if pos else b"", pos, SMALL) == (pos, 0, 0)


def test_sequence_numbers_wrap(loops: Loops) -> None:
    rows = b"".join(packet(b"\x01a", 0) for _ in range(600))
    out, behind, count = loops[1](rows, 250, SMALL)
    assert [number for _, number, _ in cut_packets(out)] == [(250 + index) % 256 for index in range(600)]
    assert (behind, count) == ((250 + 600) % 256, 600)


def test_rows_of_several_packets_are_counted_once(loops: Loops) -> None:
    sizes = (0, 1, SMALL - 1, SMALL, SMALL + 1, 2 * SMALL, 2 * SMALL + 5)
    pieces = [piece for size in sizes for piece in physical(b"r" * size, SMALL)]
    out, behind, count = loops[1](b"".join(packet(piece, 99) for piece in pieces), 3, SMALL)
    assert out == b"".join(packet(piece, 3 + index) for index, piece in enumerate(pieces))
    assert (behind, count) == (3 + len(pieces), len(sizes))


@pytest.mark.parametrize("length", [MAX_PAYLOAD - 1, MAX_PAYLOAD])
def test_the_largest_packets(loops: Loops, length: int) -> None:
    walk_rows, renumber = loops
    block = b"".join(packet(piece, 1) for piece in physical(b"r" * length, MAX_PAYLOAD)) + ROW
    plain = length < MAX_PAYLOAD
    assert walk_rows(block, 0, MAX_PAYLOAD) == ((len(block), 2, 7 << 24 | 2) if plain else (0, 0, 0))
    assert walk_rows(block[: length + 3], 0, MAX_PAYLOAD) == (0, 0, 0)
    out, behind, count = renumber(block, 255, MAX_PAYLOAD)
    assert [number for _, number, _ in cut_packets(out)] == ([255, 0] if plain else [255, 0, 1])
    assert (behind, count) == (1 if plain else 2, 2)
    with pytest.raises(ValueError, match="ends within a packet"):
        renumber(block[: length + 3], 255, MAX_PAYLOAD)


@pytest.mark.parametrize("cut", range(1, len(ROW)))
def test_a_cut_block_is_refused(loops: Loops, cut: int) -> None:
    with pytest.raises(ValueError, match="the block ends within a packet"):
        loops[1](ROW + ROW[:cut], 1, SMALL)


def test_what_was_given_is_not_touched(loops: Loops) -> None:
    block = ROW * 3
    before = bytes(bytearray(block))
    loops[1](block, 99, SMALL)
    assert block == before


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_will_do(loops: Loops, kind: Callable[[bytes], Any]) -> None:
    assert loops[0](kind(ROW + EOF), 0, SMALL) == (len(ROW), 1, 7 << 24 | 2)
    assert loops[1](kind(ROW), 8, SMALL) == (packet(b"\x01a", 8), 9, 1)


def test_what_is_no_position_is_refused(loops: Loops) -> None:
    with pytest.raises(ValueError, match="negative"):
        loops[0](ROW, -1, SMALL)


@pytest.mark.parametrize(
    "arguments", [(), (ROW,), (ROW, 0), (ROW, 0, SMALL, 0), ("a row", 0, SMALL), (ROW, b"", SMALL)]
)
def test_wrong_arguments_are_refused(loops: Loops, arguments: tuple[Any, ...]) -> None:
    for loop in loops:
        with pytest.raises(TypeError):
            loop(*arguments)


# -- the two forms
# ----------------------------------------------------------------------------------------------------------


def outcome(loop: Callable[..., Any], *arguments: object) -> object:
    try:
        return loop(*arguments)
    except ValueError as error:
        return str(error)


def agree(data: bytes, pos: int, seq: int, most: int) -> None:
    window = memoryview(data + ROW)[: len(data)]  # whoever reads too far finds another row
    for mine, others, number in zip(LOOPS["Python"], LOOPS["C"], (pos, seq), strict=True):
        expected = outcome(mine, data, number, most)
        assert outcome(others, data, number, most) == expected
        assert outcome(others, window, number, most) == expected
    pairs: tuple[tuple[Callable[..., object], Callable[..., object]], ...] = (
        (row_packets.PYTHON[4], row_packets.split_rows),
        (row_packets.PYTHON[5], row_packets.whole_rows),
    )
    for one, other in pairs:
        expected = outcome(one, data, pos, most)
        assert outcome(other, data, pos, most) == expected
        assert outcome(other, window, pos, most) == expected


def packets() -> st.SearchStrategy[bytes]:
    """Packets of any first byte and of lengths around the limit, some with another length in the header."""
    lengths = st.one_of(st.sampled_from((0, 1, 2, SMALL - 1, SMALL, SMALL + 1)), st.integers(0, 2 * SMALL))
    first = st.sampled_from((b"\x00", b"\x01", b"\xfb", b"\xfd", b"\xfe", b"\xff"))
    said = st.one_of(st.none(), st.none(), st.none(), st.integers(0, 0xFFFFFF))
    numbers = st.integers(0, 255)

    def build(length: int, byte: bytes, other: int | None, seq: int) -> bytes:
        whole = packet((byte + b"r" * length)[:length], seq)
        return whole if other is None else other.to_bytes(3, "little") + whole[3:]

    return st.builds(build, lengths, first, said, numbers)


limits = st.sampled_from((SMALL, SMALL, 1, 0, -1, MAX_PAYLOAD))
sequences = st.one_of(st.integers(0, 300), st.integers(-(1 << 70), 1 << 70))


@both
@given(st.lists(packets(), max_size=20).map(b"".join), st.integers(0, 60), sequences, limits)
@example(b"", 0, 0, SMALL)
def test_both_say_the_same_of_packets(data: bytes, pos: int, seq: int, most: int) -> None:
    agree(data, pos, seq, most)
    agree(data, 0, seq, most)


@both
@given(st.binary(max_size=80), st.integers(-3, 90), sequences, limits)
def test_both_say_the_same_of_any_bytes(data: bytes, pos: int, seq: int, most: int) -> None:
    agree(data, pos, seq, most)


@both
@given(st.lists(packets(), min_size=1, max_size=5).map(b"".join))
def test_both_say_the_same_wherever_it_is_cut(data: bytes) -> None:
    for end in range(len(data)):
        agree(data[:end], 0, 1, SMALL)
        agree(data, end, 1, SMALL)
