"""Groups that the shards make, on real servers. That they are right is the differential test's to say."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeRaw
from tests.integration.raw import Raw


@pytest.fixture
def reader(raw: MakeRaw) -> Raw:
    """A user who may read 1000 rows in a scatter: fewer than there are pins."""
    client = raw(login=False)
    client.login("reader", "reader", "demo")
    return client


def route(client: Raw, sql: str) -> list[tuple[str, str]]:
    rows = client.ask("EXPLAIN ROUTE " + sql).rows
    return [((row[0] or b"").decode(), (row[1] or b"").decode()) for row in rows]


def test_groups_travel_instead_of_rows(reader: Raw) -> None:
    assert reader.ask("SELECT AVG(id) * 1, COUNT(*) FROM pins").code == 1104
    for sql, rows in (
        ("SELECT COUNT(*), COUNT(DISTINCT ts) > 0, AVG(id) > 0 FROM pins HAVING COUNT(*) > 5", None),
        ("SELECT COUNT(*) AS n, BIT_AND(id) FROM pins", 1),
        ("SELECT id % 7 AS k, COUNT(*) FROM pins GROUP BY k ORDER BY COUNT(*) DESC, k LIMIT 3", 3),
        ("SELECT DISTINCT id % 5 FROM pins", 5),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT id % 5 FROM pins) d", 1),
        ("SELECT id % 2, COUNT(*), MIN(id) FROM pins GROUP BY 1 WITH ROLLUP", 3),
    ):
        reply = reader.ask(sql)
        if rows is None:
            assert reply.code == 1104, sql
        else:
            assert len(reply.rows) == rows, reply
    counted = reader.ask("SELECT id % 7, COUNT(*) FROM pins GROUP BY id % 7")
    assert sum(int(row[1] or 0) for row in counted.rows) == 1800
    assert counted.columns == ["id % 7", "COUNT(*)"]


def test_both_phases_are_shown(reader: Raw) -> None:
    found = route(reader, "SELECT id % 7, COUNT(*) FROM pins GROUP BY id % 7")
    assert found[:2] == [
        ("plan", "groups made by the shards, combined by one server"),
        ("piece 1", "demo.pins into g1, groups made by the shards"),
    ]
    assert any("GROUP BY 1" in detail and "db00000" in detail for _, detail in found)
    assert any("SUM(sg_2)" in detail for _, detail in found)


def test_errors_are_the_servers(reader: Raw) -> None:
    """And none is of tables that only the proxy knows."""
    for sql, code in (
        ("SELECT nosuch, COUNT(*) FROM pins GROUP BY nosuch", 1054),
        ("SELECT id % 7, COUNT(*) FROM pins GROUP BY 5", 1054),
        ("SELECT COUNT(*) AS n FROM pins GROUP BY n", 1056),
        ("SELECT COUNT(*) FROM pins HAVING nosuch > 1", 1054),
    ):
        assert reader.ask(sql).code == code, sql
    assert reader.ask("SELECT COUNT(*), BIT_OR(id) > 0 FROM pins").rows == [(b"1800", b"1")]


def test_settings_of_the_session(reader: Raw) -> None:
    reader.ask("SET sql_mode = 'ANSI_QUOTES', sql_select_limit = 2, div_precision_increment = 7")
    reply = reader.ask('SELECT "id" % 7 AS k, AVG("id" % 7) FROM pins GROUP BY k ORDER BY k')
    assert reply.rows == [(b"0", b"0.0000000"), (b"1", b"1.0000000")]
    reader.ask("SET group_concat_max_len = 4, sql_select_limit = DEFAULT")
    assert reader.ask("SELECT GROUP_CONCAT(DISTINCT id % 3 ORDER BY id % 3) FROM pins").value == b"0,1,"


def test_rows_of_a_scatter_are_limited_once(raw: MakeRaw) -> None:
    """By sql_select_limit, not by each host; a LIMIT of the statement's own goes before it."""
    client = raw()
    client.ask("SET sql_select_limit = 7")
    for sql, rows in (
        ("SELECT id FROM pins", 7),
        ("SELECT id FROM pins ORDER BY id", 7),
        ("SELECT id FROM pins LIMIT 20", 20),
        ("SELECT DISTINCT id FROM pins", 7),
        ("SELECT id, COUNT(*) FROM pins GROUP BY id", 7),
    ):
        assert len(client.ask(sql).rows) == rows, sql
    assert client.ask("SELECT COUNT(*), MIN(id) > 0 FROM pins").rows == [(b"1800", b"1")]
    client.ask("SET sql_select_limit = DEFAULT")
    assert len(client.ask("SELECT id FROM pins").rows) == 1800


