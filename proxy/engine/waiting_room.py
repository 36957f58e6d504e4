"""Statements that wait for another topology, instead of failing: one room for each worker.

A statement comes in when the topology says that its shard is frozen; or when its master cannot be reached, or
refuses writes (read_only) before it has done anything, which is how a change of masters looks from here. Each
new topology lets all out to be planned and bound anew, a user's statements in the order in which they came,
the users in turns; whose shards are still frozen stays. What waits for a master is also tried again by
itself, one statement at a time, since the master may come back. No user has more than its share of the room.

Nobody waits longer than `timeouts.buffer`. A master that is still not there after that is just broken: who
waits for it is told at once, and nobody waits any more until a topology comes, or it is there again, or (for
one that can be reached) nothing has failed there for as long.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from config.topology import State, Topology
from proxy.backends.waiting import Share
from proxy.errors import Held, ProxyError
from proxy.wire.packets import Err

from .work import Work

if TYPE_CHECKING:
    from proxy.session.state import Session

_REFUSED: Final = {1290: b"read", 1836: b"read", 3989: b"read"}
"""What a server refuses since it, or the database, is read-only, before it does anything, and a word of its
message: 1290 is also the error for other options."""
_DENIED: Final = 1142
_FENCED: Final = re.compile(
    rb"(?:SELECT, )?(?:INSERT|UPDATE|DELETE)\b[A-Z, ]* command denied to user .* for table `([^`]+)`\."
)
_AT_ONCE: Final = 32
"""So many statements are let out in one turn of the loop."""


def read_only(error: Err) -> bool:
    """Whether a server has refused a statement because it takes no writes now."""
    word = _REFUSED.get(error.code)
    if word is None:
        return bool(error.fenced)
    return word in (error.own or error.message).replace(b"_", b"-").lower()


def fenced(error: Err, topology: Topology) -> Err:
    """The error, marked when it says that rows of a shard's database may not be changed. The proxies'
    accounts may do so, until a tool that moves the shard takes that right away: that is its fence.
    """
    found = _FENCED.match(error.own or error.message) if error.code == _DENIED else None
    place = topology.physical(found[1]) if found is not None else None
    if found is None or place is None or place[1] is None:
        return error
    return replace(error, fenced=found[1].decode())


class Trouble(NamedTuple):
    """What is wrong with a master: it is away, or takes no writes, or was not asked yet whether it can hold
    decisions; or, with `database`, takes none for that one: it is fenced, or the proxy's account lacks rights
    there.
    """

    host: str
    database: str = ""


def trouble_of(error: ProxyError | Err) -> Trouble | None:
    """What an error says of a master; None for any other."""
    if isinstance(error, Err):
        return Trouble(error.host, error.fenced) if error.host and read_only(error) else None
    known = error.kind.name in ("host_unreachable", "xa_not_ready") and "host" in error.details
    return Trouble(str(error.details["host"])) if known else None


class WaitingClient(Protocol):
    """A client's command, as the room knows it."""

    @property
    def session(self) -> Session:
        """Whose it is."""

    begun: float
    closed: bool
    queued: float
    ticket: Ticket | None
    work: Work | None

    def fail(self, error: ProxyError | Err, seq: int | None = None) -> None: ...

    def start_again(self) -> None:
        """Plan and run the command at work anew, by the topology of now."""


class Ticket:
    """A statement's place in the room, and the client's `Work` while it is there. `number`: the order;
    `until`: the frozen shards that it waits for; `trouble`: or the master.
    """

    __slots__ = (
        "arrived",
        "begun",
        "client",
        "deadline",
        "error",
        "left",
        "number",
        "over",
        "room",
        "since",
        "starting",
        "trouble",
        "until",
        "user",
    )

    def __init__(self, room: WaitingRoom, client: WaitingClient, number: int, now: float) -> None:
        self.room = room
        self.client = client
        self.user = client.session.user.name
        self.number = number
        self.since = now
        self.deadline = now + room.patience
        self.arrived = client.begun
        self.begun = client.begun  # by this, what comes back is known as the same statement
        self.starting = False
        self.left = 0.0  # when it was let out
        self.over = False  # it has waited long enough
        self.error: ProxyError | Err | None = None
        self.until: tuple[tuple[str, int], ...] = ()
        self.trouble: Trouble | None = None

    @property
    def reason(self) -> str:
        """What it waits for, for people."""
        if self.trouble is not None:
            return f"master {self.trouble.host}"
        keyspace, shard = self.until[0]
        return f"shard {shard}{' and others' if len(self.until) > 1 else ''} of {keyspace}, frozen"

    def stays(self, topology: Topology) -> bool:
        """Whether by this topology, too, a shard is frozen that it waits for."""
        for name, shard in self.until:
            keyspace = topology.keyspaces.get(name)
            found = None if keyspace is None else keyspace.range_of(shard)
            if found is not None and found.state is State.FROZEN:
                return True
        return False

    # -- Work

    def cancel(self) -> None:
        self.room.left(self)

    def kill_query(self) -> None:
        self.room.left(self)
        self.client.work = None
        self.client.fail(ProxyError("killed"))

    def flow(self) -> None:
        """It writes nothing."""


