"""`Exchange`: a client's command at work, and what answers it.

Every client has one, used again for each command: it is the half of the client's connection that the ways of
running a statement know. The other half, which reads what the client sends, is `frontend.connection`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Protocol

import structlog

from proxy.descriptors import write_out
from proxy.engine.problems import NOTED
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic, Outcome
from proxy.stats import Visit
from proxy.wire.attributes import NOTHING
from proxy.wire.constants import Command
from proxy.wire.packets import Err, Ok, err_packet, ok_packet, tracked_ok_packet

from .failures import lost_with, missed, note_error
from .naming import logical_error
from .observe import observe
from .waiting_room import Ticket
from .work import Leaving, Phase, Work, Writing

if TYPE_CHECKING:
    from proxy.backends.connection import BackendConnection
    from proxy.load import Load
    from proxy.session.state import Session
    from rewriter.env import Env
    from rewriter.plan import Plan
    from rewriter.plans import Gather, Values

    from .passthrough import Passthrough
    from .services import Services

log = structlog.get_logger("session")

Describe = Callable[[list[bytes], list[bytes], int], bytes]
"""Builds the reply to COM_STMT_PREPARE from the definitions of parameters, those of columns, and the
number of warnings."""


class Standing(Protocol):
    """What stands on the transport while a command is at work; see `sinks.CommandSink`."""

    @property
    def under(self) -> Standing | None:
        """What it stands on."""

    def answered(self, outcome: str) -> bool:
        """The command, or one of its statements, is answered. True: the command goes on."""

    def abandon(self) -> None:
        """The client is gone, and the command at work with it."""

    def remove(self) -> None:
        """Take it away, unanswered; it is the one on top."""


class Exchange:
    """One command of a client at a time."""

    __slots__ = (
        "_next_up",
        "_stalled",
        "_waiting",
        "again",
        "attributes",
        "begun",
        "below",
        "closed",
        "code",
        "descriptor",
        "farewell",
        "first",
        "host",
        "kind",
        "last",
        "leaving",
        "long_statement",
        "missed",
        "named",
        "observe_after",
        "phase",
        "plan",
        "pool",
        "queued",
        "reading",
        "ready",
        "relay",
        "seq",
        "services",
        "serving",
        "session",
        "shard",
        "sink",
        "snapshot",
        "sql",
        "stats",
        "ticket",
        "transport",
        "visits",
        "whole",
        "work",
        "writing",
        "writing_paused",
    )

    transport: asyncio.Transport
    """What replies are written to: the client's, or what stands on it."""
    session: Session
    """Set when the log-in is done."""
    relay: Passthrough

    def __init__(self, services: Services) -> None:
        self.services = services
        self.serving = services.serving
        self.stats = services.stats
        self.pool = services.backends.pool
        self.long_statement = services.long_statement  # bytes; longer ones are planned off the loop
        self.snapshot = self.serving.snapshot  # what the command at work is served by
        self.transport = None  # type: ignore[assignment]  # set by connection_made
        self.descriptor = -1  # the socket's
        self.session = None  # type: ignore[assignment]
        self.phase: Phase | None = None
        self.ready = False  # the command phase, and no command at work
        self.attributes = False  # CLIENT_QUERY_ATTRIBUTES: they stand before the text of every COM_QUERY
        self.named = NOTHING  # those of the latest
        self.whole = False  # packets of a reply go on whole, however large they are
        self.closed = False
        self.leaving = Leaving.NOT
        self.farewell: ProxyError | None = None  # what the client is told when it leaves
        self.seq = 0  # sequence number of the last packet of the command at work
        self.begun = 0.0
        self.observe_after = (
            services.slow_after
        )  # seconds from which on a command is looked at when it is over
        self.kind = ""  # kind of plan at work, for the metrics
        self.code: int = Command.CONNECT  # of the last command that was no COM_QUERY; at first the log-in
        self.plan: Plan | None = None  # of the statement at work
        self.sql = b""
        self.reading: tuple[bytes, Env] | None = None  # a prepared text, and the settings it was read with
        #: Where the command has been: a host, and the shard if it was for one; `visits` if there was more.
        self.host: str | None = None
        self.shard: Load | None = None
        self.visits: list[Visit] | None = None
        self.first = 0.0  # when the first statement for a server was sent (monotonic)
        self.last = 0.0  # and when the last reply was complete
        self.queued = 0.0  # seconds that it has waited for connections
        self.missed: Visit | None = None  # where it was to go and never came, once that is known
        self.work: Work | None = None
        self.again: Callable[[], None] | None = None  # how to run what is no COM_QUERY a second time
        self.below: Standing | None = None  # the sink that stands while it does
        self.ticket: Ticket | None = None  # the last place that it had in the waiting room
        self.sink: Standing | None = None  # stands on the transport while the command is at work
        self.writing: Writing | None = None  # the statement at work writes what the command has read
        self._next_up: Callable[[], None] | None = None  # goes before what the client has sent
        self._waiting = False  # something may have come behind the command at work
        self._stalled = False  # the next command waits until the client has read
        self.writing_paused = False  # the client reads slowly: whoever streams into it pauses its backends

    # -- the other half
    # ---------------------------------------------------------------------------------------------

    def query(self, sql: bytes) -> None:
        """Run a statement, as COM_QUERY does."""
        raise NotImplementedError

    def execute(self, sql: bytes) -> None:
        """Run a statement, and answer (`pipeline.execute`; `frontend.client.Client` has them all). Raises
        ProxyError.
        """
        raise NotImplementedError

    def run_plan(self, plan: Plan, literals: Values) -> None:
        """Run a plan in the place of the one at work (`pipeline.run_plan`)."""
        raise NotImplementedError

    def start_again(self) -> None:
        """Plan and run the command at work anew, by the topology of now; nothing of it was answered."""
        raise NotImplementedError

    def describe(self, plan: Gather, values: Values, reply: Describe) -> None:
        """Learn the parameters and columns of a plan that it takes several servers for, and answer with
        `reply` of their definitions.
        """
        raise NotImplementedError

    def asks_about_syntax(self, error: Err) -> bool:
        """Whether a server is asked about the client's own text, in the place of `error`, which is about
        another one. Then the command fails when the server has answered.
        """
        del error
        return False

    def hush(self, who: int) -> None:
        """Read nothing more from the client. `who` wants it: AHEAD or FILE."""
        raise NotImplementedError

    def listen(self, who: int) -> None:
        """`who` wants it no longer."""
        raise NotImplementedError

    def take_waiting(self) -> None:
        """Give a phase that has begun with a command the packets that have come behind it."""
        raise NotImplementedError

    def let_go(self) -> None:
        """The client is gone: drop what may be large."""
        raise NotImplementedError

    def _next(self) -> None:
        """Take the next command, if there is one."""
        raise NotImplementedError

    # -- answers
    # ----------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        write_out(self.transport, self.descriptor, data)

    def reply_ok(
        self, *, affected: int = 0, insert_id: int = 0, warnings: int = 0, info: bytes = b""
    ) -> None:
        """An OK packet, and the command is done."""
        session = self.session
        ok = Ok(affected, insert_id, session.status(), warnings, info)
        state = session.tracker.take(session) if session.tracker is not None else b""
        if state:
            self.write(tracked_ok_packet(self.seq + 1, ok, state))
        else:
            self.write(
                ok_packet(
                    self.seq + 1,
                    ok.status,
                    affected=affected,
                    insert_id=insert_id,
                    warnings=warnings,
                    info=info,
                )
            )
        self.finish("ok")

    def write_error(self, error: ProxyError | Err, seq: int | None = None) -> None:
        """An ERR packet; `seq` when rows were already sent."""
        text: str | bytes = error.message if isinstance(error, Err) else str(error)
        if (
            isinstance(text, str) and not text.isascii() and self.session is not None
        ):  # None before the log-in
            text = text.encode(self.session.results_codec, "replace")
        self.transport.write(
            err_packet(self.seq + 1 if seq is None else seq, error.code, error.sqlstate, text)
        )

    def fail(
        self, error: ProxyError | Err, seq: int | None = None, conditions: Sequence[Diagnostic] = ()
    ) -> None:
        """An ERR packet, and the command is done. The session remembers it for SHOW WARNINGS, or with others
        the `conditions` that the server shows. Unless another topology may mend it: then the command waits
        for that.
        """
        if seq is None and self.services.waiting_room.hold(self, error):
            self.queued = 0.0  # its time begins anew when it is let out
            return
        if seq is None and isinstance(error, Err) and self.asks_about_syntax(error):
            return
        if isinstance(error, ProxyError) and error.unknown:
            self.services.caches.unsure(self)
        if isinstance(error, ProxyError):
            self.missed = missed(self, error)
        if self.session.transaction.lost:
            error = lost_with(self.session.transaction, error)
        if isinstance(error, Err):
            error = logical_error(self, error)
        message = error.text(self.session.results_codec) if isinstance(error, Err) else str(error)
        self.services.backends.loads.failed(error.code)
        self.session.note_error(error.code, message, error.sqlstate)
        if len(conditions) > 1 and isinstance(error, Err):
            self.session.apply(Outcome(diagnostics=list(conditions)))
        if isinstance(error, ProxyError) and "outcome" in error.details:
            outcome, user = error.details["outcome"], self.session.user.name
            log.warning(
                "done in parts", client=self.session.id, user=user, error=error.kind.name, outcome=outcome
            )
        if isinstance(error, Err) and error.code in NOTED:
            note_error(self, error.host, error)
        if self.session.tracker is not None:
            self.session.tracker.forget()
        self.write_error(error, seq)
        self.finish("error" if isinstance(error, Err) else error.kind.name)
        self.missed = None

    def finish(self, outcome: str) -> None:
        """The command at work is answered; take the next one."""
        self.work = None
        if self.sink is not None and self.sink.answered(outcome):
            return
        now = monotonic()
        seconds = now - self.begun
        use = self.stats.observe(self.kind, outcome, seconds, self.plan)
        host = self.host
        if host is not None and use is not None:
            session = self.session
            use.rows += session.row_count if session.row_count >= 0 else session.found_rows
            if self.visits:
                use.visited(self.visits)
            else:
                use.hosts[host] = use.hosts.get(host, 0) + 1
                use.shards += self.shard is not None
        if seconds > self.observe_after:
            self.observed(outcome, seconds)
        self.host = None
        if self.visits or self.queued:
            self.visits, self.queued = None, 0.0
        self.begun = now  # idle from now on
        if self.leaving and self._leaves():
            if self.farewell is not None and not self._waiting:
                self.write_error(self.farewell, 0)
            self.close()
            return
        if self.writing_paused:
            self._stalled = True
            return
        self.ready = True
        if self._waiting:
            # not from within the caller's stack, and not in this turn of the loop, which is others', too
            self.ready = False
            asyncio.get_running_loop().call_soon(self._next)

    def observed(self, outcome: str, seconds: float) -> None:
        """The command at work is answered, and has taken longer than `observe_after`."""
        observe(self, outcome, seconds)

    @property
    def prepared_env(self) -> Env | None:
        """The settings with which the current text is parsed, if it is a prepared statement's."""
        reading = self.reading
        return None if reading is None or reading[0] is not self.sql else reading[1]

    def runs_again_by(self, run: Callable[[], None]) -> None:
        """The command at work, which is no COM_QUERY, can be run a second time by `run`, with the sinks that
        stand now.
        """
        self.again, self.below = run, self.sink

    def go_on_by(self, run: Callable[[], None]) -> None:
        """The command at work has another statement, which comes before whatever else waits. For command
        sinks, from `answered`.
        """
        self._next_up = run
        self._waiting = True

    def unanswered(self) -> None:
        """A command that has no answer is done."""
        self.begun = monotonic()
        self.ready = True
        if self._waiting:
            self.ready = False
            asyncio.get_running_loop().call_soon(self._next)

    def visited(self, conn: BackendConnection, shards: Sequence[Load]) -> None:
        """A server has answered a statement of the command, on these shards; or never will."""
        sent = conn.sent or conn.ended
        if self.visits is None:
            self.visits = []
        if self.host is None:
            self.host, self.shard, self.first = conn.host, None, sent
        elif not self.visits:
            self.visits.append(Visit(self.host, () if self.shard is None else (self.shard,)))
            self.shard = None
        self.visits.append(Visit(conn.host, shards))
        self.first = min(self.first, sent)
        self.last = conn.ended

    def crashed(self, error: BaseException) -> None:
        """A bug in the proxy: one error for this client, the rest goes on."""
        log.error("internal error", client=self.session.id, kind=self.kind, exc_info=error)
        self.fail(ProxyError("internal", reason=type(error).__name__))

    def met(self, error: BaseException) -> None:
        """The command at work has met an error: one for the client, or a bug."""
        if isinstance(error, ProxyError):
            self.fail(error)
        else:
            self.crashed(error)

    def close(self) -> None:
        """Write what is buffered, then close."""
        self.ready = False
        if not self.closed:
            self.closed = True
            self.transport.close()

    def end_soon(self, why: ProxyError | None = None) -> None:
        """Close when what is at work is answered. `why`: the client is told."""
        self.leaving = Leaving.NOW
        self.farewell = why
        if self.work is None and self.phase is None:
            if why is not None and self.ready:
                self.write_error(why, 0)
            self.close()

    def _leaves(self) -> bool:
        """Whether the session ends now that a command is answered. Commands behind it are answered, too."""
        return self.leaving is Leaving.NOW or not (self.session.transaction.open or self._waiting)

    def cut_off(self) -> None:
        """No answer any more to what the session runs, which ends."""
        work, self.work = self.work, None
        if self.writing_paused:
            self.closed, self.ready = True, False
            self.transport.abort()
        else:
            self.close()
        self.abandon(work)

    def abandon(self, work: Work | None) -> None:
        """The client is gone: end `work`, and the commands that have run it."""
        if work is not None:
            work.cancel()
        sink = self.sink
        while sink is not None:
            sink.abandon()
            sink = sink.under
