"""Few open files: clients are told that there is no room, and operators get their pages."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from demo.process import spawn, stop_all
from tests.integration.fixtures import MakeOwn
from tests.integration.raw import Raw
from tests.support.waiting import wait_until

pytestmark = pytest.mark.one_server


def test_more_clients_than_files(own: MakeOwn, tmp_path: Path) -> None:
    old = own()
    log = tmp_path / "new.log"
    serve = f"exec '{sys.executable}' -m proxy serve --config '{old.proxy.settings}'"
    new = spawn(["sh", "-c", f"ulimit -n 120; {serve}"], log)
    clients: list[Raw] = []
    try:
        wait_until(lambda: '"serving"' in log.read_text(), "it serves", 60)
        old.signal(signal.SIGTERM)
        assert old.proxy.process is not None
        assert old.proxy.process.wait(60) == 0
        codes = []
        for _ in range(150):
            clients.append(Raw(old.proxy.host, old.proxy.port))
            greeting = clients[-1].greeting()
            codes.append(0 if greeting is None else greeting.code)
        assert set(codes) == {0, 1040}
        assert codes.count(0) == old.metric("shardgate_client_connections_limit") == 60
        assert old.status()["process"]["pid"] == new.pid
        assert old.metric('shardgate_connections_refused_total{error="too_many_connections"}') == 90
        told = [json.loads(line) for line in log.read_text().splitlines()]
        (warning,) = [line for line in told if line["event"].startswith("too few open files")]
        assert (warning["clients"], warning["open_files"]) == (60, 120)
        for client in clients:
            client.sock.close()
        clients.clear()
        wait_until(lambda: old.metric("shardgate_client_connections") == 0, "they are gone")
        assert old.raw().ask("SELECT COUNT(*) FROM users").kind == "rows"
        old.close_clients()
    finally:
        for client in clients:
            client.sock.close()
        stop_all([new])
