"""Several statements on several hosts: one answer, whatever happens to whom, and nobody kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from proxy.engine.definitions import Definitions
from proxy.engine.warned import notices
from proxy.execute.fan import merge
from proxy.execute.fan.fanout import FanOut
from proxy.frontend.connection import ClientConnection
from proxy.wire.constants import ColumnFlag, ColumnType
from proxy.wire.resultset import Column, encode_row
from rewriter.plans import Bound, HostStatement, Merge, Notice, SortKey
from tests.execute.ends import done, strike
from tests.execute.world import LIMITS, Client, World
from tests.support.waiting import turns_until
from tests.wire.streams import Err, Rows

NOTICE = Notice("id_matches_nothing", {"id": "5", "table": "pins", "reason": "so it is"})

Run = Callable[[ClientConnection], None]

ORDERED = Merge((SortKey(0, False, None),))
COLUMN = Column(b"n", ColumnType.LONGLONG, 63).encode()


def statement(host: str, sql: bytes = b"Q", shards: tuple[int, ...] = (1, 2)) -> HostStatement:
    return HostStatement(host, shards, sql)


def fan(
    *hosts: str,
    merge: Merge | None = None,
    reference: HostStatement | None = None,
    definitions: Definitions | None = None,
    ceiling: int | None = None,
    warnings: tuple[Notice, ...] = (),
    sql: bytes = b"Q",
) -> Run:
    bound = Bound(tuple(statement(host, sql) for host in hosts), merge, reference, warnings)
    return lambda client: FanOut(client, bound, definitions or Definitions(), ceiling).start()


class Numbers(Rows):
    """A result set of one integer column."""

    def __init__(
        self, *numbers: int, warnings: int = 0, column: bytes = COLUMN, error: Err | None = None
    ) -> None:
        rows = [encode_row([number]) for number in numbers]
        super().__init__(rows, 1, warnings, error=error)
        self.definitions = [column]


def numbers(client: Client) -> list[int]:
    """What the client read last."""
    return [int(payload[1:]) for payload in client.last.rows]


@pytest.fixture
def world() -> World:
    world = World()
    for host, part in zip(("h1", "h2", "h3"), ((1, 4, 7), (2, 5), (3, 6, 8, 9)), strict=True):
        serve(world, host, part)
    return world


def serve(world: World, host: str, part: Sequence[int], **options: Any) -> None:
    world.server(host).script = lambda conn, sql: [Numbers(*part, **options)]


# -- results
# ----------------------------------------------------------------------------------------------------------


async def test_rows_of_all_hosts(world: World, client: Client) -> None:
    client.ask(fan("h1", "h2", "h3"))
    await done(world, client)
    assert sorted(numbers(client)) == list(range(1, 10))
    assert client.last.columns == [COLUMN]
    assert (client.session.found_rows, client.session.row_count) == (9, -1)


async def test_merged_in_order(world: World, client: Client) -> None:
    client.ask(fan("h1", "h2", "h3", merge=ORDERED._replace(limit=4, offset=2)))
    await done(world, client)
    assert numbers(client) == [3, 4, 5, 6]


@pytest.mark.parametrize("transaction", [False, True])
async def test_several_runs_on_one_host(world: World, client: Client, transaction: bool) -> None:
    """Each on a connection of its own, so that each shows its next row; in a transaction in turn."""
    parts = iter([(1, 5), (2, 6), (3, 4)])
    world.server("h1").script = lambda conn, sql: [Numbers(*next(parts))]
    if transaction:
        client.session.transaction.start()
    client.ask(fan("h1", "h1", "h1", merge=ORDERED))
    await done(world, client)
    assert numbers(client) == [1, 2, 3, 4, 5, 6]
    assert len(world.server("h1").conns) == (1 if transaction else 3)


async def test_empty(world: World, client: Client) -> None:
    for host in ("h1", "h2"):
        serve(world, host, ())
    client.ask(fan("h1", "h2", merge=ORDERED))
    await done(world, client)
    assert client.last.rows == []
    assert client.last.columns == [COLUMN]


async def test_warnings_of_all_hosts_and_of_the_plan(world: World, client: Client) -> None:
    for host in ("h1", "h2"):
        serve(world, host, (1,), warnings=1)
    client.ask(fan("h1", "h2", "h3", warnings=(NOTICE,)))
    await world.turn()
    for host in ("h1", "h2"):
        world.server(host).one.warnings = [("Warning", 1292, host)]
    await done(world, client)
    assert client.last.warnings == 3
    told = notices([NOTICE])[0].message
    assert sorted(one.message for one in client.session.diagnostics) == sorted(["h1", "h2", told])


async def test_warnings_of_all_statements_of_a_host(world: World, client: Client) -> None:
    serve(world, "h1", (1,), warnings=1)
    client.ask(fan("h1", "h1"))
    await world.turn()
    world.server("h1").one.warnings = [("Warning", 1292, "again")]
    await done(world, client)
    assert client.last.warnings == 2
    assert [one.message for one in client.session.diagnostics] == ["again", "again"]


async def test_the_definitions_of_one_shard(world: World, client: Client) -> None:
    """UNION changes them: they are asked for once."""
    shown = Column(b"n", ColumnType.ENUM, 255).encode()
    definitions = Definitions()
    world.server("h2").script = lambda conn, sql: [
        Numbers(column=shown) if sql == b"LIMIT 0" else Numbers(2, 5)
    ]
    for _ in range(2):
        client.ask(fan("h1", "h2", reference=statement("h2", b"LIMIT 0", (3,)), definitions=definitions))
        await done(world, client)
        assert client.last.columns == [shown]
        assert sorted(numbers(client)) == [1, 2, 4, 5, 7]
    assert world.server("h2").log == [b"LIMIT 0", b"Q", b"Q"]


async def test_zerofill(world: World, client: Client) -> None:
    """UNION loses the zeros, too."""
    shown = Column(b"n", ColumnType.LONG, 63, length=4, flags=ColumnFlag.ZEROFILL).encode()
    world.server("h2").script = lambda conn, sql: [
        Numbers(column=shown) if sql == b"LIMIT 0" else Numbers(2, 12345)
    ]
    client.ask(fan("h1", "h2", reference=statement("h2", b"LIMIT 0", (3,))))
    await done(world, client)
    assert sorted(payload[1:] for payload in client.last.rows) == [
        b"0001",
        b"0002",
        b"0004",
        b"0007",
        b"12345",
    ]


async def test_zerofill_where_the_first_host_has_one_shard(world: World, client: Client) -> None:
    """What it gives has its zeros, that of the others' UNION has not."""
    shown = Column(b"n", ColumnType.LONG, 63, length=4, flags=ColumnFlag.ZEROFILL).encode()
    single = encode_row([b"0007"])
    world.server("h1").script = lambda conn, sql: [Rows([single], 1, definitions=[shown])]
    world.server("h2").script = lambda conn, sql: [
        Numbers(column=shown) if sql == b"LIMIT 0" else Numbers(2, 5, column=shown)
    ]
    statements = (statement("h1", shards=(1,)), statement("h2", shards=(2, 3)))
    bound = Bound(statements, Merge(), statement("h2", b"LIMIT 0", (2,)))
    client.ask(lambda one: FanOut(one, bound, Definitions(), None).start())
    await done(world, client)
    assert sorted(payload[1:] for payload in client.last.rows) == [b"0002", b"0005", b"0007"]


