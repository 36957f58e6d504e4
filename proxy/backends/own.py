"""Connections for the proxy's own questions: under the settings of a log-in, whoever had them before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from proxy.backends.settings import LOGIN, Settings
from proxy.errors import ProxyError

from .collect import Collector
from .connection import BackendConnection
from .pool import OWN

if TYPE_CHECKING:
    from . import Backends


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


async def apply(conn: BackendConnection, settings: Settings) -> None:
    """Bring a connection into a state. Raises ProxyError."""
    packets, count = settings.packets_from(conn.settings)
    if not count:
        return
    reply = await Collector().run(conn, packets, count - 1)
    if reply.err is not None:
        conn.pinned = True  # nobody else gets it before a reset
        raise ProxyError("settings_failed", host=conn.host, reason=reply.err.text())
    conn.settings = settings
