"""SHOW PROXY QUERIES: what was run, how often, how long, without literals."""

from __future__ import annotations

import contextlib

import pymysql

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
