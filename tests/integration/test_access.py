"""What users may reach: everything that a confined or reading user may try, by text and as prepared
statements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.binary import Answer, Binary, Prepared
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy, log_problems
from tests.integration.raw import QUERY, Raw
from tests.support.demo import Demo

INIT_DB, REFRESH, DEBUG = 2, 7, 13
CANARY = "CANARY-5150"
DENIED = frozenset({1044, 1142, 1227, 1235, 1370})
"""What the proxy refuses with: a database, a statement, a privilege, not supported, a routine."""

USERS: list[dict[str, object]] = [
    {"name": "demo", "password": "demo", "role": "admin"},
    {"name": "read", "password": "read", "role": "read"},
    {"name": "write", "password": "write", "role": "write"},
    {"name": "read-legacy", "password": "x", "role": "read", "databases": ["legacy"]},
    {"name": "write-legacy", "password": "x", "role": "write", "databases": ["legacy"]},
    {"name": "admin-legacy", "password": "x", "role": "admin", "databases": ["legacy"]},
    {"name": "read-demo", "password": "x", "role": "read", "databases": ["demo"]},
    {"name": "system", "password": "x", "role": "read", "databases": ["mysql", "performance_schema", "sys"]},
    {"name": "admin-system", "password": "x", "role": "admin", "databases": ["legacy", "mysql"]},
]

SETUP = (
    "DROP DATABASE IF EXISTS secret",
    "CREATE DATABASE secret",
    f"CREATE TABLE secret.t (id INT PRIMARY KEY, v VARCHAR(40) DEFAULT '{CANARY}')",
    f"INSERT INTO secret.t VALUES (1, '{CANARY}')",
    f"CREATE FUNCTION secret.f() RETURNS VARCHAR(40) DETERMINISTIC RETURN '{CANARY}'",
    "CREATE FUNCTION legacy.peek(n INT) RETURNS VARCHAR(40) READS SQL DATA"
    " RETURN (SELECT v FROM secret.t LIMIT 1)",
    "CREATE PROCEDURE secret.p() SELECT v FROM secret.t",
    "CREATE PROCEDURE legacy.peek_all() SELECT v FROM secret.t",
)
MARIADB_SETUP = ("CREATE SEQUENCE secret.s", "CREATE SEQUENCE legacy.own_sequence")
TEARDOWN = (
    "DROP DATABASE IF EXISTS secret",
    "DROP FUNCTION IF EXISTS legacy.peek",
    "DROP PROCEDURE IF EXISTS legacy.peek_all",
)

QUOTED = (
    'SELECT v FROM "secret"."t"',
    'SELECT "secret"."f"()',
    "SELECT v FROM \"secret\" . t WHERE '\"' = '\"'",
    "SELECT \"LOAD_FILE\"('/etc/passwd')",
)


def statements(subject: str, flavour: str = "") -> list[str]:
    """Those of a file in access/, and of the one for the flavour where there is one: one a line."""
    folder = Path(__file__).parent / "access"
    paths = [folder / f"{subject}.sql", folder / f"{subject}.{flavour}.sql"]
    lines = [line for path in paths if path.exists() for line in path.read_text().splitlines()]
    return [line for line in lines if not line.startswith("-- ")]


@pytest.fixture(scope="module")
def proxy(demo: Demo, flavour: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnProxy]:
    setup = SETUP + (MARIADB_SETUP if flavour == "mariadb" else ())
    with demo.direct() as server, server.cursor() as cursor:
        for sql in (*TEARDOWN, *setup):
            cursor.execute(sql)
        try:
            settings = {"users": USERS, "backends": one_account(demo)}
            with OwnProxy(demo, tmp_path_factory.mktemp("access"), settings) as started:
                yield started
                assert not log_problems(started.log.read_text())
        finally:
            for sql in TEARDOWN:
                cursor.execute(sql)
            if flavour == "mariadb":
                cursor.execute("DROP SEQUENCE IF EXISTS legacy.own_sequence")


def one_account(demo: Demo) -> dict[str, object]:
    """Everything runs as root, so that nothing but the proxy's own check stands between users and servers."""
    hosts = {host.address: {"user": host.user, "password": host.password} for host in demo.masters}
    return {"user": "root", "password": "", "accounts": [], "hosts": hosts}


