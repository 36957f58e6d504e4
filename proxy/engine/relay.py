"""One statement on one host, its reply to the client as the very bytes the server sent.

This is the way of most statements, so it makes no object: every client has one `Relay`, used again for each
statement. It is the `Receiver` of the reply and the client's `Work`. After the reply it notes what the
session must know (insert id, status, warnings) and gives the connection back, or keeps it when a transaction
is open. What is not sent as a COM_QUERY (a prepared statement), or has more behind it (a file), is a
`Request` that the relay is given: it stands between the connection and the relay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from proxy.backends.connection import BackendConnection
from proxy.backends.own import change_database
from proxy.backends.waiting import Waiter
from proxy.descriptors import write_out
from proxy.engine import lease
from proxy.engine.admission import admit_pinned
from proxy.engine.column_metadata import place_of
from proxy.engine.composed import broken_reply, composed, composed_rows, logical_reply
from proxy.engine.diagnostics import drain_diagnostics, opens
from proxy.engine.failures import ENDED, note_error
from proxy.engine.left_behind import ends_one_part, left_behind
from proxy.engine.passthrough import Request
from proxy.engine.problems import NOTED
from proxy.engine.session_sync import asks_for_warnings, effects_packets, open_on, sync_packets
from proxy.engine.tracked import tracked_reply
from proxy.engine.transcode import BinarySink, binary_reply
from proxy.engine.untold import moved, untold
from proxy.errors import ProxyError
from proxy.load import Load
from proxy.session.outcome import RESULT_SET, Outcome
from proxy.wire.column_metadata import Header, Placing
from proxy.wire.constants import Status
from proxy.wire.packets import Err, query_packet
from proxy.wire.pieces import piece
from proxy.wire.replies import DONE
from rewriter.plain.called import NOWHERE
from rewriter.plans import Values
from rewriter.route.column_metadata import ColumnMetadata
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.facts import UNREAD, StatementFacts
from rewriter.sql.statements.found_rows import KEEP, PRIMED

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import HostRepeat, Statement

_IN_TRANS = int(Status.IN_TRANS)
_NO_DATABASE = 1046


class Relay:
    """A client's relay. `conn` is the connection whose reply is awaited."""

    __slots__ = (
        "broken",
        "client",
        "column_metadata",
        "conn",
        "database",
        "draining",
        "effects",
        "facts",
        "fresh",
        "id_offset",
        "keeps_insert_id",
        "known",
        "literals",
        "loads",
        "once",
        "placing",
        "plain",
        "refused",
        "request",
        "shard",
        "shards",
        "sql",
        "stale",
        "statement",
        "task",
        "waiter",
        "withheld",
    )

    own = False

    @property
    def whole(self) -> bool:
        """Large rows go on in pieces, but where they are read on the way; and where they are compressed: each
        piece would be a frame, and mysql-connector-python reads no packet that is in more than two.
        """
        return self.client.whole or self.statement is not None

    @property
    def attributes(self) -> bytes:
        """The query attributes of the client's statement, for `AttributedConnection`."""
        return self.client.named

    def __init__(self, client: Exchange) -> None:
        self.client = client
        self.loads = client.services.backends.loads
        self.known = self.loads.shards
        self.conn: BackendConnection | None = None
        self.shard: Load | None = None  # that of the shard whose statement it is, if it is that of one
        self.shards: Sequence[Load] = ()  # or of several
        self.task: asyncio.Task[None] | None = None
        self.waiter: Waiter[BackendConnection] | None = None
        self.draining: BackendConnection | None = None  # its reply is complete, what it has left is asked for
        self.sql = b""
        self.plain = True  # of the following, none holds
        self.database: str | None = None
        self.id_offset: int | None = None
        self.keeps_insert_id = False
        self.withheld = b""
        self.broken: ProxyError | None = None  # what the reply became
        self.effects: Effects | None = None
        self.literals: Values = ()
        self.facts = UNREAD
        self.request: Request | None = None
        self.once: Callable[[bytes], Request] | None = None  # see `Passthrough`
        self.statement: Statement | None = None  # whose rows are made binary, until a sink does it
        self.stale = False
        self.fresh = False  # the connection is the pool's, not the session's
        self.refused: Err | None = None  # the master takes no writes, and another may come
        self.column_metadata: ColumnMetadata | None = None
        self.placing: Placing | None = None  # while the definitions of a result are being changed

    def ask(
        self,
        host: str,
        sql: bytes,
        column_metadata: ColumnMetadata | None,
        shard: bytes,
        statement: Statement | None = None,
    ) -> None:
        """Send `sql` to `host`, with nothing special about it: a point select in the database `shard`. With
        `statement`, which it is executed for, the rows are made binary.
        """
        client = self.client
        session = client.session
        load = self.known.get(shard) or self.loads.shard(shard, client.snapshot.topology)
        if session.tracks_replies or self.once is not None:
            self.run(host, sql, column_metadata=column_metadata, shards=() if load is None else (load,))
            return
        transaction = session.transaction
        if transaction.pins:
            admit_pinned(client)
        client.work = self
        self.plain = True
        self.statement = statement
        self.column_metadata = column_metadata
        if not transaction.held:
            conn = lease.take(client, host)
            if (
                conn is not None
                and conn.settings is session.settings
                and session.autocommit
                and not (transaction.explicit or client.writing_paused)
            ):
                self.conn = conn
                conn.begun = client.begun
                conn.ask(sql, self)
                self.shard = conn.shard = load
                if column_metadata is not None:
                    conn.scanner.expected = column_metadata.headers.get(conn.capability_set)
                    conn.scanner.database = shard
                return
        else:
            conn = transaction.held.get(host)
        self.shard, self.shards = load, ()
        self.sql = sql
        self.database = None
        self._take(host, conn)

    def run(
        self,
        host: str,
        sql: bytes,
        database: str | None = None,
        column_metadata: ColumnMetadata | None = None,
        facts: StatementFacts = UNREAD,
        shards: Sequence[Load] = (),
        effects: Effects | None = None,
        literals: Values = (),
        id_offset: int | None = None,
        keeps_insert_id: bool = False,
        request: Request | None = None,
    ) -> None:
        """Send `sql` to `host`; with `database`, after making that the connection's current one.

        `id_offset`: added to the insert id of the reply (it makes a local id a composed one).
        `keeps_insert_id`: the reply's is the client's own, so LAST_INSERT_ID() stays. `effects`: what the
        statement leaves behind on the connection; `literals` are the statement's own, to which they refer.
        `column_metadata`: of the result's columns, where they are not those that the server tells. `facts`:
        of the statement. `request`: what is sent, where that is no COM_QUERY of `sql` alone. `shards`: those
        that it is for.
        """
        client = self.client
        if shards:
            admit_pinned(client)
        client.work = self
        self.shard, self.shards = (shards[0], ()) if len(shards) == 1 else (None, shards)
        self.sql = sql
        self.plain, self.statement = False, None
        self.database = NOWHERE if database is None and effects is not None and effects.routine else database
        self.id_offset, self.keeps_insert_id = id_offset, keeps_insert_id
        self.effects, self.literals = effects, literals
        self.column_metadata, self.facts = column_metadata, facts
        self.request = self.once(sql) if request is None and self.once is not None else request
        held = client.session.transaction.held
        self._take(host, held.get(host) if held else None)

    def take_up(self, conn: BackendConnection, request: Request, repeat: HostRepeat, fresh: bool) -> None:
        """`request` sends a statement over `conn`, as `run` would have it sent."""
        self.client.work = self
        self.conn, self.request, self.sql, self.database = conn, request, repeat.sql, repeat.database
        self.plain, self.fresh, self.keeps_insert_id = False, fresh, False
        self.shard = self.statement = self.id_offset = self.effects = self.column_metadata = None
        self.shards = self.literals = ()
        self.facts = repeat.plan.facts

    def fetch(self, conn: BackendConnection, request: Request) -> None:
        """Send `request`, which asks for more of a result that `conn` still has."""
        client = self.client
        client.work = self
        self.plain, self.fresh = True, False
        self.database = self.column_metadata = self.shard = self.statement = None
        self.conn, self.shards = conn, ()
        conn.begun = client.begun
        if client.writing_paused:
            conn.transport.pause_reading()
        request.send(conn)

    def forget(self) -> None:
        """Let go of the last statement."""
        self.sql, self.literals, self.effects, self.request = b"", (), None, None

    def _take(self, host: str, conn: BackendConnection | None) -> None:
        """Send over `conn` or, without one, over one of the pool's."""
        client = self.client
        self.fresh = conn is None
        if conn is None:
            conn = lease.take(client, host, self.database)
            if conn is None:
                waiter = lease.wait(client, host, self._granted, self._refused, self.database)
                self.waiter = waiter if client.work is self else None  # refused already
                return
        self.send(conn)

    def _granted(self, conn: BackendConnection) -> None:
        self.waiter = None
        client = self.client
        if client.snapshot.topology is client.services.serving.topology:
            self.send(conn)
        else:  # it was changed while the statement waited for the connection
            lease.free(conn)
            client.work = None
            client.start_again()

    def _refused(self, error: Exception) -> None:
        self.waiter = None
        self.client.met(self._of_shards(error))

    def _of_shards(self, error: Exception) -> Exception:
        if isinstance(error, ProxyError):  # it was for these
            error.shards = self.shards if self.shard is None else (self.shard,)
        return error

    def send(self, conn: BackendConnection) -> None:
        """Send the statement over `conn`, from the beginning."""
        client = self.client
        session = client.session
        self.conn = conn
        if self.database is not None and conn.database != self.database:
            change = self._change_database(conn, self.database)
            self.task = client.services.spawn(change, "change database")
            return
        conn.begun = client.begun
        conn.shard, conn.shards = self.shard, self.shards
        if self.request is not None and not self.plain:
            self.request.send(conn)
            return
        if client.writing_paused:
            conn.transport.pause_reading()
        transaction, settings = session.transaction, session.settings
        within = transaction.explicit or not session.autocommit
        unusual = conn.settings is not settings or (self.effects is not None and not self.plain)
        if unusual or (within and not open_on(transaction, conn)):
            packets, count = self.packets_before(conn)
            conn.send(packets + query_packet(self.sql), self, count)
        else:
            conn.ask(self.sql, self)
        if within and (self.plain or self.effects is None):
            conn.usual = settings.status | _IN_TRANS  # which `accepts` accepts

    def packets_before(self, conn: BackendConnection) -> tuple[bytes, int]:
        """The sync statements to be sent before the statement, and how many they are."""
        session = self.client.session
        pending = session.transaction.next
        opens = self.plain or pending is None or self.facts.opens
        if opens and session.settings is not session.settings.base and not session.transaction.explicit:
            self._use_up()
        itself = self.plain or self.facts.opens_itself
        packets, count = sync_packets(session, conn, opens=opens, by_itself=itself)
        if self.effects is not None and not self.plain:
            more, number = effects_packets(session, conn, self.effects)
            return packets + more, count + number
        return packets, count

    def _use_up(self) -> None:
        """The statement is the next transaction, for which something was set."""
        if self.plain:
            self.plain, self.id_offset, self.keeps_insert_id, self.effects = False, None, False, None
            self.request, self.facts = None, UNREAD
        self.effects = self._known_effects()._replace(transaction=True)

    async def _change_database(self, conn: BackendConnection, database: str) -> None:
        """COM_INIT_DB in a round trip of its own: were it refused, the statement must not run."""
        client = self.client
        try:
            refused = await change_database(conn, database)
        except ProxyError as error:
            self.task = None
            self.reply_lost(conn, error, True)
            return
        self.task = None
        ended = ProxyError("killed") if conn.kill_wanted else refused
        if ended is not None:
            self.conn, conn.kill_wanted = None, False
            lease.give_back(client, conn)
            client.fail(ended)
            return
        self.send(conn)

    # -- Receiver
    # ---------------------------------------------------------------------------------------------------

    def _known_effects(self) -> Effects:
        """The statement's effects, or those of a statement that has none of its own."""
        return self.effects or Effects(insert_id="given" if self.keeps_insert_id else "")

    def accepts(self, conn: BackendConnection, changed: bool) -> bool:
        """What one host runs may have run a routine, and what that leaves is the session's, too."""
        effects = None if self.plain else self.effects
        if changed and not self.plain:
            effects = self.effects = self._known_effects()._replace(changed=True)
        opened = effects is not None and (effects.routine or bool(effects.pins))
        return opened or opens(self.client.session, conn)

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        if self.column_metadata is not None:
            header = conn.scanner.matched
            if header is not None:
                if self.statement is None:
                    data = header.shown + piece(data, header.size, len(data))
                else:
                    data = binary_reply(self.client, self.statement, data, header)
            elif conn.scanner.err is not None and self._moves(conn, conn.scanner.err):
                return
            else:
                if self.statement is not None:
                    BinarySink(self.client, self.statement, exact=False)
                    self.statement = None
                data = self._placed(conn, data, self.column_metadata)
        elif conn.scanner.err is not None:
            if self._moves(conn, conn.scanner.err):
                return
            data = logical_reply(self.client, conn, data)
        if not self.plain:
            if self.id_offset is not None:
                data = composed(conn, data, self.id_offset)
            elif self.database is not None and conn.scanner.err is not None and self._is_stale(conn):
                return
            session = self.client.session
            if self.effects is not None or session.tracks_replies:
                if conn.scanner.state == DONE and ends_one_part(session, conn, self.effects):
                    data, self.broken = broken_reply(conn, data)
                elif session.tracker is not None:
                    data = tracked_reply(self.client, session.tracker, conn, data, self.facts, self.effects)
                if self.effects is not None and self.effects.tables and conn.scanner.ok is not None:
                    self.withheld = data  # until all workers know the tables, see `_drain`
                    return
        client = self.client
        write_out(client.transport, client.descriptor, data)

    def _give_back(self, conn: BackendConnection, *, failed: bool) -> None:
        """Give the connection back, and answer."""
        client, broken = self.client, self.broken
        lease.give_back(client, conn, failed=failed or broken is not None)
        if broken is not None:
            self.broken = None
            lease.refuse_the_rest(client.session, broken)
        client.finish("error" if failed or broken is not None else "ok")

    def _placed(self, conn: BackendConnection, data: bytes, column_metadata: ColumnMetadata) -> bytes:
        """The reply with the origins of its columns as a client must see them."""
        if conn.scanner.err is not None:
            data = logical_reply(self.client, conn, data)
            if not conn.scanner.rows_begun:
                return data
        placing, first = self.placing, self.placing is None
        if placing is None:
            placing = self.placing = Placing(place_of(column_metadata, self.client.snapshot.topology))
        shown, size = placing.feed(data)
        if placing.done:
            self.column_metadata = self.placing = None
            shard = conn.scanner.database
            if first and self.plain and shard and conn.scanner.rows_begun and shard in data[:size]:
                # the same columns of another shard: so no statement of the plan needs to be looked into again
                head = shown[: len(shown) - len(data) + size]
                pieces = tuple(data[:size].split(shard))
                column_metadata.headers[conn.capability_set] = Header(size, pieces, head)
        return shown

    def _is_stale(self, conn: BackendConnection) -> bool:
        """Whether the error is that the connection's current database was dropped: it is chosen anew."""
        err = conn.scanner.err  # with other words than the server's `own` it is the proxy's
        self.stale = err is not None and err.code == _NO_DATABASE and not (err.own or conn.scanner.rows_begun)
        return self.stale

    def _moves(self, conn: BackendConnection, error: Err) -> bool:
        """Whether the client is not told of the error: see `untold`."""
        self.refused = untold(self.client, conn, error)
        return self.refused is not None

    def _moved(self, conn: BackendConnection, error: Err) -> None:
        """`_moves`, and the reply is complete."""
        if error.code in ENDED:
            conn.close()
            reason = error.text()
            self.reply_lost(conn, ProxyError("host_lost", host=conn.host, reason=reason), clean=True)
        else:
            moved(self.client, conn, error, fresh=self.fresh)

    def reply_done(self, conn: BackendConnection) -> None:
        client = self.client
        session = client.session
        scanned = conn.scanner
        effects = None if self.plain else self.effects
        self.conn = None
        if client.host is None and not self.shards:
            client.host, client.shard = conn.host, self.shard
            client.first, client.last = conn.sent, conn.ended
        else:
            client.visited(conn, self.shards if self.shard is None else (self.shard,))
        if client.writing_paused:
            conn.transport.resume_reading()
        if scanned.err is not None:
            refused, self.refused = self.refused, None
            if refused is not None:
                self._moved(conn, refused)
                return
            if self.stale:
                self.stale = False
                conn.database = None
                self.send(conn)
                return
            self.loads.failed(scanned.err.code)
            error = scanned.err
            session.note_error(error.code, error.text(session.results_codec), error.sqlstate)
            if scanned.err.code in NOTED:
                note_error(client, conn.host, scanned.err)
            self.begin_to_drain(conn)
            return
        ok = scanned.ok
        if ok is not None:
            made = effects is None and (self.plain or not self.keeps_insert_id)
            affected = None if effects is not None and effects.keeps_row_count else ok.affected
            id = (ok.insert_id or None) if made else None
            session.apply(Outcome(affected, id, session.matched(ok.info)))
        elif effects is None or effects.found_rows not in (KEEP, PRIMED):
            session.passed(scanned.rows)
        else:
            session.apply(Outcome(RESULT_SET))
        if (effects is not None and left_behind(client, conn, effects, self.literals)) or scanned.warnings:
            self.begin_to_drain(conn)
            return
        if session.diagnostics and not self._keeps_warnings(effects):
            session.apply(Outcome(diagnostics=[]))
        transaction = session.transaction
        if transaction.explicit and scanned.status & _IN_TRANS and transaction.held.get(conn.host) is conn:
            transaction.ending = b""  # as `give_back`
        elif transaction.held or scanned.status & _IN_TRANS or conn.pinned:
            lease.give_back(client, conn)
        else:
            lease.free(conn)
        client.finish("ok")

    def _keeps_warnings(self, effects: Effects | None) -> bool:
        """Whether SHOW WARNINGS shows what it did before the statement, which has given none."""
        session = self.client.session
        asked = effects is not None and asks_for_warnings(session, effects)
        return not (self.plain or asked) and session.env.flavour.keeps_warnings and self.facts.keeps_warnings

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        client, self.conn, self.placing = self.client, None, None
        self._of_shards(error)
        client.visited(conn, error.shards)
        ending = client.session.transaction.ending
        lease.lost(client, conn, error)
        if ending == b"ROLLBACK":  # which is done by that
            client.session.apply(Outcome(0, diagnostics=client.session.without_tables()))
            client.reply_ok()
        elif clean:
            client.fail(error, conn.given + 1 if conn.given else None)
        else:
            # half a row is out: only the end of the connection says that it will never be whole
            client.close()

    def begin_to_drain(self, conn: BackendConnection) -> None:
        self.draining = conn  # from now on, not only when the task takes its first step
        drained = self._drain(conn, None if self.plain else self.effects, self.literals)
        self.task = self.client.services.spawn(drained, "settle")

    async def _drain(self, conn: BackendConnection, effects: Effects | None, literals: Values) -> None:
        client = self.client
        failed = conn.scanner.err is not None
        noted = client.session.diagnostics[1:] if failed else []
        held = client.session.transaction.held.get(conn.host) is conn
        found = await drain_diagnostics(client, conn, effects, literals)
        self.draining = self.task = None
        if self.request is not None:
            self.request.warned(found)
        withheld, self.withheld = self.withheld, b""
        if withheld and not client.closed:
            client.transport.write(withheld)
        if found or found.total or not (failed or found.keeps or self._keeps_warnings(effects)):
            shown = found if self.plain or self.id_offset is None else composed_rows(found, self.id_offset)
            shown += noted
            client.session.apply(Outcome(diagnostics=shown))
        if client.closed:
            conn.unclean = True  # the session has let go of the settings that it was taken to have
            if not held:  # what the session held was given back when the client went
                lease.free(conn)
            return
        if not conn.closed:
            self._give_back(conn, failed=failed)
            return
        lease.lost(client, conn, None)
        client.finish("error" if failed else "ok")

    def cancel(self) -> None:
        if self.waiter is not None:
            self.waiter.cancel()
            self.waiter = None
        draining, self.draining, self.withheld = self.draining, None, b""
        held = self.client.session.transaction.held
        if draining is not None and held.get(draining.host) is not draining:
            return  # `_drain` gives it back
        if self.task is not None:
            self.task.cancel()
            self.task = None
        conn, self.conn = self.conn or draining, None
        if conn is not None:
            lease.discard(self.client, conn)

    def kill_query(self) -> None:
        if self.conn is not None and self.task is not None:
            self.conn.kill_wanted = True  # the statement was not sent yet, see `_change_database`
        elif self.conn is not None:
            self.client.services.backends.kill_query(self.conn)
        elif self.waiter is not None:
            self.waiter.cancel()
            self.waiter = None
            self.client.fail(ProxyError("killed"))

    def flow(self) -> None:
        if self.conn is None:
            return
        if self.client.writing_paused:
            self.conn.transport.pause_reading()
        else:
            self.conn.transport.resume_reading()
