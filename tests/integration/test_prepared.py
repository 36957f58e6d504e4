"""The life of prepared statements: their commands, errors, cursors, connections that change under them."""

from __future__ import annotations

import struct

import pytest

from tests.integration import binary as b
from tests.integration import raw as wire
from tests.integration.binary import Answer, Binary, Prepared
from tests.integration.fixtures import Connect, MakeOwn, MakeRaw, Things, make_id, shard_of
from tests.integration.raw import IN_TRANS, Raw, command, packet
from tests.integration.replies import column_name
from tests.support.demo import Demo
from tests.support.waiting import wait_until

CURSOR, LAST_ROW = 0x40, 0x80
PS_MULTI_RESULTS = 1 << 18


@pytest.fixture
def client(raw: MakeRaw) -> Binary:
    """On the database that is not sharded."""
    return Binary(raw(database="legacy"))


@pytest.fixture
def shards(raw: MakeRaw) -> Binary:
    """On the sharded database."""
    return Binary(raw())


def refused(found: Prepared | Answer) -> tuple[int, str]:
    """Code and SQLSTATE of an error."""
    assert isinstance(found, Answer), found
    assert found.kind == "err", found
    return found.code, found.payload[4:9].decode()


def direct(demo: Demo) -> Raw:
    host = demo.masters[0]
    made = Raw(host.host, host.port)
    assert made.login(host.user, host.password, "legacy").kind == "ok"
    return made


def test_prepare_is_the_servers(demo: Demo, client: Binary) -> None:
    """Numbers of parameters and columns, definitions and errors are the server's own."""
    with direct(demo) as plain:
        server = Binary(plain)
        for side in (server, client):
            assert side.raw.ask("SET NAMES utf8mb4").kind == "ok"
        for sql in (
            "SELECT * FROM customers WHERE id = ? AND name LIKE ?",
            "SELECT ?, id + ?, name FROM customers LIMIT ?",
            "INSERT INTO customers (name, email, city) VALUES (?, ?, ?)",
            "UPDATE customers SET name = ? WHERE id = ?",
            "SET @a = ?",
            "SELECT 1",
            "SHOW TABLES",
            "DO SLEEP(?)",
            "SELECT 'ä', \"?\", `name` /* ? */ FROM customers -- ?",
        ):
            ours, theirs = client.statement(sql), server.statement(sql)
            ours.id = theirs.id
            assert ours == theirs, sql
        for sql in (
            "SELECT * FROM nowhere",
            "SELECT nope FROM customers",
            "SELEC ?",
            "",
            "SELECT ?; SELECT ?",
            "SELECT * FROM customers WHERE id = ? GROUP",
            "INSERT INTO customers (nope) VALUES (?)",
            "CALL no_such_procedure(?)",
        ):
            ours_, theirs_ = client.run(sql, b.integer(1)), server.run(sql, b.integer(1))
            assert (ours_.code, ours_.message) == (theirs_.code, theirs_.message), sql


def test_errors_of_the_commands(client: Binary, flavour: str) -> None:
    """1243 for what is not there; what is wrong with an EXECUTE; the connection goes on."""
    for code in (b.EXECUTE, b.RESET, b.FETCH):
        client.raw.write(command(code, struct.pack("<IBI", 99, 0, 1)))
        assert refused(client.answer()) == (1243, "HY000")
    client.raw.write(command(b.EXECUTE, b"\x01"))
    assert refused(client.answer()) == (1835, "HY000")
    client.close(99)
    client.long_data(99, 0, b"x")
    statement = client.statement("SELECT ?, ?")
    malformed = (1210, "HY000") if flavour == "mariadb" else (1835, "HY000")
    for parameters in ([], [b.text("a")]):
        assert refused(client.execute(statement.id, parameters)) == malformed
    assert refused(client.execute(statement.id, [b.text("a")] * 2, bound=False)) == (1210, "HY000")
    nothing = client.statement("SELECT ?, ?")
    assert client.execute(nothing.id, [b.NOTHING] * 2, bound=False).rows == [b"\x00\x0c"]
    assert refused(client.fetch(statement.id, 1)) == (1421, "HY000")
    client.close(statement.id)
    assert refused(client.execute(statement.id, [b.NOTHING] * 2)) == (1243, "HY000")
    assert client.raw.ping().kind == "ok"


