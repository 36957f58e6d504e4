"""A write over several shards: each commits by itself, and the answer tells exactly what was done.

Every host gets its statements in one network write. They are independent of each other: when one fails the
others have still run, and the error names the shards on both sides. Nothing is sent a second time. Inside a
transaction a failure undoes the whole statement on every host, by a savepoint, as on one server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from proxy.backends.collect import Collector
from proxy.backends.connection import BackendConnection
from proxy.errors import ProxyError
from proxy.session.settings import Settings
from proxy.session.state import Diagnostic
from proxy.wire.packets import Err, Ok, ProtocolError, lenenc_bytes, query_packet, read_lenenc_bytes
from rewriter.plans import Bound, HostStatement, Inserted

from .ends import connection_lost_in_transaction, give_all_back, settle
from .preludes import preludes

if TYPE_CHECKING:
    from proxy.session.client import ClientConnection

_SAVEPOINT = b"shardgate_statement"


@dataclass(slots=True)
class Outcome:
    """What became of one statement: `ok`, or the error that says why not."""

    statement: HostStatement
    inserted: Inserted | None
    ok: Ok | None = None
    error: Err | ProxyError | None = None


class _Pipeline:
    """Receives the replies to one host's statements, in order."""

    whole = True

    def __init__(self, outcomes: list[Outcome]) -> None:
        self.outcomes = outcomes
        self.warnings = 0
        self._index = 0
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, conn: BackendConnection, packets: bytes, count: int) -> None:
        conn.send(packets, self, count, replies=len(self.outcomes))
        try:
            await self._future
        except asyncio.CancelledError:
            conn.owner.discard(conn, kill=True)
            raise

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        """An OK or ERR packet; the scanner has read it."""

    def reply_done(self, conn: BackendConnection) -> None:
        outcome = self.outcomes[self._index]
        outcome.ok, outcome.error = conn.scanner.ok, conn.scanner.err
        self.warnings += conn.scanner.warnings
        self._index += 1
        if self._index == len(self.outcomes) and not self._future.done():
            self._future.set_result(None)

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        for outcome in self.outcomes[self._index :]:
            outcome.error = error
        if not self._future.done():
            self._future.set_result(None)


@dataclass(slots=True)
class HostWork:
    """One host's part of the statement. `kept`: the session holds the connection, whatever happens here."""

    host: str
    outcomes: list[Outcome]
    conn: BackendConnection | None = None
    kept: bool = False
    diagnostics: list[Diagnostic] = field(default_factory=list)


async def run_writes(client: ClientConnection, bound: Bound, running: set[BackendConnection]) -> None:
    """Run the statements of `bound` and answer the client. Their connections are put into `running`."""
    outcomes = [
        Outcome(statement, bound.inserted[index] if bound.inserted else None)
        for index, statement in enumerate(bound.statements)
    ]
    works: dict[str, HostWork] = {}
    for outcome in outcomes:
        host = outcome.statement.host
        works.setdefault(host, HostWork(host, [])).outcomes.append(outcome)
    session = client.session
    atomic = (session.transaction.explicit or not session.autocommit) and len(outcomes) > 1
    try:
        for host in sorted(works):  # in this order everywhere: two statements never wait for each other
            await connect(client, works[host])
        running.update(work.conn for work in works.values() if work.conn is not None)
        await asyncio.gather(*(run_host(client, work, atomic) for work in works.values()))
        failed = [outcome for outcome in outcomes if outcome.error is not None]
        if failed and atomic:
            await undo(works.values())
    except BaseException:
        for work in works.values():
            if work.conn is not None and not work.kept:
                client.services.backends.release(work.conn)
        raise
    give_back(client, works.values(), failed=bool(failed))
    if failed:
        _report(client, outcomes, failed, undone=atomic)
    else:
        _answer(client, bound, outcomes, works)


def give_back(client: ClientConnection, works: Iterable[HostWork], *, failed: bool) -> None:
    conns = [work.conn for work in works if work.conn is not None]
    give_all_back(client, [conn for conn in conns if not conn.closed], failed=failed)
    for conn in conns:
        if conn.closed:
            connection_lost_in_transaction(client, conn, None)


async def connect(client: ClientConnection, work: HostWork) -> None:
    session = client.session
    work.conn = session.transaction.held.get(work.host)
    work.kept = work.conn is not None
    if work.conn is None:
        pool = client.services.backends.pool(work.host)
        try:
            work.conn = await pool.connection(session.settings, None, session.found_rows_flag)
        except ProxyError as error:
            for outcome in work.outcomes:
                outcome.error = error


async def run_host(
    client: ClientConnection,
    work: HostWork,
    atomic: bool,
    settings: Settings | None = None,
    opening: tuple[bytes, int] = (b"", 0),
) -> None:
    """One network write for the host, and its replies. With `atomic` a savepoint comes first. `settings`:
    others than the session's. `opening`: packets in front, each answered by OK, and how many they are.
    """
    conn = work.conn
    if conn is None:
        return
    packets, count = preludes(client.session, conn, settings)
    packets += opening[0]
    count += opening[1]
    work.kept = client.session.transaction.held.get(work.host) is conn
    if atomic:
        packets += query_packet(b"SAVEPOINT " + _SAVEPOINT)
        count += 1
    packets += b"".join(query_packet(outcome.statement.sql) for outcome in work.outcomes)
    conn.begun = client.begun
    pipeline = _Pipeline(work.outcomes)
    await pipeline.run(conn, packets, count)
    if not conn.closed and (pipeline.warnings or any(outcome.error for outcome in work.outcomes)):
        work.diagnostics = await settle(client, conn)


