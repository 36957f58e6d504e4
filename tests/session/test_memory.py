"""The books of what is kept for clients."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from proxy.backends.memory import Memory
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


def test_a_newer_one_takes_the_place_of_the_oldest_of_the_greediest() -> None:
    logins: Logins[str] = Logins(4)
    assert [logins.begin(f"a{number}", "a") for number in range(3)] == [None] * 3
    assert logins.begin("b0", "b") is None
    assert logins.begin("b1", "b") == "a0"
    assert logins.begin("a3", "a") in ("a1", "b0")
    assert len(logins) == 4
    for client in ("a0", "a1", "a2", "a3", "b0", "b1", "b1"):
        logins.end(client)
    assert len(logins) == 0
    assert not logins._places
