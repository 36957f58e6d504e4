"""Keys sort as the values they are made of, and both ways of making them, Python's and C's, make the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.wire import packets, row_packets, rows, sort_keys
from proxy.wire.packets import ProtocolError
from proxy.wire.resultset import decode_row, encode_row
from proxy.wire.sort_keys import (
    BYTES,
    DOUBLE,
    NUMBER,
    PADDED,
    TIME,
    OtherName,
    Part,
    double_key,
    keyed,
    number_key,
    padded_key,
    time_key,
    value_key,
)
from tests.wire.streams import packet, physical
from tests.wire.test_row_packets import ROW, both

#: Instead of 16 MB: rows from here on take several packets.
SMALL = 60
PADS = (b" ", b"\0 ", b"\0\0 ")
KINDS = (NUMBER, TIME, DOUBLE, BYTES, PADDED)


@pytest.fixture(autouse=True, scope="module")
def small_packets():
    with pytest.MonkeyPatch.context() as patch:
        for where in (packets, rows, sort_keys):
            patch.setattr(where, "MAX_PAYLOAD", SMALL)
        yield


# -- the order
# ----------------------------------------------------------------------------------------------------------


def sign(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


decimals = st.one_of(
    st.integers(-12, 12).map(str),
    st.integers(-(2**64), 2**64).map(str),
    st.decimals(-(10**40), 10**40, allow_nan=False, places=3).map("{:f}".format),
    st.from_regex(r"-?0{0,3}[0-9]{1,4}(\.[0-9]{0,4})?", fullmatch=True),
    st.sampled_from(("0", "-0", "0.0", "-0.00", "000", ".5", "-.5", "5.", "9" * 100, "-" + "9" * 100)),
)


@given(decimals, decimals)
def test_numbers(a: str, b: str) -> None:
    assert sign(number_key(a.encode()), number_key(b.encode())) == sign(Decimal(a), Decimal(b))


@pytest.mark.parametrize(
    "text", ["", "-", ".", "-.", "x", "1x", "--1", "+1", "1.2.3", "1e5", " 1", "1_0", "1" * 101]
)
def test_what_is_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="number"):
        number_key(text.encode())


doubles = st.one_of(st.floats(allow_nan=False), st.integers(-3, 3).map(float), st.just(-0.0))


@given(doubles, doubles)
def test_doubles(a: float, b: float) -> None:
    assert sign(double_key(repr(a).encode()), double_key(repr(b).encode())) == sign(a, b)


def time_text(micros: int, digits: int) -> bytes:
    seconds, fraction = divmod(abs(micros), 10**6)
    minutes, hours = seconds // 60, seconds // 3600
    text = f"{'-' * (micros < 0)}{hours:02d}:{minutes % 60:02d}:{seconds % 60:02d}.{fraction:06d}"
    return text[: len(text) - 6 + digits].rstrip(".").encode()


moments = st.one_of(st.integers(-(10**13), 10**13), st.integers(-7000, 7000).map(lambda n: n * 10**6))


@given(moments, moments)
def test_times(a: int, b: int) -> None:
    assert sign(time_key(time_text(a, 6)), time_key(time_text(b, 6))) == sign(a, b)


@pytest.mark.parametrize(
    "text", ["", "1", "1:2", "1:02", "1:2:03", "1:02:03:04", "x:00:00", "1:00:00x", "1:0x:00"]
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="no time"):
        time_key(text.encode())


@given(st.sampled_from(PADS), st.data())
def test_padded_weights(pad: bytes, data: st.DataObject) -> None:
    """The shorter one goes on with spaces, however many."""
    units = st.sampled_from((pad, pad[:-1] + b"\0", pad[:-1] + b"!", b"\0" * len(pad), b"\xff" * len(pad)))
    weight = st.lists(units, max_size=6)
    a, b = data.draw(weight), data.draw(weight)
    full = [b"".join(one + [pad] * (7 - len(one))) for one in (a, b)]
    assert sign(*(padded_key(b"".join(one), pad) for one in (a, b))) == sign(*full)


values = st.one_of(st.none(), st.binary(max_size=3), st.sampled_from((b"\0", b"\0\0", b"\0\xff", b"\xff")))


@given(st.lists(st.booleans(), min_size=1, max_size=3), st.data())
def test_several_values(descending: Sequence[bool], data: st.DataObject) -> None:
    """NULL is the smallest, and nothing of one value is taken for the next one's."""
    a, b = ([data.draw(values) for _ in descending] for _ in range(2))
    expected = 0
    for x, y, reverse in zip(a, b, descending, strict=True):
        expected = expected or sign(*((one is not None, one or b"") for one in (x, y))) * (
            -1 if reverse else 1
        )
    found = [
        b"".join(
            value_key(one, BYTES, descending=reverse) for one, reverse in zip(row, descending, strict=True)
        )
        for row in (a, b)
    ]
    assert sign(*found) == expected


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("descending", [False, True])
def test_no_key_begins_another(kind: bytes, descending: bool) -> None:
    texts: dict[bytes, tuple[bytes | None, ...]] = {
        NUMBER: (None, b"0", b"1", b"10", b"1.5", b"1.55", b"-1", b"-1.5", b"-10"),
        TIME: (None, b"00:00:00", b"00:00:01", b"00:00:01.5", b"100:00:01", b"-00:00:01", b"-00:00:01.5"),
        DOUBLE: (None, b"0", b"1", b"-1", b"1e300"),
        BYTES: (None, b"", b"\0", b"\0\0", b"a", b"aa", b"\xff"),
        PADDED: (None, b"", b"a", b"a!", b"a\0", b"a b", b"a  b", b"\xff"),
    }
    keys = [value_key(text, kind, b" ", descending=descending) for text in texts[kind]]
    assert not any(a.startswith(b) for a, b in itertools.permutations(keys, 2))


