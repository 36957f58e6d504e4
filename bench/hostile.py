"""``python -m bench.hostile``: how long a client waits while others attack.

A probing client sends a ping and a point SELECT in turn, some hundred times a second, and notes how long
each takes. Meanwhile clients in processes of their own do one of `ATTACKS`, again and again. What is
printed is the probe's worst wait and its 99th percentile, in milliseconds: first without anybody else, then
under each attack.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import pymysql
import typer
from pymysql.connections import Connection
from rich.console import Console
from rich.table import Table

from bench import attacks
from bench import cluster as clusters
from bench.cluster import DATABASE
from bench.sysbench import Target
from bench.tools import BenchError
from bench.usage import usage
from demo.programs import ServerError, find_program

AIM: Final = 100.0
"""Milliseconds that nobody should have to wait longer than."""

PAUSE: Final = 0.003
"""Seconds between two questions of the probe."""

POINT: Final = "SELECT id, data FROM pins WHERE id = 241294492511762325"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
console = Console(highlight=False)


@dataclass(frozen=True)
class Waits:
    """What the probe has seen, in milliseconds; the proxy's memory in MB, at most. `cpu`: for how many
    hundredths of the time the proxy's loop was on a CPU, `queued`: for how many it was ready to run while
    others were on all of them, which no proxy can help.
    """

    questions: int
    worst: float
    high: float
    median: float
    memory: float
    cpu: float
    queued: float


class _LoggedIn(Connection):
    """Sends no statement of its own, so that compression may begin at once."""

    def set_character_set(self, charset: Any, collation: Any = None) -> None:
        del charset, collation


def connect(target: Target, flags: int = 0) -> Any:
    """A client that has only logged in."""
    host, port = target.addresses[0]
    return _LoggedIn(
        host=host,
        port=port,
        user=target.user,
        password=target.password,
        database=DATABASE,
        client_flag=flags,
        autocommit=None,
    )


def attack(target: Target, flags: int, run: Callable[[socket.socket], None]) -> None:
    """One hostile client, until it is stopped. Connects again when it is thrown out."""
    while True:
        with suppress(OSError, pymysql.Error, EOFError):
            client = connect(target, flags)
            client._sock.settimeout(None)
            while True:
                run(client._sock)
        time.sleep(0.05)


@contextmanager
def attacking(target: Target, chosen: list[attacks.Attack], clients: int) -> Iterator[None]:
    """Hostile clients, each in a process of its own."""
    context = multiprocessing.get_context("fork")
    children = [
        context.Process(target=attack, args=(target, one.flags, one.run), daemon=True)
        for one in chosen
        for _ in range(clients)
    ]
    for child in children:
        child.start()
    try:
        yield
    finally:
        for child in children:
            child.kill()
        for child in children:
            child.join()


def prober(target: Target) -> Any:
    """The client that asks. It connects before the attack begins."""
    host, port = target.addresses[0]
    return pymysql.connect(
        host=host, port=port, user=target.user, password=target.password, database=DATABASE
    )


def probe(client: Any, pid: int, seconds: float) -> Waits:
    """Ask for so long. A question at the end is waited for, however long it takes."""
    waits: list[float] = []
    memory = 0
    before = scheduled(pid)
    end = time.monotonic() + seconds
    with client, client.cursor() as cursor:
        while (begun := time.monotonic()) < end:
            if len(waits) % 2:
                client.ping(reconnect=False)
            else:
                cursor.execute(POINT)
            waits.append((time.monotonic() - begun) * 1e3)
            if len(waits) % 20 == 0:
                memory = max(memory, usage([pid]).rss)
            time.sleep(PAUSE)
    cpu, queued = (100 * (now - was) / 1e9 / seconds for now, was in zip(scheduled(pid), before, strict=True))
    waits.sort()
    high = waits[len(waits) * 99 // 100]
    memory = max(memory, usage([pid]).rss)
    return Waits(len(waits), waits[-1], high, statistics.median(waits), memory / 1e6, cpu, queued)


def scheduled(pid: int) -> tuple[int, int]:
    """Nanoseconds for which a process's first thread has run, and for which it was ready to and did not."""
    ran, waited, _ = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()
    return int(ran), int(waited)


@app.command()
def main(
    seconds: Annotated[float, typer.Option(help="Length of each attack.")] = 8.0,
    clients: Annotated[int, typer.Option(min=1, help="Hostile clients of each kind.")] = 2,
    only: Annotated[list[str] | None, typer.Option(help="An attack; may be repeated.")] = None,
    together: Annotated[bool, typer.Option("--together", help="All of them at once, too.")] = False,
    mysqld: Annotated[Path | None, typer.Option(help="The database server's program, or its folder.")] = None,
) -> None:
    """Print the worst wait of a client beside hostile ones."""
    unknown = set(only or ()) - set(attacks.ATTACKS)
    if unknown:
        print(f"bench: there is no attack {', '.join(unknown)}; there are {', '.join(attacks.ATTACKS)}")
        raise typer.Exit(2)
    chosen = [attacks.ATTACKS[name] for name in only or attacks.ATTACKS]
    try:
        server = find_program(mysqld)
        with clusters.running(server.path, 1) as cluster:
            target, pid = cluster.proxy, cluster.proxy_pid
            load = os.getloadavg()[0]
            console.print(
                f"{server.title}, {os.cpu_count()} CPUs; {clients} hostile clients; load {load:.1f}"
            )
            table = Table(
                "attack", *(["median", "99 %", "worst", "questions", "memory MB", "on CPU", "no CPU"])
            )
            rounds: list[tuple[str, list[attacks.Attack]]] = [("nobody", [])]
            rounds += [(one.name, [one]) for one in chosen]
            if together:
                rounds.append(("all at once", chosen))
            for name, kinds in rounds:
                client = prober(target)
                with attacking(target, kinds, clients):
                    waits = probe(client, pid, seconds)
                style = "red" if waits.worst > AIM else ""
                line: tuple[str, ...] = f"{waits.median:.1f}", f"{waits.high:.1f}", f"{waits.worst:.1f}"
                line += (
                    str(waits.questions),
                    f"{waits.memory:.0f}",
                    f"{waits.cpu:.0f} %",
                    f"{waits.queued:.0f} %",
                )
                table.add_row(name, *line, style=style)
                console.print(name, *line)
            console.print(table)
    except (BenchError, ServerError) as error:
        print(f"bench: {error}", file=sys.stderr)
        raise typer.Exit(2) from None


if __name__ == "__main__":
    app()
