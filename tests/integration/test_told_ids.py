"""The insert id that clients are told, and LAST_INSERT_ID() after it, as one server with all rows has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pymysql.err import MySQLError

from tests.integration.binary import Binary, integer
from tests.integration.fixtures import Connect, MakeRaw, make_id
from tests.support.servers import Connection, LocalServer

ONE, TWO, THREE = (make_id(shard, 1, 770_000) for shard in (3, 17, 60))
ALL = f"{ONE}, {TWO}, {THREE}"
NUMBER = "data = JSON_SET(data, '$.n', LAST_INSERT_ID({}))"
CLEAN = f"DELETE FROM pins WHERE id IN ({ALL})"
LAST = "SELECT LAST_INSERT_ID()"

Both = Callable[..., list[object]]


def outcome(connection: Connection, sql: str) -> object:
    """Rows; or how many are affected and the insert id; or the error's code."""
    with connection.cursor() as cursor:
        try:
            count = cursor.execute(sql)
        except MySQLError as error:
            return error.args[0]
        return cursor.fetchall() if cursor.description else (count, cursor.lastrowid)


@pytest.fixture
def both(connect: Connect, plain: LocalServer) -> Iterator[Both]:
    sides = [connect(), plain.connect(database="demo", autocommit=True)]

    def ask(*statements: str) -> list[object]:
        found = [[outcome(side, sql) for sql in statements] for side in sides]
        assert found[0] == found[1]
        return found[0]

    ask(CLEAN)
    yield ask
    ask(CLEAN)
    for side in sides:
        side.close()


@pytest.fixture
def three(both: Both) -> Both:
    """With a pin on each of three shards."""
    both(f"INSERT INTO pins (id, data) VALUES ({ONE}, '{{}}'), ({TWO}, '{{}}'), ({THREE}, '{{}}')")
    return both


def test_an_update_of_several_shards_assigns(three: Both) -> None:
    found = three(
        f"UPDATE pins SET {NUMBER.format(88)} WHERE id IN ({ALL})",
        LAST,
        f"UPDATE pins SET {NUMBER.format(88)} WHERE id IN ({ONE}, {TWO})",  # as they are already
        f"UPDATE pins SET {NUMBER.format(89)} WHERE id IN ({ONE + 1}, {TWO + 1})",
        LAST,
        f"UPDATE pins SET {NUMBER.format(90)} WHERE id IN ({ONE}, {TWO}, {THREE + 1})",
        LAST,
        f"UPDATE pins SET {NUMBER.format(-1)} WHERE id IN ({THREE}, {ONE})",
        LAST,
    )
    last = 2**64 - 1
    assert found == [
        (3, 88), ((88,),), (0, 88), (0, 0), ((88,),), (2, 90), ((90,),), (2, last), ((last,),)
    ]  # fmt: skip


def test_an_update_assigns_within_a_transaction(three: Both) -> None:
    found = three("BEGIN", f"UPDATE pins SET {NUMBER.format(91)} WHERE id IN ({ALL})", LAST, "ROLLBACK", LAST)
    assert found[1:] == [(3, 91), ((91,),), (0, 0), ((91,),)]


def test_an_update_in_a_distributed_transaction_assigns(three: Both, connect: Connect) -> None:
    with connect() as side:
        assert outcome(side, "SET transaction_mode = 'xa'") == (0, 0)
        assert outcome(side, f"UPDATE pins SET {NUMBER.format(92)} WHERE id IN ({ALL})") == (3, 92)
        assert outcome(side, LAST) == ((92,),)


def test_an_update_that_reads_first_assigns(three: Both) -> None:
    boards = make_id(5, 2, 770_000), make_id(41, 2, 770_000)
    rows = f"({boards[0]}, {ONE}, 1), ({boards[1]}, {THREE}, 2)"
    found = three(
        f"UPDATE pins SET {NUMBER.format(93)} WHERE id IN ({ALL}) ORDER BY id DESC LIMIT 2",
        LAST,
        f"INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES {rows}",
        "UPDATE pins p JOIN board_has_pins b ON b.pin_id = p.id"
        " SET p.data = JSON_SET(p.data, '$.n', LAST_INSERT_ID(94)),"
        f" b.sequence = b.sequence + 1 WHERE b.board_id IN ({boards[0]}, {boards[1]})",
        LAST,
        f"DELETE FROM board_has_pins WHERE board_id IN ({boards[0]}, {boards[1]})",
    )
    assert found[:2] == [(2, 93), ((93,),)]
    assert found[3:] == [(4, 94), ((94,),), (2, 0)]


