"""A worker that lives and does nothing is told of: everybody else says that the proxy is well."""

from __future__ import annotations

import os
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import structlog.testing

from proxy.kept import Kept, Past
from proxy.peers import Peers
from proxy.silence import LONG, Silence
from proxy.status import snapshot
from proxy.status.keeping import Keeper
from tests.faults.test_replaced import workers
from tests.integration.fixtures import MakeOwn
from tests.integration.own import OwnProxy
from tests.support.demo import stop_process
from tests.support.waiting import wait_until


def test_it_is_told_once_and_when_it_is_over() -> None:
    now, kept = 0.0, Kept(2)
    silence = Silence(kept, lambda: now)
    told: list[Any] = []

    def after(seconds: float, *heard: int) -> list[tuple[str, int]]:
        nonlocal now
        now += seconds
        for worker in heard:
            kept.put(worker, b"{}")
        with structlog.testing.capture_logs() as lines:
            silence.look()
        told.extend(lines)
        return [(line["event"].partition(":")[0], line["process"]) for line in lines]

    silence.begins(0, 100)
    silence.begins(1, 101)
    assert after(LONG * 3, 0) == []  # the other one has not begun: it may wait for servers
    assert after(LONG - 1, 1) == []
    assert after(2, 1) == [("a worker does not answer", 100)]
    assert after(LONG, 1) == []
    assert after(1, 0, 1) == [("a worker answers again", 100)]
    assert after(LONG, 0) == [("a worker does not answer", 101)]
    silence.begins(1, 102)  # in its place
    assert after(LONG * 2, 0) == []
    assert after(0, 1) == []
    assert after(LONG, 0) == [("a worker does not answer", 102)]
    assert told[0]["seconds"] == LONG + 1


def test_one_that_waits_for_its_servers_is_not_silent(tmp_path: Path) -> None:
    """Also when its page is asked meanwhile: only what its clock does says that it lives."""
    kept, now = Kept(2), 0.0
    keeper = Keeper(Peers(tmp_path, 1, 2, kept), Past(0.0), lambda: now)
    silence = Silence(kept, lambda: now)
    silence.begins(1, 101)
    keeper.whole(snapshot.take(None, ready=False, started=0.0, now=0.0), None)
    assert kept.version(1) == 0  # it waits for a topology: its clock has not begun
    with structlog.testing.capture_logs() as lines:
        while now < 3 * LONG:
            now += 1.0
            if now > LONG:
                keeper.tick(None)
            silence.look()
    assert not lines


def page(proxy: OwnProxy) -> str:
    with urllib.request.urlopen(proxy.proxy.status_url or "", timeout=30) as answer:
        text: str = answer.read().decode()
    return text


@pytest.mark.one_server
def test_a_stopped_worker(own: MakeOwn, flavour: str) -> None:
    """The one without the page."""
    proxy = own({"workers": 2}, expected=("a worker does not answer",))
    assert (proxy.metric("shardgate_workers "), proxy.metric("shardgate_workers_wanted ")) == (2, 2)
    assert "workers answer" not in page(proxy)
    stopped = workers(proxy)[1]
    stop_process(stopped)
    try:
        assert (proxy.metric("shardgate_workers "), proxy.metric("shardgate_workers_wanted ")) == (1, 2)
        assert "1 of 2 workers answers" in page(proxy)
        (line,) = proxy.logged("a worker does not answer")
        assert (line["worker"], line["process"]) == (1, stopped)
    finally:
        os.kill(stopped, signal.SIGCONT)
    wait_until(lambda: proxy.metric("shardgate_workers ") == 2, "it answers")
    proxy.logged("a worker answers again")
