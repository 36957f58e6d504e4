"""COMMIT of a transaction with branches on further hosts, all or none (docs/decisions/xa.md).

    1. XA END and XA PREPARE on every branch, at the same time
    2. the decision, a row, into the first host's own transaction, and its COMMIT: so it is committed
    3. XA COMMIT on every branch, at the same time

What fails before the decision rolls everything back. When the answer to its COMMIT is lost, the row tells;
what is left behind it is the resolver's (`proxy.xa.resolver`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Final

import structlog

from config.xa import BranchName
from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.engine import lease
from proxy.engine.waiting_room import read_only
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic
from proxy.session.transaction import PLAINLY, UNKNOWN_IDENTITY
from proxy.wire.packets import Err, query_packet
from proxy.xa.decisions import Decisions, Undecided, decision
from proxy.xa.resolver import Running

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

log = structlog.get_logger("proxy")

_DUPLICATE: Final = 1062
_NOT_THERE: Final = 1397
_PAUSE: Final = 0.2
"""Seconds between two tries to learn what was decided."""
_LEAST: Final = 5.0
"""Seconds that this is tried for, at least."""


class Committing:
    """One such COMMIT. `first`: the connection with the first host's own transaction, if that is open."""

    def __init__(
        self,
        client: Exchange,
        gtrid: bytes,
        first: BackendConnection | None,
        first_host: str,
        branches: list[BackendConnection],
        own: Collection[BackendConnection],
    ) -> None:
        """`own`: those of the connections that nobody but this gives back: the others go with the client."""
        self.client = client
        self._own = own
        self.gtrid = gtrid
        self.first = first
        self.first_host = first_host
        self.branches = branches
        self.later: list[str] = []  # the hosts whose branches are committed later, by the resolver

    async def run(self) -> None:
        """Commit. Raises ProxyError when nothing is committed, or nobody knows."""
        services, session = self.client.services, self.client.session
        hosts = [self.first_host, *(conn.host for conn in self.branches)]
        running = services.resolver.at_work[self.gtrid] = Running(session.id, session.user.name, hosts)
        try:
            await self._prepare()
            running.state = "deciding"
            await self._decide()
            running.state = "committing"
            await self._commit()
        finally:
            del services.resolver.at_work[self.gtrid]
        services.resolver.counts["committed"] += 1

    # -- the steps
    # ---------------------------------------------------------------------------------------------------

    async def _prepare(self) -> None:
        if self.gtrid.startswith(UNKNOWN_IDENTITY.encode()):
            raise await self._aborted(ProxyError("xa_not_ready", hosts=self.first_host))
        answers = await asyncio.gather(*map(self._prepare_one, self.branches))
        failed = next((one for one in answers if one is not None), None)
        if failed is not None:
            raise await self._aborted(failed)

    async def _prepare_one(self, conn: BackendConnection) -> ProxyError | None:
        """The error for the client, None when it is prepared."""
        conn.prepared = True
        end, prepare = (query_packet(verb + conn.branch) for verb in (b"XA END ", b"XA PREPARE "))
        try:
            reply = await self._ask(conn, end + prepare, 1)
        except ProxyError as error:
            if error.kind.name == "settings_failed":  # XA END: the server has rolled it back already
                return ProxyError("transaction_undone", reason=str(error.details["reason"]))
            return ProxyError("transaction_cut", reason=error.text)
        if reply.err is None:
            return None
        conn.prepared = False
        conn.close()
        return _refused(conn.host, reply.err)

    async def _decide(self) -> None:
        """The row, and COMMIT of it. One host's are known to be done, or the row is asked for."""
        conn = self.first
        if conn is None:
            conn = await self._apart()
        identities = self.client.services.resolver.decisions.identities
        of_branches = [identities.get(one.host, "?") for one in self.branches]
        try:
            reply = await self._ask(conn, query_packet(decision(self.gtrid, of_branches)))
        except ProxyError as error:
            raise await self._aborted(ProxyError("transaction_cut", reason=error.text)) from None
        if reply.err is not None:
            conn.close()
            raise await self._aborted(_refused(conn.host, reply.err))
        if reply.ok is None or reply.ok.affected != 1:
            conn.close()
            self.client.services.resolver.decisions.forget(conn.host)
            raise await self._aborted(ProxyError("xa_not_ready", hosts=conn.host))
        try:
            reply = await self._ask(conn, query_packet(b"COMMIT" + PLAINLY))
        except ProxyError as error:
            await self._find_out(error)
            return
        if reply.err is not None:
            conn.close()
            told = _refused(conn.host, reply.err)
            if told.kind.name != "transaction_lost":
                raise await self._aborted(told)  # the server has rolled it back
            await self._find_out(told)
        elif conn is not self.first:
            lease.free(conn)

    async def _apart(self) -> BackendConnection:
        """A transaction for the decision alone, where none is open on the first host any more."""
        try:
            conn = await lease.outside(self.client, self.first_host)
        except ProxyError as error:
            raise await self._aborted(ProxyError("transaction_cut", reason=error.text)) from None
        self._own = {*self._own, conn}
        try:
            reply = await self._ask(conn, query_packet(b"START TRANSACTION"))
        except ProxyError as error:
            raise await self._aborted(ProxyError("transaction_cut", reason=error.text)) from None
        if reply.err is not None:
            conn.close()
            raise await self._aborted(_refused(conn.host, reply.err))
        return conn

    async def _find_out(self, error: ProxyError) -> None:
        """COMMIT of the decision was not answered by OK: whether it is done, the row tells. Returns when it
        is committed; raises `error` when it is not and never will be, and xa_unknown or xa_forgotten when
        that cannot be told.
        """
        services = self.client.services
        decisions: Decisions = services.resolver.decisions
        prepared = partial(services.resolver.prepared_now, self.gtrid, [conn.host for conn in self.branches])
        name = BranchName.own(self.gtrid, self.first_host)
        until = monotonic() + max(_LEAST, services.settings.timeouts.buffer)
        while True:
            try:
                committed = await decisions.settle(name, prepared)
                break
            except Undecided as why:
                if why.forgotten or monotonic() > until:
                    raise self._unknown(why) from None
                await asyncio.sleep(_PAUSE)
        if not committed:
            told = ProxyError("transaction_cut", reason=error.text) if error.lost else error
            raise await self._aborted(told)

    async def _commit(self) -> None:
        await asyncio.gather(*map(self._commit_one, self.branches))
        if self.later:
            self.client.services.caches.unsure(self.client)  # a host that hangs may do it when it goes on
            self.client.services.resolver.left(self.gtrid, self.later, "committed")

    async def _commit_one(self, conn: BackendConnection) -> None:
        """One that fails is committed later: that was decided."""
        try:
            reply = await self._ask(conn, query_packet(b"XA COMMIT " + conn.branch))
            err = reply.err
        except ProxyError as error:
            self._tell_later(conn.host, error.text)
            self.later.append(conn.host)
            return
        if err is not None and err.code != _NOT_THERE:  # else the resolver was faster
            self._tell_later(conn.host, err.text())
            self.later.append(conn.host)
        if err is not None:
            conn.close()
        else:
            conn.branch, conn.prepared = b"", False

    def _tell_later(self, host: str, reason: str) -> None:
        log.warning("a branch is committed later", host=host, gtrid=self.gtrid.decode(), reason=reason)

    async def _ask(self, conn: BackendConnection, packets: bytes, sync: int = 0) -> Collector:
        """ProxyError when the connection is lost: it is closed then."""
        if self.client.closed and conn not in self._own:
            raise ProxyError("connection_gone", host=conn.host)  # and perhaps somebody else's by now
        return await Collector().run(conn, packets, sync, kill=False)

    # -- what fails
    # --------------------------------------------------------------------------------------------------

    async def _aborted(self, error: ProxyError) -> ProxyError:
        """Roll everything back, since nothing is decided; returns the error to be raised."""
        self.client.services.resolver.counts["aborted"] += 1
        open_ = [conn for conn in self.branches if not conn.closed and conn.branch]
        await asyncio.gather(*map(self._roll_back, open_))
        if any(conn.prepared for conn in self.branches):
            self._leave("aborted")
        return error

    async def _roll_back(self, conn: BackendConnection) -> None:
        statements = [b"XA ROLLBACK " + conn.branch] if conn.prepared else lease.ending(conn, b"ROLLBACK")
        packets = [query_packet(one) for one in statements]
        try:
            reply = await self._ask(conn, b"".join(packets), len(packets) - 1)
        except ProxyError:
            return
        if reply.err is not None:
            conn.close()
        else:
            conn.branch, conn.prepared, conn.undone = b"", False, False

    def _unknown(self, why: Undecided) -> ProxyError:
        """It cannot be told what became of it; returns the error to be raised."""
        gtrid, reason = self.gtrid.decode(), str(why)
        log.error("a COMMIT is undecided", gtrid=gtrid, reason=reason)
        self.client.services.resolver.counts["unknown"] += 1
        if why.forgotten:
            self._close_prepared()
            return ProxyError("xa_forgotten", gtrid=gtrid, reason=reason)
        self._leave("undecided")
        return ProxyError("xa_unknown", gtrid=gtrid, reason=reason)

    def _leave(self, state: str) -> None:
        """The resolver has to finish it."""
        self._close_prepared()
        hosts = [conn.host for conn in self.branches if conn.prepared]
        self.client.services.resolver.left(self.gtrid, hosts, state)

    def _close_prepared(self) -> None:
        for conn in self.branches:
            if conn.prepared and (conn in self._own or not self.client.closed):
                conn.close()


