"""Statements that a command runs for itself: what it gets, and what becomes of both when something breaks."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from proxy.engine.exchange import Exchange
from proxy.engine.result import Failed, ResultSink, ToClient
from proxy.engine.run import Steps, run
from proxy.engine.transactions import commit_then
from proxy.errors import ProxyError
from proxy.session.outcome import Outcome
from proxy.wire.resultset import decode_row
from tests.execute.ends import done, strike
from tests.execute.world import KILLED, Client, World, rows
from tests.wire.streams import Err, Result

Command = Callable[[Exchange], Coroutine[Any, Any, None]]


class Taken(ResultSink):
    """Keeps what comes, up to `most` rows."""

    def __init__(self, client: Exchange, most: int = 1000) -> None:
        super().__init__(client)
        self.most = most
        self.width = 0
        self.values: list[bytes | None] = []
        self.last = b""

    def columns(self, definitions: list[bytes]) -> None:
        self.width = len(definitions)

    def rows(self, rows: list[bytes]) -> None:
        self.values += [decode_row(row, self.width)[0] for row in rows]
        if len(self.values) > self.most:
            raise ProxyError("gather_limit", limit=self.most, unit="rows", setting="gather_rows")

    def end(self, payload: bytes) -> None:
        self.last = payload


@pytest.fixture
def world() -> World:
    """The text of a statement begins with the host it goes to."""
    world = World()
    services: Any = world.services
    services.commands = {}

    def execute(client: Exchange, sql: bytes) -> None:
        command = services.commands.get(sql)
        if command is not None:
            Steps(client).start(command(client))
            return
        host, _, rest = sql.partition(b" ")
        if rest == b"COMMIT":
            commit_then(client, client.reply_ok)
        elif rest == b"REFUSED":
            raise ProxyError("unknown_database", database="nowhere")
        elif rest == b"BROKEN":
            raise ValueError("a bug")
        else:
            client.relay.run(host.decode(), rest)

    services.execute = execute
    return world


def give(world: World, **results: Result) -> None:
    """What the hosts answer to statements that begin with a word; OK to others."""

    def script(conn: Any, sql: bytes) -> list[Result]:
        return [results.get(sql.split()[0].decode(), rows())] if not sql.startswith(b"WRITE") else [OK]

    OK = world.server("h1").script(None, b"")[0]  # type: ignore[arg-type]
    for name in ("h1", "h2"):
        world.server(name).script = script


def define(world: World, command: Command) -> None:
    services: Any = world.services
    services.commands[b"command"] = command


async def copies(client: Exchange) -> None:
    """Reads from one host, and writes what it has found to another."""
    found = await run(client, b"h1 READ", Taken(client))
    for value in found.values:
        await run(client, b"h2 WRITE " + (value or b""), ResultSink(client))
    client.session.apply(Outcome(len(found.values)))
    client.reply_ok(affected=len(found.values))


def bare(client: Client) -> None:
    """Nothing of the command is left on the client."""
    conn = client.conn
    assert conn.sink is None
    assert conn.transport is client.transport
    assert not conn.whole


async def test_the_rows_come_to_who_has_asked(world: World, client: Client) -> None:
    give(world, READ=rows("a", "b", "c"))
    define(world, copies)
    client.send(b"command")
    client.send(b"h1 READ")
    await done(world, client)
    assert world.server("h2").committed == [b"WRITE a", b"WRITE b", b"WRITE c"]
    first, second = client.answers()
    assert (first.ok, first.rows) == ((3, 0), [])
    assert second.rows == [b"\x01a", b"\x01b", b"\x01c"]
    bare(client)


async def test_it_is_one_statement(world: World, client: Client) -> None:
    async def command(client: Exchange) -> None:
        client.kind = "copying"
        await copies(client)

    give(world, READ=rows("a", "b", "c"))
    define(world, command)
    client.send(b"command")
    await done(world, client)
    assert {kind: one.total for kind, one in client.conn.services.stats.kinds.items()} == {"copying": 1}
    assert client.conn.sql == b"command"


async def test_a_reply_to_the_client_has_the_next_numbers(world: World, client: Client) -> None:
    """Also when the statement that was run is in more packets than the client's."""

    async def command(client: Exchange) -> None:
        client.seq = 3
        told = await run(client, b"h1 READ", ToClient(client))
        client.seq = 0
        client.finish(told.outcome)

    give(world, READ=rows("a"))
    define(world, command)
    client.send(b"command")
    await world.quiet()
    assert client.transport.take()[3] == 4
    bare(client)


@pytest.mark.parametrize("tells", [True, False], ids=["raised again", "gone to the client"])
async def test_an_error(world: World, client: Client, tells: bool) -> None:
    """The session has noted it as any other, and the client gets it as it is."""
    caught = []

    async def command(client: Exchange) -> None:
        try:
            done = await run(client, b"h1 READ", Taken(client) if tells else ToClient(client))
            client.finish(done.outcome)
        except Failed as failed:
            caught.append(failed.outcome)
            raise

    give(world, READ=Err(1146, "no such table"))
    define(world, command)
    client.send(b"command")
    client.send(b"h1 OTHER")
    await done(world, client)
    assert caught == (["error"] if tells else [])
    assert [one.err for one in client.answers()] == [1146, None]
    bare(client)


