"""The packets of the connection phase, for both ends: a client logging in to us, and we to a server.

  Greeting            server to client: HandshakeV10, also MariaDB's with its extended capabilities SslRequest
  client to server: the first 32 bytes of a response, sent before TLS begins HandshakeResponse   client to
  server: HandshakeResponse41; COM_CHANGE_USER's payload says the same and gives one too

Layouts as in the "Connection Phase" chapters of MySQL's and MariaDB's documentation. Which fields a packet
has follows from the capabilities its sender set in it. Malformed input raises `ProtocolError`, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError

from .auth import NATIVE, NONCE_LENGTH
from .charsets import codec_of
from .constants import PROTOCOL_VERSION, Capability, Command
from .packets import ProtocolError, lenenc_bytes, read_lenenc, read_lenenc_bytes, read_nul_bytes

# capabilities' low half, collation, status, capabilities' high half, length of nonce and NUL, MariaDB's
# capabilities
_GREETING = Struct("<HBHHB6xI")
# capabilities, largest packet, collation, MariaDB's capabilities
_RESPONSE = Struct("<IIB19xI")
_SSL_REQUEST_LENGTH = _RESPONSE.size
_DEFAULT_ZSTD_LEVEL = 3

#: Most bytes of connection attributes that are read; MySQL's limit.
MAX_ATTRIBUTES = 65536


class OldClient(ProtocolError):
    """The client speaks the protocol of MySQL 3.20 to 4.0 (MySQL's error 1251)."""


@dataclass(frozen=True, slots=True)
class Greeting:
    """The server's first packet.

    `nonce` has 20 bytes. `collation` is the server's default (one byte). `extended` are MariaDB's
    capabilities, bits 32 and up shifted down; 0 from MySQL. `plugin` is empty when the server names none.
    """

    server_version: str
    connection_id: int
    nonce: bytes = field(repr=False)
    capabilities: Capability
    collation: int
    status: int
    plugin: str
    extended: int = 0


@dataclass(frozen=True, slots=True)
class SslRequest:
    """The client wants TLS; its response comes again, whole, once that stands."""

    capabilities: Capability
    max_packet: int
    collation: int
    extended: int = 0


@dataclass(frozen=True, slots=True)
class HandshakeResponse:
    """Who the client is and what it wants.

    `capabilities` are the client's, not yet cut to what was announced. `plugin` is None when the client does
    not know of plugins and its `auth` is therefore mysql_native_password's. `database` is None when none is
    asked for (also when its name is empty). `collation` is 0 when COM_CHANGE_USER gave none. `max_packet` is
    bytes; 0 in COM_CHANGE_USER.
    """

    capabilities: Capability
    user: str
    auth: bytes = field(repr=False)
    database: str | None = None
    plugin: str | None = None
    collation: int = 0
    max_packet: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict)
    zstd_level: int = _DEFAULT_ZSTD_LEVEL
    extended: int = 0


def build_greeting(greeting: Greeting) -> bytes:
    """The payload of HandshakeV10. ValueError when the nonce has not 20 bytes or a text holds NUL."""
    if len(greeting.nonce) != NONCE_LENGTH:
        raise ValueError("a nonce has 20 bytes")
    capabilities = int(greeting.capabilities)
    plugin = _nul(greeting.plugin) if Capability.PLUGIN_AUTH in greeting.capabilities else b""
    fixed = _GREETING.pack(
        capabilities & 0xFFFF,
        greeting.collation & 0xFF,
        greeting.status,
        capabilities >> 16 & 0xFFFF,
        NONCE_LENGTH + 1 if plugin else 0,
        greeting.extended,
    )
    head = bytes((PROTOCOL_VERSION,)) + _nul(greeting.server_version)
    head += (greeting.connection_id & 0xFFFFFFFF).to_bytes(4, "little")
    return head + greeting.nonce[:8] + b"\0" + fixed + greeting.nonce[8:] + b"\0" + plugin


