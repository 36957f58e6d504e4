"""Scripts of statements in one or several sessions: each answer, with its warnings and what session tracking
tells, is a plain server's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.fuzz.sessions.client import Answer, Session
from tests.integration.test_one_session import shown
from tests.support.demo import Demo
from tests.support.servers import LocalServer

STATE = 5
PIN = (1 << 46) + (1 << 36) + 9_900_001
MADE = (
    "CREATE TABLE legacy.scripted (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(60))",
    "CREATE FUNCTION legacy.scripted_sets(x INT) RETURNS INT DETERMINISTIC BEGIN SET @b = x; RETURN x; END",
    "CREATE PROCEDURE legacy.scripted_dynamic(x VARCHAR(200)) BEGIN SET @q = x; PREPARE scripted FROM @q;"
    " EXECUTE scripted; DEALLOCATE PREPARE scripted; END",
    "CREATE PROCEDURE legacy.scripted_sorts() SET SESSION sort_buffer_size = 500000",
    f"INSERT INTO demo.pins (id, data) VALUES ({PIN}, '{{}}')",
)
GONE = (
    "DROP TABLE IF EXISTS legacy.scripted",
    "DROP FUNCTION IF EXISTS legacy.scripted_sets",
    "DROP PROCEDURE IF EXISTS legacy.scripted_dynamic",
    "DROP PROCEDURE IF EXISTS legacy.scripted_sorts",
    f"DELETE FROM demo.pins WHERE id = {PIN}",
)

Script = tuple[str, Sequence[str]]
"""The current database of all sessions, and statements. `1> ` before a statement is for another session than
the first, `?> ` prepares and executes it, and `1?> ` does both.
"""

SCRIPTS: dict[str, Script] = {
    "a variable that PREPARE assigns is no other session's": (
        "demo",
        (
            f"?> SELECT COUNT(*) FROM pins WHERE id = {PIN} HAVING (@b := 2) IS NOT NULL",
            "SELECT @b",
            f"1?> SELECT id, @b := COALESCE(@b, 0) + 1 AS e FROM pins WHERE id = {PIN} AND 1 = 0",
            f"1> SELECT id, @b := COALESCE(@b, 0) + 1 AS e FROM pins WHERE id = {PIN}",
            "1> SELECT @b",
            "?> DELETE FROM legacy.scripted WHERE id = 1 AND (@c := 2) IS NOT NULL",
            "1> SELECT @c",
            "1?> SELECT @c",
            "SELECT @c",
        ),
    ),
    "and it is the session's own, whatever runs": (
        "legacy",
        (
            "?> UPDATE scripted SET v = 7 WHERE id = 1 AND (@a := 'it''s') IS NOT NULL",
            "SELECT @a",
            "?> SELECT COUNT(*) FROM demo.usernames WHERE username = 'no' HAVING (@c := 'it''s') IS NOT NULL",
            "SELECT @c",
            "1> SELECT @a, @c",
        ),
    ),
    "what PREPARE has warned of is no warning of EXECUTE": (
        "demo",
        tuple(
            line
            for sql in (
                "SET @b = (@d := '3')",
                f"SELECT SQL_CALC_FOUND_ROWS id FROM pins WHERE id = {PIN} ORDER BY id LIMIT 1",
                "SELECT SQL_CALC_FOUND_ROWS id FROM pins ORDER BY id LIMIT 1",
                f"SELECT data FROM pins WHERE id = {PIN + 1} LIMIT 1 INTO @d",
                f"UPDATE /*+ SET_VAR(sql_mode='') */ pins SET data = '{{}}' WHERE id = {PIN}",
                f"UPDATE /*+ SET_VAR(sort_buffer_size=300000) */ pins SET data = '{{}}'"
                f" WHERE id IN ({PIN}, {PIN + (1 << 46)})",
                f"SELECT @d := 1, CAST('x' AS SIGNED) FROM pins WHERE id = {PIN}",
            )
            for line in (f"?> {sql}", "SHOW WARNINGS", "SELECT @@warning_count, @@error_count")
        ),
    ),
    "but what EXECUTE warns of, too, is": (
        "demo",
        (
            f"?> SELECT CAST('zz' AS SIGNED) FROM pins WHERE id = {PIN}",
            "SHOW WARNINGS",
            f"?> SELECT @d := 1, CAST('zz' AS SIGNED) FROM pins WHERE id = {PIN}",
            "SHOW WARNINGS",
        ),
    ),
    "a prepared USE is of its session": (
        "legacy",
        (
            "?> USE `demo`",
            f"SELECT DATABASE(), COUNT(*) FROM pins WHERE id = {PIN}",
            "?> USE legacy",
            "SELECT DATABASE(), COUNT(*) FROM scripted",
        ),
    ),
    "FOUND_ROWS() behind CREATE TABLE … SELECT that fails": (
        "legacy",
        (
            "SELECT id FROM customers ORDER BY id LIMIT 3",
            "CREATE TEMPORARY TABLE scripted_too AS SELECT 1 AS id, CAST('a' AS SIGNED) AS v",
            "SELECT FOUND_ROWS()",
            "CREATE TEMPORARY TABLE scripted_too AS SELECT id FROM customers ORDER BY id LIMIT 2",
            "SELECT FOUND_ROWS()",
            "DROP TEMPORARY TABLE IF EXISTS scripted_too",
        ),
    ),
    "a condition that is not there": (
        "legacy",
        (
            "INSERT INTO scripted (v) VALUES (1)",
            "GET DIAGNOSTICS CONDITION 1 @c = RETURNED_SQLSTATE, @d = MYSQL_ERRNO",
            "SELECT ROW_COUNT()",
            "SHOW WARNINGS",
        ),
    ),
    "warnings of another session's connection": (
        "demo",
        (
            "1> SELECT CAST('of another' AS SIGNED)",
            "1> SELECT GET_LOCK('scripted', 0)",
            "BEGIN",
            "SELECT CAST('own' AS SIGNED)",
            "SELECT IS_USED_LOCK('scripted') IS NOT NULL",
            "SHOW WARNINGS",
            "SELECT CAST('own' AS SIGNED)",
            "SELECT GET_LOCK('scripted', 0)",
            "SHOW WARNINGS",
            "ROLLBACK",
        ),
    ),
    "what cannot be prepared is told before the table": (
        "demo",
        ("SELECT 1", "?> LOCK TABLES nowhere WRITE", "?> LOCK TABLES demo.nowhere READ", "UNLOCK TABLES"),
    ),
    "READ ONLY is told before locks and tables": (
        "demo",
        (
            "SET TRANSACTION READ ONLY",
            "INSERT INTO nowhere (v) VALUES (0)",
            "?> INSERT INTO nowhere (v) VALUES (0)",
            "SELECT * FROM nowhere",
            "LOCK TABLES legacy.scripted WRITE",
            "SET TRANSACTION READ ONLY",
            f"DELETE FROM pins WHERE id = {PIN + 1}",
            f"?> DELETE FROM pins WHERE id = {PIN + 1}",
            "DROP TABLE IF EXISTS nowhere",
            "DROP TABLE nowhere",
            "UNLOCK TABLES",
        ),
    ),
    "DROP TABLE commits, whether there is one or not": (
        "demo",
        (
            "BEGIN",
            "DROP TABLE IF EXISTS nowhere",
            "START TRANSACTION READ ONLY",
            "DROP TABLE nowhere",
            "SELECT 1",
        ),
    ),
    "what PREPARE warned of before its error": (
        "",
        (
            "?> INSERT INTO legacy.nowhere (v) VALUES ((@d := CONCAT('abc', 7)))",
            "SELECT @@warning_count, @@error_count",
        ),
    ),
    "an unknown table of a statement that commits": (
        "demo",
        (
            "BEGIN",
            f"UPDATE pins SET data = '{{\"n\": 1}}' WHERE id = {PIN}",
            "LOCK TABLES nowhere WRITE",
            "ROLLBACK",
            f"SELECT data FROM pins WHERE id = {PIN}",
            "BEGIN",
            f"UPDATE pins SET data = '{{\"n\": 2}}' WHERE id = {PIN}",
            "TRUNCATE TABLE nowhere",
            "ROLLBACK",
            f"SELECT data FROM pins WHERE id = {PIN}",
            "BEGIN",
            f"UPDATE pins SET data = '{{\"n\": 3}}' WHERE id = {PIN}",
            "SELECT * FROM nowhere",
            "ROLLBACK",
            f"SELECT data FROM pins WHERE id = {PIN}",
        ),
    ),
    "FOUND_ROWS() behind an UPDATE of a reference table": (
        "demo",
        (
            "SELECT 1",
            "UPDATE countries SET name = name WHERE code IN ('AT', 'DE')",
            "SELECT FOUND_ROWS()",
            "UPDATE countries SET name = name WHERE code = 'nowhere'",
            "SELECT FOUND_ROWS()",
        ),
    ),
    "PREPARE of a write, with a transaction on another host": (
        "legacy",
        (
            "SELECT GET_LOCK('scripted', 0)",
            "SET autocommit = 0",
            f"SELECT id FROM demo.pins WHERE id = {PIN}",
            "PREPARE q FROM 'INSERT INTO scripted (v) VALUES (?)'",
            "ROLLBACK",
        ),
    ),
    "a SET that is refused ends no transaction": (
        "legacy",
        tuple(
            line
            for sql in (
                "SET nosuch = DEFAULT, sql_mode = DEFAULT",
                "SET @x = 3, sort_buffer_size = DEFAULT, nosuch = 1",
                "SET sort_buffer_size = 300000, lc_time_names = 'nowhere'",
                "SET sort_buffer_size = DEFAULT, lc_time_names = 'nowhere'",
            )
            for line in (
                "BEGIN",
                "INSERT INTO scripted (v) VALUES (1)",
                sql,
                "SELECT COUNT(*), @x, @@sort_buffer_size FROM scripted",
                f"?> {sql}",
                "SELECT COUNT(*), @x, @@sort_buffer_size FROM scripted",
                "ROLLBACK",
            )
        ),
    ),
    "nor is one of a text that PREPARE reads": (
        "legacy",
        (
            "PREPARE p FROM 'SELECT id FROM scripted WHERE (@b := 2) IS NOT NULL'",
            "DEALLOCATE PREPARE p",
            "1> SELECT @b",
            "1> SELECT COUNT(*), @b FROM scripted",
            "1> SELECT @b := COALESCE(@b, 0) + 1",
        ),
    ),
    "a connection's older FOUND_ROWS() is not SET's": (
        "demo",
        (
            "SELECT legacy.scripted_sets(1), @a",
            "SET @d = legacy.scripted_sets(7)",
            "SELECT FOUND_ROWS()",
            f"SELECT id FROM pins WHERE id IN ({PIN + 1}, {PIN + 2})",
            "SET @d = legacy.scripted_sets(7)",
            "SELECT FOUND_ROWS()",
        ),
    ),
    "GET_LOCK that waits in vain ends older warnings on MariaDB": (
        "legacy",
        (
            "1> SELECT GET_LOCK('scripted', 0)",
            "SELECT CAST('zz' AS SIGNED)",
            "DO GET_LOCK('scripted', 0)",
            "SHOW WARNINGS",
            "SELECT CAST('zz' AS SIGNED)",
            "DO GET_LOCK('scripted too', 0)",
            "SHOW WARNINGS",
        ),
    ),
    "DROP TABLE IF EXISTS of what is not there warns": (
        "demo",
        (
            "DROP TABLE IF EXISTS nowhere",
            "SHOW WARNINGS",
            "DROP TABLE IF EXISTS nowhere, `demo`.nothing",
            "SHOW WARNINGS",
            "?> DROP TABLE IF EXISTS nowhere",
            "DROP TABLE nowhere, nothing",
            "SELECT ROW_COUNT()",
        ),
    ),
    "SET TRANSACTION READ ONLY holds for PREPARE": (
        "legacy",
        (
            "SET TRANSACTION READ ONLY",
            "?> UPDATE nosuch SET v = 1",
            "?> UPDATE scripted SET v = 3 WHERE id = 3 AND (@a := 'Zz') IS NOT NULL",
            "SELECT @a",
            "?> SELECT COUNT(*) FROM scripted",
            "?> UPDATE scripted SET v = 3 WHERE id = 3",
        ),
    ),
    "a procedure without tables does not end a transaction": (
        "legacy",
        (
            "SET autocommit = 0",
            "CALL scripted_dynamic('DO 1')",
            f"UPDATE demo.pins SET data = '{{}}' WHERE id = {PIN}",
            "CALL scripted_sorts()",
            "ROLLBACK",
        ),
    ),
    "character sets are told once": (
        "demo",
        (
            "COMMIT",
            "BEGIN",
            "SET CHARACTER SET cp1251",
            "SET NAMES utf8mb4 COLLATE utf8mb4_bin",
            "INSERT INTO legacy.scripted (v) VALUES ('abc')",
            "SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
            "INSERT INTO legacy.scripted (v) VALUES ('abc')",
            "ROLLBACK",
        ),
    ),
}

ON_MARIADB: dict[str, Script] = {
    "SET STATEMENT is read in the database of now": (
        "legacy",
        (
            "?> USE `demo`",
            f"SET STATEMENT sort_buffer_size = 300000 FOR SELECT COUNT(*) FROM pins WHERE id = {PIN}",
            f"?> SELECT COUNT(*) FROM pins WHERE id = {PIN}",
            "USE legacy",
            "SET STATEMENT sort_buffer_size = 300000 FOR SELECT COUNT(*) FROM scripted",
        ),
    ),
    "names of columns behind SET STATEMENT": (
        "legacy",
        (
            "SET STATEMENT sort_buffer_size = 300000 FOR SELECT LAST_INSERT_ID ( ), DATABASE(), 1",
            "SET STATEMENT max_statement_time = 10 FOR SELECT ROW_COUNT() AS r, CONNECTION_ID() IS NULL",
        ),
    ),
    "a block reads the session's LAST_INSERT_ID()": (
        "legacy",
        (
            "INSERT INTO scripted (v) VALUES ('a'), ('b')",
            "BEGIN NOT ATOMIC SET @a = 1; SELECT LAST_INSERT_ID(); END",
            "BEGIN NOT ATOMIC SET @a = LAST_INSERT_ID(); END",
            "SELECT @a",
            "IF 1 THEN SELECT LAST_INSERT_ID(7); END IF",
            "SELECT LAST_INSERT_ID()",
        ),
    ),
}


@pytest.fixture
def sides(demo: Demo, plain: LocalServer, unharmed: None) -> Iterator[tuple[list[Session], list[Session]]]:
    """Two sessions of the proxy and two of a server, in no database."""
    with ExitStack() as stack:
        through, direct = (
            [stack.enter_context(Session(*place, None)) for _ in range(2)]
            for place in (
                (demo.host, demo.port, "demo", "demo"),
                (plain.host, plain.port, plain.user, plain.password),
            )
        )
        for side in (through, direct):
            for statement in (*GONE, *MADE):
                side[0].ask(statement.encode())
        yield through, direct
        for side in (through, direct):
            for statement in ("ROLLBACK", *GONE):
                side[0].ask(statement.encode())


def answers(sessions: list[Session], script: Script) -> list[tuple[str, list[Answer]]]:
    """The statements with their answers."""
    database, statements = script
    for session in sessions:
        if database:
            assert session.ask(f"USE {database}".encode())[-1].kind == "ok"
    found = []
    for line in statements:
        head, mark, sql = line.partition("> ")
        if not mark or head not in ("1", "?", "1?"):
            head, sql = "", line
        session = sessions["1" in head]
        replies = session.prepared(sql.encode()) if "?" in head else session.ask(sql.encode())
        found.append((line, [without_state(shown(reply)) for reply in replies]))
    return found


def without_state(answer: Answer) -> Answer:
    """Without the transaction's state, which MySQL 9.7 tells when it shall not."""
    return replace(answer, tracked=tuple(one for one in answer.tracked if one[0] != STATE))


