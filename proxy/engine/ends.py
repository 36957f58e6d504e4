"""After a reply: what the session must still learn from the connection, and whether it keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

import structlog

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.engine.naming import logical_rows
from proxy.engine.trace import counts, generated, trace, trace_code, trace_routine
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic, Diagnostics
from proxy.session.reading import READING
from proxy.wire.constants import Status
from proxy.wire.packets import frame, query_packet
from rewriter.plans import Values
from rewriter.text.effects import Effects
from rewriter.text.found_rows import PRIMED

log = structlog.get_logger("proxy")

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.state import Session

_IN_TRANS = int(Status.IN_TRANS)
_SHOW_WARNINGS = frame(b"\x03SHOW WARNINGS")


def needs_settling(session: Session) -> bool:
    """Whether an error may have changed, or left open, a transaction."""
    return session.transaction.explicit or bool(session.transaction.held) or not session.autocommit


def opens(session: Session, conn: BackendConnection) -> bool:
    """Whether a transaction may be open on `conn` after a statement of the session, which opens none by
    itself.
    """
    transaction = session.transaction
    return transaction.explicit or not session.autocommit or transaction.held.get(conn.host) is conn


async def settle(
    client: Exchange, conn: BackendConnection, effects: Effects | None = None, literals: Values = ()
) -> Diagnostics:
    """After an error, with warnings or other `effects`: learn what the session must know before the
    connection is given back. Returns the warnings.

    An ERR packet has no status flags, and a deadlock ends the transaction: the reply to SHOW WARNINGS tells,
    and what else there is to know of the error. Warnings live on the server's connection, so they are fetched
    while it is still ours. A connection that does not answer is closed.
    """
    said = conn.scanner
    failed, warnings, ok, rows = said.err is not None, said.warnings, said.ok, said.rows
    found = Diagnostics()
    try:
        async with asyncio.timeout(5):
            if warnings or failed or effects is None:
                found = await fetch_warnings(conn, warnings)
            if effects is not None:
                # LAST_INSERT_ID(value) holds even if the statement fails
                asks = effects.insert_id == "ask" if failed else generated(effects, ok, literals) is None
                tells = not failed or effects.found_rows == PRIMED
                counted = not (tells and counts(client.session, effects, ok, rows, literals))
                await trace(client.session, conn, effects, ok if asks else None, asks=asks, counted=counted)
            if effects is not None and effects.routine:
                conn.unclean = True
                await trace_routine(client, conn, changed=effects.changed)
                # it may have set how texts are read: the session's own is said anew before its next statement
                conn.settings = conn.settings.unsure_of(READING)
            elif effects is not None and (effects.calls or effects.changed):
                await trace_code(client, conn, effects)
            if effects is not None and effects.defines:
                services = client.services
                await services.routines.changed(services.serving.topology, conn.host)
            if effects is not None and effects.tables and not failed:
                await client.services.serving.tables_changed()
    except (ProxyError, TimeoutError):
        conn.close()
    except Exception as error:  # the client gets its reply all the same, and nobody else this connection
        log.error("what a statement left behind cannot be read", host=conn.host, exc_info=error)
        conn.close()
    found[:] = logical_rows(client, found)
    return found


async def fetch_warnings(conn: BackendConnection, total: int = 0) -> Diagnostics:
    """SHOW WARNINGS of the statement that `conn` ran last. `total`: how many its reply said there are."""
    reply = await Collector().run(conn, _SHOW_WARNINGS)
    found = Diagnostics()
    found.total = total
    for level, code, message in reply.values():
        text = (message or b"").decode("utf-8", "replace")
        found.append(Diagnostic((level or b"").decode(), int(code or 0), text))
    return found


def give_back(client: Exchange, conn: BackendConnection, *, failed: bool = False) -> None:
    """After a complete reply: keep `conn` while it carries a transaction or session state, else free it.
    `failed`: the reply was an error.
    """
    transaction = client.session.transaction
    if not (conn.in_transaction or conn.tied or transaction.held):
        client.services.backends.release(conn)
    else:
        give_all_back(client, [conn], failed=failed)


def give_all_back(client: Exchange, conns: Iterable[BackendConnection], *, failed: bool = False) -> None:
    """After complete replies, with none of the session's connections at work: keep those that carry a
    transaction or session state, free the others.
    """
    transaction = client.session.transaction
    ended = False
    free: list[BackendConnection] = []
    for conn in conns:
        if conn.in_transaction:
            transaction.held[conn.host] = conn
            continue
        if transaction.held.get(conn.host) is conn:
            del transaction.held[conn.host]
            implicit = not (client.session.autocommit or conn.tied)  # held for its transaction only
            ended = ended or implicit or conn.host in transaction.opened
        if transaction.keeps(conn):
            transaction.held[conn.host] = conn
        else:
            free.append(conn)
    for conn in free:
        client.services.backends.release(conn)
    if ended and (transaction.explicit or not client.session.autocommit):
        transaction_ended_by_server(client, rolled_back=failed)


def discard(client: Exchange, conn: BackendConnection) -> None:
    """The client is gone in the middle of a statement: close `conn`, and end the statement on the server."""
    held = client.session.transaction.held
    if held.get(conn.host) is conn:
        del held[conn.host]
        client.session.transaction.ties.pop(conn.host, None)
    client.services.backends.discard(conn)


def transaction_ended_by_server(client: Exchange, rolled_back: bool) -> None:
    """A host ended its part of the transaction by itself; the others follow, as on one server.

    A deadlock rolls back, an implicit commit (DDL) commits.
    """
    transaction = client.session.transaction
    ended = transaction.end()
    for other in transaction.held.values():  # the session is tied to them
        if other.in_transaction and not other.closed and other.receiver is None:
            other.tell(query_packet(b"ROLLBACK" if rolled_back else b"COMMIT"))
            other.scanner.status &= ~_IN_TRANS
    for other in ended:
        if rolled_back:
            client.services.backends.release(other)  # still in a transaction: the reset rolls it back
        else:
            client.services.spawn(_commit(client, other), "implicit commit")


async def _commit(client: Exchange, conn: BackendConnection) -> None:
    try:
        await Collector().run(conn, query_packet(b"COMMIT"))
    except ProxyError:
        conn.close()
    client.services.backends.release(conn)


def forget_closed(client: Exchange) -> None:
    """A cancelled task has closed the connections it was using: the session must not use them again."""
    for conn in list(client.session.transaction.held.values()):
        if conn.closed:
            connection_lost_in_transaction(client, conn, None)


def connection_lost_in_transaction(
    client: Exchange, conn: BackendConnection, error: ProxyError | None
) -> None:
    """A connection of the session is gone. If it carried a transaction, the rest is rolled back and the
    client must know.
    """
    transaction = client.session.transaction
    if transaction.held.get(conn.host) is not conn:
        return
    del transaction.held[conn.host]
    transaction.ties.pop(conn.host, None)
    explicit = transaction.explicit or not client.session.autocommit
    for other in transaction.end():
        client.services.backends.release(other)
    if explicit:
        transaction.explicit = True
        lost = f"the connection to {conn.host} was lost"
        transaction.lost = error.text.removesuffix(".") if error is not None else lost
