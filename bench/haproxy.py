"""HAProxy in TCP mode before each host: the least that a proxy can do, for comparison."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pymysql

from bench.cluster import Cluster
from bench.tools import BenchError
from demo.process import free_port, spawn, stop_all, tail
from demo.workspace import Workspace

START_TIMEOUT = 10.0


@dataclass(frozen=True)
class HAProxy:
    """A running HAProxy: its process, and a port for each server of the cluster."""

    pid: int
    ports: tuple[int, ...]


def configuration(pairs: Sequence[tuple[int, str]], threads: int) -> str:
    """haproxy.cfg for pairs of a local port and the server's address behind it."""
    lines = ["global", f"    nbthread {threads}", "    maxconn 2000", "defaults", "    mode tcp"]
    lines += [f"    timeout {what}" for what in ("connect 5s", "client 1h", "server 1h")]
    for number, (port, address) in enumerate(pairs, 1):
        lines += [f"listen host{number}", f"    bind 127.0.0.1:{port}", f"    server mysql {address}"]
    return "\n".join(lines) + "\n"


@contextmanager
def running(program: str, cluster: Cluster, threads: int) -> Iterator[HAProxy]:
    """Start HAProxy, stop it at the end. BenchError with what it said when it does not start."""
    ports = tuple(free_port() for _ in cluster.servers)
    pairs = [(port, f"{one.host}:{one.port}") for port, one in zip(ports, cluster.servers, strict=True)]
    with Workspace(None) as workspace:
        file, log = workspace.path / "haproxy.cfg", workspace.path / "haproxy.log"
        file.write_text(configuration(pairs, threads))
        child = spawn([program, "-db", "-f", str(file)], log)
        try:
            _wait(child, cluster, ports, log)
            yield HAProxy(child.pid, ports)
        finally:
            stop_all([child], timeout=5.0)


def _wait(child: subprocess.Popen[bytes], cluster: Cluster, ports: Sequence[int], log: Path) -> None:
    """Wait until a client can log in through each port: a mere connection would count as a failed log-in."""
    deadline = time.monotonic() + START_TIMEOUT
    for port, server in zip(ports, cluster.servers, strict=True):
        while True:
            try:
                replace(server, port=port).connect().close()
                break
            except pymysql.MySQLError as error:
                if child.poll() is not None or time.monotonic() > deadline:
                    raise BenchError(f"HAProxy did not start ({error}):\n{tail(log)}") from error
                time.sleep(0.05)
