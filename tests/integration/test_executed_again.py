"""A prepared statement that is executed again and again, with all that may change between two executions:
each answer is that of a plain server.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product

import pytest

from tests.integration import binary as b
from tests.integration.binary import Answer, Binary, Param
from tests.integration.both_sides import both_sides
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

CHANGED = 1 << 14
"""MariaDB tells any client, not just those that have asked for it."""
TABLE = "executed_again"


def key(chance: random.Random) -> Param:
    return b.integer(chance.randint(0, 12))


def word(chance: random.Random) -> Param:
    return b.text(chance.choice(["", "a", "ü", "12", "12x", "z" * 20]))


def maybe(chance: random.Random) -> Param:
    return key(chance) if chance.random() < 0.8 else Param(b.LONGLONG, None)


STATEMENTS: tuple[tuple[str, tuple[Callable[[random.Random], Param], ...]], ...] = (
    (f"SELECT id, k, v FROM {TABLE}_rows WHERE id = ?", (key,)),
    (f"SELECT id, v FROM {TABLE}_rows WHERE id BETWEEN ? AND ? ORDER BY v, id", (key, key)),
    (f"SELECT DISTINCT k FROM {TABLE}_rows WHERE v < ? ORDER BY k", (word,)),
    (f"SELECT COUNT(*), SUM(k) FROM {TABLE}_rows", ()),
    (f"UPDATE {TABLE}_rows SET k = k + ? WHERE id = ?", (key, key)),
    (f"UPDATE {TABLE}_rows SET v = ? WHERE id > ?", (word, key)),
    (f"DELETE FROM {TABLE}_rows WHERE id = ?", (key,)),
    (f"INSERT INTO {TABLE}_rows (id, k, v) VALUES (?, ?, ?)", (key, key, word)),
    (f"INSERT INTO {TABLE}_rows (k, v) VALUES (?, ?)", (key, word)),
    (f"REPLACE INTO {TABLE}_rows (id, k) VALUES (?, ?)", (key, maybe)),
    (f"SELECT v + ? FROM {TABLE}_rows WHERE id < ? ORDER BY id", (word, key)),
    ("SELECT LAST_INSERT_ID(), ROW_COUNT()", ()),
)
MADE = (
    f"CREATE TABLE {TABLE}_rows (id INT PRIMARY KEY AUTO_INCREMENT, k INT NOT NULL, v VARCHAR(20))",
    f"INSERT INTO {TABLE}_rows (id, k, v) VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, '3'), (4, 4, NULL)",
)
BETWEEN = (
    "BEGIN",
    "BEGIN",
    "START TRANSACTION READ ONLY",
    "COMMIT",
    "COMMIT AND CHAIN",
    "ROLLBACK",
    "SET autocommit = 0",
    "SET autocommit = 1",
    "SET sql_mode = ''",
    "SET sql_mode = DEFAULT",
    "SET NAMES latin1",
    "SET NAMES utf8mb4",
    "SET sql_select_limit = 2",
    "SET sql_select_limit = DEFAULT",
    "SET @a = 1",
    "SELECT GET_LOCK('again', 0)",
    "SELECT RELEASE_LOCK('again')",
    "USE mysql",
    "USE scripts",
    "SHOW WARNINGS",
    "SELECT @@warning_count, LAST_INSERT_ID()",
    "SAVEPOINT a",
    "ROLLBACK TO SAVEPOINT a",
    f"ALTER TABLE {TABLE}_rows COMMENT 'x'",
    f"CREATE TEMPORARY TABLE {TABLE}_rows (id INT PRIMARY KEY, k INT, v VARCHAR(20))",
    f"DROP TEMPORARY TABLE IF EXISTS {TABLE}_rows",
    f"SELECT k FROM {TABLE}_rows WHERE id = 3",
    f"UPDATE {TABLE}_rows SET k = 5 WHERE id = 4",
    "KILL QUERY 0",
)


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[tuple[Raw, Raw]]:
    with ExitStack() as stack:
        sides = stack.enter_context(both_sides(demo, plain, TABLE))
        for side, sql in product(sides, MADE):
            assert side.ask(sql).kind == "ok"
        yield sides
        for side in sides:
            side.ask("ROLLBACK")
            side.ask(f"DROP TEMPORARY TABLE IF EXISTS scripts.{TABLE}_rows")
            side.ask(f"DROP TABLE scripts.{TABLE}_rows")


def seen(answer: Answer) -> object:
    """What a client sees of an answer."""
    payload = answer.payload if answer.kind == "err" else b""
    ok = answer.ok if answer.kind == "ok" else None
    counts = ok and (ok.affected, ok.insert_id, ok.info)
    return answer.kind, payload, counts, answer.names, answer.rows, answer.status & ~CHANGED, answer.warnings


@pytest.mark.parametrize("seed", range(8))
def test_every_execution_is_answered_as_by_a_server(sides: tuple[Raw, Raw], seed: int) -> None:
    clients = [Binary(side) for side in sides]
    prepared = [[client.statement(sql).id for sql, _ in STATEMENTS] for client in clients]
    chance = random.Random(seed)
    for turn in range(400):
        if chance.random() < 0.3:
            sql = chance.choice(BETWEEN)
            ours, theirs = (client.raw.ask(sql) for client in clients)
            assert (ours.kind, ours.code, ours.rows, ours.status & ~CHANGED) == (
                theirs.kind,
                theirs.code,
                theirs.rows,
                theirs.status & ~CHANGED,
            ), (turn, sql)
            continue
        number = chance.randrange(len(STATEMENTS))
        for _ in range(chance.randint(1, 3)):
            parameters = [make(chance) for make in STATEMENTS[number][1]]
            found, expected = (
                client.execute(ids[number], parameters) for client, ids in zip(clients, prepared, strict=True)
            )
            assert seen(found) == seen(expected), (turn, STATEMENTS[number][0], parameters)
