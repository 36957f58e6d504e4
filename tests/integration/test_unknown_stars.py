"""`t.*` of a table that the statement does not have: the error is that of one server, on any connection."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeRaw
from tests.integration.raw import Raw
from tests.support.servers import LocalServer

ID = 68719476737
STARS = (
    "SELECT a.* FROM pins",
    f"SELECT a.* FROM pins WHERE id = {ID}",
    f"SELECT id, `a`.* FROM pins WHERE id IN ({ID}, {ID + 1})",
    f"/* app */ SELECT pins.* FROM pins p WHERE id = {ID}",
    f"SELECT demo.pins.* FROM pins p WHERE id = {ID}",
    f"SELECT legacy.pins.* FROM pins WHERE id = {ID}",
    f"SELECT demo.x.*, 1 FROM pins WHERE id = {ID}",
    "SELECT a.* FROM usernames",
    "SELECT a.* FROM countries c JOIN usernames u",
    "SELECT a.* FROM (SELECT * FROM pins) d",
    "SELECT * FROM (SELECT a.* FROM usernames u) d",
    "SELECT * FROM usernames WHERE user_id IN (SELECT a.* FROM pins)",
    "INSERT INTO usernames SELECT a.* FROM pins",
    "SELECT a.* FROM pins UNION SELECT 1, 2, 3",
)
TAKEN = (
    f"SELECT COUNT(*) FROM pins WHERE id = {ID} AND EXISTS (SELECT a.* FROM usernames u)",
    f"SELECT COUNT(*) FROM pins a WHERE id = {ID} AND EXISTS ((SELECT a.* FROM pins b WHERE b.id = {ID}))",
    f"SELECT demo.pins.* FROM pins WHERE id = {ID}",
    f"SELECT demo.p.* FROM pins p WHERE id = {ID}",
)


@pytest.fixture
def server(plain: LocalServer) -> Raw:
    client = Raw("127.0.0.1", plain.port)
    assert client.login(plain.user, plain.password, "demo").kind == "ok"
    return client


@pytest.mark.parametrize("sql", STARS)
def test_a_star_of_an_unknown_table_is_the_error_of_one_server(raw: MakeRaw, server: Raw, sql: str) -> None:
    with server:
        mine, other = raw().ask(sql), server.ask(sql)
        assert (mine.code, mine.sqlstate, mine.message) == (other.code, other.sqlstate, other.message)
        assert mine.code == 1051


@pytest.mark.parametrize("sql", TAKEN)
def test_a_star_that_a_server_takes_is_taken(raw: MakeRaw, server: Raw, sql: str) -> None:
    with server:
        mine, other = raw().ask(sql), server.ask(sql)
        assert (mine.kind, mine.rows) == (other.kind, other.rows)


def test_without_a_current_database_it_is_the_error_of_one_server(raw: MakeRaw, plain: LocalServer) -> None:
    sql = f"SELECT a.* FROM demo.pins WHERE id = {ID}"
    with Raw("127.0.0.1", plain.port) as server:
        assert server.login(plain.user, plain.password, None).kind == "ok"
        mine, other = raw(database=None).ask(sql), server.ask(sql)
        assert (mine.code, mine.sqlstate, mine.message) == (other.code, other.sqlstate, other.message)
