"""Connections for the proxy's own questions: under the settings of a log-in, whoever had them before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from proxy.backends.settings import LOGIN, Settings
from proxy.errors import ProxyError
from proxy.wire.packets import Err, frame

from .collect import Collector
from .connection import BackendConnection
from .pool import OWN

if TYPE_CHECKING:
    from . import Backends

_CLIENT: Final = "character_set_client"
_UTF8: Final = (b"utf8mb4", b"'utf8mb4'", b"utf8mb3", b"'utf8mb3'")


@asynccontextmanager
async def own_connection(
    backends: Backends, host: str, account: int = OWN
) -> AsyncIterator[BackendConnection]:
    """One under the proxy's own account, or another (`Backends.capability_set_of`). Raises ProxyError."""
    pool = backends.pool(host)
    conn = await pool.connection(LOGIN, None, account)
    try:
        await apply(conn, LOGIN)
        yield conn
    finally:
        pool.release(conn)


async def change_database(conn: BackendConnection, database: str) -> Err | None:
    """COM_INIT_DB, and the server's error. A server reads the name in the connection's character set, which
    may lack its letters: then UTF-8 is set first. Raises ProxyError.
    """
    if not database.isascii() and conn.settings.get(_CLIENT) not in _UTF8:
        await apply(conn, conn.settings.with_values({_CLIENT: _UTF8[0]}))
    reply = await Collector().run(conn, frame(b"\x02" + database.encode("utf-8", "surrogateescape")))
    if reply.err is None:
        conn.database = database
    return reply.err


async def apply(conn: BackendConnection, settings: Settings) -> None:
    """Bring a connection into a state. Raises ProxyError."""
    packets, count = settings.packets_from(conn.settings)
    if not count:
        return
    reply = await Collector().run(conn, packets, count - 1)
    if reply.err is not None:
        conn.pinned = True  # nobody else gets it before a reset
        raise ProxyError("settings_failed", host=conn.host, reason=reply.err.text())
    conn.has(settings)