def parse_greeting(payload: bytes) -> Greeting:
    """A server's HandshakeV10. Servers without 4.1's 20-byte nonce are refused. An ERR packet is the caller's
    to see.
    """
    if payload[:1] != bytes((PROTOCOL_VERSION,)):
        raise ProtocolError(f"the server speaks protocol version {payload[0] if payload else None}, not 10")
    version, pos = read_nul_bytes(payload, 1)
    try:
        low, collation, status, high, length, extended = _GREETING.unpack_from(payload, pos + 13)
    except StructError:
        raise ProtocolError("the greeting is cut short") from None
    capabilities = Capability(low | high << 16)
    rest = pos + 13 + _GREETING.size
    nonce = payload[pos + 4 : pos + 12] + payload[rest : rest + 12]
    if Capability.PROTOCOL_41 not in capabilities or len(nonce) != NONCE_LENGTH:
        raise ProtocolError("the server is older than MySQL 4.1")
    plugin = b""
    if Capability.PLUGIN_AUTH in capabilities:
        plugin = payload[rest + max(13, length - 8) :].partition(b"\0")[0]  # some servers forget the NUL
    return Greeting(
        version.decode("utf-8", "replace"),
        int.from_bytes(payload[pos : pos + 4], "little"),
        nonce,
        capabilities,
        collation,
        status,
        plugin.decode("utf-8", "replace"),
        0 if Capability.LONG_PASSWORD in capabilities else extended,
    )


def parse_response(payload: bytes) -> SslRequest | HandshakeResponse:
    """A client's first packet. `OldClient` for one that does not speak 4.1's protocol."""
    if len(payload) < 2 or not int.from_bytes(payload[:2], "little") & Capability.PROTOCOL_41:
        raise OldClient("the client is older than MySQL 4.1")
    try:
        flags, max_packet, collation, extended = _RESPONSE.unpack_from(payload)
    except StructError:
        raise ProtocolError("the handshake response is cut short") from None
    capabilities = Capability(flags)
    if Capability.LONG_PASSWORD in capabilities:
        extended = 0
    if len(payload) == _SSL_REQUEST_LENGTH and Capability.SSL in capabilities:
        return SslRequest(capabilities, max_packet, collation, extended)
    codec = codec_of(collation)
    user, pos = read_nul_bytes(payload, _RESPONSE.size)
    auth, pos = _read_auth(payload, pos, capabilities)
    database = b""
    if Capability.CONNECT_WITH_DB in capabilities:
        database, pos = read_nul_bytes(payload, pos)
    plugin, pos = _read_plugin(payload, pos, capabilities)
    attributes, pos = _read_attributes(payload, pos, capabilities)
    level = _DEFAULT_ZSTD_LEVEL
    if Capability.ZSTD_COMPRESSION_ALGORITHM in capabilities and pos < len(payload):
        level = payload[pos]
    return HandshakeResponse(
        capabilities,
        user.decode(codec, "replace"),
        auth,
        database.decode(codec, "replace") or None,
        plugin,
        collation,
        max_packet,
        attributes,
        level,
        extended,
    )


def parse_change_user(payload: bytes, capabilities: Capability) -> HandshakeResponse:
    """COM_CHANGE_USER, its command byte included, from a client whose session agreed on `capabilities`."""
    if payload[:1] != bytes((Command.CHANGE_USER,)):
        raise ProtocolError("not a COM_CHANGE_USER packet")
    user, pos = read_nul_bytes(payload, 1)
    auth, pos = _read_auth(payload, pos, capabilities & ~Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA)
    database, pos = _read_last(payload, pos)
    collation = int.from_bytes(payload[pos : pos + 2], "little") if pos + 2 <= len(payload) else 0
    pos += 2
    plugin, pos = _read_plugin(payload, pos, capabilities)
    attributes, pos = _read_attributes(payload, pos, capabilities)
    codec = codec_of(collation)
    return HandshakeResponse(
        capabilities,
        user.decode(codec, "replace"),
        auth,
        database.decode(codec, "replace") or None,
        plugin,
        collation,
        attributes=attributes,
    )


