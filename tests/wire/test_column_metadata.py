"""Column definitions with other origins, also of servers that talk nonsense."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.column_metadata import Origin, Placed, Placing, changed
from proxy.wire.constants import BINARY_COLLATION, ColumnFlag, ColumnType
from proxy.wire.packets import eof_packet, frame
from proxy.wire.resultset import Column, decode_column, header_packets

STORED = Column(b"ts", ColumnType.TIMESTAMP, schema=b"db00007", table=b"p", org_table=b"pins", org_name=b"ts")
COMPOSED = Column(b"id", ColumnType.LONGLONG, BINARY_COLLATION, 21, int(ColumnFlag.NOT_NULL))
COUNTED = Column(b"n", ColumnType.LONGLONG, BINARY_COLLATION, 21)


def place(name: bytes, was: Origin, bare: int) -> Placed | None:
    if bare == 0:
        return Placed(Origin(b"demo", b"p", b"pins", b"id"), key=True)
    return None if bare > 0 else Placed(was._replace(schema=b"demo"))


def test_placed() -> None:
    shown = [
        decode_column(one) for one in changed([one.encode() for one in (STORED, COMPOSED, COUNTED)], place)
    ]
    assert [one.schema for one in shown] == [b"demo", b"demo", b""]
    assert (shown[1].table, shown[1].org_table, shown[1].org_name) == (b"p", b"pins", b"id")
    assert (shown[1].length, shown[1].flags & ColumnFlag.PRI_KEY) == (20, ColumnFlag.PRI_KEY)
    assert shown[2] == decode_column(COUNTED.encode())


@given(st.lists(st.integers(1, 200), max_size=4))
def test_cut_between_any_packets(cuts: list[int]) -> None:
    head, seq = header_packets([STORED.encode(), COMPOSED.encode()], 2, extended=False)
    packets, rest = [], head + frame(b"\x01x\x01y", seq) + eof_packet(seq + 1, 2)
    whole = rest
    while rest:
        size = 4 + int.from_bytes(rest[:3], "little")
        packets.append(rest[:size])
        rest = rest[size:]
    placing, out = Placing(place), b""
    ends = sorted({cut % len(packets) for cut in cuts} | {len(packets)})
    start = 0
    for end in ends:
        data = b"".join(packets[start:end])
        out += placing.feed(data)[0] if data and not placing.done else data
        start = end
    assert placing.done
    assert out == Placing(place).feed(whole)[0]


@given(st.binary(max_size=60))
def test_nonsense_stays_as_it_is(payload: bytes) -> None:
    (shown,) = changed([payload], place)
    try:
        decode_column(payload)
    except Exception:
        assert shown == payload
