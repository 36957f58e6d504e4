"""Ctrl-C and its kin: who is at work is cancelled once, and has the time to leave things in order.

    cancelled_by_signals   around the work
    asking                 around a prompt, which Ctrl-C ends at once
    to_end                 blocking work that is not left half way
    Interrupted            how a tool ends then

Signals that are ignored, as nohup does with SIGHUP, stay so.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

import typer

from fleet.core.errors import Failed, Refused

_T = TypeVar("_T")
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C; kill and service managers; a terminal that is closed."""


class Interrupted(Failed):
    """Somebody has ended the tool."""


@contextmanager
def cancelled_by_signals(again: Callable[[], None]) -> Iterator[None]:
    """The first signal within cancels this task; with each further one `again` is called."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    if task is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop() -> None:
        if task.cancelling():
            again()
        else:
            task.cancel()

    taken = [one for one in _SIGNALS if signal.getsignal(one) is not signal.SIG_IGN]  # as nohup has it
    for number in taken:
        loop.add_signal_handler(number, stop)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)


@contextmanager
def asking() -> Iterator[None]:
    """Around a prompt, which keeps the loop: Ctrl-C ends it at once, and nothing is changed. Refused."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    wakeup = signal.set_wakeup_fd(-1)  # else the loop would be told, too, when it goes on
    try:
        yield
    except (KeyboardInterrupt, typer.Abort):
        raise Refused("interrupted: nothing was changed") from None
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGINT, before)


async def to_end(function: Callable[..., _T], *arguments: Any) -> _T:
    """What it gives, of a thread. A cancelled task waits for the thread's end first: what comes then knows
    whether it was done.
    """
    work = asyncio.get_running_loop().run_in_executor(None, partial(function, *arguments))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # it is seen
        raise
