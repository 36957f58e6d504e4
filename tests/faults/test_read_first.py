"""What reads first breaks while it reads: nothing is written, and nothing is left on servers or session."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from config.layout import PINTEREST
from tests.faults.cluster import Faulty
from tests.integration.own import statements_like
from tests.integration.raw import IN_TRANS, Raw, query
from tests.support.waiting import wait_until

pytestmark = pytest.mark.either_server

Start = Callable[..., Faulty]

PIN = PINTEREST.compose(shard=40, type=1, local=770_003)  # on the second host
TABLE = "test_read_first_breaks"
SLEEPING = f"INSERT INTO legacy.{TABLE} (id) SELECT id + SLEEP(20) FROM pins WHERE id = {PIN}"
SLEEPS = "SELECT%SLEEP(20)%"


@pytest.fixture
def cluster(faulty: Start) -> Iterator[Faulty]:
    made = faulty({"limits": {"gather_bytes": 10_000}})
    client = made.client()
    client.ask(f"CREATE TABLE legacy.{TABLE} (id BIGINT UNSIGNED, t LONGTEXT) ENGINE=InnoDB")
    client.ask(f"INSERT INTO pins (id, data) VALUES ({PIN}, '{{}}')")
    yield made
    client = made.client()
    client.ask(f"DROP TABLE legacy.{TABLE}")
    client.ask(f"DELETE FROM pins WHERE id = {PIN}")
    client.close()


@pytest.fixture(params=[False, True], ids=["outside", "in a transaction"])
def client(request: pytest.FixtureRequest, cluster: Faulty) -> Raw:
    """In a transaction it has written a row before."""
    client = cluster.client()
    if request.param:
        client.ask("BEGIN")
        client.ask(f"INSERT INTO legacy.{TABLE} (id) VALUES (1)")
    return client


def run_until_it_sleeps(cluster: Faulty, client: Raw) -> int:
    """Start the statement, and wait for its SELECT: that one's thread."""
    client.write(query(SLEEPING))
    with cluster.demo.direct(1) as server:
        (thread,) = wait_until(lambda: statements_like(server, SLEEPS), "the SELECT runs")
    return thread


def nothing_runs(cluster: Faulty) -> None:
    with cluster.demo.direct(1) as server:
        wait_until(lambda: not statements_like(server, SLEEPS), "the SELECT has ended")


def rows_of(client: Raw) -> int:
    return int(client.ask(f"SELECT COUNT(*) FROM legacy.{TABLE}").value or 0)


def goes_on(client: Raw, before: int, *, open_: int) -> None:
    """The session is in the transaction that it was in, with what that had written, and can write."""
    assert rows_of(client) == before
    reply = client.ask(f"INSERT INTO legacy.{TABLE} (id) SELECT id FROM pins WHERE id = {PIN}")
    assert (reply.kind, reply.status & IN_TRANS) == ("ok", open_)
    assert rows_of(client) == before + 1
    assert client.ask("ROLLBACK").kind == "ok"


def test_the_client_goes_away(cluster: Faulty, client: Raw) -> None:
    run_until_it_sleeps(cluster, client)
    client.reset()
    nothing_runs(cluster)
    cluster.proxy.wait_idle()
    assert rows_of(cluster.client()) == 0


def test_its_connection_is_ended(cluster: Faulty, client: Raw) -> None:
    """KILL without QUERY: as when it goes away."""
    other = cluster.client()
    id = client.ask("SELECT CONNECTION_ID()").value
    run_until_it_sleeps(cluster, client)
    assert other.ask(f"KILL {int(id or 0)}").kind == "ok"
    nothing_runs(cluster)
    assert client.closed
    cluster.proxy.wait_idle()
    assert rows_of(other) == 0


def test_kill_query(cluster: Faulty, client: Raw) -> None:
    """Either server ends the SELECT, MySQL's SLEEP by giving a 1: then the row is written."""
    other = cluster.client()
    id, before = client.ask("SELECT CONNECTION_ID()").value, rows_of(client)
    open_ = client.ask("DO 0").status & IN_TRANS
    run_until_it_sleeps(cluster, client)
    assert other.ask(f"KILL QUERY {int(id or 0)}").kind == "ok"
    reply = client.reply()
    nothing_runs(cluster)
    if reply.kind == "err":
        assert reply.code == 1317
        assert [row[1] for row in client.ask("SHOW WARNINGS").rows] == [b"1317"]
    goes_on(client, before + (reply.kind == "ok"), open_=open_)
    cluster.proxy.wait_idle()


def test_the_server_is_killed(cluster: Faulty, client: Raw) -> None:
    """A transaction is lost with the connection."""
    open_ = client.ask("DO 0").status & IN_TRANS
    thread = run_until_it_sleeps(cluster, client)
    with cluster.demo.direct(1) as server, server.cursor() as cursor:
        cursor.execute(f"KILL {thread}")
    assert client.reply().kind == "err"
    if open_:
        reply = client.ask("COMMIT")
        assert reply.kind == "err"
        assert "rolled back" in reply.message
    goes_on(client, 0, open_=0)
    cluster.proxy.wait_idle()


def test_an_error_in_the_select(cluster: Faulty, client: Raw) -> None:
    before, open_ = rows_of(client), client.ask("DO 0").status & IN_TRANS
    reply = client.ask(f"INSERT INTO legacy.{TABLE} (id) SELECT nothing FROM pins WHERE id = {PIN}")
    assert (reply.kind, reply.code) == ("err", 1054)
    assert [row[1] for row in client.ask("SHOW WARNINGS").rows] == [b"1054"]
    assert client.ask("SELECT ROW_COUNT()").value == b"-1"
    goes_on(client, before, open_=open_)
    cluster.proxy.wait_idle()


def test_more_rows_than_may_be_kept(cluster: Faulty, client: Raw) -> None:
    """The SELECT, which would go on for 20 seconds, ends at once."""
    before, open_ = rows_of(client), client.ask("DO 0").status & IN_TRANS
    many = "SELECT REPEAT('x', 9000), 0 FROM pins UNION ALL SELECT data, SLEEP(20) FROM pins"
    reply = client.ask(f"INSERT INTO legacy.{TABLE} (t, id) {many}")
    assert (reply.kind, reply.code) == ("err", 1104)
    assert "gather_bytes" in reply.message
    nothing_runs(cluster)
    goes_on(client, before, open_=open_)
    cluster.proxy.wait_idle()
