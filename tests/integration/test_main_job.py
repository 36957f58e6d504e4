"""What a user of the demo does, from log-in to relations, with PyMySQL."""

from __future__ import annotations

import json
import random
from typing import Any

import pymysql
import pytest
from pymysql.cursors import Cursor

from tests.integration.fixtures import Connect, Things, local_of, make_id, shard_of, type_of
from tests.support.demo import Demo


def rows_of(cursor: Cursor, sql: str, *arguments: Any) -> list[tuple[Any, ...]]:
    cursor.execute(sql, arguments or None)
    return list(cursor.fetchall())


def some_ids(cursor: Cursor, table: str, count: int) -> list[int]:
    """IDs of sample rows, from many shards."""
    ids = [row[0] for row in rows_of(cursor, f"SELECT id FROM {table}")]
    return random.Random(7).sample(ids, count)


def test_a_user_then_the_boards_then_the_pins(connect: Connect) -> None:
    cursor = connect().cursor()
    boards = rows_of(cursor, "SELECT user_id, board_id FROM user_has_boards ORDER BY user_id, board_id")
    user, board = boards[0]
    (row,) = rows_of(cursor, "SELECT * FROM users WHERE id = %s", user)
    assert [column[0] for column in cursor.description] == ["id", "data", "ts"]
    assert row[0] == user
    assert json.loads(row[1])["name"]
    (found,) = rows_of(cursor, "SELECT id, data FROM boards WHERE id = %s", board)
    assert found[0] == board
    assert json.loads(found[1])["user_id"] == user

    page = rows_of(
        cursor,
        "SELECT pin_id FROM board_has_pins WHERE board_id = %s ORDER BY sequence DESC LIMIT 10 OFFSET 2",
        board,
    )
    everything = rows_of(
        cursor, "SELECT pin_id FROM board_has_pins WHERE board_id = %s ORDER BY sequence DESC", board
    )
    assert page == everything[2:12]
    pins = [pin for (pin,) in everything]
    got = rows_of(cursor, f"SELECT id FROM pins WHERE id IN ({','.join(map(str, pins))}) ORDER BY id")
    assert [pin for (pin,) in got] == sorted(pins)


def test_new_objects_live_where_they_belong(connect: Connect, things: Things, demo: Demo) -> None:
    cursor = things.cursor
    user = things.insert("users", {"name": "Ada", "username": "ada"})
    assert (type_of(user), shard_of(user) < 64) == (3, True)
    assert rows_of(cursor, "SELECT LAST_INSERT_ID()") == [(user,)]
    assert rows_of(cursor, "SELECT @@last_insert_id, @@identity") == [(user, user)]

    board = things.insert("boards", {"name": "Engines", "user_id": user})
    pin = things.insert("pins", {"details": "Analytical", "board_id": board, "user_id": user})
    comment = things.insert("comments", {"text": "!", "pin_id": pin})
    assert {shard_of(id) for id in (user, board, pin, comment)} == {shard_of(user)}
    assert [type_of(id) for id in (board, pin, comment)] == [2, 1, 4]
    assert rows_of(cursor, "SELECT LAST_INSERT_ID()") == [(comment,)]

    physical = f"db{shard_of(pin):05d}.pins"
    (stored,) = rows_of(cursor, f"SELECT data FROM {physical} WHERE local_id = %s", local_of(pin))
    assert json.loads(stored[0])["details"] == "Analytical"

    things.map("user_has_boards", user, board)
    things.map("board_has_pins", board, pin)
    assert rows_of(cursor, "SELECT board_id FROM user_has_boards WHERE user_id = %s", user) == [(board,)]
    assert rows_of(cursor, "SELECT pin_id FROM board_has_pins WHERE board_id = %s", board) == [(pin,)]
    with demo.direct(0) as first, demo.direct(1) as second:
        places = []
        for index, server in enumerate((first, second)):
            with server.cursor() as direct:
                direct.execute("SHOW DATABASES LIKE %s", (f"db{shard_of(board):05d}",))
                places += [index] if direct.fetchall() else []
        with (first, second)[places[0]].cursor() as direct:
            direct.execute(
                f"SELECT pin_id FROM db{shard_of(board):05d}.board_has_pins WHERE board_id = {board}"
            )
            assert direct.fetchall() == ((pin,),)


def test_users_without_a_home_are_spread_over_the_shards(things: Things) -> None:
    shards = {shard_of(things.insert("users", {"name": f"n{n}"})) for n in range(12)}
    assert len(shards) > 3


