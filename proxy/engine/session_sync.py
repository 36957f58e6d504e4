"""What a connection is told before a session's statement, in the statement's own write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from proxy.backends.connection import BackendConnection
from proxy.session.transaction import HIDDEN, LOCKED, PROFILED, XA, modes_of
from proxy.wire.constants import Status
from proxy.wire.packets import query_packet
from rewriter.plans.characteristics import PLAIN
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.facts import StatementFacts
from rewriter.sql.statements.found_rows import PRIMED

if TYPE_CHECKING:
    from proxy.backends.settings import Settings
    from proxy.session.state import Session
    from proxy.session.transaction import Transaction

_IN_TRANS: Final = int(Status.IN_TRANS)
#: So many rows FOUND_ROWS() tells of after `_PRIME`: most likely no statement finds just these.
NEVER_FOUND = 729
#: The text of the warning that a connection has before a statement which may keep it.
OLDER: Final = "shardgate: a warning of an earlier statement"
_OLDER: Final = b"SIGNAL SQLSTATE '01000' SET MYSQL_ERRNO = 1642, MESSAGE_TEXT = '%s'" % OLDER.encode()
#: Has session tracking tell what SET TRANSACTION in code sets for the next transaction. It does not know what
#: was set before.
_TELL_TRANSACTION: Final = b"SET session_track_transaction_info='CHARACTERISTICS'"
TELL_TRANSACTION_NO_MORE: Final = b"SET session_track_transaction_info='OFF'"
PRIMING_VARIABLE = "shardgate_primed"
_NINE = b"(SELECT 1" + b" UNION ALL SELECT 1" * 8 + b")"
_COUNTED = b"SQL_CALC_FOUND_ROWS NULL INTO @%s FROM %s AS a, %s AS b, %s AS c LIMIT 1" % (
    PRIMING_VARIABLE.encode(), _NINE, _NINE, _NINE,
)  # fmt: skip
#: Whatever the session's `max_join_size` is.
_PRIME = {
    "mariadb": b"SET STATEMENT sql_big_selects=1 FOR SELECT " + _COUNTED,
    "mysql": b"SELECT /*+ SET_VAR(sql_big_selects=1) */ " + _COUNTED,
}


def effects_packets(session: Session, conn: BackendConnection, effects: Effects) -> tuple[bytes, int]:
    """The packets that make the connection's LAST_INSERT_ID(), FOUND_ROWS() and ROW_COUNT() such that what
    the server is asked for afterwards is known to be the statement's own, or this session's.
    """
    assigning(session, conn, effects)
    packets = []
    if effects.found_rows == PRIMED and primes(session, conn):
        packets.append(_PRIME[session.env.flavour.name])
    if effects.may_ask_insert_id:
        packets.append(b"SET last_insert_id=%d" % session.last_insert_id)
    if len(packets) == 2 and session.row_count == 1:
        packets.reverse()  # what changes no rows leaves ROW_COUNT() as it was: SELECT INTO makes it 1, SET 0
    if asks_for_warnings(session, effects):
        packets.append(_OLDER)
    if effects.routine or effects.calls:
        packets.insert(0, _TELL_TRANSACTION)
    return b"".join(map(query_packet, packets)), len(packets)


def primes(session: Session, conn: BackendConnection) -> bool:
    """Whether FOUND_ROWS() of the connection can be set to a value that shows whether it changes later."""
    return XA not in session.transaction.pins.get(conn.host, ())


def priming_packet(session: Session) -> bytes:
    """The statement that does."""
    return query_packet(_PRIME[session.env.flavour.name])


def asks_for_warnings(session: Session, effects: Effects) -> bool:
    """Whether only the server knows if the statement keeps the warnings that the session has: it runs code,
    which keeps them on MariaDB unless it touches a table or gives warnings of its own, or it waits for a lock
    of GET_LOCK in vain, which ends them.
    """
    if not session.diagnostics or not session.env.flavour.keeps_warnings:
        return False
    return effects.routine or effects.locks or bool(effects.calls)


def assigning(session: Session, conn: BackendConnection, effects: Effects) -> None:
    """Note that nobody knows the values of the user variables that a statement is about to assign. Reading
    them back ends that. Where a way of running forgets to, the next session's SET gives them their values, so
    that it never sees another session's.
    """
    _unsure(session, conn, effects.variables)


def preparing(session: Session, conn: BackendConnection, facts: StatementFacts | None) -> None:
    """Note the same of a statement that `conn` prepares: servers assign variables in constant parts of a
    condition at PREPARE. If `facts` are unknown (None), or the variables cannot be read and the session keeps
    the connection, it is reset before another session gets it.
    """
    if facts is None or HIDDEN in session.transaction.pins.get(conn.host, ()):
        conn.unclean = True
    else:
        _unsure(session, conn, facts.assigns)


def _unsure(session: Session, conn: BackendConnection, variables: Iterable[str]) -> None:
    names = [f"@{name}" for name in variables if session.names(name)]
    if names:
        conn.settings = conn.settings.unsure_of(names)


def open_on(transaction: Transaction, conn: BackendConnection) -> bool:
    """Whether the session's transaction is open on `conn`, as the server has said, too: it needs no sync
    packets then, if its settings are the session's.
    """
    if transaction.explicit and conn.host not in transaction.opened:
        return False
    return transaction.held.get(conn.host) is conn and bool(conn.scanner.status & _IN_TRANS)


def sync_packets(
    session: Session,
    conn: BackendConnection,
    settings: Settings | None = None,
    *,
    opens: bool = True,
    by_itself: bool = True,
) -> tuple[bytes, int]:
    """The packets that bring `conn` into the session's state before its next statement, and how many they
    are. `settings`: others than the session's, for one statement. `opens`: the statement opens a transaction,
    of its own at least, as any that touches a table. `by_itself`: a server opens one for the statement where
    autocommit is off; it does not for statements without tables, whose host would say that none is open while
    one is on another host.

    From here on the connection is taken to be in that state: a sync statement that fails closes it.
    """
    packets, count = b"", 0
    settings = (settings or session.settings).base
    if conn.settings is not settings:
        packets, count = settings.packets_from(conn.settings)
        conn.has(settings)
        if settings.profiles:
            conn.pinned = True
            pinned = session.transaction.pins.setdefault(conn.host, [])
            pinned += [] if PROFILED in pinned else [PROFILED]
    transaction, branch = session.transaction, b""
    if transaction.explicit:
        opens = conn.host not in transaction.opened
    elif session.autocommit:
        opens = opens and session.settings is not settings
    else:
        opens = opens and not conn.in_transaction
        kept = transaction.pins.get(conn.host, ())
        if opens and not by_itself and transaction.elsewhere(conn.host) and not {LOCKED, XA} & {*kept}:
            packets += query_packet(PLAIN.start)
            count += 1
        if opens and session.distributes:
            transaction.begin_implicitly(modes_of(session.settings))
    if opens:
        if transaction.explicit and (transaction.first is not None or session.distributes):
            transaction.distribute(conn, session.identities)
            branch = conn.branch
        opening, more = transaction.opening(settings, branch)
        packets += opening
        count += more
        if transaction.next and not transaction.explicit:
            conn.pinned = True  # should the statement not use it up, nobody else may
    if transaction.explicit:
        transaction.opened |= {conn.host}
        transaction.held[conn.host] = conn
    return packets, count