HIDDEN = re.compile(r"(?<=[\w`\"])(?=[.(])|(?<=[\w`\"]\.)(?=[\w`\"])")


def client(proxy: OwnProxy, user: str, database: str | None = "legacy") -> Raw:
    made = proxy.raw(login=False)
    password = next(str(one["password"]) for one in USERS if one["name"] == user)
    assert made.login(user, password, database).kind == "ok"
    return made


def code_of(side: Raw | Binary, sql: str) -> int:
    """The error's code; 0 for none. A prepared statement is executed, too."""
    if isinstance(side, Raw):
        reply = side.ask(sql)
        assert CANARY.encode() not in b"".join(value or b"" for row in reply.rows for value in row), sql
        return reply.code if reply.kind == "err" else 0
    prepared = side.prepare(sql)
    if isinstance(prepared, Prepared):
        answer = side.execute(prepared.id)
        side.close(prepared.id)
    else:
        answer = prepared
    assert isinstance(answer, Answer)
    assert CANARY.encode() not in b"".join(answer.rows), sql
    return answer.code if answer.kind == "err" else 0


def wrong(side: Raw | Binary, asked: list[str], allowed: frozenset[int] = DENIED) -> list[tuple[str, int]]:
    """Those that are not refused by the proxy. What is no SQL (1064) on this server is none of them; a
    prepared statement may also be of a kind that is not prepared (1295).
    """
    extra = {1064} if isinstance(side, Raw) else {1064, 1295}
    found = [(sql, code_of(side, sql)) for sql in asked]
    return [(sql, code) for sql, code in found if code not in allowed | extra]


@pytest.mark.parametrize("how", [Raw, Binary])
@pytest.mark.parametrize("user", ["read-legacy", "write-legacy"])
def test_a_confined_user_reaches_no_other_database(
    proxy: OwnProxy, flavour: str, user: str, how: type
) -> None:
    raw = client(proxy, user)
    side = raw if how is Raw else Binary(raw)
    # a server's own refusal: no subqueries in SET STATEMENT
    assert wrong(side, statements("elsewhere", flavour), DENIED | {1970}) == []
    assert raw.ask("SELECT COUNT(*) FROM customers").kind == "rows"


@pytest.mark.parametrize("user", ["read-legacy", "write-legacy"])
def test_nor_where_words_mislead(proxy: OwnProxy, flavour: str, user: str) -> None:
    """Names that end a list of tables elsewhere, forms that nobody reads, and what a server would answer."""
    raw = client(proxy, user)
    assert wrong(raw, statements("behind_commas", flavour), DENIED | {1970}) == []
    assert raw.ask("SELECT @x, @z").rows == [(None, None)]


@pytest.mark.parametrize("user", ["read-legacy", "write-legacy"])
def test_nor_behind_what_looks_like_a_hint(proxy: OwnProxy, flavour: str, user: str) -> None:
    """Servers take it for a comment where no hint may stand: between a name and its dot or parenthesis."""
    raw = client(proxy, user)
    asked = [HIDDEN.sub("/*+ x */", sql) for sql in statements("elsewhere", flavour)]
    assert len(asked) > 100
    assert wrong(raw, asked, DENIED | {1970}) == []


@pytest.mark.parametrize("how", [Raw, Binary])
def test_nor_by_writing(proxy: OwnProxy, demo: Demo, how: type) -> None:
    raw = client(proxy, "write-legacy")
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute("CHECKSUM TABLE secret.t, legacy.customers")
        before = cursor.fetchall()
        assert wrong(raw if how is Raw else Binary(raw), statements("elsewhere_writes")) == []
        cursor.execute("CHECKSUM TABLE secret.t, legacy.customers")
        assert cursor.fetchall() == before


