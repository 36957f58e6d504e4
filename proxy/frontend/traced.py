"""The clients of a proxy that traces: what a statement comes with decides whether it is a span. Without
`tracing` in the settings there are none of them, and nothing is looked at.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from proxy.engine.observe import LONG, as_read
from proxy.session.outcome import RESULT_SET
from proxy.session.state import Session
from proxy.tracing.spans import Query, Trace
from proxy.wire.binary import Attributes, parse_execute
from proxy.wire.constants import Command

from .client import Client

if TYPE_CHECKING:
    from proxy.engine.services import Services
    from proxy.tracing.traces import Traces

_PREPARE = int(Command.STMT_PREPARE)
_EXECUTES = frozenset({int(Command.STMT_EXECUTE), int(Command.STMT_BULK_EXECUTE)})


def client_for(services: Services) -> Client:
    """What answers a connection that comes in."""
    return Client(services) if services.traces is None else TracedClient(services, services.traces)


class TracedClient(Client):
    """`trace`: of the command at work, if it is traced; servers' connections look for it."""

    __slots__ = ("asked", "trace", "traces")

    def __init__(self, services: Services, traces: Traces) -> None:
        super().__init__(services)
        self.traces = traces
        self.trace: Trace | None = None
        self.asked = False  # whether the command that comes is traced is known

    def begin_session(self, session: Session) -> None:
        super().begin_session(session)
        self.observe_after = -1.0  # of all commands

    def query(self, sql: bytes) -> None:
        if self.trace is None:  # else it is run again, or one of several
            self.trace = self.traces.of_query(sql, self.named)
        super().query(sql)

    def command(self, payload: bytes) -> None:
        asked, self.asked = self.asked, False
        if self.trace is None and payload and not asked:
            if payload[0] in _EXECUTES:
                self._execute(payload)
            elif payload[0] == _PREPARE:
                self.trace = self.traces.of_query(payload[1:])
        super().command(payload)

    def execute_again(self, packet: bytes) -> bool:
        if self.trace is None:
            self._execute(packet[4:])
        done = Client.execute_again(self, packet)
        self.asked = not done  # else a part of them is taken twice
        return done

    def _execute(self, payload: bytes) -> None:
        session, number = self.session, int.from_bytes(payload[1:5], "little")
        statement = session.prepared.named(number, session.env.flavour)
        if statement is None:
            return

        def attributes() -> Attributes:
            if not self.attributes or payload[0] != Command.STMT_EXECUTE:
                return Attributes()
            sent = dict.fromkeys(statement.sent, b"")
            return parse_execute(payload, statement.parameters, statement.types, True, sent).extra

        self.trace = self.traces.of_execute(statement.sql, payload, attributes)

    def observed(self, outcome: str, seconds: float) -> None:
        trace, self.trace = self.trace, None
        if trace is not None:
            self._over(trace, outcome)
        super().observed(outcome, seconds)

    def unanswered(self) -> None:
        self.trace = None
        super().unanswered()

    def connection_lost(self, exc: Exception | None) -> None:
        sql = self.sql
        super().connection_lost(exc)
        trace, self.trace = self.trace, None
        if trace is not None and self.session is not None:
            self.sql = sql
            self._over(trace, "client_gone")
            self.sql = b""

    def _over(self, trace: Trace, outcome: str) -> None:
        """The command is answered, or nobody waits for it any more."""
        session = self.session
        trace.plan = self.plan or trace.plan
        error = session.diagnostics[0] if outcome != "ok" and session.diagnostics else None
        affected = session.row_count
        trace.put(
            Query(
                trace,
                trace.begun,
                monotonic(),
                session.env.flavour.name,
                session.database or "",
                self._text_of(trace),
                self.kind,
                outcome,
                error.code if error is not None and error.level == "Error" else 0,
                session.found_rows if affected == RESULT_SET else affected,
                affected == RESULT_SET,
                self.queued,
                session.user.name,
                session.address,
                session.id,
            )
        )

    def _text_of(self, trace: Trace) -> str:
        """The statement without its literals; "" for one that is very long, or cannot be told of."""
        read = as_read(self) if len(self.sql) <= LONG else None
        return "" if read is None else self.traces.text_of(trace.plan, *read)
