"""The demo's servers as they are without --fast: kill -9, and every row that was acknowledged is there."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from pathlib import Path

import pymysql
import pytest

from demo.process import kill_all, spawn
from proxy.errors import REGISTRY
from tests.conftest import StartDemo
from tests.support.demo import Demo, DemoHost, gone
from tests.support.waiting import wait_until

#: What a server says, or the proxy of it, when it goes in the middle of a statement.
GOING = {REGISTRY[name].code for name in ("host_lost", "host_unreachable")} | {1053, 1317, 1927}


#: So many errors are enough: a writer that goes on without pause keeps the server from coming back.
ENOUGH = 20


class Writer(threading.Thread):
    """Inserts users, and remembers what was acknowledged. After `ENOUGH` errors it waits for `back`."""

    def __init__(self, demo: Demo, number: int, stop: threading.Event, back: threading.Event) -> None:
        super().__init__(daemon=True)
        self.demo, self.number, self.stopped, self.back = demo, number, stop, back
        self.written: list[tuple[int, str]] = []
        self.errors: list[tuple[int, str]] = []

    def run(self) -> None:
        with self.demo.connect() as connection, connection.cursor() as cursor:
            count = 0
            while not self.stopped.is_set():
                count += 1
                data = f'{{"writer": {self.number}, "count": {count}, "random": {random.random()}}}'
                try:
                    cursor.execute("INSERT INTO users (data) VALUES (%s)", (data,))
                    self.written.append((cursor.lastrowid, str(count)))
                except pymysql.MySQLError as error:
                    self.errors.append(error.args[:2])
                    if len(self.errors) > ENOUGH:
                        self.back.wait()


def variables(server: DemoHost) -> tuple[object, ...]:
    with (
        pymysql.connect(
            host=server.host, port=server.port, user=server.user, password=server.password
        ) as own,
        own.cursor() as cursor,
    ):
        cursor.execute("SELECT @@innodb_flush_log_at_trx_commit, @@sync_binlog, @@innodb_doublewrite + 0")
        return tuple(cursor.fetchone() or ())


def answers(server: DemoHost) -> bool:
    try:
        return bool(variables(server))
    except pymysql.MySQLError:
        return False


def counted(demo: Demo) -> int:
    """How many users there are; 0 while a host is away."""
    try:
        with demo.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM users")
            return int(str((cursor.fetchone() or (0,))[0]))
    except pymysql.MySQLError:
        return 0


@pytest.mark.either_server
@pytest.mark.parametrize("options", [(), ("--slaves",)], ids=["alone", "with a binary log"])
def test_kill_9_loses_no_acknowledged_row(
    start_demo: StartDemo, tmp_path: Path, options: tuple[str, ...]
) -> None:
    demo = start_demo("--durable", "--shards", "8", "--empty", *options)
    server = demo.masters[0]
    for one in demo.hosts:
        assert variables(one)[:2] == (1, 1), one.name
    argv = Path(f"/proc/{server.pid}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    stop, back = threading.Event(), threading.Event()
    writers = [Writer(demo, number, stop, back) for number in range(4)]
    for writer in writers:
        writer.start()
    again: subprocess.Popen[bytes] | None = None
    try:
        wait_until(lambda: all(len(writer.written) > 100 for writer in writers), "some rows", 60)
        os.kill(server.pid, signal.SIGKILL)
        wait_until(lambda: gone(server.pid), "its end")
        marks = [len(writer.written) for writer in writers]
        # once the host is known to be away, new rows go to the other one
        wait_until(
            lambda: all(
                writer.errors or len(writer.written) > mark + 100
                for writer, mark in zip(writers, marks, strict=True)
            ),
            "an error of each writer, or that it goes on elsewhere",
        )
        again = spawn(argv, tmp_path / "again.log")
        wait_until(lambda: answers(server), "its return", 60)
        wait_until(lambda: counted(demo) > 0, "the proxy to find it again", 60)
        back.set()
        marks = [len(writer.written) for writer in writers]
        wait_until(
            lambda: all(len(writer.written) > mark + 50 for writer, mark in zip(writers, marks, strict=True)),
            "further rows",
            60,
        )
        stop.set()
        for writer in writers:
            writer.join(30)
        assert {code for writer in writers for code, _ in writer.errors} <= GOING
        with demo.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id, JSON_VALUE(data, '$.writer'), JSON_VALUE(data, '$.count') FROM users")
            found = {int(id): (writer, count) for id, writer, count in cursor.fetchall()}
        for writer in writers:
            for id, count in writer.written:
                assert found.get(id) == (str(writer.number), count), (writer.number, id, count)
        assert {id >> 46 < 4 for writer in writers for id, _ in writer.written} == {True, False}
        assert variables(server)[:2] == (1, 1)
    finally:
        stop.set()
        back.set()
        if again is not None:
            kill_all([again])  # told to end, MySQL turns in a circle for as long as a slave is there
