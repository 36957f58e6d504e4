"""Writes that read first: INSERT … SELECT over shards, and changes whose rows a SELECT finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pymysql
import pytest

from config.layout import PINTEREST
from tests.support.demo import Demo

Connection = pymysql.connections.Connection
MARK = "test_insert_select"


@pytest.fixture
def connection(demo: Demo) -> Iterator[Connection]:
    with demo.connect() as connection:
        run(
            connection,
            f"CREATE TABLE IF NOT EXISTS legacy.{MARK} (id BIGINT UNSIGNED, t TEXT, b BLOB, d DATETIME(3))",
        )
        yield connection
        connection.rollback()
        run(connection, f"DROP TABLE legacy.{MARK}")
        run(connection, f"DELETE /*+ scatter */ FROM pins WHERE data LIKE '%{MARK}%'")
        run(connection, "DELETE FROM user_likes_pins WHERE user_id = 211106232532993 AND sequence < 100")


def run(connection: Connection, sql: str) -> tuple[int, list[tuple[Any, ...]]]:
    with connection.cursor() as cursor:
        count = cursor.execute(sql)
        return count, list(cursor.fetchall())


def test_from_shards_to_a_single_table(connection: Connection) -> None:
    pins = run(connection, "SELECT COUNT(*) FROM pins")[1][0][0]
    assert run(connection, f"INSERT INTO legacy.{MARK} (id, t) SELECT id, data FROM pins")[0] == pins
    assert run(connection, f"SELECT COUNT(DISTINCT id), MIN(LENGTH(t)) > 2 FROM legacy.{MARK}")[1] == [
        (pins, 1)
    ]


def test_values_survive(connection: Connection) -> None:
    text = "a'b\"c\\d\0e\n😀%s"
    data = bytes(range(256))
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO pins (data) VALUES (JSON_OBJECT('m', %s, 't', %s))", (MARK, text))
        first = cursor.lastrowid
        sql = (
            f"INSERT INTO legacy.{MARK} SELECT id, JSON_UNQUOTE(JSON_EXTRACT(data, '$.t')), %s,"
            " '2024-02-29 1:2:3.456' FROM pins WHERE id IN (%s, 5)"
        )
        assert cursor.execute(sql, (data, first)) == 1
    assert run(connection, f"SELECT id, t, d FROM legacy.{MARK}")[1][0][:2] == (first, text)
    assert run(connection, f"SELECT b FROM legacy.{MARK}")[1] == [(data,)]


def test_into_shards(connection: Connection) -> None:
    run(
        connection,
        f"INSERT INTO legacy.{MARK} VALUES (1, '{MARK} a', NULL, NULL), (2, '{MARK} b', NULL, NULL)",
    )
    with connection.cursor() as cursor:
        assert (
            cursor.execute(
                f"INSERT INTO pins (data) (SELECT JSON_OBJECT('m', t) FROM legacy.{MARK} WHERE id < 9)"
            )
            == 2
        )
        assert PINTEREST.decompose(cursor.lastrowid)["type"] == 1
    assert run(connection, f"SELECT COUNT(*) FROM pins WHERE data LIKE '%{MARK}%'")[1] == [(2,)]
    assert (
        run(connection, f"INSERT INTO pins (data) SELECT data FROM pins WHERE data LIKE '%{MARK}%'")[0] == 2
    )
    assert run(connection, f"SELECT COUNT(*) FROM pins WHERE data LIKE '%{MARK}%'")[1] == [(4,)]
    copied = "SELECT 211106232532993, id, 7 FROM pins ORDER BY id LIMIT 5"
    assert run(connection, f"INSERT INTO user_likes_pins {copied}")[0] == 5
    assert run(
        connection, "SELECT COUNT(*) FROM user_likes_pins WHERE user_id = 211106232532993 AND sequence = 7"
    )[1] == [(5,)]


def test_nothing_to_insert_and_errors(connection: Connection) -> None:
    assert run(connection, f"INSERT INTO legacy.{MARK} (id) SELECT id FROM pins WHERE id = 5")[0] == 0
    assert run(connection, "SELECT ROW_COUNT()")[1] == [(0,)]
    with pytest.raises(pymysql.MySQLError) as caught:
        run(connection, f"INSERT INTO legacy.{MARK} (id) SELECT nothing FROM pins")
    assert caught.value.args[0] == 1054
    with pytest.raises(pymysql.MySQLError) as caught:
        run(connection, f"INSERT INTO legacy.{MARK} (id, t) SELECT id FROM pins")
    assert caught.value.args[0] == 1136
    assert run(connection, "SELECT 1")[1] == [(1,)]


def test_in_a_transaction(connection: Connection) -> None:
    connection.begin()
    run(connection, f"INSERT INTO pins (data) VALUES (JSON_OBJECT('m', '{MARK}'))")
    assert (
        run(connection, f"INSERT INTO pins (data) SELECT data FROM pins WHERE data LIKE '%{MARK}%'")[0] == 1
    )
    connection.rollback()
    assert run(connection, f"SELECT COUNT(*) FROM pins WHERE data LIKE '%{MARK}%'")[1] == [(0,)]


def test_changes_whose_rows_are_found_first(connection: Connection) -> None:
    for number in range(20):
        run(connection, f"INSERT INTO pins (data) VALUES (JSON_OBJECT('m', '{MARK}', 'n', {number}))")
    mine = f"JSON_VALUE(data, '$.m') = '{MARK}'"
    numbers = "CAST(JSON_VALUE(data, '$.n') AS SIGNED)"
    first = f"WHERE {mine} ORDER BY {numbers} LIMIT 3"
    sql = f"UPDATE /*+ scatter */ pins SET data = JSON_SET(data, '$.n', 100) {first}"
    assert run(connection, sql)[0] == 3
    found = run(connection, f"SELECT {numbers} FROM pins WHERE {mine} ORDER BY 1")[1]
    assert [row[0] for row in found] == [*range(3, 20), 100, 100, 100]
    run(connection, f"INSERT INTO legacy.{MARK} (id) SELECT id FROM pins WHERE {mine} AND {numbers} < 9")
    assert run(connection, f"DELETE FROM pins WHERE id IN (SELECT id FROM legacy.{MARK})")[0] == 6
    assert run(connection, f"DELETE FROM pins WHERE id IN (SELECT id FROM legacy.{MARK})")[0] == 0
    assert run(connection, f"SELECT COUNT(*) FROM pins WHERE {mine}")[1] == [(14,)]
    with pytest.raises(pymysql.MySQLError, match="a write does not scatter"):
        run(connection, f"DELETE FROM pins WHERE {mine} LIMIT 1")


def test_a_bad_value_in_the_select(connection: Connection) -> None:
    """In strict mode it is an error, as in any statement that writes; with IGNORE it is a warning."""
    statement = f"INTO legacy.{MARK} (t) SELECT 'x' FROM pins WHERE 'abc' + 0 = 0 AND id > 0"
    with pytest.raises(pymysql.MySQLError) as raised:
        run(connection, f"INSERT {statement}")
    assert raised.value.args[0] == 1292
    assert run(connection, f"SELECT COUNT(*) FROM legacy.{MARK}")[1] == [(0,)]
    assert run(connection, f"INSERT IGNORE {statement}")[0] > 0
    run(connection, "SET sql_mode = ''")
    assert run(connection, f"INSERT {statement}")[0] > 0


def test_warnings_when_nothing_is_found(connection: Connection) -> None:
    """What the SELECT has warned of is the statement's: here that no row can have such an ID."""
    run(connection, "INSERT INTO pins (data) SELECT data FROM pins WHERE id = 5")
    told: Any = vars(connection)["_result"]
    assert told.warning_count == 1
    assert b"Warnings: 1" in told.message
    assert run(connection, "SHOW WARNINGS")[0] == 1
    run(connection, "INSERT INTO pins (data) SELECT data FROM pins WHERE 1 = 0")
    assert vars(connection)["_result"].warning_count == 0