async def end_branch(conn: BackendConnection, sql: bytes) -> Err | None:
    """COMMIT in one phase, or ROLLBACK, of the branch on `conn` alone. Raises ProxyError."""
    packets = [query_packet(one) for one in lease.ending(conn, sql)]
    try:
        reply = await Collector().run(conn, b"".join(packets), len(packets) - 1)
    except ProxyError as error:
        if error.kind.name != "settings_failed":
            raise
        if sql == b"ROLLBACK":
            return None  # the connection is closed, and so it is rolled back
        raise ProxyError("transaction_undone", reason=str(error.details["reason"])) from None
    if reply.err is None:
        conn.branch, conn.undone = b"", False
    elif conn.undone and sql == b"ROLLBACK":
        conn.close()  # see `lease.ending`
        return None
    return reply.err


def later_warnings(hosts: Iterable[str]) -> list[Diagnostic]:
    """What the client is warned of when branches are committed, but not yet to be seen."""
    kinds = [ProxyError("xa_later", host=host) for host in hosts]
    return [Diagnostic("Warning", one.code, str(one)) for one in kinds]


def _refused(host: str, error: Err) -> ProxyError:
    """The error of a COMMIT that a server has refused, so that all is rolled back."""
    if read_only(error):
        return ProxyError("transaction_moved", host=host)
    if error.code == _DUPLICATE:
        return ProxyError("transaction_undone", reason="another proxy has ended it, since it took too long")
    if error.code in (1213, 1402, 1613, 1614, 3101):
        return ProxyError("transaction_undone", reason=error.text())
    return ProxyError("transaction_lost", reason=f"{host}: {error.text()}")