async def test_definitions_that_have_changed_are_learnt_anew(world: World, client: Client) -> None:
    definitions = Definitions()
    reference = statement("h1", b"LIMIT 0", (1,))
    client.ask(fan("h1", reference=reference, definitions=definitions))
    await done(world, client)
    altered = Column(b"n", ColumnType.DOUBLE, 63).encode()
    serve(world, "h1", (1,), column=altered)
    for _ in range(2):
        client.ask(fan("h1", reference=reference, definitions=definitions))
        await done(world, client)
        assert client.last.columns == [altered]
    assert world.server("h1").log == [b"LIMIT 0", b"Q", b"Q", b"LIMIT 0", b"Q"]


async def test_more_rows_than_the_user_may_have(world: World, client: Client) -> None:
    client.ask(fan("h1", "h2", "h3", ceiling=4))
    await world.turn()
    for host in ("h1", "h2"):
        world.server(host).one.deliver()
    await done(world, client)
    assert client.last.err == 1104
    assert len(client.last.rows) <= 4
    assert world.server("h3").kills


@pytest.mark.parametrize("limit", [0, 10])
async def test_what_is_kept_for_its_order_is_bounded(world: World, client: Client, limit: int) -> None:
    """In a transaction a host has one connection, so of two ordered runs the first is kept whole."""
    world.set_limits(scatter_bytes=limit)
    client.session.transaction.start()
    client.ask(fan("h1", "h1", merge=Merge(order=(SortKey(0, False, None),))))
    await done(world, client)
    assert client.last.err == (1104 if limit else None)


async def test_hosts_with_different_columns(world: World, client: Client) -> None:
    world.server("h2").script = lambda conn, sql: [Rows([encode_row([1, 2])], 2)]
    client.ask(fan("h1", "h2"))
    await done(world, client)
    assert client.last.err == 1105


