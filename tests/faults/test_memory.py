"""What clients send and keep has bounds: packets that never end, statements, variables, long data."""

from __future__ import annotations

import struct

import pytest

from tests.integration.binary import Binary, Prepared
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import Closed, Raw, packet
from tests.support.waiting import wait_until

pytestmark = pytest.mark.one_server

MB = 1 << 20


def memory(proxy: OwnProxy) -> int:
    return int(proxy.status()["process"]["memory_bytes"])


def reader(proxy: OwnProxy) -> Raw:
    client = proxy.raw(login=False)
    assert client.login("reader", "reader", "legacy").kind == "ok"
    return client


def test_packets_that_never_end(own: MakeOwn) -> None:
    """40 clients send 30 MB of a packet of 31: some are refused, others are served."""
    proxy = own({"limits": {"client_memory": "200M"}})
    other, before = reader(proxy), memory(proxy)
    clients, refused = [], 0
    for _ in range(40):
        client = proxy.raw()
        clients.append(client)
        try:
            client.write(struct.pack("<I", 0xFFFFFF)[:4] + b"\x03" + b"x" * (15 * MB))
        except OSError:
            refused += 1
    assert other.ask("SELECT COUNT(*) FROM customers").kind == "rows"
    assert other.ask("SELECT '" + "x" * (8 * MB) + "'").kind == "rows", "a user who has not had its share"
    wait_until(lambda: proxy.status()["clients"]["connections"] < 20, "most are gone")
    assert memory(proxy) - before < 400 * MB
    said = set()
    for client in clients:
        client.sock.settimeout(0.05)
        try:
            reply = client.reply()
            said.add((reply.code, reply.sqlstate))
        except (TimeoutError, Closed, OSError):
            pass
    assert said <= {(1041, "08S01")}
    assert said or refused
    for client in clients:
        client.close()
    wait_until(lambda: proxy.status()["clients"]["connections"] == 1, "they are gone")
    assert proxy.raw().ask("SELECT '" + "x" * (40 * MB) + "'").kind == "rows", "nothing stays in the books"


def test_idle_clients_keep_no_statement(own: MakeOwn) -> None:
    proxy = own({"limits": {"client_memory": "200M"}})
    before = memory(proxy)
    clients = [proxy.raw() for _ in range(12)]
    for client in clients:
        assert client.ask("SELECT LENGTH('" + "x" * (12 * MB) + "')").kind == "rows"
    wait_until(lambda: memory(proxy) - before < 60 * MB, "the statements are let go of")


@pytest.fixture
def small(own: MakeOwn) -> OwnProxy:
    return own({"limits": {"session_memory": "1M", "user_variables": "1500K"}})


def test_user_variables(small: OwnProxy) -> None:
    client = small.raw(database="legacy")
    assert client.ask("SET @a = REPEAT('x', 300000)").kind == "ok"
    reply = client.ask("SET @c = REPEAT('x', 300000)")
    assert (reply.kind, reply.code, reply.sqlstate) == ("err", 1041, "HY000")
    assert "limits." in reply.message
    assert client.ask("SELECT LENGTH(@a), @c IS NULL").rows == [(b"300000", b"1")]
    assert client.ask("SET @a = NULL").kind == "ok"
    assert client.ask("SET @c = REPEAT('x', 300000)").kind == "ok"
    assert client.ask("SELECT LENGTH(@c)").value == b"300000"


def test_user_variables_by_literals(own: MakeOwn) -> None:
    """Their limit holds whether a server has made the value or the client has written it out."""
    proxy = own({"limits": {"user_variables": "100K"}})
    client = proxy.raw(database="legacy")
    large = "x" * 200_000
    for sql in (f"SET @b = '{large}'", f"SET @a = 6, @b = '{large}'", "SET @b = REPEAT('x', 200000)"):
        reply = client.ask(sql)
        assert (reply.kind, reply.code) == ("err", 1041), sql[:30]
        assert client.ask("SELECT @a, @b").rows == [(None, None)]
    assert client.ask(f"SET transaction_mode = 'single', @b = '{large}'").code == 1041
    assert client.ask("SET @a = 5, @b = 'x'").kind == "ok"
    assert client.ask("SELECT @a, @b").rows == [(b"5", b"x")]


