"""Servers commit an open transaction before just those statements of which the table says so."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import pymysql

from config.flavour import FLAVOURS
from tests.statements.answers import Example, examples
from tests.statements.test_table import form
from tests.support.servers import LocalServer

NOT_RUN: Final = (
    *("SHUTDOWN", "RESTART", "KILL", "CLONE", "RESET", "PURGE", "STOP", "START GROUP", "CHANGE", "USE", "XA"),
    *("SET PASSWORD", "ALTER USER", "DROP USER", "BACKUP", "LOCK INSTANCE", "FLUSH TABLES", "INSTALL"),
    *("SET GLOBAL", "SET PERSIST", "ALTER INSTANCE", "UNINSTALL", "LOOP"),
)
"""Statements that would stop the server, lock it, never end, or change more than a database. They were tried
by hand.
"""
_ENDING: Final = ("COMMIT", "ROLLBACK")
_REFUSED_BEFORE: Final = (
    "CREATE MASKING POLICY",
    "DROP MASKING POLICY",
    "CREATE SPATIAL REFERENCE SYSTEM",
    "CREATE EXTERNAL TABLE",
)
"""Statements whose examples are refused before anything is committed."""


def commits(server: LocalServer, example: Example) -> bool:
    """Whether a row of the transaction before the statement is seen by others behind it."""
    with server.connect() as other, other.cursor() as look:
        look.execute("DROP DATABASE IF EXISTS d")
        look.execute("CREATE DATABASE d")
        look.execute("CREATE TABLE d.t (a INT, b INT, g GEOMETRY NOT NULL) ENGINE=InnoDB")
        look.execute("CREATE TABLE d.u (a INT, b INT) ENGINE=InnoDB")
        look.execute("TRUNCATE statement_table.mark")
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("USE d")
            cursor.execute("BEGIN")
            cursor.execute("INSERT INTO statement_table.mark VALUES (1)")
            with suppress(pymysql.Error, OSError):
                cursor.execute(example.sql)
                cursor.fetchall()
            look.execute("SELECT COUNT(*) FROM statement_table.mark")
            (row,) = look.fetchall()
        return bool(row[0])


def test_servers_commit_before_the_statements_that_the_table_names(
    flavour: str, servers: list[LocalServer]
) -> None:
    kind = FLAVOURS["mariadb" if flavour == "mariadb" else "mysql"]
    server = servers[0]
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("CREATE DATABASE statement_table")
        cursor.execute("CREATE TABLE statement_table.mark (a INT) ENGINE=InnoDB")
    tried, wrong = 0, []
    try:
        for example in examples():
            known = example.servers in ("both", kind.name)
            skipped = example.sql.startswith((*NOT_RUN, *_ENDING)) or example.name in _REFUSED_BEFORE
            if known and not skipped:
                tried += 1
                if commits(server, example) is not form(example.sql).commits_before(kind):
                    wrong.append(example.sql)
    finally:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("DROP DATABASE statement_table")
            cursor.execute("DROP DATABASE IF EXISTS d")
    assert tried > 200
    assert wrong == []
