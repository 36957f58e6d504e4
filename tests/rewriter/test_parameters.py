"""Parameters of prepared statements: one plan for all values, routed by them, and what a server prepares."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rewriter.plans import BindError, Bound, Env, Insert, Plan, Sharded, Values
from tests.rewriter.support import TOPOLOGY, contract, expand, first, rewriter

ENV = Env(database="demo", parameters=True)


def planned(sql: str, parameters: Sequence[bytes]) -> tuple[Plan, Values]:
    """The plan of `sql`, and the values to bind it with."""
    plan, literals = rewriter().plan(expand(sql).encode(), ENV)
    values = [parameters[int(name.lstrip("?L"))] for name in plan.session_slots]
    return plan, literals + tuple(values)


def bound(sql: str, *parameters: str) -> Bound:
    plan, values = planned(sql, [expand(one).encode() for one in parameters])
    return plan.bind(values, TOPOLOGY, first)


def sent(sql: str, *parameters: str) -> list[str]:
    return [contract(one.sql.decode()) for one in bound(sql, *parameters).statements]


def probe(sql: str) -> str:
    """What a server is given to prepare."""
    plan, values = planned(sql, [b"?"] * 9)
    assert isinstance(plan, Sharded | Insert)
    return contract(plan.to_prepare(values, TOPOLOGY).sql.decode())


@pytest.mark.parametrize(
    "parameter", ["<pins 2 77>", "'<pins 2 77>'", "<pins 2 77>.", "140806207832141e0", "1.40806207832141e14"]
)
def test_an_id_routes(parameter: str) -> None:
    """Whatever type the client binds it with."""
    sql = "SELECT data FROM pins WHERE id = ?"
    assert sent(sql, parameter) == ["SELECT data FROM `db00002`.pins WHERE local_id = 77"]
    assert sent("UPDATE pins SET data = ? WHERE id = ?", "'x'", parameter) == [
        "UPDATE `db00002`.pins SET data = 'x' WHERE local_id = 77"
    ]
    assert sent("INSERT INTO pins (data, id) VALUES (?, ?)", "'x'", parameter) == [
        "INSERT INTO `db00002`.pins (data, local_id) VALUES ('x', 77)"
    ]


@pytest.mark.parametrize("parameter", ["NULL", "'x'", "0.5e0", "_binary'1'", "9007199254740993e0", "''"])
def test_what_is_no_id_does_not_narrow(parameter: str) -> None:
    """A read looks everywhere, as for such a literal; a write is refused."""
    assert len(bound("SELECT data FROM pins WHERE id = ?", parameter).statements) == 2
    with pytest.raises(BindError):
        bound("DELETE FROM pins WHERE id = ?", parameter)


def test_one_plan() -> None:
    """All executions share one, and text with `?` in it that is no prepared statement has another."""
    made = rewriter()
    sql = expand("SELECT * FROM pins WHERE id IN (?, ?) AND data = 'a?' LIMIT ?").encode()
    plans = {id(made.plan(sql, ENV)[0]) for _ in range(3)}
    assert len(plans) == 1
    assert len(made.parameters(sql, ENV).places) == 3
    assert not any(name.startswith("?") for name in made.plan(sql, Env(database="demo"))[0].session_slots)


def test_lists_limits_and_ranges() -> None:
    assert sent(
        "SELECT id FROM pins WHERE id IN (?, 5, ?) LIMIT ?, ?", "<pins 1 1>", "'<pins 1 2>'", "1", "2"
    ) == ["SELECT (local_id + <K pins 1>) AS id FROM `db00001`.pins WHERE local_id IN (1, 2) LIMIT 1, 2"]
    merge = bound("SELECT data FROM pins LIMIT ? OFFSET ?", "10", "20").merge
    assert merge is not None
    assert (merge.limit, merge.offset) == (10, 20)
    assert sent("SELECT data FROM pins WHERE id BETWEEN ? AND ?", "<pins 3 4>", "<pins 3 9>") == [
        "SELECT data FROM `db00003`.pins WHERE local_id BETWEEN 4 AND 9"
    ]


def test_colocation() -> None:
    """The JSON of a parameter names the shard, quotes and backslashes in it or not."""
    for text in (
        r"""'{"board_id": <boards 3 1>}'""",
        r"""'{"t": "it''s \\"q\\"", "board_id": <boards 3 1>}'""",
    ):
        (statement,) = bound("INSERT INTO pins (data) VALUES (?)", text).statements
        assert statement.shards == (3,)
    (statement,) = bound("INSERT INTO board_has_pins VALUES (?, ?, ?)", "<boards 2 5>", "1", "1").statements
    assert statement.shards == (2,)


def test_generated_ids() -> None:
    """NULL for the ID asks for the next one."""
    found = bound("INSERT INTO pins (id, data) VALUES (?, '{}')", "NULL")
    assert found.statements[0].sql == b"INSERT INTO `db00000`.pins (local_id, data) VALUES (NULL, '{}')"
    assert found.inserted[0].generated


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (
            "SELECT *, ? FROM pins WHERE id = ? AND ts > ? LIMIT ?",
            "SELECT (local_id + <K pins 0>) AS id, `data`, `ts`, ? AS `?` FROM `db00000`.pins "
            "WHERE local_id = ? AND ts > ? LIMIT ?",
        ),
        (
            "SELECT data FROM pins WHERE id IN (?, 5, ?) ORDER BY id",
            "SELECT data FROM `db00000`.pins WHERE local_id IN (?, 1, ?) ORDER BY local_id",
        ),
        (
            "SELECT data FROM pins WHERE id BETWEEN ? AND ?",
            "SELECT data FROM `db00000`.pins WHERE local_id BETWEEN ? AND ?",
        ),
        ("UPDATE pins SET data = ? WHERE id = ?", "UPDATE `db00000`.pins SET data = ? WHERE local_id = ?"),
        (
            "DELETE FROM email_to_user WHERE email = ?",
            "DELETE FROM `msdb00000`.email_to_user WHERE email = ?",
        ),
        (
            "INSERT INTO pins (id, data) VALUES (?, ?), (5, ?)",
            "INSERT INTO `db00000`.pins (local_id, data) VALUES (?, ?), (1, ?)",
        ),
    ],
)
def test_probes(sql: str, text: str) -> None:
    """What a server prepares has the same parameters in the same order."""
    assert probe(sql) == text


def test_filled_text() -> None:
    """For plans that have no slots: the text with literals where the marks stood, and only there."""
    made = rewriter()
    sql = b"SELECT DISTINCT '?', `?`, ? /* ? */ FROM pins WHERE data = ? LIMIT ?, ?"
    found = made.parameters(sql, ENV)
    assert [slot for _, slot in found.places] == ["?0", "?1", "?L2", "?L3"]
    assert found.fill([b"-1", b"'it''s'", b"2", b"3"]) == (
        b"SELECT DISTINCT '?', `?`,  -1  /* ? */ FROM pins WHERE data =  'it''s'  LIMIT  2 ,  3 "
    )
    assert made.parameters(b"SELECT '", ENV).places == ()
