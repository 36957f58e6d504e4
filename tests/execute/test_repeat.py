"""A prepared point SELECT that is executed again: by the short way while nothing has changed, and whichever
way it takes, the client gets the same.
"""

from __future__ import annotations

import asyncio
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.load import load_schema, load_topology
from demo.documents import SCHEMA, topology_document
from proxy import pipeline
from proxy.execute.prepared import prepare
from proxy.frontend.commands import run_command
from proxy.session.prepared import Statement
from proxy.session.state import Role, User
from proxy.session.tracking import Tracker
from proxy.wire.constants import ColumnType
from proxy.wire.packets import frame, lenenc_bytes
from proxy.wire.resultset import encode_row
from tests.execute.world import Client, World
from tests.wire.streams import Err, Result, Rows, cuts

SQL = b"SELECT id, data, ts FROM pins WHERE id = ?"
HOSTS = ("127.0.0.1:1", "127.0.0.1:2")
DEMO = load_schema(SCHEMA)
TOPOLOGY = load_topology(topology_document(8, [(one, None) for one in HOSTS]), schema=DEMO)
WHEN = b"2024-05-06 07:08:09"

Row = Sequence[object]


def pin(shard: int, local: int) -> int:
    return shard << 46 | 1 << 36 | local


def definition(name: bytes, type_: int, schema: bytes = b"", table: bytes = b"", org: bytes = b"") -> bytes:
    names = map(lenenc_bytes, (b"def", schema, table, table, name, org))
    return b"".join(names) + struct.pack("<BHIBHBxx", 12, 45, 80, type_, 0, 0)


def columns(sql: bytes, data: ColumnType = ColumnType.BLOB) -> list[bytes]:
    """Those of a shard's reply to `sql`."""
    schema = sql.partition(b"FROM `")[2].partition(b"`")[0]
    return [
        definition(b"id", ColumnType.LONGLONG),
        definition(b"data", data, schema, b"pins", b"data"),
        definition(b"ts", ColumnType.TIMESTAMP, schema, b"pins", b"ts"),
    ]


class Prepared:
    """A client with a prepared statement, and servers that answer it by `rows`."""

    def __init__(self, sql: bytes = SQL, parameters: int = 1) -> None:
        self.world = World(schema=DEMO, topology=TOPOLOGY, version="10.11.4-MariaDB")
        services: Any = self.world.services
        services.execute, services.command = pipeline.execute, run_command
        services.run_plan, services.execute_again = pipeline.run_plan, self.again
        self.client = Client(self.world)
        self.session = self.client.session
        self.session.server_version, self.session.database = "10.11.4-MariaDB", "demo"
        self.session.refresh_env()
        self.rows: Sequence[Row] = ()
        self.type = ColumnType.BLOB
        self.error: Err | None = None
        self.warnings = 0
        self.short: list[bool] = []  # of each EXECUTE, whether it took the short way
        for host in HOSTS:
            self.world.server(host).script = self.answer
        rewriter = services.serving.snapshot.rewriter
        env = self.session.prepared.env(self.session.env)
        plan, literals = rewriter.plan(sql, env)
        generation = rewriter.generation
        self.statement = Statement(
            sql, env, self.session.settings.system, plan, literals, generation, learnt=generation
        )
        self.statement.parameters = parameters
        self.session.prepared.add(self.statement)

    def again(self, client: Any, packet: bytes) -> bool:
        self.short.append(prepare.execute_again(client, packet))
        return self.short[-1]

    def answer(self, conn: Any, sql: bytes) -> list[Result]:
        if self.error is not None:
            return [self.error]
        rows = [encode_row(row) for row in self.rows]
        return [Rows(rows, 3, self.warnings, definitions=columns(sql, self.type))]

    def send(self, *ids: int, types: bytes = b"\x08\x00", bound: bool = True, nulls: int = 0) -> None:
        form = {8: "q", 3: "i"}[types[0]]
        values = struct.pack("<" + form * len(ids), *ids)
        packed = types * len(ids) if bound else b""
        number = self.statement.id
        self.packet(struct.pack("<BIBIBB", 0x17, number, 0, 1, nulls, bound) + packed + values)

    def packet(self, payload: bytes) -> None:
        self.client.asked += 1
        self.client.conn.data_received(frame(payload))

    async def execute(self, *ids: int, **how: Any) -> bytes:
        """The whole reply."""
        self.send(*ids, **how)
        await self.world.quiet()
        self.world.check(self.client)
        return self.reply()

    def reply(self) -> bytes:
        found = self.client._read + self.client.transport.take()
        self.client._read = b""
        self.client.asked = 0
        return found

    async def warmed(self) -> None:
        """Executed on every shard that the tests use, so that the next ones may take the short way."""
        for _ in range(3):
            for shard in range(4):
                await self.execute(pin(shard, 1))
        assert self.short[-1]
        self.short.clear()


