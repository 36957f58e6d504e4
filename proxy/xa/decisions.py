"""The decisions of distributed transactions: where they are kept, read, and made impossible.

A decision is a row of the first host's table, committed with the first host's own part. Who finds a branch
and no decision writes that it is aborted, under the same key: that waits for a transaction that is about to
decide, and afterwards nobody can decide any more. So no time-out is needed to be right. Before that is for
good a branch must still be prepared: while one is, no decision is deleted, so that there was none; else
somebody has finished the transaction, and how is forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic
from typing import Final, NamedTuple

import structlog

from config import xa
from config.topology import Topology
from config.xa import ABORTED, COMMITTED, BranchName
from proxy.backends import Backends
from proxy.backends.collect import Collector, ServerError
from proxy.backends.connection import BackendConnection
from proxy.backends.own import own_connection
from proxy.errors import ProxyError
from proxy.session.transaction import PLAINLY
from proxy.wire.packets import query_packet

log = structlog.get_logger("proxy")

_TABLE: Final = f"`{xa.DATABASE}`.`{xa.DECISIONS}`".encode()
_OF_HOST: Final = f"`{xa.DATABASE}`.`{xa.IDENTITY}`".encode()
_IDENTITY: Final = b"SELECT id FROM " + _OF_HOST
_COMMIT: Final = b"COMMIT" + PLAINLY
"""Behind each write: a server's own default may be autocommit = 0."""
_DUPLICATE: Final = 1062
_PATIENCE: Final = 5.0
"""Seconds that a host may take to answer."""
_PERIOD: Final = 2.0
SOME: Final = 1000
"""So many decisions are read, and deleted, at a time."""
Prepared = Callable[[], Awaitable[bool | None]]
"""Whether a branch of the transaction is prepared now, asked anew; None when none of their hosts answers."""


class Undecided(Exception):
    """It cannot be told now whether a transaction is committed; the text says why. `silent`: the host has let
    us wait, perhaps for a connection that was about to decide. `forgotten`: it is finished (or had
    written nothing on further hosts, which have lost it by a restart), and nobody will know any more how.
    """

    def __init__(self, reason: str, *, silent: bool = False, forgotten: bool = False) -> None:
        super().__init__(reason)
        self.silent = silent
        self.forgotten = forgotten


def decision(gtrid: bytes, hosts: Iterable[str]) -> bytes:
    """The statement that decides to commit, within the first host's transaction. It writes one row, or none
    on a host that has not the identity of the name. `hosts`: the identities of those that have branches.
    """
    return _insert(gtrid, COMMITTED, b",".join(sorted({one.encode() for one in hosts})))


def _insert(gtrid: bytes, committed: int, hosts: bytes) -> bytes:
    return b"INSERT INTO %s (gtrid, committed, hosts) SELECT X'%s', %d, X'%s' FROM %s WHERE id = X'%s'" % (
        _TABLE, gtrid.hex().encode(), committed, hosts[:4096].hex().encode(),
        _OF_HOST, gtrid.partition(b".")[0].hex().encode(),
    )  # fmt: skip


def _look(name: BranchName) -> bytes:
    return b"SELECT committed FROM %s WHERE gtrid = X'%s'" % (_TABLE, name.gtrid.hex().encode())


async def ask(conn: BackendConnection, sql: bytes) -> list[list[bytes | None]]:
    """A statement's rows. Raises ServerError, ProxyError."""
    reply = await Collector().run(conn, query_packet(sql))
    if reply.err is not None:
        raise ServerError(reply.err)
    return reply.values() if reply.ok is None else []


class Decided(NamedTuple):
    """A row. `hosts`: the identities of those that have branches."""

    gtrid: bytes
    committed: bool
    hosts: frozenset[str]


