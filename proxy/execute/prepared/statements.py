"""Prepared statements on one host: prepared there, executed there, their replies as the very bytes.

A client's statement belongs to no connection. Whichever connection serves an EXECUTE has the statement
already (then this is one round trip, like a query's) or is made to prepare it first. What the server knows
of a statement besides its text (types of parameters, long data) is sent with every EXECUTE, so that clients
can share it. A statement with an open cursor is pinned, and its connection stays with the session.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

from proxy.backends.connection import BackendConnection
from proxy.backends.reworded import AttributedConnection
from proxy.backends.statements import Key, ServerStatements, close_packet
from proxy.engine import lease
from proxy.engine.column_metadata import place_of
from proxy.engine.composed import logical_reply
from proxy.engine.diagnostics import drain_diagnostics
from proxy.engine.lease import give_back
from proxy.engine.passthrough import Request
from proxy.engine.preparing import learn_exact
from proxy.engine.session_sync import preparing, sync_packets
from proxy.engine.task import TaskWork
from proxy.engine.transcode import definitions, prepare_reply
from proxy.engine.warned import of_text
from proxy.session.outcome import Diagnostics, Outcome
from proxy.session.transaction import modes_of
from proxy.wire.binary import CURSOR_READ_ONLY, Execute
from proxy.wire.bulk import BulkExecute
from proxy.wire.column_metadata import changed
from proxy.wire.constants import Status
from proxy.wire.packets import Err, frame
from proxy.wire.replies import DONE, PREPARED, ROWS
from proxy.wire.states import rewritten
from rewriter.plan import Execution
from rewriter.plans import OneHost, Plan, Values
from rewriter.plans.sharded import is_routed
from rewriter.sql.statements.effects import Effects

from .cursors import end_cursor
from .derived import derived_types

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import Statement

_NO_VECTOR = 6136  # what MySQL 9.7 says of VECTOR parameters, too, once it has prepared a statement again
#: Errors of an EXECUTE that has not run: the statement is to be prepared anew.
FORGOTTEN: Final = frozenset({1243, 1615})
_TOO_MANY, _NO_DATABASE = 1461, 1046
_CURSOR_EXISTS, _LAST_ROW_SENT = int(Status.CURSOR_EXISTS), int(Status.LAST_ROW_SENT)
_NOT_SUPPORTED = 1295
_NOTHING_KNOWN = frame(bytes(12))
_PIECE = 1 << 20
_EOF_SIZE = 9


def relayed(plan: Plan) -> TypeGuard[OneHost]:
    """Whether one host runs the statement as it is."""
    return plan.executed_as is Execution.RELAYED


class Sent(NamedTuple):
    """A statement as a server prepares it, the current database there, and its effects; `literals`: the
    values to which these refer.
    """

    sql: bytes
    database: str | None
    effects: Effects | None
    literals: Values


class StatementRequest(Request):
    """One command on a prepared statement.

    `execution` is what EXECUTE said (None: the client's COM_STMT_PREPARE, or a FETCH), `step` what is under
    way. `learns`: the server is asked for definitions only, the statement will not be executed there.
    `leaves`: it will be executed there this one time. `own`: it is the proxy's, the server is asked out of
    courtesy.
    """

    __slots__ = (
        "again",
        "aside",
        "client",
        "collected",
        "execution",
        "fetched",
        "first",
        "key",
        "learns",
        "leaves",
        "older",
        "sent",
        "statement",
        "step",
    )

    def __init__(self, client: Exchange, statement: Statement) -> None:
        super().__init__(client.relay)
        self.client = client
        self.statement = statement
        self.key: Key = (b"", None, statement.settings, b"")
        self.older: tuple[object, ...] = ()  # whose the statement may have been before
        self.execution: Execute | BulkExecute | None = None
        self.sent: dict[int, bytes] = {}
        self.aside = False
        self.learns = False
        self.leaves = False
        self.fetched = b""  # how many rows a FETCH is for
        self.step = ""
        self.first = False  # the client's first EXECUTE of the statement
        self.again = 0  # 1: the server has forgotten the statement; 2: and it was prepared again
        self.collected = bytearray()

    # -- what the commands ask for
    # ------------------------------------------------------------------------------------

    def prepare(self, host: str, sql: bytes, database: str | None) -> None:
        """COM_STMT_PREPARE: the server's definitions are the client's."""
        self.key = (sql, database, self.statement.settings, b"")
        self.relay.run(host, sql, database, facts=self.statement.plan.facts, request=self)

    def learn(self, host: str, sql: bytes, database: str | None) -> None:
        """COM_STMT_PREPARE of a statement that is executed otherwise: `sql` stands for it."""
        self.learns = True
        self.prepare(host, sql, database)

    def execute(self, host: str, text: Sent, request: Execute | BulkExecute, sent: dict[int, bytes]) -> None:
        """COM_STMT_EXECUTE of the statement that is prepared as `text`."""
        self.execution = request
        self.sent = sent
        statement = self.statement
        self.first = statement.number == 0
        before, statement.types = statement.types, request.types or statement.types
        if before and before != statement.types:
            statement.private = True
        owner = statement if statement.private else statement.types
        self.key = (text.sql, text.database, statement.settings, owner)
        self.older = (before, b"") if statement.private else (b"",)
        self.relay.run(
            host,
            text.sql,
            text.database,
            effects=text.effects,
            literals=text.literals,
            facts=statement.plan.facts,
            request=self,
        )

    @classmethod
    def once(cls, client: Exchange, statement: Statement, sql: bytes) -> StatementRequest:
        """PREPARE and EXECUTE of `sql`, which is `statement` with its values, in the session's settings."""
        request = cls(client, statement)
        request.leaves = True
        request.execution = Execute(0, 0, b"", b"", b"")
        request.key = (sql, None, client.session.settings.system, b"")
        return request

    def warned(self, found: Diagnostics) -> None:
        if self.learns:
            self.statement.text_warnings = of_text(found)

    def fetch_rows(self, conn: BackendConnection, rows: bytes) -> None:
        """COM_STMT_FETCH from the statement's open cursor."""
        self.step = "fetch"
        self.fetched = rows
        self.relay.fetch(conn, self)

    # -- the steps
    # ---------------------------------------------------------------------------------------------------

    def send(self, conn: BackendConnection) -> None:
        if self.step == "fetch":
            packet = b"\x1c" + self.statement.number.to_bytes(4, "little") + self.fetched
            conn.send(frame(packet), self, state=ROWS)
            return
        known = conn.statements
        if known is None:
            known = conn.statements = ServerStatements()
        number = self._find(known) if self.execution is not None else None
        if number is None or self.execution is None or self.leaves:
            self._send_prepare(conn, known)
        else:
            self._send_execute(conn, known, number, self.execution)

    def _find(self, known: ServerStatements) -> int | None:
        """The statement's number on this connection, if it is there.

        Since 8.0.22 MySQL derives the parameters' types when it first sees them, and converts what comes
        later to these. So who shares a statement must bind the same types, and who changes them keeps his
        own.
        """
        number = known.find(self.key)
        for owner in self.older:
            if number is None and owner != self.key[3]:
                number = known.take_over((*self.key[:3], owner), self.key)
        return number

    def _send_prepare(self, conn: BackendConnection, known: ServerStatements) -> None:
        """Under the settings that the client had when it prepared the statement."""
        self.step = "prepare"
        self.collected.clear()
        settings = self.client.session.settings.base.read_as(self.statement.settings)
        packets, count = b"", 0
        if self._opens_at_prepare():
            packets, count = sync_packets(self.client.session, conn, settings)
        else:
            packets, count = settings.packets_from(conn.settings)
            conn.has(settings)
        packets += known.take_leaving() + frame(b"\x16" + self.key[0])
        preparing(self.client.session, conn, self.statement.plan.facts)
        conn.send(packets, self, count, state=PREPARED)

    def _opens_at_prepare(self) -> bool:
        """Whether READ ONLY on a server would differ from the session's: from that of its transaction, or
        from that of SET TRANSACTION for the next one.
        """
        session = self.client.session
        if self.aside:
            return False
        own = modes_of(session.settings).read_only
        if session.transaction.explicit:
            return not self.learns and session.in_read_only != own
        said = session.transaction.next
        return said is not None and said.read_only not in (None, own) and not session.transaction.open

    def _send_execute(
        self, conn: BackendConnection, known: ServerStatements, number: int, request: Execute | BulkExecute
    ) -> None:
        client = self.client
        self.step = "execute"
        if client.writing_paused:
            conn.transport.pause_reading()
        packets, count = self._packets_before(conn)
        packets += known.take_leaving()
        for parameter, data in self.sent.items():
            packets += _long_data(number, parameter, data)
        statement = self.statement
        statement.number = number
        packed = request.attributed if isinstance(conn, AttributedConnection) else request.packet
        if self.leaves:
            packets += frame(packed(number, b"", 0)) + close_packet(number)
        else:
            packets += frame(packed(number, statement.types, statement.parameters))
        conn.send(packets, self, count)

    def _packets_before(self, conn: BackendConnection) -> tuple[bytes, int]:
        """As before a query; but aside of a transaction."""
        if not self.aside:
            return self.relay.packets_before(conn)
        settings = self.client.session.settings.base
        found = settings.packets_from(conn.settings)
        conn.has(settings)
        return found

    # -- Receiver
    # ---------------------------------------------------------------------------------------------------

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        if self.step == "prepare":
            self.collected += data
            return
        scanned = conn.scanner
        code = 0 if scanned.err is None else scanned.err.code
        forgotten = code in FORGOTTEN or (code == _NO_VECTOR and self.first)
        if forgotten and not self.again and self.step == "execute" and not scanned.rows_begun:
            self.again = 1  # it has not run: prepare it anew
            return
        if self.aside and scanned.ending == _EOF_SIZE and scanned.state == DONE and scanned.err is None:
            # the transaction is the session's, not the connection's
            data = data[:-2] + (scanned.status | int(Status.IN_TRANS)).to_bytes(2, "little")
        elif self.aside and scanned.ok is not None and scanned.state == DONE and not scanned.rows_begun:
            ok, size = scanned.ok, scanned.ok_size
            shown = rewritten(ok._replace(status=ok.status | int(Status.IN_TRANS)), data[3 - size])
            data = data[:-size] + shown
        self.relay.reply_data(conn, data)

    def reply_done(self, conn: BackendConnection) -> None:
        if self.step == "prepare":
            self._prepared(conn)
            return
        known = conn.statements
        assert known is not None
        if self.again == 1:
            self.again = 2
            known.forget(self.key)
            self._send_prepare(conn, known)
            return
        client, scanned = self.client, conn.scanner
        if self.step == "fetch":
            if scanned.err is not None or scanned.status & _LAST_ROW_SENT:
                end_cursor(client, self.statement, keep=scanned.err is None)
        elif scanned.err is not None:
            if self.sent:
                known.forget(self.key)  # who knows what of the long data is still there
        elif (
            scanned.status & _CURSOR_EXISTS
            and scanned.ok is None
            and self.execution is not None
            and self.execution.flags & CURSOR_READ_ONLY
        ):
            known.pin(self.statement.number)
            self.statement.cursor = conn
            pins = client.session.transaction.pins.setdefault(conn.host, [])
            pins.append(("cursor", str(self.statement.id)))
            if not conn.pinned:
                conn.pinned = conn.for_cursors = True
        self.relay.reply_done(conn)

    def _prepared(self, conn: BackendConnection) -> None:
        """The reply to COM_STMT_PREPARE is complete, in `collected`."""
        client, err, known = self.client, conn.scanner.err, conn.statements
        assert known is not None
        if err is not None:
            if err.code == _NO_DATABASE and self.relay.database is not None and not (err.own or self.again):
                self.again = 2
                conn.database = None  # somebody has dropped it
                self.relay.send(conn)
                return
            if err.code == _TOO_MANY and len(known) and not self.again:
                self.again = 2
                known.forget_all()
                self._send_prepare(conn, known)
                return
            known.forget(self.key)
            if self.own and err.code != _NOT_SUPPORTED:
                self._answer(_NOTHING_KNOWN)
                self.relay.conn = None
                give_back(client, conn)
                client.finish("ok")
                return
            if client.plan is None:  # of COM_STMT_PREPARE
                client.plan = self.statement.plan
            self.relay.effects = None  # it has not run
            if self.execution is None:
                self.relay.conn = None
                TaskWork(client).start(self._refused(conn, err))
                return
            client.transport.write(logical_reply(client, conn, bytes(self.collected)))
            self.relay.reply_done(conn)
            return
        data = bytes(self.collected)
        number = int.from_bytes(data[5:9], "little")
        if self.learns:
            known.leaving += close_packet(number)
        elif not self.leaves:
            known.add(self.key, number)
        if self.execution is not None:
            self._send_execute(conn, known, number, self.execution)
            return
        self._answer(data)
        session = client.session
        self.relay.conn = None
        assigned = () if self.own else self.statement.plan.facts.assigns
        if assigned:
            self.relay.effects = Effects(variables=assigned)
        if conn.scanner.warnings or assigned:
            self.relay.begin_to_drain(conn)
            return
        keeps = self.own or self.relay.facts.prepare_keeps_warnings
        if not (session.env.flavour.keeps_warnings and keeps):
            session.apply(Outcome(diagnostics=[]))
        give_back(client, conn)
        client.finish("ok")

    async def _refused(self, conn: BackendConnection, err: Err) -> None:
        """Answer with the error of PREPARE, and keep the warnings that the server gave before it."""
        try:
            conditions = await drain_diagnostics(self.client, conn)
        except asyncio.CancelledError:
            conn.close()
            raise
        finally:
            if conn.closed:
                lease.lost(self.client, conn, None)
        if not conn.closed:
            give_back(self.client, conn)
        self.client.fail(err, conditions=conditions)

    def _answer(self, data: bytes) -> None:
        """Give the statement to the client, with the server's definitions."""
        client, statement = self.client, self.statement
        session = client.session
        if self.learns:
            known, shown = definitions(data)
            if is_routed(statement.plan) and statement.plan.column_metadata is not None:
                shown = changed(shown, place_of(statement.plan.column_metadata, client.snapshot.topology))
            learn_exact(statement, shown)
            if session.env.flavour.derives_types and statement.plan.learns_columns:
                statement.derived = derived_types(known)
            session.prepared.add(statement)
            status = session.status()
            data = prepare_reply(
                statement.id,
                client.seq + 1,
                status,
                statement.parameters,
                known,
                shown,
                extended=session.extended,
            )
        else:
            statement.parameters = int.from_bytes(data[11:13], "little")
            session.prepared.add(statement)
            data = data[:5] + statement.id.to_bytes(4, "little") + data[9:]
        client.transport.write(data)


def _long_data(number: int, parameter: int, data: bytes) -> bytes:
    """A parameter's long data, in packets that no server finds too large."""
    head = b"\x18" + number.to_bytes(4, "little") + parameter.to_bytes(2, "little")
    pieces = [data[start : start + _PIECE] for start in range(0, len(data), _PIECE)] or [b""]
    return b"".join(frame(head + piece) for piece in pieces)
