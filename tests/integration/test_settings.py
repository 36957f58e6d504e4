"""What sessions set: applied to whatever connection they get, and seen by nobody else."""

from __future__ import annotations

import json
import random
from typing import Any

import pymysql
import pytest
from pymysql.cursors import Cursor

from tests.integration import raw as wire
from tests.integration.fixtures import Connect, MakeOwn, MakeRaw
from tests.integration.own import moved
from tests.support.demo import Demo
from tests.support.servers import Connection


def one(cursor: Cursor, sql: str) -> Any:
    """The only value, or the only row."""
    cursor.execute(sql)
    (row,) = cursor.fetchall()
    return row[0] if len(row) == 1 else row


#: What drivers and frameworks send when they connect; see what each must read afterwards.
CLIENTS = {
    "rails": (
        "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci,  @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode,"
        " ',TRADITIONAL'), ',NO_AUTO_VALUE_ON_ZERO'),  @@SESSION.wait_timeout = 2147483",
        "SELECT @@sql_mode LIKE '%TRADITIONAL%' AND @@sql_mode LIKE '%NO_AUTO%', @@wait_timeout",
        (1, 2147483),
    ),
    "mariadb-connector-j": (
        "set autocommit=1, sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES'), NAMES utf8mb4",
        "SELECT @@sql_mode LIKE '%STRICT_TRANS_TABLES%', @@character_set_client, @@autocommit",
        (1, "utf8mb4", 1),
    ),
    "go": ("SET time_zone = '+02:00', group_concat_max_len = 4321",
           "SELECT @@time_zone, @@group_concat_max_len", ("+02:00", 4321)),
    "python": ("SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci'", "SELECT @@collation_connection",
               "utf8mb4_unicode_ci"),
    "connector-python": ("SET @@session.autocommit = OFF",
                         "SELECT @@autocommit, @@session.autocommit", (0, 0)),
    "dotnet": ("SET NAMES utf8mb4;", "SELECT @@character_set_results", "utf8mb4"),
    "connector-j": ("SET character_set_results = NULL", "SELECT @@character_set_results IS NULL", 1),
    "django": ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
               "SELECT @@session.{isolation}", "READ-COMMITTED"),
    "mysqldump": ("/*!40103 SET TIME_ZONE='+00:00' */", "SELECT @@time_zone", "+00:00"),
    "mysqldump-timeouts": ("SET SESSION NET_READ_TIMEOUT= 700, SESSION NET_WRITE_TIMEOUT= 700",
                           "SELECT @@net_read_timeout + @@net_write_timeout", 1400),
    "words": ("SET sql_mode = ANSI_QUOTES, SESSION sql_safe_updates = ON",
              "SELECT @@sql_mode, @@sql_safe_updates", ("ANSI_QUOTES", 1)),
    "session-prefix": ("SET SESSION lock_wait_timeout = 17", "SELECT @@lock_wait_timeout", 17),
}  # fmt: skip


@pytest.fixture
def isolation(flavour: str) -> str:
    """The variable with the isolation level: MariaDB 10.11 has only the old name."""
    return "tx_isolation" if flavour == "mariadb" else "transaction_isolation"


@pytest.mark.parametrize("name", CLIENTS)
def test_what_drivers_set(connect: Connect, name: str, isolation: str) -> None:
    statement, question, expected = CLIENTS[name]
    question = question.replace("{isolation}", isolation)
    other, mine = connect().cursor(), connect().cursor()
    before = one(other, question)
    mine.execute(statement)
    assert one(mine, question) == expected
    mine.execute("SELECT id FROM users WHERE id = 1")  # on a sharded table as well
    assert one(mine, question) == expected
    assert one(other, question) == before


def test_settings_hold_on_every_host(connect: Connect) -> None:
    cursor = connect().cursor()
    cursor.execute("SET time_zone = '+09:00', sql_mode = 'PIPES_AS_CONCAT'")
    cursor.execute("SELECT @@time_zone AS z, 'a' || 'b' AS ab FROM users")
    assert set(cursor.fetchall()) == {("+09:00", "ab")}
    cursor.execute("SELECT id FROM users")
    ids = [row[0] for row in cursor.fetchall()]
    seen = set()
    for id in (min(ids), max(ids)):  # the first host and the last
        seen.add(
            one(cursor, f"SELECT CONCAT(@@time_zone, ' ', HOUR(FROM_UNIXTIME(0))) FROM users WHERE id = {id}")
        )
    assert seen == {"+09:00 9"}


