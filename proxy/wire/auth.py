"""Password arithmetic of mysql_native_password and caching_sha2_password, for both ends of a connection.

Names, as in MySQL's sources:

  nonce     20 bytes the server sends in its greeting (no NUL, no `$`)
  scramble  the client's proof that it knows the password, made from password and nonce
  stage 2   hash of the hash of the password: what a server needs to check a scramble

Three stored forms of a password (`Credential.parse`). Every one checks a clear-text password, and beside
that:

  plain text   checks the scrambles of both plugins
  `*HEX40`     SHA1(SHA1(password)), what mysql_native_password stores; checks that plugin's scramble
  `$A$NNN$` + 20 bytes of salt + 43 characters
               what caching_sha2_password stores in `mysql.user.authentication_string`: SHA-256 crypt with NNN
               (hexadecimal) x 1000 rounds. The salt may hold control characters, so `0x…`, as in SHOW CREATE
               USER with print_identified_with_as_hex, is read too.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import cycle, islice

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

NONCE_LENGTH = 20
NATIVE = "mysql_native_password"
CACHING_SHA2 = "caching_sha2_password"

#: caching_sha2_password's messages: the scramble fits; the password itself is needed; send the public key.
FAST_OK = b"\x03"
FULL_AUTHENTICATION = b"\x04"
REQUEST_PUBLIC_KEY = b"\x02"

#: Longest clear-text password that is hashed at all; MySQL's limit. SHA-256 crypt costs more for longer ones.
MAX_PASSWORD = 256

_SALT_LENGTH = 20
_STORED_NATIVE = re.compile(r"\*[0-9A-Fa-f]{40}\Z")
_STORED_HEX = re.compile(r"0x244124[0-9A-Fa-f]+\Z")
_STORED_SHA2 = re.compile(rb"\$A\$([0-9A-Fa-f]{3})\$([^\0$]{20})([./0-9A-Za-z]{43})\Z", re.DOTALL)
_LIKE_SHA2 = re.compile(rb"\$A\$[0-9A-Fa-f]{3}\$")
_B64 = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def make_nonce() -> bytes:
    """20 random 7-bit bytes, none of them NUL (ends a string) or `$` (separates stored fields)."""
    allowed = bytes(byte for byte in range(1, 0x80) if byte != 0x24)
    return bytes(secrets.choice(allowed) for _ in range(NONCE_LENGTH))


def _xor(left: bytes, right: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def native_scramble(password: bytes, nonce: bytes) -> bytes:
    """SHA1(password) XOR SHA1(nonce + SHA1(SHA1(password))), 20 bytes; empty if that is empty."""
    if not password:
        return b""
    stage1 = hashlib.sha1(password).digest()
    stage2 = hashlib.sha1(stage1).digest()
    return _xor(stage1, hashlib.sha1(nonce + stage2).digest())


def native_stage2(password: bytes) -> bytes:
    """SHA1(SHA1(password)), 20 bytes."""
    return hashlib.sha1(hashlib.sha1(password).digest()).digest()


def native_verify(scramble: bytes, nonce: bytes, stage2: bytes) -> bool:
    """Whether `scramble` was made with the password whose `native_stage2` is `stage2`."""
    if len(scramble) != 20:
        return False
    stage1 = _xor(scramble, hashlib.sha1(nonce + stage2).digest())
    return hmac.compare_digest(hashlib.sha1(stage1).digest(), stage2)


def sha2_scramble(password: bytes, nonce: bytes) -> bytes:
    """SHA256(password) XOR SHA256(SHA256(SHA256(password)) + nonce), 32 bytes; empty if that is empty."""
    if not password:
        return b""
    stage1 = hashlib.sha256(password).digest()
    stage2 = hashlib.sha256(stage1).digest()
    return _xor(stage1, hashlib.sha256(stage2 + nonce).digest())


def sha2_stage2(password: bytes) -> bytes:
    """SHA256(SHA256(password)), 32 bytes: what the server's cache keeps after a full authentication."""
    return hashlib.sha256(hashlib.sha256(password).digest()).digest()


