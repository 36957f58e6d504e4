"""GET DIAGNOSTICS tells of the session's last statement, whichever connections and hosts that ran on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pymysql
import pytest
from pymysql.cursors import Cursor

from config.flavour import flavour_of
from proxy.session.sqlstates import sqlstate_of
from tests.integration.both_sides import both_cursors
from tests.integration.fixtures import Connect
from tests.support.servers import LocalServer

ITEMS = (
    "RETURNED_SQLSTATE",
    "MYSQL_ERRNO",
    "MESSAGE_TEXT",
    "CLASS_ORIGIN",
    "SUBCLASS_ORIGIN",
    "SCHEMA_NAME",
    "TABLE_NAME",
    "COLUMN_NAME",
    "CURSOR_NAME",
    "CATALOG_NAME",
    "CONSTRAINT_NAME",
)
OF_A_CONDITION = ", ".join(f"@c{number} = {item}" for number, item in enumerate(ITEMS))
READ = f"SELECT @n, @r, {', '.join(f'@c{number}' for number in range(len(ITEMS)))}"
#: Run in an unsharded database, on the proxy and on a plain server.
STATEMENTS = [
    "SELECT 1",
    "SELECT * FROM nothing",
    "SELEC",
    "SELECT 1/0 UNION SELECT 1/0",
    "SELECT CAST('x' AS SIGNED)",
    "SELECT nosuch(1)",
    "SELECT nocolumn FROM of_conditions",
    "INSERT INTO of_conditions VALUES (1, 1), (2, 2)",
    "INSERT INTO of_conditions VALUES (1, 1)",
    "INSERT IGNORE INTO of_conditions VALUES (1, 1), (3, 1000)",
    "UPDATE of_conditions SET v = v + 1000",
    "UPDATE of_conditions SET v = v + 1",
    "DROP TABLE IF EXISTS nothing",
    "DO 1",
    "BEGIN",
    "INSERT INTO of_conditions VALUES (2, 2)",
    "ROLLBACK",
    "SELECT (SELECT 1 UNION SELECT 2)",
    "XA END 'a'",
    "SET @@nosuch = 1",
    "SET @mine = 1",
    "SHOW WARNINGS",
    "/* app */ SELECT * FROM nothing",
    "SET max_error_count = 0",
    "SELECT 1/0",
    "SET max_error_count = DEFAULT",
]
#: The same on shards and on the tables of one server.
ON_SHARDS = [
    "SELECT * FROM nothing",
    "SELECT nocolumn FROM pins WHERE id IN (1, 2)",
    "SELECT COUNT(*) FROM user WHERE id > 0",
    "SELECT 1/0 FROM user WHERE id = (SELECT MIN(id) FROM user)",
    "UPDATE user SET intcol = intcol + 1 WHERE id = 1",
    "SELECT FROM",
]


@pytest.fixture
def both(connect: Connect, plain: LocalServer) -> Iterator[tuple[Cursor, Cursor]]:
    with both_cursors(connect, plain, "of_conditions (id INT PRIMARY KEY, v TINYINT)") as cursors:
        yield cursors


def run(cursor: Cursor, sql: str) -> Any:
    try:
        cursor.execute(sql)
    except pymysql.Error as error:
        return error.args
    return cursor.fetchall(), getattr(vars(cursor)["_result"], "warning_count", 0)


def told(cursor: Cursor, sql: str, condition: str = "1") -> Sequence[Any]:
    """What becomes of a statement, and of the statements that ask for its diagnostics."""
    found = [run(cursor, sql)]
    found.append(run(cursor, "GET DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT"))
    found.append(run(cursor, f"GET CURRENT DIAGNOSTICS CONDITION {condition} {OF_A_CONDITION}"))
    found.append(run(cursor, "SHOW WARNINGS"))
    found.append(run(cursor, READ))
    return found


def test_it_tells_of_the_last_statement_as_a_server_does(both: tuple[Cursor, Cursor]) -> None:
    """Each statement takes whichever connection is free, so that no server could know of the one before."""
    proxied, direct = both
    for sql in STATEMENTS:
        for condition in ("1", "2", "@k"):
            for cursor in both:
                cursor.execute("SET @k = 2, @n = 'n', @r = 'r', @c0 = 'c'")
            assert told(proxied, sql, condition) == told(direct, sql, condition), (sql, condition)


def test_it_tells_of_statements_on_shards(connect: Connect, plain: LocalServer, flavour: str) -> None:
    direct = plain.connect()
    proxied, other = connect(database="demo").cursor(), direct.cursor()
    other.execute("USE demo")
    for sql in ON_SHARDS:
        found, expected = told(proxied, sql), told(other, sql)
        if "FROM pins" in sql or sql.startswith("SELECT FROM"):  # in the proxy's own words
            found, expected = ([row[-1][0][0][:4] for row in (one,)] for one in (found, expected))
        assert found == expected, sql
    direct.close()


def test_each_session_has_its_own(connect: Connect) -> None:
    one, other = (connect(database="legacy").cursor() for _ in "ab")
    run(one, "SELECT * FROM nothing")
    for _ in range(4):
        run(other, "SELECT 1")
        one.execute("GET DIAGNOSTICS CONDITION 1 @e = MYSQL_ERRNO, @s = RETURNED_SQLSTATE")
        other.execute("GET DIAGNOSTICS @n = NUMBER")
        other.execute("SELECT @n, @e")
        assert other.fetchone() == (0, None)
        one.execute("DO @e")  # which clears them on MySQL
        one.execute("SELECT @e, @s")
        assert one.fetchone() == (1146, "42S02")
        run(one, "SELECT * FROM nothing")


def test_it_leaves_row_count_and_the_conditions(both: tuple[Cursor, Cursor]) -> None:
    for cursor in both:
        cursor.execute("INSERT INTO of_conditions VALUES (1, 1), (2, 2)")
        cursor.execute("GET DIAGNOSTICS @r = ROW_COUNT")
        cursor.execute("SELECT ROW_COUNT(), @r")
        assert cursor.fetchone() == (2, 2)
        run(cursor, "SELECT * FROM nothing")
        cursor.execute("GET DIAGNOSTICS @n = NUMBER")
        cursor.execute("SHOW WARNINGS")
        assert [row[1] for row in cursor.fetchall()] == [1146]


@pytest.mark.parametrize(
    "condition", ["0", "3", "NULL", "TRUE", "FALSE", "'1'", "@one", "@none", "@text", "-1", "1 + 0"]
)
def test_numbers_of_conditions(both: tuple[Cursor, Cursor], condition: str) -> None:
    answers = []
    for cursor in both:
        cursor.execute("SET @one = 1, @text = '1', @e = 'nothing'")
        run(cursor, "SELECT * FROM nothing")
        answers.append(
            [
                run(cursor, f"GET DIAGNOSTICS CONDITION {condition} @e = MYSQL_ERRNO"),
                run(cursor, "SHOW WARNINGS"),
                run(cursor, "GET DIAGNOSTICS @n = NUMBER"),
                run(cursor, "SELECT @e, @n"),
            ]
        )
    found, expected = answers
    if expected[0][0] == 1064:  # an expression, which the proxy refuses in its own words
        assert found[0][0] == 1235
    else:
        assert found == expected


def test_what_signal_says_is_told_or_refused(connect: Connect) -> None:
    """An error has its SQLSTATE; that of a warning, and names of tables, are on the server's connection."""
    cursor = connect(database="legacy").cursor()
    run(cursor, "SIGNAL SQLSTATE '45001' SET MYSQL_ERRNO = 1062, MESSAGE_TEXT = 'no', TABLE_NAME = 't'")
    cursor.execute("GET DIAGNOSTICS CONDITION 1 @s = RETURNED_SQLSTATE, @e = MYSQL_ERRNO, @m = MESSAGE_TEXT")
    assert run(cursor, "GET DIAGNOSTICS CONDITION 1 @t = TABLE_NAME")[0] == 1235
    cursor.execute("SELECT @s, @e, @m, @t")
    assert cursor.fetchone() == ("45001", 1062, "no", None)
    run(cursor, "SIGNAL SQLSTATE '01234' SET MESSAGE_TEXT = 'careful'")
    cursor.execute("GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT")
    assert run(cursor, "GET DIAGNOSTICS CONDITION 1 @s = RETURNED_SQLSTATE")[0] == 1235
    cursor.execute("SELECT @m, @s")
    assert cursor.fetchone() == ("careful", "45001")


