"""Re-spacing in the background: rows that a reordering has left too close to each other.

What is to be done is in the rows themselves, so nothing is written down of it: a job that is lost with its
process is found again by the next reordering there, and one that is done twice finds nothing to do. Each is
one short transaction, whose locks it takes at once or not at all; so it waits for no client, and proxies
that have the same job do not wait for each other. One that is in the way of somebody comes later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import Final, NamedTuple

import structlog

from config.topology import State, Topology
from proxy.backends import Backends
from proxy.backends.collect import Collector, ServerError
from proxy.backends.connection import BackendConnection
from proxy.backends.own import own_connection
from proxy.caching.caches import Caches
from proxy.errors import ProxyError
from proxy.tasks import Tasks
from rewriter.plans.reorder import OrderedRows

from .room import Row, Wish, make_room

log = structlog.get_logger("proxy")

MOST_JOBS: Final = 10_000
"""More are not kept; the next reordering there asks again."""

_PATIENCE: Final = 10.0
"""Seconds that one may take."""

_DELAYS: Final = (0.0, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Seconds before each attempt: the transaction that has moved the row may be open for a while."""


class Job(NamedTuple):
    """A place in a list with too little room. `rows`: the table as its shard has it. `row`: what stood there;
    where it has gone meanwhile, those that it stood between may be too close all the same. `account`: that of
    the servers under which it was moved (`Backends.capability_set_of`).
    """

    keyspace: str
    shard: int
    rows: OrderedRows
    source: int
    row: Row
    account: int


class _Waiting(NamedTuple):
    attempt: int = 0
    due: float = 0.0


class Respacing:
    """The jobs of one worker process, which runs one at a time. `done`: so many rows were written."""

    def __init__(
        self,
        backends: Backends,
        tasks: Tasks,
        topology: Callable[[], Topology],
        wish: Wish,
        caches: Caches | None = None,
    ) -> None:
        self.wish = wish
        self._caches = caches or Caches(tasks)
        self.done = 0
        self._backends = backends
        self._spawn = tasks.spawn
        self._topology = topology
        self._waiting: dict[Job, _Waiting] = {}
        self._running: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def want(self, job: Job) -> None:
        """Do it soon."""
        if len(self._waiting) < MOST_JOBS:
            self._waiting[job] = _Waiting()

    def tick(self) -> None:
        """A few times a second: begin what is due."""
        if not self._waiting or self._running is not None:
            return
        now = monotonic()
        if any(one.due <= now for one in self._waiting.values()):
            self._running = self._spawn(self._run(), "re-spacing")

    async def _run(self) -> None:
        try:
            for job, waiting in list(self._waiting.items()):
                if waiting.due <= monotonic() and self._waiting.get(job) is waiting:
                    del self._waiting[job]
                    await self._attempt(job, waiting)
        finally:
            self._running = None

    async def _attempt(self, job: Job, waiting: _Waiting) -> None:
        table = job.rows.name.replace("`", "")
        try:
            async with asyncio.timeout(_PATIENCE):
                written = await self._respace(job)
        except (ProxyError, ServerError, TimeoutError) as error:
            again = waiting.attempt + 1
            full = isinstance(error, ProxyError) and error.kind.name == "reorder_full"
            if full or again == len(_DELAYS):
                log.warning("rows are not re-spaced", table=table, reason=str(error) or "timeout")
            else:  # one that was asked for meanwhile knows better
                due = monotonic() + _DELAYS[again]
                self._waiting.setdefault(job, _Waiting(again, due))
            return
        if written:
            self.done += written
            log.info("rows re-spaced", table=table, rows=written)

    async def _respace(self, job: Job) -> int:
        keyspace = self._topology().keyspaces.get(job.keyspace)
        found = keyspace.range_of(job.shard) if keyspace is not None else None
        if found is None or found.state is not State.SERVING:
            raise ProxyError("shard_offline", shard=job.shard, keyspace=job.keyspace, state="not serving")
        table = job.rows.name.replace("`", "").rpartition(".")[2]
        async with (
            self._caches.held(job.keyspace, table, job.source),
            own_connection(self._backends, found.master, job.account) as conn,
        ):
            await _ask(conn, b"START TRANSACTION")  # one that is not committed is rolled back by the pool
            ask = partial(_ask, conn)
            written = await make_room(ask, job.rows, job.source, job.row, self.wish, at_once=True)
            await _ask(conn, b"COMMIT")
            return written


async def _ask(conn: BackendConnection, sql: bytes) -> list[Row]:
    """A statement's rows. Raises ServerError, ProxyError."""
    reply = await Collector().query(conn, sql)
    if reply.err is not None:
        raise ServerError(reply.err)
    return rows_of(reply.values()) if reply.ok is None else []


def rows_of(values: list[list[bytes | None]]) -> list[Row]:
    """To-IDs and sequences; rows without one of them are in no list."""
    return [(int(to), int(sequence)) for to, sequence in values if to is not None and sequence is not None]
