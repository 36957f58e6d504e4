"""One statement on one host, its reply to the client as the very bytes the server sent.

This is the way of most statements, so it makes no object: every client has one `Relay`, used again for each
statement. It is the `Receiver` of the reply and the client's `Work`. After the reply it notes what the
session must know (insert id, status, warnings) and gives the connection back, or keeps it when a transaction
is open.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.backends.waiting import Want
from proxy.engine.composed import composed, composed_rows, left_database, told
from proxy.engine.ends import (
    connection_lost_in_transaction,
    discard,
    give_back,
    needs_settling,
    opens,
    settle,
)
from proxy.engine.failures import note_error
from proxy.engine.origins import place_of
from proxy.engine.preludes import effects_preludes, keeps_warnings, opens_none, preludes
from proxy.engine.problems import NOTED
from proxy.engine.trace import left_behind
from proxy.errors import ProxyError
from proxy.session.outcome import RESULT_SET, Outcome
from proxy.wire.constants import Status
from proxy.wire.origins import Header, Placing
from proxy.wire.packets import err_packet, frame, query_packet
from proxy.wire.replies import DONE
from rewriter.plans import Values
from rewriter.route.origins import Origins
from rewriter.text.effects import Effects
from rewriter.text.found_rows import KEEP, PRIMED

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_IN_TRANS = int(Status.IN_TRANS)
_NO_DATABASE = 1046


class Relay:
    """A client's relay. `conn` is the connection whose reply is awaited."""

    __slots__ = (
        "base",
        "broken",
        "client",
        "conn",
        "database",
        "effects",
        "keeps_insert_id",
        "literals",
        "origins",
        "placing",
        "plain",
        "settling",
        "sql",
        "stale",
        "task",
        "want",
    )

    own = False

    @property
    def whole(self) -> bool:
        """Large rows go on in pieces. But where they are compressed each piece is a frame, and
        mysql-connector-python reads no packet that is in more than two: there they go whole.
        """
        return self.client.compressed

    @property
    def attributes(self) -> bytes:
        """The query attributes of the client's statement, for `AttributedConnection`."""
        return self.client.named

    def __init__(self, client: Exchange) -> None:
        self.client = client
        self.conn: BackendConnection | None = None
        self.task: asyncio.Task[None] | None = None
        self.want: Want[BackendConnection] | None = None
        self.settling: BackendConnection | None = None  # its reply is complete, what it has left is asked for
        self.sql = b""
        self.plain = True  # of the following, none holds
        self.database: str | None = None
        self.base: int | None = None
        self.keeps_insert_id = False
        self.broken: ProxyError | None = None  # what the reply became
        self.effects: Effects | None = None
        self.literals: Values = ()
        self.stale = False
        self.origins: Origins | None = None
        self.placing: Placing | None = None  # while the definitions of a result are being changed

    def ask(self, host: str, sql: bytes, origins: Origins | None, shard: bytes) -> None:
        """Send `sql` to `host`, with nothing special about it: a point select in the database `shard`."""
        client = self.client
        client.work = self
        self.plain = True
        self.database = None
        self.origins = origins
        session = client.session
        transaction = session.transaction
        if not transaction.held:
            conn = client.services.backends.pool(host).take(
                session.settings, None, session.variant, session.user.name
            )
            if (
                conn is not None
                and conn.settings is session.settings
                and session.autocommit
                and not (transaction.explicit or client.writing_paused)
            ):
                self.conn = conn
                conn.begun = client.begun
                conn.ask(query_packet(sql), self)
                if origins is not None:
                    conn.scanner.expected = origins.headers.get(conn.variant)
                    conn.scanner.database = shard
                return
        else:
            conn = transaction.held.get(host)
        self.sql = sql
        self._take(host, conn)

    def run(
        self,
        host: str,
        sql: bytes,
        database: str | None = None,
        *,
        base: int | None = None,
        keeps_insert_id: bool = False,
        effects: Effects | None = None,
        literals: Values = (),
        origins: Origins | None = None,
    ) -> None:
        """Send `sql` to `host`; with `database`, after making that the connection's current one.

        `base`: added to the insert id of the reply (it makes a local id a composed one). `keeps_insert_id`:
        the reply's is the client's own, so LAST_INSERT_ID() stays. `effects`: what the statement leaves
        behind on the connection; `literals` are the statement's own, to which they refer. `origins`: of the
        result's columns, where they are not those that the server tells.
        """
        client = self.client
        client.work = self
        self.sql = sql
        self.plain = False
        self.database = database
        self.base = base
        self.keeps_insert_id = keeps_insert_id
        self.effects = effects
        self.literals = literals
        self.origins = origins
        held = client.session.transaction.held
        self._take(host, held.get(host) if held else None)

    def forget(self) -> None:
        """Let go of the last statement."""
        self.sql, self.literals, self.effects = b"", (), None

    def _take(self, host: str, conn: BackendConnection | None) -> None:
        """Send over `conn` or, without one, over one of the pool's."""
        client = self.client
        session = client.session
        if conn is None:
            pool = client.services.backends.pool(host)
            user = session.user.name
            conn = pool.take(session.settings, self.database, session.variant, user)
            if conn is None:
                want = pool.wait(
                    session.settings, self.database, session.variant, self._granted, self._refused, user
                )
                self.want = want if client.work is self else None  # refused already
                return
        self._send(conn)

    def _granted(self, conn: BackendConnection) -> None:
        self.want = None
        self._send(conn)

    def _refused(self, error: Exception) -> None:
        self.want = None
        if isinstance(error, ProxyError):
            self.client.fail(error)
        else:
            self.client.crashed(error)

    def _send(self, conn: BackendConnection) -> None:
        client = self.client
        session = client.session
        self.conn = conn
        if self.database is not None and conn.database != self.database:
            change = self._change_database(conn, self.database)
            self.task = client.services.spawn(change, "change database")
            return
        conn.begun = client.begun
        if client.writing_paused:
            conn.transport.pause_reading()
        if conn.settings is not session.settings or session.transaction.explicit or not session.autocommit:
            pending = session.transaction.next_isolation
            opens = not (pending and opens_none(self.sql, mariadb=session.env.mariadb))
            if opens and session.settings is not session.settings.base and not session.transaction.explicit:
                self._use_up()
            packets, count = preludes(session, conn, opens=opens)
            self._send_after(conn, packets, count)
        elif self.effects is not None and not self.plain:
            self._send_after(conn, b"", 0)
        else:
            conn.send(query_packet(self.sql), self)

    def _send_after(self, conn: BackendConnection, packets: bytes, count: int) -> None:
        """Send the statement after these preludes."""
        if self.effects is not None and not self.plain:
            more, number = effects_preludes(self.client.session, conn, self.effects)
            packets, count = packets + more, count + number
        conn.send(packets + query_packet(self.sql), self, count)

    def _use_up(self) -> None:
        """The statement is the next transaction, for which something was set."""
        if self.plain:
            self.plain, self.base, self.keeps_insert_id, self.effects = False, None, False, None
        self.effects = (self.effects or Effects())._replace(transaction=True)

    async def _change_database(self, conn: BackendConnection, database: str) -> None:
        """COM_INIT_DB before the statement, in a round trip of its own: were it refused, the statement must
        not run.
        """
        client = self.client
        try:
            reply = await Collector().run(conn, frame(b"\x02" + database.encode()))
        except ProxyError as error:
            self.task = None
            self.reply_lost(conn, error, True)
            return
        self.task = None
        if reply.err is not None:
            self.conn = None
            give_back(client, conn)
            client.fail(reply.err)
            return
        conn.database = database
        self._send(conn)

    # -- Receiver
    # ---------------------------------------------------------------------------------------------------

    def accepts(self, conn: BackendConnection, changed: bool) -> bool:
        """What one host runs may have run a routine, and what that leaves is the session's, too."""
        effects = None if self.plain else self.effects
        if changed and not self.plain:
            effects = self.effects = (effects or Effects())._replace(changed=True)
        opened = effects is not None and (effects.routine or bool(effects.ties))
        return opened or opens(self.client.session, conn)

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        if self.origins is not None:
            header = conn.scanner.matched
            if header is not None:
                data = header.shown + data[header.size :]
            else:
                data = self._placed(conn, data, self.origins)
        elif conn.scanner.err is not None:
            data = told(self.client, conn, data)
        if not self.plain:
            if self.base is not None:
                data = composed(conn, data, self.base)
            elif self.database is not None and conn.scanner.err is not None and self._is_stale(conn):
                return
            elif self.effects is not None and self.effects.database:
                data = left_database(self.client.session, conn, data, self.effects.database)
            if conn.scanner.state == DONE and self._ends_one_part(conn):
                data = self._breaks(conn, data)
        self.client.transport.write(data)

    def _ends_one_part(self, conn: BackendConnection) -> bool:
        """Whether code that the host has run has ended its part of a transaction that is on others, too."""
        effects, said = self.effects, conn.scanner
        if effects is None or not (effects.routine or effects.changed or effects.calls):
            return False
        if said.err is not None or said.status & _IN_TRANS:
            return False
        transaction = self.client.session.transaction
        return transaction.held.get(conn.host) is conn and transaction.elsewhere(conn.host)

    def _breaks(self, conn: BackendConnection, data: bytes) -> bytes:
        """The reply with an error at its end: whether it was COMMIT or ROLLBACK nobody knows, so the other
        hosts cannot follow.
        """
        reason = f"a procedure has ended its part on {conn.host}; what it had done elsewhere was rolled back"
        self.broken = ProxyError("transaction_lost", reason=reason)
        size = conn.scanner.ok_size if conn.scanner.ok is not None else conn.scanner.ending
        error = self.broken
        return data[:-size] + err_packet(data[3 - size], error.code, error.sqlstate, str(error))

    def _give_back(self, conn: BackendConnection, *, failed: bool) -> None:
        """Give the connection back, and answer."""
        client, broken = self.client, self.broken
        give_back(client, conn, failed=failed or broken is not None)
        if broken is not None:
            self.broken = None
            client.session.note_error(broken.code, str(broken))
            client.session.transaction.refuse("transaction_lost", str(broken.details["reason"]))
        client.finish("error" if failed or broken is not None else "ok")

    def _placed(self, conn: BackendConnection, data: bytes, origins: Origins) -> bytes:
        """The reply with the origins of its columns as a client must see them."""
        if conn.scanner.err is not None:
            data = told(self.client, conn, data)
            if not conn.scanner.rows_begun:
                return data
        placing, first = self.placing, self.placing is None
        if placing is None:
            placing = self.placing = Placing(place_of(origins, self.client.snapshot.topology))
        shown, size = placing.feed(data)
        if placing.done:
            self.origins = self.placing = None
            shard = conn.scanner.database
            if first and self.plain and shard and conn.scanner.rows_begun:
                # the same columns of another shard: so no statement of the plan needs to be looked into again
                head = shown[: len(shown) - len(data) + size]
                origins.headers[conn.variant] = Header(size, data[:size].replace(shard, b""), head)
        return shown

    def _is_stale(self, conn: BackendConnection) -> bool:
        """Whether the error is that the connection has no current database any more: somebody has dropped it
        (and perhaps made another of that name). Nothing has run; it is chosen anew.
        """
        err = conn.scanner.err
        self.stale = err is not None and err.code == _NO_DATABASE and not conn.scanner.rows_begun
        return self.stale

    def reply_done(self, conn: BackendConnection) -> None:
        client = self.client
        session = client.session
        said = conn.scanner
        effects = None if self.plain else self.effects
        self.conn = None
        if client.writing_paused:
            conn.transport.resume_reading()
        if said.err is not None:
            if self.stale:
                self.stale = False
                conn.database = None
                self._send(conn)
                return
            session.note_error(said.err.code, said.err.text())
            if said.err.code in NOTED:
                note_error(client, conn.host, said.err)
            if not self.plain or needs_settling(session):
                self._begin_to_settle(conn)
            else:
                give_back(client, conn)
                client.finish("error")
            return
        ok = said.ok
        if ok is not None:
            made = effects is None and (self.plain or not self.keeps_insert_id)
            affected = None if effects is not None and effects.keeps_row_count else ok.affected
            session.apply(Outcome(affected, (ok.insert_id or None) if made else None))
        elif effects is None or effects.found_rows not in (KEEP, PRIMED):
            session.passed(said.rows)
        else:
            session.apply(Outcome(RESULT_SET))
        if (effects is not None and left_behind(session, conn, effects, self.literals)) or said.warnings:
            self._begin_to_settle(conn)
            return
        if session.diagnostics and not self._keeps_warnings():
            session.apply(Outcome(diagnostics=[]))
        if self.broken is not None:
            self._give_back(conn, failed=False)
            return
        if session.transaction.held or said.status & _IN_TRANS or conn.tied:
            give_back(client, conn)
        else:
            conn.owner.release(conn)
        client.finish("ok")

    def _keeps_warnings(self) -> bool:
        """Whether SHOW WARNINGS tells what it did before the statement, which has given none."""
        return not self.plain and self.client.session.env.mariadb and keeps_warnings(self.sql)

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        self.conn = self.placing = None
        client = self.client
        connection_lost_in_transaction(client, conn, error)
        if clean:
            client.fail(error, conn.given + 1 if conn.given else None)
        else:
            # half a row is out: only the end of the connection says that it will never be whole
            client.close()

    def _begin_to_settle(self, conn: BackendConnection) -> None:
        """The connection is at work from now on, not only when the task takes its first step."""
        self.settling = conn
        self.task = self.client.services.spawn(self._settle(conn), "settle")

    async def _settle(self, conn: BackendConnection) -> None:
        client = self.client
        failed = conn.scanner.err is not None
        noted = client.session.diagnostics[1:] if failed else []
        held = client.session.transaction.held.get(conn.host) is conn
        found = await settle(client, conn, None if self.plain else self.effects, self.literals)
        self.settling = self.task = None
        if found or not (failed or self._keeps_warnings()):
            composed = None if self.plain else self.base
            shown = found if composed is None else composed_rows(found, composed)
            shown += noted
            client.session.apply(Outcome(diagnostics=shown))
        if client.closed:
            if not held:  # what the session held was given back when the client went
                client.services.backends.release(conn)
            return
        if conn.closed:
            connection_lost_in_transaction(client, conn, None)
        else:
            self._give_back(conn, failed=failed)
            return
        client.finish("error" if failed else "ok")

    # -- Work
    # -------------------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        if self.want is not None:
            self.want.cancelled = True
            self.want = None
        settling, self.settling = self.settling, None
        held = self.client.session.transaction.held
        if settling is not None and held.get(settling.host) is not settling:
            return  # `_settle` gives it back
        if self.task is not None:
            self.task.cancel()
            self.task = None
        conn, self.conn = self.conn or settling, None
        if conn is not None:
            discard(self.client, conn)

    def kill_query(self) -> None:
        if self.conn is not None:
            self.client.services.backends.kill_query(self.conn)
        elif self.want is not None:
            self.want.cancelled = True
            self.want = None
            self.client.fail(ProxyError("killed"))

    def flow(self) -> None:
        if self.conn is None:
            return
        if self.client.writing_paused:
            self.conn.transport.pause_reading()
        else:
            self.conn.transport.resume_reading()
