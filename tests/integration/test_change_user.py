"""COM_CHANGE_USER: a new user and database, a session like new, and the end of the connection on failure."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator

import pytest

from demo.certificates import LocalAuthority
from tests.integration import raw as wire
from tests.integration.fixtures import CHANGES
from tests.integration.own import OwnProxy, log_problems
from tests.integration.raw import CONNECT_ATTRS, IN_TRANS, NATIVE, SHA2, command, packet, query
from tests.integration.secure import SecureRaw, trusting
from tests.integration.test_login import ACCOUNTS, PASSWORD
from tests.support.demo import Demo

USERS = [*ACCOUNTS, {"name": "careful", "password": PASSWORD, "require_tls": True}]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> LocalAuthority:
    return LocalAuthority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def proxy_of_all(
    demo: Demo, authority: LocalAuthority, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OwnProxy]:
    cert, key = authority.issue()
    settings = {"users": USERS, "tls": {"cert": str(cert), "key": str(key)}}
    with OwnProxy(demo, tmp_path_factory.mktemp("users"), settings) as proxy:
        yield proxy
        assert not log_problems(proxy.log.read_text())


@pytest.mark.parametrize("plugin", [SHA2, NATIVE])
def test_another_user(users: OwnProxy, plugin: str) -> None:
    client = users.raw()
    for user, database in (("plain", "legacy"), ("native", None), ("empty", "demo"), ("sha2", "db00003")):
        password = "" if user == "empty" else PASSWORD
        reply = client.change_user(user, password, database, plugin=plugin)
        assert reply.kind == "ok", (user, reply)
        row = client.ask("SELECT USER(), DATABASE(), CONNECTION_ID()").rows[0]
        assert row == (
            f"{user}@127.0.0.1".encode(),
            database.encode() if database else None,
            b"%d" % client.id,
        )
    assert client.change_user("native", PASSWORD, plugin=plugin).kind == "ok"
    # a right answer to the last nonce is enough with this plugin, as with MariaDB
    assert client.switched_to == ("" if plugin == NATIVE else NATIVE)
    assert client.ping().kind == "ok"


def test_the_session_is_like_new(users: OwnProxy) -> None:
    client = users.raw()
    with users.connect(database="legacy").cursor() as cursor:
        cursor.execute("SELECT city FROM customers WHERE id = 1")
        before = cursor.fetchone()
        for sql in CHANGES:
            assert client.ask(sql).kind == "ok", sql
        reply = client.change_user("plain", PASSWORD, "legacy")
        assert reply.kind == "ok"
        assert reply.status & (IN_TRANS | wire.AUTOCOMMIT) == wire.AUTOCOMMIT
        asked = (
            "SELECT @mine, LAST_INSERT_ID(), @@autocommit, @@time_zone, @@character_set_client,"
            " @@sql_mode LIKE '%ANSI%'"
        )
        assert client.ask(asked).rows == users.raw(database="legacy").ask(asked).rows
        cursor.execute("SELECT city FROM customers WHERE id = 1")
        assert cursor.fetchone() == before


def test_temporary_tables_and_locks_go(users: OwnProxy) -> None:
    client = users.raw(database="legacy")
    assert client.ask("CREATE TEMPORARY TABLE fleeting (id INT)").kind == "ok"
    assert client.ask("SELECT GET_LOCK('change_user', 0)").value == b"1"
    assert client.change_user("demo", "demo", "legacy").kind == "ok"
    assert client.ask("SELECT * FROM fleeting").code == 1146
    other = users.raw(database="legacy")
    assert other.ask("SELECT GET_LOCK('change_user', 5)").value == b"1"


@pytest.mark.parametrize("plugin", [SHA2, NATIVE])
@pytest.mark.parametrize(
    ("user", "password", "database", "code"),
    [
        ("plain", "wrong", None, 1045),
        ("sha2", "wrong", None, 1045),
        ("nobody", PASSWORD, None, 1045),
        ("careful", PASSWORD, None, 1045),
        ("plain", PASSWORD, "nowhere", 1049),
        ("narrow", PASSWORD, "demo", 1044),
    ],
)
def test_a_failed_one_ends_the_connection(
    users: OwnProxy, plugin: str, user: str, password: str, database: str | None, code: int
) -> None:
    client = users.raw(source=f"127.0.15.{len(user + password)}")  # none waits for others' failures
    client.ask("BEGIN")
    reply = client.change_user(user, password, database, plugin=plugin)
    assert (reply.kind, reply.code) == ("err", code)
    assert client.closed


def test_limits_of_connections_hold(users: OwnProxy) -> None:
    held = [users.raw() for _ in range(3)]
    assert [client.change_user("two", PASSWORD).code for client in held] == [0, 0, 1226]
    assert held[2].closed
    assert held[0].change_user("two", PASSWORD).kind == "ok", "one's own connection does not count"


def test_failures_are_slowed(users: OwnProxy) -> None:
    """They count like failed log-ins of the same address."""
    clients = [users.raw(source="127.0.14.1") for _ in range(6)]
    times = []
    for client in clients:
        began = time.monotonic()
        assert client.change_user("demo", "wrong").code == 1045
        times.append(time.monotonic() - began)
    assert sum(times[3:]) >= 0.1 + 0.2 + 0.4


def test_attributes(users: OwnProxy) -> None:
    client = users.raw(login=False)
    pair = b"\x04_pid\x0512345"
    attributes = bytes([len(pair)]) + pair
    assert client.login(flags=CONNECT_ATTRS, attributes=attributes).kind == "ok"
    assert client.change_user("plain", PASSWORD, "demo", attributes=attributes).kind == "ok"
    assert client.ask("SELECT 1").value == b"1"


@pytest.mark.parametrize(
    "argument", [b"", b"plain", b"plain\0", b"plain\0\x14short", b"\xff" * 300, b"plain\0\0demo\0\x2d\0\xff"]
)
def test_bad_packets(users: OwnProxy, argument: bytes) -> None:
    client = users.raw()
    client.write(command(wire.CHANGE_USER, argument))
    first = client.packet()
    if first[:1] == b"\xfe":
        client.write(packet(b"", 2))
        first = client.packet()
    assert first[:1] == b"\xff"
    assert client.closed


def test_over_tls(users: OwnProxy, authority: LocalAuthority) -> None:
    with SecureRaw(users.proxy.host, users.proxy.port, trusting(authority.ca)) as client:
        assert client.login().kind == "ok"
        for user in ("careful", "sha2", "native", "plain"):
            assert client.change_user(user, PASSWORD, "demo").kind == "ok", user
            assert client.ask("SELECT 1").value == b"1"
        assert client.change_user("careful", "wrong").code == 1045
        assert client.closed


def test_commands_behind_it(users: OwnProxy) -> None:
    """They are answers to the switch, and so the wrong ones: a client must wait."""
    client = users.raw()
    client.ask("SELECT 1")
    scramble = struct.pack("<B", 0)
    client.write(command(wire.CHANGE_USER, b"plain\0" + scramble + b"\0") + query("SELECT 2"))
    switch = client.packet()
    assert switch[:1] == b"\xfe"
    assert client.reply().code == 1045
    assert client.closed
