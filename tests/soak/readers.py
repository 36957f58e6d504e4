"""Clients that read what stays as it is, each answer compared; and clients that behave badly."""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from typing import Any

import aiomysql
import pymysql

from tests.differential.arena import Arena, NoSession
from tests.differential.generator import Generator
from tests.differential.parts import Case
from tests.differential.report import describe
from tests.differential.runner import Runner
from tests.differential.world import World
from tests.integration.raw import Closed, Raw, command, query
from tests.soak.clients import Client, RawClient, Refused, Traffic, good
from tests.soak.journal import CLOSED
from tests.support.servers import LocalServer

MOST_ROWS = 10_000
"""Of a generated statement that is run."""


class Compared(Client):
    """Generated statements over all tables of the demo, also joins and groups, beside one plain server."""

    kind = "generated"
    arena: Arena | None = None

    def __init__(self, traffic: Traffic, index: int, world: World, plain: LocalServer, mysql: bool) -> None:
        super().__init__(traffic, index)
        self.world, self.plain = world, plain
        self.generator = Generator(world.catalog(mysql=mysql), traffic.seed * 1000 + index, reads_only=True)

    def connect(self) -> None:
        host, port = self.traffic.address
        self.arena = Arena(
            self.world,
            lambda **given: self.traffic.demo.connect(host=host, port=port, **given, read_timeout=90),
            self.plain.connect,
            {},
        )

    def close(self) -> None:
        if self.arena is not None:
            self.arena.close()
            self.arena = None

    def recover(self, failed: str) -> None:
        """A session that could not be begun anew leaves the old one closed."""
        super().recover(failed if self.arena is not None and self.arena.proxy.open else CLOSED)

    def turn(self) -> None:
        number = self.next()
        case = self.generator.case(number)
        if self.large(case):
            return
        text = f"case {number}: {'; '.join(one.sql for one in case.statements)}"
        self.step(text, lambda: self.check(number, text))

    def large(self, case: Case) -> bool:
        """Whether it has so many rows that they take PyMySQL longer than a fault may take everybody: a table
        joined with itself has millions.
        """
        connection = self.plain.connect(database=self.world.database)
        with closing(connection), connection.cursor() as cursor:
            cursor.execute(f"SET sql_select_limit = {MOST_ROWS}")
            for one in case.statements:
                with suppress(pymysql.MySQLError):  # the same comes of it beside the proxy
                    if cursor.execute(one.sql) >= MOST_ROWS:
                        return True
        return False

    def check(self, number: int, text: str) -> None:
        assert self.arena is not None
        runner = Runner(self.arena, self.generator)
        try:
            found = runner.check(self.generator.case(number))
        except NoSession as told:  # a fault has met it there
            raise Refused(told.error.code, told.error.message) from None
        if found is None:
            return
        aspects = {one.aspect for one in found.differences}
        failure = found.steps[-1].got.error if found.steps else None
        if "connection" in aspects:
            raise Closed(str(found.differences[0]))
        if failure is not None:
            raise Refused(failure.code, failure.message)
        self.journal.wrong(self.name, text, "what the plain server says", describe(found, self.traffic.seed))


class Lists(Client):
    """Ordered lists by a pool of aiomysql, several at once."""

    kind = "lists"
    pool: Any = None

    def __init__(self, traffic: Traffic, index: int, lists: dict[int, list[int]]) -> None:
        super().__init__(traffic, index)
        self.lists = lists
        self.loop = asyncio.new_event_loop()

    def connect(self) -> None:
        host, port = self.traffic.address
        making = aiomysql.create_pool(
            host=host, port=port, user="demo", password="demo", db="demo", minsize=2, maxsize=4
        )
        self.pool = self.loop.run_until_complete(asyncio.wait_for(making, 60))

    def close(self) -> None:
        if self.pool is not None:
            self.pool.terminate()
            self.loop.run_until_complete(self.pool.wait_closed())
            self.pool = None

    def turn(self) -> None:
        boards = self.random.sample(sorted(self.lists), 4)
        found = self.step(f"lists of {boards}", lambda: self.loop.run_until_complete(self.read(boards)))
        for board, pins in zip(boards, found, strict=True):
            self.same(f"list of {board}", self.lists[board], pins)

    async def read(self, boards: list[int]) -> list[list[int]]:
        found = await asyncio.wait_for(asyncio.gather(*map(self.one, boards), return_exceptions=True), 90)
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return [one for one in found if not isinstance(one, BaseException)]

    async def one(self, board: int) -> list[int]:
        async with self.pool.acquire() as connection, connection.cursor() as cursor:
            await cursor.execute(LIST.format(board))
            return [row[0] for row in await cursor.fetchall()]


