"""A client logs in to the proxy; the other end is our own log-in to servers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from config.schema import Database, Schema
from proxy.backends.pool import FOUND_ROWS
from proxy.catalog.facts import Collations
from proxy.errors import ProxyError
from proxy.frontend.connection import ClientConnection
from proxy.frontend.login import CAPABILITIES, Login
from proxy.session.state import Role, Session, User
from proxy.wire.auth import Credential, RsaKey
from proxy.wire.constants import Capability
from proxy.wire.handshake import SslRequest, build_ssl_request, parse_greeting
from proxy.wire.login import BackendLogin, Done, Failed, LoginOptions, Send
from proxy.wire.packets import PacketReader, frame, parse_err
from proxy.wire.server_auth import Authority, Decoys
from tests.backends.fakes import FakeTransport
from tests.execute.world import Connection, World
from tests.support.waiting import async_wait_until, turns, turns_until

USERS = {"u": Credential.parse("secret")}
COLLATIONS = Collations({45: ("utf8mb4", "utf8mb4_general_ci"), 8: ("latin1", "latin1_swedish_ci")}, {}, {})


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(USERS.get, RsaKey(), Decoys(USERS.values(), b"s" * 32))


class Visitor:
    """A client that connects."""

    def __init__(
        self, authority: Authority, *, unix: bool = True, limit: int = 10, seconds: float = 60.0
    ) -> None:
        self.world = World(
            authority=authority,
            collations=COLLATIONS,
            schema=Schema(1, {"demo": Database("demo")}),
            settings={
                "timeouts": {"login": f"{seconds * 1000:g}ms"},
                "server_version": "9.7.0-shardgate",
                "compression": [],
            },
        )
        services: Any = self.world.services
        services.clients.next_id = lambda: 77
        self.failures = services.clients.failed_logins
        services.open_session = self.open
        services.client_connected = self.connected
        self.limit = limit
        self.conn = Connection(services)
        self.transport = FakeTransport()
        if unix:
            self.transport.get_extra_info = (  # type: ignore[method-assign]
                lambda name, default=None: "" if name == "peername" else default
            )
        self._reader = PacketReader(1 << 20)
        self.conn.connection_made(self.transport)

    def connected(self, client: ClientConnection) -> None:
        client.phase = Login(client)

    def open(self, client: ClientConnection, id: int, user: str, address: str) -> Session:
        if not self.limit:
            raise ProxyError("too_many_user_connections", user=user, limit=0)
        return Session(id, User(user, Role.READ), address, "9.7.0", {"autocommit": b"1"})

    def read(self) -> list[tuple[int, bytes]]:
        return self._reader.feed(self.transport.take() or b"")

    def log_in(self, options: LoginOptions) -> Done | Failed | None:
        """All steps; None when the server is silent."""
        login = BackendLogin(options)
        while True:
            packets = self.read()
            if not packets:
                return None
            for seq, payload in packets:
                for step in login.receive(payload, seq):
                    if isinstance(step, Send):
                        self.conn.data_received(frame(step.payload, step.seq))
                    else:
                        assert isinstance(step, Done | Failed)
                        return step


OPTIONS = LoginOptions("u", "secret", secure=True, attributes={"program_name": "test"})


async def test_greeting(authority: Authority) -> None:
    [(seq, payload)] = Visitor(authority).read()
    greeting = parse_greeting(payload)
    assert seq == 0
    assert (greeting.server_version, greeting.connection_id) == ("9.7.0-shardgate", 77)
    assert greeting.capabilities == CAPABILITIES | Capability.QUERY_ATTRIBUTES
    assert greeting.status == 2


def test_what_is_advertised() -> None:
    """Only what works."""
    missing = (
        Capability.SSL | Capability.COMPRESS | Capability.ZSTD_COMPRESSION_ALGORITHM
        | Capability.DEPRECATE_EOF
        | Capability.MULTI_FACTOR_AUTHENTICATION
    )  # fmt: skip
    assert not CAPABILITIES & missing


@pytest.mark.parametrize("unix", [True, False], ids=["socket", "TCP with RSA"])
async def test_logged_in(authority: Authority, unix: bool) -> None:
    visitor = Visitor(authority, unix=unix)
    done = visitor.log_in(replace(OPTIONS, secure=unix, collation=8))
    assert isinstance(done, Done)
    session = visitor.conn.session
    assert visitor.conn.ready
    assert visitor.conn.phase is None
    assert (session.id, session.user.name, session.capability_set) == (77, "u", 0)
    assert session.settings.get("character_set_client") == b"latin1"
    assert session.login_settings is session.settings
    assert session.address == ("localhost" if unix else "127.0.0.1:50000")


async def test_found_rows(authority: Authority) -> None:
    visitor = Visitor(authority)
    visitor.log_in(replace(OPTIONS, capabilities=Capability.FOUND_ROWS))
    assert visitor.conn.session.capability_set == FOUND_ROWS


@pytest.mark.parametrize("database", ["demo", "missing"])
async def test_with_a_database(authority: Authority, database: str) -> None:
    visitor = Visitor(authority)
    done = visitor.log_in(replace(OPTIONS, database=database))
    if database == "demo":
        assert isinstance(done, Done)
        assert visitor.conn.ready
        assert visitor.conn.session.database == "demo"
    else:
        assert isinstance(done, Failed)
        assert done.code == 1049
        assert not visitor.transport.open


async def test_too_many_of_one_user(authority: Authority) -> None:
    visitor = Visitor(authority, limit=0)
    failed = visitor.log_in(OPTIONS)
    assert isinstance(failed, Failed)
    assert failed.code == 1226
    assert not visitor.transport.open


@pytest.mark.parametrize("user", ["u", "nobody"])
async def test_denied(authority: Authority, user: str) -> None:
    """Nothing that came along is looked at, and the answer is the same for users there are and are not."""
    visitor = Visitor(authority)
    assert visitor.log_in(replace(OPTIONS, user=user, password="wrong")) is None, "answered later"
    assert not visitor.transport.reading
    visitor.conn.data_received(frame(b"\x03SELECT 1"))
    await turns_until(lambda: visitor.transport.written, "the answer")
    [(_, payload)] = visitor.read()
    error = parse_err(payload)
    assert (error.code, error.text()) == (
        1045,
        f"Access denied for user '{user}'@'localhost' (using password: YES)",
    )
    assert not visitor.transport.open
    assert visitor.failures.failed("localhost", user) == 0.0
    assert [visitor.failures.failed("localhost", user) for _ in range(2)] == [0.0, 0.1]


async def test_denied_and_gone(authority: Authority) -> None:
    visitor = Visitor(authority)
    visitor.log_in(replace(OPTIONS, password="wrong"))
    visitor.conn.connection_lost(None)
    await turns(5)
    assert visitor.transport.take() == b""


async def test_too_slow(authority: Authority) -> None:
    visitor = Visitor(authority, seconds=0.1)
    visitor.read()
    await async_wait_until(lambda: not visitor.transport.open, "the connection is closed")
    assert visitor.read() == []


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", 1251),
        (b"\xff" * 100, 1043),
        (b"GET / HTTP/1.1\r\n\r\n", 1251),
        (build_ssl_request(SslRequest(Capability.SSL | Capability.PROTOCOL_41, 1 << 24, 45)), 1043),
        (b"\x05\x24\x0f\0\0root\0", 1251),
    ],
    ids=["nothing", "garbage", "HTTP", "TLS that was not offered", "before 4.1"],
)
async def test_no_handshake(authority: Authority, payload: bytes, code: int) -> None:
    visitor = Visitor(authority)
    visitor.read()
    visitor.conn.data_received(frame(payload, 1) + frame(b"\x03SELECT 1"))
    [(seq, answer)] = visitor.read()
    assert seq == 2
    assert parse_err(answer).code == code
    assert not visitor.transport.open


async def test_too_large_before_the_log_in(authority: Authority) -> None:
    visitor = Visitor(authority)
    visitor.read()
    visitor.conn.data_received(b"\x00\x00\x10\x01")
    [(_, answer)] = visitor.read()
    assert parse_err(answer).code == 1153
    assert not visitor.transport.open
