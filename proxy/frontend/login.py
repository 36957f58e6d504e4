"""A client logs in: greeting, response, authentication, and then the session. COM_CHANGE_USER, too.

The decisions are `wire.server_auth`'s. A failed log-in ends the connection, and nothing the client sent along
with its response is looked at. Failed log-ins from one address are answered later and later.

A client that asks for TLS gets a `TlsTransport` in place of its transport. Whatever it sends after that
request is part of the TLS handshake or ends the connection, also what came in the same read; and of what it
said before, nothing is used.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, cast

import structlog

from config.flavour import flavour_of
from proxy.backends.pool import EXTENDED_METADATA, FOUND_ROWS
from proxy.backends.settings import Settings
from proxy.engine.lease import release_all
from proxy.errors import ProxyError
from proxy.frontend.compressed import BeginCompression
from proxy.local.use import use_database
from proxy.session.outcome import Outcome
from proxy.session.reading import charset_of
from proxy.session.state import Introduction, Session
from proxy.session.tracking import Tracker
from proxy.tls import TlsTransport
from proxy.wire.auth import CACHING_SHA2, NATIVE, make_nonce
from proxy.wire.compression import CAPABILITY, agreed
from proxy.wire.constants import Capability, MariaCapability, Status
from proxy.wire.handshake import (
    Greeting,
    HandshakeResponse,
    OldClient,
    SslRequest,
    build_greeting,
    parse_change_user,
    parse_response,
)
from proxy.wire.packets import ProtocolError, frame, ok_packet
from proxy.wire.server_auth import Done, Failed, Send, ServerAuthenticator, Step

if TYPE_CHECKING:
    from proxy.engine.services import Services

    from .connection import ClientConnection

log = structlog.get_logger("session")

#: What is advertised to clients: only what is implemented.
CAPABILITIES = (
    Capability.LONG_PASSWORD
    | Capability.FOUND_ROWS
    | Capability.LONG_FLAG
    | Capability.CONNECT_WITH_DB
    | Capability.ODBC
    | Capability.LOCAL_FILES
    | Capability.IGNORE_SPACE
    | Capability.PROTOCOL_41
    | Capability.INTERACTIVE
    | Capability.IGNORE_SIGPIPE
    | Capability.TRANSACTIONS
    | Capability.RESERVED
    | Capability.SECURE_CONNECTION
    | Capability.MULTI_STATEMENTS
    | Capability.MULTI_RESULTS
    | Capability.PS_MULTI_RESULTS
    | Capability.PLUGIN_AUTH
    | Capability.CONNECT_ATTRS
    | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA
    | Capability.SESSION_TRACK
)


class Authentication(ABC):
    """Finds out who a client is, and makes its session. It is the client's `Phase` until then."""

    def __init__(self, client: ClientConnection, id: int, introduction: Introduction) -> None:
        self.client = client
        self.id = id
        self.introduction = introduction
        self.authenticator: ServerAuthenticator | None = None
        self.response: HandshakeResponse | None = None
        self.seq = client.seq
        self.over = False
        seconds = client.services.settings.timeouts.login
        self._timer = asyncio.get_running_loop().call_later(seconds, self._too_slow)

    def payload(self, seq: int, payload: bytes) -> None:
        if self.over:
            return
        self.seq = seq
        try:
            if self.authenticator is not None:
                self._carry_out(self.authenticator.receive(payload))
            else:
                self.first(payload)
        except OldClient:
            self.refuse(ProxyError("client_too_old"))
        except ProtocolError as problem:
            self.refuse(ProxyError("handshake_error", reason=str(problem)))

    @abstractmethod
    def first(self, payload: bytes) -> None:
        """The first packet. Raises ProtocolError."""

    @abstractmethod
    def welcome(self, session: Session) -> None:
        """The client is in: tell it."""

    @abstractmethod
    def agree(self, response: HandshakeResponse) -> None:
        """What holds for the connection from the OK on."""

    def begin(self, response: HandshakeResponse, *, again: bool = False) -> None:
        """Check who it is; `again`: the client has a session already."""
        self.response = response
        known = self.introduction
        self.authenticator = ServerAuthenticator(
            self.client.services.authority,
            known.nonce,
            secure=known.local,
            tls=known.tls,
            announced=_default_plugin(self.client.services.server_version),
        )
        check = self.authenticator.change_user if again else self.authenticator.start
        self._carry_out(check(response))

    def abandon(self) -> None:
        """The client is gone, or the phase over."""
        self.over = True
        self._timer.cancel()

    def refuse(self, error: ProxyError) -> None:
        """One ERR packet, and the connection is over."""
        self.abandon()
        self.client.seq = self.seq
        self.client.services.stats.refused(error.kind.name)
        self.client.write_error(error)
        self.client.close()

    def _too_slow(self) -> None:
        self.over = True
        log.info("log-in took too long", address=self.introduction.address)
        self.client.close()

    def _carry_out(self, steps: tuple[Step, ...]) -> None:
        for step in steps:
            if isinstance(step, Send):
                self.seq += 1
                self.client.transport.write(frame(step.payload, self.seq))
            elif isinstance(step, Failed):
                self._denied(step)
            else:
                self._logged_in(step)

    def _denied(self, failed: Failed) -> None:
        services = self.client.services
        using = "YES" if failed.password_used else "NO"
        address, host = self.introduction.address, self.introduction.host
        log.warning("log-in refused", user=failed.user, address=address, reason=failed.reason)
        error = ProxyError("access_denied", user=failed.user, address=host, using=using)
        delay = services.clients.failed_logins.failed(host, failed.user)
        self.over = True
        self._timer.cancel()
        self.client.transport.pause_reading()
        self._timer = asyncio.get_running_loop().call_later(delay, self._answer_denied, error)

    def _answer_denied(self, error: ProxyError) -> None:
        if not self.client.closed:
            self.refuse(error)

    def _logged_in(self, done: Done) -> None:
        services, client, response = self.client.services, self.client, self.response
        assert response is not None
        assert self.authenticator is not None
        self.introduction.nonce = self.authenticator.nonce
        services.clients.failed_logins.succeeded(self.introduction.host, done.user)
        values = services.collations.settings_for(response.collation or self.introduction.collation)
        try:
            charset_of(values.get("character_set_client", b"utf8mb4"))
            session = services.open_session(client, self.id, done.user, self.introduction.address)
        except ProxyError as error:
            self.refuse(error)
            return
        # what the handshake itself sets: flags of the client, and the character set
        session.introduction = self.introduction
        session.local_files = Capability.LOCAL_FILES in response.capabilities
        several = Capability.MULTI_RESULTS | Capability.MULTI_STATEMENTS
        session.multi_results = bool(several & response.capabilities)
        session.multi_statements = Capability.MULTI_STATEMENTS in response.capabilities
        session.capability_set = (
            _capability_set(response.capabilities, self.introduction.extended) | session.user.account
        )
        if Capability.SESSION_TRACK in self.introduction.capabilities:
            session.tracker = Tracker()
        values = {**values, **session.reading}
        if Capability.IGNORE_SPACE in response.capabilities:
            values = {
                **values,
                "sql_mode": b"'IGNORE_SPACE,%s'" % session.defaults.get("sql_mode", b"").strip(b"'"),
            }
        interactive = session.defaults.get("interactive_timeout")
        if Capability.INTERACTIVE in response.capabilities and interactive != session.defaults.get(
            "wait_timeout", interactive
        ):
            values = {**values, "wait_timeout": interactive or b"28800"}
        session.settings = session.login_settings = Settings.of(values)
        session.refresh_env()
        self.abandon()
        if client.session is not None:  # COM_CHANGE_USER leaves this, and what COM_SET_OPTION has said
            session.apply(Outcome(found=client.session.found_rows))
            session.multi_statements = client.session.multi_statements
        client.begin_session(session)
        client.seq = self.seq
        self.agree(response)
        if not response.database:
            self.welcome(session)
            return
        client.kind = "command"
        client.plan = None
        try:
            use_database(client, response.database, at_login=True)
        except ProxyError as error:
            self.refuse(error)