def test_the_statement_prepared_last(client: Binary, flavour: str) -> None:
    """MariaDB's connectors send EXECUTE of statement -1 right behind PREPARE."""
    latest = 0xFFFFFFFF
    sent = command(b.PREPARE, b"SELECT ? + 1") + client.execute_packet(latest, [b.integer(6)])
    client.raw.write(sent)
    assert isinstance(client.read_prepared(), Prepared)
    if flavour != "mariadb":
        assert refused(client.answer()) == (1243, "HY000")
        return
    assert len(client.answer().rows) == 1
    client.raw.write(command(b.PREPARE, b"SELEKT ?") + client.execute_packet(latest, [b.integer(6)]))
    assert refused(client.read_prepared()) == (1064, "42000")
    assert refused(client.answer()) == (1243, "HY000")


def test_types_are_remembered(client: Binary) -> None:
    """new-params-bound 0: those that were sent last, whichever connection executes."""
    statement = client.statement("SELECT ? = '5', HEX(?)")
    assert client.execute(statement.id, [b.integer(5), b.text("ä")]).rows
    again = client.execute(statement.id, [b.integer(6), b.text("ö")], bound=False)
    assert again.rows[0].endswith(b"\x04C3B6")
    changed = client.execute(statement.id, [b.text("5"), b.integer(255)])
    assert changed.rows[0].endswith(b"\x02FF")
    last = client.execute(statement.id, [b.text("7"), b.integer(16)], bound=False)
    assert last.rows[0].endswith(b"\x0210")


@pytest.mark.parametrize("sharded", [False, True])
def test_long_data(client: Binary, shards: Binary, sharded: bool) -> None:
    """In pieces, empty, forgotten by RESET, and for a parameter that is not there."""
    side = shards if sharded else client
    table = "pins" if sharded else "customers"
    statement = side.statement(f"SELECT ?, LENGTH(?) FROM {table} WHERE id = ?")
    key = make_id(0, 1, 1) if sharded else 1
    given = [b.text("plain", b.BLOB), b.text("", b.BLOB), b.integer(key)]
    for piece in (b"one ", b"", b"'two' \\ \0\xff", b"z" * 200_000):
        side.long_data(statement.id, 1, piece)
    answer = side.execute(statement.id, given, sent=[1])
    assert answer.rows[0][2:8] == b"\x05plain"
    assert int.from_bytes(answer.rows[0][8:12], "little") == 4 + 10 + 200_000
    assert int.from_bytes(side.execute(statement.id, given).rows[0][8:12], "little") == 0
    side.long_data(statement.id, 1, b"gone")
    assert side.reset(statement.id).kind == "ok"
    assert int.from_bytes(side.execute(statement.id, given).rows[0][8:12], "little") == 0
    side.long_data(statement.id, 7, b"nobody's")
    assert refused(side.execute(statement.id, given)) == (1210, "HY000")
    assert side.execute(statement.id, given).kind == "rows"


def test_cursor(client: Binary, connect: Connect) -> None:
    """Rows come as they are fetched; the session may do other things meanwhile, also with the same text."""
    sql = "SELECT id FROM customers ORDER BY id LIMIT 5"
    first, second = client.statement(sql), client.statement(sql)
    opened = client.execute(first.id, flags=1)
    assert (opened.status & CURSOR, opened.rows) == (CURSOR, [])
    two = client.fetch(first.id, 2)
    assert [row[2] for row in two.rows] == [1, 2]
    assert client.execute(second.id, flags=1).status & CURSOR
    assert [row[2] for row in client.fetch(second.id, 1).rows] == [1]
    assert len(client.execute(client.statement(sql).id).rows) == 5
    assert client.raw.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    rest = client.fetch(first.id, 10)
    assert [row[2] for row in rest.rows] == [3, 4, 5]
    assert rest.status & LAST_ROW
    assert refused(client.fetch(first.id, 1)) == (1421, "HY000")
    assert client.reset(second.id).kind == "ok"
    assert refused(client.fetch(second.id, 1)) == (1421, "HY000")
    assert client.execute(first.id, flags=1).status & CURSOR
    assert client.execute(first.id, flags=1).status & CURSOR
    assert len(client.fetch(first.id, 3).rows) == 3
    client.close(first.id)
    assert client.raw.ping().kind == "ok"


