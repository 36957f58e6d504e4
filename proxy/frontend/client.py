"""One client's connection: transport callbacks, one command at a time, flow control.

`data_received` finds the command in the common case (one whole COM_QUERY in one read) without copying
anything but the SQL. Whatever arrives while a command is at work waits its turn, unread; a client that sends
faster than it is answered is not read from. A client gets one command, or some packets of a phase, in each
turn of the loop, whatever came in one read: so nobody waits for its pipeline. While the client reads slowly,
the backends that stream into it are not read from either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from struct import Struct
from time import monotonic
from typing import TYPE_CHECKING, cast

import structlog

from proxy.engine.sinks import CommandSink, Numbered
from proxy.engine.watch import look_at
from proxy.engine.work import AHEAD, Phase, Work
from proxy.errors import ProxyError
from proxy.execute.naming import logical_error
from proxy.execute.relay import Relay
from proxy.frontend.attributed import query_behind
from proxy.problems import NOTED, note_error
from proxy.session.state import Session
from proxy.wire.attributes import NOTHING
from proxy.wire.constants import MAX_PAYLOAD, Command
from proxy.wire.packets import (
    Err,
    Ok,
    PacketReader,
    PacketTooLarge,
    ProtocolError,
    err_packet,
    ok_packet,
    tracked_ok_packet,
)

if TYPE_CHECKING:
    from proxy.engine.services import Services
    from rewriter.plan import Plan

log = structlog.get_logger("session")

_QUERY = bytes((Command.QUERY,))
#: Length and sequence number, which is 0 in a command's first packet.
_header = Struct("<I").unpack_from
#: Bytes of further commands taken in while one is at work.
_AHEAD = 1 << 16
#: Packets that a phase gets in one turn of the loop: a log-in has few, a file may come in packets of a byte.
_PACKETS = 64
#: A statement of more bytes may be sent on, rewritten, in more packets than it came in, or in fewer.
_LARGE = 1 << 16
#: The largest packet of a log-in (with 64 KB of attributes): who has not logged in may not fill the memory.
_LOGIN_PACKET = 1 << 17


class ClientConnection(asyncio.Protocol):
    """The transport's side of a session."""

    __slots__ = (
        "_next_up",
        "_paused",
        "_reader",
        "_stalled",
        "_waiting",
        "ahead",
        "attributes",
        "begun",
        "closed",
        "compressed",
        "held",
        "killed",
        "kind",
        "look_after",
        "named",
        "peer",
        "phase",
        "plan",
        "ready",
        "relay",
        "seq",
        "services",
        "session",
        "sink",
        "sql",
        "transport",
        "work",
        "writing_paused",
    )

    def __init__(self, services: Services) -> None:
        self.services = services
        self.transport: asyncio.Transport = None  # type: ignore[assignment]  # set by connection_made
        self.session: Session = None  # type: ignore[assignment]  # set when the log-in is done
        self.phase: Phase | None = None
        self.peer: tuple[str, int] | None = None  # who it is, when a load balancer has told
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
        self.sink: CommandSink | None = None  # stands on the transport while the command is at work
        self.relay = Relay(self)
        self._reader = PacketReader(min(_LOGIN_PACKET, services.settings.limits.max_packet))
        self._next_up: tuple[int, bytes] | Callable[[], None] | None = (
            None  # goes before what the client has sent
        )
        self._waiting = False  # something may have come behind the command at work
        self._paused = 0  # who wants it, see AHEAD
        self.ahead = _AHEAD
        self._stalled = False  # the next command waits until the client has read
        self.held = 0  # bytes of packets, and of the statement at work, in the worker's books
        self.writing_paused = False  # the client reads slowly: whoever streams into it pauses its backends

    # -- transport callbacks
    # ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one, but not by inheritance
        self.services.client_connected(self)

    def data_received(self, data: bytes) -> None:
        if (
            self.ready
            and data[4:5] == _QUERY
            and _header(data)[0] == len(data) - 4 != MAX_PAYLOAD
            and not self._reader.pending
        ):
            self.ready = False
            self.seq = 0
            if self.attributes:
                query_behind(self, data, 5)
            else:
                self.query(data[5:])
        else:
            self._receive(data)

    @property
    def address(self) -> str:
        """Where it comes from, without the port."""
        peer = self.peer or self.transport.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) and peer else "localhost"

    def _receive(self, data: bytes) -> None:
        self._reader.put(data)
        if self._reader.pending + self.held > _LARGE and not self.account():
            return
        if self.ready or self.phase is not None:
            self._turn()
        else:
            self._waiting = True
            if self._reader.pending > self.ahead:
                self.hush(AHEAD)

    def account(self, besides: int = 0) -> bool:
        """Enter in the books what is held of large packets, with `besides` of what is not expanded yet.
        False: it is too much, and the client is told and gone. While a statement is at work its bytes stay
        entered.
        """
        session = cast("Session | None", self.session)
        if session is None:
            return True  # a log-in's packets are small
        size = self._reader.pending + besides
        size = size if size > _LARGE else 0
        if not self.ready:
            size = max(size, self.held)
        if self.services.memory.hold(session.user.name, self.held, size):
            self.held = size
            return True
        self.seq = self._reader.seq
        self.services.stats.refused("packet_memory")
        self.write_error(ProxyError("packet_memory"))
        self.drop_input()
        self.cut_off()
        return False

    def leave_books(self) -> None:
        """Nothing is kept for the session any more."""
        session = self.session
        self.services.memory.hold(session.user.name, self.held + session.accounted, 0)
        self.held = session.accounted = 0

    def drop_input(self) -> None:
        """Nothing of what has come in is of use any more."""
        limit = self._reader.limit
        self._reader = PacketReader(limit)

    def _turn(self) -> None:
        """Take what this turn of the loop is for: a command, or some packets of a phase."""
        try:
            if self.phase is not None:
                self._introduce()
                return
            found, self._next_up = self._next_up or self._reader.take(), None
        except PacketTooLarge:
            self.seq = self._reader.seq
            self.write_error(ProxyError("packet_too_large", limit=self._reader.limit))
            self.close()
            return
        pending = self._reader.pending
        self._waiting = found is not None and pending > 0
        if self._waiting and pending > self.ahead:
            self.hush(AHEAD)
        elif self._paused:
            self.listen(AHEAD)
        if callable(found):
            self.ready = False
            found()
        elif found is not None:
            self._command(*found)

    def _introduce(self) -> None:
        """A packet at a time: what follows one of the log-in may be the beginning of TLS, or a command."""
        for _ in range(_PACKETS):
            phase = self.phase
            if phase is None or self.closed:
                break
            found = self._reader.take()
            if found is None:
                self.listen(AHEAD)
                return
            self._waiting = self._reader.pending > 0
            phase.payload(*found)
        if self.closed:
            return
        if self.phase is not None:
            self.hush(AHEAD)
            asyncio.get_running_loop().call_soon(self._go_on)
            return
        if self._reader.pending <= self.ahead:
            self.listen(AHEAD)
        if self.ready and self._reader.pending:
            self.ready = False
            asyncio.get_running_loop().call_soon(self._next)

    def _go_on(self) -> None:
        if not self.closed and (self.phase is not None or self.ready):
            self._turn()

    def hush(self, who: int) -> None:
        """Read nothing more from the client. `who` wants it: AHEAD or FILE."""
        if not self._paused:
            self.transport.pause_reading()
        self._paused |= who

    def listen(self, who: int) -> None:
        """`who` wants it no longer."""
        if self._paused == who:
            self.transport.resume_reading()
        self._paused &= ~who

    def rest(self) -> bytes:
        """What has come in, and no packet was made of it yet: whoever takes it must deal with it."""
        return self._reader.rest()

    def eof_received(self) -> bool:
        if self.work is not None or self.writing_paused:
            self.cut_off()  # it is gone, whatever it has left unread
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        self.ready = False
        if self.phase is not None:
            self.phase.abandon()
        work, self.work = self.work, None
        if work is not None:
            work.cancel()
        if self.session is not None:
            self.leave_books()
            for conn in self.session.transaction.end():
                self.services.backends.release(conn)
            for conn in list(self.session.transaction.held.values()):
                self.services.backends.release(conn)
        self.services.client_gone(self)
        self.let_go()

    def let_go(self) -> None:
        """Drop what may be large. The client is part of cycles of references, which the garbage collector
        finds when it has counted enough objects, whatever their bytes.
        """
        self.drop_input()
        self.sql = b""
        self.named = NOTHING
        self.phase = self.plan = self._next_up = None
        self.relay.forget()
        if self.session is not None:
            self.session.let_go()

    def pause_writing(self) -> None:
        self.writing_paused = True
        if self.work is not None:
            self.work.flow()

    def resume_writing(self) -> None:
        self.writing_paused = False
        if self.work is not None:
            self.work.flow()
        if self._stalled:
            self._stalled = False
            self._next()

    def take_waiting(self) -> None:
        """Give a phase that has begun with a command the packets that have come behind it."""
        self._turn()

    def begin_session(self, session: Session) -> None:
        """The log-in has succeeded."""
        self.session = session
        self.phase = None
        self.begun = monotonic()  # idle from now on
        self._reader.limit = self.services.settings.limits.max_packet

    # -- for whoever answers a command
    # ------------------------------------------------------------------------------

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

    def _next(self) -> None:
        if not self.closed:
            self.ready = True
            self._turn()

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

    def forget_statement(self) -> None:
        """Let go of what the last statement needed; for a client that is `ready`."""
        self.account()
        self.session.keep()
        self.sql = b""
        self.named = NOTHING
        self.relay.forget()
        self.session.prepared.values = ()

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

    # -- commands

    def query(self, sql: bytes) -> None:
        """COM_QUERY."""
        self.begun = monotonic()
        self.sql = sql
        self.kind = "unplanned"
        self.plan = None
        try:
            self.services.execute(self, sql)
        except ProxyError as error:
            self.fail(error)
        except Exception as error:
            self.crashed(error)

    def crashed(self, error: BaseException) -> None:
        """A bug in the proxy: one error for this client, the rest goes on."""
        log.error("internal error", client=self.session.id, kind=self.kind, exc_info=error)
        self.fail(ProxyError("internal", reason=type(error).__name__))

    def _command(self, seq: int, payload: bytes) -> None:
        self.ready = False
        self.seq = seq
        if payload[:1] == b"\x03":
            if len(payload) > _LARGE:
                Numbered(self)
            if self.attributes:
                query_behind(self, payload, 1)
            else:
                self.query(payload[1:])
            return
        self.begun = monotonic()
        self.kind = "command"
        self.plan = None
        self.sql = b""
        try:
            self.services.command(self, payload)
        except ProtocolError as problem:
            self.fail(ProxyError("malformed_packet", reason=str(problem)))
        except ProxyError as error:
            self.fail(error)
        except Exception as error:
            self.crashed(error)
