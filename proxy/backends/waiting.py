"""Who waits for a connection of one host: a queue for each user, and whose turn it is. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from proxy.backends.settings import Settings
    from proxy.load import Load

    from .connection import BackendConnection


class Poolable(Protocol):
    """What the rules need to know of a connection."""

    settings: Settings
    database: str | None
    capability_set: int
    idle_since: float


class Numbered(Protocol):
    """A session."""

    id: int


class Asker(Protocol):
    """Whose statement waits. `queued`: seconds that it has waited for connections so far."""

    queued: float

    @property
    def session(self) -> Numbered:
        """The client's."""


class Waited(Protocol):
    """The host whose connections are waited for. `load`: where the waits are counted; `now`: its clock."""

    host: str
    load: Load
    now: Callable[[], float]


C = TypeVar("C", bound=Poolable)

#: Uses connections for the proxy itself: no share holds for it.
NOBODY = ""


class Waiter(Generic[C]):
    """A statement that needs a connection. `granted` or `refused` is called once, unless `cancelled` is set
    before. However the wait ends: its time is the host's, and its statement's.
    """

    __slots__ = (
        "_counted",
        "asker",
        "cancelled",
        "capability_set",
        "database",
        "deadline",
        "granted",
        "pool",
        "refused",
        "settings",
        "since",
        "user",
    )

    def __init__(
        self,
        settings: Settings,
        database: str | None,
        capability_set: int,
        deadline: float,
        granted: Callable[[C], None],
        refused: Callable[[Exception], None],
        user: str = NOBODY,
        since: float = 0.0,
        pool: Waited | None = None,
        asker: Asker | None = None,
    ) -> None:
        self.since = since  # when it began to wait
        self.pool = pool
        self.asker = asker
        self._counted = False
        self.settings = settings
        self.database = database
        self.capability_set = capability_set
        self.deadline = deadline
        self.granted = granted
        self.refused = refused
        self.user = user
        self.cancelled = False

    def grant(self, conn: C) -> None:
        """It is its turn."""
        self._over()
        self.granted(conn)

    def refuse(self, error: Exception) -> None:
        """It has waited in vain."""
        self._over()
        self.refused(error)

    def cancel(self) -> None:
        """Nobody wants the connection any more: it has waited in vain, too."""
        self.cancelled = True
        self._over()

    def _over(self) -> None:
        if self.pool is None or self._counted:  # one that is granted may be cancelled before it hears of it
            return
        self._counted = True
        seconds = self.pool.now() - self.since
        self.pool.load.wait(seconds)
        if self.asker is not None:
            self.asker.queued += seconds


#: What the sum of two floating point products may be off.
_SLIP = 1e-9


class Share:
    """How many of `most` things one user may have: one more as long as it has less than so many times what is
    free that, alone, it comes to its part of all. So several get less each, and something is always left
    for who has none yet; from three on the last one is for these alone.
    """

    __slots__ = ("_kept", "_part", "_watch", "most", "scarce")

    def __init__(self, most: int, part: float, *, watch: bool = True) -> None:
        """`part`: of all things, what a single user may have; 1: there is no such limit. `watch`: `scarce` is
        wanted.
        """
        self._part = part
        self._watch = watch
        self.resize(most)

    def resize(self, most: int) -> None:
        """There are so many things now."""
        self.most = most
        self._kept = 1 if most > 2 and self._part < 1 else 0
        #: With fewer than so many in use nobody can have had its share.
        first = (used for used in range(most) if not self.allows(used, used))
        self.scarce = next(first, most) if self._watch else 0

    def allows(self, have: int, used: int, user: str = "somebody") -> bool:
        """Whether a user who has so many, of so many that are used, may have one more."""
        free = self.most - used
        if free <= 0 or not have or user == NOBODY:
            return free > 0
        return free > self._kept and have * (1 - self._part) < self._part * free - _SLIP


class Waiting:
    """The wants of one host. A user's own are served first come first served, the users in turns."""

    __slots__ = ("_count", "queues")

    def __init__(self) -> None:
        #: By user, whose turn is next first; none is empty, so that there are none when nobody waits.
        self.queues: dict[str, deque[Waiter[BackendConnection]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Waiter[BackendConnection]]:
        for queue in self.queues.values():
            yield from queue

    def of(self, user: str) -> int:
        """How many of one user wait."""
        queue = self.queues.get(user)
        return len(queue) if queue else 0

    def before(self, user: str) -> int:
        """How many places of the queue are taken for this user: what the proxy asks for itself takes none of
        its clients'.
        """
        return self._count if user == NOBODY else self._count - self.of(NOBODY)

    @property
    def of_clients(self) -> int:
        """How many statements of clients still wait."""
        return sum(waiter.user != NOBODY and not waiter.cancelled for waiter in self)

    def add(self, waiter: Waiter[BackendConnection]) -> None:
        """At the end of its user's queue."""
        queue = self.queues.get(waiter.user)
        if queue is None:
            queue = self.queues[waiter.user] = deque()
        queue.append(waiter)
        self._count += 1

    def keep(self, wanted: Callable[[Waiter[BackendConnection]], bool]) -> list[Waiter[BackendConnection]]:
        """Leave only the wanted ones; the others."""
        gone = [waiter for waiter in self if not wanted(waiter)]
        if gone:
            for user, queue in list(self.queues.items()):
                left = deque(waiter for waiter in queue if wanted(waiter))
                if left:
                    self.queues[user] = left
                else:
                    del self.queues[user]
            self._count -= len(gone)
        return gone

    def next(self, capability_set: int, may: Callable[[str], bool]) -> Waiter[BackendConnection] | None:
        """Take out the next one that wants this variant, of a user who may have a connection."""
        for user, queue in self.queues.items():
            for index, waiter in enumerate(queue):
                if waiter.cancelled or waiter.capability_set != capability_set:
                    continue
                if not may(user):
                    break
                del queue[index], self.queues[user]
                if queue:
                    self.queues[user] = queue  # at the end: others have their turns first
                self._count -= 1
                return waiter
        return None

    def coming(
        self, most: int, have: dict[str, int], used: int, share: Share
    ) -> list[Waiter[BackendConnection]]:
        """Those who would be served next, at most so many, were there connections for them. `have`: what
        users have now, of `used` in all.
        """
        found: list[Waiter[BackendConnection]] = []
        turns = deque((user, iter(queue)) for user, queue in self.queues.items())
        while turns and len(found) < most:
            user, queue = turns.popleft()
            waiter = next((one for one in queue if not one.cancelled), None)
            if waiter is None or not share.allows(have.get(user, 0), used, user):
                continue
            found.append(waiter)
            have[user] = have.get(user, 0) + 1
            used += 1
            turns.append((user, queue))
        return found
