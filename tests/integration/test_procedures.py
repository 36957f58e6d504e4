"""Stored procedures and functions on a database that is not sharded, beside the same on the server itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from tests.integration.fixtures import Connect, MakeRaw
from tests.integration.raw import Raw, query
from tests.support.demo import Demo
from tests.support.servers import Connection

MADE = """
CREATE TABLE called (a INT PRIMARY KEY);
CREATE PROCEDURE rows_of(IN high INT, OUT total INT, INOUT twice INT) BEGIN
    DECLARE n INT DEFAULT 0;
    WHILE n < high DO SET n = n + 1; SELECT n, REPEAT('x', n); END WHILE;
    SET total = n, twice = twice * 2;
END;
CREATE PROCEDURE writes(IN value INT) BEGIN
    INSERT INTO called VALUES (value), (value + 1);
    SELECT COUNT(*) FROM called;
    INSERT INTO called VALUES (value);
    SELECT 'never';
END;
CREATE PROCEDURE quiet(IN value INT) UPDATE called SET a = a + 100 WHERE a = value;
CREATE PROCEDURE warns() BEGIN SELECT 1; SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'careful'; END;
CREATE FUNCTION doubled(a INT) RETURNS INT DETERMINISTIC BEGIN DECLARE b INT; SET b = a * 2; RETURN b; END
"""


STATEMENTS = [
    "SET @t = 5, @u = 4",
    "CALL rows_of(3, @t, @u)",
    "SELECT @t, @u",
    "CALL rows_of(0, @t, @u)",
    "SELECT @t, @u",
    "CALL writes(1)",
    "SELECT * FROM called",
    "DELETE FROM called",
    "BEGIN",
    "CALL writes(5)",
    "ROLLBACK",
    "SELECT * FROM called",
    "INSERT INTO called VALUES (7)",
    "CALL quiet(7)",
    "SELECT ROW_COUNT()",
    "CALL quiet(8)",
    "DELETE FROM called",
    "CALL warns()",
    "SHOW WARNINGS",
    "SELECT doubled(21), doubled(NULL)",
    "CALL missing(1)",
    "CALL rows_of(1)",
    "SELECT doubled()",
    "CALL legacy.rows_of(1, @t, @u)",
    "SELECT @t, @u",
]


def run(connection: Connection, sql: str) -> list[Any]:
    """Rows, or affected count, of every result; an error's number and text ends the list."""
    found: list[Any] = []
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql)
            while True:
                found.append(cursor.fetchall() if cursor.description else cursor.rowcount)
                if not cursor.nextset():
                    break
        except pymysql.err.MySQLError as error:
            found.append(error.args)
    return found


@pytest.fixture
def made(demo: Demo) -> Iterator[Connection]:
    """The server's own connection, with the routines made."""
    with demo.direct(database="legacy") as connection, connection.cursor() as cursor:
        pieces = MADE.strip().replace("CREATE", "\0CREATE").split("\0")[1:]
        try:
            for piece in pieces:
                cursor.execute(piece.strip().rstrip(";"))
            yield connection
        finally:
            cursor.execute("DROP TABLE IF EXISTS called")
            for name in ("rows_of", "writes", "quiet", "warns"):
                cursor.execute(f"DROP PROCEDURE IF EXISTS {name}")
            cursor.execute("DROP FUNCTION IF EXISTS doubled")


def test_as_on_the_server(made: Connection, connect: Connect) -> None:
    expected = [run(made, sql) for sql in STATEMENTS]  # at the end the table is empty again
    with connect(database="legacy") as proxied:
        for sql, answers in zip(STATEMENTS, expected, strict=True):
            assert run(proxied, sql) == answers, sql
        with proxied.cursor() as cursor:
            cursor.callproc("rows_of", (2, 0, 5))
            assert cursor.fetchall() == ((1, "x"),)
            assert cursor.nextset()
            assert cursor.fetchall() == ((2, "xx"),)
            assert cursor.nextset()
            assert not cursor.nextset()
            cursor.execute("SELECT @_rows_of_1, @_rows_of_2")
            assert cursor.fetchall() == ((2, 10),)


def test_a_client_of_one_result(made: Connection, raw: MakeRaw, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.integration.raw.CAPABILITIES", 0x1 | 0x4 | 0x200 | 0x2000 | 0x8000 | 0x80000)
    client = raw(database="legacy")
    refused = client.ask("CALL rows_of(1, @a, @b)")
    assert (refused.code, refused.sqlstate) == (1312, "0A000")
    assert refused.message.startswith("PROCEDURE rows_of can't return a result set in the given context")
    assert client.ask("SELECT doubled(4)").value == b"8"


def test_the_client_leaves_in_the_middle(made: Connection, raw: MakeRaw, demo: Demo) -> None:
    client: Raw = raw(database="legacy")
    client.write(query("CALL rows_of(3000, @a, @b)"))
    assert client.reply().kind == "rows"
    client.reset()
    assert raw(database="legacy").ask("SELECT doubled(1)").value == b"2"
