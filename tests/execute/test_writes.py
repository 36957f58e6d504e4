"""Writes over several shards: what is done is done once, and the client is told exactly that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from proxy.engine.task import TaskWork
from proxy.engine.warned import notices
from proxy.execute.writes import run_writes
from proxy.frontend.connection import ClientConnection
from proxy.wire.packets import lenenc_bytes
from rewriter.plans import Bound, HostStatement, Inserted, Notice
from tests.execute.ends import done, strike
from tests.execute.world import LIMITS, Client, ServerConn, World
from tests.wire.streams import Err, Ok, Result, err_packet, ok_packet

NOTICE = Notice("id_matches_nothing", {"id": "5", "table": "pins", "reason": "so it is"})

Run = Callable[[ClientConnection], None]


def write(
    *places: tuple[str, int], inserted: tuple[Inserted, ...] = (), warnings: tuple[Notice, ...] = ()
) -> Run:
    """`WRITE shard` on each host and shard."""
    statements = tuple(HostStatement(host, (shard,), b"WRITE %d" % shard) for host, shard in places)
    bound = Bound(statements, inserted=inserted, warnings=warnings)

    def run(client: ClientConnection) -> None:
        work = TaskWork(client)
        work.start(run_writes(client, bound, work.conns))

    return run


FOUR = (("h1", 1), ("h2", 2), ("h1", 3), ("h2", 4))


def fails_on(*shards: int, code: int = 1062) -> Callable[[ServerConn, bytes], list[Result]]:
    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        return [Err(code, "no")] if int(sql.split()[1]) in shards else [Ok(2)]

    return script


def committed(world: World) -> list[int]:
    return sorted(int(sql.split()[1]) for server in world.servers.values() for sql in server.committed)


# -- done
# ----------------------------------------------------------------------------------------------------------


async def test_one_network_write_for_a_host_and_one_answer(world: World, client: Client) -> None:
    client.ask(write(*FOUR))
    await world.turn()
    assert [world.server(host).one.transport.writes for host in ("h1", "h2")] == [1, 1]
    await done(world, client)
    assert client.last.ok == (4, 0)
    assert committed(world) == [1, 2, 3, 4]
    assert client.session.row_count == 4
    assert world.server("h1").log == [b"WRITE 1", b"SHOW WARNINGS", b"WRITE 3"]


async def test_replies_in_any_pieces(world: World, client: Client) -> None:
    client.ask(write(*FOUR))
    await world.turn()
    for _ in range(50):
        for host in ("h2", "h1"):
            world.server(host).one.deliver(1)
    await done(world, client)
    assert client.last.ok == (4, 0)


async def test_the_first_row_s_id(world: World, client: Client) -> None:
    """Composed, of the first row of the client's statement, whichever shard it went to."""
    world.server("h1").script = lambda conn, sql: [Ok(1, 10)]
    world.server("h2").script = lambda conn, sql: [Ok(1, 20)]
    inserted = (Inserted(1, 100, 1, 1, 1), Inserted(2, 200, 1, 0, 0))
    client.ask(write(("h1", 1), ("h2", 2), inserted=inserted))
    await done(world, client)
    assert client.last.ok == (2, 220)
    assert client.session.last_insert_id == 220


async def test_a_last_row_that_was_there_is_the_insert_id_when_another_was_written(
    world: World, client: Client
) -> None:
    inserted = (
        Inserted(1, 100, 1, 0, 0, generated=False, given=5),
        Inserted(2, 200, 1, 1, 1, generated=False, given=7),
    )
    world.server("h1").script = lambda conn, sql: [Ok(1, 5)]
    world.server("h2").script = lambda conn, sql: [Ok(0, 0)]
    client.ask(write(("h1", 1), ("h2", 2), inserted=inserted))
    await done(world, client)
    assert client.last.ok == (1, 207)
    world.server("h1").script = world.server("h2").script
    client.ask(write(("h1", 1), ("h2", 2), inserted=inserted))
    await done(world, client)
    assert client.last.ok == (0, 0)


