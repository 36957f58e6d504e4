"""One statement on one host: its bytes to the client, its connection to whom it belongs, whenever it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from proxy.engine.relay import Relay
from proxy.engine.transactions import commit
from proxy.frontend.connection import ClientConnection
from proxy.session.savepoints import savepoint_of
from proxy.session.tracking import Tracker
from rewriter.plans.builtins import Commit
from rewriter.plans.characteristics import Characteristics, Isolation
from rewriter.sql.statements.effects import Effects
from tests.execute.ends import done
from tests.execute.world import LIMITS, RESET, Client, World, rows
from tests.wire.streams import Err, Ok, err_packet

Run = Callable[[ClientConnection], None]


#: What CREATE TEMPORARY TABLE leaves behind.
PINS = Effects(pins=(("table", "t"),))


def relay(host: str = "h1", sql: bytes = b"Q", database: str | None = None, **options: Any) -> Run:
    return lambda client: client.relay.run(host, sql, database, **options)


# -- replies
# ----------------------------------------------------------------------------------------------------------


async def test_rows_pass_as_they_are(world: World, client: Client) -> None:
    world.server("h1").script = lambda conn, sql: [rows("a", None, "b")]
    client.ask(relay())
    await world.turn()
    sent = world.server("h1").one.out
    await done(world, client)
    assert client._read == sent
    assert client.session.row_count == -1
    assert world.server("h1").log == [b"Q"]
    assert world.backends.pool("h1").state.idle_count == 1


async def test_ok(world: World, client: Client) -> None:
    world.server("h1").script = lambda conn, sql: [Ok(3, 7)]
    client.ask(relay())
    await done(world, client)
    assert client.last.ok == (3, 7)
    assert (client.session.row_count, client.session.last_insert_id) == (3, 7)


async def test_a_session_that_tracks_transactions_is_told(world: World, client: Client) -> None:
    """As long as it wants to be, of the simplest statements, too."""
    session = client.session
    session.tracker = Tracker()
    client.autocommit(False)
    told = []
    for mode in (b"'OFF'", b"'STATE'", b"'OFF'"):
        session.settings = session.settings.with_values({"session_track_transaction_info": mode})
        session.refresh_env()
        before = len(client._read)
        client.ask(lambda conn: conn.relay.ask("h1", b"WRITE", None, b""))
        await done(world, client)
        told.append(b"I_______" in client._read[before:])
    assert told == [False, True, False]


async def test_the_insert_id_is_composed(world: World, client: Client) -> None:
    world.server("h1").script = lambda conn, sql: [Ok(1, 7, 0)]
    client.ask(relay(id_offset=200))
    await done(world, client)
    assert client.last.ok == (1, 207)
    assert client.session.last_insert_id == 207


@pytest.mark.parametrize("reply", [Ok(1, 0), Err(1062), rows("a")], ids=["no id", "error", "rows"])
async def test_nothing_to_compose(world: World, client: Client, reply: Any) -> None:
    client.session.last_insert_id = 5
    world.server("h1").script = lambda conn, sql: [reply]
    client.ask(relay(id_offset=200))
    await done(world, client)
    assert client.session.last_insert_id == 5


async def test_an_error(world: World, client: Client) -> None:
    world.server("h1").script = lambda conn, sql: [Err(1146, "Table 'x' doesn't exist")]
    client.ask(relay())
    await done(world, client)
    assert client.last.err == 1146
    assert [(one.level, one.code) for one in client.session.diagnostics] == [("Error", 1146)]
    assert world.server("h1").log == [b"Q", b"SHOW WARNINGS", *RESET], "there may be more to know of it"


async def test_warnings_are_fetched_while_the_connection_is_ours(world: World, client: Client) -> None:
    def script(conn: Any, sql: bytes) -> Any:
        conn.warnings = [("Warning", 1292, "Truncated"), ("Note", 1003, "x")]
        return [Ok(1, 0, 2)]

    world.server("h1").script = script
    client.ask(relay())
    await world.turn()
    world.server("h1").one.deliver()
    await world.turn()
    assert world.backends.pool("h1").state.idle_count == 0
    client.ask(relay(sql=b"NEXT"))
    assert world.server("h1").log == [b"Q", b"SHOW WARNINGS"]
    world.server("h1").script = lambda conn, sql: [rows("a")]
    await world.turn()
    world.server("h1").one.deliver()
    await world.turn()
    assert [one.code for one in client.session.diagnostics] == [1292, 1003]
    await done(world, client)
    assert client.session.diagnostics == []
    assert world.server("h1").log == [b"Q", b"SHOW WARNINGS", b"NEXT"]


async def test_pipelined_commands_are_answered_in_order(world: World, client: Client) -> None:
    world.server("h1").script = lambda conn, sql: [Ok(len(sql))]
    for number in range(5):
        client.ask(relay(f"h{number % 2 + 1}", b"Q" * (number + 1)))
    world.server("h2").script = world.server("h1").script
    await done(world, client)
    assert [one.ok for one in client.answers()] == [(number + 1, 0) for number in range(5)]


# -- state of the session
# ----------------------------------------------------------------------------------------------------------


async def test_settings_travel_with_the_statement(world: World, client: Client) -> None:
    client.session.settings = client.session.settings.with_values({"time_zone": b"'+00:00'"})
    client.ask(relay())
    await world.turn()
    assert world.server("h1").one.transport.writes == 1
    client.ask(relay())
    await done(world, client)
    assert world.server("h1").log == [b"SET time_zone='+00:00'", b"Q", b"Q"]


async def test_settings_that_the_server_refuses(world: World, client: Client) -> None:
    client.session.settings = client.session.settings.with_values({"nonsense": b"1"})
    client.ask(relay())
    await world.turn()
    one = world.server("h1").one
    one.out = err_packet(1, 1193, "HY000", "Unknown system variable") + one.out[-11:]
    await done(world, client)
    assert client.last.err == 1105
    assert not world.server("h1").live


async def test_the_database_is_changed_first(world: World, client: Client) -> None:
    client.ask(relay(database="legacy"))
    client.ask(relay(database="legacy"))
    await done(world, client)
    assert world.server("h1").log == [b"USE legacy", b"Q", b"Q"]


async def test_a_database_that_is_not_there(world: World, client: Client) -> None:
    client.ask(relay(database="legacy"))
    await world.turn()
    world.server("h1").one.out = err_packet(1, 1049, "42000", "Unknown database")
    await done(world, client)
    assert client.last.err == 1049
    assert world.server("h1").log == [b"USE legacy"]


async def test_pinned(world: World, client: Client) -> None:
    """GET_LOCK, a temporary table: the connection stays, until the session ends; then it is reset."""
    client.ask(relay(effects=PINS))
    await done(world, client)
    conn = world.server("h1").one
    assert client.session.transaction.held == {"h1": conn.conn}
    client.ask(relay(sql=b"NEXT"))
    await done(world, client)
    assert conn.log == [b"Q", b"NEXT"]
    client.leave()
    await done(world, client)
    assert conn.log[2:] == [*RESET]


# -- transactions
# ----------------------------------------------------------------------------------------------------------


async def test_a_transaction_opens_with_its_first_statement_on_each_host(
    world: World, client: Client
) -> None:
    transaction = client.session.transaction
    transaction.start(Characteristics(read_only=True))
    transaction.next = Characteristics(Isolation.SERIALIZABLE)
    client.ask(relay())
    client.ask(relay())
    await done(world, client)
    transaction.savepoints += (savepoint_of(b"`a`", "utf8mb4"),)
    client.ask(relay("h2"))
    await done(world, client)
    opening = [b"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", b"START TRANSACTION READ ONLY"]
    assert world.server("h1").log == [*opening, b"Q", b"Q"]
    assert world.server("h2").log == [*opening, b"SAVEPOINT `a`", b"Q"]
    assert set(transaction.held) == {"h1", "h2"}


async def test_a_transaction_opens_on_a_pinned_connection_too(world: World, client: Client) -> None:
    """Else its statements would commit by themselves."""
    client.ask(relay(effects=PINS))
    await done(world, client)
    client.session.transaction.start()
    client.ask(relay(sql=b"WRITE 1"))
    await done(world, client)
    assert world.server("h1").log == [b"Q", b"START TRANSACTION", b"WRITE 1"]
    assert world.server("h1").committed == []


async def test_autocommit_off(world: World, client: Client) -> None:
    client.autocommit(False)
    client.ask(relay(sql=b"WRITE 1"))
    await done(world, client)
    assert set(client.session.transaction.held) == {"h1"}
    client.session.transaction.savepoints += (savepoint_of(b"`a`", "utf8mb4"),)
    client.ask(relay("h2", b"WRITE 2"))
    await done(world, client)
    assert world.server("h2").log == [b"SET autocommit=0", b"SAVEPOINT `a`", b"WRITE 2"]
    client.leave()
    await done(world, client)
    assert world.server("h1").committed == world.server("h2").committed == []


async def test_an_error_in_a_transaction_leaves_it_open(world: World, client: Client) -> None:
    client.session.transaction.start()
    world.server("h1").script = lambda conn, sql: [Err(1062)]
    client.ask(relay())
    await done(world, client)
    assert world.server("h1").log == [b"START TRANSACTION", b"Q", b"SHOW WARNINGS"]
    assert set(client.session.transaction.held) == {"h1"}
    assert client.session.transaction.explicit


async def test_a_deadlock_on_one_host_rolls_the_others_back(world: World, client: Client) -> None:
    """As one server would: nothing of the transaction may be committed."""
    client.session.transaction.start()
    client.ask(relay("h1", b"WRITE 1"))
    client.ask(relay("h2", b"WRITE 2"))
    await done(world, client)
    world.server("h2").script = lambda conn, sql: conn.deadlock()
    client.ask(relay("h2", b"WRITE 3"))
    await done(world, client)
    assert client.last.err == 1213
    assert world.server("h1").committed == world.server("h2").committed == []
    assert not client.session.transaction.open
    assert client.session.transaction.held == {}


@pytest.mark.parametrize("commits", [False, True])
async def test_a_pinned_connection_ends_with_the_others(world: World, client: Client, commits: bool) -> None:
    """At once, and what comes next waits for it: but the session keeps what is on the connection."""
    client.ask(relay("h1", b"CREATE TEMPORARY TABLE t", effects=PINS))
    await done(world, client)
    client.session.transaction.start()
    client.ask(relay("h1", b"WRITE 1"))
    client.ask(relay("h2", b"WRITE 2"))
    await done(world, client)

    def ends(conn: Any, sql: bytes) -> Any:
        if not commits:
            return conn.deadlock()
        conn.end(commit=True)
        return [Ok()]

    world.server("h2").script = ends
    client.ask(relay("h2", b"WRITE 3"))
    client.ask(relay("h1", b"Q"))
    client.ask(relay("h1", b"Q"))
    await done(world, client)
    end = (b"COMMIT" if commits else b"ROLLBACK") + b" AND NO CHAIN NO RELEASE"
    assert world.server("h1").log[-3:] == [end, b"Q", b"Q"]
    assert world.server("h1").committed == ([b"WRITE 1"] if commits else [])
    assert not client.session.transaction.open
    assert set(client.session.transaction.held) == {"h1"}


async def test_autocommit_off_ends_on_all_hosts(world: World, client: Client) -> None:
    client.session.settings = client.session.settings.with_values({"autocommit": b"0"})
    client.session.autocommit = False
    client.ask(relay("h1", b"WRITE 1"))
    client.ask(relay("h2", b"WRITE 2"))
    await done(world, client)
    world.server("h2").script = lambda conn, sql: conn.deadlock()
    client.ask(relay("h2", b"WRITE 3"))
    await done(world, client)
    assert world.server("h1").committed == []
    assert client.session.transaction.held == {}


async def test_an_implicit_commit_on_one_host_commits_the_others(world: World, client: Client) -> None:
    client.session.transaction.start()
    client.ask(relay("h1", b"WRITE 1"))
    client.ask(relay("h2", b"WRITE 2"))
    await done(world, client)

    def ddl(conn: Any, sql: bytes) -> Any:
        conn.end(commit=True)
        return [Ok()]

    world.server("h2").script = ddl
    client.ask(relay("h2", b"CREATE"))
    await done(world, client)
    assert world.server("h1").committed == [b"WRITE 1"]
    assert world.server("h2").committed == [b"WRITE 2"]
    assert not client.session.transaction.open


async def test_a_connection_that_died_between_two_statements(world: World, client: Client) -> None:
    """The client hears it with its next statement, and the transaction cannot go on."""
    client.session.transaction.start()
    client.ask(relay("h1", b"WRITE 1"))
    client.ask(relay("h2", b"WRITE 2"))
    await done(world, client)
    world.server("h1").one.lose()
    client.ask(relay("h1", b"WRITE 3"))
    await done(world, client)
    assert client.last.err == 1053
    assert "Lost connection" in client.session.transaction.lost
    assert client.session.transaction.held == {}
    assert world.server("h2").committed == []


async def test_a_client_that_vanishes_is_rolled_back(world: World, client: Client) -> None:
    client.session.transaction.start()
    client.ask(relay("h1", b"WRITE 1"))
    client.ask(relay("h2", b"WRITE 2"))
    await done(world, client)
    client.leave()
    await done(world, client)
    assert world.server("h1").committed == world.server("h2").committed == []
    assert [world.server(name).log[-3] for name in ("h1", "h2")] == [b"RESET", b"RESET"]


async def test_a_client_that_vanishes_behind_its_commit_has_committed(world: World, client: Client) -> None:
    """On both hosts, whatever the commit has begun with; and the connections are given back once."""
    client.session.transaction.start()
    client.ask(relay("h1", b"WRITE 1"))
    client.ask(relay("h2", b"WRITE 2"))
    await done(world, client)
    client.ask(lambda conn: commit(conn, Commit(), ()))
    client.leave()
    await done(world, client)
    assert [len(world.server(name).committed) for name in ("h1", "h2")] == [1, 1]


# -- waiting
# ----------------------------------------------------------------------------------------------------------


async def test_a_topology_that_comes_while_it_waits_for_a_connection(world: World, client: Client) -> None:
    """Nothing of it was sent: it is planned by the new one."""
    world.server("h1").script = world.server("h2").script = lambda conn, sql: [Ok(1)]
    others = [Client(world) for _ in range(LIMITS.max_connections)]
    for other in others:
        other.ask(relay("h1", b"BUSY"))
    await world.turn()
    client.ask(relay("h1", b"LATE"))
    client.plans.append(relay("h2", b"LATE"))
    serving = world.services.serving
    serving.snapshot = replace(serving.snapshot, topology=replace(serving.topology, version=99))
    await done(world, client, *others)
    assert world.server("h1").log.count(b"LATE") == 0
    assert world.server("h2").log.count(b"LATE") == 1
    assert client.last.ok == (1, 0)


async def test_waiting_for_a_connection(world: World, client: Client) -> None:
    others = [Client(world) for _ in range(3)]
    for other in others:
        other.ask(relay())
    await world.turn()
    client.ask(relay(sql=b"LAST"))
    await world.turn()
    assert len(world.server("h1").live) == 3
    await done(world, client, *others)
    assert client.last.ok == (1, 0)


async def test_a_host_that_is_down(world: World, client: Client) -> None:
    """Refused after trying, and at once while it is known to be down."""
    world.server("h1").down = True
    client.ask(relay())
    await done(world, client)
    assert client.last.err == 1429
    client.ask(relay())
    assert client.last.err == 1429
    world.check(client)
    assert isinstance(client.conn.relay, Relay)
    assert client.conn.relay.waiter is None


async def test_a_kill_after_a_refusal_answers_nothing(world: World, client: Client) -> None:
    """The queue was full; the next statement has warnings to fetch when the KILL comes."""
    world.server("h1").down = True
    client.ask(relay())
    await done(world, client)
    client.ask(relay())
    world.server("h2").script = lambda conn, sql: [Ok(1, 0, 1)]
    client.ask(relay("h2"))
    await world.turn()
    world.server("h2").one.deliver()
    await world.turn()
    assert client.conn.work is client.conn.relay
    client.conn.relay.kill_query()
    await done(world, client)
