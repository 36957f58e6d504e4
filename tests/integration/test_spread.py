"""INSERT … SELECT into object tables: the rows lie on the shards as those of single INSERTs do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pymysql
import pytest

from tests.support.demo import Demo

from .fixtures import Connect, shard_of
from .test_ddl import Connection, rows

MARK = "test_spread"
#: 2000 rows with numbers from 0 on, in order.
NUMBERS = (
    "(SELECT a.n * 100 + b.n * 10 + c.n AS n"
    " FROM legacy.test_spread a, legacy.test_spread b, legacy.test_spread c"
    " WHERE a.n < 20 AND b.n < 10 AND c.n < 10) x"
)


@pytest.fixture
def connection(connect: Connect) -> Iterator[Connection]:
    connection = connect()
    rows(connection, "CREATE TABLE legacy.test_spread (n INT PRIMARY KEY)")
    rows(connection, "INSERT INTO legacy.test_spread VALUES " + ", ".join(f"({n})" for n in range(20)))
    yield connection
    if connection.open:
        rows(connection, "ROLLBACK")
        rows(connection, "SET scatter_writes = 1")
        for table in ("users", "boards"):
            rows(connection, f"DELETE FROM {table} WHERE data LIKE '%{MARK}%'")
        rows(connection, "DROP TABLE legacy.test_spread")


def insert(connection: Connection, sql: str) -> tuple[int, int, str]:
    """Affected rows, the insert id, and the text behind them."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        result = cursor._result  # type: ignore[attr-defined]
        assert result is not None
        return cursor.rowcount, cursor.lastrowid, (result.message or b"")[1:].decode()


def placed(connection: Connection, table: str = "users") -> list[int]:
    return [
        int(str(row[0])) for row in rows(connection, f"SELECT id FROM {table} WHERE data LIKE '%{MARK}%'")
    ]


def test_many_rows_are_spread(connection: Connection, demo: Demo) -> None:
    data = f"JSON_OBJECT('m', '{MARK}', 'n', n)"
    found = insert(connection, f"INSERT INTO users (data) SELECT {data} FROM {NUMBERS} ORDER BY n")
    assert rows(connection, "SELECT LAST_INSERT_ID(), ROW_COUNT()") == [(found[1], 2000)]
    ids = placed(connection)
    assert (found[0], found[2]) == (2000, "Records: 2000  Duplicates: 0  Warnings: 0")
    assert len(set(ids)) == 2000
    counts = Counter(map(shard_of, ids))
    assert len(counts) == 64
    assert max(counts.values()) < 80  # 31 are expected; so many come once in ten billion runs
    assert rows(connection, f"SELECT JSON_EXTRACT(data, '$.n') + 0 FROM users WHERE id = {found[1]}") == [
        (0,)
    ]


def test_few_rows_lie_together(connection: Connection, demo: Demo) -> None:
    data = f"JSON_OBJECT('m', '{MARK}')"
    insert(connection, f"INSERT INTO users (data) SELECT {data} FROM {NUMBERS} ORDER BY n LIMIT 100")
    assert len({shard_of(id) for id in placed(connection)}) == 1
    insert(connection, f"INSERT INTO users (data) SELECT {data} FROM {NUMBERS} ORDER BY n LIMIT 101")
    assert len({shard_of(id) for id in placed(connection)}) > 20


def test_colocated_rows_go_by_their_column(connection: Connection, demo: Demo) -> None:
    users = [int(str(row[0])) for row in rows(connection, "SELECT id FROM users ORDER BY id LIMIT 20")]
    cases = " ".join(f"WHEN {at} THEN {id}" for at, id in enumerate(users))
    data = f"JSON_OBJECT('m', '{MARK}', 'user_id', CASE n MOD 21 {cases} END)"
    assert insert(connection, f"INSERT INTO boards (data) SELECT {data} FROM {NUMBERS}")[0] == 2000
    shown = "SELECT id, JSON_EXTRACT(data, '$.user_id') FROM boards WHERE data LIKE '%test_spread%'"
    found = [(int(str(id)), str(user)) for id, user in rows(connection, shown)]
    assert all(shard_of(id) == shard_of(int(user)) for id, user in found if user != "null")
    free = [id for id, user in found if user == "null"]
    assert len(free) == 95
    assert len({shard_of(id) for id in free}) > 20


