"""Several statements in one text, and procedures with several results: packet by packet as a server's."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest
from pymysql.constants import CLIENT

from tests.integration import raw as wire
from tests.integration.binary import Binary, Prepared
from tests.integration.fixtures import Connect, MakeRaw
from tests.integration.raw import MULTI_STATEMENTS, SET_OPTION, Raw, Reply
from tests.support.demo import Demo

PROCEDURE = """CREATE PROCEDURE shown(IN a INT) BEGIN
    DECLARE EXIT HANDLER FOR 1146 BEGIN SELECT 'no table'; END;
    IF a > 1 THEN SELECT a; ELSE SELECT ';', a; END IF;
    CASE a WHEN 3 THEN SELECT * FROM nothing_there; ELSE BEGIN END; END CASE;
    SELECT CASE a WHEN 4 THEN 'four' END;
    IF a = 5 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'five'; END IF;
END"""

TEXTS = [
    "SELECT 1; SELECT 2",
    "SELECT 1;",
    "SELECT 1;;; ",
    "SELECT 1;; SELECT 2",
    "SELECT 1; -- comment",
    "SELECT 1; /* comment */;",
    ";SELECT 1",
    "SELECT 1; SELECT 'open",
    "SELECT 1; SELECT * FROM nothing_there; SELECT 3",
    "/*!50000 SELECT 1 */; SELECT 2",
    "DO 1; DO 2; DO 3",
    "SET sql_mode = 'ANSI_QUOTES'; SELECT 1 AS \"a;b\"; SET sql_mode = DEFAULT",
    "SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT '\\'; SET sql_mode = DEFAULT; SELECT '\\';'",
    "SELECT /* ; */ 1; SELECT ';', \";\" AS `;`; # ;",
    "-- x;\nSELECT 1; SELECT 2",
    "/* a */ SELECT 1 /* b */; SELECT 2",
    "/* a */ SELECT 1 AS a /*! */; SELECT 2",
    "/* a */ /* b */; SELECT 2",
    "SELECT */* ; */FROM customers WHERE id = 0; SELECT 2",
    "SELECT 1; --\nSELECT 2",
    "BEGIN; SELECT 1; COMMIT; SELECT 2",
    "SET autocommit = 0; DO 1; SET autocommit = 1; DO 2",
    "USE legacy; SELECT 1",
    "CREATE TABLE several (a INT); INSERT INTO several VALUES (1), (2); UPDATE several SET a = 3;"
    "SELECT * FROM several; DROP TABLE several; DROP TABLE several; SELECT 1",
    "CREATE FUNCTION said(a CHAR(3)) RETURNS CHAR(9) DETERMINISTIC RETURN CONCAT(a, ';'); SELECT said('x');"
    "DROP FUNCTION said",
    "CREATE TABLE several (a INT); CREATE TRIGGER grown BEFORE INSERT ON several FOR EACH ROW BEGIN"
    " SET @x = 1; IF NEW.a THEN SET NEW.a = NEW.a + 1; END IF; END; INSERT INTO several VALUES (1);"
    "SELECT a FROM several; DROP TABLE several",
    f"{PROCEDURE}; CALL shown(1); CALL shown(2); SELECT 1",
    f"{PROCEDURE}; CALL shown(3); SELECT 1",
    f"{PROCEDURE}; CALL shown(5); SELECT 1",
    "CALL missing(); SELECT 1",
]  # fmt: skip


@pytest.fixture(scope="module")
def direct(demo: Demo) -> Iterator[Raw]:
    """The server behind `legacy`, with MULTI_STATEMENTS."""
    with Raw(demo.hosts[0].socket, 0) as client:
        reply = client.login(demo.hosts[0].user, demo.hosts[0].password, "legacy", flags=MULTI_STATEMENTS)
        assert reply.kind == "ok", reply
        yield client


@pytest.fixture
def proxied(raw: MakeRaw) -> Raw:
    """The proxy, with MULTI_STATEMENTS."""
    return logged_in(raw, MULTI_STATEMENTS)


def logged_in(raw: MakeRaw, flags: int = 0, database: str = "legacy") -> Raw:
    client = raw(login=False)
    assert client.login(database=database, flags=flags).kind == "ok"
    return client


def told(client: Raw, sql: str) -> tuple[list[Reply], list[tuple[int, bytes]]]:
    """The replies, and their packets as they came, but for the collation of results."""
    client.write(wire.query(sql))
    client.heard.clear()
    found = client.replies()
    return found, [(seq, data.replace(b"\x0c\xff\0", b"\x0c-\0")) for seq, data in client.heard]


def test_packet_by_packet_as_a_server(direct: Raw, proxied: Raw) -> None:
    for sql in TEXTS:
        direct.ask("DROP PROCEDURE IF EXISTS shown")
        expected, packets = told(direct, sql)
        direct.ask("DROP PROCEDURE IF EXISTS shown")
        found, same = told(proxied, sql)
        assert found == expected, sql
        assert same == packets, sql
    assert proxied.ping().kind == "ok"


def test_without_the_capability(direct: Raw, raw: MakeRaw) -> None:
    client = logged_in(raw)
    assert direct.do(SET_OPTION, b"\1\0", fields=True).kind == "rows"
    try:
        for sql in (
            "SELECT 1; SELECT 2",
            "SELECT 1; DO",
            ";SELECT 1",
            "DO 1; -- c",
            "DO 1;;",
            "USE x; SELEC",
        ):
            assert told(client, sql) == told(direct, sql), sql
    finally:
        direct.do(SET_OPTION, b"\0\0", fields=True)


def test_a_prepared_statement_is_one(direct: Raw, proxied: Raw) -> None:
    for sql in (
        "SELECT 1; SELECT 2",
        "SELECT 1;",
        "SELECT 1; -- c",
        "SELECT 1;;",
        ";SELECT 1",
        "SELECT 1; SELEC",
    ):
        answers: list[tuple[int, int | str]] = []
        for client in (direct, proxied):
            binary = Binary(client)
            answer = binary.prepare(sql)
            if isinstance(answer, Prepared):
                answers.append((answer.columns, len(binary.execute(answer.id).rows)))
                binary.close(answer.id)
            else:
                answers.append((answer.code, answer.message))
        assert answers[1] == answers[0], sql


def test_set_option(raw: MakeRaw) -> None:
    client = logged_in(raw)
    assert client.ask("SELECT 1; SELECT 2").code == 1064
    for option, count in ((0, 2), (1, 1), (0, 2)):
        status = client.do(SET_OPTION, bytes((option, 0)), fields=True)
        assert status.status == wire.AUTOCOMMIT
        assert len(told(client, "SELECT 1; SELECT 2")[0]) == count
    assert client.do(SET_OPTION, b"\7\0").code == 1047
    assert client.ping().kind == "ok"


@pytest.mark.parametrize("option", [0, 1])
def test_another_user_keeps_what_set_option_has_said(demo: Demo, raw: MakeRaw, option: int) -> None:
    server, flags = demo.hosts[0], MULTI_STATEMENTS * option
    with Raw(server.socket, 0) as direct:
        assert direct.login(server.user, server.password, "legacy", flags=flags).kind == "ok"
        client = logged_in(raw, flags)
        answers = []
        for one, user, password in ((direct, server.user, server.password), (client, "demo", "demo")):
            one.do(SET_OPTION, bytes((option, 0)), fields=True)
            assert one.change_user(user, password, "legacy").kind == "ok"
            answers.append(told(one, "SELECT 1; SELECT 2"))
    assert answers[1] == answers[0]


def test_each_is_routed_by_itself(connect: Connect) -> None:
    with connect(client_flag=CLIENT.MULTI_STATEMENTS).cursor() as cursor:
        cursor.execute(
            "SELECT COUNT(*) FROM users; SET @a = 5; SELECT COUNT(*) FROM users WHERE id IN (1, 2);"
            "SELECT id FROM pins ORDER BY id LIMIT 3; SHOW SHARDS; EXPLAIN ROUTE SELECT 1; SELECT @a;"
            "SELECT nothing FROM pins; SELECT 2"
        )
        counts = [cursor.rowcount]
        for _ in range(6):
            assert cursor.nextset()
            counts.append(cursor.rowcount)
        assert counts[:4] == [1, 0, 1, 3]
        assert cursor.fetchall() == ((5,),)
        with pytest.raises(pymysql.err.OperationalError, match="1054"):
            cursor.nextset()
        cursor.execute("SELECT 3")
        assert cursor.fetchall() == ((3,),)


def test_access_is_checked_for_each(demo: Demo) -> None:
    with demo.reader(client_flag=CLIENT.MULTI_STATEMENTS) as reader, reader.cursor() as cursor:
        cursor.execute("SELECT 1; DELETE FROM users WHERE id = 1; SELECT 2")
        with pytest.raises(pymysql.err.OperationalError, match="1142"):
            cursor.nextset()


def test_a_text_with_very_long_rows(proxied: Raw, direct: Raw) -> None:
    sql = "SELECT 1; SELECT REPEAT('x', 17000000), 5; SELECT 2; SELECT REPEAT('y', 3000000); SELECT 3"
    assert told(proxied, sql) == told(direct, sql)


def test_more_packets_than_255(proxied: Raw) -> None:
    proxied.write(wire.query("SELECT 1; SELECT COUNT(*) FROM demo.users WHERE id = 1;" * 200))
    replies = proxied.replies()
    assert len(replies) == 400
    numbers = [number for reply in replies for number in reply.sequence]
    assert numbers == [(1 + index) % 256 for index in range(len(numbers))]