def test_a_cursor_keeps_its_connection_only_while_it_is_open(own: MakeOwn, demo: Demo) -> None:
    proxy = own()
    address = demo.masters[0].address

    def wait_busy(count: int) -> None:
        wait_until(lambda: proxy.host_state(address)["busy"] == count, f"{count} busy connections")

    client = Binary(proxy.raw(database="legacy"))
    for end in ("close", "reset", "last row"):
        statement = client.statement("SELECT id FROM customers")
        client.execute(statement.id, flags=1)
        wait_busy(1)
        client.raw.ping()
        wait_busy(1)  # still; and none of the proxy's own questions, which take one for a moment
        if end == "close":
            client.close(statement.id)
        elif end == "reset":
            client.reset(statement.id)
        else:
            while not client.fetch(statement.id, 25).status & LAST_ROW:
                pass
        wait_busy(0)


def test_over_few_connections(own: MakeOwn) -> None:
    """Many clients with many statements share two connections, each with its own settings."""
    proxy = own({"backends": {"max_connections": 2}})
    clients = [Binary(proxy.raw(database="legacy")) for _ in range(6)]
    made = []
    for number, one in enumerate(clients):
        one.raw.ask(f"SET time_zone = '+0{number}:00', @mine = {number}")
        made.append([one.statement(f"SELECT {text}, @@time_zone, @mine, ?") for text in ("1", "'x'")])
    for turn in range(4):
        for number, one in enumerate(clients):
            for statement in made[number]:
                rows = one.execute(statement.id, [b.text(f"{turn}/{number}")]).rows
                assert f"+0{number}:00".encode() in rows[0], rows
                assert rows[0].endswith(f"{turn}/{number}".encode())


def test_what_was_prepared_goes_with_the_connection(own: MakeOwn, demo: Demo) -> None:
    """A server connection that is killed: the statement is prepared again on another."""
    proxy = own()
    client = Binary(proxy.raw(database="legacy"))
    statement = client.statement("SELECT CONNECTION_ID() * 0 + ?, id FROM customers WHERE id = ?")
    assert client.execute(statement.id, [b.integer(1), b.integer(2)]).rows
    with demo.direct() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT id FROM information_schema.processlist WHERE user = 'shardgate'")
        for (number,) in cursor.fetchall():
            cursor.execute(f"KILL {number}")
    proxy.wait_idle(clients=1)
    answers = [client.execute(statement.id, [b.integer(1), b.integer(2)]) for _ in range(2)]
    assert answers[-1].kind == "rows"


def test_the_table_changes(client: Binary) -> None:
    """After DDL the next EXECUTE shows the table as it is."""
    ask = client.raw.ask
    assert ask("CREATE TABLE changing (id INT, a INT)").kind == "ok"
    try:
        ask("INSERT INTO changing VALUES (1, 2)")
        statement = client.statement("SELECT * FROM changing WHERE id = ?")
        assert client.execute(statement.id, [b.integer(1)]).names == ["id", "a"]
        assert ask("ALTER TABLE changing ADD b VARCHAR(9) DEFAULT 'new'").kind == "ok"
        answer = client.execute(statement.id, [b.integer(1)])
        assert answer.names == ["id", "a", "b"]
        assert answer.rows[0].endswith(b"\x03new")
        ask("DROP TABLE changing")
        assert refused(client.execute(statement.id, [b.integer(1)])) == (1146, "42S02")
        ask("CREATE TABLE changing (id BIGINT PRIMARY KEY)")
        assert client.execute(statement.id, [b.integer(1)]).names == ["id"]
    finally:
        ask("DROP TABLE changing")


