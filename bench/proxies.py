"""Other proxies beside shardgate: a table of them, and how one is found, configured, started and stopped.

Three of them stand before each host on a port of their own and get what the hosts hold; kingshard
(kingshard.py) shards by itself and gets what shardgate gets. Each has one thread for its clients, or as many
as shardgate has workers, listens on loopback only and writes into a folder that is removed.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pymysql

from bench import kingshard
from bench.cluster import Cluster
from bench.rounds import Way
from bench.setup import Setup
from bench.sysbench import Target
from bench.tools import BenchError, find_tool
from bench.workloads import Route
from demo.process import free_port, spawn, stop_all, tail
from demo.workspace import Workspace

START_TIMEOUT: Final = 20.0
CLIENTS: Final = 5_000
"""Connections that each allows: more than are ever made."""
PAUSE: Final = 0.05


def haproxy(setup: Setup) -> Mapping[str, str]:
    """In TCP mode: it copies bytes, which is the least that a proxy can do."""
    lines = ["global", f"    nbthread {setup.threads}", f"    maxconn {CLIENTS}", "defaults", "    mode tcp"]
    lines += [f"    timeout {what}" for what in ("connect 5s", "client 1h", "server 1h")]
    for number, (port, server) in enumerate(setup.pairs, 1):
        lines += [f"listen host{number}", f"    bind 127.0.0.1:{port}", f"    server mysql {server.address}"]
    return {"haproxy.cfg": "\n".join(lines) + "\n"}


def router(setup: Setup) -> Mapping[str, str]:
    """Static destinations, and TLS passed through: it reads no more of a session than its log-in."""
    folder = setup.folder
    lines = ["[DEFAULT]", "unknown_config_option=error", f"max_total_connections={CLIENTS}"]
    lines += ["logging_folder="]
    lines += [f"{what}_folder={folder}" for what in ("runtime", "data")]
    plugins = router_plugins(setup.program)
    lines += [f"plugin_folder={plugins}"] if plugins else []
    lines += ["[logger]", "level=WARNING", "[io]", f"threads={setup.threads}"]
    for number, (port, server) in enumerate(setup.pairs, 1):
        lines += [f"[routing:host{number}]", "bind_address=127.0.0.1", f"bind_port={port}"]
        lines += [f"destinations={server.address}", "routing_strategy=first-available", "protocol=classic"]
        lines += ["client_ssl_mode=PASSTHROUGH", f"max_connections={CLIENTS}"]
    return {"mysqlrouter.conf": "\n".join(lines) + "\n"}


def router_plugins(program: str) -> Path | None:
    """Where an unpacked Router has its plugins; None for an installed one, which knows."""
    if Path("/usr/lib/mysqlrouter/plugin").is_dir():
        return None
    prefix = Path(program).resolve().parents[1]
    folders = ("lib/mysqlrouter", "lib/mysqlrouter/plugin", "root/usr/lib/mysqlrouter/plugin")
    return next((prefix / one for one in folders if (prefix / one / "routing.so").is_file()), None)


def proxysql(setup: Setup) -> Mapping[str, str]:
    """A port a host, told apart by a rule on the port; no monitor, so that nothing but clients costs CPU.

    What it would open for PostgreSQL, from version 3 on, listens on sockets in its folder.
    """
    ports = ";".join(f"127.0.0.1:{port}" for port, _ in setup.pairs)
    account = setup.cluster.servers[0]
    servers, rules = [], []
    for group, (port, server) in enumerate(setup.pairs):
        address = f'address="{server.host}", port={server.port}'
        servers.append(f"{{ {address}, hostgroup={group}, max_connections={CLIENTS} }}")
        rule = f"rule_id={group + 1}, active=1, proxy_port={port}"
        rules.append(f"{{ {rule}, destination_hostgroup={group}, apply=1 }}")
    user = (
        f'{{ username="{account.user}", password="{account.password}", default_hostgroup=0,'
        f" max_connections={CLIENTS}, active=1 }}"
    )
    text = f'''\
datadir="{setup.folder}"
errorlog="{setup.folder}/proxysql.log"
admin_variables=
{{
    admin_credentials="admin:{account.password}"
    mysql_ifaces="{setup.folder}/admin.sock"
    pgsql_ifaces="{setup.folder}/admin-pgsql.sock"
}}
mysql_variables=
{{
    threads={setup.threads}
    interfaces="{ports}"
    max_connections={CLIENTS}
    monitor_enabled=false
    have_ssl=false
}}
pgsql_variables=
{{
    interfaces="{setup.folder}/pgsql.sock"
}}
mysql_servers = ({", ".join(servers)})
mysql_users = ({user})
mysql_query_rules = ({", ".join(rules)})
'''
    return {"proxysql.cnf": text}


@dataclass(frozen=True)
class Program:
    """One of the proxies. `files` writes its configuration; `argv` starts it in the foreground with them."""

    route: Route
    name: str
    version: str
    """The option that prints its version."""
    files: Callable[[Setup], Mapping[str, str]]
    argv: Callable[[Setup], Sequence[str]]
    kingshard: bool = False

    @property
    def option(self) -> str:
        """How it is given on the command line."""
        return "--" + self.name.removeprefix("mysql")

    def find(self, given: Path | None) -> str | None:
        """The program's path: `given` (it, or its folder), else what is on the PATH.

        BenchError when there is none at the path given.
        """
        if given is None:
            return find_tool(self.name)
        path = given / self.name if given.is_dir() else given
        if not os.access(path, os.X_OK):
            raise BenchError(f"{self.option}: {path} is no program")
        return str(path.absolute())


PROGRAMS: Final = (
    Program(
        Route.HAPROXY,
        "haproxy",
        "-v",
        haproxy,
        lambda setup: [setup.program, "-db", "-f", str(setup.folder / "haproxy.cfg")],
    ),
    Program(
        Route.ROUTER,
        "mysqlrouter",
        "--version",
        router,
        lambda setup: [setup.program, "-c", str(setup.folder / "mysqlrouter.conf")],
    ),
    Program(
        Route.PROXYSQL,
        "proxysql",
        "--version",
        proxysql,
        lambda setup: [
            *(setup.program, "-f", "-e", "-M", "--no-version-check", "--initial"),
            *("-c", str(setup.folder / "proxysql.cnf"), "-D", str(setup.folder)),
        ],
    ),
    Program(Route.KINGSHARD, "kingshard", "-v", kingshard.configuration, kingshard.arguments, kingshard=True),
)


@contextmanager
def started(program: Program, setup: Setup, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Write its configuration and start it; it is stopped at the end. OSError when it cannot be executed."""
    for name, text in program.files(setup).items():
        (setup.folder / name).write_text(text)
    child = spawn(program.argv(setup), log, cwd=setup.folder)
    try:
        yield child
    finally:
        stop_all([child], timeout=5.0)


