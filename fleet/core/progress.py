"""What a person sees while steps are taken: a bar on a terminal, else a line now and then."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from fleet.core.steps import Step

_SECONDS = 5.0
"""Between two lines, where there is no terminal."""


class Progress(Protocol):
    """Told of each step."""

    def of(self, total: int) -> AbstractContextManager[None]:
        """Around `total` steps."""

    def step(self, step: Step) -> None:
        """One was taken."""


class Silent:
    """Nobody looks."""

    @contextmanager
    def of(self, total: int) -> Iterator[None]:
        yield

    def step(self, step: Step) -> None:
        """Not shown."""


class Shown:
    """On a console: standard error, so that what is printed can be piped."""

    def __init__(self, console: Console, title: str) -> None:
        self._console, self._title = console, title
        self._bar: Bar | None = None
        self._done = self._total = 0
        self._last = 0.0

    @contextmanager
    def of(self, total: int) -> Iterator[None]:
        self._done, self._total, self._last = 0, total, time.monotonic()
        if not total or not self._console.is_terminal:
            yield
            return
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
        )
        with Bar(*columns, console=self._console, transient=True) as self._bar:
            self._bar.add_task(self._title, total=total)
            yield
        self._bar = None

    def step(self, step: Step) -> None:
        self._done += 1
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0])
        elif time.monotonic() - self._last >= _SECONDS:
            self._last = time.monotonic()
            self._console.print(f"{self._title}: {self._done} of {self._total} steps", markup=False)