async def test_an_id_of_the_client_s_own_is_no_last_insert_id(world: World, client: Client) -> None:
    world.server("h1").script = world.server("h2").script = lambda conn, sql: [Ok(1, 9)]
    inserted = (Inserted(1, 100, 1, 0, 0, False), Inserted(2, 200, 1, 1, 1, False))
    client.session.last_insert_id = 77
    client.ask(write(("h1", 1), ("h2", 2), inserted=inserted))
    await done(world, client)
    assert client.last.ok == (2, 209)
    assert client.session.last_insert_id == 77


async def test_messages_are_summed(world: World, client: Client) -> None:
    client.ask(write(("h1", 1), ("h2", 2)))
    await world.turn()
    for host, matched in (("h1", 3), ("h2", 4)):
        text = f"Rows matched: {matched}  Changed: 2  Warnings: 0".encode()
        world.server(host).one.out = ok_packet(1, 2, affected=2, info=lenenc_bytes(text))
    await world.quiet()
    assert b"Rows matched: 7  Changed: 4  Warnings: 0" in client._read + client.transport.take()


async def test_warnings(world: World, client: Client) -> None:
    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        conn.warnings = [("Warning", 1265, conn.server.name)]
        return [Ok(1, 0, 1)]

    world.server("h1").script = world.server("h2").script = script
    client.ask(write(("h1", 1), ("h2", 2), warnings=(NOTICE,)))
    await done(world, client)
    assert client.last.warnings == 3
    told = notices([NOTICE])[0].message
    assert [one.message for one in client.session.diagnostics] == ["h1", "h2", told]


async def test_warnings_of_all_statements_on_a_host(world: World, client: Client) -> None:
    """The next statement ends a statement's warnings: they are asked for in between, in the same write."""

    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        conn.warnings = [("Warning", 1265, f"of {sql.decode()} at row 1")]
        return [Ok(1, 0, 1)]

    world.server("h1").script = script
    inserted = (Inserted(1, None, 1, 1, 1, numbers=(1,)), Inserted(3, None, 1, 0, 0, numbers=(0,)))
    client.ask(write(("h1", 1), ("h1", 3), inserted=inserted))
    await done(world, client)
    assert client.last.warnings == 2
    told = [one.message for one in client.session.diagnostics]
    assert told == ["of WRITE 3 at row 1", "of WRITE 1 at row 2"]


async def test_what_is_wrong_with_the_text_is_told_once(world: World, client: Client) -> None:
    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        conn.warnings = [("Warning", 1287, "'VALUES function' is deprecated")] * 2
        return [Ok(1, 0, 2)]

    world.server("h1").script = world.server("h2").script = script
    client.ask(write(*FOUR))
    await done(world, client)
    assert client.last.warnings == 2
    assert len(client.session.diagnostics) == 2


# -- errors outside of a transaction
# ----------------------------------------------------------------------------------------------------------


async def test_some_shards_fail(world: World, client: Client) -> None:
    """The others have still run, and the error names both."""
    world.server("h1").script = world.server("h2").script = fails_on(1, 4)
    client.ask(write(*FOUR))
    await done(world, client)
    assert client.last.err == 1105
    message = client.session.diagnostics[0].message
    assert "done on shard 3 on h1; shard 2 on h2" in message or "shard 2 on h2; shard 3 on h1" in message
    assert "failed on shard 1 on h1; shard 4 on h2" in message
    assert "(error 1062)" in message
    assert committed(world) == [2, 3]


async def test_all_shards_fail(world: World, client: Client) -> None:
    """Nothing is done, so the server's own error says it all."""
    world.server("h1").script = world.server("h2").script = fails_on(1, 2, 3, 4)
    client.ask(write(*FOUR))
    await done(world, client)
    assert client.last.err == 1062


async def test_a_host_that_is_down(world: World, client: Client) -> None:
    """Nothing is sent to any host: better no write than half of one."""
    world.server("h2").down = True
    client.ask(write(*FOUR))
    await done(world, client)
    assert client.last.err == 1429
    assert world.server("h1").log == []


