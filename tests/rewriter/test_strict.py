"""Strict colocation, and assignments that leave a row where it is: no row gets onto a shard where conditions
on the columns that route would not look for it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from config.flavour import MARIADB
from config.load import load_schema, load_topology
from demo.documents import topology_document
from rewriter.planner import Rewriter
from rewriter.plans import BindError, Bound, Env, Reject
from tests.rewriter.support import LAYOUT, SHARDS, first, shards_of, values_of
from tests.rewriter.test_soundness import IDS, MISSING, Condition, Row, conditions, truth
from tests.support.cases import cases_in

CASES = cases_in(Path(__file__).with_name("strict_cases.yaml"))

ALBUM: dict[str, Any] = {"column": "album_id", "strict": True}
SCHEMA = load_schema(
    {
        "databases": {
            "demo": {
                "others": {"keyspace": "global"},
                "tables": {
                    "albums": {"kind": "object", "keyspace": "main", "type": 1},
                    "photos": {
                        "kind": "object",
                        "keyspace": "main",
                        "type": 2,
                        "colocate": ALBUM,
                        "columns": {"album_id": "BIGINT UNSIGNED", "a": "INT"},
                    },
                    "full": {
                        "kind": "object",
                        "keyspace": "main",
                        "type": 3,
                        "colocate": ALBUM,
                        "columns": {"album_id": "BIGINT UNSIGNED NOT NULL", "a": "INT"},
                    },
                    "m": {
                        "kind": "mapping",
                        "keyspace": "main",
                        "from": "a",
                        "to": "b",
                        "columns": {"a": "BIGINT NOT NULL", "b": "BIGINT", "sequence": "BIGINT", "n": "INT"},
                        "indexes": ["UNIQUE KEY (a, b)"],
                    },
                    "mp": {
                        "kind": "mapping",
                        "keyspace": "main",
                        "from": "a",
                        "to": "b",
                        "unique": "per_shard",
                        "columns": {"a": "BIGINT NOT NULL", "b": "BIGINT UNIQUE", "sequence": "BIGINT"},
                    },
                    "h": {
                        "kind": "hashed",
                        "keyspace": "lookup",
                        "key": "k",
                        "columns": {"k": "VARCHAR(20) PRIMARY KEY", "v": "INT"},
                    },
                    "t": {
                        "kind": "timed",
                        "keyspace": "media",
                        "shard_key": "u",
                        "columns": {"u": "BIGINT NOT NULL", "c": "INT"},
                    },
                    "s": {"kind": "single", "keyspace": "global", "columns": {"a": "INT PRIMARY KEY"}},
                },
            }
        }
    }
)
TOPOLOGY = load_topology(topology_document(SHARDS, [("a:3306", None), ("b:3306", None)]), schema=SCHEMA)
TYPES = {"albums": 1, "photos": 2, "full": 3}
REWRITER = Rewriter(SCHEMA, TOPOLOGY)


def of(table: str, shard: int, local: int = 7) -> int:
    assert LAYOUT is not None
    return LAYOUT.compose(shard=shard, type=TYPES[table], local=local)


def expand(sql: str) -> str:
    """`<albums 2>` becomes the ID of a row on shard 2, `<albums 2 9>` that of row 9."""
    return re.sub(r"<(\w+) (\d+)(?: (\d+))?>", lambda m: str(of(m[1], int(m[2]), int(m[3] or 7))), sql)


def run(sql: str, **changes: Any) -> Bound | str:
    """The statement bound, or the name of the error that refuses it."""
    text = expand(sql).encode()
    plan, literals = REWRITER.plan(text, Env(database="demo", **changes))
    if isinstance(plan, Reject):
        return plan.error
    if plan.kind in ("read_write", "gather"):
        return plan.kind
    try:
        return plan.bind(values_of(plan, literals), TOPOLOGY, first)
    except BindError as error:
        return error.name


def told(sql: str, **changes: Any) -> str | list[str]:
    """What each shard is sent, or the error."""
    found = run(sql, **changes)
    return found if isinstance(found, str) else [one.sql.decode() for one in found.statements]


# --- conditions route -----------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(conditions)
def test_no_row_is_left_out(condition: Condition) -> None:
    """Rows lie on the shard of their album's ID, whatever their own."""
    sql = re.sub(r"\bid\b", "album_id", condition.sql)
    bound = run(f"SELECT p.a FROM photos p WHERE {sql}")
    if bound == "shard_missing" and (str(MISSING) in sql or hex(MISSING) in sql):
        return
    assert isinstance(bound, Bound), (sql, bound)
    assert LAYOUT is not None
    rows: list[Row] = [{"id": one, "a": a} for one in IDS for a in (0, 1)]
    matching = {row["id"] for row in rows if truth(condition.value(row)) == 1}
    assert {LAYOUT.shard_of(one) for one in matching} <= set(shards_of(bound))


