"""A server's connection that breaks, or a server that is away: a clear error to those concerned only."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pymysql
import pytest

from tests.faults.cluster import Faulty
from tests.integration.binary import Binary, integer
from tests.integration.own import statements_like
from tests.integration.raw import IN_TRANS, Closed, Raw, packet, query
from tests.support.waiting import wait_until

pytestmark = pytest.mark.either_server

Start = Callable[..., Faulty]


def rows_of(client: Raw, sql: str) -> list[tuple[bytes | None, ...]]:
    """The rows; none when it fails."""
    return client.ask(sql).rows


CUTS = (0, 1, 3, 5, 60, 200, 5_000, 70_000, 150_000)


def test_cut_in_mid_result(faulty: Start) -> None:
    """An error behind whole packets, and the connection goes on; nobody else notices."""
    cluster = faulty()
    link = cluster.links[1]
    _, users = cluster.users()
    client, other = cluster.client(), cluster.client(database="legacy")
    listed = ",".join(users)
    for sql in (
        f"SELECT id, REPEAT('x', 160000) AS x FROM users WHERE id = {users[0]}",
        f"SELECT id, REPEAT('x', 2000) AS x FROM users WHERE id IN ({listed})",
        f"SELECT id, REPEAT('x', 2000) AS x FROM users WHERE id IN ({listed}) ORDER BY id",
    ):
        whole = sorted(client.ask(sql).rows)
        codes = set()
        for cut in CUTS:
            link.cut_after(cut)
            reply = client.ask(sql)
            link.pass_on()
            assert (reply.kind, reply.sqlstate) == ("err", "HY000"), (cut, reply)
            assert reply.code in (1429, 1158), (cut, reply)  # 1429: it was a new connection's greeting
            codes.add(reply.code)
            assert link.address in reply.message
            assert reply.in_order
            again = wait_until(partial(rows_of, client, sql), "the host is used again")
            assert sorted(again) == whole
            assert other.ask("SELECT COUNT(*) FROM customers").kind == "rows"
        assert 1158 in codes
    cluster.proxy.wait_idle()


def test_cut_in_mid_definitions(faulty: Start) -> None:
    """PyMySQL takes an error in the place of a column's definition for one, and fails in ways of its own."""
    cluster = faulty()
    link = cluster.links[1]
    _, users = cluster.users()
    sql = f"SELECT id, data, ts FROM users WHERE id = {users[0]}"
    address = {"host": cluster.proxy.proxy.host, "port": cluster.proxy.proxy.port}
    with cluster.demo.connect(**address) as connection, connection.cursor() as cursor:
        for cut in (1, 5, 20, 60, 120):
            cursor.execute(sql)
            whole = cursor.fetchall()
            assert len(whole) == 1
            link.cut_after(cut)
            with pytest.raises(pymysql.MySQLError) as failed:
                cursor.execute(sql)
            assert failed.value.args[0] == 1158
            link.pass_on()
            wait_until(partial(served, cursor, sql), "the host is used again")


def served(cursor: Any, sql: str) -> bool:
    try:
        return bool(cursor.execute(sql))
    except pymysql.MySQLError:
        return False


def test_a_long_row_that_breaks_ends_the_clients_connection(faulty: Start) -> None:
    """More than 1 MB of a row is out: only the end of the connection can say that it is not whole."""
    cluster = faulty()
    client, other = cluster.client(database="legacy"), cluster.client()
    client.ask("SELECT 1")
    cluster.links[0].cut_after(8_000_000)
    client.write(query("SELECT REPEAT('x', 12000000), 1 FROM customers LIMIT 1"))
    with pytest.raises(Closed):
        client.reply()
    cluster.links[0].pass_on()
    assert other.ask("SELECT COUNT(*) FROM users").kind == "rows"


GARBAGE = (
    b"\0" * 40,
    b"\xff" * 40,
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"\x01\0\0\x01\xfb",  # wants a local file
    b"\x05\0\0\x01\x03def\x03",
)


def test_garbage_from_a_server(faulty: Start) -> None:
    """Nothing of it is taken for a result, and the next statement gets a connection that works."""
    cluster = faulty({"timeouts": {"statement": "1s"}})
    link = cluster.links[1]
    _, users = cluster.users()
    client, other = cluster.client(), cluster.client(database="legacy")
    sql = f"SELECT id, data FROM users WHERE id = {users[0]}"
    good = client.ask(sql)
    for garbage in GARBAGE:
        link.garbage(garbage)
        client.write(query(sql))
        with suppress(Closed, KeyError, IndexError, AssertionError):  # garbage may reach the one who asked
            reply = client.reply()
            assert (reply.kind, reply.rows) in (("err", []), ("ok", [])), reply
        link.pass_on()
        assert other.ask("SELECT COUNT(*) FROM customers").kind == "rows"
        client = cluster.client()
        assert client.ask(sql).rows == good.rows
    cluster.proxy.wait_idle()