async def test_a_pool_that_is_used_up(world: World, client: Client) -> None:
    """The same, while others have the host's connections."""
    world.limits = replace(LIMITS, max_connections=1)
    client.session.transaction.start()
    client.ask(write(("h2", 9)))
    await done(world, client)
    other = Client(world)
    other.ask(write(*FOUR))
    await world.turn()
    world.now += LIMITS.wait_timeout + 1
    world.backends.tick()
    await done(world, client, other)
    assert other.last.err == 1040
    assert world.server("h1").log == []


async def test_a_host_that_is_down_in_a_transaction(world: World, client: Client) -> None:
    client.session.transaction.start()
    client.ask(write(("h1", 10)))
    await done(world, client)
    world.server("h2").down = True
    client.ask(write(*FOUR))
    await done(world, client)
    assert client.last.err == 1429
    client.ask(commit)
    await done(world, client)
    assert committed(world) == [10]


@pytest.mark.parametrize("replies", [0, 1])
async def test_a_host_that_is_lost(world: World, client: Client, replies: int) -> None:
    """What it has answered is done; of the rest nobody knows. Nothing is sent again."""
    client.ask(write(*FOUR))
    await world.turn()
    one = world.server("h2").one
    one.deliver_packets(replies)
    one.lose()
    await done(world, client)
    message = client.session.diagnostics[0].message
    unsure = "shard 4 on h2" if replies else "shards 2, 4 on h2"
    assert f"and may or may not be done on {unsure}: Lost connection" in message
    assert "Look at what is there before you repeat it" in message
    assert world.server("h2").log == [b"WRITE 2", b"SHOW WARNINGS", b"WRITE 4"]


async def test_many_shards_are_not_all_named(world: World, client: Client) -> None:
    world.server("h1").script = fails_on(99)
    client.ask(write(*(("h1", shard) for shard in range(30)), ("h1", 99)))
    await done(world, client)
    assert "shards 0, 1, 2" in client.session.diagnostics[0].message
    assert "19 and 10 more on h1" in client.session.diagnostics[0].message


async def test_settings_that_are_refused(world: World, client: Client) -> None:
    """The statements may have run, without what the session wanted."""
    client.session.settings = client.session.settings.with_values({"nonsense": b"1"})
    client.ask(write(("h1", 1), ("h1", 3)))
    await world.turn()
    one = world.server("h1").one
    one.out = err_packet(1, 1193, "HY000", "Unknown system variable") + one.out[11:]
    await done(world, client)
    assert client.last.err == 1105
    assert "may have run there" in client.session.diagnostics[0].message


# -- in a transaction
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["explicit", "autocommit off"])
async def test_a_failure_undoes_the_whole_statement(world: World, client: Client, mode: str) -> None:
    if mode == "explicit":
        client.session.transaction.start()
    else:
        client.autocommit(False)
    client.ask(write(("h1", 10), ("h2", 20)))
    await done(world, client)
    world.server("h2").script = fails_on(4)
    client.ask(write(*FOUR))
    await done(world, client)
    assert client.last.err == 1062
    assert client.session.transaction.open
    client.ask(commit)
    await done(world, client)
    assert committed(world) == [10, 20]


def commit(client: ClientConnection) -> None:
    from proxy.engine.transactions import commit_then

    commit_then(client, client.reply_ok)


async def test_a_lost_host_loses_the_transaction(world: World, client: Client) -> None:
    client.session.transaction.start()
    client.ask(write(*FOUR))
    await world.turn()
    world.server("h2").one.lose()
    await done(world, client)
    assert client.last.err == 1053
    assert client.session.transaction.lost
    assert client.session.transaction.held == {}
    assert committed(world) == []


async def test_a_deadlock_rolls_all_back(world: World, client: Client) -> None:
    client.session.transaction.start()
    client.ask(write(*FOUR))
    await done(world, client)
    world.server("h2").script = lambda conn, sql: conn.deadlock() if sql == b"WRITE 2" else [Ok(1)]
    client.ask(write(("h1", 1), ("h2", 2)))
    await done(world, client)
    assert client.last.err == 1213
    assert not client.session.transaction.open
    assert committed(world) == []


