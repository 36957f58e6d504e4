"""What drivers, frameworks and tools send when they connect, and every form of SET: the same answers, errors
and values as from a server itself, in a database that is sharded and in one that is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.raw import Raw
from tests.sessions.test_scripts import told
from tests.support.cases import cases_in
from tests.support.demo import Demo
from tests.support.servers import LocalServer

#: Read after every form.
VARIABLES = (
    "sql_mode", "autocommit", "time_zone", "wait_timeout", "net_read_timeout", "net_write_timeout",
    "character_set_client", "character_set_results", "character_set_connection", "collation_connection",
    "sql_safe_updates", "sql_select_limit", "group_concat_max_len", "sql_quote_show_create",
    "foreign_key_checks",
    "unique_checks", "sql_notes", "lock_wait_timeout", "auto_increment_increment", "max_statement_time",
    "information_schema_stats_expiry", "{isolation}", "{read_only}", "sql_auto_is_null",
    "interactive_timeout",
    "default_storage_engine", "max_join_size", "div_precision_increment",
)  # fmt: skip

FORMS: dict[str, list[str]] = cases_in(Path(__file__).with_name("forms.yaml"))


@pytest.fixture(params=["scripts", "demo"])
def sides(
    request: pytest.FixtureRequest, demo: Demo, plain: LocalServer, unharmed: None
) -> Iterator[tuple[Raw, Raw]]:
    """A client of the proxy and one of a server, in a database that is sharded (or would be) and one that is
    not.
    """
    for connection in (demo.connect(), plain.connect()):
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE IF NOT EXISTS scripts")
    with Raw(demo.host, demo.port) as through, Raw("127.0.0.1", plain.port) as direct:
        assert through.login("demo", "demo", request.param).kind == "ok"
        assert direct.login(plain.user, plain.password, request.param).kind == "ok"
        yield through, direct


@pytest.mark.parametrize("name", FORMS)
def test_form(sides: tuple[Raw, Raw], flavour: str, name: str) -> None:
    through, direct = sides
    names = (
        {"isolation": "tx_isolation", "read_only": "tx_read_only"}
        if flavour == "mariadb"
        else {"isolation": "transaction_isolation", "read_only": "transaction_read_only"}
    )
    known = [one.format(**names) for one in VARIABLES]
    known = [one for one in known if direct.ask(f"SELECT @@{one}").kind == "rows"]
    question = "SELECT " + ", ".join(f"@@{one}" for one in known)
    differences = []
    for one in FORMS[name]:
        sql = one.format(**names) if "{" in one else one
        for asked in (sql, question):
            expected, got = direct.ask(asked), through.ask(asked)
            if "USER()" in asked or "@@version_comment" in asked or "VERSION()" in asked:
                expected.rows = got.rows = []
            if told(expected) != told(got):
                rows = (
                    [
                        f"{variable}: {b!r}, not {a!r}"
                        for variable, a, b in zip(
                            known, *(one.rows[0] for one in (expected, got)), strict=True
                        )
                        if a != b
                    ]
                    if asked is question and expected.kind == got.kind == "rows"
                    else []
                )
                differences.append(
                    f"{sql}\n    " + (", ".join(rows) or f"direct  {expected}\n    through {got}")
                )
    assert not differences, "\n" + "\n".join(differences)


@pytest.mark.parametrize("database", [None, "demo", "scripts", "greek"])
def test_what_depends_on_the_current_database(
    sides: tuple[Raw, Raw], demo: Demo, plain: LocalServer, database: str | None
) -> None:
    """It is the session's database that counts, not that of the connection which happens to be at hand."""
    for side in sides:
        assert side.ask("CREATE DATABASE IF NOT EXISTS greek CHARACTER SET greek").kind == "ok"
    try:
        with Raw(demo.host, demo.port) as through, Raw("127.0.0.1", plain.port) as direct:
            assert through.login("demo", "demo", database).kind == "ok"
            named = "scripts" if database == "demo" else database
            assert direct.login(plain.user, plain.password, named).kind == "ok"
            for sql in (
                "SELECT @@character_set_database, @@collation_database",
                "SET CHARACTER SET latin1",
                "SELECT @@character_set_connection, @@collation_connection",
                "SET @a = @@collation_database, CHARACTER SET utf8mb4",
                "SELECT @a, @@character_set_connection, @@collation_connection",
            ):
                for other in sides:  # leaves its connection in another character set's database
                    assert other.ask("USE greek").kind == "ok"
                    assert other.ask("SELECT 1").kind == "rows"
                assert told(through.ask(sql)) == told(direct.ask(sql)), sql
    finally:
        for side in sides:
            side.ask("DROP DATABASE greek")