@pytest.mark.parametrize("name", SCRIPTS)
def test_each_answer_is_a_servers(sides: tuple[list[Session], list[Session]], name: str) -> None:
    through, direct = sides
    assert answers(through, SCRIPTS[name]) == answers(direct, SCRIPTS[name])


@pytest.mark.parametrize("name", ON_MARIADB)
def test_each_answer_is_mariadbs(sides: tuple[list[Session], list[Session]], name: str, flavour: str) -> None:
    if flavour == "mariadb":
        through, direct = sides
        assert answers(through, ON_MARIADB[name]) == answers(direct, ON_MARIADB[name])


def test_who_goes_while_his_variables_are_read_leaves_nothing(demo: Demo, unharmed: None) -> None:
    """The OK is there, and the proxy still asks the connection what the statement has left on it."""
    place = (demo.host, demo.port, "demo", "demo", "demo")
    with Session(*place) as first:
        usual = first.ask(b"SELECT @@sql_mode")[0].rows
        assert first.ask(f"INSERT INTO pins (id, data) VALUES ({PIN}, '{{}}')".encode())[0].kind == "ok"
    found = []
    for _ in range(30):
        with Session(*place) as one:
            one.ask(b"SET sql_mode = 'NO_BACKSLASH_ESCAPES', @a = 'of another'")
            assert one.ask(f"UPDATE pins SET data = (@b := data) WHERE id = {PIN}".encode())[0].kind == "ok"
        with Session(*place) as next_:
            asked = next_.ask(f"SELECT @@sql_mode, @a, @b FROM pins WHERE id = {PIN}".encode())[0]
            found.append((asked.rows, asked.status))
    with Session(*place) as last:
        last.ask(f"DELETE FROM pins WHERE id = {PIN}".encode())
    assert set(found) == {((usual[0] + b"\xfb\xfb",), 2)}