def test_what_no_server_takes_is_refused_in_its_words(both: tuple[Cursor, Cursor], flavour: str) -> None:
    for sql in (
        "GET DIAGNOSTICS",
        "GET STACKED DIAGNOSTICS @n = NUMBER",
        "GET DIAGNOSTICS CONDITION 1 here = MYSQL_ERRNO",
        "GET DIAGNOSTICS @n = NUMBER,",
        "GET DIAGNOSTICS @n = MYSQL_ERRNO",
        "GET DIAGNOSTICS CONDITION 1 @n = NUMBER",
    ):
        found, expected = (run(cursor, sql) for cursor in both)
        assert found == expected, sql
    row = [run(cursor, "GET DIAGNOSTICS CONDITION 1 @n = ROW_NUMBER")[0] for cursor in both]
    assert row == ([1235, []] if flavour == "mariadb" else [1064, 1064])
    prepared = [run(cursor, "PREPARE p FROM 'GET DIAGNOSTICS @n = NUMBER'")[0] for cursor in both]
    assert prepared == ([1235, []] if flavour == "mariadb" else [1295, 1295])


#: Warnings of each kind that has an SQLSTATE of its own, and errors.
CONDITIONS = [
    "SELECT CAST('x' AS SIGNED)",
    "SELECT CAST('2020-13-13' AS DATETIME)",
    "SELECT 1 DIV 0",
    "INSERT IGNORE INTO of_conditions VALUES (NULL, NULL), (8, 'x'), (9, 900)",
    "INSERT IGNORE INTO of_conditions VALUES (9, 1), (9, 1)",
    "DROP TABLE IF EXISTS a, b",
    "DROP DATABASE IF EXISTS nowhere",
    "CREATE TABLE IF NOT EXISTS of_conditions (id INT)",
    "SELECT GROUP_CONCAT(REPEAT('x', 2000))",
    "SELECT INET_NTOA('x'), FROM_UNIXTIME('y'), LN(0)",
]


def test_the_sqlstate_of_a_warning_follows_from_its_number(both: tuple[Cursor, Cursor]) -> None:
    proxied, direct = both
    direct.execute("SELECT VERSION()")
    flavour = flavour_of(direct.fetchone()[0])  # type: ignore[index]
    seen = 0
    for sql in CONDITIONS:
        run(direct, sql)
        run(proxied, sql)
        codes = [code for _, code, _ in run(direct, "SHOW WARNINGS")[0]]
        states = []
        for cursor in both:
            for number in range(len(codes)):
                cursor.execute(f"GET DIAGNOSTICS CONDITION {number + 1} @s{number} = RETURNED_SQLSTATE")
            cursor.execute(f"SELECT {', '.join(f'@s{number}' for number in range(len(codes)))}")
            states.append(cursor.fetchone())
        assert states == [tuple(sqlstate_of(code, flavour=flavour) for code in codes)] * 2, sql
        seen += len(codes)
    assert seen > len(CONDITIONS)
