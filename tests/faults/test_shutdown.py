"""SIGTERM: what runs ends well, nobody new comes in, and the process is gone."""

from __future__ import annotations

import signal
import sys
import urllib.error
from pathlib import Path

import pytest

from demo.process import spawn, stop_all
from tests.integration.fixtures import MakeOwn
from tests.integration.raw import Closed, Raw, query
from tests.support.waiting import wait_until


def refused(host: str, port: int) -> bool:
    """Whether a new client is turned away."""
    try:
        with Raw(host, port, timeout=10) as client:
            greeting = client.greeting()
            return greeting is not None and greeting.code == 1053
    except (OSError, Closed):
        return True


@pytest.mark.one_server
def test_drain(own: MakeOwn) -> None:
    proxy = own()
    user = (proxy.raw().ask("SELECT MAX(id) FROM users").value or b"").decode()
    idle, running, holder = proxy.raw(), proxy.raw(), proxy.raw()
    holder.ask("BEGIN")
    assert holder.ask(f"UPDATE users SET ts = ts WHERE id = {user}").kind == "ok"
    running.write(query(f"SELECT SLEEP(3), id FROM users WHERE id = {user}"))
    wait_until(lambda: proxy.status()["clients"]["busy"] == 1, "the statement at work")
    proxy.signal(signal.SIGTERM)
    assert idle.closed
    wait_until(lambda: refused(proxy.proxy.host, proxy.proxy.port), "new clients are refused")
    assert running.reply().rows[0][1] == user.encode()
    assert holder.ask(f"SELECT id FROM users WHERE id = {user}").value == user.encode()
    assert proxy.proxy.alive
    assert holder.ask("COMMIT").kind == "ok"
    with pytest.raises(Closed):
        holder.exactly(1)
    process = proxy.proxy.process
    assert process is not None
    assert process.wait(60) == 0


@pytest.mark.one_server
def test_a_new_process_takes_over(own: MakeOwn, tmp_path: Path) -> None:
    """It listens beside the old one, which drains and leaves it the clients and the status port."""
    old = own()
    holder = old.raw(database="legacy")
    holder.ask("BEGIN")
    assert holder.ask("SELECT 1").value == b"1"
    log = tmp_path / "new.log"
    command = [sys.executable, "-m", "proxy", "serve", "--config", str(old.proxy.settings)]
    new = spawn(command, log)
    try:
        wait_until(lambda: '"event": "serving"' in log.read_text(), "the new process serves")
        old.signal(signal.SIGTERM)
        wait_until(lambda: "another process answers" in old.log.read_text(), "the old one steps aside")
        for _ in range(10):
            assert old.status()["process"]["pid"] == new.pid
            assert old.raw().ask("SELECT 1").value == b"1"
        assert holder.ask("SELECT 2").value == b"2"
        assert holder.ask("COMMIT").kind == "ok"
        assert old.proxy.process is not None
        assert old.proxy.process.wait(60) == 0
        assert old.raw().ask("SELECT 1").value == b"1"
    finally:
        stop_all([new])
    assert new.returncode == 0


@pytest.mark.one_server
def test_the_status_page_stays_until_all_workers_are_done(own: MakeOwn) -> None:
    proxy = own({"workers": 2})
    holders = [proxy.raw(database="legacy")]

    def of_the_second() -> bool:
        holders.append(proxy.raw(database="legacy"))
        return holders[-1].id >> 24 == 1

    wait_until(of_the_second, "a client of the second worker")
    holders[-1].ask("BEGIN")
    assert holders[-1].ask("SELECT COUNT(*) FROM customers").kind == "rows"
    proxy.signal(signal.SIGTERM)
    assert holders[0].closed

    def is_alone() -> bool:
        try:
            return proxy.metric("shardgate_client_connections") == 1
        except urllib.error.URLError:
            return False  # it leaves its port for a moment, to see whether a successor has it

    wait_until(is_alone, "only that client is left")
    assert proxy.metric("shardgate_draining") == 1
    assert proxy.metric("shardgate_client_sessions_in_transaction") == 1
    assert holders[-1].ask("COMMIT").kind == "ok"
    assert proxy.proxy.process is not None
    assert proxy.proxy.process.wait(60) == 0


@pytest.mark.one_server
def test_draining_has_a_limit(own: MakeOwn) -> None:
    proxy = own({"timeouts": {"drain": "500ms"}})
    holder = proxy.raw(database="legacy")
    holder.ask("BEGIN")
    holder.ask("UPDATE customers SET city = 'Nowhere' WHERE id = 1")
    proxy.signal(signal.SIGTERM)
    process = proxy.proxy.process
    assert process is not None
    assert process.wait(60) == 0
    with pytest.raises(Closed):
        holder.exactly(1)
    with proxy.demo.direct(0) as server, server.cursor() as cursor:

        def rolled_back() -> bool:
            cursor.execute("SELECT COUNT(*) FROM information_schema.innodb_trx")
            return cursor.fetchall() == ((0,),)

        wait_until(rolled_back, "the transaction is rolled back")
        cursor.execute("SELECT COUNT(*) FROM legacy.customers WHERE city = 'Nowhere'")
        assert cursor.fetchall() == ((0,),)


def test_idle_clients_are_disconnected(own: MakeOwn, flavour: str) -> None:
    proxy = own({"timeouts": {"idle_client": "600ms"}})
    client = proxy.raw()
    if flavour == "mysql9":  # which says why; MariaDB just goes
        assert int.from_bytes(client.packet([])[1:3], "little") == 4031
    assert client.closed
