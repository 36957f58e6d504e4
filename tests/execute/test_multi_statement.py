"""Several statements in one text: one after another, and to the client one reply."""

from __future__ import annotations

from typing import Any

import pytest

from proxy.frontend.commands import run_command
from proxy.pipeline import execute
from rewriter.planner import Rewriter
from rewriter.plans import AnyHost, MultiStatement, Plan, Values
from rewriter.splice import Template
from rewriter.text.split import has_many_statements
from tests.execute.ends import done
from tests.execute.world import RESET, Client, World, rows
from tests.local.places import place
from tests.wire.streams import Err, Ok, Result


class Planned(Rewriter):
    """Everything goes to one host."""

    def __init__(self) -> None:
        """Without a schema."""

    def plan(self, sql: bytes, env: Any) -> tuple[Plan, Values]:
        if has_many_statements(sql, env):
            return MultiStatement(), (b"",)
        return AnyHost(template=Template((sql,))), (b"",)

    def find(self, sql: bytes, env: Any) -> tuple[Plan, Values]:
        return self.plan(sql, env)


@pytest.fixture
def world() -> World:
    world = place()
    services: Any = world.services
    world.plan_with(Planned())
    services.execute = execute
    services.command = run_command
    services.max_statement = services.long_statement = 1000
    return world


@pytest.fixture
def client(world: World) -> Client:
    client = Client(world)
    client.session.multi_statements = True
    return client


def answer(world: World, **results: Result) -> None:
    """What the host answers to a statement; OK to others."""
    by_sql = {name.encode(): result for name, result in results.items()}

    def script(conn: Any, sql: bytes) -> list[Result]:
        return [by_sql.get(sql, Ok(1))]

    world.server("h1").script = script


async def test_they_are_one_reply(world: World, client: Client) -> None:
    answer(world, b=rows("x", "y"))
    client.send(b"a; b;c;")
    await done(world, client)
    assert world.server("h1").log == [b"a", b"b", b"c"]
    assert client.last.ok == (1, 0)
    assert client.last.rows == [b"\x01x", b"\x01y"]
    assert len(client.answers()) == 1


async def test_the_first_error_ends_it(world: World, client: Client) -> None:
    answer(world, b=Err(1146, "no"))
    client.send(b"a; b; c")
    client.send(b"d")
    await done(world, client)
    assert world.server("h1").log == [b"a", b"b", b"SHOW WARNINGS", *RESET, b"d"]
    assert [one.err for one in client.answers()] == [1146, None]


async def test_commands_wait_until_the_last_statement(world: World, client: Client) -> None:
    client.send(b"a; b; c")
    client.send(b"d; e")
    client.send(b"f")
    await done(world, client)
    assert world.server("h1").log == [b"a", b"b", b"c", b"d", b"e", b"f"]


async def test_a_slow_client_delays_the_next_statement(world: World, client: Client) -> None:
    client.conn.pause_writing()
    client.send(b"a; b")
    for _ in range(3):
        await world.turn()
        for one in world.everywhere():
            one.deliver()
    assert world.server("h1").log == [b"a"]
    client.conn.resume_writing()
    await done(world, client)
    assert world.server("h1").log == [b"a", b"b"]


async def test_the_client_leaves_in_the_middle(world: World, client: Client) -> None:
    client.send(b"a; b")
    await world.turn()
    client.leave()
    await world.quiet()
    assert b"b" not in world.server("h1").log
    world.check(client)


async def test_without_the_capability_a_server_refuses(world: World, client: Client) -> None:
    client.session.multi_statements = False
    world.server("h1").refused[b"PREPARE shardgate_probe FROM 'a; b'"] = Err(1064, "near '; b'")
    client.send(b"a; b;")
    await done(world, client)
    assert [one.err for one in client.answers()] == [1064]


async def test_an_empty_statement_is_a_syntax_error(world: World, client: Client) -> None:
    world.server("h1").refused[b"PREPARE shardgate_probe FROM ';b'"] = Err(1064, "near ';b'")
    client.send(b"a; ;b")
    await done(world, client)
    assert world.server("h1").log[0] == b"a"
    assert client.last.err == 1064


async def test_com_set_option(world: World, client: Client) -> None:
    for option, expected in ((1, False), (0, True)):
        client.conn.data_received(b"\x03\0\0\0\x1b" + option.to_bytes(2, "little"))
        assert client.session.multi_statements == expected
        assert client.transport.take() == b"\x05\0\0\x01\xfe\0\0\x02\0"
    client.conn.data_received(b"\x03\0\0\0\x1b\x02\0")
    assert client.transport.take()[5:7] == (1047).to_bytes(2, "little")
