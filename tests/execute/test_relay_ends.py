"""One statement on one host, ended at every stage: by the host, the client or a KILL; and its flow."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from proxy.backends.pool import FOUND_ROWS
from proxy.engine.relay import Relay
from proxy.engine.serving import Serving
from proxy.engine.work import Leaving
from proxy.frontend.connection import ClientConnection
from proxy.frontend.idle import look_at_idle
from proxy.wire.packets import frame
from rewriter.sql.statements.effects import Effects
from tests.execute.ends import done
from tests.execute.test_relay import relay
from tests.execute.world import LIMITS, Client, World, rows
from tests.wire.streams import Ok, Rows

# -- a host that is lost
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packets", [0, 1, 3, 4, 5])
async def test_lost_between_packets(world: World, client: Client, packets: int) -> None:
    """What has come goes to the client, with an ERR packet behind it that has the next number."""
    world.server("h1").script = lambda conn, sql: [rows("a", "b", "c")]
    client.ask(relay())
    await world.turn()
    one = world.server("h1").one
    if packets:
        one.deliver_packets(packets)
    one.deliver(2)
    one.lose()
    await done(world, client)
    assert client.last.err == 1158
    assert len(client.last.rows) == max(0, packets - 3)


@pytest.mark.parametrize("given", [1 << 19, (1 << 20) + 100, 3 << 20])
async def test_lost_within_a_large_row(world: World, client: Client, given: int) -> None:
    """Half a row is out: only the connection's end can say so. A smaller half was held back."""
    world.server("h1").script = lambda conn, sql: [rows("x" * (4 << 20))]
    client.ask(relay())
    await world.turn()
    one = world.server("h1").one
    one.deliver(given)
    one.lose()
    await world.quiet()
    world.check(client)
    if given < 1 << 20:
        assert client.last.err == 1158
    else:
        assert not client.transport.open
        assert client.answers() == []


async def test_nonsense(world: World, client: Client) -> None:
    client.ask(relay())
    await world.turn()
    world.server("h1").one.out = b"\x01\0\0\x01\xfb"
    await done(world, client)
    assert client.last.err == 1835
    assert not world.server("h1").live


# -- the client's end and KILL, at every stage
# ----------------------------------------------------------------------------------------------------------


async def opening(world: World, client: Client) -> None:
    """The connection is being opened."""


async def asked(world: World, client: Client) -> None:
    """The statement is on its way."""
    await world.turn()


async def changing(world: World, client: Client) -> None:
    """The database is being changed."""
    await world.turn()
    assert world.server("h1").log == [b"USE d"]


async def header(world: World, client: Client) -> None:
    """Some rows have come."""
    await changing(world, client)
    world.server("h1").one.deliver()
    await world.turn()
    world.server("h1").one.deliver_packets(4 + client.session.transaction.explicit)


async def draining(world: World, client: Client) -> None:
    """All has come, and the warnings are being fetched."""
    await header(world, client)
    world.server("h1").one.deliver()
    await world.turn()
    assert world.server("h1").log[-1] == b"SHOW WARNINGS"


async def about_to_drain(world: World, client: Client) -> None:
    """All has come, and the task that will fetch the warnings has not taken its first step."""
    await header(world, client)
    world.server("h1").one.deliver()
    assert b"SHOW WARNINGS" not in world.server("h1").log


STAGES = [opening, changing, header, draining, about_to_drain]


def begin(world: World, client: Client, stage: Any, transaction: str) -> None:
    world.server("h1").script = lambda conn, sql: [Rows([b"\x01a", b"\x01b"], 1, 1)]
    if transaction == "autocommit off":
        client.autocommit(False)
    if transaction == "transaction":
        client.session.transaction.start()
    client.ask(relay(database="d"))


@pytest.mark.parametrize("transaction", ["none", "transaction"])
@pytest.mark.parametrize("stage", STAGES)
async def test_the_client_leaves(world: World, client: Client, stage: Any, transaction: str) -> None:
    begin(world, client, stage, transaction)
    await stage(world, client)
    client.leave()
    await done(world, client)
    running = stage in (changing, header) or (stage in (draining, about_to_drain) and transaction != "none")
    assert len(world.server("h1").kills) == running, "what runs is killed, nothing else"
    other = Client(world)
    world.server("h1").script = lambda conn, sql: [Ok(9)]
    other.ask(relay())
    await done(world, client, other)
    assert other.last.ok == (9, 0)


