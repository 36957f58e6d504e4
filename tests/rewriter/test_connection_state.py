"""Which plans may leave state on a connection, and what becomes of a statement whose plan may not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from config.flavour import MARIADB, MYSQL
from config.load import load_topology
from demo.documents import topology_document
from rewriter.planner import Rewriter
from rewriter.plans import AnyHost, BindError, Env, Plan, Reject, ShardWrite
from rewriter.sql.statements.effects import ConnectionState
from tests.rewriter.support import SCHEMA_MODEL, TOPOLOGY, expand, first, rewriter, values_of

#: Named locks are on the default host a; `legacy` is on b.
ELSEWHERE = topology_document(4, [("a:3306", None), ("b:3306", None)])
ELSEWHERE["keyspaces"]["legacy"] = {"master": "b:3306"}
APART = load_topology(ELSEWHERE, schema=SCHEMA_MODEL)


def variants(of: type[Plan] = Plan) -> Iterator[type[Plan]]:
    for variant in of.__subclasses__():
        yield variant
        yield from variants(variant)


def planned(sql: str, database: str = "demo", *, plans: Rewriter | None = None, mysql: bool = False) -> Plan:
    """The plan of `sql`, or of the statement within it that is planned by itself."""
    env = Env(database=database, flavour=MYSQL if mysql else MARIADB)
    plan, literals = (plans or rewriter()).plan(expand(sql).encode(), env)
    inner = plan.inner_text(literals)
    return plan if inner is None else planned(inner.decode(), database, plans=plans, mysql=mysql)


def test_a_variant_that_says_nothing_captures_nothing() -> None:
    """So a new way of running cannot leave state by being forgotten."""
    assert Plan.captures == ConnectionState.NONE
    several = {"select", "everywhere", "ddl", "table_maintenance"}
    assert {
        variant.kind for variant in variants() if hasattr(variant, "kind") and not variant.captures
    } == several


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE pins SET data = (@a := '{}') WHERE id = <pins 1 7>",
        "INSERT INTO email_to_user VALUES ('a', @a := 5)",
        "INSERT INTO email_to_user VALUES ('a', 5) ON DUPLICATE KEY UPDATE user_id = (@`a`/* */:= 6)",
        "REPLACE INTO email_to_user SET email = 'a', user_id = (@A := 5)",
    ],
)
def test_a_plan_that_assigns_takes_no_short_way(sql: str) -> None:
    """The short ways read nothing back."""
    plan = planned(sql)
    assert plan.effects is not None
    assert plan.effects.variables == ("a",)
    assert getattr(plan, "point", None) is None
    assert getattr(plan, "short", None) is None
    assert getattr(plan, "by_id", None) is None


def test_without_assignments_the_short_ways_stay() -> None:
    update = planned("UPDATE pins SET data = '{}' WHERE id = <pins 1 7>")
    assert isinstance(update, ShardWrite)
    assert update.point is not None
    assert update.effects is None
    assert planned("INSERT INTO email_to_user VALUES ('a', @a)").effects is None


def test_several_shards_assign_nothing() -> None:
    sql = expand("INSERT INTO users (id, data) VALUES (<users 0 1>, @a := '{}'), (<users 1 1>, '{}')")
    plan, literals = rewriter().plan(sql.encode(), Env(database="demo"))
    with pytest.raises(BindError, match="not_supported_yet"):
        plan.bind(values_of(plan, literals), TOPOLOGY, first)


@pytest.mark.parametrize("mysql", [False, True])
@pytest.mark.parametrize("call", ["GET_LOCK('a', 1)", "`get_lock`('a', 1)", "GET_LOCK /* */\n('a', 1)"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT {} FROM pins WHERE id = <pins 1 7>",
        "SELECT id FROM pins ORDER BY {}",
        "SELECT id FROM pins WHERE id IN (<pins 1 7>, <pins 2 8>) AND {}",
        "SELECT COUNT({}) FROM pins",
        "EXPLAIN SELECT {} FROM pins WHERE id = <pins 1 7>",
        "UPDATE pins SET data = {} WHERE id = <pins 1 7>",
        "DELETE FROM email_to_user WHERE email = 'a' AND {}",
        "INSERT INTO email_to_user VALUES ('a', {})",
        "UPDATE countries SET name = {}",
    ],
)
def test_named_locks_are_not_where_the_shards_are(sql: str, call: str, mysql: bool) -> None:
    plan = planned(sql.format(call), mysql=mysql)
    assert isinstance(plan, Reject)
    assert (plan.error, plan.arguments["function"]) == ("lock_elsewhere", "GET_LOCK")


@pytest.mark.parametrize("database", ["legacy", "db00002"])
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT GET_LOCK('a', 1)",
        "SELECT DATABASE(), RELEASE_LOCK('a') FROM (SELECT 1) AS t",
        "(SELECT `GET_LOCK`('a', 1))",
        "DO GET_LOCK('a', 1), RELEASE_ALL_LOCKS()",
    ],
)
def test_a_lock_without_tables_goes_to_the_host_of_locks(sql: str, database: str) -> None:
    """Whatever host has the current database."""
    plan = planned(sql, database, plans=Rewriter(SCHEMA_MODEL, APART))
    assert isinstance(plan, AnyHost)
    assert plan.host(APART) == "a:3306"
    assert plan.database is None
    assert plan.effects is not None
    assert plan.effects.locks


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT GET_LOCK('a', 1) FROM legacy.t",
        "SELECT IS_USED_LOCK(name) FROM legacy.t",
        "UPDATE legacy.t SET a = GET_LOCK('a', 1)",
        "INSERT INTO legacy.t VALUES (GET_LOCK('a', 1))",
        "DO (SELECT GET_LOCK('a', 1) FROM legacy.t)",
        "SELECT legacy.f(), GET_LOCK('a', 1) FROM legacy.t",
        "CREATE TABLE legacy.u AS SELECT GET_LOCK('a', 1) AS a FROM legacy.t",
        "SET @a = (SELECT GET_LOCK('a', 1) FROM legacy.t)",
        "SET STATEMENT max_statement_time = 5 FOR SELECT GET_LOCK('a', 1) FROM legacy.t",
        "PREPARE p FROM 'SELECT GET_LOCK(1, 1)'",
    ],
)
@pytest.mark.parametrize("database", ["legacy", "demo"])
def test_a_lock_beside_tables_of_another_host_is_refused(sql: str, database: str) -> None:
    if database == "demo" and isinstance(planned(sql, database), Reject):
        database = "legacy"  # for other reasons it is refused there anyway
    plan = planned(sql, database, plans=Rewriter(SCHEMA_MODEL, APART))
    assert isinstance(plan, Reject)
    assert plan.error == "lock_elsewhere"
    assert not isinstance(planned(sql, database), Reject)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT LASTVAL(sq)",
        "SELECT lastval /* */ (legacy.sq) FROM t",
        "INSERT INTO t VALUES (PREVIOUS VALUE FOR sq)",
        "SELECT 1 FROM t ORDER BY previous value for legacy.sq",
        "SET @a = LASTVAL(sq)",
        "DO LASTVAL(sq)",
        "CREATE VIEW v AS SELECT LASTVAL(sq)",
    ],
)
def test_what_a_connection_took_last_of_a_sequence_is_asked_of_none(sql: str) -> None:
    """It may be another session's number."""
    plan = planned(sql, "legacy")
    assert isinstance(plan, Reject)
    assert plan.error == "not_supported_yet"
    assert "sessions share connections" in plan.arguments["reason"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT NEXTVAL(sq)",
        "SELECT lastval FROM t",
        "SELECT previous.value FROM previous",
        "CREATE FUNCTION f() RETURNS INT RETURN NEXTVAL(sq) + LASTVAL(sq)",
    ],
)
def test_other_uses_of_sequences_run(sql: str) -> None:
    assert not isinstance(planned(sql, "legacy"), Reject)
