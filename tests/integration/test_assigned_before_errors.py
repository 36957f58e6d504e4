"""User variables that a statement assigns before it fails, or on one connection only, are the
session's, as on one server.
"""

from __future__ import annotations

from tests.integration.both_sides import both_sides
from tests.integration.fixtures import make_id
from tests.support.demo import Demo
from tests.support.servers import LocalServer

PIN = make_id(0, 1, 20)
PINS = f"({PIN}, 1125968626319379)"
STATEMENTS = (
    "USE demo",
    f"SELECT IF(@a := 3, EXP(9999), 1) FROM pins WHERE id = {PIN}",
    f"SELECT id INTO @a FROM pins WHERE id IN {PINS}",
    "SELECT IF(@a := 4, EXP(9999), 1) FROM legacy.customers",
    "SELECT (SELECT @a := 7), (SELECT id FROM pins WHERE id > 0) FROM countries",
    "CREATE TEMPORARY TABLE legacy.made SELECT @a := id FROM legacy.customers",
    "DROP TABLE legacy.made",
    "CREATE TEMPORARY TABLE legacy.made (z INT PRIMARY KEY) SELECT @a := id, 1 AS z FROM legacy.customers",
)


def test_what_was_assigned_is_kept(demo: Demo, plain: LocalServer) -> None:
    with both_sides(demo, plain, "of_assigned") as sides:
        for sql in STATEMENTS:
            for each in (
                sql,
                "SELECT CONCAT(@a, '')",
                f"SELECT id, CONCAT(@a, '') FROM pins WHERE id IN {PINS}",
            ):
                ours, theirs = (side.ask(each) for side in sides)
                found, expected = ((one.kind, one.code, sorted(one.rows)) for one in (ours, theirs))
                assert found == expected, (sql, each)
            if not sql.startswith("DROP"):
                for side in sides:
                    side.ask("SET @a = NULL")
