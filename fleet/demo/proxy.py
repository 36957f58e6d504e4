"""`LocalProxy`: the proxy of a demo, a child process of it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pymysql

from fleet.demo.documents import PROXY_USERS
from fleet.demo.process import free_port, reserve_port, spawn, stop_all, tail
from fleet.demo.programs import ServerError

START_TIMEOUT = 60.0


class LocalProxy:
    """``shardgate serve`` with settings written to `directory`, listening on 127.0.0.1.

    `port` 0 takes a free port. It stays reserved for this proxy, dead or alive, until `release`. ServerError
    when it is in use.
    """

    host = "127.0.0.1"

    def __init__(self, directory: Path, *, port: int, page: bool) -> None:
        self.directory = directory
        self.log = directory / "proxy.log"
        self.settings = directory / "shardgate.yaml"
        self.status_port = free_port() if page else None
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._reserved: socket.socket = reserve_port(port)
        except OSError as error:
            raise ServerError(
                f"port {port} cannot be used ({error.strerror}): choose another with --port (0: a free one)"
            ) from error
        self.port: int = self._reserved.getsockname()[1]

    @property
    def status_url(self) -> str | None:
        """Where metrics, health and the status page are; None when there are none."""
        return None if self.status_port is None else f"http://{self.host}:{self.status_port}/"

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        return self._process

    @property
    def pid(self) -> int:
        """The process, dead or alive; ServerError before the first start."""
        if self._process is None:
            raise ServerError("the proxy was never started")
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def spawn(self, settings: dict[str, Any]) -> None:
        """Write `settings` (JSON is YAML) and start the process without waiting."""
        self.settings.write_text(json.dumps(settings, indent=2) + "\n")
        self.settings.chmod(0o600)
        argv = [sys.executable, "-m", "proxy", "serve", "--config", str(self.settings)]
        scratch = self.directory / "tmp"  # removed with the rest, also when the proxy could not do it
        scratch.mkdir(exist_ok=True)
        self._process = spawn(argv, self.log, env={**os.environ, "TMPDIR": str(scratch)})

    def wait(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until it serves. ServerError with the end of its log when it does not."""
        deadline = time.monotonic() + timeout
        while not self._ready():
            if not self.alive:
                raise ServerError(f"the proxy ended at start:\n{tail(self.log)}")
            if time.monotonic() > deadline:
                raise ServerError(f"the proxy is not ready after {timeout:.0f} s:\n{tail(self.log)}")
            time.sleep(0.02)

    def _ready(self) -> bool:
        if self.status_url is None:
            return self._answers()
        try:
            with urllib.request.urlopen(self.status_url + "readyz", timeout=2.0) as answer:
                return bool(answer.status == 200)
        except (OSError, urllib.error.URLError):
            return False

    def _answers(self) -> bool:
        """Whether a client can log in: what readiness means when there is no status page to ask."""
        user = PROXY_USERS[0]
        try:
            pymysql.connect(
                host=self.host,
                port=self.port,
                user=user["name"],
                password=user["password"],
                connect_timeout=2,
                read_timeout=2,
            ).close()
        except pymysql.MySQLError:
            return False
        return True

    def stop(self, timeout: float = 3.0) -> None:
        """SIGTERM, and SIGKILL after `timeout` seconds, to its workers too; nothing when dead already."""
        if self._process is not None:
            stop_all([self._process], timeout)

    def release(self) -> None:
        """Give the port back."""
        self._reserved.close()
