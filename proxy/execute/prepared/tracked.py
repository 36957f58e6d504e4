"""The relays of prepared statements for sessions that want to be told of their transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.engine.tracked import TrackedRelay, is_told

from .once import OnceRelay
from .statements import StatementRelay

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import Statement


class TrackedStatementRelay(StatementRelay, TrackedRelay):
    """COM_STMT_EXECUTE of what one host runs."""

    __slots__ = ()


class TrackedOnceRelay(OnceRelay, TrackedRelay):
    """A statement that is prepared for one time."""

    __slots__ = ()


def statement_relay(client: Exchange, statement: Statement) -> StatementRelay:
    """The relay for one command on a prepared statement."""
    return (TrackedStatementRelay if is_told(client) else StatementRelay)(client, statement)


def once_relay(client: Exchange, statement: Statement) -> OnceRelay:
    """Put a relay for one execution in the place of the client's."""
    return (TrackedOnceRelay if is_told(client) else OnceRelay)(client, statement)
