"""Bad input: the code and SQLSTATE that MySQL would give, and a connection that is usable afterwards."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import Connect, MakeOwn, MakeRaw, make_id
from tests.integration.raw import Raw, Reply
from tests.support.demo import Demo

PIN = make_id(5, 1, 1)


def check(client: Raw, sql: str, code: int, sqlstate: str, *words: str) -> Reply:
    """The statement gives that error, its text has the words, and the connection goes on."""
    reply = client.ask(sql)
    assert (reply.kind, reply.code, reply.sqlstate) == ("err", code, sqlstate), (sql, reply)
    for word in words:
        assert word in reply.message, (sql, reply.message)
    shown = client.ask("SHOW WARNINGS")
    assert [row[1] for row in shown.rows] == [str(code).encode()], (sql, shown.rows)
    assert client.ask("SELECT 'usable'").value == b"usable"
    return reply


@pytest.fixture
def client(raw: MakeRaw) -> Raw:
    return raw()


@pytest.mark.parametrize(
    ("sql", "code", "sqlstate", "word"),
    [
        ("SELECT * FROM no_such_table", 1146, "42S02", "demo.no_such_table"),
        ("SELECT * FROM demo.no_such_table WHERE id = 1", 1146, "42S02", "demo.no_such_table"),
        ("INSERT INTO no_such_table VALUES (1)", 1146, "42S02", "demo.no_such_table"),
        ("DELETE FROM legacy.no_such_table", 1146, "42S02", "legacy.no_such_table"),
        ("SELECT * FROM db00003.no_such_table", 1146, "42S02", "db00003.no_such_table"),
        ("DESCRIBE no_such_table", 1146, "42S02", "no_such_table"),
        ("SHOW CREATE TABLE no_such_table", 1146, "42S02", "no_such_table"),
        ("SHOW COLUMNS FROM no_such_table", 1146, "42S02", "no_such_table"),
        ("USE no_such_database", 1049, "42000", "no_such_database"),
        ("USE db99999", 1049, "42000", "db99999"),
        ("SHOW TABLES FROM no_such_database", 1049, "42000", "no_such_database"),
        ("SELEKT 1", 1064, "42000", "SELEKT"),
        ("SELECT * FROM pins WHERE id = ", 1064, "42000", ""),
        ("SELECT * FORM pins WHERE id = 1", 1064, "42000", ""),
        ("SELECT FROM WHERE", 1064, "42000", ""),
        ("SELECT 'abc", 1064, "42000", ""),
        ("INSERT INTO pins (data VALUES ('x')", 1064, "42000", ""),
        ("SELECT nothing FROM pins WHERE id = 1", 1054, "42S22", "nothing"),
        (f"SELECT nothing FROM pins WHERE id = {PIN}", 1054, "42S22", "nothing"),
        ("SELECT p.id FROM pins WHERE id = 1", 1054, "42S22", "p.id"),
        ("INSERT INTO boards (data, color) VALUES ('{}', 1)", 1054, "42S22", "color"),
        (f"SELECT COUNT(*), nothing FROM pins WHERE id = {PIN}", 1054, "42S22", "nothing"),
    ],
)  # fmt: skip
def test_the_servers_codes(client: Raw, sql: str, code: int, sqlstate: str, word: str) -> None:
    check(client, sql, code, sqlstate, word)


def test_no_database_selected(raw: MakeRaw) -> None:
    client = raw(database=None)
    check(client, "SELECT * FROM pins", 1046, "3D000")
    check(client, "SHOW TABLES", 1046, "3D000")
    assert client.ask("SELECT COUNT(*) FROM demo.pins").kind == "rows"


@pytest.mark.parametrize(
    "id",
    [
        7,  # type 0
        make_id(5, 2, 1),  # a board's
        make_id(5, 1, (1 << 36) - 1),  # right, but nobody's: no warning
        1 << 63,
        (1 << 64) + 5,
        -5,
        0,
    ],
)
def test_an_id_that_matches_nothing(client: Raw, id: int) -> None:
    """A read gives no row, the right columns and a warning that explains; a write changes nothing."""
    matching = id == make_id(5, 1, (1 << 36) - 1)
    reply = client.ask(f"SELECT * FROM pins WHERE id = {id}")
    assert (reply.kind, reply.columns, reply.rows) == ("rows", ["id", "data", "ts"], []), reply
    assert reply.warnings == (0 if matching else 1)
    shown = client.ask("SHOW WARNINGS")
    if not matching:
        ((level, code, message),) = shown.rows
        assert (level, code) == (b"Warning", b"1105")
        assert str(id).encode() in (message or b"")
        assert b"pins" in (message or b"")
    assert client.ask("SELECT COUNT(*) FROM usernames").warnings == 0  # MariaDB keeps them after SELECT 1
    assert client.ask("SHOW WARNINGS").rows == []
    for sql in (f"UPDATE pins SET ts = ts WHERE id = {id}", f"DELETE FROM pins WHERE id = {id}"):
        reply = client.ask(sql)
        assert (reply.kind, reply.affected) == ("ok", 0), (sql, reply)
        assert reply.warnings == (0 if matching else 1), sql
    if not matching and id:  # 0 asks for a new ID, as NULL does
        check(client, f"INSERT INTO pins (id, data) VALUES ({id}, '{{}}')", 1264, "22003", str(id))


def test_some_ids_of_a_list_match_nothing(client: Raw) -> None:
    pins = [int(row[0] or 0) for row in client.ask("SELECT id FROM pins ORDER BY id LIMIT 3").rows]
    reply = client.ask(
        f"SELECT id FROM pins WHERE id IN ({pins[0]}, 7, {pins[1]}, {make_id(1, 2, 3)}) ORDER BY id"
    )
    assert [int(row[0] or 0) for row in reply.rows] == pins[:2]
    assert client.ask("SELECT id FROM pins WHERE id IN (7, 8)").rows == []


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("UPDATE pins SET ts = NOW()", ("scatter", "id")),
        ("DELETE FROM pins WHERE ts < '2001-01-01'", ("scatter", "id")),
        ("DELETE FROM board_has_pins WHERE pin_id = 5", ("scatter", "board_id")),
        ("INSERT INTO board_has_pins (pin_id, sequence) VALUES (1, 2)", ("board_id",)),
    ],
)
def test_unroutable_writes(client: Raw, sql: str, words: tuple[str, ...]) -> None:
    """An error that says how to route it."""
    reply = client.ask(sql)
    assert reply.kind == "err"
    assert reply.code in (1105, 1235, 1364), reply
    for word in words:
        assert word in reply.message, reply.message
    assert client.ask("SELECT COUNT(*) FROM pins").rows == [(b"1800",)]


def test_a_shard_that_does_not_exist(client: Raw) -> None:
    """The default host says it in its own words: MariaDB means the table, MySQL the database."""
    assert client.ask("SELECT * FROM db99999.pins").code in (1049, 1146)


def test_a_routing_column_does_not_change(client: Raw) -> None:
    check(client, f"UPDATE pins SET id = 5 WHERE id = {PIN}", 1105, "HY000", "id", "INSERT")
    check(client, f"UPDATE board_has_pins SET board_id = 5 WHERE board_id = {PIN}", 1105, "HY000", "board_id")


def test_what_is_not_there_yet_says_so(client: Raw) -> None:
    """Refused, never answered wrongly."""
    for sql in (
        "SELECT DISTINCT ts INTO OUTFILE '/tmp/never' FROM pins",
        "SELECT DISTINCT GET_LOCK('x', 0) FROM pins",
        "SELECT DISTINCT p.id FROM pins p JOIN information_schema.tables",
        "CREATE TABLE demo.t (id INT)",
        "ALTER TABLE pins DROP COLUMN local_id",
        "RENAME TABLE pins TO needles",
        "DROP TABLE pins, users",
        "DROP DATABASE demo",
    ):
        reply = client.ask(sql)
        assert reply.kind == "err", sql
        assert reply.code in (1105, 1235), (sql, reply)
        assert client.ask("SELECT COUNT(*) FROM pins").rows == [(b"1800",)]


def test_roles(connect: Connect, raw: MakeRaw, demo: Demo) -> None:
    reader = raw(login=False)
    assert reader.login("reader", "reader", "demo").kind == "ok"
    for sql in (
        "INSERT INTO users (data) VALUES ('{}')",
        f"UPDATE pins SET ts = ts WHERE id = {PIN}",
        f"DELETE FROM pins WHERE id = {PIN}",
        "INSERT INTO legacy.customers (name, email, created) VALUES ('x', 'y', NOW())",
        "DELETE FROM db00003.pins",
        "CREATE TABLE legacy.t (id INT)",
        "DROP TABLE legacy.customers",
        "TRUNCATE legacy.orders",
        "CREATE DATABASE mine",
        f"SELECT id FROM pins WHERE id = {PIN} FOR UPDATE",
        "/*!50000 DELETE */ FROM legacy.orders",
        "WITH x AS (SELECT 1) DELETE FROM legacy.orders",
        "EXPLAIN ANALYZE DELETE FROM legacy.orders",
        "SELECT 1 INTO OUTFILE '/tmp/never'",
        "CALL legacy.anything()",
        "SET GLOBAL max_connections = 1",
    ):
        reply = reader.ask(sql)
        assert reply.kind == "err", sql
        assert reply.code in (1142, 1227, 1235, 1290, 1064, 1044, 1105), (sql, reply)
        assert reader.ask("SELECT COUNT(*) FROM legacy.orders").kind == "rows"
    check(reader, f"DELETE FROM pins WHERE id = {PIN}", 1142, "42000", "DELETE", "reader", "write")
    assert (
        raw().ask("SELECT COUNT(*) FROM legacy.orders").value
        == reader.ask("SELECT COUNT(*) FROM legacy.orders").value
        != b"0"
    )


def test_scatter_limits(raw: MakeRaw) -> None:
    """A reader gets 1000 rows of a scatter at the most: an error behind them, and the connection goes on."""
    reader = raw(login=False)
    reader.login("reader", "reader", "demo")
    assert len(reader.ask("SELECT id FROM users").rows) == 300
    reply = reader.ask("SELECT id FROM pins")
    assert (reply.kind, reply.code, reply.sqlstate) == ("err", 1104, "42000")
    assert "1000" in reply.message
    assert reply.in_order
    assert reader.ask("SELECT COUNT(*) FROM pins").rows == [(b"1800",)]
    assert len(reader.ask("SELECT id FROM pins LIMIT 700").rows) == 700
    assert len(reader.ask("SELECT id FROM pins ORDER BY id LIMIT 1000").rows) == 1000
    assert reader.ask("SELECT id FROM pins ORDER BY id").code == 1104
    assert reader.ask("SELECT 1").value == b"1"


def test_scatter_may_be_denied(own: MakeOwn) -> None:
    users = [
        {"name": "demo", "password": "demo", "role": "admin"},
        {"name": "narrow", "password": "narrow", "scatter": "deny"},
    ]
    proxy = own({"users": users, "limits": {"scatter_rows": 500, "in_list": 100}})
    narrow = proxy.raw(login=False)
    assert narrow.login("narrow", "narrow", "demo").kind == "ok"
    check(narrow, "SELECT id FROM pins", 1105, "HY000", "64 shards", "narrow")
    check(narrow, "SELECT COUNT(*) FROM pins WHERE ts > '2012-01-01'", 1105, "HY000")
    assert narrow.ask(f"SELECT id FROM pins WHERE id = {PIN}").kind == "rows"
    ids = ",".join(str(make_id(n % 64, 1, n)) for n in range(1, 90))
    assert narrow.ask(f"SELECT id FROM pins WHERE id IN ({ids})").kind == "rows"
    admin = proxy.raw()
    assert admin.ask("SELECT id FROM pins").code == 1104
    long = ",".join(str(make_id(n % 64, 1, n)) for n in range(1, 102))
    check(admin, f"SELECT id FROM pins WHERE id IN ({long})", 1105, "HY000", "100")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT nothing(1) FROM pins WHERE id = {PIN}",
        "SELECT nothing(1) FROM pins",
        f"SELECT id FROM pins WHERE id IN ({PIN}, {PIN + 1}) AND nothing(1)",
        "SELECT nothing()",
        f"UPDATE pins SET ts = nothing() WHERE id = {PIN}",
    ],
)
def test_an_unknown_function(client: Raw, sql: str) -> None:
    assert client.ask(sql).code == 1305
    assert client.ask("SELECT COUNT(*) FROM usernames").kind == "rows"


@pytest.mark.parametrize("explain", ["EXPLAIN", "DESCRIBE", "EXPLAIN FORMAT = JSON", "EXPLAIN EXTENDED"])
def test_explain_over_shards(client: Raw, explain: str, flavour: str) -> None:
    """The plan of one of them, and a warning that says so."""
    if explain == "EXPLAIN EXTENDED" and flavour != "mariadb":
        return
    one = client.ask(f"{explain} SELECT * FROM pins WHERE id = {PIN}")
    assert one.kind == "rows", one
    for sql in (
        "SELECT * FROM pins",
        "SELECT COUNT(*) FROM pins",
        f"SELECT id FROM pins WHERE id IN ({PIN}, {make_id(7, 1, 5)}) ORDER BY id LIMIT 3",
    ):
        reply = client.ask(f"{explain} {sql}")
        assert (reply.kind, reply.columns) == ("rows", one.columns), (sql, reply)
        shown = [row[2] or b"" for row in client.ask("SHOW WARNINGS").rows]
        assert any(b"EXPLAIN ROUTE" in text for text in shown), (sql, shown)
    refused = client.ask(f"{explain} SELECT DISTINCT p.ts FROM pins p JOIN boards b ON b.ts = p.ts")
    assert (refused.code, "EXPLAIN ROUTE" in refused.message) == (1235, True), refused