@pytest.mark.parametrize("how", [Raw, Binary])
@pytest.mark.parametrize("database", ["legacy", "information_schema", None])
def test_an_administrator_with_a_list_stays_within_it(
    proxy: OwnProxy, demo: Demo, flavour: str, database: str | None, how: type
) -> None:
    """What hands a text to a server unread, what acts on a whole server, and what tells of others."""
    raw = client(proxy, "admin-legacy", database)
    assert raw.ask("SET @text = 'SELECT v FROM secret.t'").kind == "ok"
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute("CHECKSUM TABLE secret.t, legacy.customers")
        before = cursor.fetchall()
        side = raw if how is Raw else Binary(raw)
        elsewhere = DENIED if database == "legacy" else DENIED | {1046, 1146, 1105, 1305, 1109}
        asked = [*statements("beyond_list", flavour), *statements("elsewhere", flavour)]
        assert wrong(side, asked, elsewhere | {1970}) == []
        cursor.execute("CHECKSUM TABLE secret.t, legacy.customers")
        assert cursor.fetchall() == before


def test_and_defines_what_it_likes_there(proxy: OwnProxy) -> None:
    raw = client(proxy, "admin-legacy")
    asked = [*statements("own"), "USE legacy", *statements("own_writes"), *statements("own_definitions")]
    assert [(sql, reply.message) for sql in asked if (reply := raw.ask(sql)).kind == "err"] == []


@pytest.mark.parametrize("user", ["read-legacy", "write-legacy", "admin-legacy"])
def test_users_with_a_list_hear_of_their_own_shards_alone(proxy: OwnProxy, user: str) -> None:
    raw = client(proxy, user)
    everything, own = client(proxy, "demo").ask("SHOW TOPOLOGY").rows, raw.ask("SHOW TOPOLOGY").rows
    assert {row[1] for row in own} == {b"legacy"} < {row[1] for row in everything}
    assert raw.ask("SHOW SHARDS").rows == []
    assert raw.ask("SHOW HOT SHARDS").rows == []
    assert raw.ask("SHOW POOLS").code == raw.ask("SHOW PROXY CACHES").code == 1227
    of_demo = client(proxy, "read-demo", "demo")
    assert {row[1] for row in of_demo.ask("SHOW TOPOLOGY").rows}.isdisjoint({b"legacy", b"(default)"})
    assert of_demo.ask("SHOW SHARDS").rows


def test_sessions_of_others_are_for_administrators_without_a_list(proxy: OwnProxy) -> None:
    other, raw = client(proxy, "demo"), client(proxy, "admin-legacy")
    assert {row[1] for row in raw.ask("SHOW PROCESSLIST").rows} == {b"admin-legacy"}
    assert {row[1] for row in raw.ask("SHOW PROXY SESSIONS").rows} == {b"admin-legacy"}
    assert raw.ask(f"KILL {other.id}").code == 1095
    assert raw.ask("SHOW GRANTS FOR demo").code == 1141
    assert raw.do(REFRESH, b"\x01").code in (1227, 1047)
    assert raw.do(DEBUG).code == 1227
    assert other.ask("SELECT 1").value == b"1"


@pytest.mark.parametrize("user", ["read-legacy", "write-legacy", "admin-legacy"])
@pytest.mark.parametrize("database", ["legacy", "information_schema", None])
def test_routines_are_shown_by_the_list(proxy: OwnProxy, user: str, database: str | None) -> None:
    """As drivers ask for them. A condition is not evaluated for the routines of others."""
    raw = client(proxy, user, database)
    for sql in (
        "SHOW PROCEDURE STATUS",
        "SHOW PROCEDURE STATUS LIKE 'p%'",
        "SHOW PROCEDURE STATUS WHERE Db IN ('legacy', 'secret', 'sys') OR 1",
        "SHOW PROCEDURE STATUS WHERE IF(Db = 'secret', (SELECT 1 UNION SELECT 2), Name = 'peek_all')",
    ):
        assert [row[:2] for row in raw.ask(sql).rows] == [(b"legacy", b"peek_all")], sql
    assert [row[:2] for row in raw.ask("SHOW FUNCTION STATUS").rows] == [(b"legacy", b"peek")]
    assert raw.ask("SHOW FUNCTION STATUS WHERE Db = 'secret'").rows == []
    assert raw.ask("SHOW PROCEDURE STATUS LIKE 'x' OR 1 = 1").code == 1064
    side = Binary(raw)
    prepared = side.prepare("SHOW PROCEDURE STATUS")
    assert isinstance(prepared, Prepared)
    answer = side.execute(prepared.id)
    assert isinstance(answer, Answer)
    assert len(answer.rows) == 1
    assert b"peek_all" in answer.rows[0]


