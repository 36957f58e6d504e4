"""A host's connections: which one serves a statement, when to open another, who waits. Decisions only, no
I/O.

`PoolState` is told what happened (`give`, `opened`, `open_failed`, `lost`) and answers what to do. It never
awaits and never touches a socket, so its rules are tested without any. `backends.host` acts on its answers.

Rules: the connection that was used last and already has the session's settings and database is best (the
server's caches are warm and no SET travels); else any idle one of the same variant; else a new one while
`max_connections` allows; else wait, first come first served, at most `max_waiting` of them, each until its
deadline.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from proxy.session.settings import Settings

#: A connection's *variant* is what was agreed on at its log-in, since a client agreed on it too: the sum of
#: CLIENT_FOUND_ROWS: affected rows count matched ones;
FOUND_ROWS = 1
#: MARIADB_CLIENT_EXTENDED_METADATA: column definitions have one field more.
EXTENDED_METADATA = 2
#: CLIENT_QUERY_ATTRIBUTES, for sessions that have sent some (see `attributed`).
ATTRIBUTES = 4
VARIANTS = 8

#: How many idle connections are looked at for one that already fits.
_LOOK = 8


class Poolable(Protocol):
    """What the rules need to know of a connection."""

    settings: Settings
    database: str | None
    variant: int
    idle_since: float


C = TypeVar("C", bound=Poolable)


class Want(Generic[C]):
    """A statement that needs a connection. `granted` or `refused` is called once, unless `cancelled` is set
    before.
    """

    __slots__ = ("cancelled", "database", "deadline", "granted", "refused", "settings", "variant")

    def __init__(
        self,
        settings: Settings,
        database: str | None,
        variant: int,
        deadline: float,
        granted: Callable[[C], None],
        refused: Callable[[Exception], None],
    ) -> None:
        self.settings = settings
        self.database = database
        self.variant = variant
        self.deadline = deadline
        self.granted = granted
        self.refused = refused
        self.cancelled = False


class PoolState(Generic[C]):
    """The connections of one host. `size` counts open and opening ones."""

    def __init__(self, max_connections: int, max_waiting: int) -> None:
        self.max_connections = max_connections
        self.max_waiting = max_waiting
        #: By variant, most recently used last.
        self.idle: tuple[list[C], ...] = tuple([] for _ in range(VARIANTS))
        self.busy: set[C] = set()
        self.opening = 0
        self.waiting: deque[Want[C]] = deque()

    @property
    def idle_count(self) -> int:
        return sum(map(len, self.idle))

    @property
    def size(self) -> int:
        return len(self.busy) + self.idle_count + self.opening

    def take(self, settings: Settings, database: str | None, variant: int) -> C | None:
        """The best idle connection, now busy; None when there is none."""
        idle = self.idle[variant]
        if not idle:
            return None
        conn = idle[-1]
        if conn.settings is settings and (database is None or conn.database == database):
            idle.pop()
        else:
            conn = self._fitting(idle, settings, database)
        self.busy.add(conn)
        return conn

    def _fitting(self, idle: list[C], settings: Settings, database: str | None) -> C:
        for index in range(len(idle) - 1, max(-1, len(idle) - 1 - _LOOK), -1):
            conn = idle[index]
            if conn.settings is settings and (database is None or conn.database == database):
                del idle[index]
                return conn
        return idle.pop()

    def can_open(self) -> bool:
        """Whether a new connection may be opened for the waiting ones."""
        return self.size < self.max_connections and self.opening < len(self.waiting)

    def misfit(self) -> C | None:
        """An idle connection of another variant to close, when only its place can make room for one that is
        needed.
        """
        if self.size < self.max_connections or self.opening >= len(self.waiting):
            return None
        needed = self.next_variant()
        others = (idle for variant, idle in enumerate(self.idle) if idle and variant != needed)
        found = min(others, key=lambda idle: idle[0].idle_since, default=None)
        return found.pop(0) if found else None

    def wait(self, want: Want[C]) -> bool:
        """Queue `want`; False when the queue is full."""
        if len(self.waiting) >= self.max_waiting:
            self._forget_cancelled()
        if len(self.waiting) >= self.max_waiting:
            return False
        self.waiting.append(want)
        return True

    def give(self, conn: C, now: float) -> Want[C] | None:
        """`conn` is free and clean: who gets it next, or None and it is idle."""
        for index, want in enumerate(self.waiting):
            if want.cancelled:
                continue
            if want.variant == conn.variant:
                del self.waiting[index]
                self.busy.add(conn)
                return want
        self.busy.remove(conn)  # KeyError: it was not lent, so somebody gave it back twice
        conn.idle_since = now
        self.idle[conn.variant].append(conn)
        return None

    def forget(self, conn: C) -> None:
        """`conn` is closed."""
        self.busy.discard(conn)
        idle = self.idle[conn.variant]
        if conn in idle:
            idle.remove(conn)

    def _forget_cancelled(self) -> None:
        self.waiting = deque(want for want in self.waiting if not want.cancelled)

    def next_variant(self) -> int:
        """The variant that the next connection to open needs: the first waiter's that no opening one
        will serve.
        """
        live = [want for want in self.waiting if not want.cancelled]
        return live[min(self.opening, len(live) - 1)].variant if live else 0

    def expired(self, now: float) -> list[Want[C]]:
        """Waiters whose deadline has passed, and cancelled ones, leave the queue; the former are returned."""
        late = [want for want in self.waiting if not want.cancelled and want.deadline <= now]
        if late or any(want.cancelled for want in self.waiting):
            self.waiting = deque(want for want in self.waiting if not want.cancelled and want.deadline > now)
        return late

    def all_waiting(self) -> list[Want[C]]:
        """Everybody leaves the queue: the host cannot be reached."""
        live = [want for want in self.waiting if not want.cancelled]
        self.waiting.clear()
        return live

    def idle_too_long(self, before: float, keep: int) -> list[C]:
        """Idle connections not used since `before`, taken out, as long as more than `keep` stay open."""
        gone: list[C] = []
        for idle in self.idle:
            while idle and idle[0].idle_since < before and self.size > keep:
                gone.append(idle.pop(0))
        return gone
