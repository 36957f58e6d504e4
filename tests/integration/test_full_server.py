"""A server that has no connections left: what the proxy does with its own, and what it says of that host when
all is well again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pymysql
import pytest

from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import query
from tests.support.demo import Demo
from tests.support.servers import Connection
from tests.support.waiting import wait_until

pytestmark = pytest.mark.either_server


@contextmanager
def no_connections_left(demo: Demo) -> Iterator[None]:
    """On the first host, besides those that there are."""
    with ExitStack() as stack:
        root = stack.enter_context(demo.direct())

        def limit(connections: int) -> None:
            execute(root, f"SET GLOBAL max_connections = {connections}")

        before = int(execute(root, "SELECT @@GLOBAL.max_connections"))
        stack.callback(limit, before)
        limit(int(execute(root, "SELECT COUNT(*) FROM information_schema.PROCESSLIST")) + 12)
        while True:
            try:
                stack.enter_context(demo.direct(0, user="shardgate", password=own_password(demo)))
            except pymysql.MySQLError as error:
                if error.args[0] != 1040:
                    raise
                break
        yield


def own_password(demo: Demo) -> str:
    return str(json.loads(demo.settings.read_text())["backends"]["password"])


def execute(connection: Connection, sql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        row = cursor.fetchone()
    return str(row[0]) if row else ""


def busy_once(proxy: OwnProxy, connections: int) -> None:
    """The pool has so many idle connections of the administrator's account."""
    clients = [proxy.raw(database="legacy") for _ in range(connections)]
    for client in clients:
        client.write(query("BEGIN"))
        assert client.reply().kind == "ok"
        assert client.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    for client in clients:
        assert client.ask("COMMIT").kind == "ok"
        client.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_users_of_another_account_are_served(own: MakeOwn, demo: Demo, workers: int) -> None:
    """An idle connection goes for one of theirs; and the host is up as soon as it takes connections again,
    though nobody needs one.
    """
    proxy = own({"workers": workers}, expected=("cannot connect",))
    host = demo.hosts[0].address
    busy_once(proxy, 8)
    reader = proxy.raw(login=False)
    assert reader.login(user="reader", password="reader", database="legacy").kind == "ok"
    with no_connections_left(demo):
        reply = reader.ask("SELECT COUNT(*) FROM customers")
        if workers == 1:
            assert reply.rows == [(b"60",)], reply
        wait_until(lambda: proxy.host_state(host)["idle"] > 0, "the others' connections stay")
        before = proxy.host_state(host)
        assert before["idle"] >= 5, before
        clients = [proxy.raw(database="legacy") for _ in range(12)]
        for client in clients:
            client.write(query("SELECT SLEEP(0.5)"))
        wait_until(lambda: "Too many connections" in proxy.host_state(host)["error"], "it is told")
        assert clients[0].reply().kind == "rows"

        def up() -> bool:
            assert clients[0].ask("SELECT COUNT(*) FROM customers").rows == [(b"60",)]
            return bool(proxy.host_state(host)["up"])

        if workers == 1:  # of two, the other one may rightly say that it cannot connect
            wait_until(up, "the host answers statements")
    wait_until(lambda: proxy.host_state(host)["failures"] == 0, "a look finds it out")
    state = proxy.host_state(host)
    assert (state["error"], state["up"]) == ("", True)
    proxy.close_clients()
