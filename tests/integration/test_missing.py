"""What only some shards lack: the client hears of it in logical terms, and of where, too."""

from __future__ import annotations

import pymysql
import pytest

from tests.conftest import StartDemo
from tests.integration.own import log_problems
from tests.support.waiting import wait_until

from .test_ddl import Connection, rows


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
        assert log.count("missing on a shard") < 6  # it does not repeat itself
        assert 'shardgate_shard_problems_total{code="1146"}' in demo.get("/metrics")[1]
        ((_, count),) = rows(connection, "SHOW PROXY STATUS LIKE 'Shard_problems'")
        assert int(str(count)) >= 6
        assert "board_has_pins" in {row[0] for row in rows(connection, "SHOW TABLES")}
        wait_until(lambda: "db00001" in demo.get("/")[1], "what SHOW TABLES has found")
        assert not log_problems(log)
