"""Values of a session that servers keep for a connection and read without being asked: they cannot be set,
since sessions share connections. Above all sql_auto_is_null, under which `id IS NULL` is the last insert id.
"""

from __future__ import annotations

from collections.abc import Iterator

import pymysql
import pytest
from pymysql.cursors import Cursor

from tests.integration.fixtures import Connect
from tests.support.demo import Demo

ON = [
    "SET SQL_AUTO_IS_NULL = 1",
    "SET SESSION sql_auto_is_null = ON",
    "SET @@sql_auto_is_null = TRUE",
    "SET @@session.`sql_auto_is_null` = '1'",
    "SET sql_auto_is_null = 2 - 1",
    "SET time_zone = '+00:00', sql_auto_is_null = 1",
    "SET @a = 5, sql_auto_is_null = @a = 7",
    "SET GLOBAL sql_auto_is_null = 1",
    "/*!40101 SET sql_auto_is_null = 1 */",
]
ON_MARIADB = [
    "SET STATEMENT sql_auto_is_null = 1 FOR {}",
    "SET STATEMENT sql_notes = 0, sql_auto_is_null = ON FOR {}",
]
ON_MYSQL = [
    "{verb} /*+ SET_VAR(sql_auto_is_null = 1) */ {rest}",
    "{verb} /*+ set_var( SQL_AUTO_IS_NULL='ON') */ {rest}",
]
OF_CODE = {
    "CREATE PROCEDURE nulls() SET SESSION sql_auto_is_null = 1": "CALL nulls()",
    "CREATE FUNCTION nulled() RETURNS INT DETERMINISTIC BEGIN SET sql_auto_is_null = 1; RETURN 1; END":
        "SELECT nulled()",
}  # fmt: skip
FIND = "SELECT * FROM auto WHERE id IS NULL"


@pytest.fixture
def two(connect: Connect) -> Iterator[tuple[Cursor, Cursor]]:
    first, second = (connect(database="legacy").cursor() for _ in "ab")
    first.execute("CREATE TABLE auto (id INT AUTO_INCREMENT PRIMARY KEY, who VARCHAR(10))")
    yield first, second
    first.execute("DROP TABLE auto")


def insert_and_look(two: tuple[Cursor, Cursor], find: str = FIND) -> None:
    """What one has inserted another does not find, whichever connection is taken."""
    first, second = two
    for _ in range(4):
        first.execute("INSERT INTO auto (who) VALUES ('first')")
        second.execute(find)
        assert second.fetchall() == ()


@pytest.mark.parametrize("sql", ON)
def test_it_is_refused(two: tuple[Cursor, Cursor], sql: str) -> None:
    _, second = two
    second.execute("SET @a = 7")
    with pytest.raises(pymysql.Error, match="LAST_INSERT_ID") as caught:
        second.execute(sql)
    assert caught.value.args[0] == 1231
    second.execute("SELECT @@sql_auto_is_null, @@global.sql_auto_is_null, @@session.sql_auto_is_null, @a")
    assert second.fetchall() == ((0, 0, 0, 7),)
    insert_and_look(two)


def test_it_is_refused_for_one_statement(two: tuple[Cursor, Cursor], flavour: str) -> None:
    verb, _, rest = FIND.partition(" ")
    for form in ON_MARIADB if flavour == "mariadb" else ON_MYSQL:
        sql = form.format(FIND, verb=verb, rest=rest)
        with pytest.raises(pymysql.Error) as caught:
            two[1].execute(sql)
        assert caught.value.args[0] == 1231
        two[0].execute("INSERT INTO auto (who) VALUES ('first')")
        two[1].execute(f'PREPARE s FROM "{sql}"')
        insert_and_look(two, "EXECUTE s")


@pytest.mark.parametrize("value", ["0", "OFF", "DEFAULT", "@@global.sql_auto_is_null"])
def test_off_it_may_be_set(two: tuple[Cursor, Cursor], value: str) -> None:
    two[1].execute(f"SET sql_auto_is_null = {value}")
    insert_and_look(two)


@pytest.mark.parametrize("made", OF_CODE)
def test_code_does_not_leave_it_on(two: tuple[Cursor, Cursor], made: str) -> None:
    run, kind = OF_CODE[made], made.split("(")[0].removeprefix("CREATE ")
    two[0].execute(made)
    try:
        two[1].execute(run)
        insert_and_look(two)
        two[1].execute("SELECT @@sql_auto_is_null")
        assert two[1].fetchall() == ((0,),)
    finally:
        two[0].execute(f"DROP {kind}")


def test_prepared_it_does_not_stay_on(two: tuple[Cursor, Cursor]) -> None:
    first, second = two
    first.execute("INSERT INTO auto (who) VALUES ('first')")
    second.execute("PREPARE s FROM 'SET sql_auto_is_null = 1'")
    second.execute("EXECUTE s")
    insert_and_look(two)


@pytest.mark.parametrize(
    "sql",
    [
        "SET insert_id = 50",
        "SET time_zone = '+00:00', insert_id = 50",
        "SET @@session.insert_id = 25 + 25",
        "SET sql_notes = @@sql_notes, pseudo_thread_id = 5",
        "SET gtid_seq_no = 50",
        "SET gtid_next = '3E11FA47-71CA-11E1-9E33-C80AA9429562:23'",
    ],
)
def test_what_is_for_one_statement_is_refused(two: tuple[Cursor, Cursor], sql: str) -> None:
    first, second = two
    with pytest.raises(pymysql.Error) as caught:
        second.execute(sql)
    assert caught.value.args[0] == 1235
    first.execute("INSERT INTO auto (who) VALUES ('first')")
    second.execute("INSERT INTO auto (who) VALUES ('second')")
    second.execute("SELECT MAX(id) FROM auto")
    assert second.fetchall() == ((2,),)


def test_nobody_knows_the_random_numbers_of_the_next(connect: Connect) -> None:
    """The seeds that one has set are not those of who gets the connection then."""
    first, second = (connect(database="legacy").cursor() for _ in "ab")
    found = set()
    for _ in range(3):
        first.execute("SET rand_seed1 = 1, rand_seed2 = 1")
        first.execute("SELECT RAND() FROM DUAL")
        second.execute("SELECT RAND() FROM DUAL")
        found.add(second.fetchall())
    assert len(found) == 3


def test_many_assignments_want_the_rights_of_each(demo: Demo, unharmed: None) -> None:
    """However many assignments stand before SET GLOBAL."""
    with demo.reader() as reader, reader.cursor() as cursor, pytest.raises(pymysql.Error, match="role admin"):
        cursor.execute("SET time_zone = '+00:00', GLOBAL sql_notes = 1")
