"""BEGIN, COMMIT, ROLLBACK and savepoints, over every host that takes part."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.backends.own import apply
from proxy.engine import lease
from proxy.engine.diagnostics import fetch_warnings
from proxy.engine.locks import host_of
from proxy.engine.outside_transaction import syntax_error
from proxy.engine.session_sync import sync_packets
from proxy.engine.table_locks import unlock_at_begin
from proxy.engine.task import TaskWork
from proxy.engine.two_phase import Committing, end_branch, later_warnings
from proxy.engine.waiting_room import read_only
from proxy.errors import ProxyError, in_parts
from proxy.session.outcome import Diagnostic, Outcome
from proxy.session.savepoints import Savepoint, savepoint_of
from proxy.session.transaction import PLAINLY, XA, completion_of, modes_of
from proxy.wire.packets import Err, query_packet
from rewriter.plans import BindError, Plan, Values, is_one_host
from rewriter.plans.builtins import (
    Begin,
    Commit,
    EndTransaction,
    OfSavepoint,
    ReleaseSavepoint,
    Rollback,
    RollbackTo,
    SetSavepoint,
)
from rewriter.plans.characteristics import PLAIN, Characteristics, Completion

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_UNDOES: Final = frozenset({1213, 3101})
"""Errors of COMMIT that say that the server has rolled the transaction back."""


def begin(client: Exchange, plan: Begin, values: Values) -> None:
    """BEGIN sends nothing: the first statement on each host will carry it."""
    said, transaction = plan.characteristics, client.session.transaction
    nested = transaction.explicit and client.session.env.flavour.nested_begin_keeps_mode
    if nested and said.read_only is None:
        # MySQL's transaction that begins within another is as that one was
        said = replace(said, read_only=client.session.in_read_only)
    active = xa_host(client)
    if active is not None:
        client.relay.run(active, said.start, facts=plan.facts)  # which refuses it in its own words
    elif transaction.open:
        commit_then(client, lambda: _begun(client, said))
    else:
        _begun(client, said)


def _begun(client: Exchange, said: Characteristics) -> None:
    session = client.session
    unlock_at_begin(client)
    session.transaction.start(said, modes_of(session.settings))
    session.transaction.since = client.begun
    session.use_up()
    session.apply(Outcome(0, diagnostics=session.without_tables()))
    if said.snapshot:
        if session.tracker is not None:
            session.tracker.touched = {"R"}
        TaskWork(client).start(_open_snapshot(client))
    else:
        client.reply_ok()


async def _open_snapshot(client: Exchange) -> None:
    """START TRANSACTION WITH CONSISTENT SNAPSHOT: the snapshot is of now, so it is opened at once: on the one
    host of a database that is not sharded, or else on all.
    """
    session = client.session
    plan, _ = client.snapshot.rewriter.plan(b"DO 0", session.env)
    if is_one_host(plan) and not plan.at_any_host:
        hosts = [plan.host(client.snapshot.topology)]
    else:
        hosts = sorted(client.snapshot.topology.hosts)
    for host in hosts:
        conn = await lease.connection(client, host, settings=session.settings.base)
        packets, count = sync_packets(session, conn)
        try:
            reply = await Collector().run(conn, packets + query_packet(b"DO 0"), count)
        except ProxyError as error:
            lease.lost(client, conn, error)
            raise
        if reply.err is not None:
            conn.close()
            lease.lost(client, conn, None)
            session.transaction.refuse("transaction_lost", reply.err.text())
            raise session.transaction.loss
    client.reply_ok()


def commit(client: Exchange, plan: Commit, values: Values) -> None:
    _end(client, plan, b"COMMIT")


def rollback(client: Exchange, plan: Rollback, values: Values) -> None:
    _end(client, plan, b"ROLLBACK")


def xa_host(client: Exchange) -> str | None:
    """The host where the session has an XA transaction that the client itself began."""
    pins = client.session.transaction.pins
    return next((host for host, kept in pins.items() if XA in kept), None)


def _end(client: Exchange, plan: EndTransaction, sql: bytes) -> None:
    active = xa_host(client)
    if active is not None:
        client.relay.run(active, sql, facts=plan.facts)
        return
    transaction = client.session.transaction
    session = client.session
    completion = plan.completion(completion_of(session.settings))
    begun, next_, modes = PLAIN, transaction.next, modes_of(session.settings)
    if transaction.explicit:
        begun, modes = transaction.begin, transaction.modes or modes
    gone = _drop_gone(client)
    if gone and sql == b"COMMIT":
        raise _cut(client, gone)
    hosts = [host for host, conn in transaction.held.items() if conn.in_transaction]
    later: list[str] = []

    def after() -> None:
        if completion is Completion.CHAIN:
            unlock_at_begin(client)
            transaction.start(begun, modes)
            session.use_up()
            transaction.next = next_
            if client.session.tracker is not None:
                client.session.tracker.ended()
        session.apply(Outcome(0, diagnostics=session.without_tables(later_warnings(later))))
        client.reply_ok(warnings=len(later))
        if completion is Completion.RELEASE:
            client.close()

    if not hosts:
        for conn in transaction.held.values():
            # there may be characteristics of a transaction whose first statement failed, or changes of tables
            # without transactions, about which a server would warn later
            conn.tell(query_packet(sql))
        lease.end_transaction(client.session)
        after()
    elif (
        len(hosts) == 1
        and completion is Completion.NO_CHAIN
        and not (session.tracks_replies or transaction.held[hosts[0]].branch)
    ):
        # the usual case: the host's own OK packet goes to the client
        transaction.explicit = False
        transaction.savepoints = ()
        transaction.spots = ()
        transaction.next = None
        transaction.ending = sql
        sql = sql + PLAINLY if session.settings.get("completion_type") else sql
        client.relay.run(hosts[0], sql, facts=plan.facts)
    else:
        TaskWork(client, steady=True).start(_end_on_all(client, sql, after, later))


def _drop_gone(client: Exchange) -> str:
    """Forget the connections of the transaction that are gone; one of their hosts, or ""."""
    held = client.session.transaction.held.values()
    gone = [conn for conn in held if conn.closed and conn.in_transaction]
    for conn in gone:
        lease.drop(client, conn)
    return gone[0].host if gone else ""


def _cut(client: Exchange, host: str) -> ProxyError:
    """The end of a transaction that lost its connection to `host` before anybody was asked to commit: nothing
    of it will be committed.
    """
    lease.end_transaction(client.session)
    return ProxyError("transaction_cut", reason=f"Lost connection to MySQL server {host}")


def commits_first(client: Exchange, plan: Plan) -> bool:
    """Whether the open transaction must be committed before a statement that does so implicitly. Where it is
    on the statement's own host alone, that host will do it, unless it finds that the statement is none.
    """
    transaction = client.session.transaction
    if not transaction.held and not transaction.explicit:
        return transaction.pending
    if not is_one_host(plan):
        return True
    try:
        host = host_of(client, plan)
    except BindError:
        return True
    return any(other != host for other in transaction.held)


def commit_then(client: Exchange, go_on: Callable[[], None], *, judged: bool = True) -> None:
    """Commit what is open (an implicit commit), then call `go_on`, which answers the client. An XA
    transaction is not committed so: the server refuses the statement. `judged`: a server has read the
    statement already; else one does before, for what is no SQL commits nothing. Raises ProxyError.
    """
    if xa_host(client) is not None:
        go_on()
        return
    gone = _drop_gone(client)
    if gone:
        raise _cut(client, gone)
    if not client.session.transaction.held:
        client.session.transaction.end()
        client.session.use_up()
        go_on()
    elif judged:
        TaskWork(client, steady=True).start(_end_on_all(client, b"COMMIT", go_on))
    else:
        TaskWork(client, steady=True).start(_commit_if_read(client, go_on))


async def _commit_if_read(client: Exchange, go_on: Callable[[], None]) -> None:
    host = next(iter(client.session.transaction.held))
    found = await syntax_error(client, host, client.sql)
    if client.closed:
        return  # what the session kept is free already
    if found is not None:
        client.fail(found)
    else:
        await _end_on_all(client, b"COMMIT", go_on)


def _end_on_all(
    client: Exchange, sql: bytes, go_on: Callable[[], None], later: list[str] | None = None
) -> Coroutine[Any, Any, None]:
    """COMMIT or ROLLBACK on one host after another; a distributed transaction is committed as one. A COMMIT
    that fails halfway says which hosts have committed. When one's connection is gone already, none commits.
    At once, before the first is asked, the connections are the session's no more: a client that goes away
    does not roll back the rest. `later` gets the hosts where a committed transaction is not seen yet.
    """
    transaction, commits = client.session.transaction, sql == b"COMMIT"
    if client.session.settings.get("completion_type"):
        sql += PLAINLY
    conns = {host: conn for host, conn in transaction.held.items() if conn.in_transaction}
    gtrid, first = transaction.gtrid, transaction.first
    ended = transaction.end()
    branches = [conn for conn in conns.values() if conn.branch]
    committing = None
    if branches and first is not None and len(conns) > 1:
        own = first if conns.get(first.host) is first else None
        committing = Committing(client, gtrid, own, first.host, branches, ended)
        committing.later = [] if later is None else later
    return _ended(client, sql, go_on, conns, ended, committing, commits=commits)


async def _ended(
    client: Exchange,
    sql: bytes,
    go_on: Callable[[], None],
    conns: dict[str, BackendConnection],
    ended: list[BackendConnection],
    committing: Committing | None = None,
    *,
    commits: bool,
) -> None:
    done: list[str] = []
    failure: ProxyError | Err | None = None
    failed_on = next((host for host, conn in conns.items() if conn.closed), "")
    if failed_on and commits:
        failure = ProxyError("transaction_cut", reason=f"Lost connection to MySQL server {failed_on}")
    together = committing is not None and commits and failure is None
    if committing is not None and together:
        try:
            await committing.run()
        except ProxyError as error:
            failure = error
    for host, conn in conns.items():
        if failure is not None or together:
            break
        if client.closed and conn not in ended:
            continue  # the session was pinned to it: it is free already, and so rolled back
        try:
            if conn.branch:
                failure = await end_branch(conn, sql.removesuffix(PLAINLY))
            else:
                failure = (await Collector().query(conn, sql)).err
        except ProxyError as error:
            failure = error
        if failure is None:
            done.append(host)
        else:
            failed_on = host
    for conn in ended:
        lease.free(conn)  # one still in a transaction is reset, which rolls it back
    if client.closed:
        return
    for conn in conns.values():
        if conn.closed:
            lease.drop(client, conn)
    lease.end_on_kept(client.session, b"ROLLBACK")  # what the session needs for more, and has not been ended
    if failure is not None and commits:
        reason = failure.text() if isinstance(failure, Err) else failure.text
        if together:
            assert isinstance(failure, ProxyError)
            raise failure
        unsure = [failed_on] if isinstance(failure, ProxyError) and failure.unsure else []
        left = [host for host in conns if host not in done and host not in unsure]
        if done or (unsure and left):
            outcome = in_parts(*map(", ".join, (done, left, unsure)))
            raise ProxyError("partial_commit", outcome=outcome, reason=reason)
        if isinstance(failure, Err) and read_only(failure):
            raise ProxyError("transaction_moved", host=failed_on)
        if isinstance(failure, ProxyError):
            raise failure
        undone = failure.code in _UNDOES
        raise ProxyError("transaction_undone" if undone else "transaction_lost", reason=reason)
    go_on()


#: More would take long to look through, and to open on another host.
MOST_SAVEPOINTS = 10_000
#: Bytes of a name as it is sent: 64 characters, each perhaps doubled, in quotes.
_LONGEST = 64 * 4 * 2 + 2


# -- savepoints
# ---------------------------------------------------------------------------------------------------------


def savepoint(client: Exchange, plan: SetSavepoint, values: Values) -> None:
    new = _named(client, plan)
    transaction = client.session.transaction
    if transaction.explicit or not client.session.autocommit:
        if len(new.quoted) > _LONGEST:
            raise ProxyError("name_too_long", name=plan.name[:64])
        others = tuple(one for one in transaction.savepoints if one.key != new.key)
        if len(others) >= MOST_SAVEPOINTS:
            raise ProxyError("too_many_savepoints", limit=MOST_SAVEPOINTS)
        transaction.savepoints = (*others, new)
    _on_all(client, b"SAVEPOINT " + new.quoted)


def rollback_to(client: Exchange, plan: RollbackTo, values: Values) -> None:
    _end_savepoint(client, plan, b"ROLLBACK TO SAVEPOINT ", kept=1)


def release_savepoint(client: Exchange, plan: ReleaseSavepoint, values: Values) -> None:
    _end_savepoint(client, plan, b"RELEASE SAVEPOINT ", kept=0)


def _end_savepoint(client: Exchange, plan: OfSavepoint, sql: bytes, *, kept: int) -> None:
    """Run `sql`, which wants the savepoint's name behind it. The savepoints behind it are gone then, and that
    itself unless it is `kept`. One that is not known may have been set by code: where the transaction is on
    one host only, that host knows. Raises ProxyError.
    """
    transaction, wanted = client.session.transaction, _named(client, plan)
    places = [place for place, one in enumerate(transaction.savepoints) if one.key == wanted.key]
    hosts = [host for host, conn in transaction.held.items() if conn.in_transaction]
    if len(hosts) != 1:
        bodies = client.services.routines.bodies
        named = any(plan.name.upper() in bodies[host].savepoints for host in hosts if host in bodies)
        if transaction.code and named:
            what, reason = "ROLLBACK TO and RELEASE SAVEPOINT", "a procedure may have set it on one host only"
            advice = "Give savepoints of procedures names of their own."
            raise ProxyError("not_supported_yet", what=what, reason=reason, alternative=advice)
        if not places:
            raise ProxyError("unknown_savepoint", name=plan.name)
    if places:
        transaction.savepoints = transaction.savepoints[: places[0] + kept]
    _on_all(client, sql + wanted.quoted)


def _named(client: Exchange, plan: OfSavepoint) -> Savepoint:
    """The savepoint of a statement; its name is in the client's character set, which a server reads."""
    env, name = client.session.env, plan.name.replace("`", "``")
    try:
        written = name.encode(env.codec, "surrogateescape")
    except UnicodeEncodeError:
        written = name.encode("utf-8", "surrogateescape")
    return savepoint_of(b"`" + written + b"`", env.charset)


def _on_all(client: Exchange, sql: bytes) -> None:
    session = client.session
    session.apply(Outcome(diagnostics=session.without_tables()))
    conns = [conn for conn in client.session.transaction.held.values() if conn.in_transaction]
    if not conns:
        session.apply(Outcome(0))
        client.reply_ok()
    else:
        TaskWork(client).start(_savepoint_on_all(client, conns, sql))


async def _savepoint_on_all(client: Exchange, conns: list[BackendConnection], sql: bytes) -> None:
    warnings: list[Diagnostic] = []
    for conn in conns:
        try:
            if not sql.isascii():  # it reads the name in its own character set
                await apply(conn, client.session.settings.base)
            reply = await Collector().query(conn, sql)
        except ProxyError as error:
            conn.close()  # also one that could not be told the settings
            lease.lost(client, conn, error)
            raise
        if reply.err is not None:
            client.fail(reply.err)
            return
        warnings += await fetch_warnings(conn) if reply.warnings else []
    client.session.apply(Outcome(0, diagnostics=warnings or None))
    client.reply_ok(warnings=len(warnings))
