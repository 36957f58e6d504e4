"""The logical view: databases, tables, columns as clients see them; and LIKE."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.engine.task import TaskWork
from proxy.local.fields import field_list
from proxy.local.rows import like_pattern, like_text
from proxy.local.views import named_like
from proxy.wire.constants import ColumnType
from proxy.wire.resultset import Column, decode_column, decode_row, encode_row
from rewriter.plans.builtins import (
    ShowColumns,
    ShowCreateDatabase,
    ShowCreateTable,
    ShowDatabases,
    ShowIndex,
    ShowNothing,
    ShowTables,
    ShowTableStatus,
)
from tests.execute.ends import done
from tests.execute.world import Client, ServerConn, World
from tests.local.places import place, run, text
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
    return place()


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


def answers(columns: str, *rows: Sequence[str | None]) -> Any:
    """A server that answers everything with these columns and rows."""
    definitions = [Column(name.encode()).encode() for name in columns.split(", ")]
    payloads = [encode_row(row) for row in rows]
    return lambda conn, sql: [Rows(payloads, len(definitions), definitions=definitions)]


async def test_databases(world: World, client: Client) -> None:
    """The schema's, and the default host's; but no physical ones."""
    names = ["mysql", "db00000", "db00003", "other", "demo", "global"]
    world.server("h1").script = answers("Database", *([name] for name in names))
    client.ask(run(ShowDatabases()))
    client.ask(run(ShowDatabases(like=text("'%e%'"))))
    await done(world, client)
    first, second = client.answers()
    assert [row[1:].decode() for row in first.rows] == ["demo", "legacy", "mysql", "other"]
    assert [row[1:].decode() for row in second.rows] == ["demo", "legacy", "other"]
    assert titles(client) == ["Database (%e%)"]
    assert world.server("h1").log == [b"SHOW DATABASES WHERE `Database` NOT REGEXP '^(db[0-9]{5,})$'"] * 2


EXISTING = b"SELECT TABLE_NAME, COUNT(*) FROM information_schema.TABLES"


def having(columns: str, *names: str) -> Any:
    """A server's script: SHOW TABLES has these columns; the server has these tables in one database each."""

    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        if sql.startswith(EXISTING):
            return answers("TABLE_NAME, COUNT(*)", *([name, "1"] for name in names))(conn, sql)  # type: ignore[no-any-return]
        if sql.startswith(b"SELECT TABLE_SCHEMA"):
            return answers("TABLE_SCHEMA", ["db00000"])(conn, sql)  # type: ignore[no-any-return]
        return answers(columns)(conn, sql)  # type: ignore[no-any-return]

    return script


async def test_tables(world: World, client: Client) -> None:
    world.server("h1").script = having("Tables_in_db00000, Table_type", "names", "pins")
    world.server("h2").script = having("Tables_in_db00000, Table_type", "pins")
    client.ask(run(ShowTables(database="demo", full=True)))
    client.ask(run(ShowTables(database="demo", full=True, like=text("'p%'"))))
    await done(world, client)
    assert len(client.answers()[0].rows) == 2
    assert shown(client) == [["pins", "BASE TABLE"]]
    assert titles(client) == ["Tables_in_demo (p%)", "Table_type"]
    asked = [sql for sql in world.server("h1").log if sql.startswith(b"SHOW")]
    assert asked == [b"SHOW FULL TABLES FROM `db00000` WHERE 0"] * 2


async def test_tables_that_no_server_has(world: World, client: Client) -> None:
    for host in ("h1", "h2"):
        world.server(host).script = having("Tables_in_db00000", "names")
    client.ask(run(ShowTables(database="demo")))
    await done(world, client)
    assert shown(client) == [["names"]]


async def test_where_is_evaluated_by_a_server(world: World, client: Client) -> None:
    """Over the rows as constants; it tells which of them stay."""
    asked: list[bytes] = []

    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        asked.append(sql)
        if sql.startswith((b"SHOW", EXISTING, b"SELECT TABLE_SCHEMA")):
            return having("Tables_in_db00000", "names", "pins")(conn, sql)  # type: ignore[no-any-return]
        return answers("shardgate_row", ["1"])(conn, sql)  # type: ignore[no-any-return]

    world.server("h1").script = script
    client.ask(run(ShowTables(database="demo", where=text("Tables_in_demo > 'o'"))))
    await done(world, client)
    assert shown(client) == [["pins"]]
    assert asked[-1] == (
        b"SELECT shardgate_row FROM (SELECT 0 AS shardgate_row, _utf8mb4 X'6e616d6573' COLLATE utf8mb4_bin AS"
        b" `Tables_in_demo` UNION ALL SELECT 1 AS shardgate_row, _utf8mb4 X'70696e73' COLLATE utf8mb4_bin AS"
        b" `Tables_in_demo` UNION ALL SELECT -1 AS shardgate_row, NULL AS `Tables_in_demo`) AS shown"
        b" WHERE (Tables_in_demo > 'o')"
    )