def test_an_update_of_a_reference_table_assigns(both: Both) -> None:
    found = both(
        "UPDATE countries SET name = CONCAT(name, LEFT(LAST_INSERT_ID(95), 0)) WHERE code = 'DE'",
        LAST,
        "UPDATE countries SET name = LAST_INSERT_ID(96) WHERE code = 'Q9'",
        LAST,
    )
    assert found == [(0, 95), ((95,),), (0, 0), ((95,),)]


def test_of_several_rows_the_last_one_counts(three: Both) -> None:
    """In the order of IDs, as one server goes through them."""
    of_row = f"UPDATE pins SET {NUMBER.format('id + 5')} WHERE id IN"
    found = three(
        f"{of_row} ({THREE}, {ONE}, {TWO})", LAST, f"{of_row} ({TWO}, {ONE}, {THREE + 1}) ORDER BY id", LAST
    )
    assert found == [(3, THREE + 5), ((THREE + 5,),), (0, TWO + 5), ((TWO + 5,),)]


UPDATE = "ON DUPLICATE KEY UPDATE"


def test_a_given_id_of_a_select_that_may_update_is_not_told(both: Both) -> None:
    """For VALUES it is."""
    one, numbers = f"SELECT {ONE}, JSON_OBJECT('n', 1)", "data = JSON_SET(VALUES(data), '$.n', 2)"
    several = f"SELECT {TWO}, JSON_OBJECT('n', 3) UNION ALL SELECT {ONE}, JSON_OBJECT('n', 4)"
    found = both(
        f"INSERT INTO pins (id, data) {one} {UPDATE} {numbers}",
        f"INSERT INTO pins (id, data) {one} {UPDATE} {numbers}",
        f"INSERT INTO pins (id, data) {one} {UPDATE} {numbers}",
        f"INSERT INTO pins (id, data) {several} {UPDATE} {numbers}",
        f"INSERT INTO pins (id, data) {several} {UPDATE} data = VALUES(data)",
        f"INSERT INTO pins (id, data) VALUES ({ONE}, JSON_OBJECT('n', 5)) {UPDATE} {numbers}",
        f"REPLACE INTO pins (id, data) {one}",
        f"INSERT INTO pins (id, data) SELECT {THREE}, '{{}}'",
        LAST,
    )
    assert found[:5] == [(1, 0), (2, 0), (0, 0), (1, 0), (2, 0)]
    assert found[5:8] == [(2, ONE), (2, ONE), (1, THREE)]


def test_an_id_that_a_select_assigns_is_told(three: Both) -> None:
    again = f"INSERT INTO pins (id, data) SELECT {TWO}, '{{}}' {UPDATE} id = LAST_INSERT_ID(id)"
    assert three(again, LAST, again, LAST) == [(0, TWO), ((TWO,),), (0, TWO), ((TWO,),)]


def test_of_several_rows_that_are_there_the_last_ones_id_is_assigned(three: Both) -> None:
    """Of rows on several shards, too; a row that is new assigns nothing."""
    again = f"{UPDATE} id = LAST_INSERT_ID(id)"
    found = three(
        f"INSERT INTO pins (id, data) VALUES ({ONE}, '{{}}'), ({THREE}, '{{}}'), ({TWO}, '{{}}') {again}",
        LAST,
        f"INSERT INTO pins (id, data) VALUES ({TWO}, '{{}}'), ({ONE}, '{{}}') {again}",
        LAST,
        f"DELETE FROM pins WHERE id = {THREE}",
        f"INSERT INTO pins (id, data) VALUES ({TWO}, '{{}}'), ({THREE}, '{{}}') {again}",
        LAST,
    )
    assert found == [(0, TWO), ((TWO,),), (0, ONE), ((ONE,),), (1, 0), (1, TWO), ((TWO,),)]


def test_an_id_that_is_given_stays_out_of_last_insert_id(three: Both) -> None:
    new = make_id(9, 1, 770_001)
    three("SELECT LAST_INSERT_ID(4711)")
    try:
        for verb, rest in (
            ("INSERT", ""),
            ("INSERT IGNORE", ""),
            ("REPLACE", ""),
            ("INSERT", f"{UPDATE} data = VALUES(data)"),
            ("INSERT", f"{UPDATE} data = JSON_SET(data, '$.n', RAND())"),
        ):
            for ids in ((new,), (ONE,), (new, new + 1), (ONE, new), (ONE, TWO)):
                if (verb, rest) == ("INSERT", "") and len(ids) > 1 and ONE in ids:
                    continue  # done in part
                values = ", ".join(f"({id}, JSON_OBJECT('n', {len(ids)}))" for id in ids)
                three(f"{verb} INTO pins (id, data) VALUES {values} {rest}")
                assert three(LAST) == [((4711,),)]
    finally:
        three(f"DELETE FROM pins WHERE id IN ({new}, {new + 1})")


