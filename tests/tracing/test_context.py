"""Contexts of traces: which are taken from a statement, and how they are handed on."""

from __future__ import annotations

import pytest

from proxy.tracing.context import Parent, comment, in_comment, parse, traceparent
from proxy.tracing.spans import new_id
from rewriter.fingerprint import first_word, lift

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
VALUE = f"00-{TRACE}-{SPAN}-01"
WRITTEN = f"traceparent='{VALUE}'"


@pytest.mark.parametrize(
    ("value", "flags"),
    [
        (VALUE, 1),
        (VALUE[:-2] + "00", 0),
        (VALUE[:-2] + "03", 3),
        ("01" + VALUE[2:], 1),
        ("cc" + VALUE[2:] + "-what-comes-later", 1),
    ],
)
def test_contexts(value: str, flags: int) -> None:
    assert parse(value.encode()) == Parent(TRACE, SPAN, flags)


@pytest.mark.parametrize(
    "value",
    [
        "",
        VALUE.upper(),
        "ff" + VALUE[2:],
        VALUE + "-more",
        VALUE + "0",
        VALUE[:-1],
        "cc" + VALUE[2:] + "later",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        VALUE + "\n",
        VALUE.replace("-", "_"),
    ],
)
def test_what_is_none(value: str) -> None:
    assert parse(value.encode()) is None
    assert in_comment(f"SELECT 1 /*traceparent='{value}'*/".encode()) is None


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT 1 /*{WRITTEN}*/",
        f"SELECT 1 /*{WRITTEN}*/ ;\n",
        f"/*{WRITTEN}*/ SELECT 1",
        f"  /* {WRITTEN} */SELECT 1 /* other */",
        f"SELECT 1 /*a='%2F',b='x',{WRITTEN},z='y'*/",
        f"SELECT 1 /* traceparent={VALUE} */",
        f"SELECT 1 /* traceparent = '{VALUE}' */",
        f"SELECT '{'x' * 100_000}' /*{WRITTEN}*/",
    ],
)
def test_where_a_comment_may_stand(sql: str) -> None:
    assert in_comment(sql.encode()) == Parent(TRACE, SPAN, 1)


@pytest.mark.parametrize(
    "sql",
    [
        f"INSERT INTO log VALUES ('/*{WRITTEN.replace(chr(39), '')}*/')",
        f"SELECT 1 /*{WRITTEN}*/ FROM t",
        f"SELECT '{VALUE}'",
        f'SELECT "{WRITTEN}" /* something else */',
        f"SELECT 1 -- {WRITTEN}",
        "SELECT traceparent FROM t",
        f"SELECT 1 /*traceparents='{VALUE}'*/",
    ],
)
def test_where_it_may_not(sql: str) -> None:
    assert in_comment(sql.encode()) is None


def test_the_state_goes_on() -> None:
    found = in_comment(f"SELECT 1 /*{WRITTEN},tracestate='congo%3Dt61%2Crojo%3D00f0'*/".encode())
    assert found is not None
    assert found.state == "congo=t61,rojo=00f0"
    for state in ("a%0Ab", "%C3%A4", "x" * 600):
        found = in_comment(f"SELECT 1 /*{WRITTEN},tracestate='{state}'*/".encode())
        assert found is not None
        assert found.state == ""


@pytest.mark.parametrize("state", ["", "a=b,c=d", "*/ DROP TABLE t; /*", "it's", "\\'", "!@$"])
def test_what_is_handed_on_is_one_comment(state: str) -> None:
    written = comment(TRACE, SPAN, 1, state)
    assert in_comment(written + b"SELECT 1") == Parent(TRACE, SPAN, 1, state)
    assert written.count(b"*/") == 1
    assert lift(written + b"SELECT 5")[1][1:] == (b"5", b"")
    assert traceparent(TRACE, SPAN, 1) == VALUE


def test_ids() -> None:
    made = {new_id(64) for _ in range(100)}
    assert len(made) == 100
    assert {len(one) for one in made} == {16}
    assert len(new_id(128)) == 32


@pytest.mark.parametrize(
    ("text", "verb"),
    [
        ("SELECT 1", "SELECT"),
        ("  /* a */ (/**/( select 1", "SELECT"),
        ("", ""),
        ("5", ""),
        ("/* not closed", ""),
        ("/*" + "x" * 3000 + "*/ SELECT", ""),
    ],
)
def test_verbs(text: str, verb: str) -> None:
    assert first_word(text.encode()) == verb