def test_ansi_quotes_change_the_meaning(raw: MakeRaw) -> None:
    client = raw()
    assert client.ask('SELECT "id" FROM users LIMIT 1').value == b"id"
    client.ask("SET sql_mode = 'ANSI_QUOTES'")
    ids = client.ask('SELECT "id" FROM "users" ORDER BY "id" LIMIT 1')
    assert ids.kind == "rows", ids
    assert (ids.value or b"").isdigit()
    one_of_them = (ids.value or b"").decode()
    assert client.ask(f'SELECT "id" FROM "users" WHERE "id" = {one_of_them}').value == ids.value


def test_no_backslash_escapes(raw: MakeRaw) -> None:
    client = raw()
    assert client.ask(r"SELECT 'a\'b', '\\'").rows == [(b"a'b", b"\\")]
    reply = client.ask("SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
    assert client.ask(r"SELECT '\', 'x'").rows == [(b"\\", b"x")]
    assert client.ask("SELECT 1").status & 0x200
    assert client.ask(r"SET @p = 'c:\'").kind == "ok", reply
    assert client.ask("SELECT @p").value == b"c:\\"
    client.ask("SET sql_mode = ''")
    assert client.ask("SELECT @p, LENGTH(@p)").rows == [(b"c:\\", b"3")]
    assert not client.ask("SELECT 1").status & 0x200


def test_character_sets(raw: MakeRaw) -> None:
    client = raw()
    assert client.ask("SELECT 'é', LENGTH('é')").rows == [("é".encode(), b"2")]
    assert client.ask("SET NAMES latin1").kind == "ok"
    assert client.ask(b"SELECT '\xe9', LENGTH('\xe9')").rows == [(b"\xe9", b"1")]
    reply = client.ask(b"SELECT COUNT(*) FROM users WHERE data LIKE '%\xe9%' AND id = 1")
    assert reply.rows == [(b"0",)], reply
    assert client.ask("SET NAMES utf8mb4").kind == "ok"
    assert client.ask("SELECT '😀'").value == "😀".encode()
    assert client.ask("SET NAMES klingon").code == 1115
    assert client.ask("SELECT '😀'").value == "😀".encode()


def test_user_variables(connect: Connect) -> None:
    cursor, other = connect().cursor(), connect().cursor()
    cursor.execute("SET @n = 5, @text = 'it''s', @nothing = NULL, @sum := 2 + 3, @dec = 1.50, @bin = x'00ff'")
    assert one(cursor, "SELECT @n, @text, @nothing, @sum, @dec, HEX(@bin)") == (
        5, "it's", None, 5, pytest.approx(1.5), "00FF",
    )  # fmt: skip
    assert one(other, "SELECT @n, @text") == (None, None)
    cursor.execute("SET @n = @n + 1, @text = CONCAT(@text, '!')")
    assert one(cursor, "SELECT @n, @text, @unset") == (6, "it's!", None)
    cursor.execute("SELECT id FROM users ORDER BY id LIMIT 1")
    ((id,),) = cursor.fetchall()
    cursor.execute("SET @id = %s", (id,))
    assert one(cursor, "SELECT id FROM users WHERE id = @id") == id
    cursor.execute("SET @N = 9")
    assert one(cursor, "SELECT @n, @`n`") == (9, 9)
    cursor.execute("SET @a = 1")
    cursor.execute(
        "SET @a = 5, @b = @a + @n, @c = @a, @d = @nobody"
    )  # one SET reads the values from before it
    assert one(cursor, "SELECT @a, @b, @c, @d") == (5, 10, 1, None)
    with pytest.raises(pymysql.MySQLError) as error:
        cursor.execute("SET @e = users")
    assert error.value.args[0] == 1054


def test_wrong_settings_change_nothing(raw: MakeRaw) -> None:
    client, other = raw(), raw()
    before = client.ask("SELECT @@sql_mode, @@time_zone, @@autocommit").rows
    for sql, code in (
        ("SET sql_mode = 'NONSENSE'", 1231),
        ("SET time_zone = 'Mars/Olympus'", 1298),
        ("SET time_zone = '+01:00', no_such_variable = 1", 1193),
        ("SET autocommit = 0, no_such_variable = 1", 1193),
        ("SET autocommit = 5", 1231),
        ("SET NAMES utf8mb4 COLLATE latin1_swedish_ci", 1253),
        ("SET transaction_mode = 'sometimes'", 1231),
        ("SET version = '1'", 1238),
    ):
        reply = client.ask(sql)
        assert (reply.kind, reply.code) == ("err", code), (sql, reply)
        assert client.ask("SELECT @@sql_mode, @@time_zone, @@autocommit").rows == before, sql
        assert other.ask("SELECT @@sql_mode, @@time_zone, @@autocommit").rows == before, sql
    assert client.ask("SET GLOBAL max_connections = 'x'").kind == "err"


@pytest.mark.one_server
def test_many_clients_few_connections(own: MakeOwn, isolation: str) -> None:
    """Every client has settings of its own, and four connections serve all; none ever sees another's."""
    proxy = own({"backends": {"max_connections": 2}})
    chooser = random.Random(1)
    clients: list[tuple[wire.Raw, int]] = []
    for number in range(24):
        client = proxy.raw()
        mode = ("", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT")[number % 4]
        client.write(
            wire.query(f"SET time_zone = '+{number % 12:02}:{number % 2 * 30:02}', @me = {number}")
            + wire.query(f"SET sql_mode = '{mode}', group_concat_max_len = {1000 + number}")
        )
        assert client.reply().kind == client.reply().kind == "ok"
        if number % 3 == 0:
            assert client.ask("SET NAMES latin1").kind == "ok"
        if number % 5 == 0:
            assert client.ask("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE").kind == "ok"
        clients.append((client, number))
    ids = [(row[0] or b"").decode() for row in clients[0][0].ask("SELECT id FROM users").rows]
    question = (
        "SELECT @@time_zone, @@sql_mode, @@group_concat_max_len, @me, @@character_set_client,"
        f" @@{isolation} FROM users WHERE id = "
    )
    for _ in range(12):
        chooser.shuffle(clients)
        for client, _number in clients:
            client.write(wire.query(question + chooser.choice(ids)))
        for client, number in clients:
            mode = ("", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "PIPES_AS_CONCAT")[number % 4]
            expected = (
                f"+{number % 12:02}:{number % 2 * 30:02}", mode, 1000 + number, number,
                "latin1" if number % 3 == 0 else "utf8mb4",
                "SERIALIZABLE" if number % 5 == 0 else "REPEATABLE-READ",
            )  # fmt: skip
            reply = client.reply()
            assert reply.rows == [tuple(str(value).encode() for value in expected)], (number, reply)
    assert all(host["busy"] + host["idle"] <= 2 for host in proxy.status()["hosts"])


def test_settings_inside_a_transaction(connect: Connect) -> None:
    connection: Connection = connect()
    cursor = connection.cursor()
    connection.begin()
    cursor.execute("SELECT COUNT(*) FROM users WHERE id = 1")
    cursor.execute("SET time_zone = '+03:00'")
    assert one(cursor, "SELECT CONCAT(@@time_zone, COUNT(*)) FROM users WHERE id = 1") == "+03:000"
    connection.rollback()
    assert one(cursor, "SELECT @@time_zone") == "+03:00"


def test_drivers_charsets(connect: Connect) -> None:
    for charset in ("utf8mb4", "latin1", "utf8mb3"):
        try:
            cursor = connect(charset=charset).cursor()
        except (pymysql.OperationalError, LookupError):
            if charset == "utf8mb3":
                continue
            raise
        assert one(cursor, "SELECT 'é'") == "é", charset


def test_a_limit_of_no_rows(connect: Connect) -> None:
    """What is set beside it is known, though no SELECT gives a row any more."""
    with connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_select_limit = 0, time_zone = '+01:00'")
        assert cursor.execute("SELECT @@time_zone") == 0
        cursor.execute("SET sql_select_limit = DEFAULT")
        assert one(cursor, "SELECT @@time_zone") == "+01:00"


def test_set_for_all_where_one_host_is_away(demo: Demo, own: MakeOwn) -> None:
    """The error says who has it, and who has not."""
    first, away = demo.masters[0].address, "127.0.0.1:1"
    topology = json.loads((demo.directory / "topology.json").read_text())
    proxy = own(topology=moved(topology, {demo.masters[1].address: away}), expected=("cannot connect",))
    with demo.direct(0) as server, server.cursor() as cursor:
        before = one(cursor, "SELECT @@global.div_precision_increment")
        try:
            client = proxy.raw()
            reply = client.ask("SET GLOBAL div_precision_increment = 7")
            assert one(cursor, "SELECT @@global.div_precision_increment") == 7
            assert reply.code == 1105
            assert f"The statement is done on {first} and failed on {away}: " in reply.message
            assert client.ask("SELECT 1").value == b"1"
        finally:
            cursor.execute(f"SET GLOBAL div_precision_increment = {before}")
