"""SET: what the proxy knows by itself, and what a server must judge."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.backends.settings import LOGIN
from proxy.engine.read_back import literal
from proxy.session.state import Role, User
from proxy.wire.constants import ColumnType
from proxy.wire.resultset import Column, encode_row
from rewriter.plans.characteristics import Characteristics, Isolation
from tests.execute.ends import done
from tests.execute.test_relay import PINS, relay
from tests.execute.world import Client, ServerConn, World
from tests.local.places import assign, set_variables
from tests.wire.streams import Err, Ok, Result, Rows


class Judge:
    """A server that accepts SETs, but for `refused`, and tells the `values` of what it is asked for."""

    def __init__(self, world: World) -> None:
        self.values: dict[str, tuple[bytes | None, ColumnType, int]] = {}
        for host in ("h1", "h2"):
            world.server(host).script = self.answer

    def answer(self, conn: ServerConn, sql: bytes) -> list[Result]:
        if not sql.startswith(b"SELECT "):
            return [Ok()]
        asked = [name.strip().decode() for name in sql[7:].removesuffix(b" LIMIT 1").split(b",")]
        names = [name.removeprefix("CAST(CONVERT(").partition(" USING")[0] for name in asked]
        found = [self.values[name] for name in names]
        columns = [Column(b"v", kind, collation).encode() for _, kind, collation in found]
        return [Rows([encode_row([value for value, _, _ in found])], len(columns), definitions=columns)]

    def says(
        self, name: str, value: bytes | None, kind: ColumnType = ColumnType.VAR_STRING, collation: int = 45
    ) -> None:
        self.values[name] = value, kind, collation


@pytest.fixture
def judge(world: World) -> Judge:
    return Judge(world)


# -- without a server
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [("0", False), ("OFF", False), ("'off'", False), ("1", True), ("on", True), (None, True)],
)
async def test_autocommit(world: World, client: Client, value: str | None, expected: bool) -> None:
    client.ask(set_variables(assign("session", "autocommit", value)))
    await done(world, client)
    assert client.session.autocommit == expected
    assert bool(client.last.status & 2) == expected
    assert not world.servers


@pytest.mark.parametrize("explicit", [False, True])
async def test_autocommit_on_commits(world: World, client: Client, explicit: bool) -> None:
    client.autocommit(False)
    if explicit:
        client.session.transaction.start()
    client.ask(relay("h1", b"WRITE 1"))
    client.ask(set_variables(assign("session", "autocommit", "1")))
    await done(world, client)
    assert world.server("h1").committed == [b"WRITE 1"]
    assert not client.session.transaction.open


NAMES = {
    ("utf8mb4", None): b"utf8mb4_general_ci",
    ("'UTF8MB4'", "'utf8mb4_bin'"): b"utf8mb4_bin",
    ("latin1", None): b"latin1_swedish_ci",
}


@pytest.mark.parametrize(("names", "collation"), NAMES.items())
async def test_names(world: World, client: Client, names: tuple[str, str | None], collation: bytes) -> None:
    client.ask(set_variables(assign("names", "", names[0], collate=names[1])))
    await done(world, client)
    assert client.session.settings.get("collation_connection") == collation
    assert client.session.env.charset == collation.decode().partition("_")[0]
    assert not world.servers


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        ([("transaction_isolation", "'READ-COMMITTED'")], Characteristics(Isolation.READ_COMMITTED)),
        ([("transaction_read_only", "1")], Characteristics(read_only=True)),
        (
            [("transaction_isolation", "serializable"), ("transaction_read_only", "OFF")],
            Characteristics(Isolation.SERIALIZABLE, read_only=False),
        ),
    ],
)
async def test_the_next_transaction(
    world: World, client: Client, assignments: Any, expected: Characteristics
) -> None:
    client.ask(set_variables(*(assign("next", *one) for one in assignments)))
    await done(world, client)
    assert client.session.transaction.next == expected
    client.session.transaction.start()
    client.ask(set_variables(*(assign("next", *one) for one in assignments)))
    await done(world, client)
    assert client.last.err == 1568


@pytest.mark.parametrize(
    ("scope", "name", "value", "code"),
    [
        ("global", "sql_mode", "''", 1227),
        ("persist", "sql_mode", "''", 1227),
        ("session", "autocommit", "2", 1231),
        ("session", "transaction_mode", "'xb'", 1231),
        ("session", "scatter_writes", "perhaps", 1231),
        ("next", "transaction_isolation", "chaos", 1231),
    ],
)
async def test_wrong(world: World, client: Client, scope: str, name: str, value: str, code: int) -> None:
    """All or none: what stands before it is not set either."""
    client.session.user = User("writer", Role.WRITE)
    client.ask(set_variables(assign("session", "autocommit", "0"), assign(scope, name, value)))
    await done(world, client)
    assert client.last.err == code
    assert client.session.autocommit
    assert not world.servers


async def test_the_proxys_own(world: World, client: Client) -> None:
    own = (("transaction_mode", "'SINGLE'"), ("scatter_writes", "ON"), ("last_insert_id", "77"))
    client.ask(set_variables(*(assign("session", *one) for one in own)))
    await done(world, client)
    session = client.session
    assert (session.transaction_mode, session.scatter_writes, session.last_insert_id) == ("single", True, 77)
    assert session.env.scatter_writes
    client.ask(
        set_variables(assign("session", "transaction_mode", None), assign("session", "scatter_writes", "0"))
    )
    await done(world, client)
    assert (session.transaction_mode, session.scatter_writes) == ("multi", False)


async def test_user_variables_that_mean_the_same_everywhere(world: World, client: Client) -> None:
    values = {"a": "1", "b": "-1.5", "c": "NULL", "d": "'it''s'"}
    client.session.settings = client.session.settings.with_values({"@c": b"5"})
    client.ask(set_variables(*(assign("user", name, value) for name, value in values.items())))
    await done(world, client)
    assert client.session.settings.values == {
        "@a": b"1",
        "@b": b"-1.5",
        "@c": b"CAST(NULL AS SIGNED)",
        "@d": b"_utf8mb4'it''s' COLLATE utf8mb4_general_ci",
    }
    assert not world.servers


# -- with a server
# ----------------------------------------------------------------------------------------------------------


async def test_a_server_judges(world: World, judge: Judge, client: Client) -> None:
    judge.says("@@session.sql_mode", b"ANSI_QUOTES,ANSI")
    judge.says("@@session.wait_timeout", b"60", ColumnType.LONGLONG, 63)
    sql_mode = assign("session", "sql_mode", "CONCAT(@@sql_mode, ',ANSI')", constant=False)
    client.ask(
        set_variables(
            sql_mode,
            assign("session", "wait_timeout", "60"),
            assign("session", "autocommit", "0"),
        )
    )
    judge.says("@@session.autocommit", b"0", ColumnType.LONGLONG, 63)
    await done(world, client)
    assert client.last.err is None
    session = client.session
    assert session.settings.values == {
        "sql_mode": b"'ANSI_QUOTES,ANSI'",
        "wait_timeout": b"60",
        "autocommit": b"0",
    }
    assert session.env.ansi_quotes
    assert not session.autocommit
    assert world.server("h1").log[0] == (
        b"SET SESSION `sql_mode` = CONCAT(@@sql_mode, ',ANSI'), "
        b"SESSION `wait_timeout` = 60, SESSION `autocommit` = 0"
    )
    client.ask(relay("h1", b"Q"))
    await done(world, client)
    assert world.server("h1").log[-1] == b"Q"  # where the SET has run nothing has to be set again
    client.ask(relay("h2", b"Q"))
    await done(world, client)
    assert world.server("h2").log[-2:] == [
        b"SET autocommit=0,sql_mode='ANSI_QUOTES,ANSI',wait_timeout=60",
        b"Q",
    ]


async def test_default_is_the_servers_own(world: World, judge: Judge, client: Client) -> None:
    client.session.settings = LOGIN.with_values({"time_zone": b"'+00:00'", "sql_mode": b"'ANSI'"})
    judge.says("@@session.time_zone", b"SYSTEM")
    client.ask(set_variables(assign("session", "time_zone", None)))
    await done(world, client)
    assert client.session.settings is LOGIN.with_values({"sql_mode": b"'ANSI'"})


async def test_an_unsafe_character_set_by_the_servers_word(
    world: World, judge: Judge, client: Client
) -> None:
    judge.says("@@session.character_set_client", b"gbk")
    client.ask(set_variables(assign("session", "character_set_client", "gbk")))
    await done(world, client)
    assert client.session.unsafe_charset
    assert client.session.env.charset == "gbk"


VALUES = {
    "n": ((b"5", ColumnType.LONGLONG, 63), b"35", b"binary", b"5"),
    "f": ((b"0.5", ColumnType.DOUBLE, 63), b"1", b"binary", b"0.5e0"),
    "d": ((b"7", ColumnType.NEWDECIMAL, 63), b"7", b"binary", b"7."),
    "b": ((b"\xff'", ColumnType.VAR_STRING, 63), b"FF27", b"binary", b"_binary x'FF27'"),
    "t": (("é".encode(), ColumnType.VAR_STRING, 45), b"C3A9", b"utf8mb4_bin",
          b"_utf8mb4 x'C3A9' COLLATE utf8mb4_bin"),
    "l": ((b"?", ColumnType.VAR_STRING, 45), b"E9", b"latin1_swedish_ci",
          b"_latin1 x'E9' COLLATE latin1_swedish_ci"),
    "u": ((None, ColumnType.VAR_STRING, 63), None, b"binary", None),
}  # fmt: skip
"""Name: the value as it comes, its bytes in hexadecimal, its collation; what the session remembers."""


async def test_user_variables_of_all_types(world: World, judge: Judge, client: Client) -> None:
    """The bytes are remembered with their own character set, not in that of the results."""
    for name, (value, digits, collation, _) in VALUES.items():
        judge.says(f"@`{name}`", *value)
        judge.says(f"CASE WHEN LENGTH(@`{name}`) <= 4194304 THEN HEX(@`{name}`) END", digits)
        judge.says(f"COLLATION(@`{name}`)", collation)
    client.ask(set_variables(*(assign("user", name, "f()", constant=False) for name in VALUES)))
    await done(world, client)
    expected = {f"@{name}": remembered for name, (*_, remembered) in VALUES.items()}
    assert client.session.settings.values == {name: value for name, value in expected.items() if value}


async def test_what_is_set_for_all_is_set_on_every_host(world: World, judge: Judge, client: Client) -> None:
    """And connections that were opened before are not used any more."""
    judge.says("@@global.sql_mode", b"ANSI")
    for name in ("autocommit", "wait_timeout", "interactive_timeout"):
        judge.says(f"@@global.{name}", b"1", ColumnType.LONGLONG, 63)
    client.session.user = User("root", Role.ADMIN)
    client.ask(set_variables(assign("global", "sql_mode", "'ANSI'")))
    await done(world, client)
    assert client.last.err is None
    for host in ("h1", "h2"):
        assert b"SET GLOBAL `sql_mode` = 'ANSI'" in world.server(host).log
        assert not world.backends.pool(host).state.idle_count


async def test_one_host_refuses_what_is_set_for_all(world: World, judge: Judge, client: Client) -> None:
    """Then the session has nothing of it, whatever servers have by now, and reads statements as before."""
    for name in ("@@global.sql_mode", "@@session.sql_mode"):
        judge.says(name, b"ANSI")
    for name in ("autocommit", "wait_timeout", "interactive_timeout"):
        judge.says(f"@@global.{name}", b"1", ColumnType.LONGLONG, 63)
    client.session.user = User("root", Role.ADMIN)
    world.server("h2").refused[b"SET GLOBAL `sql_mode` = 'ANSI'"] = Err(1227, "no")
    assignments = (assign("session", "sql_mode", "'ANSI'"), assign("global", "sql_mode", "'ANSI'"))
    env = client.session.env
    client.ask(set_variables(*assignments))
    await done(world, client)
    assert client.last.err == 1105
    assert client.session.settings is LOGIN
    assert client.session.env == env
    assert not world.backends.pool("h1").state.idle_count, "its connections are older than the value"


async def test_refused(world: World, client: Client) -> None:
    """Nothing is remembered, and what the server may have set half is reset."""
    world.server("h1").refused[b"SET SESSION `sql_mode` = 'x'"] = Err(1231, "no")
    client.ask(
        set_variables(assign("session", "sql_mode", "'x'"), assign("next", "transaction_read_only", "1"))
    )
    await done(world, client)
    assert client.last.err == 1231
    assert client.session.settings is LOGIN
    assert client.session.transaction.next is None
    assert world.server("h1").log[1] == b"RESET"


async def test_refused_on_a_connection_that_is_needed(world: World, judge: Judge, client: Client) -> None:
    """There what may have been set half is set again."""
    world.server("h1").refused[b"SET SESSION `sql_mode` = 'x'"] = Err(1105, "no")
    client.ask(relay("h1", effects=PINS))
    client.ask(set_variables(assign("session", "sql_mode", "'x'")))
    client.ask(relay("h1", b"Q"))
    await done(world, client)
    assert world.server("h1").log[-3:] == [b"SET SESSION `sql_mode` = 'x'", b"SET sql_mode=DEFAULT", b"Q"]


@pytest.mark.parametrize("what", ["leave", "kill", "lose"])
@pytest.mark.parametrize("turns", [0, 1, 2])
async def test_whatever_happens(world: World, judge: Judge, client: Client, what: str, turns: int) -> None:
    judge.says("@@session.sql_mode", b"ANSI")
    client.ask(set_variables(assign("session", "sql_mode", "'ANSI'")))
    for _ in range(turns):
        await world.turn()
        for one in world.everywhere():
            one.deliver()
    if what == "leave":
        client.leave()
    elif what == "lose":
        for one in world.everywhere():
            one.lose()
    elif client.conn.work is not None:
        client.conn.work.kill_query()
    await done(world, client)


# -- literals
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "sql"),
    [
        (None, ColumnType.VAR_STRING, b"NULL"),
        (b"-1.50", ColumnType.NEWDECIMAL, b"-1.50"),
        (b"1e300", ColumnType.DOUBLE, b"1e300"),
        (b"it's", ColumnType.VAR_STRING, b"'it''s'"),
        (b"a\\b", ColumnType.VAR_STRING, b"CONVERT(x'615c62' USING utf8mb4)"),
        (b"", ColumnType.VAR_STRING, b"''"),
    ],
)
def test_literal(value: bytes | None, kind: ColumnType, sql: bytes) -> None:
    assert literal(value, kind) == sql
