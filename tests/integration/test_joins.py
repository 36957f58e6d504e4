"""Joins by an ID that two reads answer: a mapping's rows, then the objects that they name."""

from __future__ import annotations

import pytest

from tests.integration.binary import Binary, integer
from tests.integration.fixtures import MakeRaw, Things, make_id
from tests.integration.raw import Raw

PINS = 12
LOST = {2, 3, 7}
JOINED = "rows of one table, then those of another that they name, joined by the proxy"


class Board:
    """A board whose pins are anywhere; those whose places are in LOST are named and do not exist."""

    def __init__(self, things: Things) -> None:
        self.things = things
        self.id = things.insert("boards", {"name": "of the test"})
        self.pins = []
        for place in range(PINS):
            pin = make_id(place, 1, 1 << 35) if place in LOST else things.insert("pins", {"place": place})
            self.pins.append(pin)
            things.map("board_has_pins", self.id, pin, place + 1)

    def there(self) -> list[int]:
        """Those that do exist, in their order."""
        return [pin for place, pin in enumerate(self.pins) if place not in LOST]


@pytest.fixture
def board(things: Things) -> Board:
    return Board(things)


@pytest.fixture
def client(raw: MakeRaw) -> Raw:
    return raw()


def plan(client: Raw, sql: str) -> str:
    return (client.ask("EXPLAIN ROUTE " + sql).rows[0][1] or b"").decode()


def ids(client: Raw, sql: str) -> list[int]:
    assert plan(client, sql) == JOINED, sql
    reply = client.ask(sql)
    assert reply.in_order
    return [int(row[0] or 0) for row in reply.rows]


def test_limit_counts_the_rows_of_the_join(client: Raw, board: Board) -> None:
    """A mapping without its pin is no row: further ones are read in its place."""
    text = f"SELECT p.id FROM board_has_pins m JOIN pins p ON p.id = m.pin_id WHERE m.board_id = {board.id}"
    there = board.there()
    assert ids(client, text + " ORDER BY m.sequence") == there
    assert ids(client, text + " ORDER BY m.sequence DESC") == there[::-1]
    for limit in range(PINS + 2):
        assert ids(client, f"{text} ORDER BY m.sequence LIMIT {limit}") == there[:limit]
        assert ids(client, f"{text} ORDER BY m.sequence LIMIT 3 OFFSET {limit}") == there[limit:][:3]
        assert client.ask("SELECT FOUND_ROWS()").value == b"%d" % min(limit + 3, len(there))
    assert sorted(ids(client, text)) == sorted(there)
    assert len(ids(client, text + " LIMIT 5")) == 5


def test_outer_joins_keep_the_rows_without_partner(client: Raw, board: Board) -> None:
    for join in ("board_has_pins m LEFT JOIN pins p", "pins p RIGHT JOIN board_has_pins m"):
        sql = f"SELECT m.pin_id, p.id, p.data, m.sequence FROM {join} ON m.pin_id = p.id"
        sql += f" WHERE m.board_id = {board.id}"
        assert ids(client, sql + " ORDER BY m.sequence LIMIT 5") == board.pins[:5]
        rows = client.ask(sql + " ORDER BY m.sequence").rows
        assert [row[1] is None for row in rows] == [place in LOST for place in range(PINS)]
        assert [row[2] is None for row in rows] == [place in LOST for place in range(PINS)]
        assert [row[3] for row in rows] == [b"%d" % (place + 1) for place in range(PINS)]


def test_conditions_of_either_side(client: Raw, board: Board) -> None:
    there = board.there()
    text = "SELECT p.id FROM board_has_pins m JOIN pins p ON p.id = m.pin_id"
    text += " AND JSON_VALUE(p.data, '$.place') > 4"
    where = f" WHERE m.board_id = {board.id} AND m.sequence < 11 ORDER BY m.sequence"
    expected = [pin for pin in there if 4 < board.pins.index(pin) < 10]
    assert ids(client, text + where) == expected
    assert ids(client, text + where + " LIMIT 2") == expected[:2]
    left = text.replace(" JOIN", " LEFT JOIN").replace("p.id FROM", "p.id IS NULL, m.pin_id FROM")
    assert plan(client, left + where) != JOINED  # what is computed may be true of a row that is not there
    left = text.replace(" JOIN", " LEFT JOIN").replace("p.id FROM", "m.pin_id, p.id FROM")
    assert ids(client, left + where) == board.pins[:10]
    assert [row[1] is not None for row in client.ask(left + where).rows] == [
        pin in expected for pin in board.pins[:10]
    ]


