"""A client's own XA transaction is on one host: writes on others are refused, not committed by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.answers import answer
from tests.integration.fixtures import MakeOwn, make_id
from tests.integration.second_host import Sides, second_host
from tests.support.demo import Demo
from tests.support.servers import LocalServer


@pytest.fixture
def sides(demo: Demo, plain: LocalServer, own: MakeOwn, tmp_path_factory: Any) -> Iterator[Sides]:
    with second_host(demo, plain, own, tmp_path_factory.mktemp("schema")) as sides:
        yield sides


PINS = [make_id(shard, 1, 990_000) for shard in (3, 60)]
ONE = PINS[1]
WRITES = (
    f"UPDATE demo.pins SET data = '{{}}' WHERE id = {ONE}",
    f"UPDATE demo.pins SET data = '{{}}' WHERE id = {ONE} LIMIT 1",
    f"DELETE FROM demo.pins WHERE id = {ONE}",
    "SET @a = crm.writes(3)",
    "DO crm.writes(4)",
    "EXECUTE inserts",
    "LOAD DATA LOCAL INFILE '/dev/null' INTO TABLE crm.kept",
    "INSERT INTO crm.kept VALUES (5)",
    f"UPDATE demo.pins SET data = '{{}}' WHERE id IN ({PINS[0]}, {PINS[1]})",
    f"INSERT INTO demo.pins (id, data) VALUES ({PINS[0]}, '{{}}'), ({PINS[1]}, '{{}}')",
    "UPDATE demo.countries SET name = name WHERE code = 'DE'",
)


WRITING = "CREATE FUNCTION crm.writes(v INT) RETURNS INT BEGIN INSERT INTO crm.kept VALUES (v); RETURN v; END"


def test_writes_on_another_host_are_refused(sides: Sides) -> None:
    """Whatever runs them: also between XA END and the end of the transaction."""
    session, _ = sides.sessions(database="crm2", local_infile=True)
    with session:
        for sql in (WRITING, "USE crm", "PREPARE inserts FROM 'INSERT INTO kept VALUES (7)'", "USE crm2"):
            assert answer(session, sql) == (), sql
        assert answer(session, f"INSERT INTO demo.pins (id, data) VALUES ({ONE}, '[1]')") == ()
        rows = "SELECT GROUP_CONCAT(a) FROM crm.kept", f"SELECT data FROM demo.pins WHERE id = {ONE}"
        before = [answer(session, sql) for sql in rows]
        try:
            for script in (["XA START 'own_xa'", "INSERT INTO kept VALUES (6)"], ["XA END 'own_xa'"]):
                for sql in script:
                    assert answer(session, sql) == ()
                for sql in WRITES:
                    code, text = answer(session, sql)
                    assert code == 1235, sql
                    assert "XA transaction" in text
            assert answer(session, "XA ROLLBACK 'own_xa'") == ()
            assert [answer(session, sql) for sql in rows] == before
            assert answer(session, "INSERT INTO crm.kept VALUES (5)") == ()
            assert answer(session, "SELECT a FROM kept") == ((4,),)
        finally:
            answer(session, f"DELETE FROM demo.pins WHERE id = {ONE}")
            answer(session, "DROP FUNCTION crm.writes")


@pytest.mark.parametrize("begins", ["SET autocommit = 0", "BEGIN"])
def test_it_does_not_begin_within_a_transaction_on_another_host(sides: Sides, begins: str) -> None:
    script = ["USE crm", begins, "INSERT INTO kept VALUES (8)", "USE crm2", "XA START 'own_xa'"]
    script += ["INSERT INTO kept VALUES (9)", "ROLLBACK", "SET autocommit = 1"]
    script += ["SELECT a FROM crm.kept", "SELECT a FROM kept"]
    ours, theirs = sides.sessions(database="crm2")
    with ours, theirs:
        for sql in script:
            expected, found = answer(theirs, sql), answer(ours, sql)
            assert found == expected, sql


def test_writes_of_one_host_are_part_of_it(sides: Sides) -> None:
    session, _ = sides.sessions(database="crm2")
    with session:
        for sql in (
            "XA START 'own_xa'",
            "INSERT INTO kept VALUES (6)",
            "UPDATE legacy.customers SET city = city",
        ):
            assert answer(session, sql) == (), sql
        for sql in ("XA END 'own_xa'", "XA PREPARE 'own_xa'", "XA COMMIT 'own_xa'"):
            assert answer(session, sql) == ()
        assert answer(session, "SELECT a FROM kept ORDER BY a") == ((4,), (6,))


@pytest.mark.parametrize(
    "end", ["XA COMMIT 'own_xa'", "XA ROLLBACK 'own_xa'", "XA COMMIT 'own_xa' ONE PHASE"]
)
def test_its_statements_go_to_its_host_whatever_the_current_database_is(sides: Sides, end: str) -> None:
    script = ["USE crm", "XA START 'own_xa'", "INSERT INTO kept VALUES (9)", "USE crm2", "XA START 'other'"]
    script += [
        "XA END 'own_xa'",
        *([] if "ONE" in end else ["XA PREPARE 'own_xa'"]),
        "USE crm",
        "USE crm2",
        end,
    ]
    script += ["SELECT a FROM crm.kept ORDER BY a", "SELECT a FROM kept"]
    ours, theirs = sides.sessions(database="crm2")
    with ours, theirs:
        for sql in script:
            expected, found = answer(theirs, sql), answer(ours, sql)
            assert found == expected or found[0] == expected[0], sql
