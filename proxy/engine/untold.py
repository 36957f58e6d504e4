"""Errors of servers that a client is not told of: something else becomes of its statement."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from proxy.backends.connection import BackendConnection
from proxy.engine import lease
from proxy.engine.diagnostics import opens
from proxy.engine.failures import ENDED
from proxy.engine.outside_transaction import is_about_other_text
from proxy.engine.waiting_room import fenced, read_only
from proxy.wire.packets import Err

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def untold(client: Exchange, conn: BackendConnection, error: Err) -> Err | None:
    """The error of a statement on `conn` that its client is not told of; None: it is told.

    That the master takes no writes, while another may be coming: nothing has run. Or that the server ends the
    connection: what the client is told is what becomes of its transaction. Or that a text is no SQL which the
    proxy has written: a server is asked about the client's.
    """
    if conn.scanner.rows_begun or client.phase is not None:
        return None
    if error.code in ENDED:
        transaction = client.session.transaction
        within = transaction.explicit or not client.session.autocommit or conn.in_transaction
        return error if within and transaction.ending != b"COMMIT" else None
    if is_about_other_text(client, error):
        return error
    error = fenced(error, client.snapshot.topology)
    if read_only(error) and client.services.waiting_room.takes(client, replace(error, host=conn.host)):
        return error
    return None


def moved(client: Exchange, conn: BackendConnection, error: Err, *, fresh: bool) -> None:
    """A statement has not run, as the master takes no writes: another may come. `fresh`: the session had not
    had the connection before.
    """
    transaction = client.session.transaction
    if fresh and transaction.held.get(conn.host) is conn:
        del transaction.held[conn.host]  # the transaction has not begun there
        transaction.opened -= {conn.host}
    problem = lease.refused_by_master(client, conn.host, error)
    if isinstance(problem, Err) and transaction.held.get(conn.host) is not conn:
        conn.unclean = conn.unclean or opens(client.session, conn)
        lease.free(conn)
    client.fail(problem)
