"""Statements that wait for another topology, instead of failing: one room for each worker.

A statement comes in when the topology says that its shard is frozen; or when its master cannot be reached, or
refuses writes (read_only) before it has done anything, which is how a change of masters looks from here. Each
new topology lets all out, in the order in which they came, to be planned and bound anew; whose shards are
still frozen stays. What waits for a master is also tried again by itself, one statement at a time, since the
master may come back.

Nobody waits longer than `timeouts.buffer`, and a master that is still not there after that keeps nobody
waiting any more until a topology comes, or nothing has failed there for as long: it is just broken.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from time import monotonic
from typing import Final, Protocol

from config.topology import State, Topology
from proxy.errors import Held, ProxyError
from proxy.wire.packets import Err

from .work import Work

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
        return error.fenced
    return word in (error.own or error.message).replace(b"_", b"-").lower()


def fenced(error: Err, topology: Topology) -> Err:
    """The error, marked when it says that rows of a shard's database may not be changed. The proxies'
    accounts may do so, until a tool that moves the shard takes that right away: that is its fence.
    """
    found = _FENCED.match(error.own or error.message) if error.code == _DENIED else None
    place = topology.physical(found[1]) if found is not None else None
    return error if place is None or place[1] is None else replace(error, fenced=True)


class WaitingClient(Protocol):
    """A client's command, as the room knows it."""

    begun: float
    closed: bool
    ticket: Ticket | None
    work: Work | None

    def fail(self, error: ProxyError | Err, seq: int | None = None) -> None: ...

    def start_again(self) -> None:
        """Plan and run the command at work anew, by the topology of now."""


