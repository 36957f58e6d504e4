"""Definitions of the schema's tables: every shard has them, or the report says which has not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pymysql
import pytest

from demo.programs import Program
from proxy.catalog.tables import PERIOD
from tests.integration.binary import Answer, Binary
from tests.integration.own import OwnProxy
from tests.integration.raw import Raw
from tests.support.demo import Demo, running_demo
from tests.support.waiting import wait_until

Connection = pymysql.connections.Connection


@pytest.fixture(scope="module")
def small(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo whose tables may change; each test takes its columns and keys back."""
    with running_demo(program, tmp_path_factory.mktemp("small"), "--shards", "5") as running:
        yield running


@pytest.fixture
def connection(small: Demo) -> Iterator[Connection]:
    with small.connect() as connection:
        yield connection


def rows(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def indexes(small: Demo, like: str) -> int:
    """How many physical tables have such an index, on all hosts."""
    count = 0
    for host in small.masters:
        with pymysql.connect(host=host.host, port=host.port, user=host.user, password=host.password) as own:
            found = rows(
                own,
                "SELECT COUNT(DISTINCT table_schema, table_name) FROM information_schema.statistics"
                f" WHERE index_name LIKE '{like}'",
            )
            count += int(str(found[0][0]))
    return count


def test_every_shard_and_every_host(connection: Connection, small: Demo) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pins ADD COLUMN note VARCHAR(20) NOT NULL DEFAULT 'x' AFTER id")
        assert connection.affected_rows() == 0
    rows(connection, "CREATE INDEX by_note ON demo.pins (note)")
    rows(connection, "CREATE INDEX by_name ON countries (name)")
    rows(connection, "ALTER TABLE usernames ADD KEY by_user (user_id)")
    assert (indexes(small, "by_note"), indexes(small, "by_name"), indexes(small, "by_user")) == (5, 2, 1)
    rows(connection, "DROP INDEX by_note ON pins")
    assert indexes(small, "by_note") == 0
    assert rows(connection, "SELECT COUNT(*) FROM pins WHERE note = 'x'")[0][0] != 0
    rows(connection, "TRUNCATE TABLE pins")
    assert rows(connection, "SELECT COUNT(*) FROM pins") == [(0,)]
    refused(connection)
    partly_done(connection)
    for sql in (
        "ALTER TABLE pins DROP COLUMN note",
        "DROP INDEX by_name ON countries",
        "ALTER TABLE usernames DROP KEY by_user",
        "ALTER TABLE boards DROP COLUMN extra",
    ):
        rows(connection, sql)


def refused(connection: Connection) -> None:
    for sql, reason in (
        ("ALTER TABLE pins DROP COLUMN local_id", "'local_id' says on which shard"),
        ("ALTER TABLE pins ADD KEY (id)", "`id` is not stored"),
        ("ALTER TABLE board_has_pins CHANGE board_id b BIGINT", "'board_id' says on which shard"),
        ("ALTER TABLE pins RENAME TO needles", "the schema names the table"),
    ):
        with pytest.raises(pymysql.NotSupportedError, match=reason):
            rows(connection, sql)


def test_tables_are_tended_dropped_and_made(connection: Connection, small: Demo) -> None:
    for verb in ("ANALYZE", "CHECK", "OPTIMIZE"):
        found = rows(connection, f"{verb} TABLE pins")
        assert {row[0] for row in found} == {"demo.pins"}
        assert found[-1][1:] == (verb.lower(), "status", "OK")
    (made,) = rows(connection, "SHOW CREATE TABLE pins")
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connection, "ALTER TABLE pins ADD COLUMN data INT")
    assert caught.value.args[0] == 1060  # all shards refuse alike
    assert len(rows(connection, "SHOW WARNINGS")) == 1
    rows(connection, "DROP TABLE pins")
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connection, "SELECT * FROM pins WHERE id = 70437470730133")
    assert caught.value.args[0] == 1146
    rows(connection, str(made[1]))
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO pins (data) VALUES ('{}')")
        assert rows(connection, f"SELECT id FROM pins WHERE id = {cursor.lastrowid}") == [(cursor.lastrowid,)]
    for sql, code in (
        ("CREATE TABLE pins (id BIGINT)", 1050),
        ("CREATE TABLE nothing (id BIGINT)", 1235),
        ("CREATE TABLE board_has_pins (pin_id BIGINT)", 1235),
        ("CREATE TABLE legacy.x SELECT * FROM pins", 1235),
        ("CREATE TRIGGER t BEFORE INSERT ON pins FOR EACH ROW SET NEW.ts = NULL", 1235),
        ("DROP TABLE nothing", 1051),
    ):
        with pytest.raises(pymysql.MySQLError) as caught:
            rows(connection, sql)
        assert caught.value.args[0] == code, sql
    rows(connection, "DROP TABLE IF EXISTS nothing")


