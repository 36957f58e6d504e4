"""sql_select_limit cuts off what a client's own SELECT gives, and nothing that a write reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from tests.integration.answers import answer
from tests.integration.binary import Binary
from tests.integration.fixtures import Connect, MakeRaw, Things
from tests.support.servers import LocalServer

Connection = pymysql.connections.Connection
MARK = "test_select_limit"
ROWS = 8
ALL_ROWS = 18446744073709551615

COUNTED = "(SELECT COUNT(*) FROM boards WHERE id IN ({boards}))"

#: Writes that the proxy reads for, and what then counts the rows that are written.
WRITES = {
    "single to single": (
        "INSERT INTO usernames SELECT CONCAT(username, '+'), user_id FROM usernames"
        " WHERE username LIKE '{m}%'",
        "usernames WHERE username LIKE '{m}%+'",
    ),
    "shards to single": (
        "INSERT INTO usernames SELECT CONCAT('{m}+', id), id FROM boards WHERE id IN ({boards})",
        "usernames WHERE username LIKE '{m}+%'",
    ),
    "join to single": (
        "INSERT INTO usernames SELECT CONCAT('{m}+', b.id), b.id FROM user_has_boards h"
        " JOIN boards b ON b.id = h.board_id WHERE h.user_id = {user}",
        "usernames WHERE username LIKE '{m}+%'",
    ),
    "replace": (
        "REPLACE INTO usernames SELECT CONCAT('{m}+', id), id FROM boards WHERE id IN ({boards})",
        "usernames WHERE username LIKE '{m}+%'",
    ),
    "one shard to itself": (
        "INSERT INTO user_has_boards SELECT user_id, board_id + 1000, sequence + 1000 FROM user_has_boards"
        " WHERE user_id = {user}",
        "user_has_boards WHERE user_id = {user} AND sequence > 1000",
    ),
    "one shard to others": (
        "INSERT INTO boards (data) SELECT JSON_OBJECT('m', '{m}', 'copy', board_id) FROM user_has_boards"
        " WHERE user_id = {user}",
        "boards WHERE data LIKE '%{m}%copy%'",
    ),
    "to an unsharded database": (
        "INSERT INTO legacy.{m} SELECT id FROM boards WHERE id IN ({boards})",
        "legacy.{m}",
    ),
    "update of a join": (
        "UPDATE boards b JOIN users u ON u.id = JSON_VALUE(b.data, '$.user_id')"
        " SET b.data = JSON_SET(b.data, '$.joined', 1) WHERE b.id IN ({boards})",
        "boards WHERE data LIKE '%{m}%' AND JSON_VALUE(data, '$.joined') = 1",
    ),
    "update by a subquery": (
        "UPDATE /*+ scatter */ boards SET data = JSON_SET(data, '$.found', 1)"
        " WHERE id IN (SELECT board_id FROM user_has_boards WHERE user_id = {user})",
        "boards WHERE data LIKE '%{m}%' AND JSON_VALUE(data, '$.found') = 1",
    ),
    "update in order": (
        "UPDATE /*+ scatter */ boards SET data = JSON_SET(data, '$.first', 1) WHERE data LIKE '%{m}%'"
        f" ORDER BY id LIMIT {ROWS}",
        "boards WHERE data LIKE '%{m}%' AND JSON_VALUE(data, '$.first') = 1",
    ),
    "delete by a subquery": (
        "DELETE FROM user_has_boards WHERE user_id IN ({users}) AND board_id IN (SELECT id FROM boards)",
        "user_has_boards WHERE user_id = {user}",  # the others are deleted
    ),
    "values of each row": (
        "INSERT INTO usernames VALUES "
        + ", ".join(f"('{{m}}+{n}', {COUNTED})" for n in range(ROWS)),
        f"usernames WHERE username LIKE '{{m}}+%' AND user_id = {ROWS}",
    ),
}  # fmt: skip


class Rows:
    """Boards of the test, each on the shard of another user, and mappings to them; and a session."""

    def __init__(self, connection: Connection, things: Things) -> None:
        self.connection = connection
        user = things.insert("users", {"m": MARK})
        users = [things.insert("users", {"m": MARK, "n": n}) for n in range(ROWS)]
        boards = [things.insert("boards", {"m": MARK, "user_id": one}) for one in users]
        for n, (one, board) in enumerate(zip(users, boards, strict=True), 1):
            things.map("user_has_boards", user, board, n)
            things.map("user_has_boards", one, board, n)
        listed = [", ".join(map(str, ids)) for ids in (users, boards)]
        self.texts = {"m": MARK, "user": user, "users": listed[0], "boards": listed[1]}
        names = ", ".join(f"('{MARK}{n}', {n})" for n in range(ROWS))
        self.run(f"INSERT INTO usernames VALUES {names}")
        self.run(f"CREATE TABLE legacy.{MARK} (id BIGINT UNSIGNED)")

    def run(self, sql: str) -> tuple[int, list[tuple[Any, ...]]]:
        """Run a statement with `{…}` for the rows of the test."""
        with self.connection.cursor() as cursor:
            return cursor.execute(sql.format_map(self.texts)), list(cursor.fetchall())

    def limit(self, most: int | str) -> None:
        """What a client's SELECT gives at most."""
        self.run(f"SET sql_select_limit = {most}")

    def count(self, what: str) -> int:
        """So many rows there are, whatever the limit."""
        return int(self.run(f"SELECT COUNT(*) FROM {what} LIMIT 1")[1][0][0])

    def clear(self) -> None:
        self.limit("DEFAULT")
        self.run(f"DROP TABLE legacy.{MARK}")
        self.run(f"DELETE FROM usernames WHERE username LIKE '{MARK}%'")
        self.run(f"DELETE /*+ scatter */ FROM boards WHERE data LIKE '%{MARK}%'")