def _default_plugin(version: str) -> str:
    """What a server of this version asks for first. Connector/J cannot read caching_sha2_password's further
    packets from a server whose version begins with MariaDB's 5.5.5-.
    """
    return NATIVE if flavour_of(version).native_password else CACHING_SHA2


def _status(services: Services) -> int:
    """The status flags of a greeting."""
    told = services.facts.autocommit or not flavour_of(services.server_version).greets_without_autocommit
    return int(Status.AUTOCOMMIT) if told else 0


class Login(Authentication):
    """The connection phase of one client: greeting, TLS, response."""

    def __init__(self, client: ClientConnection) -> None:
        services = client.services
        address, local = _peer(client)
        super().__init__(client, services.clients.next_id(), Introduction(make_nonce(), address, local))
        greeting = Greeting(
            services.server_version,
            self.id,
            self.introduction.nonce,
            _offered(services),
            services.collations.greeting,
            _status(services),
            _default_plugin(services.server_version),
            services.extended,
        )
        client.transport.write(frame(build_greeting(greeting), 0))

    def first(self, payload: bytes) -> None:
        response = parse_response(payload)
        if isinstance(response, SslRequest):
            self._start_tls()
            return
        services, known = self.client.services, self.introduction
        known.capabilities, known.collation = response.capabilities, response.collation
        known.extended = response.extended & services.extended
        if services.client_tls is not None and not known.tls:
            if Capability.SSL in response.capabilities:
                raise ProtocolError("clear text where TLS was to begin")
            if services.tls_required and not known.local:
                self.refuse(ProxyError("secure_transport_required"))
                return
        self.begin(response)

    def agree(self, response: HandshakeResponse) -> None:
        wanted = Capability.QUERY_ATTRIBUTES & response.capabilities
        self.client.attributes = bool(wanted & _offered(self.client.services))
        algorithm = agreed(response.capabilities, self.client.services.compression)
        if algorithm is not None:
            BeginCompression(self.client, algorithm, response.zstd_level)

    def welcome(self, session: Session) -> None:
        client = self.client
        client.write(ok_packet(self.seq + 1, session.status()))
        client.ready = True
        if client.sink is not None:
            client.sink.answered("ok")

    def _start_tls(self) -> None:
        client, certificates = self.client, self.client.services.client_tls
        if certificates is None or self.introduction.tls:
            raise ProtocolError("TLS was not offered")
        early = client.rest()
        transport = TlsTransport(
            client.transport,
            cast(asyncio.Protocol, client),
            certificates.context,
            ready=self._tls_ready,
            failed=self._tls_failed,
        )
        client.transport = transport
        transport.start(early)

    def _tls_ready(self) -> None:
        self.introduction.tls = True

    def _tls_failed(self, reason: str) -> None:
        log.warning("TLS handshake failed", address=self.introduction.address, reason=reason)
        self.client.services.stats.refused("tls_handshake")
        self.abandon()
        self.client.close()


