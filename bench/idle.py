"""``python -m bench.idle``: how much memory the proxy takes for clients that are logged in and silent.

Each client has logged in (caching_sha2_password), set what drivers set, and read a row by its ID, as the
connections of an application's pool have. What is printed is the proxy's resident memory
before the first and with all of them, and its CPU time while they are silent. The aim counts all its
processes, and what they share (the interpreter's pages, libraries) for each of them; beside it stand what
each process has, and the sum in which such pages count once (PSS).
"""

from __future__ import annotations

import os
import resource
import ssl
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import pymysql
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench import cluster as clusters
from bench import history
from bench.cluster import DATABASE, Cluster
from bench.streams import unlimited
from bench.tools import BenchError
from bench.usage import family, proportional, usage
from demo.programs import ServerError, find_program
from demo.proxy import LocalProxy

AIM: Final = 150
"""Megabytes for 10,000 clients."""

SILENT: Final = 10.0
"""Seconds in which CPU time is measured."""

SETTINGS: Final = (
    "SET NAMES utf8mb4, time_zone = '+00:00', sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')"
)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False)


@dataclass(frozen=True)
class Idle:
    """Resident memory in MB without and with the clients, and CPU seconds in `SILENT` seconds of silence.
    `each`: of the `rss`, by process, the one that serves first. `pss`: see `usage.proportional`.
    """

    clients: int
    rss_before: float
    rss: float
    cpu: float
    each: tuple[float, ...] = ()
    pss: float = 0.0


def connect(
    cluster: Cluster, proxy: LocalProxy, tls: ssl.SSLContext | None, id: int
) -> pymysql.connections.Connection:
    """A client that has done what applications begin with."""
    connection = pymysql.connect(
        host=proxy.host,
        port=proxy.port,
        user=cluster.proxy.user,
        password=cluster.proxy.password,
        database=DATABASE,
        ssl=tls,  # one context for all: each has megabytes of certificates
        ssl_disabled=tls is None,
        autocommit=True,  # else the SELECT leaves a transaction open, which holds a connection to a host
    )
    with connection.cursor() as cursor:
        cursor.execute(SETTINGS)
        cursor.execute("SELECT id, data FROM users WHERE id = %s", (id,))
        if len(cursor.fetchall()) > 1:
            raise BenchError("an ID has several rows")
    return connection


def measure(cluster: Cluster, proxy: LocalProxy, clients: int, *, encrypted: bool) -> Idle:
    """Let `clients` log in, and be silent. BenchError when one cannot."""
    pids = family(proxy.pid)
    tls = ssl._create_unverified_context() if encrypted else None  # the cluster's certificate is its own
    connections = []
    try:
        connections.append(connect(cluster, proxy, tls, 1 << 46))
        before = usage(pids)
        for number in track(range(1, clients), f"{clients} clients", console=console, transient=True):
            connections += [connect(cluster, proxy, tls, (number % 64) << 46 | 3 << 36 | 1)]
        begun = usage(pids)
        time.sleep(SILENT)
        after = usage(pids).since(begun)
        each = tuple(megabytes(usage([pid]).rss) for pid in pids)
        pss = megabytes(proportional(pids))
    except (OSError, pymysql.MySQLError) as error:
        raise BenchError(f"client {len(connections) + 1}: {error}") from error
    finally:
        for connection in connections:
            connection.close()
    return Idle(clients, megabytes(before.rss), megabytes(after.rss), round(after.cpu, 2), each, pss)


def megabytes(size: int) -> float:
    """Of bytes, with one digit behind the point."""
    return round(size / (1 << 20), 1)


def table(idle: Idle) -> Table:
    """What was measured."""
    shown = Table(title=f"silent clients: memory of the proxy (aim for 10,000: below {AIM} MB)")
    for name in (
        "clients",
        "MB before",
        "MB",
        "by process",
        "PSS",
        "KB a client",
        f"CPU s in {SILENT:.0f} s",
    ):
        shown.add_column(name, justify="right")
    each = (idle.rss - idle.rss_before) * 1024 / idle.clients
    shown.add_row(
        f"{idle.clients:,}",
        f"{idle.rss_before:.0f}",
        f"{idle.rss:.0f}",
        " + ".join(f"{one:.0f}" for one in idle.each),
        f"{idle.pss:.0f}",
        f"{each:.1f}",
        f"{idle.cpu:.2f}",
    )
    return shown


@app.command()
def main(
    clients: Annotated[int, typer.Option(min=2, help="Clients in all.")] = 10_000,
    tls: Annotated[bool, typer.Option("--tls", help="The clients use TLS.")] = False,
    mysqld: Annotated[
        Path | None, typer.Option(help="The database server's program, or its folder.", metavar="PATH")
    ] = None,
    no_history: Annotated[bool, typer.Option("--no-history", help="Add nothing to the history.")] = False,
) -> None:
    """Log many clients in, and see what memory they take while they say nothing."""
    load = os.getloadavg()[0]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < clients + 1000:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(clients + 1000, hard), hard))  # the proxy inherits it
    try:
        server = find_program(mysqld)
        with clusters.running(server.path, 1) as cluster, unlimited(cluster, clients=clients) as proxy:
            idle = measure(cluster, proxy, clients, encrypted=tls)
    except (BenchError, ServerError) as error:
        print(f"bench: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    console.print(table(idle))
    if not no_history:
        line = history.entry(
            [],
            options={"clients": clients, "tls": tls},
            versions={"server": server.title},
            load=load,
            now=datetime.now(UTC),
        )
        del line["workloads"]
        history.append(line | {"idle": asdict(idle)})
        console.print(f"added to {os.path.relpath(history.FILE)}")
    raise typer.Exit(1 if idle.rss >= AIM else 0)


if __name__ == "__main__":
    app()
