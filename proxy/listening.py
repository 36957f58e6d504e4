"""The sockets at which clients connect: bound, or shared with the process that listens there already.

Each worker has a socket of its own for each TCP address (SO_REUSEPORT: the kernel spreads the clients) and
shares those of Unix sockets. The process that was started holds all of them, too, so that clients which wait
at the socket of a worker that has died are served by the next one. A process that starts while another one
listens asks it for its sockets: to close one of two would reset whoever waits there, but what two share has
one queue, and the successor takes from it when the other has closed its end. It asks by the first address of
`listen`: who has another one there is no predecessor, and what such a process has is taken (`taken`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import structlog

from config.address import Address
from config.settings import Listener, Settings

from .taken import StatusPlace, cannot_listen, claim_status, family_of, wait_free

log = structlog.get_logger("proxy")

Door = tuple[Listener, socket.socket]
"""A socket, and what the settings say of its address."""

#: Seconds that the process which listens may take to answer.
_PATIENCE = 5.0
#: Clients that may wait at a socket.
_BACKLOG = 1024
#: File descriptors in one message: Linux takes 253 at most.
_TOGETHER = 250
#: Bytes of a message: addresses, a path of 108 bytes at most each.
_ROOM = 1 << 16
#: struct ucred: pid, uid, gid.
_CREDENTIALS = struct.Struct("3i")


class Listening:
    """The sockets of all workers. OSError, whose text names the address, when one is taken."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.handover: socket.socket | None = None
        self._doors: list[list[Door]] = [[] for _ in range(settings.workers)]
        name = _handover_name(settings)
        found = _ask(name) if name else None
        self.place = StatusPlace(name.strip("\0"), found is not None)
        silent = found == {}  # it hangs: one listens beside it
        found = found or {}
        if name and (handed := found.pop("", [])):
            self.handover = handed[0]
        elif name:
            self.handover = _handover(name)
        try:
            for number, listener in enumerate(settings.listen):
                setting = "listen" if len(settings.listen) == 1 else f"listen[{number}]"
                self._open(listener, found.get(str(listener.address), []), setting, silent)
        except OSError:
            self.close()
            raise

    def _open(self, listener: Listener, found: list[socket.socket], setting: str, silent: bool) -> None:
        address = listener.address
        if not found and not silent:
            if address.path is None:
                _bound(address, setting).close()  # what cannot be shared at all is told at once
            wait_free(address, setting)
        if address.path is not None:
            shared = found and Path(address.path).is_socket()  # who has no such file is reached by nobody
            sock = found[0] if shared else _bound(address, setting)
            for doors in self._doors:
                doors.append((listener, sock))
            return
        if found:
            log.info("listening sockets shared", address=str(address), sockets=len(found))
        for number, sock in enumerate(found):
            self._doors[number % len(self._doors)].append((listener, sock))
        for doors in self._doors[len(found) :]:
            sock = _bound(address, setting)
            doors.append((listener, sock))
            address = Address(address.host, sock.getsockname()[1])  # all at the port that 0 has become

    def of(self, number: int) -> list[Door]:
        """The sockets of a worker."""
        return self._doors[number]

    def keep(self, number: int) -> None:
        """This process is that worker: the others' sockets are none of its."""
        mine = [sock for _, sock in self._doors[number]]
        for sock in self._all():
            if sock not in mine:
                sock.close()
        self._doors = [self._doors[number]]
        self.close_handover()

    def renew(self, number: int) -> None:
        """A worker does not come up: whom the kernel would send there goes to the others."""
        for place, (listener, old) in enumerate(self._doors[number]):
            if listener.address.path is None:
                port = old.getsockname()[1]
                old.close()
                fresh = _bound(Address(listener.address.host, port), "listen")
                self._doors[number][place] = (listener, fresh)

    def close(self) -> None:
        """Listen no more, as far as this process is concerned."""
        for sock in self._all():
            sock.close()
        self.close_handover()

    def hand_over(self) -> None:
        """A successor is at `handover`: share the sockets with it. Who is not of the same user gets none."""
        handover = self.handover
        if handover is None:
            return
        with suppress(OSError):
            asking, _ = handover.accept()
            with closing(asking):
                if _same_user(asking):
                    asking.settimeout(_PATIENCE)
                    shared = [("", handover)]
                    for doors in self._doors:
                        shared += [(str(listener.address), sock) for listener, sock in doors]
                    _send(asking, list({sock: (name, sock) for name, sock in shared}.values()))

    def _all(self) -> Iterator[socket.socket]:
        return (sock for doors in self._doors for _, sock in doors)

    def close_handover(self) -> None:
        """Successors ask somebody else from now on."""
        handover, self.handover = self.handover, None
        if handover is not None:
            handover.close()


