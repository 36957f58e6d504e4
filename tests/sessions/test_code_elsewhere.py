"""Code of an unsharded database, run by a session whose current database is sharded or that has none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.binary import Binary
from tests.integration.fixtures import MakeRaw
from tests.integration.raw import query
from tests.sessions.test_tracking import SESSION_TRACK, Tracking
from tests.support.demo import Demo

CODE = (
    "CREATE DATABASE code_a",
    "CREATE DATABASE code_b",
    "CREATE TABLE code_a.t (a INT)",
    "CREATE FUNCTION code_a.f() RETURNS INT NO SQL BEGIN SET @q = 5; RETURN 1; END",
    "CREATE PROCEDURE code_a.p() SET @q = 7",
    "CREATE PROCEDURE code_a.two() BEGIN SELECT 1; SET @q = 8; SELECT 2; END",
    "CREATE PROCEDURE code_a.moves() BEGIN PREPARE s FROM 'USE code_b'; EXECUTE s; END",
    "CREATE TRIGGER code_a.fires BEFORE INSERT ON code_a.t FOR EACH ROW SET @q = 9",
)
QUIET = ("SELECT code_a.f()", "CALL code_a.p()", "INSERT INTO code_a.t VALUES (1)", "DO code_a.f()")


@pytest.fixture
def code(raw: MakeRaw) -> Iterator[None]:
    client = raw()
    try:
        for statement in CODE:
            assert client.ask(statement).kind == "ok", statement
        for database in ("code_b", "code_a"):  # connections that have such a database as their current one
            client = raw(database=database)
            assert client.ask("SELECT DATABASE()").value == database.encode()
            assert client.ask("CALL code_a.p()").kind == "ok"
        yield
    finally:
        client.ask("USE information_schema")
        client.ask("DROP DATABASE IF EXISTS code_a")
        client.ask("DROP DATABASE IF EXISTS code_b")


@pytest.mark.parametrize("database", ["demo", None])
def test_code_that_chooses_no_database_leaves_the_current_one(
    raw: MakeRaw, code: None, database: str | None
) -> None:
    client = raw(database=database)
    for statement in QUIET * 2:
        assert client.ask(statement).kind != "err", statement
        assert client.ask("SELECT DATABASE()").value == (database.encode() if database else None), statement
        assert client.ask("SELECT id FROM demo.pins WHERE id = 68719476737").kind == "rows"


@pytest.mark.parametrize("database", ["demo", None])
def test_a_procedure_gives_the_current_database_back(
    raw: MakeRaw, code: None, database: str | None, flavour: str
) -> None:
    """Servers choose a procedure's own database before it, and the session's again behind it."""
    for _ in range(3):
        client = raw(database=database)
        reply = client.ask("CALL code_a.moves()")
        assert reply.code == (1295 if flavour == "mysql9" else 0)
        assert client.ask("SELECT DATABASE()").value == (database.encode() if database else None)
        client.write(query("CALL code_a.two()"))
        assert [one.kind for one in client.replies()] == ["rows", "rows", "ok"]
        assert client.ask("SELECT DATABASE()").value == (database.encode() if database else None)


def test_changes_of_a_session_reach_no_other(demo: Demo, unharmed: None, raw: MakeRaw, code: None) -> None:
    client, other = raw(), Tracking(demo.host, demo.port)
    with other:
        assert other.login(database="demo", flags=SESSION_TRACK).kind == "ok"
        for charset in ("latin1", "cp1251"):
            assert client.ask(f"SET character_set_results = {charset}").kind == "ok"
            assert client.ask("SELECT 1").kind == "rows"
            told = other.told("INSERT INTO code_a.t VALUES (1)")
            assert isinstance(told, list)
            assert not any(charset in change for change in told), told


def test_a_failed_write_keeps_the_lock_that_it_has_got(raw: MakeRaw) -> None:
    client, other = raw(database=None), raw()
    for run in (client.ask, Binary(client).run):
        reply = run(
            "INSERT INTO legacy.customers (id, name, email, created)"
            " VALUES (1, GET_LOCK('failed_write', 0), 'x', '2000-01-01')"
        )
        assert reply.code == 1062
        assert client.ask("SELECT IS_USED_LOCK('failed_write') = CONNECTION_ID()").value == b"1"
        assert other.ask("SELECT GET_LOCK('failed_write', 0)").value == b"0"
        assert client.ask("SELECT RELEASE_LOCK('failed_write')").value == b"1"
        assert other.ask("SELECT IS_FREE_LOCK('failed_write')").value == b"1"
