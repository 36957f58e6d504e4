"""`--dask ADDRESS`: ranges are done by the workers of a Dask cluster. What they do is the same, and so is
what comes of it: where a row goes follows from the row, not from who writes it.

Dask is an optional extra: `pip install shardgate[dask]`. The job, passwords included, is sent to the workers:
let the cluster use TLS where its network is not your own.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any, Final
from uuid import uuid4

from fleet.core.errors import Failed, HostError, Refused
from fleet.importing.ranges import Job, Mode, working
from fleet.importing.rows import Outcome, Range

_KEY: Final = "shardgate-import"
_WAIT: Final = 60.0
"""Seconds for the cluster to answer, and for tasks of a run that was killed to end."""


_at_work: Final[set[object]] = set()
"""The ranges that this process, a worker, is doing: the scheduler forgets those of a client that is gone."""


def at_work() -> int:
    """How many there are."""
    return len(_at_work)


def do_range(job: Job, name: str, mode: Mode, span: Range) -> Outcome:
    """One range, by a worker: a process of its own, with connections of its own."""

    async def main() -> Outcome:
        async with working(replace(job, at_once=1)) as worker:
            return await worker.do(name, mode, span)

    mine = object()
    _at_work.add(mine)
    try:
        return asyncio.run(main())
    except HostError as error:
        raise Failed(f"{error.host}: {error}") from None  # it has to be sent
    finally:
        _at_work.discard(mine)


class Cluster:
    """Who does ranges there, two at a time for each of its threads."""

    def __init__(self, job: Job, client: Any) -> None:
        self._job, self._client = job, client
        threads = sum(client.nthreads().values())
        self.at_once = max(1, 2 * threads)
        self._waiting = ThreadPoolExecutor(self.at_once, thread_name_prefix="dask")
        self._run = uuid4().hex  # a key that was used before would give its old result
        self._numbers = count(1)

    async def do(self, name: str, mode: Mode, span: Range) -> Outcome:
        task = partial(do_range, self._job, name, mode, span)
        key = f"{_KEY}-{name}-{mode}-{self._run}-{next(self._numbers)}"
        future = self._client.submit(task, pure=False, key=key, retries=2)
        try:
            loop = asyncio.get_running_loop()
            outcome: Outcome = await loop.run_in_executor(self._waiting, future.result)
        except (Failed, Refused):
            raise
        except Exception as error:
            raise Failed(f"a worker of the cluster: {type(error).__name__}: {error}") from error
        return outcome


@contextlib.asynccontextmanager
async def connected(address: str, job: Job) -> AsyncIterator[Cluster]:
    """The cluster at an address, when nothing of an earlier run is at work there any more. Refused."""
    try:
        from distributed import Client
    except ImportError:
        raise Refused("--dask needs Dask: pip install 'shardgate[dask]', here and on the workers") from None
    try:
        client = await asyncio.to_thread(partial(Client, address, timeout=_WAIT))
    except (OSError, TimeoutError, ValueError) as error:
        raise Refused(f"--dask {address}: no cluster answers: {error}") from None
    try:
        await asyncio.to_thread(_alone, client)
        yield Cluster(job, client)
    finally:
        await asyncio.to_thread(client.close)


def _alone(client: Any) -> None:
    """Wait for tasks that a tool which was killed has left at work."""
    until = time.monotonic() + _WAIT
    while sum(client.run(at_work).values()):
        if time.monotonic() > until:
            raise Refused("the cluster is still at work for an earlier run: wait for its end")
        time.sleep(0.2)
    if not client.nthreads():
        raise Refused("the cluster has no workers")
