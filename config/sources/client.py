"""A client of ZooKeeper as the settings say: who it is, how it connects, and why it does not.

Why a connection fails kazoo tells in its log only, anew at every try. So that log goes to level debug, and
the reason is kept here in plain words (`trouble`). What kazoo sends to authenticate is never logged.
"""

from __future__ import annotations

import logging
import re
import socket
import ssl
import sys
from collections.abc import Callable
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import AuthFailedError, NoAuthError, SessionClosedRequireSaslError
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.serialization import Auth
from kazoo.protocol.states import KazooState, KeeperState
from kazoo.security import make_digest_acl

from config.settings import ZooKeeper
from config.tls import OutgoingTls

KAZOO_LOG: Final = "shardgate.topology.kazoo"
_RETRY: Final = {"max_tries": -1, "delay": 0.1, "backoff": 2, "max_delay": 1.0}
"""kazoo alone would wait twice as long after each try, up to an hour: longer than a session lives."""

_WORDS: Final = (
    (re.compile(r"Connection dropped: socket connection error: None"), "no answer in time"),
    (re.compile(r"Connection dropped: socket connection error: (.+)"), ""),
    (re.compile(r"Connection dropped: (?:socket connection broken|invalid.*)"), "it closes the connection"),
    (re.compile(r"Connection dropped: (.+)"), ""),
    (re.compile(r"Connection time-out"), "no answer in time"),
    (re.compile(r"Cannot resolve \S+: (?:\[.*?\] )?(.+)"), ""),
    (re.compile(r"AUTH_FAILED"), "it does not take this user or certificate"),
)


class Connection:
    """`client` is kazoo's, not started yet. `told` gets each new reason why there is no connection, in one of
    kazoo's threads.
    """

    def __init__(self, settings: ZooKeeper, told: Callable[[str], None] = lambda reason: None) -> None:
        self.settings = settings
        self._told = told
        self._troubles: dict[str, str] = {}
        self._peer = ""
        self._given_up = self._was_connected = False
        tls = settings.tls if settings.tls is not None and settings.tls.mode != "off" else None
        named: dict[str, Any] = {}
        if settings.user is not None:
            named["auth_data"] = [("digest", f"{settings.user}:{settings.secret}")]
            named["default_acl"] = [make_digest_acl(settings.user, settings.secret, all=True)]
        self.client = KazooClient(
            hosts=settings.hosts,
            timeout=settings.session_timeout,
            handler=_Handler(tls, self._connecting),
            use_ssl=tls is not None,
            connection_retry=_RETRY,
            logger=_Says(self._connecting, self._failed),
            **named,
        )
        self.client.add_listener(self._changed)

    @property
    def trouble(self) -> str:
        """Why there is no connection, server by server; empty while there is one."""
        troubles = list(self._troubles.items())  # kazoo's threads change them
        return "; ".join(f"{peer}: {text}" if peer else text for peer, text in troubles)

    @property
    def ended(self) -> bool:
        """Whether kazoo has given up, as it does when it is not let in; `start` tries again."""
        return self._given_up and self.client.client_state == KeeperState.CLOSED

    def start(self) -> Any:
        """Connect, and again whenever the connection is lost. The event is set while there is one."""
        self._given_up = False
        return self.client.start_async()

    def refusal(self, error: Exception, path: str, doing: str) -> str:
        """Why `path` cannot be read, written, …: `doing` is the participle."""
        if not isinstance(error, NoAuthError | AuthFailedError):
            return f"{path} cannot be {doing}: {type(error).__name__} {error}".rstrip()
        user = self.settings.user
        if user is None:
            return f"{path} may not be {doing} without a user: give topology.zookeeper.user and its password"
        return (
            f"{path} may not be {doing} by user {user}: the password of topology.zookeeper is wrong, "
            "or the ACL does not name this user (digest) with that right"
        )

    def _connecting(self, peer: str) -> None:
        self._peer = peer

    def _changed(self, state: str) -> None:
        if state == KazooState.CONNECTED:
            self._was_connected = True
            self._troubles.clear()

    def _failed(self, text: str, final: bool) -> None:
        self._given_up = self._given_up or final
        if self.settings.tls is None and text == "it closes the connection" and not self._was_connected:
            text += " at once: perhaps this port wants TLS (topology.zookeeper.tls)"
        if self._troubles.get(self._peer) != text:
            self._troubles[self._peer] = text
            self._told(f"{self._peer}: {text}" if self._peer else text)


class _Says(logging.LoggerAdapter[logging.Logger]):
    """kazoo's log."""

    def __init__(self, connecting: Callable[[str], None], failed: Callable[[str, bool], None]) -> None:
        super().__init__(logging.getLogger(KAZOO_LOG), {})
        self._connecting = connecting
        self._failed = failed

    def log(self, level: int, msg: object, *args: object, **named: Any) -> None:
        if any(isinstance(one, Auth) for one in args):
            return  # the password is in it
        if msg == "Cannot resolve %s: %s":
            self._connecting(str(args[0]))
        if level >= logging.WARNING:
            self._look_for_reason(str(msg) % args if args else str(msg), named.get("exc_info"))
        super().log(min(level, logging.DEBUG), msg, *args, **named)

    def _look_for_reason(self, text: str, raised: object) -> None:
        if raised:
            error = sys.exc_info()[1]
            needed = isinstance(error, SessionClosedRequireSaslError)
            words = "it lets in only who authenticates" if needed else f"{type(error).__name__} {error}"
            self._failed(words, True)
            return
        for pattern, words in _WORDS:
            if found := pattern.match(text):
                self._failed(words or found[1], text.startswith("AUTH_FAILED"))
                return


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]  # kazoo has no types
    """Makes kazoo's sockets. Its own TLS trusts the system's authorities beside those that are given."""

    def __init__(self, tls: OutgoingTls | None, connecting: Callable[[str], None]) -> None:
        super().__init__()
        self._tls = tls
        self._connecting = connecting

    def create_connection(
        self, address: tuple[str, int], hostname: str = "", timeout: float | None = None, **named: Any
    ) -> socket.socket:
        """A connected socket. OSError, in plain words."""
        self._connecting(f"{hostname}:{address[1]}")
        try:
            made = socket.create_connection(address, timeout)
        except TimeoutError:
            raise OSError(0, "no answer in time") from None
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return made
        try:
            return self._tls.context().wrap_socket(made, server_hostname=hostname)
        except (OSError, ValueError) as error:
            made.close()
            raise OSError(0, _tls_words(error)) from error

    def select(
        self, rlist: list[Any], wlist: list[Any], xlist: list[Any], timeout: float | None = None
    ) -> Any:
        """What TLS has read already no system call would tell of."""
        ready = [one for one in rlist if isinstance(one, ssl.SSLSocket) and one.pending()]
        return (ready, [], []) if ready else super().select(rlist, wlist, xlist, timeout)


def _tls_words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ConnectionResetError):
        return "it ends the TLS handshake: perhaps this port speaks no TLS, or wants a certificate"
    if isinstance(error, TimeoutError):
        return "no answer to the TLS handshake: perhaps this port speaks no TLS"
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).lower().replace("_", " ")
        if "alert" in reason and "certificate" in reason:
            return f"it does not take our certificate, topology.zookeeper.tls.cert ({reason})"
        return f"TLS fails: {reason}"
    return str(error)
