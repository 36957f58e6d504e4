"""The rows that statements of the proxy's own give, from all their hosts at once.

Each host sends its statements' rows over one connection, the session's own where a transaction is open. The
first error ends them all.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from proxy.backends.collect import ServerError
from proxy.backends.connection import BackendConnection
from proxy.backends.settings import Settings
from proxy.engine import lease
from proxy.engine.admission import admit_bound
from proxy.engine.diagnostics import SHOW_WARNINGS, diagnostics_of, drain_diagnostics, opens
from proxy.engine.planning import plan_for
from proxy.engine.session_sync import sync_packets
from proxy.engine.warned import without_phantoms
from proxy.errors import ProxyError
from proxy.load import Load
from proxy.session.outcome import Diagnostics
from proxy.session.values import values_of
from proxy.wire.charsets import values_codec
from proxy.wire.packets import Err, ProtocolError, query_packet
from proxy.wire.resultset import decode_row
from proxy.wire.rows import ResultReader, split_rows
from rewriter.plans import BindError, Bound, Choose, Plan

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from rewriter.env import Env

    from .gather_work import GatherWork


async def planned_read(client: Exchange, sql: bytes, env: Env, choose: Choose) -> tuple[Plan, Bound]:
    """Plan a SELECT of the proxy's own as the ordinary statement that it is. Raises ProxyError."""
    session = client.session
    plan, literals = await plan_for(client, sql, env)
    try:
        bound = plan.bind(values_of(session, plan, literals), client.snapshot.topology, choose)
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None
    admit_bound(client, plan.sharded_keyspace, bound, write=False)
    return plan, bound


class Read(NamedTuple):
    """One statement for a host. `loads`: what its shards have had to do."""

    host: str
    sql: bytes
    loads: Sequence[Load]


def reads_of(client: Exchange, plan: Plan, bound: Bound) -> list[Read]:
    """The statements of a SELECT that was planned and bound."""
    if not plan.sharded_keyspace:
        return [Read(one.host, one.sql, ()) for one in bound.statements]
    keyspace = client.snapshot.topology.keyspaces[plan.sharded_keyspace]
    of = client.services.backends.loads.of
    return [Read(one.host, one.sql, of(keyspace, one.shards)) for one in bound.statements]


class Source:
    """One host's share: the `Receiver` of its replies, one statement after another."""

    whole = True
    own = False

    def __init__(self, reading: Reading, host: str) -> None:
        self.reading = reading
        self.host = host
        self.statements: list[Read] = []
        self.loads: Sequence[Load] = ()  # of the statement at work
        self.conn: BackendConnection | None = None
        self.over = False
        self.failed = False
        self.paused = False
        self._reader = ResultReader()
        self._warnings: int | None = None  # the number of those that the host is being asked for
        self._shown: list[bytes] = []

    @property
    def client(self) -> Exchange:
        """Whose statement it is."""
        return self.reading.client

    async def connection(self) -> BackendConnection:
        """One for its statements. Raises ProxyError."""
        try:
            return await lease.connection(self.reading.client, self.host)
        except ProxyError as error:
            error.shards = [load for read in self.statements for load in read.loads]
            raise

    def send_next(self, settings: Settings) -> None:
        """Send the next statement, with what brings the connection into the session's state."""
        conn, client = self.conn, self.reading.client
        assert conn is not None
        self._reader = ResultReader()
        packets, count = sync_packets(client.session, conn, settings)
        conn.begun = client.begun
        read = self.statements.pop(0)
        conn.send(packets + query_packet(read.sql), self, count)
        self.loads = conn.shards = read.loads

    def pause(self, wanted: bool) -> None:
        """Stop reading from the host, or go on."""
        if self.conn is None or self.over or wanted is self.paused:
            return
        self.paused = wanted
        if wanted:
            self.conn.transport.pause_reading()
        else:
            self.conn.transport.resume_reading()

    # -- Receiver
    # ---------------------------------------------------------------------------------------------------

    def accepts(self, conn: BackendConnection, changed: bool) -> bool:
        return opens(self.reading.client.session, conn)

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        block = self._reader.feed(data, conn.scanner.ending)
        if self._warnings is not None:
            self._shown += split_rows(block) if block else []
            return
        if self.reading.error is None and self._reader.rows_begun:
            self.reading.received(self.host, self._reader.columns, block)

    def reply_done(self, conn: BackendConnection) -> None:
        if self.paused:
            self.paused = False
            conn.transport.resume_reading()
        if self._warnings is None:
            self.client.visited(conn, self.loads)
        if conn.scanner.err is not None:
            self.failed = True
            self.reading.fail(conn.scanner.err)
        elif self._warnings is not None:
            self._tell(conn, self._warnings)
        elif conn.scanner.warnings and self.reading.told is not None and self.reading.error is None:
            self._warnings, self._shown = conn.scanner.warnings, []
            self._reader = ResultReader()
            conn.send(SHOW_WARNINGS, self)
            return
        self._warnings = None
        if self.statements and self.reading.error is None:
            self.send_next(self.reading.settings)
            return
        self.over = True
        self.reading.wake.set()

    def _tell(self, conn: BackendConnection, total: int) -> None:
        """Note the warnings of the statement before."""
        try:
            rows = [decode_row(row, len(self._reader.columns)) for row in self._shown]
        except ProtocolError as problem:
            self.reading.fail(ProxyError("backend_protocol", host=conn.host, reason=str(problem)))
            return
        codec = values_codec(conn.settings.get("character_set_results"))
        found = without_phantoms(diagnostics_of(rows, total, codec))
        if self.reading.told is not None:
            self.reading.told += found
            self.reading.told.total += found.total

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        self.over = True
        self.reading.lost.append((conn, error))
        self.reading.fail(error)


