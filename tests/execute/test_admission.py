"""The checks of admission as tables: values in, a verdict out. Who runs them is tested with servers."""

from __future__ import annotations

from typing import Any

import pytest

from config.load import load_topology
from proxy.engine.admission import (
    PLACED,
    PLANNED,
    PROCEED,
    RIGHTS,
    SENT,
    Placed,
    Planned,
    Refuse,
    Sent,
    Verdict,
    Wait,
    decide,
)
from proxy.session.state import Role, Session, User
from proxy.session.transaction import Spot
from rewriter.plan import Access
from rewriter.plans import AnyHost, MultiStatement, Opened, Template
from rewriter.plans.builtins import Begin, Commit, Empty, Rollback, SetVariables, ShowWarnings, Use
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.routines import Body, Routines
from tests.backends.fakes import IN_TRANS, connection

A, B = "a:3306", "b:3306"
STATES = ["serving", "frozen", "read_only", "offline"]
TOPOLOGY = load_topology(
    {
        "version": 1,
        "keyspaces": {
            "main": {
                "layout": "pinterest",
                "database": "db{shard:05d}",
                "ranges": [
                    {"range": [at, at], "master": B if at else A, "state": state}
                    for at, state in enumerate(STATES)
                ],
            },
        },
    }
)


def user(**values: Any) -> User:
    given: dict[str, Any] = {"name": "u", "role": Role.WRITE} | values
    return User(**given)


def session(**values: Any) -> Session:
    return Session(1, user(**values), "127.0.0.1:1", "8.0.1")


def said(verdict: Verdict) -> str:
    """`proceed`, `wait`, or the error's name."""
    if isinstance(verdict, Wait):
        return "wait"
    if isinstance(verdict, Refuse):
        return verdict.error.kind.name + (" and over" if verdict.ends else "")
    assert verdict is PROCEED
    return "proceed"


SHOWS = ShowWarnings()
LISTED: dict[str, Any] = {"databases": frozenset({"demo", "mysql"})}
RESERVED: dict[str, Any] = {"reserved": ("mysql",), "databases": ("mysql",), "access": Access.ADMIN}


@pytest.mark.parametrize(
    ("who", "plan", "expected"),
    [
        ({}, {}, "proceed"),
        ({}, {"access": Access.WRITE}, "proceed"),
        ({}, {"access": Access.ADMIN}, "role_denied"),
        ({"role": Role.READ}, {"access": Access.WRITE}, "role_denied"),
        ({}, {"databases": ("other",)}, "proceed"),
        (LISTED, {"databases": ("demo",)}, "proceed"),
        (LISTED, {"databases": ("demo", "other")}, "database_denied"),
        ({}, RESERVED, "database_denied"),
        (LISTED, RESERVED, "proceed"),
        (LISTED, RESERVED | {"listed_access": Access.ADMIN}, "role_denied"),
        ({"role": Role.ADMIN}, RESERVED, "proceed"),
        ({"role": Role.ADMIN} | LISTED, {"databases": ("other",)}, "database_denied"),
        ({}, {"unseen": "p"}, "proceed"),
        (LISTED, {"unseen": "p"}, "routine_denied"),
        (LISTED | {"account": 8}, {"unseen": "p"}, "proceed"),
        ({}, {"hidden": "a text"}, "proceed"),
        (LISTED, {"hidden": "a text"}, "routine_denied"),
        (LISTED | {"account": 8}, {"hidden": "a text"}, "routine_denied"),
        # the order: reserved databases, the list, the role, what reaches more than the list, routines
        ({}, RESERVED | {"listed_access": Access.ADMIN}, "database_denied"),
        (LISTED, {"access": Access.ADMIN, "databases": ("other",), "unseen": "p"}, "database_denied"),
        (LISTED, {"access": Access.ADMIN, "databases": ("*", "other")}, "database_denied"),
        (LISTED, {"access": Access.ADMIN, "databases": ("*",), "unseen": "p"}, "role_denied"),
        (LISTED, {"databases": ("*",), "unseen": "p"}, "list_denied"),
        (LISTED, {"databases": ("other",), "unseen": "p"}, "database_denied"),
    ],
)
def test_rights(who: dict[str, Any], plan: dict[str, Any], expected: str) -> None:
    asked = Planned(session(**who), Empty(**plan), b"select 1")
    assert said(decide(RIGHTS, asked)) == said(decide(PLANNED, asked)) == expected


def test_what_the_role_error_names() -> None:
    verdict = decide(PLANNED, Planned(session(), Empty(access=Access.ADMIN), b"drop table t"))
    assert isinstance(verdict, Refuse)
    assert verdict.error.details == {"statement": "DROP", "user": "u", "role": "write", "needed": "admin"}


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (Rollback(), "proceed"),
        (Begin(), "transaction_lost and over"),
        (SetVariables(assignments=()), "proceed"),
        (SHOWS, "proceed"),
        (MultiStatement(), "proceed"),
        (Opened(text=b"x"), "proceed"),
        (Commit(), "transaction_lost and over"),
        (Use(database="d"), "transaction_lost"),
        (Use(database="d", access=Access.ADMIN), "role_denied"),
    ],
)
def test_a_lost_transaction(plan: Any, expected: str) -> None:
    lost = session()
    lost.transaction.refuse("transaction_lost", "a host went away")
    assert said(decide(PLANNED, Planned(lost, plan, b"x"))) == expected
    assert lost.transaction.lost, "a check changes nothing"
    lost.transaction.told = True
    told = "proceed" if isinstance(plan, Begin) else expected
    assert said(decide(PLANNED, Planned(lost, plan, b"x"))) == told


def spots(*shards: int | None, host: str = B) -> list[Spot]:
    return [Spot(host) if shard is None else Spot(host, "main", shard) for shard in shards]