@pytest.mark.parametrize("payload", [b"\x05abc", b"\x01x"], ids=["cut short", "no number"])
async def test_rows_that_are_none(world: World, client: Client, payload: bytes) -> None:
    broken = Numbers()
    broken.rows = [payload]
    world.server("h2").script = lambda conn, sql: [broken]
    client.ask(fan("h1", "h2", merge=ORDERED))
    await done(world, client)
    assert client.last.err in (1105, 1835)


async def test_an_error_in_the_first_rows_is_the_first_packet(world: World, client: Client) -> None:
    """Nothing has been sent before it, and it is numbered so; the fan-out still waits for the other host."""
    broken = Numbers()
    broken.rows = [b"\x01x"]
    world.server("h1").script = lambda conn, sql: [broken]
    client.ask(fan("h1", "h2", merge=ORDERED))
    await world.turn()
    world.server("h1").one.deliver()
    await done(world, client)
    assert (client.last.err, client.last.seq, client.last.columns) == (1105, 1, [])


async def test_no_result_set(world: World, client: Client) -> None:
    world.server("h1").script = lambda conn, sql: []
    client.ask(fan("h1"))
    await world.turn()
    world.server("h1").one.out = b"\x07\0\0\x01\0\0\0\2\0\0\0"
    await done(world, client)
    assert client.last.err == 1105


# -- errors
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transaction", [False, True])
async def test_an_error_on_one_host_ends_the_others(world: World, client: Client, transaction: bool) -> None:
    if transaction:
        client.session.transaction.start()
    world.server("h2").script = lambda conn, sql: [Err(1146)]
    client.ask(fan("h1", "h2", "h3"))
    await world.turn()
    world.server("h1").one.deliver_packets(5 if transaction else 4)
    world.server("h2").one.deliver()
    await done(world, client)
    assert client.last.err == 1146
    assert numbers(client) == [1]
    for host in ("h1", "h3"):
        assert len(world.server(host).kills) == 1
    assert client.session.transaction.explicit == transaction
    assert len(client.session.transaction.held) == 3 * transaction


async def test_a_lost_host(world: World, client: Client) -> None:
    client.ask(fan("h1", "h2", "h3"))
    await world.turn()
    world.server("h2").one.lose()
    await done(world, client)
    assert client.last.err == 1158


async def test_a_lost_host_in_a_transaction(world: World, client: Client) -> None:
    """The others' parts are rolled back, but not while they are still being read."""
    client.session.transaction.start()
    client.ask(fan("h1", "h2", "h3", sql=b"WRITE 1"))
    await world.turn()
    world.server("h2").one.lose()
    await done(world, client)
    assert client.last.err == 1053
    assert client.session.transaction.lost
    assert client.session.transaction.held == {}
    assert all(not world.server(host).committed for host in ("h1", "h2", "h3"))


async def test_a_deadlock_in_a_transaction(world: World, client: Client) -> None:
    client.session.transaction.start()
    client.ask(fan("h1", "h2", "h3", sql=b"WRITE 1"))
    await done(world, client)
    world.server("h2").script = lambda conn, sql: conn.deadlock()
    client.ask(fan("h1", "h2", "h3", sql=b"WRITE 2"))
    await world.turn()
    world.server("h2").one.deliver()
    await done(world, client)
    assert client.last.err == 1213
    assert not client.session.transaction.open
    assert all(not world.server(host).committed for host in ("h1", "h2", "h3"))


@pytest.mark.parametrize("down", ["h1", "h2", "h3"])
async def test_a_host_that_is_down(world: World, client: Client, down: str) -> None:
    world.server(down).down = True
    client.ask(fan("h1", "h2", "h3"))
    await done(world, client)
    assert client.last.err == 1429
    client.ask(fan("h1", "h2", "h3"))
    await done(world, client)
    assert client.last.err == 1429


@pytest.mark.parametrize("answer", [[Err(1054)], None], ids=["error", "lost"])
@pytest.mark.parametrize("transaction", [False, True])
async def test_the_definitions_cannot_be_had(
    world: World, client: Client, transaction: bool, answer: Any
) -> None:
    if transaction:
        client.session.transaction.start()
    world.server("h1").script = lambda conn, sql: answer or [Numbers()]
    client.ask(fan("h1", "h2", reference=statement("h1", b"LIMIT 0", (1,))))
    await world.turn()
    if answer is None:
        world.server("h1").one.lose()
    await done(world, client)
    assert client.last.err == (1054 if answer is not None else 1053 if transaction else 1158)
    assert b"Q" not in world.server("h1").log
    assert bool(client.session.transaction.lost) == (transaction and answer is None)


