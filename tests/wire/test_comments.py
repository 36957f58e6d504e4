"""The comment that says whose a statement is."""

from __future__ import annotations

import re

import pytest

from proxy.wire.comments import comment_of, commented
from proxy.wire.constants import MAX_PAYLOAD
from proxy.wire.packets import PacketReader, frame, query_packet

COMMENT = b"/* app, 127.0.0.1:4711, 7 */ "


def test_it_says_who() -> None:
    assert comment_of("app", "127.0.0.1:4711", 7) == COMMENT


@pytest.mark.parametrize(
    "user",
    [
        "a*/b", "*/ DROP TABLE t; /*", "!50000 x", "+ NO_INDEX", "M!", "a\nb", "a\0b", "ä", "\u8868*\u2215",
        "x" * 5000, "", "'",
    ],
)  # fmt: skip
def test_no_name_ends_it(user: str) -> None:
    found = comment_of(user, f"::1:{user}", 7)
    assert re.fullmatch(rb"/\* [A-Za-z0-9_.@:?, -]* \*/ ", found), found
    assert found.count(b"*/") == found.count(b"/*") == 1
    assert len(found) < 200


def test_statements_get_it_and_nothing_else() -> None:
    packets = query_packet(b"SET x = 1") + query_packet(b"SELECT 1") + frame(b"\x16SELECT 2") + frame(b"\x0e")
    reader = PacketReader(1 << 24)
    found = [payload for _, payload in reader.feed(commented(packets, COMMENT, 1))]
    assert found == [b"\x03SET x = 1", b"\x03" + COMMENT + b"SELECT 1", b"\x16SELECT 2", b"\x0e"]
    assert not reader.pending


@pytest.mark.parametrize("size", [MAX_PAYLOAD - 10, MAX_PAYLOAD - 1, MAX_PAYLOAD, MAX_PAYLOAD + 5])
def test_what_would_fill_a_packet_stays_as_it_is(size: int) -> None:
    packet = query_packet(b"x" * (size - 1))
    assert commented(packet, COMMENT, 0) == packet
    assert commented(packet + query_packet(b"y"), COMMENT, 0) == packet + query_packet(COMMENT + b"y")
