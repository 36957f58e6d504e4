"""Who finishes what a proxy or a host left between PREPARE and COMMIT.

Any proxy does it: at its start, every few seconds, and at once for what it has left itself. It asks each
master what is prepared there (XA RECOVER), has the decision told or made impossible (`decisions`), and
commits or rolls back. On each host one does it at a time, by GET_LOCK there; two would do no harm.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, Final

import structlog

from config.settings import Xa
from config.topology import Topology
from config.xa import FORMAT_ID, BranchName
from proxy.backends import Backends
from proxy.backends.collect import ServerError
from proxy.backends.connection import BackendConnection
from proxy.backends.own import own_connection
from proxy.errors import ProxyError
from proxy.tasks import Tasks

from .decisions import SOME, Decided, Decisions, Undecided, ask

log = structlog.get_logger("proxy")

_RECOVER: Final = b"XA RECOVER"
_LOCK: Final = b"SELECT GET_LOCK('shardgate_xa', 0)"
_UNLOCK: Final = b"SELECT RELEASE_LOCK('shardgate_xa')"
_LOCKED_BY: Final = b"SELECT IS_USED_LOCK('shardgate_xa')"
_NOT_THERE: Final = 1397
"""XAER_NOTA: nobody knows it, or (MariaDB) a connection still has it."""
_EMPTY: Final = 1402
"""XA_RBROLLBACK: MariaDB has nothing of one that wrote nothing."""
_PATIENCE: Final = 5.0
"""Seconds that a host may take."""
_SWEEP: Final = 60.0
"""Seconds between two looks for old decisions."""
_BATCHES: Final = 50
"""So many times `SOME` decisions of a host are looked at then; the next time goes on behind them."""
_PERIOD: Final = 2.0


@dataclass
class Running:
    """A COMMIT of this process. `state`: preparing, deciding, committing."""

    session: int
    user: str
    hosts: list[str]
    begun: float = field(default_factory=monotonic)
    state: str = "preparing"


@dataclass(frozen=True)
class Left:
    """What a COMMIT of this process has left on `hosts`. `state`: committed, aborted, or undecided."""

    hosts: frozenset[str]
    state: str
    since: float = field(default_factory=monotonic)


@dataclass
class Found:
    """A branch that is prepared on a host. `since`: when it was seen first (monotonic). `state`: what is
    known of its transaction.
    """

    host: str
    name: BranchName
    since: float
    state: str = "prepared"
    reason: str = ""

    @property
    def key(self) -> tuple[str, bytes, bytes]:
        """What it is known by."""
        return self.host, self.name.gtrid, self.name.bqual


class Resolver:
    """That of one worker process. `regular`: it looks by itself, one worker of a proxy does. `committing`:
    what a branch is committed in: of one that is left only its proxy knew which rows it has written.
    """

    def __init__(
        self,
        backends: Backends,
        tasks: Tasks,
        topology: Callable[[], Topology],
        settings: Xa,
        *,
        regular: bool,
        committing: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        self.decisions = Decisions(backends, topology)
        self.prepared: dict[tuple[str, bytes, bytes], Found] = {}
        self.resolved: Counter[str] = Counter()  # by outcome
        self.counts: Counter[str] = Counter()  # of COMMITs of this process, by outcome
        self.at_work: dict[bytes, Running] = {}  # by gtrid, which finish by themselves
        self._backends = backends
        self._spawn = tasks.spawn
        self._topology = topology
        self._settings = settings
        self._regular = regular
        self._committing = committing
        self.soon: dict[bytes, Left] = {}  # by gtrid, left by this process: not waited for
        self._due = 0.0
        self._sweep = monotonic() + min(_SWEEP, settings.keep)
        self._swept: dict[str, bytes] = {}  # by host, the last decision that was looked at
        self._running = False
        self._hosts: tuple[str, ...] = ()
        self._asked: frozenset[str] = frozenset()  # the masters that answered the last look
        self._refused: dict[str, str] = {}

    def knows(self, hosts: Iterable[str]) -> bool:
        """Whether transactions over these hosts need no `ready`."""
        return not self._settings.enabled or self.decisions.identities.keys() >= set(hosts)

    async def ready(self, patience: float, hosts: Iterable[str] | None = None) -> None:
        """Know the hosts (None: those of now) that answer within `patience` seconds."""
        asked = self._topology().hosts if hosts is None else hosts
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self.decisions.learn(asked if self._settings.enabled else ())

    def tick(self) -> None:
        """A few times a second: begin what is due."""
        if self._running or not self._settings.enabled:
            return
        now, hosts = monotonic(), self._topology().hosts
        if now >= self._due or hosts != self._hosts:
            self._hosts = hosts
            self._due = now + min(_PERIOD, self._settings.resolve_after)
            self._start(self._look() if self._regular or self.soon else self.decisions.learn(hosts))

    def left(self, gtrid: bytes, hosts: Iterable[str], state: str) -> None:
        """A COMMIT of this process has left branches of it on these hosts, which are finished as soon as may
        be: those of a host that is away when it is back.
        """
        before = self.soon.get(gtrid)
        known, since = (before.hosts, before.since) if before is not None else (frozenset[str](), monotonic())
        self.soon[gtrid] = Left(known | frozenset(hosts), state, since)
        self._due = 0.0

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        self._running = True
        self._spawn(self._run(work), "distributed transactions")

    async def _run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        finally:
            self._running = False

    # -- looking
    # ----------------------------------------------------------------------------------------------------

    async def look(self, patience: float = _PATIENCE) -> list[Found]:
        """What is prepared now on the masters that answer within `patience` seconds, as XA RECOVER tells; on
        the others, what was prepared there when they answered last.
        """
        hosts = self._topology().hosts
        answers = await asyncio.gather(*(self._recover(host, patience) for host in hosts))
        now = monotonic()
        found: dict[tuple[str, bytes, bytes], Found] = {}
        for host, names in zip(hosts, answers, strict=True):
            if names is None:  # nobody knows: what was there may be there
                found |= {key: one for key, one in self.prepared.items() if key[0] == host}
                continue
            for name in names:
                key = (host, name.gtrid, name.bqual)
                found[key] = self.prepared.get(key) or Found(host, name, now)
        self.prepared = found
        self._asked = frozenset(host for host, names in zip(hosts, answers, strict=True) if names is not None)
        return list(found.values())

    async def prepared_now(self, gtrid: bytes, hosts: Iterable[str]) -> bool | None:
        """Whether a branch of this transaction is prepared on one of these hosts; None when those that answer
        have none, and others do not answer.
        """
        asked = (self._recover(host, _PATIENCE / 2) for host in hosts)  # whoever asks holds a decision's key
        answers = await asyncio.gather(*asked)
        if any(one.gtrid == gtrid for names in answers if names is not None for one in names):
            return True
        return None if None in answers else False

    async def _recover(self, host: str, patience: float = _PATIENCE) -> list[BranchName] | None:
        try:
            async with asyncio.timeout(patience), own_connection(self._backends, host) as conn:
                rows = await ask(conn, _RECOVER)
        except (ProxyError, TimeoutError):
            return None  # the pool tells of hosts that are away
        except ServerError as error:
            reason = str(error)
            if self._refused.get(host) != reason:
                self._refused[host] = reason
                remedy = "GRANT XA_RECOVER_ADMIN ON *.* to the proxy's own account: shardgate fleet create"
                log.error("prepared transactions cannot be seen", host=host, reason=reason, remedy=remedy)
            return None
        self._refused.pop(host, None)
        names = []
        for format_id, length, _, data in rows:
            end, text = int(length or 0), data or b""
            name = BranchName.read(int(format_id or 0), text[:end], text[end:])
            names += [name] if name is not None else []
        return names

    async def _look(self) -> None:
        await self.decisions.learn(self._topology().hosts)
        now, soon = monotonic(), dict(self.soon)
        due: dict[bytes, list[Found]] = {}
        for one in await self.look():
            gtrid = one.name.gtrid
            late = now - one.since >= self._settings.resolve_after
            if gtrid not in self.at_work and (late or gtrid in soon):
                due.setdefault(gtrid, []).append(one)
        unasked = frozenset(self._topology().hosts) - self._asked
        for gtrid, left in soon.items():
            if gtrid not in due and not left.hosts & unasked and self.soon.get(gtrid) is left:
                del self.soon[gtrid]
        for found in due.values():
            await self._resolve(found)
        if self._regular and now >= self._sweep:
            self._sweep = now + min(_SWEEP, self._settings.keep)
            await self._forget_old()

    # -- finishing
    # --------------------------------------------------------------------------------------------------

    async def _resolve(self, found: list[Found]) -> None:
        """Finish the branches of one transaction."""
        name = found[0].name
        try:
            hosts = {one.host for one in found}
            committed = await self.decisions.settle(name, partial(self.prepared_now, name.gtrid, hosts))
        except Undecided as why:
            if why.forgotten:  # another proxy was faster
                for one in found:
                    self.prepared.pop(one.key, None)
                return
            reason = str(why)
            if any((one.state, one.reason) != ("undecided", reason) for one in found):  # else it was told
                log.warning("a transaction is undecided", gtrid=name.gtrid.decode(), reason=reason)
            for one in found:
                one.state, one.reason = "undecided", reason
            if why.silent and name.first in self._topology().hosts:
                await self._end_thread(name.first, name.first_thread)
            return
        for one in found:
            one.state = "committed" if committed else "aborted"
            try:
                async with asyncio.timeout(2 * _PATIENCE):
                    await self._finish(one, committed=committed)
            except (ProxyError, ServerError, TimeoutError) as error:
                reason = str(error) or "it does not answer"
                if one.reason != reason:  # else it was told
                    gtrid = name.gtrid.decode()
                    log.warning("a branch is not finished", host=one.host, gtrid=gtrid, reason=reason)
                one.reason = reason

    async def _finish(self, one: Found, *, committed: bool) -> None:
        verb = b"XA COMMIT " if committed else b"XA ROLLBACK "
        around = self._committing() if committed else nullcontext()
        async with own_connection(self._backends, one.host) as conn:
            if await ask(conn, b"SELECT @@global.read_only") != [[b"0"]]:
                raise ProxyError("transaction_moved", host=one.host)
            if await ask(conn, _LOCK) != [[b"1"]]:
                ((holder,),) = await ask(conn, _LOCKED_BY)
                if holder is not None:  # another proxy is at it, unless it is gone
                    await self._end_thread(one.host, int(holder))
                return
            try:
                async with around:
                    there = await _told(conn, verb + one.name.literal)
            finally:
                if not conn.closed and conn.receiver is None:
                    await ask(conn, _UNLOCK)
        if not there:
            if await self._end_thread(one.host, one.name.thread):
                self.left(one.name.gtrid, [one.host], one.state)
            return
        self.prepared.pop(one.key, None)
        outcome = "committed" if committed else "rolled back"
        self.resolved[outcome] += 1
        log.info(
            "a branch that was left is finished",
            host=one.host,
            gtrid=one.name.gtrid.decode(),
            outcome=outcome,
        )

    async def _end_thread(self, host: str, thread: int) -> bool:
        """End a connection of one of the proxy's accounts that has said nothing for a while, and holds up a
        branch or a decision: of a proxy that is gone and whose end the host has not noticed.
        """
        for account in self._backends.every_account:
            try:
                async with asyncio.timeout(_PATIENCE), own_connection(self._backends, host, account) as conn:
                    for row in await ask(conn, b"SHOW PROCESSLIST"):
                        silent = row[4] == b"Sleep" and int(row[5] or 0) >= self._settings.resolve_after
                        if row[0] == b"%d" % thread and silent and conn.thread_id != thread:
                            await ask(conn, b"KILL %d" % thread)
                            log.warning("a silent connection of a proxy is ended", host=host, thread=thread)
                            return True
            except (ProxyError, ServerError, TimeoutError):
                continue
        return False

    # -- forgetting
    # -------------------------------------------------------------------------------------------------

    async def _forget_old(self) -> None:
        """Delete decisions that no branch can ask for any more."""
        for host in sorted(self._asked & self.decisions.identities.keys()):
            try:
                for _ in range(_BATCHES):
                    some = await self.decisions.old(host, self._settings.keep, self._swept.pop(host, b""))
                    gone = await self._not_needed(host, some)
                    if gone:
                        await self.decisions.delete(host, gone)
                    if len(some) < SOME:
                        break
                    self._swept[host] = some[-1].gtrid
            except (ProxyError, ServerError, TimeoutError) as error:
                log.warning("old decisions are not deleted", host=host, reason=str(error))

    async def _not_needed(self, host: str, decided: list[Decided]) -> list[bytes]:
        """The names of those that no host has prepared, and no connection can decide. What is prepared is
        looked for only now: who has decided had prepared before. So no clock, and no `timestamp` that a
        session has set, takes away a decision that is needed.
        """
        if not decided:
            return []
        threads = frozenset[int]() if all(one.committed for one in decided) else await self._threads(host)
        needed = {one.name.gtrid for one in await self.look()}
        hosts, identities = self._topology().hosts, self.decisions.identities
        # of a host that does not answer nobody knows what it has; a pair that was copied from another has
        # the same identity
        away = {identities.get(one) for one in hosts if one not in self._asked}
        known = {identities.get(one) for one in self._asked} - away
        sure = None not in away
        return [
            one.gtrid
            for one in decided
            if one.gtrid not in needed
            and (sure and one.hosts <= known if one.committed else _decider(one.gtrid) not in threads)
        ]

    async def _threads(self, host: str) -> frozenset[int]:
        """The connections of the proxies on a host."""
        found: set[int] = set()
        for account in self._backends.every_account:
            async with asyncio.timeout(_PATIENCE), own_connection(self._backends, host, account) as conn:
                found |= {int(row[0] or 0) for row in await ask(conn, b"SHOW PROCESSLIST")}
        return frozenset(found)


def _decider(gtrid: bytes) -> int:
    """The connection that could decide a transaction."""
    name = BranchName.read(FORMAT_ID, gtrid, b"0.")
    return 0 if name is None else name.first_thread


async def _told(conn: BackendConnection, sql: bytes) -> bool:
    """Run XA COMMIT or XA ROLLBACK; False when the host knows no such branch, or a connection has it."""
    try:
        await ask(conn, sql)
    except ServerError as error:
        if error.err.code not in (_NOT_THERE, _EMPTY):
            raise
        return error.err.code == _EMPTY
    return True
