"""A running ``shardgate demo``: started as a user would start it, described by its ready file."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiomysql
import pymysql

from demo.process import spawn, stop_all, tail
from demo.programs import Program
from fleet.core.hosts import Hosts
from tests.support.servers import Connection
from tests.support.template import prepared
from tests.support.waiting import wait_until
from tests.support.zygote import zygote

START_TIMEOUT = 180.0


@dataclass(frozen=True)
class DemoHost:
    """One database server of the demo."""

    name: str
    host: str
    port: int
    socket: str
    user: str
    password: str
    pid: int
    role: str

    @property
    def address(self) -> str:
        """As in the topology."""
        return f"{self.host}:{self.port}"


class Demo:
    """A demo that is up. `directory` holds schema.yaml, topology.json, shardgate.yaml and the logs."""

    def __init__(self, process: subprocess.Popen[bytes], directory: Path, log: Path, ready: Path) -> None:
        self.process = process
        self.directory = directory
        self.log = log
        self.ready_file = ready
        self.ready: dict[str, Any] = json.loads(ready.read_text())
        self.hosts = [DemoHost(**one) for one in self.ready["hosts"]]
        self.host: str = self.ready["proxy"]["host"]
        self.port: int = self.ready["proxy"]["port"]
        self.proxy_pid: int = self.ready["proxy"]["pid"]
        self.status_url: str | None = self.ready["status_url"]
        self.settings = directory / "shardgate.yaml"
        self.schema = directory / "schema.yaml"
        self.spoilt = ""  # why no further test can be sure of it

    @property
    def masters(self) -> list[DemoHost]:
        return [one for one in self.hosts if one.role == "master"]

    @property
    def pids(self) -> list[int]:
        """The demo, its proxy and its servers."""
        return [self.process.pid, self.proxy_pid, *(one.pid for one in self.hosts)]

    def connect(self, **arguments: Any) -> Connection:
        """A connection to the proxy, as `demo` on `demo`, autocommit on, in the clear unless `ssl` is
        given; PyMySQL's arguments win.
        """
        settings: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.ready["proxy"]["user"],
            "password": self.ready["proxy"]["password"],
            "database": "demo",
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": 120,
            "read_timeout": 300,
            "ssl_disabled": "ssl" not in arguments,
        }
        return pymysql.connect(**(settings | arguments))

    def disconnect_all(self) -> None:
        """Whoever is still connected to the proxy."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW PROCESSLIST")
            for row in cursor.fetchall():
                if row[0] != connection.thread_id():
                    with contextlib.suppress(pymysql.MySQLError):  # gone by itself
                        cursor.execute(f"KILL {row[0]}")

    def reader(self, **arguments: Any) -> Connection:
        """Like `connect`, as the user who may only read."""
        return self.connect(**(self.ready["read_user"] | arguments))

    def direct(self, index: int = 0, **arguments: Any) -> Connection:
        """A connection to a database server itself, as root: masters first, then slaves."""
        server = self.hosts[index]
        settings: dict[str, Any] = {
            "unix_socket": server.socket,
            "user": server.user,
            "password": server.password,
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": 120,
            "ssl_disabled": "ssl" not in arguments,
        }
        return pymysql.connect(**(settings | arguments))

    def as_hosts(self) -> Hosts:
        """The servers for the fleet tools, as root."""

        async def connect(host: str) -> aiomysql.Connection:
            server = self.holder(host)
            login = {"unix_socket": server.socket, "user": server.user, "password": server.password}
            return await aiomysql.connect(**login, charset="utf8mb4", autocommit=True)

        return Hosts(connect)

    def holder(self, address: str) -> DemoHost:
        """The server with that address in the topology."""
        return next(one for one in self.hosts if one.address == address)

    def get(self, path: str) -> tuple[int, str]:
        """Status code and body of a page of the status server, e.g. ``metrics``."""
        assert self.status_url is not None
        try:
            with urllib.request.urlopen(self.status_url + path.lstrip("/"), timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self, number: signal.Signals = signal.SIGTERM, timeout: float = 30.0) -> int:
        """Send the demo a signal and wait for its end; its exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout)


def gone(pid: int) -> bool:
    """Whether a process has ended; one that only waits to be reaped counts as ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def stop_process(pid: int) -> None:
    """SIGSTOP, and wait until none of its threads runs: on a busy machine they go on for a while."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")

    def all_stopped() -> bool:
        states = {path.read_text().rpartition(")")[2].split()[0] for path in tasks.glob("*/stat")}
        return states == {"T"}

    wait_until(all_stopped, "all threads to stop")


def processes_of(directory: Path) -> list[int]:
    """The processes that have `directory` in their command line: servers, the proxy and its workers."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # The demo's own command line names the folder as a word of its own
            words = path.read_bytes().split(b"\0")
            if any(f"{directory}/".encode() in word for word in words):
                found.append(int(path.parent.name))
    return found


@contextmanager
def running_demo(program: Program, folder: Path, *options: str, as_users_do: bool = False) -> Iterator[Demo]:
    """A demo on `program` with further command-line options, its files under `folder`; stopped at the end.

    Its servers wait for no disk, unless the options say `--durable` (which is no option of the command).
    `as_users_do`: the command itself is executed, and makes its servers' data directory itself.
    """
    fast = () if "--durable" in options else ("--fast",)
    options = tuple(one for one in options if one != "--durable")
    folder.mkdir(parents=True, exist_ok=True)
    directory, ready, log = folder / "demo", folder / "ready.json", folder / "demo.log"
    argv = [sys.executable, "-m", "proxy", "demo", "--port", "0"]
    argv += ["--mysqld", str(program.path if as_users_do else prepared(program))]
    argv += ["--dir", str(directory), "--ready-file", str(ready), *fast, *options]
    env = {**os.environ, "PYTHONUNBUFFERED": "1"}
    process = spawn(argv, log, env=env) if as_users_do else zygote().popen(argv, log, env)
    try:
        wait_until(
            lambda: ready.exists() or process.poll() is not None, "the demo's ready file", START_TIMEOUT
        )
        assert ready.exists(), f"the demo ended:\n{tail(log, 40)}"
        yield Demo(process, directory, log, ready)
    finally:
        stop_all([process], 30)
