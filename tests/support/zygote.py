"""Proxies and demos forked from a process that has imported all that they need, a zygote.

A start by `exec` is two seconds of CPU time, nearly all of it the imports; a forked proxy serves after a
sixth of that. From its command line on it is the same program: arguments, environment, output, process group
and end are those of `demo.process.spawn`. What is forked forks on: a demo its proxy, and a proxy its planning
processes, which spares each a second of imports. That the commands themselves start is what the demos show
that are started as users do, and the tests that call them.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import importlib
import io
import json
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar, cast

import typer.main

from demo import cluster
from demo.process import PR_SET_PDEATHSIG
from demo.proxy import LocalProxy
from proxy import cli, server
from proxy.backends.connection import BackendConnection
from proxy.catalog import facts
from proxy.catalog.facts import _collations, _pads
from proxy.planning import child, pool, process
from proxy.wire.auth import RsaKey
from tests.support import stacks
from tests.support.images import ImagedCluster
from tests.support.template import run_folder

_Found = TypeVar("_Found")

PR_SET_CHILD_SUBREAPER = 36
#: What a proxy or a demo would import at its start, or with its first client.
MODULES = (
    "demo.run",
    "proxy.cli",
    "proxy.logs",
    "proxy.server",
    "proxy.serving",
    "proxy.status.page",
    "proxy.status.server",
    "proxy.tracing.export",
    "rewriter.tree.start",
)


class Forked:
    """A child process as `subprocess.Popen` would give it."""

    def __init__(self, argv: Sequence[str], pid: int) -> None:
        self.args = argv
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status once it has ended."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit status. TimeoutExpired after `timeout` seconds."""
        if self.poll() is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                ended = select.poll()
                ended.register(descriptor, select.POLLIN)
                if not ended.poll(None if timeout is None else timeout * 1000):
                    raise subprocess.TimeoutExpired(list(self.args), timeout or 0.0)
            finally:
                os.close(descriptor)
        status = self.poll()
        assert status is not None
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class Zygote:
    """Starts with its first proxy, and ends with the tests."""

    def __init__(self) -> None:
        # What a child of the zygote leaves behind becomes a child of this process, which can wait for it then
        _prctl(PR_SET_CHILD_SUBREAPER, 1)
        argv = [sys.executable, "-m", __name__]
        root = Path(__file__).parents[2]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=root, start_new_session=True
        )

    def popen(self, argv: Sequence[str], log: Path, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """`demo.process.spawn` for ``python -m proxy …``, which is `argv`. What it gives is a `Forked`."""
        assert list(argv[:3]) == [sys.executable, "-m", "proxy"]
        return self._forked({"argv": list(argv[2:]), "log": str(log), "env": dict(env)})

    def commands(self, address: Path, log: Path) -> None:
        """Have `tests.support.commands.serve` run at the socket `address`, as long as this process lives."""
        asked = {"argv": ["commands"], "log": str(log), "env": dict(os.environ), "commands": str(address)}
        self._forked(asked)

    def _forked(self, asked: dict[str, Any]) -> subprocess.Popen[bytes]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked | {"parent": os.getpid()}).encode() + b"\n")
        self._process.stdin.flush()
        return cast("subprocess.Popen[bytes]", Forked(asked["argv"], int(self._process.stdout.readline())))


@functools.cache
def zygote() -> Zygote:
    return Zygote()