@pytest.mark.parametrize(
    "condition",
    [
        "album_id IS NULL",
        "album_id <=> NULL",
        "NOT (album_id <=> <albums 2>)",
        "(album_id = <albums 2>) IS NOT TRUE",
        "album_id = <albums 2> OR a = 1",
        "album_id = <albums 2> OR album_id IS NULL",
        "COALESCE(album_id, <albums 2>) = <albums 2>",
        "IFNULL(album_id = <albums 2>, 1)",
    ],
)
def test_rows_without_an_album_are_anywhere(condition: str) -> None:
    bound = run(f"SELECT a FROM photos WHERE {condition}")
    assert isinstance(bound, Bound)
    assert shards_of(bound) == list(range(SHARDS))


@pytest.mark.parametrize(
    ("sql", "shards"),
    [
        ("SELECT * FROM photos WHERE album_id = <albums 2>", [2]),
        ("SELECT * FROM photos WHERE album_id = '<albums 2>'", [2]),
        ("SELECT * FROM photos WHERE album_id IN (<albums 2>, <albums 1>, <albums 1 8>)", [1, 2]),
        ("SELECT * FROM photos WHERE album_id = <albums 2> OR id = <photos 1>", [1, 2]),
        ("SELECT a.id FROM albums a JOIN photos p ON p.album_id = a.id WHERE a.id = <albums 3>", [3]),
        ("SELECT a.id FROM albums a LEFT JOIN photos p ON p.album_id = a.id", [0, 1, 2, 3]),
        ("UPDATE photos SET a = 1 WHERE album_id = <albums 2>", [2]),
        ("DELETE FROM photos WHERE album_id = <albums 2>", [2]),
        ("SELECT DISTINCT album_id FROM full", [0, 1, 2, 3]),
    ],
)
def test_what_routes(sql: str, shards: list[int]) -> None:
    bound = run(sql)
    assert isinstance(bound, Bound)
    assert shards_of(bound) == shards


def test_rows_without_an_album_are_one_group() -> None:
    """They are on any shard: what each shard makes of its own is not the whole."""
    assert run("SELECT album_id, COUNT(*) FROM photos GROUP BY album_id") == "gather"
    assert run("SELECT DISTINCT album_id FROM photos") == "gather"
    assert isinstance(run("SELECT album_id, COUNT(*) FROM full GROUP BY album_id"), Bound)


# --- writes keep it -------------------------------------------------------------------------------

SHARD = st.one_of(st.none(), st.integers(0, SHARDS - 1))
ALBUMS = st.one_of(SHARD, st.sampled_from([-1, 9]))
VERBS = st.sampled_from([("INSERT", ""), ("REPLACE", ""), ("INSERT", "IGNORE ")])


def may_be(own: int | None, album: int | None, hint: int | None) -> bool:
    """Whether a row with an `id` and an album of these shards has a place."""
    if album is None:
        return True
    home = own if own is not None else hint
    return album in range(SHARDS) and home in (None, album)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(SHARD, ALBUMS), min_size=1, max_size=4), SHARD, VERBS)
def test_a_row_is_on_its_albums_shard(
    rows: list[tuple[int | None, int | None]], hint: int | None, verb: tuple[str, str]
) -> None:
    """Whatever an INSERT says of its rows, each is put on the shard of its album, or all is refused."""
    assert LAYOUT is not None
    texts = []
    for number, (own, album) in enumerate(rows):
        id = "NULL" if own is None else str(of("photos", own, number + 1))
        other = "NULL" if album is None else "-5" if album < 0 else str(of("albums", album, number + 1))
        texts.append(f"({id}, {other}, {number})")
    comment = "" if hint is None else f"/*+ shard({hint}) */ "
    head = f"{verb[0]} {comment}{verb[1]}INTO photos (id, album_id, a)"
    bound = run(f"{head} VALUES {', '.join(texts)}")
    fits = all(may_be(own, album, hint) for own, album in rows)
    if isinstance(bound, str):
        assert not fits, (texts, bound)
        return
    assert fits
    sent = 0
    for statement in bound.statements:
        for album_id in re.findall(rb"(?:[0-9]+|NULL), ([0-9]+|NULL), [0-9]+", statement.sql):
            sent += 1
            assert album_id == b"NULL" or LAYOUT.shard_of(int(album_id)) == statement.shards[0]
    assert sent == len(rows)


@pytest.mark.parametrize("case", CASES["strict"], ids=lambda case: case["sql"])
def test_strict_colocation_holds(case: dict[str, str | None]) -> None:
    sql, error = str(case["sql"]), case["error"]
    found = run(sql, flavour=MARIADB)
    assert found == error if error is not None else isinstance(found, Bound), found


# --- assignments that are none --------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES["assignments"], ids=lambda case: case["sql"])
def test_assignments_that_leave_a_row_where_it_is(case: dict[str, str]) -> None:
    sql, sent = case["sql"], case["sent"]
    found = told(sql)
    assert found == sent if isinstance(found, str) else any(sent in one for one in found), found


# --- tables that the schema does not name ---------------------------------------------------------


@pytest.mark.parametrize("case", CASES["others"], ids=lambda case: case["sql"])
def test_tables_that_the_schema_does_not_name(case: dict[str, Any]) -> None:
    assert told(case["sql"], flavour=MARIADB) == case["sent"]
