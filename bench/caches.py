"""``python -m bench.caches``: what a table's cache costs: a hit, a miss and a write beside plain ones.

One proxy without caches and one for each kind of cache stand before the same servers, and clients in Python
send each of them the same statements in turn: one client for the latency, several for the proxy's CPU time.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Final

import pymysql
import typer
import yaml
from rich.console import Console
from rich.table import Table

from bench import cluster as clusters
from bench import rows
from bench.cluster import DATABASE, Cluster
from bench.tools import BenchError
from bench.usage import family, usage
from bench.workloads import SHARDS, Sizes
from demo.process import reserve_port, spawn, stop_all
from demo.programs import ServerError, find_program
from demo.proxy import LocalProxy

PLAIN: Final = "plain"
PROGRAMS: Final = {"memcached": "memcached", "redis": "redis-server"}
HOT: Final = 200
"""So many rows are read, again and again."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False)

Connection = pymysql.connections.Connection


@dataclass
class Case:
    """`what` through the proxy of a kind of cache. Of each round: microseconds of CPU a statement, of the
    proxy; and of latency in the middle.
    """

    what: str
    kind: str
    cpu: list[float] = field(default_factory=list)
    latency: list[float] = field(default_factory=list)


@contextmanager
def cache_server(kind: str, folder: Path) -> Iterator[str]:
    """A cache of its own; its address."""
    program = shutil.which(PROGRAMS[kind], path="/usr/bin:/usr/local/bin:/usr/sbin:/opt/bin")
    if program is None:
        raise BenchError(f"{kind} is missing (Debian: apt-get install memcached redis-server)")
    with reserve_port(0) as reserved:
        port = reserved.getsockname()[1]
    argv = [program, "-u", "root", "-l", "127.0.0.1", "-p", str(port), "-U", "0"]
    if kind == "redis":
        argv = [program, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--dir", str(folder)]
    process: subprocess.Popen[bytes] = spawn(argv, folder / f"{kind}.log")
    try:
        yield f"127.0.0.1:{port}"
    finally:
        stop_all([process], 10)


@contextmanager
def proxy_with(cluster: Cluster, kind: str, address: str) -> Iterator[LocalProxy]:
    """A proxy of the cluster whose pins have that cache."""
    folder = cluster.folder / f"cache-{kind}"
    folder.mkdir()
    schema = yaml.safe_load((cluster.folder / "schema.yaml").read_text())
    if kind != PLAIN:
        schema["databases"][DATABASE]["tables"]["pins"]["cache"] = {kind: address, "lease": "2s"}
    (folder / "schema.json").write_text(json.dumps(schema))
    proxy = LocalProxy(folder, port=0, page=False)
    settings: dict[str, Any] = json.loads((cluster.folder / "shardgate.yaml").read_text())
    settings |= {
        "listen": f"{proxy.host}:{proxy.port}",
        "schema": str(folder / "schema.json"),
        "topology": {"file": str(cluster.folder / "topology.json")},
    }
    settings["status"] = {"listen": None}
    proxy.configure(settings)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
        proxy.release()


def connect(cluster: Cluster, proxy: LocalProxy) -> Connection:
    return pymysql.connect(
        host=proxy.host,
        port=proxy.port,
        user=cluster.proxy.user,
        password=cluster.proxy.password,
        database=DATABASE,
        autocommit=True,
        ssl_disabled=True,
    )


def statements(what: str) -> Callable[[], str]:
    """Makes the statements of a case."""
    numbers = count(random.randrange(1 << 40))
    hot = [rows.LAYOUT.compose(shard=n % SHARDS, type=rows.PINS, local=1 + n // SHARDS) for n in range(HOT)]

    def make() -> str:
        pin = random.choice(hot)
        if what == "write":
            return f"UPDATE pins SET ts = ts WHERE id = {pin}"
        if what == "miss":  # a text that nobody has sent before
            return f"SELECT id, data, ts FROM pins WHERE id = {pin} AND data <> '{next(numbers)}'"
        return f"SELECT id, data, ts FROM pins WHERE id = {pin}"

    return make


def run(connections: list[Connection], make: Callable[[], str], seconds: float) -> list[float]:
    """Send statements over each; how many seconds each has taken."""
    taken: list[float] = []
    until = time.monotonic() + seconds

    def client(connection: Connection) -> None:
        mine = []
        with connection.cursor() as cursor:
            while time.monotonic() < until:
                sql, begun = make(), time.perf_counter()
                cursor.execute(sql)
                cursor.fetchall()
                mine.append(time.perf_counter() - begun)
        taken.extend(mine)

    threads = [threading.Thread(target=client, args=(one,)) for one in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def measure(
    cluster: Cluster, proxies: dict[str, LocalProxy], rounds: int, seconds: float, clients: int
) -> list[Case]:
    """All cases, in turn. BenchError when a cache is not used."""
    kinds = [kind for kind in proxies if kind != PLAIN]
    cases = [Case("read", PLAIN), *(Case(what, kind) for kind in kinds for what in ("hit", "miss"))]
    cases += [Case("write", kind) for kind in proxies]
    connections = {kind: [connect(cluster, proxy) for _ in range(clients)] for kind, proxy in proxies.items()}
    time.sleep(6)  # longer than the lease, from which on a cache is used
    for _ in range(rounds):
        for case in cases:
            mine, make = connections[case.kind], statements(case.what)
            if case.what == "hit":  # what the writes of the last round have locked is free by then
                run(mine, make, 6 if case is cases[1] else 1.5)
            pids = family(proxies[case.kind].pid)
            before = usage(pids)
            done = len(run(mine, make, seconds))
            case.cpu.append(usage(pids).since(before).cpu / done * 1e6)
            case.latency.append(statistics.median(run(mine[:1], make, seconds / 2)) * 1e6)
    for kind in kinds:
        with connections[kind][0].cursor() as cursor:
            cursor.execute("SHOW PROXY CACHES")
            found = cursor.fetchall()
            console.print(", ".join(map(str, found[0])), soft_wrap=True)
            if not found[0][2]:
                raise BenchError(f"{kind} was not used: {found}")
    return cases


def table(cases: list[Case]) -> Table:
    """What was measured: medians over the rounds."""
    shown = Table(title="a table's cache: microseconds a statement")
    for name in ("statement", "cache", "CPU of the proxy", "latency"):
        shown.add_column(name, justify="left" if name in ("statement", "cache") else "right")
    for case in cases:
        cpu, latency = statistics.median(case.cpu), statistics.median(case.latency)
        shown.add_row(case.what, case.kind, f"{cpu:.0f}", f"{latency:.0f}")
    return shown


@app.command()
def main(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, each with every case once.")] = 3,
    seconds: Annotated[float, typer.Option(min=1, help="Length of one run.")] = 3,
    clients: Annotated[int, typer.Option(min=1, help="Clients at once, for the CPU time.")] = 8,
    mysqld: Annotated[
        Path | None, typer.Option(help="The database server's program, or its folder.", metavar="PATH")
    ] = None,
) -> None:
    """Measure hits, misses and writes of a table with a cache."""
    try:
        server = find_program(mysqld)
        with clusters.running(server.path, 1) as cluster, ExitStack() as stack:
            rows.load(cluster, Sizes())
            proxies = {PLAIN: stack.enter_context(proxy_with(cluster, PLAIN, ""))}
            for kind in PROGRAMS:
                address = stack.enter_context(cache_server(kind, cluster.folder))
                proxies[kind] = stack.enter_context(proxy_with(cluster, kind, address))
            cases = measure(cluster, proxies, rounds, seconds, clients)
    except (BenchError, ServerError) as error:
        print(f"bench: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    console.print(table(cases))


if __name__ == "__main__":
    app()
