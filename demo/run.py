"""``shardgate demo``: start a cluster, say how to use it, wait, and leave nothing behind.

Ctrl-C, SIGTERM and a closed terminal end it in order at any moment, also while it starts. A database server
that dies is only reported, because looking at what the proxy makes of that is what a demo is for; when the
proxy dies the demo ends.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from rich.console import Console

from config.document import ConfigError
from demo.cluster import Cluster
from demo.options import DemoOptions, OptionError
from demo.process import tail
from demo.programs import ServerError
from demo.ready import ReadyFile
from demo.steps import Steps
from demo.tour import banner
from demo.workspace import Workspace, WorkspaceError
from fleet.core.errors import HostError

LOOK_SECONDS = 0.2
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal asks the demo to end. Like KeyboardInterrupt, it is nobody's to catch on the way."""


class _Signals:
    """Raises `Interrupted` in the main thread, and only within `interruptible`.

    An exception raised by a signal is lost when Python happens to be in a callback whose exceptions are
    ignored. So the signal is also remembered, and `check` raises what was lost.
    """

    def __init__(self) -> None:
        self._armed = False
        self._asked = False

    def install(self) -> None:
        """Only the main thread can; elsewhere whoever started the thread deals with signals."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._asked = True
        if self._armed:
            raise Interrupted

    def check(self) -> None:
        """Raise `Interrupted` when a signal has come."""
        if self._asked and self._armed:
            raise Interrupted

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        self._armed = True
        try:
            self.check()
            yield
        finally:
            self._armed = False


def run(options: DemoOptions) -> int:
    """Run a demo until it is told to stop; the exit status: 0, or 1 after saying what went wrong."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    signals = _Signals()
    steps = Steps(Console(), signals.check)
    signals.install()
    try:
        options.check()
        if options.ready_file is not None:
            ReadyFile(options.ready_file).clear()
        with Workspace(options.directory) as workspace:
            return _run(options, workspace, signals, steps)
    except (ServerError, HostError, ConfigError, OptionError, WorkspaceError, OSError) as error:
        where = f"{error.host}: " if isinstance(error, HostError) else ""
        with suppress(OSError):
            Console(stderr=True).print(f"shardgate demo: {where}{error}", markup=False, soft_wrap=True)
        return 1
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)


def _run(options: DemoOptions, workspace: Workspace, signals: _Signals, steps: Steps) -> int:
    cluster = Cluster(options, workspace)
    try:
        with signals.interruptible():
            cluster.start(steps)
            steps.say(banner(cluster), markup=False)
            if cluster.replaced is not None:
                steps.say(_instead(options, cluster.replaced), markup=False)
            return _watch(cluster, signals, steps)
    except Interrupted:
        steps.say("Stopping")
        return 0
    finally:
        cluster.stop()


def _instead(options: DemoOptions, other: dict[str, Any]) -> str:
    proxy = other["proxy"]
    return (
        f"Another demo runs at {proxy['host']}:{proxy['port']}. {options.ready_file} named that one, and"
        " names this one now: what is started from here on and looks there finds this one."
    )


def _watch(cluster: Cluster, signals: _Signals, steps: Steps) -> int:
    """Wait; report servers that die. Returns when the proxy has died."""
    dead: set[str] = set()
    never = threading.Event()
    while cluster.proxy.alive:
        never.wait(LOOK_SECONDS)
        signals.check()
        for server in cluster.servers:
            if not server.alive and server.name not in dead:
                dead.add(server.name)
                steps.say(f"[red]{server.name} ({server.address}) has died,[/red] the demo goes on")
    steps.say("The proxy has died:")
    steps.say(tail(cluster.proxy.log), markup=False)
    return 1
