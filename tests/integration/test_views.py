"""Queries on information_schema: the same answers as of one server with the logical tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymysql.err import MySQLError

from rewriter.plain.views import VIEWS
from tests.integration.fixtures import Connect, MakeOwn, MakeRaw
from tests.integration.raw import query
from tests.support.cases import cases_in
from tests.support.demo import Demo
from tests.support.servers import Connection, LocalServer

CASES: dict[str, list[str]] = cases_in(Path(__file__).parent / "metadata" / "views.yaml")
VOLATILE = {
    *("TABLE_ROWS", "AVG_ROW_LENGTH", "DATA_LENGTH", "MAX_DATA_LENGTH", "INDEX_LENGTH", "DATA_FREE"),
    *("AUTO_INCREMENT", "CREATE_TIME", "UPDATE_TIME", "CHECK_TIME", "CARDINALITY", "TABLE_ROWS > 0"),
    *("T.TABLE_ROWS > 0", "VERSION"),
}


DATABASES = {"demo", "legacy", "information_schema", "mysql", "performance_schema", "sys"}
"""Other tests may leave more."""


def answer(connection: Connection, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Column names, and the rows without what differs between any two servers; sorted unless SQL sorts."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        names = [column[0] for column in cursor.description]
        kept = [at for at, name in enumerate(names) if name.upper() not in VOLATILE]
        rows = [tuple(row[at] for at in kept) for row in cursor.fetchall()]
    if names[0].lower() in ("schema_name", "table_schema"):
        rows = [row for row in rows if row[0] in DATABASES]
    return names, rows if "ORDER BY" in sql.upper() else sorted(rows, key=repr)


def outcome(connection: Connection, sql: str) -> Any:
    """The answer, or the error's number."""
    try:
        return answer(connection, sql)
    except MySQLError as error:
        return error.args[0]


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
        if "'db00000'" not in sql:
            assert outcome(through, sql) == outcome(direct, sql), sql


@pytest.mark.parametrize("client", ["dbeaver", "jdbc", "others"])
def test_what_lives_on_another_host(own: MakeOwn, demo: Demo, direct: Connection, client: str) -> None:
    """The query runs on the default host; what that does not hold is asked elsewhere and written in."""
    topology = json.loads((demo.directory / "topology.json").read_text())
    topology["default"] = {"master": demo.masters[1].address}
    proxy = own(topology=topology)
    for database in ("demo", "legacy"):
        through = proxy.connect(database=database)
        direct.select_db(database)
        for case in CASES[client]:
            sql = case.replace("{db}", database).replace("%%", "%")
            if "NOT IN ('mysql'" not in sql and "'db00000'" not in sql:
                assert outcome(through, sql) == outcome(direct, sql), sql