class ForkedProxy(LocalProxy):
    """A `LocalProxy` out of the zygote."""

    def _launch(self, argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        return zygote().popen(argv, self.log, env)


# --- in the zygote ---------------------------------------------------------------------------------------


class DemosProxy(LocalProxy):
    """A proxy out of the demo that it is of."""

    def _launch(self, argv: Sequence[str], env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        asked = {"argv": list(argv[2:]), "log": str(self.log), "env": dict(env), "parent": os.getpid()}
        return forked(argv, lambda: _command(asked))


class ForkedPlanner(child.Child):
    """A planning process out of the proxy that it is of, without its signals' handlers."""

    def __init__(self, sock: socket.socket) -> None:
        argv = ["-m", process.__name__, str(sock.fileno())]
        self._process = forked(argv, lambda: _planning(argv), sock.fileno())


_Rows = list[list[bytes | None]]


async def collations(conn: BackendConnection) -> _Rows:
    """`facts._collations`, asked once a run of each kind of server."""
    return await _remembered(conn, "collations", functools.partial(_collations, conn))


async def pads(conn: BackendConnection, of: Iterable[tuple[str, str]]) -> dict[bytes, bytes]:
    """`facts._pads`, asked once a run of each kind of server: MariaDB builds tables for a thousand collations
    then, half a second of CPU time in each server that a test starts.
    """
    named = list(of)
    return await _remembered(conn, f"pads {named}", functools.partial(_pads, conn, named))


async def _remembered(conn: BackendConnection, name: str, ask: Callable[[], Awaitable[_Found]]) -> _Found:
    folder = run_folder()
    if folder is None:
        return await ask()
    path = folder / f"facts-{zlib.crc32(f'{conn.version} {name}'.encode())}"
    if not path.exists():
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(pickle.dumps(await ask()))
        draft.replace(path)
    found: _Found = pickle.loads(path.read_bytes())
    return found


def forked(argv: Sequence[str], run: Callable[[], None], *keep: int) -> subprocess.Popen[bytes]:
    """A child that is to `run`, with the standard files and the descriptors to `keep`, and to end with it."""
    if pid := os.fork():
        return cast("subprocess.Popen[bytes]", Forked(argv, pid))
    status: object = 1
    gc.freeze()  # a socket of before, once it is collected, would close what has its number by then
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        below = 3
        for descriptor in (*sorted(keep), os.sysconf("SC_OPEN_MAX")):
            os.closerange(below, descriptor)
            below = descriptor + 1
        run()
        status = 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:  # whatever it is that has forked, it is not to be ended once more
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 1)


def _planning(argv: list[str]) -> None:
    sys.argv = argv[1:]
    process.main()


def _command(asked: dict[str, Any]) -> None:
    _become(asked)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


def _run_to_the_end() -> NoReturn:
    """Run the command, and end as Python does: threads are waited for, what is to run at the end runs, and
    garbage that complains does. But modules are not taken apart one by one, which would copy all that is
    shared with the zygote: it takes longer than all that a proxy does at its end.
    """
    status: object = 1
    try:
        cli.main()
        status = 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        gc.collect()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else 1)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value)


def die_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _next() -> socket.socket | None:
    """Returns in a process that shall be a proxy, or serve commands at a socket; in the zygote, ends with its
    input.
    """
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        listener = None
        if "commands" in asked:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(asked["commands"])
            listener.listen(64)
        if between := os.fork():
            if listener is not None:
                listener.close()
            os.waitpid(between, 0)
            continue
        between = os.getpid()
        if os.fork():
            os._exit(0)
        while os.getppid() == between:
            os.sched_yield()
        answers = os.dup(1)
        _become(asked)
        os.write(answers, b"%d\n" % os.getpid())
        os.close(answers)
        return listener
    os._exit(0)


def _become(asked: dict[str, Any]) -> None:
    os.setsid()
    die_with_parent()
    if os.getppid() != asked["parent"]:
        os._exit(1)
    with open(asked["log"], "ab") as log, open(os.devnull, "rb") as nothing:
        for source, target in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(source.fileno(), target)
    os.environ.clear()
    os.environ.update(asked["env"])
    tempfile.tempdir = None
    stacks.listen(Path(asked["log"]).parent)
    if asked["env"].get("PYTHONUNBUFFERED"):
        cast(io.TextIOWrapper, sys.stdout).reconfigure(write_through=True)
    sys.argv = asked["argv"]


def main() -> None:
    for name in MODULES:
        importlib.import_module(name)
    importlib.import_module("rewriter.tree.start").load()
    command: Any = typer.main.get_command(cli.app)  # which takes a third of a proxy's start
    vars(typer.main)["get_command"] = lambda _: command
    for name in ("serve", "demo"):  # what is made as their command lines are read for the first time
        command.commands[name].make_context(name, [])
    gc.collect()
    gc.freeze()
    key = RsaKey()
    key.warm()  # one for all: to make it takes as long as the rest of a proxy's start
    vars(server)["RsaKey"] = lambda: key
    vars(facts).update(_collations=collations, _pads=pads)
    vars(cluster)["LocalProxy"] = DemosProxy
    vars(importlib.import_module("demo.run"))["Cluster"] = ImagedCluster
    vars(pool)["Child"] = ForkedPlanner
    listener = _next()
    if listener is not None:
        importlib.import_module("tests.support.commands").serve(listener)
    _run_to_the_end()


if __name__ == "__main__":
    main()
