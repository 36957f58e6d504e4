"""A session's transaction: which backend connections it holds, and how they are opened.

BEGIN sends nothing. The first statement for a host takes a connection there and carries START TRANSACTION
(and what must come before and after it) as session sync in its own network write. From then on that
connection is the session's until COMMIT or ROLLBACK. With autocommit off the server opens a transaction by
itself: the IN_TRANS flag of a reply says so, and the connection is held for the same reason. Nothing here
does I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final, NamedTuple

from config import xa
from proxy.backends.connection import BackendConnection
from proxy.backends.settings import Settings
from proxy.errors import ProxyError
from proxy.wire.constants import Status
from proxy.wire.packets import frame
from rewriter.plans.characteristics import PLAIN, Characteristics, Completion, Isolation
from rewriter.sql.statements.effects import Pin

from .reading import charset_of
from .savepoints import Savepoint

_READ_ONLY = int(Status.IN_TRANS_READONLY)
_LOST = "transaction_lost"
#: The errors of a transaction that is lost with a connection: rolled back, by the server; by the proxy, which
#: has closed it; and nobody knows.
CUT = "transaction_cut"
UNDONE = "transaction_undone"
UNKNOWN = "transaction_unknown"
#: The error of state that was lost with a connection, when no statement has failed for it.
STATE_GONE: Final = "state_gone"

#: Behind COMMIT or ROLLBACK: that and no more, whatever completion_type says.
PLAINLY: Final = b" AND NO CHAIN NO RELEASE"
#: What LOCK TABLES pins a session by.
LOCKED = ("tables", "")
#: And a statement with `profiling` on: SHOW PROFILES is the connection's.
PROFILED = ("profiling", "")
#: And code after which the user variables of the connection cannot be read.
HIDDEN = ("routine", "")
#: And FLUSH TABLES … WITH READ LOCK.
FLUSHED = ("flush", "")
#: And XA START.
XA = ("xa", "")
UNKNOWN_IDENTITY: Final = "0" * 16
#: A consistent read, by which a branch gets its snapshot.
_SNAPSHOT: Final = (
    f"SELECT COUNT(*) INTO @shardgate_primed FROM `{xa.DATABASE}`.`{xa.DECISIONS}` WHERE gtrid = ''".encode()
)


_LEVELS = {level.literal: level for level in Isolation}
_COMPLETIONS = {
    b"1": Completion.CHAIN, b"CHAIN": Completion.CHAIN,
    b"2": Completion.RELEASE, b"RELEASE": Completion.RELEASE,
}  # fmt: skip


def modes_of(settings: Settings) -> Characteristics:
    """What transactions of a session are, unless they say otherwise: as it has set it. No isolation level is
    the servers' own. MariaDB's variables have had other names.
    """
    return _modes_of(settings.system)


@lru_cache(64)
def _modes_of(settings: Settings) -> Characteristics:
    level = settings.get("transaction_isolation") or settings.get("tx_isolation") or b""
    read_only = settings.get("transaction_read_only") or settings.get("tx_read_only")
    return Characteristics(_LEVELS.get(level), read_only == b"1")


def completion_of(settings: Settings) -> Completion:
    """What follows COMMIT and ROLLBACK that do not say it."""
    return _completion_of(settings.system)


@lru_cache(64)
def _completion_of(settings: Settings) -> Completion:
    kind = (settings.get("completion_type") or b"").strip(b"'").upper()
    return _COMPLETIONS.get(kind, Completion.NO_CHAIN)


def _level(modes: Characteristics, settings: Settings) -> bytes:
    """The statement that gives the next transaction the isolation level of `modes`, which `settings` have
    not.
    """
    if modes.isolation is not None:
        return Characteristics(modes.isolation).set
    name = b"tx_isolation" if settings.get("tx_isolation") else b"transaction_isolation"
    return b"SET @@%s = @@global.%s" % (name, name)


class Spot(NamedTuple):
    """Where a transaction has been: a shard of a keyspace, or (None) a host's tables that are on none."""

    host: str
    keyspace: str = ""
    shard: int | None = None

    def excludes(self, other: Spot) -> bool:
        """Whether a transaction that stays on one shard cannot have been in both."""
        if self.host != other.host:
            return True
        sharded = self.shard is not None and other.shard is not None
        return sharded and (self.keyspace, self.shard) != (other.keyspace, other.shard)

    def __str__(self) -> str:
        return self.host if self.shard is None else f"shard {self.shard} of {self.keyspace} on {self.host}"


