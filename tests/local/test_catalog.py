"""The logical view: databases, tables, columns as clients see them; and LIKE."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.execute.task import TaskWork
from proxy.local.catalog import like_pattern, like_text
from proxy.local.fields import field_list
from proxy.wire.constants import ColumnType
from proxy.wire.resultset import Column, decode_column, decode_row, encode_row
from rewriter.planner import Rewriter
from tests.execute.ends import done
from tests.execute.world import Client, ServerConn, World
from tests.local.places import SCHEMA, place, run, text, topology
from tests.wire.streams import Err, Result, Rows, cut_packets

# -- LIKE
# ----------------------------------------------------------------------------------------------------------


def naive(pattern: str, name: str) -> bool:
    """LIKE as its definition reads."""
    if not pattern:
        return not name
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(naive(rest, name[start:]) for start in range(len(name) + 1))
    if first == "\\" and rest:
        return bool(name) and name[0] == rest[0] and naive(rest[1:], name[1:])
    return bool(name) and first in ("_", name[0]) and naive(rest, name[1:])


@given(st.text("ab%_\\", max_size=7), st.text("ab%_\\", max_size=7))
def test_like(pattern: str, name: str) -> None:
    assert like_pattern(pattern)(name) == naive(pattern, name)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("PINS", "pins"),
        ("pi\\_s", "pi_s"),
        ("%é%", "CAFÉ"),
        ("a.c", "a.c"),
        ("%", ""),
        ("a\\", "a\\"),
        ("a%c", "a\nc"),
    ],
)
def test_matches(pattern: str, name: str) -> None:
    assert like_pattern(pattern)(name)


@pytest.mark.parametrize(
    ("pattern", "name"), [("pi\\_s", "pins"), ("a.c", "abc"), ("", "a"), ("_", ""), ("\\%", "a")]
)
def test_does_not_match(pattern: str, name: str) -> None:
    assert not like_pattern(pattern)(name)


def test_no_pattern_takes_for_ever() -> None:
    begun = time.process_time()
    assert not like_pattern("%a" * 200 + "b")("a" * 400)
    assert time.process_time() - begun < 1


@pytest.mark.parametrize(
    ("sql", "pattern"),
    [("'p%'", "p%"), ("'it''s'", "it's"), ('"a""b"', 'a"b'), (" 'a\\_b' ", "a\\_b"), ("''", "")],
)
def test_like_text(sql: str, pattern: str) -> None:
    assert like_text(text(sql), ()) == pattern


# -- SHOW
# ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def world() -> World:
    world = place()
    services: Any = world.services
    services.rewriter = Rewriter(SCHEMA, topology())
    return world


@pytest.fixture
def client(world: World) -> Client:
    return Client(world)


def shown(client: Client) -> list[list[str | None]]:
    """The rows of the last reply."""
    reading = client.last
    assert reading.err is None
    rows = [decode_row(payload, len(reading.columns)) for payload in reading.rows]
    return [[None if value is None else value.decode() for value in row] for row in rows]


def titles(client: Client) -> list[str]:
    return [decode_column(payload).name.decode() for payload in client.last.columns]


async def test_databases(world: World, client: Client) -> None:
    """The schema's, and the default host's; but no physical ones."""
    names = [b"mysql", b"db00000", b"db00003", b"other", b"demo", b"global"]
    world.server("h1").script = lambda conn, sql: [Rows([encode_row([name]) for name in names])]
    client.ask(run("show_databases"))
    client.ask(run("show_databases", {"like": text("'%E%'")}))
    await done(world, client)
    first, second = client.answers()
    assert [row[1:].decode() for row in first.rows] == ["demo", "legacy", "mysql", "other"]
    assert [row[1:].decode() for row in second.rows] == ["demo", "legacy", "other"]
    assert titles(client) == ["Database (%E%)"]
    assert world.server("h1").log == [b"SHOW DATABASES"] * 2


async def test_tables(world: World, client: Client) -> None:
    client.ask(run("show_tables", {"database": "demo"}))
    client.ask(run("show_tables", {"database": "demo", "full": True, "like": text("'P%'")}))
    await done(world, client)
    assert [row[1:] for row in client.answers()[0].rows] == [b"names", b"pins"]
    assert shown(client) == [["pins", "BASE TABLE"]]
    assert titles(client) == ["Tables_in_demo (P%)", "Table_type"]


async def test_where_is_refused(world: World, client: Client) -> None:
    client.ask(run("show_tables", {"database": "demo", "where": text("1=1")}))
    await done(world, client)
    assert client.last.err == 1235


@pytest.mark.parametrize("name", ["show_tables", "show_table_status", "show_create_database"])
@pytest.mark.parametrize(("database", "host"), [("legacy", "h1"), ("db00003", "h2"), ("elsewhere", "h1")])
async def test_what_is_not_sharded_answers_for_itself(
    world: World, client: Client, name: str, database: str, host: str
) -> None:
    client.conn.sql = b""
    client.ask(run(name, {"database": database}))
    await done(world, client)
    assert world.server(host).log == [b"SELECT"], "the client's own bytes"


async def test_the_session_is_in_that_database(world: World, client: Client) -> None:
    client.session.database = "legacy"
    client.ask(run("show_tables", {"database": "legacy"}))
    await done(world, client)
    assert world.server("h1").log == [b"USE legacy", b"SELECT"]


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("show_columns", {"database": "demo", "table": "nope"}, 1146),
        ("show_table_status", {"database": "demo"}, 1235),
        ("show_nonsense", {}, 1235),
    ],
)
async def test_refused(world: World, client: Client, name: str, arguments: Any, code: int) -> None:
    client.ask(run(name, arguments))
    await done(world, client)
    assert client.last.err == code


async def test_columns_of_an_object_table(world: World, client: Client) -> None:
    """One shard is asked, and its key shown as clients know it."""
    world.server("h1").script = lambda conn, sql: [
        Rows([encode_row(["local_id", "bigint", None]), encode_row(["data", "json", None])], 3)
    ]
    client.ask(run("show_columns", {"database": "demo", "table": "pins"}))
    client.ask(run("show_columns", {"database": "demo", "table": "pins", "full": True, "like": text("'D%'")}))
    await done(world, client)
    first = client.answers()[0]
    assert [decode_row(row, 3)[0] for row in first.rows] == [b"id", b"data"]
    assert world.server("h1").log == [
        b"SHOW COLUMNS FROM `db00000`.`pins`",
        b"SHOW FULL COLUMNS FROM `db00000`.`pins`",
    ]


async def test_the_statement_that_made_it(world: World, client: Client) -> None:
    sql = "CREATE TABLE `pins` (\n  `local_id` bigint,\n  PRIMARY KEY (`local_id`))"
    world.server("h1").script = lambda conn, asked: [Rows([encode_row(["pins", sql])], 2)]
    client.ask(run("show_create_table", {"database": "demo", "table": "pins"}))
    await done(world, client)
    assert shown(client) == [["pins", sql.replace("`local_id`", "`id`")]]


async def test_a_shard_that_lacks_the_table(world: World, client: Client) -> None:
    world.server("h1").script = lambda conn, sql: [Err(1146, "no")]
    client.ask(run("show_index", {"database": "demo", "table": "names"}))
    await done(world, client)
    assert client.last.err == 1146
    assert world.server("h1").log == [b"SHOW INDEX FROM `global`.`names`"]


# -- COM_FIELD_LIST
# ----------------------------------------------------------------------------------------------------------


def columns(*names: str) -> Any:
    definitions = [Column(name.encode(), ColumnType.LONGLONG).encode() for name in names]

    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        return [Rows([], len(names), definitions=definitions)]

    return script


@pytest.mark.parametrize(("pattern", "names"), [(b"", ["id", "data"]), (b"d%", ["data"]), (b"x", [])])
@pytest.mark.parametrize("table", ["pins", "names"])
async def test_field_list(world: World, client: Client, table: str, pattern: bytes, names: list[str]) -> None:
    client.session.database = "demo"
    client.session.refresh_env()
    world.server("h1").script = columns("id", "data")
    client.ask(lambda conn: TaskWork(conn).start(field_list(conn, table, pattern)))
    await world.quiet()
    packets = [payload for _, _, payload in cut_packets(client.transport.take())]
    assert [decode_column(payload).name.decode() for payload in packets[:-1]] == names
    assert all(payload.endswith(b"\xfb") for payload in packets[:-1])
    assert packets[-1][:1] == b"\xfe"


@pytest.mark.parametrize(("database", "table", "code"), [(None, "pins", 1046), ("demo", "nope", 1146)])
async def test_no_such_fields(
    world: World, client: Client, database: str | None, table: str, code: int
) -> None:
    client.session.database = database
    client.session.refresh_env()
    client.ask(lambda conn: TaskWork(conn).start(field_list(conn, table, b"")))
    await done(world, client)
    assert client.last.err == code
