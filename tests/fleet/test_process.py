"""Children die with their parent, and ports are held without being shared."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from demo.process import free_port, kill_all, reserve_port, run, spawn, stop_all, tail
from tests.support.demo import gone
from tests.support.programs import started_zookeeper
from tests.support.waiting import wait_until

SLEEP = ["sleep", "600"]


def test_children_die_when_their_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from demo.process import spawn\n"
        f"print(spawn({SLEEP!r}, Path({str(tmp_path / 'log')!r})).pid, flush=True)\n"
        "sys.stdin.read()"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert not gone(child)
    parent.kill()
    parent.communicate()
    wait_until(lambda: gone(child), "the child's end")


def test_stop_all_kills_those_that_do_not_listen(tmp_path: Path) -> None:
    polite = spawn(SLEEP, tmp_path / "log")
    deaf = spawn(["sh", "-c", "trap '' TERM; echo deaf; sleep 600 & wait; wait"], tmp_path / "deaf")
    wait_until(lambda: "deaf" in tail(tmp_path / "deaf"), "the trap")
    dead = spawn(["true"], tmp_path / "log")
    dead.wait()
    stop_all([polite, deaf, dead], timeout=0.2)
    assert polite.returncode == -signal.SIGTERM
    assert deaf.returncode == -signal.SIGKILL


def test_kill_all_reaches_what_the_child_has_forked(tmp_path: Path) -> None:
    log = tmp_path / "log"
    shell = spawn(["sh", "-c", "sleep 600 & echo $!; wait"], log)
    grandchild = int(wait_until(lambda: tail(log), "its number"))
    kill_all([shell])
    wait_until(lambda: gone(grandchild), "the grandchild's end")


def test_run_gives_code_and_output() -> None:
    assert run(["sh", "-c", "echo out; echo err >&2; exit 3"]) == (3, "out\nerr\n")


def test_a_reserved_port_is_for_its_server_only() -> None:
    holder = reserve_port(0)
    port = holder.getsockname()[1]
    with pytest.raises(OSError, match="in use"):
        reserve_port(port)
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", port))
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("127.0.0.1", port))
        server.listen()
        for _ in range(8):  # none of them goes to the holder
            socket.create_connection(("127.0.0.1", port)).close()
            server.accept()[0].close()
    holder.close()


def test_a_port_in_use_is_not_reserved() -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind(("127.0.0.1", free_port()))
        server.listen()
        with pytest.raises(OSError, match="in use"):
            reserve_port(server.getsockname()[1])


def test_tail_of_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert tail(tmp_path / "nothing") == ""
    assert not gone(os.getpid())


def test_zookeeper_moves_when_its_port_for_tls_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers on the plain one before it finds that, and then ends."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        ports = [free_port(), taken.getsockname()[1]]
        monkeypatch.setattr("demo.zookeeper.free_port", lambda: ports.pop(0) if ports else free_port())
        server = started_zookeeper(tmp_path)
        try:
            assert not ports
            assert server.secure_port != taken.getsockname()[1]
            wait_until(lambda: server._listens(server.secure_port), "it serves")
            assert server.alive
        finally:
            server.stop()
