"""Statements over rows gathered from the shards, on real servers: the session around them, and their ends."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from proxy.execute.gathering.scratch_host import drop, left_behind, ours
from tests.integration.accounts import flags
from tests.integration.binary import Binary, integer
from tests.integration.fixtures import Connect, MakeOwn, MakeRaw, Things
from tests.integration.own import statements_like
from tests.integration.raw import Raw, query
from tests.integration.replies import column_name
from tests.support.demo import Demo
from tests.support.servers import LocalServer
from tests.support.waiting import wait_until

COUNT = "SELECT COUNT(DISTINCT id), COUNT(*) FROM pins"
SLOW = "SELECT DISTINCT SLEEP(30) FROM pins"


@pytest.fixture
def client(raw: MakeRaw) -> Raw:
    return raw()


def route(client: Raw, sql: str) -> list[tuple[str, str]]:
    rows = client.ask("EXPLAIN ROUTE " + sql).rows
    return [((row[0] or b"").decode(), (row[1] or b"").decode()) for row in rows]


def test_the_session_goes_on(client: Raw, demo: Demo) -> None:
    """Status flags, ROW_COUNT(), FOUND_ROWS(), warnings and errors are as after any SELECT."""
    for _ in range(3):
        reply = client.ask("SELECT DISTINCT user_id FROM user_likes_pins LIMIT 3")
        assert len(reply.rows) == 3
        assert reply.in_order
        assert flags(reply) == (True, False)
        assert client.ask("SELECT FOUND_ROWS(), ROW_COUNT()").rows == [(b"3", b"-1")]
    assert client.ask("SELECT SQL_CALC_FOUND_ROWS DISTINCT id FROM pins LIMIT 3").kind == "rows"
    assert client.ask("SELECT FOUND_ROWS()").value == b"1800"
    warned = client.ask("SELECT DISTINCT 1 + 'x' FROM pins")
    assert warned.warnings
    shown = client.ask("SHOW WARNINGS").rows
    assert shown
    assert shown[0][1] == b"1292"
    for sql, code in (
        ("SELECT DISTINCT nosuch FROM pins", 1054),
        ("SELECT id FROM pins, boards", 1052),
        ("SELECT a.id FROM pins a JOIN pins a", 1066),
        ("SELECT DISTINCT id FROM pins WHERE id = (SELECT id FROM users)", 1242),
    ):
        assert client.ask(sql).code == code, sql
        assert client.ask("SHOW WARNINGS").rows[0][1] == str(code).encode()
        assert client.ask(COUNT).rows == [(b"1800", b"1800")]
    assert not any(row[0] == b"shardgate_scratch" for row in client.ask("SHOW DATABASES").rows)


def test_an_error_of_a_piece_leaves_no_settings_behind(client: Raw, raw: MakeRaw) -> None:
    """The connection had the session's settings when the statement was judged, and nobody else gets them."""
    client.ask("SET sql_mode = 'ANSI_QUOTES', sql_select_limit = 1")
    failing = (
        "SELECT p.data FROM pins p JOIN users u ON u.ts > p.ts WHERE 18446744073709551615 + (p.id > 0) > 5"
    )
    for _ in range(3):
        assert client.ask(failing).code == 1690
    other = raw()
    for sql in ('SELECT DISTINCT "a" FROM pins p JOIN users u ON u.ts <> p.ts', COUNT):
        assert other.ask(sql).rows in ([(b"a",)], [(b"1800", b"1800")])


def test_errors_name_the_clients_tables(client: Raw, flavour: str) -> None:
    """Not those of the copies."""
    for sql in (
        "SELECT DISTINCT nosuch(id) FROM pins, users",
        "SELECT DISTINCT p.data FROM pins p JOIN users ON p.ts = users.ts ORDER BY users.id",
        "SELECT users.ts, p.id FROM pins p JOIN users ON p.ts = users.ts GROUP BY users.ts",
        "TABLE users UNION TABLE boards ORDER BY nosuch",
    ):
        client.ask("SET sql_mode = 'ONLY_FULL_GROUP_BY'")
        reply = client.ask(sql)
        if reply.kind == "rows":
            assert flavour == "mariadb", sql
            continue
        assert "scratch" not in reply.message, (sql, reply)
        assert all(b"scratch" not in (row[2] or b"") for row in client.ask("SHOW WARNINGS").rows)