def try_status_address(settings: Settings, place: StatusPlace) -> None:
    """OSError, whose text names the address, when the status page could not be there."""
    status = settings.status.listen
    if status is None:
        return
    if status.path is None:
        _bound(status, "status.listen").close()
    claim_status(status, place)


async def serve_clients(make: Callable[[], asyncio.Protocol], sock: socket.socket) -> asyncio.Server:
    """Listen. The file of a Unix socket stays when that ends: a successor may listen there."""
    loop = asyncio.get_running_loop()
    if sock.family != socket.AF_UNIX:
        return await loop.create_server(make, sock=sock, backlog=_BACKLOG)
    if sys.version_info >= (3, 13):
        return await loop.create_unix_server(make, sock=sock, backlog=_BACKLOG, cleanup_socket=False)
    return await loop.create_unix_server(make, sock=sock, backlog=_BACKLOG)


# -- one process after another
# ----------------------------------------------------------------------------------------------------------


def _handover_name(settings: Settings) -> str:
    """Where the sockets are asked for: an abstract name, which exists in the network's namespace as ports do.
    Files do not, so a Unix socket's has its folder in it: containers that share a network have one each.
    Empty where there is nothing that a successor could ask for.
    """
    for listener in settings.listen:
        address = listener.address
        if sys.platform == "linux" and (address.path is not None or address.port):
            text = str(address) + (_folder_of(address.path) if address.path is not None else "")
            return "\0shardgate-" + hashlib.sha256(text.encode()).hexdigest()[:32]
    return ""


def _folder_of(path: str) -> str:
    """Which folder it is in, whatever its name."""
    with suppress(OSError):
        found = os.stat(Path(path).parent)
        return f" {found.st_dev}:{found.st_ino}"
    return ""


def _handover(name: str) -> socket.socket | None:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    try:
        sock.bind(name)
        sock.listen(8)
    except OSError as error:
        log.warning(
            "no successor will share the listening sockets: another process has the name to ask at",
            name=f"@{name[1:]}",
            reason=error.strerror,
            remedy="ss -xlp tells whose it is; restart when it has ended",
        )
        sock.close()
        return None
    return sock


def _send(asking: socket.socket, shared: Sequence[tuple[str, socket.socket]]) -> None:
    """The sockets with their names, a message for each `_TOGETHER`; who asks reads to the end."""
    for at in range(0, len(shared), _TOGETHER):
        some = shared[at : at + _TOGETHER]
        names = json.dumps([name for name, _ in some]).encode()
        try:
            socket.send_fds(asking, [names], [sock.fileno() for _, sock in some])
        except OSError as error:
            log.warning(
                "a successor does not share all listening sockets: who waits at the others is refused",
                reason=error.strerror or str(error),
                sockets=max(0, at - 1),
                left=len(shared) - at,
            )
            return
    log.info("a successor shares the listening sockets", sockets=len(shared) - 1)


def _ask(name: str) -> dict[str, list[socket.socket]] | None:
    """The sockets of the process that listens, by address; the one to ask at by "". Empty: it does not say.
    None: there is none.
    """
    found: dict[str, list[socket.socket]] = {}
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as sock:
        sock.settimeout(_PATIENCE)
        try:
            sock.connect(name)
            if not _same_user(sock):
                return None
            while True:  # a message is never read together with one that has further sockets
                data, handed, _, _ = socket.recv_fds(sock, _ROOM, _TOGETHER, socket.MSG_CMSG_CLOEXEC)
                if not data:
                    return found
                for name, descriptor in zip(json.loads(data), handed, strict=True):
                    found.setdefault(name, []).append(socket.socket(fileno=descriptor))
        except ConnectionRefusedError:
            return None
        except (OSError, ValueError) as error:
            log.warning("the process that listens does not share its sockets", reason=str(error))
            return found


def _same_user(sock: socket.socket) -> bool:
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(credentials)[1]) == os.getuid()


# -- sockets
# ----------------------------------------------------------------------------------------------------------


def _bound(address: Address, setting: str) -> socket.socket:
    try:
        return _opened(address)
    except OSError as error:
        raise cannot_listen(address, setting, error) from error


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
        sock = socket.socket(family_of(address), socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            sock.bind((address.host, address.port))
        except OSError:
            sock.close()
            raise
    sock.setblocking(False)
    return sock
