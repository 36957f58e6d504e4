"""Which shard is slow, which fails, which has most work: SHOW HOT SHARDS, SHOW SHARDS, SHOW POOLS."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest

from tests.integration.fixtures import shard_of
from tests.support.demo import Demo
from tests.support.waiting import wait_until

Ask = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def ask(demo: Demo) -> Iterator[Ask]:
    """Rows of a statement by their columns' names."""
    with demo.connect() as connection, connection.cursor() as cursor:

        def rows(sql: str) -> list[dict[str, Any]]:
            cursor.execute(sql)
            names = [column[0] for column in cursor.description or ()]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        yield rows


@pytest.fixture
def boards(ask: Ask) -> dict[int, int]:
    """A board's ID of each shard that has one."""
    return {shard_of(row["id"]): row["id"] for row in ask("SELECT id FROM boards")}


def shard(ask: Ask, number: int) -> dict[str, Any]:
    return next(row for row in ask("SHOW SHARDS LIKE 'main'") if row["Shard"] == number)


def test_a_slow_shard_is_seen_among_others(ask: Ask, boards: dict[int, int]) -> None:
    slow, *others = sorted(boards)[:6]
    for number in others:
        for _ in range(4):
            ask(f"SELECT data FROM boards WHERE id = {boards[number]}")
    ask(f"SELECT data, SLEEP(0.2) FROM boards WHERE id = {boards[slow]}")

    def load() -> object:
        """None when the worker that has counted has not answered in time, too."""
        rows = ask("SHOW HOT SHARDS LIKE 'main'")
        return next((row["Load"] for row in rows if row["Shard"] == slow), None)

    wait_until(lambda: load() == "slow", "the shard is shown as slow")
    assert float(shard(ask, slow)["Max_ms"]) >= 200
    # Tests of before may have left another shard that fails, or is slow: it may come first.
    places = {
        row["Shard"]: place
        for place, row in enumerate(ask("SHOW HOT SHARDS LIKE 'main'"))
        if row["Shard"] == slow or row["Load"] is None
    }
    assert places[slow] < min(places[number] for number in others if number in places)


def test_a_statement_that_still_runs_is_seen(demo: Demo, ask: Ask, boards: dict[int, int]) -> None:
    number, id = max(boards.items())
    with demo.connect() as other, other.cursor() as cursor:

        def sleep() -> None:
            with contextlib.suppress(pymysql.MySQLError):
                cursor.execute(f"SELECT SLEEP(30), data FROM boards WHERE id = {id}")

        thread = threading.Thread(target=sleep)
        thread.start()
        try:
            wait_until(lambda: shard(ask, number)["Running"] == 1, "the statement is seen")
            wait_until(lambda: float(shard(ask, number)["Oldest_ms"]) > 100, "its age is seen")
            host = shard(ask, number)["Master"]
            assert next(row for row in ask("SHOW POOLS") if row["Host"] == host)["Running"] >= 1
        finally:
            ask(f"KILL {other.thread_id()}")
            thread.join()
    wait_until(lambda: shard(ask, number)["Running"] == 0, "it is over")


def test_a_failing_shard(demo: Demo, ask: Ask, boards: dict[int, int], flavour: str) -> None:
    number = sorted(boards)[-2]
    before, done = shard(ask, number)["Total_errors"], 0
    long = "BENCHMARK(1000000000, SHA2('a', 512)) = 0"
    limit = "max_statement_time = 0.01" if flavour == "mariadb" else "max_execution_time = 10"
    with demo.connect() as other, other.cursor() as cursor:
        cursor.execute(f"SET {limit}")

        def failing() -> bool:
            """After one more: tests of before may have asked the shard for much in the last seconds."""
            nonlocal done
            with pytest.raises(pymysql.MySQLError) as caught:
                cursor.execute(f"SELECT * FROM boards WHERE id = {boards[number]} AND {long}")
            assert caught.value.args[0] in (1969, 3024)
            done += 1
            load: str | None = shard(ask, number)["Load"]
            return load == "failing"

        wait_until(failing, "one statement in twenty fails")
    assert shard(ask, number)["Total_errors"] == before + done
    assert ask("SHOW HOT SHARDS")[0]["Load"] == "failing"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT * FROM boards WHERE id = {id} AND EXP(10000) = 1", 1690),
        ("SELECT (SELECT 1, 2) FROM boards WHERE id = {id}", 1241),
        ("INSERT INTO boards (id, data) VALUES ({id}, '{{}}')", 1062),
        ("SELECT (SELECT 1 UNION SELECT 2) FROM boards WHERE id = {id}", 1242),
    ],
)
def test_a_statements_own_error_is_no_failure(ask: Ask, boards: dict[int, int], sql: str, code: int) -> None:
    number, id = sorted(boards.items())[-3]
    before = shard(ask, number)
    hosts = {row["Host"]: row["Total_errors"] for row in ask("SHOW POOLS")}
    for _ in range(3):
        with pytest.raises(pymysql.MySQLError) as caught:
            ask(sql.format(id=id))
        assert caught.value.args[0] == code
    after = shard(ask, number)
    assert after["Total"] > before["Total"]
    assert after["Total_errors"] == before["Total_errors"]
    assert hosts == {row["Host"]: row["Total_errors"] for row in ask("SHOW POOLS")}