def test_tables_that_were_left_behind(client: Raw, demo: Demo) -> None:
    """Those of gathers are found by their age, and no others."""
    client.ask(COUNT)  # makes the database
    with demo.direct() as connection, connection.cursor() as cursor:
        database = "shardgate_scratch"
        cursor.execute(left_behind(-60).decode())
        others = {name for (name,) in cursor.fetchall()}  # of proxies that other tests have killed
        for name in ("g1_0123456789abcdef", "mine", "g1"):
            cursor.execute(f"CREATE TABLE {database}.{name} (id INT)")
        cursor.execute(left_behind(60).decode())
        assert not ours([name for (name,) in cursor.fetchall() if name not in others])
        cursor.execute(left_behind(-60).decode())
        names = ours([name for (name,) in cursor.fetchall() if name not in others])
        assert names == ["g1_0123456789abcdef"]
        cursor.execute(drop(names).decode())
        cursor.execute(f"SHOW TABLES FROM {database}")
        assert {"mine", "g1"} <= {name for (name,) in cursor.fetchall()}
        cursor.execute(f"DROP TABLE {database}.mine, {database}.g1")


def test_user_variables(client: Raw) -> None:
    client.ask("SET @n = 10, @who = 'x'")
    rows = client.ask("SELECT @n := @n + 1, @who FROM (SELECT DISTINCT id FROM users) u LIMIT 2").rows
    assert rows == [(b"11", b"x"), (b"12", b"x")]
    assert client.ask("SELECT @n").value == b"12"
    reply = client.ask("SELECT COUNT(DISTINCT id), 'y' INTO @n, @who FROM pins")
    assert (reply.kind, reply.affected) == ("ok", 1)
    assert client.ask("SELECT @n, @who").rows == [(b"1800", b"y")]


def test_settings_of_the_session(client: Raw) -> None:
    """The statement runs with them; the copies are made without them."""
    client.ask("SET time_zone = '+05:00', sql_mode = 'ANSI_QUOTES', sql_select_limit = 7")
    id = int(client.ask("SELECT id FROM users ORDER BY id").value or 0)
    gathered = client.ask(f"SELECT DISTINCT ts FROM users WHERE id IN ({id}, 5) ORDER BY ts")
    assert gathered.rows == client.ask(f"SELECT ts FROM users WHERE id = {id}").rows
    assert client.ask('SELECT COUNT(DISTINCT "id") FROM pins').value == b"1800"
    assert len(client.ask("SELECT DISTINCT id FROM pins").rows) == 7
    client.ask("SET NAMES latin1")
    assert client.ask("SELECT DISTINCT 'é' FROM pins".encode("latin-1")).value == b"\xe9"
    client.ask("SET NAMES utf8mb4")
    client.ask("SET sql_select_limit = DEFAULT")
    texts = client.ask("SELECT data FROM users ORDER BY id").rows
    client.ask("SET character_set_results = latin1")
    assert client.ask("SELECT COUNT(DISTINCT HEX(data)) FROM users").value == b"%d" % len(set(texts))


@pytest.mark.parametrize("form", ["STATEMENT", "ROW", "MIXED"])
def test_a_session_s_binlog_format(client: Raw, form: str) -> None:
    """No server changes it while its connection has temporary tables, and these have the copies."""
    assert client.ask(f"SET binlog_format = {form}").kind == "ok"
    for _ in range(2):
        assert client.ask("SELECT COUNT(DISTINCT id) FROM pins").value == b"1800"
    assert client.ask("SELECT @@binlog_format").value == form.encode()


def test_connections_are_given_back_where_each_must_be_kept(own: MakeOwn) -> None:
    """With `profiling` on each connection of a statement is the session's; it keeps one of a host."""
    proxy = own({})
    other, client = proxy.raw(), proxy.raw()

    def busy() -> int:
        pools = other.ask("SHOW POOLS")
        return sum(int(row[pools.columns.index("Busy")] or 0) for row in pools.rows)

    assert client.ask("SET profiling = 1").kind == "ok"
    for sql in (
        "SELECT COUNT(*) FROM users u JOIN pins p ON p.ts = u.ts AND EXP(u.id + 1000) > 1",
        "SELECT COUNT(*) FROM users u JOIN pins p ON p.ts = u.ts",
        "SELECT COUNT(DISTINCT id) FROM pins",
    ):
        client.ask(sql)
        wait_until(lambda: busy() <= 2, "no more connections than hosts")
    client.close()
    wait_until(lambda: busy() == 0, "no connection is busy")


