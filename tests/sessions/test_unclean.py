"""What code on the servers leaves behind in a session stays with that session: procedures, functions,
triggers, dynamic SQL and compound statements, also such as were made a moment ago and past the proxy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.support.demo import Demo
from tests.support.servers import Connection

#: Statements of a body, and whether functions and triggers may have them.
DIRT: dict[str, tuple[str, bool]] = {
    "autocommit": ("SET autocommit = 0", False),
    "time zone": ("SET time_zone = '+03:00'", True),
    "mode": ("SET sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'", True),
    "names": ("SET NAMES latin1", True),
    "isolation": ("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", True),
    "checks": ("SET foreign_key_checks = 0, unique_checks = 0, sql_safe_updates = 1", True),
    "limit": ("SET SESSION sql_select_limit = 1", True),
    "clock": ("SET timestamp = 5", True),
    "ids": ("SET last_insert_id = 77, insert_id = 88", True),
    "null": ("SET sql_auto_is_null = 1, big_tables = 1", True),
    "concat": ("SET group_concat_max_len = 4", True),
    "switch": ("SET optimizer_switch = 'index_merge=off'", True),
    "engine": ("SET default_storage_engine = MyISAM", True),
    "messages": ("SET lc_messages = 'de_DE'", True),
    "variable": ("SET @leaked = 1", True),
    "selected": ("SELECT 1 INTO @leaked", True),
    "lock": ("DO GET_LOCK('leaked', 0)", True),
    "table": ("CREATE TEMPORARY TABLE legacy.leaked (a INT)", True),
    "transaction": ("START TRANSACTION; INSERT INTO legacy.noted VALUES (1)", False),
    "failing": ("SET time_zone = '+03:00'; SIGNAL SQLSTATE '45000'", True),
    "failing transaction": ("START TRANSACTION; SIGNAL SQLSTATE '45000'", False),
    "failing autocommit": ("SET autocommit = 0; SIGNAL SQLSTATE '45000'", False),
    "hidden": ("SET session_track_state_change = OFF; SET time_zone = '+03:00'", False),
    "read only": ("SET SESSION TRANSACTION READ ONLY", False),  # MariaDB 10.11 dies of it in a trigger
    "next": ("SET TRANSACTION READ ONLY", False),
    "prepared": ("PREPARE leaked FROM 'SELECT 1'", False),
}
WAYS = {
    "procedure": "CREATE PROCEDURE dirty() BEGIN {}; END",
    "function": "CREATE FUNCTION dirty() RETURNS INT DETERMINISTIC BEGIN {}; RETURN 1; END",
    "view": "CREATE FUNCTION dirty() RETURNS INT DETERMINISTIC BEGIN {}; RETURN 1; END",
    "trigger": "CREATE TRIGGER dirty BEFORE INSERT ON watched FOR EACH ROW BEGIN {}; END",
    "compound": "",
    "immediate": "",
}
RUN = {
    "procedure": "CALL dirty()",
    "function": "SELECT dirty()",
    "view": "SELECT * FROM watching",
    "trigger": "INSERT INTO watched VALUES (1)",
}
#: No server tells of these: triggers and views that have them are known by the catalogs, a while after they
#: were made past the proxy.
UNTOLD = ("selected", "lock")
#: What tells of the connection or of what it has done, not of its session's state.
_CHANGING = (
    "error_count warning_count pseudo_thread_id timestamp statement_id rand_seed1 rand_seed2 external_user"
    " last_insert_id identity insert_id in_transaction gtid_seq_no last_gtid proxy_user"
    " session_track_state_change"
)
CHANGING = frozenset(_CHANGING.split())
_LOOK = (
    "SELECT @leaked, IS_USED_LOCK('leaked'), @@autocommit, @@last_insert_id, DATABASE(),"
    " UNIX_TIMESTAMP() > 99"
)


@pytest.fixture
def world(demo: Demo) -> Iterator[Connection]:
    """The server's own connection, with tables in `legacy`."""
    with demo.direct(database="legacy") as direct, direct.cursor() as cursor:
        cursor.execute("CREATE TABLE noted (a INT)")
        cursor.execute("CREATE TABLE watched (a INT)")
        try:
            yield direct
        finally:
            cursor.execute("DROP TABLE noted, watched")
            cursor.execute("DROP VIEW IF EXISTS watching")
            cursor.execute("DROP PROCEDURE IF EXISTS dirty")
            cursor.execute("DROP FUNCTION IF EXISTS dirty")


@pytest.fixture
def proxy(own: MakeOwn) -> OwnProxy:
    """One that has a single connection to each host."""
    return own({"backends": {"max_connections": 1}})