class WaitingRoom:
    """`limit`: so many may wait, of one user at most the part `share`; `patience`: seconds. Without limit or
    patience nobody does. `reachable`: whether a master that was away is there again, which a statement that
    ran does not say: a new row's shard is chosen anew.
    """

    def __init__(
        self,
        limit: int,
        patience: float,
        reachable: Callable[[str], bool],
        now: Callable[[], float] = monotonic,
        share: float = 1.0,
    ) -> None:
        self.patience = patience
        self._places = Share(limit, share, watch=False)
        self._reachable = reachable
        self.outcomes: Counter[str] = Counter()  # ran, timeout, full, left
        self.seconds = 0.0  # that statements have waited, in all
        self._now = now
        self._numbers = count()
        self._waiting: dict[int, Ticket] = {}
        self._of: Counter[str] = Counter()  # how many of them are each user's
        self._leaving: deque[Ticket] = deque()  # let out, and not begun yet
        self._running: dict[int, Ticket] = {}  # begun, and not counted yet
        #: What is wrong with masters: when it began, and when it showed last.
        self._troubles: dict[Trouble, tuple[float, float]] = {}
        #: Which statement is tried to see whether a master is well again.
        self._tried: dict[Trouble, Ticket] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def limit(self) -> int:
        return self._places.most

    @limit.setter
    def limit(self, most: int) -> None:
        self._places.resize(most)

    # -- coming in

    def hold(self, client: WaitingClient, error: ProxyError | Err) -> bool:
        """Whether the command, which has failed by `error` and has done nothing, is run again later instead:
        it waits from now on. Else the client is to be told.
        """
        trouble = trouble_of(error)
        until = error.until if isinstance(error, Held) else ()
        if not (trouble or until) or client.closed:
            return False
        ticket, now = _place_of(client), self._now()
        if ticket is None:
            ticket = Ticket(self, client, next(self._numbers), now)
        if ticket.over or now >= ticket.deadline or (trouble and not self.changing(trouble)):
            self._refuse(ticket, "timeout")
            return False
        tried = trouble is not None and self._tried.get(trouble) is ticket
        if not (tried or self._has_place(ticket.user)):
            self._refuse(ticket, "full")
            return False
        if isinstance(error, ProxyError):
            error.__traceback__ = None  # it would keep what the statement has left on the stack
        ticket.error, ticket.trouble, ticket.until = error, trouble, until
        self._waiting[ticket.number] = ticket
        self._of[ticket.user] += 1
        client.ticket = client.work = ticket
        return True

    def takes(self, client: WaitingClient, error: Err) -> bool:
        """Whether a statement that a master has refused, since it takes no writes, is to come in; one that
        was let out always comes back, so that it is known how it fared.
        """
        if _place_of(client) is not None:
            return True
        trouble = trouble_of(error)
        return trouble is not None and self.changing(trouble) and self._has_place(client.session.user.name)

    def _has_place(self, user: str) -> bool:
        return self._places.allows(self._of[user], len(self._waiting), user)

    def _refuse(self, ticket: Ticket, outcome: str) -> None:
        """It does not come back: its master is not well again, whatever the client is told."""
        ticket.over = True
        waited = self._running.pop(ticket.number, None) is not None or ticket.starting
        if waited or outcome == "full":
            self.outcomes[outcome] += 1
            self.seconds += self._now() - ticket.since

    def changing(self, trouble: Trouble) -> bool:
        """A master was found to be away, or to take no writes: whether it is taken for a change under way."""
        now = self._now()
        first, last = self._troubles.get(trouble, (now, now))
        if now - last > self.patience and not self._stays(trouble):
            first = now  # it was well meanwhile
        self._troubles[trouble] = first, now
        return now - first < self.patience

    def _stays(self, trouble: Trouble) -> bool:
        """Whether it is as it was, though nobody has met it for a while: the master is away; or an account's
        rights, which only a change of the topology explains, are what they were.
        """
        return bool(trouble.database) or not self._reachable(trouble.host)

    # -- going out

    def left(self, ticket: Ticket) -> None:
        """The client is gone, or has killed the statement."""
        ticket.over = True
        self._out(ticket, "left")

    def _out(self, ticket: Ticket, outcome: str) -> None:
        if self._take_out(ticket):
            self.outcomes[outcome] += 1
            self.seconds += self._now() - ticket.since

    def _take_out(self, ticket: Ticket) -> bool:
        """Whether it was still there."""
        if self._waiting.pop(ticket.number, None) is None:
            return False
        self._of[ticket.user] -= 1
        if not self._of[ticket.user]:
            del self._of[ticket.user]
        return True

    def topology_changed(self, topology: Topology) -> None:
        """Let out who need not wait by this one."""
        self._troubles.clear()
        self._tried.clear()
        self._let_out([one for one in self._waiting.values() if not one.stays(topology)])

    def _let_out(self, tickets: list[Ticket]) -> None:
        begin = not self._leaving
        self._leaving = deque(_in_turns({one.number: one for one in (*self._leaving, *tickets)}))
        if begin and self._leaving:
            self._start_some()

    def _start_some(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._leaving))):
            self._start(self._leaving.popleft())
        if self._leaving:
            asyncio.get_running_loop().call_soon(self._start_some)

    def _start(self, ticket: Ticket) -> None:
        if not self._take_out(ticket):
            return  # it has left by itself
        client = ticket.client
        client.work, ticket.starting = None, True
        client.start_again()
        ticket.starting, ticket.begun = False, client.begun
        if ticket.number not in self._waiting and not ticket.over:
            ticket.error, ticket.left = None, self._now()
            self._running[ticket.number] = ticket

    # -- time

    def tick(self) -> None:
        """A few times a second: who has waited long enough is told; masters are tried."""
        now = self._now()
        for number in [number for number, one in self._running.items() if self._over(one)]:
            del self._running[number]
        broken: set[Trouble] = set()
        for ticket in [one for one in self._waiting.values() if one.deadline <= now]:
            if ticket.trouble is not None and self._is_old(ticket.trouble, now):
                broken.add(ticket.trouble)
            self._give_up(ticket, now)
        for ticket in [one for one in self._waiting.values() if one.trouble in broken]:
            self._give_up(ticket, now)
        first: dict[Trouble, Ticket] = {}
        for ticket in self._waiting.values():
            trouble = ticket.trouble
            if trouble is not None and ticket.number < first.setdefault(trouble, ticket).number:
                first[trouble] = ticket
        for trouble, ticket in first.items():
            self._try(trouble, ticket)

    def _is_old(self, trouble: Trouble, now: float) -> bool:
        """Whether it was there all the time that a statement waits."""
        first, _ = self._troubles.get(trouble, (now, now))
        return now - first >= self.patience

    def _try(self, trouble: Trouble, ticket: Ticket) -> None:
        tried = self._tried.get(trouble)
        if tried is None or tried.number in self._waiting or tried.over or tried.client.closed:
            self._tried[trouble] = ticket
            self._let_out([ticket])
            return
        answered = tried.client.begun != tried.begun or tried.client.work is None
        if answered:
            del self._tried[trouble]
            self._ran(trouble)
        if answered or self._now() > tried.begun + 1:  # a long statement, or it still waits for a connection
            self._let_out([one for one in self._waiting.values() if one.trouble == trouble])

    def _over(self, ticket: Ticket) -> bool:
        """Whether what was let out is done, or back. (A host is found to be away only after a while.)"""
        client = ticket.client
        if ticket.number in self._waiting:
            return True
        if client.work is not None and client.begun == ticket.begun and not client.closed:
            return False
        self.outcomes["ran"] += 1
        self.seconds += ticket.left - ticket.since
        if not client.closed and ticket.trouble is not None:
            self._ran(ticket.trouble)
        return True

    def _ran(self, trouble: Trouble) -> None:
        """What has waited for a master was answered."""
        if self._reachable(trouble.host):
            self._troubles.pop(trouble, None)

    def _give_up(self, ticket: Ticket, now: float) -> None:
        error, client = ticket.error, ticket.client
        assert error is not None
        self._out(ticket, "timeout")
        client.work, ticket.over = None, True
        ticket.begun = client.begun = ticket.arrived  # not when it was tried last
        client.queued = now - ticket.arrived  # it was waiting all the time, here or for a connection
        client.fail(_after(error, now - ticket.since))


