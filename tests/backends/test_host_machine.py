"""A host's pool under everything in any order: no connection serves two, nobody is forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from proxy.backends.connection import BackendConnection
from proxy.backends.pool import CAPABILITY_SETS
from proxy.backends.settings import LOGIN, Settings
from proxy.backends.waiting import Waiter
from proxy.errors import ProxyError
from tests.backends.fakes import IN_TRANS, OK, Recorder
from tests.backends.hosts import LIMITS, World

OTHER = Settings.of({"sql_mode": b"'ANSI'"})
SHARED = replace(LIMITS, max_connections=4, max_waiting=6, user_share=0.7)


@dataclass(eq=False)
class Client:
    """Somebody who asked for a connection. `ends` counts how often it was granted or refused."""

    capability_set: int
    user: str = ""
    conn: BackendConnection | None = None
    ends: int = 0
    cancelled: bool = False
    statement: Recorder | None = None
    waiter: Waiter[BackendConnection] | None = field(default=None)

    def granted(self, conn: BackendConnection) -> None:
        assert not self.cancelled
        assert conn.capability_set == self.capability_set
        assert conn.receiver is None
        assert not any((conn.closed, conn.pinned, conn.in_transaction))
        self.conn = conn
        self.ends += 1

    def refused(self, error: Exception) -> None:
        assert isinstance(error, ProxyError)
        assert not self.cancelled
        self.ends += 1

    @property
    def waiting(self) -> bool:
        return not self.ends and not self.cancelled


class HostMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.world = World(SHARED)
        self.clients: list[Client] = []

    def teardown(self) -> None:
        self.run(self._cancel_all())
        self.loop.close()

    async def _cancel_all(self) -> None:
        for task in self.world.tasks:
            task.cancel()
        await asyncio.gather(*self.world.tasks, return_exceptions=True)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(coroutine)

    def calls(self, function: Any, *arguments: Any) -> Any:
        """Call it inside the event loop, and let the tasks it made go on."""

        async def called() -> Any:
            result = function(*arguments)
            await self.world.settle()
            return result

        return self.run(called())

    def holding(self) -> list[Client]:
        return [client for client in self.clients if client.conn is not None]

    # -- clients
    # ------------------------------------------------------------------------------------------------------

    @rule(
        settings=st.sampled_from((LOGIN, OTHER)),
        capability_set=st.sampled_from((0, 0, 0, *range(1, CAPABILITY_SETS))),
        user=st.sampled_from("aab"),
    )
    def ask(self, settings: Settings, capability_set: int, user: str) -> None:
        client = Client(capability_set, user)
        self.clients.append(client)
        pool = self.world.pool
        conn = pool.state.take(settings, None, capability_set, user)
        if conn is not None:
            conn.settings = settings
            client.granted(conn)
            return
        client.waiter = self.calls(
            pool.wait, settings, None, capability_set, client.granted, client.refused, user
        )

    @precondition(lambda self: self.holding())
    @rule(data=st.data())
    def send(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.holding()))
        assert client.conn is not None
        if client.conn.receiver is None and not client.conn.closed:
            client.statement = Recorder()
            client.conn.begun = self.world.now
            client.conn.send(b"statement", client.statement)

    @precondition(lambda self: self.holding())
    @rule(data=st.data(), reply=st.sampled_from((OK, IN_TRANS, OK[:5], b"\xff")))
    def reply(self, data: st.DataObject, reply: bytes) -> None:
        client = data.draw(st.sampled_from(self.holding()))
        assert client.conn is not None
        if not client.conn.closed:
            self.calls(client.conn.data_received, reply)

    @precondition(lambda self: self.holding())
    @rule(data=st.data(), pinned=st.booleans(), doomed=st.booleans())
    def give_back(self, data: st.DataObject, pinned: bool, doomed: bool) -> None:
        """At any time, in the middle of a reply too."""
        client = data.draw(st.sampled_from(self.holding()))
        conn, client.conn = client.conn, None
        assert conn is not None
        conn.pinned, conn.doomed = pinned, doomed
        self.calls(self.world.pool.release, conn)

    @precondition(lambda self: any(client.waiting for client in self.clients))
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from([client for client in self.clients if client.waiting]))
        client.cancelled = True
        assert client.waiter is not None
        client.waiter.cancelled = True

    # -- the server
    # ------------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.world.openings)
    @rule(succeeds=st.booleans())
    def open(self, succeeds: bool) -> None:
        self.run(self.world.opened() if succeeds else self.world.open_failed())

    @rule(data=st.data(), answer=st.sampled_from((OK, OK + OK, IN_TRANS, b"\0\0\0\0\0", b"")))
    def answer_the_pool(self, data: st.DataObject, answer: bytes) -> None:
        """To a reset or a KILL; b"": the connection is lost instead."""
        used = {id(client.conn) for client in self.holding()}
        asked = [c for c in self.world.transports if c.receiver is not None and id(c) not in used]
        if not asked:
            return
        conn = data.draw(st.sampled_from(asked))
        if answer:
            self.calls(conn.data_received, answer)
        else:
            self.calls(conn.connection_lost, None)

    @precondition(lambda self: self.world.transports)
    @rule(data=st.data())
    def lose(self, data: st.DataObject) -> None:
        self.calls(data.draw(st.sampled_from(list(self.world.transports))).connection_lost, None)

    @rule(seconds=st.sampled_from((0.0, 0.3, 6.0, 12.0, 40.0, 100.0)))
    def tick(self, seconds: float) -> None:
        self.calls(self.world.tick, seconds)

    # -- what must hold
    # ------------------------------------------------------------------------------------------------------

    @invariant()
    def the_books_are_right(self) -> None:
        self.world.check()

    @invariant()
    def a_connection_serves_one(self) -> None:
        held = [id(client.conn) for client in self.holding()]
        assert len(held) == len(set(held))
        state = self.world.pool.state
        idle = list(chain(*state.idle))
        assert not {id(conn) for conn in idle} & set(held)
        for conn in idle:
            assert conn.receiver is None
            assert not any((conn.pinned, conn.doomed, conn.in_transaction))
        for client in self.holding():
            assert client.conn in state.busy or client.conn.closed  # type: ignore[union-attr]

    @invariant()
    def everybody_is_answered_once_or_waits(self) -> None:
        queued = {id(one) for one in self.world.pool.state.waiting}
        for client in self.clients:
            assert client.ends <= 1
            if client.waiting:
                assert id(client.waiter) in queued
        for client in self.holding():
            assert client.statement is None or client.statement.ends <= 1

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        """Whoever waits has a connection under way, or all are in use, or the next attempt is yet to come."""
        pool = self.world.pool
        if any(client.waiting and pool.state.may(client.user) for client in self.clients):
            assert self.world.openings or len(pool.state.busy) == SHARED.max_connections or pool.failures

    @invariant()
    def something_is_left_for_the_others(self) -> None:
        assert list(self.world.pool.state.busy.values()).count("a") < SHARED.max_connections


HostMachine.TestCase.settings = hypothesis_settings(max_examples=40, stateful_step_count=30, deadline=None)
TestHostMachine = HostMachine.TestCase
