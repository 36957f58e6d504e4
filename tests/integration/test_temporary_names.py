"""Temporary tables of one name in several databases: dropping one does not lose the other."""

from __future__ import annotations

from tests.integration.both_sides import both_sides
from tests.support.demo import Demo
from tests.support.servers import LocalServer

STATEMENTS = (
    "CREATE TEMPORARY TABLE same (v INT)",
    "INSERT INTO same VALUES (1)",
    "DROP TEMPORARY TABLE IF EXISTS mysql.same",
    "SELECT v FROM same",
    "USE mysql",
    "DROP TEMPORARY TABLE IF EXISTS same",
    "SELECT v FROM scripts.same",
    "DROP TABLE scripts.same",
    "SELECT v FROM scripts.same",
)


def test_a_temporary_table_outlasts_one_of_its_name_in_another_database(
    demo: Demo, plain: LocalServer
) -> None:
    with both_sides(demo, plain, "of_temporary_names") as sides:
        for sql in STATEMENTS:
            ours, theirs = (side.ask(sql) for side in sides)
            assert (ours.kind, ours.code, ours.rows) == (theirs.kind, theirs.code, theirs.rows), sql
            for side in sides:
                side.ask("SELECT 1")  # the connection would be given back
