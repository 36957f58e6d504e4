"""A server connection for a client's statement: how it is taken, and how it is given back.

It is the one that the session keeps on that host, for its transaction or for state that lives on it, or else
one of the pool's. What brings it into the session's state goes in front of the statement (`sync_packets`),
and behind the reply `drain_diagnostics` (`diagnostics`) learns what the session must know of it. Nothing else
in the engine and in the ways of running a plan calls the pools (`backends.host`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.backends.own import apply, change_database
from proxy.backends.settings import RESULTS, Settings
from proxy.backends.waiting import Waiter
from proxy.errors import ProxyError
from proxy.session.transaction import CUT, PLAINLY, UNDONE, UNKNOWN, XA
from proxy.wire.constants import Status
from proxy.wire.packets import Err, query_packet
from rewriter.sql.statements.facts import UNREAD
from rewriter.sql.statements.forms import Kind

from .waiting_room import fenced, read_only, trouble_of

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from proxy.session.state import Session

_IN_TRANS = int(Status.IN_TRANS)
_IN_UTF8: Final = {"character_set_client": b"utf8mb4", "character_set_results": b"utf8mb4", RESULTS: b""}
_LIMITS: Final = frozenset({"sql_select_limit", "max_join_size", "sql_big_selects"})


# -- taken by who goes on in a callback
# -------------------------------------------------------------------------------


def take(client: Exchange, host: str, database: str | None = None) -> BackendConnection | None:
    """One of the pool's that is free now, best one that has the session's settings and `database`."""
    session = client.session
    pool = client.pool(host)
    return pool.state.take(session.settings, database, session.capability_set, session.user.name)


def wait(
    client: Exchange,
    host: str,
    granted: Callable[[BackendConnection], None],
    refused: Callable[[Exception], None],
    database: str | None = None,
) -> Waiter[BackendConnection]:
    """Queue for one of the pool's. `refused` may be called before this returns."""
    session = client.session
    return client.pool(host).wait(
        session.settings, database, session.capability_set, granted, refused, session.user.name, client
    )


def crowded(client: Exchange, host: str) -> bool:
    """Whether the session's user gets no further connection to `host` before one is given back."""
    return client.pool(host).full(client.session.user.name)


# -- taken by a coroutine
# -------------------------------------------------------------------------------------------------


async def connection(
    client: Exchange, host: str, database: str | None = None, settings: Settings | None = None
) -> BackendConnection:
    """The session's own of this host, or else one of the pool's. Raises ProxyError. `settings`: those that it
    is best to have already, if not the session's.
    """
    held = client.session.transaction.held.get(host)
    return held or await outside(client, host, database, settings)


async def outside(
    client: Exchange, host: str, database: str | None = None, settings: Settings | None = None
) -> BackendConnection:
    """One of the pool's, whatever the session has on this host. Raises ProxyError."""
    session = client.session
    pool = client.pool(host)
    return await pool.connection(
        settings or session.settings, database, session.capability_set, session.user.name, client
    )


async def scratch(client: Exchange, host: str, settings: Settings) -> BackendConnection:
    """One of those that rows are gathered on. Raises ProxyError."""
    session = client.session
    pool = client.services.backends.scratch(host)
    return await pool.connection(settings, None, session.capability_set, session.user.name, client)


async def scratch_again(client: Exchange, gone: BackendConnection, settings: Settings) -> BackendConnection:
    """One in the place of one that is closed, to tidy up behind it: of nobody's share. Raises ProxyError."""
    return await client.services.backends.scratch(gone.host).connection(settings, None, gone.capability_set)


