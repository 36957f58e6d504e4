"""Servers' OK packets with what a session's tracker has to tell."""

from __future__ import annotations

from proxy.backends.connection import BackendConnection
from proxy.session.state import Session
from proxy.session.tracking import Tracker
from proxy.wire.constants import Status
from proxy.wire.packets import tracked_ok_packet
from rewriter.text.effects import Effects

_STATE_WORDS = (b"PREPARE", b"DEALLOCATE", b"CREATE TEMPORARY", b"DROP TEMPORARY", b"DROP PREPARE")


def tracked_reply(
    session: Session,
    tracker: Tracker,
    conn: BackendConnection,
    data: bytes,
    sql: bytes,
    effects: Effects | None,
) -> bytes:
    """`data`, some of the reply to `sql`, as a client with CLIENT_SESSION_TRACK gets it. A result set is only
    noted. Who drops the current database learns that there is none, whatever else is tracked.
    """
    scanned = conn.scanner
    ok = scanned.ok
    left = effects is not None and bool(effects.database) and session.database == effects.database
    if scanned.err is not None or not (session.tracks_replies or left):
        return data
    if ok is None:
        if scanned.rows_begun:  # else it is the request for a file
            tracker.touched |= {"R", "S"}
        return data
    if data[4:5] != b"\0":
        return data  # there are result sets before it
    in_transaction = None
    if session.tracks_replies:
        word = sql.lstrip()[:20].upper()
        tracker.changed = word.startswith(_STATE_WORDS)
        tracker.touched |= _touched(word, sql)
        in_transaction = bool(ok.status & Status.IN_TRANS)
    state = tracker.take(session, in_transaction, left=left)
    return tracked_ok_packet(data[3], ok, state) if state else data


def _touched(word: bytes, sql: bytes) -> set[str]:
    """What a statement without a result set has done to tables, by its words."""
    if not word.startswith((b"INSERT", b"REPLACE", b"LOAD", b"UPDATE", b"DELETE")):
        return set()
    return {"R", "W"} if b"SELECT" in sql.upper() else {"W"}
