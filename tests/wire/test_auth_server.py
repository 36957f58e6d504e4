"""ServerAuthenticator by scripts: what the client sends, and what must come back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.wire import auth
from proxy.wire.auth import CACHING_SHA2, NATIVE, Credential, Form, RsaKey
from proxy.wire.constants import Capability
from proxy.wire.handshake import HandshakeResponse
from proxy.wire.server_auth import (
    Authority,
    Decoys,
    Done,
    Failed,
    PasswordCache,
    Send,
    ServerAuthenticator,
    Step,
)

NONCE = b"abcdefghijklmnopqrst"
CAPABILITIES = Capability.PROTOCOL_41 | Capability.SECURE_CONNECTION | Capability.PLUGIN_AUTH
RSA = RsaKey()
SECRET = b"secret"
USERS = {
    "plain": Credential.parse("secret"),
    "native": Credential.parse("*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"),
    "sha2": Credential.parse(auth.store_caching_sha2(SECRET, 1000)),
    "blank": Credential.parse(""),
}

FAST = Send(b"\x01\x03")
FULL = Send(b"\x01\x04")
KEY = Send(b"\x01" + RSA.public_pem)


def authority(cache: PasswordCache | None = None) -> Authority:
    return Authority(USERS.get, RSA, Decoys(USERS.values()), cache or PasswordCache())


def machine(*, secure: bool = False, announced: str = CACHING_SHA2) -> ServerAuthenticator:
    return ServerAuthenticator(authority(), NONCE, secure=secure, announced=announced)


def hello(user: str, plugin: str | None = CACHING_SHA2, proof: bytes = b"") -> HandshakeResponse:
    capabilities = CAPABILITIES if plugin is not None else CAPABILITIES & ~Capability.PLUGIN_AUTH
    return HandshakeResponse(capabilities, user, proof, plugin=plugin)


def switch(plugin: str) -> Send:
    return Send(b"\xfe" + plugin.encode() + b"\0" + NONCE + b"\0")


def native(password: bytes = SECRET) -> bytes:
    return auth.native_scramble(password, NONCE)


def sha2(password: bytes = SECRET) -> bytes:
    return auth.sha2_scramble(password, NONCE)


def encrypted(password: bytes = SECRET) -> bytes:
    return auth.rsa_encrypt(password, NONCE, RSA.public_pem)


def wrong(reason: str = "wrong password", used: bool = True) -> Failed:
    return Failed("", reason, used)


Script = list[tuple[HandshakeResponse | bytes, tuple[Step, ...]]]

TCP: dict[str, Script] = {
    "plain, fast": [(hello("plain", CACHING_SHA2, sha2()), (FAST, Done("plain", CACHING_SHA2)))],
    "plain, native": [(hello("plain", NATIVE, native()), (Done("plain", NATIVE),))],
    "plain, before plugins": [(hello("plain", None, native()), (Done("plain", NATIVE),))],
    "plain, unknown plugin": [
        (hello("plain", "client_ed25519", b"x" * 64), (switch(NATIVE),)),
        (native(), (Done("plain", NATIVE),)),
    ],
    "plain, no plugin named": [
        (hello("plain", ""), (switch(NATIVE),)),
        (native(), (Done("plain", NATIVE),)),
    ],
    "sha2, unknown plugin": [
        (hello("sha2", "dummy_fallback_auth"), (switch(CACHING_SHA2),)),
        (sha2(), (FULL,)),
    ],
    "plain, a client that lacks the announced plugin": [
        (hello("plain", NATIVE), (switch(NATIVE),)),
        (native(), (Done("plain", NATIVE),)),
    ],
    "plain, wrong": [
        (hello("plain", CACHING_SHA2, sha2(b"x")), (FULL,)),
        (b"\x02", (KEY,)),
        (encrypted(b"x"), (wrong(),)),
    ],
    "plain, right only the second time": [
        (hello("plain", CACHING_SHA2, sha2(b"x")), (FULL,)),
        (encrypted(), (Done("plain", CACHING_SHA2),)),
    ],
    "plain, native, wrong": [(hello("plain", NATIVE, native(b"x")), (wrong(),))],
    "plain, none": [(hello("plain", CACHING_SHA2, b""), (wrong("no password given", False),))],
    "plain, none, native": [
        (hello("plain", NATIVE, b""), (switch(NATIVE),)),
        (b"", (wrong("no password given", False),)),
    ],
    "native": [(hello("native", NATIVE, native()), (Done("native", NATIVE),))],
    "native, before plugins": [(hello("native", None, native()), (Done("native", NATIVE),))],
    "native, switched": [
        (hello("native", CACHING_SHA2, sha2()), (switch(NATIVE),)),
        (native(), (Done("native", NATIVE),)),
    ],
    "native, switched, wrong": [
        (hello("native", CACHING_SHA2, sha2()), (switch(NATIVE),)),
        (native(b"x"), (wrong(),)),
    ],
    "sha2, key asked for": [
        (hello("sha2", CACHING_SHA2, sha2()), (FULL,)),
        (b"\x02", (KEY,)),
        (encrypted(), (Done("sha2", CACHING_SHA2),)),
    ],
    "sha2, key known": [
        (hello("sha2", CACHING_SHA2, sha2()), (FULL,)),
        (encrypted(), (Done("sha2", CACHING_SHA2),)),
    ],
    "sha2, then cached": [
        (hello("sha2", CACHING_SHA2, sha2()), (FULL,)),
        (encrypted(), (Done("sha2", CACHING_SHA2),)),
        (hello("sha2", CACHING_SHA2, sha2()), (FAST, Done("sha2", CACHING_SHA2))),
        (hello("sha2", CACHING_SHA2, sha2(b"x")), (FULL,)),
        (encrypted(b"x"), (wrong(),)),
    ],
    "sha2, switched": [
        (hello("sha2", NATIVE, native()), (switch(CACHING_SHA2),)),
        (sha2(), (FULL,)),
        (encrypted(), (Done("sha2", CACHING_SHA2),)),
    ],
    "sha2, before plugins": [
        (hello("sha2", None, native()), (wrong("the client cannot switch to caching_sha2_password"),)),
    ],
    "sha2, the password in the clear": [
        (hello("sha2", CACHING_SHA2, sha2()), (FULL,)),
        (SECRET + b"\0", (wrong("not a password encrypted with this server's public key"),)),
    ],
    "sha2, the key asked for twice": [
        (hello("sha2", CACHING_SHA2, sha2()), (FULL,)),
        (b"\x02", (KEY,)),
        (b"\x02", (wrong("not a password encrypted with this server's public key"),)),
    ],
    "sha2, a short scramble": [
        (
            hello("sha2", CACHING_SHA2, native()),
            (wrong("a caching_sha2_password scramble has 32 bytes"),),
        ),
    ],
    "blank": [(hello("blank", CACHING_SHA2), (Done("blank", CACHING_SHA2),))],
    "blank, one NUL": [(hello("blank", CACHING_SHA2, b"\0"), (Done("blank", CACHING_SHA2),))],
    "blank, native": [
        (hello("blank", NATIVE), (switch(NATIVE),)),
        (b"", (Done("blank", NATIVE),)),
    ],
    "blank, before plugins": [(hello("blank", None), (Done("blank", NATIVE),))],
    "blank, switched": [
        (hello("blank", "dialog", b"?"), (switch(NATIVE),)),
        (b"\0", (Done("blank", NATIVE),)),
    ],
    "blank, but a password given": [
        (hello("blank", CACHING_SHA2, sha2()), (FULL,)),
        (encrypted(), (wrong(),)),
    ],
    "nothing was asked for": [(b"hello", (wrong("a packet that was not asked for"),))],
    "after the end": [
        (hello("plain", NATIVE, native()), (Done("plain", NATIVE),)),
        (native(), (wrong("a packet that was not asked for"),)),
    ],
}

SECURE: dict[str, Script] = {
    "native, by a client of MySQL 9": [
        (hello("native", CACHING_SHA2, sha2()), (FULL,)),
        (SECRET + b"\0", (Done("native", CACHING_SHA2),)),
        (hello("native", CACHING_SHA2, sha2()), (FAST, Done("native", CACHING_SHA2))),
    ],
    "native, by a client of MySQL 9, wrong": [
        (hello("native", CACHING_SHA2, sha2(b"x")), (FULL,)),
        (b"x\0", (wrong(),)),
    ],
    "native, any other plugin": [
        (hello("native", "client_ed25519", sha2()), (switch(NATIVE),)),
        (native(), (Done("native", NATIVE),)),
    ],
    "sha2, clear": [
        (hello("sha2", CACHING_SHA2, sha2()), (FULL,)),
        (SECRET + b"\0", (Done("sha2", CACHING_SHA2),)),
        (hello("sha2", CACHING_SHA2, sha2()), (FAST, Done("sha2", CACHING_SHA2))),
    ],
    "sha2, clear, wrong": [
        (hello("sha2", CACHING_SHA2, sha2(b"x")), (FULL,)),
        (b"x\0", (wrong(),)),
    ],
    "sha2, clear, without its NUL": [
        (hello("sha2", CACHING_SHA2, sha2()), (FULL,)),
        (SECRET, (wrong("a clear-text password that does not end with NUL"),)),
    ],
    "sha2, a client that encrypts all the same": [
        (hello("sha2", CACHING_SHA2, sha2()), (FULL,)),
        (b"\x02", (KEY,)),
        (encrypted(), (Done("sha2", CACHING_SHA2),)),
    ],
    "plain, clear": [
        (hello("plain", CACHING_SHA2, sha2(b"x")), (FULL,)),
        (b"x\0", (wrong(),)),
    ],
}


def play(script: Script, *, secure: bool) -> None:
    subject = machine(secure=secure)
    user = ""
    for sent, expected in script:
        if isinstance(sent, HandshakeResponse):
            user = sent.user
            steps = subject.start(sent)
        else:
            steps = subject.receive(sent)
        if not user:
            expected = tuple(
                replace(step, reason=f"unknown user ({step.reason})") if isinstance(step, Failed) else step
                for step in expected
            )
        named = [replace(step, user=user) if isinstance(step, Failed) else step for step in expected]
        assert list(steps) == named


@pytest.mark.parametrize("name", TCP)
def test_over_tcp(name: str) -> None:
    play(TCP[name], secure=False)


@pytest.mark.parametrize("name", SECURE)
def test_over_tls_or_a_unix_socket(name: str) -> None:
    play(SECURE[name], secure=True)


def test_when_native_was_announced() -> None:
    steps = machine(announced=NATIVE).start(hello("native", NATIVE, b""))
    assert steps == (Failed("native", "no password given", False),)
    assert machine(announced=NATIVE).start(hello("plain", "dialog")) == (switch(CACHING_SHA2),)


# ── COM_CHANGE_USER ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("user", "plugin", "checked"),
    [
        ("plain", CACHING_SHA2, CACHING_SHA2),
        ("plain", "", NATIVE),
        ("native", CACHING_SHA2, NATIVE),
    ],
)
def test_change_user_asks_with_a_new_nonce(user: str, plugin: str, checked: str) -> None:
    subject = machine()
    assert subject.start(hello("plain", NATIVE, native())) == (Done("plain", NATIVE),)
    old_proof = native() if plugin == NATIVE else sha2()
    (step,) = subject.change_user(hello(user, plugin, old_proof))
    assert isinstance(step, Send)
    name, _, nonce = step.payload[1:].partition(b"\0")
    assert (name.decode(), nonce[20:]) == (checked, b"\0")
    assert nonce[:20] != NONCE
    scramble = auth.native_scramble if checked == NATIVE else auth.sha2_scramble
    assert subject.receive(scramble(SECRET, nonce[:20]))[-1] == Done(user, checked)
    assert isinstance(subject.change_user(hello("plain", plugin, old_proof))[0], Send)
    assert not isinstance(subject.receive(old_proof)[-1], Done)


def test_change_user_with_a_right_native_answer() -> None:
    """libmariadb has no other answer for a new nonce."""
    subject = machine()
    assert subject.start(hello("plain", NATIVE, native())) == (Done("plain", NATIVE),)
    assert subject.change_user(hello("native", NATIVE, native())) == (Done("native", NATIVE),)
    wrong = auth.native_scramble(b"wrong", NONCE)
    assert isinstance(subject.change_user(hello("plain", NATIVE, wrong))[0], Send)
    assert subject.nonce != NONCE
    assert isinstance(subject.change_user(hello("plain", NATIVE, native()))[0], Send)  # no old nonce twice


def test_change_user_of_a_client_before_plugins() -> None:
    assert machine().change_user(hello("plain", None, native())) == (Done("plain", NATIVE),)


# ── users that do not exist ─────────────────────────────────────────────────────────────────────────────


def conversation(users: dict[str, Credential], user: str, plugin: str | None, *, secure: bool) -> list[str]:
    """What goes over the wire when somebody tries `user` with a wrong password."""
    subject = ServerAuthenticator(
        Authority(users.get, RSA, Decoys(users.values(), b"s" * 32)), NONCE, secure=secure
    )
    proof = sha2(b"x") if plugin == CACHING_SHA2 else native(b"x")
    steps = subject.start(hello(user, plugin, proof))
    seen: list[str] = []
    while True:
        seen += [f"Send {step.payload!r}" for step in steps if isinstance(step, Send)]
        last = steps[-1]
        if isinstance(last, Failed):
            return [*seen, f"1045, password used: {last.password_used}"]
        assert isinstance(last, Send)
        if last == FULL:
            steps = subject.receive(b"x\0" if secure else encrypted(b"x"))
        else:
            steps = subject.receive(native(b"x") if NATIVE.encode() in last.payload else sha2(b"x"))


@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("plugin", [CACHING_SHA2, NATIVE, "client_ed25519", None])
@pytest.mark.parametrize("kind", ["plain", "native", "sha2"])
def test_an_unknown_user_looks_like_a_known_one(kind: str, plugin: str | None, secure: bool) -> None:
    users = {"known": USERS[kind], "blank": USERS["blank"]}
    known = conversation(users, "known", plugin, secure=secure)
    unknown = conversation(users, "unknown", plugin, secure=secure)
    assert known == unknown


def test_decoys_are_stable_and_have_the_forms_of_the_real_ones() -> None:
    decoys, again = Decoys(USERS.values(), b"s" * 32), Decoys(USERS.values(), b"s" * 32)
    names = [f"user{number}" for number in range(300)]
    assert [decoys.for_user(name) for name in names] == [again.for_user(name) for name in names]
    forms = [decoys.for_user(name).form for name in names]
    assert all(50 < forms.count(form) < 150 for form in Form)
    assert {decoys.for_user(name).rounds for name in names} == {0, 1000}
    assert not any(decoys.for_user(name).empty for name in names)
    assert Decoys([]).for_user("x") != Decoys([]).for_user("x")  # another secret in another process


def test_the_right_password_of_a_decoy_does_not_let_in() -> None:
    subject = machine()
    decoy = Credential.parse("secret")
    subject._authority.decoys.for_user = lambda user: decoy  # type: ignore[method-assign]
    assert subject.start(hello("nobody", CACHING_SHA2, sha2())) == (FULL,)
    (failed,) = subject.receive(encrypted())
    assert failed == Failed("nobody", "unknown user (wrong password)", True)
    (failed,) = subject.start(hello("nobody", NATIVE, native()))
    assert isinstance(failed, Failed)


# ── the cache ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_cache_belongs_to_one_credential() -> None:
    cache = PasswordCache()
    stored = USERS["sha2"]
    cache.put("app", stored, SECRET)
    assert cache.get("app", stored) == auth.sha2_stage2(SECRET)
    assert cache.get("app", Credential.parse(auth.store_caching_sha2(SECRET, 1000))) is None
    assert cache.get("other", stored) is None
    cache.clear()
    assert cache.get("app", stored) is None


# ── anything ────────────────────────────────────────────────────────────────────────────────────────────

packets = st.one_of(
    st.binary(max_size=300),
    st.sampled_from([b"", b"\0", b"\x02", native(), sha2(), SECRET + b"\0", encrypted()]),
)
greetings = st.builds(
    hello,
    st.sampled_from([*USERS, "nobody"]) | st.text(max_size=10),
    st.sampled_from([CACHING_SHA2, NATIVE, "", None]) | st.text(max_size=10),
    packets,
)


@settings(deadline=None)
@given(greetings, st.lists(packets, max_size=5), st.booleans(), st.booleans())
def test_any_conversation_ends_as_it_should(
    greeting: HandshakeResponse, sent: list[bytes], secure: bool, change: bool
) -> None:
    subject = machine(secure=secure)
    steps = subject.change_user(greeting) if change else subject.start(greeting)
    for payload in sent:
        assert all(isinstance(step, Send) for step in steps[:-1])
        if isinstance(steps[-1], Done):
            assert steps[-1].user == greeting.user in USERS
        if not isinstance(steps[-1], Send):
            return
        steps = subject.receive(payload)


@pytest.mark.parametrize("plugin", [CACHING_SHA2, NATIVE])
@pytest.mark.parametrize("secure", [False, True])
def test_a_user_who_must_use_tls_looks_like_nobody_without(plugin: str, secure: bool) -> None:
    """On a Unix socket too, as in MySQL; whether the password is right is not to be seen."""
    seen = []
    known = Authority(USERS.get, RSA, Decoys(USERS.values(), b"s" * 32), tls_only=frozenset({"plain"}))
    nobody = Authority(lambda user: None, RSA, Decoys(USERS.values(), b"s" * 32))
    for who in (known, nobody):
        for password in (SECRET, b"wrong"):
            machine = ServerAuthenticator(who, NONCE, secure=secure)
            scramble = native(password) if plugin == NATIVE else auth.sha2_scramble(password, NONCE)
            steps = machine.start(hello("plain", plugin, scramble))
            while not isinstance(steps[-1], Failed):
                seen.append(steps)
                steps = machine.receive(b"x" * 20)
            seen.append((Failed("plain", "", steps[-1].password_used),))
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]
    machine = ServerAuthenticator(known, NONCE, secure=secure)
    steps = machine.start(hello("plain", NATIVE, native()))
    while not isinstance(steps[-1], Failed):
        steps = machine.receive(b"x" * 20)
    assert steps[-1].reason == "this user must connect over TLS"
    machine = ServerAuthenticator(known, NONCE, secure=secure, tls=True)
    assert machine.start(hello("plain", NATIVE, native())) == (Done("plain", NATIVE),)