@asynccontextmanager
async def borrowed(
    client: Exchange,
    host: str,
    database: str | None = None,
    *,
    joins: bool = False,
    all_rows: bool = False,
    utf8: bool = False,
) -> AsyncIterator[BackendConnection]:
    """A connection with the session's settings: the one it has of this host, or else one outside its
    transaction. Closed if its user fails midway. `joins`: the session keeps it if a transaction is open on it
    then, or the session is pinned to it. `all_rows`: for a question of the proxy's own, to which the
    session's limits of rows are nothing. `utf8`: that question and its answer are in utf8mb4.
    """
    session = client.session
    held = session.transaction.held.get(host)
    conn = held or await outside(client, host, database)
    gone: ProxyError | None = None
    try:
        settings = session.settings.base.without(_LIMITS) if all_rows else session.settings.base
        settings = settings.with_values(_IN_UTF8) if utf8 else settings
        await apply(conn, settings)
        if database is not None and conn.database != database:
            if await change_database(conn, database) is not None:
                raise ProxyError("unknown_database", database=database)
            await apply(conn, settings)
        yield conn
    except BaseException as error:
        if conn.receiver is not None:
            conn.close()
        gone = error if isinstance(error, ProxyError) and error.lost else None
        raise
    finally:
        if held is not None or session.transaction.held.get(host) is conn:
            if conn.closed:
                lost(client, conn, gone)
        elif joins and not conn.closed and not client.closed:
            give_back(client, conn)
        else:
            free(conn)


@asynccontextmanager
async def asking(client: Exchange, host: str, settings: Settings) -> AsyncIterator[BackendConnection]:
    """A connection outside the session's transaction, with settings of the proxy's own."""
    conn = await outside(client, host, settings=settings)
    try:
        await apply(conn, settings)
        yield conn
    finally:
        free(conn)


# -- given back
# -----------------------------------------------------------------------------------------------------------


def free(conn: BackendConnection) -> None:
    """Give a connection back that the session does not keep. The pool closes one that is at work, and resets
    one that has state of a session; one that is in a transaction is so rolled back.
    """
    conn.owner.release(conn)


def give_back(client: Exchange, conn: BackendConnection, *, failed: bool = False) -> None:
    """After a complete reply: keep `conn` while it carries a transaction or session state, else free it.
    `failed`: the reply was an error.
    """
    transaction = client.session.transaction
    if not (conn.in_transaction or conn.pinned or transaction.held):
        free(conn)
    else:
        give_all_back(client, [conn], failed=failed)


def give_all_back(
    client: Exchange,
    conns: Iterable[BackendConnection],
    *,
    failed: bool = False,
    broken: Iterable[tuple[BackendConnection, ProxyError | None]] = (),
) -> None:
    """After complete replies, with none of the session's connections at work: keep those that carry a
    transaction or session state, free the others. `broken`: those that were lost on the way, and why.
    """
    transaction = client.session.transaction
    if client.closed:
        for conn in conns:
            if transaction.held.get(conn.host) is not conn:
                free(conn)
        return
    transaction.ending = b""
    ended = False
    unused: list[BackendConnection] = []
    gone = list(broken)
    for conn in conns:
        if conn.closed:
            gone.append((conn, None))
            continue
        if transaction.held.get(conn.host, conn) is not conn:
            unused.append(conn)  # one that was needed besides; the session keeps one of a host
            continue
        if conn.in_transaction and not conn.undone:
            if not transaction.since:
                transaction.since = client.begun  # with autocommit off its first statement has begun it
            transaction.held[conn.host] = conn
            continue
        if transaction.held.get(conn.host) is conn:
            del transaction.held[conn.host]
            ended = ended or _was_implicit(client.session, conn) or conn.host in transaction.opened
        if transaction.keeps(conn):
            transaction.held[conn.host] = conn
        else:
            unused.append(conn)
    for conn in unused:
        free(conn)
    if ended and (transaction.explicit or not client.session.autocommit):
        transaction_ended_by_server(client, rolled_back=failed)
    for conn, error in gone:
        lost(client, conn, error)


def _was_implicit(session: Session, conn: BackendConnection) -> bool:
    """Whether a transaction that autocommit = 0 had begun was open on `conn`, which the session has kept, and
    on which none is open now.
    """
    transaction = session.transaction
    if session.autocommit:
        return False
    return not transaction.keeps(conn) or (transaction.since > 0.0 and not transaction.elsewhere(conn.host))


def end_transaction(session: Session) -> None:
    """The session's transaction is over, or rolled back: free what it kept for that alone, and roll back what
    is open on a connection that the session needs for more.
    """
    for conn in session.transaction.end():
        free(conn)
    end_on_kept(session, b"ROLLBACK")


