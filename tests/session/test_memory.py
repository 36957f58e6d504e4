"""The books of what is kept for clients."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.memory import Memory
from proxy.throttle import Logins

MB = 1 << 20


def test_a_user_alone_leaves_something() -> None:
    memory = Memory(100 * MB)
    assert memory.hold("a", 0, 80 * MB - 1)
    assert not memory.hold("a", 80 * MB - 1, 85 * MB)
    assert (memory.used, memory.refused) == (80 * MB - 1, 1)
    assert memory.hold("b", 0, 10 * MB)
    assert not memory.hold("b", 10 * MB, 30 * MB)


def test_less_is_always_allowed() -> None:
    memory = Memory(100)
    memory.hold("a", 0, 70)
    memory.hold("b", 0, 20)
    assert memory.hold("a", 70, 69)
    assert memory.hold("a", 69, 0)
    assert memory.by_user == {"b": 20}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4), st.integers(0, 200)), max_size=60))
def test_the_books_are_right(steps: list[tuple[str, int, int]]) -> None:
    memory, held = Memory(300), dict[tuple[str, int], int]()
    for user, number, size in steps:
        before = held.get((user, number), 0)
        if memory.hold(user, before, size):
            held[user, number] = size
        else:
            assert size > before
        assert memory.used == sum(held.values()) <= 300
        for name in "abc":
            assert memory.by_user.get(name, 0) == sum(n for (one, _), n in held.items() if one == name)


# -- who has not logged in yet
# ----------------------------------------------------------------------------------------------------------


def test_one_address_leaves_places_for_others() -> None:
    logins = Logins(10)
    clients = [object() for _ in range(12)]
    assert [logins.begin(client, "a") for client in clients] == [True] * 8 + [False] * 4
    other = object()
    assert logins.begin(other, "b")
    assert len(logins) == 9
    for client in (*clients, *clients, other):
        logins.end(client)
    assert len(logins) == 0
    assert logins.begin(other, "a")
