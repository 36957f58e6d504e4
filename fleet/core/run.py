"""The runner: takes a tool's steps, bounded per host, and keeps the journal of them.

    look, say the steps → journal → take them stage by stage → journal → end

Everything before the journal changes nothing (Refused). Then a step that fails stops the stages after it, and
the operation stays unfinished: the same command goes on with it, since it looks at what is there anew. The
same is true of Ctrl-C (`interrupt`).

While clients wait (`Step.holds`) that would not do: what stops the tool then, but its death, has the runner
take back at once what `undo` says, which ends the operation. A `final` step is not taken back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

from config.document import ConfigError
from config.topology import Host
from fleet.core.errors import Failed, HostError, LockLost, NoWayBack, Refused
from fleet.core.hosts import Hosts
from fleet.core.interrupt import Interrupted, to_end
from fleet.core.journal import Journal, Operation
from fleet.core.progress import Progress, Silent
from fleet.core.steps import Step
from fleet.core.store import Holder, Store

Action = Callable[[Step], Awaitable[Mapping[str, Any]]]
"""Takes a step that is no SQL; what it gives is remembered in the journal. Failed, HostError."""

_FLUSH_STEPS: Final = 200
_FLUSH_SECONDS: Final = 1.0
BACK_SECONDS: Final = 30.0
"""For taking back what clients wait for."""
CUT_OFF_SECONDS: Final = 5.0
"""For statements that were under way when the tool was stopped to be gone."""


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
    as_before: Callable[[], str] = lambda: "all is as before"
    """What is said when it was taken back."""
    no_way_back: Callable[[], str] = lambda: ""
    """What is said when a `final` step was taken, and others are left."""
    stays_open: bool = False
    """Its steps are not the end of it: another command goes on with the operation, or takes it back."""

    def goes_on_with(self, operation: Operation) -> bool:
        """Whether an unfinished operation is this tool's to finish."""
        same = dict(operation.arguments) == dict(self.arguments)
        return operation.tool == self.name and (same or self.resumes(operation))


@dataclass
class Report:
    """What was done, of how much; `problems` name host and step. `interrupted`: somebody has ended it."""

    steps: Sequence[Step] = ()
    done: list[Step] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    operation: Operation | None = None
    seconds: float = 0.0
    interrupted: bool = False


class NothingToUndo(Exception):
    """No operation is unfinished."""


