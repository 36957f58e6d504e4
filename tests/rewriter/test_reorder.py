"""CALL of a procedure that a schema names, for other tables than the demo's."""

from __future__ import annotations

import pytest

from config.load import load_schema, load_topology
from rewriter.planner import Rewriter
from rewriter.plans import Env, Plan, Reorder

SCHEMA = load_schema(b"""
databases:
  Shop:
    tables:
      shelf:
        {kind: mapping, keyspace: k, from: Shelf_ID, to: item, sequence: order, orderable: true}
      row: {kind: mapping, keyspace: k, from: a, to: b, orderable: true, procedure: Shuffle}
      plain: {kind: mapping, keyspace: k, from: a, to: b}
  other:
    tables:
      shelf2: {kind: mapping, keyspace: k, from: shelf_id, to: item_id, orderable: true, procedure: shuffle}
""")
RANGES = b'[{"range": [0, 3], "master": "a:1", "open": true}]'
TOPOLOGY = load_topology(
    b'{"version": 1, "keyspaces": {"k": {"layout": "pinterest", "database": "k{shard:02d}", "ranges": %b}}}'
    % RANGES,
    schema=SCHEMA,
)


def planned(sql: str, database: str | None) -> Plan:
    return Rewriter(SCHEMA, TOPOLOGY).plan(sql.encode(), Env(database=database))[0]


@pytest.mark.parametrize(
    ("sql", "database", "table"),
    [
        ("CALL reorder_shelf_item(1, 2, 3, 4)", "Shop", "Shop.shelf"),
        ("CALL Shop.shuffle(1, 2, 3, 4)", None, "Shop.row"),
        ("CALL shuffle(1, 2, 3, 4)", "other", "other.shelf2"),
        ("CALL `other`.`SHUFFLE`(0x1, 1 + 1, NULL, -4)", "Shop", "other.shelf2"),
        (
            "/* for a */ CALL shuffle /* list */ (MAKE_ID(1, 2, 3), (2), @a, LAST_INSERT_ID());",
            "Shop",
            "Shop.row",
        ),
    ],
)
def test_named_by_the_schema(sql: str, database: str, table: str) -> None:
    plan = planned(sql, database)
    assert isinstance(plan, Reorder)
    assert (plan.table, plan.databases, plan.unseen) == (table, (table.partition(".")[0],), "")


@pytest.mark.parametrize(
    "sql",
    [
        "CALL reorder_row(1, 2, 3, 4)",
        "CALL reorder_a_b(1, 2, 3, 4)",
        "CALL shop.shuffle(1, 2, 3, 4)",
        "CALL shuffle(1, 2, 3, 4) + 1",
    ],
)
def test_no_procedure(sql: str) -> None:
    assert not isinstance(planned(sql, "Shop"), Reorder)


def test_names_are_quoted() -> None:
    plan = planned("CALL reorder_shelf_item(70368744177664, 2, 3, NULL)", "Shop")
    assert isinstance(plan, Reorder)
    literals = Rewriter(SCHEMA, TOPOLOGY).plan(
        b"CALL reorder_shelf_item(70368744177664, 2, 3, NULL)", Env("Shop")
    )[1]
    find = plan.example(literals)[0]
    text = (
        b"SELECT `item`, `order` FROM `Shop`.`shelf` WHERE `Shelf_ID` = 70368744177664 AND `item` IN (2, 3)"
        b" LIMIT 18446744073709551615"
    )
    assert find == text
    for sql in plan.example(literals):
        found, values = Rewriter(SCHEMA, TOPOLOGY).plan(sql.replace("…".encode(), b"5"), Env("other"))
        (statement,) = found.bind(values, TOPOLOGY, lambda shards: shards[0]).statements
        assert statement.shards == (1,)
        assert b"`k01`.`shelf`" in statement.sql