@pytest.mark.parametrize("begin", ["SET autocommit = 0", "BEGIN", "SET autocommit = 0, sql_mode = ''"])
def test_prepared_before_the_transaction(own: MakeOwn, demo: Demo, begin: str) -> None:
    """To prepare it anew, on the connection that the transaction has, does not end the transaction."""
    proxy = own({})
    client, other = Binary(proxy.raw(database="legacy")), proxy.raw(database="legacy")
    ask = client.raw.ask
    count = ask("SELECT COUNT(*) FROM customers").value
    statement = client.statement(
        "INSERT INTO customers (name, email, city, created) VALUES ('p', ?, 'x', NOW())"
    )
    assert other.ask("BEGIN").kind == "ok"  # and takes the connection that has the statement
    assert other.ask("SELECT COUNT(*) FROM customers").value == count
    assert ask(begin).kind == "ok"
    assert (
        ask("INSERT INTO customers (name, email, city, created) VALUES ('t', 'te', 'x', NOW())").kind == "ok"
    )
    assert client.execute(statement.id, [b.text("prepared")]).kind == "ok"
    assert ask("ROLLBACK").kind == "ok"
    assert ask("SELECT COUNT(*) FROM customers").value == count
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM legacy.customers")
        assert cursor.fetchall() == ((int(count or 0),),)


def test_settings_of_prepare(client: Binary, flavour: str) -> None:
    """A statement means what it meant when it was prepared: in another database, under another sql_mode."""
    ask = client.raw.ask
    statement = client.statement('SELECT "a" || ?, COUNT(*) FROM customers')
    assert client.execute(statement.id, [b.integer(0)]).kind == "rows"
    ask("SET sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'")
    assert client.raw.do(wire.INIT_DB, b"demo").kind == "ok"
    found = client.execute(statement.id, [b.integer(0)])
    # MySQL might read it again, as the session reads texts now
    assert (found.kind, found.code) == (("rows", 0) if flavour == "mariadb" else ("err", 1615))
    ask("SET sql_mode = ''")
    assert client.execute(statement.id, [b.integer(0)]).kind == "rows"
    assert refused(client.prepare("SELECT * FROM customers")) == (1146, "42S02")


def test_transactions(client: Binary, shards: Binary, things: Things) -> None:
    """Status flags and roll-backs, whether on one host or on shards."""
    user = things.insert("users", {"name": "old"})
    for side, sql, key in (
        (client, "UPDATE customers SET city = ? WHERE id = ?", 1),
        (shards, "UPDATE users SET data = ? WHERE id = ?", user),
    ):
        read = side.statement(sql.replace("UPDATE", "SELECT * FROM").partition(" SET")[0] + " WHERE id = ?")
        before = side.execute(read.id, [b.integer(key)]).rows
        assert side.raw.ask("BEGIN").kind == "ok"
        assert side.run("SELECT ?", b.integer(1)).status & IN_TRANS
        changed = side.run(sql, b.text('{"name": "new"}'), b.integer(key))
        assert changed.ok.status & IN_TRANS
        assert changed.ok.affected == 1
        assert side.execute(read.id, [b.integer(key)]).rows != before
        assert side.run("ROLLBACK").kind == "ok"
        after = side.execute(read.id, [b.integer(key)])
        assert (after.rows, after.status & IN_TRANS) == (before, 0)


def test_insert_ids(shards: Binary, things: Things) -> None:
    """Composed in the OK packet and in LAST_INSERT_ID(), colocated by a JSON parameter."""
    user = shards.run(
        "INSERT INTO users (data) VALUES (?)", b.text('{"q": "it\'s \\\\ \\"x\\""}')
    ).ok.insert_id
    things.forget_later("users", "id", user)
    last = shards.run("SELECT LAST_INSERT_ID()").rows[0]
    assert int.from_bytes(last[2:], "little") == user
    board = shards.run("INSERT INTO boards (data) VALUES (?)", b.text(f'{{"user_id": {user}}}')).ok.insert_id
    things.forget_later("boards", "id", board)
    assert shard_of(board) == shard_of(user)
    row = shards.run("SELECT data FROM users WHERE id = ?", b.integer(user)).rows[0]
    assert row[3:] == b'{"q": "it\'s \\\\ \\"x\\""}'


def test_an_id_within_the_values(shards: Binary, things: Things) -> None:
    """Of a row whose `id` is a parameter: what is given; 0 where the server makes it."""
    insert = "INSERT INTO pins (id, data) VALUES (?, JSON_OBJECT('i', id, 'text', ?))"
    given = make_id(9, 1, 790_000)
    for id, shown in ((b.integer(given), given), (b.text(str(given + 1)), given + 1), (b.integer(0), 0)):
        made = shards.run(insert, id, b.text("x")).ok.insert_id
        things.forget_later("pins", "id", made)
        row = shards.run(
            "SELECT CAST(JSON_VALUE(data, '$.i') AS UNSIGNED) FROM pins WHERE id = ?", b.integer(made)
        )
        assert int.from_bytes(row.rows[0][2:], "little") == shown


