"""Names with a database in front: of tables, of aliases, of columns and of what DELETE and INSERT name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pymysql.err import MySQLError

from tests.integration.fixtures import Connect
from tests.support.demo import Demo
from tests.support.servers import Connection, LocalServer

CLEAN = (
    "DELETE FROM usernames WHERE username LIKE 'named %'",
    "DELETE FROM countries WHERE code IN ('Q1', 'Q2', 'Q3')",
)


def outcome(connection: Connection, sql: str) -> object:
    """Rows and how many are affected, or the error's code."""
    with connection.cursor() as cursor:
        try:
            count = cursor.execute(sql)
            return count, tuple(cursor.fetchall())
        except MySQLError as error:
            return error.args[0]


@pytest.fixture
def both(connect: Connect, plain: LocalServer) -> Iterator[Callable[..., list[object]]]:
    sides = [connect(), plain.connect(database="demo", autocommit=True)]

    def ask(*statements: str) -> list[object]:
        found = [[outcome(side, sql) for sql in statements] for side in sides]
        assert found[0] == found[1]
        return found[0]

    ask(*CLEAN)
    yield ask
    ask(*CLEAN)
    for side in sides:
        side.close()


def test_an_alias_is_in_its_tables_database(both: Callable[..., list[object]], connect: Connect) -> None:
    with connect() as through, through.cursor() as cursor:
        cursor.execute("SELECT board_id, pin_id FROM board_has_pins ORDER BY board_id, pin_id LIMIT 1")
        ((board, pin),) = cursor.fetchall()
        cursor.execute(f"EXPLAIN ROUTE SELECT p.ts FROM pins p WHERE demo.p.id = {pin}")
        assert ("routing", "ID equals constant") in cursor.fetchall()
    found = both(
        f"SELECT demo.p.data FROM pins p WHERE demo.p.id = {pin}",
        f"SELECT demo.p.id FROM demo.pins AS p WHERE demo.p.id IN ({pin}, {pin}) ORDER BY demo.p.id",
        f"SELECT demo.a.pin_id FROM board_has_pins a JOIN board_has_pins b ON demo.b.pin_id = demo.a.pin_id"
        f" AND b.board_id = a.board_id WHERE a.board_id = {board} ORDER BY demo.a.pin_id LIMIT 2",
        f"SELECT (SELECT demo.p.id) FROM pins p WHERE p.id = {pin}",
        "SELECT demo.c.code FROM countries c ORDER BY demo.c.code LIMIT 2",
        f"UPDATE board_has_pins b SET demo.b.sequence = demo.b.sequence WHERE demo.b.board_id = {board}",
        f"SELECT legacy.p.id FROM pins p WHERE p.id = {pin}",
        "SELECT demo.d.x FROM (SELECT 1 AS x) d",
    )
    assert found[1] == (1, ((pin,),))
    assert found[-2:] == [1054, 1054]


@pytest.mark.parametrize(
    "delete",
    [
        "DELETE u FROM usernames u WHERE u.username = 'named a'",
        "DELETE usernames FROM usernames WHERE username = 'named a'",
        "DELETE FROM u USING usernames u WHERE u.username = 'named a'",
        "DELETE u.* FROM demo.usernames u JOIN (SELECT 'named a' AS x) d ON d.x = u.username",
        "DELETE demo.usernames FROM usernames WHERE username = 'named a'",
        "DELETE demo.usernames.* FROM demo.usernames WHERE demo.usernames.username = 'named a'",
        "DELETE FROM demo.usernames USING demo.usernames WHERE username = 'named a'",
    ],
)
def test_delete_names_its_tables(both: Callable[..., list[object]], delete: str) -> None:
    insert = "INSERT INTO usernames (username, user_id) VALUES ('named a', 5), ('named b', 6)"
    found = both(insert, delete, delete, "SELECT username FROM usernames WHERE username LIKE 'named %'")
    assert found == [(2, ()), (1, ()), (0, ()), (1, (("named b",),))]
    assert both("DELETE nothing FROM usernames", "DELETE legacy.usernames FROM usernames") == [1109, 1109]


