"""Child processes that never outlive this one.

Rules: a child gets SIGKILL from the kernel when the thread that started it ends, so start children from a
thread that lives as long as they should (the main one). A child leads its own session: Ctrl-C reaches only
the parent, which stops the children in order. Output goes to a file, whose end is quoted when the child
fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def _die_with(parent: int) -> Callable[[], None]:
    """What runs in the child before exec: ask for SIGKILL at the parent's death, be it just now."""

    def prepare() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def spawn(
    argv: Sequence[str], log: Path, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start `argv` with no input and its output appended to `log`. OSError when it cannot be executed."""
    with log.open("ab") as output:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=env,
            start_new_session=True,
            preexec_fn=_die_with(os.getpid()),
        )


def stop_all(processes: Iterable[subprocess.Popen[bytes]], timeout: float = 10.0) -> None:
    """SIGTERM to all at once, wait `timeout` seconds in all, then SIGKILL to the rest. Dead ones are fine."""
    running = list(processes)
    for process in running:
        process.send_signal(signal.SIGTERM)  # does nothing once a process has been waited for
    deadline = time.monotonic() + timeout
    for process in running:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
    kill_all(running)


def kill_all(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    """SIGKILL to all, and to the children they have left behind; returns when they are gone."""
    running = list(processes)
    for process in running:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    for process in running:
        process.wait()


def run(argv: Sequence[str]) -> tuple[int, str]:
    """Run a program to its end: exit code and output. It dies with its children when this is interrupted."""
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_die_with(os.getpid()),
    )
    try:
        output, _ = process.communicate()
    except BaseException:
        kill_all([process])
        raise
    return process.returncode, output.decode(errors="replace")


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody has now; another process may take it before you do."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def reserve_port(port: int) -> socket.socket:
    """Hold `port` of 127.0.0.1 (0: any free one) for a server that binds it with SO_REUSEPORT.

    Nobody else gets it while the socket given back is open; as it does not listen, it takes no connection.
    OSError when somebody has it.
    """
    holder = socket.socket()
    try:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", port))
        # REUSEADDR was for old connections in TIME_WAIT; both would have shared the port with its like
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    except OSError:
        holder.close()
        raise
    return holder


def tail(path: Path, lines: int = 15) -> str:
    """The last lines of a log, for an error message; empty when there is none."""
    try:
        with path.open("rb") as log:
            log.seek(max(0, path.stat().st_size - 16_384))
            return "\n".join(log.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
