"""MariaDB's COM_STMT_BULK_EXECUTE: beside a server where one runs it, row by row over shards."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.integration.binary import NULL, VAR_STRING, Binary, Param, integer, text
from tests.integration.fixtures import Connect, Things
from tests.integration.raw import Raw, Reply, command
from tests.support.demo import Demo

BULK = 4
BULK_EXECUTE = 0xFA
SEND_TYPES = 128
NONE = Param(VAR_STRING, None)
DEFAULT = Param(VAR_STRING, b"default")  # stands for the indicator
Rows = list[tuple[Param, ...]]


@pytest.fixture(autouse=True)
def mariadb(flavour: str) -> None:
    if flavour != "mariadb":
        pytest.skip("MariaDB's own")


@pytest.fixture
def pair(demo: Demo, unharmed: None, connect: Connect) -> Iterator[tuple[Raw, Raw]]:
    """Clients in `legacy`, of the server and of the proxy, each with its table."""
    admin = connect(database="legacy").cursor()
    host = demo.masters[0]
    with ExitStack() as stack:
        direct, proxy = (stack.enter_context(Raw(one.host, one.port)) for one in (host, demo))
        assert direct.login(host.user, host.password, "legacy", extended=BULK).kind == "ok"
        assert proxy.login(database="legacy", extended=BULK).kind == "ok"
        for name in ("bulk_direct", "bulk_proxy"):
            admin.execute(
                f"CREATE TABLE {name} (id INT AUTO_INCREMENT PRIMARY KEY, a INT, b VARCHAR(9) DEFAULT 'd')"
            )
        yield direct, proxy
        admin.execute("DROP TABLE bulk_direct, bulk_proxy")


def bulk(client: Raw, sql: str, rows: Rows, *, types: bool = True, number: int | None = None) -> Reply:
    """Prepare and execute."""
    if number is None:
        number = Binary(client).statement(sql).id
    payload = struct.pack("<IH", number, SEND_TYPES if types else 0)
    if types:
        payload += b"".join(
            struct.pack("<H", max(row[at].type for row in rows)) for at in range(len(rows[0]))
        )
    for row in rows:
        for one in row:
            kind = 2 if one is DEFAULT else int(one.data is None)
            payload += bytes((kind,)) + (b"" if kind else one.data or b"")
    client.write(command(BULK_EXECUTE, payload))
    return client.reply()


def said(reply: Reply) -> tuple[object, ...]:
    if reply.kind == "err":
        return "err", reply.code
    return reply.kind, reply.affected, reply.insert_id, reply.warnings, reply.rows


STATEMENTS: list[tuple[str, Rows]] = [
    ("INSERT INTO {} (a, b) VALUES (?, ?)", [(integer(n), text(f"t{n}")) for n in range(5)]),
    ("INSERT INTO {} (a, b) VALUES (?, ?)", [(integer(7), text("x")), (integer(8), NONE)]),
    ("INSERT INTO {} (a, b) VALUES (?, ?)", [(integer(9), DEFAULT)]),
    ("INSERT INTO {} (id, b) VALUES (?, ?)", [(integer(100), text("y")), (integer(101), text("z"))]),
    ("UPDATE {} SET b = ? WHERE a = ?", [(text(f"u{n}"), integer(n)) for n in (1, 2, 77)]),
    ("DELETE FROM {} WHERE a = ?", [(integer(3),), (integer(4),)]),
    ("INSERT INTO {} (id, a) VALUES (?, ?)", [(integer(200), integer(1)), (integer(100), integer(2))]),
    ("SELECT * FROM {} WHERE a = ?", [(integer(3),), (integer(4),)]),
    ("SET @a = ?", [(integer(3),)]),
]  # fmt: skip


def test_beside_a_server(pair: tuple[Raw, Raw]) -> None:
    direct, proxy = pair
    for sql, rows in STATEMENTS:
        expected = said(bulk(direct, sql.format("bulk_direct"), rows))
        assert said(bulk(proxy, sql.format("bulk_proxy"), rows)) == expected, sql
        for shown in ("SELECT * FROM {} ORDER BY id", "SELECT LAST_INSERT_ID(), ROW_COUNT()"):
            left = [
                one.ask(shown.format(name)).rows
                for one, name in ((direct, "bulk_direct"), (proxy, "bulk_proxy"))
            ]
            assert left[0] == left[1] or ("LAST" in shown and expected[0] == "err"), (sql, shown, left)


def test_types_are_remembered(pair: tuple[Raw, Raw]) -> None:
    for client, name in zip(pair, ("bulk_direct", "bulk_proxy"), strict=True):
        sql = f"INSERT INTO {name} (a, b) VALUES (?, ?)"
        rows: Rows = [(integer(1), text("x"))]
        number = Binary(client).statement(sql).id
        assert said(bulk(client, sql, rows, number=number))[:2] == ("ok", 1)
        assert said(bulk(client, sql, rows, number=number, types=False))[:2] == ("ok", 1)
        assert bulk(client, "", rows, number=9999).code == 1243


def test_over_shards(pair: tuple[Raw, Raw], things: Things) -> None:
    _, proxy = pair
    proxy.ask("USE demo")
    made = bulk(proxy, "INSERT INTO users (data) VALUES (?)", [(text(f'{{"n": {n}}}'),) for n in range(3)])
    assert (made.kind, made.affected) == ("ok", 3)
    things.cursor.execute("SELECT /*+ scatter */ id FROM users WHERE JSON_VALUE(data, '$.n') IN (0, 1, 2)")
    ids = [int(id) for (id,) in things.cursor.fetchall()]
    for id in ids:
        things.forget_later("users", "id", id)
    assert len(ids) == 3
    assert made.insert_id in ids
    assert proxy.ask("SELECT ROW_COUNT()").value == b"3"
    changed = bulk(proxy, "UPDATE users SET data = ? WHERE id = ?", [(text("{}"), integer(id)) for id in ids])
    assert (changed.kind, changed.affected) == ("ok", 3)
    failed = bulk(
        proxy,
        "UPDATE users SET data = ? WHERE id = ?",
        [(text("{}"), integer(ids[0])), (text("{"), integer(ids[1]))],
    )
    assert failed.kind == "err"
    assert bulk(proxy, "SELECT data FROM users WHERE id = ?", [(integer(ids[0]),)]).code == 1295
    assert bulk(proxy, "UPDATE users SET data = ? WHERE id = ?", [(DEFAULT, integer(ids[0]))]).code == 1235
    assert (
        bulk(proxy, "UPDATE users SET data = ? WHERE id = ?", [(Param(NULL, None), integer(ids[0]))]).kind
        == "err"
    )
    assert proxy.ask("SELECT 5").value == b"5"


def test_only_for_who_agreed(demo: Demo, unharmed: None) -> None:
    with Raw(demo.host, demo.port) as client:
        assert client.login(database="legacy").kind == "ok"
        assert bulk(client, "SET @a = ?", [(integer(1),)]).code == 1047
        assert client.ask("SELECT 5").value == b"5"
