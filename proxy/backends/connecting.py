"""Opening a connection to a host: TCP or Unix socket, TLS, log-in, hand-over to a `BackendConnection`.

The log-in's decisions are `wire.login`'s; this carries them out. Once it is done the transport's protocol is
changed to the `BackendConnection`, which knows nothing of logging in.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import cast

from config.flavour import flavour_of
from proxy.certificates import Certificates
from proxy.descriptors import descriptor_of
from proxy.errors import ProxyError
from proxy.tls import TlsTransport
from proxy.wire.constants import Capability, MariaCapability, Status
from proxy.wire.login import BackendLogin, Done, Failed, LoginOptions, Send, StartTls, Step, Tls
from proxy.wire.packets import PacketReader, ProtocolError, frame

from .connection import BackendConnection, Owner
from .endings import ending
from .pool import ATTRIBUTES, EXTENDED_METADATA, FOUND_ROWS, OWN, account_of
from .refusals import AccountRefused
from .reworded import AttributedConnection, CommentedAttributedConnection, CommentedConnection
from .traced import KINDS as TRACED

#: What the proxy asks of servers. No DEPRECATE_EOF (clients get the same bytes), no MULTI_STATEMENTS.
#: SESSION_TRACK: see `connection`.
#: LOCAL_FILES: whether a server may ask for a file is decided for each statement (`ReplyScanner.files`).
CAPABILITIES = (
    Capability.LONG_FLAG
    | Capability.LOCAL_FILES
    | Capability.TRANSACTIONS
    | Capability.MULTI_RESULTS
    | Capability.PS_MULTI_RESULTS
    | Capability.SESSION_TRACK
)
#: MariaDB's own that clients may agree on. Bulk execution changes no other reply, so every connection has it.
EXTENDED = int(MariaCapability.EXTENDED_METADATA | MariaCapability.STMT_BULK_OPERATIONS)
_ATTRIBUTES = {"program_name": "shardgate"}
_LOGIN_PACKET = 1 << 20

#: A server that is gone without a word, or a way to it that is cut, is noticed after about half a minute.
_KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
)

AccountOf = Callable[[str, int], tuple[str, str]]
"""User and password for a host and a connection's variant."""

#: Errors about the account alone: wrong password, locked, expired, not allowed into its first database; or of
#: a plugin that the log-in does not know, which MySQL also names for users that there are not (2059).
_OF_ACCOUNT = frozenset({1044, 1045, 1698, 1820, 1862, 2059, 3118, 3955, 4150, 4151})


#: Errors about too many connections, and whose limit it is: where an idle one may make room for another.
_FULL = {1040: "host", 1203: "account", 1226: "account"}


