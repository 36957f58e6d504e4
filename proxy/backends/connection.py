"""One connection to a server behind the proxy: log-in, then one statement at a time.

A statement's reply goes to a `Receiver`. The session that relays bytes is one (`Relay`), a collector for the
proxy's own questions another. Before the statement the connection may have to be brought into the session's
state (settings, START TRANSACTION): these *session sync* travel in the same network write and each is
answered by an OK packet, which is taken off here. A connection that saw an unexpected byte, a protocol error
or a cancelled statement is closed, never given back.

Each reply is held against what the connection is to be like: autocommit as its settings have it, a
transaction only where one may be, and no word of the server's session tracking that something was changed
(every connection has `session_track_state_change` on). What a statement has changed, or may have (an error
tells nothing), makes the connection *unclean*: it is reset before another session gets it. A reply that
nothing explains is not passed on: what it acknowledges may never be committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Protocol

import structlog

from proxy.backends.settings import FRESH, Settings
from proxy.descriptors import write_out
from proxy.errors import ProxyError
from proxy.load import Load, bucket_of, is_own, share
from proxy.wire.constants import MAX_PAYLOAD, Status
from proxy.wire.packets import (
    FIRST_NUMBER,
    Err,
    ProtocolError,
    parse_err,
    parse_ok,
    query_head,
    query_packet,
    reply_numbers,
)
from proxy.wire.replies import FIRST, ReplyScanner
from proxy.wire.states import UNCHANGED, Changes, rewritten, untracked

from .endings import ending
from .receiver import UNHEARD, Receiver
from .statements import ServerStatements

log = structlog.get_logger("backends")

_IN_TRANS = int(Status.IN_TRANS)
_AUTOCOMMIT = int(Status.AUTOCOMMIT)
_CHANGED = int(Status.SESSION_STATE_CHANGED)
_WATCHED = _IN_TRANS | _AUTOCOMMIT | _CHANGED
_HOLD_LIMIT = 1 << 20
#: Errors by which a branch is rolled back: deadlock, and XA_RBROLLBACK, XA_RBTIMEOUT, XA_RBDEADLOCK.
_BRANCH_UNDONE = frozenset({1213, 1402, 1613, 1614})
_AUTOCOMMIT_IS = {b"0": "autocommit is off", b"1": "autocommit is on"}


class Owner(Protocol):
    """The pool a connection belongs to. `load`: what its host has had to do."""

    load: Load

    def connection_closed(self, conn: BackendConnection) -> None: ...

    def release(self, conn: BackendConnection) -> None: ...

    def discard(self, conn: BackendConnection, *, kill: bool) -> None: ...

    def kill_soon(self, thread_id: int, capability_set: int, *, query_only: bool = False) -> None: ...

    def database_changed(self) -> None: ...


class BackendConnection:
    """A logged-in connection, which is the protocol of its transport. `settings` and `database` are what the
    server has applied.
    """

    __slots__ = (
        "_held",
        "_numbers",
        "_plain",
        "_sync_error",
        "_sync_packets",
        "_sync_tail",
        "_torn",
        "begun",
        "branch",
        "capability_set",
        "changes",
        "closed",
        "database",
        "descriptor",
        "doomed",
        "ended",
        "filled",
        "for_cursors",
        "given",
        "granted",
        "host",
        "idle_since",
        "kill_wanted",
        "load",
        "offers",
        "owner",
        "pinned",
        "prepared",
        "receiver",
        "replies",
        "resetting",
        "scanner",
        "sent",
        "settings",
        "shard",
        "shards",
        "statements",
        "thread_id",
        "tracked_before",
        "transport",
        "unclean",
        "undone",
        "unread",
        "usual",
        "version",
    )  # fmt: skip

    def __init__(self, host: str, owner: Owner) -> None:
        self.host = host
        self.owner = owner
        self.load = owner.load
        self.shard: Load | None = None  # that the running statement is for, if it is for one,
        self.shards: Sequence[Load] = ()  # or for several
        self.sent = 0.0  # when it was sent (monotonic); 0.0: it is not counted
        self.ended = 0.0  # when the last one's reply was complete
        self.transport: asyncio.Transport = None  # type: ignore[assignment]  # set before the connection is handed out
        self.scanner = ReplyScanner(FIRST_NUMBER)
        self.receiver: Receiver | None = None
        self.settings: Settings = FRESH
        self.database: str | None = None
        self.descriptor = -1  # the socket's
        #: Changes by clients' statements that the server has told, and that no session has taken over yet.
        self.changes: Changes = UNCHANGED
        self.capability_set = 0  # see `pool`
        self.thread_id = 0
        self.version = ""
        self.offers = 0  # the server's MariaCapability flags
        self.pinned = False  # the server keeps state for one session: never shared before a reset
        self.unclean = False  # nobody knows what state it is in: reset before another session gets it
        #: What XA statements call the branch of a distributed transaction that is open on it, or b"".
        self.branch = b""
        self.prepared = False  # XA PREPARE of the branch was sent: it may outlive the connection
        self.undone = False  # the server has rolled the branch back, and waits to be told XA ROLLBACK
        self.tracked_before = ""  # what tracking knew of transactions when it was last told to tell of them
        self.usual = -1  # flags of the reply awaited that need no judging, besides those of the settings
        self.unread = False  # the server may know of a change that its last reply could not tell
        self.for_cursors = False  # tied only as long as a cursor is open on it
        self.statements: ServerStatements | None = None  # what is prepared on it
        #: Never shared again: a KILL QUERY may come late, or SHOW PROFILES has a session's statements.
        self.doomed = False
        self.kill_wanted = False  # a KILL QUERY is for the statement behind the sync statements at work
        self.closed = False
        self.filled: Callable[[bool], None] | None = None  # told when the server reads slowly, and no more so
        self.resetting = False  # given back, and being put into the state of a fresh one
        self.replies = 0  # how many replies the receiver is still to get
        self.given = 0  # sequence number of the last packet that the receiver got, 0 for none
        self.begun = 0.0  # loop time when the client's running statement came, or that of the proxy was sent
        self.granted = 0.0  # loop time when whoever has it had waited for it
        self.idle_since = 0.0
        self._plain = (
            False  # nothing of the reply was read yet, and it is one, with no sync statement before it
        )
        self._sync_packets = 0
        self._numbers: list[int] | None = None  # of the replies' first packets, where one is not 1
        self._sync_error: Err | None = None
        self._sync_tail = b""
        #: The unfinished packet at the end of what was read, or unfinished definitions: given on when whole.
        self._held = b""
        self._torn = False  # what was given on ends within a packet, or within a row of several

    def has(self, settings: Settings) -> None:
        """These are in force on it, by a statement of its session."""
        self.settings = settings
        self.doomed = self.doomed or settings.profiles

    # -- statements
    # -------------------------------------------------------------------------------------------------

    def send(
        self,
        packets: bytes,
        receiver: Receiver,
        sync_packets: int = 0,
        *,
        replies: int = 1,
        state: int = FIRST,
    ) -> None:
        """Write `packets`: `sync_packets` commands answered by OK, then those whose `replies` the receiver
        gets one by one.

        `reply_done` is called for each reply; the connection is free after the last. On a connection that is
        closed already the receiver hears `reply_lost`, from the event loop.
        """
        numbers = None if len(packets) <= MAX_PAYLOAD else reply_numbers(packets)
        if self.receiver is UNHEARD:
            if numbers is not None or self._numbers is not None:
                begun = (
                    self._numbers[-self._sync_packets :]
                    if self._numbers
                    else [FIRST_NUMBER] * self._sync_packets
                )
                numbers = begun + (numbers or [FIRST_NUMBER] * (sync_packets + replies))
            sync_packets += self._sync_packets
        elif self.receiver is not None:
            raise RuntimeError("a statement is under way on this connection")
        self.receiver = receiver
        self.sent = 0.0 if receiver.own else monotonic()
        self.replies = replies
        self.scanner.start(state)
        self._numbers = numbers
        self.scanner.first_number = FIRST_NUMBER if numbers is None or not replies else numbers[-replies]
        self._sync_packets = sync_packets
        self._plain = not sync_packets and replies == 1 and state == FIRST
        if self.closed:
            error = ProxyError("connection_gone", host=self.host)
            asyncio.get_running_loop().call_soon(self._tell_lost, error)
        else:
            write_out(self.transport, self.descriptor, packets)

    def ask(self, sql: bytes, receiver: Receiver) -> None:
        """`send` for one COM_QUERY of a client's: the usual case."""
        size = len(sql) + 1
        if self.receiver is not None or self.closed or size >= MAX_PAYLOAD:
            self.send(query_packet(sql), receiver)
            return
        self.receiver = receiver
        self.sent = monotonic()
        self.replies = 1
        self._plain = True
        self._numbers = None
        scanner = self.scanner
        scanner.start()
        scanner.first_number = FIRST_NUMBER
        write_out(self.transport, self.descriptor, query_head(size, 3) + sql)

    def tell(self, packet: bytes) -> None:
        """Send a command that is answered by OK, and wait for nothing: whatever is sent next comes behind it.
        An error closes the connection.
        """
        self.send(packet, UNHEARD, 1, replies=0)

    @property
    def in_transaction(self) -> bool:
        """Whether the server said, in its last reply, that a transaction is open."""
        return bool(self.scanner.status & _IN_TRANS)

    def _count(self) -> None:
        """A reply that is counted is complete, or will never be."""
        self.ended = ended = monotonic()
        seconds = ended - self.sent
        scanner, load, shard = self.scanner, self.load, self.shard
        rows = scanner.rows if scanner.ok is None else scanner.ok.affected
        if scanner.err is not None:
            rows = self._count_error()
        bucket = bucket_of(seconds)
        load.seconds += seconds
        load.rows += rows
        load.buckets[bucket] += 1
        if seconds > load.longest:
            load.longest = seconds
        if shard is not None:
            self.shard = None
            shard.seconds += seconds
            shard.rows += rows
            shard.buckets[bucket] += 1
            if seconds > shard.longest:
                shard.longest = seconds
        elif self.shards:
            self._count_parts(seconds, rows)

    def _count_parts(self, seconds: float, rows: int) -> None:
        loads, self.shards = self.shards, ()
        share(loads, seconds, rows)

    def _count_error(self) -> int:
        """It failed; so many rows came of it."""
        err = self.scanner.err
        if err is not None and is_own(err.code, err.sqlstate):
            return 0
        self.load.errors += 1
        for load in self.shards if self.shard is None else (self.shard,):
            load.errors += 1
        return 0

    def _give_up(self) -> None:
        """The statement under way will have no reply."""
        if self.sent and self.receiver is not None:
            self.scanner.ok, self.scanner.rows = None, 0
            if self.scanner.err is None:
                self._count_error()
            self._count()

    def close(self) -> None:
        """Close at once; the receiver of a running statement hears nothing more."""
        self._give_up()
        self.receiver = None
        self._let_go()
        if not self.closed:
            self.closed = True
            self.transport.abort()
            self.owner.connection_closed(self)

    def _let_go(self) -> None:
        """What has come of a reply goes now, not when the garbage collector finds the time."""
        self._held = self._sync_tail = b""
        self.filled = None

    @property
    def at_packet_end(self) -> bool:
        """Whether another packet may follow what the receiver got so far."""
        return not self._torn

    # -- transport callbacks
    # ----------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Take a piece of the reply to what was asked."""
        receiver = self.receiver
        if receiver is None:
            # nothing was asked: the server says goodbye (wait_timeout, shutdown) or talks nonsense
            self.close()
            return
        if self._plain:
            scanner = self.scanner
            if scanner.whole(data):
                flags = scanner.status & _WATCHED
                if flags != self.settings.status and flags != self.usual:
                    data = self._judged(receiver, data)
                    if not data:
                        return
                self.usual = -1
                self.receiver = None
                if self.sent:
                    self._count()
                if self._given(receiver, data):
                    receiver.reply_done(self)
                return
            self._plain = False
        try:
            if self._sync_packets:
                data = self._take_sync(data)
                if receiver is UNHEARD and not self._sync_packets:
                    self._heard()
                if not data:
                    return
            end = self.scanner.feed(data)
            if self._sync_error is not None:
                if end >= 0:
                    reason = self._sync_error.text()
                    self._fail(ProxyError("settings_failed", host=self.host, reason=reason))
                return
            while 0 <= end < len(data):
                if self.replies == 1:
                    raise ProtocolError("bytes follow the end of the reply")
                self._reply_over(receiver, data[:end])
                if self.receiver is not receiver:
                    return  # the connection is closed
                data = data[end:]
                end = self.scanner.feed(data)
        except ProtocolError as problem:
            self._fail(ProxyError("backend_protocol", host=self.host, reason=str(problem)))
            return
        if end >= 0:
            self._reply_over(receiver, data)
            return
        if self._held:
            data = self._held + data
            self._held = b""
        if len(data) < _HOLD_LIMIT and self.scanner.in_definitions:
            self._held = data  # no server puts an error among them, and some clients take it for one
            return
        partial = self.scanner.partial
        if 0 < partial <= len(data) and (partial < _HOLD_LIMIT or receiver.whole):
            self._held = data[-partial:]
            data = data[:-partial]
        self._torn = partial > len(self._held) or self.scanner.within_row
        if data:
            self.given = self.scanner.seq
            self._given(receiver, data)

    def _reply_over(self, receiver: Receiver, data: bytes) -> None:
        """`data` are the last bytes of a reply."""
        if self._held:
            data = self._held + data
            self._held = b""
        scanner = self.scanner
        if scanner.err is not None:
            self.unclean = self.unclean or not receiver.own  # an error does not tell what was done before it
            self.undone = self.undone or (self.branch != b"" and scanner.err.code in _BRANCH_UNDONE)
        elif scanner.status & _WATCHED not in (self.settings.status, self.usual):
            data = self._judged(receiver, data)
            if not data:
                return
        self._torn = False
        self.usual = -1
        self.given = 0
        self.replies -= 1
        more = self.replies > 0
        if not more:
            self.receiver = None  # the connection is free: the receiver may send again from `reply_done`
        sent = self.sent
        if sent:
            self._count()
        if not self._given(receiver, data):
            return
        receiver.reply_done(self)
        if more:
            if self.sent == sent:  # else the receiver has said what the next reply is counted from
                self.sent = self.ended if sent else 0.0
            self.scanner.start()
            if self._numbers is not None:
                self.scanner.first_number = self._numbers[-self.replies]

    def _judged(self, receiver: Receiver, data: bytes) -> bytes:
        """The last bytes of a reply with unusual status flags, as the receiver gets them. b"" when they do
        not fit what the connection is to be like: it is closed then.
        """
        scanner, changes = self.scanner, UNCHANGED
        try:
            if scanner.status & _CHANGED:
                data, changes = self._untracked(data)
        except ProtocolError as problem:
            self._fail(ProxyError("backend_protocol", host=self.host, reason=str(problem)))
            return b""
        autocommit = self.settings.get("autocommit")
        now = b"1" if scanner.status & _AUTOCOMMIT else b"0"
        if autocommit != now and autocommit in (b"0", b"1"):
            if not (changes.state or receiver.own):
                self._fail(ProxyError("unclean_connection", host=self.host, state=_AUTOCOMMIT_IS[now]))
                return b""
            self.settings = self.settings.with_values({"autocommit": now})
        if changes.database is not None:  # MySQL tells the same after a CALL in another database
            moved = changes.database != self.database
            changes = changes._replace(database=changes.database if moved else None, left=self.database)
            self.database = self.database if not moved else changes.database or None
        if changes != UNCHANGED and not receiver.own:
            self.unclean = self.unclean or changes.state
            self.changes = self.changes.then(changes)
        accepted = receiver.accepts(self, bool(changes))
        if scanner.status & _IN_TRANS and not accepted:
            self._fail(ProxyError("unclean_connection", host=self.host, state="a transaction is open"))
            return b""
        return data

    def _untracked(self, data: bytes) -> tuple[bytes, Changes]:
        """The same without the server's session tracking, and the changes that it told."""
        scanner = self.scanner
        scanner.status &= ~_CHANGED
        changes, size = Changes(state=True), scanner.ok_size
        if scanner.ok is None:  # MariaDB's EOF only says that there was something
            data = data[:-2] + scanner.status.to_bytes(2, "little")
        else:
            scanner.ok, changes = untracked(scanner.ok)
            shown = rewritten(scanner.ok, data[3 - size])
            data, scanner.ok_size = data[:-size] + shown, len(shown)
        return data, changes

    def _heard(self) -> None:
        """What nobody waited for is answered."""
        self.receiver = None
        error, self._sync_error = self._sync_error, None
        if error is not None:
            self.close()

    def _take_sync(self, data: bytes) -> bytes:
        """Take the sync statements' replies off; returns what follows them."""
        data = self._sync_tail + data
        pos, numbers = 0, self._numbers
        while self._sync_packets and len(data) - pos >= 4:
            stop = pos + 4 + int.from_bytes(data[pos : pos + 3], "little")
            if stop > len(data):
                break
            payload = data[pos + 4 : stop]
            number = FIRST_NUMBER if numbers is None else numbers[-self._sync_packets - self.replies]
            if not FIRST_NUMBER <= data[pos + 3] <= number:
                raise ProtocolError("what was sent is not an answer to what was asked")
            pos = stop
            self._sync_packets -= 1
            if payload[:1] == b"\xff":
                self._sync_error = self._sync_error or parse_err(payload)
            elif payload[:1] == b"\0":
                ok = parse_ok(payload)
                self.scanner.status = ok.status & ~_CHANGED  # a SET is one
                if ok.status & _CHANGED and (before := untracked(ok)[1].transaction) is not None:
                    self.tracked_before = before
            else:
                raise ProtocolError("a command that sets something was answered by rows")
        self._sync_tail = data[pos:] if self._sync_packets else b""
        if self._sync_packets:
            return b""
        if self.kill_wanted:
            self.kill_query()
        return data[pos:]

    def kill_query(self) -> None:
        """KILL QUERY for the statement at work; its reply (error 1317) comes over this connection. A sync
        statement in front of it is not killed: the statement would run all the same, with other settings.
        """
        self.doomed = True
        self.kill_wanted = self._sync_packets > 0
        if not self.kill_wanted:
            self.owner.kill_soon(self.thread_id, self.capability_set, query_only=True)

    def _fail(self, error: ProxyError) -> None:
        """The connection cannot be used any more: tell the receiver and close."""
        self._give_up()
        receiver, self.receiver = self.receiver, None
        clean = self.at_packet_end
        self.close()
        if receiver is not None:
            receiver.reply_lost(self, error, clean)

    def _given(self, receiver: Receiver, data: bytes) -> bool:
        """Give the receiver bytes of its reply. False: it cannot read them, and was told that it is lost."""
        try:
            receiver.reply_data(self, data)
        except ProtocolError as problem:
            self._unreadable(receiver, problem)
            return False
        return True

    def _unreadable(self, receiver: Receiver, problem: ProtocolError) -> None:
        """What a receiver has to read of its reply is not as it must be. Nobody knows what its client was
        given of it, so it is torn.
        """
        error = ProxyError("backend_protocol", host=self.host, reason=str(problem))
        log.warning("unreadable reply", host=self.host, reason=str(problem))
        if self.receiver is receiver:
            self._give_up()
            self.receiver = None
        else:
            self._count_error()  # it was complete, and counted
        self.close()
        receiver.reply_lost(self, error, clean=False)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.closed:
            return
        self.closed = True
        self._give_up()
        self._let_go()
        self.owner.connection_closed(self)
        self._tell_lost(ProxyError("host_lost", host=self.host, reason=ending(exc)))

    def _tell_lost(self, error: ProxyError) -> None:
        receiver, self.receiver = self.receiver, None
        if receiver is not None:
            receiver.reply_lost(self, error, self.at_packet_end)

    def pause_writing(self) -> None:
        if self.filled is not None:
            self.filled(True)

    def resume_writing(self) -> None:
        if self.filled is not None:
            self.filled(False)

    def eof_received(self) -> bool:
        return False
