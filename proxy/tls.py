"""TLS over a transport: the same for a client that logs in to us and for our connections to servers.

`TlsTransport` stands between a transport and the protocol that used it. It is the transport's protocol and
the protocol's transport, takes the bytes that came too early along, and does all its work in the callbacks:
no task, no future. asyncio's own upgrade is a coroutine that starts with an empty buffer, so a hello that
came in one read with the request for TLS would be lost to it.

What a read brought is given to the protocol in one piece, and a write to the transport is one write.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

#: Plain text of one record.
_RECORD = 1 << 14


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """`raw` encrypted. `ready` is called once TLS stands and the peer is who it should be, `failed` with the
    reason when it is not; the connection is closed then.

    `server_name`: we are the client, and the context may check this name; None: we are the server. Whatever
    the peer sends from now on, `early` first, is TLS or the end of the connection.
    """

    __slots__ = (
        "_closing",
        "_failed",
        "_incoming",
        "_outgoing",
        "_protocol",
        "_raw",
        "_ready",
        "_stands",
        "_tls",
        "_unsent",
    )

    def __init__(
        self,
        raw: asyncio.Transport,
        protocol: asyncio.Protocol,
        context: ssl.SSLContext,
        *,
        ready: Callable[[], None],
        failed: Callable[[str], None],
        server_name: str | None = None,
    ) -> None:
        super().__init__()
        self._raw = raw
        self._protocol = protocol
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_name is None, server_hostname=server_name
        )
        self._ready = ready
        self._failed = failed
        self._stands = False
        self._closing = False
        self._unsent: list[bytes] = []

    def start(self, early: bytes = b"") -> None:
        """Begin the handshake, with the bytes that came already."""
        self._raw.set_protocol(self)
        self.data_received(early)

    # -- the raw transport's protocol
    # ------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        self._incoming.write(data)
        if self._stands or self._shake_hands():
            self._give()

    def eof_received(self) -> bool:
        if self._stands:
            self._protocol.eof_received()
        else:
            self._give_up("the peer closed the connection")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._stands and not self._closing:
            self._failed(str(exc) if exc else "the peer closed the connection")
        self._closing = True
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def _shake_hands(self) -> bool:
        """Whether TLS stands now."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            return False
        except (ssl.SSLError, ssl.CertificateError, ValueError) as error:
            self._flush()  # the alert that tells the peer why
            self._give_up(reason_of(error))
            return False
        self._stands = True
        self._flush()
        self._ready()
        self._ready = self._failed = _nothing  # they keep whoever logged in alive
        unsent, self._unsent = self._unsent, []
        for data in unsent:
            self.write(data)
        return True

    def _give(self) -> None:
        """Decrypt what is whole, and give it on in one piece."""
        tls, incoming = self._tls, self._incoming
        chunks: list[bytes] = []
        over = False
        try:
            while incoming.pending or tls.pending():
                chunk = tls.read(_RECORD)
                if not chunk:
                    over = True  # close_notify
                    break
                chunks.append(chunk)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            over = True  # forged, damaged, or no TLS: what was whole before it is genuine
        if self._outgoing.pending:
            self._flush()
        if chunks:
            self._protocol.data_received(chunks[0] if len(chunks) == 1 else b"".join(chunks))
        if over and not self._closing:
            self._protocol.eof_received()
            self.close()

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            self._raw.write(data)

    def _give_up(self, reason: str) -> None:
        if not self._closing:
            self._closing = True
            self._raw.close()
            self._failed(reason)

    # -- the protocol's transport
    # -------------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._closing or not data:
            return
        if not self._stands:
            self._unsent.append(bytes(data))
            return
        try:
            self._tls.write(data)  # into memory: it takes all
        except ssl.SSLError:
            self.abort()
            return
        self._raw.write(self._outgoing.read())

    def close(self) -> None:
        """Write what is buffered and close_notify, then close."""
        if self._closing:
            return
        self._closing = True
        if self._stands:
            with suppress(ssl.SSLError):  # always raised: nobody waits for the peer's own goodbye
                self._tls.unwrap()
            self._flush()
        self._raw.close()

    def abort(self) -> None:
        self._closing = True
        self._raw.abort()

    def is_closing(self) -> bool:
        return self._closing or self._raw.is_closing()

    def pause_reading(self) -> None:
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._raw.resume_reading()

    def is_reading(self) -> bool:
        return self._raw.is_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = cast(asyncio.Protocol, protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._raw.get_write_buffer_limits()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._raw.set_write_buffer_limits(high, low)

    def can_write_eof(self) -> bool:
        return False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Also `ssl_object`, `cipher` (name, protocol, bits) and `peercert`."""
        if name == "ssl_object":
            return self._tls
        if name == "cipher":
            return self._tls.cipher()
        if name == "peercert":
            return self._tls.getpeercert()
        return self._raw.get_extra_info(name, default)


def _nothing(reason: str = "") -> None:
    """Neither is called again."""


def reason_of(error: Exception) -> str:
    """Why TLS failed, in a few words for a log line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is refused: {error.verify_message}"
    reason = getattr(error, "reason", None)
    if isinstance(reason, str) and reason:
        return reason.lower().replace("_", " ")
    return str(error) or type(error).__name__
