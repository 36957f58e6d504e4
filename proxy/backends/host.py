"""One host: its pool put to work. Opens connections, hands them out, takes them back clean, watches time.

All entry points are plain calls; a connection that is free is returned at once, else `Waiter.granted` is
called later. Only opening, resetting and killing take tasks. `tick`, called a few times a second, does
everything that time asks for: waiters whose time is up, statements that run too long, connections idle too
long, another try at a host that was away.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import structlog

from proxy.backends.settings import Settings
from proxy.errors import ProxyError
from proxy.load import Load
from proxy.wire.constants import Status
from proxy.wire.states import UNCHANGED

from .cleaning import PING, Look, reset
from .connection import BackendConnection
from .hangs import HangWatch
from .kills import Kills
from .pool import CAPABILITY_SETS, PoolState, account_of
from .refusals import AccountRefused, Refusal
from .waiting import NOBODY, Asker, Waiter

log = structlog.get_logger("backends")

_IN_TRANS = int(Status.IN_TRANS)


@dataclass(frozen=True, slots=True)
class HostLimits:
    """Times are in seconds."""

    max_connections: int
    max_waiting: int
    wait_timeout: float
    connect_timeout: float
    idle_timeout: float
    health_interval: float
    statement_timeout: float | None
    user_share: float = 1.0
    """The part of the connections, and of the queue, that a single user may have."""
    hang_timeout: float | None = None
    """After so long without a word from the host it hangs; None: it may take its time."""


class Connector(Protocol):
    """Opens a logged-in connection to a host, or raises ProxyError."""

    async def __call__(self, host: str, owner: HostPool, capability_set: int) -> BackendConnection: ...


#: Bytes of user variables that an unused connection may have.
_HEAVY = 1 << 16
#: Seconds that a server gets to notice that a connection is closed, when another is to take its place.
_ROOM = 0.1
#: A refused account is looked at after so many times `health_interval` at most: servers may count log-ins
#: that fail, and lock accounts.
_LOOKS_APART = 12

Spawn = Callable[[Coroutine[Any, Any, None], str], object]


class HostPool:
    """The connections of one host."""

    __slots__ = (
        "_clock",
        "_connect",
        "_failed_at",
        "_full",
        "_heard",
        "_kill_at",
        "_kills",
        "_look_at",
        "_looks",
        "_made_room",
        "_retry_at",
        "_spawn",
        "_watch",
        "failures",
        "host",
        "last_error",
        "limits",
        "load",
        "now",
        "opened_total",
        "refusals",
        "retired",
        "state",
        "version",
    )

    def __init__(
        self, host: str, limits: HostLimits, connect: Connector, spawn: Spawn, now: Callable[[], float]
    ) -> None:
        self.host = host
        self.load = Load()  # what it has to do
        self.limits = limits
        self.state = PoolState(limits.max_connections, limits.max_waiting, limits.user_share)
        self.version = ""
        self.failures = 0
        self.last_error = ""
        self.opened_total = 0
        self.retired = False
        #: By number, the accounts that the host does not let in now.
        self.refusals: dict[int, Refusal] = {}
        self._connect = connect
        self._spawn = spawn
        self.now = now
        self._clock = now()  # of the last tick: exact enough for what has been idle for minutes
        self._retry_at = 0.0
        self._look_at = 0.0  # when to look again at a host that could not be connected to
        self._looks = False
        self._failed_at = 0.0  # when that was, the last time
        self._full = False  # it was for too many connections: it serves those that there are
        self._made_room = 0  # connections that were closed for others since one was opened
        self._heard = 0.0  # when it answered a log-in last
        self._kills = Kills(host, self._connect_apart, limits.connect_timeout, 2 * limits.max_connections)
        self._kill_at = 0.0
        self._watch: HangWatch | None = None
        if limits.hang_timeout:
            self._watch = HangWatch(self, limits.hang_timeout, self._connect_apart, spawn, now)

    # -- taking and giving back
    # -------------------------------------------------------------------------------------

    def full(self, user: str) -> bool:
        """Whether no further connection may be opened for the user before one is given back."""
        return self.state.size >= self.limits.max_connections or not self.state.may(user)

    @property
    def trouble(self) -> str:
        """What is wrong with the host now, for operators, the newest first; empty when nothing is."""
        found = [
            (one.at, f"account {one.error.account}: {one.error.details['reason']}")
            for one in self.refusals.values()
        ]
        if self.failures:
            found.append((self._failed_at, self.last_error))
        return "; ".join(text for _, text in sorted(found, reverse=True))

    @property
    def up(self) -> bool:
        """Whether the host serves: it was connected to, and is not away."""
        return self.opened_total > 0 and not self.away

    @property
    def away(self) -> bool:
        """Whether the last attempt to connect failed, and nothing was heard of the host since."""
        serves = self._full and self.state.size > 0
        return self.failures > 0 and not serves and not self.heard_since(self._failed_at)

    def wait(
        self,
        settings: Settings,
        database: str | None,
        capability_set: int,
        granted: Callable[[BackendConnection], None],
        refused: Callable[[Exception], None],
        user: str = NOBODY,
        asker: Asker | None = None,
    ) -> Waiter[BackendConnection]:
        """Queue for a connection, when `state.take` has none. `refused` may be called before this returns."""
        now = self.now()
        deadline = now + self.limits.wait_timeout
        waiter = Waiter(
            settings, database, capability_set, deadline, granted, refused, user, now, self, asker
        )
        if self.failures and now < self._retry_at and not self.state.size:
            refused(self._unreachable())
        elif self.refusals and (refusal := self._refusal(capability_set, now)) is not None:
            refused(refusal)
        elif not self.state.wait(waiter):
            refused(self._crowded(waiter))
        else:
            self._open_more()
        return waiter

    async def connection(
        self,
        settings: Settings,
        database: str | None,
        capability_set: int,
        user: str = NOBODY,
        asker: Asker | None = None,
    ) -> BackendConnection:
        """One that is free, or `wait`, for a coroutine. Cancelling it leaves the queue or gives it back."""
        conn = self.state.take(settings, database, capability_set, user)
        if conn is not None:
            return conn
        future: asyncio.Future[BackendConnection] = asyncio.get_running_loop().create_future()

        def granted(conn: BackendConnection) -> None:
            if future.cancelled():
                self.release(conn)
            else:
                future.set_result(conn)

        def refused(error: Exception) -> None:
            if not future.cancelled():
                future.set_exception(error)

        waiter = self.wait(settings, database, capability_set, granted, refused, user, asker)
        try:
            return await future
        except asyncio.CancelledError:
            waiter.cancel()
            if future.done() and not future.cancelled() and future.exception() is None:
                self.release(future.result())  # granted in the same turn of the loop
            raise

    def release(self, conn: BackendConnection) -> None:
        """Take `conn` back after a complete reply. What one session left on the server goes no further: one
        that is given back in the middle of a reply, or that a KILL may still hit, is closed.
        """
        state = self.state
        if conn.closed or conn.resetting or conn not in state.busy:
            return  # given back before: by a session that ended while its last statement was being settled
        conn.changes = UNCHANGED  # changes of this session must not reach the next one
        if conn.receiver is not None:
            receiver, clean = conn.receiver, conn.at_packet_end
            self.discard(conn, kill=True)
            error = ProxyError("host_lost", host=self.host, reason="the statement was given up")
            receiver.reply_lost(conn, error, clean)
        elif conn.doomed or conn.prepared or conn.undone or (self.retired and not self.state.waiting):
            # MariaDB loses a prepared transaction by a reset, and keeps it by this; on MySQL a branch that is
            # rolled back outlives the reset, and fails the statements of the next session (1614)
            conn.close()
        elif conn.pinned or conn.unclean or conn.scanner.status & _IN_TRANS:
            conn.resetting = True
            conn.branch, conn.undone = b"", False
            self._spawn(self._reset(conn), f"reset {self.host}")
        elif conn.unread:
            conn.resetting, conn.unread, conn.begun = True, False, self.now()
            conn.send(PING, Look(self))
            conn.sent = 0.0
        else:
            waiter = state.give(conn, self._clock)
            if waiter is not None:
                self._grant(waiter, conn)
            elif self.retired:
                conn.close()
            if state.waiting.queues:
                self._serve()

    def connection_closed(self, conn: BackendConnection) -> None:
        """Called by the connection itself."""
        self.state.forget(conn)
        if self.state.waiting:
            self._open_more()
            asyncio.get_running_loop().call_soon(self._serve)  # not while somebody closes several

    def discard(self, conn: BackendConnection, *, kill: bool) -> None:
        """Close `conn` in the middle of a statement; `kill` ends the statement on the server too."""
        if conn.closed:
            return
        conn.close()
        if kill and conn.thread_id:
            self.kill_soon(conn.thread_id, conn.capability_set)

    def database_changed(self) -> None:
        """A database of this host was altered or dropped: its connections have its old character set, or one
        that is no more. Each chooses its database anew before its next statement.
        """
        for conn in chain(self.state.busy, *self.state.idle):
            conn.database = None

    def kill_soon(self, thread_id: int, capability_set: int, *, query_only: bool = False) -> None:
        """KILL a connection of this host, or only what it runs, over a connection of its own, as the same
        account: so it takes no privilege. `capability_set`: that of the connection.
        """
        if self._kills.add(thread_id, account_of(capability_set), query_only=query_only):
            self._kill_pending()

    def withdraw_kill(self, thread_id: int) -> None:
        """The query that `kill_soon` was to end has ended."""
        self._kills.withdraw(thread_id)

    def _kill_pending(self) -> None:
        self._kill_at = self.now() + self.limits.health_interval
        self._kills.running = True
        self._spawn(self._kills.run(), f"kill {self.host}")

    async def _connect_apart(self, account: int) -> BackendConnection:
        """A connection outside of the pool."""
        return await self._connect(self.host, self, account * CAPABILITY_SETS)

    # -- a host that hangs
    # ------------------------------------------------------------------------------------------------------

    def in_use(self) -> Iterable[BackendConnection]:
        """The connections that somebody has, for `HangWatch`."""
        return list(self.state.busy)

    def heard_since(self, moment: float) -> bool:
        """Whether a statement has ended here since, or a connection was opened."""
        return self._heard > moment or any(
            conn.idle_since > moment for idle in self.state.idle for conn in idle
        )

    def end(self, conn: BackendConnection, error: ProxyError) -> None:
        """End the statement under way on it, which is given up."""
        receiver, clean = conn.receiver, conn.at_packet_end
        self.discard(conn, kill=True)
        if receiver is not None:
            receiver.reply_lost(conn, error, clean)

    def hangs(self, seconds: float) -> None:
        """The host says nothing: end what runs there, and serve nobody before it answers again."""
        running = [conn for conn in self.state.busy if conn.receiver and conn.transport.is_reading()]
        log.error("host hangs", host=self.host, seconds=seconds, statements=len(running))
        self._failed(
            ProxyError("host_unreachable", host=self.host, reason=f"it has not answered for {seconds:g} s")
        )
        for conn in chain(*map(list, self.state.idle)):
            conn.close()
        for conn in running:
            if conn.receiver is not None:
                self.end(conn, ProxyError("host_hangs", host=self.host, seconds=f"{seconds:g}"))
        self._refuse_all()

    def renew(self) -> None:
        """Close the idle connections now, the others when they are given back; what was refused with an old
        password may be tried at once.
        """
        self.refusals.clear()
        for idle in self.state.idle:
            for conn in list(idle):
                conn.close()
        for conn in self.state.busy:
            conn.doomed = True

    def retire(self) -> None:
        """The topology names this host no more: idle connections close now, others when given back.
        Statements that already wait for one run here still: they were planned for this host.
        """
        self.retired = True
        for idle in self.state.idle:
            for conn in list(idle):
                conn.close()

    def close(self) -> None:
        """Close everything, now."""
        for waiter in self.state.all_waiting():
            waiter.refuse(ProxyError("shutting_down"))
        self.retire()
        for conn in list(self.state.busy):
            conn.close()

    # -- I/O
    # --------------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Serve who may have an idle connection now, and open others: of another variant, whose place an idle
        one may have to make.
        """
        while self.state.waiting and (found := self.state.assign()) is not None:
            self._grant(*found)
        if self.state.waiting:
            self._open_more()

    def _grant(self, waiter: Waiter[BackendConnection], conn: BackendConnection) -> None:
        conn.granted = self.now()
        waiter.grant(conn)

    def _open_more(self) -> None:
        if self.now() < self._retry_at:
            return
        misfit = self.state.misfit()
        if misfit is not None:
            misfit.close()  # which comes back here
        while self.state.can_open():
            capability_set = self.state.next_capability_set()
            self.state.opening += 1
            self._spawn(self._open(capability_set), f"connect {self.host}")

    async def _open(self, capability_set: int) -> None:
        try:
            conn = await self._connect(self.host, self, capability_set)
        except AccountRefused as refusal:
            self.state.opening -= 1
            self._account_refused(account_of(capability_set), refusal)
            return
        except ProxyError as error:
            self.state.opening -= 1
            self._failed(error)
            if error.details.get("full"):
                self._make_room(capability_set, of_account=error.details["full"] == "account")
            return
        except BaseException:
            self.state.opening -= 1
            raise
        self.state.opening -= 1
        self._connected(capability_set)
        self.opened_total += 1
        self.version = conn.version
        self.state.busy[conn] = NOBODY
        self.release(conn)

    def _connected(self, capability_set: int) -> None:
        """The host has let a connection of this variant in."""
        if self.failures:
            log.info("host is back", host=self.host, after_failures=self.failures)
        self.failures = 0
        self._retry_at = 0.0
        self._made_room = 0
        self.refusals.pop(account_of(capability_set), None)
        self._heard = self.now()

    def _make_room(self, capability_set: int, *, of_account: bool) -> None:
        """The server takes no more connections, or none `of_account`: what is idle here goes for those who
        wait, one for each. The server takes a moment to notice.
        """
        needed = sum(
            not waiter.cancelled and waiter.capability_set == capability_set for waiter in self.state.waiting
        )
        if (
            self._made_room < needed
            and (conn := self.state.spare(capability_set, of_account=of_account)) is not None
        ):
            self._made_room += 1
            self._retry_at = self.now() + _ROOM
            conn.close()

    def _failed(self, error: ProxyError) -> None:
        self.failures += 1
        self._full = bool(error.details.get("full"))
        self.last_error = str(error.details.get("reason", error))
        now = self._failed_at = self.now()
        self._retry_at = now + min(0.1 * 2 ** min(self.failures, 6), 5.0)
        self._look_at = now + self.limits.health_interval
        if self.failures == 1 or self.failures % 20 == 0:
            log.warning("cannot connect", host=self.host, reason=self.last_error, failures=self.failures)
        self._refuse_all()

    def _refuse_all(self) -> None:
        """Nobody can be served, if there is no connection at all."""
        if not self.state.size:
            for waiter in self.state.all_waiting():
                waiter.refuse(self._unreachable())

    def _account_refused(self, account: int, refusal: AccountRefused) -> None:
        """The host is there, but it does not let this account in: whoever needs another does not notice."""
        self.failures = 0
        self._retry_at = 0.0
        count = self.refusals[account].count + 1 if account in self.refusals else 1
        now = self.now()
        until = now + min(0.1 * 2 ** min(count, 6), 5.0)
        look_at = now + self.limits.health_interval * min(count, _LOOKS_APART)
        self.refusals[account] = Refusal(now, until, look_at, count, refusal)
        if count == 1 or count % 20 == 0:
            reason = str(refusal.details.get("reason", refusal))
            log.error("account refused", host=self.host, account=refusal.account, reason=reason)
        for waiter in self.state.waiting_for(account):
            waiter.refuse(refusal)
        if self.state.waiting:
            self._open_more()

    def _refusal(self, capability_set: int, now: float) -> AccountRefused | None:
        """The error for who needs an account that the host has just refused."""
        found = self.refusals.get(account_of(capability_set))
        return found.error if found is not None and now < found.until else None

    def _unreachable(self, seconds: float = 0.0) -> ProxyError:
        """`seconds`: how long was waited for one of the connections that there are."""
        reason = self.last_error
        if seconds:
            reason += f"; and no other connection to it became free within {seconds:g} s"
        return ProxyError("host_unreachable", host=self.host, reason=reason)

    def _crowded(
        self, waiter: Waiter[BackendConnection], seconds: float = 0.0, waiting: int = 0
    ) -> ProxyError:
        """Why there is no connection for this one, or no place in the queue. `seconds`: how long it waited
        for one, as one of so many `waiting` statements of its user.
        """
        state, host, have = self.state, self.host, self.state.has(waiter.user)
        used = min(len(state.busy), state.max_connections - 1)  # would one that is free be for this user?
        stopped = not state.share.allows(have, used, waiter.user)
        queued = state.waiting.before(waiter.user)
        stopped = stopped or (not seconds and queued < state.max_waiting)  # in the queue
        if stopped and have < state.max_connections:
            told: dict[str, object] = {"user": waiter.user, "host": host, "have": have}
            if seconds:
                return ProxyError("user_share_timeout", **told, seconds=f"{seconds:g}", waiting=waiting)
            return ProxyError("user_share", **told, waiting=state.waiting.of(waiter.user))
        if seconds:
            return ProxyError("pool_timeout", host=host, seconds=seconds, limit=state.max_connections)
        return ProxyError("pool_full", host=host, waiting=queued)

    async def _reset(self, conn: BackendConnection) -> None:
        """To the pool, clean; a connection that cannot be reset is closed."""
        if await reset(conn, self.limits.connect_timeout):
            self.release(conn)

    # -- time
    # -------------------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """What time asks for; call it a few times a second."""
        now = self._clock = self.now()
        self._refuse(self.state.expired(now))
        for conn in self.state.idle_too_long(now - self.limits.idle_timeout, keep=1):
            conn.close()
        for conn in [conn for idle in self.state.idle for conn in idle if conn.settings.user_bytes > _HEAVY]:
            conn.close()  # or the variables of one session would be kept here, and there, for nobody
        if self.limits.statement_timeout is not None:
            latest = now - self.limits.statement_timeout
            for conn in [
                conn
                for conn in self.state.busy
                if conn.receiver is not None and max(conn.begun, conn.granted) < latest
            ]:
                seconds = self.limits.statement_timeout
                self.end(conn, ProxyError("statement_timeout", host=self.host, seconds=seconds))
        if self._watch is not None:
            self._watch.tick(now)
        if self._kills.pending and not self._kills.running and now >= self._kill_at:
            self._kill_pending()
        if self.state.waiting:
            self._serve()
        if (self.failures or self.refusals) and not (self.state.opening or self._looks or self.retired):
            self._look(now)

    def _refuse(self, expired: list[Waiter[BackendConnection]]) -> None:
        """Tell who has waited too long, with how many of its user waited until now."""
        seconds, late = self.limits.wait_timeout, Counter(waiter.user for waiter in expired)
        waiting = {user: count + self.state.waiting.of(user) for user, count in late.items()}
        for waiter in expired:
            if self.failures:
                waiter.refuse(self._unreachable(seconds))
            else:
                waiter.refuse(self._crowded(waiter, seconds, waiting[waiter.user]))

    def _look(self, now: float) -> None:
        """Whether what was wrong still is, though nobody has needed a new connection for a while."""
        capability_set = 0
        if not self.failures:
            due = [account for account, one in self.refusals.items() if now >= one.look_at]
            if not due:
                return
            capability_set = due[0] * CAPABILITY_SETS
        elif now < self._look_at:
            return
        if self.state.size < self.limits.max_connections:
            self.state.opening += 1
            self._spawn(self._open(capability_set), f"look at {self.host}")
        else:
            self._looks = True
            self._spawn(self._look_apart(capability_set), f"look at {self.host}")

    async def _look_apart(self, capability_set: int) -> None:
        """The same, where the pool has no place for another connection."""
        try:
            (await self._connect_apart(account_of(capability_set))).close()
        except AccountRefused as refusal:
            self._account_refused(account_of(capability_set), refusal)
        except ProxyError as error:
            self._failed(error)
        else:
            self._connected(capability_set)
        finally:
            self._looks = False
