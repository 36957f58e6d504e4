"""FLOAT columns that a SELECT reads for a write."""

from __future__ import annotations

import pytest

from config.load import load_schema, load_topology
from demo.documents import SCHEMA, topology_document
from rewriter.planner import Rewriter
from rewriter.plans import Env, ReadThenWrite, ShardWrite
from tests.support.cases import cases_in

_COLUMNS = {"name": "VARCHAR(40)", "f": "FLOAT", "d": "DOUBLE", "n": "INT"}
_TABLES = {
    "pins": {"kind": "object", "keyspace": "main", "type": 1, "columns": _COLUMNS},
    "likes": {
        "kind": "mapping",
        "keyspace": "main",
        "from": "user_id",
        "to": "pin_id",
        "columns": {
            "user_id": "BIGINT UNSIGNED",
            "pin_id": "BIGINT UNSIGNED",
            "sequence": "BIGINT",
            "w": "FLOAT",
        },
    },
}
_MODEL = load_schema({**cases_in(SCHEMA), "databases": {"demo": {"tables": _TABLES}}})
_TOPOLOGY = load_topology(topology_document(4, [("a:3306", None), ("b:3306", None)]), schema=_MODEL)


def read(sql: str) -> str:
    """The SELECT that finds what is written."""
    plan, literals = Rewriter(_MODEL, _TOPOLOGY).plan(sql.encode(), Env(database="demo"))
    if isinstance(plan, ShardWrite):
        assert plan.found is not None
        plan = plan.found
    assert isinstance(plan, ReadThenWrite)
    return plan.select.render(literals).decode()


@pytest.mark.parametrize(
    ("select", "found"),
    [
        ("SELECT f, d, n FROM pins", "SELECT ((f) * 1e0), d, n FROM pins"),
        ("SELECT d, f, f FROM pins", "SELECT d, CAST(f AS CHAR), ((f) * 1e0) FROM pins"),
        ("SELECT f + 1, n, IF(n, f, 1) FROM pins", "SELECT f + 1, n, ((IF(n, f, 1)) * 1e0) FROM pins"),
        # what may be a text, a date or an ID stays as it is
        (
            "SELECT IF(f > 1, 'a', 'b'), IF(n, f, 1), 1 FROM pins",
            "SELECT IF(f > 1, 'a', 'b'), IF(n, f, 1), 1 FROM pins",
        ),
        (
            "SELECT x.id, x.name, x.d FROM (SELECT * FROM pins) x",
            "SELECT x.id, x.name, ((x.d) * 1e0) FROM (SELECT * FROM pins) x",
        ),
        (
            "SELECT 1, 2, 3 UNION SELECT f, n, n FROM pins",
            "SELECT 1, 2, 3 UNION SELECT ((f) * 1e0), n, n FROM pins",
        ),
        ("SELECT n, name, MAX(f) FROM pins", "SELECT n, name, ((MAX(f)) * 1e0) FROM pins"),
        (
            "SELECT p.* FROM pins p",
            "SELECT `p`.`id`, `p`.`name`, ((`p`.`f`) * 1e0), `p`.`d`, `p`.`n` FROM pins p",
        ),
    ],
)
def test_what_is_inserted(select: str, found: str) -> None:
    assert read(f"INSERT INTO pins (n, name, f) {select}") == found


def test_what_is_assigned() -> None:
    one = read("UPDATE /*+ scatter */ pins p JOIN likes l ON l.pin_id = p.id SET p.f = l.w, p.name = l.w")
    assert one.startswith("SELECT (((l.w) * 1e0)), (CAST(l.w AS CHAR)), `p`.`id` FROM")
    other = read("UPDATE /*+ scatter */ pins SET f = (SELECT MAX(w) FROM likes), n = (SELECT 1 FROM likes)")
    assert other.startswith(
        "SELECT ((((SELECT MAX(w) FROM likes)) * 1e0)), ((SELECT 1 FROM likes)), `pins`.`id`"
    )


def test_rows_that_are_named_by_all_their_columns() -> None:
    found = read("DELETE /*+ scatter */ FROM likes LIMIT 5")
    assert "(`likes`.`w` * 1e0)" in found
