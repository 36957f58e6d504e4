"""Waiting for a condition: the only place in the tests that sleeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE, LONGEST = 0.01, 0.1
"""What takes seconds is looked at less often: a look may be a page of the proxy's, or a command."""


def _pause(waited: float) -> float:
    return min(max(PAUSE, waited / 16), LONGEST)


def wait_until(condition: Callable[[], T], what: str, seconds: float = 120.0) -> T:
    """The first true value that `condition` gives; AssertionError naming `what` after `seconds`."""
    begun = time.monotonic()
    while not (value := condition()):
        waited = time.monotonic() - begun
        assert waited < seconds, f"not within {seconds:g} s: {what}"
        time.sleep(_pause(waited))
    return value


def wait_until_is(read: Callable[[], T], expected: T, what: str, seconds: float = 120.0) -> None:
    """Until `read` gives `expected`; AssertionError naming `what` and what it gave last after `seconds`."""
    begun = time.monotonic()
    while (value := read()) != expected:
        waited = time.monotonic() - begun
        assert waited < seconds, f"not within {seconds:g} s: {what}: {value}, not {expected}"
        time.sleep(_pause(waited))


async def async_wait_until(condition: Callable[[], T], what: str, seconds: float = 120.0) -> T:
    """`wait_until` that lets the event loop run meanwhile."""
    begun = time.monotonic()
    while not (value := condition()):
        waited = time.monotonic() - begun
        assert waited < seconds, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(_pause(waited))
    return value


async def turns(count: int = 1) -> None:
    """Let the event loop go round: whatever is ready runs, `count` steps deep. No time passes.

    For tests whose world is all in memory, and for what must *not* happen.
    """
    for _ in range(count):
        await asyncio.sleep(0)


async def turns_until(condition: Callable[[], T], what: str, most: int = 100) -> T:
    """The first true value of `condition` while the loop goes round; AssertionError after `most` turns."""
    for _ in range(most):
        if value := condition():
            return value
        await turns()
    raise AssertionError(f"not within {most} turns of the loop: {what}")
