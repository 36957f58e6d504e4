"""A few random schemas, with a fixed seed. More of them: `make fuzz ARGS="--schemas 20"`."""

from __future__ import annotations

from pathlib import Path

import pytest

from config.schema import Kind
from fleet.demo.servers import LocalServer
from tests.differential.anyschema.design import design
from tests.differential.anyschema.loop import Finding, Loop, Tally, describe, total
from tests.differential.anyschema.places import cut
from tests.differential.anyschema.tree import clause, expr, fixed, form_of, items
from tests.differential.arena import deployed

SEED = 4
CASES = 50
HOSTS = ["127.0.0.1:1", "127.0.0.1:2"]


@pytest.mark.parametrize("schema", [3, 8])
def test_random_schemas(
    schema: int, flavour: str, servers: list[LocalServer], plain: LocalServer, tmp_path: Path
) -> None:
    mysql = flavour == "mysql9"
    world = design(schema, [one.address for one in servers], mysql=mysql, scale=0.5)
    tally = Tally()
    found: list[str] = []

    def seen(finding: Finding) -> None:
        found.append(describe(finding, schema, SEED, world))

    with deployed(world, servers, plain, tmp_path / "proxy") as arena:
        loop = Loop(arena, SEED, mysql=mysql, tally=tally)
        loop.run(range(CASES), shrink=True, most=2, ignored=None, seen=seen)
    print(total(tally, 0))
    assert not found, "\n".join(found)
    assert sum(tally.refused.values()) < sum(tally.statements.values()) * 0.15, "too many are refused"
    assert sum(tally.failed.values()) < sum(tally.statements.values()) * 0.15, "too many fail on both sides"


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
