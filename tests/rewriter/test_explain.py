"""EXPLAIN ROUTE says what happens, in words that a client would read."""

from __future__ import annotations

from proxy.errors import ProxyError, error_lines
from rewriter.env import Env
from rewriter.explain import explain
from tests.rewriter.support import SLOTS, TOPOLOGY, expand, rewriter


def explained(sql: str) -> list[tuple[str, str]]:
    env = Env(database="demo")
    return explain(
        rewriter(), expand(sql).encode(), env, TOPOLOGY, lambda name: SLOTS.get(name, b"NULL"), error_lines
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
    assert error_lines("partial_commit", outer.details)[0].endswith("status page.")


def test_lines_of_an_error_can_be_put_together() -> None:
    """As in the column Advice, which has one line."""
    refused = {"statement": "UPDATE", "shards": "4", "reason": "a write does not scatter unless it says so"}
    text, remedy = error_lines("scatter_denied", refused)
    assert text.endswith("unless it says so.")
    assert remedy.startswith("Add ")
    assert not error_lines("unknown_table", {"database": "d", "table": "t"})[0].endswith(".")


def test_what_narrows_and_what_would() -> None:
    for sql, expected in (
        (
            "SELECT * FROM pins p WHERE (id = <pins 1 5>) IS TRUE AND ts > 5",
            [("narrowed by", "pins p: (id = <pins 1 5>) IS TRUE")],
        ),
        (
            "SELECT * FROM pins WHERE id LIKE 5 AND ts > 1",
            [
                ("does not narrow", "pins: id LIKE 5"),
                ("would narrow", "pins: a condition on `id`, by = or IN with constants"),
            ],
        ),
        (
            "SELECT * FROM board_has_pins m JOIN pins p ON p.id = m.pin_id WHERE m.board_id = <boards 1 5>",
            [
                ("narrowed by", "board_has_pins m: m.board_id = <boards 1 5>"),
                ("narrowed by", "pins p: what other tables' rows are equal to"),
            ],
        ),
        (
            "SELECT * FROM (SELECT board_id, COUNT(*) FROM board_has_pins GROUP BY 1, board_id) g"
            " WHERE g.board_id = <boards 1 5>",
            [("narrowed by", "board_has_pins: g.board_id = <boards 1 5>")],
        ),
        (
            "DELETE FROM board_has_pins WHERE pin_id = 5",
            [("would narrow", "board_has_pins: a condition on `board_id`, by = or IN with constants")],
        ),
        (
            "SELECT * FROM photos",
            [("would narrow", "photos: a condition on `id` or `user_id`, by = or IN with constants")],
        ),
        ("SELECT /*+ shard(2) */ * FROM pins", []),
        ("SELECT 1", []),
        ("SELECT * FROM nope", []),
    ):
        found = [row for row in explained(sql) if "narrow" in row[0]]
        assert found == [(section, expand(detail)) for section, detail in expected], sql