def test_ids_of_all_forms(shards: Binary, things: Things) -> None:
    """An ID as integer, text, DECIMAL or a double that is whole; what is none of these finds nothing."""
    users = [things.insert("users", {"n": n}) for n in range(3)]
    one = shards.statement("SELECT id FROM users WHERE id = ?")
    exact = [b.integer(users[0]), b.integer(users[0], unsigned=True), b.text(str(users[0]))]
    exact += [b.text(str(users[0]), b.NEWDECIMAL)] + [b.double(users[0])] * (users[0] < 1 << 53)
    for parameter in exact:
        rows = shards.execute(one.id, [parameter]).rows
        assert [int.from_bytes(row[2:], "little") for row in rows] == [users[0]], parameter
    for parameter in (b.NOTHING, b.integer(-5), b.text("x"), b.double(0.5), b.text("", b.BLOB)):
        answer = shards.execute(one.id, [parameter])
        assert (answer.kind, answer.rows) == ("rows", []), parameter
    several = shards.statement("SELECT id FROM users WHERE id IN (?, ?, ?) ORDER BY id DESC LIMIT ?, ?")
    given = [*(b.integer(user) for user in users), b.text("1"), b.double(1.0)]
    rows = shards.execute(several.id, given).rows
    assert [int.from_bytes(row[2:], "little") for row in rows] == [sorted(users)[1]]
    assert refused(shards.execute(several.id, [*given[:3], b.double(0.5), b.integer(1)])) == (1210, "HY000")
    rows = shards.execute(several.id, [*given[:3], b.NOTHING, b.integer(1)]).rows  # NULL is 0 there
    assert [int.from_bytes(row[2:], "little") for row in rows] == [max(users)]


def test_prepare_on_shards(shards: Binary) -> None:
    """The true numbers and columns, the server's errors, refusals at PREPARE."""
    found = shards.statement("SELECT *, ? AS x FROM pins WHERE id = ? AND ts > ? ORDER BY id LIMIT ?")
    assert (found.parameters, found.columns) == (4, 4)
    names = [column_name(one) for one in found.column_definitions]
    assert names == ["id", "data", "ts", "x"]
    assert found.column_definitions[0][-6] == b.LONGLONG
    for sql, numbers in (
        ("INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES (?, ?, ?)", (3, 0)),
        ("INSERT INTO pins (id, data) VALUES (?, ?), (?, ?)", (4, 0)),
        ("UPDATE pins SET data = ? WHERE id IN (?, ?)", (3, 0)),
        ("DELETE FROM pins WHERE id = ?", (1, 0)),
        ("SELECT COUNT(*), MAX(id) FROM pins WHERE id BETWEEN ? AND ?", (2, 2)),
        ("SELECT * FROM email_to_user WHERE email = ?", (1, 2)),
        ("SELECT * FROM usernames WHERE username = ?", (1, 2)),
        ("SHOW TABLES", (0, 1)),
        ("SHOW SHARDS", (0, 19)),
        ("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?", (1, 1)),
    ):
        found = shards.statement(sql)
        assert (found.parameters, found.columns) == numbers, sql
    for sql, code in (
        ("SELECT nope FROM pins WHERE id = ?", 1054),
        ("SELECT * FROM nowhere WHERE id = ?", 1146),
        ("SELEC ?", 1064),
        ("INSERT INTO pins (nope) VALUES (?)", 1054),
    ):
        assert refused(shards.prepare(sql))[0] == code, sql
    same = shards.statement("UPDATE pins SET id = ? WHERE id = ?")  # ORMs write this with one ID twice
    assert shards.execute(same.id, [b.integer(1), b.integer(1)]).kind == "ok"
    assert refused(shards.execute(same.id, [b.integer(2), b.integer(1)]))[0] == 1105
    tables = shards.run(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = ?", b.text("demo")
    )
    assert b"\x00\x00\x04pins" in tables.rows