def test_a_transaction_sees_its_own_rows(client: Raw, raw: MakeRaw, things: Things) -> None:
    user = things.insert("users", {"n": 1})
    other = raw()
    before = int(other.ask("SELECT COUNT(DISTINCT id) FROM users").value or 0)
    client.ask("BEGIN")
    client.ask(f"DELETE FROM users WHERE id = {user}")
    for _ in range(2):
        reply = client.ask("SELECT COUNT(DISTINCT id) FROM users")
        assert reply.value == b"%d" % (before - 1)
        assert flags(reply) == (True, True)
    assert other.ask("SELECT COUNT(DISTINCT id) FROM users").value == b"%d" % before
    assert client.ask("SELECT DISTINCT nosuch FROM users").code == 1054
    assert flags(client.ask("SELECT COUNT(DISTINCT id) FROM users")) == (True, True)
    assert flags(client.ask("ROLLBACK")) == (True, False)
    client.ask("START TRANSACTION READ ONLY")
    assert client.ask("SELECT COUNT(DISTINCT id) FROM users").value == b"%d" % before
    client.ask("COMMIT")
    client.ask("SET autocommit = 0")
    assert flags(client.ask("SELECT COUNT(DISTINCT id) FROM users")) == (False, True)
    assert flags(client.ask("ROLLBACK")) == (False, False)


def test_a_locking_read_locks_the_rows(client: Raw, raw: MakeRaw, things: Things) -> None:
    """On the shards, inside the transaction, until it ends."""
    ids = [things.insert("users", {"n": n}) for n in range(4)]
    listed = ", ".join(map(str, ids))
    other = raw()
    client.ask("BEGIN")
    locking = f"SELECT DISTINCT u.id FROM users u WHERE u.id IN ({listed}) ORDER BY u.id FOR UPDATE"
    assert [int(row[0] or 0) for row in client.ask(locking).rows] == sorted(ids)
    assert flags(client.ask(locking)) == (True, True)
    for id in ids:
        assert other.ask(f"SELECT id FROM users WHERE id = {id} FOR UPDATE NOWAIT").code in (1205, 3572)
    assert other.ask(f"{locking} NOWAIT").code in (1205, 3572)
    assert other.ask(f"{locking} SKIP LOCKED").rows == []
    assert len(other.ask(locking.removesuffix("FOR UPDATE")).rows) == 4
    assert client.ask("COMMIT").kind == "ok"
    assert len(other.ask(f"{locking} NOWAIT").rows) == 4
    reader = raw(login=False)
    reader.login("reader", "reader", "demo")
    assert reader.ask(locking).code == 1142


def test_set_transaction_is_used_up(client: Raw) -> None:
    """By the gathered statement that follows it."""
    client.ask("SET TRANSACTION READ ONLY")
    assert client.ask("SELECT COUNT(DISTINCT id) FROM users").value == b"300"
    assert client.ask("UPDATE users SET ts = ts WHERE id = 5").kind == "ok"
    id = int(client.ask("SELECT MIN(id) FROM users").value or 0)
    assert client.ask(f"UPDATE users SET ts = ts WHERE id = {id}").kind == "ok"


KINDS = """CREATE TABLE kinds (
    id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, f FLOAT, d DOUBLE, n DECIMAL(30,10), b BIT(12),
    t TINYINT UNSIGNED ZEROFILL, e ENUM('x','y''z') NOT NULL DEFAULT 'x', s SET('a','b'), c CHAR(4),
    v VARBINARY(9), l VARCHAR(9) CHARACTER SET latin1, g GEOMETRY, y YEAR, m TIME(3), w DATETIME(6), z DATE,
    p TIMESTAMP(6) NULL, j JSON, x INT GENERATED ALWAYS AS (k * 2 + 1) STORED, k INT CHECK (k > 0),
    o LONGBLOB, UNIQUE KEY (c), KEY (l, y), FULLTEXT KEY (l)) CHARACTER SET utf8mb4"""

