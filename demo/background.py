"""`complete`: what is asynchronous, done for who is not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from threading import Thread
from typing import Any, TypeVar

Result = TypeVar("Result")


def complete(work: Coroutine[Any, Any, Result]) -> Result:
    """Its result, or what it raises. What a signal raises here meanwhile cancels it, and goes on.

    Its event loop runs in a thread of its own: the exception would be lost in a callback of the loop, or
    break the connection whose bytes have just come.
    """
    loop = asyncio.new_event_loop()
    # A second signal may keep it from being joined
    thread = Thread(target=_run, args=(loop,), name="background", daemon=True)
    future = asyncio.run_coroutine_threadsafe(work, loop)
    thread.start()
    try:
        return future.result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Until it is stopped; what is unfinished then is cancelled."""
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()