def test_subqueries_on_shards_as_values(connection: Connection) -> None:
    """Whatever the table is that is written: single, reference, or one of an unsharded database."""
    pins = run(connection, "SELECT COUNT(*) FROM pins")[1][0][0]
    asked = "(SELECT COUNT(*) FROM pins)"
    try:
        run(connection, f"INSERT INTO usernames VALUES ('{MARK}', {asked}), ('{MARK}2', 5)")
        run(connection, f"REPLACE INTO usernames SET user_id = {asked} + 1, username = '{MARK}3'")
        run(
            connection,
            f"INSERT INTO usernames VALUES ('{MARK}2', 1) ON DUPLICATE KEY UPDATE user_id = {asked}",
        )
        found = run(
            connection, f"SELECT user_id FROM usernames WHERE username LIKE '{MARK}%' ORDER BY username"
        )
        assert found[1] == [(pins,), (pins,), (pins + 1,)]
        run(connection, f"INSERT INTO countries VALUES ('ZZ', {asked})")
        assert run(connection, "SELECT name FROM countries WHERE code = 'ZZ'")[1] == [(str(pins),)]
        with pytest.raises(pymysql.MySQLError) as raised:
            run(connection, f"INSERT INTO usernames VALUES ('{MARK}4', (SELECT id FROM pins))")
        assert raised.value.args[0] == 1242
    finally:
        run(connection, f"DELETE FROM usernames WHERE username LIKE '{MARK}%'")
        run(connection, "DELETE FROM countries WHERE code = 'ZZ'")
    run(
        connection,
        f"INSERT INTO legacy.{MARK} (id, t)"
        f" VALUES ({asked}, (SELECT MAX(id) FROM legacy.customers)), (3, 'x')",
    )
    assert run(connection, f"SELECT id, t IS NOT NULL FROM legacy.{MARK}")[1] == [(pins, 1), (3, 1)]
    with pytest.raises(pymysql.MySQLError, match="depends on the row"):
        run(
            connection, f"INSERT INTO legacy.{MARK} SET id = (SELECT COUNT(*) FROM pins WHERE id > {MARK}.id)"
        )


