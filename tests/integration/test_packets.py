"""The protocol's framing at a real socket: cut anywhere, many commands at once, very large."""

from __future__ import annotations

import threading

import pytest

from tests.integration import raw as wire
from tests.integration.binary import Binary
from tests.integration.binary import text as binary_text
from tests.integration.fixtures import MakeOwn, MakeRaw
from tests.integration.own import OwnProxy
from tests.integration.raw import AUTOCOMMIT, IN_TRANS, PING, command, query

MB = 1 << 20


def test_every_cut_of_a_statement(raw: MakeRaw) -> None:
    client = raw()
    whole = query("SELECT 'cut' AS word, COUNT(*) FROM users WHERE id = 1")
    for place in range(1, len(whole)):
        client.write(whole[:place])
        client.write(whole[place:])
        reply = client.reply()
        assert reply.rows == [(b"cut", b"0")], (place, reply)
        assert reply.in_order


@pytest.mark.one_server
def test_a_log_in_byte_by_byte(raw: MakeRaw) -> None:
    client = raw(login=False)
    client.greeting()
    for byte in client.response("demo", "demo", "demo") + query("SELECT 7") + command(PING):
        client.write(bytes([byte]))
    assert client.packet()[:2] == b"\x01\x03"
    assert client.reply().kind == "ok"
    assert client.reply().value == b"7"
    assert client.ping().kind == "ok"


def test_several_commands_in_one_write(raw: MakeRaw) -> None:
    client = raw()
    client.write(
        command(wire.RESET_CONNECTION)
        + query("SET NAMES utf8mb4")
        + query("SELECT 'one'")
        + query("SELECT * FROM nothing_there")
        + command(PING)
        + query("BEGIN")
        + query("SELECT COUNT(*) FROM users WHERE id = 1")
        + query("ROLLBACK")
        + query("SELECT 'last'")
    )
    replies = [client.reply() for _ in range(9)]
    assert [reply.kind for reply in replies] == ["ok", "ok", "rows", "err", "ok", "ok", "rows", "ok", "rows"]
    assert replies[2].value == b"one"
    assert replies[3].code == 1146
    assert [bool(reply.status & IN_TRANS) for reply in replies[5:]] == [True, True, False, False]
    assert replies[8].value == b"last"
    assert all(reply.in_order and reply.sequence[0] == 1 for reply in replies)


@pytest.mark.one_server
def test_a_long_pipeline_of_all_kinds(raw: MakeRaw) -> None:
    client = raw()
    number = 2000
    kinds = ("SELECT {0}", "SELECT COUNT(*) + {0} FROM users WHERE id = 1", "SET @a = {0}")
    sent = b"".join(query(kinds[n % 3].format(n)) for n in range(number))
    writer = threading.Thread(target=client.write, args=(sent,))
    writer.start()
    for n in range(number):
        reply = client.reply()
        if n % 3 == 2:
            assert reply.kind == "ok", (n, reply)
        else:
            assert reply.value == str(n).encode(), (n, reply)
    writer.join()
    assert client.ask("SELECT @a").value == b"1997"


@pytest.fixture
def large(own: MakeOwn) -> OwnProxy:
    return own({"limits": {"max_statement": "64MB", "max_packet": "80MB"}})


@pytest.mark.one_server
def test_statements_over_16_mb(large: OwnProxy) -> None:
    head, tail = b"SELECT LENGTH('", b"')"
    exactly_one_packet = wire.FULL - 1 - len(head) - len(tail)  # so that an empty one must follow
    for database, size in (("demo", exactly_one_packet), ("demo", wire.FULL), ("legacy", 33 * MB + 5)):
        client = large.raw(database=database)
        reply = client.ask(head + b"x" * size + tail)
        assert reply.rows == [(str(size).encode(),)], (size, reply.message)
        assert client.ping().kind == "ok"


def test_rows_over_16_mb(large: OwnProxy) -> None:
    exactly_one_packet = wire.FULL - 8  # with the two values' lengths and the second one
    for database, size in (("demo", exactly_one_packet), ("legacy", wire.FULL), ("demo", 33 * MB)):
        client = large.raw(database=database)
        reply = client.ask(f"SELECT REPEAT('z', {size}), 'end'")
        assert reply.kind == "rows", reply
        assert [len(value or b"") for value in reply.rows[0]] == [size, 3]
        assert reply.in_order
        assert client.ping().kind == "ok"


def test_rows_over_16_mb_through_a_fan_out(large: OwnProxy) -> None:
    client = large.raw()
    ids = [row[0] or b"" for row in client.ask("SELECT id FROM users ORDER BY id LIMIT 6").rows]
    reply = client.ask(
        b"SELECT id, REPEAT('w', 17000000) AS w FROM users WHERE id IN ("
        + b",".join(ids[::5])
        + b") ORDER BY id"
    )
    assert [(row[0], len(row[1] or b"")) for row in reply.rows] == [
        (ids[0], 17_000_000),
        (ids[5], 17_000_000),
    ], reply.message
    assert reply.in_order
    assert client.ping().kind == "ok"


@pytest.mark.one_server
def test_too_large_a_packet(own: MakeOwn) -> None:
    proxy = own({"limits": {"max_packet": "1MB", "max_statement": "1MB"}})
    other, client = proxy.raw(), proxy.raw()
    assert client.ask(b"SELECT LENGTH('" + b"x" * (MB - 100) + b"')").kind == "rows"
    client.write((2 * MB).to_bytes(3, "little") + b"\0\x03SELECT")  # its length is enough
    reply = client.reply()
    assert (reply.code, reply.sqlstate) == (1153, "08S01")
    assert client.closed
    assert other.ask("SELECT 1").value == b"1"


