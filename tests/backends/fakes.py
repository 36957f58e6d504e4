"""A transport, an owner and a receiver that only take notes, for connections without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from proxy.backends.connection import BackendConnection
from proxy.errors import ProxyError
from proxy.load import Load
from tests.wire.streams import ok_packet


class FakeTransport(asyncio.Transport):
    """What was written, and whether reading is paused and the connection open."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.writes = 0
        self.reading = True
        self.unsent = 0
        self.open = True
        self.aborted = 0
        self.protocol: asyncio.BaseProtocol | None = None

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        assert self.open, "written to a closed transport"
        self.written += data
        self.writes += 1

    def take(self) -> bytes:
        """What was written since the last time."""
        data = bytes(self.written)
        self.written.clear()
        return data

    def abort(self) -> None:
        self.open = False
        self.aborted += 1

    def close(self) -> None:
        self.open = False

    def is_closing(self) -> bool:
        return not self.open

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def is_reading(self) -> bool:
        return self.reading

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 50000) if name == "peername" else default


class FakeOwner:
    """Counts the connections that said they are closed."""

    def __init__(self) -> None:
        self.load = Load()
        self.closed: list[BackendConnection] = []
        self.kills: list[int] = []

    def kill_soon(self, thread_id: int, capability_set: int, *, query_only: bool = False) -> None:
        self.kills.append(thread_id)

    def connection_closed(self, conn: BackendConnection) -> None:
        self.closed.append(conn)

    def release(self, conn: BackendConnection) -> None:
        pass

    def database_changed(self) -> None:
        pass

    def discard(self, conn: BackendConnection, *, kill: bool) -> None:
        conn.close()


def connection(owner: Any = None, host: str = "h1:3306") -> tuple[BackendConnection, FakeTransport]:
    """A logged-in connection on a fake transport."""
    conn = BackendConnection(host, owner if owner is not None else FakeOwner())
    transport = FakeTransport()
    transport.protocol = cast(asyncio.Protocol, conn)
    conn.transport = transport
    conn.scanner.status = 2
    return conn, transport


class Recorder:
    """A receiver that writes down what it is told. `data` are the bytes of each reply."""

    def __init__(self, *, whole: bool = False) -> None:
        self.whole = whole
        self.data: list[bytes] = [b""]
        self.pieces: list[bytes] = []
        self.done: list[tuple[int | None, int | None]] = []  # affected rows or None, error code or None
        self.lost: list[tuple[str, bool]] = []
        self.given = 0
        self.on_data: Callable[[BackendConnection], None] = lambda conn: None
        self.on_done: Callable[[BackendConnection], None] = lambda conn: None

    @property
    def ends(self) -> int:
        return len(self.done) + len(self.lost)

    own = False

    def accepts(self, conn: Any, changed: bool) -> bool:
        return True

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        assert not self.lost
        assert data
        self.data[-1] += data
        self.pieces.append(data)
        self.on_data(conn)

    def reply_done(self, conn: BackendConnection) -> None:
        assert not self.lost
        said = conn.scanner
        self.done.append((said.ok.affected if said.ok else None, said.err.code if said.err else None))
        self.data.append(b"")
        self.on_done(conn)

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        assert conn.closed
        assert conn.receiver is None
        self.lost.append((error.kind.name, clean))
        self.given = conn.given


OK = ok_packet(1, 2)
"""An OK packet outside of a transaction."""

IN_TRANS = ok_packet(1, 3)
"""An OK packet within one."""
