"""The pool's decisions, without a socket or a clock: examples, and a machine that tries everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, count, product

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from proxy.backends.connection import BackendConnection
from proxy.backends.pool import CAPABILITY_SETS, EXTENDED_METADATA, FOUND_ROWS, PoolState
from proxy.backends.settings import LOGIN, Settings
from proxy.backends.waiting import Share, Waiter
from tests.backends.fakes import FakeOwner

OTHER = Settings.of({"time_zone": b"'+00:00'"})


class Conn(BackendConnection):
    """One without a transport: these are decisions only."""

    def __init__(
        self, settings: Settings = LOGIN, database: str | None = None, capability_set: int = 0
    ) -> None:
        super().__init__("h1:3306", FakeOwner())
        self.settings, self.database, self.capability_set = settings, database, capability_set


def pool(idle: Sequence[BackendConnection], most: int = 10, waiting: int = 10) -> PoolState:
    state = PoolState(most, waiting)
    for number, conn in enumerate(idle):
        state.busy[conn] = ""
        assert state.give(conn, float(number)) is None
    return state


def waiter(
    settings: Settings = LOGIN, capability_set: int = 0, deadline: float = 1.0
) -> Waiter[BackendConnection]:
    return Waiter(settings, None, capability_set, deadline, lambda conn: None, lambda error: None)


# -- which connection
# ----------------------------------------------------------------------------------------------------------


def test_the_one_used_last_if_it_fits() -> None:
    first, last = Conn(), Conn()
    assert pool([first, last]).take(LOGIN, None, False) is last


def test_one_that_fits_before_one_used_later() -> None:
    fits, other = Conn(), Conn(OTHER)
    state = pool([fits, other])
    assert state.take(LOGIN, None, False) is fits
    assert state.idle[0] == [other]


def test_the_database_counts_when_it_is_asked_for() -> None:
    one, two = Conn(database="one"), Conn(database="two")
    assert pool([one, two]).take(LOGIN, "one", False) is one
    assert pool([one, two]).take(LOGIN, None, False) is two


def test_any_is_better_than_none() -> None:
    one, two = Conn(OTHER), Conn(OTHER, "x")
    assert pool([one, two]).take(LOGIN, "y", False) is two


def test_only_the_last_few_are_looked_at() -> None:
    fits, others = Conn(), [Conn(OTHER) for _ in range(8)]
    assert pool([fits, *others]).take(LOGIN, None, False) is others[-1]
    assert pool([fits, *others[1:]]).take(LOGIN, None, False) is fits


def test_found_rows_never_mix() -> None:
    state = pool([Conn(capability_set=FOUND_ROWS)])
    assert state.take(LOGIN, None, False) is None
    assert state.take(LOGIN, None, True) is not None
    assert state.take(LOGIN, None, True) is None


# -- who waits
# ----------------------------------------------------------------------------------------------------------


def test_given_to_the_first_of_its_kind_that_still_wants_it() -> None:
    conn = Conn()
    state = pool([conn])
    state.take(LOGIN, None, False)
    cancelled, other, first, second = waiter(), waiter(capability_set=FOUND_ROWS), waiter(), waiter()
    for one in (cancelled, other, first, second):
        assert state.wait(one)
    cancelled.cancelled = True
    assert state.give(conn, 0.0) is first
    assert conn in state.busy
    assert state.give(conn, 0.0) is second
    assert state.give(conn, 0.0) is None
    assert state.idle_count == 1
    assert [one for one in state.waiting if not one.cancelled] == [other]


def test_giving_back_twice_is_an_error() -> None:
    conn = Conn()
    with pytest.raises(KeyError):
        pool([conn]).give(conn, 0.0)


def test_the_queue_is_full() -> None:
    state = pool([], waiting=2)
    first, second = waiter(), waiter()
    assert state.wait(first)
    assert state.wait(second)
    assert not state.wait(waiter())
    second.cancelled = True
    third = waiter()
    assert state.wait(third), "cancelled ones need no place"
    assert list(state.waiting) == [first, third]


def test_expired_and_cancelled_ones_leave() -> None:
    state = pool([])
    late, cancelled, patient = waiter(deadline=5.0), waiter(deadline=1.0), waiter(deadline=9.0)
    cancelled.cancelled = True
    for one in (late, cancelled, patient):
        state.wait(one)
    assert state.expired(4.9) == []
    assert list(state.waiting) == [late, patient]
    assert state.expired(5.0) == [late]
    assert state.all_waiting() == [patient]
    assert not state.waiting


# -- opening
# ----------------------------------------------------------------------------------------------------------


def test_one_opening_for_each_waiter_up_to_the_limit() -> None:
    state = pool([], most=2)
    assert not state.can_open()
    opened = []
    for _ in range(3):
        state.wait(waiter())
        opened.append(state.can_open())
        state.opening += state.can_open()
    assert opened == [True, True, False]
    assert state.size == 2


def test_the_kind_to_open() -> None:
    state = pool([])
    assert state.next_capability_set() == 0
    for kind in (FOUND_ROWS, 0, EXTENDED_METADATA):
        state.wait(waiter(capability_set=kind))
    kinds = []
    for state.opening in range(4):
        kinds.append(state.next_capability_set())
    assert kinds == [FOUND_ROWS, 0, EXTENDED_METADATA, EXTENDED_METADATA]


def test_a_misfit_makes_room() -> None:
    plain, special = Conn(), Conn(capability_set=FOUND_ROWS)
    state = pool([plain, special], most=2)
    assert state.misfit() is None, "nobody waits"
    state.wait(waiter(capability_set=FOUND_ROWS))
    assert state.misfit() is plain
    assert state.misfit() is None, "now there is room"
    assert pool([plain], most=3).misfit() is None


def test_no_misfit_while_an_opening_one_will_do() -> None:
    state = pool([Conn()], most=2)
    state.wait(waiter(capability_set=FOUND_ROWS))
    state.opening = 1
    assert state.misfit() is None


def test_idle_too_long() -> None:
    conns = [Conn() for _ in range(4)]
    state = pool(conns)
    assert state.idle_too_long(2.0, keep=1) == conns[:2]
    assert state.idle_too_long(99.0, keep=1) == [conns[2]]
    assert state.idle[0] == [conns[3]]


# -- everything
# ----------------------------------------------------------------------------------------------------------

MOST, QUEUE, PART = 5, 6, 0.8


@dataclass(eq=False)
class Client:
    number: int
    capability_set: int
    conn: BackendConnection | None = None
    granted: int = 0
    gone: bool = False
    user: str = ""
    waiter: Waiter[BackendConnection] = field(init=False)


class PoolMachine(RuleBasedStateMachine):
    """Plays the host: opens what `can_open` says, closes misfits, and hands on what `give` says."""

    def __init__(self) -> None:
        super().__init__()
        self.state = PoolState(MOST, QUEUE, PART)
        self.opening: list[int] = []
        self.lent: list[BackendConnection] = []
        self.waiters: list[Client] = []
        self.granted: list[Client] = []
        self.now = 0.0
        self.numbers = count()

    def act(self) -> None:
        while (found := self.state.assign()) is not None:
            waiter, conn = found
            assert waiter.capability_set == conn.capability_set
            waiter.granted(conn)
        misfit = self.state.misfit()
        if misfit is not None:
            self.state.forget(misfit)
        while self.state.can_open():
            self.opening.append(self.state.next_capability_set())
            self.state.opening += 1

    def give(self, conn: BackendConnection) -> None:
        found = self.state.give(conn, self.now)
        if found is not None:
            found.granted(conn)
        self.act()

    def held_by(self, user: str) -> int:
        return list(self.state.busy.values()).count(user)

    def got(self, client: Client, conn: BackendConnection) -> None:
        assert not client.gone
        client.conn = conn
        client.granted += 1
        self.granted.append(client)
        self.lent.append(conn)

    @rule(
        settings=st.sampled_from((LOGIN, OTHER)),
        capability_set=st.sampled_from((0, 0, 0, FOUND_ROWS)),
        user=st.sampled_from(("", "a", "a", "a", "b", "c")),
    )
    def waiter(self, settings: Settings, capability_set: int, user: str) -> None:
        self.now += 1.0
        conn = self.state.take(settings, None, capability_set, user)
        if conn is not None:
            assert conn.capability_set == capability_set
            assert not [
                one for one in self.live() if one.user == user and one.capability_set == capability_set
            ]
            conn.settings = settings
            self.lent.append(conn)
            return
        client = Client(next(self.numbers), capability_set, user=user)
        client.waiter = Waiter(
            settings,
            None,
            capability_set,
            self.now + 20.0,
            partial(self.got, client),
            lambda error: None,
            user,
        )
        if self.state.wait(client.waiter):
            self.waiters.append(client)
        else:
            own = sum(one.user == user for one in self.live())
            assert len(self.live()) >= QUEUE or not Share(QUEUE, PART).allows(own, len(self.live()), user)
            assert own or len(self.live()) >= QUEUE, "who has nobody waiting has a place while there is one"
        self.act()

    @precondition(lambda self: self.lent)
    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        self.give(self.lent.pop(data.draw(st.integers(0, len(self.lent) - 1))))

    @precondition(lambda self: self.lent)
    @rule(data=st.data())
    def lost_in_use(self, data: st.DataObject) -> None:
        self.state.forget(self.lent.pop(data.draw(st.integers(0, len(self.lent) - 1))))
        self.act()

    @precondition(lambda self: self.state.idle_count)
    @rule(data=st.data())
    def lost_while_idle(self, data: st.DataObject) -> None:
        idle = list(chain(*self.state.idle))
        self.state.forget(data.draw(st.sampled_from(idle)))
        self.act()

    @precondition(lambda self: self.opening)
    @rule()
    def opened(self) -> None:
        conn = Conn(capability_set=self.opening.pop(0))
        self.state.opening -= 1
        self.state.busy[conn] = ""
        self.give(conn)

    @precondition(lambda self: self.opening)
    @rule()
    def open_failed(self) -> None:
        self.opening.pop(0)
        self.state.opening -= 1
        self.act()

    @precondition(lambda self: self.live())
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        client = data.draw(st.sampled_from(self.live()))
        client.waiter.cancelled = client.gone = True

    @rule(seconds=st.integers(1, 15))
    def tick(self, seconds: int) -> None:
        self.now += seconds
        for late in self.state.expired(self.now):
            assert late.deadline <= self.now
            next(client for client in self.waiters if client.waiter is late).gone = True
        self.state.idle_too_long(self.now - 30.0, keep=1)
        self.act()

    def live(self) -> list[Client]:
        return [client for client in self.waiters if not client.gone and not client.granted]

    @invariant()
    def no_more_than_allowed(self) -> None:
        assert self.state.size <= MOST
        assert self.state.opening == len(self.opening)

    @invariant()
    def every_connection_in_one_place(self) -> None:
        places = [*chain(*self.state.idle), *self.state.busy]
        assert len(places) == len(set(map(id, places)))
        assert set(map(id, self.lent)) == set(map(id, self.state.busy))
        assert len(self.lent) == len(self.state.busy)
        for capability_set, idle in enumerate(self.state.idle):
            assert all(conn.capability_set == capability_set for conn in idle)

    @invariant()
    def nobody_is_lost_or_served_twice(self) -> None:
        assert all(client.granted <= 1 for client in self.waiters)
        queued = {id(one) for one in self.state.waiting}
        assert all(id(client.waiter) in queued for client in self.live())

    @invariant()
    def first_come_first_served(self) -> None:
        """Of each user."""
        for user, kind in product(("", "a", "b", "c"), range(CAPABILITY_SETS)):
            numbers = [one.number for one in self.granted if (one.user, one.capability_set) == (user, kind)]
            assert numbers == sorted(numbers)

    @invariant()
    def nobody_has_more_than_its_share(self) -> None:
        for user in "abc":
            assert self.held_by(user) < max(MOST * PART + 1, 2)
        if len(set(self.state.busy.values()) - {""}) == 1 and "" not in self.state.busy.values():
            assert len(self.state.busy) < MOST, "one user alone leaves something"

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        """Who waits and may have one has no idle connection to take, and one is on its way or all are in
        use.
        """
        live = [one for one in self.live() if self.state.may(one.user)]
        for client in live:
            assert not self.state.idle[client.capability_set]
        if live:
            assert self.opening or len(self.lent) == MOST


PoolMachine.TestCase.settings = hypothesis_settings(max_examples=50, stateful_step_count=40, deadline=None)
TestPoolMachine = PoolMachine.TestCase
