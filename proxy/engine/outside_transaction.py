"""Statements that run beside the session's transaction: they read no table and change nothing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from config.topology import Topology
from proxy.backends.collect import Collector
from proxy.engine.diagnostics import drain_diagnostics
from proxy.engine.lease import borrowed
from proxy.engine.naming import logical_error
from proxy.engine.preparing import known_facts
from proxy.engine.session_sync import asks_for_warnings, effects_packets, preparing
from proxy.engine.task import TaskWork
from proxy.engine.warned import notices
from proxy.errors import ProxyError
from proxy.session.outcome import RESULT_SET, Diagnostic, Diagnostics, Outcome
from proxy.session.values import quote
from proxy.wire.constants import SYNTAX_ERROR
from proxy.wire.packets import Err, eof_packet, frame, lenenc_bytes, query_packet
from proxy.wire.resultset import header_packets
from rewriter.plans import Bound, HostStatement, Reject, Values, is_one_host
from rewriter.sql.statements.effects import Effects
from rewriter.sql.statements.forms import Kind, Runs

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_NOT_PREPARED: Final = (1295, 1390)
"""Errors of PREPARE itself."""
_LONG: Final = 1 << 20
"""Bytes of a statement that no server is asked about once more."""


async def run_outside_transaction(
    client: Exchange,
    host: str,
    sql: bytes,
    database: str | None = None,
    effects: Effects | None = None,
    literals: Values = (),
) -> None:
    """Run `sql` outside the open transaction, and answer with the session's own status flags. `database`,
    `effects` and `literals`: as for `Relay.run`.
    """
    session = client.session
    async with borrowed(client, host, database) as conn:
        packets, count = effects_packets(session, conn, effects) if effects is not None else (b"", 0)
        asks = effects is not None and asks_for_warnings(session, effects)
        reply = Collector(client.named, own=False, client=client)
        await reply.run(conn, packets + query_packet(sql), count)
        found = Diagnostics()
        if reply.warnings or reply.err is not None or effects is not None:
            found = await drain_diagnostics(client, conn, effects, literals)
        if asks and not found.keeps:
            session.apply(Outcome(diagnostics=[]))
    counted = session.found_rows
    answer(client, reply, found)
    if effects is not None and effects.found_rows != "":
        session.apply(Outcome(found=counted))


def answer(client: Exchange, reply: Collector, warnings: list[Diagnostic] | None = None) -> None:
    """A collected reply, and its warnings, to the client, and the command is done."""
    if reply.err is not None:
        client.fail(reply.err)
        if warnings:
            client.session.apply(Outcome(diagnostics=warnings))
        return
    session = client.session
    affected = None if reply.ok is None else reply.ok.affected
    session.apply(Outcome(affected, diagnostics=session.without_tables(warnings)))
    if reply.ok is not None:
        client.reply_ok(
            affected=reply.ok.affected,
            insert_id=reply.ok.insert_id,
            warnings=len(warnings or ()),
            info=reply.ok.info,
        )
    else:
        write_result(client, reply.columns, reply.rows, len(warnings or ()))


def write_result(
    client: Exchange,
    columns: list[bytes],
    rows: list[bytes],
    warnings: int = 0,
    *,
    counts: bool = True,
) -> None:
    """Definitions and rows (payloads) to the client, and the command is done. `counts`: FOUND_ROWS() is of
    these rows.
    """
    status, extended = client.session.status(), client.session.extended
    head, seq = header_packets(columns, status, client.seq + 1, warnings, extended=extended)
    pieces = [head]
    for row in rows:
        pieces.append(frame(row, seq))
        seq += 1 + len(row) // 0xFFFFFF
    pieces.append(eof_packet(seq, status, warnings))
    client.session.apply(Outcome(RESULT_SET, found=len(rows) if counts else None))
    client.write(b"".join(pieces))
    client.finish("ok")


async def run_probe(client: Exchange, host: str, sql: bytes, error: ProxyError) -> None:
    """`error`, unless a server says that the statement is no SQL at all: then its own error."""
    found: Err | None = None
    with suppress(ProxyError):  # of a host that is away: `error` is true nevertheless
        found = await syntax_error(client, host, sql)
    if found is None:
        raise error
    client.fail(found)


def is_about_other_text(client: Exchange, error: Err) -> bool:
    """Whether a server has found no SQL in a text that the proxy has written in the place of the client's. It
    shows that text in the error. What runs code may have run some before the error.
    """
    plan, sql = client.plan, client.sql
    if error.code != SYNTAX_ERROR or error.own or not 0 < len(sql) <= _LONG:
        return False
    if plan is None:
        return True  # a server prepares what stands for the client's statement
    return plan.facts.form.runs is not Runs.ANYTHING and not (is_one_host(plan) and plan.goes_unchanged)


def asks_about_syntax(client: Exchange, error: Err) -> bool:
    """See `Exchange.asks_about_syntax`."""
    if not is_about_other_text(client, error):
        return False
    TaskWork(client).start(_ask_about_syntax(client, client.sql, error))
    return True


_NO_WORDS: Final = b"(no text)"
"""MariaDB's errors have none where `character_set_results` is utf32 or of its kin."""


