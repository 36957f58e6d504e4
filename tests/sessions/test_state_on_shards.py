"""A statement on the shards leaves no user variable and no named lock to the next session of its connection;
its own session has what a server's would have.
"""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest

from tests.integration.binary import Binary, text
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import MULTI_STATEMENTS
from tests.support.demo import Demo
from tests.support.servers import Connection, LocalServer

#: Assignments on one shard, of each kind of table and each form of a write. {pin} is the ID of a row.
ASSIGNING = {
    "object, UPDATE": "UPDATE pins SET data = (@tok := data) WHERE id = {pin}",
    "object, UPDATE, comment": "/* app */ UPDATE pins SET data = (@`tok` /* x */ := data) WHERE id = {pin}",
    "object, a list on one shard": "UPDATE pins SET data = (@tok := data) WHERE id IN ({pin}, {pin})",
    "object, ON DUPLICATE KEY": (
        "INSERT INTO pins (id, data) VALUES ({pin}, '{{}}')"
        " ON DUPLICATE KEY UPDATE data = (@tok := pins.data)"
    ),
    "object, LIMIT": "UPDATE pins SET data = (@tok := data) WHERE id = {pin} ORDER BY ts LIMIT 1",
    "object, JOIN": "UPDATE pins p JOIN pins q ON p.id = q.id SET p.data = (@tok := q.data)"
    " WHERE p.id = {pin} AND q.id = {pin}",
    "mapping": "UPDATE board_has_pins SET sequence = sequence + 0 * (@tok := 7) WHERE board_id = {board}",
    "mapping, ON DUPLICATE KEY": (
        "INSERT INTO board_has_pins (board_id, pin_id, sequence) VALUES ({board}, {pin}, 1)"
        " ON DUPLICATE KEY UPDATE sequence = sequence + 0 * (@tok := 8)"
    ),
    "hashed, INSERT": "INSERT INTO email_to_user (email, user_id) VALUES ('tok@x.org', @tok := 3)",
    "hashed, ON DUPLICATE KEY": (
        "INSERT INTO email_to_user VALUES ('tok@x.org', 4)"
        " ON DUPLICATE KEY UPDATE user_id = (@tok := user_id + 1)"
    ),
    "hashed, REPLACE": "REPLACE INTO email_to_user (email, user_id) VALUES ('tok@x.org', @tok := 'a' < 'b')",
    "hashed, INSERT SET": "INSERT IGNORE INTO email_to_user SET email = 'tok@x.org', user_id = (@tok := 9)",
    "hashed, UPDATE": "UPDATE email_to_user SET user_id = (@tok := user_id + 1) WHERE email = 'tok@x.org'",
    "hashed, unknown row": "UPDATE email_to_user SET user_id = (@tok := 1) WHERE email = 'nobody@x.org'",
    "timed": "UPDATE photos SET caption = (@tok := caption) WHERE id = {photo}",
    "timed, its user": "UPDATE photos SET caption = CONCAT(caption, LEFT(@tok := 'x', 0))"
    " WHERE user_id = {user}",
    "single": "UPDATE usernames SET user_id = user_id + 0 * (@tok := 6) WHERE username = '{name}'",
    "SELECT INTO": "SELECT id INTO @tok FROM pins WHERE id = {pin}",
    "SELECT INTO, a list": "SELECT COUNT(*) INTO @tok FROM pins WHERE id IN ({pins})",
    "SELECT": "SELECT @tok := id FROM pins WHERE id = {pin}",
    "SELECT, ORDER BY": "SELECT id FROM pins WHERE id IN ({pins}) ORDER BY (@tok := id)",
    "INSERT SELECT": "INSERT IGNORE INTO email_to_user SELECT 'tok@x.org', @tok := id FROM users"
    " WHERE id = {user}",
    "an error": "UPDATE pins SET data = IF((@tok := 5) = 5, (SELECT 1 UNION SELECT 2), 1) WHERE id = {pin}",
}
OF_MARIADB = {
    "RETURNING": "INSERT INTO email_to_user VALUES ('tik@x.org', 1) RETURNING email, @tok := user_id",
    "DELETE RETURNING": "DELETE FROM email_to_user WHERE email = 'tik@x.org' RETURNING (@tok := email)",
}
#: What assigns them on several shards: each shard has its own.
SCATTERED = (
    "UPDATE pins SET data = (@tok := data) WHERE id IN ({pins})",
    "UPDATE /*+ scatter */ pins SET data = (@tok := data)",
    "DELETE FROM pins WHERE id IN ({pins}) AND (@tok := 5) IS NULL",
    "INSERT INTO email_to_user VALUES ('a@x.org', @tok := 1), ('b@x.org', 2), ('c@x.org', 3), ('d@x.org', 4)",
    "INSERT INTO users (id, data) VALUES ({users}) ON DUPLICATE KEY UPDATE data = (@tok := users.data)",
    # a condition that assigns names no shard
    "DELETE FROM pins WHERE id = {pin} AND (@tok := id) IS NULL",
    "UPDATE pins SET ts = ts WHERE id = {pin} AND (@tok := ts) IS NOT NULL",
    "DELETE FROM email_to_user WHERE email = 'tok@x.org' AND (@tok := user_id) > 0",
    "UPDATE countries SET name = (@tok := name)",
)
LOCKING = (
    "SELECT GET_LOCK('tok', 0) FROM pins WHERE id = {pin}",
    "SELECT `GET_LOCK`('tok', 0) FROM pins WHERE id IN ({pins})",
    "SELECT COUNT(get_lock /* x */ ('tok', 0)) FROM pins",
    "SELECT id FROM pins WHERE id = {pin} AND GET_LOCK('tok', 0)",
    "SELECT id FROM pins WHERE id = {pin} ORDER BY GET_LOCK('tok', 0)",
    "SELECT id FROM pins WHERE id IN (SELECT GET_LOCK('tok', 0) FROM usernames)",
    "SELECT p.id FROM pins p JOIN usernames u ON u.user_id = p.id WHERE GET_LOCK('tok', 0)",
    "UPDATE pins SET data = JSON_SET(data, '$.a', GET_LOCK('tok', 0)) WHERE id = {pin}",
    "DELETE FROM pins WHERE id = {pin} AND GET_LOCK('tok', 0) IS NULL",
    "INSERT INTO pins (data) VALUES (JSON_OBJECT('a', GET_LOCK('tok', 0)))",
    "INSERT INTO email_to_user VALUES ('tok@x.org', 1) ON DUPLICATE KEY UPDATE user_id = GET_LOCK('tok', 0)",
    "UPDATE countries SET name = name WHERE GET_LOCK('tok', 0)",
    "SELECT RELEASE_ALL_LOCKS() FROM pins WHERE id = {pin}",
    "SELECT IS_FREE_LOCK(data) FROM pins WHERE id = {pin}",
)