async def test_a_client_that_leaves_has_changed_tables_all_the_same(
    world: World, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others must hear of does not go with who did it, just as the reply is complete."""
    heard: list[str] = []

    async def tables_changed(serving: Serving) -> None:
        heard.append("changed")

    monkeypatch.setattr(Serving, "tables_changed", tables_changed)
    client.ask(relay(effects=Effects(tables=True)))
    await world.turn()
    world.server("h1").one.deliver()
    client.leave()
    await done(world, client)
    assert heard == ["changed"]


async def test_an_idle_client_keeps_no_parameters(world: World, client: Client) -> None:
    """How a command could be run again holds what it was given; so does the request that was sent."""

    def run_again(given: bytes) -> None:
        raise AssertionError(given)

    def execute(conn: ClientConnection, payload: bytes) -> None:
        conn.runs_again_by(partial(run_again, b"long data"))
        conn.reply_ok()

    world.services.command = execute
    client.asked += 1
    client.conn.data_received(frame(b"\x17"))
    assert client.conn.ready
    kept = [client.conn.again is not None]
    look_at_idle(world.services, client.conn.begun)
    kept.append(client.conn.again is not None)
    assert kept == [True, False]
    assert isinstance(client.conn.relay, Relay)
    assert (client.conn.relay.sql, client.conn.relay.request) == (b"", None)
    world.check(client)


@pytest.mark.parametrize("transaction", ["none", "transaction"])
@pytest.mark.parametrize("stage", STAGES)
async def test_kill_query(world: World, client: Client, stage: Any, transaction: str) -> None:
    begin(world, client, stage, transaction)
    await stage(world, client)
    client.conn.relay.kill_query()
    await done(world, client)
    if stage not in (draining, about_to_drain):
        assert client.last.err in (1317, None)
    if stage is header:
        assert client.last.err == 1317
        assert client.last.rows == [b"\x01a"]
    client.ask(relay())
    await done(world, client)
    assert len(client.answers()) == 2


@pytest.mark.parametrize("stage", STAGES)
async def test_kill_connection(world: World, client: Client, stage: Any) -> None:
    begin(world, client, stage, "none")
    await stage(world, client)
    client.conn.leaving = Leaving.NOW
    client.conn.relay.kill_query()
    await world.quiet()
    assert not client.transport.open
    client.leave()
    await done(world, client)


@pytest.mark.parametrize("stage", [changing, header, draining])
async def test_the_host_is_lost(world: World, client: Client, stage: Any) -> None:
    begin(world, client, stage, "transaction")
    await stage(world, client)
    world.server("h1").one.lose()
    await done(world, client)
    assert client.last.err == {changing: 1158, header: 1053, draining: None}[stage]
    assert client.session.transaction.lost or stage is changing
    assert client.session.transaction.held == {}


# -- flow
# ----------------------------------------------------------------------------------------------------------


async def test_a_client_that_reads_slowly_stops_its_backend(world: World, client: Client) -> None:
    world.server("h1").script = lambda conn, sql: [rows(*"abc")]
    client.ask(relay())
    await world.turn()
    one = world.server("h1").one
    one.deliver_packets(4)
    reading = []
    for change in (client.conn.pause_writing, client.conn.resume_writing, client.conn.pause_writing):
        change()
        reading.append(one.transport.reading)
    assert reading == [False, True, False]
    one.deliver()
    assert one.transport.reading, "the connection is somebody else's now"
    client.conn.resume_writing()
    await done(world, client)


async def test_a_client_that_does_not_read_gets_no_more(world: World, client: Client) -> None:
    """Its next commands wait until it has read what it was given."""
    client.ask(relay())
    client.ask(relay(sql=b"NEXT"))
    await world.turn()
    client.conn.pause_writing()
    await world.quiet()
    world.server("h1").one.transport.resume_reading()
    await world.quiet()
    assert world.server("h1").log == [b"Q"]
    client.conn.resume_writing()
    await done(world, client)
    assert world.server("h1").log == [b"Q", b"NEXT"]


async def test_a_statement_begun_while_the_client_does_not_read(world: World, client: Client) -> None:
    client.ask(relay())
    client.conn.pause_writing()
    await world.turn()
    assert not world.server("h1").one.transport.reading
    client.conn.resume_writing()
    await done(world, client)


async def test_found_rows_have_connections_of_their_own(world: World) -> None:
    plain, special = Client(world), Client(world, found_rows=True)
    for one in (plain, special, plain, special):
        one.ask(relay())
        await done(world, plain, special)
    kinds = [one.conn.capability_set for one in world.server("h1").live]
    assert kinds == [0, FOUND_ROWS]
    assert LIMITS.max_connections == 3
