"""MariaDB's SET STATEMENT … FOR: variables for one statement. On MySQL it is a syntax error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from pymysql.cursors import Cursor

from tests.integration.both_sides import both_cursors
from tests.integration.fixtures import Connect
from tests.support.servers import LocalServer

INSERT = "INSERT INTO of_modes (v) VALUES (9999)"
AS_A_SERVER = [
    f"SET STATEMENT sql_mode = '' FOR {INSERT}",
    f"SET STATEMENT sql_mode = 'STRICT_ALL_TABLES' FOR {INSERT}",
    f"SET STATEMENT sql_mode = 'traditional,NO_ZERO_DATE', sql_notes = 0 FOR {INSERT}",
    f"/* app */ SET STATEMENT `sql_mode` = '' FOR {INSERT}",
    "SET STATEMENT max_statement_time = 10, sql_mode = '' FOR SELECT v FROM of_modes",
    "SET STATEMENT sql_mode = '' FOR UPDATE of_modes SET v = 'x'",
    INSERT,
]
#: What could change how the statement is read, and what is behind FOR that the proxy answers.
REFUSED = {
    "SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT 1": "SET STATEMENT sql_mode",
    "SET STATEMENT sql_mode = CONCAT('ANSI', '') FOR SELECT 1": "SET STATEMENT sql_mode",
    "SET STATEMENT sql_mode = DEFAULT FOR SELECT 1": "SET STATEMENT sql_mode",
    "SET STATEMENT character_set_client = latin1 FOR SELECT 1": "SET STATEMENT character_set_client",
    "SET STATEMENT sql_mode = '' FOR SET @a = 1": "SET STATEMENT … FOR SET",
    "SET STATEMENT sql_mode = '' FOR SHOW TABLES": "SET STATEMENT … FOR SHOW TABLES",
    "SET STATEMENT sql_mode = '' FOR UNLOCK TABLES": "SET STATEMENT … FOR UNLOCK TABLES",
    "SET STATEMENT sql_mode = '' FOR USE mysql": "SET STATEMENT … FOR USE",
    "SET STATEMENT sql_mode = '' FOR COMMIT": "SET STATEMENT … FOR COMMIT",
}


@pytest.fixture
def both(connect: Connect, plain: LocalServer) -> Iterator[tuple[Cursor, Cursor]]:
    with both_cursors(connect, plain, "of_modes (v TINYINT)") as cursors:
        yield cursors


def run(cursor: Cursor, sql: str) -> Any:
    try:
        cursor.execute(sql)
    except pymysql.Error as error:
        return error.args
    return cursor.fetchall()


def test_an_sql_mode_for_one_statement_decides_how_values_are_taken(both: tuple[Cursor, Cursor]) -> None:
    for sql in AS_A_SERVER:
        for question in (
            sql,
            "SHOW WARNINGS",
            "SELECT @@sql_mode = @@global.sql_mode",
            "SELECT v FROM of_modes",
        ):
            found, expected = (run(cursor, question) for cursor in both)
            assert found == expected, (sql, question)


def test_other_values_do_not_share_a_plan(both: tuple[Cursor, Cursor], flavour: str) -> None:
    """The plan of a statement is kept by its text without literals."""
    proxied, _ = both
    code = 1235 if flavour == "mariadb" else 1064
    for _ in range(2):
        assert flavour != "mariadb" or run(proxied, "SET STATEMENT sql_mode = '' FOR SELECT 1") == ((1,),)
        assert run(proxied, "SET STATEMENT sql_mode = 'ANSI_QUOTES' FOR SELECT 1")[0] == code


def test_a_session_that_reads_otherwise_keeps_its_way(both: tuple[Cursor, Cursor], flavour: str) -> None:
    proxied, _ = both
    proxied.execute("SET sql_mode = 'ANSI_QUOTES'")
    found = run(proxied, "SET STATEMENT sql_mode = '' FOR SELECT 1")
    assert found[0] == (1235 if flavour == "mariadb" else 1064)


@pytest.mark.parametrize(("sql", "what"), REFUSED.items())
def test_what_is_refused_says_why_and_what_to_do(connect: Connect, sql: str, what: str, flavour: str) -> None:
    cursor = connect(database="legacy").cursor()
    code, message = run(cursor, sql)
    if flavour == "mariadb":
        assert code == 1235
        assert message.startswith(f"shardgate does not support {what}: ")
        assert "shards" not in message
        assert "SET SESSION" in message
    else:
        assert code == 1064
