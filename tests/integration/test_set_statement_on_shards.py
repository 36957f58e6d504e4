"""SET STATEMENT … FOR statements that several servers may run: as on one server, and nothing of it stays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest
from pymysql.constants import CLIENT

from tests.integration.binary import Binary, Prepared, integer
from tests.integration.both_sides import logged_in
from tests.integration.raw import Raw
from tests.integration.replies import Reply
from tests.support.demo import Demo
from tests.support.servers import LocalServer

PIN, LIST = 68719476756, "(68719476756, 1125968626319379, 2251868533162025, 3377768440004613)"
CLEAR = "DELETE FROM email_to_user WHERE email IN ('st_a', 'st_b', 'st_c')"
OURS = "SELECT email, user_id FROM email_to_user WHERE email IN ('st_a', 'st_b', 'st_c') ORDER BY email"
WAITS = "SET STATEMENT lock_wait_timeout = 3 FOR"

READS = (
    f"SET STATEMENT max_statement_time = 10 FOR SELECT id, data FROM pins WHERE id = {PIN}",
    f"{WAITS} SELECT COUNT(*), @@lock_wait_timeout FROM pins",
    f"{WAITS} SELECT id, @@lock_wait_timeout FROM pins WHERE id IN {LIST} ORDER BY id",
    f"{WAITS} (SELECT id FROM pins WHERE id = {PIN}) UNION SELECT @@lock_wait_timeout",
    f"{WAITS} WITH w AS (SELECT id FROM pins) SELECT COUNT(*), MAX(@@lock_wait_timeout) FROM w",
    f"{WAITS} SELECT p.id, b.id FROM pins p JOIN boards b ON b.id > p.id ORDER BY 1, 2 LIMIT 3",
    f"{WAITS} SELECT @@lock_wait_timeout, COUNT(*) FROM usernames",
    f"{WAITS} SELECT @@lock_wait_timeout, DATABASE(), ROW_COUNT(), FOUND_ROWS()",
    f"{WAITS} SELECT COUNT(*) FROM legacy.customers, countries",
    f"/* a */ set /* b */ statement # c\n lock_wait_timeout /* d */ = 3 for /* e */ {OURS} -- f",
    "SET STATEMENT `lock_wait_timeout` = 3, sql_select_limit = 2 FOR SELECT id FROM pins ORDER BY id",
    "SET STATEMENT group_concat_max_len = 5 FOR SELECT GROUP_CONCAT(id ORDER BY id) FROM pins",
    f"SET STATEMENT time_zone = '+05:00' FOR SELECT ts FROM pins WHERE id = {PIN}",
    "SET STATEMENT lock_wait_timeout = @st FOR SELECT COUNT(*), @@lock_wait_timeout FROM pins",
    "SET STATEMENT lock_wait_timeout = DEFAULT FOR SELECT COUNT(*), @@lock_wait_timeout FROM pins",
    "SET STATEMENT lock_wait_timeout = 3 FOR SET STATEMENT lock_wait_timeout = 4, net_retry_count = 9 FOR"
    " SELECT COUNT(*), @@lock_wait_timeout, @@net_retry_count FROM pins",
    f"{WAITS} SELECT @w := user_id FROM usernames ORDER BY username LIMIT 1",
    f"{WAITS} SELECT id INTO @z FROM pins WHERE id = {PIN}",
    "SET STATEMENT max_statement_time = 0.1 FOR SELECT COUNT(*), SLEEP(1) FROM pins",
    f"SET STATEMENT max_statement_time = 0.1 FOR SELECT SLEEP(1) FROM pins WHERE id = {PIN}",
    f"{WAITS} SHOW TABLES LIKE 'pin%'",
    f"{WAITS} SET @st = @@lock_wait_timeout",
    f"{WAITS} SET lock_wait_timeout = 9",
)
WRITES = (
    f"{WAITS} INSERT INTO email_to_user VALUES ('st_a', @@lock_wait_timeout)",
    f"{WAITS} INSERT INTO email_to_user VALUES ('st_b', @@lock_wait_timeout), ('st_c', 4)",
    f"{WAITS} INSERT INTO email_to_user VALUES ('st_a', 1), ('st_b', 2) ON DUPLICATE KEY UPDATE user_id = 2",
    f"{WAITS} REPLACE INTO email_to_user VALUES ('st_a', 5), ('st_c', 6)",
    f"{WAITS} UPDATE email_to_user SET user_id = @@lock_wait_timeout WHERE email = 'st_a'",
    f"{WAITS} UPDATE email_to_user SET user_id = user_id + 1 WHERE email IN ('st_a', 'st_b')",
    f"{WAITS} INSERT IGNORE INTO email_to_user SELECT 'st_a', 3 FROM usernames",
    f"{WAITS} DELETE FROM email_to_user WHERE email = 'st_a'",
    f"{WAITS} DELETE FROM email_to_user WHERE email IN ('st_b', 'st_c')",
)
MISTAKES = (
    "SET STATEMENT no_such = 10 FOR SELECT COUNT(*) FROM pins",
    "SET STATEMENT lock_wait_timeout = 'a' FOR SELECT COUNT(*) FROM pins",
    "SET STATEMENT version = 'a' FOR SELECT COUNT(*) FROM pins",
    "SET STATEMENT max_connections = 5 FOR SELECT COUNT(*) FROM pins",
    f"{WAITS} SELECT nope FROM pins",
    f"{WAITS} SELECT id FROM nope",
    f"{WAITS} SELEC nope FROM pins",
    WAITS,
    "SET STATEMENT lock_wait_timeout = 3 SELECT id FROM pins",
    "SET STATEMENT lock_wait_timeout FOR SELECT id FROM pins",
    "SET STATEMENT FOR SELECT id FROM pins",
    f"{WAITS} INSERT INTO usernames VALUES ('st', 1), ('st', 2)",
)
AFTER = (
    "SELECT @@lock_wait_timeout, @@sql_select_limit, @@group_concat_max_len, @@time_zone, @@net_retry_count"
)


def same(one: Reply) -> tuple[Any, ...]:
    """All of a reply that a client sees."""
    return one.kind, one.code, one.message, one.rows, one.columns, one.affected, one.warnings, one.info


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[tuple[Raw, Raw]]:
    with logged_in(demo, plain) as (proxy, server):
        for client in (proxy, server):
            client.ask(CLEAR)
            client.ask("SET @st = 7")
        yield proxy, server
        for client in (proxy, server):
            client.ask(CLEAR)


@pytest.mark.parametrize("begin", ["DO 0", "BEGIN", "SET autocommit = 0", "SET lock_wait_timeout = 99"])
def test_the_settings_hold_for_one_statement_as_on_one_server(sides: tuple[Raw, Raw], begin: str) -> None:
    proxy, server = sides
    for sql in (begin, *READS, *WRITES, *MISTAKES):
        for each in (sql, AFTER, OURS):
            assert same(proxy.ask(each)) == same(server.ask(each)), (sql, each)


def test_another_session_on_the_same_connections_does_not_have_them(
    sides: tuple[Raw, Raw], demo: Demo, flavour: str
) -> None:
    proxy, _ = sides
    with Raw(demo.host, demo.port) as other:
        other.login("demo", "demo", "demo")
        asked = "SELECT MIN(@@lock_wait_timeout), MAX(@@lock_wait_timeout) FROM pins"
        before = other.ask(asked).rows
        for sql in (*READS, *WRITES):
            proxy.ask(sql)
            assert other.ask(asked).rows == before, sql


def test_in_a_text_of_several_statements(demo: Demo, plain: LocalServer, flavour: str) -> None:
    text = f"{WAITS} SELECT id, @@lock_wait_timeout FROM pins WHERE id IN {LIST} ORDER BY id; {AFTER}"
    found = []
    for connect in (demo.connect, plain.connect):
        with connect(database="demo", client_flag=CLIENT.MULTI_STATEMENTS) as connection:
            cursor = connection.cursor()
            results: list[Any] = []
            try:
                cursor.execute(text)
                results.append(cursor.fetchall())
                while cursor.nextset():
                    results.append(cursor.fetchall())
            except pymysql.MySQLError as error:
                results.append(error.args)
            found.append(results)
    assert found[0] == found[1]
    assert len(found[0]) == (2 if flavour == "mariadb" else 1)


@pytest.mark.parametrize(
    "sql",
    [
        f"{WAITS} SELECT id, @@lock_wait_timeout FROM pins WHERE id = ?",
        f"{WAITS} SELECT COUNT(*), @@lock_wait_timeout, ? AS a FROM usernames",
        f"{WAITS} SELECT MAX(id), @@lock_wait_timeout FROM pins WHERE id >= ?",
        f"{WAITS} SELECT MIN(id), ? FROM pins",
        f"{WAITS} SELECT @@lock_wait_timeout, ? AS a",
        f"{WAITS} UPDATE email_to_user SET user_id = 9 WHERE user_id = ? AND email = 'st_a'",
        f"{WAITS} SELECT nope FROM pins WHERE id = ?",
    ],
)
def test_prepared(sides: tuple[Raw, Raw], sql: str) -> None:
    found: list[tuple[object, ...]] = []
    for raw in sides:
        client = Binary(raw)
        statement = client.prepare(sql)
        if not isinstance(statement, Prepared):
            found.append((statement.code, statement.message))
            continue
        answers = [client.execute(statement.id, [integer(PIN)]) for _ in range(2)]
        results = [(one.kind, one.payload[:2], one.rows, one.names) for one in answers]
        found.append((statement.parameters, statement.columns, *results, raw.ask(AFTER).rows))
    assert found[0] == found[1]


def test_what_no_connection_can_be_given_for_one_statement_is_refused(
    sides: tuple[Raw, Raw], flavour: str
) -> None:
    proxy, server = sides
    for name, value in (
        ("sql_mode", "''"),
        ("character_set_client", "latin1"),
        ("last_insert_id", "5"),
        ("lock_wait_timeout", "(SELECT 1)"),
        ("lock_wait_timeout", "1 + GET_LOCK('st', 0)"),
        ("lock_wait_timeout", "@x := 5"),
    ):
        sql = f"SET STATEMENT {name} = {value} FOR SELECT COUNT(*) FROM pins"
        reply = proxy.ask(sql)
        assert reply.kind == "err"
        assert "does not support" in reply.message or reply.code == server.ask(sql).code
