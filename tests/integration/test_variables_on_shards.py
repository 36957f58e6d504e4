"""Session variables in statements over shards: connections that read shards, or gather their rows, have other
values of some of them than the session.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.answers import answer
from tests.integration.fixtures import Connect
from tests.support.servers import Connection, LocalServer

VARIABLES = {
    "net_write_timeout": "77",
    "sql_log_bin": "0",
    "sql_select_limit": "5",
    "max_error_count": "9",
    "character_set_results": "latin1",
    "autocommit": "0",
}

#: On one shard, on all, in groups, over gathered rows, by two reads, and where only a condition has it.
SELECTS = (
    "SELECT {0}, id FROM pins WHERE id = 68719476737",
    "SELECT {0}, id FROM pins ORDER BY id LIMIT 2",
    "SELECT {0}, COUNT(*) FROM pins",
    "SELECT {0}, MOD(id, 3) AS k, COUNT(*) FROM pins GROUP BY k ORDER BY k",
    "SELECT {0}, MAX(p.id) FROM pins p JOIN boards b ON b.id = JSON_VALUE(p.data, '$.board_id')",
    "SELECT {0}, p.id FROM pins p JOIN usernames u ON p.id = u.user_id ORDER BY p.id LIMIT 2",
    "SELECT COUNT(DISTINCT data) FROM pins WHERE {0} = {1}",
    "SELECT id FROM pins WHERE {0} = {1} ORDER BY id LIMIT 2",
    "SELECT COUNT(*) FROM pins HAVING {0} = {1}",
)


def columns(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    """The names and types of a result's columns."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        described: Any = cursor.description
        return [column[:2] for column in described]


@pytest.mark.parametrize("set_first", [False, True])
@pytest.mark.parametrize("name", VARIABLES)
def test_a_session_variable_is_the_session_s(
    connect: Connect, plain: LocalServer, flavour: str, name: str, set_first: bool
) -> None:
    value = VARIABLES[name]
    # MariaDB's own answer is 0 beside COUNT(*) and MAX(…), whatever the value is
    wrong = flavour == "mariadb" and name in ("autocommit", "sql_log_bin") and not set_first
    with connect() as through, plain.connect(database="demo") as direct:
        if set_first:
            for connection in (through, direct):
                answer(connection, f"SET {name} = {value}")
        for number, select in enumerate(SELECTS):
            if wrong and select.startswith(("SELECT {0}, COUNT", "SELECT {0}, MAX")):
                continue
            scope = "session." if number % 2 else ""
            sql = select.format(f"@@{scope}{name}", f"'{value}'" if name.startswith("char") else value)
            assert answer(through, sql) == answer(direct, sql), sql
            assert columns(through, sql) == columns(direct, sql), sql


def test_a_session_variable_in_a_write_that_reads_shards_is_the_session_s(
    connect: Connect, plain: LocalServer
) -> None:
    with connect() as through, plain.connect(database="demo") as direct:
        rows = []
        for connection in (through, direct):
            answer(connection, "CREATE TABLE legacy.of_session (name VARCHAR(30), value TEXT)")
            try:
                for name, value in VARIABLES.items():
                    answer(connection, f"SET {name} = {value}")
                    select = f"SELECT '{name}', @@{name} FROM pins ORDER BY id LIMIT 1"
                    answer(connection, f"INSERT INTO legacy.of_session {select}")
                answer(connection, "COMMIT")
                rows.append(answer(connection, "SELECT * FROM legacy.of_session ORDER BY name LIMIT 9"))
            finally:
                answer(connection, "DROP TABLE legacy.of_session")
    assert rows[0] == rows[1]
    assert dict(rows[0]) == VARIABLES
