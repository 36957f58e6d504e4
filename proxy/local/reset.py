"""COM_RESET_CONNECTION: the session as after log-in, but for its current database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.backends.settings import Settings
from proxy.engine.lease import release_all
from proxy.session.outcome import Outcome

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def reset_connection(client: Exchange) -> None:
    """Roll back, forget settings, variables and what is pinned to a connection; then OK."""
    session = client.session
    session.prepared.clear()
    release_all(client)
    session.settings = session.login_settings
    if session.env.flavour.resets_to_server_charset:  # its character sets are the server's own then
        session.settings = Settings.of(client.services.collations.settings_for(0) | session.reading)
    session.apply(Outcome(0, 0, diagnostics=[]))
    session.scatter_writes = session.with_deleted = False
    session.transaction_mode = session.user.transaction_mode
    session.refresh_env()
    client.reply_ok()
