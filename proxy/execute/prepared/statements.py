"""Prepared statements on one host: prepared there, executed there, their replies as the very bytes.

A client's statement belongs to no connection. Whichever connection serves an EXECUTE has the statement
already (then this is one round trip, like a query's) or is made to prepare it first. What the server knows
of a statement besides its text (types of parameters, long data) is sent with every EXECUTE, so that clients
can share it. A statement with an open cursor is pinned, and its connection stays with the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from proxy.backends.attributed import AttributedConnection
from proxy.backends.connection import BackendConnection
from proxy.backends.statements import Key, ServerStatements, close_packet
from proxy.engine.ends import give_back
from proxy.engine.origins import place_of
from proxy.engine.preludes import effects_preludes, keeps_warnings, opens_none, preludes
from proxy.engine.relay import Relay
from proxy.engine.tracked import TrackedRelay, is_told
from proxy.engine.transcode import definitions, exact_of, prepare_reply
from proxy.session.outcome import Outcome
from proxy.session.transaction import modes_of
from proxy.wire.binary import CURSOR_READ_ONLY, Execute
from proxy.wire.bulk import BulkExecute
from proxy.wire.constants import Status
from proxy.wire.origins import changed
from proxy.wire.packets import frame
from proxy.wire.replies import DONE, PREPARED, ROWS
from rewriter.plans import Sharded, ShardSelect, Values
from rewriter.text.effects import Effects

from .cursors import end_cursor
from .derived import derived_types

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import Statement

_NO_VECTOR = 6136  # what MySQL 9.7 says of VECTOR parameters, too, once it has prepared a statement again
_UNKNOWN_STATEMENT, _NEEDS_REPREPARE, _TOO_MANY, _NO_DATABASE = 1243, 1615, 1461, 1046
_CURSOR_EXISTS, _LAST_ROW_SENT = int(Status.CURSOR_EXISTS), int(Status.LAST_ROW_SENT)
_NOT_SUPPORTED = 1295
_NOTHING_KNOWN = frame(bytes(12))
_PIECE = 1 << 20
_EOF_SIZE = 9


class Sent(NamedTuple):
    """A statement as a server prepares it, the current database there, and its effects; `literals`: the
    values to which these refer.
    """

    sql: bytes
    database: str | None
    effects: Effects | None
    literals: Values


class StatementRelay(Relay):
    """A client's relay for one command on a prepared statement.

    `request` is what EXECUTE said (None: the client's COM_STMT_PREPARE, or a FETCH), `step` what is under
    way. `learns`: the server is asked for definitions only, the statement will not be executed there.
    `once`: it will be executed there this one time. `own`: it is the proxy's, the server is asked out of
    courtesy.
    """

    __slots__ = (
        "again",
        "aside",
        "collected",
        "first",
        "key",
        "learns",
        "older",
        "once",
        "own",
        "request",
        "sent",
        "statement",
        "step",
    )

    def __init__(self, client: Exchange, statement: Statement) -> None:
        super().__init__(client)
        self.statement = statement
        self.key: Key = (b"", None, statement.settings, b"")
        self.older: tuple[object, ...] = ()  # whose the statement may have been before
        self.request: Execute | BulkExecute | None = None
        self.sent: dict[int, bytes] = {}
        self.aside = False
        self.learns = False
        self.once = False
        self.own = False
        self.step = ""
        self.first = False  # the client's first EXECUTE of the statement
        self.again = 0  # 1: the server has forgotten the statement; 2: and it was prepared again
        self.collected = bytearray()

    # -- what the commands ask for
    # ------------------------------------------------------------------------------------

    def prepare(self, host: str, sql: bytes, database: str | None) -> None:
        """COM_STMT_PREPARE: the server's definitions are the client's."""
        self.key = (sql, database, self.statement.settings, b"")
        self.run(host, sql, database)

    def learn(self, host: str, sql: bytes, database: str | None) -> None:
        """COM_STMT_PREPARE of a statement that is executed otherwise: `sql` stands for it."""
        self.learns = True
        self.prepare(host, sql, database)

    def execute(self, host: str, text: Sent, request: Execute | BulkExecute, sent: dict[int, bytes]) -> None:
        """COM_STMT_EXECUTE of the statement that is prepared as `text`."""
        self.request = request
        self.sent = sent
        statement = self.statement
        self.first = statement.number == 0
        before, statement.types = statement.types, request.types or statement.types
        if before and before != statement.types:
            statement.private = True
        owner = statement if statement.private else statement.types
        self.key = (text.sql, text.database, statement.settings, owner)
        self.older = (before, b"") if statement.private else (b"",)
        self.run(host, text.sql, text.database, effects=text.effects, literals=text.literals)

    def fetch_rows(self, conn: BackendConnection, rows: bytes) -> None:
        """COM_STMT_FETCH from the statement's open cursor."""
        client = self.client
        client.work = self
        self.conn = conn
        self.step = "fetch"
        conn.begun = client.begun
        if client.writing_paused:
            conn.transport.pause_reading()
        conn.send(frame(b"\x1c" + self.statement.number.to_bytes(4, "little") + rows), self, state=ROWS)

    # -- the steps
    # ---------------------------------------------------------------------------------------------------

    def _send(self, conn: BackendConnection) -> None:
        client = self.client
        self.conn = conn
        if self.database is not None and conn.database != self.database:
            change = self._change_database(conn, self.database)
            self.task = client.services.spawn(change, "change database")
            return
        conn.begun = client.begun
        known = conn.statements
        if known is None:
            known = conn.statements = ServerStatements()
        number = self._find(known) if self.request is not None else None
        if number is None or self.request is None or self.once:
            self._send_prepare(conn, known)
        else:
            self._send_execute(conn, known, number, self.request)

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
            packets, count = preludes(self.client.session, conn, settings)
        else:
            packets, count = settings.packets_from(conn.settings)
            conn.settings = settings
        packets += known.take_leaving() + frame(b"\x16" + self.key[0])
        conn.send(packets, self, count, state=PREPARED)

    def _opens_at_prepare(self) -> bool:
        """Whether a server would judge the statement by another READ ONLY than the transaction's."""
        session = self.client.session
        if not session.transaction.explicit or self.learns or self.aside:
            return False
        return session.in_read_only != modes_of(session.settings).read_only

    def _send_execute(
        self, conn: BackendConnection, known: ServerStatements, number: int, request: Execute | BulkExecute
    ) -> None:
        client = self.client
        self.step = "execute"
        if client.writing_paused:
            conn.transport.pause_reading()
        packets, count = self._preludes(conn)
        packets += known.take_leaving()
        for parameter, data in self.sent.items():
            packets += _long_data(number, parameter, data)
        statement = self.statement
        statement.number = number
        packed = request.attributed if isinstance(conn, AttributedConnection) else request.packet
        if self.once:
            packets += frame(packed(number, b"", 0)) + close_packet(number)
        else:
            packets += frame(packed(number, statement.types, statement.parameters))
        conn.send(packets, self, count)

    def _preludes(self, conn: BackendConnection) -> tuple[bytes, int]:
        """As `Relay._send` puts before a query."""
        session = self.client.session
        if self.aside:
            settings = session.settings.base
            found = settings.packets_from(conn.settings)
            conn.settings = settings
            return found
        pending = session.transaction.next_isolation
        opens = not (pending and opens_none(self.sql, mariadb=session.env.mariadb))
        if opens and session.settings is not session.settings.base and not session.transaction.explicit:
            self._use_up()
        packets, count = preludes(session, conn, opens=opens)
        if self.effects is not None:
            more, number = effects_preludes(session, conn, self.effects)
            packets, count = packets + more, count + number
        return packets, count

    # -- Receiver
    # ---------------------------------------------------------------------------------------------------

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        if self.step == "prepare":
            self.collected += data
            return
        said = conn.scanner
        code = 0 if said.err is None else said.err.code
        forgotten = code in (_UNKNOWN_STATEMENT, _NEEDS_REPREPARE) or (code == _NO_VECTOR and self.first)
        if forgotten and not self.again and self.step == "execute" and not said.rows_begun:
            self.again = 1  # it has not run: prepare it anew
            return
        if self.aside and said.ending == _EOF_SIZE and said.state == DONE and said.err is None:
            # the transaction is the session's, not the connection's
            data = data[:-2] + (said.status | int(Status.IN_TRANS)).to_bytes(2, "little")
        super().reply_data(conn, data)

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
        client, said = self.client, conn.scanner
        if self.step == "fetch":
            if said.err is not None or said.status & _LAST_ROW_SENT:
                end_cursor(client, self.statement, keep=said.err is None)
        elif said.err is not None:
            if self.sent:
                known.forget(self.key)  # who knows what of the long data is still there
        elif (
            said.status & _CURSOR_EXISTS
            and said.ok is None
            and self.request is not None
            and self.request.flags & CURSOR_READ_ONLY
        ):
            known.pin(self.statement.number)
            self.statement.cursor = conn
            ties = client.session.transaction.ties.setdefault(conn.host, [])
            ties.append(("cursor", str(self.statement.id)))
            if not conn.tied:
                conn.tied = conn.for_cursors = True
        super().reply_done(conn)

    def _prepared(self, conn: BackendConnection) -> None:
        """The reply to COM_STMT_PREPARE is complete, in `collected`."""
        client, err, known = self.client, conn.scanner.err, conn.statements
        assert known is not None
        if err is not None:
            if err.code == _NO_DATABASE and self.database is not None and not self.again:
                self.again = 2
                conn.database = None  # somebody has dropped it
                self._send(conn)
                return
            if err.code == _TOO_MANY and len(known) and not self.again:
                self.again = 2
                known.forget_all()
                self._send_prepare(conn, known)
                return
            known.forget(self.key)
            if self.own and err.code != _NOT_SUPPORTED:
                self._answer(_NOTHING_KNOWN)
                self.conn = None
                give_back(client, conn)
                client.finish("ok")
                return
            client.transport.write(bytes(self.collected))
            super().reply_done(conn)
            return
        data = bytes(self.collected)
        number = int.from_bytes(data[5:9], "little")
        if self.learns:
            known.leaving += close_packet(number)
        elif not self.once:
            known.add(self.key, number)
        if self.request is not None:
            self._send_execute(conn, known, number, self.request)
            return
        self._answer(data)
        session = client.session
        self.conn = None
        if conn.scanner.warnings:
            self._begin_to_settle(conn)
            return
        if not (session.env.mariadb and (self.own or keeps_warnings(self.sql))):
            session.apply(Outcome(diagnostics=[]))
        give_back(client, conn)
        client.finish("ok")

    def _answer(self, data: bytes) -> None:
        """Give the statement to the client, with the server's definitions."""
        client, statement = self.client, self.statement
        session = client.session
        if self.learns:
            known, shown = definitions(data)
            if isinstance(statement.plan, Sharded) and statement.plan.origins is not None:
                shown = changed(shown, place_of(statement.plan.origins, client.snapshot.topology))
            statement.exact = exact_of(shown)
            if not session.env.mariadb and isinstance(statement.plan, ShardSelect):
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


class TrackedStatementRelay(StatementRelay, TrackedRelay):
    """That of a session that wants to be told of its transactions."""

    __slots__ = ()


def statement_relay(client: Exchange, statement: Statement) -> StatementRelay:
    """The relay for one command on a prepared statement."""
    return (TrackedStatementRelay if is_told(client) else StatementRelay)(client, statement)


def _long_data(number: int, parameter: int, data: bytes) -> bytes:
    """A parameter's long data, in packets that no server finds too large."""
    head = b"\x18" + number.to_bytes(4, "little") + parameter.to_bytes(2, "little")
    pieces = [data[start : start + _PIECE] for start in range(0, len(data), _PIECE)] or [b""]
    return b"".join(frame(head + piece) for piece in pieces)
