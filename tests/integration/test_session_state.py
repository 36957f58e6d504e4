"""What outlasts a statement as on one server: SET TRANSACTION, older warnings, LAST_INSERT_ID(value)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import pytest

from tests.fuzz.sessions.client import Session
from tests.integration.fixtures import Connect, make_id
from tests.integration.test_told_ids import outcome
from tests.support.demo import Demo
from tests.support.servers import LocalServer

Both = Callable[..., list[object]]

USER: Final = make_id(2, 3, 9_700_000)
PHOTO: Final = 777_000_000 << 23 | USER % 64 << 10 | 997
WARNING: Final = "SELECT CAST('older' AS SIGNED)"
ID: Final = "SELECT LAST_INSERT_ID()"
WRITE: Final = "INSERT INTO left_v VALUES (1)"
REFUSED: Final = 1792
_MADE: Final = (
    "CREATE TABLE legacy.left_v (v INT)",
    "CREATE FUNCTION legacy.left_calm(x INT) RETURNS INT DETERMINISTIC RETURN x + 1",
    "CREATE FUNCTION legacy.left_reads() RETURNS INT READS SQL DATA RETURN (SELECT COUNT(*) FROM left_v)",
    "CREATE PROCEDURE legacy.left_sets(x INT) SET @a = x",
    "CREATE PROCEDURE legacy.left_counts() SELECT COUNT(*) FROM left_v",
    "CREATE PROCEDURE legacy.left_fails() SIGNAL SQLSTATE '45000'",
)
_GONE: Final = (
    "DROP TABLE IF EXISTS legacy.left_v",
    *(f"DROP FUNCTION IF EXISTS legacy.left_{name}" for name in ("calm", "reads")),
    *(f"DROP PROCEDURE IF EXISTS legacy.left_{name}" for name in ("sets", "counts", "fails")),
)


@pytest.fixture
def both(connect: Connect, plain: LocalServer) -> Iterator[Both]:
    """Runs statements in new sessions of the proxy and of a plain server, which must answer alike."""
    sides = (connect, lambda database: plain.connect(database=database, autocommit=True))

    def ask(*statements: str, database: str = "legacy") -> list[object]:
        found = []
        for side in sides:
            with side(database=database) as connection:
                found.append([outcome(connection, sql) for sql in statements])
        assert found[0] == found[1]
        return found[0]

    ask(*_GONE, *_MADE)
    yield ask
    ask(*_GONE)


READ_ONLY: Final = (
    "SELECT 1 INTO @a",
    "/* FROM left_v */ SELECT EXTRACT(DAY FROM '2012-01-02'), `left_calm`(1)",
    "SELECT 1 FROM DUAL",
    "SELECT * FROM (SELECT 1 AS a) AS x",
    "SELECT LEFT_CALM(1)",
    "DO left_calm(1)",
    "SET @a = left_calm(1)",
    "CALL left_sets(1)",
    "CALL left_fails()",
    "SAVEPOINT s",
    "PREPARE p FROM 'SELECT 1'",
    "SELECT no_such_column",
)
USED_UP: Final = (
    "SELECT left_reads()",
    "SELECT left_reads() INTO @a",
    "DO left_reads()",
    "SET @a = left_reads()",
    "CALL left_counts()",
    "SELECT COUNT(*) FROM left_v",
    "SELECT (SELECT COUNT(*) FROM left_v)",
    "SELECT v FROM left_v WHERE (SELECT 1 UNION SELECT 2) = v",
)


@pytest.mark.parametrize("statement", READ_ONLY)
def test_set_transaction_outlasts_what_touches_no_table(both: Both, statement: str) -> None:
    found = both("SET TRANSACTION READ ONLY", statement, WRITE, "SELECT COUNT(*) FROM left_v", WRITE)
    assert found[2:] == [REFUSED, ((0,),), (1, 0)]


def test_lock_tables_uses_set_transaction_up(both: Both) -> None:
    lock = ("SET TRANSACTION READ ONLY", "LOCK TABLES left_v WRITE", "UNLOCK TABLES", WRITE)
    assert both(*lock)[3] == (1, 0)


@pytest.mark.parametrize("statement", USED_UP)
def test_set_transaction_ends_with_what_touches_a_table(both: Both, statement: str) -> None:
    assert both("SET TRANSACTION READ ONLY", statement, WRITE)[2] == (1, 0)


def test_a_write_by_code_meets_set_transaction(both: Both, flavour: str) -> None:
    both(
        "CREATE FUNCTION left_writes() RETURNS INT MODIFIES SQL DATA"
        " BEGIN INSERT INTO left_v VALUES (2); RETURN 1; END"
    )
    writes = ["SELECT left_writes()", "SET @a = left_writes()", "DO left_writes()"]
    if flavour == "mariadb":
        both("CREATE SEQUENCE left_numbers")
        writes += ["SELECT NEXTVAL(left_numbers)", "SELECT NEXT VALUE FOR left_numbers", "EXECUTE IMMEDIATE"]
        writes[-1] += " 'INSERT INTO left_v VALUES (3)'"
    try:
        for write in writes:
            assert both("SET TRANSACTION READ ONLY", write)[1] == REFUSED
        assert both("SELECT COUNT(*) FROM left_v") == [((0,),)]
    finally:
        both("DROP FUNCTION left_writes")
        if flavour == "mariadb":
            both("DROP SEQUENCE left_numbers")


def test_set_transaction_outlasts_a_query_without_tables_before_a_write_on_shards(both: Both) -> None:
    write = f"UPDATE pins SET data = '{{}}' WHERE id = {make_id(3, 1, 9_700_000)}"
    first = ("SET TRANSACTION READ ONLY", "SELECT 1 INTO @a")
    found = both(*first, write, "INSERT INTO countries VALUES ('Q8', 'x')", database="demo")
    assert found[2:] == [REFUSED, REFUSED]


@pytest.mark.parametrize(
    "statement",
    [
        *(sql for sql in READ_ONLY if "FAILS" not in sql.upper() and "no_such" not in sql),
        *USED_UP[:5],
        "SELECT UPPER('a')",
        "SELECT GET_LOCK('left', 0), RELEASE_LOCK('left')",
        "SELECT (SELECT 1)",
        "SELECT @@warning_count",
        "BEGIN",
    ],
)
def test_older_warnings_are_kept_as_by_a_server(both: Both, statement: str) -> None:
    found = both(WARNING, statement, "SELECT @@warning_count, @@error_count")
    again = both(WARNING, statement, "SHOW WARNINGS")
    assert found[2] == ((len(again[2]), 0),)  # type: ignore[arg-type]


def test_older_warnings_outlast_prepared_texts(both: Both, flavour: str) -> None:
    show = "SHOW WARNINGS"
    both("PREPARE p FROM 'SELECT 1'", WARNING, "EXECUTE p", show, "DEALLOCATE PREPARE p", show)
    if flavour == "mariadb":
        both(WARNING, "EXECUTE IMMEDIATE 'SELECT 1'", "SELECT @@warning_count, @@error_count", show)
        both(WARNING, "EXECUTE IMMEDIATE 'SELECT v FROM left_v'", "SELECT @@warning_count", show)
        both(WARNING, "BEGIN NOT ATOMIC SET @a = 1; END", show)


def test_older_warnings_outlast_a_prepared_call(demo: Demo, plain: LocalServer, both: Both) -> None:
    user = demo.ready["proxy"]
    found = []
    for session in (
        Session(demo.host, demo.port, user["user"], user["password"], "legacy"),
        Session(plain.host, plain.port, plain.user, plain.password, "legacy"),
    ):
        with session:
            session.ask(WARNING.encode())
            session.prepared(b"CALL left_sets(1)")
            found.append([answer.rows for answer in session.ask(b"SHOW WARNINGS")])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT LAST_INSERT_ID(2), LAST_INSERT_ID()",
        "SELECT LAST_INSERT_ID(), LAST_INSERT_ID(3), LAST_INSERT_ID()",
        "SELECT LAST_INSERT_ID(4) + `LAST_INSERT_ID`(), LAST_INSERT_ID(/* none */)",
        "SELECT LAST_INSERT_ID(5), @@last_insert_id",
    ],
)
@pytest.mark.parametrize("database", ["demo", "legacy"])
def test_an_assigned_id_is_seen_later_in_the_statement(both: Both, statement: str, database: str) -> None:
    both(statement, ID, "SELECT LAST_INSERT_ID(77)", statement, ID, database=database)


def test_writes_to_timed_and_reference_tables_assign(both: Both) -> None:
    photo = f"photos (id, caption, user_id) VALUES ({PHOTO}, {{}}, {USER})"
    clean = (f"DELETE FROM photos WHERE id = {PHOTO}", "DELETE FROM countries WHERE code LIKE 'Q%'")
    try:
        found = both(
            f"INSERT INTO {photo.format('LAST_INSERT_ID(7)')}",
            ID,
            f"INSERT INTO {photo.format('LAST_INSERT_ID(8)')}",
            ID,
            f"INSERT INTO {photo.format(1)} ON DUPLICATE KEY UPDATE caption = LAST_INSERT_ID(9)",
            ID,
            "INSERT INTO countries VALUES ('Q1', LAST_INSERT_ID(10))",
            ID,
            "INSERT INTO countries VALUES ('Q1', LAST_INSERT_ID(11))",
            ID,
            "REPLACE INTO countries VALUES ('Q1', LAST_INSERT_ID(12))",
            ID,
            "DELETE FROM countries WHERE code = 'Q1' AND LAST_INSERT_ID(13)",
            ID,
            "DELETE FROM countries WHERE code = 'Q7' AND LAST_INSERT_ID(14)",
            ID,
            database="demo",
        )
        assert found[1:16:2] == [((number,),) for number in range(7, 15)]
    finally:
        both(*clean, database="demo")


@pytest.mark.parametrize("begin", ["DO 1", "BEGIN"])
def test_a_write_that_fails_assigns(both: Both, begin: str) -> None:
    insert = "INSERT INTO email_to_user VALUES ('left@example.com', LAST_INSERT_ID({}))"
    found = both(
        begin, insert.format(25), ID, insert.format(26), ID,
        "DELETE FROM email_to_user WHERE email = 'left@example.com'", "COMMIT",
        database="demo",
    )  # fmt: skip
    assert found[1:5] == [(1, 25), ((25,),), 1062, ((26,),)]


@pytest.mark.parametrize("ending", ["", "SET profiling = 0", "BEGIN", "CALL left_sets(1)"])
def test_profiles_of_a_session_are_not_another_one_s(both: Both, connect: Connect, ending: str) -> None:
    """A reset leaves them on the connection, so that goes no further."""
    for _ in range(3):
        with connect(database="legacy") as one, one.cursor() as cursor:
            for sql in ("SET profiling = 1", "SELECT 'secret'", ending, "SELECT 'secret', v FROM left_v"):
                if sql:
                    cursor.execute(sql)
        for _ in range(10):
            with connect(database="legacy") as other, other.cursor() as cursor:
                cursor.execute("SHOW PROFILES")
                assert cursor.fetchall() == ()


def test_a_session_s_own_profiles(connect: Connect, plain: LocalServer) -> None:
    """Its connection stays with it, also outside of a transaction and when profiling is off again."""
    shown = []
    with connect(database="legacy") as through, plain.connect(database="legacy") as direct:
        for connection in (through, direct):
            with connection.cursor() as cursor:
                cursor.execute("SET profiling = 1")
                cursor.execute("SELECT 'first'")
                cursor.execute("SELECT 'second' FROM orders LIMIT 1")
                cursor.execute("SET profiling = 0")
                cursor.execute("SELECT 'third'")
                cursor.execute("SHOW PROFILES")
                shown.append([text for _, _, text in cursor.fetchall() if text.startswith("SELECT '")])
    assert shown[0] == shown[1] == ["SELECT 'first'", "SELECT 'second' FROM orders LIMIT 1"]
