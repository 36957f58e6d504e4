"""Prepared statements with very many `?` are planned by a shorter text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from config.flavour import MARIADB, MYSQL
from rewriter.env import Env
from rewriter.plans import Plan
from rewriter.text.many_marks import MANY, with_fewer_marks
from tests.rewriter.support import rewriter

ENV = Env(database="legacy", parameters=True, flavour=MYSQL, server_version=90704)


def marks(count: int, joint: str = ",") -> str:
    return joint.join("?" * count)


FOLDED = [
    (f"SELECT * FROM t WHERE id IN ({marks(500)})", "SELECT * FROM t WHERE id IN (?,?)"),
    (
        f"SELECT * FROM `t` WHERE `id` IN ( {marks(500, ' , ')} ) AND a = 5",
        "SELECT * FROM `t` WHERE `id` IN (?,?) AND a = 5",
    ),
    (f"INSERT INTO t VALUES {','.join(['(?,?,?)'] * 300)}", "INSERT INTO t VALUES (?,?),(?,?)"),
    (f"INSERT INTO t (a) VALUES {', '.join(['(?)'] * 300)}", "INSERT INTO t (a) VALUES (?),(?)"),
    (
        f"/* 'x */ INSERT INTO `t?` VALUES {','.join(['(?, ?)'] * 300)} ON DUPLICATE KEY UPDATE `a` = 'b'",
        None,
    ),
    (
        f"/* x */ INSERT INTO `t` VALUES {','.join(['(?, ?)'] * 300)} ON DUPLICATE KEY UPDATE `a` = 'b'",
        "/* x */ INSERT INTO `t` VALUES (?, ?),(?, ?) ON DUPLICATE KEY UPDATE `a` = 'b'",
    ),
]
LEFT = [
    f"SELECT * FROM t WHERE id IN ({marks(MANY - 1)})",
    f"SELECT 'a ({marks(500)})' FROM t",
    f"SELECT `a ({marks(500)})` FROM t",
    f"SELECT 'a (?,?,?)', `b` FROM t WHERE id IN ({marks(500)})",
    f"SELECT 1 /* ({marks(500)}) */ FROM t",
    f"SELECT 1 -- ({marks(500)})\n FROM t",
    f"SELECT 1 # ({marks(500)})\n FROM t",
    f"SELECT * FROM t WHERE id IN ({marks(250)}) AND b = 'x' AND c IN ({marks(250)})",
    f"SELECT POINT({marks(500)})",
    f"SELECT POINT({','.join(['(?)'] * 500)})",
    f"SELECT legacy.in({marks(500)})",
    f"SELECT `in`({marks(500)})",
]  # fmt: skip


@pytest.mark.parametrize(("sql", "short"), FOLDED)
def test_lists_and_rows_become_short(sql: str, short: str | None) -> None:
    found = with_fewer_marks(sql.encode(), ENV)
    assert found == (None if short is None else short.encode())


@pytest.mark.parametrize("sql", LEFT)
def test_what_may_not_be_parameters_is_left(sql: str) -> None:
    assert with_fewer_marks(sql.encode(), ENV) is None


def said(plan: Plan) -> tuple[object, ...]:
    """What the executor goes by."""
    return (
        type(plan), plan.access, plan.databases, plan.effects, plan.implicit_commit, plan.facts.form,
        plan.reserved, plan.unseen, plan.hidden, plan.session_slots, getattr(plan, "keyspaces", None),
        getattr(plan, "database", None), getattr(plan, "unchanged", None),
    )  # fmt: skip


@pytest.mark.parametrize("arguments", ["?,?,?", "?, ?, ?", "(?),(?),(?)", "(?,?,?),1,2"])
@pytest.mark.parametrize("name", ["POINT", "point ", "POLYGON"])
def test_functions_keep_their_number_of_arguments(name: str, arguments: str) -> None:
    """On MariaDB stored functions may have these names, with another number of arguments."""
    env = replace(ENV, flavour=MARIADB, server_version=101119)
    sql = f"SELECT {name}({arguments}) FROM t WHERE id IN ({marks(500)})".encode()
    short = with_fewer_marks(sql, env)
    assert short is not None
    assert len(short) < 100
    plans = [rewriter().plan(text, env)[0] for text in (sql, short)]
    assert said(plans[0]) == said(plans[1])
    assert plans[0].unseen == plans[1].unseen


PARTS = st.sampled_from(
    [
        "(?,?,?)",
        "( ?, ? )",
        "?",
        "(?)",
        ",",
        " AND ",
        "a IN ",
        "(?, 5, ?)",
        "(NULL, ?)",
        " OR b = ?",
        " /* c */ ",
        "+",
        "f(?)",
        "NOW()",
    ]
)
HEADS = st.sampled_from(
    [
        "SELECT * FROM t WHERE ",
        "INSERT INTO t VALUES ",
        "UPDATE crm.t SET a = ",
        "DO ",
        "CALL p",
        "SELECT LAST_INSERT_ID",
    ]
)
TAILS = st.sampled_from(["", " LIMIT ?", " FOR UPDATE", " ON DUPLICATE KEY UPDATE a = `b`"])


@given(HEADS, st.lists(PARTS, max_size=12), TAILS, st.booleans())
def test_the_plan_is_that_of_the_whole_text(head: str, parts: list[str], tail: str, ansi: bool) -> None:
    sql = f"{head}{''.join(parts)} a IN ({marks(MANY)}){tail}".encode()
    env = replace(ENV, ansi_quotes=ansi)
    short = with_fewer_marks(sql, env)
    if short is None:
        return
    plan, literals = rewriter().plan(sql, env)
    other, same = rewriter().plan(short, env)
    if plan.on_one_host and other.on_one_host:
        assert (said(plan), literals) == (said(other), same)
    assert plan.on_one_host is other.on_one_host