def test_and_by_the_server_without_one(proxy: OwnProxy) -> None:
    found = {row[0] for row in client(proxy, "read").ask("SHOW PROCEDURE STATUS").rows}
    assert {b"legacy", b"secret", b"sys"} <= found


@pytest.mark.parametrize(
    ("user", "of_user", "of_database"),
    [
        ("read", {b"SELECT"}, set()),
        ("read-legacy", {b"USAGE"}, {(b"legacy", b"SELECT")}),
        ("write-legacy", {b"USAGE"}, {(b"legacy", b"SELECT"), (b"legacy", b"EXECUTE")}),
        ("admin-legacy", {b"USAGE"}, {(b"legacy", b"SELECT"), (b"legacy", b"CREATE VIEW")}),
    ],
)
def test_privileges_are_those_of_the_settings(
    proxy: OwnProxy, user: str, of_user: set[bytes], of_database: set[tuple[bytes, bytes]]
) -> None:
    raw = client(proxy, user)
    found = raw.ask("SELECT GRANTEE, PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES").rows
    assert set(found) == {(f"'{user}'@'%'".encode(), one) for one in of_user}
    columns = "GRANTEE, TABLE_SCHEMA, PRIVILEGE_TYPE, IS_GRANTABLE"
    rows = raw.ask(f"SELECT {columns} FROM information_schema.SCHEMA_PRIVILEGES").rows
    assert {row[0] for row in rows} <= {f"'{user}'@'%'".encode()}
    assert {row[1:3] for row in rows} >= of_database
    assert bool(rows) == bool(of_database)
    for view in ("TABLE_PRIVILEGES", "COLUMN_PRIVILEGES"):
        assert raw.ask(f"SELECT * FROM information_schema.{view}").rows == []
    for sql in (
        "PREPARE s FROM 'SELECT * FROM information_schema.USER_PRIVILEGES'",
        "SET @x = (SELECT COUNT(*) FROM information_schema.SCHEMA_PRIVILEGES)",
    ):
        assert raw.ask(sql).kind == "err", sql


def test_administrators_without_a_list_see_the_accounts_of_the_servers(proxy: OwnProxy) -> None:
    raw = client(proxy, "demo")
    found = {row[0] for row in raw.ask("SELECT GRANTEE FROM information_schema.USER_PRIVILEGES").rows}
    assert b"'root'@'localhost'" in found or b"'root'@'%'" in found


@pytest.mark.parametrize("database", ["legacy", None])
def test_rows_of_views_are_inserted_as_they_are_shown(
    proxy: OwnProxy, demo: Demo, database: str | None
) -> None:
    columns = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.COLUMNS"
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute("CREATE TABLE legacy.shown (id INT AUTO_INCREMENT PRIMARY KEY, s TEXT, t TEXT)")
        try:
            raw = client(proxy, "write-legacy", database)
            expected = len(raw.ask(columns).rows)
            reply = raw.ask(f"INSERT INTO legacy.shown (s, t) {columns}")
            assert reply.affected == expected, reply
            shown = raw.ask("SELECT DISTINCT s FROM legacy.shown").rows
            assert sorted(shown) == [(b"information_schema",), (b"legacy",)]
            side = Binary(raw)
            prepared = side.prepare(
                "REPLACE legacy.shown SELECT 1, SCHEMA_NAME, ? FROM information_schema.SCHEMATA"
            )
            assert isinstance(prepared, Prepared), prepared
            assert raw.ask("SELECT COUNT(*) FROM legacy.shown").value == str(expected).encode()
            raw.ask("BEGIN")
            sql = "(SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'secret')"
            assert raw.ask(f"INSERT INTO legacy.shown (s) VALUES ({sql})").affected == 1
            assert raw.ask("SELECT s FROM legacy.shown ORDER BY id DESC LIMIT 1").value == b"0"
            raw.ask("ROLLBACK")
            assert raw.ask("SELECT COUNT(*) FROM legacy.shown").value == str(expected).encode()
            reader = client(proxy, "read-legacy", database)
            assert reader.ask(f"INSERT INTO legacy.shown (s, t) {columns}").code == 1142
        finally:
            cursor.execute("DROP TABLE legacy.shown")


