"""Commands and statements about a whole server, beside the same on the default host itself."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from tests.integration import raw as wire
from tests.integration.fixtures import Connect, MakeRaw
from tests.integration.raw import Raw, command
from tests.integration.replies import is_eof
from tests.support.demo import Demo

DEBUG, REFRESH, PROCESS_INFO = 0x0D, 0x07, 0x0A
REFRESH_TABLES = b"\x04"

#: Values of the session, whose types are those of the server's functions.
TYPED = (
    "SELECT DATABASE()",
    "SELECT CONNECTION_ID() > 0, CONCAT(DATABASE(), 'y')",
    "SELECT CONNECTION_ID() n LIMIT 0",
    "SELECT USER() u, CURRENT_USER() c, SESSION_USER() s, CURRENT_USER v LIMIT 0",
    "SELECT @@autocommit",
    "SELECT LAST_INSERT_ID(), ROW_COUNT() LIMIT 0",
    "SELECT CHARSET(USER()), CHARSET(DATABASE()), COLLATION(USER()), COERCIBILITY(DATABASE())",
    "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = DATABASE()",
)


@pytest.fixture
def server(demo: Demo) -> Iterator[Raw]:
    host = demo.masters[0]
    with Raw(host.host, host.port) as made:
        assert made.login(host.user, host.password, "legacy").kind == "ok"
        made.ask("SET NAMES utf8mb4")
        yield made


@pytest.fixture
def table(demo: Demo) -> Iterator[None]:
    with demo.direct(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE told (a INT PRIMARY KEY, b CHAR(10) DEFAULT 'my', c VARCHAR(5) NOT NULL,"
            " d DATETIME, e INT DEFAULT 7)"
        )
        yield
        cursor.execute("DROP TABLE told")


def packets(client: Raw, argument: bytes) -> list[bytes]:
    """What answers a COM_FIELD_LIST, without the EOF's status."""
    client.write(command(wire.FIELD_LIST, argument))
    found = [client.packet()]
    while not is_eof(found[-1]) and found[-1][:1] != b"\xff":
        found.append(client.packet())
    return found[:-1] if is_eof(found[-1]) else found


def test_fields_with_their_defaults(table: None, raw: MakeRaw, server: Raw) -> None:
    client = raw(database="legacy")
    client.ask("SET NAMES utf8mb4")
    for argument in (b"told\0", b"told\0c%", b"told\0nothing", b"customers\0", b"missing\0"):
        assert packets(client, argument) == packets(server, argument), argument


def test_types_of_the_sessions_values(raw: MakeRaw, server: Raw) -> None:
    client = raw(database="legacy")
    client.ask("SET NAMES utf8mb4")
    for sql in TYPED:
        for side in (client, server):
            side.heard.clear()
        answers = [side.ask(sql) for side in (client, server)]
        assert answers[0].rows == answers[1].rows, sql
        shown = [
            [payload for _, payload in side.heard if payload[:4] == b"\x03def"] for side in (client, server)
        ]
        assert shown[0] == shown[1], sql


def test_the_number_of_the_session(raw: MakeRaw) -> None:
    client = raw(database="legacy")
    assert client.ask("SELECT CONNECTION_ID()").value == str(client.id).encode()
    assert client.ask("SELECT CONNECTION_ID() + 1, 2 * CONNECTION_ID()").rows == [
        (str(client.id + 1).encode(), str(client.id * 2).encode())
    ]


def test_columns_are_called_as_written(connect: Connect) -> None:
    with connect(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMPORARY TABLE made SELECT DATABASE(), USER(), CONNECTION_ID() n")
        cursor.execute("SELECT * FROM made")
        assert [one[0] for one in cursor.description] == ["DATABASE()", "USER()", "n"]


def test_a_view_has_no_values_of_now(demo: Demo, connect: Connect) -> None:
    with connect(database="legacy") as connection, connection.cursor() as cursor:
        try:
            cursor.execute("CREATE VIEW of_now AS SELECT CONNECTION_ID() AS n, LAST_INSERT_ID() AS i")
            cursor.execute("SHOW CREATE VIEW of_now")
            assert "connection_id()" in cursor.fetchall()[0][1]
        finally:
            cursor.execute("DROP VIEW IF EXISTS of_now")


def test_debug_refresh_and_process_info(raw: MakeRaw, server: Raw, flavour: str) -> None:
    client = raw(database="legacy")
    for code, argument in ((DEBUG, b""), (REFRESH, REFRESH_TABLES)):
        kinds = []
        for side in (client, server):
            side.write(command(code, argument))
            kinds.append(side.packet()[:1])
        assert kinds[0] == kinds[1], code
    client.write(command(PROCESS_INFO))
    reply = client.reply()
    if flavour == "mariadb":
        assert reply.columns[:3] == ["Id", "User", "Host"]
    else:
        assert reply.code == 1047
    assert client.ping().kind == "ok"


@pytest.mark.parametrize("code", [DEBUG, REFRESH])
def test_only_admins_may(demo: Demo, code: int, flavour: str) -> None:
    with Raw(demo.host, demo.port) as client:
        assert client.login("reader", "reader", "legacy").kind == "ok"
        denied = client.do(code, REFRESH_TABLES)
        assert denied.code == (1142 if flavour == "mariadb" or code == DEBUG else 1047)
        assert client.ping().kind == "ok"


def test_accounts_without_a_database(connect: Connect, demo: Demo) -> None:
    with connect(database=None) as connection, connection.cursor() as cursor:
        try:
            cursor.execute("CREATE USER of_no_database IDENTIFIED BY 'Some-Pass_1'")
            cursor.execute("GRANT SELECT ON legacy.* TO of_no_database")
            cursor.execute("SHOW GRANTS FOR of_no_database")
            assert "of_no_database" in cursor.fetchall()[0][0]
            cursor.execute("FLUSH PRIVILEGES")
        finally:
            cursor.execute("DROP USER IF EXISTS of_no_database")
        for sql in (
            "CREATE VIEW v AS SELECT 1",
            "CALL nothing()",
            "CREATE FUNCTION f() RETURNS INT RETURN 1",
        ):
            with pytest.raises(pymysql.err.MySQLError) as caught:
                cursor.execute(sql)
            assert caught.value.args[0] == 1046, sql


def test_the_list_of_sessions_has_the_text(connect: Connect) -> None:
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW FULL PROCESSLIST")
        assert "SHOW FULL PROCESSLIST" in {row[7] for row in cursor.fetchall()}
        sql = "SELECT INFO FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID() AND 'x' = 'x'"
        cursor.execute(sql)
        assert cursor.fetchall() == ((sql,),)
