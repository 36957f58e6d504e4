"""FLOAT columns over several shards: as DOUBLEs where all their digits count."""

from __future__ import annotations

import pytest
import yaml

from config.column_type import read_definition
from config.load import load_schema, load_topology
from demo.documents import SCHEMA, topology_document
from rewriter.planner import Rewriter
from rewriter.plans import Bound, Env, Gather, ShardSelect
from tests.rewriter.support import first, new_id

_COLUMNS = {"name": "VARCHAR(40)", "f": "FLOAT", "d": "DOUBLE(9,2)", "ratio": "DOUBLE"}
_PINS = {"kind": "object", "keyspace": "main", "type": 1, "columns": _COLUMNS}
_MODEL = load_schema(
    {
        **yaml.safe_load(SCHEMA.read_text()),
        "databases": {
            "demo": {
                "tables": {"pins": {"kind": "object", "keyspace": "main", "type": 1, "columns": _COLUMNS}}
            }
        },
    }
)
_TOPOLOGY = load_topology(topology_document(4, [("a:3306", None), ("b:3306", None)]), schema=_MODEL)
_ON_TWO = f"id IN ({new_id('pins', 0, 1)}, {new_id('pins', 2, 7)})"


def planned(sql: str, exact: str = "") -> ShardSelect:
    plan, _ = Rewriter(_MODEL, _TOPOLOGY).plan(sql.encode(), Env(database="demo", exact=exact))
    assert isinstance(plan, ShardSelect)
    return plan


def bound(sql: str, exact: str = "") -> Bound:
    plan, literals = Rewriter(_MODEL, _TOPOLOGY).plan(sql.encode(), Env(database="demo", exact=exact))
    return plan.bind(literals, _TOPOLOGY, first)


def sent(sql: str, exact: str = "") -> str:
    """What the first shard gets, without its WHERE."""
    text = bound(sql, exact).statements[0].sql.decode()
    return text.replace(" WHERE local_id IN (1)", "").replace(" WHERE local_id IN (1, 1)", "")


@pytest.mark.parametrize(
    "definition",
    ["float", "FLOAT NOT NULL", "float unsigned zerofill", "double(9,2)", "DOUBLE PRECISION (9, 2)"],
)
def test_types_that_are_rounded(definition: str) -> None:
    assert read_definition(definition).type.rounded


@pytest.mark.parametrize("definition", ["double", "decimal(9,2)", "floaty", "varchar(9)", "real", "int(8)"])
def test_types_that_are_not(definition: str) -> None:
    assert not read_definition(definition).type.rounded


def test_all_digits_are_asked_for() -> None:
    sql = f"SELECT f, name, d AS x FROM pins WHERE {_ON_TWO}"
    assert sent(sql) == "SELECT f, name, d AS x FROM `db00000`.pins"
    assert sent(sql, "101") == "SELECT ((f) * 1e0), name, ((d) * 1e0) AS x FROM `db00000`.pins"
    found = bound(sql, "101")
    reference = found.refers_to()
    assert reference is not None
    assert reference.sql.startswith(b"SELECT f, name, d AS x FROM")


def test_the_columns_of_a_star() -> None:
    shown = "(`pins`.local_id + 68719476736), `pins`.`name`, ((`pins`.`f`) * 1e0), ((`pins`.`d`) * 1e0)"
    star = f"SELECT * FROM pins WHERE {_ON_TWO}"
    assert sent(star, "00110") == f"SELECT {shown}, `pins`.`ratio` FROM `db00000`.pins"
    assert planned(star, "00110").gather is None
    for other in ("0011", "10000", "001100"):  # the table has changed
        assert planned(star, other).gather is not None


def test_keys_of_the_order() -> None:
    hidden = "((f) * 1e0) AS `sg_key_0`"
    assert sent(f"SELECT name FROM pins WHERE {_ON_TWO} ORDER BY f") == (
        f"SELECT name, {hidden} FROM `db00000`.pins ORDER BY f"
    )
    assert sent(f"SELECT f AS x FROM pins WHERE {_ON_TWO} ORDER BY x", "1") == (
        f"SELECT ((f) * 1e0) AS x, {hidden} FROM `db00000`.pins ORDER BY x"
    )
    assert bound(f"SELECT ratio FROM pins WHERE {_ON_TWO} ORDER BY ratio").merge is not None
    for key in ("IF(id > 1, f, 0)", "d / 3", "GREATEST(f, 1)"):
        assert planned(f"SELECT name FROM pins WHERE {_ON_TWO} ORDER BY {key}").gather is not None
    for key in ("f * 2", "ratio / 3", "ABS(f)"):
        assert planned(f"SELECT name FROM pins WHERE {_ON_TWO} ORDER BY {key}").gather is None


def test_the_least_and_the_greatest() -> None:
    sql = f"SELECT MIN(f), MAX(d), COUNT(*) FROM pins WHERE {_ON_TWO}"
    assert sent(sql, "110") == "SELECT ((MIN(f)) * 1e0), ((MAX(d)) * 1e0), COUNT(*) FROM `db00000`.pins"


@pytest.mark.parametrize(
    "rest", ["GROUP BY id, f", "GROUP BY id HAVING MAX(f) > 1", "GROUP BY f", "GROUP BY id, f ORDER BY 1"]
)
def test_what_names_its_columns_is_gathered(rest: str) -> None:
    found = planned(f"SELECT f, MAX(id) FROM pins WHERE {_ON_TWO} {rest}", "10")
    assert isinstance(found.gather, Gather)


def test_one_shard_gets_the_statement_itself() -> None:
    one = new_id("pins", 2, 7)
    assert bound(f"SELECT f FROM pins WHERE id = {one}", "1").statements[0].sql == (
        b"SELECT f FROM `db00002`.pins WHERE local_id = 7"
    )
