"""``python -m bench.topologies``: what a topology of many ranges costs.

For each number of ranges (``--ranges``, again and again) a proxy is started with a topology of 65,536 shards
in so many ranges, which lie on two hosts in turn. What is printed: seconds and CPU seconds until it
serves; seconds and CPU seconds from the moment the file is replaced by one in which another range lies on the
other host until SHOW PROXY STATUS tells its version (the median of ``--changes``); the longest wait
of another client meanwhile, who says nothing but COM_PING, beside that of as long a time without a change;
and the proxy's CPU time for a point SELECT. ``--yaml`` writes the file in YAML instead of the JSON that the
fleet tools write, ``--workers`` has several processes take the change. CPU times are those of all processes,
those included that have ended. Nothing is added to the history.
"""

from __future__ import annotations

import json
import os
import random
import socket
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import pymysql
import typer
import yaml
from rich.console import Console
from rich.table import Table

from bench import cluster as clusters
from bench.attacks import PING, ask, query
from bench.cluster import DATABASE, KEYSPACE, Cluster
from bench.tools import BenchError
from bench.usage import TICKS, family, usage
from bench.workloads import SHARDS
from demo.programs import ServerError, find_program
from demo.proxy import LocalProxy
from fleet.document import written

MOST: Final = 65_536
"""Shards of the keyspace; the first `bench.workloads.SHARDS` of them exist."""

PATIENCE: Final = 120.0
"""Seconds for a change to be in force."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False)


@dataclass(frozen=True)
class Cost:
    """Seconds and CPU seconds of a start and of a change; the longest wait of a PING, in seconds, during the
    changes and without one; microseconds of CPU for a point SELECT; megabytes of memory."""

    ranges: int
    bytes: int
    start: float
    start_cpu: float
    change: float
    change_cpu: float
    wait: float
    quiet: float
    point: float
    rss: float


def ranges_of(count: int, hosts: tuple[str, str]) -> list[dict[str, Any]]:
    """About `count` ranges of all shards, on `hosts` in turn. Those that exist stay where they are."""
    half = SHARDS // 2
    found = [(0, half - 1, hosts[0]), (half, SHARDS - 1, hosts[1])]
    left, first = max(count - len(found), 1), SHARDS
    for number in range(left):
        last = SHARDS + (MOST - SHARDS) * (number + 1) // left - 1
        found.append((first, last, hosts[number % 2]))
        first = last + 1
    return [{"range": [one, two], "master": host, "open": one < SHARDS} for one, two, host in found]


def document_of(base: dict[str, Any], ranges: list[dict[str, Any]]) -> dict[str, Any]:
    """The demo's topology with these ranges."""
    keyspaces = base["keyspaces"]
    return base | {"keyspaces": keyspaces | {KEYSPACE: keyspaces[KEYSPACE] | {"ranges": ranges}}}


def write(path: Path, document: dict[str, Any], *, as_yaml: bool) -> int:
    """Replace the file; its size in bytes."""
    text = yaml.dump(document, Dumper=yaml.CSafeDumper).encode() if as_yaml else written(document)
    draft = path.with_suffix(".new")
    draft.write_bytes(text)
    draft.rename(path)
    return len(text)


def cpu_of(pids: tuple[int, ...]) -> float:
    """CPU seconds of processes, and of their children that have ended."""
    ended = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ended += int(fields[13]) + int(fields[14])
    return usage(pids).cpu + ended / TICKS


class Pinger:
    """A client that sends a COM_PING every millisecond, and remembers the longest wait for an answer."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._stopping = threading.Event()
        self._longest = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def longest(self) -> float:
        """Since the last call."""
        found, self._longest = self._longest, 0.0
        return found

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(0.001):
            begun = time.monotonic()
            ask(self._sock, PING)
            self._longest = max(self._longest, time.monotonic() - begun)


@contextmanager
def started(cluster: Cluster, topology: Path, workers: int) -> Iterator[tuple[LocalProxy, float]]:
    """A proxy like the cluster's own with this topology, and the seconds that it took to serve."""
    folder = topology.parent
    proxy = LocalProxy(folder, port=0, page=True)
    settings = json.loads((cluster.folder / "shardgate.yaml").read_text())
    settings |= {
        "listen": f"{proxy.host}:{proxy.port}",
        "schema": str(cluster.folder / "schema.yaml"),
        "topology": {"file": str(topology)},
        "status": {"listen": f"{proxy.host}:{proxy.status_port}"},
        "workers": workers,
    }
    proxy.configure(settings)
    begun = time.monotonic()
    try:
        proxy.start()
        yield proxy, time.monotonic() - begun
    finally:
        proxy.stop()
        proxy.release()


def connect(cluster: Cluster, proxy: LocalProxy) -> pymysql.connections.Connection:
    """A client of the proxy."""
    return pymysql.connect(
        host=proxy.host,
        port=proxy.port,
        user=cluster.proxy.user,
        password=cluster.proxy.password,
        database=DATABASE,
        autocommit=True,
    )


def socket_of(connection: Any) -> socket.socket:
    """PyMySQL's, for commands that it has not."""
    found: socket.socket = connection._sock
    return found


def version_of(connection: pymysql.connections.Connection) -> int:
    """The topology that is in force."""
    with connection.cursor() as cursor:
        cursor.execute("SHOW PROXY STATUS")
        return int(dict(cursor.fetchall())["Topology_version"])


