"""A change of several tables that breaks between its writes: all of it, or nothing, and nothing twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from config.layout import PINTEREST
from tests.faults.cluster import Faulty
from tests.integration.own import statements_like
from tests.integration.raw import IN_TRANS, Raw, query
from tests.support.waiting import wait_until

Start = Callable[..., Faulty]

USER = PINTEREST.compose(shard=3, type=3, local=770_001)  # on the first host
PIN = PINTEREST.compose(shard=40, type=1, local=770_002)  # on the second
CHANGE = (
    "UPDATE user_likes_pins l JOIN pins p ON p.id = l.pin_id"
    f" SET l.sequence = 8, p.data = JSON_SET(p.data, '$.slept', SLEEP(20)) WHERE l.user_id = {USER}"
)
SLEEPS = "UPDATE%SLEEP(20)%"


@pytest.fixture
def cluster(faulty: Start) -> Iterator[Faulty]:
    made = faulty()
    client = made.client()
    client.ask(f"INSERT INTO pins (id, data) VALUES ({PIN}, '{{}}')")
    client.ask(f"INSERT INTO user_likes_pins VALUES ({USER}, {PIN}, 7)")
    yield made
    client = made.client()
    client.ask(f"DELETE FROM pins WHERE id = {PIN}")
    client.ask(f"DELETE FROM user_likes_pins WHERE user_id = {USER}")


def sequence(cluster: Faulty) -> bytes | None:
    client = cluster.client()
    try:
        return client.ask(f"SELECT sequence + 0 FROM user_likes_pins WHERE user_id = {USER}").value
    finally:
        client.close()


def run_until_it_sleeps(cluster: Faulty, client: Raw) -> int:
    """Start the change, and wait for its second write: that one's thread."""
    client.write(query(CHANGE))
    with cluster.demo.direct(1) as server:
        (thread,) = wait_until(lambda: statements_like(server, SLEEPS), "the second write runs")
    return thread


def test_its_connection_is_killed(cluster: Faulty) -> None:
    """The first table's rows are as before; the client is in no transaction, and goes on."""
    client = cluster.client()
    thread = run_until_it_sleeps(cluster, client)
    with cluster.demo.direct(1) as server, server.cursor() as cursor:
        cursor.execute(f"KILL {thread}")
    reply = client.reply()
    assert reply.kind == "err", reply
    assert sequence(cluster) == b"7"
    reply = client.ask("SELECT 1")
    assert (reply.kind, reply.status & IN_TRANS) == ("rows", 0)
    with cluster.demo.direct(1) as server:
        assert statements_like(server, SLEEPS) == []
    cluster.proxy.wait_idle()


def test_inside_a_transaction(cluster: Faulty) -> None:
    """It is lost with the connection: nothing of it may be committed."""
    client = cluster.client()
    client.ask("BEGIN")
    client.ask(f"UPDATE user_likes_pins SET sequence = 9 WHERE user_id = {USER}")
    thread = run_until_it_sleeps(cluster, client)
    with cluster.demo.direct(1) as server, server.cursor() as cursor:
        cursor.execute(f"KILL {thread}")
    assert client.reply().kind == "err"
    assert "rolled back" in client.ask("COMMIT").message
    assert sequence(cluster) == b"7"
    assert client.ask("SELECT 1").kind == "rows"
    cluster.proxy.wait_idle()


def test_the_client_goes_away(cluster: Faulty) -> None:
    client = cluster.client()
    run_until_it_sleeps(cluster, client)
    client.close()
    with cluster.demo.direct(1) as server:
        wait_until(lambda: not statements_like(server, SLEEPS), "the second write has ended")
    wait_until(lambda: sequence(cluster) == b"7", "the first write is undone")
    cluster.proxy.wait_idle()


def test_kill_query(cluster: Faulty) -> None:
    """The statement ends, the connection does not."""
    client, other = cluster.client(), cluster.client()
    id = client.ask("SELECT CONNECTION_ID()").value
    run_until_it_sleeps(cluster, client)
    other.ask(f"KILL QUERY {int(id or 0)}")
    reply = client.reply()
    assert sequence(cluster) in ((b"7",) if reply.kind == "err" else (b"8",)), reply
    assert client.ask("SELECT 1").kind == "rows"
    wait_until(partial(other.ask, "SELECT 1"), "others go on")
    cluster.proxy.wait_idle()
