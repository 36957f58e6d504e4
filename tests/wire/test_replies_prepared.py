"""The end of the replies to COM_STMT_PREPARE, EXECUTE with a cursor and FETCH, wherever they are cut."""

from __future__ import annotations

import pytest

from proxy.wire.packets import ProtocolError, eof_packet, err_packet, frame, ok_packet
from proxy.wire.replies import FIRST, PREPARED, ROWS, ReplyScanner
from proxy.wire.resultset import integer_column, text_column

COLUMNS = [text_column("a").encode(), integer_column("b").encode()]


def prepared(parameters: int, columns: int, warnings: int = 0) -> bytes:
    """A reply to COM_STMT_PREPARE."""
    head = (
        b"\0" + (7).to_bytes(4, "little") + columns.to_bytes(2, "little") + parameters.to_bytes(2, "little")
    )
    packets = [frame(head + b"\0" + warnings.to_bytes(2, "little"), 1)]
    for count in (parameters, columns):
        packets += [frame(COLUMNS[number % 2], len(packets) + 1 + number) for number in range(count)]
        if count:
            packets.append(eof_packet(len(packets) + 1, 2))
    return b"".join(packets)


def cursor(status: int) -> bytes:
    """A result set's head, as EXECUTE with a cursor gives it."""
    return frame(b"\x02", 1) + frame(COLUMNS[0], 2) + frame(COLUMNS[1], 3) + eof_packet(4, status, 3)


REPLIES = [
    (prepared(0, 0), PREPARED),
    (prepared(3, 0, 5), PREPARED),
    (prepared(0, 2), PREPARED),
    (prepared(2, 300), PREPARED),
    (err_packet(1, 1064, "42000", "no"), PREPARED),
    (cursor(0x42), FIRST),
    (cursor(2) + frame(b"\0\0\x01x\x05", 5) + eof_packet(6, 2), FIRST),
    (frame(b"\0\0\x01x\x05", 1) + frame(b"\0\x04\x01x", 2) + eof_packet(3, 0xC2), ROWS),
    (eof_packet(1, 0x42), ROWS),
    (ok_packet(1, 2), FIRST),
]


@pytest.mark.parametrize(("reply", "state"), REPLIES)
def test_every_cut(reply: bytes, state: int) -> None:
    """One scanner reads them all, one after another, each cut in two at every byte."""
    scanner = ReplyScanner()
    for at in range(1, len(reply) if len(reply) < 600 else 60):
        scanner.start(state)
        assert scanner.feed(reply[:at]) == -1
        assert scanner.feed(reply[at:]) == len(reply) - at, at
    scanner.start(state)
    assert scanner.feed(reply + b"next") == len(reply)


def test_one_after_another() -> None:
    """What one reply leaves behind does not change how the next is read."""
    scanner = ReplyScanner()
    for first, first_state in REPLIES:
        for second, second_state in REPLIES:
            for reply, state in ((first, first_state), (second, second_state)):
                scanner.start(state)
                if state != FIRST or not scanner.whole(reply):
                    assert scanner.feed(reply) == len(reply)


def test_what_they_say() -> None:
    scanner = ReplyScanner()
    scanner.start(PREPARED)
    scanner.feed(prepared(1, 1, 5))
    assert (scanner.warnings, scanner.status, scanner.ok, scanner.err) == (5, 2, None, None)
    scanner.start()
    scanner.feed(cursor(0x42))
    assert (scanner.warnings, scanner.status, scanner.rows_begun) == (3, 0x42, True)


@pytest.mark.parametrize("first", [b"\x01" * 12, b"\0" * 11, b"\xfe" + b"\0" * 11])
def test_what_is_no_reply(first: bytes) -> None:
    scanner = ReplyScanner()
    scanner.start(PREPARED)
    with pytest.raises(ProtocolError):
        scanner.feed(frame(first, 1))