class Reading(ABC):
    """One read at work. What takes its rows says `rows`, and `_take` waits while they come."""

    def __init__(
        self,
        client: Exchange,
        work: GatherWork,
        settings: Settings,
        *,
        ceiling: int | None = None,
        told: Diagnostics | None = None,
    ) -> None:
        """`settings`: what the statements are run with. `ceiling`: the rows of a scatter that the user may
        read. `told` gets the warnings.
        """
        self.told = told
        self.client = client
        self.work = work
        self.settings = settings
        self.error: ProxyError | Err | None = None
        self.wake = asyncio.Event()
        self.lost: list[tuple[BackendConnection, ProxyError | None]] = []
        self._ceiling = ceiling
        self._sources: list[Source] = []

    async def run(self, reads: Sequence[Read]) -> None:
        """Read what the statements give. Raises ServerError and ProxyError."""
        by_host: dict[str, Source] = {}
        for read in reads:
            source = by_host.setdefault(read.host, Source(self, read.host))
            source.statements.append(read)
        self._sources = [by_host[host] for host in sorted(by_host)]  # everywhere in this order: see FanOut
        await self._run()
        if isinstance(self.error, Err):
            raise ServerError(self.error)
        if self.error is not None:
            raise self.error

    async def _run(self) -> None:
        try:
            for source in self._sources:
                source.conn = await source.connection()
                self.work.conns.add(source.conn)
            self.work.check()
            for source in self._sources:
                source.send_next(self.settings)
            await self._take()
            await self._end()
        except BaseException:
            for source in self._sources:
                if source.conn is not None and source.conn.receiver is not None:
                    lease.discard(self.client, source.conn)
            self._give_back()
            raise
        self._give_back()

    # -- rows
    # -------------------------------------------------------------------------------------------------------

    def received(self, host: str, columns: list[bytes], block: bytes) -> None:
        """More of a host's reply, whose column definitions are known."""
        try:
            count = self.rows(host, columns, block)
        except ProtocolError as problem:
            self.fail(ProxyError("backend_protocol", host=host, reason=str(problem)))
            return
        except ProxyError as error:
            self.fail(error)
            return
        excess = self.work.count(count, len(block), self._ceiling)
        if excess is not None:
            self.fail(excess)

    @abstractmethod
    def rows(self, host: str, columns: list[bytes], block: bytes) -> int:
        """Take a block of rows with these columns; how many they are. Raises ProtocolError, ProxyError."""

    async def _take(self) -> None:
        """Wait until all rows have come, or something fails."""
        while self.error is None and not all(source.over for source in self._sources):
            await self.wake.wait()
            self.wake.clear()

    def fail(self, error: ProxyError | Err) -> None:
        """The first error decides."""
        self.error = self.error or error
        self.wake.set()

    # -- ends
    # -------------------------------------------------------------------------------------------------------

    async def _end(self) -> None:
        """After an error: end what still runs, and wait where a transaction must go on."""
        client = self.client
        transaction = client.session.transaction
        for source in self._sources:
            conn = source.conn
            if conn is None or source.over:
                continue
            source.pause(False)
            if transaction.explicit or transaction.held.get(source.host) is conn:
                client.services.backends.kill_query(conn)
            else:
                lease.discard(client, conn)
                source.over = True
        while not all(source.over for source in self._sources):
            self.wake.clear()
            await self.wake.wait()
        for source in self._sources:
            if source.conn is not None and source.conn.doomed and not source.conn.closed:
                client.services.backends.killed(source.conn)
            if source.failed and source.conn is not None and not source.conn.closed:
                await drain_diagnostics(client, source.conn)

    def _give_back(self) -> None:
        """No source is at work any more."""
        conns = [source.conn for source in self._sources if source.conn is not None]
        self.work.conns.difference_update(conns)
        lease.give_all_back(self.client, conns, failed=self.error is not None, broken=self.lost)