def test_a_killed_connection_in_mid_statement(faulty: Start) -> None:
    """Killed on the server itself: by an operator, or because it shuts down."""
    cluster = faulty()
    client, other = cluster.client(), cluster.client()
    with cluster.demo.direct(0) as server, server.cursor() as cursor:
        client.write(query("SELECT SLEEP(20) AS operator_kills"))
        (thread,) = wait_until(lambda: statements_like(server, "%operator\\_kills%"), "it runs")
        cursor.execute(f"KILL {thread}")
        reply = client.reply()
        assert reply.kind == "err", reply
        assert reply.code in (1158, 1317, 1927, 3169), reply
        assert client.ask("SELECT 'on'").value == b"on"
    assert other.ask("SELECT COUNT(*) FROM users").kind == "rows"


def test_a_transaction_whose_connection_is_lost(faulty: Start) -> None:
    """Everything is refused until ROLLBACK: nothing of it may run by itself."""
    cluster = faulty()
    first, second = cluster.users()
    client, other = cluster.client(), cluster.client()
    for lost in (0, 1):
        assert client.ask("BEGIN").kind == "ok"
        for user in (first[0], second[0]):
            assert (
                client.ask(f"UPDATE users SET data = JSON_SET(data, '$.lost', 1) WHERE id = {user}").kind
                == "ok"
            )
        cluster.links[lost].reset()
        user = (first, second)[lost][1]
        reply = client.ask(f"UPDATE users SET data = JSON_SET(data, '$.lost', 2) WHERE id = {user}")
        assert (reply.code, reply.sqlstate) == (1053, "08S01"), reply
        assert "The transaction was rolled back: Lost connection to MySQL server" in reply.message
        refused = client.ask(f"UPDATE users SET data = JSON_SET(data, '$.lost', 3) WHERE id = {user}")
        assert refused.code == 1053, refused
        assert client.ask("COMMIT" if lost else "ROLLBACK").code == (1053 if lost else 0)
        assert not client.ping().status & IN_TRANS
        listed = ",".join((*first[:2], *second[:2]))
        changed = (
            f"SELECT COUNT(*) FROM users WHERE id IN ({listed}) AND JSON_EXTRACT(data, '$.lost') IS NOT NULL"
        )
        rows = wait_until(partial(rows_of, other, changed), "the host is used again")
        assert rows == [(b"0",)]
    cluster.proxy.wait_idle()


def test_what_a_session_keeps_is_rolled_back_too(faulty: Start) -> None:
    """One host is lost, on the other the session has a temporary table, and so its connection: what the
    transaction did there must not be committed by the next BEGIN.
    """
    cluster = faulty()
    (here, *_), (there, *_) = cluster.users()
    other = cluster.client()
    written = f"SELECT COUNT(*) FROM users WHERE id IN ({here}, {there}) AND ts = '2001-02-03'"
    write = "UPDATE users SET ts = '2001-02-03' WHERE id = {}"
    define = "CREATE TABLE IF NOT EXISTS legacy.never (n INT)"
    client = cluster.client()
    assert client.ask("CREATE TEMPORARY TABLE legacy.kept (n INT)").kind == "ok"
    for told_by in (write.format(there), "COMMIT", "BEGIN", define):
        assert client.ask("BEGIN").kind == "ok"
        assert client.ask(write.format(there)).kind == "ok"
        assert client.ask(write.format(here)).kind == "ok"
        cluster.links[1].reset()
        wait_until(partial(_sees_it_closed, cluster, cluster.links[1].address), "the proxy has noticed")
        reply = client.ask(told_by)
        assert (reply.code, reply.sqlstate) == (1053, "08S01"), (told_by, reply)
        assert client.ask("BEGIN").kind == "ok", told_by
        assert client.ask(write.format(here)).kind == "ok", told_by
        assert other.ask(written).rows == [(b"0",)], told_by
        assert client.ask("ROLLBACK").kind == "ok"
        assert other.ask(written).rows == [(b"0",)], told_by
    assert client.ask("SELECT COUNT(*) FROM legacy.kept").rows == [(b"0",)]
    client.close()
    assert other.ask("SELECT * FROM legacy.never").code == 1146
    cluster.proxy.wait_idle()


