"""The derived tables for information_schema's views."""

from __future__ import annotations

import pytest

from config import flavour as flavours
from rewriter.plain.views import VIEWS, Shown, view_sql

LEGACY = Shown("h", "legacy", "legacy")
MYSQL = Shown("h", "mysql", "mysql")
DEMO = Shown("h", "db00000", "demo", ("pins", "likes"), ("pins",), 64)
NAMES = Shown("h", "global", "demo", ("names",), first=False)


def sql(view: str, columns: str, *shown: Shown, mariadb: bool = True) -> str:
    return view_sql(
        view, columns.split(), shown, (), flavour=flavours.MARIADB if mariadb else flavours.MYSQL
    ).decode()


def test_mariadb_looks_each_database_up() -> None:
    assert sql("SCHEMATA", "SCHEMA_NAME", MYSQL, LEGACY, DEMO, NAMES) == (
        "SELECT `SCHEMA_NAME` FROM information_schema.`SCHEMATA` WHERE `SCHEMA_NAME` = 'mysql' UNION ALL "
        "SELECT `SCHEMA_NAME` FROM information_schema.`SCHEMATA` WHERE `SCHEMA_NAME` = 'legacy' UNION ALL "
        "SELECT _utf8mb3'demo' AS `SCHEMA_NAME` FROM information_schema.`SCHEMATA` "
        "WHERE `SCHEMA_NAME` = 'db00000'"
    )


def test_mysql_merges_the_outermost() -> None:
    assert sql("TRIGGERS", "TRIGGER_SCHEMA", MYSQL, LEGACY, DEMO, mariadb=False) == (
        "SELECT `TRIGGER_SCHEMA` FROM (SELECT `TRIGGER_SCHEMA` FROM information_schema.`TRIGGERS` WHERE "
        "`TRIGGER_SCHEMA` IN ('mysql', 'legacy')) AS shown"
    )


@pytest.mark.parametrize(
    ("view", "column", "expression"),
    [
        ("COLUMNS", "TABLE_NAME", "`TABLE_NAME`"),
        ("COLUMNS", "TABLE_SCHEMA", "_utf8mb3'demo' AS `TABLE_SCHEMA`"),
        (
            "COLUMNS",
            "COLUMN_NAME",
            "IF(`TABLE_NAME` IN ('pins') AND `COLUMN_NAME` = 'local_id', 'id', `COLUMN_NAME`)"
            " AS `COLUMN_NAME`",
        ),
        (
            "KEY_COLUMN_USAGE",
            "REFERENCED_TABLE_SCHEMA",
            "IF(`REFERENCED_TABLE_SCHEMA` = 'db00000', _utf8mb3'demo', `REFERENCED_TABLE_SCHEMA`)"
            " AS `REFERENCED_TABLE_SCHEMA`",
        ),
        ("TABLES", "TABLE_ROWS", "`TABLE_ROWS` * 64 AS `TABLE_ROWS`"),
        (
            "TABLES",
            "AUTO_INCREMENT",
            "IF(`TABLE_NAME` IN ('pins'), NULL, `AUTO_INCREMENT`) AS `AUTO_INCREMENT`",
        ),
        (
            "COLUMNS",
            "GENERATION_EXPRESSION",
            "REPLACE(`GENERATION_EXPRESSION`, '`local_id`', '`id`') AS `GENERATION_EXPRESSION`",
        ),
    ],
)
def test_logical_terms(view: str, column: str, expression: str) -> None:
    last = sql(view, column, DEMO).partition(" UNION ALL ")[2]
    assert last == (
        f"SELECT {expression} FROM information_schema.`{view}` WHERE `TABLE_SCHEMA` = 'db00000'"
        " AND `TABLE_NAME` IN ('pins', 'likes')"
    )


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("mariadb", [True, False])
def test_nothing_to_show(view: str, mariadb: bool) -> None:
    """Still a table with the columns."""
    empty = f"SELECT `A` FROM information_schema.`{view}` WHERE 0"
    expected = f"{empty} UNION ALL {empty}" if mariadb else f"SELECT `A` FROM ({empty}) AS shown"
    assert sql(view, "A", mariadb=mariadb) == expected
