"""A few random schemas, with a fixed seed. More of them: `make fuzz ARGS="--schemas 20"`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from config.schema import Kind
from tests.differential.anyschema.binary import BinaryLoop
from tests.differential.anyschema.design import design
from tests.differential.anyschema.loop import Finding, Loop, Tally, describe, total
from tests.differential.anyschema.places import cut
from tests.differential.anyschema.tree import clause, expr, fixed, form_of, items
from tests.differential.arena import deployed
from tests.differential.prepared import with_parameters
from tests.support.servers import LocalServer

SEED = 4
CASES = 50
HOSTS = ["127.0.0.1:1", "127.0.0.1:2"]


Servers = tuple[list[LocalServer], LocalServer, Path]


@pytest.fixture
def sides(servers: list[LocalServer], plain: LocalServer, tmp_path: Path) -> Servers:
    return servers, plain, tmp_path / "proxy"


def run(loop: type[Loop], schema: int, flavour: str, sides: Servers, *, rounded: float = 0.0) -> Tally:
    """Run the cases on a random schema; there must be no difference, and few statements that fail."""
    servers, plain, folder = sides
    mysql = flavour == "mysql9"
    addresses = [one.address for one in servers]
    world = design(schema, addresses, mysql=mysql, scale=0.5, rounded=rounded)
    tally = Tally()
    found: list[str] = []

    def seen(finding: Finding) -> None:
        found.append(describe(finding, schema, SEED, world))

    with deployed(world, servers, plain, folder) as arena:
        made = loop(arena, SEED, mysql=mysql, tally=tally)
        made.run(range(CASES), shrink=True, most=2, ignored=None, seen=seen)
    print(total(tally, 0))
    assert not found, "\n".join(found)
    assert sum(tally.failed.values()) < sum(tally.statements.values()) * 0.15, "too many fail on both sides"
    return tally


@pytest.mark.parametrize("schema", [3, 8])
def test_random_schemas(schema: int, flavour: str, sides: Servers) -> None:
    tally = run(Loop, schema, flavour, sides)
    assert sum(tally.refused.values()) < sum(tally.statements.values()) * 0.15, "too many are refused"


def test_a_random_schema_by_prepared_statements(flavour: str, sides: Servers) -> None:
    """Values bit for bit, with columns whose text is rounded, and literals as parameters."""
    run(BinaryLoop, 5, flavour, sides, rounded=0.3)


@pytest.mark.parametrize(
    ("sql", "expected", "count"),
    [
        (
            "SELECT a + 1, 'x' FROM t WHERE b IN (2, 3) LIMIT 5",
            "SELECT a + ?, ? FROM t WHERE b IN (?, ?) LIMIT 5",
            4,
        ),
        ("SELECT 1e3, DATE '2012-02-23', x'41', t1.c2 FROM t1 GROUP BY 1, f(2)", "", 0),
        ("SELECT j->'$.a', CAST(1 AS CHAR(3)), 3.4e+38 FROM t", "", 0),
        ("UPDATE t SET a = 2.5 WHERE b = 'it''s'", "UPDATE t SET a = ? WHERE b = ?", 2),
    ],
)
def test_literals_become_parameters(sql: str, expected: str, count: int) -> None:
    text, parameters = with_parameters(sql, random.Random(1), 1.0)
    assert (text, len(parameters)) == (expected or sql, count)


@pytest.mark.parametrize("mysql", [True, False])
def test_schemas_are_valid_and_depend_on_their_number(mysql: bool) -> None:
    kinds = set()
    for number in range(40):
        world = design(number, HOSTS, mysql=mysql)
        again = design(number, HOSTS, mysql=mysql)
        assert (world.rows, world.documents) == (again.rows, again.documents)
        for name, rows in world.rows.items():
            table = world.tables[name]
            kinds.add(table.kind)
            index = world.routing_index(table)
            assert all(world.physical(table, row[index]) for row in rows)
    assert kinds == set(Kind)


def test_the_bits_of_a_layout() -> None:
    assert cut({"reserved": 2, "shard": 16, "type": 10, "local": 36})["shard"] == (46, 0xFFFF)


def test_statements_become_smaller() -> None:
    where = clause(" WHERE ", items([expr("a = 1"), expr("(", expr("b"), " OR ", expr("c"), ")")], " AND "))
    tree = fixed("SELECT ", items(["x", "y"]), " FROM t", where)
    assert tree.sql == "SELECT x, y FROM t WHERE a = 1 AND (b OR c)"
    smaller = {one.sql for one in tree.smaller()}
    assert {
        "SELECT x FROM t WHERE a = 1 AND (b OR c)",
        "SELECT x, y FROM t",
        "SELECT x, y FROM t WHERE a = 1",
        "SELECT x, y FROM t WHERE a = 1 AND b",
    } <= smaller
    assert form_of(tree).order is None