def test_a_transaction_whose_connection_is_killed(faulty: Start) -> None:
    """On the server itself, as a fence does: it is surely rolled back, by an error that drivers retry."""
    cluster = faulty()
    first, second = cluster.users()
    client = cluster.client()
    shown = f"SELECT ts FROM users WHERE id IN ({first[0]}, {second[0]})"
    before = sorted(client.ask(shown).rows)
    with cluster.demo.direct(0) as server, server.cursor() as cursor:
        for ends, code in (("COMMIT", 1053), ("ROLLBACK", 0), ("BEGIN", 1053), ("at work", 1053)):
            assert client.ask("BEGIN").kind == "ok"
            for user in (first[0], second[0]):
                assert client.ask(f"UPDATE users SET ts = '2001-02-03' WHERE id = {user}").kind == "ok"
            link = cluster.links[0].address
            assert client.ask(f"SELECT 1 FROM users WHERE id = {first[0]} FOR UPDATE").kind == "rows"
            sql = f"SELECT SLEEP(60) AS fence_kills FROM users WHERE id = {first[0]}"
            client.write(query(sql))
            (thread,) = wait_until(lambda: statements_like(server, "%fence\\_kills%"), "it runs")
            if ends != "at work":
                cursor.execute(f"KILL QUERY {thread}")
                client.reply()
            cursor.execute(f"KILL {thread}")
            if ends == "at work":
                reply = client.reply()
            else:
                wait_until(partial(_sees_it_closed, cluster, link), "the proxy has noticed")
                reply = client.ask(ends)
            assert reply.code == code, (ends, reply)
            assert reply.sqlstate == ("08S01" if code else "")
            if ends == "at work":
                assert client.ask("COMMIT").code == 1053
            assert not client.ping().status & IN_TRANS, ends
            assert sorted(client.ask(shown).rows) == before
    cluster.proxy.wait_idle()


CERTAIN = {
    "one row": "SELECT id, SLEEP(60) AS lost_way FROM users WHERE id = {here}",
    "both hosts": "SELECT id, SLEEP(60) AS lost_way FROM users WHERE id IN ({here}, {there})",
    "a write": "UPDATE users SET ts = ts + SLEEP(60) /* lost_way */ WHERE id = {here}",
    "a write to both": "UPDATE users SET ts = ts + SLEEP(60 * (id = {here})) /* lost_way */"
    " WHERE id IN ({here}, {there})",
    "one host's": "SELECT SLEEP(60) AS lost_way FROM legacy.customers LIMIT 1",
    "prepared, of shards": "SELECT SLEEP(60) AS lost_way FROM users WHERE id = ?",
    "prepared, of one host": "SELECT SLEEP(60) AS lost_way FROM legacy.customers WHERE 1 = ?",
}
UNKNOWN = {
    "a definition": "CREATE TABLE lost AS SELECT SLEEP(60) AS lost_way",
    "prepared, a definition": "CREATE TABLE lost AS SELECT SLEEP(60 * ?) AS lost_way",
    "code": "EXECUTE lost_way",
}


@pytest.mark.parametrize("opening", ["BEGIN", "SET autocommit = 0"])
def test_every_way_within_a_transaction(faulty: Start, opening: str) -> None:
    """What surely is rolled back is 1053, what nobody knows is not; nothing of either runs by itself."""
    cluster = faulty()
    (here, *_), (there, *_) = cluster.users()
    whole = f"SELECT id FROM demo.users WHERE id IN ({here}, {there})"
    with cluster.demo.direct(0) as server:

        def sleeping() -> list[int]:
            return statements_like(server, "%SLEEP(60%lost\\_way%")

        for name, sql in (CERTAIN | UNKNOWN).items():
            codes = (1053, 1053) if name in CERTAIN else (1158, 1105)
            client = cluster.client("demo" if name in CERTAIN else "legacy")
            prepared = Binary(client)
            statement = prepared.statement(sql) if name.startswith("prepared") else None
            if name == "code":
                made = "PREPARE lost_way FROM 'SELECT SLEEP(60) AS lost_way FROM customers LIMIT 1'"
                assert client.ask(made).kind == "ok"
            assert client.ask(opening).kind == "ok"
            if name in UNKNOWN:
                assert client.ask("UPDATE customers SET name = name LIMIT 1").kind == "ok"
            if statement is not None:
                value = integer(int(here) if name == "prepared, of shards" else 1)
                client.write(prepared.execute_packet(statement.id, [value]))
            else:
                client.write(query(sql.format(here=here, there=there)))
            wait_until(sleeping, f"it runs: {name}", 20)
            cluster.links[0].reset()
            reply = client.reply()
            assert (reply.kind, reply.code) == ("err", codes[0]), (name, reply)
            again = client.ask(f"SELECT id FROM demo.users WHERE id = {there}")
            assert (again.kind, again.code) == ("err", codes[1]), (name, again)
            assert ("is not known" in again.message) == (name in UNKNOWN), (name, again)
            ended = client.ask("COMMIT")
            assert (ended.kind, ended.code) == ("err", codes[1]), (name, ended)
            assert client.ask("SET autocommit = 1").kind == "ok"
            wait_until(partial(rows_of, client, whole), f"the host is used again: {name}", 20)
            client.close()
            with server.cursor() as cursor:
                for thread in sleeping():
                    cursor.execute(f"KILL {thread}")
                wait_until(lambda: not sleeping(), f"it is ended: {name}", 20)
                cursor.execute("DROP TABLE IF EXISTS legacy.lost")
    cluster.proxy.wait_idle(clients=0)


