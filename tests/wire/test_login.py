"""BackendLogin by scripts: what the server sends, and what must be answered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.wire import auth
from proxy.wire.auth import CACHING_SHA2, NATIVE, RsaKey
from proxy.wire.constants import Capability
from proxy.wire.handshake import (
    Greeting,
    HandshakeResponse,
    SslRequest,
    build_greeting,
    parse_response,
)
from proxy.wire.login import BackendLogin, Done, Failed, LoginOptions, Send, StartTls, Step, Tls

NONCE = b"abcdefghijklmnopqrst"
OTHER = b"ABCDEFGHIJKLMNOPQRST"
SERVER = (
    Capability.LONG_PASSWORD
    | Capability.PROTOCOL_41
    | Capability.SECURE_CONNECTION
    | Capability.PLUGIN_AUTH
    | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA
    | Capability.CONNECT_WITH_DB
    | Capability.CONNECT_ATTRS
    | Capability.TRANSACTIONS
    | Capability.SSL
)
GREETING = Greeting("9.7.0", 42, NONCE, SERVER, 255, 2, CACHING_SHA2)
OPTIONS = LoginOptions("app", "secret", capabilities=Capability.TRANSACTIONS | Capability.FOUND_ROWS)
OK = b"\0\0\0\x02\0\0\0"
FAST = b"\x01\x03"
FULL = b"\x01\x04"
RSA = RsaKey()
KEY = b"\x01" + RSA.public_pem


def switch(plugin: str, nonce: bytes = OTHER) -> bytes:
    return b"\xfe" + plugin.encode() + b"\0" + nonce + b"\0"


def begin(
    options: LoginOptions = OPTIONS, greeting: Greeting = GREETING
) -> tuple[BackendLogin, HandshakeResponse]:
    """A machine that has answered the greeting in the clear, and its answer."""
    machine = BackendLogin(options)
    (step,) = machine.receive(build_greeting(greeting), 0)
    assert isinstance(step, Send)
    assert step.seq == 1
    response = parse_response(step.payload)
    assert isinstance(response, HandshakeResponse)
    return machine, response


def done(steps: tuple[Step, ...]) -> Done:
    (step,) = steps
    assert isinstance(step, Done), step
    return step


def failed(steps: tuple[Step, ...]) -> Failed:
    (step,) = steps
    assert isinstance(step, Failed), step
    return step


# ── the response ────────────────────────────────────────────────────────────────────────────────────────


def test_the_response_says_what_the_options_say() -> None:
    options = replace(OPTIONS, database="demo", attributes={"program_name": "shardgate"}, collation=46)
    machine, response = begin(options)
    assert (response.user, response.database, response.plugin) == ("app", "demo", CACHING_SHA2)
    assert response.auth == auth.sha2_scramble(b"secret", NONCE)
    assert response.attributes == {"program_name": "shardgate"}
    assert (response.collation, response.max_packet) == (46, 1 << 30)
    assert machine.receive(FAST, 2) == ()
    result = done(machine.receive(OK, 3))
    assert machine.finished
    assert result == Done(GREETING, response.capabilities, 2, CACHING_SHA2)


def test_capabilities_are_those_of_both_sides() -> None:
    _, response = begin(replace(OPTIONS, capabilities=Capability(0xFFFFFFFF)))
    asked_by_options = Capability.SSL | Capability.CONNECT_WITH_DB | Capability.CONNECT_ATTRS
    assert response.capabilities == SERVER & ~asked_by_options
    _, response = begin(OPTIONS)
    assert Capability.FOUND_ROWS not in response.capabilities
    assert Capability.TRANSACTIONS in response.capabilities


@pytest.mark.parametrize("plugin", [NATIVE, "client_ed25519", "mysql_clear_password", ""])
def test_a_native_scramble_goes_to_servers_with_another_default(plugin: str) -> None:
    _, response = begin(greeting=replace(GREETING, plugin=plugin))
    assert (response.plugin, response.auth) == (NATIVE, auth.native_scramble(b"secret", NONCE))


def test_a_server_without_plugins() -> None:
    old = SERVER & ~(Capability.PLUGIN_AUTH | Capability.PLUGIN_AUTH_LENENC_CLIENT_DATA)
    machine, response = begin(greeting=replace(GREETING, capabilities=old, plugin=""))
    assert (response.plugin, response.auth) == (None, auth.native_scramble(b"secret", NONCE))
    assert done(machine.receive(OK, 2)).plugin == NATIVE


@pytest.mark.parametrize("plugin", [NATIVE, CACHING_SHA2])
def test_no_password_sends_no_scramble(plugin: str) -> None:
    machine, response = begin(replace(OPTIONS, password=""), replace(GREETING, plugin=plugin))
    assert response.auth == b""
    done(machine.receive(OK, 2))


# ── authentication ──────────────────────────────────────────────────────────────────────────────────────


def test_full_authentication_asks_for_the_key() -> None:
    machine, _ = begin()
    assert machine.receive(FULL, 2) == (Send(b"\x02", 3),)
    (step,) = machine.receive(KEY, 4)
    assert isinstance(step, Send)
    assert step.seq == 5
    assert RSA.decrypt(step.payload, NONCE) == b"secret"
    done(machine.receive(OK, 6))


def test_full_authentication_with_a_known_key() -> None:
    machine, _ = begin(replace(OPTIONS, server_public_key=RSA.public_pem))
    (step,) = machine.receive(FULL, 2)
    assert isinstance(step, Send)
    assert RSA.decrypt(step.payload, NONCE) == b"secret"


def test_full_authentication_on_a_secure_transport() -> None:
    machine, _ = begin(replace(OPTIONS, secure=True))
    assert machine.receive(FULL, 2) == (Send(b"secret\0", 3),)
    done(machine.receive(OK, 4))


@pytest.mark.parametrize(
    ("plugin", "scramble"), [(NATIVE, auth.native_scramble), (CACHING_SHA2, auth.sha2_scramble)]
)
def test_an_auth_switch_brings_its_own_nonce(plugin: str, scramble: object) -> None:
    assert callable(scramble)
    machine, _ = begin()
    assert machine.receive(switch(plugin), 2) == (Send(scramble(b"secret", OTHER), 3),)
    assert done(machine.receive(OK, 4)).plugin == plugin


def test_full_authentication_after_a_switch_uses_the_new_nonce() -> None:
    machine, _ = begin(greeting=replace(GREETING, plugin=NATIVE))
    machine.receive(switch(CACHING_SHA2), 2)
    assert machine.receive(FULL, 4) == (Send(b"\x02", 5),)
    (step,) = machine.receive(KEY, 6)
    assert isinstance(step, Send)
    assert RSA.decrypt(step.payload, OTHER) == b"secret"


# ── TLS ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("tls", [Tls.PREFERRED, Tls.REQUIRED])
def test_tls_comes_before_the_user_s_name(tls: Tls) -> None:
    machine = BackendLogin(replace(OPTIONS, tls=tls))
    request, start = machine.receive(build_greeting(GREETING), 0)
    assert isinstance(request, Send)
    assert request.seq == 1
    assert isinstance(parse_response(request.payload), SslRequest)
    assert start == StartTls()
    (step,) = machine.tls_started()
    assert isinstance(step, Send)
    assert step.seq == 2
    response = parse_response(step.payload)
    assert isinstance(response, HandshakeResponse)
    assert Capability.SSL in response.capabilities
    assert machine.receive(FULL, 3) == (Send(b"secret\0", 4),)
    assert Capability.SSL in done(machine.receive(OK, 5)).capabilities


def test_tls_required_of_a_server_without_it() -> None:
    machine = BackendLogin(replace(OPTIONS, tls=Tls.REQUIRED))
    plain = replace(GREETING, capabilities=SERVER & ~Capability.SSL)
    assert failed(machine.receive(build_greeting(plain), 0)).code == 2026
    assert machine.finished


def test_tls_preferred_of_a_server_without_it() -> None:
    _, response = begin(
        replace(OPTIONS, tls=Tls.PREFERRED), replace(GREETING, capabilities=SERVER & ~Capability.SSL)
    )
    assert Capability.SSL not in response.capabilities


@pytest.mark.parametrize("payload", [OK, switch(NATIVE), FULL, b"\xff\x10\x04no"])
def test_a_packet_in_the_clear_while_tls_begins(payload: bytes) -> None:
    machine = BackendLogin(replace(OPTIONS, tls=Tls.REQUIRED))
    machine.receive(build_greeting(GREETING), 0)
    assert failed(machine.receive(payload, 2)).code == 2027
    with pytest.raises(RuntimeError):
        machine.tls_started()


def test_tls_started_answers_start_tls_only() -> None:
    for machine in (BackendLogin(OPTIONS), begin()[0]):
        with pytest.raises(RuntimeError):
            machine.tls_started()


# ── refusals ────────────────────────────────────────────────────────────────────────────────────────────

INSTEAD_OF_A_GREETING = [
    (b"\xff\x10\x04Too many connections", Failed(1040, "HY000", "Too many connections")),
    (b"\xff\x10\x04#08004Too many connections", Failed(1040, "08004", "Too many connections")),
    (b"\xff\x69\x04Host '10.0.0.1' is blocked", Failed(1129, "HY000", "Host '10.0.0.1' is blocked")),
]


@pytest.mark.parametrize("seq", [0, 1])
@pytest.mark.parametrize(("payload", "expected"), INSTEAD_OF_A_GREETING)
def test_an_error_instead_of_a_greeting(payload: bytes, expected: Failed, seq: int) -> None:
    machine = BackendLogin(OPTIONS)
    assert machine.receive(payload, seq) == (expected,)
    assert machine.finished


DENIED = b"\xff\x15\x04#28000Access denied"
FAILURES: dict[str, tuple[list[bytes], int]] = {
    "denied": ([DENIED], 1045),
    "denied after a switch": ([switch(NATIVE), DENIED], 1045),
    "denied after full authentication": ([FULL, KEY, DENIED], 1045),
    "denied instead of a key": ([FULL, DENIED], 1045),
    "denied after fast authentication": ([FAST, DENIED], 1045),
    "clear text wanted": ([switch("mysql_clear_password")], 2059),
    "ed25519 wanted": ([switch("client_ed25519")], 2059),
    "4.0's hash wanted": ([b"\xfe"], 2061),
    "a second factor wanted": ([b"\x02plugin\0data"], 2061),
    "switching without end": ([switch(NATIVE)] * 5, 2061),
    "a switch without a nonce": ([b"\xfe" + NATIVE.encode() + b"\0"], 2027),
    "a switch with a short nonce": ([switch(NATIVE, b"short")], 2027),
    "a switch without an end": ([b"\xfe" + NATIVE.encode()], 2027),
    "not a key": ([FULL, b"\x01-----BEGIN"], 2061),
    "not a packet with a key": ([FULL, OK], 2027),
    "unknown data": ([b"\x01\x05"], 2027),
    "no data": ([b"\x01"], 2027),
    "data for native": ([switch(NATIVE), FULL], 2027),
    "an empty packet": ([b""], 2027),
    "a short OK": ([b"\0\0"], 2027),
    "a short ERR": ([b"\xff\x15"], 2027),
    "nonsense": ([b"\x42"], 2027),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(name: str) -> None:
    payloads, code = FAILURES[name]
    machine, _ = begin()
    seq = 2
    for payload in payloads[:-1]:
        steps = machine.receive(payload, seq)
        assert all(isinstance(step, Send) for step in steps)
        seq += 1 + len(steps)
    assert failed(machine.receive(payloads[-1], seq)).code == code
    assert machine.finished
    assert failed(machine.receive(OK, seq + 1)).code in (1156, 2027)


def test_packets_out_of_order() -> None:
    assert failed(BackendLogin(OPTIONS).receive(build_greeting(GREETING), 1)).code == 1156
    machine, _ = begin()
    assert failed(machine.receive(OK, 1)) == Failed(1156, "08S01", "Got packets out of order")


def test_a_greeting_that_is_none() -> None:
    old = replace(GREETING, capabilities=SERVER & ~Capability.SECURE_CONNECTION)
    for payload in (b"\x09old", b"HTTP/1.1 400 Bad Request\r\n", build_greeting(old)):
        assert failed(BackendLogin(OPTIONS).receive(payload, 0)).code == 2027


def test_options_that_cannot_be_sent() -> None:
    machine = BackendLogin(replace(OPTIONS, user="a\0b"))
    assert failed(machine.receive(build_greeting(GREETING), 0)).code == 2061
    machine = BackendLogin(replace(OPTIONS, user="a\0b", tls=Tls.REQUIRED))
    machine.receive(build_greeting(GREETING), 0)
    assert failed(machine.tls_started()).code == 2061


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(OPTIONS)
    machine, _ = begin(replace(OPTIONS, secure=True))
    assert "secret" not in repr(machine.receive(FULL, 2))


packets = st.one_of(
    st.binary(max_size=200),
    st.sampled_from(
        [OK, FAST, FULL, KEY, DENIED, switch(NATIVE), switch(CACHING_SHA2), build_greeting(GREETING)]
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(packets, max_size=6), st.booleans(), st.sampled_from(Tls), st.booleans())
def test_no_server_can_make_it_raise(payloads: list[bytes], greet: bool, tls: Tls, secure: bool) -> None:
    machine = BackendLogin(replace(OPTIONS, tls=tls, secure=secure))
    seq = 0
    for payload in [build_greeting(GREETING)] * greet + payloads:
        steps = machine.receive(payload, seq)
        if steps and isinstance(steps[-1], Done | Failed):
            assert machine.finished
            return
        seq += 1 + sum(isinstance(step, Send) for step in steps)
        if steps and isinstance(steps[-1], StartTls):
            seq += len(machine.tls_started())
        for step in steps:
            in_the_clear = not secure and tls is Tls.OFF
            assert not (in_the_clear and isinstance(step, Send) and b"secret" in step.payload)
