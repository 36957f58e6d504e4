"""An unknown or ambiguous column over several shards is told with the clause that it stands in."""

from __future__ import annotations

import pytest

from tests.integration.both_sides import logged_in
from tests.integration.fixtures import make_id
from tests.support.demo import Demo
from tests.support.servers import LocalServer

IDS = ", ".join(str(make_id(shard, 1, 1)) for shard in (3, 17))

WRONG = (
    "SELECT id FROM pins ORDER BY nope",
    f"SELECT id FROM pins WHERE id IN ({IDS}) ORDER BY nope",
    f"SELECT id FROM pins WHERE id IN ({IDS}) ORDER BY id, nope DESC LIMIT 2",
    "SELECT id, data FROM pins ORDER BY pins.nope LIMIT 2",
    "SELECT id FROM pins ORDER BY nope + 1, id",
    "SELECT nope FROM pins ORDER BY id",
    "SELECT nope, other FROM pins ORDER BY other",
    f"SELECT id FROM pins WHERE nope = 1 AND id IN ({IDS}) ORDER BY other",
    "SELECT data FROM pins GROUP BY data ORDER BY nope",
    "SELECT a.id FROM pins a JOIN boards b ON a.id = b.id ORDER BY nope",
    "SELECT a.id AS x FROM pins a JOIN pins b ON a.id = b.id ORDER BY data",
)


@pytest.mark.parametrize("transaction", [False, True])
def test_names_are_told_with_their_clause(demo: Demo, plain: LocalServer, transaction: bool) -> None:
    with logged_in(demo, plain) as sides:
        for sql in WRONG:
            if transaction:
                for side in sides:
                    side.ask("BEGIN")
            ours, theirs = (side.ask(sql) for side in sides)
            assert (ours.code, ours.sqlstate, ours.message) == (
                theirs.code,
                theirs.sqlstate,
                theirs.message,
            ), sql
            shown = [side.ask("SHOW WARNINGS").rows for side in sides]
            assert shown[0] == shown[1], sql
            for side in sides:
                assert side.ask("ROLLBACK").kind == "ok"


def test_conditions_are_raised_in_a_sharded_database(demo: Demo, plain: LocalServer) -> None:
    """SIGNAL names no table."""
    with logged_in(demo, plain) as sides:
        for sql in (
            "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'x', MYSQL_ERRNO = 1234",
            "SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT = 'y'",
            "SIGNAL SQLSTATE '45000'",
            "SIGNAL nothing",
        ):
            ours, theirs = (side.ask(sql) for side in sides)
            assert (ours.kind, ours.code, ours.sqlstate) == (theirs.kind, theirs.code, theirs.sqlstate), sql
            shown = [side.ask("SHOW WARNINGS").rows for side in sides]
            assert shown[0] == shown[1], sql
