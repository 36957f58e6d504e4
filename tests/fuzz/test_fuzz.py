"""Spoilt packets against a real proxy: clean errors or an end, and nothing to anybody else.

A fixed seed and a few seconds; `make fuzz WHAT=packets` goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.faults.link import Link
from tests.fuzz.arena import arena, topology
from tests.fuzz.clients import ClientFuzz
from tests.fuzz.servers import ServerFuzz
from tests.fuzz.watch import Books, Canary, some_users
from tests.integration.own import OwnProxy
from tests.support.demo import Demo

pytestmark = pytest.mark.either_server

CASES = 800
SERVER_CASES = 120
#: Every so many bytes a conversation is cut.
STRIDE = 11


@pytest.fixture(scope="module")
def proxy(demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnProxy]:
    with arena(demo, tmp_path_factory.mktemp("fuzz")) as running:
        yield running


def test_clients(proxy: OwnProxy) -> None:
    users = some_users(proxy)
    fuzz = ClientFuzz(proxy.proxy.host, proxy.proxy.port, users, seed=1)
    with Canary(proxy, users[1]) as canary:
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


def test_servers(demo: Demo, tmp_path: Path) -> None:
    one = demo.masters[0]
    with Link(one.host, one.port) as link, arena(demo, tmp_path / "proxy", topology(demo, link)) as proxy:
        users = some_users(proxy)
        fuzz = ServerFuzz(proxy.proxy.host, proxy.proxy.port, users, 1, link)
        with Canary(proxy, users[1]) as canary:
            for number in range(SERVER_CASES // 4):
                fuzz.run(number)
            before = Books.of(proxy, 1)
            for number in range(SERVER_CASES // 4, SERVER_CASES):
                fuzz.run(number)
            before.compare(Books.of(proxy, 1))
        assert canary.asked
        proxy.close_clients()
        proxy.wait_idle(clients=0)
