"""Where processes are: each that has called `listen` writes its stacks to a file when `collect` asks."""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import TextIO

from tests.support.waiting import wait_until

ASKED = signal.SIGUSR2
STUCK = signal.SIGUSR1
"""For one that does not write by itself, as within a loop of compiled code: to its standard error."""


def listen(folder: Path) -> None:
    """Write the stacks of threads and tasks to ``stacks-PID.txt`` there when asked. Forks do so, too."""

    def tell(number: int, frame: FrameType | None) -> None:
        draft = folder / f"stacks-{os.getpid()}.new"
        with draft.open("w") as out:
            write(out)
        draft.replace(draft.with_suffix(".txt"))

    signal.signal(ASKED, tell)
    faulthandler.register(STUCK, all_threads=True)


def write(out: TextIO) -> None:
    """All threads of this process, and all tasks of the event loop that runs in this thread."""
    names = {one.ident: one.name for one in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        out.write(f"thread {names.get(ident, ident)}\n{''.join(traceback.format_stack(frame))}\n")
    with contextlib.suppress(RuntimeError):  # none runs
        for task in asyncio.all_tasks():
            task.print_stack(file=out)


def collect(pids: Iterable[int], folder: Path, seconds: float = 5.0) -> list[Path]:
    """Ask those processes, which all listen with that folder; the files of those that wrote in time."""
    asked = {pid: folder / f"stacks-{pid}.txt" for pid in pids}
    for pid, path in asked.items():
        path.unlink(missing_ok=True)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, ASKED)
    with contextlib.suppress(AssertionError):
        wait_until(lambda: all(path.exists() for path in asked.values()), "stacks", seconds)
    for pid, path in asked.items():
        with contextlib.suppress(ProcessLookupError):
            if not path.exists():
                os.kill(pid, STUCK)
    return [path for path in asked.values() if path.exists()]