# -- rows
# ----------------------------------------------------------------------------------------------------------


def outcome(make: Callable[..., Any], *arguments: object) -> object:
    try:
        return make(*arguments)
    except (ValueError, ProtocolError) as error:
        return type(error)
    except OtherName as other:
        return OtherName, other.name


texts = {
    NUMBER: decimals.map(str.encode),
    TIME: st.builds(time_text, moments, st.integers(0, 6)),
    DOUBLE: doubles.map(lambda value: repr(value).encode()),
    BYTES: st.binary(max_size=4),
    PADDED: st.binary(max_size=6),
}
names = st.sampled_from((b"", b"one_ci", b"other_ci"))


@st.composite
def results(draw: st.DrawFn) -> tuple[int, int, list[Part], list[bytes]]:
    """Columns, how many are shown, parts of keys, and rows' payloads: nearly all of them right."""
    columns = draw(st.integers(1, 5))
    parts = []
    for _ in range(draw(st.integers(0, 3))):
        named = draw(st.one_of(st.just(-1), st.integers(0, columns - 1)))
        kind, pad = draw(st.sampled_from(KINDS)), draw(st.sampled_from(PADS))
        column = draw(st.integers(0, columns - 1))
        parts.append(Part(kind, draw(st.booleans()), column, pad, named, draw(names)))
    fill = {part.column: texts[part.kind] for part in parts} | {
        part.named: st.one_of(st.just(part.name), st.just(part.name), names)
        for part in parts
        if part.named >= 0
    }
    value = [
        st.one_of(
            st.none(), fill.get(column, st.binary(max_size=3)), fill.get(column, st.binary(max_size=80))
        )
        for column in range(columns)
    ]
    whole = st.tuples(*value).map(encode_row)
    spoilt = st.one_of(whole.map(lambda row: row[:-1]), st.binary(min_size=1, max_size=9))
    payloads = draw(st.lists(st.one_of(whole, whole, whole, whole, spoilt), max_size=8))
    return (
        columns,
        draw(st.integers(0, columns)),
        parts,
        [one for one in payloads if one[:1] not in (b"\xfe", b"\xff")],
    )


def block(payloads: Sequence[bytes]) -> bytes:
    return b"".join(packet(piece, 9) for payload in payloads for piece in physical(payload, SMALL))


@both
@given(results())
def test_both_make_the_same(result: tuple[int, int, list[Part], list[bytes]]) -> None:
    columns, shown, parts, payloads = result
    rows_ = block(payloads)
    found = outcome(keyed, rows_, columns, shown, parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_packets, "keyed_rows", row_packets.PYTHON[3])
        assert outcome(keyed, rows_, columns, shown, parts) == found


