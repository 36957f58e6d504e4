"""From a plan to its execution: who runs it, with which values, and who may not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, fields, replace
from typing import Any, TypeVar

import pytest

from config.topology import Topology
from proxy import pipeline
from proxy.engine.outside_transaction import run_outside_transaction, run_probe
from proxy.engine.task import TaskWork
from proxy.errors import ProxyError
from proxy.pipeline import execute
from proxy.session.state import Role, User
from proxy.session.transaction import Spot
from rewriter.planner import Rewriter
from rewriter.plans import (
    Access,
    AnyHost,
    BindError,
    Bound,
    HostStatement,
    Merge,
    Passthrough,
    Plan,
    Reject,
    ShardSelect,
    ShardWrite,
    Values,
)
from rewriter.plans.builtins import Begin, Builtin, Commit, Rollback, ShowWarnings, Use
from rewriter.splice import Template
from rewriter.sql.statements.effects import Effects
from tests.execute.ends import done
from tests.execute.world import RESET, Client, World, rows
from tests.local.places import place
from tests.wire.streams import Err, Ok

Kind = TypeVar("Kind", bound=Plan)


class Planned(Rewriter):
    """A rewriter that knows one answer."""

    def __init__(self) -> None:
        self.plans: dict[bytes, Plan] = {}

    def plan(self, sql: bytes, env: Any) -> tuple[Plan, Values]:
        return self.plans[sql], (b"1", b"")

    def find(self, sql: bytes, env: Any) -> tuple[Plan, Values]:
        return self.plan(sql, env)


class Select(ShardSelect):
    """A plan whose statements are known."""

    bound: Bound
    keyspace = "main"
    scattered = Reject(error="scatter_denied")
    column_metadata = None

    def bind(self, values: Values, topology: Topology, choose: Callable[[Any], int]) -> Bound:
        return self.bound


class Write(ShardWrite):
    bound: Bound
    keyspace = "main"

    def bind(self, values: Values, topology: Topology, choose: Callable[[Any], int]) -> Bound:
        if not hasattr(self, "bound"):
            raise BindError("routing_column_update", column="id", table="pins")
        return self.bound


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setitem(pipeline._EXECUTORS, Select, pipeline._EXECUTORS[ShardSelect])
    monkeypatch.setitem(pipeline._EXECUTORS, Write, pipeline._EXECUTORS[ShardWrite])
    world = place()
    services: Any = world.services
    world.plan_with(Planned())
    services.execute = execute
    services.max_statement = services.long_statement = 1000
    services.plans_at_once = lambda size: True
    world.set_limits(scatter_rows=0)
    return world


def ask(world: World, client: Client, plan: Plan, sql: bytes = b"SELECT 1") -> None:
    services: Any = world.services
    services.serving.snapshot.rewriter.plans[sql] = plan
    client.send(sql)


def bare(kind: type[Kind]) -> Kind:
    """A plan of which nothing but the defaults is known."""
    plan = kind.__new__(kind)
    for one in fields(kind):
        if one.default is not MISSING:
            object.__setattr__(plan, one.name, one.default)
    return plan


def select(*hosts: str, merge: Merge | None = None, scatter: bool = False) -> Select:
    plan = bare(Select)
    statements = tuple(HostStatement(host, (1,), b"Q") for host in hosts)
    object.__setattr__(plan, "bound", Bound(statements, merge, scatter=scatter))
    return plan


def write(*hosts: str) -> Write:
    plan = bare(Write)
    statements = tuple(HostStatement(host, (1,), b"WRITE %d" % number) for number, host in enumerate(hosts))
    object.__setattr__(plan, "bound", Bound(statements))
    object.__setattr__(plan, "verb", "UPDATE")
    return plan


def any_host(sql: str, **options: Any) -> AnyHost:
    return AnyHost(template=Template((sql.encode(),)), **options)


# -- who runs it
# ----------------------------------------------------------------------------------------------------------


async def test_the_clients_own_bytes(world: World, client: Client) -> None:
    plan = Passthrough(template=Template((b"not these",)), keyspaces=("legacy",), database="legacy")
    ask(world, client, plan, b"SELECT /* mine */ 1")
    await done(world, client)
    assert world.server("h1").log == [b"USE legacy", b"SELECT /* mine */ 1"]


async def test_the_sessions_values(world: World, client: Client) -> None:
    client.session.last_insert_id = 77
    template = Template((b"SELECT ", 0, b", ", 2))
    ask(world, client, AnyHost(template=template, unchanged=False, session_slots=("LAST_INSERT_ID()",)))
    await done(world, client)
    assert world.server("h1").log == [b"SELECT 1, 77"]


async def test_any_host_is_one_the_session_uses(world: World, client: Client) -> None:
    client.session.transaction.start()
    ask(world, client, any_host("SELECT 1"))
    await done(world, client)
    assert world.server("h1").log == [b"SELECT 1"], "no reason to begin the transaction"
    ask(world, client, select("h2"))
    ask(world, client, any_host("SELECT 2"), b"SELECT 2")
    await done(world, client)
    assert world.server("h2").log == [b"START TRANSACTION", b"Q", b"SELECT 2"]


async def test_a_lock_taken_at_once_in_a_transaction_is_the_sessions(world: World, client: Client) -> None:
    client.session.transaction.start()
    ask(world, client, any_host("SELECT GET_LOCK('a', 1)", effects=Effects(pins=(("lock", ""),))))
    await done(world, client)
    assert client.session.transaction.held["h1"].pinned


async def test_one_statement_is_relayed_and_several_are_merged(world: World, client: Client) -> None:
    for host in ("h1", "h2"):
        world.server(host).script = lambda conn, sql: [rows("a")]
    ask(world, client, select("h1"))
    ask(world, client, select("h1", "h2"), b"SELECT 2")
    await done(world, client)
    assert [len(one.rows) for one in client.answers()] == [1, 2]


async def test_writes(world: World, client: Client) -> None:
    ask(world, client, write("h1"))
    ask(world, client, write("h1", "h2"), b"UPDATE 2")
    ask(world, client, write(), b"UPDATE 3")
    await done(world, client)
    assert [one.ok for one in client.answers()] == [(1, 0), (2, 0), (0, 0)]


async def test_a_value_that_rules_the_statement_out(world: World, client: Client) -> None:
    plan = write("h1")
    object.__delattr__(plan, "bound")
    ask(world, client, plan)
    await done(world, client)
    assert client.last.err == 1105
    assert "Cannot change 'id' of 'pins'" in client.session.diagnostics[0].message


@pytest.mark.parametrize("committed", [True, False])
async def test_an_implicit_commit(world: World, client: Client, committed: bool) -> None:
    """Then what follows may still be ruled out: here the topology has no host for it any more."""
    client.session.transaction.start()
    ask(world, client, write("h2"))
    await done(world, client)
    plan = Passthrough(template=Template((b"",)), keyspaces=("legacy",), implicit_commit=True)
    if not committed:
        snapshot = world.services.serving.snapshot
        world.services.serving.snapshot = replace(snapshot, topology=Topology(8, {}, None))
    ask(world, client, plan, b"CREATE TABLE t (a INT)")
    await done(world, client)
    assert world.server("h2").committed == [b"WRITE 0"]
    assert client.last.err == (None if committed else 1049)
    assert not client.session.transaction.open


async def test_refused_by_the_rewriter(world: World, client: Client) -> None:
    ask(world, client, Reject(error="unknown_table", arguments={"database": "d", "table": "t"}))
    await done(world, client)
    assert client.last.err == 1146
    assert not world.servers


@pytest.mark.parametrize(("answer", "code"), [(Err(1064), 1064), (Err(1146), 1235), (Ok(), 1235)])
async def test_refused_unless_a_server_knows_better(
    world: World, client: Client, answer: Any, code: int
) -> None:
    world.server("h1").script = lambda conn, sql: [answer if sql.startswith(b"PREPARE") else Ok()]
    ask(world, client, Reject(error="not_supported_yet", probe=True), b"SELECT 'it''s'")
    await done(world, client)
    assert client.last.err == code
    assert world.server("h1").log[1] == b"PREPARE shardgate_probe FROM 'SELECT ''it''''s'''"
    assert (b"DEALLOCATE PREPARE shardgate_probe" in world.server("h1").log) == isinstance(answer, Ok)


# -- who may not
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("access", list(Access))
async def test_roles(world: World, client: Client, role: Role, access: Access) -> None:
    client.session.user = User("u", role)
    ask(world, client, any_host("SELECT 1", access=access))
    await done(world, client)
    assert client.last.err == (1142 if int(access) > int(role) else None)


@pytest.mark.parametrize(("names", "code"), [((), None), (("demo",), None), (("demo", "legacy"), 1044)])
async def test_databases(world: World, client: Client, names: tuple[str, ...], code: int | None) -> None:
    client.session.user = User("u", Role.READ, frozenset({"demo"}))
    ask(world, client, any_host("SELECT 1", databases=names))
    await done(world, client)
    assert client.last.err == code


async def test_too_long(world: World, client: Client) -> None:
    ask(world, client, any_host("x"), b"x" * 1001)
    await done(world, client)
    assert client.last.err == 1153


@pytest.mark.parametrize(
    ("charset", "sharded", "sql", "code"),
    [
        (b"sjis", True, b"SELECT 1", None),
        (b"sjis", False, b"SELECT '\x81\x5c'", None),
        (b"sjis", True, b"SELECT '\x81\x5c'", 1115),
    ],
)
async def test_character_sets_that_hide_quotes(
    world: World, client: Client, charset: bytes, sharded: bool, sql: bytes, code: int | None
) -> None:
    client.session.settings = client.session.settings.with_values({"character_set_client": charset})
    client.session.refresh_env()
    plan = select("h1") if sharded else any_host("SELECT 1")
    ask(world, client, plan, sql.replace(b"\x5c", b"\xff\xdc"))
    client.send(sql)
    await done(world, client)
    assert client.last.err == code
    if not sharded and code is None:
        assert world.server("h1").log[-1] == sql


@pytest.mark.parametrize(
    ("user", "limit", "code"),
    [
        (User("u", Role.READ), 0, None),
        (User("u", Role.READ, scatter_allowed=False), 0, 1105),
        (User("u", Role.READ, scatter_rows=1), 0, 1104),
        (User("u", Role.READ, scatter_rows=2), 1, None),
        (User("u", Role.READ), 1, 1104),
    ],
    ids=["allowed", "denied", "one row", "two rows", "one row for all"],
)
async def test_scatters(world: World, client: Client, user: User, limit: int, code: int | None) -> None:
    world.set_limits(scatter_rows=limit)
    for host in ("h1", "h2"):
        world.server(host).script = lambda conn, sql: [rows("a")]
    client.session.user = user
    ask(world, client, select("h1", "h2", scatter=True))
    await done(world, client)
    assert client.last.err == code


@pytest.mark.parametrize("explicit", [True, False])
@pytest.mark.parametrize("second", ["select", "fan", "write", "passthrough"])
async def test_a_single_shard_s_transaction(
    world: World, client: Client, second: str, explicit: bool
) -> None:
    client.session.transaction_mode = "single"
    if explicit:
        client.session.transaction.start()
    else:
        client.autocommit(False)
    ask(world, client, write("h2"))
    ask(world, client, write("h2"), b"UPDATE again")
    plans: dict[str, Plan] = {
        "select": select("h1"),
        "fan": select("h2", "h1"),
        "write": write("h1"),
        "passthrough": Passthrough(template=Template((b"",)), keyspaces=("legacy",)),
    }
    ask(world, client, plans[second], b"SELECT 2")
    await done(world, client)
    assert [one.err for one in client.answers()] == [None, None, 1105]
    message = client.session.diagnostics[0].message
    assert re.search(r" on h2; (shard . of main on )?h1 would be a second one", message), message
    assert client.session.transaction.open


def test_which_spots_exclude_each_other() -> None:
    one, two = Spot("h1", "main", 1), Spot("h1", "main", 2)
    assert one.excludes(two)
    assert one.excludes(Spot("h1", "media", 1))
    assert one.excludes(Spot("h2"))
    assert not one.excludes(one)
    assert not one.excludes(Spot("h1"))


async def test_outside_of_a_transaction_any_host_will_do(world: World, client: Client) -> None:
    client.session.transaction_mode = "single"
    ask(world, client, write("h1", "h2"))
    await done(world, client)
    assert client.last.ok == (2, 0)


@pytest.mark.parametrize(
    ("plan", "goes_on"),
    [
        (Rollback(), True),
        (Begin(), True),
        (ShowWarnings(), True),
        (Commit(), False),
        (Use(database="demo"), False),
    ],
)
async def test_after_a_transaction_was_lost(
    world: World, client: Client, plan: Builtin, goes_on: bool
) -> None:
    transaction = client.session.transaction
    transaction.start()
    transaction.refuse("transaction_lost", "the connection to h1 was lost")
    transaction.told = True
    ask(world, client, plan)
    await done(world, client)
    assert (client.last.err is None) == goes_on
    assert transaction.open == isinstance(plan, Begin | ShowWarnings | Use)
    ask(world, client, any_host("SELECT 1"))
    await done(world, client)
    assert (client.last.err is None) == isinstance(plan, Rollback | Begin | Commit)


# -- beside the transaction
# ----------------------------------------------------------------------------------------------------------


def aside(sql: bytes = b"Q") -> Any:
    return lambda conn: TaskWork(conn).start(run_outside_transaction(conn, "h1", sql))


@pytest.mark.parametrize("answer", [Ok(3, 4), rows("a", None), Err(1146)], ids=["ok", "rows", "error"])
async def test_aside(world: World, client: Client, answer: Any) -> None:
    services: Any = world.services
    services.execute = lambda conn, sql: aside()(conn)
    client.session.transaction.start()
    client.session.settings = client.session.settings.with_values({"time_zone": b"'+00:00'"})
    world.server("h1").script = lambda conn, sql: [answer]
    client.send(b"SELECT 1")
    await done(world, client)
    reading = client.last
    more = [b"SHOW WARNINGS", *RESET] if isinstance(answer, Err) else []
    assert world.server("h1").log == [b"SET time_zone='+00:00'", b"Q", *more]
    assert client.session.transaction.held == {}
    if isinstance(answer, Ok):
        assert (reading.ok, reading.status) == ((3, 4), 3), "the session's flags, not the connection's"
    elif isinstance(answer, Err):
        assert reading.err == 1146
    else:
        assert reading.rows == list(answer.rows)


@pytest.mark.parametrize("refused", [b"SET time_zone='+00:00'", None])
async def test_aside_that_cannot(world: World, client: Client, refused: bytes | None) -> None:
    services: Any = world.services
    services.execute = lambda conn, sql: aside()(conn)
    client.session.settings = client.session.settings.with_values({"time_zone": b"'+00:00'"})
    if refused is None:
        world.server("h1").down = True
    else:
        world.server("h1").refused[refused] = Err(1298)
    client.send(b"SELECT 1")
    await done(world, client)
    assert client.last.err == (1429 if refused is None else 1105)


async def test_a_refusal_holds_though_its_host_cannot_be_asked(world: World, client: Client) -> None:
    services: Any = world.services
    error = ProxyError("not_supported_yet", what="this", reason="x")
    services.execute = lambda conn, sql: TaskWork(conn).start(run_probe(conn, "h1", sql, error))
    world.server("h1").down = True
    client.send(b"SELECT 1")
    await done(world, client)
    assert client.last.err == 1235
