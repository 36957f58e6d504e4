"""Progress: a spinner and a bar on a terminal; elsewhere one line when a step is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn


class Step:
    """One step under way."""

    def __init__(self, bar: Progress, title: str) -> None:
        self._bar = bar
        self._task = bar.add_task(title, total=None)
        self.text = ""

    def progress(self, done: int, total: int) -> None:
        """Show how far it is; from any thread."""
        self._bar.update(self._task, completed=done, total=total)

    def result(self, text: str) -> None:
        """What the finished step is to say of itself."""
        self.text = text


class Counted:
    """A step that shows how many of a fleet tool's are taken: `fleet.core.progress.Progress`."""

    def __init__(self, step: Step) -> None:
        self._step = step
        self._done = self._total = 0

    @contextmanager
    def of(self, total: int) -> Iterator[None]:
        """See `Progress`."""
        self._done, self._total = 0, total
        yield

    def step(self, step: object) -> None:
        """See `Progress`."""
        self._done += 1
        self._step.progress(self._done, self._total)


class Steps:
    """Prints to `console`; a terminal that has gone away is no error. `check` may end all before a step."""

    def __init__(self, console: Console, check: Callable[[], None] = lambda: None) -> None:
        self._console = console
        self._check = check

    @contextmanager
    def step(self, title: str) -> Iterator[Step]:
        """Run a step: show it while it lasts, and its result and time when it has succeeded."""
        self._check()
        started = time.monotonic()
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(40), MofNCompleteColumn())
        hidden = not self._console.is_terminal
        with Progress(*columns, console=self._console, transient=True, disable=hidden) as bar:
            step = Step(bar, title)
            yield step
        seconds = time.monotonic() - started
        self.say(f"[green]✓[/green] {title}: {step.text} [dim]{seconds:.1f} s[/dim]")

    def say(self, text: str, *, markup: bool = True) -> None:
        """Print a line; long ones are not broken, so that they can be copied."""
        with suppress(OSError):
            self._console.print(text, markup=markup, highlight=False, soft_wrap=True)
