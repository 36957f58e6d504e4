"""ANALYZE, CHECK, CHECKSUM, OPTIMIZE and REPAIR TABLE in a sharded database answer as one server does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.binary import Answer, Binary
from tests.integration.both_sides import logged_in
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

STATEMENTS = (
    "CHECK TABLE usernames",
    "CHECK TABLE demo.usernames, countries FAST",
    "CHECK TABLE nosuch",
    "CHECK TABLES nosuch, usernames, demo.`no such`",
    "CHECK TABLE pins",
    "CHECK TABLE pins, usernames, nosuch, countries, legacy.nosuch",
    "/* app */ check table `pins` , `users` QUICK -- end",
    "CHECK TABLE users, email_to_user, usernames",
    "ANALYZE TABLE usernames",
    "ANALYZE LOCAL TABLE usernames, nosuch",
    "ANALYZE NO_WRITE_TO_BINLOG TABLE nosuch",
    "OPTIMIZE TABLE usernames",
    "OPTIMIZE TABLE nosuch, pins",
    "REPAIR TABLE usernames, nosuch",
    "CHECKSUM TABLE nosuch",
    "CHECKSUM TABLE usernames QUICK",
    "CHECKSUM TABLE nosuch, legacy.nosuch, demo.neither",
    "CHECK TABLE usernames, usernames",
    "CHECK TABLE legacy.nosuch, usernames, db.FROM",
    "CHECK TABLE usernames, FROM",
    "CHECK TABLE",
)


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[tuple[Raw, Raw]]:
    with logged_in(demo, plain) as both:
        yield both


@pytest.mark.parametrize("database", ["demo", "legacy"])
def test_rows_errors_and_warnings_are_those_of_one_server(sides: tuple[Raw, Raw], database: str) -> None:
    for sql in STATEMENTS:
        found = []
        for client in sides:
            client.ask(f"USE {database}")
            client.ask("SELECT 1 UNION SELECT 2")
            one = client.ask(sql)
            shown, counted = client.ask("SHOW WARNINGS"), client.ask("SELECT FOUND_ROWS()")
            told = (one.code, one.message, one.columns, one.rows, one.warnings)
            found.append((*told, shown.rows, counted.rows))
        assert found[0] == found[1], sql


def test_the_checksum_of_a_single_table_is_a_servers(sides: tuple[Raw, Raw]) -> None:
    found = []
    for client in sides:
        client.ask("BEGIN")
        client.ask("DELETE FROM usernames")
        client.ask("INSERT INTO usernames VALUES ('checksum', 5)")
        found.append(client.ask("CHECKSUM TABLE usernames, demo.nosuch").rows)
        client.ask("ROLLBACK")
    assert found[0] == found[1]
    assert found[0][0][0] == b"demo.usernames"
    assert found[0][0][1] not in (None, b"0")


def test_in_any_character_set(sides: tuple[Raw, Raw]) -> None:
    for charset in ("latin1", "utf8mb4", "binary"):
        found = []
        for client in sides:
            client.ask(f"SET NAMES {charset}")
            found.append(client.ask("CHECK TABLE `café`, usernames").rows)
        assert found[0] == found[1], charset


def test_prepared_by_the_protocol(sides: tuple[Raw, Raw]) -> None:
    found = []
    for client in sides:
        binary = Binary(client)
        statement = binary.prepare("ANALYZE TABLE usernames, nosuch, pins")
        assert not isinstance(statement, Answer)
        found.append(binary.execute(statement.id, []).rows)
    assert found[0] == found[1]