@contextmanager
def running(program: Program, path: str, cluster: Cluster, threads: int) -> Iterator[Way]:
    """Start one before the cluster, stop it at the end. BenchError, with what it said, when that fails."""
    with Workspace(None) as workspace:
        ports = tuple(free_port() for _ in range(1 if program.kingshard else len(cluster.servers)))
        setup = Setup(path, workspace.path, cluster, ports, threads)
        log = workspace.path / "output.log"
        target = cluster.direct(ports)
        if program.kingshard:
            kingshard.fill(cluster)
            target = kingshard.target(cluster, ports[0])
        with started(program, setup, log) as child:
            _wait(program, child, target, log)
            if program.kingshard:
                kingshard.widen(child.pid)
            yield Way(target, child.pid)


def _wait(program: Program, child: subprocess.Popen[bytes], target: Target, log: Path) -> None:
    """Wait until a client can log in through each port: a mere connection would count as a failed log-in."""
    deadline = time.monotonic() + START_TIMEOUT
    for host, port in target.addresses:
        while True:
            try:
                with contextlib.closing(
                    pymysql.connect(
                        host=host,
                        port=port,
                        user=target.user,
                        password=target.password,
                        database=target.database or None,
                    )
                ) as connection:
                    connection.ping(reconnect=False)
                break
            except pymysql.MySQLError as error:
                if child.poll() is not None or time.monotonic() > deadline:
                    said = tail(log)
                    raise BenchError(f"{program.route.value} did not start ({error}):\n{said}") from error
                time.sleep(PAUSE)
