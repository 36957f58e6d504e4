"""A definition (ALTER TABLE and the like) on every shard of a table, with a report.

Every host works through its shards, one after another over a few connections, all hosts in parallel. Where
the session keeps a connection (a lock, a temporary table), that one does the work, and it alone. A shard that
refuses does not stop the others: the error tells how many have done it and how to go on, and SHOW WARNINGS
has a line for each that has not. Nothing is undone: servers commit a definition at once. Whatever happens in
the middle (a host is lost, the statement is killed, the client goes away), each shard is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from proxy.backends.collect import Collector
from proxy.engine import lease
from proxy.engine.diagnostics import drain_diagnostics
from proxy.engine.lease import borrowed
from proxy.engine.naming import logical
from proxy.engine.task import TaskWork
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostic, Outcome
from proxy.session.transaction import LOCKED, XA
from proxy.wire.packets import Err, lenenc_bytes, query_packet
from rewriter.plans import Bound, Ddl, HostStatement
from rewriter.sql.statements.forms import Objects

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

log = structlog.get_logger("proxy")

#: So many definitions run on one host at a time: each rebuilds a table, or waits for its lock.
_AT_ONCE: Final = 2
#: What a session under LOCK TABLES or XA START is told of any definition of another table: not locked, or
#: nothing for the state of the global transaction.
_FORBIDDEN: Final = frozenset({1099, 1100, 1192, 1399})

Failure = tuple[HostStatement, Err | ProxyError]

#: A column, a key of that name is there, or the one to drop is not.
_DONE_ALREADY = frozenset({1060, 1061, 1091})


class Answered(NamedTuple):
    """A statement whose reply has rows, with the warnings that it has left."""

    statement: HostStatement
    reply: Collector
    diagnostics: list[Diagnostic]


Tell = Callable[[list[Answered]], None]
"""Answers the client with the rows of all statements."""


@dataclass(slots=True)
class _Run:
    """A definition at work, and what the shards have said so far."""

    client: Exchange
    work: TaskWork
    done: list[HostStatement] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    warnings: int = 0
    results: list[Answered] = field(default_factory=list)

    async def through(self, statements: Sequence[HostStatement]) -> None:
        """Some of one host's shards, over one connection. Raises CancelledError only."""
        left, sent = list(statements), False
        try:
            async with borrowed(self.client, left[0].host) as conn:
                self.work.conns.add(conn)
                try:
                    while left and not self.work.stopping:
                        sent = True
                        reply = await Collector().run(conn, query_packet(left[0].sql))
                        sent = False
                        found: list[Diagnostic] = []
                        if reply.warnings:
                            found = await drain_diagnostics(self.client, conn)
                        self._answered(left.pop(0), reply, found)
                finally:
                    self.work.conns.discard(conn)  # from here on it may be another session's
            self._never_sent(left, "the statement was interrupted")
        except ProxyError as error:
            self._broken(left, sent, error)
        except asyncio.CancelledError:
            self._broken(left, sent, ProxyError("killed"))
            raise
        except Exception as error:
            log.error("internal error", client=self.client.session.id, kind="ddl", exc_info=error)
            self._broken(left, sent, ProxyError("internal", reason=type(error).__name__))

    def _answered(self, statement: HostStatement, reply: Collector, found: list[Diagnostic]) -> None:
        if reply.err is not None:
            self.failures.append((statement, reply.err))
            return
        self.done.append(statement)
        if reply.ok is not None:
            self.warnings += reply.ok.warnings
        else:
            self.results.append(Answered(statement, reply, found))

    def _broken(self, left: list[HostStatement], sent: bool, error: ProxyError) -> None:
        """The first of `left` was under way when `sent`; nothing has happened to the others."""
        if not sent:
            self.failures += [(statement, error) for statement in left]
        elif left:
            self.failures.append((left[0], error))
            self._never_sent(left[1:], str(error))

    def _never_sent(self, left: Sequence[HostStatement], reason: str) -> None:
        self.failures += [(statement, ProxyError("definition_not_run", reason=reason)) for statement in left]


async def run_ddl(
    client: Exchange, plan: Ddl, bound: Bound, work: TaskWork, tell: Tell | None = None
) -> None:
    """Run the statements of `bound`, and answer the client. `tell`: for statements that give rows."""
    _check_held(client)
    by_host: dict[str, list[HostStatement]] = {}
    for statement in bound.statements:
        by_host.setdefault(statement.host, []).append(statement)
    hosts, run = len(by_host), _Run(client, work)
    if await _forbidden(run, by_host):
        client.fail(run.failures[0][1])
        return
    held = client.session.transaction.held
    try:
        await asyncio.gather(
            *(
                run.through(part)
                for host, statements in by_host.items()
                for part in _parts(statements, 1 if host in held else _AT_ONCE)
            )
        )
    except asyncio.CancelledError:
        _count_rest(run, bound)
        client.services.spawn(_learn(client), "tables")
        _log(plan, run)
        if client.closed or not work.killed:
            raise
    else:
        if run.failures:
            _log(plan, run)
        if plan.changes_definitions:
            await _learn(client)
    if run.failures:
        _report(client, plan, run)
        return
    client.session.apply(Outcome(0, diagnostics=[]))
    if run.results and tell is not None:
        tell(run.results)
        return
    count = len(bound.statements)
    what = f"{count} shards" if bound.statements[0].shards else "the table"
    where = f"{hosts} host" if hosts == 1 else f"{hosts} hosts"
    client.reply_ok(info=lenenc_bytes(f"{what} on {where}, {run.warnings} warnings".encode()))


def _parts(statements: Sequence[HostStatement], most: int) -> list[Sequence[HostStatement]]:
    parts = [statements[offset::most] for offset in range(most)]
    return [part for part in parts if part]


