"""Queries on information_schema, through the proxy and on one server with the logical tables: same answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pymysql.err import MySQLError

from fleet.create import Connection
from fleet.demo.servers import LocalServer
from tests.integration.fixtures import Connect, MakeOwn
from tests.support.demo import Demo

CASES: dict[str, list[str]] = yaml.safe_load((Path(__file__).parent / "metadata" / "views.yaml").read_text())
VOLATILE = {
    *("TABLE_ROWS", "AVG_ROW_LENGTH", "DATA_LENGTH", "MAX_DATA_LENGTH", "INDEX_LENGTH", "DATA_FREE"),
    *("AUTO_INCREMENT", "CREATE_TIME", "UPDATE_TIME", "CHECK_TIME", "CARDINALITY", "TABLE_ROWS > 0"),
    *("T.TABLE_ROWS > 0", "VERSION"),
}


def answer(connection: Connection, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names, and the rows without what differs between any two servers; sorted unless SQL sorts."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        names = [column[0] for column in cursor.description]
        kept = [at for at, name in enumerate(names) if name.upper() not in VOLATILE]
        rows = [tuple(row[at] for at in kept) for row in cursor.fetchall()]
    return names, rows if "ORDER BY" in sql.upper() else sorted(rows, key=repr)


@pytest.fixture(scope="module")
def direct(plain: LocalServer) -> Iterator[Connection]:
    with plain.connect(charset="utf8mb4") as connection:
        yield connection


@pytest.mark.parametrize("database", ["demo", "legacy"])
@pytest.mark.parametrize("client", CASES)
def test_same_answers(connect: Connect, direct: Connection, client: str, database: str) -> None:
    through = connect(database=database)
    direct.select_db(database)
    for case in CASES[client]:
        sql = case.replace("{db}", database).replace("%%", "%")
        try:
            expected: Any = answer(direct, sql)
        except MySQLError as error:
            with pytest.raises(MySQLError) as raised:
                answer(through, sql)
            assert raised.value.args[0] == error.args[0], sql
            continue
        if "'db00000'" in sql:
            continue
        assert answer(through, sql) == expected, sql
