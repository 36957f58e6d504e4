"""Which statements are traced; and what clients may send never ends in an exception."""

from __future__ import annotations

from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.tracing import Tracing
from proxy.tracing.context import KEY
from proxy.tracing.otlp import summary
from proxy.tracing.spans import MOST, Call, Span, Trace
from proxy.tracing.traces import Traces, traces_of
from proxy.wire.binary import Attributes, parse_execute
from proxy.wire.constants import ColumnType
from proxy.wire.packets import lenenc_bytes
from rewriter.env import Env
from tests.rewriter.support import expand, rewriter

VALUE = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
COMMENT = b" /*traceparent='" + VALUE + b"'*/"


def traces(**settings: object) -> Traces:
    def spawn(*_: object) -> None:
        raise AssertionError("nothing is sent")

    found = traces_of(Tracing.model_validate({"endpoint": "http://127.0.0.1:1", **settings}), spawn, 0)  # type: ignore[arg-type]
    assert found is not None
    return found


def attribute(value: bytes, name: bytes = KEY) -> bytes:
    return b"\1\1\0\1" + pack("<H", ColumnType.STRING) + lenenc_bytes(name) + lenenc_bytes(value)


def test_what_is_traced() -> None:
    never, always = traces(), traces(share=1)
    assert never.of_query(b"SELECT 1") is None
    of_comment, of_attribute = (
        never.of_query(b"SELECT 1" + COMMENT),
        never.of_query(b"SELECT 1", attribute(VALUE)),
    )
    assert of_comment is not None
    assert of_attribute is not None
    assert (of_comment.id, of_comment.parent) == (of_attribute.id, of_attribute.parent)
    assert of_comment.at == 0
    assert attribute(VALUE)[of_attribute.at :] == VALUE
    unsampled = VALUE[:-2] + b"00"
    assert always.of_query(b"SELECT 1", attribute(unsampled)) is None
    assert always.of_query(b"SELECT 1" + COMMENT.replace(VALUE, unsampled)) is None
    root = always.of_query(b"SELECT 1")
    assert root is not None
    assert (root.parent, root.flags) == ("", 1)
    assert root.id != of_comment.id
    wrong = always.of_query(b"SELECT 1", attribute(b"00-" + b"0" * 52))  # as if there were none
    assert wrong is not None
    assert wrong.parent == ""
    assert traces_of(None, None, 0) is None  # type: ignore[arg-type]


def test_both_are_there() -> None:
    """The attribute is that of this execution; the comment may be older."""
    other = VALUE.replace(b"b7ad", b"0000")
    found = traces().of_query(b"SELECT 1" + COMMENT, attribute(other))
    assert found is not None
    assert found.parent == other[36:52].decode()


@given(st.binary(max_size=40), st.binary(max_size=40), st.booleans())
def test_any_bytes(before: bytes, behind: bytes, known: bool) -> None:
    made = traces()
    made.of_query(before + KEY + b"='" + VALUE + b"'" + behind, before + KEY + behind)
    packet = b"\x17" + before + KEY + behind
    types = pack("<H", ColumnType.LONG) if known else b""

    def attributes() -> Attributes:
        return parse_execute(packet, 1, types, True).extra

    made.of_execute(before, packet, attributes)


def test_a_statement_has_only_so_many_spans() -> None:
    spans: list[Span] = []
    trace = Trace(spans.append, None, hands_on=True)
    for _ in range(MOST + 5):
        trace.called(Call(trace, trace.new(), "SELECT", 0.0, 0.0, "h:1", "mysql", (), 0, 1, True))
    assert (len(spans), trace.left_out) == (MOST, 5)


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("SELECT id FROM pins WHERE id = <pins 2 7>", "SELECT demo.pins"),
        (
            "SELECT p.id FROM board_has_pins m JOIN pins p ON p.id = pin_id WHERE board_id = <boards 1 3>",
            "SELECT demo.board_has_pins demo.pins",
        ),
        ("SELECT p.id FROM pins p, boards b, usernames u WHERE p.ts = b.ts", "SELECT demo.pins demo.boards"),
        ("INSERT INTO pins (data) VALUES ('{}')", "INSERT demo.pins"),
        ("CALL reorder_board_pin(<boards 1 3>, 5, 6, NULL)", "CALL demo.board_has_pins"),
        ("ALTER TABLE boards ADD COLUMN x INT", "ALTER TABLE demo.boards"),
        ("ANALYZE TABLE countries", "ANALYZE TABLE"),
        ("SELECT 1", "SELECT"),
    ],
)
def test_summaries_name_the_sharded_tables(sql: str, shown: str) -> None:
    plan, _ = rewriter().plan(expand(sql).encode(), Env(database="demo"))
    assert summary(plan)[1] == shown


def test_the_queue_has_an_end() -> None:
    exporter = traces(queue=3).exporter
    for number in range(5):
        trace = Trace(exporter.put, None, hands_on=True)
        exporter.put(Call(trace, str(number), "SELECT", 0.0, 0.0, "h:1", "mysql", (), 0, 1, True))
    assert (len(exporter), exporter.dropped) == (3, 2)


@pytest.mark.parametrize(
    ("endpoint", "sent_to"),
    [
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("https://collector/", "https://collector/v1/traces"),
        ("http://[::1]:4318/otlp/v1/traces", "http://[::1]:4318/otlp/v1/traces"),
        ("https://collector/api?key=x", "https://collector/api?key=x"),
    ],
)
def test_endpoints(endpoint: str, sent_to: str) -> None:
    assert Tracing(endpoint=endpoint).endpoint == sent_to
