"""Clients that read and write rows of tables with a cache, and check that nobody is told what is old.

Every write adds one to a row's number, so a row's number is at least that of the writes acknowledged so far.
What a client reads must be at least: the number that its own session knows of; and what all had been told a
lease before it asked (with `lease` 0: when it asked, unless it is `excused`).
"""

from __future__ import annotations

import json
import random
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

import pymysql

from tests.support.servers import Connection

Connect = Callable[[], Connection]


@dataclass
class Row:
    """`write` adds one to what `read` gives. `before`: what that was before any write."""

    write: str
    read: str
    before: int = 0
    acknowledged: list[float] = field(default_factory=list)
    last: float = 0.0  # when a write began

    def known(self, time: float) -> int:
        """What all had been told at that time."""
        return self.before + bisect_right(self.acknowledged, time)


class CachedRows:
    """Runs writers and readers, each on a connection of its own, until the end of the `with`; then raises
    what they have found wrong. `rest`: so many seconds a row has between two writes. `tolerant`: connections
    may break, and are made again. `excused` is given how late a read was, in seconds, and when it asked.
    """

    def __init__(
        self,
        rows: Sequence[Row],
        writers: Sequence[Connect],
        readers: Sequence[Connect],
        *,
        rest: float,
        lease: float = 0.0,
        transactions: bool = False,
        tolerant: bool = False,
        excused: Callable[[float, float], bool] = lambda late, asked: False,
    ) -> None:
        self.rows = rows
        self.lease = lease
        self.excused = excused
        self.transactions = transactions
        self.tolerant = tolerant
        self.reads = 0
        self.writes = 0
        self.problems: list[str] = []
        self.pause = len(writers) * rest / len(rows)  # between two writes of one writer
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(one, self._write)) for one in writers]
        self._threads += [threading.Thread(target=self._run, args=(one, self._read)) for one in readers]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        assert not self.problems, "\n".join(self.problems[:20])

    def _run(self, connect: Connect, step: Callable[[Connection, dict[str, int]], None]) -> None:
        connection = None
        own: dict[str, int] = {}  # by row: what this session knows
        while not self._stop.is_set() and len(self.problems) < 20:
            try:
                if connection is None:
                    connection, own = connect(), {}
                step(connection, own)
            except (pymysql.MySQLError, OSError) as error:
                if not self.tolerant:
                    self.problems.append(f"{error}")
                    return
                with suppress(Exception):
                    assert connection is not None
                    connection.close()
                connection = None
                time.sleep(0.02)
        if connection is not None:
            connection.close()

    def _write(self, connection: Connection, own: dict[str, int]) -> None:
        with self._lock:  # the one that has rested longest: it is in the cache again
            row = min(self.rows, key=lambda one: one.last)
            row.last = time.monotonic()
        with connection.cursor() as cursor:
            if self.transactions:
                cursor.execute("BEGIN")
            cursor.execute(row.write)
            if self.transactions:
                cursor.execute("COMMIT")
        with self._lock:
            row.acknowledged.append(time.monotonic())
            own[row.read] = max(own.get(row.read, row.before), row.before) + 1
            self.writes += 1
        self._check(connection, row, own)
        time.sleep(self.pause * (0.5 + random.random()))

    def _read(self, connection: Connection, own: dict[str, int]) -> None:
        self._check(connection, random.choice(self.rows), own)
        time.sleep(random.random() * 0.04)

    def _check(self, connection: Connection, row: Row, own: dict[str, int]) -> None:
        known = own.get(row.read, row.before)
        asked = time.monotonic()
        with self._lock:
            told = row.known(asked - self.lease)
        found = number(connection, row.read)
        self.reads += 1
        if found < known:
            self.problems.append(f"{row.read}: {found}, and the session knew of {known}")
        if found < told:
            late = asked - row.acknowledged[found - row.before]
            if self.excused(late, asked):
                return
            self.problems.append(f"{row.read}: {found}, {told} was told; old by {late:.3f} s")
        if not self.lease:
            own[row.read] = max(known, found)


def number(connection: Connection, sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        value: Any = cursor.fetchall()[0][0]
    return int(json.loads(value)["n"]) if isinstance(value, str) else int(value)


def pin_row(pin: int) -> Row:
    write = f"UPDATE pins SET data = JSON_SET(data, '$.n', JSON_EXTRACT(data, '$.n') + 1) WHERE id = {pin}"
    return Row(write, f"SELECT data FROM pins WHERE id = {pin}")


def list_row(board: int) -> Row:
    write = f"INSERT INTO board_has_pins (board_id, pin_id) VALUES ({board}, 5)"
    return Row(write, f"SELECT COUNT(*) FROM board_has_pins WHERE board_id = {board}")
