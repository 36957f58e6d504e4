"""Whether an address is another process's, before this one listens there.

Ports are bound with SO_REUSEPORT: workers share them, and a proxy with the one that it replaces. But then the
kernel gives a part of the clients to each that listens, of one user, whoever they are, and tells nobody: so
an address at which somebody listens already is taken, unless it is the predecessor's.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Final

from config.address import Address

HEADER: Final = "Shardgate-Proxy"
"""Of all answers of a status page: whose it is, as in `StatusPlace.proxy`."""

#: Seconds that who listens at the status address may take to say whose it is.
_PATIENCE = 2.0
#: Seconds that the workers of a proxy that was killed get to notice it, and to stop listening.
_ORPHANS = 3.0
_PAUSE = 0.05
#: The state of who listens, and from linux/sock_diag.h, inet_diag.h and netlink.h: what asks for sockets.
_LISTEN = 10
_SOCK_DIAG, _BY_FAMILY, _DUMP, _DONE = 4, 20, 0x301, 3
_HEAD, _ASK, _PORT, _SOCKET_ID = Struct("=IHHII"), Struct("=BBBBI"), Struct("!H"), 48
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
#: Who listens speaks something else than HTTP.
_OTHER = "?"
_HTTP, _END = b"HTTP/", b"\r\n\r\n"
#: Bytes of an answer's head: who sends more, or goes on and on, is no status page.
_LONGEST_HEAD = 1 << 14


@dataclass(frozen=True, slots=True)
class StatusPlace:
    """What decides whether the status address may be shared. `proxy`: the name of this proxy, which its
    predecessor and its successor have, too; empty where it can have none. `predecessor`: there is one, or
    this worker takes another's place.
    """

    proxy: str = ""
    predecessor: bool = False


ALONE: Final = StatusPlace()
"""The address is shared with nobody."""


def cannot_listen(address: Address, setting: str, error: OSError) -> OSError:
    """An error that names address and setting, and says what to do."""
    reason = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)
    text = f"cannot listen at {address} ({setting}): {reason}"
    if error.errno == errno.EADDRINUSE:
        ask = "ss -lxp" if address.is_unix else "ss -ltnp"
        text += f". Choose another address, or end the process that has it ({ask} tells which)"
    return OSError(text)


def wait_free(address: Address, setting: str) -> None:
    """Return when nobody listens there; OSError when somebody goes on to."""
    end = time.monotonic() + _ORPHANS
    while taken(address):
        if time.monotonic() > end:
            raise cannot_listen(address, setting, _in_use())
        time.sleep(_PAUSE)


def claim_status(address: Address, place: StatusPlace) -> None:
    """OSError when somebody else listens at the status address than this proxy, its predecessor, or one that
    still drains. Blocks for some seconds at most.
    """
    if not taken(address):
        return
    whose = _whose(address)
    mine = whose == place.proxy if whose and place.proxy else False
    # one that hangs, or is of a version that had no name yet
    unknown = place.predecessor and not whose
    if not mine and not unknown:
        raise cannot_listen(address, "status.listen", _in_use())


def taken(address: Address) -> bool:
    """Whether somebody listens there. Who only holds a port for another does not."""
    if address.path is not None:
        return _answers_at(address.path)
    if not address.port or not _conflicts(address):
        return False
    try:
        return any(address.port in _listening(family) for family in (socket.AF_INET, socket.AF_INET6))
    except OSError:  # a kernel that is not asked so
        return _in_proc(address.port)


def _listening(family: socket.AddressFamily) -> set[int]:
    """The ports at which somebody listens, of the kernel: /proc/net/tcp goes through all connections."""
    found: set[int] = set()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as sock:
        asked = _ASK.pack(family, socket.IPPROTO_TCP, 0, 0, 1 << _LISTEN) + bytes(_SOCKET_ID)
        sock.settimeout(_PATIENCE)
        sock.send(_HEAD.pack(_HEAD.size + len(asked), _BY_FAMILY, _DUMP, 1, 0) + asked)
        while True:
            data = sock.recv(1 << 16)
            while data:
                size, kind, *_ = _HEAD.unpack_from(data)
                if kind == _DONE:
                    return found
                if kind != _BY_FAMILY or size < _HEAD.size:
                    raise OSError("the kernel does not say who listens")
                found.add(_PORT.unpack_from(data, _HEAD.size + 4)[0])  # behind family, state and two more
                data = data[-(-size // 4) * 4 :]


def _in_proc(port: int) -> bool:
    text = f":{port:04X}"
    return any(
        line[1].endswith(text) and line[3] == f"{_LISTEN:02X}"
        for name in ("tcp", "tcp6")
        for line in _lines(Path("/proc/net", name))
    )


def _in_use() -> OSError:
    return OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))


def _conflicts(address: Address) -> bool:
    """Whether a socket of somebody who shares nothing would be refused."""
    with socket.socket(family_of(address), socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((address.host, address.port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def family_of(address: Address) -> socket.AddressFamily:
    """Of a TCP address."""
    return socket.AF_INET6 if ":" in address.host else socket.AF_INET


def _lines(path: Path) -> list[list[str]]:
    try:
        return [line.split() for line in path.read_text().splitlines()[1:]]
    except OSError:
        return []


def _answers_at(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        try:
            sock.connect(path)
        except BlockingIOError:  # too many wait there
            return True
        except OSError:
            return False
    return True


def _whose(address: Address) -> str | None:
    """Whose status page is there: the proxy's name, "" when it has none, `_OTHER` when it is no page; None
    when nobody answers.
    """
    answer, end = b"", time.monotonic() + _PATIENCE
    with suppress(OSError), closing(_connected(address)) as sock:
        sock.sendall(b"HEAD /status.js HTTP/1.0\r\nHost: localhost\r\n\r\n")
        while answer[:5] == _HTTP[: len(answer)] and _END not in answer and time.monotonic() < end:
            data = sock.recv(4096)
            if not data or len(answer) > _LONGEST_HEAD:
                break
            answer += data
    if not answer:
        return None
    if not answer.startswith(_HTTP):
        return _OTHER
    head = answer.decode("latin-1").split("\r\n")
    found = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
    return found.get(HEADER.lower(), "")


def _connected(address: Address) -> socket.socket:
    if address.path is None:
        host = _WILDCARDS.get(address.host, address.host)
        return socket.create_connection((host, address.port), _PATIENCE)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(_PATIENCE)
    try:
        sock.connect(address.path)
    except OSError:
        sock.close()
        raise
    return sock
