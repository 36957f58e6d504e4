"""The ID in the JSON of a row: what is found without reading all of a text is what reading it gives."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rewriter.bound import BindError
from rewriter.plans.insert_rows import Hint
from rewriter.plans.inserting import Insert, _in_object
from rewriter.route import by_id
from rewriter.route.id_lists import Bits
from rewriter.route.routing import Key
from rewriter.route.values import Value
from rewriter.splice import Template
from tests.rewriter.support import rewriter
from tests.rewriter.test_short_way import ENV

PATH = ("pin_id",)

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(0, 10**18),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["5", "007", "pin_id", '"pin_id": 5', "{", "}", ",", "it's"]),
)
NAMES = st.one_of(
    st.just("pin_id"), st.text(max_size=4), st.sampled_from(["user_id", "PIN_ID", 'a"pin_id', "p\\in_id"])
)
OBJECTS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
LAYOUTS = st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")])


def read(text: bytes) -> object:
    """What the whole text has at the path: an integer, None for nothing that is one, or "refused"."""
    plan = rewriter().plan(b"INSERT INTO comments (data) VALUES ('{}')", ENV)[0]
    assert isinstance(plan, Insert)
    hint = Hint("json", Key("id"), Value("bytes", 0), PATH)
    try:
        return plan._json(hint, (text.hex().encode() + b"'",))
    except BindError:
        return "refused"


@given(
    st.lists(st.tuples(NAMES, OBJECTS), max_size=4), LAYOUTS, st.booleans(), st.sampled_from(["", " ", "\n "])
)
@example([("pin_id", 5), ("pin_id", 6)], (",", ":"), False, "")
@example([("a", {"pin_id": 5})], (",", ":"), False, "")
@example([("a", 'x", "pin_id": 7, "b": "')], (",", ":"), False, "")
def test_it_is_what_reading_gives(
    members: list[tuple[str, object]], layout: tuple[str, str], ascii_only: bool, before: str
) -> None:
    comma, colon = layout
    inside = [
        json.dumps(name, ensure_ascii=ascii_only)
        + colon
        + json.dumps(value, ensure_ascii=ascii_only, separators=layout)
        for name, value in members
    ]
    text = f"{before}{{{comma.join(inside)}{before}}}".encode("utf-8", "surrogatepass")
    found = _in_object(text + b"'", PATH)
    assert found is None or found == read(text)
    assert placed(text + b"'") == placed(b"'" + text + b"'") == found


def placed(raw: bytes) -> int | None:
    """The ID by which the row with that text is placed."""
    place = by_id.RowById(0, b'"pin_id"', Bits(0, 0, 63, 0, 0), 0)
    forms = {form(raw, (raw,), place, {0: ("host", b"db0")}, Template((0,))) for form in FORMS}
    assert len(forms) == 1
    found = _in_object(raw, PATH)
    within = found is not None and found < 1 << 64
    assert forms == {("host", 0, raw, b"db0", 0) if within else None}
    return found


FORMS = (by_id.PYTHON_ROW, by_id.row_by_id)


@given(
    st.lists(
        st.sampled_from(
            [
                b'"pin_id"', b'"a"', b'""', b'"', b":", b",", b"{", b"}", b" ", b"\t", b"\x0b", b"\x0c",
                b"\x1c", b"\r\n", b"5", b"05", b"0", b"1.5", b"-1", b"true", b"[1]", b"\\", b"'",
                b"\0", b"9" * 19,
                b"9" * 20, b'"5"', b'"05"', b'"%b"' % (b"7" * 20), b'"pin_id":', b'"a": 1,', b'"a":"b" ,',
                b'"pin_id": 5}', b"\xc3\xa4",
            ]
        ),
        max_size=12,
    ),
    st.booleans(),
)  # fmt: skip
@example([b'"a": 1,', b'"pin_id": 5}'], True)
def test_any_text_is_placed_alike(pieces: list[bytes], begun: bool) -> None:
    text = b"{" * begun + b"".join(pieces)
    placed(text + b"'")
    placed(b"'" + text + b"'")
    placed(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"pin_id": 5}',
        '{"pin_id":5,"text":"x"}',
        ' { "user" : "a, {b}" , "n" : -1.5e3, "t": true, "pin_id" : "5" , "x": [1]}',
        '{"text": "' + "a" * 5000 + '", "pin_id": 5, "more": {"user_id": 7}}',
    ],
)
def test_the_usual_is_found(text: str) -> None:
    assert _in_object(text.encode() + b"'", PATH) == 5
    assert read(text.encode()) == 5


@pytest.mark.parametrize(
    "text",
    [
        '{"pin_id": 5.0}',
        '{"pin_id": 5e3}',
        '{"pin_id": -5}',
        '{"pin_id": 05}',
        '{"pin_id": null}',
        '{"pin_id": true}',
        '{"pin_id": "5x"}',
        '{"pin_id": 12345678901234567890}',
        '{"pin_id": 5, "pin_id": 6}',
        r'{"pin_id": 5, "pin\u005fid": 6}',
        '{"a": {"pin_id": 5}}',
        '{"a": [{"b": 1}], "pin_id": 5}',
        '[{"pin_id": 5}]',
        '"pin_id": 5',
        '{"pin_id": 5',
        '{""pin_id"": 5}',
        "",
    ],
)
def test_the_rest_is_read(text: str) -> None:
    assert _in_object(text.encode() + b"'", PATH) is None


def test_names_that_json_writes_otherwise_are_read() -> None:
    assert _in_object(b'{"a": 5}\'', ("a",)) == 5
    assert _in_object(b'{"a.b": 5, "axb": 6}\'', ("a.b",)) == 5
    for path in (('a"b',), ("a\\b",), ("ä",), (0,), ("a", "b"), ("a\n",)):
        assert _in_object(b'{"a": 5}\'', path) is None