@pytest.fixture
def proxy(own: MakeOwn) -> OwnProxy:
    """One that has a single connection to each host, so that each session gets that of the one before."""
    return own({"backends": {"max_connections": 1}})


@pytest.fixture
def server(plain: LocalServer) -> Iterator[Connection]:
    """A connection to a plain server with the same tables and rows."""
    with plain.connect(database="demo") as connection:
        yield connection


@pytest.fixture
def named(server: Connection) -> dict[str, str]:
    """Rows that the demo and a plain server have."""
    with server.cursor() as cursor:
        found = {}
        for name, sql in {
            "pin": "SELECT MIN(pin_id) FROM board_has_pins",
            "board": "SELECT board_id FROM board_has_pins ORDER BY pin_id LIMIT 1",
            "user": "SELECT user_id FROM photos ORDER BY id LIMIT 1",
            "photo": "SELECT MIN(id) FROM photos",
            "name": "SELECT MIN(username) FROM usernames",
            "pins": "SELECT CONCAT(MIN(id), ',', MAX(id)) FROM pins",
            "users": "SELECT CONCAT(MIN(id), ', ''{}''), (', MAX(id), ', ''{}''') FROM users",
        }.items():
            cursor.execute(sql)
            row = cursor.fetchone()
            assert row is not None
            found[name] = str(row[0])
    return found


