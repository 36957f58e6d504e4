"""SET TRANSACTION within code: what it says is for the session's next transaction, wherever that is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.both_sides import both_sides
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

ROUTINES = {
    "reading": "SET TRANSACTION READ ONLY",
    "writing": "SET TRANSACTION READ WRITE",
    "of_both": "SET TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
    "used_up": "BEGIN SET TRANSACTION READ ONLY; SELECT COUNT(*) INTO @used_up FROM next_transaction; END",
    "failing": "BEGIN SET TRANSACTION READ ONLY; SIGNAL SQLSTATE '45000'; END",
    "beginning": "START TRANSACTION READ ONLY",
    "nothing": "DO 1",
}
INSERT = "INSERT INTO next_transaction VALUES (1)"

SCRIPTS = {
    **{
        name: (f"CALL {name}()", "BEGIN", INSERT, "ROLLBACK", "BEGIN", INSERT, "ROLLBACK")
        for name in sorted(ROUTINES.keys() - {"beginning"})
    },
    "again": ("CALL reading()", "BEGIN", "ROLLBACK") * 3,
    "without BEGIN": ("CALL reading()", "SELECT COUNT(*) FROM next_transaction", INSERT),
    "a write": ("CALL reading()", INSERT, INSERT),
    "one after the other": ("CALL reading()", "CALL writing()", "BEGIN", INSERT, "ROLLBACK"),
    "behind another": ("SET TRANSACTION READ ONLY", "CALL nothing()", "BEGIN", "ROLLBACK"),
    "START TRANSACTION says more": ("CALL reading()", "START TRANSACTION READ WRITE", INSERT, "ROLLBACK"),
    "the session's own": (
        "CALL beginning()", "COMMIT", "SET SESSION TRANSACTION READ ONLY",
        "CALL writing()", "BEGIN", INSERT, "ROLLBACK", "BEGIN", INSERT, "ROLLBACK",
    ),
    "autocommit off": ("SET autocommit = 0", "CALL reading()", INSERT, "ROLLBACK", INSERT, "ROLLBACK"),
    "EXECUTE": (
        "PREPARE p FROM 'SET TRANSACTION READ ONLY'", *("EXECUTE p", "BEGIN", INSERT, "ROLLBACK") * 2
    ),
    "in a transaction": ("BEGIN", "SELECT COUNT(*) FROM next_transaction", "CALL reading()", "ROLLBACK"),
}  # fmt: skip


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[tuple[Raw, Raw]]:
    with both_sides(demo, plain, "next_transaction") as both:
        for client in both:
            for name, body in ROUTINES.items():
                made = client.ask(f"CREATE PROCEDURE {name}() {body}")
                assert made.kind == "ok", made.message
        yield both
        for client in both:
            for sql in ("ROLLBACK", "BEGIN", "ROLLBACK", "SET SESSION TRANSACTION READ WRITE"):
                client.ask(sql)
            for name in ROUTINES:
                assert client.ask(f"DROP PROCEDURE scripts.{name}").kind == "ok"


@pytest.mark.parametrize("name", SCRIPTS)
def test_code_sets_the_next_transaction(sides: tuple[Raw, Raw], name: str) -> None:
    flags = 0x2003  # IN_TRANS_READONLY, AUTOCOMMIT, IN_TRANS
    for sql in SCRIPTS[name]:
        answers = [client.ask(sql) for client in sides]
        found = [(one.kind, one.code, one.rows, one.status & flags) for one in answers]
        assert found[0] == found[1], sql


def test_code_sets_the_next_transaction_on_other_hosts(sides: tuple[Raw, Raw]) -> None:
    """Its statements are for shards."""
    through, direct = sides
    for client in sides:
        client.ask("USE demo")
    writes = [f"UPDATE pins SET data = data WHERE id = {id}" for id in (68719476737, 2267742732289)]
    for script in (("BEGIN", *writes, "ROLLBACK", *writes), writes, writes[::-1]):
        for sql in ("CALL scripts.reading()", *script):
            assert through.ask(sql).code == direct.ask(sql).code, (sql, script)
