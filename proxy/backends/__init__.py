"""Connections to the servers behind the proxy.

`connection` one connection, `receiver` who gets its replies; `connecting` opens it; `pool` decides which
serves whom (no I/O); `host` puts a pool to work; `collect` reads a small reply; `Backends`, here, has a
pool for every host that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from proxy.load import Loads

from .connection import BackendConnection
from .host import HostPool
from .pool import CAPABILITY_SETS

OWN_ACCOUNT: Final = ""
"""The proxy's own account, by the name that it has here: `backends.user`."""


class _Made(dict[str, HostPool]):
    """Pools by their hosts, made when they are asked for."""

    def __init__(self, make: Callable[[str], HostPool]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, host: str) -> HostPool:
        found = self[host] = self._make(host)
        return found


class Backends:
    """A pool for each host, made when it is first needed. A host's pool has the connections of all accounts,
    so that `max_connections` bounds their sum; the account is part of a connection's variant.
    """

    def __init__(self, make_pool: Callable[[str], HostPool], gathers: int = 8) -> None:
        """`gathers`: how many statements may gather rows on one host at the same time."""
        self._make_pool = make_pool
        self._gathers = gathers
        #: What hosts and shards have to do.
        self.loads = Loads()
        self._scratch: dict[str, HostPool] = {}
        self._pools = _Made(self._new)
        #: A host's pool.
        self.pool: Callable[[str], HostPool] = self._pools.__getitem__
        self._retired: list[HostPool] = []
        self._accounts = [OWN_ACCOUNT]

    def capability_set_of(self, account: str) -> int:
        """What connections that are logged in as `account` ("": the proxy's own) have in their variant."""
        if account not in self._accounts:
            self._accounts.append(account)
            for pool in [*self._pools.values(), *self._scratch.values()]:
                pool.state.serve(len(self._accounts))
        return self._accounts.index(account) * CAPABILITY_SETS

    def account_of(self, capability_set: int) -> str:
        """The account of connections of this variant."""
        return self._accounts[capability_set // CAPABILITY_SETS]

    @property
    def every_account(self) -> Iterable[int]:
        """A variant of connections of each account."""
        return range(0, len(self._accounts) * CAPABILITY_SETS, CAPABILITY_SETS)

    def _new(self, host: str) -> HostPool:
        made = self._make_pool(host)
        made.load = self.loads.host(host)
        made.state.serve(len(self._accounts))
        return made

    def up(self, host: str) -> bool:
        """Whether a host serves, as far as is known."""
        found = self._pools.get(host)
        return found is None or found.up

    def away(self, host: str) -> bool:
        """Whether a host is known not to serve."""
        found = self._pools.get(host)
        return found is not None and found.away

    def scratch(self, host: str) -> HostPool:
        """The pool of connections that rows are gathered on. It is one of its own: who waits for one of
        these has no other, so that gathers and fan-outs never wait for each other.
        """
        found = self._scratch.get(host)
        if found is None:
            found = self._scratch[host] = self._new(host)
            most = min(self._gathers, found.limits.max_connections)
            found.limits = replace(found.limits, max_connections=most)
            found.state.share.resize(most)
        return found

    def gathering(self, host: str) -> int:
        """Connections that rows are gathered on, idle ones too."""
        found = self._scratch.get(host)
        return 0 if found is None else found.state.size

    @property
    def pools(self) -> Iterable[HostPool]:
        return self._pools.values()

    @property
    def every_pool(self) -> Iterable[HostPool]:
        """Those that close, and those for gathering, too."""
        return [*self._pools.values(), *self._scratch.values(), *self._retired]

    def release(self, conn: BackendConnection) -> None:
        """Give a connection back to the pool it came from."""
        owner = conn.owner
        assert isinstance(owner, HostPool)
        owner.release(conn)

    def kill_query(self, conn: BackendConnection) -> None:
        """`BackendConnection.kill_query`."""
        conn.kill_query()

    def killed(self, conn: BackendConnection) -> None:
        """What `kill_query` was for has ended on `conn`, which its session goes on with: a kill that is
        still to be sent would end the next statement.
        """
        owner = conn.owner
        assert isinstance(owner, HostPool)
        conn.kill_wanted = False
        owner.withdraw_kill(conn.thread_id)

    def discard(self, conn: BackendConnection) -> None:
        """Close `conn` in the middle of a statement, and end the statement on the server."""
        owner = conn.owner
        assert isinstance(owner, HostPool)
        owner.discard(conn, kill=True)

    def renew(self) -> None:
        """Connections go as they become free, and new ones take their places."""
        for pool in self.every_pool:
            pool.renew()

    def keep_only(self, hosts: Iterable[str]) -> None:
        """The topology names just these hosts now: the others' pools close as their statements end."""
        wanted = set(hosts)
        for pools in (self._pools, self._scratch):
            for host in [host for host in pools if host not in wanted]:
                pool = pools.pop(host)
                pool.retire()
                self._retired.append(pool)

    def tick(self) -> None:
        for pool in self.every_pool:  # a tick may end in a statement on a new host
            pool.tick()
        self._retired = [pool for pool in self._retired if pool.state.size or pool.state.waiting]

    def close(self) -> None:
        for pool in self.every_pool:
            pool.close()
