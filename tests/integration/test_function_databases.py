"""The databases of stored functions: before the name, or the session's current one; never that of whoever had
the server's connection before.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.answers import answer
from tests.integration.binary import Answer, Binary
from tests.integration.fixtures import Connect, MakeOwn, MakeRaw
from tests.integration.raw import IN_TRANS, Raw
from tests.support.demo import Demo
from tests.support.servers import Connection, LocalServer

CALLS = [
    "SELECT calm(1)",
    "DO calm(1)",
    "SET @x = calm(1)",
    "SET @y = (1), @x = calm(1)",
    "/* app */ SELECT `calm` (1)",
    "SELECT {fn calm(1)}",
    "SELECT (SELECT calm(1))",
    "SELECT STRAIGHT_JOIN calm(1)",
    "SELECT EXTRACT(DAY FROM calm(1))",
    "WITH a AS (SELECT calm(1) AS b) SELECT * FROM a",
    "SELECT 1 UNION SELECT calm(1)",
    "EXPLAIN SELECT calm(1)",
    "SHOW VARIABLES WHERE calm(1) = 2",
    "SELECT calm(1) FROM information_schema.schemata LIMIT 1",
    "SELECT CONCAT(legacy.calm(1), calm(1))",
    "SELECT `ROW_COUNT`(), calm(1)",
]
ON_SINGLE_TABLES = [
    "SELECT calm(1) FROM demo.usernames LIMIT 1",
    "UPDATE demo.usernames SET user_id = calm(1)",
    "INSERT INTO demo.usernames VALUES ('calm', calm(1))",
    "CREATE VIEW legacy.calming AS SELECT calm(1) AS a",
    "CALL legacy.soothe(calm(1))",
]
MADE = (
    "CREATE FUNCTION legacy.calm(x INT) RETURNS INT DETERMINISTIC NO SQL RETURN x + 1",
    "CREATE FUNCTION legacy.locking(x VARCHAR(9)) RETURNS INT RETURN GET_LOCK(x, 0)",
    "CREATE FUNCTION legacy.keeping(x INT) RETURNS INT NO SQL BEGIN SET @kept = x; RETURN x; END",
    "CREATE PROCEDURE legacy.soothe(x INT) SELECT x",
)


def shown(connection: Connection) -> list[Any]:
    """The errors of SHOW WARNINGS, each once."""
    rows = [row[1:] for row in answer(connection, "SHOW WARNINGS") if row[0] == "Error"]
    return list(dict.fromkeys(rows))


def drop(connection: Connection) -> None:
    with connection.cursor() as cursor:
        for name in ("calm", "locking", "keeping"):
            cursor.execute(f"DROP FUNCTION IF EXISTS legacy.{name}")
        cursor.execute("DROP PROCEDURE IF EXISTS legacy.soothe")


@pytest.fixture
def functions(demo: Demo, plain: LocalServer) -> Iterator[Connection]:
    """A connection to a plain server; there, and in `legacy`, are the functions."""
    with demo.direct() as direct, plain.connect() as server:
        try:
            for connection in (direct, server):
                for sql in MADE:
                    assert answer(connection, sql) == ()
            yield server
        finally:
            drop(direct)
            drop(server)


@pytest.mark.parametrize("database", [None, "demo"])
def test_a_function_without_its_database_is_not_found_in_another_session_s(
    functions: Connection, connect: Connect, database: str | None
) -> None:
    other, client = connect(database="legacy"), connect(database=database)
    if database is not None:
        functions.select_db(database)
    for sql in CALLS:
        assert answer(other, "SELECT calm(1)") == ((2,),)
        expected = answer(functions, sql)
        assert expected[0] in (1305, 1046, 1630), sql
        assert answer(client, sql) == expected, sql
        assert shown(client) == [expected], sql
    for sql in ON_SINGLE_TABLES:
        assert answer(other, "SELECT calm(1)") == ((2,),)
        assert answer(client, sql) == answer(functions, "SELECT calm(1)"), sql


def test_a_function_without_its_database_is_the_current_database_s(
    functions: Connection, connect: Connect
) -> None:
    client = connect(database="legacy")
    for sql in CALLS[:-1]:
        functions.select_db("legacy")
        if "VARIABLES" not in sql and "EXPLAIN" not in sql:
            assert answer(client, sql) == answer(functions, sql), sql
    assert answer(client, "SELECT calm(user_id - user_id) FROM demo.usernames LIMIT 1") == ((1,),)


def test_a_prepared_call_is_not_found_in_another_session_s_database(
    functions: Connection, connect: Connect, raw: MakeRaw
) -> None:
    functions.select_db("demo")
    code, text = answer(functions, "SELECT calm(1)")
    other = connect(database="legacy")
    assert answer(other, "SELECT calm(1)") == ((2,),)
    refused = Binary(raw(database="demo")).prepare("SELECT calm(?)")
    assert isinstance(refused, Answer)
    assert (refused.code, refused.message) == (code, text)


def test_a_function_of_a_native_name_is_named_with_the_client_s_database(
    functions: Connection, connect: Connect
) -> None:
    functions.select_db("demo")
    other, client = connect(database="legacy"), connect(database="demo")
    answer(other, "SELECT 1")
    expected = answer(functions, "SELECT `ROW_COUNT`()")
    found = answer(client, "SELECT `ROW_COUNT`()")
    assert found[0] == expected[0] if expected[0] == 1630 else len(found) == 1
    if expected[0] == 1630:
        assert found == expected


def test_a_user_of_the_sharded_database_calls_no_function_of_another_one(
    functions: Connection, own: MakeOwn
) -> None:
    confined = {"name": "confined", "password": "x", "role": "write", "databases": ["demo"]}
    proxy = own({"users": [{"name": "all", "password": "x", "role": "admin"}, confined]})
    functions.select_db("demo")
    with (
        proxy.connect(user="all", password="x", database="legacy") as other,
        proxy.connect(user="confined", password="x", database="demo") as client,
    ):
        for sql in CALLS[:8]:
            assert answer(other, "SELECT calm(1)") == ((2,),)
            assert answer(client, sql) == answer(functions, sql), sql
        assert answer(client, "SELECT legacy.calm(1)")[0] == 1044


def email_on(demo: Demo, index: int) -> str:
    """An email whose row is on a host of the demo."""
    with demo.direct(index) as direct:
        tables = answer(
            direct, "SELECT table_schema FROM information_schema.tables WHERE table_name = 'email_to_user'"
        )
        for (database,) in tables:
            found = answer(direct, f"SELECT email FROM {database}.email_to_user LIMIT 1")
            if found and database != "demo":
                return str(found[0][0])
    raise AssertionError(index)


@pytest.mark.parametrize("begin", ["SET autocommit = 0", "BEGIN"])
def test_a_function_runs_on_its_database_s_host_in_a_transaction_on_another_one(
    functions: Connection, connect: Connect, demo: Demo, begin: str
) -> None:
    email = email_on(demo, 1)
    client = connect(database="demo")
    answer(client, begin)
    assert len(answer(client, f"SELECT * FROM email_to_user WHERE email = '{email}' FOR UPDATE")) == 1
    assert answer(client, "SELECT legacy.locking('fd')") == ((1,),)
    assert answer(client, "SET @a = legacy.keeping(7)") == ()
    assert answer(client, "SELECT @a, @kept") == ((7, 7),)
    assert answer(client, "DO legacy.keeping(8)") == ()
    assert answer(client, "SELECT @kept, legacy.calm(@kept)") == ((8, 9),)
    answer(client, "ROLLBACK")
    answer(client, "DO RELEASE_LOCK('fd')")


def test_statements_without_tables_say_that_a_transaction_is_open_on_another_host(
    functions: Connection, connect: Connect, demo: Demo, raw: MakeRaw
) -> None:
    emails = [email_on(demo, 0), email_on(demo, 1)]
    for email in emails:
        for sql in (
            "DO GET_LOCK('fd', 0)",
            "DO IS_FREE_LOCK('fd')",
            "DO RELEASE_LOCK('fd')",
            "SELECT GET_LOCK('fd', 0)",
            "SELECT RELEASE_LOCK('fd')",
            "DO legacy.calm(1)",
            "SET @a = legacy.calm(1)",
            "SELECT legacy.calm(1) FROM DUAL",
            "SHOW TABLES FROM legacy",
            "SET @a = 1",
            "SELECT 1",
        ):
            client: Raw = raw()
            client.ask("SET autocommit = 0")
            assert client.ask(
                f"UPDATE email_to_user SET user_id = user_id + 1 WHERE email = '{email}'"
            ).status
            assert client.ask(sql).status & IN_TRANS, sql
            assert not client.ask("ROLLBACK").status & IN_TRANS
            assert client.ask(f"SELECT COUNT(*) FROM email_to_user WHERE email = '{email}'").value == b"1"
            client.ask("ROLLBACK")


@pytest.mark.parametrize("begin", ["DO 0", "SET autocommit = 0", "BEGIN"])
@pytest.mark.parametrize(
    "call",
    [
        "SET @a = legacy.{}(7)",
        "SET @a = 7, @b = (SELECT legacy.{}(7))",
        "SET lock_wait_timeout = legacy.{}(7)",
        "SELECT @a := legacy.{}(7)",
        "SELECT legacy.{}(7) INTO @a",
        "DO @a := legacy.{}(7)",
        "DO legacy.{}(7)",
    ],
)
def test_what_a_function_sets_of_which_the_proxy_does_not_know(
    functions: Connection, connect: Connect, demo: Demo, begin: str, call: str
) -> None:
    """It is made on the server just before."""
    name = f"new_{zlib.crc32((begin + call).encode())}"
    made = f"CREATE FUNCTION legacy.{name}(x INT) RETURNS INT NO SQL BEGIN SET @kept = x; RETURN x; END"
    with demo.direct() as direct, connect(database="legacy") as client:
        functions.select_db("legacy")
        try:
            for connection in (direct, functions):
                assert answer(connection, made) == ()
            for sql in (begin, "SET @a = 1", call.format(name), "SELECT @a, @b, @kept", "ROLLBACK"):
                assert answer(client, sql) == answer(functions, sql), sql
            with connect(database="legacy") as other:
                assert answer(other, "SELECT @a, @b, @kept") == ((None, None, None),)
        finally:
            for connection in (direct, functions):
                answer(connection, f"DROP FUNCTION IF EXISTS legacy.{name}")
            for sql in ("SET autocommit = 1", "SET @a = NULL, @b = NULL, @kept = NULL"):
                answer(functions, sql)


@pytest.mark.parametrize("name", ["MD5", "sha1"])
def test_a_function_of_a_component_that_is_not_loaded(
    raw: MakeRaw, plain: LocalServer, flavour: str, name: str
) -> None:
    """MySQL 9.6 and later have these in one. No database of the proxy's shows in the error."""
    if flavour == "mariadb":
        pytest.skip("its functions are built in")
    for database in (None, "demo", "legacy"):
        with Raw("127.0.0.1", plain.port) as direct:
            assert direct.login(plain.user, plain.password, database or "").kind == "ok"
            expected = direct.ask(f"SELECT {name}(1)")
        client = raw(database=database)
        for sql in ("SELECT {}(1)", "SELECT {}(id) FROM demo.pins LIMIT 1", "DO {}(1)", "SET @a = {}(1)"):
            reply = client.ask(sql.format(name))
            assert (reply.code, reply.message) == (expected.code, expected.message), sql
        assert client.ask(f"SELECT legacy.{name}(1)").message == f"FUNCTION legacy.{name} does not exist"
