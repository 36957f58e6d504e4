"""When the answers of a cache may be given: what is seen of the other members, and when."""

from __future__ import annotations

from proxy.caching.members import FORGOTTEN, Members

LEASE = 8.0


def looks(members: Members, *seen: tuple[float, int]) -> float:
    """Until when, by the last of some looks at one other member's number."""
    until = 0.0
    for now, beat in seen:
        until = members.look(now, b"e", {b"m": beat})
    return until


def test_alone_from_a_lease_on() -> None:
    members = Members(LEASE)
    assert members.look(0, b"e", {}) == 0  # others may be about to come
    assert members.look(7, b"e", {}) == 0
    assert members.look(8, b"e", {}) == 16
    assert members.look(9, b"f", {}) == 0  # another epoch
    assert members.look(17, b"f", {}) == 25


def test_a_member_was_well_when_its_number_is_two_higher() -> None:
    members = Members(LEASE)
    assert looks(members, (0, 1), (8, 2)) == float("-inf")  # it may have been sent long ago
    assert looks(members, (9, 3)) == 0 + LEASE  # 2 was acknowledged, behind the look at 0
    assert looks(members, (10, 4)) == 8 + LEASE
    assert looks(members, (12, 4)) == 8 + LEASE  # no later for being looked at again
    assert looks(members, (13, 9)) == 12 + LEASE


def test_a_silent_member_ends_it() -> None:
    members = Members(LEASE)
    assert looks(members, (0, 1), (8, 3), (9, 5)) == 8 + LEASE
    assert looks(members, (17, 5)) == 16  # it is past already
    assert members.gone(17) == ()
    looks(members, (9 + FORGOTTEN * LEASE + 1, 5))
    assert members.gone(9 + FORGOTTEN * LEASE + 1) == (b"m",)


def test_a_number_that_goes_back_proves_nothing() -> None:
    members = Members(LEASE)
    assert looks(members, (0, 5), (8, 7), (9, 9)) == 8 + LEASE
    assert looks(members, (10, 6)) == float("-inf")  # the cache is what it was
    assert looks(members, (11, 8)) == 10 + LEASE


def test_one_that_comes_was_not_there_before() -> None:
    members = Members(LEASE)
    members.look(0, b"e", {})
    members.look(8, b"e", {})
    assert members.look(9, b"e", {b"new": 1}) == 8 + LEASE
    members.restart()
    assert members.look(20, b"e", {b"new": 9}) <= 0
