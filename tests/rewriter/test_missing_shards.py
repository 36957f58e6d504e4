"""IDs of shards that the layout knows and the topology lacks: an error, wherever such an ID names a row."""

from __future__ import annotations

from typing import Any

import pytest

from config.layout import INSTAGRAM
from rewriter.explain import explain
from rewriter.plans import BindError, Bound, Env
from tests.rewriter.support import SLOTS, TOPOLOGY, expand, first, new_id, rewriter, values_of

PIN = new_id("pins", 40, 7)
PHOTO = INSTAGRAM.compose(time=10**9, shard=50, sequence=3)
LAST = new_id("pins", 65535, 1)


def bound(sql: str, *parameters: str) -> Bound | str:
    """The statement bound, or the error that it ends with."""
    env = Env(database="demo", parameters=bool(parameters))
    plan, literals = rewriter().plan(expand(sql).encode(), env)
    given = {f"?{mark}{at}": one.encode() for at, one in enumerate(parameters) for mark in ("", "L")}
    values = values_of(plan, literals, {**SLOTS, **given})
    try:
        return plan.bind(values, TOPOLOGY, first)
    except BindError as error:
        return f"{error.name}: {', '.join(error.arguments.values())}"


NAMED = [
    "SELECT * FROM pins WHERE id = <pins 40 7>",
    "SELECT * FROM pins WHERE <pins 40 7> = id",
    "SELECT * FROM pins WHERE id <=> '<pins 40 7>'",
    f"SELECT * FROM pins WHERE id = 0x{PIN:X}",
    "SELECT * FROM pins WHERE id = <pins 40 6> + 1",
    "SELECT * FROM pins WHERE id = <pins 1 7> OR id = <pins 40 7>",
    "SELECT * FROM pins WHERE id = <pins 40 7> OR data = 'x'",
    "SELECT * FROM pins WHERE id IN (<pins 40 7>)",
    "SELECT * FROM pins WHERE id IN (<pins 1 7>, <pins 40 7>)",
    "SELECT * FROM pins WHERE id IN (<pins 1 7>, <pins 2 7>, <pins 40 7>)",
    "SELECT * FROM pins WHERE id IN ('<pins 1 7>', '<pins 40 7>')",
    "SELECT * FROM pins WHERE id IN (<pins 1 7>, <pins 2 7>, <pins 40 7>) ORDER BY ts LIMIT 3",
    "SELECT COUNT(*) FROM pins WHERE id IN (<pins 1 7>, <pins 40 7>)",
    "SELECT * FROM pins WHERE (id, data) IN ((<pins 1 7>, 'a'), (<pins 40 7>, 'b'))",
    "SELECT * FROM pins WHERE id BETWEEN <pins 40 6> AND <pins 40 8>",
    "SELECT * FROM pins WHERE id >= <pins 40 6> AND id <= <pins 40 8>",
    "SELECT * FROM pins WHERE id = <pins 40 7> AND data = 'x' FOR UPDATE",
    "UPDATE pins SET data = '{}' WHERE id = <pins 40 7>",
    "UPDATE pins SET data = '{}' WHERE id IN (<pins 1 7>, <pins 40 7>)",
    "DELETE FROM pins WHERE id = <pins 40 7>",
    "DELETE FROM pins WHERE id IN (<pins 1 7>, <pins 2 7>, <pins 40 7>)",
    "INSERT INTO pins (id, data) VALUES (<pins 40 7>, '{}')",
    "INSERT INTO pins (id, data) VALUES (<pins 1 7>, '{}'), (<pins 40 7>, '{}')",
    "REPLACE INTO pins (id, data) VALUES (<pins 40 7>, '{}')",
    """INSERT INTO pins (data) VALUES ('{"board_id": <boards 40 7>}')""",
    "SELECT * FROM board_has_pins WHERE board_id = <boards 40 7>",
    "UPDATE board_has_pins SET sequence = 1 WHERE board_id = <boards 40 7> AND pin_id = 1",
    "DELETE FROM board_has_pins WHERE board_id = <boards 40 7>",
    "INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES (<boards 40 7>, <pins 1 1>, 1)",
    f"SELECT * FROM photos WHERE id = {PHOTO}",
    f"SELECT * FROM photos WHERE id IN ({PHOTO}, {PHOTO ^ 50 << 10})",
    f"UPDATE photos SET caption = 'x' WHERE id = {PHOTO}",
    f"DELETE FROM photos WHERE id = {PHOTO}",
    f"INSERT INTO photos (id, user_id, caption) VALUES ({PHOTO}, 50, 'x')",
]


