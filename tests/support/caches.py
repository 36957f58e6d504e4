"""A memcached and a Redis of a test's own, on loopback, which may be killed, stopped and started again."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Self

import pytest

from demo.process import spawn
from tests.support.waiting import wait_until

_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"))


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class LocalCache:
    """`kind`: memcached or redis."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        program = shutil.which({"memcached": "memcached", "redis": "redis-server"}[kind], path=_PATH)
        if program is None:
            message = f"no {kind} here (Debian: apt-get install memcached redis-server)"
            if "CI" in os.environ:
                pytest.fail(message, pytrace=False)
            pytest.skip(message)
        self.program = program
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self, *options: str) -> Self:
        """Start it, and wait until it takes connections."""
        if self.kind == "memcached":
            argv = [self.program, "-u", "root", "-l", "127.0.0.1", "-p", str(self.port), "-U", "0", "-t", "1"]
        else:
            argv = [self.program, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self.folder)]
        self.process = spawn([*argv, *options], self.folder / f"{self.kind}.log")
        wait_until(self._answers, f"{self.kind} to answer")
        return self

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, f"{self.kind} has ended"
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()
