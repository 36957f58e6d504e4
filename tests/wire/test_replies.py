"""The end of a reply is found wherever its bytes are cut, and nothing but a reply is taken for one."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.wire import replies
from proxy.wire.packets import ProtocolError
from proxy.wire.replies import ROWS, ReplyScanner
from tests.fuzz.mutate import spoil
from tests.wire.streams import (
    AUTOCOMMIT,
    Err,
    Ok,
    Reading,
    Result,
    Rows,
    cuts,
    packet,
    read_reply,
    reply_packets,
    results,
)

#: Instead of 16 MB, so that every cut of rows of several packets can be tried.
SMALL = 24


@pytest.fixture(autouse=True, scope="module")
def small_packets():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replies, "MAX_PAYLOAD", SMALL)
        yield


def said(scanner: ReplyScanner) -> tuple[object, ...]:
    ok = None if scanner.ok is None else (scanner.ok.affected, scanner.ok.insert_id)
    err = None if scanner.err is None else scanner.err.code
    place = scanner.seq, scanner.partial, scanner.within_row
    return place, scanner.status, scanner.warnings, ok, err, scanner.rows_begun


def expected(reading: Reading) -> tuple[object, ...]:
    partial = 0 if reading.end >= 0 else reading.partial
    place = reading.seq, partial, reading.within_row
    return place, reading.status, reading.warnings, reading.ok, reading.err, reading.rows_begun


def check(pieces: list[bytes], scanner: ReplyScanner | None = None) -> None:
    """Feed the pieces, and compare with the slow reader after each."""
    scanner = scanner or ReplyScanner()
    so_far = b""
    for number, piece in enumerate(pieces):
        end = scanner.feed(piece)
        so_far += piece
        reading = read_reply(so_far, SMALL)
        assert said(scanner) == expected(reading)
        if reading.end < 0:
            assert end == -1
            assert number < len(pieces) - 1
            continue
        assert end == reading.end - (len(so_far) - len(piece))
        return
    raise AssertionError("the end of the reply was not found")


CASES: dict[str, list[Result]] = {
    "ok": [Ok(3, 7, 1)],
    "error": [Err(1213, "Deadlock found")],
    "no rows": [Rows()],
    "rows": [Rows([b"\x011", b"\xfb", b"\x00"], 1, 2)],
    "a NULL first, then a length of 8 bytes": [Rows([b"\xfb", b"\xfe" + b"\0" * 8, b"\xfe" + b"x" * 30], 3)],
    "as long as a packet can be": [Rows([b"r" * SMALL])],
    "twice as long": [Rows([b"r" * (2 * SMALL), b"\x01a"])],
    "one byte more, which looks like an end": [Rows([b"r" * SMALL + b"\xfe", b"r" * SMALL + b"\xff\xff"])],
    "a long row like an end at its start": [Rows([b"\xfe" + b"r" * SMALL, b"\xfb" * (2 * SMALL + 4)])],
    "an error behind rows": [Rows([b"\x011"] * 3, error=Err(1317, "killed"))],
    "several results": [Ok(1), Rows([b"\x011"]), Rows([b"\x012"], 2), Ok(2, 9, 4)],
    "an error after a result": [Rows([b"\x011"]), Err(1064)],
    "more packets than sequence numbers": [Rows([b"\x011"] * 300)],
    "many columns": [Rows([b"\x011" * 100], 100)],
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_whole(case: list[Result]) -> None:
    check([b"".join(reply_packets(case, SMALL))])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_byte_by_byte(case: list[Result]) -> None:
    check([bytes((byte,)) for byte in b"".join(reply_packets(case, SMALL))])


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_packet_by_packet(case: list[Result]) -> None:
    check(reply_packets(case, SMALL))


@pytest.mark.parametrize("case", [case for name, case in CASES.items() if "more packets" not in name])
def test_cut_once_anywhere(case: list[Result]) -> None:
    data = b"".join(reply_packets(case, SMALL))
    for point in range(1, len(data)):
        check([data[:point], data[point:]])


@given(st.data(), results(SMALL), st.integers(1, 255))
def test_random_replies_and_cuts(data: st.DataObject, some: list[Result], seq: int) -> None:
    check(data.draw(cuts(b"".join(reply_packets(some, SMALL, seq)))))


@given(st.data(), results(SMALL), st.binary(max_size=20))
def test_what_follows_is_not_counted(data: st.DataObject, some: list[Result], more: bytes) -> None:
    reply = b"".join(reply_packets(some, SMALL))
    scanner = ReplyScanner()
    before = 0
    for piece in data.draw(cuts(reply + more)):
        end = scanner.feed(piece)
        if end >= 0:
            assert before + end == len(reply)
            return
        before += len(piece)
    raise AssertionError("the end of the reply was not found")


@given(st.data(), st.lists(results(SMALL), min_size=2, max_size=6))
def test_one_scanner_for_many_replies(data: st.DataObject, many: list[list[Result]]) -> None:
    """What it remembers of one reply (the last header, the flags) must not show in the next."""
    used = ReplyScanner()
    for some in many:
        whole = b"".join(reply_packets(some, SMALL))
        pieces = data.draw(st.one_of(st.just([whole]), cuts(whole)))
        used.start()
        fresh = ReplyScanner()
        fresh.status = used.status
        for piece in pieces:
            assert used.feed(piece) == fresh.feed(piece)
            assert said(used) == said(fresh)
        assert used.state == fresh.state == replies.DONE


def test_the_same_header_again_in_a_later_result() -> None:
    """A CALL: an OK, then rows under a header known from before. The OK is not the last word."""
    scanner = ReplyScanner()
    rows = reply_packets([Rows([b"\x011"])], SMALL, 2)
    assert scanner.feed(b"".join(rows)) > 0
    scanner.start()
    packets = reply_packets([Ok(5), Rows([b"\x011"])], SMALL)
    assert scanner.feed(packets[0]) == -1
    assert scanner.feed(b"".join(packets[1:])) > 0
    assert scanner.ok is None


def test_status_stays_over_an_error() -> None:
    """An ERR packet has no flags: the last known ones hold."""
    scanner = ReplyScanner()
    scanner.feed(b"".join(reply_packets([Ok(status=3)])))
    scanner.start()
    scanner.feed(b"".join(reply_packets([Err()])))
    assert scanner.status == 3
    assert scanner.err is not None


def test_out_parameters() -> None:
    """Behind a routine's OUT parameters comes an OK packet, though MySQL's EOF behind the row has no sign of
    it; also with the same columns again.
    """
    scanner = ReplyScanner()
    data = b"".join(
        packet(payload, seq)
        for seq, payload in enumerate(
            (b"\x01", b"\x03def", b"\xfe\0\0\x08\x10", b"\0\0\x05", b"\xfe\0\0\0\0", b"\0\0\0\2\0\0\0"), 1
        )
    )
    for _ in range(2):
        scanner.start()
        assert scanner.feed(data[:-5]) == -1
        assert scanner.feed(data[-5:]) == 5
        assert scanner.status == AUTOCOMMIT
        assert scanner.ok is not None


def test_field_list() -> None:
    """Definitions without a count, ended by EOF."""
    scanner = ReplyScanner()
    scanner.start(ROWS)
    data = packet(b"\x03def1", 1) + packet(b"\x03def2", 2) + packet(b"\xfe\0\0\2\0", 3)
    assert scanner.feed(data) == len(data)
    assert scanner.status == AUTOCOMMIT


def test_within_a_row_of_several_packets() -> None:
    scanner = ReplyScanner()
    *head, first, last, end = reply_packets([Rows([b"r" * (SMALL + 3)])], SMALL)
    seen = []
    for piece in (b"".join(head), first, last, end):
        scanner.feed(piece)
        seen.append((scanner.within_row, scanner.partial))
    assert seen == [(False, 0), (True, 0), (False, 0), (False, 0)]


# -- what is no reply
# ----------------------------------------------------------------------------------------------------------

_HEAD = packet(b"\x01", 1) + packet(b"\x03def", 2)
_ROWS_COME = _HEAD + packet(b"\xfe\0\0\2\0", 3)

MALFORMED = {
    "empty packet": b"\0\0\0\x01",
    "empty packet and more": b"\0\0\0\x01\x01",
    "LOCAL INFILE": packet(b"\xfb/etc/passwd", 1),
    "OK without flags": packet(b"\0\0\0", 1),
    "OK cut in a number": packet(b"\0\xfc\x01", 1),
    "OK with a wrong number": packet(b"\0\xff\x01\0\0\0\0\0", 1),
    "ERR without a code": packet(b"\xff\x01", 1),
    "column count cut": packet(b"\xfc\x01", 1),
    "column count of nothing": packet(b"\xfc\0\0", 1),
    "column count of 2^40": packet(b"\xfe\0\0\0\0\0\1\0\0", 1),
    "column count and more": packet(b"\x01\x01", 1),
    "EOF first": packet(b"\xfe\0\0\2\0", 1),
    "no definitions": packet(b"\x01", 1) + b"\0\0\0\x02",
    "definition of 16 MB": packet(b"\x01", 1) + SMALL.to_bytes(3, "little") + b"\2\3def",
    "a row instead of EOF": _HEAD + packet(b"\x011", 3),
    "a long EOF behind the columns": _HEAD + packet(b"\xfe\0\0\2\0\0", 3),
    "an empty row": _ROWS_COME + b"\0\0\0\x04" + packet(b"\x011", 5),
    "an empty row at the end of what was read": _ROWS_COME + b"\0\0\0\x04",
    "an empty row before what looks like an error": _ROWS_COME + b"\0\0\0\x04\xff\0\0\0",
    "an empty row before what looks like EOF": _ROWS_COME + b"\0\0\0\x04\xfe\0\0\0",
    "an EOF of one byte": _ROWS_COME + packet(b"\xfe", 4),
    "an EOF of three": _ROWS_COME + packet(b"\xfe\0\0", 4),
    "an OK instead of EOF": _ROWS_COME + packet(b"\xfe\0\0\2\0\0\0", 4),
    "a short ERR behind rows": _ROWS_COME + packet(b"\xff", 4),
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_malformed(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        ReplyScanner().feed(data)
    with pytest.raises(ProtocolError):
        _feed_bytes(data)


def _feed_bytes(data: bytes) -> None:
    scanner = ReplyScanner()
    for byte in data:
        if scanner.feed(bytes((byte,))) >= 0:
            return


def test_an_error_among_the_definitions_ends_the_reply() -> None:
    data = packet(b"\x02", 1) + packet(b"\x03def", 2) + packet(b"\xff\x28\x04#42000no", 3)
    scanner = ReplyScanner()
    assert scanner.feed(data) == len(data)
    assert scanner.err is not None
    assert scanner.err.code == 1064


@given(st.data(), st.binary(max_size=200))
@example(None, b"\x00\x00\x00\x01\xff")
def test_garbage(data: st.DataObject | None, garbage: bytes) -> None:
    """Nothing but ProtocolError, and never more bytes than there were."""
    pieces = data.draw(cuts(garbage)) if data is not None and garbage else [garbage]
    scanner = ReplyScanner()
    try:
        for piece in pieces:
            end = scanner.feed(piece)
            assert end <= len(piece)
            if end >= 0:
                return
    except ProtocolError:
        pass


@given(results(SMALL), st.integers(0, 10_000), st.integers(0, 255), st.integers(1, 50))
def test_damaged_replies(some: list[Result], place: int, byte: int, size: int) -> None:
    whole = bytearray(b"".join(reply_packets(some, SMALL)))
    whole[place % len(whole)] = byte
    scanner = ReplyScanner()
    try:
        for start in range(0, len(whole), size):
            if scanner.feed(bytes(whole[start : start + size])) >= 0:
                return
    except ProtocolError:
        pass


# -- the real size
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [0xFFFFFE, 0xFFFFFF, 0x1000000, 2 * 0xFFFFFF])
def test_rows_of_16_megabytes(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    monkeypatch.setattr(replies, "MAX_PAYLOAD", 0xFFFFFF)
    row = b"\xfe" * length
    data = b"".join(reply_packets([Rows([row, b"\xfb"], warnings=3)]))
    scanner = ReplyScanner()
    for start in range(0, len(data), 1 << 18):
        end = scanner.feed(data[start : start + (1 << 18)])
    assert start + end == len(data)
    assert scanner.warnings == 3
    assert scanner.seq == data[-6]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_spoilt(case: list[Result]) -> None:
    """Whatever came before: `whole` raises nothing, and `feed` one error."""
    data = b"".join(reply_packets(case, SMALL))
    chooser = Random(1)
    for _ in range(50):
        scanner = ReplyScanner()
        for reply in (data, spoil(chooser, data)):
            scanner.start()
            if not scanner.whole(reply):
                with suppress(ProtocolError):
                    scanner.feed(reply)
