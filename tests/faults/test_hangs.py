"""A host that hangs: its statements end with a clear error, others go on, and it is used again afterwards."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.faults.cluster import Faulty
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import Raw, query
from tests.support.demo import Demo, DemoHost, stop_process
from tests.support.waiting import wait_until

Start = Callable[..., Faulty]
QUICK = {
    "backends": {"hang_timeout": "3s", "connect_timeout": "3s", "queue_timeout": "4s"},
    "timeouts": {"buffer": 0},  # nobody waits: the demo's own proxy would find that the host hangs, too
}

EXPECTED = ("host hangs",)


@contextmanager
def stopped(host: DemoHost) -> Iterator[None]:
    """The server's process is stopped: the kernel still takes connections and bytes, nobody answers."""
    stop_process(host.pid)
    try:
        yield
    finally:
        os.kill(host.pid, signal.SIGCONT)


def running(proxy: OwnProxy, host: DemoHost, marker: str) -> int:
    """How many statements with this text the server runs."""
    with proxy.demo.connect(
        host=host.host, port=host.port, user=host.user, password=host.password, database="mysql"
    ) as direct:
        cursor = direct.cursor()
        cursor.execute("SHOW FULL PROCESSLIST")
        return sum(marker in str(row[7]) for row in cursor.fetchall())


def works(client: Raw, sql: str) -> Callable[[], bool]:
    return lambda: client.ask(sql).kind == "rows"


@pytest.mark.one_server
def test_a_stopped_server(demo: Demo, own: MakeOwn) -> None:
    proxy = own(QUICK, expected=EXPECTED)
    host, other = demo.masters[0], demo.masters[1]
    ids = [int(row[0] or 0) for row in proxy.raw().ask("SELECT id FROM users ORDER BY id").rows]
    here, locked, *_ = (id for id in ids if id >> 46 < 32)
    there = next(id for id in ids if id >> 46 >= 32)
    names = ("point", "sleep", "commit", "update", "both", "idle")
    clients = {name: proxy.raw(timeout=20) for name in names}
    bystander = proxy.raw()
    for name in ("commit", "idle"):
        clients[name].ask("BEGIN")
        assert clients[name].ask(f"SELECT * FROM users WHERE id = {here}").kind == "rows"
    # it locks the row and leaves it as it is: the server may run COMMIT yet, and other tests compare the rows
    assert clients["commit"].ask(f"UPDATE users SET ts = ts WHERE id = {locked}").kind == "ok"
    clients["sleep"].write(query(f"SELECT SLEEP(60), 'marked' FROM users WHERE id = {here}"))
    wait_until(lambda: running(proxy, host, "SLEEP(60), 'marked'") == 1, "it runs")
    with stopped(host):
        clients["point"].write(query(f"SELECT * FROM users WHERE id = {here}"))
        clients["commit"].write(query("COMMIT"))
        clients["update"].write(query(f"UPDATE users SET ts = ts WHERE id = {here}"))
        clients["both"].write(query(f"SELECT COUNT(*) FROM users WHERE id IN ({here}, {there})"))
        assert bystander.ask(f"SELECT id FROM users WHERE id = {there}").kind == "rows"
        assert not select.select([clients["point"].sock], [], [], 0)[0], "that did not wait for the others"
        for name in ("point", "sleep", "commit", "update", "both"):
            reply = clients[name].reply()
            assert reply.kind == "err", (name, reply)
            if reply.code != 1429:  # by the new connection that it waited for
                assert (reply.code, reply.sqlstate) in ((1159, "HY000"), (1105, "HY000")), (name, reply)
                assert "said nothing for 3 s" in reply.message, (name, reply)
            assert host.address in reply.message, (name, reply)
        lost = clients["idle"].ask(f"SELECT * FROM users WHERE id = {here}")
        assert (lost.kind, lost.code) == ("err", 1053), lost
        lost = clients["idle"].ask("SELECT 1")
        assert lost.code == 1053, "the transaction is lost as a whole"
        assert "may or may not" not in lost.message, "one thing is said of it: that it is rolled back"
        assert bystander.ask(f"SELECT id FROM users WHERE id = {there}").kind == "rows"
        refused = bystander.ask(f"SELECT id FROM users WHERE id = {here}")
        assert refused.kind == "err", refused
    for client in clients.values():
        client.ask("ROLLBACK")
        wait_until(works(client, f"SELECT * FROM users WHERE id = {here}"), "the host is used again")
        assert client.ask("SELECT 1").value == b"1"
    wait_until(lambda: running(proxy, host, "SLEEP(60), 'marked'") == 0, "what ran is ended")
    assert proxy.raw().ask(f"UPDATE users SET ts = ts WHERE id = {locked}").kind == "ok", "no lock is left"
    assert other.address in str(proxy.status()["hosts"])
    proxy.close_clients()
    proxy.wait_idle(clients=0)


