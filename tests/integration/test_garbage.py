"""Nonsense at the socket: a clean error or the end of that connection, and nothing to anybody else.

The `unharmed` fixture looks afterwards: nobody is connected any more, no backend connection is in use, and
the proxy's log has no error.
"""

from __future__ import annotations

import random
import struct

import pytest

from tests.integration import raw as wire
from tests.integration.fixtures import MakeRaw
from tests.integration.own import read_status, wait_idle
from tests.integration.raw import Closed, Raw, packet, query
from tests.support.demo import Demo

pytestmark = pytest.mark.one_server


def drain(client: Raw) -> bytes:
    """All that comes until the other side closes; what came when it does not within the time-out."""
    client.sock.settimeout(5)
    data = bytes(client.buffer)
    while True:
        try:
            more = client.sock.recv(1 << 16)
        except (ConnectionError, TimeoutError):
            return data
        if not more:
            return data
        data += more


@pytest.fixture
def bystander(raw: MakeRaw) -> Raw:
    return raw()


def test_garbage_instead_of_a_log_in(raw: MakeRaw, bystander: Raw) -> None:
    chooser = random.Random(4)
    for data in (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"\0" * 400,
        b"\xff" * 400,
        packet(b"", 1),
        packet(b"\x85", 1),
        packet(b"\x00" * 32, 1),
        packet(struct.pack("<IIB23x", wire.CAPABILITIES | wire.SSL, 1 << 24, 45), 1),
        packet(struct.pack("<IIB23x", 0xFFFFFFFF, 0, 255) + b"demo\0\xff", 1),
        packet(struct.pack("<IIB23x", wire.CAPABILITIES, 0, 45) + b"x" * 5000, 1),
        *(packet(chooser.randbytes(chooser.randrange(1, 300)), 1) for _ in range(40)),
        *(chooser.randbytes(chooser.randrange(1, 300)) for _ in range(40)),
    ):
        with raw(login=False) as client:
            client.greeting()
            client.write(data)
            client.sock.shutdown(1)
            answer = drain(client)
            assert answer == b"" or answer[4:5] in (b"\xff", b"\xfe", b"\x01"), (data[:40], answer)
        assert bystander.ask("SELECT 1").value == b"1"


def test_a_response_cut_and_spoilt_at_every_byte(raw: MakeRaw, bystander: Raw) -> None:
    with raw(login=False) as client:
        client.greeting()
        length = len(client.response("demo", "demo", "demo"))
    chooser = random.Random(9)
    for place in range(4, length, 3):
        with raw(login=False) as client:
            client.greeting()
            whole = client.response("demo", "demo", "demo")
            short = whole[4:place]
            client.write(packet(short, 1))
            client.sock.shutdown(1)
            drain(client)
        with raw(login=False) as client:
            client.greeting()
            spoilt = bytearray(client.response("demo", "demo", "demo"))
            spoilt[place] = chooser.randrange(256)
            client.write(bytes(spoilt))
            client.sock.shutdown(1)
            drain(client)
    assert bystander.ask("SELECT 1").value == b"1"


def test_random_bytes_after_log_in(raw: MakeRaw, bystander: Raw) -> None:
    chooser = random.Random(5)
    for _ in range(40):
        client = raw()
        client.write(chooser.randbytes(chooser.randrange(1, 2000)))
        client.sock.shutdown(1)
        drain(client)
        client.close()
    for _ in range(150):
        client = raw()
        for _ in range(3):
            kind = chooser.choice(
                (0, wire.QUERY, wire.FIELD_LIST, wire.INIT_DB, wire.PROCESS_KILL, 25, 27, 200)
            )
            client.write(packet(bytes([kind]) + chooser.randbytes(chooser.randrange(0, 60))))
            if kind == 25:  # COM_STMT_CLOSE and COM_STMT_SEND_LONG_DATA have no answer in MySQL
                continue
            reply = client.reply()
            assert reply.kind in ("ok", "err"), reply
        client.close()
    assert bystander.ask("SELECT 1").value == b"1"


