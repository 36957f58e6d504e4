"""A proxy whose servers cannot be reached: the whole program, from its command line to its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from demo.process import reserve_port
from tests.support.waiting import wait_until
from tests.support.zygote import zygote


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def answers(url: str) -> bool:
    try:
        return get(url)[0] == 200
    except urllib.error.URLError:
        return False


TAKEN = (
    "shardgate: cannot listen at 127.0.0.1:{} ({}): Address already in use."
    " Choose another address, or end the process that has it (ss -ltnp tells which)\n"
)


class Starting:
    """A running `shardgate serve` that waits for a server."""

    def __init__(self, folder: Path, workers: int, port: int = 0, status: int = 0) -> None:
        self._reserved = [reserve_port(0) for _ in range(3)]  # nobody listens there
        own, page, nobody = (one.getsockname()[1] for one in self._reserved)
        self.port, status = port or own, status or page
        self.status = status
        folder.mkdir(exist_ok=True)
        (folder / "shardgate.yaml").write_text(
            json.dumps(
                {
                    "listen": f"127.0.0.1:{self.port}",
                    "status": {"listen": f"127.0.0.1:{status}"},
                    "workers": workers,
                    "users": [{"name": "app", "password": "app"}],
                    "backends": {"user": "nobody"},
                    "topology": {"file": "topology.json"},
                    "schema": "schema.yaml",
                }
            )
        )
        (folder / "schema.yaml").write_text("databases: {legacy: {keyspace: legacy}}")
        topology = {"version": 1, "keyspaces": {"legacy": {"master": f"127.0.0.1:{nobody}"}}}
        (folder / "topology.json").write_text(json.dumps(topology))
        self.url = f"http://127.0.0.1:{status}/"
        self.log = folder / "log"
        command = [sys.executable, "-m", "proxy", "serve", "--config", str(folder / "shardgate.yaml")]
        self.process = zygote().popen(command, self.log, os.environ)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        for one in self._reserved:
            one.close()

    def wait(self) -> None:
        """Until the status page answers and the server has been tried, by the worker that has the page."""
        wait_until(self._tried, "the status page, and a look at the server", 30)

    def _tried(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        if b"cannot be asked" not in self.log.read_bytes() or not answers(self.url + "healthz"):
            return False
        return "can be used yet" in get(self.url + "readyz")[1]


@pytest.fixture(params=[1, 2])
def starting(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Starting]:
    made = Starting(tmp_path, request.param)
    try:
        made.wait()
        yield made
    finally:
        made.stop()


def test_it_is_alive_but_not_ready_and_can_be_stopped(starting: Starting) -> None:
    assert get(starting.url + "healthz")[0] == 200
    status, text = get(starting.url + "readyz")
    assert (status, json.loads(text)["status"]) == (503, "not ready")
    assert "no server of the topology can be used yet" in json.loads(text)["reason"]
    assert "Can't connect" in json.loads(text)["reason"]
    status, page = get(starting.url)
    assert status == 200
    assert "Connection refused.</p>" in page
    assert "status page" not in json.loads(text)["reason"] + page  # this is the one
    assert "shardgate_ready 0.0" in get(starting.url + "metrics")[1]
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", starting.port)) != 0
    starting.process.send_signal(signal.SIGTERM)
    assert starting.process.wait(15) == 0
    records = [json.loads(line) for line in starting.log.read_text().splitlines()]
    events = {(one["logger"], one["level"], one["event"]) for one in records}
    assert events == {
        ("backends", "warning", "cannot connect"),
        ("proxy", "warning", "a server cannot be asked for its version and settings"),
        ("proxy", "warning", "one account for all: only the proxy stands between users and servers"),
    }


@pytest.mark.parametrize(("which", "setting"), [("port", "listen"), ("status", "status.listen")])
def test_an_address_that_is_taken_is_named(tmp_path: Path, which: str, setting: str) -> None:
    """Once, not by each worker, and before any of them serves."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        made = Starting(tmp_path, 2, **{which: port})
        assert made.process.wait(30) == 1
        assert made.log.read_text() == TAKEN.format(port, setting)
        made.stop()


@pytest.mark.parametrize("which", ["status", "port"])
def test_another_proxys_address_is_taken(tmp_path: Path, which: str) -> None:
    """It has another `listen`: nobody's predecessor, though the kernel would share the port between both."""
    one = Starting(tmp_path / "first", 1)
    try:
        one.wait()
        port = {"status": one.status, "port": one.port}[which]
        with open_listener(one.port) if which == "port" else contextlib.nullcontext():
            other = Starting(tmp_path / "second", 2, status=port)
            assert other.process.wait(30) == 1
        assert other.log.read_text() == TAKEN.format(port, "status.listen")
        other.stop()
        for _ in range(8):
            assert "can be used yet" in get(one.url + "readyz")[1]
    finally:
        one.stop()


def open_listener(port: int) -> socket.socket:
    """As the proxy has one when it serves, for which it would need a server."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sock.bind(("127.0.0.1", port))
    sock.listen()
    return sock


def test_a_successor_shares_the_status_address(tmp_path: Path) -> None:
    old = Starting(tmp_path / "first", 2)
    try:
        old.wait()
        new = Starting(tmp_path / "second", 2, port=old.port, status=old.status)
        try:
            new.wait()
        finally:
            new.stop()
    finally:
        old.stop()


def test_a_command_whose_output_is_closed() -> None:
    command = f"exec '{sys.executable}' -m proxy id 241294492511762325 >&-"
    assert subprocess.run(["sh", "-c", command], check=False, timeout=30).returncode == 0