class Runner:
    """One run of one tool. `confirm` is shown the steps before the first is taken; False: Refused. `say`:
    tells a person what is done beside them. `found`: the operation that it is to go on with; `operation`: the
    one that it is at.
    """

    def __init__(
        self,
        store: Store,
        hosts: Hosts,
        progress: Progress,
        confirm: Callable[[Sequence[Step]], bool],
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.store = store
        self.journal = Journal(store)
        self._hosts = hosts
        self._progress = progress
        self._confirm, self._say = confirm, say
        self.operation: Operation | None = None
        self.found: Operation | None = None
        self._unfinished: Sequence[Operation] = ()
        self._broken: Report | None = None
        """Of what is to be taken back."""

    async def dry_run(self, tool: Tool, *, undo: bool = False) -> Sequence[Step]:
        """The steps that would be taken."""
        operation = await asyncio.to_thread(self._before, tool, undo)
        return await self._steps(tool, operation, undo)

    async def run(self, tool: Tool, *, undo: bool = False) -> Report:
        """Do it, or go on with it, or take it back. When the lock is lost on the way, since ZooKeeper was
        away for longer than a session, this goes on, unless somebody else has done something meanwhile.
        NothingToUndo.
        """
        try:
            return await self._locked(tool, undo)
        except LockLost as error:
            if self.operation is None:
                raise
            try:
                return await self._locked(tool, undo, self.operation)
            except Refused:
                raise error from None

    async def _locked(self, tool: Tool, undo: bool, expected: Operation | None = None) -> Report:
        """A run under the lock. `expected`: the operation to go on with, as this process has left it."""
        await to_end(self.store.lock, Holder.me(tool.name))
        try:
            self.found = operation = await asyncio.to_thread(self._before, tool, undo)
            if expected is not None and operation != expected:
                raise Refused("somebody else has gone on with it")
            if self._broken is not None and expected is not None:
                return await self._end(tool, expected, self._broken, undo)
            steps = await self._steps(tool, operation, undo)
            if steps and expected is None and not self._confirm(steps):
                raise Refused("nothing was changed: give --yes, or --dry-run to see what would be")
            return await self._run(tool, operation, steps, undo)
        finally:
            await to_end(self.store.unlock)

    def _before(self, tool: Tool, undo: bool) -> Operation | None:
        """The operation to go on with. Refused when another must be finished first."""
        self._unfinished = unfinished = self.journal.unfinished()
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
                raise NothingToUndo(f"no {tool.name} is unfinished: there is nothing to take back")
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
            raise Refused(f"{error.host}: {error}. Nothing was changed{self._others(operation)}") from error
        except Refused as error:
            raise type(error)(f"{error}{self._others(operation)}") from error

    def _others(self, mine: Operation | None) -> str:
        """Operations that are not finished either, which may be why."""
        others = [one for one in self._unfinished if mine is None or one.number != mine.number]
        return "".join(f". Operation {one.number} is unfinished: {one.command} finishes it" for one in others)

    async def _run(
        self, tool: Tool, operation: Operation | None, steps: Sequence[Step], undo: bool
    ) -> Report:
        started = time.monotonic()
        report = Report(steps, problems=list(tool.problems), operation=operation)
        if operation is None and not steps:
            return report
        self.operation = operation
        taker: Taker | None = None
        bug: Exception | None = None
        try:
            if operation is None:
                await to_end(self._begin, tool)
            assert self.operation is not None
            await to_end(self.journal.plan, self.operation, () if undo else steps)
            taker = self._taker(tool, self._progress, None if undo else self.operation)
            await taker.take(steps, report)
        except LockLost:
            raise
        except asyncio.CancelledError:
            report.interrupted = True
            if taker is None and operation is None:
                await self._not_begun()
            report.problems.append("interrupted")
        except Exception as error:
            if not isinstance(error, Failed) and not (taker is not None and taker.holds):
                raise
            bug = None if isinstance(error, Refused | ConfigError | Failed | OSError) else error
            report.problems.append(str(error) or type(error).__name__)
        assert self.operation is not None
        report.operation = self.operation
        if taker is not None and taker.holds and report.problems and (not undo or report.interrupted):
            self._broken = report
        report = await self._end(tool, self.operation, report, undo)
        report.seconds = time.monotonic() - started
        if bug is not None:
            raise bug
        return report

    def _taker(self, tool: Tool, progress: Progress, operation: Operation | None) -> Taker:
        done = _Done(self.journal, self.store, operation)
        return Taker(self._hosts, progress, tool.actions, done)

    async def _end(self, tool: Tool, operation: Operation, report: Report, undo: bool) -> Report:
        """Take back what is broken, and write down how it has ended."""
        try:
            outcome = tool.undone if undo else "done"
            if self._broken is not None and not operation.final:
                outcome = "undone" if await self._take_back(tool, operation, report) else ""
            elif report.problems or (tool.stays_open and not undo):
                outcome = ""
            if operation.final and not outcome and (text := tool.no_way_back()):
                report.problems[-1] += f". {text}"
            if report.problems:
                await to_end(self.journal.failed, operation, report.problems)
            if outcome:
                await to_end(self.journal.end, operation, outcome)
            if undo and outcome:
                report.problems.clear()  # it was interrupted, and is done
        except LockLost:
            raise
        except Failed as error:
            report.problems.append(str(error))  # the store: what was wrong before is to be told, too
        return report

    async def _take_back(self, tool: Tool, operation: Operation, report: Report) -> bool:
        """Clients wait: all is made as it was before, at once; whether that came to its end. What came of it
        is added to the last problem. LockLost: another tool may be at it.
        """
        assert tool.undo is not None
        self._say(f"{report.problems[-1]}: taking it back, since clients wait")
        back = Report()
        left: Sequence[Step] = ()
        try:
            async with asyncio.timeout(BACK_SECONDS):
                await self._hosts.end_cut_off(CUT_OFF_SECONDS)
                await to_end(self.store.check_lock)
                left = await tool.undo(operation)
                await self._taker(tool, Silent(), None).take(left, back)
        except LockLost:
            raise
        except NoWayBack:  # it was published, which could not be written down any more
            final = [key for key, one in operation.planned.items() if one.final]
            await to_end(self.journal.done, operation, {key: {} for key in final})
            return False
        except TimeoutError:
            back.problems.append(f"it is not done after {BACK_SECONDS:g} s")
        except Exception as error:
            where = f"{error.host}: " if isinstance(error, HostError) else ""
            back.problems.append(f"{where}{error}")
        failed = "; ".join(back.problems)
        if failed and (not left or any(one.holds for one in left if one not in back.done)):
            report.problems[-1] += f". Taking it back failed, too: {failed}. Clients wait: {AGAIN}"
            return False
        report.problems[-1] += f". It was taken back: {tool.as_before()}"
        if failed:
            report.problems[-1] += f"; but see to this: {failed}"
        return not failed

    def _begin(self, tool: Tool) -> None:
        self.operation = self.journal.begin(tool.name, tool.arguments, blocks=tool.blocks)

    async def _not_begun(self) -> None:
        """It was interrupted before its first step."""
        if self.operation is not None:
            await to_end(self.journal.end, self.operation, "undone")
        raise Interrupted("interrupted: nothing was changed")


AGAIN: Final = "run the same command again, which goes on, or with --undo, which takes it back"


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
                await to_end(self._journal.done, self._operation, steps)
            await asyncio.to_thread(self._store.check_lock)


class Taker:
    """Takes steps. What goes wrong on one host does not stop the others, but the stages that follow. `holds`:
    a step was begun of which clients may wait.
    """

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
        self.holds = False

    async def take(self, steps: Sequence[Step], report: Report) -> None:
        """All of them, as far as it goes. When this is cancelled, no thread of theirs is left at work."""
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
                    ),
                    return_exceptions=True,  # waits for all, also when they are cancelled
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
            self.holds = self.holds or step.holds
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
        if not error.lost or step.holds:
            return text
        said, self.lost = self.lost, True
        left = "1 step there is" if self.left == 1 else f"{self.left} steps there are"
        return "" if said else f"{text}. {left} not done: see to it, then run this again"
