"""A session's transaction: which backend connections it holds, and how they are opened.

BEGIN sends nothing. The first statement for a host takes a connection there and carries START TRANSACTION
(and what must come before and after it) as preludes in its own network write. From then on that connection is
the session's until COMMIT or ROLLBACK. With autocommit off the server opens a transaction by itself: the
IN_TRANS flag of a reply says so, and the connection is held for the same reason. Nothing here does I/O.
"""

from __future__ import annotations

from typing import NamedTuple

from proxy.backends.connection import BackendConnection
from proxy.backends.settings import Settings
from proxy.wire.packets import frame

#: What a plain BEGIN sends to each host.
START = b"START TRANSACTION"

_LOST = "transaction_lost"

#: What LOCK TABLES ties a session by.
LOCKED = ("tables", "")
#: And XA START.
XA = ("xa", "")


class Modes(NamedTuple):
    """What transactions of a session are, unless they say otherwise. `level`: as SET has it; None for the
    servers' own.
    """

    level: bytes | None
    read_only: bool


def modes_of(settings: Settings) -> Modes:
    """As the session has set them; MariaDB's variables have had other names."""
    level = settings.get("transaction_isolation") or settings.get("tx_isolation")
    read_only = settings.get("transaction_read_only") or settings.get("tx_read_only")
    return Modes(level, read_only == b"1")


def _level(modes: Modes, settings: Settings) -> bytes:
    """The statement that gives the next transaction the isolation level of `modes`, which `settings` have
    not.
    """
    if modes.level is not None:
        return b"SET TRANSACTION ISOLATION LEVEL " + modes.level.strip(b"'").replace(b"-", b" ")
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
        "explicit",
        "held",
        "lost",
        "lost_by",
        "modes",
        "next_isolation",
        "opened",
        "savepoints",
        "spots",
        "ties",
    )

    def __init__(self) -> None:
        self.explicit = False  # between BEGIN and COMMIT or ROLLBACK
        self.begin = START
        #: The session's isolation level and READ ONLY when it was begun: what is set later is not for it.
        self.modes: Modes | None = None
        self.held: dict[str, BackendConnection] = {}
        self.opened: set[str] = set()  # hosts where an explicit transaction has begun
        self.savepoints: list[bytes] = []
        self.next_isolation: bytes | None = None  # SET TRANSACTION …: for the next transaction only
        self.spots: list[Spot] = []  # where it has been, with transaction_mode = 'single'
        #: What keeps the session on its connection to a host: kind and name, as in `rewriter.text.effects`.
        self.ties: dict[str, list[tuple[str, str]]] = {}
        self.lost = ""  # why the transaction cannot go on: everything is refused until ROLLBACK
        self.lost_by = _LOST  # the error that says so

    @property
    def open(self) -> bool:
        """Whether the client is inside a transaction, as the IN_TRANS status flag shows it."""
        return self.explicit or any(conn.in_transaction for conn in self.held.values())

    def elsewhere(self, host: str) -> bool:
        """Whether it is open on another host than this one."""
        return any(conn.in_transaction for other, conn in self.held.items() if other != host)

    @property
    def pending(self) -> bool:
        """Whether there is something that an implicit commit ends: what SET TRANSACTION has set, too."""
        return bool(self.held or self.explicit or self.next_isolation)

    def keeps(self, conn: BackendConnection) -> bool:
        """Whether the session needs `conn` for what the server keeps on it, besides a transaction."""
        return conn.tied and bool(self.ties.get(conn.host))

    def start(self, begin: bytes, modes: Modes | None = None) -> None:
        self.explicit = True
        self.begin = begin
        self.modes = modes
        self.opened.clear()
        self.savepoints.clear()
        self.spots = []
        self.lost, self.lost_by = "", _LOST

    def refuse(self, error: str, reason: str) -> None:
        """Refuse all that follows with this error, until ROLLBACK."""
        self.explicit = True
        self.lost, self.lost_by = reason, error

    def end(self) -> list[BackendConnection]:
        """The transaction is over for the session; the connections it held, which the caller gives back."""
        held = [conn for conn in self.held.values() if not self.keeps(conn)]
        self.held = {host: conn for host, conn in self.held.items() if self.keeps(conn)}
        self.explicit = False
        self.opened.clear()
        self.next_isolation = None
        self.savepoints.clear()
        self.spots = []
        self.lost, self.lost_by = "", _LOST
        return held

    @property
    def read_only(self) -> bool:
        """Whether the explicit transaction was begun so."""
        begin = self.begin.upper()
        if b"READ ONLY" in begin or b"READ WRITE" in begin:
            return b"READ ONLY" in begin
        return self.next_isolation is not None and b"READ ONLY" in self.next_isolation

    def opening(self, settings: Settings) -> tuple[bytes, int]:
        """The packets that open this transaction on one more host, and how many they are. With autocommit off
        the statement itself opens it. `settings`: what the connection has.
        """
        statements = [b"SET TRANSACTION " + self.next_isolation] if self.next_isolation else []
        if self.explicit:
            begin = self.begin
            if self.modes is not None and self.modes != (now := modes_of(settings)):
                said = (self.next_isolation or b"") + begin.upper()
                if self.modes.level != now.level and b"ISOLATION" not in said:
                    statements.append(_level(self.modes, settings))
                if self.modes.read_only != now.read_only and b"READ " not in said.replace(b"READ COMM", b""):
                    mode = b" READ ONLY" if self.modes.read_only else b" READ WRITE"
                    begin += (b"," if b"SNAPSHOT" in said else b"") + mode
            statements.append(begin)
        statements.extend(b"SAVEPOINT " + name for name in self.savepoints)
        return b"".join(frame(b"\x03" + sql) for sql in statements), len(statements)
