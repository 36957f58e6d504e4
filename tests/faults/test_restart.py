"""A proxy is replaced by another while clients come and go: nobody is turned away, nothing fails."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiomysql
import pytest
from sqlalchemy import create_engine, text

from proxy.engine.work import Leaving
from proxy.frontend.drain import ask_to_leave
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import PING, Closed, Raw, command, query
from tests.support.demo import gone
from tests.support.waiting import wait_until
from tests.support.zygote import zygote

pytestmark = pytest.mark.one_server


class Clients:
    """Applications, a thread each, that work without pause. `errors` are what they have met."""

    def __init__(self, proxy: OwnProxy) -> None:
        self.proxy = proxy
        self.errors: list[str] = []
        self.done: dict[str, int] = {}
        self._over = threading.Event()
        ways: dict[str, Callable[[str], None]] = {
            "connects": self._connect,
            "connects too": self._connect,
            "sqlalchemy": self._sqlalchemy,
            "aiomysql": lambda name: asyncio.run(self._aiomysql(name)),
        }
        self._threads = [threading.Thread(target=self._run, args=one) for one in ways.items()]

    def __enter__(self) -> Clients:
        for one in self._threads:
            one.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for one in self._threads:
            one.join(60)

    def all_go_on(self) -> None:
        """Wait until each has done something more."""
        before = dict(self.done)
        wait_until(
            lambda: (
                bool(self.errors)
                or (
                    len(self.done) == len(self._threads)
                    and all(count > before.get(name, 0) for name, count in self.done.items())
                )
            ),
            "all clients go on",
        )

    def _run(self, name: str, way: Callable[[str], None]) -> None:
        try:
            way(name)
        except Exception as error:
            self.errors.append(f"{name}, after {self.done.get(name, 0)}: {error!r}")

    def _did(self, name: str) -> None:
        self.done[name] = self.done.get(name, 0) + 1

    def _connect(self, name: str) -> None:
        """A connection for each transaction."""
        while not self._over.is_set():
            with self.proxy.demo.connect(port=self.proxy.proxy.port) as own, own.cursor() as cursor:
                cursor.execute("BEGIN")
                cursor.execute("SELECT COUNT(*) FROM legacy.customers")
                cursor.execute("UPDATE legacy.customers SET city = city WHERE id = 1")
                own.commit()
            self._did(name)

    def _sqlalchemy(self, name: str) -> None:
        """A pool that pings, and whose connections are used all the time."""
        url = f"mysql+pymysql://demo:demo@127.0.0.1:{self.proxy.proxy.port}/legacy"
        engine = create_engine(url, pool_pre_ping=True, pool_size=2)
        while not self._over.is_set():
            with engine.begin() as connection:
                connection.execute(text("SELECT COUNT(*) FROM customers"))
            self._did(name)
        engine.dispose()

    async def _aiomysql(self, name: str) -> None:
        """A pool that looks whether a connection has ended. Autocommit: no reply ends a transaction."""
        place: dict[str, Any] = {"host": "127.0.0.1", "port": self.proxy.proxy.port}
        async with aiomysql.create_pool(
            **place, user="demo", password="demo", minsize=3, maxsize=3, autocommit=True
        ) as pool:
            while not self._over.is_set():
                async with pool.acquire() as connection, connection.cursor() as cursor:
                    await cursor.execute("SELECT COUNT(*) FROM legacy.customers")
                self._did(name)


def test_one_proxy_after_another(own: MakeOwn, tmp_path: Path) -> None:
    """With other numbers of workers, and the second handed on what it was handed."""
    proxy = own({"workers": 2, "timeouts": {"drain": "2s"}})
    current: Any = proxy.proxy.process
    started = []
    try:
        with Clients(proxy) as clients:
            clients.all_go_on()
            for workers in (3, 1):
                proxy.proxy.configure(proxy.settings | {"workers": workers})
                log = tmp_path / f"of{workers}.log"
                argv = [sys.executable, "-m", "proxy", "serve", "--config", str(proxy.proxy.settings)]
                successor = zygote().popen(argv, log, {**os.environ, "TMPDIR": str(tmp_path)})
                started.append(successor)
                wait_until(lambda: log.read_text().count('"event": "serving"') == workers, "it serves")  # noqa: B023
                assert '"listening sockets shared"' in log.read_text()
                os.kill(current.pid, signal.SIGTERM)
                assert current.wait(60) == 0
                clients.all_go_on()
                current = successor
        assert clients.errors == []
        for log in (proxy.log, tmp_path / "of3.log"):
            events = [json.loads(line)["event"] for line in log.read_text().splitlines()]
            assert "drained: the time is over, clients were cut off" not in events
            assert "a successor shares the listening sockets" in events
    finally:
        for one in started:
            one.terminate()
            one.wait(60)


def test_who_waits_for_a_worker_that_dies_is_served_by_the_next(own: MakeOwn) -> None:
    proxy = own({"workers": 2}, expected=("a worker ended",))
    main = proxy.proxy.pid
    children = Path(f"/proc/{main}/task/{main}/children").read_text().split()
    victim = int(children[0])
    began = time.monotonic()
    wait_until(lambda: time.monotonic() > began + 2, "it has lived long enough to be replaced at once")
    os.kill(victim, signal.SIGSTOP)
    waiting: list[Raw] = []

    def waits() -> bool:
        """A client that the stopped worker does not greet."""
        client = Raw(proxy.proxy.host, proxy.proxy.port, timeout=0.5)
        try:
            client.greeting()
        except TimeoutError:
            waiting.append(client)
        else:
            client.close()
        return bool(waiting)

    wait_until(waits, "a client waits")
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: gone(victim), "its end")
    with waiting[0] as client:
        client.sock.settimeout(60)
        assert client.login(database="demo").kind == "ok"
        assert client.ask("SELECT 1").value == b"1"


def test_a_ping_while_it_drains_is_not_answered(own: MakeOwn) -> None:
    """Nothing is said, the connection ends; a transaction goes on."""
    proxy = own({"timeouts": {"drain": "20s"}})
    holder, idle, busy = proxy.raw(), proxy.raw(), proxy.raw()
    holder.ask("BEGIN")
    busy.write(query("SELECT SLEEP(1)"))
    wait_until(lambda: proxy.status()["clients"]["busy"] == 1, "the statement at work")
    proxy.signal(signal.SIGTERM)
    proxy.logged("draining")
    assert busy.reply().kind == "rows"
    busy.write(command(PING))
    with pytest.raises(Closed):
        busy.exactly(1)
    assert idle.closed
    holder.write(command(PING))
    assert holder.reply().kind == "ok"
    assert holder.ask("COMMIT").kind == "ok"
    process = proxy.proxy.process
    assert process is not None
    assert process.wait(60) == 0


class _Client:
    """What `ask_to_leave` looks at."""

    def __init__(self, idle: float | None, within: bool) -> None:
        self.ready = idle is not None
        self.begun = 100.0 - (idle or 0.0)
        self.leaving = Leaving.NOT
        self.descriptor = -1
        self.ended = False
        self.session: Any = self
        self.transaction: Any = self
        self.open = within

    def close(self) -> None:
        self.ended = True


@pytest.mark.parametrize(
    ("passed", "idle", "within", "expected"),
    [
        (0.0, 5.0, False, "ended"),
        (0.0, 0.3, False, "stays"),
        (0.0, 5.0, True, "stays"),
        (0.0, None, False, "stays"),
        (10.1, None, True, "asked"),
        (10.1, 5.0, True, "asked"),
        (10.1, None, False, "stays"),
        (15.1, None, False, "asked"),
        (15.1, 0.3, False, "asked"),
    ],
)
def test_who_is_asked_to_leave(passed: float, idle: float | None, within: bool, expected: str) -> None:
    client = _Client(idle, within)
    services: Any = type("", (), {"clients": type("", (), {"sessions": {1: client}})})
    ask_to_leave(services, 100.0, 100.0 - passed, 20.0, 99.98)
    found = "ended" if client.ended else "asked" if client.leaving else "stays"
    assert found == expected


def test_nobody_is_ended_whose_command_waits_or_who_had_no_processor() -> None:
    near, far = socket.socketpair()
    with near, far:
        client = _Client(5.0, within=False)
        client.descriptor = near.fileno()
        services: Any = type("", (), {"clients": type("", (), {"sessions": {1: client}})})
        ask_to_leave(services, 100.0, 90.0, 20.0, before=99.5)
        assert not client.ended
        far.send(b"a command")
        ask_to_leave(services, 100.0, 90.0, 20.0, before=99.98)
        assert not client.ended
        near.recv(100)
        ask_to_leave(services, 100.0, 90.0, 20.0, before=99.98)
        assert client.ended
