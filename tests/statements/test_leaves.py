"""SET TRANSACTION and, on MariaDB, older warnings outlast just those statements of which the facts say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

import pymysql
import pytest

from config.flavour import FLAVOURS, Flavour
from rewriter.env import Env
from rewriter.planner import lift
from rewriter.sql.statements.facts import StatementFacts, facts_of
from rewriter.sql.statements.forms import Kind, Runs
from rewriter.text.tokens import read
from tests.statements.answers import Example, examples
from tests.statements.test_commits import NOT_RUN
from tests.support.servers import Connection, LocalServer

_OBJECTS: Final = (
    "DROP DATABASE IF EXISTS d",
    "CREATE DATABASE d",
    "CREATE TABLE d.t (a INT, b INT, g GEOMETRY NOT NULL) ENGINE=InnoDB",
    "CREATE TABLE d.u (a INT, b INT) ENGINE=InnoDB",
    "INSERT INTO d.u VALUES (1, 2)",
    "CREATE PROCEDURE d.p(x INT) SET @a = x",
)
_FURTHER: Final = (
    "SELECT (SELECT 1)",
    "SELECT 1 UNION SELECT 2",
    "SELECT EXTRACT(DAY FROM '2012-01-02'), TRIM(LEADING 'x' FROM 'xy')",
    "SELECT 1 FROM DUAL",
    "SELECT 1 INTO @a",
    "SELECT UPPER('a'), @a := 5",
    "(SELECT 1)",
    "VALUES ROW(1)",
    "SELECT * FROM (SELECT a FROM u) AS x",
    "SELECT (SELECT a FROM u LIMIT 1)",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM u)",
    "DO (SELECT 1)",
    "DO (SELECT a FROM u LIMIT 1)",
    "SET @a = (SELECT 1)",
    "SET @a = (SELECT a FROM u LIMIT 1)",
)
_APART: Final = (Kind.TRANSACTION, Kind.USE, Kind.SET, Kind.LOCK)
"""Statements that the proxy runs by rules of their own."""
_ENDLESS: Final = ("LOOP", "FLUSH", "START", "OPTIMIZE", "UNLOCK", "SET SESSION TRANSACTION")
_ACCESS: Final = 1792


def facts(sql: str, flavour: Flavour) -> StatementFacts:
    env = Env(database="d", flavour=flavour)
    lifted = lift(sql.encode(), env)
    return facts_of(read(lifted.sql, lifted.literals, env), flavour=flavour)


def tried(flavour: Flavour) -> Iterator[str]:
    """Statements whose own words say what they touch."""
    for example in (*examples(), *(Example("both", sql, sql) for sql in _FURTHER)):
        if example.servers not in ("both", flavour.name) or example.sql.startswith((*NOT_RUN, *_ENDLESS)):
            continue
        if facts(example.sql, flavour).form.runs is not Runs.ANYTHING:
            yield example.sql


@contextmanager
def prepared(server: LocalServer, look: Connection) -> Iterator[Connection]:
    """A connection on a database with the tables of the examples."""
    with look.cursor() as cursor:
        for sql in _OBJECTS:
            cursor.execute(sql)
    with server.connect(database="d", autocommit=True) as connection:
        yield connection


def run(connection: Connection, sql: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        found = list(cursor.fetchall())
        while cursor.nextset():
            pass
    return found


def error_of(connection: Connection, sql: str) -> int:
    """The code of the error that the statement gives; 0 for none."""
    try:
        run(connection, sql)
    except pymysql.Error as error:
        return int(error.args[0])
    return 0


def uses_up(connection: Connection, sql: str) -> bool | None:
    """Whether the statement uses SET TRANSACTION up, or fails as it is READ ONLY; None for another error."""
    run(connection, "SET TRANSACTION READ ONLY")
    code = error_of(connection, sql)
    if code:
        return True if code == _ACCESS else None
    code = error_of(connection, "INSERT INTO statement_table.mark VALUES (1)")
    assert code in (0, _ACCESS)
    return code == 0


def keeps_warnings(connection: Connection, sql: str) -> bool | None:
    """Whether an older warning is shown behind the statement; None if it gives warnings or an error."""
    run(connection, "SELECT CAST('older' AS SIGNED)")
    with suppress(pymysql.Error):
        run(connection, sql)
        found = run(connection, "SHOW WARNINGS")
        kept = [row for row in found if "older" in str(row[2])]
        return bool(kept) if kept or not found else None
    return None


@pytest.fixture
def look(servers: list[LocalServer]) -> Iterator[Connection]:
    with servers[0].connect() as connection:
        run(connection, "CREATE DATABASE statement_table")
        run(connection, "CREATE TABLE statement_table.mark (a INT) ENGINE=InnoDB")
        yield connection
        run(connection, "DROP DATABASE statement_table")
        run(connection, "DROP DATABASE IF EXISTS d")


def differences(
    kind: Flavour,
    server: LocalServer,
    look: Connection,
    asked: Callable[[Connection, str], bool | None],
    said: Callable[[StatementFacts], bool],
) -> tuple[int, list[tuple[str, bool]]]:
    """How many statements the server has answered for, and those of which the facts say otherwise."""
    answered, wrong = 0, []
    for sql in tried(kind):
        about = facts(sql, kind)
        if about.form.kind in _APART and sql not in _FURTHER:
            continue
        with prepared(server, look) as connection:
            answer = asked(connection, sql)
        if answer is not None:
            answered += 1
            if answer is not said(about):
                wrong.append((sql, answer))
    return answered, wrong


def test_servers_use_set_transaction_up_for_the_statements_whose_facts_say_so(
    flavour: str, servers: list[LocalServer], look: Connection
) -> None:
    kind = FLAVOURS["mariadb" if flavour == "mariadb" else "mysql"]
    answered, wrong = differences(kind, servers[0], look, uses_up, lambda about: about.opens)
    assert answered > 120
    assert wrong == []


def test_mariadb_keeps_warnings_behind_the_statements_whose_facts_say_so(
    flavour: str, servers: list[LocalServer], look: Connection
) -> None:
    kind = FLAVOURS["mariadb" if flavour == "mariadb" else "mysql"]
    if not kind.keeps_warnings:
        with prepared(servers[0], look) as connection:
            assert keeps_warnings(connection, "SELECT 1") is False
        return
    answered, wrong = differences(kind, servers[0], look, keeps_warnings, lambda about: about.keeps_warnings)
    assert answered > 100
    assert wrong == []
