"""Nobody reads the log: the proxy serves on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.integration.fixtures import MakeOwn
from tests.support.waiting import wait_until

pytestmark = pytest.mark.one_server


def test_a_log_that_nobody_reads_stops_nobody(own: MakeOwn) -> None:
    """Twice as many lines as a pipe has room for; a new process has taken the clients over."""
    old = own({"logging": {"slow_query_ms": 0}})
    reading, writing = os.pipe()
    command = [sys.executable, "-m", "proxy", "serve", "--config", str(old.proxy.settings)]
    new = subprocess.Popen(command, stderr=writing)
    try:
        said = b""
        while b'"serving"' not in said:
            said += os.read(reading, 1 << 16)
        old.signal(signal.SIGTERM)
        assert old.proxy.process is not None
        assert old.proxy.process.wait(60) == 0
        client = old.raw()
        for _ in range(600):
            assert client.ask("SELECT 1").value == b"1"
        assert old.status()["process"]["pid"] == new.pid
        assert old.metric("shardgate_log_lines_lost_total") == 0
        client.sock.close()
        new.send_signal(signal.SIGTERM)
        wait_until(lambda: new.poll() is not None, "it ends")
        assert new.returncode == 0
    finally:
        new.kill()
        new.wait()
        os.close(reading)
        os.close(writing)