@pytest.mark.one_server
def test_too_long_a_statement_leaves_the_connection_usable(own: MakeOwn) -> None:
    client = own({"limits": {"max_statement": "1MB"}}).raw()
    reply = client.ask(b"SELECT LENGTH('" + b"x" * 2 * MB + b"')")
    assert (reply.code, reply.sqlstate) == (1153, "HY000")
    assert client.ask("SELECT 1").value == b"1"


def test_autocommit_flag_in_every_kind_of_reply(raw: MakeRaw) -> None:
    client = raw()
    ids = ",".join((row[0] or b"").decode() for row in client.ask("SELECT id FROM users LIMIT 10").rows)
    statements = (
        "SELECT 1",
        "SELECT id FROM users WHERE id = 1",
        f"SELECT id FROM users WHERE id IN ({ids}) ORDER BY id",
        f"UPDATE users SET ts = ts WHERE id IN ({ids})",
        "SELECT * FROM legacy.customers LIMIT 1",
        "SHOW SHARDS",
        "SHOW WARNINGS",
        "SET @x = 1",
    )
    for off in (False, True):
        assert client.ask(f"SET autocommit = {int(not off)}").kind == "ok"
        for sql in statements:
            reply = client.ask(sql)
            assert reply.kind != "err", reply
            assert bool(reply.status & AUTOCOMMIT) is not off, sql
        assert bool(client.ping().status & AUTOCOMMIT) is not off
        assert bool(client.do(wire.INIT_DB, b"demo").status & AUTOCOMMIT) is not off
    assert client.ask("ROLLBACK").kind == "ok"


def test_what_drivers_send_in_one_write(raw: MakeRaw) -> None:
    """MariaDB Connector/J's settings behind one another, and .NET's reset with SET NAMES."""
    client = raw()
    connector_j = (
        "set autocommit=1, sql_mode=CONCAT(@@sql_mode,',STRICT_TRANS_TABLES'),"
        " session_track_system_variables=CONCAT(@@global.session_track_system_variables,',sql_mode'),"
        " NAMES utf8mb4"
    )
    for _ in range(3):
        client.write(
            query("set autocommit=0")
            + query(connector_j)
            + query("SELECT @@max_allowed_packet, @@wait_timeout, @@autocommit")
            + command(wire.RESET_CONNECTION)
            + query("SET NAMES utf8mb4;")
            + query("SELECT COUNT(*) FROM users WHERE id = 1; ")
        )
        replies = [client.reply() for _ in range(6)]
        assert [reply.kind for reply in replies] == ["ok", "ok", "rows", "ok", "ok", "rows"], replies
        assert [bool(reply.status & AUTOCOMMIT) for reply in replies] == [False] + [True] * 5
        assert replies[2].rows[0][2] == b"1"
        assert all(reply.in_order and reply.sequence[0] == 1 for reply in replies)


@pytest.mark.one_server
def test_a_statement_that_crosses_16_mb_when_it_is_rewritten(raw: MakeRaw) -> None:
    """The reply's numbers follow on those of the client's packets, not on those sent to the server."""
    client = raw()
    for sql in (
        "SELECT COUNT(*) FROM usernames WHERE username = '%s'",  # grows by the database's name
        "SELECT COUNT(*) FROM pins WHERE id = 70437470730133 AND data <> '%s'",  # its id gets shorter
    ):
        room = wire.FULL - 1 - len(sql) + 2
        for over in (-9, -1, 0, 9):
            client.write(query(sql % ("x" * (room + over))))
            reply = client.reply()
            assert reply.kind == "rows", reply
            assert reply.in_order
            assert reply.sequence[0] == (2 if over >= 0 else 1), over


def test_an_execute_that_crosses_16_mb_when_it_is_rewritten(raw: MakeRaw) -> None:
    client = raw()
    statements = Binary(client)
    prepared = statements.statement("SELECT COUNT(*) FROM users WHERE id = 70437470730133 AND data <> ?")
    long = "x" * 17_000_000
    for piece in (long[:9_000_000], long[9_000_000:]):
        statements.long_data(prepared.id, 0, piece.encode())
    assert statements.execute(prepared.id, [binary_text("")], sent=[0]).sequence == [1, 2, 3, 4, 5]
    quotes = "'" * 9_000_000  # twice as long as a literal
    assert statements.execute(prepared.id, [binary_text(quotes)]).sequence == [1, 2, 3, 4, 5]
    assert statements.execute(prepared.id, [binary_text(long)]).sequence == [2, 3, 4, 5, 6]


@pytest.mark.one_server
def test_20_megabytes_into_a_table_and_back(raw: MakeRaw) -> None:
    client = raw(database="legacy")
    assert client.ask("CREATE TABLE wide (a INT PRIMARY KEY, b LONGBLOB)").kind == "ok"
    try:
        text = bytes(range(256)) * 80_000
        assert client.ask(b"INSERT INTO wide VALUES (1, x'" + text.hex().encode() + b"')").affected == 1
        assert client.ask("SELECT 0x41, b FROM wide").rows == [(b"A", text)]
        assert client.ask("SELECT b, 0x41 FROM wide").rows == [(text, b"A")]
    finally:
        client.ask("DROP TABLE wide")
