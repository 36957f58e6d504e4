"""Servers' OK packets with what a session's tracker has to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.backends.connection import BackendConnection
from proxy.backends.settings import TRACKING
from proxy.session.tracking import Tracker
from proxy.wire.constants import Status
from proxy.wire.packets import tracked_ok_packet
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.facts import StatementFacts

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def tracked_reply(
    client: Exchange,
    tracker: Tracker,
    conn: BackendConnection,
    data: bytes,
    facts: StatementFacts,
    effects: Effects | None,
) -> bytes:
    """`data`, some of the reply to a statement, as a client with CLIENT_SESSION_TRACK gets it. A result set
    is only noted. Who drops the current database learns that there is none, whatever else is tracked.
    `facts`: of the statement, where it has no plan.
    """
    session, plan = client.session, client.plan
    scanned = conn.scanner
    ok = scanned.ok
    left = effects is not None and bool(effects.database) and session.database == effects.database
    changed = effects is not None and effects.changed
    if scanned.err is not None or not (session.tracks_replies or left or changed):
        return data
    if ok is None:
        if scanned.rows_begun:  # else it is the request for a file
            tracker.touched |= {"R", "S"}
        return data
    if data[4:5] != b"\0":
        return data  # there are result sets before it
    if changed:
        _tell(tracker, conn, effects)
    in_transaction = None
    if session.tracks_replies:
        tracker.touched |= set((facts if plan is None else plan.facts).touches)
        in_transaction = bool(ok.status & Status.IN_TRANS)
    state = tracker.take(session, in_transaction, left=left)
    return tracked_ok_packet(data[3], ok, state) if state else data


def _tell(tracker: Tracker, conn: BackendConnection, effects: Effects | None) -> None:
    """Have the tracker tell what the server has told."""
    changes = conn.changes
    tracker.changed = tracker.changed or changes.state
    tracker.variables |= {name: value for name, value in changes.variables.items() if name not in TRACKING}
    if changes.database and changes.moved and (effects is None or not effects.database):
        tracker.schema = changes.database
