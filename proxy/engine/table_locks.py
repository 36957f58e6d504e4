"""Locks of tables and of whole servers, which a session may have on several hosts at a time.

On one server LOCK TABLES releases what the session has locked before, UNLOCK TABLES releases everything, and
a transaction that begins releases the locks of tables. Here each of them reaches every host where the session
has such locks, before the statement runs on its own host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector
from proxy.engine.lease import borrowed, give_back
from proxy.engine.left_behind import pin
from proxy.engine.outside_transaction import syntax_error
from proxy.engine.own_names import frees_names
from proxy.engine.task import TaskWork
from proxy.session.transaction import FLUSHED, LOCKED, PLAINLY, XA
from proxy.wire.packets import query_packet
from rewriter.plans.characteristics import PLAIN
from rewriter.sql.statements.effects import Effects, Pin
from rewriter.sql.statements.forms import State

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_OF_SERVERS: Final = frozenset({State.TABLES.value, State.FLUSH.value, State.BACKUP.value})
"""Kinds of locks of which a statement ends all that the session has."""

_BEGIN_AND_END: Final = (PLAIN.start, b"ROLLBACK" + PLAINLY)
"""Statements that release the locks of LOCK TABLES, and those of FLUSH TABLES … WITH READ LOCK that name
tables, but not the lock of a whole server."""


def releases_first(client: Exchange, effects: Effects | None, host: str, go_on: Callable[[], None]) -> bool:
    """Whether locks on other hosts than the statement's own must be released first: then `go_on`, which sends
    the statement, is called when they are.
    """
    if effects is not None and frees_names(client, effects, host, go_on):
        return True
    if effects is None or not (effects.unpins or LOCKED in effects.pins):
        return False
    pins = client.session.transaction.pins
    if any(XA in kept for kept in pins.values()):
        return False  # a server refuses the statement
    ended = [one for one in effects.unpins if one[0] in _OF_SERVERS]
    statements: Sequence[bytes] = (client.sql,)
    if LOCKED in effects.pins:
        ended, statements = [LOCKED], _BEGIN_AND_END
    hosts = [one for one, kept in pins.items() if one != host and _concerns(kept, ended)]
    if not hosts:
        return False
    TaskWork(client).start(_release(client, host, hosts, statements, ended, go_on))
    return True


def _concerns(kept: Sequence[tuple[str, str]], ended: Sequence[Pin]) -> bool:
    """Whether a host with this state of the session has locks that are ended."""
    kinds = {kind for kind, _ in ended}
    if LOCKED in ended:
        kinds.add(FLUSHED[0])
    return any(kind in kinds for kind, _ in kept)


async def _release(
    client: Exchange,
    host: str,
    hosts: Sequence[str],
    statements: Sequence[bytes],
    ended: Sequence[Pin],
    go_on: Callable[[], None],
) -> None:
    error = await syntax_error(client, host, client.sql)
    if error is not None:  # what is no SQL releases nothing
        client.fail(error)
        return
    for other in hosts:
        async with borrowed(client, other) as conn:
            for sql in statements:
                reply = await Collector().query(conn, sql)
                if reply.err is not None:
                    client.fail(reply.err)
                    return
            pin(client.session, conn, Effects(unpins=tuple(ended)), ())
        give_back(client, conn)
    go_on()


async def unlock_everywhere(client: Exchange) -> None:
    """Release what LOCK TABLES has locked, on all hosts."""
    pins = client.session.transaction.pins
    for host in [host for host, kept in pins.items() if LOCKED in kept]:
        async with borrowed(client, host) as conn:
            await Collector().query(conn, b"UNLOCK TABLES")
            pin(client.session, conn, Effects(unpins=(LOCKED,)), ())
        give_back(client, conn)


def unlock_at_begin(client: Exchange) -> None:
    """Release the locks of tables for a transaction that begins: at once, though its first statement opens
    it.
    """
    transaction = client.session.transaction
    for host, kept in list(transaction.pins.items()):
        if LOCKED in kept or FLUSHED in kept:
            conn = transaction.held[host]
            for sql in _BEGIN_AND_END:
                conn.tell(query_packet(sql))
            kept[:] = [one for one in kept if one != LOCKED]
