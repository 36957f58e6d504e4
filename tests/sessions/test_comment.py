"""`backends.comment`: servers are told whose a statement is, and every kind of statement runs as ever."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.binary import Binary, integer
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import Raw, query
from tests.support.demo import Demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until


@pytest.fixture
def proxy(own: MakeOwn) -> OwnProxy:
    return own({"backends": {"comment": True}})


@pytest.fixture
def servers(demo: Demo) -> Iterator[list[Connection]]:
    found = [demo.direct(number) for number in range(len(demo.masters))]
    yield found
    for one in found:
        one.close()


def running(servers: list[Connection]) -> list[str]:
    found = []
    for server in servers:
        with server.cursor() as cursor:
            cursor.execute("SELECT INFO FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP%0.4%'")
            found += [str(row[0]) for row in cursor.fetchall() if "PROCESSLIST" not in str(row[0])]
    return found


def test_servers_see_whose_a_statement_is(proxy: OwnProxy, servers: list[Connection]) -> None:
    client = proxy.raw()
    board = int(client.ask("SELECT id FROM boards LIMIT 1").value or 0)
    for sql in (
        "SELECT SLEEP(0.4)",
        f"SELECT SLEEP(0.4), data FROM boards WHERE id = {board}",
        "SELECT SLEEP(0.4), COUNT(*) FROM boards",
    ):
        client.write(query(sql))
        seen = wait_until(lambda: running(servers), "the statement runs")
        assert seen[0].startswith("/* demo, 127.0.0.1:"), seen
        assert f", {client.id} */ " in seen[0]
        assert client.reply().kind == "rows"


def test_every_kind_of_statement_runs(proxy: OwnProxy) -> None:
    client: Raw = proxy.raw()
    boards = [int(row[0] or 0) for row in client.ask("SELECT id FROM boards LIMIT 5").rows]
    ids = ", ".join(map(str, boards))
    for sql in (
        f"SELECT /*+ MAX_EXECUTION_TIME(5000) */ data FROM boards WHERE id = {boards[0]}",
        f"SELECT id FROM boards WHERE id IN ({ids}) ORDER BY id LIMIT 3",
        f"/* theirs */ SELECT data FROM boards WHERE id = {boards[0]} -- end",
        "/*!50000 SELECT 1 */",
        "SELECT COUNT(*) FROM boards b JOIN users u ON u.id > b.id",
        "SET @x = 5",
        "SELECT @x",
        "SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')",
        "BEGIN",
        f"UPDATE boards SET ts = ts WHERE id IN ({ids})",
        f"SELECT data FROM boards WHERE id = {boards[0]} FOR UPDATE",
        "SAVEPOINT a",
        "ROLLBACK TO a",
        "COMMIT",
        "INSERT INTO users (data) VALUES ('{\"test_comment\": 1}')",
        "SELECT LAST_INSERT_ID()",
        "SHOW WARNINGS",
        "SHOW TABLES",
        "EXPLAIN SELECT 1",
        "CREATE TEMPORARY TABLE legacy.shardgate_comment (n INT)",
        "INSERT INTO legacy.shardgate_comment VALUES (1), (2)",
        "SELECT SUM(n) FROM legacy.shardgate_comment",
        "DROP TEMPORARY TABLE legacy.shardgate_comment",
        "USE legacy",
        "PREPARE p FROM 'SELECT 1 + ?'",
        "EXECUTE p USING @x",
        "DEALLOCATE PREPARE p",
        "USE demo",
    ):
        assert client.ask(sql).kind != "err", (sql, client.ask(sql))
    prepared = Binary(client).run("SELECT id FROM boards WHERE id = ?", integer(boards[0]))
    assert prepared.kind == "rows"
    assert client.ask("SELECT 'x' FROM boards WHERE id =").code == 1064
    made = client.ask("SELECT id FROM users WHERE JSON_EXTRACT(data, '$.test_comment') = 1")
    for row in made.rows:
        assert client.ask(f"DELETE FROM users WHERE id = {(row[0] or b'0').decode()}").kind == "ok"
