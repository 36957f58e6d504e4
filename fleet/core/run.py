"""The runner: takes a tool's steps, bounded per host, and keeps the journal of them.

    look, say the steps → journal → take them stage by stage → journal → end

Everything before the journal changes nothing (Refused). Then a step that fails stops the stages after it, and
the operation stays unfinished: the same command goes on with it, since it looks at what is there anew.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from config.topology import Host
from fleet.core.errors import Failed, HostError, LockLost, Refused
from fleet.core.hosts import Hosts
from fleet.core.journal import Journal, Operation
from fleet.core.progress import Progress
from fleet.core.steps import Step
from fleet.core.store import Holder, Store

Action = Callable[[Step], Awaitable[Mapping[str, Any]]]
"""Takes a step that is no SQL; what it gives is remembered in the journal. Failed, HostError."""

_FLUSH_STEPS: Final = 200
_FLUSH_SECONDS: Final = 1.0


@dataclass
class Tool:
    """What the runner needs of a tool. `steps` looks and says what is left to do, with the operation that it
    goes on with, if any; `undo` what takes back an operation. `blocks`: see `journal`. `resumes`: which
    unfinished operations it goes on with, beside those of the same arguments. `undoes`: which of its name it
    takes back; `undone`: what the journal calls that.
    """

    name: str
    arguments: Mapping[str, Any]
    steps: Callable[[Operation | None], Awaitable[Sequence[Step]]]
    undo: Callable[[Operation], Awaitable[Sequence[Step]]] | None = None
    actions: Mapping[str, Action] = field(default_factory=dict)
    blocks: bool = False
    resumes: Callable[[Operation], bool] = lambda operation: False
    undoes: Callable[[Operation], bool] = lambda operation: True
    undone: str = "undone"
    problems: list[str] = field(default_factory=list)
    """What `steps` found that no step mends: the operation is not finished with it."""

    def goes_on_with(self, operation: Operation) -> bool:
        """Whether an unfinished operation is this tool's to finish."""
        same = dict(operation.arguments) == dict(self.arguments)
        return operation.tool == self.name and (same or self.resumes(operation))


@dataclass
class Report:
    """What was done, of how much; `problems` name host and step."""

    steps: Sequence[Step] = ()
    done: list[Step] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    operation: Operation | None = None
    seconds: float = 0.0


class Runner:
    """One run of one tool. `confirm` is shown the steps before the first is taken; False: Refused."""

    def __init__(
        self, store: Store, hosts: Hosts, progress: Progress, confirm: Callable[[Sequence[Step]], bool]
    ) -> None:
        self.store = store
        self.journal = Journal(store)
        self._hosts = hosts
        self._progress = progress
        self._confirm = confirm
        self._operation: Operation | None = None

    async def dry_run(self, tool: Tool, *, undo: bool = False) -> Sequence[Step]:
        """The steps that would be taken."""
        operation = await asyncio.to_thread(self._before, tool, undo)
        return await self._steps(tool, operation, undo)

    async def run(self, tool: Tool, *, undo: bool = False) -> Report:
        """Do it, or go on with it, or take it back. When the lock is lost on the way, since ZooKeeper was
        away for longer than a session, this goes on, unless somebody else has done something meanwhile.
        """
        try:
            return await self._locked(tool, undo)
        except LockLost as error:
            if self._operation is None:
                raise
            try:
                return await self._locked(tool, undo, self._operation)
            except Refused:
                raise error from None

    async def _locked(self, tool: Tool, undo: bool, expected: Operation | None = None) -> Report:
        """A run under the lock. `expected`: the operation to go on with, as this process has left it."""
        await asyncio.to_thread(self.store.lock, Holder.me(tool.name))
        try:
            operation = await asyncio.to_thread(self._before, tool, undo)
            if expected is not None and operation != expected:
                raise Refused("somebody else has gone on with it")
            steps = await self._steps(tool, operation, undo)
            if steps and expected is None and not self._confirm(steps):
                raise Refused("nothing was changed: give --yes, or --dry-run to see what would be")
            return await self._run(tool, operation, steps, undo)
        finally:
            await asyncio.to_thread(self.store.unlock)

    def _before(self, tool: Tool, undo: bool) -> Operation | None:
        """The operation to go on with. Refused when another must be finished first."""
        unfinished = self.journal.unfinished()
        for one in unfinished:
            mine = one.tool == tool.name if undo else tool.goes_on_with(one)
            if one.blocks and not mine and not one.final:
                raise Refused(
                    f"operation {one.number} of {one.began} is unfinished ({one.progress}): go on with it, "
                    f"{one.command}, or take it back, with --undo"
                )
        if undo:
            own = [one for one in unfinished if one.tool == tool.name and tool.undoes(one)]
            if not own:
                raise Refused(f"no {tool.name} is unfinished: there is nothing to take back")
            if own[-1].final:
                raise Refused(f"{own[-1].command} has no way back any more: go on with it")
            return own[-1]
        return next((one for one in reversed(unfinished) if tool.goes_on_with(one)), None)

    async def _steps(self, tool: Tool, operation: Operation | None, undo: bool) -> Sequence[Step]:
        try:
            if not undo:
                return await tool.steps(operation)
            if tool.undo is None or operation is None:
                raise Refused(f"{tool.name} cannot be taken back")
            return await tool.undo(operation)
        except HostError as error:
            raise Refused(f"{error.host}: {error}. Nothing was changed") from error

    async def _run(
        self, tool: Tool, operation: Operation | None, steps: Sequence[Step], undo: bool
    ) -> Report:
        started = time.monotonic()
        report = Report(steps, problems=list(tool.problems), operation=operation)
        if operation is None and not steps:
            return report
        if operation is None:
            operation = await asyncio.to_thread(self._begin, tool)
            report.operation = operation
        self._operation = operation
        await asyncio.to_thread(self.journal.plan, operation, () if undo else steps)
        done = _Done(self.journal, self.store, None if undo else operation)
        taker = Taker(self._hosts, self._progress, tool.actions, done)
        try:
            await taker.take(steps, report)
            if not report.problems:
                await asyncio.to_thread(self.journal.end, operation, tool.undone if undo else "done")
            else:
                await asyncio.to_thread(self.journal.failed, operation, report.problems)
        except LockLost:
            raise
        except Failed as error:
            report.problems.append(str(error))  # the store: what was wrong before is to be told, too
        report.seconds = time.monotonic() - started
        return report

    def _begin(self, tool: Tool) -> Operation:
        return self.journal.begin(tool.name, tool.arguments, blocks=tool.blocks)


