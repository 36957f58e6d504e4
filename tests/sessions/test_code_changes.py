"""Code that a statement runs (a prepared text, a procedure, a function, a trigger) changes the session, as on
a server itself: its current database, its system and user variables, its tables.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sessions.test_scripts import Side, sides, told
from tests.sessions.test_tracking import SESSION_TRACK, Tracking
from tests.support.demo import Demo
from tests.support.servers import LocalServer

__all__ = ["sides"]

OTHERS = ("scripts_b", "scripts_c")
SETUP = (
    "CREATE TABLE t (a VARCHAR(5))",
    "CREATE TABLE scripts_b.t (a VARCHAR(5))",
    "CREATE FUNCTION f() RETURNS INT NO SQL BEGIN SET time_zone = '+03:00'; SET @q = 5; RETURN 1; END",
    "CREATE FUNCTION fails() RETURNS INT NO SQL"
    " BEGIN SET time_zone = '+04:00'; SIGNAL SQLSTATE '45000'; RETURN 1; END",
    "CREATE PROCEDURE p() BEGIN SET @q = 7, time_zone = '+02:00'; CREATE TEMPORARY TABLE tt (a INT); END",
    "CREATE PROCEDURE rows_too() BEGIN SELECT 1; SET @q = 7, time_zone = '+02:00'; SELECT 2; END",
    "CREATE PROCEDURE breaks() BEGIN SET time_zone = '+02:00'; SIGNAL SQLSTATE '45000'; END",
    "CREATE PROCEDURE scripts_c.drops() DROP DATABASE scripts_b",
    "CREATE PROCEDURE scripts_c.drops_and_breaks()"
    " BEGIN DROP DATABASE scripts_b; SIGNAL SQLSTATE '45000'; END",
    "CREATE PROCEDURE hides() BEGIN SET session_track_system_variables = ''; SET time_zone = '+02:00'; END",
    "CREATE PROCEDURE scripts_c.nothing() DO 1",
    "CREATE PROCEDURE assigns() SET @q = 11",
    "CREATE VIEW v AS SELECT f() AS a",
    "CREATE TABLE fired (a INT)",
    "CREATE TRIGGER fires BEFORE INSERT ON fired FOR EACH ROW SET @q = 9",
)
STATE = "SELECT DATABASE(), @q, @@time_zone, @@sql_mode, @@character_set_client, @@collation_connection"
ROWS = "SELECT (SELECT COUNT(*) FROM scripts.t), (SELECT COUNT(*) FROM scripts_b.t)"
INSERT = "INSERT INTO t VALUES (1)"
BACK = "USE scripts"

#: "{}" stands for a comment in front of the statement, or for none.
SCRIPTS = {
    "a function": ("{}SELECT f()", STATE, "{}DO f()", STATE, "P: {}SELECT f()", STATE),
    "a function that fails": ("{}SELECT fails()", STATE),
    "a view": ("{}SELECT * FROM v", STATE, "P: {}SELECT * FROM v", STATE),
    "a trigger": ("{}INSERT INTO fired VALUES (1)", STATE),
    "a trigger, prepared": ("P: {}INSERT INTO fired VALUES (1)", STATE),
    "a procedure": ("{}CALL p()", STATE, "SELECT * FROM tt", STATE),
    "a procedure, prepared": ("P: {}CALL p()", STATE, "SELECT * FROM tt"),
    "a procedure with results": ("{}CALL rows_too()", STATE),
    "a procedure that fails": ("{}CALL breaks()", STATE),
    "a procedure in a transaction": ("BEGIN", INSERT, "{}CALL rows_too()", "ROLLBACK", STATE, ROWS),
    "tracking switched off": (
        *("{}CALL hides()", "SELECT @@time_zone", "PREPARE s FROM 'SET time_zone = \"+09:00\"'"),
        *("{}EXECUTE s", STATE),
    ),
    "SET sql_mode": (
        *("{}PREPARE s FROM 'SET sql_mode = \"ANSI\"'", "{}EXECUTE s", STATE, "SELECT 'a'||'b'"),
        *('SELECT "a" FROM t', "{}PREPARE s FROM 'SET sql_mode = ''''", "{}EXECUTE s", STATE),
    ),
    "SET sql_mode = ''": (
        *("{}PREPARE s FROM 'SET sql_mode = \"\"'", "{}EXECUTE s", "INSERT INTO t VALUES ('abcdefgh')"),
        *("SELECT a FROM t", STATE),
    ),
    "SET NAMES": (
        *("{}PREPARE s FROM 'SET NAMES latin1 COLLATE latin1_bin'", "{}EXECUTE s", STATE),
        *("SELECT COLLATION('a'), @@character_set_results", "SET NAMES utf8mb4", STATE),
    ),
    "SET autocommit": (
        *("{}PREPARE s FROM 'SET autocommit = 0'", "{}EXECUTE s", INSERT, "ROLLBACK", ROWS),
        "SELECT @@autocommit",
    ),
    "a text from a variable": (
        *("SET @s = 'SET time_zone = \"+07:00\", @q = 3'", "{}PREPARE s FROM @s", "{}EXECUTE s", STATE),
        *("{}DEALLOCATE PREPARE s", STATE),
    ),
    "a temporary table": (
        *("SET @s = 'CREATE TEMPORARY TABLE tt AS SELECT 1 AS a'", "{}PREPARE s FROM @s", "{}EXECUTE s"),
        *("{}DEALLOCATE PREPARE s", "SELECT * FROM tt", "SELECT DATABASE()"),
    ),
    "the current database dropped": (
        *("USE scripts_b", "PREPARE s FROM 'DROP DATABASE scripts_b'", "{}EXECUTE s", STATE),
        *("CREATE DATABASE scripts_b", "CREATE TABLE scripts_b.t (a INT)", INSERT, "SELECT * FROM t", ROWS),
    ),
    "the current database dropped by a procedure": (
        *("USE scripts_b", "{}CALL scripts_c.drops()", STATE, "CREATE DATABASE scripts_b"),
        *("CREATE TABLE scripts_b.t (a INT)", INSERT, ROWS, BACK, INSERT, ROWS),
    ),
    "the current database dropped before an error": (
        *("USE scripts_b", "{}CALL scripts_c.drops_and_breaks()", STATE, "CREATE DATABASE scripts_b"),
        *("CREATE TABLE scripts_b.t (a INT)", INSERT, ROWS),
    ),
    "another database dropped": ("{}CALL scripts_c.drops()", STATE, INSERT, "SELECT COUNT(*) FROM t"),
    "a procedure of another database": (
        *("{}CALL scripts_c.nothing()", STATE, INSERT, ROWS, "{}CALL scripts_c.nothing()", INSERT, ROWS),
    ),
    # MySQL refuses these
    "USE": (
        *("{}EXECUTE IMMEDIATE 'USE scripts_b'", STATE, INSERT, ROWS, BACK, INSERT, ROWS, STATE),
        *("{}EXECUTE IMMEDIATE 'USE scripts_b'", "P: INSERT INTO t VALUES (2)", ROWS),
    ),
    "USE, prepared": (
        "PREPARE s FROM 'USE scripts_b'",
        "{}EXECUTE s",
        STATE,
        INSERT,
        ROWS,
        BACK,
        INSERT,
        ROWS,
    ),
    "USE by a procedure": (
        *("CREATE PROCEDURE goes() EXECUTE IMMEDIATE 'USE scripts_b'", "{}CALL goes()", STATE, INSERT, ROWS),
        *(BACK, INSERT, ROWS, "P: {}CALL goes()", STATE, INSERT, ROWS),
    ),
    "USE in a block": (
        *("{}BEGIN NOT ATOMIC SELECT 1; EXECUTE IMMEDIATE 'USE scripts_b'; END", STATE, INSERT, ROWS),
        *(BACK, "{}IF 1 THEN EXECUTE IMMEDIATE 'USE scripts_b'; SET @q = 1; END IF", STATE, INSERT, ROWS),
    ),
    "USE before an error": (
        "CREATE PROCEDURE goes() BEGIN EXECUTE IMMEDIATE 'USE scripts_b'; SIGNAL SQLSTATE '45000'; END",
        *("{}CALL goes()", STATE, INSERT, ROWS),
    ),
    "USE there and back": (
        *("{}EXECUTE IMMEDIATE 'USE scripts_b'", "{}EXECUTE IMMEDIATE 'USE scripts'", INSERT, ROWS),
        *("USE scripts_b", "DROP DATABASE scripts_b", STATE, "CREATE DATABASE scripts_b", "USE scripts_b"),
        *("{}EXECUTE IMMEDIATE 'SET @q = 1'", STATE),
    ),
    "SET at once": (
        *("{}EXECUTE IMMEDIATE 'SET sql_mode = \"ANSI\"'", "SELECT 'a'||'b'", STATE),
        *("{}EXECUTE IMMEDIATE 'SET NAMES latin1'", STATE),
    ),
}
COMMENTS = {"plain": "", "comment": "/* app */ ", "line": "-- CALL p()\n", "opened": "/*!50000 */"}


@pytest.fixture
def both_sides(sides: tuple[Side, Side], demo: Demo, plain: LocalServer) -> Iterator[tuple[Side, Side]]:
    """The proxy and a plain server, with tables, routines and two further databases."""
    for connection in (demo.connect(), plain.connect()):
        with connection, connection.cursor() as cursor:
            for name in OTHERS:
                cursor.execute(f"DROP DATABASE IF EXISTS {name}")
                cursor.execute(f"CREATE DATABASE {name}")
            cursor.execute("USE scripts")
            for sql in SETUP:
                cursor.execute(sql)
    yield sides
    for side in sides:
        side.close()
    for connection in (demo.connect(), plain.connect()):
        with connection, connection.cursor() as cursor:
            for name in OTHERS:
                cursor.execute(f"DROP DATABASE IF EXISTS {name}")


@pytest.mark.parametrize("comment", [*COMMENTS])
@pytest.mark.parametrize("what", [*SCRIPTS])
def test_changes_by_code_are_the_sessions(both_sides: tuple[Side, Side], what: str, comment: str) -> None:
    script = SCRIPTS[what]
    for number, sql in enumerate(script):
        text = sql.replace("{}", COMMENTS[comment]).encode()
        through, direct = (told(side.ask(1, text)) for side in both_sides)
        assert through == direct, (number, text)


@pytest.mark.parametrize("comment", [*COMMENTS])
def test_changes_by_one_of_several_statements(both_sides: tuple[Side, Side], comment: str) -> None:
    first = COMMENTS[comment]
    for side in both_sides:
        side.ask(1, b"SELECT 1")
        side.sessions[1].write(b"\x03\0\0\0\x1b\0\0")  # COM_SET_OPTION: MULTI_STATEMENTS
        side.sessions[1].packet()
    answers = []
    for side in both_sides:
        client = side.sessions[1]
        got = [told(client.ask(f"{first}CALL p(); {first}SELECT f(); {first}{STATE}".encode()))]
        answers.append([*got, told(client.ask(STATE.encode())), told(client.ask(b"SELECT * FROM tt"))])
    assert answers[0] == answers[1]


def test_clients_with_session_tracking_are_told_of_changes_by_code(
    both_sides: tuple[Side, Side], demo: Demo, plain: LocalServer, flavour: str
) -> None:
    script = [
        "SET SESSION session_track_system_variables = 'time_zone,sql_mode'",
        *("CALL p()", "PREPARE s FROM 'SET sql_mode = \"ANSI\"'", "EXECUTE s", "DO f()"),
        *("SET SESSION session_track_state_change = ON", "SET session_track_transaction_info = 'STATE'"),
        *("/* app */ CREATE TEMPORARY TABLE t1 (a INT)", "-- app\nBEGIN"),
        *("/* app */ INSERT INTO t VALUES (1)", "ROLLBACK", "/* app */ DROP TEMPORARY TABLE t1", "DO f()"),
        "CALL assigns()",
    ]
    script += ["EXECUTE IMMEDIATE 'USE scripts_b'"] if flavour == "mariadb" else []
    found = []
    logins = ((demo.host, demo.port, "demo", "demo"), ("127.0.0.1", plain.port, plain.user, plain.password))
    for host, port, user, password in logins:
        with Tracking(host, port) as client:
            assert client.login(user, password, database="scripts", flags=SESSION_TRACK).kind == "ok"
            told_of = [(sql, client.told(sql)) for sql in script]
            # what a SET of these tells is looked at in test_tracking
            found.append([one for one in told_of if "session_track" not in one[0]])
    assert found[0] == found[1]


@pytest.mark.parametrize("comment", [*COMMENTS])
def test_code_without_a_current_database(both_sides: tuple[Side, Side], comment: str) -> None:
    """MySQL tells the current database after a CALL in another one: the connection's, not the session's."""
    script = ("SELECT DATABASE()", "{}CALL scripts_c.nothing()", "SELECT DATABASE()", INSERT)
    more = ("BEGIN", "{}CALL scripts_c.nothing()", "SELECT DATABASE()", "{}CALL scripts_c.drops()")
    for sql in (*script, *more, "SELECT DATABASE()", BACK, INSERT, "SELECT COUNT(*) FROM t"):
        text = sql.replace("{}", COMMENTS[comment]).encode()
        through, direct = (told(side.ask(2, text)) for side in both_sides)
        assert through == direct, text
