"""What is counted of statements stays, whatever becomes of their plans."""

from __future__ import annotations

from proxy.stats import KEPT_DIGESTS, Stats
from rewriter.env import Env
from rewriter.fingerprint import lift
from rewriter.plan import Plan, Reject

KEY = Env(database="shop").key
Kept = list[tuple[Plan, bytes, bytes]]


def plans(number: int) -> Kept:
    """So many, each of another statement."""
    return [
        (Reject(error="x"), lift(b"SELECT a%d FROM t WHERE b = 5" % one)[0], KEY) for one in range(number)
    ]


def digest(number: int) -> tuple[str, str, str]:
    return f"SELECT a{number} FROM t WHERE b = ?", "shop", "reject"


def ran(stats: Stats, plan: Plan, seconds: float = 0.001) -> None:
    stats.observe(plan.kind, "ok", seconds, plan)


def nothing(only: object) -> list[tuple[Plan, str, str]]:
    return []


def test_what_the_cache_drops() -> None:
    stats, (one, other) = Stats(), plans(2)
    ran(stats, one[0])
    stats.left([((one[1], one[2]), one[0]), ((other[1], other[2]), other[0])])
    ran(stats, one[0])
    assert {name: use.count for name, use in stats.by_digest(nothing, 10).items()} == {digest(0): 2}
    assert list(stats.names) == [one[0]]
    stats.forget([])
    assert not stats.uses
    ran(stats, one[0])  # as a prepared statement may
    assert {name: use.count for name, use in stats.by_digest(nothing, 10).items()} == {digest(0): 3}
    stats.retire([])
    assert {name: use.count for name, use in stats.by_digest(nothing, 10).items()} == {digest(0): 3}


def test_another_topology() -> None:
    stats, kept = Stats(), plans(3)
    for plan, *_ in kept:
        ran(stats, plan)
    stats.retire([*kept, *kept])  # one plan may be there twice
    assert not stats.uses
    found = stats.by_digest(nothing, 10)
    assert {name: use.count for name, use in found.items()} == {digest(number): 1 for number in range(3)}
    assert stats.shapes == {digest(number): kept[number][1:] for number in range(3)}


def test_there_is_an_end_to_it() -> None:
    stats = Stats()
    for _ in range(4):
        kept = plans(KEPT_DIGESTS)
        renamed = [(plan, b"SELECT %d_" % id(plan) + shape, key) for plan, shape, key in kept]
        for plan, *_ in renamed:
            ran(stats, plan)
        stats.retire(renamed)
    assert KEPT_DIGESTS <= len(stats.digests) <= 2 * KEPT_DIGESTS
    assert stats.shapes.keys() <= stats.digests.keys()


def test_plans_that_nobody_has_are_gone() -> None:
    stats = Stats()
    for plan, shape, key in plans(10):
        ran(stats, plan)
        stats.left([((shape, key), plan)])
    stats.forget([])
    del plan
    assert not stats.names
