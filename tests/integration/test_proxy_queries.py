"""SHOW PROXY QUERIES: what was run, how often, how long, without literals."""

from __future__ import annotations

import contextlib

import pymysql

from tests.integration.binary import Binary, integer
from tests.integration.fixtures import MakeOwn, MakeRaw
from tests.integration.raw import Raw
from tests.support.demo import Demo


def test_counts_and_times(demo: Demo) -> None:
    with demo.connect() as connection, connection.cursor() as cursor:
        for number in range(5):
            cursor.execute(f"SELECT data AS probe_queries FROM pins WHERE id = {68719476737 + number}")
        with contextlib.suppress(pymysql.MySQLError):
            cursor.execute("SELECT probe_queries FROM usernames WHERE username = 'secret'")
        cursor.execute("SHOW PROXY QUERIES LIKE '%probe_queries%'")
        names = [column[0] for column in cursor.description or ()]
        found = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    point = next(row for row in found if row["Plan"] == "select")
    assert point["Digest"] == "SELECT data AS probe_queries FROM pins WHERE id = ?"
    assert (point["Db"], point["Count"], point["Errors"]) == ("demo", 5, 0)
    assert 0 < float(point["Mean_ms"]) <= float(point["Max_ms"]) <= float(point["Total_ms"])
    failed = next(row for row in found if row["Plan"] == "passthrough")
    assert (failed["Count"], failed["Errors"]) == (1, 1)
    assert "secret" not in failed["Digest"]


def rows_of(client: Raw, like: str) -> list[tuple[str, str, int, float]]:
    """Digest, plan, count, and shards in the mean."""
    found = client.ask(f"SHOW PROXY QUERIES LIKE '{like}'").rows
    texts = [[(value or b"").decode() for value in row] for row in found]
    return [(row[0], row[2], int(row[3]), float(row[12])) for row in texts]


def test_prepared_executions_are_counted(raw: MakeRaw) -> None:
    client = raw()
    binary = Binary(client)
    for sql, plan in (
        ("SELECT data AS probe_executed FROM pins WHERE id = ?", "select"),
        ("SELECT COUNT(*) AS probe_executed FROM legacy.customers WHERE id > ?", "passthrough"),
    ):
        statement = binary.statement(sql)
        for number in range(3):
            assert binary.execute(statement.id, [integer(68719476737 + number)]).kind == "rows"
        (found,) = [one for one in rows_of(client, "%probe_executed%") if one[1] == plan]
        assert found[:3] == (sql, plan, 3)
        binary.close(statement.id)


def test_the_plan_cache_may_forget(own: MakeOwn) -> None:
    """What it has dropped is still told of, also of a prepared statement that runs on."""
    client = own({"plan_cache_size": 4}).raw()
    binary = Binary(client)
    statement = binary.statement("SELECT data AS dropped FROM pins WHERE id = ?")
    for _ in range(2):
        assert binary.execute(statement.id, [integer(68719476737)]).kind == "rows"
        client.ask("SELECT COUNT(*) AS dropped FROM legacy.customers WHERE id = 5")
        for number in range(40):
            client.ask(f"SELECT 1 AS another_{number}")
    found = {digest: count for digest, _, count, _ in rows_of(client, "%dropped%")}
    assert found == {
        "SELECT data AS dropped FROM pins WHERE id = ?": 2,
        "SELECT COUNT(*) AS dropped FROM legacy.customers WHERE id = ?": 2,
    }
    assert len(rows_of(client, "SELECT ? AS another%")) == 40


def test_gathers_count_for_their_shards(raw: MakeRaw) -> None:
    client = raw()

    def statements() -> int:
        rows = client.ask("SHOW SHARDS LIKE 'main'").rows
        return sum(int(row[names.index("Total")] or 0) for row in rows)

    names = client.ask("SHOW SHARDS LIKE 'main'").columns
    before = statements()
    sql = "SELECT COUNT(*) AS probe_gathers FROM boards b JOIN users u ON u.id > b.id"
    assert client.ask(sql).kind == "rows"
    assert statements() >= before + 128
    (found,) = rows_of(client, "%probe_gathers%")
    assert found[1:] == ("gather", 1, 128.0)