def state(connection: Connection) -> dict[str, Any]:
    """Everything that a session can see of its own state."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW SESSION VARIABLES")
        found = {name: value for name, value in cursor.fetchall() if name not in CHANGING}
        cursor.execute(_LOOK)
        found["looked"] = cursor.fetchone()
    return found


def run(connection: Connection, sql: str) -> None:
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql)
            while cursor.nextset():
                pass
        except pymysql.MySQLError:
            pass


def make(direct: Connection, way: str, body: str) -> None:
    with direct.cursor() as cursor:
        cursor.execute("DROP TRIGGER IF EXISTS dirty")
        cursor.execute("DROP PROCEDURE IF EXISTS dirty")
        cursor.execute("DROP FUNCTION IF EXISTS dirty")
        cursor.execute(WAYS[way].format(body))
        if way == "view":
            cursor.execute("CREATE OR REPLACE VIEW watching AS SELECT dirty()")


def runs(way: str, body: str) -> list[str]:
    """The statements that run the body."""
    if way == "compound":
        return [f"BEGIN NOT ATOMIC {body}; END"]
    if way == "immediate":
        return [f"EXECUTE IMMEDIATE '{one.replace(chr(39), chr(39) * 2)}'" for one in body.split("; ")]
    return [RUN[way]]


@pytest.mark.parametrize("way", [*WAYS])
def test_nothing_reaches_others(world: Connection, proxy: OwnProxy, way: str, flavour: str) -> None:
    """Another client, on the same connection, sees what a fresh one does, and what it writes is written."""
    if way in ("compound", "immediate") and flavour != "mariadb":
        pytest.skip("MariaDB only")
    with proxy.connect(database="legacy", autocommit=None) as fresh:
        expected = state(fresh)
    wrong: dict[str, Any] = {}
    for name, (body, anywhere) in DIRT.items():
        if not anywhere and way in ("function", "trigger", "view"):
            continue
        if way in ("trigger", "view") and name in UNTOLD:
            continue
        if WAYS.get(way):
            try:
                make(world, way, body)
            except pymysql.MySQLError:
                continue  # the server does not take it there
        with proxy.connect(database="legacy", autocommit=None) as first:
            for sql in runs(way, body):
                run(first, sql)
        with proxy.connect(database="legacy", autocommit=None) as second:
            found = state(second)
            run(second, "DELETE FROM noted")
            with second.cursor() as cursor:
                cursor.execute("INSERT INTO noted VALUES (5)")
            with world.cursor() as cursor:
                cursor.execute("SELECT COUNT(*) FROM noted")
                found["written"] = cursor.fetchone()
        differing = {
            key: value for key, value in found.items() if value != {**expected, "written": (1,)}.get(key)
        }
        if differing:
            wrong[name] = differing
    assert wrong == {}


def test_a_servers_own_autocommit(world: Connection, proxy: OwnProxy) -> None:
    """It is turned off and on past the proxy, while connections are opened and reset: that says nothing of
    the sessions, whose writes are written.
    """
    for number, now in enumerate((1, 0, 1, 0)):
        with world.cursor() as cursor:
            cursor.execute(f"SET GLOBAL autocommit = {now}")
            try:
                for _ in range(2):
                    with proxy.connect(database="legacy", autocommit=None) as client:
                        run(client, "DO GET_LOCK('leaked', 0)")  # so that the connection is reset afterwards
                        write(client, f"INSERT INTO noted VALUES ({number})")
                        run(client, "SET autocommit = 0")
            finally:
                cursor.execute("SET GLOBAL autocommit = 1")
            with proxy.connect(database="legacy", autocommit=None) as client:
                write(client, f"INSERT INTO noted VALUES ({number})")
            cursor.execute(f"SELECT COUNT(*) FROM noted WHERE a = {number}")
            assert cursor.fetchone() == (3,)


def write(client: Connection, sql: str) -> None:
    with client.cursor() as cursor:
        cursor.execute("SELECT @@autocommit, @@session.autocommit")
        assert cursor.fetchone() == (1, 1)
        cursor.execute(sql)


def test_autocommit_for_all(world: Connection, proxy: OwnProxy, demo: Demo) -> None:
    """Sessions begin with what SET GLOBAL has said, on connections that were opened before, too; and a
    greeting says what a server's own does, by which PyMySQL knows whether to turn autocommit on.
    """
    with (
        proxy.connect(database="legacy") as admin,
        proxy.connect(database="legacy", autocommit=None) as before,
        admin.cursor() as setting,
    ):
        setting.execute("SET GLOBAL autocommit = 0")
        try:
            with proxy.connect(database="legacy", autocommit=None) as client, client.cursor() as cursor:
                cursor.execute("INSERT INTO noted VALUES (1)")
                cursor.execute("SELECT @@autocommit, COUNT(*) FROM noted")
                assert cursor.fetchone() == (0, 1)
                cursor.execute("ROLLBACK")
                cursor.execute("SET autocommit = 1")
                cursor.execute("INSERT INTO noted VALUES (2)")
                cursor.execute("SET autocommit = DEFAULT, sql_mode = CONCAT(@@sql_mode)")
                cursor.execute("INSERT INTO noted VALUES (3)")
            write(before, "INSERT INTO noted VALUES (4)")
            found = []
            for connect in (proxy.connect, demo.direct):
                with connect(autocommit=True) as client, client.cursor() as cursor:
                    cursor.execute("SELECT @@autocommit")
                    found.append(cursor.fetchone())
            assert found[0] == found[1]
        finally:
            setting.execute("SET GLOBAL autocommit = 1")
    with world.cursor() as cursor:
        cursor.execute("SELECT a FROM noted ORDER BY a")
        assert cursor.fetchall() == ((2,), (4,))
    with proxy.connect(database="legacy", autocommit=None) as client:
        write(client, "INSERT INTO noted VALUES (5)")