class ChangeUser(Authentication):
    """COM_CHANGE_USER: another log-in on the same connection. The old session is over, whatever comes of it;
    who fails is disconnected.
    """

    def first(self, payload: bytes) -> None:
        response = parse_change_user(payload, self.introduction.capabilities)
        release_all(self.client)
        self.begin(response, again=True)

    def welcome(self, session: Session) -> None:
        self.client.reply_ok()

    def agree(self, response: HandshakeResponse) -> None:
        """The connection stays as it was agreed upon at its beginning."""


def change_user(client: ClientConnection, payload: bytes) -> None:
    """Run COM_CHANGE_USER; what the client sends meanwhile belongs to it."""
    session = client.session
    assert session.introduction is not None
    phase = client.phase = ChangeUser(client, session.id, session.introduction)
    phase.payload(client.seq, payload)
    client.take_waiting()


def _offered(services: Services) -> Capability:
    """What is advertised by these settings."""
    offered = CAPABILITIES
    if services.client_tls is not None:
        offered |= Capability.SSL
    if services.extended:
        offered &= ~Capability.LONG_PASSWORD  # the sign that MariaDB's own are there
    if flavour_of(services.server_version).query_attributes:
        offered |= Capability.QUERY_ATTRIBUTES
    for algorithm in services.compression:
        offered |= CAPABILITY[algorithm]
    return offered


def _capability_set(capabilities: Capability, extended: int) -> int:
    """What must be agreed on with servers, too."""
    capability_set = FOUND_ROWS if Capability.FOUND_ROWS in capabilities else 0
    return (
        capability_set | EXTENDED_METADATA if extended & MariaCapability.EXTENDED_METADATA else capability_set
    )


def _peer(client: ClientConnection) -> tuple[str, bool]:
    """The client's address for people, and whether it is on this machine (a Unix socket)."""
    peer = client.peer or client.transport.get_extra_info("peername")
    if isinstance(peer, tuple) and peer:
        return f"{peer[0]}:{peer[1]}", False
    return ("unknown", False) if peer is None else ("localhost", True)  # None: it is gone already