async def test_errors_of_the_proxy(world: World, client: Client) -> None:
    """What a statement is refused with, and a bug in it, come as errors, too."""
    outcomes = []

    async def command(client: Exchange) -> None:
        for sql in (b"h1 REFUSED", b"h1 BROKEN"):
            try:
                await run(client, sql, ResultSink(client))
            except Failed as failed:
                outcomes.append(failed.outcome)
        client.reply_ok()

    define(world, command)
    client.send(b"command")
    await done(world, client)
    assert outcomes == ["unknown_database", "internal"]
    assert client.last.ok == (0, 0)


@pytest.mark.parametrize("open_", [False, True], ids=["outside", "in a transaction"])
async def test_too_many_rows_end_the_statement(world: World, client: Client, open_: bool) -> None:
    """On its server, as a KILL does, without waiting for the rest."""
    if open_:
        client.session.transaction.start()
    give(world, READ=rows(*"abcdefgh"))

    async def command(client: Exchange) -> None:
        await run(client, b"h1 READ", Taken(client, most=2))

    define(world, command)
    client.send(b"command")
    await world.turn()
    world.server("h1").one.deliver_packets(7)
    await world.quiet()
    assert client.last.err == 1104
    assert world.server("h1").kills != []
    assert client.conn.session.transaction.explicit is open_
    bare(client)
    client.send(b"h1 OTHER")
    await done(world, client)
    assert client.last.err is None


async def test_a_kill_between_two_statements(world: World, client: Client) -> None:
    """The next one is not begun, unless nothing may stop it."""
    outcomes = []

    async def command(client: Exchange) -> None:
        await run(client, b"h1 WRITE 1", ResultSink(client))
        assert client.work is not None
        client.work.kill_query()
        try:
            await run(client, b"h1 WRITE 2", ResultSink(client))
        except ProxyError as error:
            outcomes.append(error.kind.name)
        await run(client, b"h1 WRITE 3", ResultSink(client), steady=True)
        client.reply_ok()

    give(world)
    define(world, command)
    client.send(b"command")
    await done(world, client)
    assert outcomes == ["killed"]
    assert world.server("h1").committed == [b"WRITE 1", b"WRITE 3"]
    bare(client)


STRIKES = ["leave", "lose h1", "lose h2", "kill", "kill twice", "kill connection"]


@pytest.mark.parametrize("what", STRIKES)
@pytest.mark.parametrize("open_", [False, True], ids=["outside", "in a transaction"])
async def test_whatever_happens_nothing_is_left(what: str, open_: bool) -> None:
    """At each packet of each statement that is run."""
    for packets in range(30):
        world = World()
        one = world_of(world)
        if open_:
            one.session.transaction.start()
        one.send(b"command")
        over = await delivered(world, one, packets)
        if not over:
            await strike(world, one, what)
        await done(world, one)
        bare(one)
        if one.transport.open:
            one.session.transaction.lost = ""
            for _ in range(2):  # the first may be what finds an idle connection of the transaction's gone
                one.send(b"h1 OTHER")
                await done(world, one)
            assert one.last.err is None
        if over:
            assert packets == (12 if open_ else 10)
            return
    raise AssertionError("the command never ends")


def world_of(world: World) -> Client:
    """A client whose commands run in steps."""
    services: Any = world.services
    services.execute = lambda client, sql: (
        Steps(client).start(copies(client))
        if sql == b"command"
        else client.relay.run(sql[:2].decode(), sql[3:])
    )
    give(world, READ=rows("a", "b", "c"))
    return Client(world)


async def delivered(world: World, client: Client, packets: int) -> bool:
    """Deliver so many packets, one in each turn; whether that was all."""
    for _ in range(packets):
        await world.turn()
        waiting = [one for one in world.everywhere() if one.out]
        if not waiting:
            return True
        waiting[0].deliver_packets(1)
    await world.turn()
    return client.conn.work is None


async def test_one_within_another(world: World, client: Client) -> None:
    """And when the client goes, all who wait."""
    cancelled = []

    async def outer(client: Exchange) -> None:
        try:
            await run(client, b"inner", ResultSink(client))
            client.reply_ok(affected=7)
        except BaseException:
            cancelled.append("outer")
            raise

    async def inner(client: Exchange) -> None:
        try:
            await run(client, b"h1 READ", ResultSink(client))
            client.reply_ok()
        except BaseException:
            cancelled.append("inner")
            raise

    give(world)
    services: Any = world.services
    services.commands |= {b"command": outer, b"inner": inner}
    client.send(b"command")
    await done(world, client)
    assert client.last.ok == (7, 0)
    client.send(b"command")
    await world.turn()
    client.leave()
    await done(world, client)
    assert sorted(cancelled) == ["inner", "outer"]


async def test_what_is_killed_is_the_statement(world: World, client: Client) -> None:
    async def command(client: Exchange) -> None:
        try:
            await run(client, b"h1 READ", Taken(client))
        except Failed:
            client.reply_ok(affected=1)

    give(world, READ=rows("a"))
    define(world, command)
    client.send(b"command")
    await world.turn()
    assert client.conn.work is not None
    client.conn.work.kill_query()
    await done(world, client)
    assert client.last.ok == (1, 0)
    assert client.session.diagnostics[0].code == KILLED.code