@pytest.fixture(autouse=True)
def tidy(demo: Demo, server: Connection) -> Iterator[None]:
    yield
    for connection in (server, demo.connect()):
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM email_to_user WHERE email IN ('tok@x.org', 'tik@x.org')")
        if connection is not server:
            connection.close()


def done(connection: Connection, sql: str) -> object:
    """The code of the error, or None."""
    with connection.cursor() as cursor:
        try:
            cursor.execute(sql)
        except pymysql.MySQLError as error:
            return error.args[0]
    return None


def asked(connection: Connection, sql: str) -> object:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def seen_by_others(proxy: OwnProxy) -> object:
    """What a new session finds on the connections of both hosts."""
    with proxy.connect() as other:
        alone = asked(other, "SELECT @tok")
        return {
            *alone,
            *asked(other, "SELECT DISTINCT @tok FROM pins"),
            *asked(other, "SELECT @tok FROM countries"),
        }  # type: ignore[misc]


def test_a_variable_that_one_shard_assigns_is_its_sessions(
    proxy: OwnProxy, server: Connection, named: dict[str, str], flavour: str
) -> None:
    """The value is a plain server's, and no other session sees it."""
    statements = ASSIGNING | (OF_MARIADB if flavour == "mariadb" else {})
    wrong = {}
    for name, template in statements.items():
        sql = template.format(**named)
        asked(server, "SELECT @tok := NULL")
        on_plain = done(server, sql)
        with proxy.connect() as mine:
            found = (done(mine, sql), asked(mine, "SELECT @tok"))
        expected = (on_plain, asked(server, "SELECT @tok"))
        others = seen_by_others(proxy)
        if found != expected or others != {(None,)}:
            wrong[name] = (found, expected, others)
    assert wrong == {}


def test_a_variable_is_read_back_within_a_transaction(proxy: OwnProxy, named: dict[str, str]) -> None:
    with proxy.connect() as mine:
        done(mine, "BEGIN")
        assert done(mine, ASSIGNING["hashed, INSERT"].format(**named)) is None
        assert done(mine, ASSIGNING["mapping"].format(**named)) is None
        assert asked(mine, "SELECT @tok") == ((7,),)
        done(mine, "ROLLBACK")
        assert asked(mine, "SELECT @tok, COUNT(*) FROM email_to_user WHERE email = 'tok@x.org'") == ((7, 0),)
    assert seen_by_others(proxy) == {(None,)}


def test_what_several_shards_would_assign_is_refused(proxy: OwnProxy, named: dict[str, str]) -> None:
    """Nothing is written."""
    with proxy.connect() as mine:
        before = asked(mine, "SELECT SUM(CRC32(data)), COUNT(*) FROM pins")
        codes = {sql: done(mine, sql.format(**named)) for sql in SCATTERED}
        assert codes == dict.fromkeys(SCATTERED, 1235)
        assert asked(mine, "SELECT @tok") == ((None,),)
        assert asked(mine, "SELECT SUM(CRC32(data)), COUNT(*) FROM pins") == before
        assert asked(mine, "SELECT COUNT(*) FROM email_to_user WHERE email LIKE '_@x.org'") == ((0,),)
    assert seen_by_others(proxy) == {(None,)}


def test_prepared_and_several_statements_leave_nothing(proxy: OwnProxy, named: dict[str, str]) -> None:
    raw = proxy.raw(login=False)
    assert raw.login(database="demo", flags=MULTI_STATEMENTS).kind == "ok"
    binary = Binary(raw)
    ways = ("hashed, INSERT", "hashed, UPDATE", "object, ON DUPLICATE KEY", "SELECT INTO")
    for way in ways:
        raw.ask("SET @tok = NULL")
        assert binary.run(ASSIGNING[way].format(**named)).kind != "err"
        assert raw.ask("SELECT @tok").value is not None, way
    taking = "INSERT INTO email_to_user VALUES (?, 5) ON DUPLICATE KEY UPDATE user_id = (@tok := 6)"
    raw.ask("SET @tok = 5")
    assert binary.run(taking, text("tok@x.org")).kind == "ok"
    assert raw.ask("SELECT @tok").value == b"6"
    raw.write(b"".join(_several(f"SET @tok = 1; {ASSIGNING['mapping'].format(**named)}; SELECT @tok")))
    assert raw.replies()[-1].value == b"7"
    raw.close()
    proxy.wait_idle()
    assert seen_by_others(proxy) == {(None,)}


