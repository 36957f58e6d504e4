"""A user's share of a host's connections and of the queue: what one may have, and that all are served."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.connection import BackendConnection
from proxy.backends.pool import FOUND_ROWS, PoolState
from proxy.backends.settings import LOGIN
from proxy.backends.waiting import NOBODY, Share, Waiter
from tests.backends.test_pool import Conn


def filled(most: int = 10, waiting: int = 10, part: float = 0.8) -> PoolState:
    """A pool with all its connections idle."""
    state = PoolState(most, waiting, part)
    for _ in range(most):
        conn = Conn()
        state.busy[conn] = NOBODY
        state.give(conn, 0.0)
    return state


def take_all(state: PoolState, user: str) -> list[BackendConnection]:
    """As many as the user gets."""
    return list(iter(lambda: state.take(LOGIN, None, 0, user), None))


def waiter(user: str, capability_set: int = 0) -> Waiter[BackendConnection]:
    return Waiter(LOGIN, None, capability_set, 1.0, lambda conn: None, lambda error: None, user)


# -- how much
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "part", "alone"),
    [
        *((100, 0.8, 80), (10, 0.8, 8), (5, 0.8, 4), (4, 0.8, 3), (3, 0.8, 2), (2, 0.8, 2), (1, 0.8, 1)),
        *((100, 0.5, 50), (100, 1.0, 100), (3, 1.0, 3), (100, 0.01, 1), (1, 0.01, 1)),
    ],
)
def test_a_user_alone(most: int, part: float, alone: int) -> None:
    assert len(take_all(filled(most, part=part), "greedy")) == alone


def test_what_is_left_is_for_the_others() -> None:
    state = filled(100)
    assert [len(take_all(state, user)) for user in "abcdefgh"] == [80, 16, 3, 1, 0, 0, 0, 0]
    state = filled(100)
    users = [f"user{number}" for number in range(20)]
    for _ in range(100):
        for user in users:
            state.take(LOGIN, None, 0, user)
    assert set(Counter(state.busy.values()).values()) == {4, 5}, "who come together get as much as each other"


def test_the_proxy_itself_may_have_all() -> None:
    state = filled(10)
    take_all(state, "greedy")
    assert len(take_all(state, NOBODY)) == 2


@given(st.integers(1, 200), st.floats(0.01, 1), st.integers(0, 200))
def test_nobody_is_refused_where_nothing_is_scarce(most: int, part: float, used: int) -> None:
    share = Share(most, part)
    if used < share.scarce:
        assert all(share.allows(have, used) for have in range(used + 1))


@given(st.integers(1, 200), st.floats(0.01, 0.99))
def test_who_has_none_gets_one_after_a_user_alone(most: int, part: float) -> None:
    share, have = Share(most, part), 0
    while share.allows(have, have):
        have += 1
    assert have <= most
    if most > 2:
        assert share.allows(0, have)
        assert have <= max(most * part + 1, 1)


# -- who waits
# ----------------------------------------------------------------------------------------------------------


def test_users_are_served_in_turns() -> None:
    state = filled(10)
    lent = take_all(state, NOBODY)
    queue = [waiter("a"), waiter("a"), waiter("a"), waiter("b"), waiter("c"), waiter("b")]
    for one in queue:
        assert state.wait(one)
    served = [state.give(lent[0], 0.0) for _ in queue]
    assert [one.user for one in served if one is not None] == ["a", "b", "c", "a", "b", "a"]
    assert served[0] is queue[0]
    assert served[3] is queue[1]


def test_who_has_its_share_lets_others_pass_and_is_served_after_giving_back() -> None:
    state = filled(10)
    lent = take_all(state, "a")
    assert len(lent) == 8
    first, second, other = waiter("a"), waiter("a"), waiter("b", FOUND_ROWS)
    for one in (first, second, other):
        state.wait(one)
    assert state.assign() is None
    assert not state.can_open()
    assert state.misfit() is not None, "the other's place is made"
    assert state.can_open()
    assert state.next_capability_set() == FOUND_ROWS
    state.opening += 1
    assert not state.can_open(), "one comes for it; the others must wait"
    assert state.give(lent.pop(), 0.0) is first
    assert state.give(lent.pop(), 0.0) is second


def test_a_connection_given_back_makes_another_users_turn() -> None:
    """Of the ten, b gives back some, so that a may have more than before."""
    state = filled(10)
    theirs, ours = [state.take(LOGIN, None, 0, "b") for _ in range(3)], take_all(state, "a")
    assert len(ours) == 6
    waiting = waiter("a")
    state.wait(waiting)
    for conn in theirs:
        assert conn is not None
        state.forget(conn)
    found = state.assign()
    assert found is not None
    assert found[0] is waiting
    assert state.busy[found[1]] == "a"


def test_one_user_cannot_fill_the_queue() -> None:
    state = filled(2, waiting=10)
    assert [state.wait(waiter("a")) for _ in range(10)] == [True] * 8 + [False] * 2
    assert state.wait(waiter("b"))
    assert len(state.waiting) == 9
    assert state.waiting.of("a") == 8


def test_cancelled_ones_hold_no_place() -> None:
    state = filled(2, waiting=10)
    wants = [waiter("a") for _ in range(8)]
    for one in wants:
        assert state.wait(one)
    assert not state.wait(waiter("a"))
    wants[3].cancelled = True
    assert state.wait(waiter("a"))


@given(st.data())
def test_nobody_starves(data: st.DataObject) -> None:
    """One user holds what it can and wants more at every turn; all others are served within a few turns."""
    state = filled(data.draw(st.integers(3, 12)), waiting=40)
    greedy = take_all(state, "greedy")
    others = [f"user{number}" for number in range(data.draw(st.integers(1, 6)))]
    held: list[BackendConnection] = []
    for user in others:
        for _ in range(data.draw(st.integers(1, 3))):
            conn = state.take(LOGIN, None, 0, user)
            if conn is not None:
                held.append(conn)
            else:
                assert state.wait(waiter(user))
        state.wait(waiter("greedy"))
    for _ in range(60):
        while (found := state.assign()) is not None:
            (greedy if found[0].user == "greedy" else held).append(found[1])
        if not held:
            break
        conn = held.pop(data.draw(st.integers(0, len(held) - 1)))
        served = state.give(conn, 0.0)
        if served is not None:
            (greedy if served.user == "greedy" else held).append(conn)
        state.wait(waiter("greedy"))
    assert not [one for one in state.waiting if one.user != "greedy"]
    assert len(greedy) < state.max_connections
    assert len(set(chain(state.busy, *state.idle))) == state.max_connections
