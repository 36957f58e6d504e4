"""A client logs in to us: one state machine per connection, used again by COM_CHANGE_USER.

    change_user(response) ▶ auth switch
    start(response) ──scramble fits──────────────────────────────▶ Done
       │  other plugin                                              ▲
       ├────────────▶ auth switch ──scramble──▶ checked ────────────┤
       │  caching_sha2 and the hash cannot check a scramble         │
       └────────────▶ 0x04 ──(0x02 ──▶ public key)──▶ password ─────┘      anything else ▶ Failed

Every method gives a tuple of steps to carry out in order: `Send`s, and at the end `Done` (send OK) or
`Failed` (send error 1045 and close). The same packets go to a user who does not exist, who has another
password, or whose packet was nonsense: an unknown name is given a decoy credential of the kinds the real
users have, checked like theirs, and always wrong. Nothing here raises on a client's bytes.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto

from .auth import (
    CACHING_SHA2,
    FAST_OK,
    FULL_AUTHENTICATION,
    NATIVE,
    REQUEST_PUBLIC_KEY,
    Credential,
    Form,
    RsaKey,
    make_nonce,
    native_stage2,
    native_verify,
    sha2_stage2,
    sha2_verify,
)
from .constants import Capability
from .handshake import HandshakeResponse

_AUTH_SWITCH = b"\xfe"
_MORE_DATA = b"\x01"


@dataclass(frozen=True, slots=True)
class Send:
    """Send this payload as one packet with the next sequence number."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class Done:
    """The client is `user`. The OK packet is the caller's to send."""

    user: str
    plugin: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The client gets error 1045, whatever the reason; `reason` is for the log and holds nothing secret.

    `password_used` says what its text ends with: "(using password: YES)" or NO.
    """

    user: str
    reason: str
    password_used: bool


Step = Send | Done | Failed
Lookup = Callable[[str], Credential | None]


class PasswordCache:
    """What a full authentication taught: per user, stage 2 of the password that fitted the stored hash.

    An entry counts only for the very credential it was learnt with, so a changed password is never let in by
    the cache.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Credential, bytes]] = {}

    def get(self, user: str, credential: Credential) -> bytes | None:
        entry = self._known.get(user)
        return entry[1] if entry is not None and entry[0] == credential else None

    def put(self, user: str, credential: Credential, password: bytes) -> None:
        self._known[user] = (credential, sha2_stage2(password))

    def clear(self) -> None:
        """Forget all, as FLUSH PRIVILEGES does."""
        self._known.clear()


class Decoys:
    """Credentials for names that do not exist: the same one for the same name as long as `secret` is the
    same.

    `credentials` are the real users'; a decoy has the form of one of them, so that the plugin a client is
    sent to tells nothing. Workers and restarted processes should share `secret` (32 bytes), or a name's
    plugin would change with them.
    """

    def __init__(self, credentials: Iterable[Credential] = (), secret: bytes | None = None) -> None:
        models = [credential for credential in credentials if not credential.empty]
        self._models = models or [Credential(Form.PLAIN, b"?")]
        self._secret = secret or secrets.token_bytes(32)

    def for_user(self, user: str) -> Credential:
        """A credential that looks like a real one and fits no password anybody knows."""
        name = user.encode("utf-8", "surrogatepass")
        noise = hmac.digest(self._secret, name, "sha512")
        model = self._models[int.from_bytes(noise[:8], "little") % len(self._models)]
        if model.form is Form.NATIVE:
            return Credential(Form.NATIVE, noise[8:28])
        if model.form is Form.PLAIN:
            return Credential(Form.PLAIN, noise[8:40])
        return Credential(Form.CACHING_SHA2, noise[8:51], hashlib.sha256(noise).digest()[:20], model.rounds)


@dataclass(slots=True)
class Authority:
    """What all connections of a process share. `lookup` may change what it answers at any time (a reload).

    A user in `tls_only` who comes without TLS is treated like one who does not exist, and learns no more.
    """

    lookup: Lookup
    rsa: RsaKey = field(default_factory=RsaKey)
    decoys: Decoys = field(default_factory=Decoys)
    cache: PasswordCache = field(default_factory=PasswordCache)
    tls_only: frozenset[str] = frozenset()


class _State(Enum):
    IDLE = auto()
    SCRAMBLE = auto()  # an auth switch was sent
    PASSWORD = auto()  # 0x04 was sent: the password itself, or a request for the public key
    ENCRYPTED = auto()  # the public key was sent


