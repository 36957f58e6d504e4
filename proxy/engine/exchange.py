"""`Exchange`: a client's command at work, and what answers it.

Every client has one, used again for each command: it is the half of the client's connection that the ways of
running a statement know. The other half, which reads what the client sends, is `frontend.connection`.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Protocol

import structlog

from proxy.engine.problems import NOTED
from proxy.errors import ProxyError
from proxy.wire.attributes import NOTHING
from proxy.wire.packets import Err, Ok, err_packet, ok_packet, tracked_ok_packet

from .failures import note_error
from .naming import logical_error
from .watch import look_at
from .work import Phase, Work

if TYPE_CHECKING:
    from proxy.session.state import Session
    from rewriter.plan import Plan
    from rewriter.plans import Values
    from rewriter.route.origins import Origins
    from rewriter.text.effects import Effects

    from .services import Services

log = structlog.get_logger("session")


class Passthrough(Work, Protocol):
    """Sends one statement to one host, and its reply to the client as it comes."""

    def ask(self, host: str, sql: bytes, origins: Origins | None, shard: bytes) -> None:
        """A point select in the database `shard`."""

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
        """Any statement; see `relay.Relay`."""

    def forget(self) -> None:
        """Let go of the last statement."""


class Standing(Protocol):
    """What stands on the transport while a command is at work; see `sinks.CommandSink`."""

    @property
    def under(self) -> Standing | None:
        """What it stands on."""

    def answered(self, outcome: str) -> None:
        """The command, or one of its statements, is answered."""


class Exchange(ABC):
    """One command of a client at a time."""

    __slots__ = (
        "_next_up",
        "_stalled",
        "_waiting",
        "attributes",
        "begun",
        "closed",
        "compressed",
        "killed",
        "kind",
        "look_after",
        "named",
        "phase",
        "plan",
        "ready",
        "relay",
        "seq",
        "services",
        "session",
        "sink",
        "snapshot",
        "sql",
        "transport",
        "work",
        "writing_paused",
    )

    transport: asyncio.Transport
    """What replies are written to: the client's, or what stands on it."""
    session: Session
    """Set when the log-in is done."""
    relay: Passthrough

    def __init__(self, services: Services) -> None:
        self.services = services
        self.snapshot = services.serving.snapshot  # what the command at work is served by
        self.transport = None  # type: ignore[assignment]  # set by connection_made
        self.session = None  # type: ignore[assignment]
        self.phase: Phase | None = None
        self.ready = False  # the command phase, and no command at work
        self.attributes = False  # CLIENT_QUERY_ATTRIBUTES: they stand before the text of every COM_QUERY
        self.named = NOTHING  # those of the latest
        self.compressed = False  # compression was agreed at log-in
        self.closed = False
        self.killed = False
        self.seq = 0  # sequence number of the last packet of the command at work
        self.begun = 0.0
        self.look_after = services.slow_after  # seconds from which on a command is looked at when it is over
        self.kind = ""  # kind of plan at work, for the metrics
        self.plan: Plan | None = None  # of the statement at work
        self.sql = b""
        self.work: Work | None = None
        self.sink: Standing | None = None  # stands on the transport while the command is at work
        self._next_up: tuple[int, bytes] | Callable[[], None] | None = (
            None  # goes before what the client has sent
        )
        self._waiting = False  # something may have come behind the command at work
        self._stalled = False  # the next command waits until the client has read
        self.writing_paused = False  # the client reads slowly: whoever streams into it pauses its backends

    # -- the other half
    # ---------------------------------------------------------------------------------------------

    @abstractmethod
    def query(self, sql: bytes) -> None:
        """Run a statement, as COM_QUERY does."""

    @abstractmethod
    def run_plan(self, plan: Plan, values: Values) -> None:
        """Run a plan in the place of the one at work."""

    @abstractmethod
    def hush(self, who: int) -> None:
        """Read nothing more from the client. `who` wants it: AHEAD or FILE."""

    @abstractmethod
    def listen(self, who: int) -> None:
        """`who` wants it no longer."""

    @abstractmethod
    def take_waiting(self) -> None:
        """Give a phase that has begun with a command the packets that have come behind it."""

    @abstractmethod
    def let_go(self) -> None:
        """The client is gone: drop what may be large."""

    @abstractmethod
    def _next(self) -> None:
        """Take the next command, if there is one."""

    # -- answers
    # ----------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        self.transport.write(data)

    def reply_ok(
        self, *, affected: int = 0, insert_id: int = 0, warnings: int = 0, info: bytes = b""
    ) -> None:
        """An OK packet, and the command is done."""
        session = self.session
        ok = Ok(affected, insert_id, session.status(), warnings, info)
        state = session.tracker.take(session) if session.tracker is not None else b""
        if state:
            self.transport.write(tracked_ok_packet(self.seq + 1, ok, state))
        else:
            self.transport.write(
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
        text = error.message if isinstance(error, Err) else str(error)
        self.transport.write(
            err_packet(self.seq + 1 if seq is None else seq, error.code, error.sqlstate, text)
        )

    def fail(self, error: ProxyError | Err, seq: int | None = None) -> None:
        """An ERR packet, and the command is done. The session remembers it for SHOW WARNINGS."""
        if isinstance(error, Err):
            error = logical_error(self, error)
        message = error.text() if isinstance(error, Err) else str(error)
        self.session.note_error(error.code, message)
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

    def finish(self, outcome: str) -> None:
        """The command at work is answered; take the next one."""
        self.work = None
        if self.sink is not None:
            self.sink.answered(outcome)
        now = monotonic()
        seconds = now - self.begun
        self.begun = now  # idle from now on
        self.services.stats.observe(self.kind, outcome, seconds, self.plan)
        if seconds > self.look_after:
            look_at(self, outcome, seconds)
        if self.killed:
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

    def go_on(self, seq: int, sql: bytes) -> None:
        """The command at work has another statement, which comes before whatever else waits. `seq`: number of
        the last packet so far. For command sinks, from `answered`.
        """
        self.go_on_with(seq, (b"\x03" + self.named if self.attributes else b"\x03") + sql)

    def go_on_by(self, run: Callable[[], None]) -> None:
        """`go_on` by whatever `run` does."""
        self._next_up = run
        self._waiting = True

    def go_on_with(self, seq: int, payload: bytes) -> None:
        """`go_on` with any command."""
        self._next_up = seq, payload
        self._waiting = True

    def unanswered(self) -> None:
        """A command that has no answer is done."""
        self.begun = monotonic()
        self.ready = True
        if self._waiting:
            self.ready = False
            asyncio.get_running_loop().call_soon(self._next)

    def crashed(self, error: BaseException) -> None:
        """A bug in the proxy: one error for this client, the rest goes on."""
        log.error("internal error", client=self.session.id, kind=self.kind, exc_info=error)
        self.fail(ProxyError("internal", reason=type(error).__name__))

    def close(self) -> None:
        """Write what is buffered, then close."""
        self.ready = False
        if not self.closed:
            self.closed = True
            self.transport.close()

    def end_soon(self) -> None:
        """Close when what is at work is answered."""
        self.killed = True
        if self.work is None and self.phase is None:
            self.close()

    def cut_off(self) -> None:
        """No answer any more to what the session runs, which ends."""
        work, self.work = self.work, None
        if self.writing_paused:
            self.closed, self.ready = True, False
            self.transport.abort()
        else:
            self.close()
        if work is not None:
            work.cancel()