def _several(sql: str) -> Iterator[bytes]:
    payload = b"\x03" + sql.encode()
    yield len(payload).to_bytes(3, "little") + b"\0" + payload


def test_a_named_lock_is_refused_where_the_shards_are(
    proxy: OwnProxy, demo: Demo, named: dict[str, str]
) -> None:
    with proxy.connect() as mine:
        codes = {sql: done(mine, sql.format(**named)) for sql in LOCKING}
        assert codes == dict.fromkeys(LOCKING, 1235)
        for sql in LOCKING:
            found = Binary(proxy.raw()).run(sql.format(**named))
            assert (found.kind, found.code) == ("err", 1235), sql
        for index in range(len(demo.masters)):
            with demo.direct(index) as direct:
                assert asked(direct, "SELECT IS_FREE_LOCK('tok')") == ((1,),)


@pytest.mark.parametrize(
    "taking",
    [
        "SELECT GET_LOCK('tok', 0)",
        "SELECT `GET_LOCK`('tok', 0)",
        "DO GET_LOCK/* x */('tok', 0)",
        "SET @got = get_lock('tok', 0)",
        "SELECT GET_LOCK('tok', 0) FROM usernames LIMIT 1",
        "SELECT username FROM usernames ORDER BY GET_LOCK(CONCAT('tok', LEFT(username, 0)), 0) LIMIT 1",
    ],
)
@pytest.mark.parametrize("database", ["demo", "legacy", "db00040"])
def test_a_named_lock_excludes_others_from_any_database(
    own: MakeOwn, taking: str, database: str, flavour: str
) -> None:
    """All are on one host, whichever database is the current one."""
    proxy = own()
    with proxy.connect(database=database) as mine, proxy.connect() as other:
        if database != "demo":
            taking = taking.replace(" usernames", " demo.usernames")
        assert done(mine, taking) is None
        assert asked(other, "SELECT GET_LOCK('tok', 0), IS_FREE_LOCK('tok')") == ((0, 0),)
        assert asked(mine, "SELECT RELEASE_ALL_LOCKS() > 0, DATABASE()") == ((1, database),)
        assert asked(other, "SELECT GET_LOCK('tok', 0)") == ((1,),)


def test_a_variable_whose_name_begins_with_an_at_sign(proxy: OwnProxy, server: Connection) -> None:
    """It is no system variable."""
    statements = (
        "SET @`@a` = 5, @`@last_insert_id` = 77, @```b` = 8",
        "SELECT @`@a`, @'@a', @`@last_insert_id`, @@last_insert_id, @```b`, @`@autocommit`",
        "SELECT @`@a` + id - id FROM pins LIMIT 1",
        "SELECT 6 INTO @`@a`",
        "SET @x = @`@a` + 1",
        "SELECT @x, @`@a` := @x + 1, @`@a`",
        "INSERT INTO email_to_user VALUES ('tok@x.org', @`@a` := 9)",
        "SELECT @`@a`, user_id FROM email_to_user WHERE user_id = @`@a` AND email = 'tok@x.org'",
    )
    with proxy.connect() as mine:
        for sql in statements:
            assert asked(mine, sql) == asked(server, sql), sql


def test_a_variable_without_a_name(proxy: OwnProxy, server: Connection) -> None:
    """A server says what is wrong, and the session goes on."""
    with proxy.connect() as mine:
        assert done(mine, "SET @`` = 3") == done(server, "SET @`` = 3") != None  # noqa: E711
        assert asked(mine, "SELECT 1") == ((1,),)
