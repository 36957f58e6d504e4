"""We log in to a MySQL or MariaDB server: one state machine per connection.

    greeting ─▶ (SSLRequest, StartTls ─ tls_started() ─▶) response ─▶ OK ───────────────────────────▶ Done
                                                            ├─▶ auth switch ─▶ scramble ─▶ …
                                                            └─▶ 0x03 fast ─▶ …   0x04 full ─▶ password ─▶ …

`receive` takes one payload with its sequence number and gives a tuple of steps to carry out in order; after
`Done` or `Failed` the machine is finished. With `Tls.REQUIRED` nothing that identifies the user leaves in the
clear. A password itself is sent only inside TLS, through a Unix socket, or encrypted with the server's RSA
key; a server that asks for it in any other way (mysql_clear_password, the hash of MySQL 4.0) is refused.
Errors made here have the numbers that MySQL's C client gives them; the server's own are passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto

from .auth import (
    CACHING_SHA2,
    FAST_OK,
    FULL_AUTHENTICATION,
    NATIVE,
    REQUEST_PUBLIC_KEY,
    native_scramble,
    rsa_encrypt,
    sha2_scramble,
)
from .constants import UTF8MB4_GENERAL_CI, Capability
from .handshake import (
    Greeting,
    HandshakeResponse,
    SslRequest,
    build_response,
    build_ssl_request,
    parse_greeting,
)
from .packets import ProtocolError, parse_err, parse_ok, read_nul_bytes

#: Numbers of MySQL's C client (errmsg.h), and 1156 of the server's.
CR_TLS_ERROR = 2026
CR_MALFORMED_PACKET = 2027
CR_PLUGIN_CANNOT_LOAD = 2059
CR_PLUGIN_ERROR = 2061
ER_PACKETS_OUT_OF_ORDER = 1156

_OK, _MORE_DATA, _NEXT_FACTOR, _SWITCH, _ERR = 0x00, 0x01, 0x02, 0xFE, 0xFF
_ALWAYS = (
    Capability.LONG_PASSWORD
    | Capability.PROTOCOL_41
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA
)
_OURS = Capability.SSL | Capability.CONNECT_WITH_DB | Capability.CONNECT_ATTRS  # follow from the options
_NONE = Capability(0)
_MAX_SWITCHES = 4  # MariaDB tries a user's plugins one after another


class Tls(StrEnum):
    """Whether to ask for TLS: never, if the server has it, or always."""

    OFF = "off"
    PREFERRED = "preferred"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True)
class LoginOptions:
    """How to log in.

    `capabilities`: wanted beyond those that logging in needs; what the server lacks is left out. `secure`:
    the transport is a Unix socket. `max_packet` is bytes. `server_public_key`: PEM, when known beforehand;
    else it is asked for. `extended`: MariaDB's capabilities that are wanted, as `capabilities`.
    `database_of` gives the database by the server's version, instead of `database`.
    """

    user: str
    password: str = field(default="", repr=False)
    database: str | None = None
    capabilities: Capability = _NONE
    collation: int = UTF8MB4_GENERAL_CI
    attributes: Mapping[str, str] = field(default_factory=dict)
    tls: Tls = Tls.OFF
    secure: bool = False
    max_packet: int = 0x40000000
    server_public_key: bytes | None = field(default=None, repr=False)
    extended: int = 0
    database_of: Callable[[str], str | None] | None = None


@dataclass(frozen=True, slots=True)
class Send:
    """Send this payload as one packet with this sequence number."""

    payload: bytes = field(repr=False)
    seq: int


@dataclass(frozen=True, slots=True)
class StartTls:
    """Begin TLS, verify the server as configured, then call `tls_started`.

    Bytes that came after the greeting and before TLS are nobody's: the connection must be closed if there are
    any.
    """


@dataclass(frozen=True, slots=True)
class Done:
    """Logged in. `capabilities` and `extended` are those both sides agreed on, `status` the OK packet's
    status flags.
    """

    greeting: Greeting
    capabilities: Capability
    status: int
    plugin: str
    extended: int = 0


@dataclass(frozen=True, slots=True)
class Failed:
    """Not logged in: close the connection."""

    code: int
    sqlstate: str
    message: str


Step = Send | StartTls | Done | Failed


class _State(Enum):
    GREETING = auto()
    TLS = auto()
    ANSWER = auto()  # OK, ERR, an auth switch, or more data
    PUBLIC_KEY = auto()
    FINISHED = auto()


class _Refused(Exception):
    """The log-in ends here with an error of ours."""

    def __init__(self, code: int, message: str, sqlstate: str = "HY000") -> None:
        super().__init__(message)
        self.failed = Failed(code, sqlstate, message)


class BackendLogin:
    """The connection phase as a client, up to the first OK."""

    def __init__(self, options: LoginOptions) -> None:
        self._options = options
        self._password = options.password.encode("utf-8", "surrogateescape")
        self._secure = options.secure
        self._state = _State.GREETING
        self._expected = 0  # sequence number
        self._switches = 0
        self._nonce = b""
        self._plugin = ""
        self._greeting: Greeting | None = None
        self._database: str | None = None
        self._capabilities = Capability(0)
        self._extended = 0

    @property
    def finished(self) -> bool:
        """Whether `Done` or `Failed` was given."""
        return self._state is _State.FINISHED

    @property
    def server_version(self) -> str:
        """As the greeting has it; empty before."""
        return self._greeting.server_version if self._greeting is not None else ""

    def receive(self, payload: bytes, seq: int) -> tuple[Step, ...]:
        """The server's next packet. Never raises on what the server sends."""
        try:
            return self._receive(payload, seq)
        except ProtocolError as error:
            return self._fail(Failed(CR_MALFORMED_PACKET, "HY000", f"Malformed packet: {error}"))
        except _Refused as refused:
            return self._fail(refused.failed)

    def tls_started(self) -> tuple[Step, ...]:
        """TLS stands and the server is who it should be: now the response can be sent."""
        if self._state is not _State.TLS or self._greeting is None:
            raise RuntimeError("tls_started() answers StartTls")
        self._secure = True
        try:
            return (self._respond(self._greeting),)
        except _Refused as refused:
            return self._fail(refused.failed)

    def _receive(self, payload: bytes, seq: int) -> tuple[Step, ...]:
        if not payload:
            raise ProtocolError("an empty packet")
        if payload[0] == _ERR and self._state in (_State.GREETING, _State.ANSWER, _State.PUBLIC_KEY):
            # Its sequence number is not checked: servers and proxies that give up send what they like.
            error = parse_err(payload)
            return self._fail(Failed(error.code, error.sqlstate, error.text()))
        if seq != self._expected:
            raise _Refused(ER_PACKETS_OUT_OF_ORDER, "Got packets out of order", "08S01")
        self._expected = seq + 1 & 0xFF
        if self._state is _State.GREETING:
            return self._greet(parse_greeting(payload))
        if self._state is _State.ANSWER:
            return self._answer(payload)
        if self._state is _State.PUBLIC_KEY:
            if payload[0] != _MORE_DATA:
                raise ProtocolError("not the public key that was asked for")
            self._state = _State.ANSWER
            return (self._send_encrypted(payload[1:]),)
        raise ProtocolError("a packet that was not asked for")

    def _greet(self, greeting: Greeting) -> tuple[Step, ...]:
        options = self._options
        self._greeting = greeting
        self._nonce = greeting.nonce
        wanted = options.capabilities & ~_OURS | _ALWAYS
        self._database = options.database
        if options.database_of is not None:
            self._database = options.database_of(greeting.server_version)
        if self._database is not None:
            wanted |= Capability.CONNECT_WITH_DB
        if options.attributes:
            wanted |= Capability.CONNECT_ATTRS
        if options.tls is not Tls.OFF:
            wanted |= Capability.SSL
        agreed = wanted & greeting.capabilities
        if Capability.SECURE_CONNECTION not in agreed:
            raise ProtocolError("the server is older than MySQL 4.1")
        if options.tls is Tls.REQUIRED and Capability.SSL not in agreed:
            raise _Refused(CR_TLS_ERROR, "TLS is required, but the server does not offer it")
        self._extended = options.extended & greeting.extended
        if self._extended:
            agreed &= ~Capability.LONG_PASSWORD  # the sign that MariaDB's own are there
        self._capabilities = agreed
        if Capability.SSL not in agreed:
            return (self._respond(greeting),)
        self._state = _State.TLS
        request = SslRequest(agreed, options.max_packet, options.collation, self._extended)
        return self._send(build_ssl_request(request)), StartTls()

    def _respond(self, greeting: Greeting) -> Send:
        """The response, with a scramble for the server's default plugin, or for native if that is strange."""
        self._plugin = greeting.plugin if greeting.plugin in (CACHING_SHA2, NATIVE) else NATIVE
        response = HandshakeResponse(
            self._capabilities,
            self._options.user,
            self._scramble(),
            self._database,
            self._plugin,
            self._options.collation,
            self._options.max_packet,
            self._options.attributes,
            extended=self._extended,
        )
        self._state = _State.ANSWER
        try:
            return self._send(build_response(response))
        except ValueError as error:
            raise _Refused(CR_PLUGIN_ERROR, f"Cannot log in: {error}") from None

    def _answer(self, payload: bytes) -> tuple[Step, ...]:
        kind = payload[0]
        if kind == _OK and self._greeting is not None:
            ok = parse_ok(payload)
            self._state = _State.FINISHED
            return (Done(self._greeting, self._capabilities, ok.status, self._plugin, self._extended),)
        if kind == _SWITCH:
            return (self._switch(payload),)
        if kind == _MORE_DATA and self._plugin == CACHING_SHA2:
            return self._more_data(payload[1:])
        if kind == _NEXT_FACTOR:
            raise _Refused(CR_PLUGIN_ERROR, "The server asks for a second factor, which is not supported")
        raise ProtocolError(f"a packet beginning with {kind:#04x} during authentication")

    def _switch(self, payload: bytes) -> Send:
        self._switches += 1
        if len(payload) == 1:
            raise _Refused(CR_PLUGIN_ERROR, "The server asks for the unsafe password hash of MySQL 4.0")
        if self._switches > _MAX_SWITCHES:
            raise _Refused(CR_PLUGIN_ERROR, "The server switches authentication plugins without end")
        name, pos = read_nul_bytes(payload, 1)
        self._plugin = name.decode("utf-8", "replace")
        if self._plugin not in (CACHING_SHA2, NATIVE):
            # MySQL also asks this of names it does not know, so as not to tell which ones it does.
            message = f"Authentication plugin '{self._plugin}' is not supported, or there is no such user"
            raise _Refused(CR_PLUGIN_CANNOT_LOAD, message)
        self._nonce = payload[pos : pos + 20]
        if len(self._nonce) != 20:
            raise ProtocolError("an auth switch without a nonce of 20 bytes")
        return self._send(self._scramble())

    def _more_data(self, data: bytes) -> tuple[Step, ...]:
        if data == FAST_OK:
            return ()
        if data != FULL_AUTHENTICATION:
            raise ProtocolError("unknown data of caching_sha2_password")
        if self._secure:
            return (self._send(self._password + b"\0"),)
        if self._options.server_public_key is not None:
            return (self._send_encrypted(self._options.server_public_key),)
        self._state = _State.PUBLIC_KEY
        return (self._send(REQUEST_PUBLIC_KEY),)

    def _send_encrypted(self, public_pem: bytes) -> Send:
        try:
            return self._send(rsa_encrypt(self._password, self._nonce, public_pem))
        except ValueError as error:
            raise _Refused(CR_PLUGIN_ERROR, f"The server's public key cannot be used: {error}") from None

    def _scramble(self) -> bytes:
        scramble = sha2_scramble if self._plugin == CACHING_SHA2 else native_scramble
        return scramble(self._password, self._nonce)

    def _send(self, payload: bytes) -> Send:
        seq = self._expected
        self._expected = seq + 1 & 0xFF
        return Send(payload, seq)

    def _fail(self, failed: Failed) -> tuple[Step, ...]:
        self._state = _State.FINISHED
        return (failed,)