def test_generated_ids_of_a_select_that_may_update_are_told(connect: Connect) -> None:
    with connect() as side:
        insert = f"INSERT INTO pins (data) SELECT JSON_OBJECT('board_id', {ONE}) {UPDATE} data = VALUES(data)"
        found = outcome(side, insert)
        assert isinstance(found, tuple)
        count, id = found
        assert (count, id >> 46) == (1, 3)
        assert outcome(side, LAST) == ((id,),)
        assert outcome(side, f"DELETE FROM pins WHERE id = {id}") == (1, 0)


def test_the_id_that_a_routing_column_assigns_is_told_in_the_reply(raw: MakeRaw) -> None:
    client, user = raw(), 1 << 46 | 3 << 36 | 1
    made = f"INSERT INTO user_has_boards (user_id, board_id, sequence) VALUES (LAST_INSERT_ID({user}), 77, 5)"
    try:
        reply = client.ask(made)
        assert (reply.affected, reply.insert_id) == (1, user)
        assert client.ask("SELECT LAST_INSERT_ID()").value == b"%d" % user
        reply = client.ask("INSERT INTO email_to_user VALUES (LAST_INSERT_ID(3), 3)")
        assert (reply.affected, reply.insert_id) == (1, 3)
        assert client.ask("INSERT INTO email_to_user VALUES (CONCAT('a', 'b5'), 3)").insert_id == 0
    finally:
        client.ask(f"DELETE FROM user_has_boards WHERE user_id = {user} AND board_id = 77")
        client.ask("DELETE FROM email_to_user WHERE email IN ('3', 'ab5')")


FAILING = (
    "INSERT INTO legacy.failing VALUES (NULL, 5, 1), (NULL, 1, 1)",
    "INSERT INTO legacy.failing VALUES (NULL, 1, 1), (NULL, 5, 1)",
    "INSERT INTO legacy.failing VALUES (NULL, 6, 1), (NULL, 7, 1), (NULL, 6, 1)",
    "INSERT INTO legacy.failing VALUES (100, 5, 1), (NULL, 1, 1)",
    "INSERT INTO legacy.failing VALUES (NULL, 5, 1), (200, 1, 1)",
    "INSERT INTO legacy.failing VALUES (NULL, 1, 1)",
    "INSERT INTO legacy.failing VALUES (300, 1, 1)",
    "INSERT INTO legacy.failing VALUES (NULL, 8, 1), (NULL, 9, NULL)",
    "INSERT INTO legacy.failing VALUES (NULL, 8 + 0, 1), (NULL, 9, NULL)",
    "REPLACE INTO legacy.failing (u, t) VALUES (30, 1), (31, 'x')",
    "INSERT INTO legacy.failing (`u`, t) VALUES (40, 1), (1, 1) ON DUPLICATE KEY UPDATE t = NULL",
    "INSERT INTO legacy.failing (u, t) SELECT 50 + n, IF(n > 1, NULL, 1) FROM (SELECT 1 n UNION SELECT 2) d",
    "INSERT INTO legacy.failing (u, t) VALUES (60, 1), (61, 1)",
)


@pytest.mark.parametrize("transaction", [False, True])
def test_an_insert_that_fails_behind_its_first_row(both: Both, transaction: bool) -> None:
    """Servers keep the number that they have made for a row before the one that fails."""
    both(
        "CREATE TABLE legacy.failing (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE, t INT NOT NULL)",
        "INSERT INTO legacy.failing VALUES (NULL, 1, 1)",
        *(["BEGIN"] if transaction else []),
    )
    try:
        for sql in FAILING:
            both(sql, LAST, sql, "SELECT @@last_insert_id, ROW_COUNT()")
        both(*(["ROLLBACK"] if transaction else []), LAST)
    finally:
        both("DROP TABLE legacy.failing")


def test_a_prepared_insert_that_fails_behind_its_first_row(raw: MakeRaw, connect: Connect) -> None:
    with connect() as other, other.cursor() as cursor:
        cursor.execute("CREATE TABLE legacy.failing (id INT AUTO_INCREMENT PRIMARY KEY, u INT UNIQUE)")
        try:
            client = raw()
            insert = "INSERT INTO legacy.failing (u) VALUES (?), (?)"
            assert Binary(client).run(insert, integer(1), integer(2)).kind == "ok"
            assert client.ask(LAST).value == b"1"
            assert Binary(client).run(insert, integer(3), integer(2)).code == 1062
            assert client.ask(LAST).value == b"3"
            assert Binary(client).run(insert, integer(2), integer(4)).code == 1062
            assert client.ask(LAST).value == b"3"
        finally:
            cursor.execute("DROP TABLE legacy.failing")
