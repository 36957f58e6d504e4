"""One ID to its host's text: Python's form and C's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from config.layout import PINTEREST
from rewriter.route import by_id
from rewriter.route.id_lists import Bits
from rewriter.splice import Label, Part, Template
from tests.support.compiler import may_compile

Form = Callable[..., tuple[str, int, bytes, bytes] | None]
FORMS: dict[str, Form] = {"Python": by_id.PYTHON}
ROWS: dict[str, Callable[..., Any]] = {"Python": by_id.PYTHON_ROW}
if by_id.COMPILED:
    FORMS["C"] = by_id.text_by_id
    ROWS["C"] = by_id.row_by_id

WHOLE = (1 << 64) - 1
PINS = Bits(
    WHOLE & ~(0xFFFF << 46 | PINTEREST.local_mask),
    1 << 36,
    PINTEREST.shard_shift,
    0xFFFF,
    PINTEREST.local_mask,
)
PLACES = {0: ("a", b"db0"), 7: ("b", b"db7"), 65535: ("c", b"db65535")}
NAMED = Template((b"SELECT ", Label((b"a `", 0, b"` ", 1)), b" + ", 4, b", 5% FROM ", 2, b" = ", 3), (3, 4))
FULL = (1 << 64) - 1

both = pytest.mark.skipif(not by_id.COMPILED, reason="no compiler: the twin in C is NOT tested")


@pytest.mark.skipif(not may_compile(), reason="no compiler, or no headers of Python")
def test_where_it_can_be_compiled_the_twin_is_used() -> None:
    assert by_id.COMPILED, "run: make setup"


@pytest.fixture(params=list(FORMS.values()), ids=list(FORMS))
def form(request: pytest.FixtureRequest) -> Form:
    chosen: Form = request.param
    return chosen


def pin(shard: int, local: int) -> bytes:
    return b"%d" % PINTEREST.compose(shard=shard, type=1, local=local)


def test_the_text_of_an_id(form: Form) -> None:
    found = form(pin(7, 5), (b"x`y", pin(7, 5)), PINS, PLACES, NAMED)
    base = 7 << 46 | 1 << 36
    assert found == ("b", 7, b"SELECT `a ``x``y`` %b` + %d, 5%% FROM db7 = 5" % (pin(7, 5), base), b"db7")


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"-5", b"+5", b" 5", b"5 ", b"1_0", b"0x10", b"\xc2\xb2", b"5\0", b"9" * 39, b"9" * 40, b"0",
        b"18446744073709551616", b"%d" % ((1 << 64) + int(pin(7, 5))), pin(1, 5),
        b"%d" % PINTEREST.compose(shard=7, type=2, local=5),
    ],
)  # fmt: skip
def test_what_can_be_no_row(form: Form, raw: bytes) -> None:
    assert form(raw, (raw,), PINS, PLACES, Template((b"x",))) is None


def test_zeros_in_front(form: Form) -> None:
    raw = b"0" * 10 + pin(7, 5)
    assert form(raw, (raw,), PINS, PLACES, Template((0, b" ", 2), (2, 3))) == ("b", 7, raw + b" 5", b"db7")


def test_all_bits(form: Form) -> None:
    raw = b"%d" % FULL
    bits = Bits(0, 0, 48, 0xFFFF, FULL)
    assert form(raw, (), bits, PLACES, Template((1, b" ", 2), (1, 2))) == (
        "c",
        65535,
        raw + b" 0",
        b"db65535",
    )


def test_a_template_with_a_value_too_many(form: Form) -> None:
    with pytest.raises(IndexError):
        form(pin(7, 5), (b"a",), PINS, PLACES, Template((b"x", 4)))


digits = st.integers(0, (1 << 65) - 1) | st.builds(
    PINTEREST.compose,
    shard=st.sampled_from((0, 1, 7, 65535)),
    type=st.sampled_from((1, 2)),
    local=st.integers(0, 99),
)
raws = st.builds(
    bytes.__add__, st.sampled_from((b"", b"0", b"0" * 18)), digits.map(b"%d".__mod__)
) | st.binary(max_size=4)
values = st.lists(st.binary(max_size=30), max_size=3).map(tuple)


def outcome(form: Callable[..., object], *arguments: Any) -> object:
    try:
        return form(*arguments)
    except Exception as error:
        return type(error)


@both
@given(raws, values, st.data())
@example(pin(7, 5), (b"%d", b"`"), None)
def test_both_forms_are_the_same(raw: bytes, known: tuple[bytes, ...], data: Any) -> None:
    last = len(known)
    parts: list[Part] = [b"%", last, last + 1, last + 2, last]
    if data is not None:
        labels = st.lists(st.integers(0, last - 1), max_size=2) if last else st.just([])
        some = st.binary(max_size=9) | st.integers(0, last + 3) | labels.map(lambda all: Label((b"n ", *all)))
        parts = data.draw(st.lists(some, min_size=1, max_size=40))
    template = Template(parts, (last + 1, last + 2))
    given = raw, known, PINS, PLACES, template
    assert outcome(by_id.text_by_id, *given) == outcome(by_id.PYTHON, *given)


@both
@pytest.mark.parametrize(
    "wrong",
    [
        (), (1, (), PINS, PLACES, NAMED), (b"1", [], PINS, PLACES, NAMED), (b"1", (), (1,), PLACES, NAMED),
        (b"1", (), PINS._replace(mask=-1), PLACES, NAMED), (b"1", (), PINS._replace(shift=64), PLACES, NAMED),
        (b"1", (), PINS, None, NAMED), (pin(7, 5), (), PINS, {7: ("b", "db7")}, NAMED),
        (pin(7, 5), (), PINS, {7: b"b"}, NAMED), (pin(7, 5), (), PINS, PLACES, None),
        (pin(7, 5), ("a", "b"), PINS, PLACES, NAMED),
    ],
)  # fmt: skip
def test_what_it_is_not_made_for_is_refused(wrong: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError, AttributeError)):
        by_id.text_by_id(*wrong)


# -- the row of an INSERT
# ------------------------------------------------------------------------------------------

COMMENTS = 4 << 36
ANY = Bits(WHOLE & ~(WHOLE >> 2), 0, PINTEREST.shard_shift, 0xFFFF, 0)
OF_PIN = by_id.RowById(0, b'"pin_id"', ANY, COMMENTS)
OF_KEY = by_id.RowById(0, b"", ANY, None)
PARTS = (b"INSERT INTO ", 1, b" 5% (", 2, b", ", 3, b") ", 0)


@pytest.fixture(params=list(ROWS.values()), ids=list(ROWS))
def row(request: pytest.FixtureRequest) -> Callable[..., Any]:
    chosen: Callable[..., Any] = request.param
    return chosen


def test_the_text_of_a_row(row: Callable[..., Any]) -> None:
    raw = b'{"pin_id": %b}\'' % pin(7, 5)
    base = 7 << 46 | COMMENTS
    text = b"INSERT INTO db7 5%% (%d, ) %b" % (base, raw)
    assert row(raw, (raw,), OF_PIN, PLACES, Template(PARTS)) == ("b", 7, text, b"db7", base)
    raw = pin(7, 5)
    text = b"INSERT INTO db7 5% (0, ) " + raw
    assert row(raw, (raw,), OF_KEY, PLACES, Template(PARTS)) == ("b", 7, text, b"db7", None)
    raw = b"%d" % PINTEREST.compose(shard=65535, type=1023, local=1)
    assert row(raw, (raw,), OF_KEY._replace(id_offset=COMMENTS), PLACES, Template((2,)))[4] == (
        65535 << 46 | COMMENTS
    )


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"-5", b"5 ", b"9" * 40, b"18446744073709551615", b"18446744073709551616", pin(1, 5), b"NULL",
        b"%d" % (1 << 63), b'{"pin_id": 5}\'',
    ],
)  # fmt: skip
def test_no_row(row: Callable[..., Any], raw: bytes) -> None:
    assert row(raw, (raw,), OF_KEY, PLACES, Template((b"x",))) is None


def test_a_row_with_a_value_too_many(row: Callable[..., Any]) -> None:
    with pytest.raises(IndexError):
        row(pin(7, 5), (b"a",), OF_KEY, PLACES, Template((b"x", 4)))


@both
@given(raws, values, st.booleans(), st.lists(st.binary(max_size=9) | st.integers(0, 6), max_size=20))
def test_both_forms_of_a_row_are_the_same(
    raw: bytes, known: tuple[bytes, ...], within: bool, parts: list[Part]
) -> None:
    place = OF_PIN if within else OF_KEY
    given = b'{"pin_id": %b}\'' % raw if within else raw, known, place, PLACES, Template(parts)
    assert outcome(by_id.row_by_id, *given) == outcome(by_id.PYTHON_ROW, *given)


@both
@pytest.mark.parametrize(
    "wrong",
    [
        (), (1, (), OF_KEY, PLACES, NAMED), (b"1", [], OF_KEY, PLACES, NAMED),
        (b"1", (), (1,), PLACES, NAMED), (b"1", (), (0, b"", None, None), PLACES, NAMED),
        (b"1", (), (0, "", ANY, None), PLACES, NAMED), (b"1", (), OF_KEY, None, NAMED),
        (b"1", (), OF_KEY._replace(id_offset=-1), PLACES, NAMED),
        (pin(7, 5), (), OF_KEY, {7: ("b", "db7")}, NAMED), (pin(7, 5), (), OF_KEY, PLACES, None),
    ],
)  # fmt: skip
def test_how_no_row_is_placed(wrong: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError, AttributeError)):
        by_id.row_by_id(*wrong)