class Decisions:
    """The tables of all masters. `identities`: those of hosts that were looked at; `refused`: why others can
    hold no decisions. Sessions read both.
    """

    def __init__(self, backends: Backends, topology: Callable[[], Topology]) -> None:
        self.identities: dict[str, str] = {}
        self._backends = backends
        self._topology = topology
        self._again = 0.0  # when all are asked anew who they are, if one is looked for
        self.refused: dict[str, str] = {}

    async def learn(self, hosts: Iterable[str]) -> None:
        """Ask these hosts for their identities, unless they are known."""
        missing = [host for host in hosts if host not in self.identities]
        await asyncio.gather(*map(self._learn, missing))

    def forget(self, host: str) -> None:
        """It may be another server by now."""
        self.identities.pop(host, None)

    async def _learn(self, host: str) -> None:
        try:
            async with asyncio.timeout(_PATIENCE), own_connection(self._backends, host) as conn:
                rows = await ask(conn, _IDENTITY)
        except (ProxyError, TimeoutError):
            return  # the pool tells of hosts that are away
        except ServerError as error:
            self._tell(host, str(error))
            return
        if len(rows) == 1 and rows[0][0] is not None:
            self.identities[host] = rows[0][0].decode("latin-1")
            self.refused.pop(host, None)
        else:
            self._tell(host, f"{xa.DATABASE}.{xa.IDENTITY} has {len(rows)} rows")

    def _tell(self, host: str, reason: str) -> None:
        if self.refused.get(host) != reason:
            self.refused[host] = reason
            remedy = "run shardgate fleet create"
            log.warning("no distributed transactions there", host=host, reason=reason, remedy=remedy)

    async def settle(self, name: BranchName, prepared: Prepared) -> bool:
        """Whether the transaction is committed; from now on that is so for good. Raises Undecided."""
        masters = self._topology().hosts
        known = any(self._is(host, name) and name.is_of(host) for host in masters)
        if not known and monotonic() >= self._again:  # there may be other servers by now
            await asyncio.gather(*map(self._learn, masters))
            self._again = monotonic() + _PERIOD
        hosts = self._holders(name)
        found = await asyncio.gather(
            *(self._settle(host, name, prepared) for host in hosts), return_exceptions=True
        )
        if any(one is True for one in found):
            return True
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return False

    async def look_up(self, name: BranchName) -> bool | None:
        """Whether the transaction is committed, as its decision says; None when there is none (now). Raises
        Undecided.
        """
        found = await asyncio.gather(*(self._look_up(host, name) for host in self._holders(name)))
        return True if True in found else None if None in found else False

    async def _look_up(self, host: str, name: BranchName) -> bool | None:
        try:
            async with asyncio.timeout(_PATIENCE), own_connection(self._backends, host) as conn:
                rows = await ask(conn, _look(name))
        except TimeoutError:
            raise Undecided(f"{host} does not answer") from None
        except (ProxyError, ServerError) as error:
            raise Undecided(f"{host}: {error}") from None
        return rows[0][0] == b"1" if rows else None

    def _is(self, host: str, name: BranchName) -> bool:
        return self.identities.get(host) == name.identity

    def _holders(self, name: BranchName) -> list[str]:
        """The hosts that may have the decision: the one that the name has, or, where that is a master no
        more, those that have its identity: who was made the master in its place.
        """
        masters = self._topology().hosts
        named = [host for host in masters if name.is_of(host)]  # several, if the name has only their begin
        found = [host for host in named if self._is(host, name)] or [
            host for host in masters if self._is(host, name)
        ]
        asked = named if found and found[0] in named else masters
        unknown = [host for host in asked if host not in self.identities]
        if unknown:
            raise Undecided(f"{', '.join(unknown)} cannot be asked")
        if not found:
            who = f"is, or has replicated from, {name.first}" if name.first else f"is {name.identity}"
            raise Undecided(f"no master {who}")
        return found

    async def _settle(self, host: str, name: BranchName, prepared: Prepared) -> bool:
        look = _look(name)
        try:
            async with asyncio.timeout(_PATIENCE), own_connection(self._backends, host) as conn:
                rows = await ask(conn, _IDENTITY)
                if [row[0] for row in rows] != [name.identity.encode()]:
                    self.forget(host)
                    raise Undecided(f"{host} is another server by now")
                rows = await ask(conn, look)
                if not rows:
                    if await self._abort(conn, name, prepared):
                        return False
                    rows = await ask(conn, look)
        except TimeoutError:
            reason = f"{host} does not answer, or a transaction there is about to decide"
            raise Undecided(reason, silent=True) from None
        except (ProxyError, ServerError) as error:
            raise Undecided(f"{host}: {error}") from None
        if not rows:
            raise Undecided(f"{host} has forgotten it meanwhile")
        return rows[0][0] == b"1"

    async def _abort(self, conn: BackendConnection, name: BranchName, prepared: Prepared) -> bool:
        """Make the decision impossible; False when there is one meanwhile. Raises Undecided, ServerError."""
        await ask(conn, b"START TRANSACTION")
        try:
            await ask(conn, _insert(name.gtrid, ABORTED, b""))
        except ServerError as error:
            if error.err.code != _DUPLICATE:
                raise
            await ask(conn, _COMMIT)  # what was read before is not what is there now
            return False
        there = await prepared()
        await ask(conn, _COMMIT if there else b"ROLLBACK" + PLAINLY)
        if there is None:
            raise Undecided("none of the hosts with its branches answers")
        if not there:
            reason = (
                "it has no decision, and no branch of it is prepared any more: it was finished by another"
            )
            raise Undecided(f"{reason} proxy, or had nothing to be kept there", forgotten=True)
        return True

    async def old(self, host: str, seconds: float, behind: bytes = b"") -> list[Decided]:
        """The decisions of a host that are older than so many seconds, `SOME` at most, in the order of their
        names, which come behind this one.
        """
        sql = (
            b"SELECT gtrid, committed, hosts FROM %s"
            b" WHERE gtrid > X'%s' AND made < NOW() - INTERVAL %d SECOND ORDER BY gtrid LIMIT %d"
        )
        async with asyncio.timeout(_PATIENCE), own_connection(self._backends, host) as conn:
            rows = await ask(conn, sql % (_TABLE, behind.hex().encode(), max(1, int(seconds)), SOME))
            await ask(conn, _COMMIT)
        return [
            Decided(gtrid or b"", committed == b"1", frozenset((hosts or b"").decode().split(",")))
            for gtrid, committed, hosts in rows
        ]

    async def delete(self, host: str, gtrids: Iterable[bytes]) -> None:
        """Forget decisions of a host."""
        keys = b", ".join(b"X'%s'" % one.hex().encode() for one in gtrids)
        async with asyncio.timeout(_PATIENCE), own_connection(self._backends, host) as conn:
            await ask(conn, b"DELETE FROM %s WHERE gtrid IN (%s)" % (_TABLE, keys))
            await ask(conn, _COMMIT)
