"""Conditions on views of information_schema: the databases that can match are asked, with a plain server's
answer whatever the conditions are. Names in another case are left out: what MariaDB finds by them depends on
whether it looks for the directory or compares texts.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from tests.integration.binary import Binary, text
from tests.integration.fixtures import MakeOwn
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

DATABASES = ("demo", "legacy", "leg", "nowhere", "mysql", "dém")
TABLES = ("pins", "orders", "customers", "usernames", "nothing", "pin%")
COMPARED = (b"demo", b"legacy", b"mysql")
"""Other tests may leave further databases."""
ONLY = "{q}TABLE_SCHEMA IN ('demo', 'legacy', 'mysql')"


@pytest.fixture(params=["of the default host", "elsewhere"])
def sides(
    own: MakeOwn, demo: Demo, plain: LocalServer, request: pytest.FixtureRequest
) -> Iterator[tuple[Raw, Raw]]:
    """`elsewhere`: the unsharded database is not on the default host."""
    topology = json.loads((demo.directory / "topology.json").read_text())
    if request.param == "elsewhere":
        topology["default"] = {"master": demo.masters[1].address}
    proxy = own(topology=topology)
    with proxy.raw(database="legacy") as through, Raw("127.0.0.1", plain.port) as direct:
        assert direct.login(plain.user, plain.password, "legacy").kind == "ok"
        yield through, direct


def condition(chance: random.Random, q: str, depth: int = 2) -> str:
    """A condition on the columns of the table `q`."""
    schema, table = chance.choice(DATABASES), chance.choice(TABLES)
    if depth and chance.random() < 0.5:
        parts = [condition(chance, q, depth - 1) for _ in range(2)]
        return chance.choice(["{} AND {}", "({} OR {})", "{} && ({})", "NOT ({} AND {})", "{} OR {}"]).format(
            *parts
        )
    return chance.choice(
        [
            f"{q}TABLE_SCHEMA = '{schema}'",
            f"'{schema}' = {q}table_schema",
            f"({q}`Table_Schema` <=> '{schema}')",
            f"{q}TABLE_SCHEMA = DATABASE()",
            f"{q}TABLE_SCHEMA = SCHEMA() AND {q}TABLE_NAME = '{table}'",
            f"{q}TABLE_SCHEMA = @s",
            f"{q}TABLE_SCHEMA <=> @nothing",
            f"{q}TABLE_SCHEMA IN ('{schema}', DATABASE())",
            f"{q}TABLE_SCHEMA IN ('{schema}', 'legacy', 'no''where')",
            f"{q}TABLE_SCHEMA NOT IN ('{schema}')",
            f"{q}TABLE_SCHEMA LIKE '{schema[:3]}%'",
            f"{q}TABLE_SCHEMA LIKE '_emo'",
            f"{q}TABLE_SCHEMA = CONCAT('{schema}', '')",
            f"{q}TABLE_SCHEMA = '{schema[:2]}' '{schema[2:]}'",
            f"{q}TABLE_SCHEMA = '{schema}' = 0",
            f"{q}TABLE_SCHEMA BETWEEN 'd' AND 'm'",
            f"CASE WHEN 1 AND {q}TABLE_SCHEMA = '{schema}' THEN 0 ELSE 1 END",
            f"{q}TABLE_NAME = '{table}'",
            f"{q}TABLE_NAME IN ('{table}', 'orders')",
            f"{q}TABLE_NAME LIKE '{table}'",
            f"{q}TABLE_NAME > '{table}'",
            f"{q}TABLE_SCHEMA = '{schema}' COLLATE utf8mb4_bin",
        ]
    )  # fmt: skip


def query(chance: random.Random) -> str:
    """A query on one view or two."""
    if chance.random() < 0.6:
        view, column = chance.choice(
            [("TABLES", "TABLE_TYPE"), ("COLUMNS", "COLUMN_NAME"), ("STATISTICS", "INDEX_NAME")]
        )
        where = f"{ONLY.format(q='')} AND ({condition(chance, '')})"
        if chance.random() < 0.3:  # no brackets around it
            where = f"{condition(chance, '')} AND {ONLY.format(q='')}"
        columns = f"TABLE_SCHEMA, TABLE_NAME, {column}"
        return f"SELECT {columns} FROM information_schema.{view} WHERE {where} ORDER BY 1, 2, 3"
    join = chance.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN"])
    both = "c.TABLE_SCHEMA = t.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME"
    names = ["t.", "c."]
    joined = f"{join} information_schema.COLUMNS c ON {both} AND ({condition(chance, 'c.', 1)})"
    form = chance.random()
    if form < 0.3:
        joined = f"{join} information_schema.COLUMNS c USING (TABLE_SCHEMA, TABLE_NAME)"
        names.append("")
    elif form < 0.5:
        joined = f"{join} information_schema.COLUMNS c ON {condition(chance, chance.choice(names), 1)}"
    where = f"{ONLY.format(q='t.')} AND ({condition(chance, chance.choice(names), 1)})"
    if 0.3 <= form < 0.7:
        further = condition(chance, chance.choice(names))
        if "CASE" not in further:  # of which MariaDB forgets ELSE when it looks tables up
            where = f"({further}) AND {where}"
        where = f"{both} AND {where}"
    return (
        "SELECT t.TABLE_SCHEMA, t.TABLE_NAME, c.TABLE_NAME, c.COLUMN_NAME FROM information_schema.TABLES t"
        f" {joined} WHERE {where} ORDER BY 1, 2, 3, 4"
    )


@pytest.mark.parametrize("seed", range(3))
def test_random_conditions(sides: tuple[Raw, Raw], seed: int) -> None:
    chance = random.Random(seed)
    for client in sides:
        client.ask("SET @s = 'demo'")
    for _ in range(60):
        sql = query(chance)
        ours, theirs = (client.ask(sql) for client in sides)
        shown = [
            (one.kind, one.code, [row for row in one.rows if row[0] in COMPARED]) for one in (ours, theirs)
        ]
        assert shown[0] == shown[1], sql


@pytest.mark.parametrize("value", ["demo", "legacy", "nowhere", None])
def test_parameters(sides: tuple[Raw, Raw], value: str | None) -> None:
    sql = (
        "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS"
        " WHERE TABLE_SCHEMA = ? AND TABLE_NAME LIKE ? ORDER BY 1, 2"
    )
    found = []
    for client in sides:
        binary = Binary(client)
        statement = binary.statement(sql)
        null = text("")
        null.data = None
        given = null if value is None else text(value)
        found += [
            binary.execute(statement.id, (given, text(pattern))).rows for pattern in ("%", "pin%", "orders")
        ]
    assert found[:3] == found[3:]