def test_rows_of_several_shards(ask: Ask, boards: dict[int, int]) -> None:
    numbers = sorted(boards)[:4]
    ids = ", ".join(str(boards[number]) for number in numbers)

    def rows() -> int:
        found = {row["Shard"]: row["Total_rows"] for row in ask("SHOW SHARDS LIKE 'main'")}
        return sum(found[number] for number in numbers)

    before = rows()
    assert len(ask(f"SELECT id FROM boards WHERE id IN ({ids})")) == 4
    assert rows() == before + 4
    ask(f"UPDATE boards SET data = JSON_SET(data, '$.loads', RAND()) WHERE id IN ({ids})")
    assert rows() == before + 8
    ask(f"UPDATE boards SET data = JSON_REMOVE(data, '$.loads') WHERE id IN ({ids})")


def test_hosts(ask: Ask, demo: Demo) -> None:
    found = {row["Host"]: row for row in ask("SHOW POOLS")}
    assert {one.address for one in demo.masters} <= found.keys()
    for row in found.values():
        assert row["Total"] >= 0 <= row["Waits"]
        assert float(row["Mean_ms"]) <= float(row["Max_ms"])


def test_digests_have_quantiles_rows_shards_and_hosts(ask: Ask, boards: dict[int, int]) -> None:
    ids = list(boards.values())[:3]
    for _ in range(3):
        ask(f"SELECT data AS probe_loads FROM boards WHERE id IN ({', '.join(map(str, ids))})")
    found = ask("SHOW PROXY QUERIES LIKE '%probe_loads%'")
    one = next(row for row in found if row["Plan"] == "select")
    assert (one["Count"], one["Rows"], float(one["Shards"])) == (3, 9, 3)
    times = [float(one[name]) for name in ("P50_ms", "P95_ms", "P99_ms", "Max_ms")]
    assert times == sorted(times)
    assert one["Hosts"]


@pytest.mark.one_server
@pytest.mark.parametrize(
    "what",
    [
        "HOT SHARDS", "POOLS", "PROXY ADVICE", "PROXY CACHES", "PROXY QUERIES", "PROXY SESSIONS",
        "PROXY STATUS", "PROXY TRANSACTIONS", "SHARDS", "TOPOLOGY",
    ],
)  # fmt: skip
def test_no_where_is_taken_and_ignored(ask: Ask, what: str, flavour: str) -> None:
    """Who ends all that `SHOW PROXY SESSIONS WHERE User = …` shows would end everybody's."""
    with pytest.raises(pymysql.MySQLError, match=f"SHOW {what} takes no WHERE") as caught:
        ask(f"SHOW {what} WHERE nonsense = 1")
    assert caught.value.args[0] == 1235
    with pytest.raises(pymysql.MySQLError, match="takes no WHERE"):
        ask(f"SHOW {what} LIKE '%' WHERE 1")
    with pytest.raises(pymysql.MySQLError) as caught:
        ask(f"SHOW {what} LIKE '%' LIMIT 1")
    assert caught.value.args[0] == 1064
    ask(f"SHOW {what} LIKE 'nothing-is-called-so'")
