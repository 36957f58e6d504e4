"""An EXECUTE that is like its statement's last one, of a statement that goes whole to one host: what the last
one has found out holds, so the packet goes there with the server's number of the statement in place of the
client's, over a connection that needs nothing to be told before.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from time import monotonic
from typing import TYPE_CHECKING

from proxy.backends.connection import BackendConnection
from proxy.backends.reworded import AttributedConnection
from proxy.engine import lease
from proxy.engine.left_behind import effects_on
from proxy.engine.passthrough import Request
from proxy.engine.session_sync import open_on, sync_packets
from proxy.wire.binary import parse_execute
from proxy.wire.constants import Status

from .parameters import literals_for_effects
from .statements import FORGOTTEN

if TYPE_CHECKING:
    from collections.abc import Callable

    from proxy.engine.exchange import Exchange
    from proxy.session.prepared import HostRepeat, Statement
    from rewriter.plan import Plan
    from rewriter.sql.statements.effects import Effects

_IN_TRANS = int(Status.IN_TRANS)
_HEAD = Struct("<IBI")
"""A packet's header of a COM_STMT_EXECUTE, the command, and the server's number of the statement."""
_EXECUTE = 0x17
_OF_HEAD = 5  # bytes of the payload in `_HEAD`


class HostExecute(Request):
    """The EXECUTE at work; each client has one, used again."""

    __slots__ = ("client", "execute", "forgotten", "packet", "repeat", "statement")

    def __init__(self, client: Exchange, execute: Callable[[Exchange, bytes], None]) -> None:
        """`execute`: runs the payload of an EXECUTE by the general way."""
        super().__init__(client.relay)
        self.client = client
        self.repeat: HostRepeat = None  # type: ignore[assignment]  # set by `run`, as the next two
        self.statement: Statement = None  # type: ignore[assignment]
        self.packet = b""
        self.forgotten = False  # the server does not know the statement any more
        self.execute = execute

    def run(self, statement: Statement, repeat: HostRepeat, packet: bytes) -> bool:
        """Send it. False: something is otherwise than the last time, and nothing was done."""
        client, settings, host = self.client, repeat.settings, repeat.host
        session, snapshot = client.session, client.services.serving.snapshot
        transaction = session.transaction
        if (
            transaction.pins
            or session.settings is not settings
            or snapshot.topology is not repeat.topology
            or client.relay.once is not None
            or client.writing_paused
            or effects_on(client, host, repeat.plan) is not repeat.plan.effects
        ):
            return False
        within = bool(transaction.explicit or transaction.held or not session.autocommit)
        held = transaction.held.get(host) if within else None
        opens = transaction.explicit and held is None and not (transaction.held or session.distributes)
        conn = lease.take(client, host, repeat.database) if opens or not within else held
        if conn is None:
            return False
        number = self._number(conn, repeat)
        if not number or (held is not None and not open_on(transaction, held)):
            if held is None:
                lease.free(conn)
            return False
        client.ready, client.seq, client.snapshot = False, 0, snapshot
        client.begun = conn.begun = monotonic()
        client.sql, client.kind, client.plan = statement.sql, repeat.plan.kind, repeat.plan
        client.reading = repeat.reading
        client.again, client.below = partial(self.execute, client, packet[4:]), None
        self.repeat, self.statement, self.packet = repeat, statement, packet
        statement.number = number
        relay = client.relay
        relay.take_up(conn, self, repeat, held is None)
        rest = repeat.head_sent + packet[repeat.begin :]
        execute = _HEAD.pack(len(rest) + _OF_HEAD, _EXECUTE, number) + rest
        if opens:
            packets, count = sync_packets(session, conn)
            conn.send(packets + execute, self, count)
        else:
            conn.send(execute, self)
        if within:
            conn.usual = settings.status | _IN_TRANS  # which the relay accepts
        return True

    def send(self, conn: BackendConnection) -> None:
        """Another time, as it has not run: the general way does that."""
        self._run_anew(conn)

    def _number(self, conn: BackendConnection, repeat: HostRepeat) -> int:
        """The server's number of the statement; 0 if the connection is not as it must be for it."""
        known = conn.statements
        if (
            known is None
            or known.leaving
            or conn.settings is not repeat.settings
            or (repeat.database is not None and conn.database != repeat.database)
            or conn.receiver is not None
            or conn.closed
            or isinstance(conn, AttributedConnection)
        ):
            return 0
        return known.find(repeat.key) or 0

    # -- Receiver
    # ---------------------------------------------------------------------------------------------------

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        err = conn.scanner.err
        if err is not None and err.code in FORGOTTEN and not conn.scanner.rows_begun:
            self.forgotten = True  # it has not run
        else:
            self.relay.reply_data(conn, data)

    def reply_done(self, conn: BackendConnection) -> None:
        if not self.forgotten:
            ok, plan = conn.scanner.ok, self.repeat.plan
            if ok is not None and ok.insert_id and plan.effects is not None:
                self._compare(plan, plan.effects, ok.insert_id)
            self.relay.reply_done(conn)
            return
        self.forgotten = False
        if conn.statements is not None:
            conn.statements.forget(self.repeat.key)
        self._run_anew(conn)

    def _compare(self, plan: Plan, effects: Effects, id: int) -> None:
        """Have the relay find out whether the insert id of the reply is the client's own, if it is not the
        value of the parameter that gives it.
        """
        client, relay, repeat, statement = self.client, self.relay, self.repeat, self.statement
        number = client.services.given_ids.index(plan) - len(statement.literals)
        if 0 <= number < len(repeat.integers):
            begin, end, signed = repeat.integers[number]
            value = self.packet[repeat.begin + begin : repeat.begin + end]
            if int.from_bytes(value, "little", signed=signed) == id:
                relay.keeps_insert_id = True
                return
        request = parse_execute(self.packet[4:], statement.parameters, statement.types, client.attributes)
        relay.effects = effects
        relay.literals = literals_for_effects(client, statement, request, {})

    def _run_anew(self, conn: BackendConnection) -> None:
        """By the general way."""
        client = self.client
        assert client.again is not None
        client.relay.conn = client.work = None
        if client.session.transaction.held.get(conn.host) is not conn:
            lease.free(conn)
        try:
            client.again()
        except Exception as error:
            client.met(error)
