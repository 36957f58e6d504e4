"""Definitions in sessions that keep a connection, and definitions that something happens to midway.

Every shard is accounted for.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pymysql
import pytest

from demo.programs import Program
from proxy.errors import REGISTRY
from tests.conftest import StartDemo
from tests.integration.own import log_problems, read_status, wait_idle
from tests.support.demo import Demo, DemoHost, gone, running_demo
from tests.support.waiting import wait_until

from .test_ddl import Connection, indexes, rows

#: How tools begin a migration, and how they end it.
TIES = {
    "golang-migrate": ("SELECT GET_LOCK('1459234567', 10)", "SELECT RELEASE_LOCK('1459234567')"),
    "Rails": ("SELECT GET_LOCK('2053462845345678', 0)", "SELECT RELEASE_LOCK('2053462845345678')"),
    "Prisma": ("SELECT GET_LOCK('prisma_migrate', 10)", "SELECT RELEASE_LOCK('prisma_migrate')"),
    "Flyway": ("SELECT GET_LOCK('Flyway-1234', 10)", "SELECT RELEASE_LOCK('Flyway-1234')"),
    "Alembic": ("SET autocommit = 0", "COMMIT"),
    "Django": ("BEGIN", "COMMIT"),
    "a temporary table": (
        "CREATE TEMPORARY TABLE legacy.passing (a INT)",
        "DROP TEMPORARY TABLE legacy.passing",
    ),
}


@pytest.fixture(scope="module")
def eight_shards(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running_demo(program, tmp_path_factory.mktemp("small"), "--shards", "8") as running:
        yield running


@pytest.fixture
def small(eight_shards: Demo) -> Iterator[Demo]:
    """After the test it is idle, and without the index again, wherever that was made."""
    yield eight_shards
    wait_idle(lambda: read_status(eight_shards.status_url), clients=0)
    for index in range(len(eight_shards.masters)):
        with eight_shards.direct(index) as own:
            made = rows(
                own,
                "SELECT DISTINCT table_schema FROM information_schema.statistics WHERE index_name = 'midway'",
            )
            for (database,) in made:
                rows(own, f"DROP INDEX midway ON {database}.pins")


def where_is(small: Demo, shard: int) -> DemoHost:
    """The master with that shard: the first has the lower half."""
    return small.masters[shard // 4]


@contextmanager
def holding(small: Demo, shard: int, table: str = "pins") -> Iterator[Connection]:
    """A definition of that shard's table waits meanwhile."""
    host = where_is(small, shard)
    with pymysql.connect(host=host.host, port=host.port, user=host.user, password=host.password) as own:
        rows(own, f"LOCK TABLES db{shard:05d}.{table} READ")
        yield own


def waits(small: Demo, shard: int) -> bool:
    """Whether a definition waits on the shard's host."""
    host = where_is(small, shard)
    with pymysql.connect(host=host.host, port=host.port, user=host.user, password=host.password) as own:
        return any(str(row[6]).startswith("Waiting for table") for row in rows(own, "SHOW PROCESSLIST"))


class Running(threading.Thread):
    """A statement in a thread of its own, and the error that it gave."""

    def __init__(self, connection: Connection, sql: str) -> None:
        super().__init__(daemon=True)
        self.connection, self.sql = connection, sql
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            rows(self.connection, self.sql)
        except BaseException as error:
            self.error = error

    def failed(self) -> tuple[object, ...]:
        self.join(30)
        assert not self.is_alive()
        assert isinstance(self.error, pymysql.MySQLError), self.error
        return self.error.args


@pytest.mark.parametrize("tool", TIES)
def test_a_session_that_keeps_a_connection(small: Demo, tool: str) -> None:
    begin, end = TIES[tool]
    name = "by_" + "".join(filter(str.isalpha, tool)).lower()
    with small.connect() as connection:
        rows(connection, begin)
        rows(connection, f"CREATE INDEX {name} ON comments (ts)")
        assert indexes(small, name) == 8
        for verb in ("ANALYZE", "CHECK", "OPTIMIZE"):
            assert rows(connection, f"{verb} TABLE comments")[-1][-1] == "OK"
        with pytest.raises(pymysql.MySQLError) as caught:
            rows(connection, f"CREATE INDEX {name} ON comments (ts)")
        assert caught.value.args[0] == 1061
        if begin.startswith("SELECT"):
            with small.connect() as other:
                assert rows(other, begin.replace("10)", "0)")) == [(0,)]  # the lock is held all the while
        rows(connection, f"DROP INDEX {name} ON comments")
        rows(connection, "ALTER TABLE countries ADD COLUMN passing INT")
        rows(connection, "ALTER TABLE countries DROP COLUMN passing")
        freed = rows(connection, end)
        assert not begin.startswith("SELECT") or freed == [(1,)]
    assert indexes(small, name) == 0


def test_what_locked_tables_forbid_is_done_nowhere(demo: Demo) -> None:
    with demo.connect() as connection:
        rows(connection, "LOCK TABLES legacy.customers WRITE")
        for sql in (
            "CREATE INDEX forbidden ON comments (ts)",
            "ALTER TABLE countries ADD COLUMN forbidden INT",
            "INSERT INTO countries VALUES ('ZZ', 'Nowhere')",
        ):
            with pytest.raises(pymysql.MySQLError) as caught:
                rows(connection, sql)
            assert caught.value.args[0] == 1100, sql
        assert indexes(demo, "forbidden") == 0
        rows(connection, "UPDATE legacy.customers SET city = city WHERE id = 1")  # they still are locked
        rows(connection, "UNLOCK TABLES")
        assert rows(connection, "SELECT * FROM countries WHERE code = 'ZZ'") == []