@pytest.mark.parametrize(
    ("shards", "read", "write"),
    [
        ((0,), "proceed", "proceed"),
        ((1,), "wait", "wait"),
        ((2,), "proceed", "shard_offline"),
        ((3,), "shard_offline", "shard_offline"),
        ((None,), "proceed", "proceed"),
        ((9,), "proceed", "proceed"),
        ((0, 1), "wait", "wait"),
        ((1, 2), "wait", "shard_offline"),
        ((1, 3), "shard_offline", "shard_offline"),
        ((0, 3), "shard_offline", "shard_offline"),
        ((), "proceed", "proceed"),
    ],
)
def test_states(shards: tuple[int | None, ...], read: str, write: str) -> None:
    for joins in (True, False):
        for writes, expected in ((False, read), (True, write)):
            placed = Placed(session(), TOPOLOGY, spots(*shards), writes, joins=joins)
            assert said(decide(PLACED, placed)) == expected, writes


def test_the_state_is_told() -> None:
    verdict = decide(PLACED, Placed(session(), TOPOLOGY, spots(0, 2, 3), write=True))
    assert isinstance(verdict, Refuse)
    assert verdict.error.details == {"shard": 2, "keyspace": "main", "state": "read_only"}


@pytest.mark.parametrize(
    ("host", "open_there", "joins", "expected"),
    [
        (B, True, True, "proceed"),
        (B, False, True, "wait"),  # pinned to the host, perhaps, but in no transaction
        (A, True, True, "wait"),  # for the frozen shard it would be a new one
        (B, True, False, "wait"),  # a definition, which commits first
    ],
)
def test_an_open_transaction_ends_on_its_master(
    host: str, open_there: bool, joins: bool, expected: str
) -> None:
    mine = session()
    conn, _ = connection()
    if open_there:
        conn.scanner.feed(IN_TRANS)
    mine.transaction.held[host] = conn
    verdict = decide(PLACED, Placed(mine, TOPOLOGY, spots(0, 1), write=True, joins=joins))
    assert said(verdict) == expected
    if isinstance(verdict, Wait):
        assert verdict.error.until == (("main", 1),)
        assert "Shard 1 of keyspace 'main' is frozen" in str(verdict.error)


@pytest.mark.parametrize(
    ("allowed", "scatter", "state", "expected"),
    [
        (True, True, 0, "proceed"),
        (False, False, 0, "proceed"),
        (False, True, 0, "scatter_denied"),
        (False, True, 1, "scatter_denied"),  # which comes before the states
        (False, True, 3, "scatter_denied"),
        (True, True, 3, "shard_offline"),
    ],
)
def test_scatter(allowed: bool, scatter: bool, state: int, expected: str) -> None:
    placed = Placed(session(scatter_allowed=allowed), TOPOLOGY, spots(0, state), scatter=scatter)
    assert said(decide(PLACED, placed)) == expected


@pytest.mark.parametrize(
    ("mode", "begun", "before", "now", "expected"),
    [
        ("single", True, spots(0), spots(0), "proceed"),
        ("single", True, spots(0), spots(2), "second_shard"),
        ("single", True, spots(0), spots(None), "proceed"),
        ("single", True, spots(0), spots(None, host=A), "second_shard"),
        ("single", True, [], spots(0, 2), "second_shard"),
        ("single", True, [], spots(0), "proceed"),
        ("single", True, spots(0), spots(1), "wait"),  # by the topology to come it may be the same host
        ("single", False, [], spots(0, 2), "proceed"),
        ("multi", True, spots(0), spots(2), "proceed"),
    ],
)
def test_one_shard(mode: str, begun: bool, before: list[Spot], now: list[Spot], expected: str) -> None:
    mine = session()
    mine.transaction_mode = mode
    if begun:
        mine.transaction.start()
    mine.transaction.spots = tuple(before)
    assert said(decide(PLACED, Placed(mine, TOPOLOGY, now))) == expected
    assert mine.transaction.spots == tuple(before), "a check changes nothing"


def test_without_autocommit_spots_of_an_earlier_transaction_do_not_count() -> None:
    mine = session()
    mine.transaction_mode, mine.autocommit = "single", False
    mine.transaction.spots = tuple(spots(0))
    assert said(decide(PLACED, Placed(mine, TOPOLOGY, spots(2)))) == "proceed"
    assert said(decide(PLACED, Placed(mine, TOPOLOGY, spots(2, 0)))) == "second_shard"
    assert said(decide(PLACED, Placed(mine, TOPOLOGY, spots(2, 0), joins=False))) == "proceed"


BEGINS = Routines([Body("p", "BEGIN START TRANSACTION; END")])


@pytest.mark.parametrize(
    ("procedure", "bodies", "results", "elsewhere", "expected"),
    [
        ("p", None, True, True, "proceed"),
        ("p", None, False, False, "one_result_only"),
        ("", None, False, False, "proceed"),
        ("p", BEGINS, True, False, "proceed"),
        ("p", BEGINS, True, True, "not_supported_yet"),
        ("p", BEGINS, False, True, "one_result_only"),
        ("q", BEGINS, True, True, "proceed"),
    ],
)
def test_routines(
    procedure: str, bodies: Routines | None, results: bool, elsewhere: bool, expected: str
) -> None:
    mine = session()
    effects = Effects(routine=True, procedure=procedure)
    plan = AnyHost(template=Template([b""]), effects=effects, names=frozenset({"call", procedure}))
    if elsewhere:
        conn, _ = connection()
        conn.scanner.feed(IN_TRANS)
        mine.transaction.held[B] = conn
    assert said(decide(SENT, Sent(mine, A, plan, bodies, results))) == expected
