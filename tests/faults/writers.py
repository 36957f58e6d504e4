"""`Writers`: clients that write all the time, each in its own way, and keep what was acknowledged to them."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from tests.integration.binary import Answer, Binary, integer
from tests.integration.fixtures import make_id
from tests.integration.raw import Raw, Reply, query
from tests.support.waiting import wait_until

Place = tuple[str, int]
"""A physical database, and the user whose rows are written there."""

RETRY = frozenset({1213, 1053})
"""What says that a transaction is to be run again: nothing of it was done."""
IN_FLIGHT = frozenset({1158, 1180, 2013})
"""What says that nobody knows whether it was done."""


PAUSE = 0.05
"""Seconds between two rounds of a writer: what is tested runs on the same machine, and what eight of them
write goes to the slaves, too. A fence, or a change of the master, takes as long as several rounds.
"""


def place(shard: int) -> Place:
    """Where writers of this shard of the demo's keyspace main write."""
    return f"db{shard:05d}", make_id(shard, 3, 900_001)


@dataclass
class Writer:
    """One client. `longest`: seconds that a statement took at most since `reset`. `unknown`: numbers of which
    nobody knows whether they were written; `retried`: replies after which a transaction is run again;
    `problems`: replies that no client should get.
    """

    address: tuple[str, int]
    index: int
    user: int
    stop: threading.Event
    tolerant: bool
    acknowledged: set[int] = field(default_factory=set)
    unknown: set[int] = field(default_factory=set)
    problems: list[object] = field(default_factory=list)
    retried: list[object] = field(default_factory=list)
    rounds: int = 0
    longest: float = 0.0

    def __post_init__(self) -> None:
        self.next = (self.index + 1) * 10_000_000
        self.thread = threading.Thread(target=self.run)
        self.connect()

    def connect(self) -> None:
        self.client = Raw(*self.address, timeout=300.0)
        assert self.client.login(database="demo").kind == "ok"
        self.binary = Binary(self.client)
        sql = "INSERT INTO user_likes_pins (user_id, pin_id, sequence) VALUES (?, ?, ?)"
        self.statement = self.binary.statement(sql)

    def run(self) -> None:
        ways: Sequence[Callable[[], None]] = (self.plain, self.prepared, self.transaction, self.pipelined)
        while not self.stop.is_set() and not self.problems:
            began = time.monotonic()
            ways[self.index % 4]()
            self.longest = max(self.longest, time.monotonic() - began)
            self.rounds += 1
            self.stop.wait(PAUSE)
        self.client.close()

    def numbers(self, count: int) -> list[int]:
        self.next += count
        return list(range(self.next - count, self.next))

    def insert(self, number: int) -> str:
        return f"INSERT INTO user_likes_pins (user_id, pin_id, sequence) VALUES ({self.user}, {number}, 0)"

    def take(self, reply: Reply | Answer, *numbers: int) -> bool:
        """Whether it was done."""
        if reply.kind == "ok":
            self.acknowledged.update(numbers)
            return True
        code = getattr(reply, "code", 0)
        if code in RETRY:
            self.retried.append(reply)
        elif self.tolerant and code in IN_FLIGHT:
            self.unknown.update(numbers)
        else:
            self.problems.append(reply)
        return False

    def plain(self) -> None:
        (number,) = self.numbers(1)
        self.take(self.client.ask(self.insert(number)), number)

    def prepared(self) -> None:
        (number,) = self.numbers(1)
        values = [integer(self.user), integer(number), integer(number)]
        self.take(self.binary.execute(self.statement.id, values), number)

    def transaction(self) -> None:
        numbers = self.numbers(2)
        steps = ["BEGIN", *map(self.insert, numbers)]
        if all(self.take(self.client.ask(sql)) for sql in steps):
            self.take(self.client.ask("COMMIT"), *numbers)
        elif self.tolerant:
            self.client.ask("ROLLBACK")

    def pipelined(self) -> None:
        numbers = self.numbers(3)
        self.client.write(b"".join(query(self.insert(number)) for number in numbers))
        for number in numbers:
            self.take(self.client.reply(), number)


class Writers:
    """A context manager: they write within it. `tolerant`: what was in flight may fail. `group`: of several
    at once, each has its own numbers.
    """

    def __init__(
        self,
        address: tuple[str, int],
        places: Sequence[Place],
        count: int = 8,
        *,
        tolerant: bool = False,
        group: int = 0,
    ) -> None:
        self._stop = threading.Event()
        self.places = places
        self.all = [
            Writer(address, group * count + index, places[index // 4 % len(places)][1], self._stop, tolerant)
            for index in range(count)
        ]

    def __enter__(self) -> Self:
        for one in self.all:
            one.thread.start()
        self.go_on()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._stop.set()
        if kind is not None:  # what went wrong shall be told before who waits gives up
            for one in self.all:
                with suppress(OSError):  # it has closed it
                    one.client.sock.shutdown(socket.SHUT_RDWR)
        for one in self.all:
            one.thread.join()

    def go_on(self) -> None:
        """Wait until each has written again."""
        before = [one.rounds for one in self.all]
        wait_until(
            lambda: all(
                one.rounds > rounds + 2 or one.problems for one, rounds in zip(self.all, before, strict=True)
            ),
            "all write",
        )

    def longest(self) -> list[float]:
        """The longest that each has waited since this was asked last, in seconds."""
        found = [one.longest for one in self.all]
        for one in self.all:
            one.longest = 0.0
        return found

    @property
    def problems(self) -> list[object]:
        return [problem for one in self.all for problem in one.problems]

    @property
    def retried(self) -> list[object]:
        return [reply for one in self.all for reply in one.retried]

    @property
    def acknowledged(self) -> set[int]:
        return set().union(*(one.acknowledged for one in self.all))

    @property
    def unknown(self) -> set[int]:
        return set().union(*(one.unknown for one in self.all))