def _codes_but(code: int, client: Raw, sql: str) -> set[int]:
    """That of the answer, unless it is `code`."""
    return {client.ask(sql).code} - {code}


def test_what_commits_and_is_not_answered(faulty: Start) -> None:
    """The server has done it, and the answer is lost: no error that a library retries may tell of it."""
    cluster = faulty()
    other = cluster.client("legacy")
    link, shown = cluster.links[0], "SELECT city FROM customers WHERE id = 1"
    for number, sql in enumerate(
        (
            "COMMIT",
            "SET autocommit = 1",
            "SET autocommit = (SELECT 1)",
            "SET autocommit = 1, sql_mode = CONCAT(@@sql_mode, '')",
            "LOAD INDEX INTO CACHE customers",
        )
    ):
        for sent in (True, False):
            city = f"{number} {sent}"
            client = cluster.client("legacy")
            assert client.ask("SET autocommit = 0").kind == "ok"
            assert client.ask(f"UPDATE customers SET city = '{city}' WHERE id = 1").kind == "ok"
            if sent:
                link.spoil(lambda _, piece: (b"", True))
            else:
                link.reset()
                wait_until(partial(_sees_it_closed, cluster, link.address), "the proxy has noticed")
            reply = client.ask(sql)
            link.pass_on()
            if sent:
                assert reply.code == 1158, (sql, reply)
                # what was spoiled may have been an attempt to connect, too: 1429 for a moment
                codes = wait_until(partial(_codes_but, 1429, client, shown), "it is tried again")
                assert codes <= {0, 1105}, sql
                assert client.ask("ROLLBACK").kind == "ok", sql
            else:
                assert reply.code == 1053, (sql, reply)
            client.close()
            found = wait_until(partial(rows_of, other, shown), "the host is used again")
            if not sent:
                assert found != [(city.encode(),)], sql
            elif not sql.startswith("LOAD"):  # which does not commit on every server
                assert found == [(city.encode(),)], sql
    cluster.proxy.wait_idle()


def _sees_it_closed(cluster: Faulty, link: str) -> bool:
    return bool(cluster.proxy.host_state(link)["busy"] == 0)


def test_a_host_that_is_down_and_comes_back(faulty: Start) -> None:
    cluster = faulty({"backends": {"connect_timeout": "60s", "queue_timeout": "60s"}})
    first, second = cluster.users()
    client = cluster.client()
    here, there = (f"SELECT id FROM users WHERE id = {ids[0]}" for ids in (first, second))
    both = f"SELECT id FROM users WHERE id IN ({first[0]}, {second[0]}) ORDER BY id"
    for _ in range(2):
        cluster.links[1].refuse()
        for sql in (
            there,
            both,
            f"UPDATE users SET ts = ts WHERE id = {second[0]}",
            "SELECT COUNT(*) FROM users",
        ):
            reply = client.ask(sql)  # at once: neither time limit is waited for
            assert reply.kind == "err", (sql, reply)
            assert reply.code in (1429, 1158), (sql, reply)
            assert cluster.links[1].address in reply.message
            assert client.ask(here).value == first[0].encode()
        assert client.ask(there).code == 1429
        assert cluster.proxy.host_state(cluster.links[1].address)["up"] is False
        cluster.links[1].accept()
        wait_until(lambda: client.ask(both).kind == "rows", "the host is used again")
        assert client.ask(there).value == second[0].encode()
    cluster.proxy.wait_idle()


def test_a_write_over_shards_with_a_host_down_is_sent_to_none(faulty: Start) -> None:
    cluster = faulty()
    first, second = cluster.users()
    client = cluster.client()
    shown = f"SELECT ts FROM users WHERE id = {first[0]}"
    before = client.ask(shown).value
    cluster.links[1].refuse()
    reply = client.ask(f"UPDATE users SET ts = '2001-02-03' WHERE id IN ({first[0]}, {second[0]})")
    assert (reply.kind, reply.code) == ("err", 1429), reply
    assert client.ask(shown).value == before != b"2001-02-03 00:00:00"
    cluster.links[1].accept()
    cluster.proxy.wait_idle()


