"""Values by their types: what MySQL 9.7 and MariaDB 10.11 print, and how they compare."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import ProxyError
from proxy.execute.fan.compare import RowKeys, combine, float_text, kind_of
from proxy.wire.constants import ColumnType
from proxy.wire.resultset import Column, encode_row
from proxy.wire.sort_keys import BYTES, DOUBLE, NUMBER, value_key
from rewriter.plans import Aggregate, SortKey
from tests.wire.streams import packet

#: SELECT n + 0e0, on both servers.
DOUBLES = {
    "0": "0",
    "2e0": "2",
    "100e0": "100",
    "0.30000000000000004": "0.30000000000000004",
    "0.0001234": "0.0001234",
    "1e-5": "0.00001",
    "1.5e-7": "0.00000015",
    "1e-14": "0.00000000000001",
    "1e-15": "0.000000000000001",
    "1e-16": "1e-16",
    "5e-324": "5e-324",
    "12345e10": "123450000000000",
    "1e14": "100000000000000",
    "999999999999999e0": "999999999999999",
    "1e15": "1e15",
    "-1e15": "-1e15",
    "9999999999999990e0": "9.99999999999999e15",
    "1000000000000000.5": "1000000000000000.5",
    "1234567890123456.5": "1234567890123456.5",
    "123456789012345680e0": "1.2345678901234568e17",
    "1e20": "1e20",
    "1e300": "1e300",
    "1.7976931348623157e308": "1.7976931348623157e308",
}


@pytest.mark.parametrize(("number", "text"), DOUBLES.items())
def test_doubles(number: str, text: str) -> None:
    assert float_text(float(number)) == text.encode()


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back_the_same(value: float) -> None:
    text = float_text(value)
    assert float(text) == value


def test_doubles_of_fixed_decimals() -> None:
    assert float_text(5.333, 2) == b"5.33"
    assert float_text(2.0, 2) == b"2.00"
    assert float_text(1e15, 0) == b"1000000000000000"


def column(type_: ColumnType, collation: int = 63, decimals: int = 0) -> Column:
    return Column(b"c", type_, collation, decimals=decimals)


def total(type_: ColumnType, *values: bytes, decimals: int = 0) -> bytes | None:
    return combine(
        Aggregate(0, "sum", None), [column(type_, decimals=decimals)], [[value] for value in values], {}
    )


def test_sums_are_exact() -> None:
    """A sequence has 38 digits, a DECIMAL up to 65."""
    nines = b"9" * 38
    assert total(ColumnType.NEWDECIMAL, nines, nines, b"1") == b"1" + b"9" * 38
    assert total(ColumnType.NEWDECIMAL, b"9" * 65, b"1") == b"1" + b"0" * 65
    assert total(ColumnType.NEWDECIMAL, b"0.000000000000000000000000000001", b"9" * 35 + b".0") == (
        b"9" * 35 + b".000000000000000000000000000001"
    )
    assert total(ColumnType.NEWDECIMAL, b"1.50", b"-1.50") == b"0.00"


def test_sums_of_doubles() -> None:
    assert total(ColumnType.DOUBLE, b"1e15", b"0.5", decimals=31) == b"1000000000000000.5"
    assert total(ColumnType.DOUBLE, b"2.00", b"3.33", decimals=2) == b"5.33"
    with pytest.raises(ProxyError, match="out of range"):
        total(ColumnType.DOUBLE, b"1.7e308", b"1.7e308", decimals=31)


def test_counts_and_nothing() -> None:
    columns = [column(ColumnType.LONGLONG)]
    assert combine(Aggregate(0, "count", None), columns, [[None], [b"3"]], {}) == b"3"
    assert combine(Aggregate(0, "count", None), columns, [[None]], {}) == b"0"
    for function in ("sum", "min", "max"):
        assert combine(Aggregate(0, function, None), columns, [[None], [None]], {}) is None


def test_min_of_an_enum_is_that_of_its_texts() -> None:
    """MIN and MAX compare ENUM by text, unlike ORDER BY."""
    columns = [Column(b"e", ColumnType.STRING, 255, flags=256), *[column(ColumnType.VAR_STRING)] * 2]
    partials: list[list[bytes | None]] = [[b"red", b"RED", b"x"], [b"blue", b"BLUE", b"x"]]
    assert combine(Aggregate(0, "min", -2, -1), columns, partials, {b"x": b""}) == b"blue"


TIMES = [
    "-838:59:59",
    "-100:00:00",
    "-12:00:00.5",
    "-00:00:00.000001",
    "00:00:00",
    "00:00:00.1",
    "09:59:59",
    "100:00:00",
]


def test_times() -> None:
    kind = kind_of(column(ColumnType.TIME))
    assert kind is not None
    keys = [value_key(text.encode(), kind) for text in TIMES]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)
    assert value_key(b"-00:00:00", kind) == value_key(b"00:00:00.000", kind)


def test_kinds() -> None:
    kinds = (ColumnType.NEWDECIMAL, ColumnType.TINY, ColumnType.YEAR, ColumnType.FLOAT, ColumnType.DATE)
    found = [kind_of(column(kind)) for kind in kinds]
    assert found == [NUMBER, NUMBER, NUMBER, DOUBLE, BYTES]
    assert kind_of(column(ColumnType.VAR_STRING, 45)) is None
    assert kind_of(column(ColumnType.BLOB, 63)) == BYTES
    assert kind_of(column(ColumnType.NULL, 45)) == BYTES
    assert kind_of(column(ColumnType.JSON, 63)) is None


def key(value: bytes | None, *, descending: bool = False, pad: bytes = b"") -> bytes:
    columns = [
        column(ColumnType.VAR_STRING, 45),
        column(ColumnType.VAR_STRING),
        column(ColumnType.VAR_STRING),
    ]
    keys = RowKeys([SortKey(0, descending, 1, 2)], columns, 1, {b"x": pad})
    [found], [row] = keys.of(packet(encode_row([value and b"text", value, b"x"]), 1))
    assert row == packet(encode_row([value and b"text"]), 0)
    return found


@pytest.mark.parametrize("pad", [b" ", b"\0 ", b"\0\0 "])
def test_padding(pad: bytes) -> None:
    """PAD SPACE: 'a' equals 'a ', and comes behind 'a' with a tab."""
    a, tab, letter = pad[:-1] + b"a", pad[:-1] + b"\t", pad[:-1] + b"b"
    assert key(a, pad=pad) == key(a + pad, pad=pad) == key(a + pad * 3, pad=pad)
    assert key(a + tab, pad=pad) < key(a, pad=pad) < key(a + letter, pad=pad)
    assert key(a + letter, pad=pad, descending=True) < key(a, pad=pad, descending=True)
    assert key(b"", pad=pad) == key(pad, pad=pad)


def test_without_padding() -> None:
    assert key(b"a") < key(b"a\t") < key(b"a ")


def test_nulls() -> None:
    assert key(None) < key(b"")
    assert key(b"", descending=True) < key(None, descending=True)
    assert key(None) == key(None)