def test_a_transaction_joins_its_own_rows(client: Raw, raw: MakeRaw, board: Board) -> None:
    text = f"SELECT p.id FROM board_has_pins m JOIN pins p ON p.id = m.pin_id WHERE m.board_id = {board.id}"
    there = board.there()
    client.ask("BEGIN")
    client.ask(f"DELETE FROM pins WHERE id = {there[0]}")
    client.ask(f"DELETE FROM board_has_pins WHERE board_id = {board.id} AND pin_id = {there[1]}")
    assert ids(client, text + " ORDER BY m.sequence LIMIT 4") == there[2:6]
    assert ids(raw(), text + " ORDER BY m.sequence LIMIT 4") == there[:4]
    client.ask("ROLLBACK")
    assert ids(client, text + " ORDER BY m.sequence LIMIT 4") == there[:4]


def test_prepared(raw: MakeRaw, board: Board) -> None:
    client = Binary(raw())
    statement = client.statement(
        "SELECT p.id, m.sequence, p.ts, p.data FROM board_has_pins m JOIN pins p ON p.id = m.pin_id"
        " WHERE m.board_id = ? AND p.ts > '2001-01-01' ORDER BY m.sequence LIMIT ? OFFSET ?"
    )
    assert statement.parameters == 3
    for offset in (0, 2, 9):
        reply = client.execute(statement.id, [integer(board.id), integer(4), integer(offset)])
        found = [int.from_bytes(row[2:10], "little") for row in reply.rows]  # behind the head and the NULLs
        assert found == board.there()[offset:][:4]


def test_what_joins_in_another_way(client: Raw, board: Board) -> None:
    """It is gathered, as before."""
    text = " FROM board_has_pins m JOIN pins p ON p.id = m.pin_id"
    known = f" WHERE m.board_id = {board.id}"
    for sql in (
        "SELECT COUNT(*)" + text + known,
        "SELECT DISTINCT p.data" + text + known,
        "SELECT p.id" + text + known + " ORDER BY p.ts",
        "SELECT p.id" + text + known + " AND p.ts > m.sequence",
        "SELECT p.id" + text + " WHERE m.sequence > 5",
        "SELECT p.id" + text + known + " GROUP BY p.id",
        "SELECT p.id" + text + known + " FOR UPDATE",
        "SELECT RAND(), p.id" + text + known,
        "SELECT p.id" + text + known + " AND p.id IN (SELECT pin_id FROM user_likes_pins)",
        "SELECT p.id" + text.replace("JOIN", "LEFT JOIN") + known + " AND p.id IS NULL",
        "SELECT @n := m.sequence, p.id" + text + known,
    ):
        assert plan(client, sql) != JOINED, sql
        assert client.ask(sql).kind == "rows", sql


def test_an_order_that_only_one_server_knows(client: Raw, things: Things) -> None:
    """JSON values of several shards are not sorted here: the rows are gathered."""
    boards = [things.insert("boards", {"rank": rank}) for rank in (3, 1, 5, 2, 4)]
    for board in boards:
        things.map("board_has_pins", board, things.insert("pins", {}), 1)
    assert len({board >> 46 for board in boards}) > 1
    listed = ", ".join(map(str, boards))
    text = (
        "SELECT a.id FROM boards a LEFT JOIN board_has_pins b ON b.board_id = a.id"
        f" WHERE a.id IN ({listed}) ORDER BY JSON_EXTRACT(a.data, '$.rank') DESC, a.id"
    )
    ranked = [boards[place] for place in (2, 4, 0, 3, 1)]
    for limit, count in (("", 5), (" LIMIT 3", 3), (" LIMIT 0", 0)):
        reply = client.ask(text + limit)
        assert reply.kind == "rows", (limit, reply)
        assert [int(row[0] or 0) for row in reply.rows] == ranked[:count], limit


def test_errors_are_the_servers(client: Raw, board: Board, flavour: str) -> None:
    text = f"SELECT %s FROM board_has_pins m JOIN pins p ON p.id = m.pin_id%s WHERE m.board_id = {board.id}"
    clauses = ("SELECT", "ON") if flavour == "mariadb" else ("field list", "on clause")
    for shown, on, clause in (
        ("p.nosuch", "", clauses[0]),
        ("p.id, m.nosuch", "", clauses[0]),
        ("p.id", " AND p.nosuch = 1", clauses[1]),
    ):
        reply = client.ask(text % (shown, on))
        column = "m.nosuch" if "m." in shown else "p.nosuch"
        assert (reply.code, reply.message) == (1054, f"Unknown column '{column}' in '{clause}'")
        assert client.ask(text % ("p.id", "")).kind == "rows"
