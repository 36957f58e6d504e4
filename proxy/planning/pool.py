"""The loop's side of planning in other processes.

There are two lanes, each with a process: one for statements of up to 32 KB, whose plans are made in a moment,
and one for the longer ones, which may take seconds. In a lane the users take turns: whoever has many
statements to plan waits behind himself. A process is started for the first statement of its lane. One that
does not answer in time, or does nothing, is killed, and started again for the next statement.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, Final

import structlog

from config import pickling
from proxy.errors import ProxyError
from rewriter.env import Env
from rewriter.planner import LONG, Rewriter
from rewriter.text.split import Piece

from .child import Child
from .protocol import HEADER, Answer, Request, Task, Unpacking

log = structlog.get_logger("planning")

Spawn = Callable[[Coroutine[Any, Any, None], str], "asyncio.Task[None]"]

SHORT_SECONDS: Final = 3.0
"""CPU time for a statement of up to 32 KB."""

_PATIENCE: Final = 10
"""So many times as long as the CPU time may it take on a machine that is busy."""

_FOREVER: Final = 1e6

_LOOK: Final = 5.0
"""Seconds between two looks at a process that plans. One that has used no CPU time twice in a row hangs."""


class _Job:
    """A statement to plan, and who waits for it."""

    def __init__(
        self, sql: bytes, rewriter: Rewriter, request: Request, future: asyncio.Future[Answer]
    ) -> None:
        self.sql = sql
        self.rewriter = rewriter  # whose schema, topology and limits it is planned for
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


class _Lane:
    """One process, and those who wait for it."""

    def __init__(self, spawn: Spawn, seconds: float) -> None:
        self.turns = Turns()
        self._spawn = spawn
        self._seconds = seconds
        self._look = _LOOK
        self._process: Child | None = None
        self._ended: list[Child] = []  # killed, and perhaps not gone yet
        self._given_up = ""  # why the process at work was killed
        self._busy = False
        self._watching: asyncio.TimerHandle
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._known: tuple[object, object] = (None, None)  # schema and topology that the process has
        self._runner: asyncio.Task[None] | None = None

    def ask(self, user: str, sql: bytes, rewriter: Rewriter, request: Request) -> asyncio.Future[Answer]:
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.turns.put(user, _Job(sql, rewriter, request, future))
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
        """Have a job done. If nobody waits for it any longer, or it takes too long, the process is killed.
        One that ends by itself has touched nothing: another plans the statement.
        """
        self.tend()
        answer = await self._attempt(job)
        if answer is None and not job.future.done():
            answer = await self._attempt(job)
        if not job.future.done():
            job.future.set_result(answer or Answer(failed="planning_lost"))

    async def _attempt(self, job: _Job) -> Answer | None:
        """None when the process is lost."""
        loop = asyncio.get_running_loop()
        patience = self._seconds * _PATIENCE or _FOREVER
        late = loop.call_later(patience, self._give_up, f"no answer in {patience:g} s")
        self._watching = loop.call_later(self._look, self._watch, None, 0)
        job.future.add_done_callback(self._unwanted)
        self._given_up, self._busy = "", True
        try:
            return await self._ask(job)
        except (OSError, EOFError, pickle.PickleError) as error:
            process = self._process
            how = self._given_up or repr(error)
            if not self._given_up and process is not None and not isinstance(error, pickle.PickleError):
                await process.end()
                how = process.how()
            self.close()
            if not job.future.done():
                log.error("a planning process is lost", reason=how, statement_bytes=len(job.sql))
            return Answer(failed="statement_too_complex") if self._given_up else None
        finally:
            self._busy = False
            late.cancel()
            self._watching.cancel()
            job.future.remove_done_callback(self._unwanted)

    def _watch(self, before: float | None, idle: int) -> None:
        """Does the process do anything? A stopped one would keep its statement for ever."""
        worked = self._process.worked() if self._process is not None else None
        idle = idle + 1 if worked is not None and worked == before else 0
        if idle == 2:
            self._give_up(f"it has done nothing for {2 * self._look:g} s: stopped?")
        else:
            loop = asyncio.get_running_loop()
            self._watching = loop.call_later(self._look, self._watch, worked, idle)

    def _give_up(self, reason: str) -> None:
        """End the process; its statement has failed."""
        if self._process is not None:
            self._given_up = reason
            self._process.kill()

    def _unwanted(self, future: asyncio.Future[Answer]) -> None:
        del future
        self.close()

    async def _ask(self, job: _Job) -> Answer:
        if self._process is None:
            await self.start()
            if job.future.done():  # nobody waits for it any longer
                return Answer(failed="planning_lost")
        rewriter = job.rewriter
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
                process = Child(theirs)
            except OSError:
                ours.close()
                raise
        self._given_up = ""
        self._known = None, None
        ours.setblocking(False)
        try:
            self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        except BaseException:
            process.kill()
            self._ended.append(process)
            raise
        self._process = process  # only now: whoever closes it closes the connection, too

    def tend(self) -> None:
        """Leave no zombies; a process that has ended while nothing was to be planned is not used again."""
        self._ended = [one for one in self._ended if not one.gone()]
        if not self._busy and self._process is not None and self._process.gone():
            log.error("a planning process is lost", reason=self._process.how(), statement_bytes=0)
            self.close()

    def close(self) -> None:
        """End the process, whatever it does."""
        process, self._process = self._process, None
        if process is not None:
            self._writer.close()
            process.kill()
            self._ended.append(process)


class Planners:
    """Plans statements off the loop, as the rewriter that comes with each would. Each is allowed `seconds` of
    CPU time.
    """

    def __init__(self, spawn: Spawn, seconds: float) -> None:
        self._short = _Lane(spawn, min(seconds or SHORT_SECONDS, SHORT_SECONDS))
        self._long = _Lane(spawn, seconds)

    async def plan(
        self, user: str, sql: bytes, env: Env, rewriter: Rewriter, *, masked: bool = False
    ) -> Answer:
        """Plan a statement when it is the turn of `user`. Raises ProxyError when it takes too much."""
        return await self._ask(user, sql, rewriter, Request(env, masked))

    async def explain(
        self,
        user: str,
        sql: bytes,
        env: Env,
        rewriter: Rewriter,
        slot: Callable[[str], bytes],
        *,
        cached: bool,
    ) -> tuple[tuple[str, str], ...]:
        """What EXPLAIN ROUTE says of a statement. `slot` gives the session's values. Raises ProxyError."""
        slots: dict[str, bytes] = {}
        while True:
            request = Request(env, task=Task.EXPLAIN, slots=slots, cached=cached)
            answer = await self._ask(user, sql, rewriter, request)
            if not answer.wanted:
                return answer.rows
            slots = slots | {name: slot(name) for name in answer.wanted}

    async def advise(
        self, user: str, sql: bytes, env: Env, rewriter: Rewriter
    ) -> tuple[tuple[str, str], ...]:
        """What a statement costs and what would make it cost less, see `advising.rows`. Raises ProxyError."""
        return (await self._ask(user, sql, rewriter, Request(env, task=Task.ADVISE))).rows

    async def cut(self, user: str, text: bytes, env: Env, rewriter: Rewriter) -> Piece:
        """The first statement of a text of several, trimmed. Raises ProxyError."""
        answer = await self._ask(user, text, rewriter, Request(env, task=Task.CUT))
        assert answer.piece is not None
        return answer.piece

    async def _ask(self, user: str, sql: bytes, rewriter: Rewriter, request: Request) -> Answer:
        lane = self._short if len(sql) <= LONG else self._long
        answer = await lane.ask(user, sql, rewriter, request)
        if answer.failed == "internal":
            raise ProxyError("internal", reason=answer.reason)
        if answer.failed:
            raise ProxyError(answer.failed)
        return answer

    def tend(self) -> None:
        """Now and then: look after the processes."""
        self._short.tend()
        self._long.tend()

    @property
    def waiting(self) -> int:
        """Statements that wait for their turn."""
        return len(self._short.turns) + len(self._long.turns)

    def close(self) -> None:
        """End the processes."""
        self._short.close()
        self._long.close()
