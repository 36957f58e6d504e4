"""`LocalServer`: one throw-away MySQL or MariaDB server on loopback.

    with LocalServer(find_program(), directory) as server:
        async with hosts_of([server]) as hosts:
            await hosts.query(server.address, "SELECT 1")

It listens on a free port of 127.0.0.1 and on a socket, both in attributes, and knows one account: ``root``,
from anywhere on this machine, with a random password. A server that died is started again with `start()`:
same port, same data. Several are started in parallel by `start_all`.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import aiomysql
from aiomysql import escape_string

from config.topology import Host
from demo.background import complete
from demo.child import Child
from demo.process import free_port, kill_all, spawn, stop_all
from demo.programs import DURABLE, FAST, LIGHT, Flavour, Program, as_user, copy_data, initialise
from fleet.core.errors import HostError
from fleet.core.hosts import Hosts

LONGEST_SOCKET = 100  # bytes; the kernel takes 107
LOGIN_SECONDS = 5.0
# mariadb-install-db makes anonymous users, and a root for each name of the machine, which would go before
# root@%
ONLY_ROOT = "DELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> 'localhost')"


class LocalServer(Child):
    """A server whose files are under `directory`, which is made when missing and never removed here.

    `template`: an initialised data directory to copy (`initialise`), which saves seconds with MySQL.
    `binlog`: row-based binary log with GTIDs, for masters and slaves; `server_id` must then be unique.
    `durable`: nothing that it has acknowledged is lost in a crash, except between `hurry` and `settle`.
    """

    user = "root"

    def __init__(
        self,
        program: Program,
        directory: Path,
        *,
        name: str = "mysql",
        template: Path | None = None,
        server_id: int = 1,
        binlog: bool = False,
        durable: bool = False,
        options: Sequence[str] = (),
    ) -> None:
        self.program = program
        self.directory = directory.absolute()
        super().__init__(f"{name} ({program.path})", self.directory / "error.log")
        self.name = name
        self.template = template
        self.server_id = server_id
        self.binlog = binlog
        self.durable = durable
        self.options = tuple(options)
        self.password = secrets.token_hex(12)
        self.data = self.directory / "data"
        # Its own: a starting MariaDB removes all temporary tables there, also those of another server
        self._scratch = self.directory / "tmp"
        self._short: Path | None = None
        self._secured = False

    @property
    def address(self) -> str:
        """How a topology names this host."""
        return f"{self.host}:{self.port}"

    @property
    def socket(self) -> Path:
        """The Unix socket: in the directory, or in a short temporary one where the path would be too long."""
        path = self.directory / "mysql.sock"
        if len(bytes(path)) <= LONGEST_SOCKET:
            return path
        if self._short is None:
            self._short = Path(tempfile.mkdtemp(prefix="sg-", dir="/tmp"))
        return self._short / "mysql.sock"

    def spawn(self) -> None:
        """Start the process, on first use after making the data directory. Nothing while it runs."""
        if self.alive:
            return
        self._scratch.mkdir(parents=True, exist_ok=True)
        if not self.data.exists():
            if self.template is None:
                initialise(self.program, self.data)
            else:
                copy_data(self.template, self.data)
        self.port = self.port or free_port()
        self.log.write_bytes(b"")
        self._process = spawn(self._argv(), self.log, cwd=self.directory)

    def _argv(self) -> list[str]:
        argv = [
            str(self.program.path),
            "--no-defaults",
            f"--datadir={self.data}",
            f"--socket={self.socket}",
            f"--port={self.port}",
            f"--pid-file={self.directory / 'pid'}",
            f"--tmpdir={self._scratch}",
            "--bind-address=127.0.0.1",
            f"--server-id={self.server_id}",
            "--max-connections=1000",
            "--max-allowed-packet=128M",
            "--table-open-cache=4000",
            "--table-definition-cache=4000",
            "--innodb-fast-shutdown=2",
            "--secure-file-priv=",
            *(DURABLE if self.durable else FAST),
            *LIGHT,
            *as_user(),
        ]
        mysql = self.program.flavour is Flavour.MYSQL
        if mysql:
            # four threads, made anew for each COUNT(*), take twenty times as long with small tables
            argv += ["--mysqlx=OFF", "--innodb-redo-log-capacity=128M", "--innodb-parallel-read-threads=1"]
        else:
            argv += ["--innodb-log-file-size=64M"]
        if self.binlog:
            argv += ["--log-bin=binlog", "--loose-binlog-format=ROW", "--skip-slave-start"]
            argv += ["--loose-binlog-row-metadata=FULL"]  # for `fleet changes`
            argv += (
                ["--gtid-mode=ON", "--enforce-gtid-consistency=ON"]
                if mysql
                else ["--log-slave-updates", "--gtid-strict-mode=ON"]
            )
        else:
            argv += ["--skip-log-bin", *(["--gtid-mode=OFF"] if mysql else [])]
        return [*argv, *self.options]

    def hurry(self) -> None:
        """Until `settle` commits do not wait for the disk: while tables are made and filled."""
        self._wait_for_disk(0)

    def settle(self) -> None:
        """A durable server is one again, and what it has done so far is on the disk."""
        if self.durable:
            self._wait_for_disk(1)

    def _wait_for_disk(self, each: int) -> None:
        statements = [f"SET GLOBAL innodb_flush_log_at_trx_commit = {each}, sync_binlog = {each}"]
        if each:
            statements.append("FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS")

        async def run() -> None:
            async with hosts_of([self]) as hosts:
                await hosts.run(self.address, statements)

        complete(run())

    def _unready(self) -> str:
        if not self.socket.exists():  # nearly all looks find that; each log-in would take a thread and a loop
            return "it has no socket yet"
        try:
            complete(self._look())
        except HostError as error:
            return str(error)
        return ""

    async def _look(self) -> None:
        async with hosts_of([self], logged=False) as hosts:  # slaves begin with no GTID
            await hosts.run(self.address, ["DO 0"] if self._secured else self._only_root())
        self._secured = True

    def _only_root(self) -> list[str]:
        mariadb = self.program.flavour is Flavour.MARIADB
        return [
            *([ONLY_ROOT, "FLUSH PRIVILEGES"] if mariadb else []),
            *account(self.user, self.password, option=" WITH GRANT OPTION"),
            f"ALTER USER root@localhost IDENTIFIED BY '{escape_string(self.password)}'",
        ]

    async def log_in(self, *, logged: bool = True) -> aiomysql.Connection:
        """As root over the socket, with autocommit. Not `logged`: what it does is in no binary log."""
        async with asyncio.timeout(LOGIN_SECONDS):
            return await aiomysql.connect(
                unix_socket=str(self.socket),
                user=self.user,
                password=self.password if self._secured else "",
                charset="utf8mb4",
                autocommit=True,
                init_command=None if logged else "SET sql_log_bin = 0",
            )

    def stop(self, timeout: float = 10.0) -> None:
        super().stop(timeout)
        self.forget_socket()

    def kill(self) -> None:
        """SIGKILL, as if the machine had died. The data stays."""
        if self._process is not None:
            kill_all([self._process])

    def forget_socket(self) -> None:
        """Remove the short folder of the socket, if one was needed. The server must be dead."""
        if self._short is not None:
            shutil.rmtree(self._short, ignore_errors=True)
            self._short = None


def account(
    user: str, password: str, privileges: str = "ALL PRIVILEGES", option: str = ""
) -> tuple[str, str]:
    """What creates `user`, with the server's default plugin, for any address: it listens on loopback only."""
    name = f"'{escape_string(user)}'@'%'"
    return (
        f"CREATE USER {name} IDENTIFIED BY '{escape_string(password)}'",
        f"GRANT {privileges} ON *.* TO {name}{option}",
    )


def hosts_of(servers: Iterable[LocalServer], *, logged: bool = True) -> Hosts:
    """The servers for the fleet tools, as root over their sockets. Not `logged`: in no binary log."""
    by_address = {one.address: one for one in servers}

    async def connect(host: Host) -> aiomysql.Connection:
        if host not in by_address:
            raise aiomysql.OperationalError(2003, f"no way to {host}")
        return await by_address[host].log_in(logged=logged)

    return Hosts(connect)


def start_all(servers: Sequence[LocalServer]) -> None:
    """Start servers in parallel; when one fails, all are killed and its ServerError raised."""
    try:
        for server in servers:
            server.spawn()
        for server in servers:
            server.wait()
    except BaseException:
        kill_all([server.process for server in servers if server.process is not None])
        raise


def stop_servers(servers: Sequence[LocalServer], timeout: float = 10.0) -> None:
    """Stop servers in parallel, dead ones included."""
    stop_all([server.process for server in servers if server.process is not None], timeout)
    for server in servers:
        server.forget_socket()