def test_fifty_ids_at_once(connect: Connect) -> None:
    cursor = connect().cursor()
    ids = some_ids(cursor, "pins", 50)
    assert len({shard_of(id) for id in ids}) > 20
    listed = ",".join(map(str, ids))
    got = rows_of(cursor, f"SELECT id, data, ts FROM pins WHERE id IN ({listed}, {ids[0]})")
    assert {row[0] for row in got} == set(ids)
    assert len(got) == 50
    one_by_one = [rows_of(cursor, "SELECT id, data, ts FROM pins WHERE id = %s", id)[0] for id in ids]
    assert sorted(got) == sorted(one_by_one)

    ordered = rows_of(cursor, f"SELECT id FROM pins WHERE id IN ({listed}) ORDER BY id DESC LIMIT 7 OFFSET 3")
    assert [id for (id,) in ordered] == sorted(ids, reverse=True)[3:10]
    by_time = rows_of(cursor, f"SELECT ts, id FROM pins WHERE id IN ({listed}) ORDER BY ts, id")
    assert by_time == sorted(by_time)
    by_text = rows_of(
        cursor,
        "SELECT JSON_UNQUOTE(JSON_EXTRACT(data, '$.details')) d FROM pins"
        f" WHERE id IN ({listed}) ORDER BY d, id",
    )
    assert sorted(by_text, key=lambda row: str(row[0]).lower()) == by_text


def test_counts_over_lists_and_scatters(connect: Connect) -> None:
    cursor = connect().cursor()
    ids = some_ids(cursor, "users", 20)
    listed = ",".join(map(str, ids))
    assert rows_of(cursor, f"SELECT COUNT(*) FROM users WHERE id IN ({listed})") == [(20,)]
    assert rows_of(cursor, f"SELECT MIN(id), MAX(id) FROM users WHERE id IN ({listed})") == [
        (min(ids), max(ids))
    ]
    everybody = rows_of(cursor, "SELECT id FROM users")
    assert rows_of(cursor, "SELECT COUNT(*) FROM users") == [(len(everybody),)]
    pins = rows_of(
        cursor, "SELECT board_id, COUNT(*) FROM board_has_pins WHERE board_id = 1 GROUP BY board_id"
    )
    assert pins == []


def test_updates_and_deletes_by_id_and_by_list(things: Things) -> None:
    cursor = things.cursor
    ids = [things.insert("users", {"name": f"u{n}", "n": n}) for n in range(8)]
    assert cursor.execute("UPDATE users SET data = JSON_SET(data, '$.n', 100) WHERE id = %s", (ids[0],)) == 1
    (row,) = rows_of(cursor, "SELECT JSON_EXTRACT(data, '$.n') FROM users WHERE id = %s", ids[0])
    assert int(row[0]) == 100
    listed = ",".join(map(str, ids))
    changed = cursor.execute(f"UPDATE users SET data = JSON_SET(data, '$.k', 'v') WHERE id IN ({listed})")
    assert changed == 8
    values = rows_of(
        cursor, f"SELECT JSON_UNQUOTE(JSON_EXTRACT(data, '$.k')) FROM users WHERE id IN ({listed})"
    )
    assert values == [("v",)] * 8
    assert cursor.execute(f"DELETE FROM users WHERE id IN ({','.join(map(str, ids[:5]))})") == 5
    assert rows_of(cursor, f"SELECT COUNT(*) FROM users WHERE id IN ({listed})") == [(3,)]
    assert cursor.execute("DELETE FROM users WHERE id = %s", (ids[5],)) == 1
    assert cursor.execute("DELETE FROM users WHERE id = %s", (ids[5],)) == 0


def test_found_rows_flag_counts_matches(connect: Connect, things: Things) -> None:
    id = things.insert("users", {"name": "same"})
    sql = "UPDATE users SET data = data WHERE id = %s"
    matching = connect(client_flag=pymysql.constants.CLIENT.FOUND_ROWS)
    assert matching.cursor().execute(sql, (id,)) == 1
    assert things.cursor.execute(sql, (id,)) == 0


