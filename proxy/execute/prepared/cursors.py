"""The end of a prepared statement's cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.engine.lease import give_back

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import Statement


def end_cursor(client: Exchange, statement: Statement, *, keep: bool = False) -> None:
    """The statement's cursor is over, and its connection need not stay with the session: when it is idle it
    is given back at once. `keep`: the server has closed the cursor, or will at the next EXECUTE; else the
    statement is closed there.
    """
    conn, statement.cursor = statement.cursor, None
    if conn is None or conn.closed:
        return
    known = conn.statements
    if known is not None:
        known.unpin(statement.number, keep=keep)
        if conn.receiver is None and known.leaving:
            conn.transport.write(known.take_leaving())
    transaction = client.session.transaction
    pins = transaction.pins.get(conn.host, [])
    if ("cursor", str(statement.id)) in pins:
        pins.remove(("cursor", str(statement.id)))
    if not pins:
        transaction.pins.pop(conn.host, None)
        if conn.for_cursors:
            conn.pinned = conn.for_cursors = False
        if conn.receiver is None and client.work is None:
            give_back(client, conn)
