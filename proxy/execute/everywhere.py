"""A write to a reference table: every host runs it, and all do the same.

The first host, in the order of names, runs it in a transaction that stays open until all others have done
theirs: its row locks put writes to the same rows into one order for all hosts. When it fails there, nothing
has happened anywhere. Every host is given the same time for NOW() and the like.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.engine import lease
from proxy.engine.outside_transaction import write_result
from proxy.engine.write_results import Part
from proxy.errors import ProxyError, in_parts
from proxy.session.outcome import Outcome
from proxy.session.transaction import LOCKED, PLAINLY
from proxy.wire.packets import Err, query_packet
from rewriter.plans import Bound
from rewriter.sql.statements.effects import Effects

from .writes import HostWork, connect, give_back, run_host, undo

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_START = (query_packet(b"START TRANSACTION"), 1)


async def run_everywhere(
    client: Exchange, bound: Bound, running: set[BackendConnection], *, effects: Effects | None = None
) -> None:
    """Run the statements of `bound`, one for each host, and answer as the first host does. `effects`: what is
    read back from that one.
    """
    works = [HostWork(one.host, [Part(one, None)]) for one in bound.statements]
    parts = [work.parts[0] for work in works]
    session = client.session
    within = session.transaction.explicit or not session.autocommit
    settings = session.settings
    if settings.get("timestamp") is None:
        settings = settings.with_values({"timestamp": b"%.6f" % time.time()})
    try:
        for work in works:
            await connect(client, work)
        running.update(work.conn for work in works if work.conn is not None)
        unreachable = next((part.error for part in parts if part.error is not None), None)
        if unreachable is None:
            locked = LOCKED in session.transaction.pins.get(works[0].host, ())  # which BEGIN would end
            opening = (b"", 0) if within or locked else _START
            await run_host(client, works[0], within, settings, opening, effects)
            if parts[0].error is None:
                await asyncio.gather(*(run_host(client, work, within, settings) for work in works[1:]))
            failed = [part for part in parts if part.error is not None]
            if failed and within:
                # where it did not run, the savepoint is still that of an earlier statement
                await undo(work for work in works if work.parts[0].answered or work.parts[0].error)
            elif not within:
                await _end(works[0], commit=not failed)
    except BaseException:
        for work in works:
            if work.conn is not None and not work.kept:
                lease.free(work.conn)
        raise
    give_back(client, works, failed=any(part.error for part in parts))
    _answer(client, works, undone=within)


async def _end(work: HostWork, *, commit: bool) -> None:
    """End the first host's transaction. A COMMIT that fails is the host's failure."""
    if work.conn is None or work.conn.closed:
        return
    sql = (b"COMMIT" if commit else b"ROLLBACK") + PLAINLY
    try:
        reply = await Collector().query(work.conn, sql)
    except ProxyError as error:
        work.parts[0].error = work.parts[0].error or error
        return
    work.parts[0].error = work.parts[0].error or reply.err


def _answer(client: Exchange, works: list[HostWork], *, undone: bool) -> None:
    """The first host's answer, or what went wrong and where."""
    failed = [work for work in works if work.parts[0].error is not None]
    done = [work.host for work in works[1:] if work.parts[0].answered and work not in failed]
    if failed:
        first = failed[0].parts[0].error
        assert first is not None
        if undone or not done:
            client.fail(lease.refused_by_master(client, failed[0].host, first))
            return
        text = first.text() if isinstance(first, Err) else first.text
        unsure = [
            work.host
            for work in failed
            if isinstance(error := work.parts[0].error, ProxyError) and error.unsure
        ]
        left = [work.host for work in works if work.host not in done and work.host not in unsure]
        raise ProxyError(
            "partial_write",
            outcome=in_parts(*map(", ".join, (done, left, unsure))),
            reason=f"{text.removesuffix('.')} (error {first.code})",
            advice="Run it on the failed hosts themselves, or write it so that it may be repeated.",
        )
    _compare(client, works)
    part = works[0].parts[0]
    ok = part.ok
    affected = None if ok is None else ok.affected
    matched = None if ok is None else client.session.matched(ok.info)
    client.session.apply(Outcome(affected, found=matched, diagnostics=part.diagnostics))
    if ok is None:  # RETURNING: every host has the same rows
        write_result(client, part.columns, part.rows, part.warnings)
        return
    client.reply_ok(affected=ok.affected, insert_id=ok.insert_id, warnings=ok.warnings, info=ok.info)


def _compare(client: Exchange, works: list[HostWork]) -> None:
    """Copies that differ show when the same statement changes other numbers of rows."""
    changed = {work.host: work.parts[0].ok.affected for work in works if work.parts[0].ok is not None}
    first = works[0].host
    for host, rows in changed.items():
        if rows != changed.get(first, rows):
            text = f"a write to a reference table changed {rows} rows, but {changed[first]} on {first}"
            client.services.serving.problems.note(0, host, f"{text}: the copies differ, copy it anew")
