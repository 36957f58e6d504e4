"""The cluster: ``shardgate demo --empty`` as a child process, known by its ready file."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pymysql
import pymysql.connections

from bench.sysbench import Target
from bench.tools import BenchError
from bench.workloads import SHARDS
from config.load import load_schema, load_topology
from config.topology import Topology
from demo.documents import SCHEMA
from demo.process import spawn, stop_all, tail
from demo.workspace import Workspace

START_TIMEOUT = 180.0
KEYSPACE = "main"
DATABASE = "demo"

Connection = pymysql.connections.Connection


@dataclass(frozen=True)
class Server:
    """One database server, and which shards it holds."""

    host: str
    port: int
    user: str
    password: str
    pid: int
    shards: tuple[int, ...]

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"{self.host}:{self.port}"

    def connect(self) -> Connection:
        """A connection with autocommit, past every proxy."""
        return pymysql.connect(
            host=self.host,
            port=self.port,
            user=self.user,
            password=self.password,
            autocommit=True,
            charset="utf8mb4",
        )


@dataclass(frozen=True)
class Cluster:
    """What the ready file says, as far as it is needed here."""

    servers: tuple[Server, ...]
    proxy: Target
    proxy_pid: int
    folder: Path = Path()
    """Where its settings, schema and topology are."""

    @property
    def shards(self) -> str:
        """The shards of each server, for the Lua scripts: ``0-31,32-63``."""
        return ",".join(f"{one.shards[0]}-{one.shards[-1]}" for one in self.servers)

    def direct(self, ports: Sequence[int] = ()) -> Target:
        """The servers themselves, or what listens on `ports` in their place, in their order."""
        first = self.servers[0]
        used = ports or [one.port for one in self.servers]
        return Target(tuple((first.host, port) for port in used), first.user, first.password, physical=True)


def describe(ready: Mapping[str, Any], topology: Topology) -> Cluster:
    """Make a `Cluster` of the ready file's object. The servers have one password, which the clients need."""
    keyspace = topology.keyspaces[KEYSPACE]
    servers = []
    for host in ready["hosts"]:
        address = f"{host['host']}:{host['port']}"
        shards = tuple(one for one in keyspace.all_shards if keyspace.host_of(one) == address)
        server = Server(host["host"], host["port"], host["user"], host["password"], host["pid"], shards)
        servers.append(server)
    proxy = ready["proxy"]
    target = Target(
        ((proxy["host"], proxy["port"]),), proxy["user"], proxy["password"], physical=False, database=DATABASE
    )
    return Cluster(tuple(servers), target, proxy["pid"])


@contextmanager
def running(mysqld: Path | None, workers: int) -> Iterator[Cluster]:
    """Start a cluster of two hosts, stop it at the end. BenchError with what it said when it does not start.

    To be used in the main thread: the child is killed when the thread that started it ends.
    """
    with Workspace(None) as workspace:
        ready, log = workspace.path / "ready.json", workspace.path / "demo.log"
        argv = [sys.executable, "-m", "proxy", "demo", "--hosts", "2", "--shards", str(SHARDS), "--empty"]
        argv += ["--fast", "--no-page", "--port", "0", "--workers", str(workers), "--ready-file", str(ready)]
        argv += ["--mysqld", str(mysqld)] if mysqld else []
        child = spawn(argv, log, cwd=Path(__file__).parents[1])
        try:
            _wait(child, ready, log)
            document = json.loads(ready.read_text())
            topology = load_topology(Path(document["topology"]), schema=load_schema(SCHEMA))
            cluster = _one_account(describe(document, topology))
            yield replace(cluster, folder=Path(document["topology"]).parent)
        finally:
            stop_all([child], timeout=30.0)


def _wait(child: subprocess.Popen[bytes], ready: Path, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while not ready.exists():
        if child.poll() is not None or time.monotonic() > deadline:
            raise BenchError(f"the cluster did not start:\n{tail(log, 30)}")
        time.sleep(0.05)


def _one_account(cluster: Cluster) -> Cluster:
    """Each server's root has a password of its own; make an account that is the same on all."""
    user, password = "bench", cluster.servers[0].password
    for server in cluster.servers:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"CREATE USER {user}@'%%' IDENTIFIED BY %s", (password,))
            cursor.execute(f"GRANT ALL ON *.* TO {user}@'%'")
    servers = (Server(one.host, one.port, user, password, one.pid, one.shards) for one in cluster.servers)
    return Cluster(tuple(servers), cluster.proxy, cluster.proxy_pid)
