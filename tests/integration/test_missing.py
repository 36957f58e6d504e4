"""What only some shards lack: the client hears of it in logical terms, and of where, too."""

from __future__ import annotations

import json
from datetime import datetime

import pymysql
import pytest

from tests.conftest import StartDemo
from tests.integration.own import log_problems
from tests.support.waiting import wait_until

from .test_ddl import Connection, rows

pytestmark = pytest.mark.either_server


def fails(connection: Connection, sql: str, code: int) -> list[tuple[object, ...]]:
    """What SHOW WARNINGS has behind the error."""
    with pytest.raises(pymysql.MySQLError) as caught:
        rows(connection, sql)
    assert caught.value.args[0] == code, (sql, caught.value)
    assert "db00" not in str(caught.value.args[1])
    first, *rest = rows(connection, "SHOW WARNINGS")
    assert first == ("Error", code, caught.value.args[1])
    return rest


def test_where_it_is_missing_is_named(start_demo: StartDemo) -> None:
    demo = start_demo("--shards", "4", "--empty")
    with demo.connect() as connection:
        rows(connection, "ALTER TABLE users ADD COLUMN score INT DEFAULT 1")
        rows(connection, "ALTER TABLE db00003.users DROP COLUMN score")
        rows(connection, "DROP TABLE db00002.boards")
        rows(connection, "DROP TABLE db00001.board_has_pins")
        shard = {n: f"shard {n} (db{n:05d}) on {demo.masters[n // 2].address}" for n in range(4)}
        gone = f"{shard[2]}: Table 'db00002.boards' doesn't exist"
        object_of = {n: (n << 46) + (2 << 36) + 5 for n in range(4)}
        assert fails(connection, f"SELECT data FROM boards WHERE id = {object_of[2]}", 1146) == [
            ("Note", 1146, gone)
        ]
        assert fails(connection, "SELECT COUNT(*) FROM boards", 1146) == [("Note", 1146, gone)]
        assert fails(connection, f"DELETE FROM boards WHERE id = {object_of[2]}", 1146) == [
            ("Note", 1146, gone)
        ]
        (found,) = fails(connection, f"INSERT INTO boards (id, data) VALUES ({object_of[2]}, '{{}}')", 1146)
        assert found == ("Note", 1146, gone)
        connection.begin()
        assert fails(connection, f"SELECT data FROM boards WHERE id = {object_of[2]}", 1146) == [
            ("Note", 1146, gone)
        ]
        connection.rollback()
        assert rows(connection, f"SELECT data FROM boards WHERE id = {object_of[1]}") == []

        user = (3 << 46) + (3 << 36) + 5
        lacking = f"{shard[3]}: Unknown column 'score' in"
        (found,) = fails(connection, f"SELECT score FROM users WHERE id = {user}", 1054)
        assert str(found[2]).startswith(lacking)
        (found,) = fails(connection, "SELECT MAX(score) FROM users", 1054)
        assert demo.masters[1].address in str(found[2])
        assert fails(connection, f"SELECT scoer FROM users WHERE id = {user}", 1054) == []  # nobody has that

        log, page = (demo.directory / "proxy.log").read_text(), demo.get("/")[1]
        for text in ("db00002", "db00003"):
            assert text in log, log
            assert text in page
        told: dict[tuple[str, str], datetime] = {}
        for line in map(json.loads, log.splitlines()):
            if line["event"] == "missing on a shard":
                before, now = told.get((line["where"], line["reason"])), datetime.fromisoformat(line["time"])
                assert before is None or (now - before).total_seconds() >= 59, "it does not repeat itself"
                told[line["where"], line["reason"]] = now
        assert len(told) >= 2
        assert not [where for where, _ in told if "shard 0 " in where]
        assert 'shardgate_shard_problems_total{code="1146"}' in demo.get("/metrics")[1]
        ((_, count),) = rows(connection, "SHOW PROXY STATUS LIKE 'Shard_problems'")
        assert int(str(count)) >= 6
        assert "board_has_pins" in {row[0] for row in rows(connection, "SHOW TABLES")}
        wait_until(lambda: "db00001" in demo.get("/")[1], "what SHOW TABLES has found")
        assert not log_problems(log)


def test_shards_in_the_middle(start_demo: StartDemo) -> None:
    """What is changed elsewhere is found on any shard, and half a definition is told as what it is."""
    demo = start_demo("--shards", "8", "--empty")
    log = demo.directory / "proxy.log"
    with demo.connect() as connection:
        with pytest.raises(pymysql.MySQLError) as caught:
            rows(connection, "ALTER TABLE users ADD COLUMN a BROKEN")
        assert caught.value.args[0] in (1064, 4161)
        with demo.direct(0) as direct, direct.cursor() as cursor:
            cursor.execute("ALTER TABLE db00002.users ADD COLUMN score INT")
            cursor.execute("DROP TABLE db00001.boards")
        assert "definition not done everywhere" not in log.read_text()
        with pytest.raises(pymysql.MySQLError) as caught:
            rows(connection, "ALTER TABLE users ADD COLUMN score INT")
        assert "seem to have that change already" in caught.value.args[1]
        wait_until(lambda: "it has no table 'boards'" in log.read_text(), "the look that follows")
        (line,) = [one for one in log.read_text().splitlines() if "it has no table 'boards'" in one]
        assert "shard 1 (db00001)" in line
        with demo.direct(1) as direct, direct.cursor() as cursor:
            cursor.execute("DROP DATABASE db00006")
        with pytest.raises(pymysql.MySQLError):
            rows(connection, "ALTER TABLE pins ADD COLUMN more INT")
        wait_until(lambda: "it has none of its tables" in log.read_text(), "the look that follows")
        (line,) = [one for one in log.read_text().splitlines() if "it has none of its tables" in one]
        assert "shard 6 (db00006)" in line
