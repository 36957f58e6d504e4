"""The cache of plans: by number and by bytes, what is in use stays."""

from __future__ import annotations

from typing import Any

from rewriter.cache import Cache
from rewriter.plan import Plan

PLAN: Any = Plan()


def filled(cache: Cache, count: int, size: int, start: int = 0) -> None:
    for number in range(start, start + count):
        cache.put((b"%0*d" % (size, number), b""), PLAN)


def fingerprint_bytes(cache: Cache) -> int:
    return sum(len(key[0]) for key, _ in cache.items())


def test_so_many_entries() -> None:
    cache = Cache(100)
    filled(cache, 1000, 20)
    assert 50 <= len(cache) <= 100


def test_so_many_bytes() -> None:
    cache = Cache(100)
    filled(cache, 1000, 20_000)
    assert 1 <= len(cache) <= 5
    assert fingerprint_bytes(cache) <= 100 * 800 + 20_000


def test_one_that_is_larger_than_all() -> None:
    cache = Cache(2)
    filled(cache, 5, 32_000)
    assert cache.get((b"%032000d" % 4, b"")) is PLAN


def test_what_is_used_stays_while_large_ones_pass() -> None:
    cache = Cache(100)
    used = b"SELECT * FROM pins WHERE id = ", b""
    cache.put(used, PLAN)
    for number in range(500):
        filled(cache, 1, 15_000, number)
        assert cache.get(used) is PLAN
    assert cache.dropped > 10


def test_guarded_plans_count_each() -> None:
    cache = Cache(100)
    for number in range(64):
        cache.put_plan((b"x" * 10_000, b""), PLAN, {0}, (b"%d" % number,))
    assert sum(1 for _ in cache.items()) <= 64
    before = cache.dropped
    for number in range(64):
        cache.put_plan((b"y" * 10_000, b""), PLAN, {0}, (b"%d" % number,))
    assert cache.dropped > before
    assert cache.get((b"y" * 10_000, b"")) is not None
