"""INSERT … RETURNING into sharded tables: MariaDB has it, MySQL says what it says of it."""

from __future__ import annotations

import pymysql
import pytest

from config.layout import INSTAGRAM, PINTEREST
from tests.support.demo import Demo


def test_the_columns_of_the_new_row(demo: Demo, flavour: str) -> None:
    with demo.connect() as connection, connection.cursor() as cursor:
        sql = "INSERT INTO users (data) VALUES ('{}') RETURNING users.id, data, id AS again"
        if flavour != "mariadb":
            with pytest.raises(pymysql.ProgrammingError) as caught:
                cursor.execute(sql)
            assert caught.value.args[0] == 1064
            return
        cursor.execute(sql)
        ((made, data, again),) = cursor.fetchall()
        assert [column[0] for column in cursor.description] == ["id", "data", "again"]
        assert (data, again, PINTEREST.decompose(made)["type"]) == ("{}", made, 3)
        cursor.execute("DELETE FROM users WHERE id = %s", (made,))
        assert cursor.rowcount == 1
        cursor.execute("INSERT INTO photos (user_id, caption) VALUES (7, 'test_returning') RETURNING *")
        ((photo, user, *_),) = cursor.fetchall()
        assert (INSTAGRAM.shard_of(photo), user) == (7, 7)
        cursor.execute("DELETE FROM photos WHERE id = %s", (photo,))
        assert cursor.rowcount == 1


def test_the_rows_of_several_shards(demo: Demo, flavour: str) -> None:
    """An INSERT's in its own order, a DELETE's as they come; also when prepared, and of no row."""
    if flavour != "mariadb":
        pytest.skip("MySQL has no RETURNING")
    ids = [PINTEREST.compose(shard=shard, type=3, local=900_000 + shard) for shard in (40, 2, 17)]
    rows = ", ".join(f"({id}, '\"{id}\"')" for id in ids)
    with demo.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO users (id, data) VALUES {rows} RETURNING data, id")
        assert cursor.fetchall() == tuple((f'"{id}"', id) for id in ids)
        listed = ", ".join(map(str, ids))
        connection.begin()
        assert cursor.execute(f"DELETE FROM users WHERE id IN ({listed}) RETURNING id") == 3
        assert {row[0] for row in cursor.fetchall()} == set(ids)
        connection.rollback()
        assert (
            cursor.execute(f"DELETE FROM users WHERE id IN ({listed}) AND ts IS NULL RETURNING id, ts") == 0
        )
        assert [column[0] for column in cursor.description] == ["id", "ts"]
        assert cursor.execute(f"DELETE FROM users WHERE id IN ({listed})") == 3
        cursor.execute("SELECT 1")
