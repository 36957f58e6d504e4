"""SHOW and DESCRIBE: the same columns, types and rows as of one server with the logical tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymysql.constants import FIELD_TYPE
from pymysql.err import MySQLError

from tests.integration.fixtures import Connect
from tests.integration.test_views import DATABASES
from tests.support.cases import cases_in
from tests.support.servers import Connection, LocalServer

CASES: dict[str, list[str]] = cases_in(Path(__file__).parent / "metadata" / "show.yaml")
VOLATILE = {
    *("Cardinality", "Rows", "Avg_row_length", "Data_length", "Index_length", "Data_free", "Version"),
    *("Auto_increment", "Create_time", "Update_time", "Max_data_length"),
}
TEXTS: set[Any] = {FIELD_TYPE.BLOB, FIELD_TYPE.VAR_STRING, FIELD_TYPE.STRING}
"""MySQL's WHERE shows ENUM and short BLOB columns as other texts than LIKE does."""
TABLES = {
    "demo": ["pins", "users", "board_has_pins", "email_to_user", "photos", "usernames", "countries"],
    "legacy": ["customers"],
}


#: What was done to a table shows in its definition; MySQL names the table space after any ALTER TABLE.
_HAPPENED = re.compile(r" AUTO_INCREMENT=[0-9]+| /\*!50100 TABLESPACE `innodb_system` \*/")


def outcome(connection: Connection, sql: str) -> Any:
    """Names and types of the columns, and the rows without what differs between any two servers; or the
    error.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            columns = [(one[0], -1 if one[1] in TEXTS else one[1]) for one in cursor.description]
            kept = [at for at, column in enumerate(columns) if column[0] not in VOLATILE]
            rows = [[row[at] for at in kept] for row in cursor.fetchall()]
    except MySQLError as error:
        return error.args[0]
    if columns[0][0].startswith("Database") and len(columns) == 1:
        rows = [row for row in rows if row[0] in DATABASES]
    return [column for column in columns if column[0] not in VOLATILE], [
        [_HAPPENED.sub("", one) if isinstance(one, str) else one for one in row] for row in rows
    ]


@pytest.fixture(scope="module")
def direct(plain: LocalServer) -> Iterator[Connection]:
    with plain.connect(charset="utf8mb4") as connection:
        yield connection


@pytest.mark.parametrize("database", ["demo", "legacy"])
@pytest.mark.parametrize("subject", CASES)
def test_same_answers(connect: Connect, direct: Connection, subject: str, database: str) -> None:
    through = connect(database=database)
    direct.select_db(database)
    with direct.cursor() as cursor:  # as the proxy's sessions: see Settings
        cursor.execute("SET NAMES utf8mb4")
    for table in TABLES[database] if subject == "table" else TABLES[database][:1]:
        for case in CASES[subject]:
            sql = case.replace("{db}", database).replace("{table}", table)
            assert outcome(through, sql) == outcome(direct, sql), sql


def rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


@pytest.mark.parametrize(
    "sql",
    ["SHOW PROCESSLIST", "SHOW FULL PROCESSLIST", "SELECT id, user FROM information_schema.PROCESSLIST"],
)
def test_sessions_are_the_proxys(connect: Connect, sql: str) -> None:
    """By the ids that KILL takes; the others' are for admins."""
    mine, other = connect(), connect(user="reader", password="reader")
    ids = {
        name: rows(one, "SELECT CONNECTION_ID()")[0][0] for name, one in (("demo", mine), ("reader", other))
    }
    assert {row[1]: row[0] for row in rows(mine, sql)} == ids
    assert [row[:2] for row in rows(other, sql)] == [(ids["reader"], "reader")]
    with mine.cursor() as cursor:
        cursor.execute(f"KILL {ids['reader']}")
    with pytest.raises(MySQLError):
        rows(other, "SELECT 1")


