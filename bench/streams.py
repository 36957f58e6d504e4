"""``python -m bench.streams``: how much memory the proxy takes while a client reads a result of many rows.

The rows are made in the shards, by INSERT … SELECT. The client reads them with PyMySQL's unbuffered cursor:
as they come from the shards, and in the order of an indexed and of a computed column. What is printed is the
proxy's peak resident memory during each read (VmHWM, reset before it), and its CPU time.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import pymysql
import typer
from pymysql.cursors import SSCursor
from rich.console import Console
from rich.table import Table

from bench import cluster as clusters
from bench import history
from bench.cluster import DATABASE, Cluster, Server
from bench.tools import BenchError
from bench.usage import family, usage
from bench.workloads import SHARDS
from demo.programs import ServerError, find_program
from demo.proxy import LocalProxy

AIM: Final = 200
"""Megabytes."""

READS: Final = {
    "unordered": "SELECT id, data, ts FROM users",
    "ordered by id": "SELECT id, data, ts FROM users ORDER BY id",
    "ordered by a text": "SELECT id, data, ts FROM users ORDER BY LEFT(data, 20), id",
}
_DIGITS: Final = "SELECT 0 d" + "".join(f" UNION ALL SELECT {digit}" for digit in range(1, 10))

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False)


@dataclass(frozen=True)
class Read:
    """One read: seconds in all and up to the first row, the proxy's CPU seconds, and its memory in MB."""

    rows: int
    seconds: float
    first_row: float
    cpu: float
    rss_before: float
    rss_peak: float


def filling(shard: int, rows: int) -> str:
    """The statement that puts rows into a shard's `users`."""
    digits = len(str(rows))
    number = " + ".join(f"t{place}.d * {10**place}" for place in range(digits))
    tables = ", ".join(f"({_DIGITS}) t{place}" for place in range(digits))
    name, rest = f'\'{{"name": "\', MD5(n + {shard})', "n, '@example.com\"}'"
    data = f'CONCAT({name}, \'", "email": "jane.\', {rest})'
    return (
        f"INSERT INTO db{shard:05d}.users (local_id, data)"
        f" SELECT n + 1, {data} FROM (SELECT {number} AS n FROM {tables}) numbers WHERE n < {rows}"
    )


def fill(cluster: Cluster, rows: int) -> None:
    """Make `rows` rows in all, on all servers at once."""

    def on(server: Server) -> None:
        with server.connect() as connection, connection.cursor() as cursor:
            for shard in server.shards:
                each = rows // SHARDS + (shard < rows % SHARDS)
                if each:
                    cursor.execute(filling(shard, each))

    with ThreadPoolExecutor(len(cluster.servers), thread_name_prefix="rows") as pool:
        for future in [pool.submit(on, server) for server in cluster.servers]:
            future.result()


@contextmanager
def unlimited(cluster: Cluster, clients: int = 100) -> Iterator[LocalProxy]:
    """A proxy like the cluster's own, for scatters of any size and so many clients."""
    folder = cluster.folder / "unlimited"
    folder.mkdir()
    proxy = LocalProxy(folder, port=0, page=False)
    settings = json.loads((cluster.folder / "shardgate.yaml").read_text())
    settings |= {
        "listen": f"{proxy.host}:{proxy.port}",
        "schema": str(cluster.folder / "schema.yaml"),
        "topology": {"file": str(cluster.folder / "topology.json")},
        "limits": {
            **settings.get("limits", {}),
            "scatter_rows": 0,
            "scatter_bytes": 0,
            "max_connections": clients + 10,
        },
    }
    settings["status"] = {"listen": None}
    proxy.configure(settings)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
        proxy.release()


def peak(pids: tuple[int, ...]) -> float:
    """The peak of resident memory since `reset`, in MB, summed over processes."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                total += int(line.split()[1])
    return total / 1024


def reset(pids: tuple[int, ...]) -> None:
    """Let the peaks begin anew."""
    for pid in pids:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def read(cluster: Cluster, proxy: LocalProxy, sql: str) -> Read:
    """Read all rows of a statement, one after another. BenchError when it fails."""
    pids = family(proxy.pid)
    target = cluster.proxy
    before = usage(pids)
    reset(pids)
    rows, first = 0, 0.0
    started = time.monotonic()
    try:
        with (
            pymysql.connect(
                host=proxy.host,
                port=proxy.port,
                user=target.user,
                password=target.password,
                database=DATABASE,
                cursorclass=SSCursor,
            ) as connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(sql)
            while found := cursor.fetchmany(1000):
                first = first or time.monotonic() - started
                rows += len(found)
    except pymysql.MySQLError as error:
        raise BenchError(f"{sql}: {error}") from error
    used = usage(pids).since(before)
    seconds = time.monotonic() - started
    megabytes = before.rss / (1 << 20)
    return Read(
        rows,
        round(seconds, 1),
        round(first, 2),
        round(used.cpu, 1),
        round(megabytes, 1),
        round(peak(pids), 1),
    )


def table(reads: dict[str, Read]) -> Table:
    """What was measured."""
    shown = Table(title=f"a result of many rows: memory of the proxy (aim: below {AIM} MB)")
    for name in (
        "read",
        "rows",
        "seconds",
        "first row after s",
        "proxy CPU s",
        "µs a row",
        "MB before",
        "MB at most",
    ):
        shown.add_column(name, justify="left" if name == "read" else "right")
    for name, one in reads.items():
        each = one.cpu * 1e6 / one.rows if one.rows else 0.0
        shown.add_row(
            name,
            f"{one.rows:,}",
            f"{one.seconds:.0f}",
            f"{one.first_row:.1f}",
            f"{one.cpu:.0f}",
            f"{each:.1f}",
            f"{one.rss_before:.0f}",
            f"{one.rss_peak:.0f}",
        )
    return shown


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=1, help="Rows in all.")] = 10_000_000,
    mysqld: Annotated[
        Path | None, typer.Option(help="The database server's program, or its folder.", metavar="PATH")
    ] = None,
    no_history: Annotated[bool, typer.Option("--no-history", help="Add nothing to the history.")] = False,
) -> None:
    """Read many rows through shardgate, and see what memory it takes."""
    load = os.getloadavg()[0]
    reads: dict[str, Read] = {}
    try:
        server = find_program(mysqld)
        with clusters.running(server.path, 1) as cluster, unlimited(cluster) as proxy:
            with console.status(f"{server.title}: making {rows:,} rows"):
                fill(cluster, rows)
            for name, sql in READS.items():
                with console.status(f"{name}: {sql}"):
                    reads[name] = read(cluster, proxy, sql)
                if reads[name].rows != rows:
                    raise BenchError(f"{sql}: {reads[name].rows} rows instead of {rows}")
    except (BenchError, ServerError) as error:
        print(f"bench: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    console.print(table(reads))
    if not no_history:
        line = history.entry(
            [], options={"rows": rows}, versions={"server": server.title}, load=load, now=datetime.now(UTC)
        )
        del line["workloads"]
        history.append(line | {"streams": {name: asdict(one) for name, one in reads.items()}})
        console.print(f"added to {os.path.relpath(history.FILE)}")
    raise typer.Exit(1 if any(one.rss_peak >= AIM for one in reads.values()) else 0)


if __name__ == "__main__":
    app()
