"""A connection that is lost while no statement fails for it: the next statement says that state is gone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

import pytest

from tests.faults.cluster import Faulty
from tests.faults.test_backend_lost import Start, _sees_it_closed
from tests.integration.raw import IN_TRANS, Raw
from tests.support.demo import Demo
from tests.support.waiting import wait_until

SETUP = (
    "CREATE TABLE legacy.real_one (n INT)",
    "CREATE TABLE legacy.numbered (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
    "CREATE TRIGGER legacy.numbering BEFORE INSERT ON legacy.numbered FOR EACH ROW SET @numbered = 5",
    "CREATE PROCEDURE legacy.sets() BEGIN DO SLEEP(0.2); SET @kept = 'new'; END",
    "CREATE PROCEDURE legacy.begins()"
    " BEGIN START TRANSACTION; INSERT INTO legacy.real_one VALUES (9); DO SLEEP(0.2); END",
)
TEARDOWN = (
    "DROP TABLE IF EXISTS legacy.real_one",
    "DROP TABLE IF EXISTS legacy.numbered",
    "DROP PROCEDURE IF EXISTS legacy.sets",
    "DROP PROCEDURE IF EXISTS legacy.begins",
)


@pytest.fixture
def cluster(faulty: Start, demo: Demo) -> Iterator[Faulty]:
    with demo.direct(0) as server, server.cursor() as cursor:
        for sql in (*TEARDOWN, *SETUP):
            cursor.execute(sql)
        try:
            yield faulty({"backends": {"max_connections": 2}})
        finally:
            for sql in TEARDOWN:
                cursor.execute(sql)


def _cut_late(begun: float, number: int, piece: bytes) -> tuple[bytes, bool]:
    return piece, time.monotonic() - begun > 0.15


def cut_behind_the_reply(cluster: Faulty, client: Raw, sql: str) -> None:
    """The reply to `sql`, which takes 0.2 s, is the last that comes on its connection."""
    while True:
        cluster.links[0].spoil(partial(_cut_late, time.monotonic()))
        reply = client.ask(sql)
        cluster.links[0].pass_on()
        if reply.code != 1429:  # a new connection was cut, too: nothing was sent
            break
    assert reply.kind in ("ok", "rows"), reply


TEMPORARY = "CREATE TEMPORARY TABLE legacy.real_one (n INT)"
INSERT = "INSERT INTO legacy.real_one VALUES (1)"


@pytest.mark.parametrize(
    ("before", "sql", "then"),
    [
        (TEMPORARY, "SELECT @x := SLEEP(0.2)", INSERT),
        ("DO GET_LOCK('gone', 0)", "SELECT @x := SLEEP(0.2)", INSERT),
        ("LOCK TABLES legacy.real_one WRITE", "SELECT @x := SLEEP(0.2)", INSERT),
        ("SET @kept = 'old'", "SELECT @kept := CONCAT('new', SLEEP(0.2))", "SELECT @kept"),
        ("SET @kept = 'old'", "SELECT CONCAT('new', SLEEP(0.2)) INTO @kept", "SELECT @kept"),
        ("SET @kept = 'old'", "CALL legacy.sets()", "SELECT @kept"),
        (
            "INSERT INTO legacy.numbered (n) VALUES (1)",
            "INSERT INTO legacy.numbered (n) SELECT SLEEP(0.2)",
            "SELECT LAST_INSERT_ID()",
        ),
        (TEMPORARY, "SELECT @x := SLEEP(0.2)", "BEGIN"),
        (TEMPORARY, "SELECT @x := SLEEP(0.2)", "ROLLBACK"),
    ],
)
def test_what_a_reply_has_left_cannot_be_read(cluster: Faulty, before: str, sql: str, then: str) -> None:
    client = cluster.client(database="legacy")
    for setup in ("SET @x = 0", sql, before):
        assert client.ask(setup).kind != "err", setup
    cut_behind_the_reply(cluster, client, sql)
    reply = client.ask(then)
    assert (reply.code, reply.sqlstate) == (1158, "HY000"), reply
    assert "what the session had on that connection" in reply.message
    assert client.ask("SELECT COUNT(*) FROM legacy.real_one").rows == [(b"0",)]
    assert client.ask(then).kind != "err", "once is enough"
    cluster.proxy.wait_idle()


def test_a_transaction_that_a_procedure_has_begun(cluster: Faulty) -> None:
    """Nothing behind it may run by itself."""
    client = cluster.client(database="legacy")
    client.ask("SELECT 1 FROM real_one")
    cut_behind_the_reply(cluster, client, "CALL legacy.begins()")
    for sql in (INSERT, "COMMIT"):
        assert client.ask(sql).code == 1053, sql
    assert not client.ping().status & IN_TRANS
    counted = "SELECT COUNT(*) FROM real_one"  # 1429 while a new connection has been cut, too
    wait_until(lambda: client.ask(counted).rows == [(b"0",)], "nothing was committed")


@pytest.mark.parametrize(
    "between",
    [
        "SHOW TABLES",
        "SHOW TABLE STATUS",
        "SELECT * FROM nowhere",
        "SELECT 1 FROM DUAL WHERE",
        "SELECT nope()",
        "CREATE VIEW demo.v AS SELECT 1",
        "USE nowhere",
        "SELECT COUNT(*) FROM demo.users WHERE id = 1",
        "SELECT 1",
        "SET @other = 1",
    ],
)
def test_whatever_statement_comes_next(cluster: Faulty, between: str) -> None:
    """One of the two says it, also when the first has an error of its own."""
    client = cluster.proxy.raw(database=None)
    assert client.ask(TEMPORARY).kind == "ok"
    cluster.links[0].reset()
    wait_until(partial(_sees_it_closed, cluster, cluster.links[0].address), "the proxy has noticed")
    codes = [client.ask(sql).code for sql in (between, INSERT)]
    assert 1158 in codes, codes


def test_a_statement_that_takes_too_long(faulty: Start) -> None:
    """The proxy closes its connection."""
    client = faulty({"timeouts": {"statement": "300ms"}}).client(database="legacy")
    assert client.ask("CREATE TEMPORARY TABLE customers (n INT)").kind == "ok"
    assert client.ask("SELECT SLEEP(5)").code == 3024
    assert client.ask("INSERT INTO customers VALUES (1)").code == 1158
