"""The sockets at which clients connect."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from pathlib import Path

from config.address import Address
from config.settings import Settings


def bind_sockets(settings: Settings) -> list[socket.socket]:
    """The listening sockets, bound (port 0 has become a free one). OSError, whose text names the address,
    when one is taken.
    """
    sockets: list[socket.socket] = []
    for listener in settings.listen:
        try:
            sockets.append(_bound(listener.address))
        except OSError:
            for sock in sockets:
                sock.close()
            raise
    return sockets


def try_addresses(settings: Settings) -> None:
    """OSError, whose text names the address, when a worker could not listen there."""
    for sock in bind_sockets(settings):
        sock.close()
    status = settings.status.listen
    if status is not None and status.path is None:
        _bound(status).close()


def _bound(address: Address) -> socket.socket:
    try:
        return _opened(address)
    except OSError as error:
        raise OSError(f"cannot listen at {address}: {error.strerror}") from error


def _opened(address: Address) -> socket.socket:
    if address.path is not None:
        path = Path(address.path)
        with suppress(FileNotFoundError):
            if path.is_socket():
                path.unlink()
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.bind(str(path))
        os.chmod(path, 0o777)
    else:
        family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            sock.bind((address.host, address.port))
        except OSError:
            sock.close()
            raise
    sock.setblocking(False)
    return sock