LIST = "SELECT pin_id FROM board_has_pins WHERE board_id = {} ORDER BY sequence DESC, pin_id"


class Slow(Raw):
    """A client that takes its time with what comes."""

    traffic: Traffic

    def exactly(self, count: int) -> bytes:
        if count > len(self.buffer):
            self.traffic.stop.wait(0.004)
        return super().exactly(count)


class SlowReader(RawClient):
    """Results of megabytes, from one host and from all shards, read slowly."""

    kind = "slow reader"
    ASKED = (
        ("SELECT a.id, REPEAT('x', 1500) FROM legacy.customers a, legacy.customers b LIMIT 2500", 2500),
        ("SELECT id, REPEAT('y', 1500) FROM demo.pins ORDER BY id LIMIT 1200", 1200),
    )

    def connect(self) -> None:
        self.raw = slow = Slow(*self.traffic.address, timeout=90.0, receive_buffer=1 << 15)
        slow.traffic = self.traffic
        self.log_in(0)

    def turn(self) -> None:
        for sql, count in self.ASKED:
            rows = self.ask(sql).rows
            self.raw.heard.clear()
            shown = [len(rows), {len(row[1] or b"") for row in rows}]
            self.same(sql, [count, {1500}], shown)
            if "ORDER" in sql:
                ids = [int(row[0] or 0) for row in rows]
                self.same(sql, sorted(ids), ids)


class Vanishing(RawClient):
    """Gone in the middle of a statement, with nothing said."""

    kind = "vanishing"

    def turn(self) -> None:
        number = self.next()
        entry = (self.account, number)
        insert = f"INSERT INTO ledger (account, entry, sequence) VALUES ({self.account}, {number}, 0)"
        way = number % 6
        if way == 0:
            self.send(query("SELECT SLEEP(3)"))
        elif way == 1:  # what is not committed must never be there
            self.ledger.refused.add(entry)
            self.ask("BEGIN")
            self.ask(insert)
        elif way == 2:
            self.ledger.refused.add(entry)
            self.send(query(insert)[:-7])
        elif way == 3:
            self.send(query("SELECT id, REPEAT('z', 3000) FROM demo.pins"))
            self.step("(begins to read)", self.raw.packet)
        elif way == 4:
            self.send(command(22, b"SELECT entry FROM ledger WHERE account = ?"))
        else:
            self.ledger.unknown.add(entry)
            self.send(query(insert))
        self.raw.reset()
        self.connected = False

    def send(self, data: bytes) -> None:
        self.step("(sends)", lambda: self.raw.write(data))

    def recover(self, failed: str) -> None:
        self.close()
        self.connected = False


class Connects(RawClient):
    """A connection for each statement, and an end as it should be."""

    kind = "connects"

    def turn(self) -> None:
        self.same("SELECT 7", b"7", self.ask("SELECT 7").value)
        self.same("users", b"300", self.ask("SELECT COUNT(*) FROM demo.users").value)
        self.close()
        self.connected = False


def flood(traffic: Traffic, count: int) -> None:
    """So many clients at once, a third of which never log in; then all are gone."""
    clients = []
    for number in range(count):
        try:
            client = Raw(*traffic.address, timeout=30.0)
            clients.append(client)
            if number % 3:
                good(client.login(database="soak"))
        except (OSError, Closed, Refused):
            pass
    for number, client in enumerate(clients):
        client.reset() if number % 2 else client.close()