class ServerAuthenticator:
    """Checks one client at a time.

    `nonce` is the greeting's (20 bytes) and serves the auth switch too; the attribute is the latest.
    `secure`: the transport is a Unix socket or, with `tls`, TLS, so a password may cross it in clear text.
    `announced` is the greeting's plugin.
    """

    def __init__(
        self,
        authority: Authority,
        nonce: bytes,
        *,
        secure: bool,
        tls: bool = False,
        announced: str = CACHING_SHA2,
    ) -> None:
        self._authority = authority
        self.nonce = nonce
        self._secure = secure or tls
        self._tls = tls
        self._announced = announced
        self._state = _State.IDLE
        self._user = ""
        self._known = False
        self._barred = False
        self._credential = Credential(Form.PLAIN, b"?")
        self._plugin = ""

    def start(self, response: HandshakeResponse) -> tuple[Step, ...]:
        """A handshake response."""
        theirs = self._begin(response)
        can_switch = Capability.PLUGIN_AUTH in response.capabilities
        # libmariadb and libmysqlclient answer with nothing when their default plugin is not the announced
        # one: that is no empty password, they wait for a switch, and take nothing else.
        waits = can_switch and not response.auth and theirs != self._announced
        if self._plugin == theirs and not waits:
            return self._check_scramble(response.auth)
        if not can_switch:
            return self._fail(f"the client cannot switch to {self._plugin}", bool(response.auth))
        return self._switch()

    def change_user(self, response: HandshakeResponse) -> tuple[Step, ...]:
        """COM_CHANGE_USER. As MySQL does, ask again with a new nonce: the old one may have been used already.

        A client that does not know auth switches is checked with the old one, and so is a right answer of
        mysql_native_password: MariaDB asks for no other, and libmariadb gives none.
        """
        if Capability.PLUGIN_AUTH not in response.capabilities:
            return self.start(response)
        if self._begin(response) == self._plugin == NATIVE and self._known and response.auth:
            step = self._check_scramble(response.auth)
            if isinstance(step[0], Done):
                return step
        self.nonce = make_nonce()
        return self._switch()

    def receive(self, payload: bytes) -> tuple[Step, ...]:
        """The client's answer to the last `Send`."""
        state, self._state = self._state, _State.IDLE
        if state is _State.SCRAMBLE:
            return self._check_scramble(payload)
        if state is _State.PASSWORD and payload == REQUEST_PUBLIC_KEY:
            self._state = _State.ENCRYPTED
            return (Send(_MORE_DATA + self._authority.rsa.public_pem),)
        if state in (_State.PASSWORD, _State.ENCRYPTED):
            return self._check_password(payload, clear=self._secure and state is _State.PASSWORD)
        return self._fail("a packet that was not asked for", bool(payload))

    def _begin(self, response: HandshakeResponse) -> str:
        """Look up who it is, choose the plugin to check, and give the client's own."""
        self._state = _State.IDLE
        self._user = response.user
        self._barred = not self._tls and response.user in self._authority.tls_only
        credential = None if self._barred else self._authority.lookup(response.user)
        self._known = credential is not None
        self._credential = credential or self._authority.decoys.for_user(response.user)
        theirs = NATIVE if response.plugin is None else response.plugin
        self._plugin = self._choose(theirs)
        return theirs

    def _choose(self, theirs: str) -> str:
        """The plugin to check, given the client's: one switch at most, so it must be right."""
        form = self._credential.form
        if form is Form.CACHING_SHA2:
            return CACHING_SHA2
        if form is Form.NATIVE:
            # caching_sha2_password can check it too, but only with the password itself. Clients of MySQL 9,
            # which lack the native plugin, get in that way; but many refuse to send a password, even
            # encrypted, without TLS.
            return CACHING_SHA2 if theirs == CACHING_SHA2 and self._secure else NATIVE
        if theirs in (CACHING_SHA2, NATIVE):
            return theirs
        # A client that knew the announced plugin would have taken it: let it try the other one.
        return NATIVE if self._announced == CACHING_SHA2 else CACHING_SHA2

    def _switch(self) -> tuple[Step, ...]:
        self._state = _State.SCRAMBLE
        return (Send(_AUTH_SWITCH + self._plugin.encode("ascii") + b"\0" + self.nonce + b"\0"),)

    def _check_scramble(self, scramble: bytes) -> tuple[Step, ...]:
        if scramble in (b"", b"\0"):
            if self._known and self._credential.empty:
                return (Done(self._user, self._plugin),)
            return self._fail("no password given", False)
        credential = self._credential
        if self._plugin == NATIVE:
            plain = credential.form is Form.PLAIN
            stage2 = native_stage2(credential.secret) if plain else credential.secret
            if native_verify(scramble, self.nonce, stage2) and self._known:
                return (Done(self._user, NATIVE),)
            return self._fail("wrong password", True)
        if len(scramble) != 32:
            return self._fail("a caching_sha2_password scramble has 32 bytes", True)
        learnt = self._authority.cache.get(self._user, credential)
        if credential.form is Form.PLAIN:
            learnt = sha2_stage2(credential.secret)
        if learnt is not None and sha2_verify(scramble, self.nonce, learnt) and self._known:
            return Send(_MORE_DATA + FAST_OK), Done(self._user, CACHING_SHA2)
        self._state = _State.PASSWORD
        return (Send(_MORE_DATA + FULL_AUTHENTICATION),)

    def _check_password(self, payload: bytes, *, clear: bool) -> tuple[Step, ...]:
        if clear:
            if payload[-1:] != b"\0":
                return self._fail("a clear-text password that does not end with NUL", True)
            password = payload[:-1]
        else:
            try:
                password = self._authority.rsa.decrypt(payload, self.nonce)
            except ValueError:
                return self._fail("not a password encrypted with this server's public key", True)
        if not (self._credential.check_password(password) and self._known):
            return self._fail("wrong password", True)
        if self._credential.form is not Form.PLAIN:
            self._authority.cache.put(self._user, self._credential, password)
        return (Done(self._user, CACHING_SHA2),)

    def _fail(self, reason: str, password_used: bool) -> tuple[Step, ...]:
        if self._barred:
            reason = "this user must connect over TLS"
        elif not self._known:
            reason = f"unknown user ({reason})"
        return (Failed(self._user, reason, password_used),)
