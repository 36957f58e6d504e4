"""Statements of one session, one after another, each answered as by one server: rows, names of columns,
counts of warnings, and what the session has afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.fuzz.sessions.client import Answer, Session
from tests.support.demo import Demo
from tests.support.servers import LocalServer

PIN = 11 << 46 | 1 << 36 | 8_123_456
PHOTOS = "147110650789758009, 157653879540944914"

HELD = "SELECT IS_USED_LOCK('one_session') = CONNECTION_ID()"

SCRIPTS = {
    "a text as bytes in a user variable": ("SET NAMES binary", "SET @a = 'x'", "SELECT @a, COLLATION(@a)"),
    "names of columns in a wide character set": (
        "SET character_set_results = utf16",
        "SELECT no_such_column",
        "SHOW WARNINGS",
        "SHOW ERRORS",
        "SHOW COUNT(*) WARNINGS",
        "SHOW COUNT(*) ERRORS",
    ),
    "a lock that a statement may leave out to release": (
        "DO GET_LOCK('one_session', 0)",
        "SELECT IF(0, RELEASE_LOCK('one_session'), 5)",
        HELD,
        "SELECT 0 AND RELEASE_LOCK('one_session')",
        HELD,
        "SELECT RELEASE_ALL_LOCKS() FROM DUAL WHERE 0",
        HELD,
        "UPDATE customers SET name = RELEASE_LOCK('one_session') WHERE id = -1",
        HELD,
        "DO RELEASE_LOCK('one_session')",
        HELD,
    ),
    "an ID of the client's behind SET TRANSACTION": (
        "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
        f"REPLACE INTO demo.pins (id, data) VALUES ({PIN}, '{{}}')",
        "SELECT LAST_INSERT_ID()",
        f"DELETE FROM demo.pins WHERE id = {PIN}",
    ),
    "all conditions of RESIGNAL": (
        "CREATE PROCEDURE again() BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION"
        " RESIGNAL SQLSTATE '45001' SET MESSAGE_TEXT = 'second';"
        " SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'first'; END",
        "CALL again()",
        "SHOW WARNINGS",
        "DROP PROCEDURE again",
    ),
    "a lock that each row takes": (
        "UPDATE customers SET name = CONCAT(name, LEFT(GET_LOCK('one_session', 0), 0)) WHERE id IN (1, 2)",
        "SELECT RELEASE_LOCK('one_session')",
        HELD,
        "SELECT RELEASE_LOCK('one_session')",
        HELD,
    ),
}
MARIADB = {
    "what a failed statement noted before": (
        "ALTER TABLE customers DROP COLUMN IF EXISTS nothing, DROP COLUMN nobody",
        "SHOW WARNINGS",
        "SHOW COUNT(*) ERRORS",
    ),
    "LAST_INSERT_ID(value) in RETURNING": (
        f"REPLACE INTO demo.pins (id, data) VALUES ({PIN}, '{{}}') RETURNING LAST_INSERT_ID(7) AS e",
        "SELECT LAST_INSERT_ID()",
        f"DELETE FROM demo.pins WHERE id = {PIN}",
    ),
}
MYSQL = {
    "an ID of the client's behind what has changed a variable": (
        "SELECT /*+ SET_VAR(sort_buffer_size = 300000) */ 5",
        f"REPLACE INTO demo.pins (id, data) VALUES ({PIN}, '{{}}')",
        "SELECT LAST_INSERT_ID()",
        f"DELETE FROM demo.pins WHERE id = {PIN}",
    ),
    "what a failed statement was warned of before": tuple(
        sql
        for question in (
            "SELECT /*+ NO_SUCH() */ nothing FROM demo.photos WHERE id = 147110650789758009",
            f"SELECT /*+ NO_SUCH() */ nothing FROM demo.photos WHERE id IN ({PHOTOS})",
            "SELECT /*+ NO_SUCH() */ COUNT(nothing) FROM demo.photos",
            f"UPDATE /*+ NO_SUCH() */ demo.photos SET nothing = 1 WHERE id IN ({PHOTOS})",
            "SELECT /*+ NO_SUCH() */ nothing FROM customers",
        )
        for sql in (question, "SHOW COUNT(*) WARNINGS", "SHOW COUNT(*) ERRORS")
    ),
    "a hint that a statement may have once": tuple(
        f"SELECT /*+ {hints} */ {what} FROM demo.photos WHERE id IN ({PHOTOS}){order}"
        for hints in (
            "MAX_EXECUTION_TIME(5000)",
            "SET_VAR(sort_buffer_size=300000)",
            "QB_NAME(q) NO_RANGE_OPTIMIZATION(photos) SET_VAR(sort_buffer_size = '300000')",
            "SET_VAR(sql_mode='')",
            "NO_SUCH()",
        )
        for what, order in (
            ("id, @@sort_buffer_size", " ORDER BY id"),
            ("id", " ORDER BY id LIMIT 1"),
            ("COUNT(*), MAX(id)", ""),
        )
    ),
}


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[tuple[Session, Session]]:
    """A session of the proxy and one of a server, on `legacy`."""
    user = demo.ready["proxy"]
    with ExitStack() as stack:
        yield (
            stack.enter_context(Session(demo.host, demo.port, user["user"], user["password"], "legacy")),
            stack.enter_context(Session(plain.host, plain.port, plain.user, plain.password, "legacy")),
        )


def shown(answer: Answer) -> Answer:
    """What is compared: names of columns without types, which a UNION changes, and no texts of errors."""
    names = tuple((name, 0, 0) for name, *_ in answer.columns)
    return replace(answer, columns=names, message="")


def compare(sides: tuple[Session, Session], script: tuple[str, ...]) -> None:
    for sql in script:
        found, expected = ([shown(one) for one in side.ask(sql.encode())] for side in sides)
        assert found == expected, sql


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_session_is_answered_as_by_one_server(sides: tuple[Session, Session], name: str) -> None:
    compare(sides, SCRIPTS[name])


@pytest.mark.parametrize("name", [*MARIADB, *MYSQL])
def test_a_session_of_one_kind_of_server(sides: tuple[Session, Session], flavour: str, name: str) -> None:
    script = (MARIADB if flavour == "mariadb" else MYSQL).get(name)
    if script is not None:
        compare(sides, script)
