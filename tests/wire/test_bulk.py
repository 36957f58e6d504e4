"""COM_STMT_BULK_EXECUTE read, cut and mutated."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.wire.binary import Quoting
from proxy.wire.bulk import bulk_literals, execute_of, parse_bulk, rows_of
from proxy.wire.packets import ProtocolError

QUOTING = Quoting("utf8mb4", True, False)
TYPES = b"\x03\0\xfd\0"
ROWS = b"\0\5\0\0\0\0\1x" + b"\1\0\3y'z" + b"\0\7\0\0\0\1"
PACKET = b"\xfa\1\0\0\0\x80\0" + TYPES + ROWS


def test_rows() -> None:
    found = parse_bulk(PACKET, 2)
    assert (found.statement, found.types, found.rows) == (1, TYPES, ROWS)
    rows = list(rows_of(found, TYPES, 2))
    assert [[kind for kind, _ in row] for row in rows] == [[0, 0], [1, 0], [0, 1]]
    assert bulk_literals(found, TYPES, 2, QUOTING) == (b"5", b"'x'", b"'y''z'", b"7")
    assert found.packet(1, TYPES, 2) == PACKET
    assert parse_bulk(PACKET[:5] + b"\0\0" + ROWS, 2).rows == ROWS


def test_a_row_as_an_execute() -> None:
    rows = list(rows_of(parse_bulk(PACKET, 2), TYPES, 2))
    one = execute_of(rows[1], TYPES)
    assert one is not None
    assert (one.nulls, one.types, one.values) == (b"\1", TYPES, b"\3y'z")
    assert execute_of([(2, b"")], TYPES[:2]) is None


@pytest.mark.parametrize("packet", [PACKET[:5], PACKET[:8], PACKET[:5] + b"\x40\0" + ROWS])
def test_no_packet(packet: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_bulk(packet, 2)


@pytest.mark.parametrize("rows", [ROWS[:-1], ROWS[:3], b"\4", b"\0\5\0\0\0"])
def test_no_rows(rows: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(rows_of(parse_bulk(PACKET[:11] + rows, 2), TYPES, 2))


@given(st.binary(max_size=40), st.integers(0, 3))
def test_garbage(garbage: bytes, parameters: int) -> None:
    try:
        found = parse_bulk(b"\xfa" + garbage, parameters)
        bulk_literals(found, found.types, parameters, QUOTING)
    except ProtocolError:
        pass
