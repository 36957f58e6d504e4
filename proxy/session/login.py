"""A client logs in: greeting, response, authentication, and then the session.

The decisions are `wire.server_auth`'s. A failed log-in ends the connection, and nothing the client sent along
with its response is looked at. Failed log-ins from one address are answered later and later.

A client that asks for TLS gets a `TlsTransport` in place of its transport. Whatever it sends after that
request is part of the TLS handshake or ends the connection, also what came in the same read; and of what it
said before, nothing is used.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from proxy.errors import ProxyError
from proxy.tls import TlsTransport
from proxy.wire.auth import make_nonce
from proxy.wire.constants import UTF8MB4_GENERAL_CI, Capability, Status
from proxy.wire.handshake import (
    Greeting,
    HandshakeResponse,
    OldClient,
    SslRequest,
    build_greeting,
    parse_response,
)
from proxy.wire.packets import ProtocolError, frame, ok_packet
from proxy.wire.server_auth import Done, Failed, Send, ServerAuthenticator, Step

from .settings import Settings
from .state import Session

if TYPE_CHECKING:
    from .client import ClientConnection

log = structlog.get_logger("session")

#: What is advertised to clients: only what is implemented.
CAPABILITIES = (
    Capability.LONG_PASSWORD
    | Capability.FOUND_ROWS
    | Capability.LONG_FLAG
    | Capability.CONNECT_WITH_DB
    | Capability.ODBC
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
)


class Login:
    """The connection phase of one client. It is the client's `Phase` until the session begins."""

    def __init__(self, client: ClientConnection) -> None:
        self.client = client
        services = client.services
        self.id = services.next_connection_id()
        self.nonce = make_nonce()
        self.address, self.local = _peer(client)
        self.tls = False
        self.authenticator: ServerAuthenticator | None = None
        self.response: HandshakeResponse | None = None
        self.seq = 0
        self.over = False
        greeting = Greeting(
            services.server_version,
            self.id,
            self.nonce,
            CAPABILITIES if services.client_tls is None else CAPABILITIES | Capability.SSL,
            UTF8MB4_GENERAL_CI,
            int(Status.AUTOCOMMIT),
            "caching_sha2_password",
        )
        client.transport.write(frame(build_greeting(greeting), 0))
        self._timer = asyncio.get_running_loop().call_later(services.settings.timeouts.login, self._too_slow)

    def payload(self, seq: int, payload: bytes) -> None:
        if self.over:
            return
        self.seq = seq
        try:
            if self.authenticator is not None:
                self._carry_out(self.authenticator.receive(payload))
                return
            response = parse_response(payload)
            if isinstance(response, SslRequest):
                self._start_tls()
            else:
                self._responded(response)
        except OldClient:
            self._refuse(ProxyError("client_too_old"))
        except ProtocolError as problem:
            self._refuse(ProxyError("handshake_error", reason=str(problem)))

    def _start_tls(self) -> None:
        client, certificates = self.client, self.client.services.client_tls
        if certificates is None or self.tls:
            raise ProtocolError("TLS was not offered")
        early = client.rest()
        transport = TlsTransport(
            client.transport, client, certificates.context, ready=self._tls_ready, failed=self._tls_failed
        )
        client.transport = transport
        transport.start(early)

    def _tls_ready(self) -> None:
        self.tls = True

    def _tls_failed(self, reason: str) -> None:
        log.warning("TLS handshake failed", address=self.address, reason=reason)
        self.client.services.stats.refused("tls_handshake")
        self.abandon()
        self.client.close()

    def _responded(self, response: HandshakeResponse) -> None:
        services = self.client.services
        if services.client_tls is not None and not self.tls:
            if Capability.SSL in response.capabilities:
                raise ProtocolError("clear text where TLS was to begin")
            if services.tls_required and not self.local:
                self._refuse(ProxyError("secure_transport_required"))
                return
        self.response = response
        self.authenticator = ServerAuthenticator(
            services.authority, self.nonce, secure=self.local, tls=self.tls
        )
        self._carry_out(self.authenticator.start(response))

    def abandon(self) -> None:
        """The client is gone, or the connection phase over."""
        self.over = True
        self._timer.cancel()

    def _too_slow(self) -> None:
        self.over = True
        log.info("log-in took too long", address=self.address)
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
        host = self.address.rpartition(":")[0] or self.address
        log.warning("log-in refused", user=failed.user, address=self.address, reason=failed.reason)
        error = ProxyError("access_denied", user=failed.user, address=host, using=using)
        delay = services.failed_logins.failed(host)
        self.over = True
        self._timer.cancel()
        self.client.transport.pause_reading()
        self._timer = asyncio.get_running_loop().call_later(delay, self._answer_denied, error)

    def _answer_denied(self, error: ProxyError) -> None:
        if not self.client.closed:
            self._refuse(error)

    def _refuse(self, error: ProxyError) -> None:
        """One ERR packet, and the connection is over."""
        self.abandon()
        self.client.seq = self.seq
        self.client.services.stats.refused(error.kind.name)
        self.client.write_error(error)
        self.client.close()

    def _logged_in(self, done: Done) -> None:
        services = self.client.services
        response = self.response
        assert response is not None
        services.failed_logins.succeeded(self.address.rpartition(":")[0] or self.address)
        try:
            session = services.open_session(self.client, self.id, done.user, self.address)
            self._apply(session, response)
        except ProxyError as error:
            self._refuse(error)
            return
        self.abandon()
        client = self.client
        client.begin_session(session)
        client.seq = self.seq
        if response.database:
            client.kind = "command"
            try:
                services.first_database(client, response.database)
            except ProxyError as error:
                self._refuse(error)
        else:
            client.write(ok_packet(self.seq + 1, session.status()))
            client.ready = True

    def _apply(self, session: Session, response: HandshakeResponse) -> None:
        """What the handshake itself sets: the character set and the FOUND_ROWS flag."""
        services = self.client.services
        session.multi_statements = Capability.MULTI_STATEMENTS in response.capabilities
        session.found_rows_flag = Capability.FOUND_ROWS in response.capabilities
        values = services.collations.settings_for(response.collation)
        session.settings = session.login_settings = Settings.of(values)
        session.refresh_env()


def _peer(client: ClientConnection) -> tuple[str, bool]:
    """The client's address for people, and whether it is on this machine (a Unix socket)."""
    peer = client.peer or client.transport.get_extra_info("peername")
    if isinstance(peer, tuple) and peer:
        return f"{peer[0]}:{peer[1]}", False
    return "localhost", True
