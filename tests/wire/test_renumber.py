"""Replies with other numbers and flags: what is changed, and that nothing else is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire import renumber
from proxy.wire.renumber import Renumber
from tests.wire.streams import MORE, Ok, Result, Rows, cuts, reply_packets, results

SMALL = 40  # instead of 16 MB


@pytest.fixture(autouse=True, scope="module")
def small_packets() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(renumber, "MAX_PAYLOAD", SMALL)
        yield


def flagged(replies: list[Result]) -> list[bytes]:
    """The packets of a reply, with MORE_RESULTS_EXISTS in all OK and EOF packets."""
    found = []
    for packet in reply_packets(replies, SMALL):
        payload = packet[4:]
        if payload[:1] == b"\xfe" and len(payload) == 5:
            payload = payload[:3] + bytes((payload[3] | MORE, payload[4]))
        found.append(packet[:4] + payload)
    return found


@given(st.data(), results(SMALL), st.integers(0, 255), st.integers(0, 255))
def test_numbers_run_on(data: st.DataObject, replies: list[Result], come: int, wanted: int) -> None:
    given_bytes = b"".join(reply_packets(replies, SMALL, come))
    expected = b"".join(reply_packets(replies, SMALL, wanted))
    numbers = Renumber()
    numbers.start(wanted)
    assert b"".join(map(numbers.feed, data.draw(cuts(given_bytes)))) == expected


@given(st.data(), st.lists(st.sampled_from([0, 1, 2, 5]), min_size=1, max_size=4), st.integers(0, 255))
def test_flags_are_set(data: st.DataObject, sizes: list[int], wanted: int) -> None:
    replies: list[Result] = [
        Rows([b"\x05\xfe\xfe\xfe\xfe\xfe"] * size) if size else Ok(1, 2) for size in sizes
    ]
    given_bytes = b"".join(reply_packets(replies, SMALL, 7))
    for one in replies:
        if isinstance(one, Ok):
            one.status |= MORE
    numbers = Renumber()
    numbers.start(wanted, MORE)
    out = b"".join(map(numbers.feed, data.draw(cuts(given_bytes))))
    expected = flagged(replies)
    for number, packet in enumerate(expected):
        expected[number] = packet[:3] + bytes(((wanted + number) & 0xFF,)) + packet[4:]
    assert out == b"".join(expected)
    assert numbers.last == (wanted + len(expected) - 1) & 0xFF


def test_one_reply_after_another() -> None:
    numbers = Renumber()
    numbers.start(1, MORE)
    first = numbers.feed(b"".join(reply_packets([Rows([b"\x01a"])], SMALL)))
    assert [packet[3] for packet in (first[:5], first[-9:])] == [1, 5]
    assert first[-2] & MORE
    numbers.start(numbers.last + 1)
    assert numbers.feed(reply_packets([Ok()], SMALL)[0])[3] == 6
