"""Slow clients, full pools: waiting has a limit, memory has a bound, and all is well afterwards."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.faults.cluster import Faulty
from tests.integration.fixtures import MakeOwn
from tests.integration.raw import query
from tests.support.waiting import wait_until, wait_until_is

pytestmark = pytest.mark.one_server

Start = Callable[..., Faulty]
MB = 1 << 20


def test_a_slow_reader_stops_the_reading(faulty: Start) -> None:
    """400 MB are asked for and not read: little of it is taken from the servers, less is held."""
    cluster = faulty()
    first, second = cluster.users()
    other = cluster.client()
    before = cluster.proxy.status()["process"]["memory_bytes"]
    listed = ",".join((*first[:100], *second[:100]))
    for sql in (
        "SELECT REPEAT('x', 100000) FROM legacy.customers a, legacy.customers b LIMIT 4000",
        f"SELECT REPEAT('x', 1000000) AS x FROM users WHERE id IN ({listed})",
        f"SELECT REPEAT('x', 1000000) AS x, id FROM users WHERE id IN ({listed}) ORDER BY id",
    ):
        slow = cluster.proxy.raw(receive_buffer=65536)
        start = cluster.read
        slow.write(query(sql))
        wait_until(cluster.stands_still(start + MB), "the reading stops")
        assert cluster.read - start < 60 * MB, sql
        assert cluster.proxy.status()["process"]["memory_bytes"] - before < 80 * MB, sql
        assert other.ask(f"SELECT id FROM users WHERE id = {first[0]}").kind == "rows"
        slow.close()
        cluster.proxy.wait_idle()


def test_a_slow_reader_gets_everything(faulty: Start) -> None:
    cluster = faulty()
    first, second = cluster.users()
    slow = cluster.proxy.raw(receive_buffer=65536)
    listed = ",".join((*first[:15], *second[:15]))
    sql = f"SELECT REPEAT('x', 1000000) AS x, id FROM users WHERE id IN ({listed}) ORDER BY id"
    slow.write(query(sql))
    wait_until(cluster.stands_still(), "the reading stops")
    reply = slow.reply()
    assert [row[1] for row in reply.rows] == sorted(
        (id.encode() for id in (*first[:15], *second[:15])), key=lambda id: int(id)
    )
    assert {len(row[0] or b"") for row in reply.rows} == {1_000_000}
    assert slow.ask("SELECT 1").value == b"1"


def test_a_full_pool(own: MakeOwn) -> None:
    """Two connections: the third statement waits; the queue has a limit; who waits is served in time."""
    proxy = own({"backends": {"max_connections": 2, "queue_length": 2, "queue_timeout": "5m"}})
    holders, waiting = (
        [proxy.raw(database="legacy") for _ in range(2)],
        [proxy.raw(database="legacy") for _ in "12"],
    )
    for holder in holders:
        holder.ask("BEGIN")
        assert holder.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    for client in waiting:
        client.write(query("SELECT COUNT(*) FROM orders"))
    host = proxy.topology["default"]["master"]
    wait_until(lambda: proxy.host_state(host)["waiting"] == 2, "two wait")
    refused = proxy.raw(database="demo").ask("SELECT * FROM usernames LIMIT 1")
    assert (refused.kind, refused.code, refused.sqlstate) == ("err", 1040, "HY000")
    assert "2 statements already wait" in refused.message
    assert holders[0].ask("COMMIT").kind == "ok"
    replies = [waiting[0].reply()]
    holders[1].close()
    replies.append(waiting[1].reply())
    assert [reply.kind for reply in replies] == ["rows", "rows"], replies
    pools = proxy.raw().ask("SHOW POOLS")
    assert any(host.encode() in row for row in pools.rows)
    proxy.close_clients()
    proxy.wait_idle(clients=0)


def test_waiting_has_a_limit(own: MakeOwn) -> None:
    proxy = own({"backends": {"max_connections": 1, "queue_timeout": "1s"}})
    holder, waiting = (proxy.raw(database="legacy") for _ in "12")
    holder.ask("BEGIN")
    assert holder.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    reply = waiting.ask("SELECT COUNT(*) FROM orders")
    assert (reply.kind, reply.code, reply.sqlstate) == ("err", 1040, "HY000"), reply
    assert "1.0 s" in reply.message
    assert holder.ask("COMMIT").kind == "ok"
    reply = waiting.ask("SELECT COUNT(*) FROM orders")
    assert reply.kind == "rows", reply
    proxy.close_clients()
    proxy.wait_idle(clients=0)


def test_idle_transactions_of_one_user_leave_something_for_the_others(own: MakeOwn) -> None:
    """And so do its statements that wait: the queue is not theirs alone."""
    proxy = own({"backends": {"max_connections": 10, "queue_length": 20, "queue_timeout": "8s"}})
    host = proxy.topology["default"]["master"]
    reader = proxy.raw(login=False)
    assert reader.login(user="reader", password="reader", database="legacy").kind == "ok"
    holders = [proxy.raw(database="legacy") for _ in range(30)]
    for holder in holders:
        assert holder.ask("BEGIN").kind == "ok"
    for holder in holders[:8]:
        assert holder.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    for holder in holders[8:]:
        holder.write(query("SELECT COUNT(*) FROM customers"))

    def counted() -> dict[str, object]:
        state = proxy.host_state(host)
        return {key: state[key] for key in ("busy", "waiting", "error")}

    full = {"busy": 8, "waiting": 16, "error": ""}
    wait_until_is(counted, full, "as many are served, and wait, as may", 20)
    assert reader.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    refused = [holder.reply() for holder in holders[8:]]
    assert {(reply.code, reply.sqlstate) for reply in refused} == {(1203, "42000")}
    assert "User 'demo' has 8 connections to" in refused[-1].message
    assert reader.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    for holder in holders:
        holder.ask("ROLLBACK")
    assert holders[-1].ask("SELECT COUNT(*) FROM customers").kind == "rows"
    proxy.close_clients()
    proxy.wait_idle(clients=0)


def test_a_waiting_client_that_vanishes(own: MakeOwn) -> None:
    proxy = own({"backends": {"max_connections": 1}})
    holder = proxy.raw(database="legacy")
    holder.ask("BEGIN")
    holder.ask("SELECT COUNT(*) FROM customers")
    host = proxy.topology["default"]["master"]
    for sql in (
        "SELECT COUNT(*) FROM legacy.orders",
        "SELECT COUNT(*) FROM demo.users",
        "UPDATE users SET ts = ts WHERE id IN (206158430209, 4573968371548161)",
        "SET @x = CONCAT('a', 'b')",
    ):
        client = proxy.raw()
        client.write(query(sql))
        wait_until(lambda: proxy.host_state(host)["waiting"] == 1, f"it waits: {sql}")
        client.close()
        wait_until(lambda: proxy.status()["clients"]["connections"] == 1, "it is gone")
    holder.ask("ROLLBACK")
    assert proxy.raw().ask("SELECT COUNT(*) FROM users").kind == "rows"
    proxy.close_clients()
    proxy.wait_idle(clients=0)


def test_fan_outs_do_not_stop_each_other(own: MakeOwn) -> None:
    """Many fan-outs and writes over both hosts on one connection a host: all end, none waits for ever."""
    proxy = own({"backends": {"max_connections": 1, "queue_timeout": "20s"}})
    clients = [proxy.raw(timeout=30) for _ in range(12)]
    ids = ",".join((row[0] or b"").decode() for row in clients[0].ask("SELECT id FROM users").rows[::7])
    statements = (
        f"SELECT id FROM users WHERE id IN ({ids}) ORDER BY id DESC",
        f"SELECT COUNT(*) FROM users WHERE id IN ({ids})",
        f"UPDATE users SET ts = ts WHERE id IN ({ids})",
        "SELECT COUNT(*) FROM pins",
    )
    for _ in range(4):
        for number, client in enumerate(clients):
            client.write(query(statements[number % 4]))
        for client in clients:
            reply = client.reply()
            assert reply.kind != "err", reply
    proxy.close_clients()
    proxy.wait_idle(clients=0)
