"""What SHOW STATUS tells of the session and the clients, where servers know the pooled connections only."""

from __future__ import annotations

from tests.integration.binary import Binary
from tests.integration.fixtures import MakeRaw
from tests.integration.raw import STATISTICS, Raw, command
from tests.support.waiting import wait_until


def status(client: Raw, name: str, scope: str = "") -> int:
    ((_, value),) = client.ask(f"SHOW {scope} STATUS LIKE '{name}'").rows
    return int(value or 0)


def test_the_sessions_statements(raw: MakeRaw) -> None:
    client, other = raw(database="legacy"), raw(database="legacy")
    client.ask("CREATE TEMPORARY TABLE counted (a INT)")
    assert [status(client, f"Com_{name}") for name in ("insert", "update", "stmt_prepare")] == [0, 0, 0]
    for n in range(3):
        assert client.ask(f"/* one */ INSERT INTO counted VALUES ({n})").kind == "ok"
    client.ask("UPDATE counted SET a = 1")
    client.ask("INSERT INTO nothing_of_that_name VALUES (1)")
    statement = Binary(client).statement("INSERT INTO counted VALUES (?)")
    other.ask("SELECT 1")
    assert [status(client, f"Com_{name}") for name in ("insert", "update", "stmt_prepare")] == [4, 1, 1]
    assert status(client, "Com_insert", "SESSION") == 4
    assert status(other, "Com_insert") == 0
    assert status(client, "Com_insert", "GLOBAL") >= 4
    assert statement.parameters == 1
    client.ask("DROP TEMPORARY TABLE counted")


def test_the_proxys_clients(raw: MakeRaw) -> None:
    client = raw()
    wait_until(lambda: status(client, "Threads_connected") == 1, "earlier clients are gone")
    more = [raw() for _ in range(3)]
    assert status(client, "Threads_connected") == 4
    client.write(command(STATISTICS))
    uptime = int(client.packet().split()[1])
    assert uptime <= status(client, "Uptime") < uptime + 60
    prepared = status(client, "Prepared_stmt_count")
    Binary(more[0]).statement("SELECT 1")
    assert status(client, "Prepared_stmt_count") == prepared + 1