def sha2_verify(scramble: bytes, nonce: bytes, stage2: bytes) -> bool:
    """Whether `scramble` was made with the password whose `sha2_stage2` is `stage2`."""
    if len(scramble) != 32:
        return False
    stage1 = _xor(scramble, hashlib.sha256(stage2 + nonce).digest())
    return hmac.compare_digest(hashlib.sha256(stage1).digest(), stage2)


def sha256_crypt(password: bytes, salt: bytes, rounds: int) -> bytes:
    """The 43-character digest of SHA-256 crypt (Drepper's "Unix crypt using SHA-256"), `rounds` even.

    Unlike crypt(3) it takes the salt whole: MySQL's has 20 bytes, crypt's at most 16. 5000 rounds take
    about 3 ms.
    """
    alternate = hashlib.sha256(password + salt + password).digest()
    start = password + salt + _repeat(alternate, len(password))
    length = len(password)
    while length:
        start += alternate if length & 1 else password
        length >>= 1
    digest = hashlib.sha256(start).digest()
    p = _repeat(hashlib.sha256(password * len(password)).digest(), len(password))
    s = _repeat(hashlib.sha256(salt * (16 + digest[0])).digest(), len(salt))
    # A round hashes P, S and the last digest in an order that depends on its number modulo 2, 3 and 7, so
    # that all but the digest repeats after 42 rounds. An even round is digest + tail, an odd one head +
    # digest.
    pairs = [(_middle(p, s, number) + p, p + _middle(p, s, number + 1)) for number in range(0, 42, 2)]
    sha256 = hashlib.sha256
    for tail, head in islice(cycle(pairs), rounds // 2):
        digest = sha256(head + sha256(digest + tail).digest()).digest()
    return _crypt_base64(digest)


def _repeat(block: bytes, length: int) -> bytes:
    return (block * (length // len(block) + 1))[:length]


def _middle(p: bytes, s: bytes, number: int) -> bytes:
    return (s if number % 3 else b"") + (p if number % 7 else b"")


def _crypt_base64(digest: bytes) -> bytes:
    """crypt's own base 64: three bytes that lie ten apart make four characters, the lowest six bits first."""
    out = bytearray()
    for step in range(10):
        places = [step, step + 10, step + 20]
        turn = step % 3
        first, second, third = places[turn * 2 % 3], places[(turn * 2 + 1) % 3], places[(turn * 2 + 2) % 3]
        group = digest[first] << 16 | digest[second] << 8 | digest[third]
        out += bytes(_B64[group >> shift & 63] for shift in (0, 6, 12, 18))
    group = digest[31] << 8 | digest[30]
    return bytes(out + bytes(_B64[group >> shift & 63] for shift in (0, 6, 12)))


class Form(StrEnum):
    """How a password is stored."""

    PLAIN = "plain"
    NATIVE = "native"
    CACHING_SHA2 = "caching_sha2"


@dataclass(frozen=True, slots=True)
class Credential:
    """A user's stored password. Its repr shows the form only.

    PLAIN: `secret` is the password in UTF-8. NATIVE: stage 2, 20 bytes. CACHING_SHA2: the 43-character
    digest, with `salt` (20 bytes) and `rounds`.
    """

    form: Form
    secret: bytes = field(repr=False)
    salt: bytes = field(default=b"", repr=False)
    rounds: int = 0

    @classmethod
    def parse(cls, stored: str) -> Credential:
        """Any of the three forms; what is not one of the two hashed ones is plain text.

        Raises ValueError for what begins like a caching_sha2_password hash and is not one: a hash copied from
        a terminal that swallowed its control characters, say, would else be taken for a password.
        """
        if _STORED_NATIVE.match(stored):
            return cls(Form.NATIVE, bytes.fromhex(stored[1:]))
        raw = stored.encode("utf-8", "surrogateescape")
        if _STORED_HEX.match(stored) and len(stored) % 2 == 0:
            raw = bytes.fromhex(stored[2:])
        if (match := _STORED_SHA2.match(raw)) and (rounds := int(match[1], 16) * 1000):
            return cls(Form.CACHING_SHA2, match[3], match[2], rounds)
        if _LIKE_SHA2.match(raw):
            raise ValueError(
                "a caching_sha2_password hash is $A$, 3 hexadecimal digits, $, 20 + 43 characters"
            )
        return cls(Form.PLAIN, stored.encode("utf-8", "surrogateescape"))

    @property
    def empty(self) -> bool:
        """Whether logging in takes no password at all."""
        return self.form is Form.PLAIN and not self.secret

    def check_password(self, password: bytes) -> bool:
        """Whether the clear-text `password` is the stored one. Constant time; 3 ms per 5000 rounds."""
        if len(password) > MAX_PASSWORD:
            return False
        if self.form is Form.PLAIN:
            return hmac.compare_digest(password, self.secret)
        if self.form is Form.NATIVE:
            return hmac.compare_digest(native_stage2(password), self.secret)
        return hmac.compare_digest(sha256_crypt(password, self.salt, self.rounds), self.secret)


def store_caching_sha2(password: bytes, rounds: int = 5000) -> str:
    """`password` in the form `$A$NNN$…`, with a printable salt so that it can stand in a text file.

    Raises ValueError when `rounds` is not a multiple of 1000 between 1000 and 4095000.
    """
    if rounds % 1000 or not 1 <= rounds // 1000 <= 0xFFF:
        raise ValueError("rounds: a multiple of 1000 between 1000 and 4095000")
    salt = bytes(secrets.choice(_B64) for _ in range(_SALT_LENGTH))
    return f"$A${rounds // 1000:03X}${salt.decode()}{sha256_crypt(password, salt, rounds).decode()}"


_OAEP = padding.OAEP(mgf=padding.MGF1(hashes.SHA1()), algorithm=hashes.SHA1(), label=None)


def _mask(password: bytes, nonce: bytes) -> bytes:
    """XOR with the nonce, repeated. Its own inverse."""
    return _xor(password, _repeat(nonce, len(password)))


def rsa_encrypt(password: bytes, nonce: bytes, public_pem: bytes) -> bytes:
    """The client's answer in a full authentication in the clear: password + NUL, masked, RSA-OAEP encrypted.

    Raises ValueError when `public_pem` is no RSA public key in PEM or is too small for the password.
    """
    try:
        key = serialization.load_pem_public_key(public_pem)
    except Exception as error:  # cryptography raises several kinds, depending on what is wrong with the bytes
        raise ValueError(f"not a public key: {type(error).__name__}") from None
    if not isinstance(key, rsa.RSAPublicKey):
        raise ValueError("not an RSA public key")
    return key.encrypt(_mask(password + b"\0", nonce), _OAEP)


class RsaKey:
    """The server's key pair for full authentication in the clear.

    A key is made on first use (about 0.1 s, up to 1 s on a slow machine): call `warm` before serving, in the
    parent process, so that its workers inherit one key and clients that pinned it can use any of them.
    """

    def __init__(self, private_pem: bytes | None = None) -> None:
        """`private_pem`: an existing RSA key instead of a new one. ValueError when it is not one."""
        self._pem = private_pem
        if private_pem is not None:
            self.warm()

    @cached_property
    def _private(self) -> rsa.RSAPrivateKey:
        if self._pem is None:
            return rsa.generate_private_key(public_exponent=65537, key_size=2048)
        key = serialization.load_pem_private_key(self._pem, password=None)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise ValueError("not an RSA private key")
        return key

    @cached_property
    def public_pem(self) -> bytes:
        """The public key as clients get it: SubjectPublicKeyInfo in PEM."""
        return self._private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    def warm(self) -> None:
        """Make or load the key now."""
        _ = self.public_pem

    def decrypt(self, encrypted: bytes, nonce: bytes) -> bytes:
        """The password out of `rsa_encrypt`'s bytes. ValueError when they are not that; the text never says
        why.
        """
        try:
            clear = _mask(self._private.decrypt(encrypted, _OAEP), nonce)
        except ValueError:
            raise ValueError("not an encrypted password") from None
        if clear[-1:] != b"\0":
            raise ValueError("not an encrypted password")
        return clear[:-1]
