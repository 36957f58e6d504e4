"""`shardgate` for shells that follow a page of the documentation: a program that starts, prints and ends as
the command does, and takes no second of imports: what runs is forked from the tests' zygote.

The program passes its arguments, environment, folder, input and output on, and the signals that it gets; when
it is killed, so is what runs for it. That the command itself starts is what tests/fleet/test_quickstart.py
shows, among others.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from tests.support import zygote

#: What a command would import when it runs.
MODULES = ("fleet.command", "fleet.creating", "fleet.altering", "fleet.failover", "fleet.importing.command")

_PROGRAM = """#!{python} -IS
import json, os, signal, socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect({address!r})
socket.send_fds(sock, [b"-"], [0, 1, 2])
asked = {{"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd()}}
def pass_on(number, frame):
    sock.sendall(b"%d " % number)
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, pass_on)
sock.sendall(json.dumps(asked).encode() + b"\\n")
status = int(sock.makefile("rb").readline() or 1)
if status < 0:
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


@functools.cache
def folder() -> Path:
    """One that holds the program, for a PATH; it serves as long as this process lives."""
    made = Path(tempfile.mkdtemp(prefix="sg-"))
    address = made / "socket"
    program = made / "shardgate"
    program.write_text(_PROGRAM.format(python=sys.executable, address=str(address)))
    program.chmod(0o755)
    zygote.zygote().commands(address, made / "log")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


# --- in the zygote ---------------------------------------------------------------------------------------


def serve(listener: socket.socket) -> NoReturn:
    """Run what the programs ask for, each beside a process that passes its signals on."""
    for name in MODULES:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    while True:
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            continue
        zygote.die_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listener.close()
        try:
            _run(connection)
        finally:
            os._exit(0)


def _run(connection: socket.socket) -> None:
    """One command, until it or the program has ended."""
    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    asked = json.loads(connection.makefile("rb", 0).readline())
    process = zygote.forked(asked["argv"], functools.partial(_command, asked, files), *files)
    for one in files:
        os.close(one)
    waited: list[int | socket.socket] = [connection, os.pidfd_open(process.pid)]
    while True:
        ready, _, _ = select.select(waited, [], [])
        if waited[1] in ready:
            connection.sendall(b"%d\n" % process.wait())
            return
        numbers = connection.recv(100)
        if not numbers:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return
        for number in numbers.split():
            os.kill(process.pid, int(number))


def _command(asked: dict[str, Any], files: list[int]) -> None:
    os.setsid()
    zygote.die_with_parent()
    for target, source in enumerate(files):
        os.dup2(source, target)
        os.close(source)
    os.environ.clear()
    os.environ.update(asked["env"])
    tempfile.tempdir = None
    os.chdir(asked["cwd"])
    sys.argv = asked["argv"]
    vars(sys.modules["__main__"])["__package__"] = None  # or usage would call it python -m …
    signal.signal(signal.SIGINT, signal.default_int_handler)
    importlib.import_module("proxy.cli").main()