def _check_held(client: Exchange) -> None:
    """Refuse to begin when what pins the session (its lock, its temporary table) is gone already."""
    for conn in list(client.session.transaction.held.values()):
        if conn.closed:
            lease.lost(client, conn, None)
            reason = f"the session's connection to {conn.host} was lost, and what it had locked there"
            raise ProxyError("definition_not_run", reason=reason)


async def _forbidden(run: _Run, by_host: dict[str, list[HostStatement]]) -> bool:
    """Whether the session must not define this table now, because of LOCK TABLES or XA START: one server
    would refuse it. The host where it has said so is asked first, by the first of its shards.
    """
    transaction = run.client.session.transaction
    for host, pins in transaction.pins.items():
        if host not in by_host or not by_host[host] or not {LOCKED, XA} & set(pins):
            continue
        await run.through([by_host[host].pop(0)])
        if run.failures and run.failures[0][1].code in _FORBIDDEN:
            return True
    return False


def _count_rest(run: _Run, bound: Bound) -> None:
    """Cancelled before it began, a part of the work counts nothing by itself."""
    known = {id(statement) for statement in run.done} | {id(statement) for statement, _ in run.failures}
    reason = "the statement was interrupted"
    run.failures += [
        (statement, ProxyError("definition_not_run", reason=reason))
        for statement in bound.statements
        if id(statement) not in known
    ]


async def _learn(client: Exchange) -> None:
    """What the definition has changed. It is done: nothing that goes wrong now makes an error of it."""
    try:
        await client.services.serving.tables_changed()
    except asyncio.CancelledError:
        if client.closed:
            raise
    except Exception as error:
        log.warning("tables not looked at after a definition", exc_info=error)


def _report(client: Exchange, plan: Ddl, run: _Run) -> None:
    """An error for the client, and a line for each shard in SHOW WARNINGS."""
    failures = run.failures
    failures.sort(key=lambda failure: (failure[0].shards, failure[0].host))
    first = _first(failures)
    if not run.done and all(problem.code == first.code for _, problem in failures):
        # nothing has changed anywhere: that is what one server would say
        client.fail(lease.refused_by_master(client, failures[0][0].host, first))
        return
    text = logical(client, first.text()) if isinstance(first, Err) else str(first)
    sharded = bool(failures[0][0].shards)
    error = ProxyError(
        "definition_killed" if run.work.stopping else "ddl_failed",
        done=len(run.done),
        failed=len(failures),
        count=len(run.done) + len(failures),
        places="shards" if sharded else "hosts",
        reason=f"{text} (error {first.code})",
        advice=_have_it(failures) or _advice(client, plan, failures[0][0]),
    )
    client.fail(error)
    each = [
        Diagnostic("Error", problem.code, f"{place_of(statement, client)}: {_text(problem)}")
        for statement, problem in failures
    ]
    client.session.apply(Outcome(diagnostics=client.session.diagnostics + each))


def _first(failures: Sequence[Failure]) -> Err | ProxyError:
    """What went wrong: best what a shard itself has said."""
    problems = [problem for _, problem in failures]
    own = (one for one in problems if isinstance(one, Err) or one.kind.name != "definition_not_run")
    return next(own, problems[0])


def _have_it(failures: Sequence[Failure]) -> str:
    """What to do when the others refuse a change that they seem to have already."""
    if all(problem.code in _DONE_ALREADY for _, problem in failures):
        return "The others seem to have that change already: compare their tables before repeating it."
    return ""


def _advice(client: Exchange, plan: Ddl, statement: HostStatement) -> str:
    """How to give the definition to those that have not got it."""
    form = plan.facts.form
    if form.repeatable:
        return "Repeat the statement."
    if form.verb in ("CREATE", "DROP") and form.objects in (Objects.TABLE, Objects.TABLES):
        return f"Repeat the statement with IF {'NOT ' if form.verb == 'CREATE' else ''}EXISTS."
    if not statement.shards:
        return "Run it on the other servers themselves."
    table = plan.table.partition(".")[2]
    database = _database(client, plan.keyspace, statement)
    return (
        f"Run it for each of the others by its database: {database}.{table} for {table}"
        " (and local_id for id)."
    )


def _text(problem: Err | ProxyError) -> str:
    return problem.text() if isinstance(problem, Err) else str(problem)


def _database(client: Exchange, keyspace: str, statement: HostStatement) -> str:
    known = client.snapshot.topology.keyspaces.get(keyspace)
    return known.database_of(statement.shards[0]).decode() if known is not None and statement.shards else ""


def place_of(statement: HostStatement, client: Exchange | None = None) -> str:
    """`shard 3 (db00003) on 127.0.0.1:3306`; without `client` its database is left out."""
    if not statement.shards:
        return statement.host
    plan = client.plan if client is not None else None
    database = _database(client, plan.sharded_keyspace, statement) if client and plan else ""
    return f"shard {statement.shards[0]}{f' ({database})' if database else ''} on {statement.host}"


def _log(plan: Ddl, run: _Run) -> None:
    """Who asked for it may be gone: the log has the report, too, if anything was done anywhere."""
    if not run.done and len({problem.code for _, problem in run.failures}) == 1:
        return
    where: dict[str, list[int]] = {}
    for statement, _ in run.failures:
        where.setdefault(statement.host, []).extend(statement.shards)
    log.warning(
        "definition not done everywhere",
        table=plan.table,
        verb=plan.verb,
        done=len(run.done),
        failed=len(run.failures),
        where={host: sorted(shards) for host, shards in where.items()},
        reasons=sorted({_text(problem)[:200] for _, problem in run.failures})[:5],
    )
