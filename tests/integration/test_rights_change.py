"""SIGHUP takes rights away: open sessions lose them at their next statement, whatever they have open."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.binary import Binary, Prepared
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import FIELD_LIST, Raw, query
from tests.integration.replies import error_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.either_server

DEMO = {"name": "demo", "password": "demo", "role": "admin"}


Put = tuple[OwnProxy, Callable[..., None]]


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def put(request: Any, own: MakeOwn) -> Put:
    """A proxy with the user `app`, and what changes it: its settings, or nothing for nobody."""
    return changing(own, request.param)


def changing(own: MakeOwn, workers: int, **settings: Any) -> Put:
    first = {"name": "app", "password": "app", "role": "admin"}
    proxy = own({"users": [DEMO, first], "workers": workers, **settings})
    changes = 0

    def change(**new: Any) -> None:
        nonlocal changes
        changes += 1
        app = [{**first, **new}] if new else []
        proxy.proxy.configure(proxy.settings | {"users": [DEMO, *app]})
        proxy.signal(signal.SIGHUP)
        done = changes * workers
        wait_until(lambda: proxy.log.read_text().count("users read again") == done, "every worker knows")

    return proxy, change


def sessions(proxy: OwnProxy, database: str | None = "demo", count: int = 6) -> list[Raw]:
    """Some, so that each worker has some."""
    found = [proxy.raw(login=False) for _ in range(count)]
    for one in found:
        assert one.login("app", "app", database).kind == "ok"
    return found


def prepared_of(client: Raw, sql: str) -> Prepared:
    found = Binary(client).prepare(sql)
    assert isinstance(found, Prepared), found
    return found


def code_of(client: Raw, statement: Prepared) -> int:
    """The code of the error when it is executed, 0 for none."""
    return Binary(client).execute(statement.id).code


def test_a_lower_role(put: Put) -> None:
    proxy, change = put
    clients = sessions(proxy, "legacy")
    prepared = []
    for client in clients:
        assert client.ask("UPDATE customers SET name = name WHERE id = 1").kind == "ok"
        prepared.append(
            [
                prepared_of(client, sql)
                for sql in (
                    "UPDATE customers SET name = name WHERE id = 1",
                    "UPDATE demo.users SET ts = ts WHERE id = 206158430209",
                    "DROP TABLE IF EXISTS never_there",
                )
            ]
        )
    change(role="read")
    for client, statements in zip(clients, prepared, strict=True):
        assert client.ask("UPDATE customers SET name = name WHERE id = 1").code == 1142
        assert client.ask("SELECT 1; UPDATE customers SET name = name").code in (0, 1064)
        for statement in statements:
            assert code_of(client, statement) == 1142
        assert client.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    change(role="write")
    assert clients[0].ask("UPDATE customers SET name = name WHERE id = 1").kind == "ok"
    assert clients[0].ask("DROP TABLE IF EXISTS never_there").code == 1142


def test_fewer_databases(own: MakeOwn) -> None:
    """With one account for all: the demo has none for users of some databases."""
    proxy, change = changing(own, 2, backends={"accounts": []})
    clients = sessions(proxy, "legacy")
    statements = [prepared_of(client, "SELECT COUNT(*) FROM customers") for client in clients]
    for client, statement in zip(clients, statements, strict=True):
        assert code_of(client, statement) == 0
    change(databases=["demo"])
    for client, statement in zip(clients, statements, strict=True):
        for sql in ("SELECT COUNT(*) FROM customers", "SELECT * FROM legacy.orders", "SHOW TABLES"):
            assert client.ask(sql).code == 1044, sql
        assert code_of(client, statement) == 1044
        assert client.ask("USE legacy").code == 1044
        assert client.do(FIELD_LIST, b"customers\0", fields=True).code == 1044
        assert client.ask("SELECT COUNT(*) FROM demo.users").kind == "rows"


def test_a_text_that_wider_rights_have_judged_ends_with_its_session(own: MakeOwn, flavour: str) -> None:
    """With one account for all nothing else stands between it and the rows: EXECUTE names no database."""
    proxy, change = changing(own, 1, backends={"accounts": []})
    client, other = sessions(proxy, "legacy", 2)
    for one in (client, other):
        assert one.ask("PREPARE s FROM 'SELECT COUNT(*) FROM customers'").kind == "ok"
    assert other.ask("DEALLOCATE PREPARE s").kind == "ok"
    change(databases=["legacy", "demo"])
    assert ended(client, flavour)
    assert other.ask("PREPARE s FROM 'SELECT COUNT(*) FROM customers'").kind == "ok"
    change(databases=["demo", "legacy", "other"])
    assert other.ask("EXECUTE s").kind == "rows", "its rights are wider now"
    change(databases=["demo"])
    assert ended(other, flavour)


def test_a_session_with_a_statement_at_work_is_told_why_it_ends_after_the_answer(
    own: MakeOwn, flavour: str
) -> None:
    proxy, change = changing(own, 1, backends={"accounts": []})
    (client,) = sessions(proxy, "legacy", 1)
    assert client.ask("PREPARE s FROM 'SELECT COUNT(*) FROM customers'").kind == "ok"
    client.write(query("SELECT SLEEP(2)"))
    other = proxy.raw()
    wait_until(lambda: "SELECT SLEEP(2)" in str(other.ask("SHOW FULL PROCESSLIST").rows), "it is at work")
    change(databases=["demo"])
    assert client.reply().kind == "rows"
    assert ended(client, flavour)


def test_and_an_open_handler_does(own: MakeOwn, flavour: str) -> None:
    proxy, change = changing(own, 1, backends={"accounts": []})
    (client,) = sessions(proxy, "legacy", 1)
    assert client.ask("HANDLER customers OPEN").kind == "ok"
    change(databases=["demo"])
    assert ended(client, flavour)


def test_scatter_and_transaction_mode(put: Put) -> None:
    proxy, change = put
    clients = sessions(proxy)
    change(scatter="deny", transaction_mode="single")
    for client in clients:
        assert client.ask("SELECT COUNT(*) FROM users").kind == "err"
    change(scatter={"limit": 1})
    assert clients[0].ask("SELECT id FROM users").code == 1104


def ended(client: Raw, flavour: str) -> bool:
    """Whether the session was ended; MySQL's protocol says why before, MariaDB's does not."""
    if flavour == "mysql9":
        reply = error_of(client.packet([]), [])
        assert reply.code == 3169
        assert "Connect again" in reply.message
    return client.closed


def test_a_removed_user(put: Put, flavour: str) -> None:
    proxy, change = put
    clients = sessions(proxy)
    other = proxy.raw()
    clients[0].ask("BEGIN")
    clients[0].ask("UPDATE users SET ts = ts WHERE id = 206158430209")
    change()
    for client in clients:
        assert ended(client, flavour)
    assert other.ask("UPDATE users SET ts = ts WHERE id = 206158430209").kind == "ok", "its locks are gone"


def test_another_password_ends_nobody(put: Put) -> None:
    proxy, change = put
    clients = sessions(proxy)
    change(password="another")
    for client in clients:
        assert client.ask("SELECT COUNT(*) FROM users").kind == "rows"
        assert client.change_user("app", "app").code == 1045


def test_a_transaction_as_another_account(put: Put, flavour: str) -> None:
    """Its connection to the server has the rights of before, so it ends with the session."""
    proxy, change = put
    clients, other = sessions(proxy), proxy.raw()
    for number, client in enumerate(clients):
        client.ask("BEGIN")
        assert client.ask(f"SELECT GET_LOCK('lock{number}', 0) FROM legacy.customers LIMIT 1").kind == "rows"
    clients[0].ask("UPDATE users SET ts = ts WHERE id = 206158430209")
    change(role="read")
    for client in clients:
        assert ended(client, flavour)
    assert other.ask("UPDATE users SET ts = ts WHERE id = 206158430209").kind == "ok", "its locks are gone"
