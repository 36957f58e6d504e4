"""LOCK TABLES beside sharded tables, which it does not lock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.integration.answers import answer
from tests.integration.binary import Binary, integer
from tests.integration.fixtures import Connect, MakeRaw, Things
from tests.support.demo import Demo
from tests.support.servers import Connection, LocalServer


@pytest.fixture
def lockable(demo: Demo, plain: LocalServer) -> Iterator[Connection]:
    """A connection to a plain server; there, and in `legacy`, is the table `lockable`."""
    with demo.direct(database="legacy") as direct, plain.connect(database="legacy") as server:
        try:
            for connection in (direct, server):
                assert answer(connection, "CREATE TABLE lockable (a INT)") == ()
            server.select_db("demo")
            yield server
        finally:
            answer(server, "UNLOCK TABLES")
            for connection in (direct, server):
                answer(connection, "DROP TABLE legacy.lockable")


def test_sharded_tables_are_refused_while_other_tables_are_locked(
    lockable: Connection, connect: Connect, things: Things
) -> None:
    pin = things.insert("pins", {"n": 1})
    client = connect(database="demo")
    for connection in (lockable, client):
        assert answer(connection, "LOCK TABLES legacy.lockable WRITE") == ()
    for sql in (
        "SELECT COUNT(*) FROM pins",
        f"SELECT * FROM pins WHERE id = {pin}",
        f"/* app */ SELECT * FROM pins WHERE id IN ({pin}, {pin + 1})",
        "SELECT p.id FROM pins p JOIN boards b ON p.id = b.id",
        f"UPDATE pins SET ts = ts WHERE id = {pin}",
        f"DELETE FROM pins WHERE id = {pin}",
        "INSERT INTO pins (data, ts) VALUES ('{}', NOW())",
        "INSERT INTO email_to_user VALUES ('locked@example.org', 1)",
        "INSERT INTO legacy.lockable SELECT 1 FROM email_to_user",
    ):
        code, message = answer(client, sql)
        assert code == 1100, sql
        if " JOIN " not in sql:  # a server names the alias
            assert message.startswith(answer(lockable, sql)[1]), sql
    for connection in (lockable, client):
        assert answer(connection, "SELECT * FROM legacy.lockable") == ()
        assert answer(connection, "UNLOCK TABLES") == ()
    assert len(answer(client, f"SELECT id FROM pins WHERE id = {pin}")) == 1


def test_a_prepared_point_query_is_refused_while_other_tables_are_locked(
    lockable: Connection, raw: MakeRaw, things: Things
) -> None:
    pin = things.insert("pins", {"n": 1})
    client = raw(database="demo")
    binary = Binary(client)
    prepared = binary.statement("SELECT data FROM pins WHERE id = ?")
    for _ in range(3):
        assert len(binary.execute(prepared.id, [integer(pin)]).rows) == 1
    client.ask("LOCK TABLES legacy.lockable WRITE")
    assert binary.execute(prepared.id, [integer(pin)]).code == 1100
    client.ask("UNLOCK TABLES")
    assert len(binary.execute(prepared.id, [integer(pin)]).rows) == 1


@pytest.mark.parametrize("ending", ["LOCK TABLES pins WRITE", "UNLOCK TABLES", "BEGIN"])
def test_what_ends_the_lock_allows_sharded_tables_again(
    lockable: Connection, connect: Connect, things: Things, ending: str
) -> None:
    pin = things.insert("pins", {"n": 1})
    client = connect(database="demo")
    assert answer(client, "LOCK TABLES legacy.lockable WRITE") == ()
    assert answer(client, ending) == ()
    assert len(answer(client, f"SELECT id FROM pins WHERE id = {pin}")) == 1
    assert answer(connect(database="demo"), "INSERT INTO legacy.lockable VALUES (1)") == ()