@pytest.fixture
def rows(connect: Connect, things: Things) -> Iterator[Rows]:
    made = Rows(connect(), things)
    yield made
    made.connection.rollback()
    made.clear()


@pytest.mark.parametrize("most", [3, 1])
@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_whole(rows: Rows, name: str, most: int) -> None:
    sql, written = WRITES[name]
    rows.limit(most)
    rows.run(sql)
    assert rows.count(written) == ROWS
    if sql.startswith("DELETE"):
        assert rows.count("user_has_boards WHERE user_id IN ({users})") == 0
    assert rows.run("SELECT @@sql_select_limit LIMIT 1")[1] == [(most,)]
    assert len(rows.run("SELECT id FROM boards WHERE id IN ({boards})")[1]) == most


def test_a_limit_of_no_rows(rows: Rows) -> None:
    rows.limit(0)
    for name in ("shards to single", "update by a subquery", "one shard to others"):
        sql, written = WRITES[name]
        assert rows.run(sql)[0] == ROWS, name
        assert rows.count(written) == ROWS, name


def test_within_a_transaction(rows: Rows) -> None:
    """On the connections that it has, which other statements are to find as the session has set them."""
    rows.limit(3)
    rows.connection.begin()
    assert rows.run("SELECT id FROM boards WHERE id IN ({boards})")[0] == 3
    sql, written = WRITES["shards to single"]
    assert rows.run(sql)[0] == ROWS
    assert rows.run("SELECT id FROM boards WHERE id IN ({boards})")[0] == 3
    assert rows.count(written) == ROWS
    rows.connection.rollback()
    assert rows.count(written) == 0


def test_prepared(rows: Rows, raw: MakeRaw) -> None:
    """By the protocol, as drivers do it."""
    sql, written = WRITES["update of a join"]
    client = raw()
    assert client.ask("SET sql_select_limit = 3").kind == "ok"
    answer = Binary(client).run(sql.format_map(rows.texts))
    assert answer.kind == "ok"
    assert rows.count(written) == ROWS


def test_user_variables_are_kept(rows: Rows) -> None:
    """What the SELECT assigns stays, beside the limit."""
    rows.limit(3)
    rows.run("SET @counted = 0")
    sql = "INSERT INTO legacy.{m} SELECT @counted := @counted + 1 FROM user_has_boards WHERE user_id = {user}"
    assert rows.run(sql)[0] == ROWS
    assert rows.run("SELECT @counted, @@sql_select_limit LIMIT 1")[1] == [(ROWS, 3)]