@pytest.mark.either_server
def test_a_server_at_work_is_left_alone(demo: Demo, own: MakeOwn) -> None:
    proxy = own({"backends": {"hang_timeout": "2s"}})  # half of it is for an answer, from a busy machine too
    holder, waiting, sleeper = (proxy.raw(database="legacy", timeout=20) for _ in range(3))
    holder.ask("BEGIN")
    holder.ask("UPDATE customers SET name = name")
    waiting.write(query("UPDATE customers SET name = name"))
    assert sleeper.ask("SELECT SLEEP(3.5) FROM (SELECT 1) t").kind == "rows"
    holder.ask("ROLLBACK")
    assert waiting.reply().kind == "ok"
    big = proxy.raw(database="legacy", receive_buffer=65536)
    big.write(query("SELECT REPEAT('x', 100000) FROM customers a, customers b LIMIT 400"))
    assert sleeper.ask("SELECT SLEEP(3) FROM (SELECT 1) t").kind == "rows"
    assert len(big.reply().rows) == 400, "a client that reads slowly"


@pytest.mark.one_server
@pytest.mark.parametrize("part", [3, 20, 0.5])
def test_half_a_reply(faulty: Start, part: float) -> None:
    """The rest is lost on its way, on this one connection: the host says that it has done its work."""
    cluster = faulty({"backends": {"hang_timeout": "1s"}})
    first, _ = cluster.users()
    client, other = cluster.client(), cluster.client()
    sql = f"SELECT id, REPEAT('x', 2000) FROM users WHERE id = {first[0]}"
    assert client.ask(sql).kind == "rows"

    lost: list[int] = []

    def half(number: int, piece: bytes) -> tuple[bytes, bool]:
        if b"x" * 100 not in piece or lost:
            return piece, False
        lost.append(number)
        return piece[: int(len(piece) * part) if part < 1 else int(part)], False

    cluster.links[0].spoil(half)
    client.write(query(sql))
    wait_until(lambda: bool(lost), "half a reply is there")
    assert other.ask(f"SELECT id FROM users WHERE id = {first[0]}").kind == "rows"
    reply = client.reply()
    assert (reply.kind, reply.code, reply.sqlstate) == ("err", 1158, "HY000"), reply
    assert client.ask(sql).kind == "rows"
    cluster.proxy.close_clients()
    cluster.proxy.wait_idle(clients=0)


@pytest.mark.one_server
def test_a_way_that_is_cut(faulty: Start) -> None:
    """Nothing passes any more, in either direction, and connections stay open: as with a broken switch."""
    cluster = faulty({"backends": {"hang_timeout": "1s"}}, EXPECTED)
    first, second = cluster.users()
    clients = [cluster.client() for _ in range(4)]
    for client in clients:
        client.ask("BEGIN")
        assert client.ask(f"SELECT id FROM users WHERE id = {first[0]}").kind == "rows"
    cluster.links[0].stall()
    for client in clients:
        client.write(query(f"SELECT id FROM users WHERE id = {first[0]}"))
    for client in clients:
        reply = client.reply()
        assert (reply.kind, reply.code) == ("err", 1053), reply
        assert "Got timeout reading communication packets" in reply.message
        assert client.ask(f"SELECT id FROM users WHERE id = {second[0]}").code == 1053
        assert client.ask("ROLLBACK").kind == "ok"
        assert client.ask(f"SELECT id FROM users WHERE id = {second[0]}").kind == "rows"
    cluster.links[0].pass_on()
    wait_until(works(clients[0], f"SELECT id FROM users WHERE id = {first[0]}"), "the host is used again")
    cluster.proxy.close_clients()
    cluster.proxy.wait_idle(clients=0)
