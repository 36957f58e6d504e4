"""BEGIN, COMMIT, ROLLBACK and savepoints over several hosts: all of it or none, as far as one can."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.engine.admission import admit_plan
from proxy.engine.transactions import commit_then
from proxy.errors import ProxyError
from proxy.frontend.connection import ClientConnection
from proxy.session.transaction import XA
from rewriter.plans import AnyHost
from rewriter.plans.builtins import Begin, Commit, ReleaseSavepoint, Rollback, RollbackTo, SetSavepoint, Use
from rewriter.splice import Template
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.facts import StatementFacts
from rewriter.sql.statements.table import FORMS
from tests.execute.ends import done
from tests.execute.test_relay import relay
from tests.execute.world import Client, World
from tests.local.places import run
from tests.wire.streams import Err, Ok

BEGIN = run(Begin())
TEXT = Template((b"Q",))


async def write(world: World, client: Client, *hosts: str) -> None:
    """BEGIN, and one statement on each host."""
    client.ask(BEGIN)
    for number, host in enumerate(hosts):
        client.ask(relay(host, b"WRITE %d" % number))
    await done(world, client)


def committed(world: World) -> list[bytes]:
    return sorted(sql for server in world.servers.values() for sql in server.committed)


def codes(client: Client) -> list[int | None]:
    return [answer.err for answer in client.answers()]


# -- begin
# ----------------------------------------------------------------------------------------------------------


async def test_begin_sends_nothing(world: World, client: Client) -> None:
    client.ask(BEGIN)
    await done(world, client)
    assert not world.servers
    assert client.last.status & 1
    assert client.session.transaction.open


async def test_begin_commits_what_is_open(world: World, client: Client) -> None:
    await write(world, client, "h1", "h2")
    client.ask(BEGIN)
    await done(world, client)
    assert committed(world) == [b"WRITE 0", b"WRITE 1"]
    assert client.session.transaction.explicit
    assert client.session.transaction.held == {}


# -- commit and rollback
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hosts", [(), ("h1",), ("h1", "h2"), ("h1", "h2", "h3")])
@pytest.mark.parametrize("command", [Commit, Rollback])
async def test_the_end(
    world: World, client: Client, command: type[Commit | Rollback], hosts: tuple[str, ...]
) -> None:
    await write(world, client, *hosts)
    client.ask(run(command()))
    await done(world, client)
    assert codes(client) == [None] * (2 + len(hosts))
    assert len(committed(world)) == (len(hosts) if command is Commit else 0)
    assert not client.session.transaction.open
    assert client.session.transaction.held == {}
    assert not client.last.status & 1


@pytest.mark.parametrize("command", [Commit, Rollback])
@pytest.mark.parametrize("hosts", [(), ("h1",), ("h1", "h2")])
async def test_chain(
    world: World, client: Client, command: type[Commit | Rollback], hosts: tuple[str, ...]
) -> None:
    await write(world, client, *hosts)
    client.ask(run(command(chain=True)))
    client.ask(relay("h1", b"WRITE 9"))
    await done(world, client)
    assert client.session.transaction.explicit
    assert world.server("h1").log[-2:] == [b"START TRANSACTION", b"WRITE 9"]
    assert b"WRITE 9" not in committed(world)


@pytest.mark.parametrize("hosts", [(), ("h1",), ("h1", "h2")])
async def test_release(world: World, client: Client, hosts: tuple[str, ...]) -> None:
    await write(world, client, *hosts)
    client.ask(run(Commit(release=True)))
    await world.quiet()
    assert codes(client) == [None] * (2 + len(hosts))
    assert not client.transport.open
    assert len(committed(world)) == len(hosts)
    client.leave()
    await done(world, client)


async def test_autocommit_off(world: World, client: Client) -> None:
    client.autocommit(False)
    client.ask(relay("h1", b"WRITE 0"))
    client.ask(relay("h2", b"WRITE 1"))
    client.ask(run(Commit()))
    client.ask(relay("h1", b"WRITE 2"))
    client.ask(run(Rollback()))
    await done(world, client)
    assert committed(world) == [b"WRITE 0", b"WRITE 1"]


async def test_a_commit_that_fails_halfway(world: World, client: Client) -> None:
    """The error names who has committed and who has not."""
    await write(world, client, "h1", "h2", "h3")
    world.server("h2").refused[b"COMMIT"] = Err(1180, "disk full")
    client.ask(run(Commit()))
    await done(world, client)
    assert client.last.err == 1105
    message = client.session.diagnostics[0].message
    assert "COMMIT is done on h1 and failed on h2, h3: disk full" in message
    assert committed(world) == [b"WRITE 0"]
    assert not client.session.transaction.open


@pytest.mark.parametrize("lost", ["h1", "h2"])
@pytest.mark.parametrize("when", ["before", "during"])
async def test_a_host_lost_at_commit(world: World, client: Client, lost: str, when: str) -> None:
    await write(world, client, "h1", "h2")
    if when == "before":
        world.server(lost).one.lose()
    client.ask(run(Commit()))
    if when == "during":
        for _ in range(20):
            await world.turn()
            if world.server(lost).log[-1] == b"COMMIT":
                break
            world.server("h1").one.deliver()
        world.server(lost).one.conn.connection_lost(None)
    await done(world, client)
    assert client.last.err == (1053 if when == "before" else 1105)
    message = client.session.diagnostics[0].message
    assert ("was rolled back" in message) == (when == "before")
    if when == "during":
        other = "failed on h2" if lost == "h1" else "is done on h1"
        assert f"COMMIT {other} and may or may not be done on {lost}: Lost connection" in message
    assert not client.session.transaction.open
    assert client.session.transaction.held == {}
    expected = {"before": [], "during": [b"WRITE 0"] if lost == "h1" else [b"WRITE 0", b"WRITE 1"]}
    assert committed(world) == expected[when]


@pytest.mark.parametrize("what", ["leave", "kill"])
async def test_nothing_stops_a_commit_over_several_hosts(world: World, client: Client, what: str) -> None:
    """Else some hosts would have committed and others not."""
    await write(world, client, "h1", "h2", "h3")
    client.ask(run(Commit()))
    await world.turn()
    assert world.server("h1").log[-1] == b"COMMIT"
    if what == "leave":
        client.leave()
    else:
        work = client.conn.work
        assert work is not None
        work.kill_query()
    await done(world, client)
    assert committed(world) == [b"WRITE 0", b"WRITE 1", b"WRITE 2"]
    if what == "kill":
        assert client.last.err is None


# -- implicit commits
# ----------------------------------------------------------------------------------------------------------


async def test_commit_then(world: World, client: Client) -> None:
    await write(world, client, "h1", "h2")
    client.ask(lambda conn: commit_then(conn, lambda: conn.relay.run("h3", b"CREATE")))
    await done(world, client)
    assert committed(world) == [b"WRITE 0", b"WRITE 1"]
    assert world.server("h3").log == [b"CREATE"]


async def test_commit_then_without_a_transaction_on_any_host(world: World, client: Client) -> None:
    client.ask(BEGIN)
    client.ask(lambda conn: commit_then(conn, lambda: conn.relay.run("h3", b"CREATE")))
    await done(world, client)
    assert world.server("h3").log == [b"CREATE"]
    assert not client.session.transaction.open


async def test_commit_then_that_cannot_commit(world: World, client: Client) -> None:
    await write(world, client, "h1")
    world.server("h1").one.lose()
    client.ask(lambda conn: commit_then(conn, lambda: conn.relay.run("h3", b"CREATE")))
    await done(world, client)
    assert client.last.err == 1053
    assert "h3" not in world.servers


# -- savepoints
# ----------------------------------------------------------------------------------------------------------


def savepoints(client: Client) -> list[bytes]:
    return [one.quoted for one in client.session.transaction.savepoints]


async def test_savepoints_over_hosts(world: World, client: Client) -> None:
    await write(world, client, "h1")
    client.ask(run(SetSavepoint(name="a")))
    client.ask(relay("h1", b"WRITE 5"))
    client.ask(relay("h2", b"WRITE 6"))
    client.ask(run(RollbackTo(name="a")))
    client.ask(relay("h2", b"WRITE 7"))
    client.ask(run(Commit()))
    await done(world, client)
    assert set(codes(client)) == {None}
    assert committed(world) == [b"WRITE 0", b"WRITE 7"]
    assert world.server("h2").log[:3] == [b"START TRANSACTION", b"SAVEPOINT `a`", b"WRITE 6"]


async def test_a_savepoint_taken_again_is_the_later_one(world: World, client: Client) -> None:
    await write(world, client)
    for name in ("a", "b", "a"):
        client.ask(run(SetSavepoint(name=name)))
    await done(world, client)
    assert savepoints(client) == [b"`b`", b"`a`"]


async def test_rollback_to_and_release_forget_the_later_ones(world: World, client: Client) -> None:
    await write(world, client, "h1")
    for name in ("a", "b", "c"):
        client.ask(run(SetSavepoint(name=name)))
    client.ask(run(RollbackTo(name="b")))
    await done(world, client)
    assert savepoints(client) == [b"`a`", b"`b`"]
    client.ask(run(ReleaseSavepoint(name="a")))
    await done(world, client)
    assert savepoints(client) == []
    assert world.server("h1").log[-1] == b"RELEASE SAVEPOINT `a`"


@pytest.mark.parametrize("command", [RollbackTo, ReleaseSavepoint])
async def test_no_such_savepoint(
    world: World, client: Client, command: type[RollbackTo | ReleaseSavepoint]
) -> None:
    """On several hosts; on one, code may have set it, and that host knows."""
    await write(world, client, "h1", "h2")
    client.ask(run(command(name="nope")))
    await done(world, client)
    assert client.last.err == 1305
    assert client.session.transaction.open


async def test_a_savepoint_outside_of_a_transaction_is_nothing(world: World, client: Client) -> None:
    client.ask(run(SetSavepoint(name="a`b")))
    await done(world, client)
    assert client.last.err is None
    assert savepoints(client) == []


async def test_a_host_lost_at_a_savepoint(world: World, client: Client) -> None:
    await write(world, client, "h1", "h2")
    world.server("h2").one.lose()
    client.ask(run(SetSavepoint(name="a")))
    await done(world, client)
    assert client.last.err == 1053
    assert client.session.transaction.lost
    assert committed(world) == []


async def test_after_the_loss_only_the_end_helps(world: World, client: Client) -> None:
    await write(world, client, "h1", "h2")
    world.server("h2").one.lose()
    client.ask(relay("h2", b"WRITE 5"))
    client.ask(run(Rollback()))
    await done(world, client)
    assert codes(client)[-2:] == [1053, None]
    assert not client.session.transaction.lost
    world.server("h1").script = lambda conn, sql: [Ok(8)]
    client.ask(relay("h1", b"Q"))
    await done(world, client)
    assert client.last.ok == (8, 0)


async def test_kill_during_a_savepoint(world: World, client: Client) -> None:
    await write(world, client, "h1", "h2")
    client.ask(run(SetSavepoint(name="a")))
    await world.turn()
    work: Any = client.conn.work
    work.kill_query()
    await done(world, client)
    assert client.last.err == 1317
    assert client.session.transaction.lost, "a connection had to be closed"
    assert client.session.transaction.held == {}
    assert committed(world) == []


# -- a lost connection, and what the client is told
# ----------------------------------------------------------------------------------------------------------


def message(client: Client) -> str:
    return client.session.diagnostics[0].message


@pytest.mark.parametrize("explicit", [True, False])
async def test_a_statement_lost_within_a_transaction(world: World, client: Client, explicit: bool) -> None:
    """It is rolled back for certain; the next statements hear the same, and so does COMMIT, which ends it."""
    if explicit:
        client.ask(BEGIN)
    else:
        client.autocommit(False)
    client.ask(relay("h1", b"WRITE 0"))
    await world.turn()
    world.server("h1").one.lose()
    await done(world, client)
    assert client.last.err == 1053
    assert "The transaction was rolled back: Lost connection to MySQL server h1" in message(client)
    assert client.session.transaction.lost
    with pytest.raises(ProxyError, match="rolled back: Lost connection"):
        admit_plan(client.session, Use(database="d"), b"USE d")
    with pytest.raises(ProxyError, match="rolled back: Lost connection"):
        admit_plan(client.session, Commit(), b"COMMIT")
    assert not client.session.transaction.open
    assert committed(world) == []


@pytest.mark.parametrize(
    ("plan", "code"),
    [
        (Begin(), 1053),
        (AnyHost(template=TEXT, facts=StatementFacts(FORMS["INSERT"])), 1053),
        (
            AnyHost(
                template=TEXT, facts=StatementFacts(FORMS["CREATE TABLE"], commits=True), implicit_commit=True
            ),
            1158,
        ),
        (AnyHost(template=TEXT, facts=StatementFacts(FORMS["CALL"]), effects=Effects(routine=True)), 1158),
        (AnyHost(template=TEXT, facts=StatementFacts(FORMS["XA PREPARE"])), 1158),
        (None, 1158),
    ],
)
async def test_a_statement_that_may_have_committed(
    world: World, client: Client, plan: Any, code: int
) -> None:
    """What it has become is not known, so nothing suggests to run it again; nor does anything run alone."""
    await write(world, client, "h1")

    def start(conn: ClientConnection) -> None:
        conn.plan = plan  # without one: prepared on its server
        conn.relay.run(
            "h1",
            b"Q",
            facts=StatementFacts(FORMS["CREATE TABLE"], commits=True) if plan is None else plan.facts,
        )

    client.ask(start)
    await world.turn()
    world.server("h1").one.lose()
    await done(world, client)
    assert client.last.err == code
    assert client.session.transaction.loss.code == (1053 if code == 1053 else 1105)
    assert ("is not known" in str(client.session.transaction.loss)) == (code != 1053)


async def test_one_that_was_not_sent_has_not_committed(world: World, client: Client) -> None:
    await write(world, client, "h1")
    world.server("h1").one.lose()

    def start(conn: ClientConnection) -> None:
        conn.plan = AnyHost(template=TEXT, implicit_commit=True)
        conn.relay.run("h1", b"CREATE")

    client.ask(start)
    await done(world, client)
    assert client.last.err == 1053


async def test_a_prepared_xa_transaction_outlives_its_connection(world: World, client: Client) -> None:
    await write(world, client, "h1")
    transaction = client.session.transaction
    transaction.explicit, transaction.pins = False, {"h1": [XA]}
    transaction.held["h1"].pinned = True
    world.server("h1").one.lose()
    client.ask(relay("h1", b"XA COMMIT 'x'"))
    await done(world, client)
    assert client.last.err == 1158
    assert "is not known" in str(transaction.loss)
    client.ask(run(Rollback()))
    await done(world, client)
    assert client.last.ok == (0, 0)
    assert not client.session.transaction.open
    assert client.session.transaction.pins == {}


@pytest.mark.parametrize("when", ["before", "during"])
@pytest.mark.parametrize("explicit", [True, False])
async def test_a_commit_whose_host_is_lost(world: World, client: Client, explicit: bool, when: str) -> None:
    """Unknown, once it was sent; the session is in no transaction any more, whatever came of it."""
    if explicit:
        client.ask(BEGIN)
    else:
        client.autocommit(False)
    client.ask(relay("h1", b"WRITE 0"))
    await done(world, client)
    if when == "before":
        world.server("h1").one.lose()
    client.ask(run(Commit()))
    if when == "during":
        await world.turn()
        assert world.server("h1").log[-1] == b"COMMIT"
        world.server("h1").one.conn.connection_lost(None)
    await done(world, client)
    assert client.last.err == (1053 if when == "before" else 1158)
    assert committed(world) == ([] if when == "before" else [b"WRITE 0"])
    assert not client.session.transaction.lost
    assert not client.session.transaction.open
    client.ask(relay("h1", b"WRITE 1"))
    client.ask(run(Commit()))
    await done(world, client)
    assert codes(client)[-2:] == [None, None]


@pytest.mark.parametrize("when", ["before", "during"])
async def test_a_rollback_whose_host_is_lost(world: World, client: Client, when: str) -> None:
    """That has rolled it back."""
    await write(world, client, "h1")
    if when == "before":
        world.server("h1").one.lose()
    client.ask(run(Rollback()))
    if when == "during":
        await world.turn()
        world.server("h1").one.lose()
    await done(world, client)
    assert client.last.ok == (0, 0)
    assert not client.session.transaction.open
    assert not client.session.transaction.lost
    assert committed(world) == []


@pytest.mark.parametrize("code", [1053, 1927, 3169])
async def test_a_server_that_says_that_it_ends_the_connection(
    world: World, client: Client, code: int
) -> None:
    await write(world, client, "h1", "h2")
    world.server("h1").script = lambda conn, sql: [Err(code, "killed")]
    client.ask(relay("h1", b"Q"))
    await done(world, client)
    assert client.last.err == 1053
    assert "The transaction was rolled back: Lost connection to MySQL server h1" in message(client)
    assert client.session.transaction.held == {}
    client.ask(run(Rollback()))
    client.ask(relay("h1", b"Q"))
    await done(world, client)
    assert codes(client)[-2:] == [None, code], "outside a transaction it is the server's word"
    assert committed(world) == []


async def test_a_connection_that_the_proxy_ends(world: World, client: Client) -> None:
    """The statement's error says why; the transaction is rolled back by the proxy."""
    await write(world, client, "h1")
    client.ask(relay("h1", b"Q"))
    await world.turn()
    error = ProxyError("statement_timeout", host="h1", seconds=1)
    world.backends.pool("h1").end(world.server("h1").one.conn, error)
    await done(world, client)
    assert client.last.err == 3024
    loss = client.session.transaction.loss
    assert (loss.code, loss.sqlstate) == (1213, "40001")
    assert "maximum statement execution time (1 s) exceeded on h1; try restarting" in str(loss)


