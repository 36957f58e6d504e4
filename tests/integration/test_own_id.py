"""`id` in the values of an INSERT: what a server takes for it, which has it as a column of the row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from pymysql.err import MySQLError

from tests.integration.fixtures import Connect, make_id
from tests.support.servers import Connection, LocalServer

ONE, TWO = make_id(4, 1, 780_000), make_id(61, 1, 780_001)
CLEAN = f"DELETE FROM pins WHERE id IN ({ONE}, {TWO})"
READ = f"SELECT id, data FROM pins WHERE id IN ({ONE}, {TWO}) ORDER BY id"

Inserted = Callable[[str], object]


def outcome(connection: Connection, sql: str, parameters: tuple[object, ...] | None = None) -> object:
    """What `data` has in each row that there is after a statement; or the error's code."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql, parameters)
        except MySQLError as error:
            return error.args[0]
        cursor.execute(READ)
        rows = {id: json.loads(data) for id, data in cursor.fetchall()}
        cursor.execute(CLEAN)
        return rows


@pytest.fixture
def sides(connect: Connect, plain: LocalServer) -> Iterator[list[Connection]]:
    made = [connect(), plain.connect(database="demo", autocommit=True)]
    yield made
    for side in made:
        side.close()


@pytest.fixture
def inserted(sides: list[Connection]) -> Inserted:
    def insert(sql: str) -> object:
        found = [outcome(side, sql) for side in sides]
        assert found[0] == found[1]
        return found[0]

    return insert


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO pins SET id = {one}, data = JSON_OBJECT('i', id)",
        "INSERT INTO pins (id, data) VALUES ({one}, JSON_OBJECT('i', ID))",
        "INSERT INTO pins (id, data) VALUES ('{one}', JSON_OBJECT('i', `id`))",
        "INSERT INTO pins VALUES ({one}, JSON_OBJECT('i', pins.id), DEFAULT)",
        "INSERT INTO demo.pins (demo.pins.id, data) VALUES ({one}, JSON_OBJECT('i', demo.pins.id))",
        "INSERT INTO pins (id, data) VALUES ({one} + 0, JSON_OBJECT('i', id))",
        "INSERT INTO pins (id, data) VALUES ({one}, JSON_OBJECT('i', (SELECT id)))",
        "REPLACE INTO pins (id, data) VALUES ({one}, JSON_OBJECT('i', id))",
    ],
)
def test_an_id_that_is_given_before(inserted: Inserted, sql: str) -> None:
    assert inserted(sql.format(one=ONE)) == {ONE: {"i": ONE}}


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO pins (data, id) VALUES (JSON_OBJECT('i', id), {one})",
        "INSERT INTO pins SET data = JSON_OBJECT('i', pins.id), id = {one}",
        "INSERT INTO pins (id, data) VALUES ({one}, JSON_OBJECT('i', DEFAULT(id)))",
    ],
)
@pytest.mark.parametrize("mode", ["DEFAULT", "''", "'NO_AUTO_VALUE_ON_ZERO'"])
def test_an_id_that_is_not_known_yet_is_0(
    inserted: Inserted, sides: list[Connection], sql: str, mode: str
) -> None:
    for side in sides:
        with side.cursor() as cursor:
            cursor.execute(f"SET sql_mode = {mode}")
    assert inserted(sql.format(one=ONE)) == {ONE: {"i": 0}}


def test_each_row_has_its_own(inserted: Inserted) -> None:
    several = f"({ONE}, JSON_OBJECT('i', id + 1)), ({TWO}, JSON_OBJECT('i', pins.id + 2))"
    assert inserted(f"REPLACE INTO pins (id, data) VALUES {several}") == {
        ONE: {"i": ONE + 1},
        TWO: {"i": TWO + 2},
    }
    later = f"(JSON_OBJECT('i', id), {ONE}), (JSON_OBJECT('i', id), {TWO})"
    assert inserted(f"INSERT INTO pins (data, id) VALUES {later}") == {ONE: {"i": 0}, TWO: {"i": 0}}


def test_it_is_unsigned(inserted: Inserted) -> None:
    assert inserted(f"INSERT INTO pins (id, data) VALUES ({ONE}, JSON_OBJECT('i', id - {TWO}))") == 1690


@pytest.mark.parametrize("given", ["NULL", "DEFAULT", "0"])
def test_an_id_that_the_server_makes_is_0(connect: Connect, plain: LocalServer, given: str) -> None:
    values = f"{given}, JSON_OBJECT('board_id', {ONE}, 'i', id)"
    with connect() as through, plain.connect(database="demo", autocommit=True) as server:
        for side in (through, server):
            with side.cursor() as cursor:
                cursor.execute(f"INSERT INTO pins (id, data) VALUES ({values})")
                id = cursor.lastrowid
                cursor.execute(f"SELECT data FROM pins WHERE id = {id}")
                ((data,),) = cursor.fetchall()
                assert json.loads(data) == {"board_id": ONE, "i": 0}
                cursor.execute(f"DELETE FROM pins WHERE id = {id}")


@pytest.mark.parametrize(
    "value",
    [
        "JSON_OBJECT('i', (SELECT MAX(name) FROM countries WHERE id > 5))",
        "JSON_OBJECT('i', LAST_INSERT_ID(id))",
        "JSON_OBJECT('i', LAST_INSERT_ID(5))",
    ],
)
def test_what_is_refused(connect: Connect, value: str) -> None:
    with connect() as side:
        assert outcome(side, f"INSERT INTO pins (id, data) VALUES ({ONE}, {value})") == 1235
        assert outcome(side, "DO 1") == {}