def names(connection: Connection, sql: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return {str(row[0]) for row in cursor.fetchall()}


def test_physical_databases_are_hidden(connect: Connect) -> None:
    """But from who asks for one by name, or is in one."""
    through = connect()
    tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'db00003'"
    assert "pins" in names(through, tables)
    assert "pins" not in names(
        through, "SELECT table_schema FROM information_schema.tables WHERE table_name = 'pins'"
    )
    schemas = names(through, "SELECT schema_name FROM information_schema.schemata")
    assert {"demo", "legacy", "mysql", "information_schema"} <= schemas
    assert not [name for name in schemas if name[-5:].isdigit()]
    through.select_db("db00003")
    assert "local_id" in names(
        through, "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE()"
    )


@pytest.mark.parametrize("name", ["information_schema", "INFORMATION_SCHEMA", "Information_Schema"])
def test_inside_information_schema(connect: Connect, name: str) -> None:
    through = connect(database=name)
    assert names(through, "SELECT DATABASE()") == {"information_schema"}
    assert "pins" in names(through, "SELECT table_name FROM Tables WHERE table_schema = 'demo'")
    assert "InnoDB" in names(through, "SELECT engine FROM ENGINES")
    through.select_db("legacy")
    assert "customers" in names(
        through, f"SELECT table_name FROM {name}.Tables WHERE table_schema = DATABASE()"
    )
    with through.cursor() as cursor:
        cursor.execute(f"USE {name}")
    assert "TABLES" in {one.upper() for one in names(through, "SHOW TABLES")}


def test_beside_a_transaction(connect: Connect) -> None:
    """It neither opens nor joins one, and may be joined with tables of other databases."""
    through = connect()
    with through.cursor() as cursor:
        cursor.execute("SET transaction_mode = 'single'")
        cursor.execute("BEGIN")
        cursor.execute("SELECT * FROM pins WHERE id = %s", (63 << 46 | 1 << 36 | 1,))
        assert "pins" in names(
            through, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'demo'"
        )
        cursor.execute("ROLLBACK")
        cursor.execute(
            "SELECT count(*) FROM legacy.customers, information_schema.schemata WHERE schema_name = 'demo'"
        )
        joined = cursor.fetchall()
        cursor.execute("SELECT count(*) FROM legacy.customers")
        assert joined == cursor.fetchall()


def test_users_see_their_own(own: MakeOwn) -> None:
    user = {"name": "few", "password": "few", "role": "read", "databases": ["demo"]}
    proxy = own({"users": [user]})
    through = proxy.connect(user="few", password="few")
    schemas = names(through, "SELECT schema_name FROM information_schema.schemata")
    assert schemas == {"information_schema", "demo"}


def test_rows_come_as_the_server_has_them(raw: MakeRaw, connect: Connect) -> None:
    """A join of views has any number of rows: they are not held."""
    client = raw(database="legacy", receive_buffer=1 << 16)
    views = "information_schema.columns a, information_schema.columns b"
    client.write(query(f"SELECT a.*, b.* FROM {views}"))
    for _ in range(2000):
        assert client.packet()[:1] != b"\xff"
    killer = connect(database="legacy").cursor()
    killer.execute(f"KILL QUERY {client.id}")
    payload = b""
    while payload[:1] != b"\xff":
        payload = client.packet()
    assert int.from_bytes(payload[1:3], "little") == 1317
    assert client.ask("SELECT 5").value == b"5"


@pytest.mark.parametrize("view", sorted(VIEWS))
def test_columns_that_a_query_does_not_name_are_not_read(
    own: MakeOwn, demo: Demo, direct: Connection, view: str
) -> None:
    """The rows of another host are written into the query, but only the columns that it names."""
    topology = json.loads((demo.directory / "topology.json").read_text())
    topology["default"] = {"master": demo.masters[1].address}
    through = own(topology=topology).connect(database="legacy")
    schema = VIEWS[view].schema
    where = f" WHERE {schema} IN ('demo', 'legacy')" if schema else ""
    asked = f"SELECT * FROM information_schema.{view} LIMIT 0"
    if isinstance(outcome(direct, asked), int):
        assert outcome(through, asked) == outcome(direct, asked)
        return
    with through.cursor() as cursor:
        cursor.execute(asked)
        for definition in cursor.description if view != "PROCESSLIST" else ():
            name = definition[0]
            one = f"SELECT {name} FROM information_schema.{view}{where} ORDER BY 1"
            cursor.execute(one)
            rows = cursor.fetchall()
            assert cursor.description == (definition,)
            whole = f"(SELECT * FROM information_schema.{view}{where})"
            cursor.execute(f"SELECT x.{name} FROM {whole} x ORDER BY 1")
            assert name in VOLATILE or rows == cursor.fetchall(), one
        cursor.execute(f"SELECT COUNT(*) FROM information_schema.{view}{where}")
        counted = cursor.fetchone()
        cursor.execute(f"SELECT * FROM information_schema.{view}{where}")
        assert (len(cursor.fetchall()),) == counted