async def test_a_where_that_a_server_refuses(world: World, client: Client) -> None:
    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        return answers("Database")(conn, sql) if sql.startswith(b"SHOW") else [Err(1054, "no such column")]

    world.server("h1").script = script
    client.ask(run(ShowDatabases(where=text("x = 1"))))
    await done(world, client)
    assert client.last.err == 1054


async def test_status_of_all_keyspaces(world: World, client: Client) -> None:
    """Estimates are those of one shard, times the shards; an object's next id is nobody's."""

    def script(conn: ServerConn, sql: bytes) -> list[Result]:
        row: list[str | None] = ["pins", "20", "7"] if b"db00000" in sql else ["names", "5", None]
        return answers("Name, Rows, Auto_increment", row)(conn, sql)  # type: ignore[no-any-return]

    world.server("h1").script = script
    client.ask(run(ShowTableStatus(database="demo")))
    await done(world, client)
    assert shown(client) == [["names", "5", None], ["pins", "80", None]]
    assert world.server("h1").log == [
        b"SHOW TABLE STATUS FROM `db00000` WHERE Name IN ('pins')",
        b"SHOW TABLE STATUS FROM `global` WHERE Name IN ('names')",
    ]


async def test_a_sharded_database_has_no_triggers(world: World, client: Client) -> None:
    world.server("h1").script = answers("Trigger, Event")
    client.ask(run(ShowNothing(database="demo", what="TRIGGERS")))
    await done(world, client)
    assert titles(client) == ["Trigger", "Event"]
    assert world.server("h1").log == [b"SHOW TRIGGERS FROM `db00000` WHERE 0"]


async def test_the_statement_that_makes_a_database(world: World, client: Client) -> None:
    world.server("h1").script = answers(
        "Database, Create Database", ["db00000", "CREATE DATABASE `db00000` /* x */"]
    )
    client.ask(run(ShowCreateDatabase(database="demo", if_not_exists=True)))
    await done(world, client)
    assert shown(client) == [["demo", "CREATE DATABASE `demo` /* x */"]]
    assert world.server("h1").log == [b"SHOW CREATE DATABASE IF NOT EXISTS `db00000`"]


@pytest.mark.parametrize("variant", [ShowTables, ShowTableStatus, ShowCreateDatabase])
@pytest.mark.parametrize(("database", "host"), [("legacy", "h1"), ("db00003", "h2"), ("elsewhere", "h1")])
async def test_what_is_not_sharded_answers_for_itself(
    world: World,
    client: Client,
    variant: type[ShowTables | ShowTableStatus | ShowCreateDatabase],
    database: str,
    host: str,
) -> None:
    client.conn.sql = b""
    client.ask(run(variant(database=database)))
    await done(world, client)
    assert world.server(host).log == [b"SELECT"], "the client's own bytes"


async def test_the_session_is_in_that_database(world: World, client: Client) -> None:
    client.session.database = "legacy"
    client.ask(run(ShowTables(database="legacy")))
    await done(world, client)
    assert world.server("h1").log == [b"USE legacy", b"SELECT"]


async def test_columns_of_no_table(world: World, client: Client) -> None:
    client.ask(run(ShowColumns(database="demo", table="nope")))
    await done(world, client)
    assert client.last.err == 1146


async def test_columns_of_an_object_table(world: World, client: Client) -> None:
    """One shard is asked, and its key shown as clients know it."""
    world.server("h1").script = answers(
        "Field, Type, Key", ["local_id", "bigint", None], ["data", "json", None]
    )
    client.ask(run(ShowColumns(database="demo", table="pins")))
    client.ask(run(ShowColumns(database="demo", table="pins", full=True, like=text("'D%'"))))
    await done(world, client)
    first = client.answers()[0]
    assert [decode_row(row, 3)[0] for row in first.rows] == [b"id", b"data"]
    assert world.server("h1").log == [
        b"SHOW COLUMNS FROM `db00000`.`pins`",
        b"SHOW FULL COLUMNS FROM `db00000`.`pins`",
    ]