def test_user_variables_that_a_statement_assigns(small: OwnProxy) -> None:
    client = small.raw(database="legacy")
    client.ask("SET @n = 5")
    client.ask("SELECT @n := REPEAT('x', 2000000)")
    reply = client.ask("SELECT 1")
    assert (reply.kind, reply.code) == ("err", 1041), reply
    assert client.ask("ROLLBACK").kind == "ok"
    assert client.ask("SELECT @n").value == b"5"
    for sql in ("BEGIN", "UPDATE customers SET city = city LIMIT 1", "SELECT REPEAT('x', 2000000) INTO @n"):
        assert client.ask(sql).kind == "ok"
    for sql in ("SELECT 1", "COMMIT"):  # nobody has lost a connection, and it must not be run again as it is
        reply = client.ask(sql)
        assert (reply.kind, reply.code) == ("err", 1041), reply
    assert client.ask("SELECT @n").value == b"5"


def test_prepared_statements(small: OwnProxy) -> None:
    client = Binary(small.raw(database="legacy"))
    made = []
    for number in range(1000):
        found = client.prepare(f"SELECT {number}, " + ", ".join(["id"] * 300) + " FROM customers")
        if not isinstance(found, Prepared):
            assert (found.code, found.payload[4:9]) == (1041, b"HY000")
            break
        made.append(found)
    assert 50 < len(made) < 500
    for one in made:
        client.raw.write(packet(b"\x19" + struct.pack("<I", one.id)))
    for _ in range(300):
        assert client.run("SELECT COUNT(*) FROM customers").kind == "rows"


def test_long_data(small: OwnProxy) -> None:
    client = Binary(small.raw(database="legacy"))
    found = [client.statement("SELECT LENGTH(?)") for _ in range(10)]
    for one in found:
        for _ in range(4):
            client.raw.write(packet(b"\x18" + struct.pack("<IH", one.id, 0) + b"x" * 100_000))
    codes = []
    for one in found:
        body = struct.pack("<IBI", one.id, 0, 1) + b"\0\x01" + struct.pack("<H", 0xFC)
        client.raw.write(packet(b"\x17" + body))
        answer = client.answer()
        codes.append(answer.code)
    assert codes[:2] == [0, 0]
    assert set(codes[2:]) == {1041}
    for one in found[:2] * 4:
        client.raw.write(packet(b"\x18" + struct.pack("<IH", one.id, 0) + b"x" * 100_000))
        client.raw.write(packet(b"\x17" + struct.pack("<IBI", one.id, 0, 1) + b"\0\x01\xfc\0"))
        assert client.answer().kind == "rows", "nothing stays in the books"


def test_clients_that_go_in_the_middle_leave_nothing(own: MakeOwn) -> None:
    """30 of them, one after another, with 30 MB each: of a packet, or of long data."""
    proxy = own({"limits": {"client_memory": "100M"}})
    reader(proxy)
    before = memory(proxy)
    for number in range(30):
        client = proxy.raw()
        if number % 2:
            client.write(packet(b"\x03" + b"x" * 0xFFFFFF * 2)[: 30 * MB])
        else:
            statement = Binary(client).prepare("SELECT ?")
            assert isinstance(statement, Prepared)
            for _ in range(2):
                client.write(packet(struct.pack("<BIH", 0x18, statement.id, 0) + b"x" * (15 * MB)))
            assert client.ping().kind == "ok"
        client.close()
        wait_until(lambda: proxy.status()["clients"]["connections"] == 1, "it is gone")
    assert memory(proxy) - before < 200 * MB
