"""Numbers that the column of a hashed key does not hold: a server that is not strict stores another then."""

from __future__ import annotations

import pytest

from config.column_type import read_definition
from config.load import load_schema, load_topology
from demo.documents import topology_document
from rewriter.bound import BindError
from rewriter.env import Env
from rewriter.planner import Rewriter
from tests.rewriter.support import first, values_of

COLUMNS = {
    "TINYINT": (-128, 127),
    "SMALLINT UNSIGNED NOT NULL": (0, 65535),
    "mediumint(8)": (-(1 << 23), (1 << 23) - 1),
    "INT": (-(1 << 31), (1 << 31) - 1),
    "int(10) unsigned": (0, (1 << 32) - 1),
    "INTEGER ZEROFILL": (0, (1 << 32) - 1),
    "BIGINT": (-(1 << 63), (1 << 63) - 1),
    "BIGINT UNSIGNED PRIMARY KEY": (0, (1 << 64) - 1),
}


@pytest.mark.parametrize(("definition", "bounds"), COLUMNS.items(), ids=COLUMNS)
def test_bounds_of_integers(definition: str, bounds: tuple[int, int]) -> None:
    assert read_definition(definition).type.bounds == bounds


@pytest.mark.parametrize("definition", ["VARCHAR(20)", "INTERVAL", "DECIMAL(9)"])
def test_other_columns_have_none(definition: str) -> None:
    assert read_definition(definition).type.bounds is None


@pytest.mark.parametrize(("definition", "bounds"), COLUMNS.items(), ids=COLUMNS)
@pytest.mark.parametrize("verb", ["INSERT", "INSERT IGNORE", "REPLACE"])
def test_only_what_the_column_holds_is_placed(verb: str, definition: str, bounds: tuple[int, int]) -> None:
    table = {"kind": "hashed", "keyspace": "lookup", "key": "k", "columns": {"k": definition, "v": "INT"}}
    schema = load_schema({"databases": {"demo": {"tables": {"t": table}}}})
    topology = load_topology(topology_document(4, [("a:3306", None)]), schema=schema)
    rewriter = Rewriter(schema, topology)

    def error(number: int) -> str:
        sql = f"{verb} INTO t (k, v) VALUES ({number}, 1)".encode()
        plan, literals = rewriter.plan(sql, Env(database="demo"))
        try:
            plan.bind(values_of(plan, literals), topology, first)
        except BindError as error:
            return error.name
        return ""

    low, high = bounds
    assert [error(number) for number in (low, high)] == ["", ""]
    assert [error(number) for number in (low - 1, high + 1)] == ["invalid_id", "invalid_id"]
