"""A session that uses two hosts, one of which has a database that passes through, beside a plain server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.answers import answer
from tests.integration.fixtures import MakeOwn
from tests.integration.second_host import Sides, second_host
from tests.support.demo import Demo
from tests.support.servers import LocalServer


@pytest.fixture
def sides(demo: Demo, plain: LocalServer, own: MakeOwn, tmp_path_factory: Any) -> Iterator[Sides]:
    with second_host(demo, plain, own, tmp_path_factory.mktemp("schema")) as sides:
        yield sides


LOCKING = [
    ["CREATE TEMPORARY TABLE crm.held (a INT)", "LOCK TABLES usernames WRITE", "UNLOCK TABLES"],
    ["LOCK TABLES crm.kept WRITE", "UNLOCK TABLES"],
    ["SELECT GET_LOCK('second', 1)", "LOCK TABLES crm.kept WRITE", "UNLOCK TABLES"],
    ["LOCK TABLES usernames WRITE", "LOCK TABLES crm.kept WRITE"],
    ["LOCK TABLES crm.kept WRITE", "LOCK TABLES crm2.kept WRITE"],
    ["LOCK TABLES usernames WRITE", "LOCK TABLES crm.kept WRITE", "UNLOCK TABLES"],
    ["CREATE TEMPORARY TABLE crm.held (a INT)", "LOCK TABLES usernames WRITE", "BEGIN", "ROLLBACK"],
    ["LOCK TABLES crm.kept WRITE", "BEGIN", "ROLLBACK"],
    ["USE crm", "FLUSH TABLES kept WITH READ LOCK", "USE crm2", "UNLOCK TABLES"],
    ["USE crm", "FLUSH TABLES kept WITH READ LOCK", "BEGIN", "ROLLBACK"],
    ["LOCK TABLES usernames WRITE", "LOCK TABLES crm.kept WRIT"],
    ["LOCK TABLES usernames WRITE", "USE crm", "LOCK TABLES kept WRIT"],
    ["LOCK TABLES usernames WRITE", "LOCK TABLES crm.missing WRITE"],
]
WRITES = (
    "DELETE FROM demo.usernames WHERE username = 'nobody'",
    "UPDATE crm.kept SET a = a + 1",
    "UPDATE crm2.kept SET a = a + 1",
)


@pytest.mark.parametrize("script", LOCKING, ids="; ".join)
def test_locks_on_two_hosts_are_released_as_on_one_server(sides: Sides, script: list[str]) -> None:
    found = []
    for session, other in zip(sides.sessions(), sides.sessions(), strict=True):
        answers: list[Any] = [answer(session, sql)[:1] for sql in script]
        answers += [answer(other, sql)[:1] for sql in ("SET SESSION lock_wait_timeout = 1", *WRITES)]
        found.append(answers)
        session.close()
    assert found[0] == found[1]


NAMING = [
    "SELECT a FROM crm.kept",
    "SELECT a FROM crm2.kept",
    "SELECT COUNT(*) FROM crm.kept k JOIN crm2.kept l ON k.a = l.a",
    "SHOW TABLES FROM crm",
    "SHOW TABLES FROM crm2",
    "SHOW TABLES IN crm LIKE 'k%'",
    "SHOW COLUMNS FROM crm.kept",
    "SHOW COLUMNS FROM kept FROM crm",
    "SHOW COLUMNS FROM kept FROM crm2",
    "SHOW INDEX FROM kept IN crm",
    "SHOW CREATE TABLE crm.kept",
    "SHOW CREATE TABLE crm2.kept",
    "DESCRIBE crm.kept",
    "DESCRIBE crm2.kept",
    "EXPLAIN crm.kept",
    "INSERT INTO crm.kept VALUES (10)",
    "INSERT INTO crm2.kept VALUES (11)",
    "UPDATE crm.kept SET a = a + 1",
    "DELETE FROM crm2.kept WHERE a = 11",
    "REPLACE INTO crm.kept VALUES (12)",
    "CREATE TABLE crm.made (a INT)",
    "CREATE TABLE crm2.made (a INT)",
    "CREATE VIEW crm.seen AS SELECT 1 AS one",
    "CREATE VIEW crm2.seen AS SELECT a FROM crm2.kept",
    "CREATE INDEX i ON crm.made (a)",
    "ALTER TABLE crm2.made ADD COLUMN b INT",
    "RENAME TABLE crm.made TO crm.made2",
    "TRUNCATE TABLE crm2.made",
    "CREATE TEMPORARY TABLE crm2.tq (a INT)",
    "DROP TEMPORARY TABLE IF EXISTS crm2.tq",
    "CREATE PROCEDURE crm.p() SELECT 1",
    "CREATE PROCEDURE crm2.p() SELECT 2",
    "CALL crm.p()",
    "CALL crm2.p()",
    "CREATE FUNCTION crm.f() RETURNS INT DETERMINISTIC RETURN 3",
    "CREATE FUNCTION crm2.f() RETURNS INT DETERMINISTIC RETURN 4",
    "SELECT crm.f()",
    "SELECT crm2.f()",
    "DROP FUNCTION crm.f",
    "DROP FUNCTION crm2.f",
    "DROP PROCEDURE IF EXISTS crm.p",
    "DROP PROCEDURE IF EXISTS crm2.p",
    "ANALYZE TABLE crm.kept",
    "CHECK TABLE crm2.kept",
    "LOCK TABLES crm.kept WRITE",
    "UNLOCK TABLES",
    "LOCK TABLES crm2.kept WRITE",
    "UNLOCK TABLES",
    "HANDLER crm.kept OPEN",
    "HANDLER crm2.kept OPEN AS other",
    "DROP VIEW IF EXISTS crm.seen",
    "DROP VIEW IF EXISTS crm2.seen",
    "DROP TABLE IF EXISTS crm.made2",
    "SHOW TABLES FROM crm",
    "DROP TABLE IF EXISTS crm2.made",
    "DROP TABLE IF EXISTS crm.kept",
    "SHOW TABLES FROM crm",
    "DROP TABLE IF EXISTS crm2.kept",
    "SHOW TABLES FROM crm2",
]
CURRENT = ("demo", "crm", "crm2", "legacy", "information_schema", "mysql", "performance_schema")


@pytest.mark.parametrize("database", CURRENT)
@pytest.mark.parametrize("elsewhere", [False, True], ids=["", "connected"])
def test_the_tables_say_the_host_whatever_database_is_current(
    sides: Sides, database: str, elsewhere: bool
) -> None:
    client, server = sides.sessions(database=database)
    if elsewhere:  # the session keeps a connection to the second host
        for session in (client, server):
            assert answer(session, "CREATE TEMPORARY TABLE crm.keeping (a INT)") == ()
    differ, refused = {}, []
    for sql in NAMING:
        got, expected = answer(client, sql), answer(server, sql)
        if got[:1] == (1235,):
            refused.append(sql)
        elif got != expected:
            differ[sql] = got, expected
    assert not differ, differ
    assert not refused, refused


@pytest.mark.parametrize("database", ["information_schema", "legacy", "db00000"])
def test_users_without_admin_see_the_tables_of_any_database(sides: Sides, database: str) -> None:
    reader = sides.proxy.connect(**sides.proxy.demo.ready["read_user"], database=database)
    assert ("customers",) in answer(reader, "SHOW TABLES FROM legacy")
    assert ("usernames",) in answer(reader, "SHOW TABLES FROM demo")
    assert answer(reader, "SHOW TABLES FROM demo LIKE 'usernames'") == (("usernames",),)


def test_a_lock_that_the_statement_takes_is_the_session_s(sides: Sides) -> None:
    found = []
    for session in sides.sessions():
        with session.cursor() as cursor:
            cursor.execute("SELECT GET_LOCK('u', 1), IS_USED_LOCK('u') = CONNECTION_ID()")
            rows = cursor.fetchall()
            cursor.execute("SELECT IS_USED_LOCK('u'), IS_USED_LOCK('free')")
            types = [column[1] for column in cursor.description]
            assert cursor.fetchall() == ((session.thread_id(), None),)
        found.append((rows, types))
    assert found[0] == found[1]