def test_after_an_error(rows: Rows) -> None:
    rows.limit(3)
    with pytest.raises(pymysql.MySQLError) as raised:
        rows.run("INSERT INTO legacy.{m} SELECT nothing FROM boards WHERE id IN ({boards})")
    assert raised.value.args[0] == 1054
    assert rows.run("SELECT id FROM boards WHERE id IN ({boards})")[0] == 3
    rows.limit("DEFAULT")
    assert rows.run("SELECT id FROM boards WHERE id IN ({boards})")[0] == ROWS


SELECTS = (
    "SELECT id FROM pins",
    "SELECT id FROM pins ORDER BY id DESC",
    "SELECT id FROM pins LIMIT 7",
    "SELECT COUNT(*) FROM pins",
    "SELECT COUNT(*) FROM (SELECT id FROM pins) d",
    "SELECT id FROM pins UNION ALL SELECT id FROM boards",
    "SELECT MOD(id, 7) AS k, COUNT(*) FROM pins GROUP BY k ORDER BY k",
    "SELECT MAX(id) FROM pins WHERE id IN (SELECT id FROM pins)",
    "SELECT p.id FROM pins p JOIN boards b ON b.id = JSON_VALUE(p.data, '$.board_id')",
    "SELECT COUNT(*) FROM pins p JOIN boards b ON b.id = JSON_VALUE(p.data, '$.board_id')",
)


@pytest.mark.parametrize("most", [5, 0, ALL_ROWS])
def test_a_select_is_as_on_one_server(connect: Connect, plain: LocalServer, most: int) -> None:
    """How many rows a client gets, over shards as over one table; and the rows, where they have an order."""
    with connect() as here, plain.connect(database="demo") as there:
        answers = []
        for connection in (here, there):
            with connection.cursor() as cursor:
                cursor.execute(f"SET sql_select_limit = {most}")
                answers.append({sql: (cursor.execute(sql), cursor.fetchall()) for sql in SELECTS})
    for sql in SELECTS:
        (count, rows), (expected, wanted) = answers[0][sql], answers[1][sql]
        assert count == expected, sql
        assert rows == wanted or "ORDER" not in sql, sql


SHOWS = (
    "SHOW TABLES",
    "SHOW FULL TABLES",
    "SHOW TABLES LIKE 'p%'",
    "SHOW TABLES WHERE Tables_in_demo > 'c'",
    "SHOW TABLES FROM legacy",
    "SHOW DATABASES",
    "SHOW DATABASES WHERE `Database` LIKE '%schema%'",
    "SHOW COLUMNS FROM pins",
    "DESCRIBE boards",
)


@pytest.mark.parametrize("most", [2, 0, ALL_ROWS])
def test_a_show_statement_is_as_on_one_server(connect: Connect, plain: LocalServer, most: int) -> None:
    """How many rows a client gets, of lists that the proxy makes as well."""
    with connect() as here, plain.connect(database="demo") as there:
        for connection in (here, there):
            answer(connection, f"SET sql_select_limit = {most}")
        for sql in SHOWS:
            assert len(answer(here, sql)) == len(answer(there, sql)), sql


@pytest.mark.parametrize("limit", [0, 1])
def test_what_is_read_back_is_not_cut_off(connect: Connect, limit: int) -> None:
    """The proxy's own questions about a session, asked on the session's connection."""
    with connect(database="legacy") as through, through.cursor() as cursor:
        cursor.execute("DROP PROCEDURE IF EXISTS assigns")
        cursor.execute("CREATE PROCEDURE assigns() BEGIN SET @a = 1; SET @b = 2; SET @c = 3; END")
        cursor.execute(f"SET sql_select_limit = {limit}")
        cursor.execute("CALL assigns()")
        cursor.execute("DROP PROCEDURE assigns")
        cursor.execute("SET sql_select_limit = DEFAULT")
        cursor.execute("SELECT @a, @b, @c")
        assert cursor.fetchall() == ((1, 2, 3),)
