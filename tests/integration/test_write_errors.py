"""What a write over shards is refused with: the error that one server would give."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from config.layout import PINTEREST
from tests.support.demo import Demo

Connection = pymysql.connections.Connection
LIKES = [PINTEREST.compose(shard=shard, type=3, local=(1 << 36) - 9) for shard in (40, 2, 17)]
"""Users on shards of both hosts, the first one's on the second."""


@pytest.fixture
def connection(demo: Demo) -> Iterator[Connection]:
    with demo.connect() as connection:
        yield connection
        connection.rollback()
        run(connection, f"DELETE FROM user_likes_pins WHERE user_id IN ({', '.join(map(str, LIKES))})")


def run(connection: Connection, sql: str) -> int:
    with connection.cursor() as cursor:
        return cursor.execute(sql)


def error(connection: Connection, sql: str) -> tuple[int, str]:
    with pytest.raises(pymysql.MySQLError) as raised:
        run(connection, sql)
    return raised.value.args[0], raised.value.args[1]


@pytest.mark.parametrize("begin", ["START TRANSACTION READ ONLY", "SET SESSION TRANSACTION READ ONLY"])
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM users WHERE id = 5",  # an ID that matches nothing: no server is asked
        "INSERT INTO user_likes_pins SELECT * FROM user_likes_pins WHERE user_id = 5",
        "UPDATE users SET data = '{}' WHERE id IN (SELECT user_id FROM user_likes_pins WHERE user_id = 5)",
    ],
)
def test_a_read_only_transaction(connection: Connection, begin: str, sql: str) -> None:
    run(connection, begin)
    assert error(connection, sql)[0] == 1792
    run(connection, "ROLLBACK")
    run(connection, "SET SESSION TRANSACTION READ WRITE")
    run(connection, sql)


def test_the_first_row_that_cannot_be_written(connection: Connection) -> None:
    rows = [f"({LIKES[0]}, 1, 1)", f"({LIKES[1]}, 'x', 1)", f"({LIKES[2]}, 'y', 1)"]
    run(connection, "BEGIN")
    sql = "INSERT INTO user_likes_pins (user_id, pin_id, sequence) VALUES "
    code, text = error(connection, sql + ", ".join(rows))
    assert code == 1366
    assert "'x'" in text
    assert text.endswith("at row 2")
    code, text = error(connection, sql + ", ".join(reversed(rows)))
    assert code == 1366
    assert "'y'" in text
    assert text.endswith("at row 1")
    assert run(connection, f"SELECT * FROM user_likes_pins WHERE user_id = {LIKES[0]}") == 0


def test_what_is_said_of_the_statement_is_said_once(connection: Connection) -> None:
    run(connection, "SET sql_mode = ''")
    rows = ", ".join(f"({like}, 1)" for like in LIKES)
    assert run(connection, f"INSERT INTO user_likes_pins (user_id, sequence) VALUES {rows}") == 3
    assert run(connection, "SHOW WARNINGS") == 1


@pytest.mark.parametrize("sql", ["DELETE FROM users WHERE", "DELETE users WHERE id = 1 ORDER"])
def test_a_syntax_error_is_the_server_s(connection: Connection, sql: str) -> None:
    code, text = error(connection, sql)
    assert code == 1064
    assert "the manual that corresponds to your" in text


def test_messages_name_the_logical_database(connection: Connection, flavour: str) -> None:
    """MariaDB names it where a value does not fit. What the client named itself stays."""
    one, several = [f"({LIKES[0]}, 'x', 1)"], [f"({like}, 'x', 1)" for like in LIKES]
    sql = "INSERT INTO {}user_likes_pins (user_id, pin_id, sequence) VALUES "
    for rows in one, several:
        code, text = error(connection, sql.format("") + ", ".join(rows))
        assert code == 1366
        assert "`db000" not in text
        assert flavour != "mariadb" or "`demo`.`user_likes_pins`.`pin_id`" in text
        with connection.cursor() as cursor:
            cursor.execute("SHOW ERRORS")
            assert [row[2] for row in cursor.fetchall()] == [text]
    _, text = error(connection, sql.format("db00040.") + one[0])
    assert flavour != "mariadb" or "`db00040`.`user_likes_pins`.`pin_id`" in text
    run(connection, "SET sql_mode = ''")
    for rows in one, several:
        run(connection, sql.format("") + ", ".join(rows))
        with connection.cursor() as cursor:
            cursor.execute("SHOW WARNINGS")
            texts = [row[2] for row in cursor.fetchall()]
        assert len(texts) == len(rows)
        assert not any("`db000" in text for text in texts)
        assert flavour != "mariadb" or all("`demo`.`user_likes_pins`" in text for text in texts)
        run(connection, f"DELETE FROM user_likes_pins WHERE user_id IN ({', '.join(map(str, LIKES))})")


def test_messages_of_reads(connection: Connection) -> None:
    """The virtual `id` in an expression that overflows, on one shard, on several, and over copies."""
    low = ", ".join(str(PINTEREST.compose(shard=shard, type=3, local=1)) for shard in (2, 40))
    for where in ("id = (SELECT 5) + ", f"id IN ({low}) AND id > "):
        code, text = error(connection, f"SELECT id - 18446744073709551615 FROM users WHERE {where}0 OR 1 = 1")
        assert code == 1690
        assert "local_id" not in text
        assert "`db000" not in text
        assert "shardgate_scratch" not in text


def test_ignored_rows_that_are_alone_on_their_shards(connection: Connection, flavour: str) -> None:
    """MariaDB refuses what a CHECK refuses in an INSERT IGNORE of one row, and leaves it out of several."""
    rows = ", ".join(f"({like}, '[')" for like in LIKES)
    sql = f"INSERT IGNORE INTO users (id, data) VALUES {rows}"
    if flavour == "mariadb":
        assert run(connection, sql) == 0
        assert run(connection, "SHOW WARNINGS") >= 3
    else:
        assert error(connection, sql)[0] in (1105, 3140)
