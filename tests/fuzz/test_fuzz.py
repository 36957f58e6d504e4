"""Spoilt packets against a real proxy: clean errors or an end, and nothing to anybody else.

A fixed seed and a few seconds; `make fuzz WHAT=packets` goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from tests.fuzz.arena import arena
from tests.fuzz.clients import ClientFuzz
from tests.fuzz.watch import Books, Canary, some_user
from tests.integration.own import OwnProxy
from tests.support.demo import Demo

CASES = 800
#: Every so many bytes a conversation is cut.
STRIDE = 11


@pytest.fixture(scope="module")
def proxy(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnProxy]:
    with arena(demo, tmp_path_factory.mktemp("fuzz")) as running:
        yield running


def test_clients(proxy: OwnProxy) -> None:
    user = some_user(proxy)
    fuzz = ClientFuzz(proxy.proxy.host, proxy.proxy.port, user, seed=1)
    with Canary(proxy, user) as canary:
        for number in range(CASES // 4):
            fuzz.run(number)
        before = Books.of(proxy, 1)
        for number in range(CASES // 4, CASES):
            fuzz.run(number)
        for name, place in islice(fuzz.cuts(), 0, None, STRIDE):
            fuzz.cut(name, place)
        before.compare(Books.of(proxy, 1))
    assert canary.asked
    assert {1047, 1049, 1064, 1835, 1153} <= set(fuzz.codes)