def finish(small: Demo, connection: Connection, error: tuple[object, ...], missing: set[int]) -> None:
    """The report names the shards that have not done it, and its advice makes them do it."""
    text = str(error[1])
    assert f"{8 - len(missing)} of 8 shards have done the definition, {len(missing)} have not" in text
    assert indexes(small, "midway") == 8 - len(missing)
    shown = [str(row[2]) for row in rows(connection, "SHOW WARNINGS")[1:]]
    assert {int(row.split()[1]) for row in shown} == missing
    assert "db00" in text
    for shard in missing:
        rows(connection, f"CREATE INDEX midway ON db{shard:05d}.pins (ts)")
    assert indexes(small, "midway") == 8
    rows(connection, "DROP INDEX midway ON pins")


@pytest.mark.parametrize("tied", [False, True])
def test_killed_midway(small: Demo, tied: bool) -> None:
    """KILL QUERY stops the shard that it finds at work and all that come behind it."""
    with small.connect() as connection, small.connect() as other:
        if tied:
            rows(connection, "SELECT GET_LOCK('x', 0)")
        with holding(small, 2):
            running = Running(connection, "CREATE INDEX midway ON pins (ts)")
            wait_until(lambda: waits(small, 2), "the definition to wait")
            wait_until(lambda: indexes(small, "midway") in ((6,) if tied else (7,)), "the others")
            rows(other, f"KILL QUERY {connection.thread_id()}")
            error = running.failed()
        assert error[0] == 1317
        finish(small, connection, error, {2, 3} if tied else {2})
        if tied:
            assert rows(connection, "SELECT IS_FREE_LOCK('x'), RELEASE_LOCK('x')") == [(0, 1)]


@pytest.mark.either_server
def test_a_host_lost_midway(start_demo: StartDemo) -> None:
    small = start_demo("--shards", "8")
    with small.connect() as connection, holding(small, 5):
        running = Running(connection, "CREATE INDEX midway ON pins (ts)")
        wait_until(lambda: waits(small, 5), "the definition to wait")
        wait_until(lambda: indexes(small, "midway") == 6, "all but that shard and the one behind it")
        host = where_is(small, 5)
        os.kill(host.pid, signal.SIGKILL)
        code, text = running.failed()[:2]
        assert code == 1105
        assert "6 of 8 shards have done the definition, 2 have not: Lost connection" in str(text)
        row, behind = rows(connection, "SHOW WARNINGS")[1:]
        assert row[1] == REGISTRY["host_lost"].code
        assert str(row[2]).startswith(f"shard 5 (db00005) on {host.address}: Lost connection")
        assert str(behind[2]).startswith(f"shard 7 (db00007) on {host.address}: The definition was not run")
        wait_until(lambda: gone(host.pid), "the host's end")
        code, text = Running(connection, "CREATE INDEX further ON pins (ts)").failed()[:2]
        assert "4 of 8 shards have done the definition, 4 have not: Can't connect" in str(text)


def test_a_lost_lock_stops_the_definition(small: Demo) -> None:
    """The connection with the session's lock was killed on the server: nothing runs without it."""
    with small.connect() as connection:
        rows(connection, "SELECT GET_LOCK('x', 0)")
        host = small.masters[0]
        with pymysql.connect(host=host.host, port=host.port, user=host.user, password=host.password) as own:
            (holder,) = rows(own, "SELECT IS_USED_LOCK('x')")
            rows(own, f"KILL {holder[0]}")
            wait_until(lambda: rows(own, "SELECT IS_FREE_LOCK('x')") == [(1,)], "its end")
        with pytest.raises(pymysql.MySQLError) as caught:
            rows(connection, "CREATE INDEX midway ON pins (ts)")
        done = indexes(small, "midway")
        assert caught.value.args[0] in (REGISTRY["definition_not_run"].code, 1158)
        assert done in (0, 4), caught.value  # 4: the proxy had not heard of it yet
        rows(connection, "SELECT 1")


def test_the_client_lost_midway(small: Demo) -> None:
    """Nobody is left to be told: the log has the report."""
    log = small.directory / "proxy.log"
    before = len(log.read_text())
    with small.connect() as connection, holding(small, 2):
        rows(connection, "SET lock_wait_timeout = 3")
        Running(connection, "CREATE INDEX midway ON pins (ts)")
        wait_until(lambda: waits(small, 2), "the definition to wait")
        wait_until(lambda: indexes(small, "midway") == 7, "the others")
        # Closing it would wait for the thread that reads from it
        connection._sock.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]
        wait_until(lambda: "definition not done everywhere" in log.read_text()[before:], "the report")
        wait_until(lambda: not waits(small, 2), "the end of what it ran")
    said = log.read_text()[before:]
    line = next(one for one in said.splitlines() if "definition not done everywhere" in one)
    assert "demo.pins" in line
    assert "[2]" in line
    assert not log_problems(said)
    assert indexes(small, "midway") == 7