def test_half_packets_and_sudden_ends(raw: MakeRaw, bystander: Raw, demo: Demo) -> None:
    whole = query("SELECT id, data FROM users")
    for place in (1, 3, 4, 5, 12, len(whole) - 1, len(whole)):
        for end in (Raw.close, Raw.reset):
            client = raw()
            client.write(whole[:place])
            end(client)
    for behind in range(3):  # closed in the middle of the log-in
        client = raw(login=False)
        if behind:
            client.greeting()
        if behind == 2:
            client.write(client.response("demo", "demo", "demo"))
        client.reset()
    wait_idle(lambda: read_status(demo.status_url), clients=1)
    assert bystander.ask("SELECT COUNT(*) FROM users").kind == "rows"


def test_transactions_of_the_vanished_leave_nothing(raw: MakeRaw, bystander: Raw, demo: Demo) -> None:
    """Statements sent, and the connection closed without waiting: at every moment of a transaction."""
    users = [(row[0] or b"").decode() for row in bystander.ask("SELECT id FROM users ORDER BY id").rows]
    one, many = users[0], ",".join(users[:3] + users[-3:])
    script = [
        query("BEGIN"),
        query(f"UPDATE users SET ts = ts WHERE id = {one}"),
        query(f"INSERT INTO users (id, data) VALUES ({one}, '{{}}')"),  # a duplicate
        query(f"SELECT id FROM users WHERE id IN ({many}) ORDER BY id"),
        query(f"UPDATE users SET ts = ts WHERE id IN ({many})"),
        query("SET @x = CONCAT('a', 'b'), sql_mode = 'ANSI_QUOTES'"),
        query("SELECT 1/0"),
        query("USE legacy"),
        query("COMMIT"),
    ]
    for count in range(1, len(script) + 1):
        for read in (0, count - 1):
            client = raw()
            client.write(b"".join(script[:count]))
            for _ in range(read):
                client.reply()
            client.close()
    wait_idle(lambda: read_status(demo.status_url), clients=1)
    for _ in range(30):  # whatever connection it gets, the reply is its own
        assert bystander.ask(f"SELECT id, @@sql_mode LIKE '%ANSI%' FROM users WHERE id = {one}").rows == [
            (one.encode(), b"0")
        ]
        assert [
            row[0] for row in bystander.ask(f"SELECT id FROM users WHERE id IN ({many}) ORDER BY id").rows
        ] == [id.encode() for id in many.split(",")]


def test_statements_no_parser_should_choke_on(raw: MakeRaw, bystander: Raw) -> None:
    client = raw()
    for sql in (
        b"SELECT '\0'",
        b"SELECT 'unclosed",
        b"SELECT `unclosed",
        b"SELECT /* unclosed",
        b"SELECT " + b"(" * 3000 + b"1" + b")" * 3000,
        b"SELECT " + b"-" * 5000 + b"1",
        b"SELECT id FROM users WHERE id = " + b"(" * 1000 + b"1" + b")" * 1000,
        b"SELECT id FROM users WHERE " + b"NOT " * 5000 + b"id = 1",
        b"SELECT id FROM users WHERE id = 1" + b" OR id = 1" * 3000,
        b"SELECT " + b",".join(b"%d" % n for n in range(5000)),
        b"\xff\xfe\xfd",
        "SELECT 1 — 2".encode(),
        b";;;;",
        b"SELECT id FROM users WHERE id IN (" + b",".join(b"%d" % n for n in range(9000)) + b")",
    ):
        reply = client.ask(sql)
        assert reply.kind in ("rows", "err", "ok"), sql[:50]
        assert "Internal error" not in reply.message, (sql[:50], reply.message)
    assert client.ask("SELECT 1").value == b"1"
    assert bystander.ask("SELECT 1").value == b"1"


def test_a_flood_of_connections_that_say_nothing(raw: MakeRaw, bystander: Raw) -> None:
    silent = [raw(login=False) for _ in range(200)]
    assert bystander.ask("SELECT COUNT(*) FROM users").kind == "rows"
    assert raw().ask("SELECT 1").value == b"1"
    for client in silent:
        client.close()
    with pytest.raises((Closed, OSError)):
        silent[0].exactly(1 << 20)
