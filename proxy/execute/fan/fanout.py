"""Several statements on several hosts at once, their rows merged into one result for the client.

A `FanOut` is one client's statement at work. Its branches, one for each statement that runs at the same time,
take their connections one after another in the order of the hosts' names (two fan-outs that wait for each
other's connections would otherwise stop each other), then all send. Rows go through the merger and on to the
client as they come; a branch that is ahead of the others, or a client that reads slowly, stops the reading.
A merge of many rows gives way to what else the loop has to do. An error on one host ends the statements on
the others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.backends.waiting import Waiter
from proxy.engine import lease
from proxy.engine.definitions import Definitions, fill_zeros
from proxy.engine.diagnostics import drain_diagnostics
from proxy.engine.loading import results_form, spread_merge, spread_settings
from proxy.engine.outside_transaction import NAMED_IN_A_CLAUSE, fail_by_its_own
from proxy.engine.session_sync import sync_packets
from proxy.engine.warned import Told, notices
from proxy.errors import ProxyError
from proxy.load import Load
from proxy.session.outcome import RESULT_SET, ROWS_SENT, Outcome
from proxy.wire.packets import Err, ProtocolError, eof_packet, query_packet
from rewriter.plans import Bound, HostStatement

from .branch import Branch, make_branches, share_out
from .merge import Merger, make_merger

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


class FanOut:
    """One statement over several hosts: the client's `Work` until it has been answered."""

    __slots__ = (
        "_later",
        "_learning",
        "_lost",
        "_over",
        "_running",
        "_to_connect",
        "_waiter",
        "_width",
        "_zeros",
        "bound",
        "branches",
        "bytes",
        "ceiling",
        "client",
        "definitions",
        "error",
        "keyspace",
        "merge",
        "merger",
        "plain",
        "settings",
        "told",
    )

    def __init__(
        self,
        client: Exchange,
        bound: Bound,
        definitions: Definitions,
        ceiling: int | None,
        keyspace: str | None = None,
        plain: Callable[[], HostStatement] | None = None,
    ) -> None:
        """`keyspace` is that of its tables; without it its shards are not told apart in what is counted.
        `plain` makes the client's own statement for one shard.
        """
        self.client = client
        self.keyspace = None if keyspace is None else client.snapshot.topology.keyspaces[keyspace]
        cut = definitions.known and definitions.cut and client.session.env.flavour.unions_lose_columns
        if cut and bound.per_shard is not None:
            bound = bound.per_shard.make()
        self.bound = bound
        self.merge = spread_merge(client, bound)
        self.settings = spread_settings(client, bound)
        self.definitions = definitions
        ordered = bool(self.merge.order) or len(bound.statements) == 1
        self.plain = plain if ordered else None  # else no ORDER BY was written into select lists
        self.ceiling = ceiling  # rows; set for a scatter, which is bounded in bytes too
        self.bytes = 0
        self.error: ProxyError | Err | None = None
        self.told = Told()
        self.merger: Merger | None = None
        self._width = 0  # columns, hidden ones included
        self._zeros: dict[int, int] = {}  # ZEROFILL columns whose zeros a UNION has lost
        transaction = client.session.transaction
        # a transaction has one connection on each host, so there a host is one branch in any case
        together = not self.merge.order or transaction.explicit or not client.session.autocommit
        self.branches = make_branches(self, bound.statements, None if together else transaction.held)
        self._waiter: Waiter[BackendConnection] | None = None
        self._to_connect = sorted(self.branches, key=lambda branch: branch.host, reverse=True)
        self._learning: asyncio.Task[None] | None = None
        self._running = 0
        self._later: asyncio.Handle | None = None  # the next turn of a merger that is pending
        self._over: list[BackendConnection] = []  # the session's connections whose branches are over
        self._lost: list[tuple[BackendConnection, ProxyError | None]] = []

    # -- connecting
    # -------------------------------------------------------------------------------------------------

    def loads(self, run: int) -> Sequence[Load]:
        """What the shards of one of the statements have had to do."""
        if self.keyspace is None:
            return ()
        return self.client.services.backends.loads.of(self.keyspace, self.bound.statements[run].shards)

    def start(self) -> None:
        self.client.work = self
        self._connect()

    def _connect(self) -> None:
        """Take the next connections; when all are there, go."""
        session = self.client.session
        while self._to_connect:
            host = self._to_connect[-1].host
            conn = session.transaction.held.get(host)
            if conn is None:
                conn = lease.take(self.client, host)
                if conn is None and lease.crowded(self.client, host) and self._join_another():
                    continue
                if conn is None:
                    self._waiter = lease.wait(self.client, host, self._granted, self._refused)
                    return
            self._to_connect.pop().conn = conn
        reference = None if self.definitions.known else self.bound.refers_to()
        if reference is not None:
            learning = self._learn_definitions(reference)
            self._learning = self.client.services.spawn(learning, "column definitions")
        else:
            self._go()

    def _join_another(self) -> bool:
        """Let a branch of the same host that has a connection do the next branch's work too.

        With all connections of a host in use, a second one could be waited for by statements that wait for
        each other.
        """
        branch = self._to_connect[-1]
        for other in self.branches:
            if other.host == branch.host and other.conn is not None:
                other.statements += branch.statements
                self._to_connect.pop()
                self.branches.remove(branch)
                return True
        return False

    def _granted(self, conn: BackendConnection) -> None:
        self._waiter = None
        self._to_connect.pop().conn = conn
        self._connect()

    def _refused(self, error: Exception) -> None:
        self._waiter = None
        host = self._to_connect[-1].host
        if isinstance(error, ProxyError):  # nothing was sent anywhere, but the others could be asked
            runs = [run for branch in self._to_connect if branch.host == host for run, _ in branch.statements]
            error.shards = [load for run in runs for load in self.loads(run)]
        self._give_all_back()
        self.client.met(error)

    async def _learn_definitions(self, reference: HostStatement) -> None:
        """Once for a plan: the column definitions of the same statement on one shard, which UNION would
        change.
        """
        branch = next((branch for branch in self.branches if branch.host == reference.host), self.branches[0])
        conn = branch.conn
        assert conn is not None
        try:
            packets, count = sync_packets(self.client.session, conn, self.settings)
            reply = await Collector().run(conn, packets + query_packet(reference.sql), count)
            if reply.err is not None:
                self.error = self.error or reply.err
                self.told.diagnostics = await drain_diagnostics(self.client, conn)
        except ProxyError as error:
            self.error = self.error or error
        self._learning = None
        if self.error is None:
            self.definitions.learn(reply.columns)
            self._part()
            self._go()
        else:
            self._finish()

    def _part(self) -> None:
        """Go without UNIONs if they would cut values, over the connections there are."""
        cut = self.definitions.cut and self.client.session.env.flavour.unions_lose_columns
        if not cut or self.bound.per_shard is None:
            return
        self.bound = self.bound.per_shard.make()
        self.merge = spread_merge(self.client, self.bound)
        self.settings = spread_settings(self.client, self.bound)
        share_out(self.branches, self.bound.statements)

    def _go(self) -> None:
        self._running = len(self.branches)
        for branch in self.branches:
            branch.send_next()

    # -- rows
    # -------------------------------------------------------------------------------------------------------

    def received(self, branch: Branch, data: bytes, ending: int) -> None:
        """Part of a branch's reply; `ending`: the size of the packet at its end that ends the reply, or 0."""
        reader, definitions = branch.reader, self.definitions
        begins = definitions.begins
        if begins and data.startswith(begins) and reader.expect_rows(definitions.read):
            block = reader.feed(data[len(begins) :], ending)
        else:
            begun = reader.begins
            block = reader.feed(data, ending)
            if reader.begins and not begun:
                definitions.remember(data[: reader.begins], reader.columns)
        if self.error is not None or not reader.rows_begun:
            return
        head = b""
        try:
            if self.merger is None:
                head = self._begin(branch)
            assert self.merger is not None
            if len(reader.columns) != self._width:
                raise ProxyError("merge_failed", reason=f"{branch.host} has other columns than the others")
            seq = self.merger.seq
            out = self.merger.rows(branch.run, block) if block else b""
        except (ProtocolError, ProxyError) as problem:
            if head:
                self.merger = None  # nothing has been sent, and the error is the whole reply
            if isinstance(problem, ProtocolError):
                problem = ProxyError("backend_protocol", host=branch.host, reason=str(problem))
            self._fail_now(problem)
            return
        self.bytes += len(block)
        if self._give(head, out, seq):
            if self.merge.order or self.client.writing_paused:
                self.flow()
        elif self._running <= 0:
            self._finish()

    def _go_on_merging(self) -> None:
        """Another turn of a merge: rows that were there already."""
        self._later = None
        merger = self.merger
        assert merger is not None
        if self.error is not None:
            return  # who has failed it answers the client
        seq = merger.seq
        given = self._give(b"", merger.more(), seq)
        if given:
            self.flow()
        if self._running <= 0 and not (given and merger.pending):
            self._finish()

    def _give(self, head: bytes, rows: bytes, seq: int) -> bool:
        """Rows to the client, or False if they are too many. `seq`: the sequence number of the first."""
        excess = self._excess()
        if excess is None:
            if self._zeros and rows:
                width = self._width - self.merge.hidden
                rows = fill_zeros(rows, seq, width, self._zeros, results_form(self.client.session))
            if head:  # apart: to join them would copy the rows
                self.client.transport.write(head)
            if rows:
                self.client.transport.write(rows)
            return True
        if head:
            self.client.transport.write(head)
        assert self.merger is not None
        self.merger.seq = seq
        self._failed(excess)
        return False

    def _excess(self) -> ProxyError | None:
        """The limit gone beyond: of a scatter, or of ordered runs that share a connection and so are kept."""
        kept = self.merge.order and len(self.branches) < len(self.bound.statements)
        if self.merger is None or (self.ceiling is None and not kept):
            return None
        most = self.client.services.settings.limits.scatter_bytes
        if most and self.bytes > most:
            return ProxyError("scatter_bytes", limit=most)
        if self.ceiling is not None and self.merger.emitted > self.ceiling:
            return ProxyError("scatter_limit", limit=self.ceiling, user=self.client.session.user.name)
        return None

    def _begin(self, branch: Branch) -> bytes:
        """The first rows are coming: the header for the client."""
        payloads = branch.reader.columns
        self._width = len(payloads)
        columns = self.definitions.columns(payloads)
        union = len(self.bound.statements[branch.run].shards) > 1
        session = self.client.session
        head, seq = self.definitions.head(
            payloads,
            self.merge.hidden,
            session.status(),
            self.client.seq + 1,
            union=union,
            extended=session.extended,
        )
        several = union or any(len(one.shards) > 1 for one in self.bound.statements)
        form = results_form(session)
        self._zeros = self.definitions.zeros_of(union=several, form=form)
        runs = len(self.bound.statements)
        pads = self.client.services.pads
        self.merger = make_merger(self.merge, columns, runs, seq, pads, form)
        return head

    # -- ends
    # -------------------------------------------------------------------------------------------------------

    def branch_done(self, branch: Branch, conn: BackendConnection) -> None:
        """A statement's reply is complete."""
        scanned = conn.scanner
        self.client.visited(conn, branch.loads)
        if scanned.err is not None:
            self._failed(replace(scanned.err, host=conn.host))
        elif scanned.warnings:
            self.told.count += scanned.warnings
        if self.error is None and self.merger is not None:
            seq = self.merger.seq
            try:
                self._give(b"", self.merger.ended(branch.run), seq)  # the last rows of an ordered merge
            except ProxyError as error:
                self._failed(error)
            if self.merge.order or self.client.writing_paused:
                self.flow()
        if branch.paused:
            branch.paused = False
            conn.transport.resume_reading()
        if scanned.err is not None or scanned.warnings:
            branch.draining = self.client.services.spawn(self._drain(branch, conn), "settle")
        else:
            self._go_on(branch, conn)

    def _go_on(self, branch: Branch, conn: BackendConnection) -> None:
        """The branch's next statement, if it has one."""
        if self.error is None and branch.statements and not conn.closed:
            branch.send_next()
        else:
            self._branch_over(branch, conn)

    async def _drain(self, branch: Branch, conn: BackendConnection) -> None:
        failed = conn.scanner.err is not None
        found = await drain_diagnostics(self.client, conn)
        branch.draining = None
        if not failed and self.error is None:
            self.told.add(found, len(self.bound.statements[branch.run].shards))
        elif failed and isinstance(self.error, Err) and self.error.host == conn.host:
            self.told.diagnostics = found
        if branch.conn is conn:
            self._go_on(branch, conn)

    def _branch_over(self, branch: Branch, conn: BackendConnection) -> None:
        branch.conn = None
        session = self.client.session
        if conn.closed:
            self._lost.append((conn, None))
        elif session.transaction.explicit or session.transaction.held or conn.in_transaction:
            self._over.append(conn)  # until no other branch is at work: a host may have ended the transaction
        else:
            lease.give_back(self.client, conn)
        self._running -= 1
        if not self._running and (self.error is not None or self.merger is None or not self.merger.pending):
            self._finish()

    def branch_lost(self, branch: Branch, conn: BackendConnection, error: ProxyError) -> None:
        self._lost.append((conn, error))
        self.client.visited(conn, branch.loads)
        self._failed(error)
        self._running -= 1
        if self._running <= 0:
            self._finish()

    def _failed(self, error: ProxyError | Err) -> None:
        """The first error decides; what still runs elsewhere is ended there."""
        if self.error is not None:
            return
        self.error = error
        self.told.diagnostics = []  # those of the host that has failed are the statement's
        transaction = self.client.session.transaction
        for branch in self.branches:
            conn = branch.conn
            branch.statements.clear()
            if conn is None or conn.receiver is None:
                continue
            if branch.paused:
                branch.paused = False
                conn.transport.resume_reading()
            backends = self.client.services.backends
            if transaction.explicit or transaction.held.get(branch.host) is conn:
                backends.kill_query(conn)  # the transaction goes on: read the reply to its end
            else:
                self._running -= 1
                branch.leave()

    def _fail_now(self, error: ProxyError) -> None:
        """An error outside a reply's end: when it ended every branch, nobody else answers the client."""
        self._failed(error)
        if self._running <= 0:
            self._finish()

    def _finish(self) -> None:
        """Answer the client: the end of the rows, or the error."""
        if self._later is not None:
            self._stop_merging()
        if self._over or self._lost or any(branch.conn is not None for branch in self.branches):
            self._give_all_back()
        self.branches = []  # each refers to this one: it need not wait for the garbage collector
        client, session = self.client, self.client.session
        if self.merger is None:
            error, plain = self.error, self.plain
            if isinstance(error, Err) and error.code in NAMED_IN_A_CLAUSE and plain is not None:
                fail_by_its_own(client, error, self.told.diagnostics, plain())
                return
            nothing = ProxyError("merge_failed", reason="no host gave a result set")
            client.fail(error or nothing, None, self.told.diagnostics)
            return
        if self.error is not None:
            client.fail(self.error, self.merger.seq, self.told.diagnostics)
            return
        diagnostics, count, warnings = self.told.diagnostics, self.told.count, self.bound.warnings
        if warnings:
            diagnostics, count = diagnostics + notices(warnings), count + len(warnings)
        session.apply(Outcome(RESULT_SET, None, self.merger.found, diagnostics, True, ROWS_SENT))
        client.transport.write(eof_packet(self.merger.seq, session.status(), count))
        client.finish("ok")

    def _stop_merging(self) -> None:
        if self._later is not None:
            self._later.cancel()
            self._later = None

    def _give_all_back(self) -> None:
        """No branch is at work any more."""
        conns = [*self._over, *(branch.conn for branch in self.branches if branch.conn is not None)]
        self._over = []
        for conn in conns:
            if conn.doomed and not conn.closed:
                self.client.services.backends.killed(conn)
        for branch in self.branches:
            branch.conn = None
        lease.give_all_back(self.client, conns, failed=self.error is not None, broken=self._lost)

    # -- Work
    # -------------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        self._stop_merging()
        if self._waiter is not None:
            self._waiter.cancel()
        if self._learning is not None:
            self._learning.cancel()
        for branch in self.branches:
            # one to be settled is at work too, even if its task has not taken its first step
            if branch.conn is not None and (branch.conn.receiver is not None or branch.draining is not None):
                branch.leave()
        self._give_all_back()

    def kill_query(self) -> None:
        if self._waiter is not None:
            self._waiter.cancel()
            self._waiter = None
        if self._learning is None:
            self._fail_now(ProxyError("killed"))
            return
        self.error = self.error or ProxyError("killed")
        for branch in self.branches:
            if branch.conn is not None and branch.conn.receiver is not None:
                self.client.services.backends.kill_query(branch.conn)

    def flow(self) -> None:
        """Stop reading from branches that are ahead, or from all while the client is slow; go on with the
        others; and with a merge that has given way to others.
        """
        pending = self.merger is not None and self.merger.pending and self.error is None
        if pending and self._later is None and not self.client.writing_paused:
            self._later = asyncio.get_running_loop().call_soon(self._go_on_merging)
        for branch in self.branches:
            conn = branch.conn
            if conn is None or conn.receiver is None:
                continue
            ahead = self.merger is not None and not branch.statements and self.merger.full(branch.run)
            pause = self.client.writing_paused or ahead
            if pause != branch.paused:
                branch.paused = pause
                if pause:
                    conn.transport.pause_reading()
                else:
                    conn.transport.resume_reading()