def test_pipelined(client: Binary) -> None:
    """Commands without an answer among others, all in one write."""
    first = client.statement("SELECT ?")
    write = client.execute_packet(first.id, [b.text("a")])
    write += command(b.CLOSE, struct.pack("<I", first.id)) + wire.query("SELECT 2")
    write += packet(bytes([b.PREPARE]) + b"SELECT ? + 1") + command(wire.PING)
    client.raw.write(write)
    assert client.answer().rows == [b"\x00\x00\x01a"]
    assert client.raw.reply().value == b"2"
    assert isinstance(client.read_prepared(), Prepared)
    assert client.raw.reply().kind == "ok"


def test_reset_connection_forgets(client: Binary) -> None:
    statement = client.statement("SELECT id FROM customers")
    assert client.execute(statement.id, flags=1).status & CURSOR
    assert client.raw.do(wire.RESET_CONNECTION).kind == "ok"
    assert refused(client.execute(statement.id)) == (1243, "HY000")


def test_limits_and_roles(own: MakeOwn) -> None:
    """1461 past the limit of a client; a reader may not prepare writes."""
    proxy = own({"limits": {"prepared_statements": 3}})
    client = Binary(proxy.raw(database="legacy"))
    made = [client.statement("SELECT ?") for _ in range(3)]
    assert refused(client.prepare("SELECT ?")) == (1461, "42000")
    client.close(made[0].id)
    assert isinstance(client.prepare("SELECT ?"), Prepared)
    reader = proxy.raw(login=False)
    assert reader.login("reader", "reader", "demo").kind == "ok"
    for sql in (
        "DELETE FROM pins WHERE id = ?",
        "UPDATE legacy.customers SET name = ? WHERE id = ?",
        "DROP TABLE legacy.x",
    ):
        assert refused(Binary(reader).prepare(sql)) == (1142, "42000"), sql
    assert Binary(reader).run("SELECT ? FROM pins WHERE id = ?", b.integer(1), b.integer(5)).kind == "rows"