ROWS = (
    """(1, 0.1, 0.1, 1.0000000001, b'101', 7, 'y''z', 'a,b', 'ab', x'00ff27', 'é''',
    ST_GeomFromText('POINT(1 2)'), 1999, '-12:34:56.789', '2012-10-28 01:30:00.123456', '2012-02-29',
    '2012-10-28 00:30:00.5', '{"a": [1, 2.50]}', DEFAULT, 5, x'')""",
    """(0, 16777217, -1e300, -1, NULL, NULL, 'x', '', '', '', '', NULL, 0, NULL, '0000-00-00', '2012-00-00',
    NULL, NULL, DEFAULT, NULL, REPEAT(x'5c270a00', 70000))""",
)


@pytest.fixture
def kinds(connect: Connect) -> Iterator[str]:
    """A table with the types whose texts do not say all."""
    with connect(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00'")
        cursor.execute(KINDS)
        for row in ROWS:
            cursor.execute("INSERT INTO kinds VALUES " + row)
        yield "legacy.kinds"
        cursor.execute("DROP TABLE kinds")


def test_every_type_arrives_as_it_is(kinds: str, client: Raw) -> None:
    stored = "f + 0e0, HEX(f + 0e0), d, b + 0, HEX(v), HEX(l), HEX(g), p, HEX(o)"
    for zone in ("+00:00", "SYSTEM", "+09:30"):
        client.ask(f"SET time_zone = '{zone}'")
        for columns in ("*", "kinds.*", stored, "x, k, id", "COUNT(*), MAX(e), MIN(y)"):
            plain = client.ask(f"SELECT {columns} FROM {kinds}" + (" ORDER BY id" * ("(*)" not in columns)))
            one = client.ask(
                f"SELECT {columns} FROM {kinds} WHERE (SELECT COUNT(*) FROM users) > 0"
                + (" ORDER BY id" * ("(*)" not in columns))
            )
            assert plain.kind == "rows", plain
            assert one.rows == plain.rows, columns
            assert one.columns == plain.columns


def first_board(client: Raw) -> int:
    return int(client.ask("SELECT board_id FROM board_has_pins ORDER BY board_id LIMIT 1").value or 0)


def test_limits(own: MakeOwn) -> None:
    """Errors that name the limit; the connection goes on."""
    users = [
        {"name": "demo", "password": "demo", "role": "admin"},
        {"name": "some", "password": "some", "role": "read", "scatter": {"limit": 400}},
        {"name": "none", "password": "none", "role": "read", "scatter": "deny"},
    ]
    proxy = own({"users": users, "limits": {"gather_rows": 1000, "gather_bytes": "20KB", "gathers": 1}})
    client = proxy.raw()
    for sql, name in (
        ("SELECT COUNT(DISTINCT id), STD(id) FROM pins", "gather_rows"),
        ("SELECT DISTINCT data FROM users", "gather_bytes"),
    ):
        reply = client.ask(sql)
        assert (reply.kind, reply.code, reply.sqlstate) == ("err", 1104, "42000"), reply
        assert name in reply.message
        client.ask("BEGIN")
        assert client.ask(sql).code == 1104
        assert flags(client.ask("SELECT COUNT(DISTINCT id) FROM users")) == (True, True)
        client.ask("COMMIT")
    some = proxy.raw(login=False)
    some.login("some", "some", "demo")
    assert some.ask("SELECT COUNT(DISTINCT id) FROM users").value == b"300"
    assert some.ask("SELECT COUNT(DISTINCT id) FROM boards").code == 1104
    none = proxy.raw(login=False)
    none.login("none", "none", "demo")
    reply = none.ask("SELECT COUNT(DISTINCT id) FROM users")
    assert reply.code == 1105
    assert "scatter" in reply.message
    joined = (
        "SELECT COUNT(*) FROM board_has_pins m JOIN pins p ON p.id = m.pin_id"
        f" WHERE m.board_id = {first_board(client)}"
    )
    assert none.ask(joined).rows == client.ask(joined).rows != [(b"0",)]
    proxy.wait_idle()


@pytest.fixture
def slow(connect: Connect, demo: Demo) -> Iterator[str]:
    """A table of the scratch host that cannot be read."""
    with connect(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE slow (id BIGINT)")
        with demo.direct(0) as locker, locker.cursor() as locking:
            locking.execute("LOCK TABLES legacy.slow WRITE")
            yield "SELECT DISTINCT u.id AS kill_me FROM users u JOIN legacy.slow s ON s.id = u.id"
            locking.execute("UNLOCK TABLES")
        cursor.execute("DROP TABLE slow")


def runs(demo: Demo, like: str) -> bool:
    with demo.direct(0) as host:
        return bool(statements_like(host, like))


@pytest.mark.parametrize("transaction", [False, True])
def test_kill_query_while_rows_are_gathered(raw: MakeRaw, slow: str, demo: Demo, transaction: bool) -> None:
    victim, admin = raw(), raw()
    if transaction:
        victim.ask("BEGIN")
        victim.ask("SELECT COUNT(*) FROM users")
    victim.write(query(slow))
    wait_until(lambda: runs(demo, "SELECT %`slow`%"), "it waits for the lock")
    assert admin.ask(f"KILL QUERY {victim.id}").kind == "ok"
    reply = victim.reply()
    assert (reply.kind, reply.code) == ("err", 1317), reply
    assert victim.ask(COUNT).rows == [(b"1800", b"1800")]
    assert flags(victim.ask("SELECT 1")) == (True, transaction)
    assert flags(victim.ask("COMMIT")) == (True, False)


def test_kill_query_while_the_rest_runs(raw: MakeRaw, demo: Demo) -> None:
    victim, admin = raw(), raw()
    victim.write(query(SLOW))
    wait_until(lambda: runs(demo, "%SLEEP(30)%"), "it runs")
    assert admin.ask(f"KILL QUERY {victim.id}").kind == "ok"
    reply = victim.reply()
    assert (reply.kind, reply.code) == ("err", 1317), reply
    assert victim.ask(COUNT).rows == [(b"1800", b"1800")]


def test_a_client_that_vanishes(raw: MakeRaw, slow: str, demo: Demo) -> None:
    """Its statement ends on the hosts, and nothing is left."""
    for sql, like in ((SLOW, "%SLEEP(30)%"), (slow, "SELECT %`slow`%")):
        client = raw()
        client.write(query(sql))
        wait_until(partial(runs, demo, like), "it runs")
        client.reset()
        wait_until(lambda: not runs(demo, like), "it has ended")  # noqa: B023
    assert raw().ask(COUNT).rows == [(b"1800", b"1800")]


def test_ctes_used_twice_leave_no_tables(client: Raw, demo: Demo) -> None:
    before = _tables(demo)  # of proxies that other tests have killed
    twice = "WITH c AS (SELECT user_id, COUNT(*) n FROM user_has_boards GROUP BY user_id) "
    for _ in range(2):
        assert client.ask(twice + "SELECT COUNT(*) FROM c a JOIN c b ON b.user_id = a.user_id").kind == "rows"
        assert client.ask(twice + "SELECT nosuch FROM c a JOIN c b USING (user_id)").code == 1054
    assert any("not temporary" in detail for _, detail in route(client, twice + "SELECT 1 FROM c a JOIN c b"))
    wait_until(lambda: _tables(demo) == before, "the tables are gone")


def _tables(demo: Demo) -> list[object]:
    with demo.direct(0) as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = 'shardgate_scratch' ORDER BY 1"
        )
        return list(cursor.fetchall())


def test_lookup_joins_ask_only_the_shards_concerned(client: Raw, plain: LocalServer) -> None:
    sql = (
        "SELECT p.id, p.data, m.sequence FROM board_has_pins m LEFT JOIN pins p ON p.id = m.pin_id"
        f" WHERE m.board_id = {first_board(client)} ORDER BY m.sequence DESC LIMIT 50"
    )
    found = route(client, sql)
    assert ("read 1", "demo.board_has_pins AS m") in found
    assert ("read 2", "demo.pins AS p, by the values of m.pin_id, or NULLs") in found
    assert not any(section == "scatter" for section, _ in found)
    with plain.connect(database="demo") as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        expected = [tuple(str(one) for one in row) for row in cursor.fetchall()]
    got = [tuple((one or b"").decode() for one in row) for row in client.ask(sql).rows]
    assert got == expected
    nothing = "SELECT COUNT(*) FROM board_has_pins m JOIN pins p ON p.id = m.pin_id WHERE m.board_id = 5"
    assert client.ask(nothing).value == b"0"


def test_an_altered_table_shows_its_columns_at_once(connect: Connect, client: Raw) -> None:
    with connect(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE grows (a INT)")
        try:
            cursor.execute("INSERT INTO grows VALUES (1)")
            sql = "SELECT g.* FROM legacy.grows g WHERE EXISTS (SELECT 1 FROM users)"
            assert client.ask(sql).columns == ["a"]
            cursor.execute("ALTER TABLE grows ADD COLUMN b INT DEFAULT 7")
            assert client.ask(sql).rows == [(b"1", b"7")]
        finally:
            cursor.execute("DROP TABLE grows")


def test_prepared(raw: MakeRaw) -> None:
    """Parameters in pieces and in the rest, in LIMIT too; definitions before there are values."""
    client = Binary(raw())
    board = first_board(client.raw)
    joined = client.statement(
        "SELECT p.id, m.sequence, ? FROM board_has_pins m JOIN pins p ON p.id = m.pin_id"
        " WHERE m.board_id = ? AND m.sequence > ? ORDER BY m.sequence LIMIT ?"
    )
    assert (joined.parameters, joined.columns) == (4, 3)
    assert [column_name(one) for one in joined.column_definitions] == ["id", "sequence", "?"]
    some = integer(7), integer(board), integer(3), integer(2)
    assert len(client.execute(joined.id, some).rows) == 2
    assert client.execute(joined.id, (some[0], integer(5), *some[2:])).rows == []
    grouped = client.run("SELECT DISTINCT id FROM users WHERE id IN (?, ?)", integer(1), integer(2))
    assert (grouped.names, grouped.rows) == (["id"], [])


def test_a_view_has_its_columns(connect: Connect, client: Raw) -> None:
    with connect(database="legacy") as connection, connection.cursor() as cursor:
        cursor.execute(
            "CREATE VIEW seen AS SELECT id, CONCAT(name, '!') AS n, CAST(id AS CHAR) AS c FROM customers"
        )
        try:
            plain = client.ask("SELECT * FROM legacy.seen ORDER BY id")
            assert plain.rows
            sql = "SELECT s.* FROM legacy.seen s WHERE EXISTS (SELECT 1 FROM users) ORDER BY s.id"
            gathered = client.ask(sql)
            assert (gathered.columns, gathered.rows) == (plain.columns, plain.rows)
        finally:
            cursor.execute("DROP VIEW seen")


def test_texts_of_json_table(client: Raw) -> None:
    """Their character set is that of the current database."""
    text = "j.x FROM users u, JSON_TABLE('{\"a\": \"😀\"}', '$' COLUMNS (x VARCHAR(9) PATH '$.a')) j"
    assert set(client.ask(f"SELECT {text} WHERE u.id > 0").rows) == {("😀".encode(),)}


def test_a_signed_number_orders_as_on_one_server(client: Raw, flavour: str) -> None:
    """MariaDB takes `- -2` for the number of a column, and has no column -2; for MySQL both are constants."""
    ids = [int(row[0] or 0) for row in client.ask("SELECT id FROM users ORDER BY id").rows][:60:7]
    assert len({id >> 46 for id in ids}) > 1
    listed = ", ".join(map(str, ids))
    text = f"SELECT id, id % 1000 AS n FROM users WHERE id IN ({listed}) ORDER BY "
    found = [int(row[0] or 0) for row in client.ask(text + "- -2, id").rows]
    by_column = sorted(ids, key=lambda id: (id % 1000, id))
    assert by_column != ids
    assert found == (by_column if flavour == "mariadb" else ids)
    reply = client.ask(text + "-2 DESC, id DESC")
    if flavour == "mariadb":
        assert (reply.code, reply.message) == (1054, "Unknown column '-2' in 'ORDER BY'")
    else:
        assert [int(row[0] or 0) for row in reply.rows] == ids[::-1]