def of(*values: object) -> Row:
    return values


REPLIES: Sequence[Sequence[Row]] = (
    (),
    (of(pin(3, 7), b"{}", WHEN),),
    (of(pin(3, 7), None, None),),
    (of(pin(3, 7), b"x" * 70_000, b"0000-00-00 00:00:00"), of(pin(3, 8), b"", b"2024-05-06 07:08:09.000001")),
    tuple(of(pin(3, number), b"%d" % number, WHEN) for number in range(300)),
)


@pytest.mark.parametrize("rows", REPLIES)
async def test_the_short_way_gives_the_same(rows: Sequence[Row]) -> None:
    one = Prepared()
    await one.warmed()
    one.rows = rows
    short = await one.execute(pin(3, 7))
    one.statement.repeat = None
    long = await one.execute(pin(3, 7))
    assert one.short == [True, False]
    assert short == long
    use = one.world.services.stats.uses[one.statement.plan]  # counted alike
    assert (use.count, use.rows) == (14, 2 * len(rows))
    assert one.session.found_rows == len(rows)


@given(st.data())
def test_replies_however_they_are_cut(data: st.DataObject) -> None:
    """The first of a shard, with columns that are new, and any later one."""

    async def run() -> None:
        one = Prepared()
        if data.draw(st.booleans(), "warm"):
            await one.warmed()
        else:
            await one.execute(pin(0, 1))
            one.short.clear()
        one.rows = data.draw(st.sampled_from(REPLIES[:3]), "rows")
        one.type = data.draw(st.sampled_from((ColumnType.BLOB, ColumnType.JSON)), "type")
        one.send(pin(3, 7))
        await one.world.turn()
        server = next(conn for conn in one.world.everywhere() if conn.out)
        for piece in data.draw(cuts(server.out)):
            server.deliver(len(piece))
        await one.world.quiet()
        short = one.reply()
        one.world.check(one.client)
        one.statement.repeat = one.statement.heading = None
        assert await one.execute(pin(3, 7)) == short
        assert one.short == [True, False]

    asyncio.run(run())


async def test_errors_and_warnings() -> None:
    one = Prepared()
    await one.warmed()
    one.error = Err(1205, "Lock wait timeout exceeded")
    failed = await one.execute(pin(1, 7))
    one.statement.repeat = None
    assert await one.execute(pin(1, 7)) == failed
    one.error, one.rows, one.warnings = None, REPLIES[1], 2
    await one.execute(pin(1, 7))
    warned = await one.execute(pin(1, 7))
    one.statement.repeat = None
    assert await one.execute(pin(1, 7)) == warned
    assert one.short == [True, False, True, True, False]
    assert sum(b"SHOW WARNINGS" in sql for host in HOSTS for sql in one.world.server(host).log) == 5


async def test_only_a_packet_like_the_last() -> None:
    one = Prepared()
    await one.warmed()
    one.rows = REPLIES[1]
    expected = await one.execute(pin(3, 7))
    assert await one.execute(pin(3, 7), bound=False) == expected  # the types were sent before
    assert await one.execute(pin(3, 7), bound=False) == expected
    await one.execute(7, types=b"\x03\x00")  # no pin, and another type
    await one.execute(7, types=b"\x03\x00")
    assert await one.execute(pin(3, 7)) == expected
    await one.execute(nulls=1)
    await one.execute(nulls=1)
    assert await one.execute(pin(3, 7)) == expected
    assert one.short == [True, False, True, False, False, False, False, False, False]
    for payload in (b"", b"\x17", b"\x17" + bytes(9)):
        one.packet(payload)
        await one.world.quiet()
    assert [answer.err is None for answer in one.client.answers()] == [False] * 3


@pytest.mark.parametrize("number", [0, 1, -1, pin(9, 1), pin(3, 7) | 2 << 36, 2**62 + 1, -(2**63)])
async def test_numbers_that_are_no_id(number: int) -> None:
    one = Prepared()
    await one.warmed()
    told = await one.execute(number)
    one.statement.repeat = None
    assert await one.execute(number) == told
    assert one.short == [False, False]


