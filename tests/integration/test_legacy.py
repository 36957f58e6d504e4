"""What an application on a database that was never sharded does, as drivers' own tests do it."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT

from tests.integration.fixtures import Connect
from tests.support.waiting import wait_until


def test_a_dropped_database_is_no_longer_the_current_one(connect: Connect, unharmed: None) -> None:
    with connect(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE legacy_gone")
        cursor.execute("USE legacy_gone")
        cursor.execute("CREATE TABLE t (a INT)")
        cursor.execute("DROP DATABASE legacy_gone")
        cursor.execute("SELECT DATABASE()")
        assert cursor.fetchall() == ((None,),)
        with pytest.raises(pymysql.Error) as caught:
            cursor.execute("SELECT * FROM t")
        assert caught.value.args[0] == 1046


def test_an_altered_database(connect: Connect, unharmed: None) -> None:
    """Sessions see its new collation, whichever connection of the pool serves them."""
    with connect(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE legacy_altered COLLATE utf8mb4_general_ci")
        try:
            cursor.execute("USE legacy_altered")
            cursor.execute("SELECT @@collation_database")
            assert cursor.fetchall() == (("utf8mb4_general_ci",),)
            cursor.execute("ALTER DATABASE legacy_altered COLLATE utf8mb4_unicode_ci")
            with connect(database="legacy_altered") as other, other.cursor() as second:
                for asking in (cursor, second):
                    asking.execute(
                        "SELECT @@collation_database FROM DUAL WHERE DATABASE() = 'legacy_altered'"
                    )
                    assert asking.fetchall() == (("utf8mb4_unicode_ci",),)
                second.execute("CREATE TABLE t (a VARCHAR(5))")
                second.execute("SHOW FULL COLUMNS FROM t")
                assert second.fetchall()[0][2] == "utf8mb4_unicode_ci"
        finally:
            cursor.execute("DROP DATABASE legacy_altered")


def test_a_reset_connection_knows_the_database_anew(connect: Connect, unharmed: None) -> None:
    """On MariaDB a reset takes the database's collation from the connection, and leaves its name."""
    with connect(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE legacy_reset COLLATE utf8mb4_unicode_ci")
        try:
            for _ in range(3):
                with connect(database="legacy_reset") as other, other.cursor() as second:
                    second.execute("SELECT @@collation_database")
                    assert second.fetchall() == (("utf8mb4_unicode_ci",),)
                    second.execute("CREATE TEMPORARY TABLE t (a INT)")
        finally:
            cursor.execute("DROP DATABASE legacy_reset")


def test_wait_timeout(connect: Connect, unharmed: None) -> None:
    """A session that asks for it is disconnected when it has been silent so long, and others are not."""
    with connect(database="legacy") as patient:
        connection: Any = connect(database="legacy")
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION wait_timeout = 1")
            cursor.execute("SELECT 1")
            connection._sock.settimeout(20)
            wait_until(lambda: connection._rfile.peek(1) is not None, "the end of the connection")
            with pytest.raises(pymysql.Error) as caught:
                cursor.execute("SELECT 1")
            assert caught.value.args[0] in (2006, 2013, 4031)
        patient.ping(reconnect=False)


def test_create_database_that_is_there(connect: Connect, unharmed: None) -> None:
    for database in ("legacy", "demo"):
        with connect(database="legacy") as connection, connection.cursor() as cursor:
            with pytest.raises(pymysql.Error) as caught:
                cursor.execute(f"CREATE DATABASE {database}")
            assert caught.value.args == (1007, f"Can't create database '{database}'; database exists")
            cursor.execute(f"CREATE DATABASE IF NOT EXISTS {database}")
            cursor.execute("SHOW WARNINGS")
            assert cursor.fetchall() == (("Note", *caught.value.args),)
            cursor.execute("SELECT DATABASE()")
            assert cursor.fetchall() == (("legacy",),)


def test_the_defaults_of_an_unsharded_database(connect: Connect, unharmed: None) -> None:
    with connect(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@collation_database")
        ((before,),) = cursor.fetchall()
        for sql in ("ALTER DATABASE legacy COLLATE utf8mb4_bin", "ALTER DATABASE COLLATE utf8mb4_unicode_ci"):
            cursor.execute(sql)
            cursor.execute("SELECT @@collation_database")
            assert cursor.fetchall() == ((sql.split()[-1],),)
        cursor.execute(f"ALTER DATABASE legacy COLLATE {before}")


def test_a_client_that_ignores_spaces(connect: Connect, unharmed: None) -> None:
    """CLIENT_IGNORE_SPACE is a sql_mode of the session, as Node's mysql2 asks for it."""
    for flag in (0, CLIENT.IGNORE_SPACE):
        with connect(database="legacy", client_flag=flag) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@sql_mode LIKE '%IGNORE_SPACE%,STRICT%'")
            assert cursor.fetchall() == ((int(bool(flag)),),)
            if flag:
                cursor.execute("SELECT COUNT (*) FROM demo.users WHERE id = 5")
                assert cursor.fetchall() == ((0,),)


def test_other_databases_from_a_session_in_a_shard(connect: Connect, unharmed: None) -> None:
    """They are the default host's, wherever the shard is."""
    for shard in ("db00001", "db00060"):
        with connect(database=shard) as connection, connection.cursor() as cursor:
            cursor.execute("DROP DATABASE IF EXISTS legacy_other")
            cursor.execute("CREATE DATABASE legacy_other")
            try:
                cursor.execute("CREATE TABLE legacy_other.t (a INT PRIMARY KEY, b INT)")
                cursor.execute("INSERT INTO legacy_other.t VALUES (1, 2), (2, 3)")
                cursor.execute("UPDATE legacy_other.t SET b = 9 WHERE a = 2")
                cursor.execute(
                    "SELECT t.a, x.b, DATABASE() FROM legacy_other.t JOIN legacy_other.t x ON t.a = x.a"
                )
                assert cursor.fetchall() == ((1, 2, shard), (2, 9, shard))
                cursor.execute("DESCRIBE legacy_other.t")
                assert [row[0] for row in cursor.fetchall()] == ["a", "b"]
                cursor.execute("SELECT COUNT(*) >= 0 FROM pins p WHERE EXTRACT(YEAR FROM p.ts) > 0")
                assert cursor.fetchall() == ((1,),)
            finally:
                cursor.execute("DROP DATABASE legacy_other")