def point_cpu(sock: socket.socket, pids: tuple[int, ...], statements: int) -> float:
    """Microseconds of the proxy's CPU for a point SELECT."""
    numbers = [random.randrange(SHARDS) << 46 | 3 << 36 | 1 for _ in range(statements)]
    commands = [query(f"SELECT id, data FROM users WHERE id = {one}") for one in numbers]
    for command in commands[: statements // 10]:
        ask(sock, command)
    before = cpu_of(pids)
    for command in commands:
        ask(sock, command)
    return (cpu_of(pids) - before) / statements * 1e6


class Served:
    """A proxy that serves, and its clients."""

    def __init__(self, cluster: Cluster, proxy: LocalProxy) -> None:
        self.pids = family(proxy.pid)
        self.start_cpu = cpu_of(self.pids)
        self.watcher, self.silent, self.asking = (connect(cluster, proxy) for _ in range(3))
        self.pinger = Pinger(socket_of(self.silent))

    def changed(self, path: Path, version: int) -> tuple[float, float, float]:
        """Put the next topology in place. Seconds until it is in force, CPU seconds, and the longest wait of
        a PING.
        """
        self.pinger.longest()
        before, begun = cpu_of(self.pids), time.monotonic()
        path.with_suffix(".next").rename(path)
        while version_of(self.watcher) != version:
            if time.monotonic() > begun + PATIENCE:
                raise BenchError(f"version {version} is not in force after {PATIENCE:.0f} s")
            time.sleep(0.01)
        took = time.monotonic() - begun
        time.sleep(2)  # what comes after it, too
        return took, cpu_of(self.pids) - before, self.pinger.longest()

    def close(self) -> None:
        self.pinger.stop()
        for connection in (self.watcher, self.silent, self.asking):
            connection.close()


def measure(
    cluster: Cluster, base: dict[str, Any], count: int, changes: int, workers: int, *, as_yaml: bool
) -> Cost:
    """Start a proxy with `count` ranges (0: the demo's own topology), and change it."""
    folder = cluster.folder / f"ranges-{count}"
    folder.mkdir()
    own = base["keyspaces"][KEYSPACE]["ranges"]
    hosts = (own[0]["master"], own[1]["master"])
    ranges = ranges_of(count, hosts) if count else own
    document = document_of(base, ranges)
    path = folder / "topology.json"
    size = write(path, document, as_yaml=as_yaml)
    found = []
    with started(cluster, path, workers) as (proxy, start):
        served = Served(cluster, proxy)
        time.sleep(3)  # what is done after the start is over
        served.pinger.longest()
        time.sleep(3)
        quiet = served.pinger.longest()
        for number in range(changes):
            one = ranges[-1 - number % max(len(ranges) - 2, 1)]
            one["master"] = hosts[one["master"] == hosts[0]]
            document["version"] += 1
            write(path.with_suffix(".next"), document, as_yaml=as_yaml)
            found.append(served.changed(path, document["version"]))
        point = point_cpu(socket_of(served.asking), served.pids, 5000)
        rss = usage(served.pids).rss / (1 << 20)
        served.close()
    took, cpu, waits = zip(*found, strict=True)
    change, change_cpu = statistics.median(took), statistics.median(cpu)
    return Cost(count, size, start, served.start_cpu, change, change_cpu, max(waits), quiet, point, rss)


def table(costs: list[Cost]) -> Table:
    """What was measured."""
    shown = Table(
        title="topologies of many ranges (aim: start below 3 s, change below 1 s, wait below 20 ms)"
    )
    for name in (
        "ranges",
        "MB of text",
        "start s",
        "CPU s",
        "change s",
        "CPU s",
        "longest wait ms",
        "without ms",
        "point SELECT µs",
        "MB",
    ):
        shown.add_column(name, justify="right")
    for one in costs:
        shown.add_row(
            f"{one.ranges:,}" if one.ranges else "the demo's",
            f"{one.bytes / 1e6:.1f}",
            f"{one.start:.1f}",
            f"{one.start_cpu:.1f}",
            f"{one.change:.2f}",
            f"{one.change_cpu:.2f}",
            f"{one.wait * 1000:.0f}",
            f"{one.quiet * 1000:.0f}",
            f"{one.point:.1f}",
            f"{one.rss:.0f}",
        )
    return shown


@app.command()
def main(
    ranges: Annotated[
        list[int] | None, typer.Option(min=0, help="Ranges; may be repeated. 0: the demo's 64 shards.")
    ] = None,
    changes: Annotated[int, typer.Option(min=1, help="Changes of each topology.")] = 3,
    workers: Annotated[int, typer.Option(min=1, help="The proxy's processes.")] = 1,
    as_yaml: Annotated[bool, typer.Option("--yaml", help="Write the topology in YAML.")] = False,
    mysqld: Annotated[
        Path | None, typer.Option(help="The database server's program, or its folder.", metavar="PATH")
    ] = None,
) -> None:
    """Start a proxy with topologies of many ranges, and change them."""
    costs = []
    try:
        server = find_program(mysqld)
        with clusters.running(server.path, 1) as cluster:
            text = (cluster.folder / "topology.json").read_text()
            for count in ranges or [0, 4096, 65_474]:
                with console.status(f"{count:,} ranges"):
                    base = json.loads(text)
                    costs.append(measure(cluster, base, count, changes, workers, as_yaml=as_yaml))
                console.print(costs[-1])
    except (BenchError, ServerError) as error:
        print(f"bench: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    console.print(f"{server.title}; load of the machine {os.getloadavg()[0]:.1f}")
    console.print(table(costs))


if __name__ == "__main__":
    app()
