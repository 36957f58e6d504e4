"""What clients that have not logged in cause must not fill the log."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.own import OwnProxy
from tests.integration.raw import Closed
from tests.integration.secure import ssl_request
from tests.support.demo import Demo
from tests.support.waiting import wait_until

pytestmark = pytest.mark.one_server


@contextmanager
def piped(proxy: OwnProxy) -> Iterator[subprocess.Popen[bytes]]:
    """The proxy's process, its standard error a pipe."""
    proxy.proxy.configure(proxy.settings)
    argv = [sys.executable, "-m", "proxy", "serve", "--config", str(proxy.proxy.settings)]
    process = subprocess.Popen(argv, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: not proxy.proxy._unready(), "it is ready", seconds=60)
        yield process
    finally:
        proxy.close_clients()
        process.kill()
        process.communicate()
        proxy.proxy.release()


def test_handshakes_of_junk_fill_no_log(demo: Demo, tmp_path: Path) -> None:
    proxy = OwnProxy(demo, tmp_path / "proxy", {"logging": {"format": "json"}})
    with piped(proxy) as process:
        for _ in range(300):
            with proxy.raw(login=False, timeout=30) as client:
                client.packet()
                client.write(ssl_request() + b"junk" * 20)
                with pytest.raises(Closed):
                    client.exactly(1 << 20)
        process.terminate()
        _, log = process.communicate(timeout=60)
        lines = [json.loads(line) for line in log.splitlines()]
        said = sum(line["event"] == "TLS handshake failed" for line in lines)
        left = sum(line["lines"] for line in lines if line["event"] == "lines left out")
        assert said + left == 300
        assert left > 0
