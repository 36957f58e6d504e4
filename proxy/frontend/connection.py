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
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, cast

from proxy.backends.pool import ATTRIBUTES
from proxy.descriptors import descriptor_of
from proxy.engine import lease
from proxy.engine.exchange import Exchange
from proxy.engine.sinks import Numbered
from proxy.engine.work import AHEAD
from proxy.errors import ProxyError
from proxy.session.state import Session
from proxy.wire.attributes import NOTHING, read
from proxy.wire.constants import MAX_PAYLOAD, Command
from proxy.wire.packets import PacketReader, PacketTooLarge, ProtocolError
from proxy.wire.pieces import piece

if TYPE_CHECKING:
    from proxy.engine.services import Services

_QUERY = int(Command.QUERY)
_EXECUTE = int(Command.STMT_EXECUTE)
#: Bytes of further commands taken in while one is at work.
_AHEAD = 1 << 16
#: Packets that a phase gets in one turn of the loop: a log-in has few, a file may come in packets of a byte.
_PACKETS = 64
#: A statement of more bytes may be sent on, rewritten, in more packets than it came in, or in fewer.
_LARGE = 1 << 16
#: The largest packet of a log-in (with 64 KB of attributes): who has not logged in may not fill the memory.
_LOGIN_PACKET = 1 << 17


class ClientConnection(Exchange):
    """The transport's side of a session; `client.Client` is one with the commands to it."""

    __slots__ = ("_paused", "_reader", "ahead", "held", "peer")

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self.peer: tuple[str, int] | None = None  # who it is, when a load balancer has told
        self._reader = PacketReader(min(_LOGIN_PACKET, services.settings.limits.max_packet))
        self._paused = 0  # who wants it, see AHEAD
        self.ahead = _AHEAD
        self.held = 0  # bytes of packets, and of the statement at work, in the worker's books

    # -- what it is for
    # ---------------------------------------------------------------------------------------------

    def connected(self) -> None:
        """The client is there: log it in, or refuse it."""
        raise NotImplementedError

    def command(self, payload: bytes) -> None:
        """Run a command that is no COM_QUERY. Raises ProxyError or ProtocolError."""
        raise NotImplementedError

    def execute_again(self, packet: bytes) -> bool:
        """Run the command of this packet, if it is a COM_STMT_EXECUTE like the statement's last one."""
        raise NotImplementedError

    # -- transport callbacks
    # ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is one, but not by inheritance
        self.descriptor = descriptor_of(transport)
        self.connected()

    def data_received(self, data: bytes) -> None:
        """Take what has come in, as it is or as part of a packet."""
        size = len(data) - 4
        if (
            size <= 0
            or not self.ready
            or self._reader.pending
            or data[3]
            or data[0] | data[1] << 8 | data[2] << 16 != size
            or size == MAX_PAYLOAD
        ):
            self._receive(data)
        elif data[4] == _QUERY:
            self.ready = False
            self.seq = 0
            if self.attributes:
                _query_behind(self, data, 5)
            else:
                self.query(piece(data, 5, len(data)))
        elif data[4] != _EXECUTE:
            self._receive(data)
        elif not self.execute_again(data):
            self._command(0, data[4:])

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
        if self.services.clients.memory.hold(session.user.name, self.held, size):
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
        self.services.clients.memory.hold(session.user.name, self.held + session.accounted, 0)
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
            seq, payload = found
            self._command(seq, payload)

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
        self.abandon(work)
        if self.session is not None:
            self.leave_books()
            lease.leave(self)
        self.services.clients.gone(self)
        self.let_go()

    def let_go(self) -> None:
        """Drop what may be large. The client is part of cycles of references, which the garbage collector
        finds when it has counted enough objects, whatever their bytes.
        """
        self.drop_input()
        self.sql = b""
        self.named = NOTHING
        self.phase = self.plan = self.again = self._next_up = self.reading = None
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
        self.snapshot = self.serving.snapshot
        self._reader.limit = self.services.settings.limits.max_packet

    def _next(self) -> None:
        if not self.closed:
            self.ready = True
            self._turn()

    def forget_statement(self) -> None:
        """Let go of what the last statement needed; for a client that is `ready`."""
        self.account()
        self.session.keep()
        self.sql = b""
        self.named = NOTHING
        self.again = self.reading = None
        self.relay.forget()
        self.session.prepared.values = ()

    # -- commands

    def query(self, sql: bytes) -> None:
        """COM_QUERY."""
        self.begun = monotonic()
        self.snapshot = self.serving.snapshot
        self.again = None
        self.sql = sql
        self.kind = "unplanned"
        self.plan = None
        try:
            self.execute(sql)
        except Exception as error:
            self.met(error)

    def _command(self, seq: int, payload: bytes) -> None:
        self.ready = False
        self.seq = seq
        if payload[:1] == b"\x03":
            if len(payload) > _LARGE:
                Numbered(self)
            if self.attributes:
                _query_behind(self, payload, 1)
            else:
                self.query(payload[1:])
            return
        self.kind = "command"
        self.code = payload[0] if payload else 0
        self.sql = b""
        self._run(partial(self.command, payload))

    def start_again(self) -> None:
        if self.again is None:
            self.query(self.sql)
            return
        while self.sink is not None and self.sink is not self.below:
            self.sink.remove()
        self._run(self.again)

    def _run(self, command: Callable[[], None]) -> None:
        """A command that is no COM_QUERY. It can be run again as it is, unless it says otherwise."""
        self.begun = monotonic()
        self.snapshot = self.serving.snapshot
        self.runs_again_by(command)
        self.plan = None
        try:
            command()
        except ProtocolError as problem:
            self.fail(ProxyError("malformed_packet", reason=str(problem)))
        except Exception as error:
            self.met(error)


def _query_behind(client: ClientConnection, packet: bytes, pos: int) -> None:
    """Run the statement behind the attributes at `pos`, which go to a server with it."""
    begin = pos + 2
    if packet[pos:begin] != NOTHING:
        try:
            client.named, begin = read(packet, pos)
        except ProtocolError as problem:
            client.begun = monotonic()
            client.fail(ProxyError("malformed_packet", reason=str(problem)))
            return
        client.session.capability_set |= ATTRIBUTES
    elif client.named is not NOTHING:
        client.named = NOTHING
    client.query(packet[begin:])
