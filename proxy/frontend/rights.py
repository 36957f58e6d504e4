"""What users may do has changed: the sessions that are open have their new rights from their next statement
on. Statements under way end as they began.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import structlog

from config.settings import User as Configured
from proxy.errors import ProxyError
from proxy.wire.auth import Credential, Form
from proxy.wire.server_auth import Authority, Decoys

if TYPE_CHECKING:
    from proxy.engine.clients import Connected
    from proxy.engine.services import Services
    from proxy.session.state import User

log = structlog.get_logger("session")


def set_users(authority: Authority, users: Sequence[Configured], secret: bytes) -> None:
    """Let these users log in. `secret` is for what is made up for unknown names."""
    credentials: dict[str, Credential] = {}
    for user in users:
        if user.secret is not None:
            credentials[user.name] = Credential(Form.PLAIN, user.secret.encode())
        else:
            assert user.password_hash is not None
            credentials[user.name] = Credential.parse(user.password_hash.get_secret_value())
    authority.lookup = credentials.get
    authority.decoys = Decoys(credentials.values(), secret)
    authority.tls_only = frozenset(user.name for user in users if user.require_tls)


def follow_users(services: Services) -> None:
    """Give every session the rights that its user has now, and end those that cannot have them: of users that
    are no more, and those that keep a server's connection (a transaction, a lock, a temporary table) with the
    rights of before, where the servers' account for the user is another now. The same where rights are
    narrower and the session keeps a prepared text or an open handler: EXECUTE and HANDLER … READ name no
    database.
    """
    for client in list(services.clients.sessions.values()):
        session = client.session
        user = services.clients.users.get(session.user.name)
        if user == session.user:
            continue
        if user is None:
            log.info("session ended: its user was removed", client=session.id, user=session.user.name)
            error = _error(client, "its user was removed from the proxy's settings")
            if error is not None and client.ready:
                client.write_error(error, 0)
            client.cut_off()
            continue
        if user.account != session.user.account and _keeps_connection(client):
            event = "session ended: its rights were changed, and it had a connection of the account of before"
            why = "its user's rights were changed while it had a transaction, lock or temporary table"
            _end_soon(client, event, why)
        elif _narrows(session.user, user) and _keeps_judged_text(client):
            event = "session ended: its rights were narrowed, and it had a text judged by those of before"
            why = "its user's rights were narrowed while it had a prepared statement or open handler"
            _end_soon(client, event, why)
        if session.transaction_mode == session.user.transaction_mode:
            session.transaction_mode = user.transaction_mode
        session.become(user)


def _narrows(before: User, now: User) -> bool:
    """Whether a user may do less than before."""
    if now.role < before.role:
        return True
    return now.databases is not None and (before.databases is None or not before.databases <= now.databases)


_JUDGED_BEFORE: Final = frozenset({"prepare", "handler", "routine"})
"""Kinds of pins that stand for text or tables judged when they were opened: EXECUTE names no database."""


def _keeps_judged_text(client: Connected) -> bool:
    pins = client.session.transaction.pins
    return any(kind in _JUDGED_BEFORE for kept in pins.values() for kind, _ in kept)


def _end_soon(client: Connected, event: str, why: str) -> None:
    """End the session behind the statement at work. `event` is for the log, `why` for the client."""
    session = client.session
    log.warning(
        event,
        client=session.id,
        user=session.user.name,
        transaction_rolled_back=session.transaction.open,
    )
    client.end_soon(_error(client, why))


def _error(client: Connected, why: str) -> ProxyError | None:
    """What the client is sent when its session ends: MySQL says why, MariaDB just closes the connection."""
    return ProxyError("session_ended", reason=why) if client.session.env.flavour.ends_with_error else None


def _keeps_connection(client: Connected) -> bool:
    """Whether the session has a connection that it would use again, or may have after the statement at
    work.
    """
    session = client.session
    working = client.work is not None and (session.transaction.explicit or not session.autocommit)
    return bool(session.transaction.held) or working
