"""A syntax error shows the client's own text, whatever text the proxy has sent to a server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.binary import Answer, Binary
from tests.integration.both_sides import logged_in
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

STATEMENTS = (
    "SELECT id FROM FROM pins -- ;",  # no statement: not for the tests that read all of them
    "SELECT a b c FROM nope",
    "SELECT id FROM pins, ORDER BY id",
    "SELECT id FROM WHERE id = 5",
    "SELECT pins.id FROM nope.FROM pins x y",
    "UPDATE SET data = 'a' WHERE id = 5",
    "DELETE FROM WHERE id = 5",
    "INSERT INTO VALUES (1)",
    "SELECT nope.id b c FROM pins ORDER BY nope",
    "SELECT COUNT(id b) FROM users",
    "SELECT COUNT(id b) FROM users WHERE id = 5",
    "SELECT COUNT(id b) FROM users WHERE id IN (206158430209, 1125968626319379)",
    "/* app */ SELECT MAX(`id` b)\nFROM demo.photos -- here",
    "SELECT SUBSTR(data FROM b c) FROM pins",
    "SELECT GROUP_CONCAT(id b), COUNT(*) FROM pins GROUP BY id % 3",
    "SELECT COUNT(DISTINCT id b) FROM pins",
    "SELECT COUNT(username b) FROM usernames",
    "SELECT COUNT(b x) FROM usernames, pins",
    "SELECT id FROM pins WHERE id = 68719476756 AND COUNT(id b)",
    "UPDATE pins SET data = COUNT(data b) WHERE id = 68719476756",
    "UPDATE usernames SET user_id = COUNT(user_id b)",
    "DELETE FROM pins WHERE id = 68719476756 AND COUNT(id b)",
    "INSERT INTO pins (data) VALUES (COUNT('a' b))",
    "INSERT INTO email_to_user VALUES ('a', COUNT(1 b))",
    "SELECT LAST_INSERT_ID(), COUNT(1 b)",
    "SELECT COUNT(id b) FROM nowhere_at_all.t",
)


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[tuple[Raw, Raw]]:
    with logged_in(demo, plain) as both:
        yield both


@pytest.mark.parametrize("begin", ["DO 0", "BEGIN", "SET autocommit = 0"])
def test_the_text_in_the_error_and_the_warnings_is_the_clients(sides: tuple[Raw, Raw], begin: str) -> None:
    found = []
    for client in sides:
        client.ask(begin)
        each = []
        for sql in STATEMENTS:
            error, shown = client.ask(sql), client.ask("SHOW WARNINGS")
            each.append((sql, error.code, error.message, error.in_order, shown.rows))
        found.append(each)
    for mine, other in zip(*found, strict=True):
        assert mine == other


def test_prepared(sides: tuple[Raw, Raw]) -> None:
    for sql in STATEMENTS[:-6] + STATEMENTS[-2:]:  # the proxy prepares the other writes by itself
        proxy, server = (Binary(raw).prepare(sql) for raw in sides)
        assert isinstance(proxy, Answer), sql
        assert isinstance(server, Answer), sql
        assert (proxy.code, proxy.message) == (server.code, server.message)
    for sql in (
        "SELECT nope FROM pins WHERE id = ?",
        "SELECT COUNT(id) FROM pins GROUP BY nope",
        "SELECT ?, nope",
    ):
        proxy, server = (Binary(raw).prepare(sql) for raw in sides)
        assert isinstance(proxy, Answer), sql
        assert isinstance(server, Answer), sql
        assert (proxy.code, proxy.message) == (server.code, server.message)
        assert sides[0].ask("SHOW WARNINGS").rows == sides[1].ask("SHOW WARNINGS").rows


def test_the_transaction_goes_on(sides: tuple[Raw, Raw]) -> None:
    for client in sides:
        client.ask("DELETE FROM usernames WHERE username = 'syntax'")
        client.ask("BEGIN")
        client.ask("INSERT INTO usernames VALUES ('syntax', 5)")
        for sql in STATEMENTS:
            assert client.ask(sql).code == 1064
        assert client.ask("SELECT user_id FROM usernames WHERE username = 'syntax'").rows == [(b"5",)]
        client.ask("ROLLBACK")
        assert client.ask("SELECT user_id FROM usernames WHERE username = 'syntax'").rows == []