async def test_who_was_not_told_is_told_by_begin(world: World, client: Client) -> None:
    """The statement was answered, and the connection lost while its warnings were fetched."""
    await write(world, client, "h1")
    world.server("h1").script = lambda conn, sql: [Ok(1, warnings=1)]
    client.ask(relay("h1", b"WRITE 1"))
    await world.turn()
    world.server("h1").one.deliver()
    await world.turn()
    assert world.server("h1").log[-1] == b"SHOW WARNINGS"
    world.server("h1").one.lose()
    await done(world, client)
    assert client.last.ok == (1, 0)
    with pytest.raises(ProxyError, match="rolled back"):
        admit_plan(client.session, Begin(), b"BEGIN")
    admit_plan(client.session, Begin(), b"BEGIN")


@pytest.mark.parametrize("code", [1213, 1180])
async def test_a_commit_that_the_first_of_several_hosts_refuses(
    world: World, client: Client, code: int
) -> None:
    """Nothing is committed; where the server has rolled it back, drivers may run it again."""
    await write(world, client, "h1", "h2")
    world.server("h1").refused[b"COMMIT"] = Err(code, "no")
    client.ask(run(Commit()))
    await done(world, client)
    assert client.last.err == (1213 if code == 1213 else 1105)
    assert committed(world) == []