async def undo(works: Iterable[HostWork]) -> None:
    """Take the statement back on every host whose transaction is still open."""
    for work in works:
        conn = work.conn
        if conn is None or conn.closed or not conn.in_transaction:
            continue
        try:
            reply = await Collector().query(conn, b"ROLLBACK TO SAVEPOINT " + _SAVEPOINT)
        except ProxyError:
            continue  # the connection is closed, and its transaction lost
        if reply.err is not None:
            conn.close()  # what the statement did there must not be committed


def _report(
    client: ClientConnection, outcomes: list[Outcome], failed: list[Outcome], *, undone: bool
) -> None:
    """Tell the client which shards have done their part and which have not."""
    first = failed[0].error
    assert first is not None
    done = [outcome for outcome in outcomes if outcome.error is None]
    if undone or not done:
        client.fail(first)
        return
    text = first.text() if isinstance(first, Err) else str(first)
    code = first.code
    error = ProxyError(
        "partial_write", done=_shards(done), failed=_shards(failed), reason=f"{text} (error {code})"
    )
    client.fail(error)


def _shards(outcomes: list[Outcome]) -> str:
    """`shards 3, 17 on 127.0.0.1:3306`."""
    by_host: dict[str, list[int]] = {}
    for outcome in outcomes:
        by_host.setdefault(outcome.statement.host, []).extend(outcome.statement.shards)
    parts = []
    for host, shards in by_host.items():
        numbers = sorted(set(shards))
        shown = ", ".join(map(str, numbers[:20])) + (
            f" and {len(numbers) - 20} more" if len(numbers) > 20 else ""
        )
        parts.append(f"shard{'s' if len(numbers) > 1 else ''} {shown} on {host}")
    return "; ".join(parts)


def _answer(
    client: ClientConnection, bound: Bound, outcomes: list[Outcome], works: dict[str, HostWork]
) -> None:
    services, session = client.services, client.session
    if session.transaction.next_isolation is not None and session.autocommit:
        session.use_up()
    affected = sum(outcome.ok.affected for outcome in outcomes if outcome.ok is not None)
    warnings = sum(outcome.ok.warnings for outcome in outcomes if outcome.ok is not None)
    insert_id, generated = _first_id(outcomes)
    session.diagnostics = [item for work in works.values() for item in work.diagnostics]
    session.diagnostics += services.notices(bound.warnings)
    session.row_count = affected
    if generated:
        session.last_insert_id = insert_id
    info = _info(outcomes)
    client.reply_ok(
        affected=affected, insert_id=insert_id, warnings=warnings + len(bound.warnings), info=info
    )


def _first_id(outcomes: list[Outcome]) -> tuple[int, bool]:
    """The insert id to report, composed, and whether a server has generated it.

    As with one MySQL: that of the first row whose id was generated, or else that of the last row.
    """
    made = [(one.inserted, one.ok.insert_id) for one in outcomes if one.inserted is not None and one.ok]
    made = [(inserted, id) for inserted, id in made if id]
    if not made:
        return 0, False
    generated = [pair for pair in made if pair[0].generated]
    if generated:
        inserted, id = min(generated, key=lambda pair: pair[0].first)
    else:
        inserted, id = max(made, key=lambda pair: pair[0].last)
    return id + (inserted.base or 0), bool(generated)


def _info(outcomes: list[Outcome]) -> bytes:
    """`Rows matched: 3  Changed: 2  Warnings: 0`, summed over the shards; encoded as in an OK packet."""
    totals = {"Records": 0, "Duplicates": 0} if _many_rows(outcomes) else {}
    for outcome in outcomes:
        if outcome.ok is None:
            continue
        try:
            text = read_lenenc_bytes(outcome.ok.info, 0)[0] if outcome.ok.info else None
        except ProtocolError:
            text = None  # the counts of a server that talks nonsense are not told on
        if text is None and outcome.inserted is not None and totals:
            # a server says nothing of a single row, and counts one in the place of another as 2
            text = b"Records: %d  Duplicates: %d  Warnings: 0" % (
                outcome.inserted.rows, outcome.ok.affected == 2 * outcome.inserted.rows,
            )  # fmt: skip
        for part in (text or b"").decode("latin-1").split("  "):
            name, colon, number = part.rpartition(": ")
            if colon and number.isdigit():
                totals[name] = totals.get(name, 0) + int(number)
    return (
        lenenc_bytes("  ".join(f"{name}: {number}" for name, number in totals.items()).encode())
        if totals
        else b""
    )


def _many_rows(outcomes: list[Outcome]) -> bool:
    """Whether the client's INSERT had more than one row: then it gets their number."""
    return sum(outcome.inserted.rows for outcome in outcomes if outcome.inserted is not None) > 1
