"""Session state in OK packets, as servers tell it: taken out of replies, which go to clients without it."""

from __future__ import annotations

from .constants import Status
from .packets import Ok, lenenc_bytes, ok_packet, read_lenenc_bytes

_CHANGED = int(Status.SESSION_STATE_CHANGED)
_STATE_CHANGE = 2
"""The entry that says that something of the session was changed: a system or user variable, the current
database, a prepared statement, a temporary table. MySQL has others when a transaction begins or ends."""


def untracked(ok: Ok) -> tuple[Ok, bool]:
    """An OK packet without the session state that it has, and whether the state was changed. ProtocolError
    when it cannot be read.
    """
    info, at = read_lenenc_bytes(ok.info, 0)
    state, _ = read_lenenc_bytes(ok.info, at)
    shown = lenenc_bytes(info) if info else b""
    return ok._replace(status=ok.status & ~_CHANGED, info=shown), _has_change(state or b"")


def rewritten(ok: Ok, seq: int) -> bytes:
    """The packet of `ok`."""
    return ok_packet(
        seq, ok.status, affected=ok.affected, insert_id=ok.insert_id, warnings=ok.warnings, info=ok.info
    )


def _has_change(state: bytes) -> bool:
    at = 0
    while at < len(state):
        kind = state[at]
        _, at = read_lenenc_bytes(state, at + 1)
        if kind == _STATE_CHANGE:
            return True
    return False
