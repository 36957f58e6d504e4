"""`SecureRaw`: a raw client over TLS whose handshake's bytes a test can cut, delay and mix."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.integration.raw import CAPABILITIES, SSL, Raw, Reply, packet

Deliver = Callable[[socket.socket, bytes], None]


def ssl_request(seq: int = 1) -> bytes:
    """The packet that asks for TLS."""
    return packet(struct.pack("<IIB23x", CAPABILITIES | SSL, 1 << 24, 45), seq)


def trusting(ca: Path) -> ssl.SSLContext:
    """A client's context that trusts one authority, and checks the name."""
    return ssl.create_default_context(cafile=str(ca))


class Wrapped:
    """A socket's few methods, over TLS by memory."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, name: str = "127.0.0.1") -> None:
        self.sock = sock
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname=name)

    def hello(self) -> bytes:
        """The first bytes of the handshake."""
        with suppress(ssl.SSLWantReadError):
            self.tls.do_handshake()
        return self.outgoing.read()

    def shake_hands(self, deliver: Deliver) -> None:
        while True:
            try:
                self.tls.do_handshake()
            except ssl.SSLWantReadError:
                deliver(self.sock, self.outgoing.read())
                self._more()
            else:
                deliver(self.sock, self.outgoing.read())
                return

    def _more(self) -> None:
        data = self.sock.recv(1 << 16)
        if not data:
            raise ConnectionResetError("closed in the middle of TLS")
        self.incoming.write(data)

    def sendall(self, data: bytes) -> None:
        self.tls.write(data)
        self.sock.sendall(self.outgoing.read())

    def recv(self, count: int) -> bytes:
        while True:
            try:
                return self.tls.read(count)
            except ssl.SSLWantReadError:
                try:
                    self._more()
                except ConnectionResetError:
                    return b""
            except ssl.SSLZeroReturnError:
                return b""

    def close(self) -> None:
        self.sock.close()


def all_at_once(sock: socket.socket, data: bytes) -> None:
    if data:
        sock.sendall(data)


def byte_by_byte(sock: socket.socket, data: bytes) -> None:
    for n in range(len(data)):
        sock.sendall(data[n : n + 1])


class SecureRaw(Raw):
    """`Raw` that asks for TLS after the greeting. `together`: request and hello leave in one write."""

    def __init__(
        self,
        host: str,
        port: int,
        context: ssl.SSLContext,
        *,
        together: bool = True,
        deliver: Deliver = all_at_once,
        **arguments: Any,
    ) -> None:
        super().__init__(host, port, **arguments)
        self.context = context
        self.together = together
        self.deliver = deliver
        self.wrapped: Wrapped | None = None

    def greeting(self) -> Reply | None:
        refused = super().greeting()
        if refused is not None:
            return refused
        assert self.server_capabilities & SSL, "TLS is not offered"
        self.wrapped = Wrapped(self.sock, self.context)
        hello = self.wrapped.hello()
        if self.together:
            self.deliver(self.sock, ssl_request() + hello)
        else:
            self.deliver(self.sock, ssl_request())
            self.deliver(self.sock, hello)
        self.wrapped.shake_hands(self.deliver)
        self.sock = self.wrapped  # type: ignore[assignment]  # as much of a socket as Raw needs
        return None

    def response(self, *arguments: Any, **keywords: Any) -> bytes:
        """The packet that answers the greeting: the second within TLS."""
        keywords["flags"] = keywords.get("flags", 0) | SSL
        data = super().response(*arguments, **keywords)
        return data[:3] + b"\x02" + data[4:]

    def answer_full(self, password: str, seq: int) -> bytes:
        """Over TLS a password goes as it is."""
        return packet(password.encode() + b"\0", seq)
