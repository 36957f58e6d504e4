"""INSERT into a timed table: the proxy makes the IDs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest

from config.layout import INSTAGRAM
from tests.support.demo import Demo

SHARDS = 64


@pytest.fixture
def connection(demo: Demo) -> Iterator[pymysql.connections.Connection]:
    with demo.connect(autocommit=True) as connection:
        yield connection
        with connection.cursor() as cursor:
            cursor.execute("DELETE /*+ scatter */ FROM photos WHERE caption LIKE 'test_timed%'")


def rows(connection: pymysql.connections.Connection, sql: str, *values: object) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def test_an_id_is_made(connection: pymysql.connections.Connection) -> None:
    before = time.time() * 1000 - 2000
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO photos (user_id, caption) VALUES (70, 'test_timed')")
        made = cursor.lastrowid
        assert cursor.rowcount == 1
    fields = INSTAGRAM.decompose(made)
    assert fields["shard"] == 70 % SHARDS
    assert before < (INSTAGRAM.time_ms(made) or 0) < time.time() * 1000 + 2000
    assert rows(connection, "SELECT LAST_INSERT_ID()") == [(made,)]
    assert rows(connection, "SELECT id, user_id, caption FROM photos WHERE id = %s", made) == [
        (made, 70, "test_timed")
    ]
    assert rows(connection, "SELECT id FROM photos WHERE user_id = 70 AND caption = 'test_timed'") == [
        (made,)
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO photos VALUES (NULL, 70, 'test_timed', NULL)",
        "INSERT INTO photos VALUES (0, 70, 'test_timed', NULL)",
        "INSERT INTO demo.photos (caption, id, user_id) VALUES ('test_timed', DEFAULT, '70')",
        "INSERT INTO photos SET caption = 'test_timed', user_id = 70",
        "INSERT IGNORE INTO photos SET id = NULL, caption = 'test_timed', user_id = 70",
        "REPLACE INTO photos (photos.user_id, photos.caption) VALUES (70, 'test_timed')",
        "INSERT /*+ shard(6) */ INTO photos (user_id, caption) VALUES (70, 'test_timed')",
        "INSERT INTO photos (user_id,caption) VALUES (70,'test_timed') ON DUPLICATE KEY UPDATE caption = 1",
    ],
)
def test_every_form(connection: pymysql.connections.Connection, sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        made = cursor.lastrowid
    assert INSTAGRAM.shard_of(made) == 70 % SHARDS
    assert rows(connection, "SELECT user_id, caption FROM photos WHERE id = %s", made) == [(70, "test_timed")]


def test_rows_of_several_shards(connection: pymysql.connections.Connection) -> None:
    values = ", ".join(f"({user}, 'test_timed {user}')" for user in range(100))
    with connection.cursor() as cursor:
        assert cursor.execute("INSERT INTO photos (user_id, caption) VALUES " + values) == 100
        first = cursor.lastrowid
    found = rows(connection, "SELECT id, user_id FROM photos WHERE caption LIKE 'test_timed %%' ORDER BY id")
    assert sorted(user for _, user in found) == list(range(100))  # type: ignore[type-var]
    assert all(INSTAGRAM.shard_of(int(str(id))) == int(str(user)) % SHARDS for id, user in found)
    assert (first, 0) in found


def test_ids_of_the_client(connection: pymysql.connections.Connection) -> None:
    own = INSTAGRAM.compose(time=5, shard=6, sequence=7)
    rows(connection, "INSERT INTO photos (id, user_id, caption) VALUES (%s, 70, 'test_timed')", own)
    assert rows(connection, "SELECT caption FROM photos WHERE user_id = 70 AND id = %s", own)
    with pytest.raises(pymysql.MySQLError, match="belongs to shards 6 and 7"):
        rows(connection, "INSERT INTO photos (id, user_id, caption) VALUES (%s, 71, 'test_timed')", own)
    with pytest.raises(pymysql.MySQLError, match="neither an 'id' nor a 'user_id'"):
        rows(connection, "INSERT INTO photos (caption) VALUES ('test_timed')")
    with pytest.raises(pymysql.IntegrityError):
        rows(connection, "INSERT INTO photos (id, user_id, caption) VALUES (%s, 70, 'test_timed')", own)


def test_in_a_transaction(connection: pymysql.connections.Connection, demo: Demo) -> None:
    connection.begin()
    rows(connection, "INSERT INTO photos (user_id, caption) VALUES (70, 'test_timed 1')")
    with demo.connect(autocommit=True) as other:  # whose INSERT does not wait for the first one's COMMIT
        rows(other, "INSERT INTO photos (user_id, caption) VALUES (70, 'test_timed 2')")
    assert len(rows(connection, "SELECT 1 FROM photos WHERE user_id = 70 AND caption = 'test_timed 1'")) == 1
    connection.rollback()
    assert rows(
        connection, "SELECT caption FROM photos WHERE user_id = 70 AND caption LIKE 'test_timed%%'"
    ) == [("test_timed 2",)]


def test_unique_and_ascending_under_concurrency(
    connection: pymysql.connections.Connection, demo: Demo
) -> None:
    def insert(number: int) -> list[int]:
        made = []
        with demo.connect(autocommit=True) as own, own.cursor() as cursor:
            for _ in range(50):
                cursor.execute(f"INSERT INTO photos (user_id, caption) VALUES (70, 'test_timed {number}')")
                made.append(cursor.lastrowid)
        return made

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(insert, range(4)))
    assert all(one == sorted(one) for one in made)
    assert len({id for one in made for id in one}) == 200


def test_the_clock_goes_back_and_a_millisecond_is_full(
    connection: pymysql.connections.Connection, demo: Demo
) -> None:
    """IDs go on from the last one, and more than 1024 of a millisecond take some of the next."""
    user, shard = 41, 41 % SHARDS
    rows(connection, f"INSERT INTO photos (user_id, caption) VALUES ({user}, 'test_timed')")
    for server in range(2):
        with demo.direct(server) as direct, direct.cursor() as cursor:
            if cursor.execute(f"SHOW DATABASES LIKE 'shard{shard:05d}'"):
                ahead = 3_600_000 * 1024  # as if the clock had been an hour ahead
                cursor.execute(
                    f"UPDATE shard{shard:05d}.shardgate_sequences SET value = value + {ahead}"
                    " WHERE name = 'photos'"
                )
    values = ", ".join(f"({user}, 'test_timed {n}')" for n in range(2500))
    rows(connection, f"INSERT INTO photos (user_id, caption) VALUES {values}")
    rows(connection, f"INSERT INTO photos (user_id, caption) VALUES ({user}, 'test_timed 2500')")
    found = rows(
        connection,
        f"SELECT id, caption FROM photos WHERE user_id = {user} AND caption LIKE 'test_timed %%' ORDER BY id",
    )
    assert [caption for _, caption in found] == [f"test_timed {n}" for n in range(2501)]
    times = {INSTAGRAM.time_ms(int(str(id))) for id, _ in found}
    assert len({id for id, _ in found}) == 2501
    assert 3 <= len(times) <= 4
    assert min(one for one in times if one) > time.time() * 1000 + 3_000_000
    assert all(INSTAGRAM.decompose(int(str(id)))["shard"] == shard for id, _ in found)
