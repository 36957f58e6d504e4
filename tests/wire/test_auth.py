"""Vectors from real servers and clients, and the properties that every password must have."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.wire import auth
from proxy.wire.auth import Credential, Form, RsaKey

NONCE = bytes(range(1, 21))

# SELECT hex(authentication_string) FROM mysql.user on MySQL 9.7.4; the first with
# caching_sha2_password_digest_rounds=11000, which is written as hexadecimal 00B.
FROM_MYSQL = [
    (
        "secret",
        "0x244124303042245F6D6D4D6109574C0105453E557E741B2001572F6E4231724B326F6E7973794679746348"
        "4C355275336C44574E56625058726D395673307A724F4552764432",
    ),
    (
        "é" * 60,
        "0x244124303042243013424749384D13180F68083E26533E32453113796A384D5435534E77684F557530733042"
        "72566A5A52766D347841565448424A6F637A662F555668444242",
    ),
]


@pytest.mark.parametrize(("password", "stored"), FROM_MYSQL)
def test_a_hash_made_by_mysql_checks_its_password(password: str, stored: str) -> None:
    credential = Credential.parse(stored)
    assert credential.form is Form.CACHING_SHA2
    assert credential.rounds == 11_000
    assert len(credential.salt) == 20
    assert credential.check_password(password.encode())
    assert not credential.check_password(password.encode() + b"x")
    raw = bytes.fromhex(stored[2:]).decode("latin-1")
    assert Credential.parse(raw) == credential


# What glibc's crypt(3) gives for $5$rounds=…$salt
CRYPT = [
    (b"", b"saltstring", 5000, b"FdNfA4gXqvCeO6iZs7G/.wwwoywYZqo0l1pwmfWaBA7"),
    (b"Hello world!", b"saltstring", 5000, b"5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"),
    (b"Hello world!", b"saltstringsaltst", 10000, b"3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA"),
]


@pytest.mark.parametrize(("password", "salt", "rounds", "digest"), CRYPT)
def test_sha256_crypt(password: bytes, salt: bytes, rounds: int, digest: bytes) -> None:
    assert len(auth.sha256_crypt(password, salt, rounds)) == 43
    assert auth.sha256_crypt(password, salt, rounds) == digest


def test_scrambles_are_those_of_pymysql() -> None:
    from pymysql import _auth

    for password in (b"secret", b"\x00", "größer".encode(), b"x" * 300):
        assert auth.native_scramble(password, NONCE) == _auth.scramble_native_password(password, NONCE)
        assert auth.sha2_scramble(password, NONCE) == _auth.scramble_caching_sha2(password, NONCE)


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=80), st.binary(min_size=1, max_size=80))
def test_a_scramble_proves_its_own_password_only(password: bytes, other: bytes) -> None:
    native = auth.native_scramble(password, NONCE)
    sha2 = auth.sha2_scramble(password, NONCE)
    same = password == other
    assert auth.native_verify(native, NONCE, auth.native_stage2(other)) is same
    assert auth.sha2_verify(sha2, NONCE, auth.sha2_stage2(other)) is same
    assert not auth.native_verify(native, NONCE[::-1], auth.native_stage2(password))
    assert not auth.sha2_verify(sha2, NONCE[::-1], auth.sha2_stage2(password))


@settings(deadline=None)
@given(st.binary(max_size=64))
def test_any_bytes_can_be_verified(scramble: bytes) -> None:
    assert not auth.native_verify(scramble, NONCE, auth.native_stage2(b"secret"))
    assert not auth.sha2_verify(scramble, NONCE, auth.sha2_stage2(b"secret"))


def test_the_empty_password_has_an_empty_scramble() -> None:
    assert auth.native_scramble(b"", NONCE) == auth.sha2_scramble(b"", NONCE) == b""


def test_nonces_are_20_bytes_clients_can_take() -> None:
    seen = [auth.make_nonce() for _ in range(300)]
    assert all(len(nonce) == 20 and not set(nonce) & {0, 0x24} and max(nonce) < 0x80 for nonce in seen)
    assert len(set(seen)) == 300


PARSED = [
    ("", Form.PLAIN, True),
    ("secret", Form.PLAIN, False),
    ("*14E65567ABDB5135D0CFD9A70B3032C179A49EE7", Form.NATIVE, False),  # SELECT PASSWORD('secret')
    ("*14e65567abdb5135d0cfd9a70b3032c179a49ee7", Form.NATIVE, False),
    ("*14E65567ABDB5135D0CFD9A70B3032C179A49EE", Form.PLAIN, False),
    ("*14E65567ABDB5135D0CFD9A70B3032C179A49EE7\n", Form.PLAIN, False),
    ("0x1234", Form.PLAIN, False),
    ("$A$", Form.PLAIN, False),
    ("$A$005$" + "s" * 20 + "d" * 43, Form.CACHING_SHA2, False),
]


@pytest.mark.parametrize(("stored", "form", "empty"), PARSED)
def test_stored_forms(stored: str, form: Form, empty: bool) -> None:
    credential = Credential.parse(stored)
    assert (credential.form, credential.empty) == (form, empty)
    if form is Form.NATIVE:
        assert credential.secret == auth.native_stage2(b"secret")
        assert credential.check_password(b"secret")
        assert not credential.check_password(b"Secret")
    if form is Form.PLAIN:
        assert credential.check_password(stored.encode())


BAD_HASHES = [
    "$A$005$" + "s" * 20 + "d" * 42,
    "$A$005$" + "s" * 20 + "d" * 44,
    "$A$000$" + "s" * 20 + "d" * 43,
    "$A$005$" + "s" * 19 + "$" + "d" * 43,
    "0x" + (b"$A$005$" + b"s" * 20 + b"d" * 42).hex(),
]


@pytest.mark.parametrize("stored", BAD_HASHES)
def test_a_damaged_hash_is_not_taken_for_a_password(stored: str) -> None:
    with pytest.raises(ValueError, match="caching_sha2_password hash"):
        Credential.parse(stored)


def test_a_credential_does_not_show_its_secret() -> None:
    for stored in (
        "secret",
        "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7",
        auth.store_caching_sha2(b"secret", 1000),
    ):
        text = repr(Credential.parse(stored))
        assert "secret" not in text.replace("secret=", "")
        assert "14E65" not in text.upper()
        assert "salt" not in text


@settings(max_examples=20, deadline=None)
@given(st.binary(max_size=auth.MAX_PASSWORD))
def test_a_password_can_be_stored(password: bytes) -> None:
    stored = auth.store_caching_sha2(password, 1000)
    assert stored.isprintable()
    assert Credential.parse(stored).check_password(password)
    assert not Credential.parse(stored).check_password(password + b".")


def test_too_long_a_password_costs_nothing() -> None:
    for stored in ("x" * 300, auth.store_caching_sha2(b"x" * 300, 1000)):
        assert not Credential.parse(stored).check_password(b"x" * 300)


@pytest.mark.parametrize("rounds", [0, 999, 1500, 4_096_000])
def test_rounds_must_fit_the_stored_form(rounds: int) -> None:
    with pytest.raises(ValueError, match="multiple of 1000"):
        auth.store_caching_sha2(b"x", rounds)


@pytest.fixture(scope="module")
def rsa() -> RsaKey:
    return RsaKey()


def test_rsa_carries_a_password_to_its_nonce(rsa: RsaKey) -> None:
    for password in (b"", b"secret", b"x" * 200):
        encrypted = auth.rsa_encrypt(password, NONCE, rsa.public_pem)
        assert len(encrypted) == 256
        assert rsa.decrypt(encrypted, NONCE) == password
        with pytest.raises(ValueError, match="not an encrypted password"):
            rsa.decrypt(encrypted, NONCE[::-1])


def test_rsa_is_that_of_pymysql(rsa: RsaKey) -> None:
    from pymysql import _auth

    assert rsa.decrypt(_auth.sha2_rsa_encrypt(b"secret", NONCE, rsa.public_pem), NONCE) == b"secret"


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_rsa_refuses_other_bytes(junk: bytes) -> None:
    with pytest.raises(ValueError, match="not an encrypted password"):
        SHARED.decrypt(junk, NONCE)


SHARED = RsaKey()


@settings(deadline=None)
@given(st.binary(max_size=300) | st.just(b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"))
def test_a_bad_public_key_is_a_value_error(pem: bytes) -> None:
    with pytest.raises(ValueError, match="public key"):
        auth.rsa_encrypt(b"secret", NONCE, pem)


def test_a_password_too_long_for_the_key_is_a_value_error(rsa: RsaKey) -> None:
    with pytest.raises(ValueError, match=r".+"):
        auth.rsa_encrypt(b"x" * 250, NONCE, rsa.public_pem)


def test_an_existing_key_can_be_used() -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric import rsa as plain_rsa

    def pem(key: plain_rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
        return key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    stored = pem(plain_rsa.generate_private_key(public_exponent=65537, key_size=2048))
    first, second = RsaKey(stored), RsaKey(stored)
    assert second.decrypt(auth.rsa_encrypt(b"secret", NONCE, first.public_pem), NONCE) == b"secret"
    for bad in (b"", b"junk", pem(ec.generate_private_key(ec.SECP256R1()))):
        with pytest.raises(ValueError, match=r".+"):
            RsaKey(bad)
