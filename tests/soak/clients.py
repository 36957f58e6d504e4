"""Clients that write: each in its own way of speaking, and each looks at once at what it has written."""

from __future__ import annotations

import random
import struct
import threading
import zlib
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import pymysql

from tests.integration.binary import Answer, Binary, integer
from tests.integration.fixtures import make_id
from tests.integration.raw import Closed, Raw, Reply, query
from tests.integration.test_compression import COMPRESS, Compressed
from tests.soak.journal import CLOSED, NOT_DONE, Journal, name_of
from tests.soak.ledger import PURSES, START, Ledger
from tests.support.demo import Demo

T = TypeVar("T")

GONE = frozenset({0, 2003, 2006, 2013, 2014, 2055})
"""PyMySQL's own codes, for a connection that has ended."""


class Failed(Exception):
    """A statement failed, which the journal knows. `name`: of the error."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Refused(Exception):
    """An error packet."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)


class Traffic:
    """What all clients share. `address`: the proxy's. `pause`: seconds between two rounds of a client."""

    def __init__(self, demo: Demo, address: tuple[str, int], seed: int, shards: int, pause: float) -> None:
        self.demo, self.address, self.seed, self.shards = demo, address, seed, shards
        self.pause = pause
        self.journal, self.ledger = Journal(), Ledger()
        self.stop = threading.Event()


