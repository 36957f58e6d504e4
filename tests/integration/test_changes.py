"""UPDATE and DELETE of several tables over shards: what is one statement for MySQL is one here."""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from tests.support.demo import Demo

Connection = pymysql.connections.Connection
MARK = "test_changes"


@pytest.fixture
def connection(demo: Demo) -> Iterator[Connection]:
    with demo.connect() as connection:
        yield connection
        connection.rollback()
        run(connection, f"DELETE /*+ scatter */ FROM users WHERE data LIKE '%{MARK}%'")
        run(connection, f"DELETE /*+ scatter */ FROM pins WHERE data LIKE '%{MARK}%'")
        run(connection, "DELETE /*+ scatter */ FROM user_likes_pins WHERE sequence BETWEEN 40 AND 90")


def run(connection: Connection, sql: str) -> tuple[int, list[tuple[object, ...]]]:
    with connection.cursor() as cursor:
        count = cursor.execute(sql)
        return count, list(cursor.fetchall())


def made(connection: Connection, table: str, count: int) -> list[int]:
    ids = []
    for number in range(count):
        with connection.cursor() as cursor:
            sql = f'INSERT INTO {table} (data) VALUES (\'{{"m": "{MARK}", "n": {number}}}\')'
            cursor.execute(sql)
            ids.append(cursor.lastrowid)
    return ids


@pytest.fixture
def user(connection: Connection) -> int:
    """A user who likes six pins, two of them twice."""
    [user] = made(connection, "users", 1)
    pins = made(connection, "pins", 6)
    rows = ", ".join(f"({user}, {pin}, {40 + number})" for number, pin in enumerate(pins))
    twice = ", ".join(f"({user}, {pin}, {40 + number})" for number, pin in enumerate(pins[:2]))
    run(connection, f"INSERT INTO user_likes_pins VALUES {rows}, {twice}")
    return user


def values(connection: Connection, user: int) -> list[object]:
    sql = f"SELECT sequence + 0 FROM user_likes_pins WHERE user_id = {user} ORDER BY 1"
    return [row[0] for row in run(connection, sql)[1]]


def test_by_a_join(connection: Connection, user: int) -> None:
    join = f"user_likes_pins l JOIN pins p ON p.id = l.pin_id SET {{}} WHERE l.user_id = {user}"
    sql = "UPDATE " + join.format(
        "l.sequence = JSON_EXTRACT(p.data, '$.n') + 80, p.data = JSON_SET(p.data, '$.x', 1)"
    )
    with pytest.raises(pymysql.MySQLError, match="which it changes, too"):
        run(connection, sql)
    assert run(connection, "UPDATE " + join.format("l.sequence = JSON_EXTRACT(p.data, '$.n') + 80"))[0] == 8
    assert values(connection, user) == [80, 80, 81, 81, 82, 83, 84, 85]
    both = join.format("l.sequence = 50, p.data = JSON_SET(p.data, '$.x', 1)") + " AND l.sequence < 83"
    assert run(connection, "UPDATE " + both)[0] == 5 + 3
    assert values(connection, user) == [50, 50, 50, 50, 50, 83, 84, 85]


def test_equal_rows_are_counted_one_by_one(connection: Connection, user: int) -> None:
    limited = (
        f"UPDATE user_likes_pins SET sequence = 60 WHERE user_id IN ({user}, 5) ORDER BY sequence LIMIT 3"
    )
    assert run(connection, "/* several shards */ " + limited.replace("5)", "211106232532993)"))[0] == 3
    assert values(connection, user) == [41, 42, 43, 44, 45, 60, 60, 60]


def test_all_or_nothing(connection: Connection, user: int) -> None:
    """The second table's change fails: the first one's is undone."""
    sql = (
        "UPDATE user_likes_pins l JOIN pins p ON p.id = l.pin_id SET l.sequence = 70, p.data = {}"
        f" WHERE l.user_id = {user}"
    )
    for value, code in (("NULL", 1048), ("nothing", 1054)):
        with pytest.raises(pymysql.MySQLError) as caught:
            run(connection, sql.format(value))
        assert caught.value.args[0] == code
        assert values(connection, user) == [40, 40, 41, 41, 42, 43, 44, 45]
    connection.begin()
    run(connection, f"UPDATE user_likes_pins SET sequence = 46 WHERE user_id = {user} AND sequence = 45")
    with pytest.raises(pymysql.MySQLError):
        run(connection, sql.format("NULL"))
    connection.commit()
    assert values(connection, user) == [40, 40, 41, 41, 42, 43, 44, 46]


def test_delete_from_two_tables(connection: Connection, user: int) -> None:
    sql = (
        f"FROM user_likes_pins l JOIN pins p ON p.id = l.pin_id WHERE l.user_id = {user} AND l.sequence < 42"
    )
    assert run(connection, "DELETE l, p " + sql)[0] == 4 + 2
    assert values(connection, user) == [42, 43, 44, 45]
    assert run(connection, "SELECT ROW_COUNT()")[1] != [(0,)]
    with pytest.raises(pymysql.MySQLError) as caught:
        run(connection, "DELETE x " + sql)
    assert caught.value.args[0] == 1109
