"""Writes to a reference table: all hosts do the same, or the error says which did not."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pymysql
import pytest

from tests.integration.fixtures import MakeOwn
from tests.support.demo import Demo
from tests.support.waiting import wait_until

Connection = pymysql.connections.Connection


@pytest.fixture
def connection(demo: Demo) -> Iterator[Connection]:
    with demo.connect() as connection:
        yield connection
        connection.rollback()
        run(connection, "DELETE FROM countries WHERE code LIKE '0%%'")


def run(connection: Connection, sql: str, *values: object) -> int:
    with connection.cursor() as cursor:
        return cursor.execute(sql, values)


def rows(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def on_hosts(demo: Demo) -> list[list[tuple[object, ...]]]:
    """The rows of each host, asked directly."""
    found = []
    for host in demo.ready["hosts"]:
        with pymysql.connect(
            host=host["host"], port=host["port"], user=host["user"], password=host["password"]
        ) as own:
            found.append(
                rows(own, "SELECT code, name FROM `global`.countries WHERE code LIKE '0%' ORDER BY 1")
            )
    return found


@pytest.mark.parametrize("mode", ["multi", "xa"])
def test_every_host_has_the_rows(connection: Connection, demo: Demo, mode: str) -> None:
    run(connection, "SET transaction_mode = %s", mode)
    assert run(connection, "INSERT INTO countries VALUES ('0a', %s), ('0b', NOW(6))", "Zañá") == 2
    first, second = on_hosts(demo)
    assert first == second
    assert [code for code, _ in first] == ["0a", "0b"]
    assert run(connection, "UPDATE countries SET name = CONCAT(name, '!') WHERE code LIKE '0%%'") == 2
    assert run(connection, "REPLACE INTO demo.countries SET code = '0a', name = 'again'") == 2
    assert run(connection, "DELETE FROM countries WHERE code LIKE '0%%' ORDER BY code DESC LIMIT 1") == 1
    assert on_hosts(demo) == [[("0a", "again")]] * 2
    assert run(connection, "INSERT INTO countries SELECT '0c', name FROM countries WHERE code = '0a'") == 1
    assert rows(connection, "SELECT @@timestamp > 1700000000, ROW_COUNT()")[0][0] == 1


def test_the_servers_error_and_nothing_done(connection: Connection, demo: Demo) -> None:
    run(connection, "INSERT INTO countries VALUES ('0a', 'x')")
    with pytest.raises(pymysql.IntegrityError):
        run(connection, "INSERT INTO countries VALUES ('0b', 'x'), ('0a', 'y')")
    assert on_hosts(demo) == [[("0a", "x")]] * 2


@pytest.mark.parametrize("mode", ["multi", "xa"])
def test_one_host_refuses(connection: Connection, demo: Demo, mode: str) -> None:
    run(connection, "SET transaction_mode = %s", mode)
    hosts = sorted(demo.ready["hosts"], key=lambda host: f"{host['host']}:{host['port']}")
    last = hosts[-1]
    with pymysql.connect(
        host=last["host"], port=last["port"], user=last["user"], password=last["password"], autocommit=True
    ) as own:
        run(own, "INSERT INTO `global`.countries VALUES ('0z', 'only here')")
        with pytest.raises(pymysql.IntegrityError):
            run(connection, "INSERT INTO countries VALUES ('0y', 'x'), ('0z', 'x')")
        assert rows(connection, "SELECT 1") == [(1,)]
        run(own, "DELETE FROM `global`.countries WHERE code = '0z'")
    assert on_hosts(demo) == [[], []]


def test_in_a_transaction(connection: Connection, demo: Demo) -> None:
    connection.begin()
    run(connection, "INSERT INTO countries VALUES ('0a', 'x')")
    assert on_hosts(demo) == [[], []]
    connection.rollback()
    assert on_hosts(demo) == [[], []]
    connection.begin()
    run(connection, "INSERT INTO countries VALUES ('0a', 'x')")
    with pytest.raises(pymysql.IntegrityError):
        run(connection, "INSERT INTO countries VALUES ('0b', 'x'), ('0a', 'y')")
    connection.commit()
    assert on_hosts(demo) == [[("0a", "x")]] * 2


def test_concurrent_writes_leave_the_hosts_alike(connection: Connection, demo: Demo) -> None:
    run(connection, "INSERT INTO countries VALUES ('0a', 'x')")

    def write(number: int) -> None:
        with demo.connect() as own:
            for step in range(20):
                run(own, "UPDATE countries SET name = %s WHERE code = '0a'", f"{number}-{step}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    first, second = on_hosts(demo)
    assert first == second


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO countries VALUES ('0a', UUID())",
        "INSERT INTO countries SET code = '0a', name = @x",
    ],
)
def test_what_would_differ_is_refused(connection: Connection, sql: str) -> None:
    with pytest.raises(pymysql.NotSupportedError, match="must be the same on every host"):
        run(connection, sql)


def test_changes_that_would_differ_are_found_first(connection: Connection, demo: Demo) -> None:
    """The rows and the values are read once, and written on every host."""
    run(connection, "INSERT INTO countries VALUES ('0a', 'x'), ('0b', 'x')")
    for sql in (
        "UPDATE countries SET name = UUID() WHERE code LIKE '0%%'",
        "UPDATE countries SET name = RAND() WHERE code = '0a' OR RAND() < 0.5 AND code = '0b'",
        "UPDATE countries SET name = CONCAT(@@pseudo_thread_id, @x := 5) WHERE code = '0a'",
        "DELETE FROM countries WHERE code LIKE '0%%' LIMIT 1",
        "UPDATE countries c JOIN users u ON u.id > 0 SET c.name = UUID() WHERE code LIKE '0%%' AND u.id < 9",
    ):
        with contextlib.suppress(pymysql.NotSupportedError):  # @x := 5 is refused
            run(connection, sql)
        first, second = on_hosts(demo)
        assert first == second, sql
    assert run(connection, "DELETE FROM countries WHERE code LIKE '0%%'") == 1


@pytest.fixture
def spoilt(demo: Demo) -> Iterator[str]:
    """The address of a host that has lost all rows of `countries`."""
    with demo.direct(1) as root:
        before = rows(root, "SELECT code, name FROM `global`.countries")
        run(root, "DELETE FROM `global`.countries")
        yield demo.masters[1].address
        run(root, "DELETE FROM `global`.countries")
        for code, name in before:
            run(root, "INSERT INTO `global`.countries VALUES (%s, %s)", code, name)


def test_a_host_without_the_rows_is_told(own: MakeOwn, demo: Demo, spoilt: str) -> None:
    """A new host may have an empty copy, and joins there find nothing."""
    proxy = own(expected=("missing on a shard",))
    first = demo.masters[0].address

    def problems() -> dict[str, str]:
        return {one["where"]: one["text"] for one in proxy.status()["topology"]["problems"]}

    where = f"database (global) on {spoilt}"
    wait_until(lambda: where in problems(), "the status page tells")
    assert (
        problems()[where] == f"the reference table 'countries' has no rows, but has rows on {first}: copy it"
    )
    with proxy.connect() as client:
        run(client, "UPDATE countries SET name = CONCAT(name, '!') WHERE code = 'DE'")
        run(client, "UPDATE countries SET name = TRIM(TRAILING '!' FROM name) WHERE code = 'DE'")
    assert "the copies differ" in "".join(problems().values())
    wait_until(lambda: "copy it" in proxy.log.read_text(), "the log tells")


def test_single_tables_and_reference_tables_read_each_other(connection: Connection) -> None:
    run(connection, "INSERT INTO usernames VALUES ('0z', 7)")
    try:
        run(connection, "INSERT INTO countries SELECT '0z', username FROM usernames WHERE username = '0z'")
        join = "usernames u JOIN countries c ON c.name = u.username"
        assert run(connection, f"UPDATE {join} SET u.user_id = 8 WHERE c.code = '0z'") == 1
        assert run(connection, f"UPDATE {join} SET c.name = '0y' WHERE u.user_id = 8") == 1
        sql = "INSERT INTO usernames (username, user_id) SELECT name, 9 FROM countries WHERE code = '0z'"
        assert run(connection, sql) == 1
        assert run(connection, "DELETE FROM usernames WHERE username IN (SELECT name FROM countries)") == 1
    finally:
        run(connection, "DELETE FROM usernames WHERE username LIKE '0%%'")


def test_returning(connection: Connection, demo: Demo, flavour: str) -> None:
    if flavour != "mariadb":
        pytest.skip("MySQL has no RETURNING")
    sql = "INSERT INTO countries VALUES ('0a', 'x'), ('0b', 'y') RETURNING name, code"
    assert rows(connection, sql) == [("x", "0a"), ("y", "0b")]
    assert all(len(one) == 2 for one in on_hosts(demo))
    connection.begin()
    assert rows(connection, "REPLACE INTO countries VALUES ('0a', 'z') RETURNING *") == [("0a", "z")]
    connection.rollback()
    assert rows(connection, "DELETE FROM countries WHERE code LIKE '0%' RETURNING name") == [("x",), ("y",)]
    assert on_hosts(demo) == [[], []]