# -- flow, and few connections
# ----------------------------------------------------------------------------------------------------------


async def test_a_slow_client_stops_all_branches(world: World, client: Client) -> None:
    client.ask(fan("h1", "h2"))
    await world.turn()
    ones = [world.server(host).one for host in ("h1", "h2")]
    for one in ones:
        one.deliver_packets(4)
    reading = []
    for change in (client.conn.pause_writing, client.conn.resume_writing):
        change()
        reading.append([one.transport.reading for one in ones])
    assert reading == [[False, False], [True, True]]
    await done(world, client)


async def test_a_run_that_is_ahead_is_not_read_on(world: World, client: Client) -> None:
    serve(world, "h1", [1] * 3000)
    serve(world, "h2", [2])
    client.ask(fan("h1", "h2", merge=ORDERED))
    await world.turn()
    one, two = (world.server(host).one for host in ("h1", "h2"))
    reading = []
    while one.out and one.transport.reading:
        one.deliver(1000)
    reading.append(one.transport.reading)
    two.deliver()
    reading.append(one.transport.reading)
    assert reading == [False, True]
    await done(world, client)
    assert numbers(client) == [1] * 3000 + [2]


MANY = 1000


@pytest.fixture
def in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge gives way to others after ten rows."""
    monkeypatch.setattr(merge, "_SLICE", 5)
    monkeypatch.setattr(merge, "_TURN", 10)


async def halfway(world: World, client: Client) -> None:
    """All rows have come, and most of them are still to be merged."""
    serve(world, "h1", range(0, MANY, 2))
    serve(world, "h2", range(1, MANY, 2))
    client.ask(fan("h1", "h2", merge=ORDERED))
    await world.turn()
    for host in ("h1", "h2"):
        world.server(host).one.deliver()
    fan_out = client.conn.work
    assert isinstance(fan_out, FanOut)
    assert fan_out.merger is not None
    assert fan_out.merger.pending
    assert 0 < fan_out.merger.emitted < 100
    assert fan_out._running == 0


@pytest.mark.usefixtures("in_turns")
@pytest.mark.parametrize("transaction", [False, True])
async def test_a_merge_gives_way_to_others(world: World, client: Client, transaction: bool) -> None:
    other = Client(world)
    if transaction:
        client.session.transaction.start()
    await halfway(world, client)
    world.server("h3").script = lambda conn, sql: [Numbers(5)]
    other.ask(fan("h3", sql=b"SHORT"))
    await world.turn()
    world.server("h3").one.deliver()
    assert other.conn.work is None, "answered"
    assert client.conn.work is not None, "still at work"
    await turns_until(lambda: client.conn.work is None, "the end of the merge", 1000)
    await done(world, client, other)
    assert numbers(client) == list(range(MANY))
    assert client.session.found_rows == MANY


@pytest.mark.usefixtures("in_turns")
async def test_a_merge_waits_for_its_slow_client(world: World, client: Client) -> None:
    await halfway(world, client)
    client.conn.pause_writing()
    fan_out = client.conn.work
    assert isinstance(fan_out, FanOut)
    assert fan_out.merger is not None
    await world.turn()
    emitted = fan_out.merger.emitted
    for _ in range(5):
        await world.turn()
    assert fan_out.merger.emitted == emitted < MANY
    client.conn.resume_writing()
    await turns_until(lambda: client.conn.work is None, "the end of the merge", 1000)
    await done(world, client)
    assert numbers(client) == list(range(MANY))


@pytest.mark.usefixtures("in_turns")
@pytest.mark.parametrize("what", ["kill", "kill twice", "kill connection", "leave"])
@pytest.mark.parametrize("transaction", [False, True])
async def test_a_merge_is_ended_halfway(world: World, client: Client, what: str, transaction: bool) -> None:
    if transaction:
        client.session.transaction.start()
    await halfway(world, client)
    await strike(world, client, what)
    if what in ("kill", "kill twice"):
        assert client.last.err == 1317
        assert len(client.last.rows) < MANY


@pytest.mark.parametrize("most", [1, 2, 3])
async def test_fan_outs_with_few_connections(most: int) -> None:
    """They share them instead of waiting for each other."""
    world = World(replace(LIMITS, max_connections=most, max_waiting=100))
    for host in ("h1", "h2"):
        serve(world, host, (1, 2))
    clients = [Client(world) for _ in range(5)]
    for client in clients:
        client.ask(fan("h2", "h1", "h1", "h2", "h1", merge=ORDERED))
    await done(world, *clients)
    for client in clients:
        assert numbers(client) == [1] * 5 + [2] * 5
