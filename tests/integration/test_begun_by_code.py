"""A transaction that a procedure, a block or a prepared statement begins is the session's on all hosts, as on
one server.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from tests.integration.answers import answer
from tests.integration.fixtures import MakeOwn
from tests.integration.second_host import Sides, second_host
from tests.support.demo import Demo
from tests.support.servers import LocalServer

BEGINS = "START TRANSACTION; INSERT INTO crm2.kept VALUES (1)"
PROCEDURES = {
    "begins": "START TRANSACTION",
    "begins_to_read": "START TRANSACTION READ ONLY",
    "begins_a_snapshot": "START TRANSACTION WITH CONSISTENT SNAPSHOT",
    "begins_and_writes": f"BEGIN {BEGINS}; END",
    "switches_off": "SET autocommit = 0",
    "begins_and_ends": "BEGIN START TRANSACTION; COMMIT; END",
    "begins_and_fails": f"BEGIN {BEGINS}; SIGNAL SQLSTATE '45000'; END",
    "saves": "SAVEPOINT by_code",
}
WRITES = ("INSERT INTO crm.kept VALUES (77)", "INSERT INTO crm2.kept VALUES (78)")
READS = ("SELECT a FROM crm.kept ORDER BY a", "SELECT a FROM crm2.kept ORDER BY a")


@pytest.fixture
def sides(demo: Demo, plain: LocalServer, own: MakeOwn, tmp_path_factory: Any) -> Iterator[Sides]:
    with second_host(demo, plain, own, tmp_path_factory.mktemp("schema")) as sides:
        with demo.direct(0) as direct, plain.connect() as server:
            for connection in (direct, server):
                for name, body in PROCEDURES.items():
                    assert answer(connection, f"CREATE PROCEDURE crm2.{name}() {body}") == ()
        with demo.direct(1) as direct, plain.connect() as server:
            for connection in (direct, server):
                assert answer(connection, "CREATE PROCEDURE crm.idle() DO 1") == ()
                assert answer(connection, "CREATE PROCEDURE crm.ends() COMMIT") == ()
        yield sides


def run(sides: Sides, *script: str) -> None:
    """The script, and what another session finds behind it, on both sides."""
    found = []
    for session, other in zip(sides.sessions(database="crm2"), sides.sessions(), strict=True):
        with session, other:
            found.append([(sql, answer(session, sql)) for sql in script])
            found[-1] += [(sql, answer(other, sql)) for sql in READS]
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", ["multi", "xa"])
def test_what_follows_is_in_it_on_all_hosts(sides: Sides, mode: str) -> None:
    for name, end in product([*PROCEDURES][:-1], ["ROLLBACK", "COMMIT", "DO 0"]):
        ours, theirs = sides.sessions(database="crm2")
        with ours, theirs:
            answer(ours, f"SET transaction_mode = '{mode}'")
            for sql in (f"CALL {name}()", *WRITES, *READS, end, *READS):
                assert answer(ours, sql) == answer(theirs, sql), (name, end, sql)
        run(sides)


@pytest.mark.parametrize("end", ["ROLLBACK", "COMMIT"])
def test_a_prepared_statement_begins_it(sides: Sides, flavour: str, end: str) -> None:
    made = ["PREPARE p FROM 'START TRANSACTION'", "EXECUTE p"]
    if flavour == "mariadb":
        run(sides, "EXECUTE IMMEDIATE 'START TRANSACTION'", *WRITES, *READS, end)
        run(sides, "BEGIN NOT ATOMIC START TRANSACTION; END", *WRITES, *READS, end)
    else:  # MySQL does not prepare it
        made = ["SET @begins = 1", "CALL begins()"]
    run(sides, *made, *WRITES, *READS, end)


def test_a_savepoint_of_code_in_a_transaction_on_one_host(sides: Sides) -> None:
    into = "INSERT INTO kept VALUES"
    run(
        sides,
        "BEGIN",
        f"{into} (1)",
        "SAVEPOINT own",
        "CALL saves()",
        f"{into} (2)",
        "ROLLBACK TO by_code",
        "SELECT a FROM kept",
        "ROLLBACK TO nowhere",
        "RELEASE SAVEPOINT by_code",
        "RELEASE SAVEPOINT by_code",
        "ROLLBACK TO own",
        "COMMIT",
    )


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "SELECT 1"])
@pytest.mark.parametrize("begins", ["begins_and_writes", "begins_and_fails"])
def test_code_on_another_host_does_not_end_it(sides: Sides, begins: str, end: str) -> None:
    run(sides, f"CALL {begins}()", "CALL crm.idle()", "CALL crm.idle()", end)
    run(sides, f"CALL {begins}()", "SELECT a FROM crm.kept", "CALL crm.idle()", *WRITES, end)
    run(sides, f"CALL {begins}()", "CALL crm.idle()", end, *WRITES)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK", "SET autocommit = 1", "SELECT 1", ""])
@pytest.mark.parametrize("begin", ["BEGIN", "SET autocommit = 0", "CALL crm2.begins()"])
def test_nothing_stays_open_where_code_has_ended_its_part(sides: Sides, begin: str, end: str) -> None:
    """The proxy cannot know how it has ended: it rolls back the rest, also if the client goes then."""
    session, other = (sides.sessions(database="crm2")[0] for _ in range(2))
    with other:
        with session:
            for sql in (begin, "INSERT INTO crm.kept VALUES (1)", "UPDATE kept SET a = 5"):
                answer(session, sql)
            assert answer(session, "CALL crm.ends()")[0] == 1105
            if end:
                answer(session, end)
        assert answer(other, "UPDATE kept SET a = 4") == ()  # no lock is left


@pytest.mark.parametrize("end", ["ROLLBACK TO by_code", "RELEASE SAVEPOINT by_code"])
def test_a_savepoint_that_code_may_have_set_too_on_one_of_several_hosts(sides: Sides, end: str) -> None:
    """It would be another place on each host."""
    session, _ = sides.sessions(database="crm2")
    with session:
        for sql in ("BEGIN", "INSERT INTO crm.kept VALUES (1)", "SAVEPOINT by_code", "SAVEPOINT own"):
            assert answer(session, sql) == ()
        assert answer(session, "CALL saves()") == ()
        assert answer(session, "INSERT INTO crm.kept VALUES (2)") == ()
        assert answer(session, end)[0] == 1235
        assert answer(session, "ROLLBACK TO own") == ()
        assert answer(session, "ROLLBACK") == ()
        for sql in ("BEGIN", *WRITES, "SAVEPOINT by_code", "INSERT INTO crm.kept VALUES (3)", end):
            assert answer(session, sql) == ()
