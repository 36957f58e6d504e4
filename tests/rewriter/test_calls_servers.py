"""A function that a server calls is seen in the text, wherever the call stands: rights rest on it.

Each word that the reader knows, and what has no letters, stands beside a call in each place; the server runs
the statement, and the function tells whether it was called.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pymysql
import pytest

from rewriter.sql.statements import functions as natives
from rewriter.sql.statements import table_places as places
from rewriter.sql.statements.forms import Kind
from rewriter.sql.statements.table import verbs_of
from tests.rewriter.test_natives import called
from tests.support.servers import Connection, LocalServer

STATEMENTS = (
    "SELECT {w} f(1)",
    "SELECT 'a' {w} f(1)",
    "SELECT (1) {w} f(1)",
    "SELECT `a` {w} f(1) FROM t",
    "SELECT 1 FROM t {w} f(1)",
    "SELECT 1 FROM t WHERE a {w} f(1)",
    "SELECT 1 FROM t GROUP BY a {w} f(1)",
    "SELECT 1 FROM t ORDER BY a, {w} f(1)",
    "SELECT 1 FROM t JOIN u ON 1 {w} f(1)",
    "SELECT 1 FROM t JOIN u USING (a) {w} f(1)",
    "SELECT 1 AS {w}, f(1)",
    "SELECT * FROM t {w} WHERE f(1)",
    "SELECT (SELECT {w} f(1))",
    "SELECT TRIM('a' {w} f(1))",
    "SELECT GROUP_CONCAT(1 {w} f(1))",
    "SELECT CASE WHEN 1 {w} f(1) THEN 1 END",
    "WITH {w} c AS (SELECT f(1)) SELECT * FROM c",
    "VALUES {w} (f(1))",
    "DO 1 {w} f(1)",
    "SET @x = 1 {w} f(1)",
    "SET @x = (SELECT 1 FROM (SELECT 1 AS {w}, f(1) AS y) d)",
    "CALL p(1 {w} f(1))",
    "CALL p((SELECT 1 FROM (SELECT 1 AS {w}, f(1) AS y) d))",
    "SHOW TABLES WHERE (SELECT 1 FROM (SELECT 1 AS {w}, f(1) AS y) d)",
    "CREATE TEMPORARY TABLE tt {w} SELECT f(1)",
    "CREATE TEMPORARY TABLE tt (x INT) SELECT 1 AS {w}, f(1)",
    "CREATE TEMPORARY TABLE tt (x INT, {w} f (x)) SELECT f(1) AS y",
    "CREATE TEMPORARY TABLE tt (x INT) VALUES {w} (f(1))",
    "INSERT INTO t {w} SELECT f(1)",
    "INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 1 {w} f(1)",
    "REPLACE INTO t VALUES ({w} f(1))",
    "UPDATE t SET a = 1 {w} f(1)",
    "DELETE FROM t WHERE a = 5 {w} f(1)",
    "DELETE t FROM t JOIN u ON {w} f(1)",
)
SIGNS = (
    "",
    "+",
    "-",
    "=",
    "<",
    "||",
    ":=",
    ",",
    "!",
    "~",
    "IS NOT",
    "NOT LIKE",
    "SOUNDS LIKE",
    "LIKE BINARY",
)
WORDS = sorted(
    {*natives._NO_CALL_BEHIND, *natives._NO_CALL_IN_TABLES, *places._MORE, *places._BETWEEN, *places._ENDS}
    | {
        *verbs_of(Kind.QUERY, Kind.CHANGE, Kind.EXPLAIN, Kind.DO),
        *places._FIRST,
        *places._LOCKING,
        "LIKE",
        "HANDLER",
        "CALL",
        "DISTINCT",
        "ALL",
        "OR",
        "ROW",
    }
)


@pytest.fixture(scope="module")
def server(servers: list[LocalServer]) -> Iterator[Connection]:
    with servers[0].connect(autocommit=True) as connection, connection.cursor() as cursor:
        for sql in (
            "CREATE DATABASE calls",
            "USE calls",
            "CREATE TABLE t (a INT PRIMARY KEY)",
            "CREATE TABLE u (a INT)",
            "INSERT INTO u VALUES (1)",
            "CREATE FUNCTION f(n INT) RETURNS INT NO SQL BEGIN SET @called = 1; RETURN n; END",
            "CREATE PROCEDURE p(n INT) BEGIN END",
            "SET sql_mode = ''",
        ):
            cursor.execute(sql)
        yield connection
        cursor.execute("DROP DATABASE calls")


@pytest.mark.parametrize("statement", STATEMENTS)
def test_no_call_is_overlooked(server: Connection, flavour: str, statement: str) -> None:
    ran = 0
    for word in (*SIGNS, *WORDS):
        sql = statement.format(w=word)
        with server.cursor() as cursor:
            cursor.execute("SET @called = NULL")
            cursor.execute("DROP TEMPORARY TABLE IF EXISTS tt")
            cursor.execute("REPLACE INTO t VALUES (1)")
            with suppress(pymysql.MySQLError):  # it may have been called all the same
                cursor.execute(sql)
            cursor.execute("SELECT @called")
            if cursor.fetchall() == ((1,),):
                ran += 1
                assert "f" in called(sql, mariadb=flavour == "mariadb"), sql
    assert ran
