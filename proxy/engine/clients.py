"""The clients of one worker process: who is connected, who is logging in, which sessions there are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Protocol

from config.settings import Limits
from config.settings import User as UserSettings
from proxy.backends.memory import Memory
from proxy.errors import ProxyError
from proxy.session.reading import sql_modes
from proxy.session.state import Role, Session, User
from proxy.throttle import FailedLogins, Logins

from .work import Leaving, Phase, Work

if TYPE_CHECKING:
    from proxy.wire.packets import Err
    from rewriter.env import Env
    from rewriter.plans import Plan

_PER_WORKER = 24
"""Bits of a connection id below the worker's number."""


class Connected(Protocol):
    """What others may ask of a client: those who list the clients, end one, or wait for them to go."""

    begun: float
    closed: bool
    descriptor: int
    held: int
    kind: str
    leaving: Leaving
    phase: Phase | None
    plan: Plan | None
    reading: tuple[bytes, Env] | None
    ready: bool
    session: Session
    sql: bytes
    transport: asyncio.Transport
    work: Work | None

    def close(self) -> None: ...

    def cut_off(self) -> None: ...

    def end_soon(self, why: ProxyError | None = None) -> None: ...

    def forget_statement(self) -> None: ...

    def leave_books(self) -> None: ...

    def write_error(self, error: ProxyError | Err, seq: int | None = None) -> None: ...


class Clients:
    """`connections` are all that are there, `sessions` (by connection id) those that have logged in."""

    def __init__(self, limits: Limits, most: int, worker: int = 0) -> None:
        """`most`: so many may be connected."""
        self.limits = limits
        self.most = most
        self.connections: set[Connected] = set()
        self.sessions: dict[int, Connected] = {}
        self.logins: Logins[Connected] = Logins(limits.logins)
        self.failed_logins = FailedLogins()
        self.memory = Memory(limits.client_memory)
        self.users: dict[str, User] = {}
        self.draining = False
        self._next_id = worker << _PER_WORKER

    def next_id(self) -> int:
        """A connection id that no session has; the worker's number is in its upper bits."""
        mask = (1 << _PER_WORKER) - 1
        base = self._next_id & ~mask
        for _ in range(1 << _PER_WORKER):
            self._next_id = base | (self._next_id + 1) & mask
            if self._next_id not in self.sessions and self._next_id & mask:
                break
        return self._next_id

    def open_session(
        self,
        client: Connected,
        id: int,
        user_name: str,
        address: str,
        *,
        server_version: str,
        defaults: Mapping[str, bytes],
        digests: bool,
    ) -> Session:
        """A session for a client that has logged in, perhaps in place of another. `defaults`: the servers'
        own settings; `digests`: they have MD5 and SHA1. ProxyError when the user has too many, or statements
        cannot be read with the sql_mode.
        """
        sql_modes(defaults.get("sql_mode", b"''"))
        user = self.users.get(user_name)
        if user is None:  # just removed
            raise ProxyError("access_denied", user=user_name, address=address, using="YES")
        if user.max_connections is not None:
            others = [other for other in self.sessions.values() if other is not client]
            count = sum(other.session.user.name == user_name for other in others)
            if count >= user.max_connections:
                raise ProxyError("too_many_user_connections", user=user_name, limit=user.max_connections)
        if client.session is not None:
            client.leave_books()
        session = Session(id, user, address, server_version, defaults, digests=digests)
        session.transaction_mode = user.transaction_mode
        session.memory, session.memory_limit = self.memory, self.limits.session_memory
        session.variables_limit = self.limits.user_variables
        session.idle_default = float(defaults.get("wait_timeout", inf))
        self.sessions[id] = client
        self.logins.end(client)
        return session

    def lock_holders(self, host: str) -> dict[int, int]:
        """The sessions that are pinned to a connection of `host`, by its number there: so those that may have
        a lock.
        """
        pins = ((client.session.transaction.held.get(host), id) for id, client in self.sessions.items())
        return {conn.thread_id: id for conn, id in pins if conn is not None and conn.pinned}

    def gone(self, client: Connected) -> None:
        """A client has closed its connection, or was ended."""
        self.connections.discard(client)
        self.logins.end(client)
        if client.session is not None:
            self.sessions.pop(client.session.id, None)

    def set_users(self, users: Iterable[tuple[UserSettings, int]]) -> None:
        """What users may do from their next statement on, each with the number of the servers' account."""
        self.users = {user.name: _user(user, account) for user, account in users}


def _user(user: UserSettings, account: int) -> User:
    """A user of the settings as sessions use it."""
    databases = None if "*" in user.databases else frozenset(user.databases)
    return User(
        user.name,
        Role[user.role.name],
        databases,
        user.scatter.allowed,
        user.scatter.limit,
        user.transaction_mode,
        user.max_connections or None,
        account,
    )