async def test_a_host_lost_while_undoing(world: World, client: Client) -> None:
    client.session.transaction.start()
    world.server("h2").script = fails_on(4)
    client.ask(write(*FOUR))
    await world.turn()
    for host in ("h1", "h2"):
        world.server(host).one.deliver()
    await world.turn()
    world.server("h2").one.deliver()  # COM_PING's answer
    await world.turn()
    assert world.server("h1").log[-1].startswith(b"ROLLBACK TO SAVEPOINT")
    world.server("h1").one.lose()
    await done(world, client)
    assert client.last.err == 1062
    assert client.session.transaction.lost
    assert committed(world) == []


async def test_a_savepoint_that_is_gone(world: World, client: Client) -> None:
    """What cannot be taken back must not be committed."""
    client.session.transaction.start()

    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        conn.savepoints.clear()
        return [Err(1062)] if sql == b"WRITE 4" else [Ok(1)]

    world.server("h1").script = world.server("h2").script = script
    client.ask(write(*FOUR))
    await done(world, client)
    assert client.last.err == 1062
    assert client.session.transaction.lost
    assert committed(world) == []


# -- KILL and the client's end, at every stage
# ----------------------------------------------------------------------------------------------------------


async def connecting(world: World) -> None:
    pass


async def asked(world: World) -> None:
    await world.turn()


async def some_done(world: World) -> None:
    await world.turn()
    world.server("h1").one.deliver_packets(1)


async def one_host_done(world: World) -> None:
    await world.turn()
    world.server("h1").one.deliver()
    await world.turn()


async def draining(world: World) -> None:
    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        conn.warnings = [("Warning", 1265, "x")]
        return [Ok(1, 0, 1)]

    world.server("h1").script = script
    await one_host_done(world)
    assert world.server("h1").log[-1] == b"SHOW WARNINGS"


STAGES = [connecting, asked, some_done, one_host_done, draining]


@pytest.mark.parametrize("mode", ["autocommit", "autocommit off", "explicit"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("what", ["leave", "kill", "kill connection", "lose h1", "lose h2"])
async def test_whatever_happens(world: World, client: Client, what: str, stage: Any, mode: str) -> None:
    if mode == "explicit":
        client.session.transaction.start()
    if mode == "autocommit off":
        client.autocommit(False)
    client.ask(write(*FOUR))
    await stage(world)
    await strike(world, client, what)
    if mode != "autocommit":
        assert committed(world) == []
    log = [sql for server in world.servers.values() for sql in server.log if sql.startswith(b"WRITE")]
    assert len(log) == len(set(log)), "nothing is sent twice"
    if what == "kill" and stage is connecting:
        assert client.last.err == 1317
        assert log == []
    other = Client(world)
    for host in ("h1", "h2"):
        world.server(host).script = lambda conn, sql: [Ok(1)]
    other.ask(write(("h1", 7), ("h2", 8)))
    await done(world, client, other)
    assert other.last.ok == (2, 0)
    if not client.left:
        client.leave()
        await done(world, client, other)


async def test_kill_reaches_what_runs_and_its_answers_decide(world: World, client: Client) -> None:
    """A KILL does not hide what was done."""
    client.ask(write(*FOUR))
    await world.turn()
    world.server("h1").one.deliver()
    work = client.conn.work
    assert work is not None
    work.kill_query()
    await world.turn()
    assert not world.server("h1").kills
    assert world.server("h2").kills == [b"QUERY %d" % world.server("h2").conns[0].conn.thread_id]
    packets = (err_packet(1, 1317, "70100", "interrupted"), ok_packet(1, 2), ok_packet(1, 2, affected=1))
    world.server("h2").conns[0].out = b"".join(packets)
    await done(world, client)
    assert "done on shards 1, 3 on h1; shard 4 on h2" in client.session.diagnostics[0].message
    assert "failed on shard 2 on h2" in client.session.diagnostics[0].message


async def test_a_client_that_leaves_has_its_statements_killed(world: World, client: Client) -> None:
    client.ask(write(*FOUR))
    await world.turn()
    client.leave()
    await done(world, client)
    assert [len(world.server(host).kills) for host in ("h1", "h2")] == [1, 1]