class Transaction:
    """The open transaction of one session, or none."""

    __slots__ = (
        "begin",
        "code",
        "ending",
        "explicit",
        "first",
        "gtrid",
        "held",
        "lost",
        "lost_by",
        "modes",
        "next",
        "number",
        "opened",
        "pins",
        "savepoints",
        "since",
        "spots",
        "told",
    )

    def __init__(self) -> None:
        self.explicit = False  # between BEGIN and COMMIT or ROLLBACK
        self.begin = PLAIN  # as START TRANSACTION has said
        self.code = False  # procedures, blocks or prepared texts have run in it
        #: The session's isolation level and READ ONLY when it was begun: what is set later is not for it.
        self.modes: Characteristics | None = None
        self.held: dict[str, BackendConnection] = {}
        self.ending = b""  # COMMIT or ROLLBACK, while its one host has it
        # tuples and a frozenset: an empty one takes no memory, and most clients have no transaction
        self.opened: frozenset[str] = frozenset()  # hosts where an explicit transaction has begun
        self.savepoints: tuple[Savepoint, ...] = ()
        self.next: Characteristics | None = None  # SET TRANSACTION: for the next transaction only
        self.spots: tuple[Spot, ...] = ()  # where it has been, with transaction_mode = 'single'
        #: What keeps the session on its connection to a host: kind and name, as `Effects.pins` has them.
        self.pins: dict[str, list[tuple[str, str]]] = {}
        #: Why the transaction cannot go on: everything is refused until ROLLBACK. Or, `lost_by` STATE_GONE,
        #: the host where state of the session is gone: the next statement is refused, whatever it is.
        self.lost = ""
        self.lost_by = _LOST  # the error that says so
        self.told = False  # the client has been told of it
        #: With transaction_mode = 'xa': the connection that holds the decision, while it may be on more hosts
        #: than its own; and its name, as soon as it is.
        self.first: BackendConnection | None = None
        self.gtrid = b""
        self.since = 0.0  # when the last one was begun (monotonic)
        self.number = 0  # of those that were begun

    @property
    def open(self) -> bool:
        """Whether the client is inside a transaction, as the IN_TRANS status flag shows it."""
        return self.explicit or any(conn.in_transaction for conn in self.held.values())

    @property
    def locks_tables(self) -> bool:
        """Whether LOCK TABLES holds somewhere, which a transaction that begins would end."""
        return any(LOCKED in kept for kept in self.pins.values())

    def elsewhere(self, host: str) -> bool:
        """Whether it is open on another host than this one."""
        return any(conn.in_transaction for other, conn in self.held.items() if other != host)

    @property
    def pending(self) -> bool:
        """Whether there is something that an implicit commit ends: what SET TRANSACTION has set, too."""
        return bool(self.held or self.explicit or self.next)

    def keeps(self, conn: BackendConnection) -> bool:
        """Whether the session needs `conn` for what the server keeps on it, besides a transaction."""
        return conn.pinned and bool(self.pins.get(conn.host))

    def holder(self, name: Pin) -> str | None:
        """The host whose connection holds a prepared statement or a handler of this name; None if there is
        none.
        """
        return next((host for host, kept in self.pins.items() if name in kept), None)

    def start(self, begin: Characteristics = PLAIN, modes: Characteristics | None = None) -> None:
        self.explicit = True
        self.number += 1
        self.begin, self.code = begin, False
        self.modes = modes
        self.opened = frozenset()
        self.savepoints = ()
        self.spots = ()
        self.lost, self.lost_by, self.ending = "", _LOST, b""
        self.first, self.gtrid = None, b""

    def begin_implicitly(self, modes: Characteristics) -> None:
        """Autocommit is off, and the next statement is its first: with transaction_mode = 'xa' it is begun as
        by BEGIN, so that it is known where it is open.
        """
        self.explicit, self.begin, self.modes = True, PLAIN, modes
        self.opened = frozenset()
        self.first, self.gtrid = None, b""

    def go_on_from(
        self, conn: BackendConnection, modes: Characteristics, identities: Mapping[str, str] | None
    ) -> None:
        """Code has begun a transaction on `conn`: it is the session's, and opens on further hosts as after
        BEGIN. `identities`: of hosts, if it is distributed.
        """
        read_only = True if conn.scanner.status & _READ_ONLY else None
        self.start(Characteristics(read_only=read_only), modes)
        if identities is not None:
            self.distribute(conn, identities)
        self.opened = frozenset((conn.host,))
        self.held[conn.host] = conn
        self.spots = (Spot(conn.host),)

    def refuse(self, error: str, reason: str) -> None:
        """Refuse all that follows with this error, until ROLLBACK."""
        self.explicit = True
        self.lost, self.lost_by, self.told = reason, error, False

    def lose_state(self, host: str) -> None:
        """Refuse the next statement: what the session had on this host is gone, and no error has said so."""
        if not self.lost:
            self.lost, self.lost_by = host, STATE_GONE

    def forget_loss(self) -> None:
        """The client knows of the state that is gone."""
        self.lost, self.lost_by = "", _LOST

    @property
    def loss(self) -> ProxyError:
        """The error of a transaction that is `lost`."""
        return ProxyError(self.lost_by, reason=self.lost, limit=self.lost)

    def end(self) -> list[BackendConnection]:
        """The transaction is over for the session; the connections it held, which the caller gives back."""
        held = [conn for conn in self.held.values() if not self.keeps(conn)]
        self.held = {host: conn for host, conn in self.held.items() if self.keeps(conn)}
        self.explicit = self.code = False
        self.opened = frozenset()
        self.next = None
        self.savepoints = ()
        self.spots = ()
        self.lost, self.lost_by, self.ending = "", _LOST, b""
        self.first, self.gtrid, self.since = None, b"", 0.0
        return held

    @property
    def said(self) -> Characteristics:
        """What was said of the explicit transaction, before it and by START TRANSACTION."""
        return self.begin if self.next is None else self.begin.over(self.next)

    def distribute(self, conn: BackendConnection, identities: Mapping[str, str]) -> None:
        """`conn` is the next one that it is opened on, with transaction_mode = 'xa'. On the first it is an
        ordinary transaction, on each further one a branch of its own. `identities`: of hosts.
        """
        first = self.first
        if not self.opened:
            self.first, self.gtrid = conn, b""
        elif first is not None and self.read_only is not True:  # None: it was begun in another mode
            if not self.gtrid:
                # one that nobody knows is told at COMMIT: nothing can be decided there
                self.gtrid = xa.new_gtrid(identities.get(first.host, UNKNOWN_IDENTITY), first.thread_id)
            conn.branch = xa.literal(self.gtrid, xa.new_bqual(conn.thread_id, first.host))

    @property
    def read_only(self) -> bool | None:
        """Whether it is READ ONLY, as far as the session has said it."""
        return self.said.over(self.modes or PLAIN).read_only

    def opening(self, settings: Settings, branch: bytes = b"") -> tuple[bytes, int]:
        """The packets that open this transaction on one more host, and how many they are. With autocommit off
        the statement itself opens it. `settings`: what the connection has. `branch`: what XA START names.
        """
        statements = [self.next.set] if self.next is not None else []
        if self.explicit:
            begin = self.begin
            if self.modes is not None and self.modes != (now := modes_of(settings)):
                said = self.said
                if self.modes.isolation is not now.isolation and said.isolation is None:
                    statements.append(_level(self.modes, settings))
                if self.modes.read_only != now.read_only and said.read_only is None:
                    begin = replace(begin, read_only=self.modes.read_only)
            if not branch:
                statements.append(begin.start)
            else:  # XA START says nothing of all that
                if begin.read_only is not None:
                    statements.append(Characteristics(read_only=begin.read_only).set)
                statements.append(b"XA START " + branch)
                if begin.snapshot:
                    statements.append(_SNAPSHOT)
        if self.savepoints:
            charset = charset_of(settings.get("character_set_client") or b"utf8mb4")
            statements.extend(b"SAVEPOINT " + one.written(charset) for one in self.savepoints)
        return b"".join(frame(b"\x03" + sql) for sql in statements), len(statements)