def test_a_host_that_says_nothing(faulty: Start) -> None:
    """It accepts connections and is silent: connect_timeout, then 1429; other hosts go on meanwhile."""
    cluster = faulty()
    _, second = cluster.users()
    client, other = cluster.client(), cluster.client(database="legacy")
    cluster.links[1].reset()
    cluster.links[1].silent()
    address = cluster.links[1].address
    wait_until(lambda: cluster.proxy.host_state(address)["idle"] == 0, "the proxy has noticed")
    client.write(query(f"SELECT id FROM users WHERE id = {second[0]}"))
    assert other.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    reply = client.reply()
    assert (reply.kind, reply.code) == ("err", 1429), reply
    cluster.links[1].pass_on()
    wait_until(
        lambda: client.ask(f"SELECT id FROM users WHERE id = {second[0]}").kind == "rows",
        "it is used again",
    )


def test_statement_time_out(faulty: Start) -> None:
    """Ended on the server, too; also when the server hangs; the connection goes on."""
    cluster = faulty({"timeouts": {"statement": "1s"}})
    _, second = cluster.users()
    client, other = cluster.client(), cluster.client(database="legacy")
    with cluster.demo.direct(0) as server:
        for sql in ("SELECT SLEEP(20) AS too_slow", "SELECT SLEEP(0.5) AS too_slow FROM users"):
            began = time.monotonic()
            reply = client.ask(sql)
            assert (reply.kind, reply.code) == ("err", 3024), reply
            assert 0.7 < time.monotonic() - began < 15
            wait_until(lambda: not statements_like(server, "%too\\_slow%"), "it is gone")
            assert client.ask("SELECT 1").value == b"1"
    assert client.ask(f"SELECT id FROM users WHERE id = {second[0]}").kind == "rows"
    cluster.links[1].stall()
    assert client.ask(f"SELECT id FROM users WHERE id = {second[0]}").code == 3024
    assert other.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    cluster.links[1].pass_on()
    assert client.ask(f"SELECT id FROM users WHERE id = {second[0]}").kind == "rows"
    cluster.proxy.wait_idle()


def test_vanished_clients_queries_are_killed(faulty: Start) -> None:
    cluster = faulty()
    first, second = cluster.users()
    with cluster.demo.direct(0) as one, cluster.demo.direct(1) as two:

        def running() -> list[int]:
            return statements_like(one, "%vanished\\_query%") + statements_like(two, "%vanished\\_query%")

        for sql in (
            "SELECT SLEEP(120) AS vanished_query",
            f"SELECT SLEEP(120) AS vanished_query FROM users WHERE id IN ({first[0]}, {second[0]})",
            "SELECT SLEEP(120) AS vanished_query, id FROM users"
            f" WHERE id IN ({first[0]}, {second[0]}) ORDER BY id",
            f"UPDATE users SET ts = ts + 0 * SLEEP(120 + 0 * LENGTH('vanished_query')) WHERE id = {first[0]}",
        ):
            client = cluster.client()
            client.write(query(sql))
            wait_until(running, "it runs")
            client.close()
            wait_until(lambda: not running(), f"it is killed: {sql}")
    cluster.proxy.wait_idle(clients=0)


def test_settings_refused_by_a_server(faulty: Start) -> None:
    """What one server took another may refuse: an error that says so, and the session can set it right."""
    cluster = faulty()
    _, second = cluster.users()
    client, other = cluster.client(), cluster.client()
    sql = f"SELECT id FROM users WHERE id = {second[0]}"
    assert client.ask(sql).value == second[0].encode()
    assert client.ask("SET sql_mode = 'ANSI_QUOTES'").kind == "ok"  # tried on the first host
    refusal = packet(b"\xff" + (1231).to_bytes(2, "little") + b"#42000never heard of it", 1)
    cluster.links[1].garbage(refusal + packet(b"\0\0\0\x02\0\0\0", 1))
    reply = client.ask(sql)
    assert (reply.kind, reply.code) == ("err", 1105), reply
    assert "never heard of it" in reply.message
    assert cluster.links[1].address in reply.message
    assert other.ask(sql).value == second[0].encode()
    assert client.ask(sql).value == second[0].encode()
    assert client.ask("SELECT @@sql_mode").value == b"ANSI_QUOTES"
    cluster.proxy.wait_idle()
