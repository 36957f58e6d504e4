"""Which replies of a host have stood still for long, and what the host says of them. Decisions only, no I/O.

A server that works on a statement may say nothing for hours; one that hangs says nothing either. So a reply
that stands still is no reason to end its statement, but one to ask the host. If it answers a new connection
it is alive, and tells what its connections do: one that waits for a command (*Sleep*), or that it does not
know, will send no more of a reply. If it answers nothing at all within the same time again, it hangs.
"""

from __future__ import annotations

from collections.abc import Iterable

from .connection import BackendConnection

Mark = tuple[object, ...]


def _mark(conn: BackendConnection) -> Mark:
    """Something that changes with every byte of a reply, or of what the server is still to read."""
    said = conn.scanner
    unsent = conn.transport.get_write_buffer_size()
    return conn.receiver, conn.begun, conn.replies, said.state, said.rows, said.seq, said.partial, unsent


class Silence:
    """The replies that stand still, each with the time since when."""

    def __init__(self, patience: float) -> None:
        """`patience`: seconds without a byte from which on a reply is told of."""
        self.patience = patience
        self._marks: dict[BackendConnection, tuple[Mark, float]] = {}
        self._over: set[BackendConnection] = set()  # the server said that it has nothing more to say

    def look(self, busy: Iterable[BackendConnection], now: float) -> list[BackendConnection]:
        """The connections whose replies stand still. One that is not read from, since its client is slow,
        does not.
        """
        known, self._marks = self._marks, {}
        found = []
        for conn in busy:
            if conn.receiver is None or not conn.transport.is_reading():
                continue
            mark = _mark(conn)
            before, since = known.get(conn, (None, now))
            if before != mark:
                since = now
                self._over.discard(conn)
            self._marks[conn] = mark, since
            if now - since >= self.patience:
                found.append(conn)
        self._over.intersection_update(self._marks)
        return found

    def told(self, asked: Iterable[BackendConnection], working: Iterable[int]) -> list[BackendConnection]:
        """The host answers: of those it was asked for only these threads run something. Those whose reply
        will never end; each must have been told of twice, since a reply may be on its way.
        """
        busy = frozenset(working)
        idle = {conn for conn in asked if conn in self._marks and conn.thread_id not in busy}
        still = [conn for conn in idle if self._marks[conn][0] == _mark(conn)]
        lost = [conn for conn in still if conn in self._over]
        self._over.update(still)
        return lost
