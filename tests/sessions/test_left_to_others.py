"""Nothing that a statement takes or sets on its connection is another session's, however it is written."""

from __future__ import annotations

import json

import pytest

from tests.integration.fixtures import MakeOwn
from tests.support.demo import Demo

ASKED = "SELECT @left, IS_USED_LOCK('left'), GET_LOCK('left', 0), RELEASE_LOCK('left')"


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE left_over AS SELECT GET_LOCK('left', 0) AS a, @left := 5 AS b",
        "CREATE OR REPLACE TABLE left_over (a INT) SELECT GET_LOCK('left', 0) AS a, (@left := 5) AS b",
        "SELECT GET_LOCK/*+ x */('left', 0), @left/*+ x */:= 5",
        "SELECT GET_LOCK('left', 0) INTO /*+ x */ @left",
        "DO GET_LOCK('left', 0), @left := 5",
    ],
)
def test_a_lock_and_a_variable(own: MakeOwn, demo: Demo, flavour: str, sql: str) -> None:
    """The session has them, and whoever gets its connection then has not."""
    if flavour == "mysql9" and "OR REPLACE" in sql:
        pytest.skip("MariaDB's")
    proxy = own({"backends": {"max_connections": 1}})
    try:
        client = proxy.raw(database="legacy")
        assert client.ask(sql).kind != "err"
        assert client.ask("SELECT @left > 0, IS_USED_LOCK('left') = CONNECTION_ID()").rows == [(b"1", b"1")]
        client.close()
        proxy.wait_idle()
        assert proxy.raw(database="legacy").ask(ASKED).rows == [(None, None, b"1", b"1")]
    finally:
        with demo.direct() as server, server.cursor() as cursor:
            cursor.execute("DROP TABLE IF EXISTS legacy.left_over")


@pytest.mark.parametrize(
    "setting",
    ["sql_mode = 'NO_BACKSLASH_ESCAPES'", "sql_mode = 'ANSI_QUOTES'", "NAMES gbk", "autocommit = 0"],
)
def test_a_set_that_fails_at_last(own: MakeOwn, setting: str) -> None:
    """All or none: what the servers read and what the proxy reads stay one, and so does what is committed."""
    proxy = own({"limits": {"user_variables": "100K"}, "backends": {"max_connections": 1}})
    client = proxy.raw(database="legacy")
    asked = "SELECT @@sql_mode, @@character_set_client, @@autocommit, LENGTH('\\\\'), @big"
    before = client.ask(asked).rows
    for begin in ("DO 1", "BEGIN"):
        client.ask(begin)
        assert client.ask(f"SET {setting}, @big = REPEAT('a', 1000000)").code == 1041
        assert client.ask(asked).rows == before
        assert client.ask('SELECT "a" FROM customers LIMIT 1').value == b"a"
    client.ask("ROLLBACK")
    assert proxy.raw(database="legacy").ask(asked).rows == before


@pytest.mark.parametrize("name", ["count", "now", "substring", "sha1"])
def test_a_stored_function_with_the_name_of_a_servers_function(
    own: MakeOwn, demo: Demo, flavour: str, name: str
) -> None:
    """With a blank in front of the parenthesis it is called; MySQL 9.7 has no SHA1 without its component."""
    if name == "sha1" and flavour != "mysql9":
        pytest.skip("it has SHA1")
    body = "BEGIN SET @left = n; SET time_zone = '+07:00'; RETURN GET_LOCK('left', 0); END"
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute(f"DROP FUNCTION IF EXISTS legacy.{name}")
        cursor.execute(f"CREATE FUNCTION legacy.{name} (n INT) RETURNS INT {body}")
        try:
            proxy = own({"backends": {"max_connections": 1}})
            asked = f"{ASKED}, @@time_zone = 'SYSTEM'"
            client = proxy.raw(database="legacy")
            assert client.ask(f"SELECT {name} (5)").rows == [(b"1",)]
            kept = client.ask("SELECT @left, IS_USED_LOCK('left') = CONNECTION_ID(), @@time_zone").rows
            assert kept == [(b"5", b"1", b"+07:00")]
            client.close()
            proxy.wait_idle()
            assert proxy.raw(database="legacy").ask(asked).rows == [(None, None, b"1", b"1", b"1")]
        finally:
            cursor.execute(f"DROP FUNCTION legacy.{name}")


def test_a_role_that_a_procedure_sets(own: MakeOwn, demo: Demo, flavour: str) -> None:
    """A reset of the connection keeps it."""
    settings = json.loads(demo.settings.read_text())
    account = next(one["user"] for one in settings["backends"]["accounts"] if one["role"] == "write")
    with demo.direct() as server, server.cursor() as cursor:
        for sql in (
            "DROP ROLE IF EXISTS of_procedure",
            "CREATE ROLE of_procedure",
            f"GRANT of_procedure TO '{account}'@'%'",
            "DROP PROCEDURE IF EXISTS legacy.takes_role",
            "CREATE PROCEDURE legacy.takes_role() SQL SECURITY INVOKER SET ROLE of_procedure",
        ):
            cursor.execute(sql)
        try:
            users = [*settings["users"], {"name": "w", "password": "w", "role": "write"}]
            proxy = own({"users": users, "backends": {"max_connections": 1}})
            for _ in range(2):
                client = proxy.raw(login=False)
                assert client.login("w", "w", "legacy").kind == "ok"
                none = b"NONE" if flavour == "mysql9" else None
                assert client.ask("SELECT CURRENT_ROLE()").rows == [(none,)]
                assert client.ask("CALL takes_role()").kind == "ok"
                client.close()
                proxy.wait_idle()
        finally:
            cursor.execute("DROP PROCEDURE legacy.takes_role")
            cursor.execute("DROP ROLE of_procedure")
