"""LAST_INSERT_ID() where clients give AUTO_INCREMENT columns their values, beside a plain server.

The proxy learns which value of an INSERT is the column's, so each statement runs more than once.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.integration.binary import NOTHING, Binary, Param, integer, text
from tests.integration.both_sides import both_sides
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

LAST = "SELECT LAST_INSERT_ID(), (SELECT MAX(id) FROM given)"
ROWS = "SELECT id, k, c FROM given ORDER BY id"


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[tuple[Raw, Raw]]:
    with both_sides(demo, plain, "beside_given") as both:
        for client in both:
            client.ask("DROP TABLE IF EXISTS given")
            made = client.ask("CREATE TABLE given (id INT PRIMARY KEY AUTO_INCREMENT, k INT, c VARCHAR(20))")
            assert made.kind == "ok"
        yield both
        for client in both:
            client.ask("DROP TABLE given")


def same(sides: tuple[Raw, Raw], sql: str) -> None:
    ours, theirs = (client.ask(sql) for client in sides)
    shown = [(one.kind, one.code, one.rows, one.affected, one.insert_id) for one in (ours, theirs)]
    assert shown[0] == shown[1], sql


def insert(chance: random.Random) -> str:
    """An INSERT whose id is given, made, or both in one statement; other values are near what is made."""
    near = chance.randint(1, 40)
    id = chance.choice(
        ["NULL", "DEFAULT", "0", f"{near}", f"'{near}'", f"{near}.4", f"'{near}x'", "0x5", "-7"]
    )
    verb = chance.choice(["INSERT INTO", "INSERT IGNORE INTO", "REPLACE INTO"])
    return chance.choice(
        [
            f"{verb} given (id, k, c) VALUES ({id}, {near}, 'a')",
            f"{verb} given (k, id) VALUES ({near}, {id})",
            f"{verb} given (k) VALUES ({near})",
            f"{verb} given VALUES ({id}, {near}, '{near}')",
            f"{verb} given SET k = {near}, id = {id}",
            f"{verb} given (id, k) VALUES ({id}, {near}), (NULL, {near})",
            f"{verb} given (id, k) VALUES ({id}, {near}) ON DUPLICATE KEY UPDATE k = k + 1",
            f"{verb} given (id, k) SELECT {near}, 5",
            f"DELETE FROM given WHERE id > {near}",
        ]
    )


@pytest.mark.parametrize("seed", range(4))
def test_after_random_inserts(sides: tuple[Raw, Raw], seed: int) -> None:
    chance = random.Random(seed)
    for client in sides:
        client.ask("SET sql_mode = ''")
    for _ in range(150):
        same(sides, insert(chance))
        same(sides, LAST)
    same(sides, ROWS)


class Both:
    """One prepared statement on both sides."""

    def __init__(self, sides: tuple[Raw, Raw], sql: str) -> None:
        binaries = map(Binary, sides)
        self._made = [(binary, binary.statement(sql).id) for binary in binaries]

    def execute(self, *values: Param, ahead: bytes = b"") -> None:
        """`ahead`: the first value, if COM_STMT_SEND_LONG_DATA brings it."""
        found = []
        for binary, id_ in self._made:
            if ahead:
                binary.long_data(id_, 0, ahead)
            answer = binary.execute(id_, values, sent=(0,) if ahead else ())
            found.append((answer.kind, answer.code, answer.kind == "ok" and answer.ok.insert_id))
        assert found[0] == found[1], values


STATEMENTS = {
    "id first": ("INSERT INTO given (id, k, c) VALUES (?, ?, ?)", (0, 1, 2)),
    "id last": ("INSERT INTO given (c, k, id) VALUES (?, ?, ?)", (2, 1, 0)),
    "id between": ("REPLACE INTO given (k, id, c) VALUES (?, ?, ?)", (1, 0, 2)),
    "beside literals": ("INSERT IGNORE INTO given (k, id, c) VALUES (7, ?, ?)", (0, 2)),
    "no id": ("INSERT INTO given (k, c) VALUES (?, ?)", (1, 2)),
}


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("begin", ["DO 0", "BEGIN"])
def test_after_a_prepared_insert(sides: tuple[Raw, Raw], name: str, begin: str) -> None:
    sql, order = STATEMENTS[name]
    chance = random.Random(name)
    statement = Both(sides, sql)
    same(sides, begin)
    given = 0
    for turn in range(60):
        given += chance.randint(1, 2)
        id = chance.choice([integer(given), integer(given, 3), NOTHING, integer(0), text(str(given))])
        if turn % 20 < 12:  # often enough alike for the short way
            id = integer(given)
        near = integer(given + chance.choice([0, 0, 1, -1]))
        values = (id, near, text("x" * chance.randint(0, 9)))
        statement.execute(*(values[place] for place in order))
        same(sides, LAST)
        if turn % 7 == 0:
            same(sides, f"INSERT INTO given (k) VALUES ({given})")
            same(sides, LAST)
    same(sides, ROWS)


def test_after_an_id_that_was_sent_ahead(sides: tuple[Raw, Raw]) -> None:
    statement = Both(sides, "INSERT INTO given (id, c) VALUES (?, ?)")
    for id in (3, 4, 9):
        statement.execute(text(b""), text("a"), ahead=str(id).encode())
        same(sides, LAST)
        statement.execute(integer(id + 50), text("b"))
        same(sides, LAST)


def test_where_another_column_becomes_the_one_that_counts(sides: tuple[Raw, Raw]) -> None:
    given, made = "INSERT INTO given (id, k) VALUES ({}, {})", "INSERT INTO given (k) VALUES (1)"
    for number in (3, 4, 5):
        same(sides, given.format(number, 0))
        same(sides, LAST)
    same(sides, made)
    same(sides, "ALTER TABLE given MODIFY id INT, MODIFY k INT AUTO_INCREMENT, DROP PRIMARY KEY, ADD KEY (k)")
    same(sides, LAST)
    for number in (20, 30, 40):
        same(sides, given.format(number, 0))
        same(sides, LAST)
        same(sides, given.format(number, number))
        same(sides, LAST)
