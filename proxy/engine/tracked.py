"""The relay of a session that wants to be told of its transactions: servers' OK packets are added to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proxy.backends.connection import BackendConnection
from proxy.session.tracking import follows_replies
from proxy.wire.constants import Status
from proxy.wire.packets import tracked_ok_packet
from proxy.wire.replies import DONE
from rewriter.route.origins import Origins

from .composed import composed, leaves_database
from .relay import Relay

if TYPE_CHECKING:
    from .exchange import Exchange

_STATE_WORDS = (b"PREPARE", b"DEALLOCATE", b"CREATE TEMPORARY", b"DROP TEMPORARY", b"DROP PREPARE")


class TrackedRelay(Relay):
    """Takes the usual way for every statement, and looks at what comes back."""

    __slots__ = ()

    def ask(self, host: str, sql: bytes, origins: Origins | None, shard: bytes) -> None:
        del shard
        self.run(host, sql, origins=origins)

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        said, session = conn.scanner, self.client.session
        tracker = session.tracker
        ends = said.state == DONE and self._ends_one_part(conn)
        if tracker is not None and said.err is None and not ends:
            ok = said.ok
            if ok is None:
                if said.rows_begun:  # else it is the request for a file
                    tracker.touched |= {"R", "S"}
            elif data[4:5] == b"\0":
                word = self.sql.lstrip()[:20].upper()
                tracker.changed = word.startswith(_STATE_WORDS)
                tracker.touched |= _touched(word, self.sql)
                if self.base is not None and ok.insert_id:
                    data = composed(conn, data, self.base)
                    ok = said.ok or ok
                left = self.effects is not None and leaves_database(session, self.effects.database)
                state = tracker.take(session, bool(ok.status & Status.IN_TRANS), left=left)
                self.client.transport.write(tracked_ok_packet(data[3], ok, state) if state else data)
                return
        super().reply_data(conn, data)


def _touched(word: bytes, sql: bytes) -> set[str]:
    """What a statement without a result set has done to tables, by its words."""
    if not word.startswith((b"INSERT", b"REPLACE", b"LOAD", b"UPDATE", b"DELETE")):
        return set()
    return {"R", "W"} if b"SELECT" in sql.upper() else {"W"}


def is_told(client: Exchange) -> bool:
    """Whether its `session_track_*` variables ask for it."""
    return client.session.tracker is not None and follows_replies(client.session)


def choose_relay(client: Exchange) -> None:
    """Give the client the relay that its `session_track_*` variables ask for."""
    wanted = TrackedRelay if is_told(client) else Relay
    if type(client.relay) is not wanted:
        client.relay = wanted(client)