def build_ssl_request(request: SslRequest) -> bytes:
    return _RESPONSE.pack(
        request.capabilities, request.max_packet, request.collation & 0xFF, request.extended
    )


def build_response(response: HandshakeResponse) -> bytes:
    """The payload of HandshakeResponse41 with the fields that `response.capabilities` call for.

    ValueError when a text holds NUL or has letters its collation's character set lacks, or `auth` is too
    long.
    """
    capabilities = response.capabilities
    codec = codec_of(response.collation)
    parts = [
        _RESPONSE.pack(capabilities, response.max_packet, response.collation & 0xFF, response.extended),
        _nul(response.user, codec),
    ]
    if Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA in capabilities:
        parts.append(lenenc_bytes(response.auth))
    else:
        if len(response.auth) > 0xFF:
            raise ValueError("an authentication response of more than 255 bytes")
        parts.append(bytes((len(response.auth),)) + response.auth)
    if Capability.CONNECT_WITH_DB in capabilities:
        parts.append(_nul(response.database or "", codec))
    if Capability.PLUGIN_AUTH in capabilities:
        parts.append(_nul(response.plugin or NATIVE))
    if Capability.CONNECT_ATTRS in capabilities:
        texts = (text.encode() for pair in response.attributes.items() for text in pair)
        parts.append(lenenc_bytes(b"".join(map(lenenc_bytes, texts))))
    if Capability.ZSTD_COMPRESSION_ALGORITHM in capabilities:
        parts.append(bytes((response.zstd_level,)))
    return b"".join(parts)


def _nul(text: str, codec: str = "utf-8") -> bytes:
    raw = text.encode(codec)
    if b"\0" in raw:
        raise ValueError("a text in the connection phase holds NUL")
    return raw + b"\0"


def _read_last(payload: bytes, pos: int) -> tuple[bytes, int]:
    """A NUL-terminated text that may be the packet's last, and then lack its NUL or be missing, as MySQL
    allows.
    """
    if b"\0" in payload[pos:]:
        return read_nul_bytes(payload, pos)
    return payload[pos:], max(pos, len(payload))


def _read_auth(payload: bytes, pos: int, capabilities: Capability) -> tuple[bytes, int]:
    if Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA in capabilities:
        auth, pos = read_lenenc_bytes(payload, pos)
        if auth is None:
            raise ProtocolError("the authentication response is NULL")
        return auth, pos
    if Capability.SECURE_CONNECTION not in capabilities:
        return read_nul_bytes(payload, pos)
    end = pos + 1 + int.from_bytes(payload[pos : pos + 1], "little")
    if end > len(payload):
        raise ProtocolError("the authentication response is cut short")
    return payload[pos + 1 : end], end


def _read_plugin(payload: bytes, pos: int, capabilities: Capability) -> tuple[str | None, int]:
    if Capability.PLUGIN_AUTH not in capabilities:
        return None, pos
    plugin, pos = _read_last(payload, pos)
    return plugin.decode("ascii", "replace"), pos


def _read_attributes(payload: bytes, pos: int, capabilities: Capability) -> tuple[dict[str, str], int]:
    """Connection attributes. Only their length must be right: as in MySQL, what cannot be read in them is
    left out.
    """
    found: dict[str, str] = {}
    if Capability.CONNECT_ATTRS not in capabilities or pos >= len(payload):
        return found, pos
    length, pos = read_lenenc(payload, pos)
    if length is None or length > MAX_ATTRIBUTES or pos + length > len(payload):
        raise ProtocolError("the connection attributes are cut short or too long")
    end = pos + length
    block = payload[pos:end]
    at = 0
    try:
        while at < length:
            key, at = read_lenenc_bytes(block, at)
            value, at = read_lenenc_bytes(block, at)
            found[(key or b"").decode("utf-8", "replace")] = (value or b"").decode("utf-8", "replace")
    except ProtocolError:
        return found, end
    return found, end