class Ticket:
    """A statement's place in the room, and the client's `Work` while it is there. `number`: the order;
    `until`: the frozen shards that it waits for; `host`: or the master.
    """

    __slots__ = (
        "begun",
        "client",
        "deadline",
        "error",
        "host",
        "left",
        "number",
        "over",
        "room",
        "since",
        "starting",
        "until",
    )

    def __init__(self, room: WaitingRoom, client: WaitingClient, number: int, now: float) -> None:
        self.room = room
        self.client = client
        self.number = number
        self.since = now
        self.deadline = now + room.patience
        self.begun = client.begun  # by this, what comes back is known as the same statement
        self.starting = False
        self.left = 0.0  # when it was let out
        self.over = False  # it has waited long enough
        self.error: ProxyError | Err | None = None
        self.until: tuple[tuple[str, int], ...] = ()
        self.host = ""

    @property
    def reason(self) -> str:
        """What it waits for, for people."""
        if self.host:
            return f"master {self.host}"
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
    """`limit`: so many may wait; `patience`: seconds. Without either nobody does. `reachable`: whether a
    master that was away is there again, which a statement that ran does not say: a new row's shard is chosen
    anew.
    """

    def __init__(
        self,
        limit: int,
        patience: float,
        reachable: Callable[[str], bool],
        now: Callable[[], float] = monotonic,
    ) -> None:
        self.limit = limit
        self.patience = patience
        self._reachable = reachable
        self.outcomes: Counter[str] = Counter()  # ran, timeout, full, left
        self.seconds = 0.0  # that statements have waited, in all
        self._now = now
        self._numbers = count()
        self._waiting: dict[int, Ticket] = {}
        self._leaving: deque[Ticket] = deque()  # let out, and not begun yet
        self._running: dict[int, Ticket] = {}  # begun, and not counted yet
        #: Masters with something wrong: when it began, and when it showed last.
        self._troubles: dict[str, tuple[float, float]] = {}
        #: Which statement is tried to see whether a master is well again.
        self._tried: dict[str, Ticket] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    # -- coming in

    def hold(self, client: WaitingClient, error: ProxyError | Err) -> bool:
        """Whether the command, which has failed by `error` and has done nothing, is run again later instead:
        it waits from now on. Else the client is to be told.
        """
        host = self._host_of(error)
        until = error.until if isinstance(error, Held) else ()
        if not (host or until) or client.closed:
            return False
        ticket, now = _place_of(client), self._now()
        if ticket is None:
            ticket = Ticket(self, client, next(self._numbers), now)
        if ticket.over or now >= ticket.deadline or (host and not self.changing(host)):
            self._refuse(ticket, "timeout")
            return False
        if len(self._waiting) >= self.limit and self._tried.get(host) is not ticket:
            self._refuse(ticket, "full")
            return False
        if isinstance(error, ProxyError):
            error.__traceback__ = None  # it would keep what the statement has left on the stack
        ticket.error, ticket.host, ticket.until = error, host, until
        self._waiting[ticket.number] = ticket
        client.ticket = client.work = ticket
        return True

    def takes(self, client: WaitingClient, host: str) -> bool:
        """Whether a statement that the master has refused, since it takes no writes, is to come in; one that
        was let out always comes back, so that it is known how it fared.
        """
        return _place_of(client) is not None or (self.changing(host) and len(self._waiting) < self.limit)

    def _refuse(self, ticket: Ticket, outcome: str) -> None:
        """It does not come back: its master is not well again, whatever the client is told."""
        ticket.over = True
        waited = self._running.pop(ticket.number, None) is not None or ticket.starting
        if waited or outcome == "full":
            self.outcomes[outcome] += 1
            self.seconds += self._now() - ticket.since

    @staticmethod
    def _host_of(error: ProxyError | Err) -> str:
        """The master that is away or takes no writes, as the error says; "" for any other."""
        if isinstance(error, Err):
            return error.host if read_only(error) else ""
        return str(error.details["host"]) if error.kind.name == "host_unreachable" else ""

    def changing(self, host: str) -> bool:
        """A master was found to be away, or to take no writes: whether it is taken for a change under way."""
        now = self._now()
        first, last = self._troubles.get(host, (now, now))
        if now - last > self.patience:
            first = now  # it was well meanwhile
        self._troubles[host] = first, now
        return now - first < self.patience

    # -- going out

    def left(self, ticket: Ticket) -> None:
        """The client is gone, or has killed the statement."""
        ticket.over = True
        self._out(ticket, "left")

    def _out(self, ticket: Ticket, outcome: str) -> None:
        if self._waiting.pop(ticket.number, None) is not None:
            self.outcomes[outcome] += 1
            self.seconds += self._now() - ticket.since

    def topology_changed(self, topology: Topology) -> None:
        """Let out who need not wait by this one."""
        self._troubles.clear()
        self._tried.clear()
        self._let_out([one for one in self._waiting.values() if not one.stays(topology)])

    def _let_out(self, tickets: list[Ticket]) -> None:
        begin = not self._leaving
        coming = {ticket.number for ticket in self._leaving}
        self._leaving.extend(
            sorted((one for one in tickets if one.number not in coming), key=lambda one: one.number)
        )
        if begin and self._leaving:
            self._start_some()

    def _start_some(self) -> None:
        for _ in range(min(_AT_ONCE, len(self._leaving))):
            self._start(self._leaving.popleft())
        if self._leaving:
            asyncio.get_running_loop().call_soon(self._start_some)

    def _start(self, ticket: Ticket) -> None:
        if self._waiting.pop(ticket.number, None) is None:
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
        for ticket in [one for one in self._waiting.values() if one.deadline <= now]:
            self._give_up(ticket, now)
        first: dict[str, Ticket] = {}
        for ticket in self._waiting.values():
            if ticket.host and ticket.number < first.setdefault(ticket.host, ticket).number:
                first[ticket.host] = ticket
        for host, ticket in first.items():
            self._try(host, ticket)

    def _try(self, host: str, ticket: Ticket) -> None:
        tried = self._tried.get(host)
        if tried is None or tried.number in self._waiting or tried.over or tried.client.closed:
            self._tried[host] = ticket
            self._let_out([ticket])
            return
        answered = tried.client.begun != tried.begun or tried.client.work is None
        if answered:
            del self._tried[host]
            self._ran(host)
        if answered or self._now() > tried.begun + 1:  # a long statement, or it still waits for a connection
            self._let_out([one for one in self._waiting.values() if one.host == host])

    def _over(self, ticket: Ticket) -> bool:
        """Whether what was let out is done, or back. (A host is found to be away only after a while.)"""
        client = ticket.client
        if ticket.number in self._waiting:
            return True
        if client.work is not None and client.begun == ticket.begun and not client.closed:
            return False
        self.outcomes["ran"] += 1
        self.seconds += ticket.left - ticket.since
        if not client.closed:
            self._ran(ticket.host)
        return True

    def _ran(self, host: str) -> None:
        """What has waited for a master was answered."""
        if self._reachable(host):
            self._troubles.pop(host, None)

    def _give_up(self, ticket: Ticket, now: float) -> None:
        error, client = ticket.error, ticket.client
        assert error is not None
        self._out(ticket, "timeout")
        client.work, ticket.over = None, True
        client.fail(_after(error, now - ticket.since))


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
    return ProxyError(error.kind.name, **details)
