"""`LocalServer`: one throw-away MySQL or MariaDB server on loopback.

    with LocalServer(find_program(), directory) as server:
        with server.connect() as connection: ...

It listens on a free port of 127.0.0.1 and on a socket, both in attributes, and knows one account: ``root``,
from anywhere on this machine, with a random password. A server that died is started again with `start()`:
same port, same data. Several are started in parallel by `start_all`.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymysql
import pymysql.connections
from pymysql.converters import escape_string

from demo.child import Child
from demo.process import free_port, kill_all, spawn, stop_all
from demo.programs import DURABLE, FAST, LIGHT, Flavour, Program, as_user, copy_data, initialise

LONGEST_SOCKET = 100  # bytes; the kernel takes 107
# mariadb-install-db makes anonymous users, and a root for each name of the machine, which would go before
# root@%
ONLY_ROOT = "DELETE FROM mysql.global_priv WHERE User = '' OR (User = 'root' AND Host <> 'localhost')"

Connection = pymysql.connections.Connection


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
            argv += ["--mysqlx=OFF", "--innodb-redo-log-capacity=128M"]
        else:
            argv += ["--innodb-log-file-size=64M"]
        if self.binlog:
            argv += ["--log-bin=binlog", "--loose-binlog-format=ROW", "--skip-slave-start"]
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
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SET GLOBAL innodb_flush_log_at_trx_commit = {each}, sync_binlog = {each}")
            if each:
                cursor.execute("FLUSH NO_WRITE_TO_BINLOG ENGINE LOGS")

    def _unready(self) -> str:
        try:
            self._connect_at_start()
        except pymysql.err.OperationalError as error:
            return str(error)
        return ""

    def _connect_at_start(self) -> None:
        if self._secured:
            self.connect().close()
            return
        with self.connect(password="") as connection, connection.cursor() as cursor:
            if self.binlog:
                cursor.execute(
                    "SET sql_log_bin = 0"
                )  # accounts are each server's own: slaves begin with no GTID
            if self.program.flavour is Flavour.MARIADB:
                cursor.execute(ONLY_ROOT)
                cursor.execute("FLUSH PRIVILEGES")
            create_account(cursor, self.user, self.password, option=" WITH GRANT OPTION")
            cursor.execute("ALTER USER root@localhost IDENTIFIED BY %s", (self.password,))
        self._secured = True

    def connect(self, **arguments: Any) -> Connection:
        """A PyMySQL connection as root over the socket; `arguments` are PyMySQL's and win.

        Autocommit is on.
        """
        settings: dict[str, Any] = {
            "unix_socket": str(self.socket),
            "user": self.user,
            "password": self.password,
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": 5,
        }
        if "host" in arguments or "port" in arguments:
            del settings["unix_socket"]
            settings |= {"host": self.host, "port": self.port}
        return pymysql.connect(**(settings | arguments))

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


def create_account(
    cursor: pymysql.cursors.Cursor,
    user: str,
    password: str,
    privileges: str = "ALL PRIVILEGES",
    option: str = "",
) -> None:
    """Create `user`, with the server's default plugin, for any address: it listens on loopback only."""
    name = f"'{escape_string(user)}'@'%'"
    cursor.execute(f"CREATE USER {name} IDENTIFIED BY '{escape_string(password)}'")
    cursor.execute(f"GRANT {privileges} ON *.* TO {name}{option}")


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