async def _ask_about_syntax(client: Exchange, sql: bytes, error: Err) -> None:
    found: Err | None = None
    with suppress(ProxyError):  # then the first error is good enough
        host = next(iter(client.session.transaction.held), None) or client.snapshot.topology.hosts[0]
        found = await syntax_error(client, host, sql)
    told = found or error
    client.fail(replace(told, own=told.message or _NO_WORDS))


NAMED_IN_A_CLAUSE: Final = (1052, 1054)
"""Errors about a column's name, which say in which clause it stands."""


def fail_by_its_own(
    client: Exchange, error: Err, conditions: Sequence[Diagnostic], asked: HostStatement
) -> None:
    """Fail with a server's error for the statement as the client has written it, on one shard. `error`, with
    these `conditions`, is for the statement with the columns of ORDER BY added to its select list.
    """
    TaskWork(client).start(_ask_about_clause(client, error, conditions, asked))


async def _ask_about_clause(
    client: Exchange, error: Err, conditions: Sequence[Diagnostic], asked: HostStatement
) -> None:
    found: Err | None = None
    with suppress(ProxyError):  # then the first error is good enough
        found = await prepared_error(client, asked.host, asked.sql)
    if found is not None and found.code == error.code:
        error = logical_error(client, replace(found, host=asked.host))
        text = error.text(client.session.results_codec)
        conditions = [
            replace(one, message=text) if (one.level, one.code) == ("Error", error.code) else one
            for one in conditions
        ]
    client.fail(error, conditions=conditions)


async def syntax_error(client: Exchange, host: str, sql: bytes) -> Err | None:
    """What a server says of a text that is no SQL; None for one that is, whatever else is wrong with it."""
    try:
        found = await prepared_error(client, host, sql, _any_database(client.snapshot.topology, host))
    except ProxyError as problem:
        if problem.kind.name != "unknown_database":
            raise
        return None
    return found if found is not None and found.code == SYNTAX_ERROR else None


def _any_database(topology: Topology, host: str) -> str | None:
    """A database of `host`: MariaDB asks for a current one before it has read a statement to its end."""
    for keyspace in topology.keyspaces.values():
        if keyspace.sharded and host in keyspace.columns.masters:
            return next(database.decode() for home, database in keyspace.places.values() if home == host)
    return None


async def run_for_nothing(client: Exchange, bound: Bound, *, update: bool) -> None:
    """A write that no shard runs, since no row can match: OK, unless a server finds a mistake in it."""
    nowhere, warnings = bound.refers_to(), bound.warnings
    if nowhere is not None:
        found = await prepared_error(client, nowhere.host, nowhere.sql)
        if found is not None and found.code not in _NOT_PREPARED:
            client.fail(found)
            return
    session = client.session
    info = b"Rows matched: 0  Changed: 0  Warnings: %d" % len(warnings) if update else b""
    if not warnings and not session.env.flavour.tells_of_impossible_updates:
        info = b""
    matched = session.matched(info) if warnings else None  # no row is looked for if no condition can be true
    session.apply(Outcome(0, found=matched, diagnostics=notices(warnings)))
    client.reply_ok(warnings=len(warnings), info=lenenc_bytes(info) if info else b"")


async def prepared_error(client: Exchange, host: str, sql: bytes, database: str | None = None) -> Err | None:
    """What a server has against a statement that it prepares and does not run."""
    if client.session.unsafe_charset and not sql.isascii():
        return None  # no quoting is sure to hold it
    text = quote(sql, client.session.no_backslash_escapes)
    async with borrowed(client, host, database) as conn:
        preparing(client.session, conn, known_facts(client))
        reply = await Collector().query(conn, b"PREPARE shardgate_probe FROM " + text)
        if reply.err is None:
            await Collector().query(conn, b"DEALLOCATE PREPARE shardgate_probe")
    return reply.err


def refuse_unpreparable(client: Exchange, plan: Reject, sql: bytes) -> None:
    """Answer COM_STMT_PREPARE with a server's error if servers do not prepare such statements, else with the
    plan's error.
    """
    TaskWork(client).start(_refuse_unpreparable(client, plan, sql))


async def _refuse_unpreparable(client: Exchange, plan: Reject, sql: bytes) -> None:
    host = next(iter(client.session.transaction.held), None) or client.snapshot.topology.hosts[0]
    found = await prepared_error(client, host, sql, _any_database(client.snapshot.topology, host))
    if found is None or found.code not in _NOT_PREPARED:
        raise ProxyError(plan.error, **plan.arguments)
    client.fail(found)


def reject(client: Exchange, plan: Reject, literals: Values) -> None:
    """Answer with the plan's error, or with a server's own. Raises ProxyError."""
    if plan.unknown_table and plan.facts.form.kind is Kind.CHANGE:
        client.session.refuse_in_read_only()
    arguments = plan.arguments
    if plan.place and not client.session.user.may_use(plan.place):
        arguments = {**arguments, "alternative": plan.confined}
    error = ProxyError(plan.error, **arguments)
    if not plan.probe:
        raise error
    host = next(iter(client.session.transaction.held), None) or client.snapshot.topology.hosts[0]
    TaskWork(client).start(run_probe(client, host, client.sql, error))