@both
@given(results(), st.integers(0, 40), st.sampled_from((SMALL, 5, 0, -1, 0xFFFFFF)))
@example((1, 1, [Part(NUMBER, False, 0)], [b"\x015"]), 0, SMALL)
def test_any_cut_and_any_limit(result: tuple[int, int, list[Part], list[bytes]], pos: int, most: int) -> None:
    """Nothing is read behind the end, and each row is as it is made alone."""
    columns, shown, parts, payloads = result
    whole = block(payloads)
    for end in range(len(whole) + 1):
        window = memoryview(whole[:end] + ROW)[:end]  # whoever reads too far finds another row
        keys, packets_, behind = row_packets.keyed_rows(window, pos, columns, shown, tuple(parts), most)
        assert len(keys) == len(packets_)
        assert behind == pos if not keys else pos < behind <= end
        if keys and most == SMALL:
            assert keyed(whole[pos:behind], columns, shown, parts) == (keys, packets_)


def test_rows() -> None:
    payloads = [
        encode_row([b"a", b"7", b"hidden"]),
        encode_row([None, b"-7", b"h" * 90]),
        encode_row([b"b", None, b""]),
    ]
    parts = [Part(NUMBER, True, 1), Part(BYTES, False, 0)]
    keys, found = keyed(block(payloads), 3, 2, parts)
    assert found == [packet(encode_row(decode_row(one, 3)[:2]), 0) for one in payloads]
    assert keys[0] == b"\xfe\x7e\xc8\xff\x01a\0\0"
    assert sorted(keys) == [keys[0], keys[1], keys[2]]


@pytest.mark.parametrize("length", [250, 251, 0xFFFF, 0x10000])
def test_long_values(monkeypatch: pytest.MonkeyPatch, length: int) -> None:
    for where in (packets, rows, sort_keys):
        monkeypatch.setattr(where, "MAX_PAYLOAD", 0xFFFFFF)
    row = encode_row([b"\0" * length, b"v" * length])
    keys, found = keyed(packet(row, 5), 2, 2, [Part(BYTES, False, 0)])
    assert keys == [b"\1" + b"\0\xff" * length + b"\0\0"]
    assert found == [packet(row, 0)]


def test_another_name() -> None:
    part = Part(BYTES, False, 0, b"", 1, b"one_ci")
    rows_ = block([encode_row([b"a", b"one_ci"]), encode_row([b"b", b"other_ci"])])
    with pytest.raises(OtherName) as caught:
        keyed(rows_, 2, 1, [part])
    assert (caught.value.part, caught.value.name) == (part, b"other_ci")


@both
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((ROW, 0, 1, 1, ()), TypeError),
        (("a row", 0, 1, 1, (), SMALL), TypeError),
        ((ROW, b"", 1, 1, (), SMALL), TypeError),
        ((ROW, 0, 1, 1, [], SMALL), TypeError),
        ((ROW, 0, 1, 1, (b"n",), SMALL), TypeError),
        ((ROW, 0, 1, 1, ((b"n", 0, 0),), SMALL), TypeError),
        ((ROW, -1, 1, 1, (), SMALL), ValueError),
        ((ROW, 0, -1, 0, (), SMALL), ValueError),
        ((ROW, 0, 1, 2, (), SMALL), ValueError),
        ((ROW, 0, 1, -1, (), SMALL), ValueError),
        ((ROW, 0, 1, 1, (), 1 << 24), ValueError),
        ((ROW, 0, 1, 1, (Part(NUMBER, False, 1),), SMALL), ValueError),
        ((ROW, 0, 1, 1, (Part(NUMBER, False, -1),), SMALL), ValueError),
        ((ROW, 0, 1, 1, (Part(NUMBER, False, 0, b"", 1),), SMALL), ValueError),
        ((ROW, 0, 1, 1, (Part(PADDED, False, 0, b""),), SMALL), ValueError),
        ((ROW, 1 << 70, 1, 1, (), SMALL), OverflowError),
    ],
)
def test_wrong_arguments_are_refused(arguments: tuple[Any, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        row_packets.keyed_rows(*arguments)


@both
def test_a_kind_that_is_none() -> None:
    """It makes no row: who calls says what is wrong."""
    assert row_packets.keyed_rows(ROW, 0, 1, 1, (Part(b"?", False, 0),), SMALL) == ([], [], 0)
