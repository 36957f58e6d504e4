"""The loop's side of planning in other processes.

There are two lanes, each with a process: one for statements of up to 32 KB, whose plans are made in a moment,
and one for the longer ones, which may take seconds. In a lane the users take turns: whoever has many
statements to plan waits behind himself. A process that does not answer in time is killed, and started again
for the next statement.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import structlog

from proxy import pickling
from proxy.errors import ProxyError
from rewriter.env import Env
from rewriter.planner import LONG, Rewriter
from rewriter.text.split import Piece

from .protocol import HEADER, Answer, Request, Task, Unpacking

log = structlog.get_logger("planning")

Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]

SHORT_SECONDS: Final = 3.0
"""CPU time for a statement of up to 32 KB."""

_PATIENCE: Final = 10
"""So many times as long as the CPU time may it take on a machine that is busy."""

_FOREVER: Final = 1e6

_ROOT: Final = Path(__file__).parents[2]


class _Job:
    """A statement to plan, and who waits for it."""

    def __init__(self, sql: bytes, request: Request, future: asyncio.Future[Answer]) -> None:
        self.sql = sql
        self.request = request
        self.future = future


class Turns:
    """Who is next: the users in turn, and each one's jobs as they came."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[_Job]] = {}

    def put(self, user: str, job: _Job) -> None:
        """Another job of `user`."""
        self._waiting.setdefault(user, deque()).append(job)

    def next(self) -> _Job | None:
        """The job whose turn it is. Those that nobody waits for any longer are left out."""
        while self._waiting:
            user, jobs = next(iter(self._waiting.items()))
            del self._waiting[user]
            job = jobs.popleft()
            if jobs:
                self._waiting[user] = jobs  # behind the others
            if not job.future.done():
                return job
        return None

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))


def _started(sock: socket.socket) -> subprocess.Popen[bytes]:
    """The process, which has begun but need not be ready."""
    argv = [sys.executable, "-m", "proxy.planning.process", str(sock.fileno())]
    return subprocess.Popen(argv, pass_fds=[sock.fileno()], stdin=subprocess.DEVNULL, cwd=_ROOT)


class _Lane:
    """One process, and those who wait for it."""

    def __init__(self, rewriter: Callable[[], Rewriter], spawn: Spawn, seconds: float) -> None:
        self.turns = Turns()
        self._rewriter = rewriter
        self._spawn = spawn
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._ended: list[subprocess.Popen[bytes]] = []  # killed, and perhaps not gone yet
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._known: tuple[object, object] = (None, None)  # schema and topology that the process has
        self._runner: asyncio.Task[None] | None = None

    def ask(self, user: str, sql: bytes, request: Request) -> asyncio.Future[Answer]:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.turns.put(user, _Job(sql, request, future))
        if self._runner is None:
            self._runner = self._spawn(self._run(), "planning")
        return future

    async def _run(self) -> None:
        try:
            while (job := self.turns.next()) is not None:
                await self._serve(job)
        finally:
            self._runner = None

    async def _serve(self, job: _Job) -> None:
        """Have a job done. If nobody waits for it any longer, or it takes too long, the process is killed."""
        patience = self._seconds * _PATIENCE or _FOREVER
        late = asyncio.get_running_loop().call_later(patience, self.close)
        job.future.add_done_callback(self._unwanted)
        try:
            answer = await self._ask(job)
        except (OSError, EOFError, pickle.PickleError) as error:
            self.close()
            if not job.future.done():
                log.error("a planning process is lost", reason=str(error) or type(error).__name__)
            answer = Answer(failed="statement_too_complex")
        finally:
            late.cancel()
            job.future.remove_done_callback(self._unwanted)
        if not job.future.done():
            job.future.set_result(answer)

    def _unwanted(self, future: asyncio.Future[Answer]) -> None:
        del future
        self.close()

    async def _ask(self, job: _Job) -> Answer:
        if self._process is None:
            await self.start()
        rewriter = self._rewriter()
        schema, topology = rewriter.schema, rewriter.topology
        request = replace(
            job.request,
            seconds=self._seconds,
            schema=None if self._known[0] is schema else schema,
            topology=None if self._known[1] is topology else topology,
            limits=rewriter.limits,
        )
        self._known = schema, topology
        data = pickling.dumps(request)
        self._writer.write(HEADER.pack(len(data)) + data + HEADER.pack(len(job.sql)))
        self._writer.write(job.sql)
        await self._writer.drain()
        unpacking = Unpacking(job.sql)
        while True:
            size = HEADER.unpack(await self._reader.readexactly(HEADER.size))[0]
            answer = unpacking.take(await self._reader.readexactly(size))
            if answer is not None:
                return answer
            await asyncio.sleep(0)  # the others' turn

    async def start(self) -> None:
        """Start the process. Raises OSError."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = _started(theirs)
            except OSError:
                ours.close()
                raise
        self._ended = [one for one in self._ended if one.poll() is None]
        self._known = None, None
        ours.setblocking(False)
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=1 << 20)

    def close(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            self._writer.close()
            process.kill()
            self._ended.append(process)


class Planners:
    """Plans statements off the loop, for `rewriter()`'s schema and topology. Each is allowed `seconds` of CPU
    time.
    """

    def __init__(self, rewriter: Callable[[], Rewriter], spawn: Spawn, seconds: float) -> None:
        self._short = _Lane(rewriter, spawn, min(seconds or SHORT_SECONDS, SHORT_SECONDS))
        self._long = _Lane(rewriter, spawn, seconds)

    async def warm(self) -> None:
        """Start a process before it is needed."""
        try:
            await self._short.start()
        except OSError as error:
            log.warning("no planning process", reason=str(error))

    async def plan(self, user: str, sql: bytes, env: Env, *, masked: bool = False) -> Answer:
        """Plan a statement when it is the turn of `user`. Raises ProxyError when it takes too much."""
        return await self._ask(user, sql, Request(env, masked))

    async def explain(
        self, user: str, sql: bytes, env: Env, slot: Callable[[str], bytes], *, cached: bool
    ) -> tuple[tuple[str, str], ...]:
        """What EXPLAIN ROUTE says of a statement. `slot` gives the session's values. Raises ProxyError."""
        slots: dict[str, bytes] = {}
        while True:
            request = Request(env, task=Task.EXPLAIN, slots=slots, cached=cached)
            answer = await self._ask(user, sql, request)
            if not answer.wanted:
                return answer.rows
            slots = slots | {name: slot(name) for name in answer.wanted}

    async def cut(self, user: str, text: bytes, env: Env) -> Piece:
        """The first statement of a text of several, trimmed. Raises ProxyError."""
        answer = await self._ask(user, text, Request(env, task=Task.CUT))
        assert answer.piece is not None
        return answer.piece

    async def _ask(self, user: str, sql: bytes, request: Request) -> Answer:
        lane = self._short if len(sql) <= LONG else self._long
        answer = await lane.ask(user, sql, request)
        if answer.failed == "internal":
            raise ProxyError("internal", reason=answer.reason)
        if answer.failed:
            raise ProxyError(answer.failed)
        return answer

    @property
    def waiting(self) -> int:
        """Statements that wait for their turn."""
        return len(self._short.turns) + len(self._long.turns)

    def close(self) -> None:
        """End the processes."""
        self._short.close()
        self._long.close()
