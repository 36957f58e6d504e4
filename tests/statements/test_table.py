"""Every statement of both reference manuals has a row in the statement table, and each server knows it."""

from __future__ import annotations

import pickle
from typing import Final

import pymysql
import pytest

from rewriter.env import Env
from rewriter.planner import lift
from rewriter.sql.statements.forms import Servers, StatementForm
from rewriter.sql.statements.table import FORMS, form_of
from rewriter.text.tokens import read
from tests.statements.answers import HERE, Example, examples
from tests.support.servers import LocalServer

SERVERS: Final = {"mysql": Servers.MYSQL, "mariadb": Servers.MARIADB, "both": Servers.BOTH}
NOT_COUNTED_BY_A_WORD: Final = {
    "alter_db_upgrade": "ALTER DATABASE",
    "create_udf": "CREATE FUNCTION",
    "delete_multi": "DELETE",
    "empty_query": "(a text without a statement)",
    "error": "(a text that is no statement)",
    "grant_role": "GRANT",
    "grant_roles": "GRANT",
    "insert_select": "INSERT",
    "purge_before_date": "PURGE",
    "replace_select": "REPLACE",
    "revoke_all": "REVOKE",
    "revoke_role": "REVOKE",
    "revoke_roles": "REVOKE",
    "show_engine_logs": "SHOW ENGINE",
    "show_engine_mutex": "SHOW ENGINE",
    "update_multi": "UPDATE",
}
"""Kinds that the servers count apart and that have the row of another one: nothing else differs."""


def form(sql: str) -> StatementForm:
    lifted = lift(sql.encode(), Env())
    return form_of(read(lifted.sql, lifted.literals, Env()))


def test_every_statement_of_the_manuals_has_a_row_that_names_the_servers_that_have_it() -> None:
    def is_right(example: Example) -> bool:
        found, servers = form(example.sql), SERVERS[example.servers.removesuffix("?")]
        return found.words != "<unknown>" and found.servers & servers == servers

    assert len(examples()) > 350
    assert [example for example in examples() if not is_right(example)] == []


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("create/* a */or replace definer=`a`@`b` sql security invoker view v as select 1", "CREATE VIEW"),
        ("CREATE DEFINER = CURRENT_USER() PROCEDURE p() SELECT 1", "CREATE PROCEDURE"),
        ("CREATE OR REPLACE TEMPORARY TABLE t (a INT)", "CREATE TEMPORARY TABLE"),
        ("CREATE SPATIAL REFERENCE SYSTEM 4120 NAME 'x'", "CREATE SPATIAL REFERENCE SYSTEM"),
        ("CREATE SPATIAL INDEX i ON t (g)", "CREATE INDEX"),
        ("CREATE `TABLE` (a INT)", "<unknown>"),
        ("SHOW SESSION VARIABLES", "SHOW VARIABLES"),
        ("SHOW NONSENSE", "SHOW"),
        ("SET names = 1", "SET"),
        ("SET PASSWORD = 'x'", "SET PASSWORD"),
        ("SET LOCAL TRANSACTION READ ONLY", "SET TRANSACTION"),
        ("HANDLER d.t READ FIRST", "HANDLER READ"),
        ("FLUSH NO_WRITE_TO_BINLOG TABLES t WITH READ LOCK", "FLUSH TABLES WITH READ LOCK"),
        ("DESC SELECT 1", "EXPLAIN"),
        ("EXPLAIN `select`", "DESCRIBE"),
        ("EXPLAIN FORMAT=JSON FOR CONNECTION 5", "EXPLAIN FOR CONNECTION"),
        ("ANALYZE NO_WRITE_TO_BINLOG TABLE t", "ANALYZE TABLE"),
        ("((SELECT 1))", "("),
        ("`l`: LOOP END LOOP", "<label>"),
        ("FROBNICATE t", "<unknown>"),
        ("@a", "<unknown>"),
    ],
)
def test_options_comments_and_quotes_do_not_hide_what_a_statement_is(sql: str, words: str) -> None:
    assert form(sql).words == words


def test_a_form_exists_once_also_behind_pickle() -> None:
    for row in FORMS.values():
        assert pickle.loads(pickle.dumps(row)) is row


def kinds(server: str) -> list[str]:
    return (HERE / f"kinds_{server}.txt").read_text().split()


@pytest.mark.parametrize("server", ["mariadb", "mysql"])
def test_every_kind_that_a_server_counts_has_a_row(server: str) -> None:
    counted = {row.counter for row in FORMS.values()}
    missing = [kind for kind in kinds(server) if kind not in counted and kind not in NOT_COUNTED_BY_A_WORD]
    assert missing == []
    assert {words for words in NOT_COUNTED_BY_A_WORD.values() if words[0] != "("} <= FORMS.keys()


def test_the_servers_count_the_kinds_that_the_lists_have(flavour: str, plain: LocalServer) -> None:
    """The lists were read from a server's performance schema; the status variables have the same names."""
    with plain.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW GLOBAL STATUS LIKE 'Com\\_%'")
        counted = {name[4:] for name, _ in cursor.fetchall()}
    server = "mariadb" if flavour == "mariadb" else "mysql"
    missing = set(kinds(server)) - counted
    assert {name for name in missing if name not in ("error", "empty_query")} <= set(_NOT_IN_STATUS)


_NOT_IN_STATUS: Final = ("clone", "show_generic", "create_library", "show_create_library")


def test_each_server_reads_the_examples_that_are_marked_as_its_own(flavour: str, plain: LocalServer) -> None:
    """PREPARE reads a statement and runs nothing. Error 1064 says that the server cannot read it."""
    server = "mariadb" if flavour == "mariadb" else "mysql"
    wrong = []
    with plain.connect() as connection, connection.cursor() as cursor:
        for example in examples():
            if example.servers.endswith("?"):
                continue
            quoted = example.sql.replace("'", "''")
            try:
                cursor.execute(f"PREPARE example FROM '{quoted}'")
                known = True
            except pymysql.Error as error:
                known = error.args[0] != 1064
            if known is not (example.servers in ("both", server)):
                wrong.append(example)
    assert wrong == []
