"""Facts of a statement: transactions, warnings, counters, and what it does to tables."""

from __future__ import annotations

import pytest

from config.flavour import MARIADB, MYSQL
from proxy.session.counters import OTHER, counter_of
from rewriter.env import Env
from rewriter.plans.builtins import ShowVariables
from rewriter.sql.statements.facts import StatementFacts
from tests.rewriter.support import rewriter


def facts(sql: str, *, mariadb: bool = True) -> StatementFacts:
    plan, _ = rewriter().plan(sql.encode(), Env(database="demo", flavour=MARIADB if mariadb else MYSQL))
    return plan.facts


@pytest.mark.parametrize(
    ("sql", "opens", "keeps"),
    [
        ("SELECT 1", False, True),
        ("/* FROM */ SELECT 'FROM', `from`", False, True),
        ("SELECT 1 INTO @a", False, True),
        ("SELECT 1 FROM DUAL", False, True),
        ("(SELECT 1)", False, True),
        ("SELECT * FROM pins WHERE id = 241294492511762325", True, False),
        ("DO 1", False, True),
        ("COMMIT", False, True),
        ("DEALLOCATE PREPARE a", False, True),
        ("UNLOCK TABLES", False, True),
        ("DESCRIBE pins", False, False),
        ("DESC `pins`", False, False),
        ("EXPLAIN SELECT 1", True, True),
        ("SHOW TABLES", False, False),
        ("SHOW GRANTS", False, True),
        ("SHOW CREATE PROCEDURE p", False, True),
        ("FLUSH STATUS", True, True),
        ("FLUSH TABLES", True, True),
        ("FLUSH TABLES pins", True, False),
        ("CREATE DEFINER = a@b PROCEDURE p () SELECT 1", True, True),
        ("CREATE OR REPLACE DEFINER = a@b VIEW v AS SELECT 1", True, False),
        ("DROP PREPARE a", False, True),
    ],
)
def test_transactions_and_warnings(sql: str, opens: bool, keeps: bool) -> None:
    found = facts(sql)
    assert (found.opens, found.keeps_warnings) == (opens, keeps)


@pytest.mark.parametrize(
    ("sql", "opens"),
    [
        ("SHOW TABLES", True),
        ("SHOW GLOBAL VARIABLES", False),
        ("SHOW CREATE TABLE pins", False),
        ("DESC pins", True),
    ],
)
def test_mysql_reads_its_dictionary(sql: str, opens: bool) -> None:
    assert facts(sql, mariadb=False).opens == opens


@pytest.mark.parametrize(
    ("text", "opens", "keeps"),
    [
        ("'SELECT 1 FROM t'", True, False),
        ("'SELECT 1'", False, True),
        ("'SELECT \"FROM t\" /* DELETE FROM t */'", False, True),
        ("'CALL p()'", True, True),
        ("'SHOW TABLES'", False, False),
        ("'DELETE t'", True, False),
        ("'/* app */ DELETE FROM t'", True, False),
        ("@text", False, True),
    ],
)
@pytest.mark.parametrize("before", ["", "/* DELETE FROM t */ ", "-- INSERT INTO t SELECT * FROM x\n"])
def test_what_is_prepared_decides(text: str, opens: bool, keeps: bool, before: str) -> None:
    found = facts(f"{before}PREPARE a FROM {text}")
    assert (found.opens, found.keeps_warnings) == (opens, keeps)


@pytest.mark.parametrize(
    ("sql", "touches"),
    [
        ("INSERT INTO t VALUES (1)", "W"),
        ("/* app */ INSERT INTO t VALUES ('SELECT')", "W"),
        ("-- app\nREPLACE INTO t SELECT 1", "RW"),
        ("UPDATE t SET a = (/* x */ SELECT 1)", "RW"),
        ("SELECT 1", ""),
        ("CREATE TABLE t (a INT)", ""),
    ],
)
def test_what_a_statement_does_to_tables(sql: str, touches: str) -> None:
    assert facts(sql).touches == touches


@pytest.mark.parametrize(
    ("sql", "counter"),
    [
        ("/* a */ ((select 1))", b"com_select"),
        ("create table x (a int)", b"com_create_table"),
        ("ROLLBACK TO a", b"com_rollback_to_savepoint"),
        ("ROLLBACK", b"com_rollback"),
        ("BEGIN", b"com_begin"),
        ("DROP SCHEMA s", b"com_drop_db"),
        ("ALTER VIEW v AS SELECT 1", b"com_create_view"),
        ("FLUSH STATUS", b"com_flush"),
        ("FROBNICATE", OTHER),
        ("SHOW SHARDS", OTHER),
    ],
)
def test_which_counter_it_is_of(sql: str, counter: bytes) -> None:
    assert counter_of(facts(sql).form) == counter


def test_the_plan_that_a_plan_has_in_it() -> None:
    plan, _ = rewriter().plan(b"SHOW VARIABLES LIKE 'a'", Env(database="demo", flavour=MARIADB))
    assert isinstance(plan, ShowVariables)
    assert plan.home.facts == plan.facts