@pytest.mark.parametrize("quote", ["`", '"', ""])
async def test_the_statement_that_made_it(world: World, client: Client, quote: str) -> None:
    """In whatever way the session has names quoted; a default or comment is nobody's name."""
    sql = "CREATE TABLE `pins` (\n  `local_id` bigint, `d` text DEFAULT 'local_id', KEY `a_local_id` (d))"
    sql += "\n  PRIMARY KEY (`local_id`)) X=1"
    made = sql.replace(" X=1", " AUTO_INCREMENT=21 X=1").replace("`", quote)
    world.server("h1").script = answers("Table, Create Table", ["pins", made])
    client.ask(run(ShowCreateTable(database="demo", table="pins")))
    await done(world, client)
    assert shown(client) == [["pins", sql.replace("`local_id`", "`id`").replace("`", quote)]]


async def test_a_shard_that_lacks_the_table(world: World, client: Client) -> None:
    world.server("h1").script = lambda conn, sql: [Err(1146, "no")]
    client.ask(run(ShowIndex(database="demo", table="names")))
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
    world.server("h1").script = columns("data", "local_id") if table == "pins" else columns("id", "data")
    client.ask(lambda conn: TaskWork(conn).start(field_list(conn, table, pattern, b"")))
    await world.quiet()
    packets = [payload for _, _, payload in cut_packets(client.transport.take())]
    assert [decode_column(payload[:-1]).name.decode() for payload in packets[:-1]] == names
    assert all(payload.endswith(b"\xfb") for payload in packets[:-1])
    assert all(decode_column(payload[:-1]).schema == b"demo" for payload in packets[:-1])
    assert packets[-1][:1] == b"\xfe"


@pytest.mark.parametrize(
    ("database", "table", "sql"),
    [
        ("information_schema", "ENGINES", b"SELECT * FROM `information_schema`.`ENGINES` LIMIT 0"),
        (
            "information_schema",
            "TABLES",
            b"SELECT * FROM (SELECT * FROM information_schema.TABLES) AS `TABLES` LIMIT 0",
        ),
    ],
)
async def test_fields_of_views(world: World, client: Client, database: str, table: str, sql: bytes) -> None:
    client.session.database = database
    client.session.refresh_env()
    world.server("h1").script = world.server("h2").script = columns("a")
    client.ask(lambda conn: TaskWork(conn).start(field_list(conn, table, b"", b"")))
    await world.quiet()
    packets = [payload for _, _, payload in cut_packets(client.transport.take())]
    assert [decode_column(payload[:-1]).name for payload in packets[:-1]] == [b"a"]
    assert world.server("h1").log + world.server("h2").log == [sql]


@pytest.mark.parametrize(("database", "table", "code"), [(None, "pins", 1046), ("demo", "nope", 1146)])
async def test_no_such_fields(
    world: World, client: Client, database: str | None, table: str, code: int
) -> None:
    client.session.database = database
    client.session.refresh_env()
    client.ask(lambda conn: TaskWork(conn).start(field_list(conn, table, b"", b"")))
    await done(world, client)
    assert client.last.err == code


@pytest.mark.parametrize(
    ("pattern", "names", "others"),
    [
        ("db{shard:05d}", ["db00000", "db123456"], ["db0000", "xdb00000", "db00000x"]),
        ("a$b{shard}-c", ["a$b0-c", "a$b17-c"], ["a$b-c", "ab0-c"]),
        ("{shard:d}", ["0", "12"], ["", "x"]),
    ],
)
def test_names_of_shards(pattern: str, names: list[str], others: list[str]) -> None:
    expression = re.compile(named_like(pattern))
    assert all(expression.fullmatch(name) for name in names)
    assert not any(expression.fullmatch(name) for name in others)


@pytest.mark.parametrize(
    "pattern", ["%" * 1_000_000 + "b", "%a" * 1_000_000, "_" * 500_000, "\\\\" * 300_000]
)
def test_a_pattern_longer_than_any_text(pattern: str) -> None:
    """It is not compared character by character."""
    matches = like_pattern(pattern)
    assert [matches(text) for text in ("", "a", "ab", "b" * 64)] == [
        naive_end(pattern, one) for one in ("", "a", "ab", "b" * 64)
    ]


def naive_end(pattern: str, text: str) -> bool:
    return pattern[0] == "%" and pattern[-1] == "b" and text.endswith("b")


def test_lower_case_may_be_longer() -> None:
    assert like_pattern("\u0130_%")("\u0130x")
    assert like_pattern("\u0130")("\u0130")
