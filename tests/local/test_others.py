"""USE, KILL, SHOW of the proxy's own, COM_RESET_CONNECTION."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from proxy.backends.settings import LOGIN, Settings
from proxy.local import BUILTINS
from proxy.local.kill import kill
from proxy.local.processes import _values
from proxy.local.reset import reset_connection
from proxy.local.use import use_database
from proxy.session.outcome import Diagnostic
from proxy.session.state import Role, User
from proxy.wire.resultset import Column, decode_row, text_column
from rewriter.plans.builtins import (
    Builtin,
    Empty,
    Kill,
    ShowDiagnostics,
    ShowErrors,
    ShowPools,
    ShowProxySessions,
    ShowProxyStatus,
    ShowShards,
    ShowTopology,
    ShowWarnings,
    Use,
)
from tests.execute.ends import done
from tests.execute.test_relay import PINS, relay
from tests.execute.world import Client, World
from tests.local.places import COLLATIONS, run, text
from tests.wire.streams import Err


def table(client: Client) -> list[list[str | None]]:
    reading = client.last
    assert reading.err is None
    rows = [decode_row(payload, len(reading.columns)) for payload in reading.rows]
    return [[None if value is None else value.decode() for value in row] for row in rows]


# -- SHOW PROCESSLIST
# ----------------------------------------------------------------------------------------------------------


def test_a_column_whose_name_is_no_text() -> None:
    """A server may say anything, and it is no bug of the proxy then."""
    columns = [Column(b"\xff\xfe"), text_column("User")]
    assert _values({"user": "u"}, columns) == [None, b"u"]


# -- USE
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("database", ["demo", "db00003", "global"])
async def test_a_database_the_proxy_knows(world: World, client: Client, database: str) -> None:
    client.ask(run(Use(database=database)))
    await done(world, client)
    assert client.last.err is None
    assert client.session.database == client.session.env.database == database
    assert not world.servers


@pytest.mark.parametrize("database", ["legacy", "elsewhere"])
@pytest.mark.parametrize("there", [True, False])
async def test_a_database_only_its_host_knows(
    world: World, client: Client, database: str, there: bool
) -> None:
    if not there:
        world.server("h1").refused[b"USE " + database.encode()] = Err(1049)
    client.ask(lambda conn: use_database(conn, database))
    await done(world, client)
    assert client.last.err == (None if there else 1049)
    assert client.session.database == (database if there else None)


async def test_a_database_the_user_may_not_use(world: World, client: Client) -> None:
    client.session.user = User("u", Role.READ, frozenset({"demo"}))
    client.ask(lambda conn: use_database(conn, "legacy"))
    client.ask(lambda conn: use_database(conn, ""))
    await done(world, client)
    assert [one.err for one in client.answers()] == [1044, 1046]


async def test_a_missing_database_at_log_in_ends_the_connection(world: World, client: Client) -> None:
    world.server("h1").refused[b"USE elsewhere"] = Err(1049)
    client.ask(lambda conn: use_database(conn, "elsewhere", at_login=True))
    await world.quiet()
    assert client.last.err == 1049
    assert not client.transport.open


# -- KILL
# ----------------------------------------------------------------------------------------------------------


def killing(other: Client, *, query_only: bool) -> Any:
    return lambda conn: kill(conn, other.session.id, query_only=query_only)


@pytest.mark.parametrize("query_only", [True, False])
@pytest.mark.parametrize("busy", [True, False])
async def test_kill(world: World, client: Client, query_only: bool, busy: bool) -> None:
    victim = Client(world)
    if busy:
        victim.ask(relay())
        await world.turn()
    client.ask(killing(victim, query_only=query_only))
    await world.quiet()
    assert client.last.err is None
    assert victim.transport.open == query_only
    if busy:
        thread = world.server("h1").conns[0].conn.thread_id
        assert world.server("h1").kills == [b"QUERY %d" % thread if query_only else b"%d" % thread]
        assert not query_only or victim.last.err == 1317
        assert query_only or not victim.answers()
    if not query_only:
        victim.leave()
    await done(world, client, victim)


@pytest.mark.parametrize(("query_only", "code"), [(True, 1317), (False, 1927)])
async def test_kill_oneself(world: World, client: Client, query_only: bool, code: int) -> None:
    client.ask(killing(client, query_only=query_only))
    await world.quiet()
    assert client.last.err == code
    assert client.transport.open == query_only


async def test_kill_somebody_else_s(world: World, client: Client) -> None:
    """A user's own sessions, an admin everybody's."""
    victim = Client(world)
    victim.session.user = User("somebody", Role.READ)
    client.session.user = User("u", Role.WRITE)
    client.ask(killing(victim, query_only=False))
    client.session.user = User("u", Role.ADMIN)
    client.ask(killing(victim, query_only=True))
    await done(world, client, victim)
    assert [one.err for one in client.answers()] == [1095, None]


@pytest.mark.parametrize("sql", ["99999", "'abc'", "-1"])
async def test_kill_nobody(world: World, client: Client, sql: str) -> None:
    client.ask(run(Kill(id=text(sql), query=False)))
    await done(world, client)
    assert client.last.err == 1094


async def test_kill_statement(world: World, client: Client) -> None:
    victim = Client(world)
    client.ask(run(Kill(id=text(f"'{victim.session.id}'"), query=False)))
    await world.quiet()
    assert client.last.err is None
    assert not victim.transport.open


# -- COM_RESET_CONNECTION
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mariadb", [True, False])
async def test_reset(world: World, client: Client, mariadb: bool) -> None:
    """As after log-in, but for the database and, on MySQL, the character sets; what was open is rolled
    back.
    """
    session = client.session
    session.server_version = "10.11.4-MariaDB" if mariadb else "9.7.0"
    session.login_settings = LOGIN.with_values({"character_set_client": b"latin1"})
    client.ask(relay("h1", effects=PINS))
    session.transaction.start()
    client.ask(relay("h2", b"WRITE 1"))
    await done(world, client)
    session.database = "demo"
    session.settings = LOGIN.with_values({"autocommit": b"0", "sql_mode": b"'ANSI'", "@a": b"1"})
    session.refresh_env()
    session.last_insert_id = 5
    client.ask(reset_connection)
    await done(world, client)
    assert session.settings is (
        session.login_settings if mariadb else Settings.of(COLLATIONS.settings_for(0))
    )
    assert (session.database, session.last_insert_id) == ("demo", 0)
    assert session.autocommit
    assert not session.env.ansi_quotes
    assert session.env.charset == ("latin1" if mariadb else "utf8mb4")
    assert not session.transaction.open
    assert session.transaction.held == {}
    assert world.server("h2").committed == []
    assert [world.server(host).log[-3] for host in ("h1", "h2")] == [b"RESET", b"RESET"]


# -- SHOW
# ----------------------------------------------------------------------------------------------------------


async def test_shards(world: World, client: Client) -> None:
    client.ask(run(ShowShards()))
    await done(world, client)
    assert [row[:7] for row in table(client)] == [
        ["main", "0", "db00000", "h1", "s1", "serving", "yes"],
        ["main", "1", "db00001", "h1", "s1", "serving", "yes"],
        ["main", "2", "db00002", "h2", None, "read_only", "no"],
        ["main", "3", "db00003", "h2", None, "read_only", "no"],
    ]


async def test_topology(world: World, client: Client) -> None:
    client.ask(run(ShowTopology(like=text("'M%'"))))
    await done(world, client)
    assert [row[:4] for row in table(client)] == [["7", "main", "0", "1"], ["7", "main", "2", "3"]]
    client.ask(run(ShowTopology()))
    await done(world, client)
    assert [row[1] for row in table(client)] == ["main", "main", "global", "legacy", "(default)"]


async def test_pools(world: World, client: Client) -> None:
    client.ask(relay("h1"))
    world.server("h2").down = True
    client.ask(relay("h2"))
    await done(world, client)
    client.ask(run(ShowPools()))
    await done(world, client)
    assert [[row[0], *row[2:6], row[7], row[8]] for row in table(client)] == [
        ["h1", "0", "1", "0", "0", "0", None],
        ["h2", "0", "0", "0", "0", "1", "down"],
    ]


async def test_status(world: World, client: Client) -> None:
    client.ask(run(ShowProxyStatus(like=text("'topology_v%'"))))
    await done(world, client)
    assert table(client) == [["Topology_version", "7"]]


async def test_sessions(world: World, client: Client) -> None:
    other = Client(world)
    other.session.database = "demo"
    client.ask(run(ShowProxySessions()))
    await done(world, client, other)
    mine, its = table(client)
    assert (mine[0], mine[4]) == (str(client.session.id), "Query")
    assert its[:5] == [str(other.session.id), "u", "127.0.0.1:4711", "demo", "Sleep"]


async def test_sessions_of_a_user(world: World, client: Client) -> None:
    """LIKE looks for users; who is no admin sees the own sessions only."""
    other = Client(world)
    other.session.user = replace(other.session.user, name="other", role=Role.WRITE)
    client.ask(run(ShowProxySessions(like=text("'oth%'"))))
    await done(world, client, other)
    assert [row[0] for row in table(client)] == [str(other.session.id)]
    other.ask(run(ShowProxySessions()))
    await done(world, client, other)
    assert [row[0] for row in table(other)] == [str(other.session.id)]


DIAGNOSTICS = [Diagnostic("Warning", 1, "a"), Diagnostic("Error", 2, "b"), Diagnostic("Note", 3, "c")]


@pytest.mark.parametrize(
    ("plan", "rows"),
    [
        (ShowWarnings(), ["1", "2", "3"]),
        (ShowErrors(), ["2"]),
        (ShowWarnings(offset=text("1"), limit=text("1")), ["2"]),
        (ShowWarnings(limit=text("0")), []),
    ],
)
async def test_warnings(world: World, client: Client, plan: ShowDiagnostics, rows: list[str]) -> None:
    client.session.diagnostics = list(DIAGNOSTICS)
    client.ask(run(plan))
    client.ask(run(plan))
    await done(world, client)
    assert [row[1] for row in table(client)] == rows, "showing them leaves them"


@pytest.mark.parametrize(("plan", "count"), [(ShowWarnings(count=True), "3"), (ShowErrors(count=True), "1")])
async def test_how_many(world: World, client: Client, plan: ShowDiagnostics, count: str) -> None:
    client.session.diagnostics = list(DIAGNOSTICS)
    client.ask(run(plan))
    await done(world, client)
    assert table(client) == [[count]]


async def test_empty(world: World, client: Client) -> None:
    client.ask(run(Empty()))
    await done(world, client)
    assert client.last.ok == (0, 0)


def leaves(variant: type[Builtin]) -> set[type[Builtin]]:
    """Those below it, and itself where it is no mere base: some have a variant that touches caches, too."""
    below = {leaf for one in variant.__subclasses__() for leaf in leaves(one)}
    return {variant, *below} if variant in BUILTINS or not below else below


def test_every_statement_of_the_proxy_s_own_is_answered() -> None:
    assert set(BUILTINS) == leaves(Builtin)
    titles = [one.title for one in BUILTINS if not any(one in other.__bases__ for other in BUILTINS)]
    assert len(set(titles)) == len(titles)