def refuse_the_rest(session: Session, error: ProxyError) -> None:
    """Roll back what is open: `error` says why the transaction cannot go on. All that follows is refused
    until the client has ended it.
    """
    session.note_error(error.code, str(error), error.sqlstate)
    end_transaction(session)
    session.transaction.refuse(error.kind.name, str(error.details["reason"]))


def end_on_kept(session: Session, sql: bytes) -> None:
    """COMMIT or ROLLBACK on the connections that the session keeps beyond its transaction, which is over."""
    for conn in session.transaction.held.values():
        if conn.in_transaction and not conn.closed and conn.receiver is None:
            for statement in ending(conn, sql):
                conn.tell(query_packet(statement))
            conn.branch, conn.undone = b"", False
            conn.scanner.status &= ~_IN_TRANS


def ending(conn: BackendConnection, sql: bytes) -> list[bytes]:
    """COMMIT or ROLLBACK as the statements that end what is open on `conn` alone. Where the server has rolled
    a branch back already, XA END is an error; and MySQL refuses XA ROLLBACK without it: then only closing the
    connection ends it.
    """
    if not conn.branch:
        return [sql + PLAINLY]
    end = [] if conn.undone else [b"XA END " + conn.branch]
    if sql == b"ROLLBACK" or conn.undone:
        return [*end, b"XA ROLLBACK " + conn.branch]
    return [*end, b"XA COMMIT " + conn.branch + b" ONE PHASE"]


def release_all(client: Exchange) -> None:
    """Free every connection that the session keeps, whatever it is pinned to."""
    transaction = client.session.transaction
    for host in [host for host, kept in transaction.pins.items() if XA in kept]:
        _let_go(transaction.held.get(host))
    kept = [*transaction.end(), *transaction.held.values()]
    transaction.held.clear()
    transaction.pins.clear()
    for conn in kept:
        free(conn)


def leave(client: Exchange) -> None:
    """The client is gone: free what its session keeps. It stays noted what that was: whoever is still at work
    for the client frees only what he has taken himself.
    """
    pins = client.session.transaction.pins
    for conn in client.session.transaction.held.values():
        if XA in pins.get(conn.host, ()):
            _let_go(conn)
        free(conn)


def _let_go(conn: BackendConnection | None) -> None:
    """Close a connection with an XA transaction of the client's own: one that is prepared outlives it, but on
    MariaDB it would be lost by the reset.
    """
    if conn is not None and conn.receiver is None:
        conn.close()


def discard(client: Exchange, conn: BackendConnection) -> None:
    """The client is gone in the middle of a statement: close `conn`, and end the statement on the server."""
    held = client.session.transaction.held
    if held.get(conn.host) is conn:
        del held[conn.host]
        client.session.transaction.pins.pop(conn.host, None)
    conn.owner.discard(conn, kill=True)


def transaction_ended_by_server(client: Exchange, rolled_back: bool) -> None:
    """A host ended its part of the transaction by itself; the others follow, as on one server.

    A deadlock rolls back, an implicit commit (DDL) commits.
    """
    transaction = client.session.transaction
    ended = transaction.end()
    end_on_kept(client.session, b"ROLLBACK" if rolled_back else b"COMMIT")
    for other in ended:
        if rolled_back:
            free(other)  # still in a transaction: the reset rolls it back
        else:
            client.services.spawn(_commit(client, other), "implicit commit")


async def _commit(client: Exchange, conn: BackendConnection) -> None:
    statements = [query_packet(one) for one in ending(conn, b"COMMIT")]
    try:
        await Collector().run(conn, b"".join(statements), len(statements) - 1)
        conn.branch = b""
    except ProxyError:
        conn.close()
    free(conn)


def refused_by_master(client: Exchange, host: str, error: Err | ProxyError) -> Err | ProxyError:
    """The error of a statement that has done nothing. Where `host` takes no writes now, as the waiting room
    knows it; but a transaction that is open there can only be run again, on the next master.
    """
    if isinstance(error, Err):
        error = fenced(error, client.snapshot.topology)
    if not isinstance(error, Err) or not read_only(error):
        return error
    error = replace(error, host=host)
    conn, trouble = client.session.transaction.held.get(host), trouble_of(error)
    open_here = conn is not None and conn.in_transaction
    if not open_here or trouble is None or not client.services.waiting_room.changing(trouble):
        return error
    transaction_ended_by_server(client, rolled_back=True)
    return ProxyError("transaction_moved", host=host)


