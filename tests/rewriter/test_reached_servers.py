"""A database behind a comma is seen, whatever word stands before the comma as a name: rights rest on it.

Each word of the servers is an alias, a CTE or a table there. Where a server runs the statement, the database
behind the comma must be among those that the words tell, though its name stands as an alias, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pymysql
import pytest

from config.flavour import MARIADB, MYSQL
from rewriter.env import Env
from rewriter.fingerprint import lift
from rewriter.sql.privileges.reachable import reached
from rewriter.text.tokens import read
from tests.support.servers import Connection, LocalServer

STATEMENTS = (
    "SELECT 1 FROM t elsewhere JOIN t {w}, elsewhere.v",
    "SELECT 1 FROM t AS {w}, t elsewhere, elsewhere.v",
    "SELECT 1 FROM (t elsewhere, t {w}, elsewhere.v)",
    "SELECT 1 FROM (SELECT 1) {w}, t elsewhere, elsewhere.v",
    "WITH {w} AS (SELECT 1 AS a) SELECT 1 FROM {w} elsewhere, elsewhere.v",
    "SELECT {w}.a FROM t {w}, t elsewhere, elsewhere.v",
    "SET @x = (SELECT COUNT(*) FROM t {w}, t elsewhere, elsewhere.v)",
    "DO (SELECT COUNT(*) FROM t {w}, t elsewhere, elsewhere.v)",
    "INSERT INTO t SELECT 1 FROM t {w}, t elsewhere, elsewhere.v WHERE 0",
    "UPDATE t {w}, t elsewhere, elsewhere.v SET elsewhere.a = 1 WHERE 0",
    "DELETE elsewhere FROM t {w}, t elsewhere, elsewhere.v WHERE 0",
    "CREATE TEMPORARY TABLE tt AS SELECT 1 FROM t {w}, t elsewhere, elsewhere.v",
    "DROP TEMPORARY TABLE IF EXISTS {w}, elsewhere, elsewhere.v",
    "LOCK TABLES t AS {w} READ, t AS elsewhere READ, elsewhere.v READ",
    "CHECKSUM TABLE {w}, elsewhere, elsewhere.v",
)


def words(flavour: str) -> list[str]:
    known = json.loads((Path(__file__).parent / "words.json").read_text())
    found = {
        word
        for listed in known["mysql" if flavour == "mysql9" else flavour].values()
        for word in listed.split()
    }
    return sorted(found)


@pytest.fixture(scope="module")
def server(servers: list[LocalServer]) -> Iterator[Connection]:
    with servers[0].connect(autocommit=True) as connection, connection.cursor() as cursor:
        for sql in (
            "CREATE DATABASE reached",
            "CREATE DATABASE elsewhere",
            "USE reached",
            "CREATE TABLE t (a INT)",
            "CREATE TABLE elsewhere.v (b INT)",
        ):
            cursor.execute(sql)
        yield connection
        for name in ("reached", "elsewhere"):
            cursor.execute(f"DROP DATABASE {name}")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_database_behind_a_comma(server: Connection, flavour: str, statement: str) -> None:
    own = MARIADB if flavour == "mariadb" else MYSQL
    ran = 0
    with server.cursor() as cursor:
        for word in words(flavour):
            sql = statement.format(w=word)
            with suppress(pymysql.MySQLError):
                cursor.execute(sql)
                ran += 1
                source = read(sql.encode(), lift(sql.encode())[1], Env(database="reached", flavour=own))
                assert "elsewhere" in reached(source), sql
                if sql.startswith(("LOCK", "CREATE")):
                    cursor.execute("UNLOCK TABLES")
                    cursor.execute("DROP TEMPORARY TABLE IF EXISTS tt")
    assert ran > 100