def _in_turns(tickets: dict[int, Ticket]) -> list[Ticket]:
    """By number, each user's in this order, and users in turns: nobody's flood goes before what another
    waits for.
    """
    turns: Counter[str] = Counter()
    found: list[tuple[int, Ticket]] = []
    for _, ticket in sorted(tickets.items()):
        found.append((turns[ticket.user], ticket))
        turns[ticket.user] += 1
    found.sort(key=lambda pair: pair[0])
    return [ticket for _, ticket in found]


def _place_of(client: WaitingClient) -> Ticket | None:
    """The place that the statement at work has had."""
    ticket = client.ticket
    return ticket if ticket is not None and (ticket.starting or ticket.begun == client.begun) else None


def _after(error: ProxyError | Err, seconds: float) -> ProxyError | Err:
    """The error, with how long the statement has waited."""
    waited = f"the statement has waited {seconds:.1f} s for a change of the topology (timeouts.buffer)"
    if isinstance(error, Err):
        return replace(error, message=error.message + b"; " + waited.encode())
    details = dict(error.details)
    part = "state" if isinstance(error, Held) else "reason"
    details[part] = f"{str(details[part]).removesuffix('.')}; {waited}"
    if isinstance(error, Held):
        return Held(error.kind.name, error.until, **details)
    made = ProxyError(error.kind.name, **details)
    made.shards = error.shards
    return made