@pytest.mark.parametrize(
    "delete",
    [
        "DELETE c FROM countries c WHERE c.code = 'Q1'",
        "DELETE countries FROM countries WHERE code = 'Q1'",
        "DELETE demo.countries FROM demo.countries WHERE demo.countries.code = 'Q1'",
    ],
)
def test_delete_of_a_reference_table(both: Callable[..., list[object]], demo: Demo, delete: str) -> None:
    """On every host alike."""
    insert = "INSERT INTO countries (code, name) VALUES ('Q1', 'a'), ('Q2', 'b')"
    assert both(insert, delete) == [(2, ()), (1, ())]
    for index in range(len(demo.masters)):
        with demo.direct(index) as server, server.cursor() as cursor:
            cursor.execute(
                "SELECT table_schema FROM information_schema.tables WHERE table_name = 'countries'"
            )
            ((database,),) = cursor.fetchall()
            cursor.execute(f"SELECT code FROM {database}.countries WHERE code LIKE 'Q_'")
            assert cursor.fetchall() == (("Q2",),)


def test_insert_names_its_columns(both: Callable[..., list[object]]) -> None:
    found = both(
        "INSERT INTO demo.usernames (demo.usernames.username, usernames.user_id) VALUES ('named a', 5)",
        "INSERT INTO usernames SET demo.usernames.username = 'named b', usernames.user_id = 6",
        "INSERT INTO usernames (username, user_id) VALUES ('named a', 1)"
        " ON DUPLICATE KEY UPDATE demo.usernames.user_id = demo.usernames.user_id + 1",
        "REPLACE INTO demo.countries SET demo.countries.code = 'Q3', countries.name = 'c'",
        "SELECT username, user_id FROM usernames WHERE username LIKE 'named %' ORDER BY 1",
        "SELECT name FROM countries WHERE code = 'Q3'",
        "INSERT INTO usernames (legacy.usernames.username) VALUES ('named c')",
    )
    assert found[-3:] == [(2, (("named a", 6), ("named b", 6))), (1, (("c",),)), 1054]


@pytest.mark.parametrize("database", [None, "demo"])
def test_a_query_of_with_is_no_table_of_the_current_database(connect: Connect, database: str | None) -> None:
    """In definitions whose tables are all in one database, from a session that is not there."""
    first = "x AS (SELECT id FROM legacy.customers WHERE id < 4)"
    made = f"WITH {first}, y (n) AS (SELECT id FROM x) SELECT y.n FROM y"
    three = "SELECT 1 AS n UNION ALL SELECT n + 1 FROM x WHERE n < 3"
    counted = f"WITH RECURSIVE x AS ({three}) SELECT x.n FROM x"
    joined = f"{counted} JOIN legacy.customers c ON c.id = x.n"
    with connect(database=database) as connection:
        for sql in (made, counted, joined, f"SELECT q.n FROM ({made}) AS q"):
            for kind in ("VIEW", "TABLE"):
                for clean in ("DROP VIEW IF EXISTS legacy.of_with", "DROP TABLE IF EXISTS legacy.of_with"):
                    assert isinstance(outcome(connection, clean), tuple)
                assert isinstance(outcome(connection, f"CREATE {kind} legacy.of_with AS {sql}"), tuple), sql
                assert outcome(connection, "SELECT COUNT(*), MAX(n) FROM legacy.of_with") == (1, ((3, 3),)), (
                    sql
                )
        for sql in (
            "CREATE TABLE legacy.never AS SELECT * FROM x, (WITH x AS (SELECT 1 AS a) SELECT * FROM x) AS q",
            "CREATE VIEW legacy.never AS WITH x AS (SELECT * FROM customers) SELECT * FROM x",
        ):
            assert outcome(connection, sql) in (1235, 1046), "these are, and nobody knows of which"
        outcome(connection, "DROP TABLE IF EXISTS legacy.of_with")
