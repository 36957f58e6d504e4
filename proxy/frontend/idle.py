"""What time asks of sessions that do nothing: they are ended, or their transactions are, and they let go of
what their last statement needed.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, cast

import structlog

from proxy.engine.lease import transaction_ended_by_server
from proxy.errors import ProxyError

if TYPE_CHECKING:
    from proxy.engine.services import Services

    from .connection import ClientConnection

log = structlog.get_logger("session")

#: Bytes of a statement that a session may keep after it.
_KEPT = 4096


def look_at_idle(services: Services, now: float) -> None:
    """Silent clients go, as by `wait_timeout`: their own or the servers', and by timeouts.idle_client. Idle
    transactions end by timeouts.idle_transaction.
    """
    timeouts = services.settings.timeouts
    limit, in_transaction = timeouts.idle_client or inf, timeouts.idle_transaction or inf
    for client in cast("list[ClientConnection]", list(services.clients.sessions.values())):
        if not client.ready:
            continue
        idle, session = now - client.begun, client.session
        if idle > limit or idle > session.idle_limit:
            _disconnect(client)
        elif idle > in_transaction and session.transaction.open and not session.transaction.lost:
            _roll_back(client, in_transaction)
        if len(client.sql) > _KEPT or client.held or client.again is not None:
            client.forget_statement()


def _disconnect(client: ClientConnection) -> None:
    log.info("client idle too long", client=client.session.id)
    if client.session.env.flavour.ends_with_error:
        client.write_error(ProxyError("idle_too_long"), 0)
    client.close()


def _roll_back(client: ClientConnection, seconds: float) -> None:
    """End the transaction. The client hears of it at its next statement."""
    log.info("transaction idle too long", client=client.session.id, user=client.session.user.name)
    transaction = client.session.transaction
    transaction_ended_by_server(client, rolled_back=True)
    transaction.refuse("transaction_idle", f"{seconds:g}")
