"""CALL of an orderable mapping's procedure, and the sequences of new rows, against servers."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from typing import Any

import pymysql
import pytest

from config.layout import PINTEREST
from tests.integration import binary as b
from tests.integration.fixtures import Connect, MakeOwn, MakeRaw
from tests.support.demo import Demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until

MS, MOST = 10**25, 10**38 - 1
Error = pymysql.err.MySQLError


class Board:
    """The list of a board of its own, newest first."""

    def __init__(self, connection: Connection, board: int) -> None:
        self.connection = connection
        self.id = board

    def run(self, sql: str) -> tuple[int, list[tuple[Any, ...]]]:
        with self.connection.cursor() as cursor:
            return cursor.execute(sql), list(cursor.fetchall())

    def fill(self, pins: list[int], step: int = MS) -> None:
        """These, the first with the largest sequence."""
        rows = [
            f"({self.id}, {pin}, {1_700_000_000_000 * MS - place * step})" for place, pin in enumerate(pins)
        ]
        self.run(f"INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES {', '.join(rows)}")

    def rows(self) -> dict[int, int]:
        order = "ORDER BY sequence DESC, pin_id DESC"
        sql = f"SELECT pin_id, sequence FROM board_has_pins WHERE board_id = {self.id} {order}"
        return {pin: int(sequence) for pin, sequence in self.run(sql)[1]}

    def pins(self) -> list[int]:
        return list(self.rows())

    def move(self, pin: int, before: int | None, after: int | None) -> int:
        """How many rows were written."""
        ends = ["NULL" if one is None else str(one) for one in (before, after)]
        return self.run(f"CALL reorder_board_pin({self.id}, {pin}, {', '.join(ends)})")[0]

    def warnings(self) -> list[str]:
        return [str(row[2]) for row in self.run("SHOW WARNINGS")[1]]


BOARDS = iter(range(5_000_000, 6_000_000))


@pytest.fixture
def board(demo: Demo) -> Iterator[Board]:
    with closing(demo.connect()) as connection:
        found = Board(connection, PINTEREST.compose(shard=33, type=2, local=next(BOARDS)))
        yield found
        connection.rollback()
        found.run("SET autocommit = 1")
        found.run(f"DELETE FROM board_has_pins WHERE board_id = {found.id}")


def test_moves(board: Board) -> None:
    board.fill([1, 2, 3, 4, 5])
    assert board.move(5, 1, 2) == 1
    assert board.pins() == [1, 5, 2, 3, 4]
    rows = board.rows()
    assert rows[5] == (rows[1] + rows[2]) // 2
    assert board.move(4, None, 1) == 1
    assert board.move(1, 3, None) == 1
    assert board.pins() == [4, 5, 2, 3, 1]
    assert board.warnings() == []
    assert board.move(2, 5, 3) == 0  # it is there
    assert board.move(4, None, 5) == 0
    assert board.pins() == [4, 5, 2, 3, 1]
    assert board.run("SELECT ROW_COUNT()")[1] == [(-1,)]


def test_random_moves_are_those_of_a_plain_list(board: Board) -> None:
    choice = random.Random(7)
    plain = list(range(1, 25))
    board.fill(plain)
    for _ in range(200):
        pin = choice.choice(plain)
        plain.remove(pin)
        place = choice.choice([0, len(plain), choice.randrange(len(plain)), 1])
        board.move(pin, plain[place - 1] if place else None, plain[place] if place < len(plain) else None)
        plain.insert(place, pin)
        assert board.pins() == plain


def test_new_rows_get_now(board: Board) -> None:
    now = "SELECT UNIX_TIMESTAMP(NOW(3)) * 1000"
    first = int(board.run(now)[1][0][0])
    insert = "INSERT INTO board_has_pins (board_id, pin_id) VALUES"
    board.run(f"{insert} ({board.id}, 1), ({board.id}, 2), ({board.id}, 3)")
    board.run(f"INSERT INTO board_has_pins SET board_id = {board.id}, pin_id = 4, sequence = DEFAULT")
    last = int(board.run(now)[1][0][0])
    rows = board.rows()
    assert all(len(str(one)) == 38 and one % MS == 0 for one in rows.values())
    assert first <= rows[1] // MS <= last
    assert first <= rows[4] // MS <= last
    assert (rows[2] - rows[1], rows[3] - rows[2]) == (MS, MS)
    board.run(f"DELETE FROM board_has_pins WHERE board_id = {board.id}")
    pins = "SELECT {}, id FROM pins ORDER BY id LIMIT 300"
    board.run(f"INSERT INTO board_has_pins (board_id, pin_id) {pins.format(board.id)}")
    assert len(set(board.rows().values())) == 300
    with pytest.raises(Error) as caught:
        board.run(f"INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES ({board.id}, 1, NULL)")
    assert caught.value.args[0] == 1048


def test_now_is_the_sessions(board: Board) -> None:
    board.run("SET time_zone = '+05:30', timestamp = 1234567890.5")
    board.run(f"INSERT INTO board_has_pins (board_id, pin_id) VALUES ({board.id}, 1)")
    assert board.rows() == {1: 1234567890500 * MS}


def test_errors(board: Board, demo: Demo) -> None:
    board.fill([1, 2, 3])
    calls: dict[str, tuple[int, str]] = {
        f"({board.id}, 9, 1, 2)": (1032, "pin_id 9 is not in the list"),
        f"({board.id}, 1, 9, 2)": (1032, "pin_id 9 is not in the list"),
        f"({board.id}, 1, NULL, 9)": (1032, "pin_id 9 is not in the list"),
        "(5, 1, 2, 3)": (1032, "pin_id 1 is not in the list of board_id 5"),
        f"({board.id}, 1, NULL, NULL)": (1210, "pin_id 1 is not alone"),
        f"({board.id}, 1, 1, 2)": (1210, "not different"),
        f"({board.id}, 1, 2, 2)": (1210, "not different"),
        f"({board.id}, NULL, 2, 2)": (1210, "the row to move is NULL"),
        "(NULL, 1, 2, 3)": (1210, "the from-ID is NULL"),
        f"({board.id}, 'x', 2, 3)": (1210, "is no whole number"),
        f"({board.id}, {1 << 64}, 2, 3)": (1210, "out of the range"),
        f"({board.id}, 1, 2)": (1318, "expected 4, got 3"),
        "()": (1318, "got 0"),
        f"({board.id}, 1, 2, 1 / 3)": (1235, "argument 4 is no constant"),
        f"({board.id}, 1, 3, 2)": (0, ""),
    }
    for call, (code, words) in calls.items():
        if not code:
            continue
        with pytest.raises(Error) as caught:
            board.run(f"CALL reorder_board_pin{call}")
        assert caught.value.args[0] == code, call
        assert words in caught.value.args[1], call
    board.run(f"INSERT INTO board_has_pins (board_id, pin_id) VALUES ({board.id}, 2)")
    with pytest.raises(Error, match="2 rows of board_id"):
        board.move(1, 2, 3)
    with closing(demo.reader()) as reader, pytest.raises(Error) as caught:
        reader.cursor().execute(f"CALL reorder_board_pin({board.id}, 1, 3, NULL)")
    assert caught.value.args[0] == 1142
    board.run("START TRANSACTION READ ONLY")
    with pytest.raises(Error) as caught:
        board.move(1, 3, None)
    assert caught.value.args[0] == 1792


def test_alone(board: Board) -> None:
    board.fill([1])
    assert board.move(1, None, None) == 0


def test_other_forms(board: Board) -> None:
    board.fill([1, 2, 3])
    with board.connection.cursor() as cursor:
        cursor.callproc("reorder_board_pin", (board.id, 3, 1, 2))  # by user variables
    assert board.pins() == [1, 3, 2]
    board.run("USE legacy")
    board.run(f"CALL `demo` . REORDER_board_pin ('{board.id}', 3, NULL, 1);")
    board.run("USE demo")
    assert board.pins() == [3, 1, 2]
    board.run("SET @none = NULL, @first = 1")
    board.run(f"CALL reorder_board_pin({board.id}, 3, 2, @none)")
    assert board.pins() == [1, 2, 3]
    with board.connection.cursor() as cursor:
        cursor.callproc("reorder_board_pin", (str(board.id), "3", "1", "2"))
    assert board.pins() == [1, 3, 2]
    board.run("SET @third = CONCAT('', 3), @word = 'x'")
    board.run(f"CALL reorder_board_pin({board.id}, @third, 2, NULL)")
    assert board.pins() == [1, 2, 3]
    with pytest.raises(Error, match="no whole number"):
        board.run(f"CALL reorder_board_pin({board.id}, @word, 2, NULL)")


def test_whatever_the_session_has_set(board: Board) -> None:
    board.fill([1, 2, 3])
    for setting in (
        "completion_type = 'CHAIN'",
        "sql_select_limit = 1",
        "transaction_mode = 'single'",
        "sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES'",
        "NAMES gbk",
        "SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
    ):
        plain = board.pins()
        board.run(f"SET {setting}")
        assert board.move(plain[0], plain[-1], None) == 1, setting
        board.run("SET sql_select_limit = DEFAULT")
        assert board.pins() == [*plain[1:], plain[0]], setting
    board.run("SET completion_type = DEFAULT, sql_select_limit = DEFAULT")
    last = board.run("SELECT LAST_INSERT_ID(77)")[1]
    board.move(board.pins()[0], board.pins()[-1], None)
    assert board.run("SELECT LAST_INSERT_ID()")[1] == last
    isolation = board.run("SHOW VARIABLES LIKE '%isolation'")[1]
    assert {row[1] for row in isolation} - {"OFF"} == {
        "READ-UNCOMMITTED"
    }  # MariaDB has another of such a name


def test_a_user_who_is_confined_to_the_database(board: Board, own: MakeOwn) -> None:
    board.fill([1, 2, 3])
    users = [
        {"name": name, "password": "x", "role": "write", "databases": [database]}
        for name, database in (("inside", "demo"), ("outside", "legacy"))
    ]
    proxy = own({"users": users})
    call = f"CALL demo.reorder_board_pin({board.id}, 3, 1, 2)"
    with closing(proxy.connect(user="inside", password="x", database="demo")) as inside:
        assert inside.cursor().execute(call) == 1
    assert board.pins() == [1, 3, 2]
    outside = proxy.connect(user="outside", password="x", database="legacy")
    with pytest.raises(Error) as caught:
        outside.cursor().execute(call)
    assert caught.value.args[0] == 1044


def test_explain(board: Board) -> None:
    rows = board.run(f"EXPLAIN ROUTE CALL reorder_board_pin({board.id}, 5, 6, NULL)")[1]
    assert ("shards", "1: 33") in rows
    assert [row[0] for row in rows].count("then") == 2
    assert any("`db00033`.`board_has_pins`" in row[1] for row in rows)


def test_a_procedure_of_that_name_elsewhere(board: Board) -> None:
    board.run("DROP PROCEDURE IF EXISTS legacy.reorder_board_pin")
    board.run("CREATE PROCEDURE legacy.reorder_board_pin(a INT) SELECT a * 2 AS twice")
    assert board.run("CALL legacy.reorder_board_pin(4)")[1] == [(8,)]
    board.run("USE legacy")
    assert board.run("CALL reorder_board_pin(5)")[1] == [(10,)]
    board.run("USE demo")
    board.run("DROP PROCEDURE legacy.reorder_board_pin")


def test_within_a_transaction(board: Board, connect: Connect) -> None:
    board.fill([1, 2, 3, 4])
    board.run("BEGIN")
    board.move(4, 1, 2)
    assert board.pins() == [1, 4, 2, 3]
    other = Board(connect(), board.id)
    assert other.pins() == [1, 2, 3, 4]
    board.run("ROLLBACK")
    assert board.pins() == [1, 2, 3, 4]
    board.run("SET autocommit = 0")
    board.move(4, 1, 2)
    assert other.pins() == [1, 2, 3, 4]
    board.run("COMMIT")
    assert other.pins() == [1, 4, 2, 3]


def test_under_lock_tables(board: Board) -> None:
    """Sharded tables are not among the locked ones: neither the call nor a change that reads first runs, and
    neither ends the locks.
    """
    board.fill([1, 2, 3, 4])
    board.run("LOCK TABLES legacy.customers READ")
    try:
        change = f"UPDATE board_has_pins SET sequence = sequence + 1 WHERE board_id = {board.id}"
        for statement in (
            lambda: board.move(4, 1, 2),
            lambda: board.run(f"{change} ORDER BY sequence LIMIT 3"),
            lambda: board.run("SELECT COUNT(*) FROM legacy.orders"),
        ):
            with pytest.raises(Error) as caught:
                statement()
            assert caught.value.args[0] == 1100
        assert board.run("SELECT COUNT(*) FROM legacy.customers")[1]
    finally:
        board.run("UNLOCK TABLES")
    assert board.pins() == [1, 2, 3, 4]
    assert board.move(4, 1, 2) == 1
    assert board.pins() == [1, 4, 2, 3]
    assert board.run("SELECT COUNT(*) FROM legacy.orders")[1]


def test_what_a_transaction_does_not_see_yet(board: Board, connect: Connect) -> None:
    board.fill([1, 2, 3, 4, 5])
    board.run("BEGIN")
    assert board.pins() == [1, 2, 3, 4, 5]
    other = Board(connect(), board.id)
    other.move(2, 4, 5)
    other.run(f"INSERT INTO board_has_pins (board_id, pin_id) VALUES ({board.id}, 6)")
    assert board.pins() == [1, 2, 3, 4, 5]
    assert board.move(1, 2, 5) == 1
    assert board.move(5, None, 6) == 1
    board.run("COMMIT")
    assert board.pins() == [5, 6, 3, 4, 2, 1]


def test_neighbours_that_moved(board: Board) -> None:
    board.fill([1, 2, 3, 4, 5])
    assert board.move(5, 1, 3) == 1
    assert board.warnings() == ["Other rows stand between pin_id 1 and 3 by now: 5 was put right behind 1."]
    assert board.pins() == [1, 5, 2, 3, 4]
    assert board.move(4, 2, 5) == 1
    assert board.warnings() == ["pin_id 2 stands behind 5 by now: 4 was put between them."]
    assert board.pins() == [1, 5, 4, 2, 3]
    assert board.move(3, None, 4) == 1
    end = "pin_id 4 is not at that end of the list any more: 3 was put right beside it."
    assert board.warnings() == [end]
    assert board.pins() == [1, 5, 3, 4, 2]
    assert board.move(1, 3, None) == 1
    assert len(board.warnings()) == 1
    assert board.pins() == [5, 3, 1, 4, 2]
    with pytest.raises(Error) as caught:
        board.move(3, 2, 5)
    assert caught.value.args[0] == 1020
    assert board.pins() == [5, 3, 1, 4, 2]


def test_two_callers_between_the_same_neighbours(board: Board, connect: Connect) -> None:
    pins = list(range(1, 13))
    board.fill([*pins[:2], *pins[2:]])
    failed: list[Exception] = []

    def caller(mine: Board, pin: int) -> None:
        try:
            mine.move(pin, 1, 2)
        except Exception as error:
            failed.append(error)

    callers = [threading.Thread(target=caller, args=(Board(connect(), board.id), pin)) for pin in pins[2:]]
    for one in callers:
        one.start()
    for one in callers:
        one.join()
    assert failed == []
    rows = board.rows()
    assert ([*rows][:1], [*rows][-1:], len(set(rows.values()))) == ([1], [2], 12)


def test_a_narrow_gap_is_widened_in_the_background(board: Board) -> None:
    board.fill([1, 2, *range(3, 23)])
    plain = board.pins()
    for turn in range(150):
        pin = 3 + turn % 20
        plain.remove(pin)
        plain.insert(1, pin)
        assert board.move(pin, 1, plain[2]) == 1
    assert board.pins() == plain

    def widest() -> bool:
        sequences = list(board.rows().values())
        return min(a - b for a, b in pairwise(sequences)) >= 1 << 16

    wait_until(widest, "every gap has room")
    assert board.pins() == plain


def test_what_a_transaction_holds_is_widened_behind_it(board: Board) -> None:
    board.fill([1, 2, 3, 4])
    board.run("BEGIN")
    for turn in range(76):
        board.move(3 + turn % 2, 1, 2 if not turn else 4 - turn % 2)
    narrow = min(a - b for a, b in pairwise(board.rows().values()))
    assert narrow < 1 << 16
    board.run("COMMIT")
    wait_until(lambda: min(a - b for a, b in pairwise(board.rows().values())) >= 1 << 16, "room")
    assert board.pins() == [1, 4, 3, 2]


def test_a_proxy_that_is_killed_while_it_respaces(board: Board, demo: Demo, own: MakeOwn) -> None:
    """Wherever that meets it, the order is that of before; the next reordering there asks again."""
    plain = list(range(1, 801))
    board.fill(plain, step=1 << 70)

    def put_behind(pin: int, before: int, through: Connection) -> int:
        """Moves a row, and gives the sequence that it gets."""
        rows, after = board.rows(), plain[plain.index(before) + 1]
        plain.remove(pin)
        plain.insert(plain.index(before) + 1, pin)
        with through.cursor() as cursor:
            assert cursor.execute(f"CALL reorder_board_pin({board.id}, {pin}, {before}, {after})") == 1
        return (rows[before] + rows[after]) // 2

    settings = {"workers": 1, "reorder": {"threshold": 80, "bisections": 80}}
    victim = own(settings)
    with closing(demo.direct(1)) as server, server.cursor() as cursor:  # the host of shard 33
        at_work = "SELECT 1 FROM information_schema.innodb_trx WHERE trx_rows_modified > 0"
        got = put_behind(700, 100, victim.connect())
        wait_until(lambda: cursor.execute(at_work) or board.rows()[700] != got, "rows are written")
        victim.signal(signal.SIGKILL)
    assert board.pins() == plain
    got = put_behind(650, 400, own(settings).connect())
    wait_until(lambda: board.rows()[650] != got, "rows are spread")
    assert board.pins() == plain


def test_prepared(board: Board, raw: MakeRaw) -> None:
    board.fill([1, 2, 3, 4])
    client = b.Binary(raw())
    found = client.prepare("CALL reorder_board_pin(?, ?, ?, ?)")
    assert isinstance(found, b.Prepared)
    assert (found.parameters, found.columns) == (4, 0)
    for pin, before, after in ((4, 1, 2), (3, None, 1), (3, 2, None)):
        ends = [b.NOTHING if one is None else b.integer(one) for one in (before, after)]
        answer = client.execute(found.id, [b.text(str(board.id)), b.integer(pin), *ends])
        assert answer.kind == "ok", answer
    assert board.pins() == [1, 4, 2, 3]


@pytest.mark.parametrize("sequences", [(MOST, 0), (MOST, MOST // 2, 0), (MOST, MOST - 1, 1, 0), (7, 0, -5)])
def test_there_is_room_beyond_the_largest_and_the_smallest_sequence(
    board: Board, sequences: tuple[int, ...]
) -> None:
    plain = list(range(1, len(sequences) + 1))
    for pin, sequence in zip(plain, sequences, strict=True):
        board.run(f"INSERT INTO board_has_pins VALUES ({board.id}, {pin}, {sequence})")
    for _ in range(2):
        assert board.move(plain[-1], None, plain[0]) == 1
        plain.insert(0, plain.pop())
        assert board.pins() == plain
        assert board.warnings() == []
        for _ in range(2):
            assert board.move(plain[0], plain[-1], None) == 1
            plain.append(plain.pop(0))
            assert board.pins() == plain
        assert all(0 <= one <= MOST for one in board.rows().values())


def test_rows_of_one_sequence_make_room(board: Board) -> None:
    board.fill(list(range(40, 0, -1)), step=0)
    plain = board.pins()
    assert plain == list(range(40, 0, -1))
    board.move(5, 30, 29)
    plain.remove(5)
    plain.insert(plain.index(29), 5)
    assert board.pins() == plain
    board.run("BEGIN")
    board.move(40, 3, 2)
    plain.remove(40)
    plain.insert(plain.index(2), 40)
    assert board.pins() == plain
    board.run("ROLLBACK")
