"""All ranges of a table, a few at a time: here, or on the workers of a Dask cluster (`cluster`).

A range is some thousand rows, by the source's own index. A job is what a worker needs to do one: documents
and log-ins, as plain values.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from config.backends import Backends
from config.flavour import Flavour
from config.layout import Layout
from config.load import load_schema, load_topology, open_document
from config.schema import Schema, quote
from config.topology import Topology
from fleet.core.hosts import Hosts, connector
from fleet.filling import literal_of
from fleet.importing import source as sources
from fleet.importing.definitions import SourceTable
from fleet.importing.ids import Ids
from fleet.importing.plan import read_plan
from fleet.importing.rows import Outcome, Range, Rows
from fleet.importing.source import Source, telling
from fleet.importing.tables import Import, ImportedTable, after, joined

Mode = Literal["copy", "mend", "look"]
AT_ONCE: Final = 4
"""Ranges that are worked on at the same time."""
ROWS: Final = 4000
"""Of a range."""
_SECONDS: Final = 600.0


@dataclass(frozen=True)
class Job:
    """What is imported from where to where, as values that can be sent. `logins`: user and password by host;
    `at_once`: ranges that one process works on at the same time.
    """

    source: Source
    plan: bytes
    schema: bytes
    topology: bytes
    layouts: Mapping[str, Layout]
    backends: Backends = field(repr=False)
    logins: Mapping[str, tuple[str, str]] = field(repr=False)
    at_once: int = AT_ONCE


class Worker:
    """One process's hands: the tables as they are to be imported, and connections to both sides."""

    def __init__(
        self,
        job: Job,
        work: Import,
        topology: Topology,
        hosts: Hosts,
        reader: Hosts,
        there: Mapping[str, SourceTable],
        *,
        canonical: bool,
    ) -> None:
        self.job, self.work, self.hosts, self.reader = job, work, hosts, reader
        self.there = there
        """The source's tables as they were when this began."""
        self.ids = Ids(work, topology, hosts, job.source, reader)
        self.rows = {
            one.name: Rows(one, job.source, reader, topology, hosts, self.ids, canonical=canonical)
            for one in work.tables
        }

    async def do(self, name: str, mode: Mode, span: Range) -> Outcome:
        """One range of a table. HostError, Failed."""
        rows, condition = self.rows[name], condition_of(self.work.table(name), span)
        if mode == "copy":
            return await rows.copy(condition)
        return await rows.compare(condition, mend=mode == "mend")


def condition_of(table: ImportedTable, span: Range) -> str:
    """SQL for the rows of a range."""
    parts = [after(table.bounds, span.after)] if span.after is not None else []
    parts += [after(table.bounds, span.upto, last=True)] if span.upto is not None else []
    return " AND ".join(parts) or "TRUE"


@contextlib.asynccontextmanager
async def working(job: Job) -> AsyncIterator[Worker]:
    """Everything read and connected. Refused with all that is wrong, ConfigError, HostError."""
    document = open_document(job.plan, "plan")
    plan = read_plan(document)
    schema: Schema = load_schema(job.schema)
    topology = load_topology(job.topology, layouts=job.layouts, schema=schema)
    connect = connector(job.backends, lambda host: job.logins[host])
    async with (
        sources.opened(job.source, 3 * job.at_once + 2) as reader,
        Hosts(telling(connect, sources.WRITES), tls_for=job.backends.tls_for) as hosts,
    ):
        there = await sources.tables_of(reader, job.source)
        server = await sources.look_at(reader, job.source.address)
        flavours = await asyncio.gather(*(_flavour(hosts, host) for host in topology.hosts))
        work = joined(plan, document, schema, topology, there)
        document.raise_problems()
        assert work is not None
        canonical = any(one is not server.flavour for one in flavours)
        yield Worker(job, work, topology, hosts, reader, there, canonical=canonical)


async def _flavour(hosts: Hosts, host: str) -> Flavour:
    return (await sources.look_at(hosts, host)).flavour


class Pace:
    """No more rows a second than this, on the whole; 0: as they come."""

    def __init__(
        self,
        rows_per_second: int = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate, self._clock, self._sleep = rows_per_second, clock, sleep
        self._free = clock()

    async def take(self, rows: int) -> None:
        """Wait until so many may be read."""
        if not self._rate:
            return
        now = self._clock()
        self._free, wait = max(self._free, now) + rows / self._rate, self._free - now
        if wait > 0:
            await self._sleep(wait)


class Executor(Protocol):
    """Who does ranges. `at_once`: how many at the same time."""

    at_once: int

    async def do(self, name: str, mode: Mode, span: Range) -> Outcome:
        """One range of a table. HostError, Failed."""


class Ranges:
    """Goes over a table."""

    def __init__(self, worker: Worker, executor: Executor, pace: Pace) -> None:
        self._worker, self._executor, self._pace = worker, executor, pace

    async def _bounds(self, table: ImportedTable, start: tuple[str, ...] | None) -> AsyncIterator[Range]:
        """The ranges behind `start`: the last one has no end."""
        source = self._worker.job.source
        shown = ", ".join(
            by if by != quote(one) else literal_of(one, table.kind_of(one))
            for one, by in zip(table.key, table.bounds, strict=True)
        )
        order = ", ".join(map(quote, table.key))
        begin = start
        while True:
            condition = after(table.bounds, begin) if begin is not None else "TRUE"
            rows = await self._worker.reader.query(
                source.address,
                f"SELECT {shown} FROM {quote(source.database)}.{quote(table.source)} WHERE {condition}"
                f" ORDER BY {order} LIMIT 1 OFFSET {ROWS - 1}",
                _SECONDS,
            )
            if not rows:
                yield Range(begin, None)
                return
            end = tuple(map(str, rows[0]))
            yield Range(begin, end)
            begin = end

    async def over(
        self,
        table: ImportedTable,
        mode: Mode,
        start: tuple[str, ...] | None = None,
        reached: Callable[[tuple[str, ...] | None, int], Awaitable[None]] | None = None,
    ) -> Outcome:
        """All rows behind `start`. `reached` is told up to where everything is done, and how many rows that
        were since the last time.
        """
        total, turn = Outcome(), asyncio.Lock()
        bounds = self._bounds(table, start)
        begun: list[Range] = []
        done: dict[int, int] = {}
        first = 0
        stopped = False

        async def work() -> None:
            nonlocal first
            while not stopped:
                async with turn:
                    await self._pace.take(ROWS)
                    span = await anext(bounds, None)
                    if span is None:
                        return
                    number = len(begun)
                    begun.append(span)
                outcome = await self._executor.do(table.name, mode, span)
                async with turn:
                    total.add(outcome)
                    done[number] = outcome.rows
                    rows = 0
                    while first in done:
                        rows += done.pop(first)
                        first += 1
                    if reached is not None and rows:
                        await reached(begun[first - 1].upto, rows)

        async def until_stopped() -> None:
            nonlocal stopped
            try:
                await work()
            except BaseException:
                stopped = True  # the others end what they are at
                raise

        results = await asyncio.gather(
            *(until_stopped() for _ in range(self._executor.at_once)), return_exceptions=True
        )
        for one in results:
            if isinstance(one, BaseException):
                raise one
        return total


class Here:
    """Ranges are done in this process."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.at_once = worker.job.at_once

    async def do(self, name: str, mode: Mode, span: Range) -> Outcome:
        return await self._worker.do(name, mode, span)