def other_modes(one: Prepared) -> None:
    one.session.settings = one.session.settings.with_values({"sql_mode": b"'ANSI_QUOTES'"})
    one.session.refresh_env()


def other_user(one: Prepared) -> None:
    one.session.become(User("u", Role.ADMIN, databases=frozenset({"legacy"})))


def other_topology(one: Prepared) -> None:
    serving = one.world.services.serving
    serving.set_topology(TOPOLOGY)
    one.statement.learnt = serving.snapshot.rewriter.generation  # no server is asked to prepare it


def lost(one: Prepared) -> None:
    one.session.transaction.refuse("transaction_lost", "gone")


def one_shard(one: Prepared) -> None:
    one.session.transaction_mode = "single"


def counted(one: Prepared) -> None:
    one.session.counts = Counter()


def frozen(one: Prepared) -> None:
    serving = one.world.services.serving
    serving.snapshot = replace(serving.snapshot, all_serving=False)


def long_data(one: Prepared) -> None:
    one.client.conn.data_received(frame(struct.pack("<BIH", 0x18, one.statement.id, 0) + b"12"))


def tracking(one: Prepared) -> None:
    session = one.session
    session.tracker = Tracker()
    session.settings = session.settings.with_values({"session_track_transaction_info": b"'STATE'"})
    session.refresh_env()


CHANGES = (
    *(other_modes, other_user, other_topology, lost, one_shard),
    *(counted, frozen, long_data, tracking),
)


@pytest.mark.parametrize("change", CHANGES)
async def test_what_has_changed_is_looked_at(change: Callable[[Prepared], None]) -> None:
    """The reply is that of a statement that was executed for the first time behind the change."""
    replies = []
    for warm in (True, False):
        one = Prepared()
        one.rows = REPLIES[1]
        if warm:
            await one.warmed()
        change(one)
        await one.world.turn()
        replies.append(await one.execute(pin(3, 7)))
        assert one.short == [False]
    assert replies[0] == replies[1]


async def test_within_a_transaction() -> None:
    one = Prepared()
    await one.warmed()
    one.client.send(b"BEGIN")
    await one.execute(pin(3, 7))
    await one.execute(pin(3, 7))
    one.client.send(b"COMMIT")
    await one.world.quiet()
    assert one.short == [True, True]
    logs = [sql for host in HOSTS for sql in one.world.server(host).log]
    assert [sql for sql in logs if sql.startswith((b"START", b"COMMIT"))] == [b"START TRANSACTION", b"COMMIT"]
    one.world.check(one.client)


async def test_another_topology_comes_while_it_waits_for_a_connection() -> None:
    one = Prepared()
    await one.warmed()
    one.rows = REPLIES[1]
    host = TOPOLOGY.keyspaces["main"].places[3][0]
    pool = one.world.backends.pool(host)
    taken = []
    while (conn := pool.state.take(one.session.settings, None, 0, "other")) is not None:
        taken.append(conn)
    pool.limits = replace(pool.limits, max_connections=len(taken))
    pool.state.share.resize(len(taken))
    one.send(pin(3, 7))
    assert one.short == [True]
    other_topology(one)
    for conn in taken:
        pool.release(conn)
    await one.world.quiet()
    one.world.check(one.client)
    waited = one.reply()
    assert await one.execute(pin(3, 7)) == waited


async def test_a_connection_is_lost() -> None:
    one = Prepared()
    await one.warmed()
    one.send(pin(3, 7))
    await one.world.turn()
    next(conn for conn in one.world.everywhere() if conn.out).lose()
    await one.world.quiet()
    assert one.client.last.err == 1158
    one.reply()
    one.rows = REPLIES[1]
    assert await one.execute(pin(3, 7))
    one.client.send(b"SELECT id, data, ts FROM pins WHERE id = %d" % pin(3, 7))
    await one.world.quiet()
    assert encode_row(REPLIES[1][0]) in one.reply()  # text again


async def test_two_parameters() -> None:
    one = Prepared(SQL + b" AND local_id > ?", 2)
    for _ in range(2):
        await one.execute(pin(3, 7), 5)
    one.rows = REPLIES[1]
    short = await one.execute(pin(3, 7), -5)
    assert one.short[-1]
    one.statement.repeat = None
    assert await one.execute(pin(3, 7), -5) == short
    asked = one.world.server(TOPOLOGY.keyspaces["main"].places[3][0]).log[-2:]
    assert asked[0] == asked[1]
    assert asked[0].endswith(b"> -5")
