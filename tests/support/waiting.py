"""Waiting for a condition: the only place in the tests that sleeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE = 0.01


def wait_until(condition: Callable[[], T], what: str, seconds: float = 20.0) -> T:
    """The first true value that `condition` gives; AssertionError naming `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        time.sleep(PAUSE)
    return value


async def async_wait_until(condition: Callable[[], T], what: str, seconds: float = 20.0) -> T:
    """`wait_until` that lets the event loop run meanwhile."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}"
        await asyncio.sleep(PAUSE)
    return value