def test_large_values(client: Binary) -> None:
    """Parameters and a row of more than one packet (16 MB), as far as the server takes them."""
    size = 18 << 20
    allowed = int(client.raw.ask("SELECT @@global.max_allowed_packet").value or 0)
    statement = client.statement("SELECT LENGTH(?), ?")
    half = b"x" * (size // 2)
    if allowed > size:
        answer = client.execute(statement.id, [b.text(half, b.BLOB), b.text(half, b.BLOB)])
        assert answer.rows[0].count(b"x") == len(half)
    twice = client.statement("SELECT ?, ?")
    sent = b"y" * (9 << 20)
    for parameter in (0, 1):
        client.long_data(twice.id, parameter, sent)
    answer = client.execute(twice.id, [b.text("", b.BLOB)] * 2, sent=[0, 1])
    assert answer.rows[0].count(b"y") == 2 * len(sent)
    assert client.raw.ping().kind == "ok"


def test_gathered_and_written_everywhere(shards: Binary, things: Things) -> None:
    """Statements over gathered rows, joins, reference tables and INSERT … SELECT, all with parameters."""
    user = things.insert("users", {"n": 1})
    board = things.insert("boards", {"user_id": user, "title": "it's ?"})
    pin = things.insert("pins", {"board_id": board, "k": 5})
    things.map("board_has_pins", board, pin)
    joined = shards.statement(
        "SELECT p.id, m.sequence, ? AS x FROM board_has_pins m JOIN pins p ON p.id = m.pin_id "
        "WHERE m.board_id = ? ORDER BY m.sequence DESC LIMIT ?"
    )
    assert (joined.parameters, joined.columns) == (3, 3)
    rows = shards.execute(joined.id, [b.text("?'"), b.integer(board), b.integer(5)]).rows
    assert [(int.from_bytes(row[2:10], "little"), row[-3:]) for row in rows] == [(pin, b"\x02?'")]
    grouped = shards.statement(
        "SELECT COUNT(*) AS n, MAX(data) AS d FROM boards WHERE data LIKE ? GROUP BY ts HAVING n > ? LIMIT ?"
    )
    assert (grouped.parameters, grouped.columns) == (3, 2)
    rows = shards.execute(grouped.id, [b.text("%it's ?%"), b.integer(0), b.integer(9)]).rows
    assert [int.from_bytes(row[2:10], "little") for row in rows] == [1]
    written = shards.statement("INSERT INTO countries (code, name) VALUES (?, ?)")
    assert written.parameters == 2
    try:
        assert shards.execute(written.id, [b.text("??"), b.text("Q'")]).ok.affected == 1
        found = shards.run("SELECT name FROM countries WHERE code = ?", b.text("??"))
        assert found.rows == [b"\x00\x00\x02Q'"]
    finally:
        shards.run("DELETE FROM countries WHERE code = ?", b.text("??"))
    copied = shards.run("INSERT INTO users (data) SELECT data FROM users WHERE id = ?", b.integer(user))
    assert copied.kind == "ok", copied
    things.forget_later("users", "id", copied.ok.insert_id)


def test_a_procedure_with_a_cursor_of_its_own(client: Binary) -> None:
    """EXECUTE asks for a cursor, but a CALL opens none: its results come, and then the end."""
    client.raw.ask("DROP PROCEDURE IF EXISTS legacy.test_own_cursor")
    made = client.raw.ask(
        "CREATE PROCEDURE legacy.test_own_cursor() BEGIN DECLARE c CURSOR FOR SELECT 1; OPEN c; CLOSE c;"
        " SELECT 1; SELECT 2; END"
    )
    assert made.kind == "ok", made
    statement = client.statement("CALL legacy.test_own_cursor()")
    answer = client.execute(statement.id, flags=1)
    assert (answer.kind, len(answer.rows), answer.status & 8) == ("rows", 1, 8)
    answer = client.answer()
    assert (answer.kind, len(answer.rows), answer.status & 8) == ("rows", 1, 8)
    assert client.answer().kind == "ok"
    assert client.raw.ask("SELECT 1").value == b"1"
    client.raw.ask("DROP PROCEDURE legacy.test_own_cursor")


def test_a_procedure_with_out_parameters(demo: Demo, raw: MakeRaw, monkeypatch: pytest.MonkeyPatch) -> None:
    """MySQL does not say behind their values that one more reply follows: the end is found all the same."""
    monkeypatch.setattr("tests.integration.raw.CAPABILITIES", wire.CAPABILITIES | PS_MULTI_RESULTS)
    client = Binary(raw(database="legacy"))
    client.raw.ask("DROP PROCEDURE IF EXISTS test_out")
    made = client.raw.ask(
        "CREATE PROCEDURE test_out(IN n INT, OUT a INT, INOUT b VARCHAR(10))"
        " BEGIN IF n THEN SELECT n; END IF; SET a = n + 1, b = CONCAT(b, 'z'); END"
    )
    assert made.kind == "ok", made
    try:
        with direct(demo) as plain:
            heard = []
            for side in (Binary(plain), client):
                statement = side.statement("CALL test_out(?, ?, ?)")
                side.raw.heard.clear()
                for n in (0, 3, 0):
                    answer = side.execute(statement.id, [b.integer(n), b.NOTHING, b.text("y")])
                    while answer.kind == "rows":
                        answer = side.answer()
                    assert answer.kind == "ok"
                heard.append([payload for _, payload in side.raw.heard])
        assert heard[0] == heard[1]
        assert client.raw.ask("SELECT 1").value == b"1"
    finally:
        client.raw.ask("DROP PROCEDURE test_out")


def test_the_nul_of_c_ends_a_statement(client: Binary, shards: Binary) -> None:
    for side, table in ((client, "customers"), (shards, "users")):
        assert side.raw.ask(f"SELECT COUNT(*) FROM {table}\0").kind == "rows"
        assert side.raw.ask(f"SELECT COUNT(*) FROM {table}\0\0").code == 1064
        answer = side.run(f"SELECT COUNT(*) FROM {table} WHERE id > ?\0", b.integer(0))
        assert (answer.kind, len(answer.rows)) == ("rows", 1)


def test_an_ok_within_a_transaction_says_so(raw: MakeRaw) -> None:
    """Also when the statement has no table, and no host takes part in the transaction yet."""
    client = raw()
    assert client.ask("BEGIN").status & IN_TRANS
    binary = Binary(client)
    for statement in ("DO 1", "SELECT @@sort_buffer_size INTO @c", "SELECT 1"):
        assert binary.run(statement).status & IN_TRANS, statement
        assert client.ask(statement).status & IN_TRANS, statement
    assert client.ask("ROLLBACK").kind == "ok"
    assert not binary.run("DO 1").status & IN_TRANS