def test_found_rows(raw: MakeRaw) -> None:
    client = raw()
    for sql, found in (
        ("SELECT id FROM pins LIMIT 5 OFFSET 3", b"8"),
        ("SELECT id FROM pins ORDER BY id LIMIT 5 OFFSET 1798", b"1800"),
        ("SELECT id FROM pins ORDER BY id LIMIT 5 OFFSET 5000", b"1800"),
        ("SELECT SQL_CALC_FOUND_ROWS id FROM pins ORDER BY id LIMIT 5", b"1800"),
        ("SELECT SQL_CALC_FOUND_ROWS id % 7 AS k, COUNT(*) FROM pins GROUP BY k LIMIT 2", b"7"),
        ("SELECT SQL_CALC_FOUND_ROWS DISTINCT id % 5 FROM pins LIMIT 1", b"5"),
        ("SELECT COUNT(*) FROM pins", b"1"),
    ):
        assert client.ask(sql).kind == "rows"
        assert client.ask("SELECT FOUND_ROWS()").value == found, sql


def test_groups_on_one_shard_are_merged_as_rows(raw: MakeRaw) -> None:
    client = raw()
    sql = "SELECT user_id, COUNT(*) AS n FROM user_likes_pins GROUP BY user_id"
    everything = sorted(((int(row[1] or 0), int(row[0] or 0)) for row in client.ask(sql).rows), reverse=True)
    top = client.ask(sql + " HAVING n > 1 ORDER BY n DESC, user_id DESC LIMIT 5").rows
    assert [(int(row[1] or 0), int(row[0] or 0)) for row in top] == everything[:5]
    assert ("plan", "read from shards") in route(client, sql)


def test_warnings_of_what_only_the_shards_compute(raw: MakeRaw) -> None:
    client = raw()
    reply = client.ask("SELECT id % 2 AS k, COUNT(*) FROM pins WHERE id > 5 + '1x' GROUP BY k")
    assert len(reply.rows) == 2
    assert reply.warnings
    shown = client.ask("SHOW WARNINGS").rows
    assert shown
    assert {row[1] for row in shown} == {b"1292"}


def test_values_look_as_on_one_server(raw: MakeRaw) -> None:
    """Not as in a UNION, where MySQL gives all of a column the same number of digits."""
    client = raw()
    sql = "SELECT CASE WHEN id % 2 THEN 1.50 ELSE 0 END AS v, id FROM pins"
    alone = client.ask(
        "SELECT CASE WHEN 5 % 2 THEN 1.50 ELSE 0 END, CASE WHEN 4 % 2 THEN 1.50 ELSE 0 END"
    ).rows[0]
    assert {row[0] for row in client.ask(sql).rows} == set(alone)
    assert {row[0] for row in client.ask(sql + " ORDER BY v DESC, id LIMIT 1500").rows} == set(alone)


def test_numbers_of_many_digits(raw: MakeRaw) -> None:
    """MariaDB makes columns of a UNION as wide as it expects what it computes to be."""
    client = raw()
    shown = "ROUND(CONCAT(id, '') * 1e15, 3), CONVERT(id, CHAR) * 10, ABS(CONCAT(id, REPEAT('0', 40)))"
    for tail in ("", " ORDER BY 2 DESC", " ORDER BY id LIMIT 70", ""):
        rows = client.ask(f"SELECT id, {shown} FROM boards{tail}").rows
        assert len(rows) > 60
        for row in rows[:3]:
            board = (row[0] or b"").decode()
            assert client.ask(f"SELECT id, {shown} FROM boards WHERE id = {board}").rows == [row]


def test_a_list_of_which_one_shard_has_one_id(raw: MakeRaw) -> None:
    """A column is not determined by it, for MySQL's ONLY_FULL_GROUP_BY."""
    client = raw()
    client.ask("SET sql_mode = 'ONLY_FULL_GROUP_BY'")
    pin = int(client.ask("SELECT MIN(id) FROM pins").value or 0)
    for tail, code in (("", 1140), (" GROUP BY data", 1055)):
        assert client.ask(f"SELECT ts, COUNT(*) FROM pins WHERE id IN ({pin}, 5){tail}").code == code
    assert client.ask(f"SELECT COUNT(*) FROM pins WHERE id IN ({pin}, 5)").value == b"1"


def test_a_condition_on_a_derived_table_is_no_scatter(reader: Raw) -> None:
    """It says which rows are gathered."""
    pin = int(reader.ask("SELECT MAX(id) FROM pins").value or 0)
    for sql in (
        f"SELECT x.k, x.k % 7 AS r FROM (SELECT id AS k, data FROM pins) x WHERE x.k = {pin} HAVING r < 7",
        f"WITH c AS (SELECT * FROM pins) SELECT id, COUNT(*) FROM c WHERE id IN ({pin}, 5) GROUP BY id",
    ):
        assert [row[0] for row in reader.ask(sql).rows] == [b"%d" % pin], sql
    assert reader.ask("SELECT x.k FROM (SELECT id AS k, data FROM pins LIMIT 1100) x").code == 1104