@pytest.mark.parametrize("whose", ["", " FOR CURRENT_USER()", " FOR 'reader'@'%'"])
def test_grants_are_the_users(connect: Connect, whose: str) -> None:
    """Not those of the proxy's account on the servers."""
    assert rows(connect(user="reader", password="reader"), "SHOW GRANTS" + whose) == [
        ("GRANT SELECT ON *.* TO `reader`@`%`",)
    ]


@pytest.mark.parametrize(
    ("sql", "code"), [("SHOW GRANTS FOR demo", 1141), ("SHOW CREATE VIEW demo.pins", 1347)]
)
def test_not_for_everybody(connect: Connect, sql: str, code: int) -> None:
    with pytest.raises(MySQLError) as raised:
        rows(connect(user="reader", password="reader"), sql)
    assert raised.value.args[0] == code


def test_variables_are_the_sessions(connect: Connect) -> None:
    through = connect(autocommit=False)
    with through.cursor() as cursor:
        cursor.execute("SET time_zone = '+03:00', wait_timeout = 77")
    found = dict(
        rows(through, "SHOW VARIABLES WHERE Variable_name IN ('time_zone', 'wait_timeout', 'autocommit')")
    )
    assert found == {"time_zone": "+03:00", "wait_timeout": "77", "autocommit": "OFF"}


@pytest.mark.parametrize(
    "names", ["utf8mb4 COLLATE utf8mb4_general_ci", "utf8mb4 COLLATE utf8mb4_unicode_ci", "utf8mb4", "latin1"]
)
def test_conditions_in_any_collation(connect: Connect, names: str) -> None:
    """What the proxy writes into a statement may be compared with the session's texts."""
    through = connect()
    with through.cursor() as cursor:
        cursor.execute(f"SET NAMES {names}")
    for sql in (
        "SHOW COLUMNS FROM pins WHERE Field = 'id' AND `Key` = 'PRI'",
        "SHOW INDEX FROM pins WHERE Key_name = 'PRIMARY'",
        "SHOW TABLES WHERE Tables_in_demo = 'pins'",
        "SHOW FULL TABLES WHERE Table_type = 'BASE TABLE' AND Tables_in_demo LIKE 'boards'",
        "SHOW DATABASES WHERE `Database` = 'demo'",
        "SELECT 1 FROM information_schema.schemata WHERE schema_name = 'demo'",
        "SELECT 1 FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'pins'"
        " AND column_name = 'id' AND column_key IN ('PRI')",
        "SELECT 1 FROM information_schema.processlist WHERE user = 'demo' AND db = 'demo'",
    ):
        assert len(rows(through, sql)) == 1, sql


def test_a_condition_is_an_expression(connect: Connect, plain: LocalServer) -> None:
    """And nothing behind it, whatever the proxy makes of it."""
    with connect() as through, plain.connect(database="demo") as server:
        for sql in (
            "SHOW DATABASES WHERE 0 UNION SELECT 'abc'",
            "SHOW TABLES FROM demo WHERE 0 UNION SELECT 99999",
            "SHOW TABLES WHERE 1 LIMIT 1",
            "SHOW TABLES WHERE 1 GROUP BY 1",
            "SHOW COLUMNS FROM pins WHERE 1 ORDER BY 1",
            "SHOW TABLES WHERE 1) OR (1",
        ):
            codes = []
            for connection in (through, server):
                with pytest.raises(MySQLError) as error:
                    rows(connection, sql)
                codes.append(error.value.args[0])
            assert codes == [1064, 1064], sql


@pytest.mark.parametrize(
    "condition", ["GET_LOCK('shown', 0)", "@shown := 5", "RELEASE_ALL_LOCKS()", "Database IN (shown())"]
)
@pytest.mark.parametrize("what", ["DATABASES", "STATUS", "TABLES", "COLUMNS FROM pins", "INDEX FROM pins"])
def test_a_condition_leaves_nothing_to_others(connect: Connect, what: str, condition: str) -> None:
    with connect() as through:
        with pytest.raises(MySQLError) as error:
            rows(through, f"SHOW {what} WHERE {condition}")
        assert error.value.args[0] == 1235
        assert rows(through, f"SHOW {what}")
