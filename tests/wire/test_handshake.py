"""Packets of the connection phase: real ones read, ours written and read back, damaged ones refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from proxy.wire.charsets import COLLATIONS, NOT_ASCII, codec_of
from proxy.wire.constants import Capability
from proxy.wire.handshake import (
    Greeting,
    HandshakeResponse,
    OldClient,
    SslRequest,
    build_greeting,
    build_response,
    build_ssl_request,
    parse_change_user,
    parse_greeting,
    parse_response,
)
from proxy.wire.packets import ProtocolError, lenenc_bytes

NONCE = b"abcdefghijklmnopqrst"
BASE = Capability.LONG_PASSWORD | Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION
PLUGINS = BASE | Capability.PLUGIN_AUTH
ALL = (
    PLUGINS
    | Capability.CONNECT_WITH_DB
    | Capability.CONNECT_ATTRS
    | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA
    | Capability.ZSTD_COMPRESSION_ALGORITHM
)

any_bytes = settings(max_examples=200, deadline=None)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)
names = st.text("abcdefghijklmnopqrstuvwxyz_0123456789", min_size=1, max_size=30)
flags = st.integers(0, 2**32 - 1).map(Capability)


# ── greeting ────────────────────────────────────────────────────────────────────────────────────────────

MARIADB_GREETING = (
    b"\x0a5.5.5-10.11.6-MariaDB-0+deb12u1\0"
    + b"\x1f\0\0\0" + NONCE[:8] + b"\0"
    + b"\xfe\xf7\x2d\x02\0\xff\x81\x15" + bytes(6) + b"\x1d\0\0\0" + NONCE[8:] + b"\0"
    + b"mysql_native_password\0"
)  # fmt: skip


def test_mariadb_s_greeting_with_its_own_capabilities() -> None:
    greeting = parse_greeting(MARIADB_GREETING)
    assert greeting.server_version == "5.5.5-10.11.6-MariaDB-0+deb12u1"
    assert (greeting.connection_id, greeting.nonce) == (31, NONCE)
    assert greeting.capabilities == Capability(0x81FFF7FE)
    assert (greeting.collation, greeting.status) == (45, 2)
    assert (greeting.extended, greeting.plugin) == (0x1D, "mysql_native_password")
    assert build_greeting(greeting) == MARIADB_GREETING


@settings(deadline=None)
@given(texts, st.integers(0, 2**32 - 1), flags, st.integers(0, 255), st.integers(0, 0xFFFF), names)
def test_a_greeting_reads_back(
    version: str, number: int, capabilities: Capability, collation: int, status: int, plugin: str
) -> None:
    greeting = Greeting(version, number, NONCE, capabilities | PLUGINS, collation, status, plugin)
    assert parse_greeting(build_greeting(greeting)) == greeting


def test_a_greeting_without_the_plugin_s_nul() -> None:
    assert parse_greeting(MARIADB_GREETING[:-1]).plugin == "mysql_native_password"


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x0a",
        b"\x09" + MARIADB_GREETING[1:],
        MARIADB_GREETING[:60],
        MARIADB_GREETING[:74],
        b"\x0a4.0.1\0" + bytes(4) + NONCE[:8] + b"\0\x2c\0\x08\x02\0" + bytes(13),
    ],
)
def test_a_damaged_or_ancient_greeting(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_greeting(payload)


@any_bytes
@given(st.binary(max_size=150), st.booleans(), st.integers(0, len(MARIADB_GREETING)))
def test_any_greeting_is_read_or_refused(junk: bytes, prefix: bool, cut: int) -> None:
    try:
        greeting = parse_greeting(MARIADB_GREETING[:cut] + junk if prefix else junk)
    except ProtocolError:
        return
    assert len(greeting.nonce) == 20


def test_a_greeting_that_cannot_be_written() -> None:
    greeting = parse_greeting(MARIADB_GREETING)
    for bad in (replace(greeting, nonce=NONCE[:8]), replace(greeting, server_version="9\0")):
        with pytest.raises(ValueError, match=r".+"):
            build_greeting(bad)


# ── response ────────────────────────────────────────────────────────────────────────────────────────────


def head(capabilities: Capability | int, collation: int = 45, extended: int = 0) -> bytes:
    fixed = int(capabilities).to_bytes(4, "little") + b"\0\0\0\x01" + bytes((collation,)) + bytes(19)
    return fixed + extended.to_bytes(4, "little")


RESPONSES = [
    # capabilities, the rest of the packet, what it says
    (BASE, b"app\0\x03abc", {"user": "app", "auth": b"abc", "plugin": None, "database": None}),
    (BASE, b"app\0\0", {"auth": b""}),
    (BASE & ~Capability.SECURE_CONNECTION, b"app\0abc\0", {"auth": b"abc", "plugin": None}),
    (PLUGINS, b"app\0\0mysql_native_password\0", {"plugin": "mysql_native_password"}),
    (PLUGINS, b"app\0\0mysql_native_password", {"plugin": "mysql_native_password"}),
    (PLUGINS, b"app\0\0", {"plugin": ""}),
    (PLUGINS, b"app\0\0\0", {"plugin": ""}),
    (PLUGINS, b"\0\xfa" + b"x" * 250 + b"p\0", {"user": "", "auth": b"x" * 250, "plugin": "p"}),
    (BASE | Capability.CONNECT_WITH_DB, b"app\0\0demo\0", {"database": "demo"}),
    (BASE | Capability.CONNECT_WITH_DB, b"app\0\0\0", {"database": None}),  # Connector/J without a database
    (
        BASE | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA,
        b"app\0\xfc\x00\x01" + b"x" * 256,
        {"auth": b"x" * 256},
    ),
    (BASE | Capability.CONNECT_ATTRS, b"app\0\0\x06\x02ab\x02cd", {"attributes": {"ab": "cd"}}),
    # MariaDB Connector/J reserves a wide length and fills it in afterwards
    (BASE | Capability.CONNECT_ATTRS, b"app\0\0\xfd\x06\0\0\x02ab\x02cd", {"attributes": {"ab": "cd"}}),
    (BASE | Capability.CONNECT_ATTRS, b"app\0\0\0", {"attributes": {}}),
    (BASE | Capability.CONNECT_ATTRS, b"app\0\0", {"attributes": {}}),
    # an odd key, then one that is cut: what can be read counts, as in MySQL
    (BASE | Capability.CONNECT_ATTRS, b"app\0\0\x08\x02ab\x02cd\x05e", {"attributes": {"ab": "cd"}}),
    (BASE | Capability.ZSTD_COMPRESSION_ALGORITHM, b"app\0\0\x07", {"zstd_level": 7}),
    (BASE | Capability.ZSTD_COMPRESSION_ALGORITHM, b"app\0\0", {"zstd_level": 3}),
    (PLUGINS | Capability.CONNECT_ATTRS, b"a\0\0p\0\0 trailing", {"plugin": "p", "attributes": {}}),
]


@pytest.mark.parametrize(("capabilities", "rest", "says"), RESPONSES)
def test_responses(capabilities: Capability, rest: bytes, says: dict[str, object]) -> None:
    response = parse_response(head(capabilities) + rest)
    assert isinstance(response, HandshakeResponse)
    assert (response.capabilities, response.max_packet, response.collation) == (capabilities, 1 << 24, 45)
    assert {name: getattr(response, name) for name in says} == says


def test_mariadb_s_capabilities_count_only_without_mysql_s_flag() -> None:
    with_flag = parse_response(head(BASE, extended=0x1D) + b"app\0\0")
    without = parse_response(head(BASE & ~Capability.LONG_PASSWORD, extended=0x1D) + b"app\0\0")
    assert (with_flag.extended, without.extended) == (0, 0x1D)


@pytest.mark.parametrize(
    ("collation", "raw"), [(45, "größe".encode()), (8, "größe".encode("cp1252")), (0, b"gr\xc3\xb6\xc3\x9fe")]
)
def test_names_are_in_the_client_s_character_set(collation: int, raw: bytes) -> None:
    capabilities = BASE | Capability.CONNECT_WITH_DB
    response = parse_response(head(capabilities, collation) + raw + b"\0\0" + raw + b"\0")
    assert isinstance(response, HandshakeResponse)
    assert (response.user, response.database) == ("größe", "größe")


def test_an_ssl_request_is_the_fixed_part_alone() -> None:
    request = SslRequest(BASE | Capability.SSL, 1 << 24, 45)
    assert parse_response(build_ssl_request(request)) == request
    whole = parse_response(head(BASE | Capability.SSL) + b"app\0\0")
    assert isinstance(whole, HandshakeResponse)
    mariadb = SslRequest(Capability.PROTOCOL_41 | Capability.SSL, 1, 45, 0x1D)
    assert parse_response(build_ssl_request(mariadb)) == mariadb


@pytest.mark.parametrize(
    "payload", [b"", b"\x85", b"\x05\xa4\0\0\0", b"\0\0\0\0root\0", b"\x8d\xa4" + bytes(60)]
)
def test_old_clients(payload: bytes) -> None:
    with pytest.raises(OldClient):
        parse_response(payload)


MALFORMED = [
    (BASE, b""),
    (BASE, b"app"),
    (BASE, b"app\0"),
    (BASE, b"app\0\x14abc"),
    (BASE & ~Capability.SECURE_CONNECTION, b"app\0abc"),
    (BASE | Capability.CONNECT_WITH_DB, b"app\0\0demo"),
    (BASE | Capability.CONNECT_WITH_DB, b"app\0\0"),
    (BASE | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA, b"app\0\xfb"),
    (BASE | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA, b"app\0\xff"),
    (BASE | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA, b"app\0\xfe" + b"\xff" * 8),
    (BASE | Capability.CONNECT_ATTRS, b"app\0\0\x05ab"),
    (BASE | Capability.CONNECT_ATTRS, b"app\0\0\xfb"),
    (BASE | Capability.CONNECT_ATTRS, b"app\0\0\xfd\x01\0\x01" + bytes(65537)),
]


@pytest.mark.parametrize(("capabilities", "rest"), MALFORMED)
def test_malformed_responses(capabilities: Capability, rest: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_response(head(capabilities) + rest)
    with pytest.raises(ProtocolError):
        parse_response(head(capabilities)[:31])


@any_bytes
@given(st.binary(max_size=300), flags, st.integers(0, 255))
@example(bytes(33), ALL, 0)
def test_any_response_is_read_or_refused(junk: bytes, capabilities: Capability, collation: int) -> None:
    for payload in (junk, head(capabilities | BASE, collation) + junk):
        try:
            parse_response(payload)
        except ProtocolError:
            continue


responses = st.builds(
    HandshakeResponse,
    capabilities=flags.map(lambda given: given | PLUGINS | Capability.CONNECT_ATTRS & ~Capability.SSL),
    user=texts,
    auth=st.binary(max_size=255),
    database=st.none() | texts.filter(bool),
    plugin=names,
    collation=st.sampled_from([45, 33, 255]),
    max_packet=st.integers(0, 2**32 - 1),
    attributes=st.dictionaries(texts, texts, max_size=4),
    zstd_level=st.integers(1, 22),
)


@any_bytes
@given(responses)
def test_a_response_reads_back(response: HandshakeResponse) -> None:
    if Capability.CONNECT_WITH_DB not in response.capabilities:
        response = replace(response, database=None)
    if Capability.ZSTD_COMPRESSION_ALGORITHM not in response.capabilities:
        response = replace(response, zstd_level=3)
    if Capability.CONNECT_ATTRS not in response.capabilities:
        response = replace(response, attributes={})
    payload = build_response(response)
    assert parse_response(payload) == response


@any_bytes
@given(responses, st.data())
def test_a_cut_response_is_read_or_refused(response: HandshakeResponse, data: st.DataObject) -> None:
    payload = build_response(response)
    try:
        parse_response(payload[: data.draw(st.integers(0, len(payload)))])
    except ProtocolError:
        return


def test_a_response_that_cannot_be_written() -> None:
    response = HandshakeResponse(PLUGINS, "app", b"", collation=45, plugin="p")
    for bad in (
        replace(response, user="a\0b"),
        replace(response, user="日本", collation=8),
        replace(response, auth=bytes(256)),
        replace(response, plugin="p\0"),
    ):
        with pytest.raises(ValueError, match=r".+"):
            build_response(bad)


def test_a_response_does_not_show_its_scramble() -> None:
    assert "abc" not in repr(HandshakeResponse(PLUGINS, "app", b"abc"))


# ── COM_CHANGE_USER ─────────────────────────────────────────────────────────────────────────────────────

ATTRIBUTES = lenenc_bytes(lenenc_bytes(b"_os") + lenenc_bytes(b"Linux"))
CHANGES = [
    (BASE, b"app\0\x03abcdemo\0", {"user": "app", "auth": b"abc", "database": "demo", "plugin": None}),
    (BASE, b"app\0\x03abcdemo\0", {"collation": 0, "attributes": {}, "max_packet": 0}),
    (BASE, b"app\0\0", {"auth": b"", "database": None}),
    (BASE, b"app\0\0\0\x2d\0", {"database": None, "collation": 45}),
    (BASE, b"gr\xfc\xdf\0\0\0\x08\0", {"user": "grüß", "collation": 8}),
    (BASE, b"app\0\0\0\x2c\x01", {"collation": 300}),
    (BASE, b"app\0\0demo", {"database": "demo", "collation": 0}),
    (PLUGINS, b"app\0\0\0\x2d\0caching_sha2_password\0", {"plugin": "caching_sha2_password"}),
    (PLUGINS, b"app\0\0\0", {"plugin": ""}),
    (ALL, b"a\0\xfc" + b"x" * 252 + b"\0", {"auth": b"x" * 252}),  # here the length is one byte, always
    (PLUGINS | Capability.CONNECT_ATTRS, b"a\0\0\0\x2d\0p\0" + ATTRIBUTES, {"attributes": {"_os": "Linux"}}),
]  # fmt: skip


@pytest.mark.parametrize(("capabilities", "rest", "says"), CHANGES)
def test_change_user(capabilities: Capability, rest: bytes, says: dict[str, object]) -> None:
    response = parse_change_user(b"\x11" + rest, capabilities)
    assert {name: getattr(response, name) for name in says} == says


@pytest.mark.parametrize("payload", [b"", b"\x03app\0\0", b"\x11app", b"\x11app\0", b"\x11app\0\x09abc"])
def test_a_malformed_change_user(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_change_user(payload, PLUGINS)


@any_bytes
@given(st.binary(max_size=200), flags)
def test_any_change_user_is_read_or_refused(junk: bytes, capabilities: Capability) -> None:
    for payload in (junk, b"\x11" + junk):
        try:
            parse_change_user(payload, capabilities)
        except ProtocolError:
            continue


# ── character sets ──────────────────────────────────────────────────────────────────────────────────────


def test_collations_know_their_character_set() -> None:
    assert COLLATIONS[45] == ("utf8mb4", "utf8mb4_general_ci")
    assert COLLATIONS[8] == ("latin1", "latin1_swedish_ci")
    assert COLLATIONS[63] == ("binary", "binary")
    assert COLLATIONS[255] == ("utf8mb4", "utf8mb4_0900_ai_ci")
    assert COLLATIONS[309] == ("utf8mb4", "utf8mb4_0900_bin")
    assert len(COLLATIONS) == 286


def test_every_codec_exists_and_keeps_ascii() -> None:
    ascii_text = bytes(range(0x20, 0x7F)).decode()
    for number, (charset, _) in COLLATIONS.items():
        if charset not in NOT_ASCII:
            assert ascii_text.encode(codec_of(number)).decode("ascii") == ascii_text, charset
    assert codec_of(9999) == "utf-8"
