"""The schema file is changed while the proxy runs: a new table takes no restart."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pymysql
import pytest
import yaml

from tests.conftest import StartDemo
from tests.support.demo import Demo
from tests.support.waiting import wait_until

from .test_ddl import Connection, rows

pytestmark = pytest.mark.either_server

CARS = {"kind": "object", "keyspace": "main", "type": 77}
DEFINITION = """CREATE TABLE cars (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, data JSON NOT NULL,
    ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)"""


@pytest.fixture
def small(start_demo: StartDemo) -> Demo:
    return start_demo("--shards", "4", "--empty", "--workers", "2")


@pytest.fixture
def sessions(small: Demo) -> Iterator[list[Connection]]:
    """Some of each worker process."""
    found: list[Connection] = []
    for _ in range(200):
        found.append(small.connect())
        if len({one.thread_id() >> 24 for one in found}) == 2:
            break
    assert len({one.thread_id() >> 24 for one in found}) == 2
    yield found
    for one in found:
        one.close()


def write(demo: Demo, change: Callable[[dict[str, Any]], None]) -> None:
    document = yaml.safe_load(demo.schema.read_text())
    change(document)
    draft = demo.schema.with_suffix(".new")
    draft.write_text(yaml.safe_dump(document, sort_keys=False))
    draft.replace(demo.schema)


def error_of(connection: Connection, sql: str) -> tuple[int, str]:
    try:
        rows(connection, sql)
    except pymysql.MySQLError as error:
        return error.args[0], str(error.args[1])
    return 0, ""


def known(connection: Connection) -> None:
    """Wait until the session's worker knows the new table."""
    statement = "EXPLAIN ROUTE SELECT * FROM cars WHERE id = 5"
    wait_until(lambda: "keyspace" in {row[0] for row in rows(connection, statement)}, "the schema")


def tables(connection: Connection) -> set[str]:
    return {str(row[0]) for row in rows(connection, "SHOW TABLES")}


def test_a_new_table(small: Demo, sessions: list[Connection]) -> None:
    before = tables(sessions[0])
    assert "pins" in before
    assert error_of(sessions[0], DEFINITION)[0] == 1235
    prepared = "SELECT * FROM cars WHERE id = 5"
    assert error_of(sessions[0], prepared)[0] == 1146

    write(small, lambda document: document["databases"]["demo"]["tables"].update(cars=CARS))
    # named, and made nowhere: not listed, and a server says that it is not there
    for one in sessions:
        known(one)
        assert tables(one) == before
        assert rows(one, "SHOW TABLES LIKE 'cars'") == []

    rows(sessions[0], DEFINITION)
    for one in sessions:
        assert tables(one) == before | {"cars"}
        assert rows(one, prepared) == []
    with sessions[-1].cursor() as cursor:
        cursor.execute("INSERT INTO cars (data) VALUES ('{\"wheels\": 4}')")
        id = cursor.lastrowid
    assert id >> 36 & 0x3FF == 77
    for one in sessions:
        assert rows(one, f"SELECT id FROM cars WHERE id = {id}") == [(id,)]
        assert rows(one, "SHOW FULL TABLES LIKE 'cars'") == [("cars", "BASE TABLE")]

    rows(sessions[0], "DROP TABLE cars")
    for one in sessions:
        assert tables(one) == before


@pytest.mark.one_server
def test_a_bad_schema_is_refused(small: Demo, sessions: list[Connection]) -> None:
    log = small.directory / "proxy.log"
    good = small.schema.read_text()
    small.schema.write_text("databases: {demo: {tables: {pins: {kind: nothing}}}}")
    wait_until(lambda: log.read_text().count("schema refused") >= 2, "the refusal by both workers")
    assert "kind" in small.get("/")[1]
    write_of = {"databases": {"other": {"tables": {"cars": CARS | {"keyspace": "nowhere"}}}}}
    small.schema.write_text(yaml.safe_dump(write_of))
    wait_until(lambda: "nowhere" in log.read_text(), "the next refusal")
    small.schema.unlink()
    wait_until(lambda: "cannot be read" in log.read_text(), "the file's absence")
    for one in sessions:
        assert "pins" in tables(one)
        rows(one, "INSERT INTO users (data) VALUES ('{}')")
    metrics = small.get("/metrics")[1]
    assert "shardgate_schema_refused_total" in metrics

    small.schema.write_text(good)
    write(small, lambda document: document["databases"]["demo"]["tables"].update(cars=CARS))
    os.kill(small.proxy_pid, signal.SIGHUP)
    for one in sessions:
        known(one)
    ((_, count),) = rows(sessions[0], "SHOW PROXY STATUS LIKE 'Schema_changes'")
    assert int(str(count)) >= 1


def test_what_is_missing_on_some_shards_is_listed_and_named(small: Demo, sessions: list[Connection]) -> None:
    log = small.directory / "proxy.log"
    rows(sessions[0], "DROP TABLE db00002.boards")
    assert "boards" in tables(sessions[0])
    wait_until(lambda: "db00002" in log.read_text(), "the line in the log")
    line = next(one for one in log.read_text().splitlines() if "db00002" in one)
    assert "boards" in line
    wait_until(lambda: "db00002" in small.get("/")[1], "the status page")
    rows(sessions[0], "DROP TABLE IF EXISTS boards")
    assert "boards" not in tables(sessions[0])