@pytest.mark.parametrize("sql", NAMED)
def test_a_statement_that_names_a_row_of_a_missing_shard_is_refused(sql: str) -> None:
    found = bound(sql)
    keyspace, shard = ("media", 50) if "photos" in sql else ("main", 40)
    assert isinstance(found, str)
    assert found.startswith("shard_missing: ID ")
    assert found.endswith(f", {shard}, {keyspace}")


@pytest.mark.parametrize(
    ("sql", "parameters"),
    [
        ("SELECT * FROM pins WHERE id = ?", [PIN]),
        ("SELECT * FROM pins WHERE id = ?", [f"'{PIN}'"]),
        ("SELECT * FROM pins WHERE id IN (?, ?, ?)", [new_id("pins", 1, 7), PIN, new_id("pins", 2, 7)]),
        ("UPDATE pins SET data = '{}' WHERE id = ?", [PIN]),
        ("DELETE FROM pins WHERE id = ?", [PIN]),
        ("INSERT INTO pins (id, data) VALUES (?, '{}')", [PIN]),
    ],
)
def test_prepared_statements_are_refused_as_well(sql: str, parameters: list[Any]) -> None:
    found = bound(sql, *map(str, parameters))
    assert found == f"shard_missing: ID {PIN}, 40, main"


def test_the_highest_shard_of_the_layout_is_no_exception() -> None:
    assert bound(f"SELECT * FROM pins WHERE id = {LAST}") == f"shard_missing: ID {LAST}, 65535, main"


@pytest.mark.parametrize(
    ("sql", "shards"),
    [
        ("SELECT * FROM pins WHERE id = <boards 40 7>", ""),  # no ID of this table
        ("SELECT * FROM pins WHERE id IN (<pins 1 7>, <boards 40 7>)", "1"),
        ("SELECT * FROM pins WHERE id = 5", ""),
        ("SELECT * FROM pins WHERE id = -5", ""),
        (f"SELECT * FROM pins WHERE id = {1 << 62 | PIN}", ""),
        (f"SELECT * FROM pins WHERE id = {1 << 64 | PIN}", ""),
        ("UPDATE pins SET data = '{}' WHERE id = <boards 40 7>", ""),
        ("SELECT * FROM pins WHERE id <> <pins 40 7>", "0123"),
        ("SELECT * FROM pins WHERE id NOT IN (<pins 40 7>, <pins 40 8>)", "0123"),
        ("SELECT * FROM pins WHERE NOT (id = <pins 40 7>)", "0123"),
        ("SELECT * FROM pins WHERE NOT (id IN (<pins 40 7>) AND data = 'x')", "0123"),
        ("SELECT * FROM pins WHERE id IN (<pins 1 7>, <pins 2 7>) AND id <> <pins 40 7>", "12"),
        ("SELECT * FROM pins WHERE id IN (<pins 1 7>, <pins 2 7>) AND NOT id = <pins 40 7>", "12"),
        ("SELECT * FROM pins WHERE id > <pins 40 7>", "0123"),
        ("SELECT * FROM pins WHERE id < <pins 40 7>", "0123"),
        ("SELECT * FROM pins WHERE id BETWEEN <pins 1 7> AND <pins 40 7>", "0123"),
        ("SELECT * FROM pins WHERE id NOT BETWEEN <pins 40 6> AND <pins 40 8>", "0123"),
        ("SELECT id = <pins 40 7> AS mine FROM pins WHERE id = <pins 1 7>", "1"),
        ("SELECT data FROM pins WHERE id = <pins 1 7> ORDER BY id = <pins 40 7>", "1"),
        ("SELECT * FROM pin_owned_by_board WHERE pin_id = <pins 1 7> AND board_id = <boards 40 7>", "1"),
        (f"SELECT * FROM photos WHERE id > {PHOTO}", "0123"),
    ],
)
def test_what_names_no_row_of_a_missing_shard_is_answered_as_ever(sql: str, shards: str) -> None:
    found = bound(sql)
    assert isinstance(found, Bound), found
    if shards:
        assert sorted({shard for one in found.statements for shard in one.shards}) == list(map(int, shards))
    else:
        assert found.warnings


def test_explain_route_tells_the_error() -> None:
    sql, env = expand("SELECT * FROM pins WHERE id = <pins 40 7>").encode(), Env(database="demo")
    rows = explain(rewriter(), sql, env, TOPOLOGY, SLOTS.__getitem__)
    assert ("plan", "refused") in rows
    assert ("id", f"{PIN}: shard 40, type 1, local 7 (a shard that is in no range)") in rows
    assert ("error", "shard_missing") in rows