NO_DATES = "MIN(IF(ts < '1990-01-01', DATE(ts), NULL))"


@pytest.mark.parametrize("more", ["", ", COUNT(DISTINCT ts)"])
def test_groups_without_dates(connection: Connection, more: str) -> None:
    """MySQL warns of NULLs in dates of its own temporary tables, which only the proxy asks for."""
    groups = run(connection, f"SELECT MOD(id, 5) AS k, {NO_DATES} AS d{more} FROM pins GROUP BY k")
    assert groups[0] == 5
    assert {row[1] for row in groups[1]} == {None}
    assert vars(connection)["_result"].warning_count == 0
    assert run(connection, "SHOW WARNINGS")[1] == []
    one = f"INSERT INTO legacy.{MARK} (id, d) SELECT MOD(id, 5) AS k, {NO_DATES} FROM pins GROUP BY k"
    assert run(connection, one)[0] == 5
    run(connection, "SELECT MOD(id, 5) AS k, MIN(CAST('2024-02-30' AS DATE)) FROM pins GROUP BY k")
    assert vars(connection)["_result"].warning_count > 0  # the client's own are told


def test_last_insert_id_of_one_shard(connection: Connection) -> None:
    id = run(connection, "SELECT MAX(id) FROM pins")[1][0][0]
    run(connection, f'INSERT INTO pins (data) VALUES (\'{{"m": "{MARK}"}}\')')
    made = run(connection, "SELECT LAST_INSERT_ID()")[1]
    for sql, left in (
        (f"SELECT LAST_INSERT_ID() FROM pins WHERE id = {id}", made),
        (f"SELECT LAST_INSERT_ID(5) FROM pins WHERE id = {id} AND 1 = 0", made),
        (f"SELECT LAST_INSERT_ID(id) FROM pins WHERE id = {id}", [(id,)]),
        (f"SELECT id FROM pins WHERE id = {id} AND LAST_INSERT_ID(7) FOR UPDATE", [(7,)]),
        (f"SELECT LAST_INSERT_ID(LAST_INSERT_ID() + 1) FROM pins WHERE id IN ({id})", [(8,)]),
    ):
        run(connection, sql)
        assert run(connection, "SELECT LAST_INSERT_ID()")[1] == left, sql
    with connection.cursor() as cursor:
        cursor.execute("SELECT LAST_INSERT_ID(id) FROM pins WHERE id = %s", (id,))
        assert run(connection, "SELECT @@last_insert_id")[1] == [(id,)]


def test_temporary_tables_beside_shards(connection: Connection) -> None:
    """Only the session's own connection can read them, not even their definition: never what they hide."""
    run(connection, f"CREATE TEMPORARY TABLE legacy.{MARK} (n VARCHAR(10), id BIGINT UNSIGNED)")
    for sql in (
        f"SELECT p.id FROM pins p JOIN legacy.{MARK} t ON t.id = p.id",
        f"SELECT COUNT(*) FROM pins WHERE id NOT IN (SELECT id FROM legacy.{MARK})",
        f"UPDATE pins p JOIN legacy.{MARK} t ON t.id = p.id SET p.data = t.n",
    ):
        with pytest.raises(pymysql.MySQLError, match="temporary table") as raised:
            run(connection, sql)
        assert raised.value.args[0] == 1235
    assert run(connection, f"SELECT COUNT(*) FROM legacy.{MARK}")[1] == [(0,)]
    run(connection, f"DROP TEMPORARY TABLE legacy.{MARK}")
    assert run(connection, f"SELECT p.id FROM pins p JOIN legacy.{MARK} t ON t.id = p.id")[1] == []