class _Refused(ConnectionError):
    """The server does not let the account in, with error `code`."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


class _Full(ConnectionError):
    """The server has too many connections: for anybody, or for this account (`whose`)."""

    def __init__(self, reason: str, whose: str) -> None:
        super().__init__(reason)
        self.whose = whose


class _LoginProtocol(asyncio.Protocol):
    """Feeds a BackendLogin; `done` gets its outcome. `certificates` and `name`: for TLS."""

    def __init__(self, login: BackendLogin, certificates: Certificates | None = None, name: str = "") -> None:
        self.login = login
        self.done: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport | None = None
        self._certificates = certificates
        self._name = name
        self._reader = PacketReader(_LOGIN_PACKET)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one, but not by inheritance

    def data_received(self, data: bytes) -> None:
        try:
            while (found := self._reader.feed_one(data)) is not None and not self.done.done():
                self._carry_out(self.login.receive(found[1], found[0]))
                data = b""
        except ProtocolError as error:
            self._fail(f"malformed packet during log-in: {error}")

    def _carry_out(self, steps: tuple[Step, ...]) -> None:
        assert self.transport is not None
        for step in steps:
            if isinstance(step, Send):
                self.transport.write(frame(step.payload, step.seq))
            elif isinstance(step, StartTls):
                self._start_tls(self.transport)
            elif isinstance(step, Failed):
                reason = f"{step.message} (error {step.code})"
                if step.code in _FULL:
                    self._end(_Full(reason, _FULL[step.code]))
                else:
                    of_account = step.code in _OF_ACCOUNT
                    self._end(_Refused(reason, step.code) if of_account else ConnectionError(reason))
            elif not self.done.done():
                self.done.set_result(step)

    def _start_tls(self, raw: asyncio.Transport) -> None:
        if self._certificates is None or self._reader.rest():
            self._fail("the server sent clear text where TLS was to begin")
            return
        transport = TlsTransport(
            raw,
            self,
            self._certificates.context,
            ready=lambda: self._carry_out(self.login.tls_started()),
            failed=lambda reason: self._fail(f"TLS failed: {reason}"),
            server_name=self._name,
        )
        self.transport = transport
        transport.start()

    def _fail(self, reason: str) -> None:
        self._end(ConnectionError(reason))

    def _end(self, error: ConnectionError) -> None:
        if not self.done.done():
            self.done.set_exception(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"{ending(exc)} during log-in")


def _first_database(version: str) -> str | None:
    """The current database of connections until a session chooses its own: one that all servers have, and no
    tables of anybody's, or none, by what the server says there of a function that it does not know.
    """
    return "information_schema" if flavour_of(version).calls_need_database else None


_KINDS = {
    (False, False): BackendConnection,
    (False, True): AttributedConnection,
    (True, False): CommentedConnection,
    (True, True): CommentedAttributedConnection,
}
"""By whether statements have comments, and query attributes."""


class LoginConnector:
    """Opens logged-in connections with the account that `account_of` names, over TLS when there
    are `certificates` for it: a server that offers none is refused.
    """

    def __init__(
        self,
        account_of: AccountOf,
        timeout: float,
        certificates: Certificates | None = None,
        *,
        comment: bool = False,
        traced: bool = False,
    ) -> None:
        """`comment`: clients' statements say whose they are, see `reworded`; `traced`: see there."""
        self._comment = comment
        self._kinds = TRACED if traced else _KINDS
        self._account_of = account_of
        self._timeout = timeout
        self._certificates = certificates

    async def __call__(self, host: str, owner: Owner, capability_set: int) -> BackendConnection:
        protocol: _LoginProtocol | None = None
        try:
            async with asyncio.timeout(self._timeout):
                protocol = await self._connect(host, capability_set)
                done = await protocol.done
        except TimeoutError:
            raise ProxyError(
                "host_unreachable", host=host, reason=f"no answer within {self._timeout:g} s", silent=True
            ) from None
        except _Refused as error:
            assert protocol is not None
            account, version = self._account_of(host, capability_set)[0], protocol.login.server_version
            own = account_of(capability_set) == OWN
            raise AccountRefused(host, account, str(error), error.code, version, own=own) from None
        except _Full as error:
            raise ProxyError("host_unreachable", host=host, reason=str(error), full=error.whose) from None
        except OSError as error:
            refused = isinstance(error, ConnectionRefusedError)
            reason = error.strerror or str(error)
            raise ProxyError("host_unreachable", host=host, reason=reason, refused=refused) from None
        finally:
            if protocol is not None and protocol.transport is not None and not _succeeded(protocol.done):
                protocol.transport.abort()
        assert protocol.transport is not None
        if capability_set & EXTENDED_METADATA and not done.extended & MariaCapability.EXTENDED_METADATA:
            protocol.transport.abort()
            reason = "it lacks MariaDB's extended metadata, which clients were offered: the fleet is mixed"
            raise ProxyError("host_unreachable", host=host, reason=reason)
        attributes = Capability.QUERY_ATTRIBUTES in done.capabilities
        made = self._kinds[self._comment, attributes]
        conn = made(host, owner)
        conn.capability_set = capability_set
        conn.database = _first_database(done.greeting.server_version)
        conn.thread_id = done.greeting.connection_id
        conn.version = done.greeting.server_version
        conn.offers = done.greeting.extended
        conn.scanner.status = done.status & ~Status.SESSION_STATE_CHANGED
        conn.transport = protocol.transport
        conn.descriptor = descriptor_of(conn.transport)
        conn.transport.set_protocol(cast(asyncio.Protocol, conn))  # it is one, but not by inheritance
        if conn.transport.is_closing():  # it will not tell its new protocol
            raise ProxyError("host_unreachable", host=host, reason="the server closed the connection at once")
        return conn

    async def _connect(self, host: str, capability_set: int) -> _LoginProtocol:
        user, password = self._account_of(host, capability_set)
        capabilities = CAPABILITIES
        if capability_set & FOUND_ROWS:
            capabilities |= Capability.FOUND_ROWS
        if capability_set & ATTRIBUTES:
            capabilities |= Capability.QUERY_ATTRIBUTES
        secure = host.startswith("unix:")
        certificates = None if secure else self._certificates
        options = LoginOptions(
            user,
            password,
            database_of=_first_database,
            capabilities=capabilities,
            secure=secure,
            attributes=_ATTRIBUTES,
            tls=Tls.OFF if certificates is None else Tls.REQUIRED,
            extended=EXTENDED
            if capability_set & EXTENDED_METADATA
            else int(MariaCapability.STMT_BULK_OPERATIONS),
        )
        loop = asyncio.get_running_loop()
        if secure:
            _, protocol = await loop.create_unix_connection(
                lambda: _LoginProtocol(BackendLogin(options)), host.removeprefix("unix:")
            )
            return protocol
        name, _, port = host.rpartition(":")
        name = name.strip("[]")
        transport, protocol = await loop.create_connection(
            lambda: _LoginProtocol(BackendLogin(options), certificates, name), name, int(port)
        )
        sock = transport.get_extra_info("socket")
        if sock is not None:
            for level, option, value in _KEEP_ALIVE:
                sock.setsockopt(level, option, value)
        return protocol


def _succeeded(future: asyncio.Future[Done]) -> bool:
    return future.done() and not future.cancelled() and future.exception() is None