class Client:
    """One client, in a thread of its own. Subclasses write `connect`, `turn` and `close`; what they ask goes
    through `step`.
    """

    kind: ClassVar[str] = ""

    def __init__(self, traffic: Traffic, index: int) -> None:
        self.traffic, self.index = traffic, index
        self.journal, self.ledger = traffic.journal, traffic.ledger
        self.name = f"{self.kind} {index}"
        self.random = random.Random(f"{traffic.seed}:{self.name}")
        own = zlib.crc32(self.name.encode())
        self.account = make_id((own + index * 3) % traffic.shards, 3, 900_000 + own % 90_000)
        self.number = 0
        self.connected = False
        self.thread = threading.Thread(target=self.run, name=self.name)

    def connect(self) -> None:
        raise NotImplementedError

    def turn(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def goes_on(self, other: Client) -> None:
        """Where another of the same kind and account has ended."""
        self.number, self.random = other.number, other.random

    def recover(self, failed: str) -> None:
        """After a failure of `turn`: the connection may be used again, or not."""
        if failed == CLOSED or self.random.random() < 0.3:
            self.close()
            self.connected = False

    def run(self) -> None:
        try:
            while not self.traffic.stop.is_set():
                try:
                    if not self.connected:
                        self.step("(connects)", self.connect)
                        self.connected = True
                    self.turn()
                except Failed as failed:
                    self.recover(failed.name)
                    self.traffic.stop.wait(0.1)
                self.traffic.stop.wait(self.traffic.pause)
            self.close()
        except Exception as error:
            self.journal.trouble(f"{self.name}: {error!r}")
            raise

    def step(self, text: str, action: Callable[[], T]) -> T:
        """Do it, and have the journal know. Failed when it fails."""
        began = self.journal.begins(self.name, text)
        error, said = "", ""
        try:
            found = action()
        except (Closed, OSError, EOFError, struct.error) as closed:
            error, said = CLOSED, repr(closed)
        except (pymysql.MySQLError, Refused) as failure:
            code = failure.args[0] if failure.args and isinstance(failure.args[0], int) else 0
            said = f"{code}: {failure.args[-1] if failure.args else failure!r}"
            error = CLOSED if code in GONE else name_of(code & 0xFFFF, str(failure.args[-1]))
        self.journal.done(self.name, self.kind, began, text, error, said)
        if error:
            raise Failed(error)
        return found

    def same(self, text: str, expected: object, got: object) -> None:
        if expected != got:
            self.journal.wrong(self.name, text, expected, got)

    def next(self) -> int:
        self.number += 1
        return self.number

    def write(self, *entries: tuple[int, int], by: Callable[[], object]) -> None:
        """What writes these entries; Failed when it fails."""
        try:
            by()
        except Failed as failed:
            (self.ledger.refused if failed.name in NOT_DONE else self.ledger.unknown).update(entries)
            raise
        self.ledger.done.update(entries)


class RawClient(Client):
    """One that speaks the protocol by itself."""

    raw: Raw

    def connect(self) -> None:
        self.raw = Raw(*self.traffic.address, timeout=90.0)
        self.log_in(0)

    def log_in(self, flags: int, database: str = "soak") -> None:
        good(self.raw.login(database=database, flags=flags))

    def close(self) -> None:
        if hasattr(self, "raw"):
            self.raw.close()

    def ask(self, sql: str) -> Reply:
        return self.step(sql, lambda: good(self.raw.ask(sql)))


def good(reply: Reply) -> Reply:
    """Refused when it is an error."""
    if reply.kind == "err":
        raise Refused(reply.code, reply.message)
    return reply


class Plain(RawClient):
    """Rows by COM_QUERY; then the row, and the list of the latest."""

    kind = "plain"

    def turn(self) -> None:
        number = self.next()
        sql = f"INSERT INTO ledger (account, entry, sequence) VALUES ({self.account}, {number}, {number})"
        self.write((self.account, number), by=lambda: self.ask(sql))
        sql = f"SELECT entry FROM ledger WHERE account = {self.account} AND entry = {number}"
        self.same(sql, [(b"%d" % number,)], self.ask(sql).rows)
        if number % 5 == 0:
            self.latest(number)

    def latest(self, number: int) -> None:
        """A list in order: all that was acknowledged is in it, nothing that was refused is."""
        first = max(1, number - 40)
        where = f"account = {self.account} AND entry >= {first}"
        sql = f"SELECT entry FROM ledger WHERE {where} ORDER BY sequence DESC"
        rows = [int(row[0] or 0) for row in self.ask(sql).rows]
        unknown = {n for n in range(first, number + 1) if (self.account, n) in self.ledger.unknown}
        expected = [
            n
            for n in range(number, first - 1, -1)
            if (self.account, n) in self.ledger.done or (n in rows and n in unknown)
        ]
        self.same(sql, expected, rows)


class Zipped(Plain):
    """The same in the compressed protocol."""

    kind = "compressed"

    def connect(self) -> None:
        self.raw = client = Compressed(*self.traffic.address, timeout=90.0)
        self.log_in(COMPRESS)
        client.start("zlib")


class Pipelined(RawClient):
    """Several statements in one write."""

    kind = "pipelined"

    def turn(self) -> None:
        numbers = [self.next() for _ in range(4)]
        texts = [f"INSERT INTO plain_ledger (account, entry) VALUES ({self.account}, {n})" for n in numbers]
        try:
            self.step("(pipelined)", lambda: self.raw.write(b"".join(map(query, texts))))
        except Failed:
            self.ledger.unknown.update((self.account, number) for number in numbers)
            raise
        failed: Failed | None = None
        for number, sql in zip(numbers, texts, strict=True):
            try:
                self.write((self.account, number), by=lambda: self.step(sql, lambda: good(self.raw.reply())))  # noqa: B023
            except Failed as one:
                failed = one
        if failed:
            raise failed
        sql = f"SELECT COUNT(*) FROM plain_ledger WHERE account = {self.account} AND entry >= {numbers[0]}"
        self.same(sql, b"4", self.ask(sql).value)


class Prepared(RawClient):
    """Rows and reads by prepared statements, which are kept."""

    kind = "prepared"

    def connect(self) -> None:
        super().connect()
        self.binary = Binary(self.raw)
        self.insert, self.select = (
            self._prepare(sql)
            for sql in (
                "INSERT INTO ledger (account, entry, sequence) VALUES (?, ?, ?)",
                "SELECT entry FROM ledger WHERE account = ? AND entry = ?",
            )
        )

    def _prepare(self, sql: str) -> int:
        found = self.binary.prepare(sql)
        if isinstance(found, Answer):
            raise Refused(found.code, found.message)
        return found.id

    def execute(self, statement: int, *values: int) -> Answer:
        def run() -> Answer:
            answer = self.binary.execute(statement, map(integer, values))
            if answer.kind == "err":
                raise Refused(answer.code, answer.message)
            return answer

        return self.step(f"(statement {statement} with {values})", run)

    def turn(self) -> None:
        number = self.next()
        values = (self.account, number, number)
        self.write((self.account, number), by=lambda: self.execute(self.insert, *values))
        rows = self.execute(self.select, *values[:2]).rows
        self.same(f"prepared: entry {values[:2]}", [struct.pack("<xxQ", number)], rows)


class Driver(Client):
    """One that uses PyMySQL, over TLS."""

    connection: Any = None

    def connect(self) -> None:
        authority = self.traffic.demo.directory / "ca.pem"
        ssl = {"ca": str(authority)} if authority.exists() else {"check_hostname": False}
        host, port = self.traffic.address
        self.connection = self.traffic.demo.connect(
            host=host, port=port, database="soak", ssl=ssl, read_timeout=90
        )

    def close(self) -> None:
        if self.connection is not None and self.connection.open:
            self.connection._force_close()

    def ask(self, sql: str) -> tuple[tuple[Any, ...], ...]:
        def run() -> tuple[tuple[Any, ...], ...]:
            with self.connection.cursor() as cursor:
                cursor.execute(sql)
                return tuple(cursor.fetchall())

        return self.step(sql, run)

    def begin_purses(self, *accounts: int) -> None:
        """What all of them hold; once, before there are faults."""
        for account in accounts:
            rows = ", ".join(f"({account}, {purse}, {START})" for purse in range(PURSES))
            self.ask(f"INSERT INTO purses (account, purse, sequence) VALUES {rows}")
        self.ledger.together.append(accounts)

    def move(self, account: int, amount: int) -> None:
        purse = self.random.randrange(PURSES)
        self.ask(
            f"UPDATE purses SET sequence = sequence + {amount} WHERE account = {account} AND purse = {purse}"
        )

    def recover(self, failed: str) -> None:
        """ROLLBACK ends what was lost, whatever it was."""
        super().recover(failed)
        if self.connected:
            try:
                self.ask("ROLLBACK")
            except Failed:
                self.close()
                self.connected = False


class Transfers(Driver):
    """Transactions on one shard, in which a sum stays, some of them rolled back."""

    kind = "transactions"

    def turn(self) -> None:
        account, entry = self.account, (self.account, self.next())
        if self.number == 1:
            self.begin_purses(account)
        amount, total = (
            self.random.randrange(1, 50),
            f"SELECT SUM(sequence) FROM purses WHERE account = {account}",
        )
        self.ledger.refused.add(entry)  # until COMMIT is sent
        self.ask("BEGIN")
        self.move(account, amount)
        self.ask(f"INSERT INTO ledger (account, entry, sequence) VALUES ({account}, {entry[1]}, 0)")
        self.move(account, -amount)
        self.same(total, [(START * PURSES,)], list(self.ask(total)))
        if self.random.random() < 0.2:
            self.ask("ROLLBACK")
            return
        self.ledger.refused.discard(entry)
        self.write(entry, by=lambda: self.ask("COMMIT"))
        self.same(total, [(START * PURSES,)], list(self.ask(total)))


class Distributed(Driver):
    """Transactions over both hosts, all or none."""

    kind = "distributed"

    def connect(self) -> None:
        super().connect()
        with self.connection.cursor() as cursor:
            cursor.execute("SET transaction_mode = 'xa'")

    def turn(self) -> None:
        half = self.traffic.shards // 2
        number = self.next()
        accounts = [make_id(shard + self.index % half, 3, 800_000 + self.index) for shard in (0, half)]
        if number == 1:
            self.begin_purses(*accounts)
        entries = [(account, number) for account in accounts]
        amount = self.random.randrange(1, 50)
        self.ledger.refused.update(entries)
        self.ask("BEGIN")
        for account, change in zip(accounts, (amount, -amount), strict=True):
            self.move(account, change)
            self.ask(f"INSERT INTO ledger (account, entry, sequence) VALUES ({account}, {number}, 0)")
        self.ledger.refused.difference_update(entries)
        self.write(*entries, by=lambda: self.ask("COMMIT"))
