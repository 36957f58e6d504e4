"""Values and column definitions of reads over several shards: those of one server that has the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from proxy.wire.resultset import decode_column
from tests.integration.fixtures import Connect
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[tuple[Raw, Raw, str]]:
    """A client of the proxy in `demo`, one of a server that has some of its pins in `lone`, and their IDs."""
    with demo.connect() as logical, logical.cursor() as shown, plain.connect() as server:
        shown.execute("SHOW CREATE TABLE pins")
        (created,) = shown.fetchall()
        shown.execute("SELECT id, data, ts FROM pins ORDER BY id % 977, id LIMIT 9")
        rows = shown.fetchall()
        with server.cursor() as made:
            made.execute("CREATE DATABASE lone")
            made.execute("USE lone")
            made.execute(created[1])
            made.executemany("INSERT INTO pins (id, data, ts) VALUES (%s, %s, %s)", rows)
            with Raw(demo.host, demo.port) as through, Raw("127.0.0.1", plain.port) as direct:
                assert through.login("demo", "demo", "demo").kind == "ok"
                assert direct.login(plain.user, plain.password, "lone").kind == "ok"
                yield through, direct, ", ".join(str(row[0]) for row in rows)
            made.execute("DROP DATABASE lone")


def answer(client: Raw, sql: str) -> tuple[list[tuple[object, ...]], list[tuple[bytes | None, ...]]]:
    """Name, type, collation and decimals of the columns, and the rows."""
    before = len(client.heard)
    reply = client.ask(sql)
    assert reply.kind == "rows", (sql, reply)
    payloads = [payload for _, payload in client.heard[before:]]
    columns = [decode_column(payload) for payload in payloads[1 : 1 + payloads[0][0]]]
    return [(one.name, one.type, one.collation, one.decimals) for one in columns], reply.rows


STATEMENTS = (
    # one column, several scales
    "SELECT id, IF(id % 2, 1.5, 2.25), CASE id % 3 WHEN 1 THEN 1.125 WHEN 2 THEN 3 END, NULLIF(1.50, id)",
    "SELECT IF(id % 2, 1.5, 2.25) AS x, IF(id % 2, 0.1, 1e0), IF(id % 2, id, 0), IF(id % 2, 'a', 1.5)",
    # a result that is longer than a server expects
    "SELECT id, REPLACE('ab', 'a', 'ab'), REPLACE(ts, '2', 'two')",
    # user variables have types of their own
    "SELECT @d, @e, @t, @never, @d + 1, CONCAT(@d), id",
    "SELECT @i, @d, id",
    # definitions follow literals and settings
    "SELECT 'a', 1, 1.5, id / 3",
    "SELECT 'abcdef', 99999999999, 1.55555, id / 3",
)


def test_the_values_of_one_server(sides: tuple[Raw, Raw, str]) -> None:
    through, direct, ids = sides
    for setting in (
        "SET NAMES utf8mb4",
        "SET @i = 5, @d = 1.5, @e = 2e0, @t = 'é'",
        "SET @i = 'text', @d = 7",
        "SET div_precision_increment = 8",
        "SELECT AVG(NULL), MIN('2024-02-29'), SUM(1) FROM pins WHERE 1 = 0 INTO @i, @d, @e",
    ):
        for client in (through, direct):
            assert client.ask(setting).kind == "ok"
        for sql in STATEMENTS:
            for order in ("id", "2 DESC, id", "id LIMIT 3"):
                whole = f"{sql} FROM pins WHERE id IN ({ids}) ORDER BY {order}"
                assert answer(through, whole) == answer(direct, whole), (setting, whole)


@pytest.mark.parametrize("value", ["5", "1.5", "1e0", "'x'", "CAST(5 AS UNSIGNED)", "x'31'"])
@pytest.mark.parametrize("again", ["SET @v = NULL", "SELECT @v := NULL", "SET @v = 7, @v = NULL"])
def test_a_variable_keeps_its_type_when_it_becomes_null(
    connect: Connect, plain: LocalServer, value: str, again: str
) -> None:
    found = []
    for side in (connect(database="legacy"), plain.connect(database="demo", autocommit=True)):
        with side, side.cursor() as cursor:
            for sql in ("DROP TABLE IF EXISTS of_null", f"SET @v = {value}", again):
                cursor.execute(sql)
                cursor.fetchall()
            cursor.execute("CREATE TABLE of_null SELECT @v AS a")
            cursor.execute("SHOW COLUMNS FROM of_null")
            shown = cursor.fetchall()
            cursor.execute("SELECT COLLATION(@v), @v IS NULL")
            found.append((shown, cursor.fetchall()))
            cursor.execute("DROP TABLE of_null")
    assert found[0] == found[1]
