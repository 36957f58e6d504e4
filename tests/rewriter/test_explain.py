"""EXPLAIN ROUTE says what happens, in words that a client would read."""

from __future__ import annotations

from proxy.errors import ProxyError, told
from rewriter.env import Env
from rewriter.explain import explain
from tests.rewriter.support import SLOTS, TOPOLOGY, expand, rewriter


def explained(sql: str) -> list[tuple[str, str]]:
    env = Env(database="demo")
    return explain(
        rewriter(), expand(sql).encode(), env, TOPOLOGY, lambda name: SLOTS.get(name, b"NULL"), told
    )


def test_a_change_that_reads_first_only_over_several_shards() -> None:
    rows = dict(explained("DELETE FROM pins WHERE id IN (<pins 1 5>, <pins 3 6>) ORDER BY ts LIMIT 1"))
    assert rows["plan"] == "read by a SELECT, then written"
    assert rows["read"].endswith("ORDER BY ts LIMIT 1")
    assert (
        dict(explained("DELETE FROM pins WHERE id IN (<pins 1 5>) ORDER BY ts LIMIT 1"))["plan"]
        == "write to shards"
    )


def test_a_refusal_in_the_client_s_words() -> None:
    rows = explained("UPDATE pins SET ts = NOW()")
    assert ("plan", "refused") in rows
    at = [name for name, _ in rows].index("error")
    assert rows[at][1].startswith("1105 (HY000): UPDATE names no ID")
    assert rows[at + 1][0] == ""
    assert "scatter_writes" in rows[at + 1][1]
    assert ("error", "1146 (42S02): Table 'demo.nope' doesn't exist") in explained("SELECT * FROM nope")


def test_a_warning_in_the_client_s_words() -> None:
    rows = dict(explained("SELECT * FROM pins WHERE id = 5"))
    assert rows["warning"].startswith("1105 (HY000): ID 5 matches no row of 'pins'")


def test_a_reason_that_is_a_sentence_ends_once() -> None:
    inner = ProxyError("host_unreachable", host="h", reason="no")
    outer = ProxyError("partial_commit", outcome="is done on a and failed on b", reason=str(inner))
    assert ".." not in str(outer)
    assert told("partial_commit", outer.details)[0].endswith("status page.")
