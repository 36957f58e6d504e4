"""COM_RESET_CONNECTION: the session as after log-in, but for its current database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.backends.settings import Settings
from proxy.engine.tracked import choose_relay
from proxy.session.outcome import Outcome

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def reset_connection(client: Exchange) -> None:
    """Roll back, forget settings, variables and what is tied to a connection; then OK."""
    session = client.session
    session.prepared.clear()
    release_all(client)
    session.settings = session.login_settings
    if not session.env.mariadb:  # its character sets are the server's own then
        session.settings = Settings.of(client.services.collations.settings_for(0) | session.reading)
    session.apply(Outcome(0, 0, diagnostics=[]))
    session.scatter_writes = False
    session.transaction_mode = session.user.transaction_mode
    session.refresh_env()
    choose_relay(client)
    client.reply_ok()


def release_all(client: Exchange) -> None:
    """Give back every connection the session holds; the pool resets those in a transaction or with session
    state.
    """
    transaction = client.session.transaction
    conns = [*transaction.end(), *transaction.held.values()]
    transaction.held.clear()
    transaction.ties.clear()
    for conn in conns:
        client.services.backends.release(conn)