def test_explain_route_and_show_shards(connect: Connect, demo: Demo) -> None:
    cursor = connect().cursor()
    pin = some_ids(cursor, "pins", 1)[0]
    facts = rows_of(cursor, f"EXPLAIN ROUTE SELECT * FROM pins WHERE id = {pin}")
    told = "\n".join(" ".join(map(str, row)) for row in facts)
    for part in (f"db{shard_of(pin):05d}", str(shard_of(pin)), str(local_of(pin))):
        assert part in told, told
    assert any(host.address in told for host in demo.masters)
    before = rows_of(cursor, "SELECT COUNT(*) FROM users")
    rows_of(cursor, "EXPLAIN ROUTE INSERT INTO users (data) VALUES ('{}')")
    rows_of(cursor, f"EXPLAIN ROUTE DELETE FROM pins WHERE id = {pin}")
    assert rows_of(cursor, "SELECT COUNT(*) FROM users") == before
    assert rows_of(cursor, "SELECT COUNT(*) FROM pins WHERE id = %s", pin) == [(1,)]
    shards = rows_of(cursor, "SHOW SHARDS")
    assert {host.address for host in demo.masters} <= {str(value) for row in shards for value in row}


def test_a_session_in_one_shard(connect: Connect, demo: Demo) -> None:
    cursor = connect().cursor()
    pin = next(id for id in some_ids(cursor, "pins", 1800) if shard_of(id) == 3)
    cursor.execute("USE db00003")
    assert rows_of(cursor, "SELECT DATABASE()") == [("db00003",)]
    assert rows_of(cursor, "SELECT local_id FROM pins WHERE local_id = %s", local_of(pin)) == [
        (local_of(pin),)
    ]
    with demo.direct(0) as server, server.cursor() as direct:
        direct.execute("SELECT COUNT(*) FROM db00003.pins")
        count = direct.fetchall()
    assert rows_of(cursor, "SELECT COUNT(*) FROM pins") == list(count)
    tables = {row[0] for row in rows_of(cursor, "SHOW TABLES")}
    assert {"pins", "boards", "users", "board_has_pins"} <= tables
    cursor.execute("USE demo")
    assert rows_of(cursor, "SELECT id FROM pins WHERE id = %s", pin) == [(pin,)]


def test_single_tables(connect: Connect) -> None:
    cursor = connect().cursor()
    cursor.execute("INSERT INTO usernames (username, user_id) VALUES ('test-single', 5)")
    with pytest.raises(pymysql.IntegrityError) as error:
        cursor.execute("INSERT INTO usernames (username, user_id) VALUES ('test-single', 6)")
    assert error.value.args[0] == 1062
    assert rows_of(cursor, "SELECT user_id FROM usernames WHERE username = 'test-single'") == [(5,)]
    assert cursor.execute("DELETE FROM usernames WHERE username = 'test-single'") == 1


def test_legacy_passes_through(connect: Connect) -> None:
    cursor = connect(database="legacy").cursor()
    joined = rows_of(
        cursor,
        "SELECT c.name, COUNT(*), SUM(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id"
        " GROUP BY c.id HAVING COUNT(*) > 1 ORDER BY 3 DESC LIMIT 3",
    )
    assert len(joined) == 3
    assert len(rows_of(cursor, "SHOW TABLES")) == 2
    cursor.execute("DROP DATABASE IF EXISTS other_app")
    cursor.execute("CREATE DATABASE other_app")
    try:
        cursor.execute("USE other_app")
        cursor.execute("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(10))")
        assert cursor.execute("INSERT INTO t (v) VALUES ('a'), ('b')") == 2
        assert cursor.lastrowid == 1
        assert rows_of(cursor, "SELECT t.v FROM other_app.t ORDER BY id") == [("a",), ("b",)]
        assert rows_of(cursor, "SELECT COUNT(*) FROM legacy.customers c, t")[0][0] > 0
        assert ("other_app",) in rows_of(cursor, "SHOW DATABASES")
    finally:
        cursor.execute("DROP DATABASE other_app")
    assert rows_of(cursor, "SELECT DATABASE()") in ([(None,)], [("other_app",)])


def test_ids_made_by_hand(connect: Connect, things: Things) -> None:
    cursor = things.cursor
    id = make_id(17, 3, 5_000_000_000)  # a local ID above 2^32
    cursor.execute("INSERT INTO users (id, data) VALUES (%s, '{}')", (id,))
    things.forget_later("users", "id", id)
    assert rows_of(cursor, "SELECT id FROM users WHERE id = %s", id) == [(id,)]
    with pytest.raises(pymysql.MySQLError) as error:
        cursor.execute("INSERT INTO users (id, data) VALUES (%s, '{}')", (make_id(17, 2, 9),))
    assert error.value.args[0] == 1264