def test_nor_by_other_quotes_and_commands(proxy: OwnProxy) -> None:
    raw = client(proxy, "read-legacy")
    for mode in ("ANSI_QUOTES", "ANSI_QUOTES,IGNORE_SPACE", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES"):
        assert raw.ask(f"SET sql_mode = '{mode}'").kind == "ok"
        assert wrong(raw, list(QUOTED)) == []
    for database in (b"secret", b"mysql", b"sys", b"demo", b"db00001", b"performance_schema"):
        assert raw.do(INIT_DB, database).code == 1044, database
    unconfined = client(proxy, "read")
    for database in (b"mysql", b"sys", b"performance_schema"):
        assert unconfined.do(INIT_DB, database).code == 1044, database
        made = proxy.raw(login=False)
        assert made.login("read", "read", database.decode()).code == 1044
    for database in (b"shardgate_scratch", b"shardgate_xa", b"mysql"):  # MySQL reads to the zero byte
        assert unconfined.do(INIT_DB, database + b"\0").code == 1049, database
        assert unconfined.do(INIT_DB, database + b"\0x").code == 1049, database
        assert unconfined.do(QUERY, b"USE `" + database + b"\x80`").code in DENIED | {1049, 1064, 1300}


@pytest.mark.parametrize("database", ["demo", "information_schema", None])
def test_nor_from_another_place(proxy: OwnProxy, flavour: str, database: str | None) -> None:
    raw = client(proxy, "read-demo", database)
    asked = [sql for sql in statements("elsewhere", flavour) if "customers" not in sql and "peek" not in sql]
    found = wrong(raw, asked, DENIED | {1046, 1146, 1105})
    assert found == []


@pytest.mark.parametrize("how", [Raw, Binary])
@pytest.mark.parametrize("user", ["read", "write", "read-legacy", "write-legacy"])
def test_what_is_for_admins(proxy: OwnProxy, flavour: str, user: str, how: type) -> None:
    raw = client(proxy, user)
    side = raw if how is Raw else Binary(raw)
    assert wrong(side, statements("for_admins", flavour), DENIED | {1094}) == []


#: Texts that MySQL reads otherwise, since it keeps a prepared text in UTF-8 and reads that in the client's
#: character set: a backslash goes with the character before it.
MOVED = (
    b"PREPARE s FROM 'SELECT ''a\\'' /*'', ''\xc4\xe3\\'' , v FROM secret.t x -- '' -- */'",
    b"PREPARE s FROM 'SELECT ''\xc4\xe3\\'' , v FROM secret.t x -- ''",
    b"PREPARE s FROM 'SELECT \xc4\xa0, v FROM customers'",
)
CHARACTER_SETS = ("gbk", "gb18030", "big5", "sjis", "cp932", "euckr", "ujis", "latin1", "utf8mb4")


@pytest.mark.parametrize("charset", CHARACTER_SETS)
def test_prepared_texts_that_change_their_meaning(proxy: OwnProxy, flavour: str, charset: str) -> None:
    if charset == "gb18030" and flavour == "mariadb":
        return  # which it does not have
    raw = client(proxy, "read-legacy")
    assert raw.ask(f"SET NAMES {charset}").kind == "ok"
    for text in MOVED:
        assert raw.ask(text).kind == "err", text
        assert raw.ask("EXECUTE s").code == 1243
    raw.ask("SET collation_connection = swe7_swedish_ci")
    assert raw.ask("SELECT @@character_set_connection").value != b"swe7"
    assert raw.ask("PREPARE s FROM 'SELECT ` , v FROM secret.t -- `'").kind != "rows"
    assert raw.ask("EXECUTE s").kind == "err"


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("", "NO_BACKSLASH_ESCAPES", r"SELECT 'a\' UNION SELECT v FROM secret.t -- ' FROM customers"),
        ("ANSI_QUOTES", "", "SELECT 1 AS \"'\" UNION SELECT v FROM secret.t -- ' FROM customers"),
    ],
)
def test_statements_read_again(
    proxy: OwnProxy, demo: Demo, flavour: str, before: str, after: str, text: str
) -> None:
    """When a table has changed MySQL reads a prepared text again, as the session reads texts then."""
    raw = client(proxy, "read-legacy")
    assert raw.ask(f"SET sql_mode = '{before}'").kind == "ok"
    side = Binary(raw)
    prepared = side.prepare(text)
    if not isinstance(prepared, Prepared):
        return  # it is refused as it is
    first = side.execute(prepared.id)
    assert raw.ask(f"SET sql_mode = '{after}'").kind == "ok"
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute("ALTER TABLE legacy.customers COMMENT = 'changed'")
        cursor.execute("ALTER TABLE legacy.customers COMMENT = ''")
    answer = side.execute(prepared.id)
    assert isinstance(first, Answer)
    assert isinstance(answer, Answer)
    assert CANARY.encode() not in b"".join(answer.rows)
    assert answer.code == (0 if flavour == "mariadb" else 1615)
    assert raw.ask(f"SET sql_mode = '{before}'").kind == "ok"
    again = side.execute(prepared.id)
    assert isinstance(again, Answer)
    assert again.rows == first.rows


