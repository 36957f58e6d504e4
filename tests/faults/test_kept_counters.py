"""What a killed worker had counted is counted on, whichever it was, and the proxy is as old as before."""

from __future__ import annotations

import os
import re
import signal
import time
import urllib.request
from collections.abc import Iterator

import pytest

from tests.faults.test_replaced import kill, of_each, workers
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.integration.raw import Raw
from tests.support.waiting import wait_until

pytestmark = pytest.mark.one_server

EXPECTED = ("a worker ended",)
ASKED = 30
ALIVE = 3.0
"""Seconds after which an age tells a proxy from a worker that has just begun."""
COUNTER = re.compile(r"^(shardgate_\w+_(?:total|bucket|count|sum)(?:\{[^}]*\})?) (\S+)$", re.M)


@pytest.fixture
def proxy(own: MakeOwn) -> Iterator[OwnProxy]:
    """Its workers have lived for a while, and each has had statements."""
    made = own({"workers": 2}, expected=EXPECTED)
    for client in of_each(made):
        for _ in range(ASKED):
            assert client.ask("SELECT 1 AS kept FROM boards WHERE id = 1").kind == "rows"
    live(ALIVE)
    yield made
    made.close_clients()


def live(seconds: float) -> None:
    begun = time.monotonic()
    wait_until(lambda: time.monotonic() > begun + seconds, "an age", seconds + 5)


def counters(proxy: OwnProxy) -> dict[str, float]:
    """All counters of /metrics."""
    assert proxy.proxy.status_url is not None
    with urllib.request.urlopen(proxy.proxy.status_url + "metrics", timeout=30) as answer:
        return {name: float(value) for name, value in COUNTER.findall(answer.read().decode())}


def sums(client: Raw, sql: str, column: str) -> dict[str, int]:
    """A column of a list by the first one."""
    reply = client.ask(sql)
    at = reply.columns.index(column)
    found: dict[str, int] = {}
    for row in reply.rows:
        name = (row[0] or b"").decode()
        found[name] = found.get(name, 0) + int(row[at] or 0)
    return found


def told(proxy: OwnProxy) -> dict[str, float]:
    """Everything that may only grow, by name."""
    found: dict[str, float] = counters(proxy)
    (first, *_) = clients = of_each(proxy)
    for sql, column in (("SHOW PROXY QUERIES LIKE '%kept%'", "Count"), ("SHOW POOLS", "Total")):
        found |= {f"{sql} {name}": count for name, count in sums(first, sql, column).items()}
    found["uptime"] = proxy.metric("shardgate_uptime_seconds ")
    found["until"] = -proxy.status()["started"]
    for sql in ("SHOW STATUS LIKE 'Uptime'", "SHOW PROXY STATUS LIKE 'Uptime'"):
        for client in clients:
            worker = client.id >> 24
            found[f"{sql} {worker}"] = float(client.ask(sql).rows[0][1] or 0)
    for client in clients:
        client.close()
    return found


def fallen(before: dict[str, float], after: dict[str, float]) -> dict[str, tuple[float, float]]:
    """What is less than it was. Sums of times are floats, and added in another order."""
    return {
        name: (value, after.get(name, 0.0))
        for name, value in before.items()
        if after.get(name, 0.0) < value - 1e-4
    }


@pytest.mark.parametrize("number", [0, 1])
def test_nothing_that_was_told_goes_backwards(proxy: OwnProxy, number: int) -> None:
    """Not when the worker that has the page dies, nor the other, nor the one in its place."""
    before = told(proxy)
    assert before["SHOW PROXY QUERIES LIKE '%kept%' SELECT ? AS kept FROM boards WHERE id = ?"] == 2 * ASKED
    victim = workers(proxy)[number]
    for _ in range(2):
        kill(proxy, [victim])
        after = told(proxy)
        assert not fallen(before, after)
        before = after
        live(ALIVE)  # long enough for it to be replaced at once
        victim = workers(proxy)[-1]


def test_while_there_is_no_other_in_its_place(proxy: OwnProxy) -> None:
    """The worker that is left tells what the dead one had counted."""
    before = told(proxy)
    left = next(client for client in of_each(proxy) if not client.id >> 24)
    os.kill(workers(proxy)[1], signal.SIGKILL)
    served = len(proxy.logged("serving", 2))
    while len(proxy.logged("serving", 0)) == served:
        assert not fallen({name: before[name] for name in counters(proxy) if name in before}, counters(proxy))
        for sql, column in (("SHOW PROXY QUERIES LIKE '%kept%'", "Count"), ("SHOW POOLS", "Total")):
            after = {f"{sql} {name}": float(count) for name, count in sums(left, sql, column).items()}
            assert not fallen({name: value for name, value in before.items() if name.startswith(sql)}, after)
