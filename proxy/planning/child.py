"""A planning process, as the proxy sees it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).parents[2]
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_MOMENT: Final = 0.01


class Child:
    """It reads requests from `sock`'s other end, and ends when that is closed. Raises OSError."""

    def __init__(self, sock: socket.socket) -> None:
        argv = [sys.executable, "-m", "proxy.planning.process", str(sock.fileno())]
        self._process = subprocess.Popen(argv, pass_fds=[sock.fileno()], stdin=subprocess.DEVNULL, cwd=_ROOT)

    @property
    def pid(self) -> int:
        return self._process.pid

    def gone(self) -> bool:
        """Whether it has ended; then it is no zombie any longer."""
        return self._process.poll() is not None

    def kill(self) -> None:
        self._process.kill()

    def worked(self) -> float | None:
        """CPU seconds since its start; None where the system does not tell."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_bytes()
        except OSError:
            return None
        fields = stat.rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    async def end(self, patience: float = 1.0) -> None:
        """Wait until it has ended: its socket is closed a moment before."""
        while not self.gone() and patience > 0:
            patience -= _MOMENT
            await asyncio.sleep(_MOMENT)

    def how(self) -> str:
        """How it has ended, in words."""
        status = self._process.returncode
        if status is None:
            return "it has closed its socket"
        if status < 0:
            return f"killed by signal {-status} ({signal.Signals(-status).name})"
        return f"exit status {status}"