@pytest.mark.parametrize("first", ["gbk", "sjis", "big5", "utf8mb4"])
@pytest.mark.parametrize("second", ["latin1", "gbk", "utf8mb4"])
def test_names_of_variables_are_no_code(proxy: OwnProxy, first: str, second: str) -> None:
    raw = client(proxy, "read-legacy")
    for charset in (first, second):
        assert raw.ask(f"SET NAMES {charset}").kind == "ok"
        assert raw.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    for last in (b"\xbf", b"\x81", b"\xc4\xe3", "中".encode()):
        raw.ask(b"SET @`0" + last + b"`='x', @`=1,@stolen=(select v from secret.t limit 1) -- x`='y'")
        raw.ask(b"SELECT 1, 2 INTO @`0" + last + b"`, @`=1,@stolen=(select v from secret.t limit 1) -- x`")
        assert raw.ask("SELECT COUNT(*) FROM customers").kind == "rows"
        assert raw.ask("SELECT @stolen, COUNT(*) FROM customers").value is None


@pytest.mark.parametrize("user", ["read", "read-legacy"])
def test_who_reads_writes_nothing(proxy: OwnProxy, flavour: str, user: str, demo: Demo) -> None:
    with demo.direct() as server, server.cursor() as cursor:
        cursor.execute("CHECKSUM TABLE legacy.customers")
        before = cursor.fetchall()
        raw = client(proxy, user)
        for side in (raw, Binary(raw)):
            assert wrong(side, statements("writes", flavour)) == []
        cursor.execute("CHECKSUM TABLE legacy.customers")
        assert cursor.fetchall() == before


@pytest.mark.parametrize("user", ["read-legacy", "write-legacy", "read", "write", "demo"])
def test_what_everybody_may(proxy: OwnProxy, user: str) -> None:
    raw = client(proxy, user)
    asked = statements("own") + (["USE legacy", *statements("own_writes")] if "write" in user else [])
    assert [(sql, reply.message) for sql in asked if (reply := raw.ask(sql)).kind == "err"] == []


