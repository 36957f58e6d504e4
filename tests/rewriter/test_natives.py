"""Which functions that are called are the servers' own."""

from __future__ import annotations

import pytest

from config.flavour import MARIADB, MYSQL
from rewriter.env import Env
from rewriter.fingerprint import lift
from rewriter.sql.statements.functions import foreign_calls, own_calls
from rewriter.text.tokens import read


def called(sql: str, *, mariadb: bool) -> list[str]:
    source = read(sql.encode(), lift(sql.encode())[1], Env(flavour=MARIADB if mariadb else MYSQL))
    return [source.at(at).name for at in foreign_calls(source, flavour=MARIADB if mariadb else MYSQL)]


@pytest.mark.parametrize("mariadb", [True, False])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ST_AsText(POINT(1, (2))), LINESTRING(POINT(1,2),POINT(2,IF(1,2,3)))",
        "SELECT d.x FROM (SELECT id FROM pins) d (x), (SELECT 1) AS e (y)",
        "WITH c (n) AS (SELECT 1), RECURSIVE (m) AS (SELECT 2) SELECT n FROM c",
        "INSERT INTO demo . pins (id) VALUES (1) ON DUPLICATE KEY UPDATE id = VALUES(id)",
        "SELECT id FROM pins USE INDEX FOR ORDER BY (a) WHERE a LIKE 'b' ESCAPE ('c')",
        "SELECT MD5('a'), MAKE_ID(1, 2, 3), CAST(a AS DECIMAL(10, 2)), CONVERT(a, CHAR(3))",
        "SELECT SUM(a) OVER (ORDER BY b), RANK() OVER w FROM pins WINDOW w AS (ORDER BY c)",
        "SELECT MATCH (a) AGAINST ('b'), a IN (1), NOT (b), EXISTS (SELECT 1) FROM pins PARTITION (p)",
        "CREATE TEMPORARY TABLE d (a VARCHAR(3), UNIQUE f (a), KEY g (a)) SELECT 1 AS handler",
    ],
)
def test_no_others(sql: str, mariadb: bool) -> None:
    assert called(sql, mariadb=mariadb) == []


@pytest.mark.parametrize("mariadb", [True, False])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT f(1)",
        "SELECT `f` (1)",
        "SELECT `abs`(1), f(2)",
        "SELECT db . f(1)",
        "SELECT 1 + db.`f`(1)",
        "SELECT DISTINCT f()",
        "SELECT a FROM pins WHERE f(a)",
        "UPDATE pins SET a = f()",
        "INSERT INTO pins (a) VALUES (f())",
        "INSERT INTO pins SET a = f(1) ON DUPLICATE KEY UPDATE a = 1",
        "SELECT 1 FROM pins JOIN boards ON f(1) ORDER BY 1",
        "SELECT abs(f(1))",
        "DO f(1)",
        "SELECT 'a' LIKE f(1)",
        "SELECT 1 FROM (SELECT 1 AS handler, f(1)) d",
        "CREATE TEMPORARY TABLE d (a INT) SELECT f(1)",
    ],
)
def test_others(sql: str, mariadb: bool) -> None:
    assert [name for name in called(sql, mariadb=mariadb) if name != "abs"] == ["f"]


def test_a_geometry_by_its_arguments() -> None:
    """MariaDB calls stored functions by these names, when the arguments are not its own function's."""
    assert called("SELECT POINT(1), POINT(1, 2, 3), POINT(1, 2), LINESTRING()", mariadb=True) == [
        "POINT",
        "POINT",
        "LINESTRING",
    ]
    assert called("SELECT POINT(1), LINESTRING()", mariadb=False) == []


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT SHARD_OF(1), MAKE_ID(1, 2, 3)", 2),
        ("SELECT a FROM t WHERE a LIKE LOCAL_OF(b)", 1),
        ("SELECT legacy.TYPE_OF(1), `SHARD_OF`(2)", 0),
        ("CREATE FUNCTION SHARD_OF(n INT) RETURNS INT RETURN n", 0),
        ("CREATE TABLE make_id (n INT)", 0),
        ("INSERT INTO make_id (n) VALUES (1)", 0),
    ],
)
def test_the_proxys_own_are_called(sql: str, count: int) -> None:
    """And not what only has their names."""
    source = read(sql.encode(), lift(sql.encode())[1], Env())
    assert len(own_calls(source)) == count
