"""`timeouts.idle_transaction`: what is rolled back, and what the client hears of it."""

from __future__ import annotations

import pytest

from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import Raw, query
from tests.support.waiting import wait_until

pytestmark = pytest.mark.one_server

ONE = "UPDATE users SET ts = NOW() WHERE id = 206158430209"


@pytest.fixture
def proxy(own: MakeOwn) -> OwnProxy:
    return own({"timeouts": {"idle_transaction": "500ms"}})


def ended(proxy: OwnProxy, count: int = 1) -> None:
    wait_until(lambda: proxy.log.read_text().count("transaction idle too long") == count, "it is ended")


def at_once(client: Raw, *statements: str) -> None:
    """Statements sent together: however slow the machine is, no time passes between them."""
    client.write(b"".join(map(query, statements)))
    for sql in statements:
        assert client.reply().kind in ("ok", "rows"), sql


@pytest.mark.parametrize("begin", ["BEGIN", "SET autocommit = 0"])
@pytest.mark.parametrize("next_one", ["SELECT 1", ONE, "COMMIT", "SAVEPOINT a"])
def test_it_is_rolled_back(proxy: OwnProxy, begin: str, next_one: str) -> None:
    client, other = proxy.raw(), proxy.raw(timeout=20)
    before = other.ask("SELECT ts FROM users WHERE id = 206158430209").value
    at_once(client, begin, ONE)
    other.write(query("UPDATE users SET ts = ts WHERE id = 206158430209"))
    ended(proxy)
    assert other.reply().kind == "ok", "the lock is gone"
    assert other.ask("SELECT ts FROM users WHERE id = 206158430209").value == before
    reply = client.ask(next_one)
    assert (reply.kind, reply.code, reply.sqlstate) == ("err", 1213, "40001")
    assert "0.5 s without a statement" in reply.message
    if next_one != "COMMIT":
        assert client.ask(ONE).code == 1213, "nothing of it runs by itself"
        assert client.ask("ROLLBACK").kind == "ok"
    at_once(client, begin, ONE, "ROLLBACK")
    proxy.close_clients()
    proxy.wait_idle(clients=0)


def test_who_works_is_left_alone(proxy: OwnProxy) -> None:
    """Time counts from the end of a statement, and only in a transaction."""
    clients: list[Raw] = [proxy.raw(database="legacy") for _ in range(3)]
    clients[0].ask("SELECT COUNT(*) FROM customers")
    at_once(clients[1], "BEGIN", *["SELECT SLEEP(0.7) FROM customers LIMIT 1"] * 3, "COMMIT")
    clients[2].ask("SELECT GET_LOCK('idle', 0) FROM customers LIMIT 1")
    clients[2].ask("CREATE TEMPORARY TABLE kept (a INT)")
    touched = "UPDATE customers SET name = name WHERE id = 1"
    at_once(clients[2], "BEGIN", "INSERT INTO kept VALUES (1)", touched)
    ended(proxy)
    assert clients[2].ask("SELECT COUNT(*) FROM kept").code == 1213
    assert clients[2].ask("ROLLBACK").kind == "ok"
    assert clients[2].ask("SELECT COUNT(*) FROM kept").kind == "rows", "what is tied stays"
    assert clients[0].ask("SELECT COUNT(*) FROM customers").kind == "rows"
    assert "idle too long" not in proxy.log.read_text().replace("transaction idle too long", "")