def test_values_of_a_derived_table_stay_what_they_are(connection: Connection, demo: Demo) -> None:
    """Nothing tells that they are no FLOATs, whose texts have too few digits: they are not made DOUBLEs."""
    rows(connection, "DROP TABLE IF EXISTS legacy.test_derived")
    columns = "id BIGINT UNSIGNED, d DATETIME, b BLOB, n DECIMAL(38, 0), s VARCHAR(99)"
    rows(connection, f"CREATE TABLE legacy.test_derived ({columns})")
    values = (2**63 - 25, "2020-02-03 04:05:06", b"\xff\x00", 10**37 + 1, "1e3 é")
    shown = f"{values[0]} AS id, '{values[1]}' AS d, x'ff00' AS b, {values[3]} AS n, '{values[4]}' AS s"
    insertion = f"SELECT x.id, x.d, x.b, x.n, x.s FROM (SELECT {shown} FROM pins LIMIT 1) x"
    mine = f"user_id = 211106232532993 AND pin_id = {values[0]}"
    try:
        insert(connection, f"INSERT INTO legacy.test_derived {insertion}")
        (found,) = rows(connection, "SELECT id, CAST(d AS CHAR), b, n, s FROM legacy.test_derived")
        assert found == values
        like = "user_id, pin_id, sequence"
        derived = f"(SELECT {shown} FROM pins LIMIT 1) x"
        selected = f"SELECT 211106232532993, x.id, x.n FROM {derived}"
        insert(connection, f"INSERT INTO user_likes_pins ({like}) {selected}")
        selected = f"SELECT pin_id, sequence FROM user_likes_pins WHERE {mine}"
        assert rows(connection, selected) == [(values[0], values[3])]
    finally:
        rows(connection, "DROP TABLE legacy.test_derived")
        rows(connection, f"DELETE FROM user_likes_pins WHERE {mine}")


def test_in_a_transaction_and_on_one_shard_only(connection: Connection, demo: Demo) -> None:
    insertion = f"INSERT INTO users (data) SELECT JSON_OBJECT('m', '{MARK}') FROM {NUMBERS}"
    connection.begin()
    assert insert(connection, insertion)[0] == 2000
    connection.rollback()
    assert placed(connection) == []
    rows(connection, "SET transaction_mode = 'single'")
    connection.begin()
    numbers = "WITH RECURSIVE s AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM s WHERE n < 200)"
    insertion = f"INSERT INTO users (data) {numbers} SELECT JSON_OBJECT('m', '{MARK}') FROM s"
    assert insert(connection, insertion)[0] == 200  # a second shard would be refused
    connection.commit()
    rows(connection, "SET transaction_mode = DEFAULT")
    assert len({shard_of(id) for id in placed(connection)}) == 1


def test_warnings_and_errors_name_the_row(connection: Connection, demo: Demo) -> None:
    ts = "IF(n IN (777, 1444), 'nonsense', '2020-01-01')"
    insertion = (
        f"INSERT INTO users (data, ts) SELECT JSON_OBJECT('m', '{MARK}'), {ts} FROM {NUMBERS} ORDER BY n"
    )
    rows(connection, "SET sql_mode = ''")
    assert insert(connection, insertion)[2] == "Records: 2000  Duplicates: 0  Warnings: 2"
    shown = [str(row[2]).rpartition(" at row ")[2] for row in rows(connection, "SHOW WARNINGS")]
    assert shown == ["778", "1445"]
    rows(connection, "SET sql_mode = 'STRICT_ALL_TABLES', scatter_writes = 1")
    rows(connection, f"DELETE FROM users WHERE data LIKE '%{MARK}%'")
    connection.begin()
    with pytest.raises(pymysql.MySQLError, match="at row 778"):
        insert(connection, insertion)
    connection.commit()
    assert placed(connection) == []
    with pytest.raises(pymysql.MySQLError, match=r"failed on shard.*at row 778"):
        insert(connection, insertion)
