"""Opening a connection: the log-in's bytes come from a script, the transport is a fake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from config.tls import BackendTls
from proxy.backends import connecting
from proxy.backends.connecting import LoginConnector
from proxy.backends.connection import BackendConnection
from proxy.backends.host import HostPool
from proxy.backends.pool import EXTENDED_METADATA, FOUND_ROWS
from proxy.backends.refusals import AccountRefused
from proxy.certificates import Certificates
from proxy.errors import ProxyError
from proxy.tls import TlsTransport
from proxy.wire.constants import Capability, MariaCapability
from proxy.wire.handshake import Greeting, HandshakeResponse, SslRequest, build_greeting, parse_response
from proxy.wire.packets import frame
from tests.backends.fakes import OK, FakeTransport, Recorder
from tests.backends.hosts import World
from tests.support.waiting import turns_until
from tests.wire.streams import err_packet, greeting, ok_packet

NONCE = b"n" * 20
SERVER = Capability(0xFFFFFFFF) & ~Capability.SSL
GREETING = greeting("10.11.6-MariaDB", "mysql_native_password", SERVER, NONCE)
TLS_GREETING = greeting("9.7.0", "caching_sha2_password", SERVER | Capability.SSL, NONCE)
LOGGED_IN = ok_packet(2, 0x4002)
METADATA = int(MariaCapability.EXTENDED_METADATA)

Reached = Callable[[asyncio.Protocol, FakeTransport], None]


class Net:
    """What `create_connection` reaches; `reached` plays the server."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.places: list[Any] = []
        self.transports: list[FakeTransport] = []
        self.reached: Reached = lambda protocol, transport: None
        self.error: Exception | None = None
        self.certificates: Certificates | None = None
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "create_connection", self.create)
        monkeypatch.setattr(loop, "create_unix_connection", self.create)

    async def create(self, factory: Callable[[], asyncio.Protocol], *place: Any) -> Any:
        self.places.append(place)
        if self.error is not None:
            raise self.error
        protocol, transport = factory(), FakeTransport()
        transport.set_protocol = lambda protocol: setattr(transport, "protocol", protocol)  # type: ignore[method-assign]
        self.transports.append(transport)
        protocol.connection_made(transport)
        self.reached(protocol, transport)
        return transport, protocol

    async def open(
        self, host: str = "db1:3306", within: float = 5.0, capability_set: int = 0
    ) -> BackendConnection:
        connector = LoginConnector(
            lambda host, capability_set: ("proxy", "secret"), within, self.certificates
        )
        return await connector(host, World().pool, capability_set)


@pytest.fixture
async def net(monkeypatch: pytest.MonkeyPatch) -> Net:
    return Net(monkeypatch)


def accept(protocol: asyncio.Protocol, transport: FakeTransport) -> None:
    protocol.data_received(GREETING)
    protocol.data_received(LOGGED_IN)


@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("db1:3306", ("db1", 3306)),
        ("[::1]:3307", ("::1", 3307)),
        ("unix:/run/mysqld.sock", ("/run/mysqld.sock",)),
    ],
)
@pytest.mark.parametrize("capability_set", [0, FOUND_ROWS])
async def test_logged_in(net: Net, host: str, place: tuple[object, ...], capability_set: int) -> None:
    net.reached = accept
    conn = await net.open(host, capability_set=capability_set)
    assert net.places == [place]
    assert (conn.host, conn.thread_id, conn.version) == (host, 77, "10.11.6-MariaDB")
    assert (conn.capability_set, conn.in_transaction, conn.closed) == (capability_set, False, False)
    assert isinstance(conn.owner, HostPool)
    [transport] = net.transports
    assert transport.protocol is cast(asyncio.Protocol, conn)
    response = parse_response(transport.take()[4:])
    assert isinstance(response, HandshakeResponse)
    assert response.user == "proxy"
    assert (Capability.FOUND_ROWS in response.capabilities) == bool(capability_set)
    assert Capability.SESSION_TRACK in response.capabilities
    unwanted = Capability.DEPRECATE_EOF | Capability.MULTI_STATEMENTS
    assert not response.capabilities & unwanted
    receiver = Recorder()
    conn.send(b"statement", receiver)
    conn.data_received(OK)
    assert receiver.done == [(0, None)]


@pytest.mark.parametrize("flags", [0, METADATA, METADATA | 1])
async def test_extended_metadata(net: Net, flags: int) -> None:
    """A server that lacks it cannot serve those who were told that it is there."""
    made = Greeting("10.11.6-MariaDB", 77, NONCE, SERVER & ~1, 45, 2, "mysql_native_password", flags)
    net.reached = _says(frame(build_greeting(made), 0), LOGGED_IN)
    if not flags:
        with pytest.raises(ProxyError, match="extended metadata"):
            await net.open(capability_set=EXTENDED_METADATA)
        assert net.transports[0].is_closing()
        return
    conn = await net.open(capability_set=EXTENDED_METADATA)
    response = parse_response(net.transports[0].take()[4:])
    assert (conn.offers, response.extended) == (flags, METADATA)
    assert Capability.LONG_PASSWORD not in response.capabilities


async def test_byte_by_byte(net: Net) -> None:
    def slowly(protocol: asyncio.Protocol, transport: FakeTransport) -> None:
        for byte in GREETING + LOGGED_IN:
            protocol.data_received(bytes((byte,)))

    net.reached = slowly
    assert (await net.open()).thread_id == 77