def partly_done(connection: Connection) -> None:
    rows(connection, "ALTER TABLE db00003.boards ADD COLUMN extra INT")
    with pytest.raises(
        pymysql.MySQLError, match="4 of 5 shards have done the definition, 1 have not: Duplicate"
    ):
        rows(connection, "ALTER TABLE boards ADD COLUMN extra INT")
    warnings = rows(connection, "SHOW WARNINGS")
    assert [str(row[2]).partition(" on ")[0] for row in warnings[1:]] == ["shard 3 (db00003)"]
    assert rows(connection, "SELECT COUNT(extra) FROM boards") == [(0,)]


def test_only_an_admin(demo: Demo) -> None:
    with (
        demo.connect(user="reader", password="reader") as connection,
        pytest.raises(pymysql.MySQLError, match="command denied"),
    ):
        rows(connection, "ALTER TABLE pins ADD COLUMN x INT")


def test_a_transaction_is_committed_before(connection: Connection) -> None:
    connection.begin()
    rows(connection, "INSERT INTO usernames VALUES ('test_ddl', 1)")
    rows(connection, "ALTER TABLE photos ADD KEY by_caption (caption)")
    connection.rollback()
    assert rows(connection, "SELECT COUNT(*) FROM usernames WHERE username = 'test_ddl'") == [(1,)]
    rows(connection, "DELETE FROM usernames WHERE username = 'test_ddl'")
    rows(connection, "ALTER TABLE photos DROP KEY by_caption")


def columns(connection: Connection, sql: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [one[0] for one in cursor.description or ()]


def test_star_and_inserts_know_the_columns_of_now(connection: Connection, small: Demo) -> None:
    """On one shard, on several, gathered and prepared before the change."""
    one = rows(connection, "SELECT id FROM users LIMIT 1")[0][0]
    statements = (
        f"SELECT * FROM users WHERE id = {one}",
        "SELECT u.* FROM users u LIMIT 3",
        "SELECT * FROM users a WHERE id IN (SELECT id FROM users b) LIMIT 2",
    )
    with Raw(small.host, small.port) as raw:
        assert raw.login("demo", "demo", "demo").kind == "ok"
        binary = Binary(raw)
        prepared = binary.statement(statements[0]).id
        for change, expected in (
            ("ADD COLUMN score INT DEFAULT 5", ["id", "data", "ts", "score"]),
            ("ADD COLUMN `na me` VARCHAR(9) FIRST", ["na me", "id", "data", "ts", "score"]),
            ("DROP COLUMN score", ["na me", "id", "data", "ts"]),
        ):
            rows(connection, f"ALTER TABLE users {change}")
            assert [columns(connection, sql) for sql in statements] == [expected] * 3
            answer = binary.execute(prepared)
            assert isinstance(answer, Answer)
            assert answer.names == expected
    rows(connection, "INSERT INTO users VALUES ('x', NULL, '{}', '2020-01-01')")
    (found,) = rows(connection, "SELECT * FROM users WHERE `na me` = 'x'")
    assert (found[0], found[2]) == ("x", "{}")
    rows(connection, f"DELETE FROM users WHERE id = {found[1]}")
    rows(connection, "ALTER TABLE users DROP COLUMN `na me`")


def test_a_column_that_not_every_shard_has_is_not_shown(connection: Connection, small: Demo) -> None:
    rows(connection, "ALTER TABLE db00000.boards ADD COLUMN odd INT")
    rows(connection, "ALTER TABLE users ADD COLUMN even INT")  # after which the tables are looked at
    assert columns(connection, "SELECT * FROM boards LIMIT 1") == ["id", "data", "ts"]
    assert columns(connection, "SELECT * FROM db00000.boards LIMIT 1") == ["local_id", "data", "ts", "odd"]
    rows(connection, "ALTER TABLE db00000.boards DROP COLUMN odd")
    rows(connection, "ALTER TABLE users DROP COLUMN even")


def test_a_column_that_another_proxy_has_dropped(small: Demo, tmp_path: Path) -> None:
    """The first statement that fails for it makes this one look, long before it would by itself."""
    with small.connect() as connection:
        rows(connection, "ALTER TABLE comments ADD COLUMN gone INT")
        with OwnProxy(small, tmp_path / "other") as other:
            client = other.raw()
            assert "gone" in client.ask("SELECT * FROM comments LIMIT 1").columns
            rows(connection, "ALTER TABLE comments DROP COLUMN gone")
            assert client.ask("SELECT * FROM comments LIMIT 1").code == 1054
            wait_until(
                lambda: client.ask("SELECT * FROM comments LIMIT 1").kind == "rows", "the columns", PERIOD / 2
            )
