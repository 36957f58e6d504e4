"""A host's connections: which one serves a statement, when to open another, who waits. Decisions only, no
I/O.

`PoolState` is told what happened (`give`, `forget`, `expired`) and answers what to do (`assign`). It never
awaits and never touches a socket, so its rules are tested without any. `backends.host` acts on its answers.

Rules: the connection that was used last and already has the session's settings and database is best (the
server's caches are warm and no SET travels); else any idle one of the same variant; else a new one while
`max_connections` allows; else wait, at most `max_waiting` of them, each until its deadline. Users are served
in turns, each user's own statements first come first served. No user has more than its share of the
connections and of the queue (`Share`), so that whatever one holds, something is left for the others.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from proxy.backends.settings import Settings

from .waiting import NOBODY, Share, Waiter, Waiting

if TYPE_CHECKING:
    from .connection import BackendConnection

#: A connection's *variant* is what was agreed on at its log-in, since a client agreed on it too: the sum of
#: CLIENT_FOUND_ROWS: affected rows count matched ones;
FOUND_ROWS = 1
#: MARIADB_CLIENT_EXTENDED_METADATA: column definitions have one field more.
EXTENDED_METADATA = 2
#: CLIENT_QUERY_ATTRIBUTES, for sessions that have sent some (see `attributed`).
ATTRIBUTES = 4
CAPABILITY_SETS = 8
#: And the number of the server account it is logged in as, times VARIANTS. 0 is the proxy's own, which never
#: runs a client's text.
OWN = 0


def account_of(capability_set: int) -> int:
    """The number of the account that connections of this variant are logged in as."""
    return capability_set // CAPABILITY_SETS


#: How many idle connections are looked at for one that already fits.
_LOOK = 8


class PoolState:
    """The connections of one host. `size` counts open and opening ones."""

    __slots__ = ("_places", "busy", "idle", "opening", "share", "waiting")

    def __init__(self, max_connections: int, max_waiting: int, user_share: float = 1.0) -> None:
        self.share = Share(max_connections, user_share)
        self._places = Share(max_waiting, user_share)
        #: By variant, most recently used last.
        self.idle: tuple[list[BackendConnection], ...] = tuple([] for _ in range(CAPABILITY_SETS))
        #: Those in use, each with its user.
        self.busy: dict[BackendConnection, str] = {}
        self.opening = 0
        self.waiting: Waiting = Waiting()

    @property
    def max_connections(self) -> int:
        return self.share.most

    @property
    def max_waiting(self) -> int:
        return self._places.most

    def serve(self, accounts: int) -> None:
        """Serve so many accounts, or more: all of them share `max_connections`."""
        missing = accounts * CAPABILITY_SETS - len(self.idle)
        self.idle += tuple([] for _ in range(missing))

    @property
    def idle_count(self) -> int:
        return sum(map(len, self.idle))

    @property
    def size(self) -> int:
        return len(self.busy) + self.idle_count + self.opening

    def take(
        self, settings: Settings, database: str | None, capability_set: int, user: str = NOBODY
    ) -> BackendConnection | None:
        """The best idle connection, now busy; None when there is none, or the user has its share."""
        idle = self.idle[capability_set]
        if not idle or (len(self.busy) >= self.share.scarce and not self.may(user)):
            return None
        conn = idle[-1]
        if conn.settings is settings and (database is None or conn.database == database):
            idle.pop()
        else:
            conn = self._fitting(idle, settings, database)
        self.busy[conn] = user
        return conn

    def _fitting(
        self, idle: list[BackendConnection], settings: Settings, database: str | None
    ) -> BackendConnection:
        for index in range(len(idle) - 1, max(-1, len(idle) - 1 - _LOOK), -1):
            conn = idle[index]
            if conn.settings is settings and (database is None or conn.database == database):
                del idle[index]
                return conn
        return idle.pop()

    def has(self, user: str) -> int:
        """How many connections the user has in use."""
        return list(self.busy.values()).count(user)

    def may(self, user: str) -> bool:
        """Whether the user may have one more, if one is free."""
        return self.share.allows(self.has(user), len(self.busy), user)

    def _coming(self) -> list[Waiter[BackendConnection]]:
        """Who waits for the connections that are being opened, and one more who would for another."""
        if not self.waiting:
            return []
        return self.waiting.coming(self.opening + 1, Counter(self.busy.values()), len(self.busy), self.share)

    def can_open(self) -> bool:
        """Whether a new connection may be opened for the waiting ones."""
        return self.size < self.max_connections and len(self._coming()) > self.opening

    def misfit(self) -> BackendConnection | None:
        """An idle connection of another variant to close, when only its place can make room for one that is
        needed.
        """
        if self.size < self.max_connections:
            return None
        coming = self._coming()
        if len(coming) <= self.opening:
            return None
        needed = coming[-1].capability_set
        return self.spare(needed, of_account=False)

    def spare(self, capability_set: int, *, of_account: bool) -> BackendConnection | None:
        """The connection that has been idle for longest of those that are not of this variant, for another in
        its place; `of_account`: of the same account, whose limit it is.
        """
        others = (
            idle
            for other, idle in enumerate(self.idle)
            if idle
            and other != capability_set
            and (not of_account or account_of(other) == account_of(capability_set))
        )
        found = min(others, key=lambda idle: idle[0].idle_since, default=None)
        return found.pop(0) if found else None

    def wait(self, waiter: Waiter[BackendConnection]) -> bool:
        """Queue `waiter`; False when the queue is full, or its user's share of it."""
        if not self._has_place(waiter.user):
            self.waiting.keep(lambda one: not one.cancelled)
            if not self._has_place(waiter.user):
                return False
        self.waiting.add(waiter)
        return True

    def _has_place(self, user: str) -> bool:
        return self._places.allows(self.waiting.of(user), self.waiting.before(user), user)

    def give(self, conn: BackendConnection, now: float) -> Waiter[BackendConnection] | None:
        """`conn` is free and clean: who gets it next, or None and it is idle. With this one more may be free
        for others who wait: `assign` tells.
        """
        del self.busy[conn]  # KeyError: it was not lent, so somebody gave it back twice
        waiter = self._next(conn.capability_set) if self.waiting.queues else None
        if waiter is not None:
            self.busy[conn] = waiter.user
            return waiter
        conn.idle_since = now
        self.idle[conn.capability_set].append(conn)
        return None

    def assign(self) -> tuple[Waiter[BackendConnection], BackendConnection] | None:
        """One who waits and an idle connection for it, which is busy now: a user had its share and has it no
        more.
        """
        for capability_set, idle in enumerate(self.idle):
            waiter = self._next(capability_set) if idle else None
            if waiter is not None:
                conn = self._fitting(idle, waiter.settings, waiter.database)
                self.busy[conn] = waiter.user
                return waiter, conn
        return None

    def _next(self, capability_set: int) -> Waiter[BackendConnection] | None:
        """Take the next one out of the queue that a connection of this variant is for."""
        have = Counter(self.busy.values())
        used = len(self.busy)
        return self.waiting.next(capability_set, lambda user: self.share.allows(have[user], used, user))

    def forget(self, conn: BackendConnection) -> None:
        """`conn` is closed."""
        self.busy.pop(conn, None)
        idle = self.idle[conn.capability_set]
        if conn in idle:
            idle.remove(conn)

    def next_capability_set(self) -> int:
        """The variant that the next connection to open needs: the first waiter's that no opening one
        will serve.
        """
        coming = self._coming()
        return coming[-1].capability_set if coming else 0

    def expired(self, now: float) -> list[Waiter[BackendConnection]]:
        """Waiters whose deadline has passed, and cancelled ones, leave the queue; the former are returned."""
        gone = self.waiting.keep(lambda waiter: not waiter.cancelled and waiter.deadline > now)
        return [waiter for waiter in gone if not waiter.cancelled]

    def all_waiting(self) -> list[Waiter[BackendConnection]]:
        """Everybody leaves the queue: the host cannot be reached."""
        return [waiter for waiter in self.waiting.keep(lambda waiter: False) if not waiter.cancelled]

    def waiting_for(self, account: int) -> list[Waiter[BackendConnection]]:
        """Those who need this account leave the queue: the host refuses it."""
        gone = self.waiting.keep(lambda waiter: account_of(waiter.capability_set) != account)
        return [waiter for waiter in gone if not waiter.cancelled]

    def idle_too_long(self, before: float, keep: int) -> list[BackendConnection]:
        """Idle connections not used since `before`, taken out, as long as more than `keep` stay open."""
        gone: list[BackendConnection] = []
        for idle in self.idle:
            while idle and idle[0].idle_since < before and self.size > keep:
                gone.append(idle.pop(0))
        return gone
