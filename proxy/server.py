"""Processes: the workers, their signals, and the supervisor that keeps them running.

With one worker the process itself serves. With more, a supervisor opens the sockets (`listening`), forks the
workers and starts another when one dies. SIGTERM and SIGINT drain, SIGHUP
looks at the users, the topology and the certificates again; the supervisor passes them on. A worker whose
supervisor is no more (killed by force) drains as well: it holds the read end of a pipe that only the
supervisor can write to, and its end of file tells.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import select
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import structlog
import uvloop

from config.document import ConfigError
from config.schema import Schema
from config.settings import Settings
from rewriter.tree.start import load

from . import logs, open_files
from .app import Worker
from .certificates import CertificateStore
from .kept import Kept, Past
from .listening import Listening, try_status_address
from .peers import Peers
from .shared import Shared
from .silence import EVERY, Silence
from .wire.auth import RsaKey

log = structlog.get_logger("proxy")

#: A worker that lived shorter than this is not replaced at once.
_TOO_SHORT = 2.0
#: Bytes of a Unix socket's address, on Linux.
_LONGEST_ADDRESS = 107


def serve(settings: Settings, schema: Schema | None, read_again: Callable[[], Settings] | None = None) -> int:
    """Serve until told to stop; the exit status. `read_again`: the settings as they are in their file now,
    for SIGHUP; raises ConfigError.
    """
    started = time.time()
    rsa = RsaKey()
    rsa.warm()
    secret = secrets.token_bytes(32)
    try:
        certificates = CertificateStore(settings)
    except ValueError as error:
        print(f"shardgate: {error}", file=sys.stderr)
        return 2
    open_files.raise_limit()
    try:
        listening = Listening(settings)
        try_status_address(settings, listening.place)  # said before there are workers
    except OSError as error:
        print(f"shardgate: {error}", file=sys.stderr)
        return 1
    if settings.workers == 1:
        return run_worker(settings, schema, listening, rsa, secret, certificates, 0, read_again=read_again)
    supervisor, shared, kept = os.getpid(), Shared("in use"), Kept(settings.workers)
    with tempfile.TemporaryDirectory(prefix="shardgate-", dir=_short_folder()) as directory:

        def work(number: int, supervised: int, replaced: int) -> int:
            listening.keep(number)
            status = run_worker(
                settings,
                schema,
                listening,
                rsa,
                secret,
                certificates,
                number,
                Peers(Path(directory), number, settings.workers, kept),
                supervised,
                read_again,
                shared,
                Past(started, replaced),
            )
            if os.getppid() != supervisor:
                with contextlib.suppress(OSError):  # the last one out
                    os.rmdir(directory)
            return status

        return Supervisor(settings, listening, work, Silence(kept)).run()


def _short_folder() -> str | None:
    """Where the sockets' folder goes when the usual place has a name too long for a socket's address."""
    longest = Path(tempfile.gettempdir(), "shardgate-12345678", "999.sock")
    return "/tmp" if len(os.fsencode(longest)) > _LONGEST_ADDRESS else None


def run_worker(
    settings: Settings,
    schema: Schema | None,
    listening: Listening,
    rsa: RsaKey,
    secret: bytes,
    certificates: CertificateStore,
    number: int,
    peers: Peers | None = None,
    supervised: int | None = None,
    read_again: Callable[[], Settings] | None = None,
    shared: Shared | None = None,
    past: Past | None = None,
) -> int:
    """One worker in this process; the exit status. `peers`: the other workers, when there are any, and
    `shared` what they serve. `supervised`: the end of a pipe that is at its end of file when the supervisor
    is no more. `past`: what was before this worker.
    """

    async def main() -> None:
        worker = Worker(
            settings,
            schema,
            listening.of(0),
            rsa,
            secret,
            certificates,
            number,
            peers,
            read_again,
            shared,
            past,
            listening.place if not (past and past.replaced) else replace(listening.place, predecessor=True),
        )
        loop = asyncio.get_running_loop()

        def stop() -> None:
            if listening.handover is not None:
                loop.remove_reader(listening.handover)
                listening.close_handover()
            worker.stop()

        for number_of_signal in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number_of_signal, stop)
        loop.add_signal_handler(signal.SIGHUP, worker.reload)
        if supervised is not None:
            loop.add_reader(supervised, orphaned, loop, supervised, worker)
        if listening.handover is not None:
            loop.add_reader(listening.handover, listening.hand_over)
        await worker.run()

    try:
        uvloop.run(main())
        logs.rest()
    except ConfigError as error:
        print(f"shardgate: the topology or the schema cannot be used:\n{error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"shardgate: {error}", file=sys.stderr)
        return 1
    return 0


def orphaned(loop: asyncio.AbstractEventLoop, supervised: int, worker: Worker) -> None:
    """The supervisor has died."""
    loop.remove_reader(supervised)
    log.error("the supervisor is gone: draining", worker=worker.number)
    worker.stop()


class Supervisor:
    """Forks the workers and replaces those that die; meanwhile a successor may ask for the sockets. `work` is
    given a worker's number, the pipe's end and how many have been replaced, and gives its exit status.
    """

    def __init__(
        self,
        settings: Settings,
        listening: Listening,
        work: Callable[[int, int, int], int],
        silence: Silence,
    ) -> None:
        self._count = settings.workers
        self._listening = listening
        self._work = work
        self._silence = silence
        self._grace = settings.timeouts.drain + 5
        self._pids: dict[int, tuple[int, float]] = {}  # pid: (worker's number, start)
        self._replaced = 0
        self._begun: set[int] = set()  # workers that have been replaced before
        self._stopping = False
        self._supervised, self._alive = os.pipe()
        self._woken, self._wake = os.pipe()  # by signals

    def run(self) -> int:
        """Supervise until told to stop; the worst exit status of the workers' first start."""
        for stopping in (signal.SIGTERM, signal.SIGINT):
            signal.signal(stopping, self._stop)
        signal.signal(signal.SIGHUP, self._pass_on)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        load()  # sqlglot, whose memory the workers then share
        for worker in range(self._count):
            self._fork(worker)
        status = 0
        while self._pids:
            pid, wait_status = self._wait()
            number, started = self._pids.pop(pid, (-1, 0.0))
            if number < 0 or self._stopping:
                continue
            code = os.waitstatus_to_exitcode(wait_status)
            too_short = time.monotonic() - started < _TOO_SHORT
            refused = code == 2 or (code == 1 and too_short)  # ZooKeeper was waited for before a 2
            if refused and number not in self._begun:
                status = code  # it could not start at all: nor could another
                log.error("a worker cannot start: the proxy ends", worker=number, status=code)
                self._stop(signal.SIGTERM, None)
                continue
            self._begun.add(number)
            self._replaced += 1
            log.error("a worker ended, another takes its place", worker=number, status=code)
            if too_short:
                self._listening.renew(number)
                time.sleep(_TOO_SHORT)
            if not self._stopping:
                self._fork(number)
        logs.rest()
        return status

    def _wait(self) -> tuple[int, int]:
        """The next worker that has ended, and how."""
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid:
                return pid, status
            if self._stopping:  # not in the signal's handler: it may come while these are waited for
                self._listening.close()
            handover = self._listening.handover
            waited: list[int | socket.socket] = [self._woken]
            if handover is not None:
                waited.append(handover)
            readable, _, _ = select.select(waited, [], [], EVERY)
            if not self._stopping:
                self._silence.look()
            if handover in readable:
                self._listening.hand_over()
            if self._woken in readable:
                os.read(self._woken, 4096)

    def _fork(self, number: int) -> None:
        logs.rest()  # its thread is none of the worker's
        pid = os.fork()
        if pid:
            self._pids[pid] = (number, time.monotonic())
            self._silence.begins(number, pid)
            return
        signal.set_wakeup_fd(-1)
        for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(one, signal.SIG_DFL)
        for end in (self._alive, self._woken, self._wake):
            os.close(end)
        status = 1
        try:
            status = self._work(number, self._supervised, self._replaced)
        finally:
            logs.rest()
            sys.stderr.flush()
            os._exit(status)

    def _stop(self, number: int, frame: object) -> None:
        self._stopping = True
        signal.signal(signal.SIGALRM, self._kill)
        signal.alarm(int(self._grace))
        self._send(signal.SIGTERM)

    def _pass_on(self, number: int, frame: object) -> None:
        self._send(signal.Signals(number))

    def _kill(self, number: int, frame: object) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        for pid in self._pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
