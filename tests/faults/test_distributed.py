"""COMMIT over two hosts with transaction_mode = 'xa', and what is killed meanwhile: once through the steps,
of which `python -m tests.faults.xa_runs` makes hundreds of runs.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pymysql
import pytest

from config.xa import FORMAT_ID, BranchName
from demo.programs import Flavour, Program
from tests.faults.bank import Bank
from tests.faults.xa_runs import COMMIT, DECISION, RUNS, STEPS, run
from tests.support.waiting import wait_until, wait_until_is


@pytest.fixture(scope="module")
def bank(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    with Bank(program, tmp_path_factory.mktemp("bank")) as made:
        yield made


def test_killed_at_every_step(bank: Bank) -> None:
    """The proxy at each, and a server where there is something to be lost."""
    chosen = [one for one in RUNS if one.victim == "proxy" and (not one.left or not one.before)]
    chosen = [one for one in chosen if one.step != "recover"]
    chosen += [
        one
        for one in RUNS
        if (one.left, one.step, one.before, one.victim)
        in {
            ("", "prepare", False, "branch"),
            ("", "commit", False, "first"),
            ("commit", "finish", False, "branch"),
        }
    ]
    for number, one in enumerate(chosen):
        run(bank, one, number % 2, clients=2)


def nothing() -> None:
    """The connection goes all the same."""


def test_answers_that_are_lost(bank: Bank) -> None:
    """COMMIT that was done is told so, one that never came is not; a branch that does not answer is committed
    a moment later, and the client warned.
    """
    first, branch = bank.traps
    cases = (
        (first, COMMIT, False, 0, 0),
        (first, COMMIT, True, 1053, 0),
        (first, DECISION, False, 1053, 0),
        (branch, (b"XA PREPARE",), False, 1053, 0),
        (branch, (b"XA PREPARE",), True, 1053, 0),
        (branch, (b"XA COMMIT",), True, 0, 1),
        (branch, (b"XA COMMIT",), False, 0, 1),
    )
    for trap, patterns, before, code, warnings in cases:
        with bank.connect() as connection, connection.cursor() as cursor:
            wait_until(partial(bank.serves, cursor, 0), "it serves")
            trap.arm(*patterns, then=nothing, before=before)
            number = bank.number()
            try:
                bank.transfer(cursor, number, 0)
                got = 0
            except pymysql.MySQLError as error:
                got = error.args[0]
            assert (got, patterns) == (code, patterns)
            (bank.refused if code else bank.acknowledged).add(number)
            cursor.execute("SHOW WARNINGS")
            told = [row for row in cursor.fetchall() if row[0] == "Warning"]
            assert len(told) == warnings, (patterns, told)
            if code:
                cursor.execute("ROLLBACK")
        bank.check()


def test_what_nobody_knows(bank: Bank) -> None:
    """The first host dies at COMMIT, before or after that is done: whether it was is told as not known, and
    is one and the same for both hosts when it is back.
    """
    for before in (True, False):
        with bank.connect() as connection, connection.cursor() as cursor:
            wait_until(partial(bank.serves, cursor, 0), "it serves")
            bank.traps[0].arm(*COMMIT, then=partial(bank.kill, "first", 0), before=before)
            number = bank.number()
            with pytest.raises(pymysql.MySQLError, match="It is so on all of its hosts or on none") as told:
                bank.transfer(cursor, number, 0)
            assert told.value.args[0] == 1105
            cursor.execute("ROLLBACK")
            assert became(cursor, told.value) in ("prepared", "undecided")
            bank.revive()
            bank.check()
            there = {int(n) for (n,) in bank.rows(0, "SELECT n FROM here.done")}
            assert (number in there) is not before
            wait_until(lambda: not listed(cursor), "it is told no more", 20)


def test_a_decision_that_is_forgotten(bank: Bank) -> None:
    """The answer to COMMIT is lost; before the proxy can ask, another one has finished the transaction and
    forgotten its decision: no row, then, does not say that it was rolled back.
    """

    def finish() -> None:
        with bank.servers[1].connect() as connection, connection.cursor() as cursor:
            cursor.execute("XA RECOVER")
            ((_, length, _, data),) = cursor.fetchall()
            name = data if isinstance(data, bytes) else data.encode()
            found = BranchName.read(FORMAT_ID, name[:length], name[length:])
            assert found is not None
            if bank.servers[1].program.flavour is Flavour.MARIADB:  # a connection keeps what it has prepared
                cursor.execute(f"KILL {found.thread}")
            wait_until(partial(ended, cursor, b"XA COMMIT " + found.literal), "it is committed")
        with bank.servers[0].connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM shardgate_xa.decisions WHERE gtrid = X'{found.gtrid.hex()}'")
            assert cursor.rowcount == 1

    with bank.connect() as connection, connection.cursor() as cursor:
        wait_until(partial(bank.serves, cursor, 0), "it serves")
        bank.check()  # that nothing else is prepared
        bank.traps[0].arm(*COMMIT, then=finish, before=False)
        number = bank.number()
        with pytest.raises(pymysql.MySQLError, match="It is so on all of its hosts or on none") as told:
            bank.transfer(cursor, number, 0)
        assert told.value.args[0] == 1105
        assert bank.rows(1, f"SELECT n FROM there.done WHERE n = {number}")
        assert became(cursor, told.value) == "unknown"
        cursor.execute("ROLLBACK")
        wait_until(partial(bank.serves, cursor, 0), "it serves")
    bank.check()


def ended(cursor: Any, statement: bytes) -> bool:
    """Whether this has ended the branch: not while its connection still has it."""
    try:
        cursor.execute(statement)
    except pymysql.MySQLError as error:
        if error.args[0] != 1397:
            raise
        return False
    return True


@pytest.mark.one_server
def test_asked_to_go(bank: Bank) -> None:
    """SIGTERM in the midst of a COMMIT, one of whose connections is lost."""
    for step in ("prepare", "decide", "finish"):
        patterns, place = STEPS[step]
        process = bank.proxy.process
        assert process is not None
        with contextmanager(bank.clients)(2, 0):
            trap = bank.traps[0 if place == "first" else 1]
            trap.arm(*patterns, then=partial(os.kill, process.pid, signal.SIGTERM), before=True)
            assert trap.sprung.wait(30), f"no {step}"
            process.wait(60)
            bank.revive()
        bank.proxy.wait()
        bank.check()


def became(cursor: Any, error: BaseException) -> str:
    """What the proxy says of the transaction that the error names."""
    found = re.search(r"transaction (\S+) ", str(error))
    assert found is not None
    cursor.execute(f"SHOW PROXY TRANSACTIONS LIKE '{found[1]}'")
    ((state, *_),) = cursor.fetchall()
    return str(state)


def listed(cursor: Any) -> list[Any]:
    cursor.execute("SHOW PROXY TRANSACTIONS")
    return list(cursor.fetchall())


def test_old_decisions_are_deleted(bank: Bank) -> None:
    """But for those that a connection could still meet."""
    (identity,) = bank.rows(0, "SELECT id FROM shardgate_xa.identity")[0]
    name = identity if isinstance(identity, str) else identity.decode()
    with bank.servers[0].connect() as connection, connection.cursor() as cursor:
        insert = "INSERT INTO shardgate_xa.decisions (gtrid, committed, hosts, made) VALUES (%s, %s, %s, %s)"
        old = "2020-02-03 04:05:06"
        kept = f"{name}.{connection.thread_id()}.{'a' * 20}"
        unknown = f"{name}.1.{'b' * 20}"
        for row in (
            (kept, 0, "", old),
            (unknown, 1, "f" * 16, old),
            (f"{name}.999999999.{'c' * 20}", 0, "", old),
            (f"{name}.1.{'d' * 20}", 1, name, old),
        ):
            cursor.execute(insert, row)

        def left() -> list[str]:
            rows = bank.rows(0, f"SELECT gtrid FROM shardgate_xa.decisions WHERE made = '{old}' ORDER BY 1")
            return [one if isinstance(one, str) else one.decode() for (one,) in rows]

        wait_until_is(left, sorted((kept, unknown)), "the others are deleted", 20)
        cursor.execute("DELETE FROM shardgate_xa.decisions WHERE made = %s", (old,))