def forget_closed(client: Exchange) -> None:
    """A cancelled task has closed the connections it was using: the session must not use them again."""
    for conn in list(client.session.transaction.held.values()):
        if conn.closed:
            lost(client, conn, None)


def forget_gone(client: Exchange) -> None:
    """Before a statement is run: forget connections that are gone. It was not sent to them."""
    for conn in list(client.session.transaction.held.values()):
        if conn.closed:
            lost(client, conn, ProxyError("connection_gone", host=conn.host))


def drop(client: Exchange, conn: BackendConnection) -> None:
    """The session keeps a connection no more that is closed, nor what it had there."""
    transaction = client.session.transaction
    if transaction.held.get(conn.host) is conn:
        del transaction.held[conn.host]
        transaction.pins.pop(conn.host, None)


def lost(client: Exchange, conn: BackendConnection, error: ProxyError | None) -> None:
    """A connection that a statement of the session had, or that it keeps, is gone. If it carried a
    transaction, the rest is rolled back and the client must know: all that follows is refused until it has
    ended the transaction. With autocommit off the first statement is one already, whatever it was.
    """
    session = client.session
    transaction = session.transaction
    held = transaction.held.get(conn.host) is conn
    if client.closed or not (held or _opens_by_itself(session, conn.host)):
        return
    carried = transaction.explicit or not session.autocommit or conn.in_transaction
    kept = transaction.pins.get(conn.host, ())
    xa = XA in kept
    drop(client, conn)
    ending, known = transaction.ending, (transaction.lost_by, transaction.lost)
    end_transaction(session)
    if known[1] and not xa:
        transaction.refuse(*known)  # the proxy itself has closed it, for that
    elif xa or (carried and not ending):
        reason = error.text if error is not None else f"Lost connection to MySQL server {conn.host}"
        became = UNKNOWN if xa else _became(client, error)  # a prepared one outlives its connection
        transaction.refuse(became, reason.removesuffix("."))
    elif kept:
        transaction.lose_state(conn.host)


def lost_after_reply(client: Exchange, conn: BackendConnection) -> None:
    """The server has answered a statement, but what that has left on `conn` cannot be read: the connection is
    closed. The next statement is refused.
    """
    conn.close()
    transaction = client.session.transaction
    if transaction.held.get(conn.host) is conn:
        return  # who gives it back says what is lost with it
    if conn.in_transaction:  # which the statement itself has begun
        transaction.refuse(CUT, f"Lost connection to MySQL server {conn.host}")
    else:
        transaction.lose_state(conn.host)


def _opens_by_itself(session: Session, host: str) -> bool:
    """Whether a statement on a connection that the session does not keep yet is its transaction's."""
    transaction = session.transaction
    return not (session.autocommit or transaction.lost or transaction.ending or host in transaction.held)


def _became(client: Exchange, error: ProxyError | None) -> str:
    """The error that says what has become of the transaction: nothing of it is committed by anybody but a
    statement that commits, or that runs code which may.
    """
    if error is not None and error.kind.name == "connection_gone":
        return CUT
    plan, relay = client.plan, client.relay
    facts, effects, commits = UNREAD, None, False
    if plan is not None:
        facts, effects, commits = plan.facts, plan.effects, plan.implicit_commit
    elif client.work is relay and not relay.plain:  # prepared on its host
        facts, effects = relay.facts, relay.effects
    family = facts.form.kind
    commits = commits or facts.commits or family is Kind.XA
    if plan is not None and plan.assigns is not None:  # a server evaluates it, and sets autocommit, too
        commits = "autocommit" in plan.assigns
    if commits or (effects is not None and effects.routine) or (plan is None and family is Kind.SET):
        return UNKNOWN
    return CUT if error is None or error.lost else UNDONE
