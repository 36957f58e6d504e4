"""Unknown functions and procedures: the error names the database in which the client looks for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.both_sides import logged_in
from tests.integration.raw import Raw
from tests.support.demo import Demo
from tests.support.servers import LocalServer

EVERYWHERE = (
    "SELECT no_such(1)",
    "/* app */ SELECT `no_such`(1), DATABASE()",
    "DO no_such(1)",
    "SET @a = no_such(1)",
    "SELECT legacy.no_such(1)",
    "SELECT demo.no_such(1)",
    "CALL legacy.no_such()",
    "CALL nowhere.no_such(1)",
)
IN_FRONT = (
    "SELECT no_such(1) FROM pins LIMIT 1",
    "SELECT no_such(id) FROM pins WHERE id = 68719476756",
    "SELECT legacy.no_such(id) FROM pins",
    "CALL no_such()",
    "/* app */ call `no_such` (1)",
    "CALL demo.no_such()",
)
DERIVED = (
    "SELECT u.id FROM users u, LATERAL (SELECT 1 AS a) x WHERE u.id = 206158430209",
    "SELECT u.id FROM users u JOIN LATERAL (SELECT p.id FROM boards p WHERE p.id = u.id) x LIMIT 1",
    "SELECT u.username FROM usernames u, LATERAL (SELECT 1 AS a) x ORDER BY 1 LIMIT 1",
)


@pytest.fixture
def sides(demo: Demo, plain: LocalServer) -> Iterator[tuple[Raw, Raw]]:
    with logged_in(demo, plain) as both:
        yield both


def test_the_database_is_the_sessions(sides: tuple[Raw, Raw]) -> None:
    proxy, server = sides
    for database in ("demo", "legacy", "demo"):
        for sql in (f"USE {database}", "SELECT COUNT(id b) FROM pins", *EVERYWHERE):
            mine, other = proxy.ask(sql), server.ask(sql)
            assert (mine.kind, mine.code, mine.message) == (other.kind, other.code, other.message), sql


def test_on_shards_the_error_begins_as_a_servers(sides: tuple[Raw, Raw]) -> None:
    proxy, server = sides
    for sql in IN_FRONT:
        mine, other = proxy.ask(sql), server.ask(sql)
        assert (mine.code, mine.sqlstate) == (other.code, other.sqlstate) == (1305, "42000"), sql
        assert mine.message.startswith(other.message), sql


def test_lateral_is_a_syntax_error_where_the_server_does_not_have_it(sides: tuple[Raw, Raw]) -> None:
    proxy, server = sides
    for sql in DERIVED:
        mine, other = proxy.ask(sql), server.ask(sql)
        assert (mine.code, mine.message, mine.rows) == (other.code, other.message, other.rows), sql
