"""The settings of the connections that rows are gathered with: read, put in, and used by the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.errors import ProxyError
from proxy.session.settings import LOGIN, Settings

if TYPE_CHECKING:
    from proxy.session.client import ClientConnection

LOADING: Final = LOGIN.with_values(
    {
        "sql_mode": b"'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'",
        "time_zone": b"'+00:00'",
        "autocommit": b"1",
    }
)
"""How rows are put in: whatever is stored on a shard must be taken as it is."""


def resting_settings(client: ClientConnection) -> Settings:
    """The session's settings as the rest is run with: outside of its transaction."""
    settings = client.session.settings.base
    if client.session.autocommit and settings.get("autocommit") is None:
        return settings
    return settings.with_values({"autocommit": b"1"})


def reading_settings(client: ClientConnection) -> Settings:
    """The session's settings as pieces are read with: texts whole, and all rows."""
    changed = {"character_set_results": b"utf8mb4"}
    if client.session.settings.get("sql_select_limit") is not None:
        changed["sql_select_limit"] = b"DEFAULT"
    return client.session.settings.base.with_values(changed)


async def apply(conn: BackendConnection, settings: Settings) -> None:
    """Bring a connection into a state. Raises ProxyError."""
    if conn.settings is settings:
        return
    reply = await Collector().query(conn, settings.statement_from(conn.settings))
    if reply.err is not None:
        raise ProxyError("settings_failed", host=conn.host, reason=reply.err.text())
    conn.settings = settings
