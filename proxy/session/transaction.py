"""A session's transaction: which backend connections it holds, and how they are opened.

BEGIN sends nothing. The first statement for a host takes a connection there and carries START TRANSACTION
(and what must come before and after it) as preludes in its own network write. From then on that connection is
the session's until COMMIT or ROLLBACK. With autocommit off the server opens a transaction by itself: the
IN_TRANS flag of a reply says so, and the connection is held for the same reason. Nothing here does I/O.
"""

from __future__ import annotations

from typing import NamedTuple

from proxy.backends.connection import BackendConnection
from proxy.wire.packets import frame

#: What a plain BEGIN sends to each host.
START = b"START TRANSACTION"


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
        "next_isolation",
        "opened",
        "savepoints",
        "spots",
        "ties",
    )

    def __init__(self) -> None:
        self.explicit = False  # between BEGIN and COMMIT or ROLLBACK
        self.begin = START
        self.held: dict[str, BackendConnection] = {}
        self.opened: set[str] = set()  # hosts where an explicit transaction has begun
        self.savepoints: list[bytes] = []
        self.next_isolation: bytes | None = None  # SET TRANSACTION …: for the next transaction only
        self.spots: list[Spot] = []  # where it has been, with transaction_mode = 'single'
        #: What keeps the session on its connection to a host: kind and name, as in `rewriter.effects`.
        self.ties: dict[str, list[tuple[str, str]]] = {}
        self.lost = ""  # why the transaction cannot go on: everything is refused until ROLLBACK

    @property
    def open(self) -> bool:
        """Whether the client is inside a transaction, as the IN_TRANS status flag shows it."""
        return self.explicit or any(conn.in_transaction for conn in self.held.values())

    def keeps(self, conn: BackendConnection) -> bool:
        """Whether the session needs `conn` for what the server keeps on it, besides a transaction."""
        return conn.tied and bool(self.ties.get(conn.host))

    def start(self, begin: bytes) -> None:
        self.explicit = True
        self.begin = begin
        self.opened.clear()
        self.savepoints.clear()
        self.spots = []
        self.lost = ""

    def end(self) -> list[BackendConnection]:
        """The transaction is over for the session; the connections it held, which the caller gives back."""
        held = [conn for conn in self.held.values() if not self.keeps(conn)]
        self.held = {host: conn for host, conn in self.held.items() if self.keeps(conn)}
        self.explicit = False
        self.opened.clear()
        self.next_isolation = None
        self.savepoints.clear()
        self.spots = []
        self.lost = ""
        return held

    @property
    def read_only(self) -> bool:
        """Whether the explicit transaction was begun so."""
        begin = self.begin.upper()
        if b"READ ONLY" in begin or b"READ WRITE" in begin:
            return b"READ ONLY" in begin
        return self.next_isolation is not None and b"READ ONLY" in self.next_isolation

    def opening(self) -> tuple[bytes, int]:
        """The packets that open this transaction on one more host, and how many they are. With autocommit off
        the statement itself opens it.
        """
        statements = [b"SET TRANSACTION " + self.next_isolation] if self.next_isolation else []
        if self.explicit:
            statements.append(self.begin)
        statements.extend(b"SAVEPOINT " + name for name in self.savepoints)
        return b"".join(frame(b"\x03" + sql) for sql in statements), len(statements)
