"""`Bank`: two servers with accounts, transfers between them through a proxy, and what must hold afterwards.

Each transfer takes an amount from an account on one server and gives it to one on the other, and writes its
number into a table on both. So every transfer shows whether it is on both servers or on none.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import pymysql

from config import xa
from demo.programs import Program
from demo.servers import start_all, stop_servers
from tests.faults.trap import Trap
from tests.support.servers import LocalServer
from tests.support.template import template_of
from tests.support.waiting import wait_until
from tests.support.zygote import ForkedProxy

ACCOUNTS = 8
AMOUNT = 1000
NAMES = ("here", "there")
PAUSE = 0.01
"""Seconds between two transfers of a client: the servers that start again need the machine, too."""
CERTAIN = frozenset({1213, 1053})
"""What says that nothing of a transaction was done."""
_TABLES = (
    "CREATE TABLE accounts (id INT PRIMARY KEY, amount BIGINT NOT NULL)",
    "CREATE TABLE done (n BIGINT PRIMARY KEY)",
    f"INSERT INTO accounts VALUES {', '.join(f'({n}, {AMOUNT})' for n in range(ACCOUNTS))}",
)


class Bank:
    """A context manager. `traps` stand between the proxy and the servers; `proxy` serves port `port`."""

    def __init__(self, program: Program, directory: Path) -> None:
        template = template_of(program)
        self.servers = [
            LocalServer(
                program,
                directory / name,
                name=name,
                template=template,
                server_id=n,
                binlog=True,
                durable=True,
            )
            for n, name in enumerate(NAMES, 1)
        ]
        self.directory = directory
        self.traps: list[Trap] = []
        self.proxy: ForkedProxy
        self.next = 0
        self.acknowledged: set[int] = set()
        self.refused: set[int] = set()  # with an error that says that nothing was done
        self.problems: list[str] = []
        self.asked = 0.0
        self.killed: list[subprocess.Popen[bytes]] = []
        self.lock = threading.Lock()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self) -> None:
        start_all(self.servers)
        self._stack.callback(stop_servers, self.servers)
        for server, name in zip(self.servers, NAMES, strict=True):
            with server.connect() as connection, connection.cursor() as cursor:
                for sql in (f"CREATE DATABASE {name}", f"USE {name}", *_TABLES, *xa.create_sql()):
                    cursor.execute(sql)
            self.traps.append(self._stack.enter_context(Trap(server.host, server.port)))
        directory = self.directory / "proxy"
        directory.mkdir()
        (directory / "schema.yaml").write_text(
            json.dumps({"databases": {name: {"keyspace": name} for name in NAMES}})
        )
        first, second = (trap.address for trap in self.traps)
        keyspaces = {name: {"master": at} for name, at in zip(NAMES, (first, second), strict=True)}
        topology = {"version": 1, "default": {"master": first}, "keyspaces": keyspaces}
        (directory / "topology.json").write_text(json.dumps(topology))
        self.proxy = ForkedProxy(directory, port=0, page=True)
        self._stack.callback(self.proxy.release)
        self._stack.callback(self.kill_proxy)
        self.proxy.configure(
            {
                "listen": f"127.0.0.1:{self.proxy.port}",
                "status": {"listen": f"127.0.0.1:{self.proxy.status_port}"},
                "workers": 2,
                "users": [{"name": "demo", "password": "demo", "role": "admin", "transaction_mode": "xa"}],
                "backends": self._login(),
                "topology": {"file": "topology.json"},
                "schema": "schema.yaml",
                "xa": {"enabled": True, "resolve_after": "300ms", "keep": "2s"},
                "timeouts": {"buffer": 0, "drain": "2s"},
            }
        )
        self.proxy.start()

    def _login(self) -> dict[str, Any]:
        hosts = {
            trap.address: {"user": server.user, "password": server.password}
            for trap, server in zip(self.traps, self.servers, strict=True)
        }
        return {
            "user": "root",
            "password": "",
            "hosts": hosts,
            "connect_timeout": "2s",
            "health_interval": "500ms",
        }

    # -- killing, and what comes after it
    # ----------------------------------------------------------------------------------------------

    def kill_proxy(self) -> None:
        """All processes of it."""
        process = self.proxy.process
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            self.killed.append(process)

    def kill(self, victim: str, first: int) -> None:
        """`victim`: proxy, first (the host that decides: of this index), or branch (the other)."""
        if victim == "proxy":
            self.kill_proxy()
        else:
            process = self.servers[first if victim == "first" else 1 - first].process
            assert process is not None
            os.kill(process.pid, signal.SIGKILL)
            self.killed.append(process)

    def wait_killed(self) -> None:
        """Until it is gone."""
        while self.killed:
            self.killed.pop().wait(30)

    def revive(self) -> None:
        """Start again what was killed."""
        self.wait_killed()
        for server in self.servers:
            if server.process is not None and server.process.poll() is not None:
                server.start()
        if self.proxy.process is not None and self.proxy.process.poll() is not None:
            self.proxy.start()

    # -- transfers
    # ----------------------------------------------------------------------------------------------------

    def transfer(self, cursor: Any, number: int, first: int) -> None:
        """One transaction, which begins on the server `first`."""
        giver, taker = NAMES[first], NAMES[1 - first]
        account, amount = number % ACCOUNTS, number % 7 + 1
        cursor.execute("BEGIN")
        cursor.execute(f"UPDATE {giver}.accounts SET amount = amount - {amount} WHERE id = {account}")
        cursor.execute(f"INSERT INTO {giver}.done VALUES ({number})")
        cursor.execute(f"UPDATE {taker}.accounts SET amount = amount + {amount} WHERE id = {account}")
        cursor.execute(f"INSERT INTO {taker}.done VALUES ({number})")
        cursor.execute("COMMIT")

    def number(self) -> int:
        """That of the next transfer."""
        with self.lock:
            self.next += 1
            return self.next

    def connect(self) -> Any:
        """A client of the proxy."""
        return pymysql.connect(
            host=self.proxy.host,
            port=self.proxy.port,
            user="demo",
            password="demo",
            autocommit=True,
            ssl_disabled=True,
            connect_timeout=30,
            read_timeout=60,
        )

    def transfers(self, stop: threading.Event, first: int) -> None:
        """Until told to stop, whatever is killed meanwhile."""
        connection: Any = None
        while not stop.is_set():
            number = self.number()
            try:
                if connection is None or not connection.open:
                    connection = self.connect()
                with connection.cursor() as cursor:
                    self.transfer(cursor, number, first)
                self.acknowledged.add(number)
                stop.wait(PAUSE)
            except (pymysql.MySQLError, OSError) as error:
                if error.args and error.args[0] in CERTAIN:
                    self.refused.add(number)
                with suppress(pymysql.MySQLError, OSError):
                    if connection is not None:
                        connection.close()
                connection = None
                stop.wait(0.02)
            except Exception as error:
                self.problems.append(repr(error))
                return
        with suppress(pymysql.MySQLError, OSError):
            if connection is not None:
                connection.close()

    def serves(self, cursor: Any, first: int) -> bool:
        """Whether this client's worker does a transfer. (Each tries a host again in its own time.)"""
        number = self.number()
        try:
            self.transfer(cursor, number, first)
        except pymysql.MySQLError:
            cursor.execute("ROLLBACK")
            return False
        self.acknowledged.add(number)
        return True

    def clients(self, count: int, first: int) -> Iterator[None]:
        """Run `count` of them while the generator is at its one pause."""
        stop = threading.Event()
        threads = [threading.Thread(target=self.transfers, args=(stop, first)) for _ in range(count)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join(90)

    # -- what must hold
    # ------------------------------------------------------------------------------------------------

    def rows(self, index: int, sql: str) -> list[tuple[Any, ...]]:
        """Of a server, asked past the proxy."""
        with self.servers[index].connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def settled(self) -> bool:
        """Whether nothing is prepared, and no transaction is open. (Servers make innodb_trx anew only when it
        has not been asked for a tenth of a second.)
        """
        if time.monotonic() < self.asked + 0.2:
            return False
        self.asked = time.monotonic()
        return not any(
            self.rows(index, "XA RECOVER")
            or self.rows(index, "SELECT trx_id FROM information_schema.innodb_trx WHERE trx_state <> ''")
            for index in (0, 1)
        )

    def check(self) -> float:
        """Wait until all is finished; the seconds that it took. AssertionError when something is wrong."""
        begun = time.monotonic()
        wait_until(self.settled, "nothing is prepared any more", 40)
        took = time.monotonic() - begun
        done = [
            {int(n) for (n,) in self.rows(index, f"SELECT n FROM {NAMES[index]}.done")} for index in (0, 1)
        ]
        sums = [
            int(self.rows(index, f"SELECT SUM(amount) FROM {NAMES[index]}.accounts")[0][0])
            for index in (0, 1)
        ]
        assert done[0] == done[1], f"on one server only: {sorted(done[0] ^ done[1])}"
        assert sum(sums) == 2 * ACCOUNTS * AMOUNT, sums
        assert self.acknowledged <= done[0], f"acknowledged and lost: {sorted(self.acknowledged - done[0])}"
        assert not self.refused & done[0], f"refused and there: {sorted(self.refused & done[0])}"
        assert not self.problems, self.problems
        return took