def test_routines_under_an_account_of_ones_own(own: MakeOwn, proxy: OwnProxy) -> None:
    """The account's EXECUTE is in its own databases only; there an admin has said what a routine does."""
    started = own({"users": USERS})
    raw = started.raw(login=False)
    assert raw.login("write-legacy", "x", "legacy").kind == "ok"
    assert raw.ask("SELECT peek(1)").value == CANARY.encode()
    assert raw.ask("CALL secret.p()").code == 1044
    raw = started.raw(login=False)
    assert raw.login("read-legacy", "x", "legacy").kind == "ok"
    assert raw.ask("SELECT peek(1)").code == 1142


def test_texts_under_an_account_of_ones_own(own: MakeOwn, proxy: OwnProxy, flavour: str) -> None:
    """The account would not hold them: servers ask no right for XA, an account's own password, or a KILL of
    what runs under the same account.
    """
    started = own({"users": USERS})
    raw = client(started, "admin-legacy")
    assert raw.ask("SET @own = 'SELECT COUNT(*) FROM customers', @xa = 'XA RECOVER'").kind == "ok"
    assert raw.ask("PREPARE s FROM 'SELECT COUNT(*) FROM customers'").kind == "ok"
    assert raw.ask("EXECUTE s").kind == "rows"
    refused = [
        "PREPARE s FROM @own",
        "PREPARE s FROM @xa",
        "CREATE PROCEDURE never() XA ROLLBACK 'x'",
        "CREATE FUNCTION never() RETURNS INT RETURN 1",
        "CREATE TRIGGER never BEFORE INSERT ON customers FOR EACH ROW SET @x = 1",
        "CREATE EVENT never ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        "CALL secret.p()",
        "SET GLOBAL max_connections = 10",
        "FLUSH TABLES",
    ]
    if flavour == "mariadb":
        refused += ["EXECUTE IMMEDIATE @own", "BEGIN NOT ATOMIC SELECT 1; END"]
        refused += ["EXECUTE IMMEDIATE CONCAT('US', 'E secret')", "BEGIN NOT ATOMIC KILL 999999; END"]
    found = [(sql, code_of(raw, sql)) for sql in refused]
    assert [one for one in found if one[1] not in DENIED] == []


def test_a_function_that_nobody_has(own: MakeOwn, flavour: str) -> None:
    """Also on connections that no session has chosen a database for; there only admins may ask MySQL."""
    started = own({"users": USERS})
    for user in ("write", "demo") if flavour == "mariadb" else ("demo",):
        side = client(started, user, "demo")
        assert [side.ask(sql).code for sql in ("SET @a = nothing()", "SELECT nothing()")] == [1305] * 2, user


def test_the_system_databases_for_who_lists_them(proxy: OwnProxy) -> None:
    raw = client(proxy, "system", None)
    for sql in ("SELECT COUNT(*) FROM mysql.user", "USE mysql", "SELECT COUNT(*) FROM user", "SHOW TABLES"):
        assert raw.ask(sql).kind != "err", sql
    assert raw.ask("DELETE FROM mysql.user").code == 1142
    assert raw.ask("SELECT * FROM legacy.customers").code == 1044


def test_who_lists_a_system_database_does_not_write_there(proxy: OwnProxy, flavour: str) -> None:
    raw = client(proxy, "admin-system", "legacy")
    assert raw.ask("SELECT COUNT(*) FROM mysql.user").kind == "rows"
    table = "global_priv" if flavour == "mariadb" else "user"
    asked = [
        f"UPDATE mysql.{table} SET user = user WHERE user = 'nobody'",
        f"DELETE FROM mysql.{table} WHERE user = 'nobody'",
        "CREATE TABLE mysql.never (a INT)",
        "DROP TABLE IF EXISTS mysql.never",
        "USE mysql",
    ]
    assert [raw.ask(sql).code for sql in asked] == [1227] * 4 + [0]
    assert raw.ask(f"DELETE FROM {table} WHERE user = 'nobody'").code == 1227
    assert raw.ask("CREATE TABLE never (a INT)").code == 1227
