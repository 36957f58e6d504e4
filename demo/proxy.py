"""`LocalProxy`: the proxy of a demo, a child process of it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiomysql

from demo.background import complete
from demo.child import Child
from demo.documents import PROXY_USERS
from demo.process import reserve_port, spawn
from demo.programs import ServerError


class LocalProxy(Child):
    """``shardgate serve`` with settings written to `directory`, listening on 127.0.0.1.

    `port` 0 takes a free port. It and the status page's stay reserved for this proxy, dead or alive, until
    `release`. ServerError when it is in use.
    """

    def __init__(self, directory: Path, *, port: int, page: bool) -> None:
        super().__init__("the proxy", directory / "proxy.log")
        self.directory = directory
        self.settings = directory / "shardgate.yaml"
        try:
            self._reserved = [reserve_port(one) for one in ((port, 0) if page else (port,))]
        except OSError as error:
            raise ServerError(
                f"port {port} cannot be used ({error.strerror}): choose another with --port (0: a free one)"
            ) from error
        ports: list[int] = [one.getsockname()[1] for one in self._reserved]
        self.port, self.status_port = ports[0], ports[1] if page else None
        self._settled = True

    @property
    def status_url(self) -> str | None:
        """Where metrics, health and the status page are; None when there are none."""
        return None if self.status_port is None else f"http://{self.host}:{self.status_port}/"

    def configure(self, settings: dict[str, Any]) -> None:
        """What it shall serve from its next start on (JSON is YAML)."""
        self.settings.write_text(json.dumps(settings, indent=2) + "\n")
        self.settings.chmod(0o600)

    def spawn(self) -> None:
        """Start the process with the settings written last. Nothing while it runs."""
        if self.alive:
            return
        argv = [sys.executable, "-m", "proxy", "serve", "--config", str(self.settings)]
        scratch = self.directory / "tmp"  # removed with the rest, also when the proxy could not do it
        scratch.mkdir(exist_ok=True)
        self._process = self._launch(argv, {**os.environ, "TMPDIR": str(scratch)})

    def _launch(self, argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        return spawn(argv, self.log, env=env)

    def _unready(self) -> str:
        if self.status_url is None:
            return "" if complete(self._answers()) else "nobody can log in"
        try:
            with urllib.request.urlopen(self.status_url + "readyz", timeout=2.0) as answer:
                return "" if answer.status == 200 else f"/readyz answers {answer.status}"
        except OSError as error:
            return str(error)

    async def _answers(self) -> bool:
        """Whether a client can log in: what readiness means when there is no status page to ask."""
        user = PROXY_USERS[0]
        try:
            async with asyncio.timeout(2):
                connection = await aiomysql.connect(
                    host=self.host, port=self.port, user=user["name"], password=user["password"]
                )
                await connection.ensure_closed()
        except (aiomysql.MySQLError, OSError):
            return False
        return True

    def stop(self, timeout: float = 3.0) -> None:
        """See `Child.stop`: its workers are stopped too."""
        super().stop(timeout)

    def release(self) -> None:
        """Give the ports back."""
        for one in self._reserved:
            one.close()