def _says(*data: bytes) -> Reached:
    def reached(protocol: asyncio.Protocol, transport: FakeTransport) -> None:
        for piece in data:
            protocol.data_received(piece)

    return reached


def _hangs_up(*data: bytes, error: Exception | None = None) -> Reached:
    def reached(protocol: asyncio.Protocol, transport: FakeTransport) -> None:
        _says(*data)(protocol, transport)
        protocol.connection_lost(error)

    return reached


REFUSED = {
    "too many connections": (_says(err_packet(0, 1040, "08004", "Too many connections")), "1040"),
    "no greeting": (_says(frame(b"HTTP/1.1 400 Bad Request")), "protocol version 72"),
    "too large": (_says(b"\xff\xff\xff\x00"), "malformed"),
    "hangs up at once": (_hangs_up(), "closed the connection"),
    "hangs up after the greeting": (_hangs_up(GREETING), "closed the connection"),
    "resets": (_hangs_up(error=ConnectionResetError(104, "Connection reset by peer")), "the server closed"),
}


@pytest.mark.parametrize(("reached", "reason"), REFUSED.values(), ids=REFUSED)
async def test_refused(net: Net, reached: Reached, reason: str) -> None:
    net.reached = reached
    with pytest.raises(ProxyError, match=reason) as caught:
        await net.open()
    assert caught.value.kind.name == "host_unreachable"
    assert not net.transports[0].open


@pytest.mark.parametrize(("code", "whose"), [(1040, "host"), (1203, "account"), (1226, "account")])
async def test_too_many_connections(net: Net, code: int, whose: str) -> None:
    """Where an idle one may make room."""
    net.reached = _says(GREETING, err_packet(2, code, "42000", "too many"))
    with pytest.raises(ProxyError, match=str(code)) as caught:
        await net.open()
    assert (caught.value.kind.name, caught.value.details["full"]) == ("host_unreachable", whose)


@pytest.mark.parametrize("code", [1045, 1698, 3118, 4150, 4151])
async def test_account_refused(net: Net, code: int) -> None:
    """The host is there: only this account cannot use it. Its name is for the log, not for clients."""
    message = "Access denied for user 'proxy'@'10.0.0.1' (using password: YES)"
    net.reached = _says(GREETING, err_packet(2, code, "28000", message))
    with pytest.raises(AccountRefused) as caught:
        await net.open()
    assert caught.value.account == "proxy"
    assert str(code) in caught.value.details["reason"]
    assert "'proxy'" not in str(caught.value)
    assert caught.value.code == 1045
    assert not net.transports[0].open


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (OSError("Multiple exceptions: refused, refused"), "Multiple exceptions"),
        (TimeoutError(110, "timed out"), "no answer"),
    ],
)
async def test_unreachable(net: Net, error: Exception, reason: str) -> None:
    net.error = error
    with pytest.raises(ProxyError, match=reason):
        await net.open()


@pytest.mark.parametrize("data", [b"", GREETING])
async def test_no_answer(net: Net, data: bytes) -> None:
    net.reached = _says(data) if data else lambda protocol, transport: None
    with pytest.raises(ProxyError, match="no answer within 0"):
        await net.open(within=0.001)
    assert not net.transports[0].open


async def test_cancelled(net: Net) -> None:
    task = asyncio.ensure_future(net.open())
    await turns_until(lambda: net.transports, "the connection is being opened")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not net.transports[0].open


async def test_closed_between_log_in_and_use(net: Net) -> None:
    """The transport would not tell its new protocol, and the first statement would wait for ever."""

    def reached(protocol: asyncio.Protocol, transport: FakeTransport) -> None:
        accept(protocol, transport)
        transport.close()

    net.reached = reached
    with pytest.raises(ProxyError, match="at once"):
        await net.open()


async def test_no_tls_when_it_was_asked_for(net: Net) -> None:
    """Nothing that names the user leaves in the clear."""
    net.reached = accept
    net.certificates = Certificates("hosts", BackendTls(verify="none"))
    with pytest.raises(ProxyError, match="does not offer it"):
        await net.open()
    [transport] = net.transports
    assert transport.take() == b""
    assert not transport.open


async def test_clear_text_behind_the_greeting(net: Net) -> None:
    """Whoever puts bytes between the greeting and TLS is not the server."""
    net.reached = _says(TLS_GREETING + LOGGED_IN)
    net.certificates = Certificates("hosts", BackendTls(verify="none"))
    with pytest.raises(ProxyError, match="clear text"):
        await net.open()
    [transport] = net.transports
    assert isinstance(parse_response(transport.take()[4:]), SslRequest)
    assert not transport.open


async def test_no_tls_after_all(net: Net) -> None:
    def reached(protocol: asyncio.Protocol, transport: FakeTransport) -> None:
        protocol.data_received(TLS_GREETING)
        assert isinstance(transport.protocol, TlsTransport)
        transport.protocol.data_received(LOGGED_IN)

    net.reached = reached
    net.certificates = Certificates("hosts", BackendTls(verify="none"))
    with pytest.raises(ProxyError, match="TLS failed: "):
        await net.open()
    assert not net.transports[0].open


async def test_a_unix_socket_goes_without(net: Net) -> None:
    net.reached = accept
    net.certificates = Certificates("hosts", BackendTls(verify="none"))
    assert (await net.open("unix:/run/mysqld.sock")).thread_id == 77


def test_what_is_asked_of_servers() -> None:
    """Clients get the servers' bytes, so nothing may be asked for that clients have not."""
    assert not connecting.CAPABILITIES & (Capability.DEPRECATE_EOF | Capability.COMPRESS)