class _Done:
    """Writes down the steps that were taken, many in one entry, and looks that the lock is still held."""

    def __init__(self, journal: Journal, store: Store, operation: Operation | None) -> None:
        self._journal, self._store, self._operation = journal, store, operation
        self._waiting: dict[str, Mapping[str, Any]] = {}
        self._written = time.monotonic()
        self._turn = asyncio.Lock()

    async def add(self, step: Step, facts: Mapping[str, Any]) -> None:
        """One was taken."""
        self._waiting[step.key] = facts
        late = time.monotonic() - self._written > _FLUSH_SECONDS
        single = (step.action and not step.statements) or step.final
        if single or late or len(self._waiting) >= _FLUSH_STEPS:
            await self.flush()

    async def flush(self) -> None:
        """Write all. Raises LockLost."""
        async with self._turn:
            steps, self._waiting = self._waiting, {}
            self._written = time.monotonic()
            if steps and self._operation is not None:
                await asyncio.to_thread(self._journal.done, self._operation, steps)
            await asyncio.to_thread(self._store.check_lock)


class Taker:
    """Takes steps. What goes wrong on one host does not stop the others, but the stages that follow."""

    def __init__(
        self,
        hosts: Hosts,
        progress: Progress,
        actions: Mapping[str, Action] | None = None,
        done: _Done | None = None,
    ) -> None:
        self._hosts, self._progress = hosts, progress
        self._actions = actions or {}
        self._done = done
        self._stopped: Exception | None = None

    async def take(self, steps: Sequence[Step], report: Report) -> None:
        """All of them, as far as it goes."""
        before = len(report.problems)
        with self._progress.of(len(steps)):
            for _, stage in groupby(sorted(steps, key=lambda one: one.stage), key=lambda one: one.stage):
                if self._done is not None:
                    await self._done.flush()
                by_host: dict[Host, list[Step]] = {}
                for one in stage:
                    by_host.setdefault(one.host, []).append(one)
                await asyncio.gather(
                    *(
                        self._work(queue, report)
                        for host, listed in by_host.items()
                        for queue in [_Queue(host, iter(listed), len(listed))]
                        for _ in range(min(len(listed), self._hosts.per_host if host else 1))
                    )
                )
                if self._stopped is not None:
                    raise self._stopped
                if self._done is not None:
                    await self._done.flush()
                if len(report.problems) > before:
                    return

    async def _work(self, queue: _Queue, report: Report) -> None:
        """Take steps of a host until there is none, the host is lost, or all have to stop."""
        while self._stopped is None and (step := queue.next()) is not None:
            try:
                facts = await self._one(step)
                queue.left -= 1
                report.done.append(step)
                self._progress.step(step)
                if self._done is not None:
                    await self._done.add(step, facts)
            except HostError as error:
                if text := queue.failed(step, error):
                    report.problems.append(text)
            except LockLost as error:
                self._stopped = error
            except Failed as error:
                report.problems.append(str(error))
            except Exception as error:
                self._stopped = error

    async def _one(self, step: Step) -> Mapping[str, Any]:
        if step.action:
            return await self._actions[step.action](step)
        await self._hosts.run(step.host, step.statements)
        return {}


@dataclass
class _Queue:
    """The steps of one host in a stage; `left` are not taken yet."""

    host: Host
    steps: Iterator[Step]
    left: int
    lost: bool = False

    def next(self) -> Step | None:
        """The next one to take."""
        return None if self.lost else next(self.steps, None)

    def failed(self, step: Step, error: HostError) -> str:
        """What is to be said of it: once, when the host is lost."""
        text = f"{step.host or error.host}: {step.text}: {error}"
        if not error.lost:
            return text
        said, self.lost = self.lost, True
        return "" if said else f"{text}. {self.left} steps there are not done: see to it, then run this again"
