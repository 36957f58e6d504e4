"""Where result columns come from: as a server would tell that had the logical tables."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.binary import Binary
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

TABLES = ("pins", "boards", "board_has_pins")


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[tuple[Raw, Raw]]:
    """A client of the proxy in `demo`, and one of a server that has these tables in `lone`."""
    with demo.connect() as logical, plain.connect() as server:
        with logical.cursor() as shown, server.cursor() as made:
            made.execute("DROP DATABASE IF EXISTS lone")
            made.execute("CREATE DATABASE lone")
            made.execute("USE lone")
            for table in TABLES:
                shown.execute(f"SHOW CREATE TABLE {table}")
                found = shown.fetchone()
                assert found is not None
                made.execute(found[1])
        with Raw(demo.host, demo.port) as through, Raw("127.0.0.1", plain.port) as direct:
            assert through.login("demo", "demo", "demo").kind == "ok"
            assert direct.login(plain.user, plain.password, "lone").kind == "ok"
            yield through, direct
        with server.cursor() as made:
            made.execute("DROP DATABASE lone")


def definitions(client: Raw, sql: str) -> list[bytes]:
    before = len(client.heard)
    reply = client.ask(sql)
    assert reply.kind == "rows", (sql, reply)
    payloads = [payload for _, payload in client.heard[before:]]
    return payloads[1 : 1 + payloads[0][0]]


def ids(client: Raw, table: str, limit: int) -> list[int]:
    return [int(row[0] or 0) for row in client.ask(f"SELECT id FROM {table} LIMIT {limit}").rows]


def statements(pins: list[int], board: int) -> list[str]:
    one, several = pins[0], ", ".join(map(str, pins))
    return [
        *(f"SELECT * FROM pins WHERE id = {pin}" for pin in pins),
        *(f"SELECT id, ts FROM pins WHERE id = {pin}" for pin in pins),
        f"SELECT pins.id AS x, p.data, 1 + 1, p.id FROM pins, pins p WHERE p.id = {one} AND pins.id = {one}",
        f"SELECT 1 AS id, `id`, NULL, ts FROM demo.pins WHERE id = {one}",
        f"SELECT p.* FROM board_has_pins m LEFT JOIN pins p ON p.id = {one} WHERE m.board_id = {board}",
        f"SELECT m.*, 2 FROM board_has_pins AS m WHERE board_id = {board}",
        f"SELECT id, COUNT(*) FROM pins WHERE id = {one} GROUP BY id",
        f"SELECT (data), (id), ((pins.`id`)), ts, (ID) AS x FROM pins WHERE id = {one}",
        f"SELECT (data), (id), ((pins.`id`)), ts, (ID) AS x FROM pins WHERE id IN ({several})",
        f"SELECT id, data FROM pins WHERE id IN ({several})",
        f"SELECT TRUE id, id, NULL AS n, CURRENT_DATE, id AS x FROM pins WHERE id = {one}",
        "SELECT id, ts, data FROM pins ORDER BY id LIMIT 3",
        f"SELECT * FROM pins WHERE id IN ({several}) ORDER BY ts",
        f"SELECT * FROM pins WHERE id = {1 << 62}",
        # gathered
        "SELECT p.id AS x, boards.id, boards.data FROM pins p, boards ORDER BY p.id, boards.id LIMIT 2",
        "SELECT DISTINCT id FROM pins LIMIT 1",
        "SELECT ts, COUNT(*) FROM demo.pins GROUP BY ts",
        "SELECT p.data, p.ts, p.id FROM board_has_pins m LEFT JOIN pins p ON p.id = m.pin_id LIMIT 2",
    ]


def test_origins(sides: tuple[Raw, Raw]) -> None:
    """In text and in PREPARE's answer; twice, as what is remembered must say the same."""
    through, direct = sides
    pins, board = ids(through, "pins", 60), ids(through, "boards", 1)[0]
    different = []
    for sql in statements(pins, board):
        plain = sql.replace("demo.", "")
        # at PREPARE a server does not know yet that it will keep the rows in a table
        before = Binary(direct).statement(plain).column_definitions
        after = definitions(direct, plain)
        prepared = Binary(through).statement(sql).column_definitions
        pairs = [(before, prepared), *((after, definitions(through, sql)) for _ in range(2))]
        different += [
            f"{sql}\n{expected}\n{got}"
            for expected, got in pairs
            if [one.replace(b"\x04demo", b"\x04lone") for one in got] != expected
        ]
    assert not different, "\n".join(different)


def test_a_shard_by_its_own_name_is_shown_as_it_is(sides: tuple[Raw, Raw]) -> None:
    through, _ = sides
    (definition,) = definitions(through, "SELECT data FROM db00000.pins LIMIT 1")
    assert b"db00000" in definition


def test_within_a_transaction_and_over_large_rows(sides: tuple[Raw, Raw]) -> None:
    """Where the reply does not come in one piece, or comes with other status flags."""
    through, _ = sides
    pin = ids(through, "pins", 1)[0]
    sql = f"SELECT data, id, REPEAT('x', 3000000) FROM pins WHERE id = {pin}"
    expected = definitions(through, sql)
    assert b"\x04demo" in expected[0]
    assert b"\x04pins\x02id\x02id" in expected[1]
    through.ask("BEGIN")
    assert definitions(through, sql) == expected
    through.ask("ROLLBACK")
    assert definitions(through, sql) == expected
    assert len(through.ask(sql).rows[0][2] or b"") == 3000000


def test_a_single_table_is_in_its_logical_database(sides: tuple[Raw, Raw]) -> None:
    through, _ = sides
    for sql in ("SELECT * FROM usernames", "SELECT u.*, c.name FROM countries c JOIN usernames u"):
        for definition in definitions(through, sql + " LIMIT 1"):
            assert b"\x04demo" in definition
            assert b"\x06global" not in definition
    (count, name) = definitions(through, "SELECT 1 + 1, o.name FROM `global`.countries o LIMIT 1")
    assert b"global" not in count
    assert b"\x06global" in name


def test_returning(sides: tuple[Raw, Raw], flavour: str) -> None:
    if flavour != "mariadb":
        pytest.skip("MySQL has no RETURNING")
    through, direct = sides
    pins = ids(through, "pins", 40)
    for where in (f"id = {pins[0]}", f"id IN ({pins[0]}, {pins[-1]})"):
        sql = f"DELETE FROM pins WHERE {where} RETURNING *, 1 + 1, data AS d, id AS x, ts, pins.id"
        direct.ask(f"INSERT INTO pins (id, data) VALUES ({pins[0]}, '{{}}'), ({pins[-1]}, '{{}}')")
        expected = definitions(direct, sql)
        through.ask("BEGIN")
        got = definitions(through, sql)
        through.ask("ROLLBACK")
        assert [one.replace(b"\x04demo", b"\x04lone") for one in got] == expected
