"""What is seen of sessions and of slow statements: where they run, since when, and what time went where."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.binary import Binary
from tests.integration.fixtures import MakeOwn, shard_of
from tests.integration.own import OwnProxy, moved
from tests.integration.raw import INIT_DB, RESET_CONNECTION, Raw, query
from tests.support.demo import Demo
from tests.support.waiting import wait_until

pytestmark = pytest.mark.one_server


@pytest.fixture
def proxy(own: MakeOwn) -> OwnProxy:
    settings = {
        "logging": {"slow_query_ms": 0, "format": "json"},
        "backends": {"max_connections": 1, "queue_timeout": "1s"},
        "timeouts": {"statement": "3s"},
        "workers": 2,
    }
    return own(settings)


def slow(proxy: OwnProxy, text: str) -> dict[str, Any]:
    """The latest line of the slow-query log whose digest has this text."""
    found: list[dict[str, Any]] = []

    def there() -> bool:
        lines = [
            json.loads(line) for line in proxy.log.read_text().splitlines() if '"slow statement"' in line
        ]
        found[:] = [line for line in lines if text in line["digest"]]
        return bool(found)

    wait_until(there, f"a line with {text}")
    return found[-1]


def rows(client: Raw, sql: str) -> list[dict[str, Any]]:
    reply = client.ask(sql)
    return [dict(zip(reply.columns, row, strict=True)) for row in reply.rows]


def session(client: Raw, id: int) -> dict[str, Any]:
    return next(row for row in rows(client, "SHOW PROXY SESSIONS") if row["Id"] == str(id).encode())


def test_where_the_time_went(proxy: OwnProxy) -> None:
    first, second = of_one_worker(proxy)
    board = int(first.ask("SELECT id FROM boards LIMIT 1").value or 0)
    first.write(query(f"SELECT SLEEP(0.3), 'secret' AS one FROM boards WHERE id = {board}"))
    wait_until(lambda: session(second, first.id)["Runs_on"] is not None, "it runs")
    shown = session(second, first.id)
    where = f"{shown['Runs_on'].decode()}"
    assert where.endswith(f" (main/{shard_of(board)})")
    assert shown["Statement"] == b"SELECT SLEEP(?), ? AS one FROM boards WHERE id = ?"
    second.write(query(f"SELECT data AS two FROM boards WHERE id = {board}"))
    assert [client.reply().kind for client in (first, second)] == ["rows", "rows"]
    one, two = slow(proxy, "AS one"), slow(proxy, "AS two")
    assert (one["hosts"], one["shards"]) == ([where.split()[0]], [f"main/{shard_of(board)}"])
    assert one["backend_seconds"] >= 0.3 > one["own_seconds"] >= 0
    assert one["address"].startswith("127.0.0.1:")
    assert two["queue_seconds"] > 0 < two["backend_seconds"]
    parts = two["queue_seconds"] + two["backend_seconds"] + two["own_seconds"]
    assert parts == pytest.approx(two["seconds"], abs=0.001)
    assert "secret" not in proxy.log.read_text()


def test_a_statement_that_got_no_answer(proxy: OwnProxy) -> None:
    """It is an error of its shard, and the log says of which."""
    client = proxy.raw()
    board = int(client.ask("SELECT id FROM boards LIMIT 1").value or 0)
    asked = f"SHOW SHARDS LIKE 'db{shard_of(board):05d}'"
    before = int(rows(client, asked)[0]["Total_errors"])
    assert client.ask(f"SELECT SLEEP(60) AS late FROM boards WHERE id = {board}").kind == "err"
    found = slow(proxy, "AS late")
    assert found["shards"] == [f"main/{shard_of(board)}"]
    assert found["backend_seconds"] == pytest.approx(found["seconds"], abs=1)
    assert int(rows(client, asked)[0]["Total_errors"]) == before + 1


def of_one_worker(proxy: OwnProxy) -> tuple[Raw, Raw]:
    """Two clients: pools are those of a worker."""
    first = proxy.raw()
    seconds = [proxy.raw()]
    while seconds[-1].id >> 24 != first.id >> 24:
        seconds.append(proxy.raw())
    return first, seconds[-1]


def test_a_wait_in_vain(proxy: OwnProxy) -> None:
    """For a connection that does not become free in time: it is the host's, not the proxy's."""
    first, second = of_one_worker(proxy)
    board = int(first.ask("SELECT id FROM boards LIMIT 1").value or 0)
    first.write(query(f"SELECT SLEEP(2), 'x' AS held FROM boards WHERE id = {board}"))
    wait_until(lambda: session(second, first.id)["Runs_on"] is not None, "it runs")
    host = session(second, first.id)["Runs_on"].decode().split()[0]
    counts = [f'shardgate_host_{name}_total{{host="{host}"}}' for name in ("waits", "wait_seconds")]
    before = [proxy.metric(name) for name in counts]
    second.write(query(f"SELECT data AS vain FROM boards WHERE id = {board}"))
    looks = proxy.raw()
    wait_until(lambda: session(looks, second.id)["Waits_for"] is not None, "it waits")
    shown = session(looks, second.id)
    assert (shown["Runs_on"], shown["Waits_for"]) == (None, f"connection {host}".encode())
    assert second.reply().code == 1040
    assert session(looks, second.id)["Waits_for"] is None
    found = slow(proxy, "AS vain")
    assert (found["outcome"], found["hosts"]) == ("pool_timeout", [host])
    assert found["queue_seconds"] >= 0.9
    assert (found["backend_seconds"], found["own_seconds"]) == (0.0, pytest.approx(0, abs=0.3))
    after = [proxy.metric(name) for name in counts]
    assert after[0] > before[0]  # the workers ask questions of their own, too
    assert after[1] >= before[1] + 0.9
    assert first.reply().kind == "rows"


DEAD = "127.0.0.1:1"
"""Nobody listens there."""


def test_the_shards_of_a_dead_master_fail(own: MakeOwn, demo: Demo) -> None:
    """Nothing reaches them, and still they are what is to be looked at: not the healthy ones."""
    ranges = json.loads((demo.directory / "topology.json").read_text())["keyspaces"]["main"]["ranges"]
    well, lost = (list(range(one["range"][0], one["range"][1] + 1)) for one in ranges[:2])
    topology = moved(json.loads((demo.directory / "topology.json").read_text()), {ranges[1]["master"]: DEAD})
    slow_log = {"slow_query_ms": 0, "format": "json"}
    proxy = own({"logging": slow_log, "timeouts": {"buffer": "1s"}}, topology)
    client = proxy.raw()
    one, two, three, far = (shard << 46 | 1 << 36 | 1 for shard in (*lost[:3], well[0]))
    for sql in (
        f"SELECT data AS gone FROM pins WHERE id = {one}",
        f"SELECT data FROM pins WHERE id IN ({one}, {two}, {far})",
        f"SELECT data FROM pins WHERE id IN ({one}, {two}, {far}) ORDER BY ts LIMIT 3",
        f"UPDATE pins SET data = 'x' WHERE id = {one}",
        f"UPDATE pins SET data = 'x' WHERE id IN ({one}, {two}, {three}, {far})",
        f"SELECT data, ROW_NUMBER() OVER (ORDER BY ts) FROM pins WHERE id IN ({one}, {far})",
    ):
        assert client.ask(sql).code == 1429, sql
    assert client.ask(f"SELECT data FROM pins WHERE id = {far}").kind == "rows"
    errors = [6, 3, 1]
    hot = rows(client, "SHOW HOT SHARDS")
    found = {int(row["Shard"]): int(row["Errors"]) for row in hot if row["Load"] == b"failing"}
    assert found == dict(zip(lost, errors, strict=False))
    assert [row["Load"] for row in hot[:3]] == [b"failing"] * 3
    assert int(rows(client, f"SHOW SHARDS LIKE 'db{lost[1]:05d}'")[0]["Total_errors"]) == errors[1]
    assert int(next(row for row in rows(client, "SHOW POOLS") if row["Host"] == DEAD.encode())["Errors"]) == 6
    assert proxy.metric(f'shardgate_host_errors_total{{host="{DEAD}"}}') == 6
    (main,) = (one for one in proxy.live()["map"] if one["name"] == "main")
    assert [cell[0] + main["first"] for cell in main["cells"] if cell[1] == 2] == lost[:3]
    line = slow(proxy, "AS gone")
    assert (line["hosts"], line["shards"]) == ([DEAD], [f"main/{lost[0]}"])
    assert line["queue_seconds"] >= 0.9
    assert line["own_seconds"] < 0.5


def test_several_shards_and_none(proxy: OwnProxy) -> None:
    client = proxy.raw()
    boards = [int(row[0] or 0) for row in client.ask("SELECT id FROM boards").rows]
    places = {shard_of(id): id for id in boards}
    ids = ", ".join(map(str, places.values()))
    assert client.ask(f"SELECT data AS several FROM boards WHERE id IN ({ids})").kind == "rows"
    found = slow(proxy, "AS several")
    assert found["shard_count"] == len(places)
    assert len(found["hosts"]) == 2
    assert len(found["shards"]) <= 20
    client.ask("SET @nothing = 1")
    assert (slow(proxy, "@nothing")["hosts"], slow(proxy, "@nothing")["backend_seconds"]) == ([], 0.0)


def test_transactions_have_an_age_and_a_last_statement(proxy: OwnProxy) -> None:
    client, other = proxy.raw(), proxy.raw()
    board = int(client.ask("SELECT id FROM boards LIMIT 1").value or 0)
    for begin in ("BEGIN", "SET autocommit = 0"):
        client.ask(begin)
        assert client.ask(f"SELECT data FROM boards WHERE id = {board} FOR UPDATE").kind == "rows"
        shown = session(other, client.id)
        assert float(shown["Transaction"]) >= 0
        assert shown["Statement"] == b"SELECT data FROM boards WHERE id = ? FOR UPDATE"
        (row,) = rows(other, "SHOW PROXY TRANSACTIONS")
        assert row["Last_statement"] == shown["Statement"]
        assert float(row["Age"]) >= 0
        client.ask("COMMIT")
        assert session(other, client.id)["Transaction"] is None


def test_digests_survive_a_change_of_the_topology(proxy: OwnProxy) -> None:
    """In both workers, and counts go on where they were."""
    clients = [proxy.raw()]

    def both() -> bool:
        clients.append(proxy.raw())
        return len({client.id >> 24 for client in clients}) == 2

    wait_until(both, "clients of both workers")
    clients = [clients[0], clients[-1]]
    board = int(clients[0].ask("SELECT id FROM boards LIMIT 1").value or 0)

    def counted() -> list[int]:
        for client in clients:
            assert client.ask(f"SELECT data AS kept FROM boards WHERE id = {board}").kind == "rows"
        shown = rows(clients[0], "SHOW PROXY QUERIES LIKE '%AS kept%'")
        return [int(row["Count"]) for row in shown]

    assert counted() == [2]
    before = rows(clients[1], f"SHOW SHARDS LIKE 'db{shard_of(board):05d}'")[0]["Total"]
    proxy.change_topology({**proxy.topology, "version": proxy.topology["version"] + 1})
    assert counted() == [4]
    after = rows(clients[1], f"SHOW SHARDS LIKE 'db{shard_of(board):05d}'")[0]["Total"]
    assert int(after) == int(before) + 2


def test_values_are_none_of_a_digest_s_whatever_it_was_read_with(proxy: OwnProxy) -> None:
    """Which bytes are literals depends on settings, which may be others by the time that it is told of."""
    other, client = proxy.raw(), proxy.raw()
    client.ask("SET NAMES gbk")
    sql = b"SELECT SLEEP(0.4), '\xbf\\', 'secret', 'it\\'s' AS chinese"
    client.write(query(sql))
    wait_until(lambda: session(other, client.id)["Statement"] is not None, "it is shown")
    assert session(other, client.id)["Statement"] == b"SELECT SLEEP(?), ?, ?, ? AS chinese"
    assert client.reply().kind == "rows"
    assert slow(proxy, "chinese")["digest"] == "SELECT SLEEP(?), ?, ?, ? AS chinese"
    client.ask("SET NAMES utf8mb4")
    prepared = Binary(client)
    statement = prepared.statement('SELECT "secret", SLEEP(0) AS quoted')
    client.ask("SET sql_mode = 'ANSI_QUOTES', @x = \"secret\"")
    assert prepared.execute(statement.id).kind in ("rows", "err")  # MySQL asks for another PREPARE
    assert slow(proxy, "AS quoted")["digest"] == "SELECT ?, SLEEP(?) AS quoted"
    client.ask("SELECT 12.5e0 + 4111111111111111e0 AS floating")
    assert slow(proxy, "floating")["digest"] == "SELECT ? + ? AS floating"
    wait_until(lambda: '"digest": "SET"' in proxy.log.read_text(), "the line of SET")
    text = proxy.log.read_text()
    assert not [value for value in ("secret", "4111111111111111") if value in text]


def test_of_a_long_statement_the_beginning_is_told(proxy: OwnProxy) -> None:
    """A worker that reads megabytes for a line of its log serves nobody meanwhile."""
    client = proxy.raw()
    client.ask("SELECT SLEEP(0) AS long, " + "1+" * 100_000 + "1")
    found = slow(proxy, "AS long")["digest"]
    assert found.startswith("SELECT SLEEP(?) AS long, ?+?+")
    assert len(found) <= 500


def test_commands_without_a_text_have_their_names(proxy: OwnProxy) -> None:
    client = proxy.raw()
    client.ping()
    client.do(INIT_DB, b"demo")
    client.do(RESET_CONNECTION)
    assert client.do(0x77).code == 1047
    client.ask("SELECT 1 AS done")
    assert slow(proxy, "AS done")["plan"] != "command"
    lines = [json.loads(line) for line in proxy.log.read_text().splitlines() if '"slow statement"' in line]
    found = [line["digest"] for line in lines if line["client"] == client.id and line["plan"] == "command"]
    assert found == ["COM_CONNECT", "COM_PING", "COM_INIT_DB", "COM_RESET_CONNECTION", "0x77"]
