"""A write over several shards: each commits by itself, and the answer tells exactly what was done.

Every host gets its statements in one network write. They are independent of each other: when one fails the
others have still run, and the error names the shards on both sides. When a host cannot be reached to begin
with, nothing is sent to any. Nothing is sent a second time. Inside a transaction a failure undoes the whole
statement on every host, by a savepoint, as on one server.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector, end_of_reply
from proxy.backends.connection import BackendConnection
from proxy.backends.settings import Settings
from proxy.engine import lease
from proxy.engine.column_metadata import place_of
from proxy.engine.diagnostics import drain_diagnostics, opens, say_state
from proxy.engine.naming import logical, logical_rows
from proxy.engine.outside_transaction import write_result
from proxy.engine.preparing import unresolved
from proxy.engine.session_sync import effects_packets, sync_packets
from proxy.engine.warned import OF_TEXT, notices
from proxy.engine.write_results import Part, first_id, summed_info
from proxy.errors import ProxyError, in_parts
from proxy.session.outcome import Diagnostic, Outcome
from proxy.wire.column_metadata import changed
from proxy.wire.packets import Err, ProtocolError, query_packet
from proxy.wire.resultset import decode_row
from proxy.wire.rows import ResultReader, split_rows
from rewriter.plans import Bound, Inserted
from rewriter.route.column_metadata import ColumnMetadata
from rewriter.sql.statements.effects import ASSIGNED, Effects

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange

_SAVEPOINT = b"shardgate_statement"
_SHOW_WARNINGS: Final = query_packet(b"SHOW WARNINGS")
_AT_ROW: Final = re.compile(r"(?<= at row )(\d+)\Z")
_WRITE_AGAIN: Final = "Repeat it for each failed shard, with /*+ shard(N) */ behind the first word."
_INSERT_AGAIN: Final = "Insert only the rows that are missing; in a transaction it would be all or nothing."
_LOOK_FIRST: Final = (
    "Look at what is there before you repeat it for a shard, with /*+ shard(N) */ behind the first word."
)
_OF_STATEMENT: Final = OF_TEXT | {1364}
"""Every shard gives them, one server would once."""


class _Pipeline:
    """Receives the replies to one host's statements, in order: behind each but the last its warnings, which
    the next statement would end.
    """

    whole = True
    own = False

    def __init__(self, client: Exchange, parts: list[Part], opens: bool) -> None:
        """`opens`: whether a transaction may be open after them."""
        self.client = client
        self.parts = parts
        self._opens = opens
        self.warnings = 0  # of the last one
        self._index = 0
        self._reader = ResultReader()
        self._rows: list[bytes] = []
        self._asking = False  # the warnings come next, which are not counted
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, conn: BackendConnection, packets: bytes, count: int) -> None:
        packets += _SHOW_WARNINGS.join(query_packet(part.statement.sql) for part in self.parts)
        conn.send(packets, self, count, replies=2 * len(self.parts) - 1)
        conn.shards = self.parts[0].loads
        await end_of_reply(conn, self._future)

    def accepts(self, conn: BackendConnection, changed: bool) -> bool:
        return self._opens

    def reply_data(self, conn: BackendConnection, data: bytes) -> None:
        """Rows of warnings, or of RETURNING; an OK or ERR packet was read by the scanner."""
        block = self._reader.feed(data)
        if block:
            self._rows += split_rows(block)

    def reply_done(self, conn: BackendConnection) -> None:
        part, rows = self.parts[self._index], self._rows
        columns = self._reader.columns
        self._reader, self._rows = ResultReader(), []
        if self._asking:
            part.diagnostics = _diagnostics(rows)
            self._asking = False
            self._index += 1
            conn.sent, conn.shards = conn.ended, self.parts[self._index].loads
            return
        part.ok, part.error = conn.scanner.ok, conn.scanner.err
        part.columns, part.rows, part.warnings = columns, rows, conn.scanner.warnings
        part.answered = True
        self.client.visited(conn, part.loads)
        if self._index < len(self.parts) - 1:
            self._asking = True
            conn.sent = 0.0
            return
        self.warnings = conn.scanner.warnings
        if not self._future.done():
            self._future.set_result(None)

    def reply_lost(self, conn: BackendConnection, error: ProxyError, clean: bool) -> None:
        self.client.visited(conn, self.parts[self._index].loads)
        for part in self.parts[self._index :]:
            if not part.answered:
                part.error = error
        if not self._future.done():
            self._future.set_result(None)


@dataclass(slots=True)
class HostWork:
    """One host's part of the statement. `kept`: the session holds the connection, whatever happens here."""

    host: str
    parts: list[Part]
    conn: BackendConnection | None = None
    kept: bool = False


async def run_writes(
    client: Exchange,
    bound: Bound,
    running: set[BackendConnection],
    keyspace: str | None = None,
    *,
    returning: bool = False,
    column_metadata: ColumnMetadata | None = None,
    effects: Effects | None = None,
) -> None:
    """Run the statements of `bound` and answer the client. Their connections are put into `running`.
    `keyspace` is that of its table. `returning`: with the rows that they give, whose columns'
    `column_metadata` these are. `effects`: of the only statement; several have none that are read back.
    """
    whole = bound.refers_to()
    if whole is not None and (error := await unresolved(client, whole)) is not None:
        client.fail(lease.refused_by_master(client, whole.host, error))
        return
    parts = [
        Part(statement, bound.inserted[index] if bound.inserted else None)
        for index, statement in enumerate(bound.statements)
    ]
    if keyspace is not None:
        loads, placed = client.services.backends.loads, client.snapshot.topology.keyspaces[keyspace]
        for part in parts:
            part.loads = loads.of(placed, part.statement.shards)
    works: dict[str, HostWork] = {}
    for part in parts:
        host = part.statement.host
        works.setdefault(host, HostWork(host, [])).parts.append(part)
    session = client.session
    atomic = (session.transaction.explicit or not session.autocommit) and len(parts) > 1
    effects = effects if len(parts) == 1 else None
    try:
        for host in sorted(works):  # in this order everywhere: two statements never wait for each other
            await connect(client, works[host])
        running.update(work.conn for work in works.values() if work.conn is not None)
        reached = all(work.conn is not None for work in works.values())
        if reached:  # else nothing is sent: better no write than half of one
            await asyncio.gather(
                *(run_host(client, work, atomic, effects=effects) for work in works.values())
            )
        failed = [part for part in parts if part.error is not None]
        if failed and atomic and reached:
            await undo(works.values())
    except BaseException:
        for work in works.values():
            if work.conn is not None and not work.kept:
                lease.free(work.conn)
        raise
    give_back(client, works.values(), failed=bool(failed))
    if failed:
        _report(client, parts, failed, undone=atomic or not reached)
    elif returning:
        _answer_rows(client, bound, parts, column_metadata)
    else:
        _answer(client, bound, parts)


def give_back(client: Exchange, works: Iterable[HostWork], *, failed: bool) -> None:
    lease.give_all_back(client, [work.conn for work in works if work.conn is not None], failed=failed)


async def connect(client: Exchange, work: HostWork) -> None:
    session = client.session
    work.conn = session.transaction.held.get(work.host)
    work.kept = work.conn is not None
    if work.conn is None:
        try:
            work.conn = await lease.outside(client, work.host)
        except ProxyError as error:
            for part in work.parts:
                part.error = error


async def run_host(
    client: Exchange,
    work: HostWork,
    atomic: bool,
    settings: Settings | None = None,
    opening: tuple[bytes, int] = (b"", 0),
    effects: Effects | None = None,
) -> None:
    """One network write for the host, and its replies. With `atomic` a savepoint comes first. `settings`:
    others than the session's. `opening`: packets in front, each answered by OK, and how many they are.
    `effects`: of the only statement, to be read back; its insert id the caller knows, unless it is ASSIGNED.
    """
    conn = work.conn
    if conn is None:
        return
    packets, count = sync_packets(client.session, conn, settings)
    if effects is not None:
        if effects.insert_id != ASSIGNED:
            effects = effects._replace(insert_id="given")
        more, number = effects_packets(client.session, conn, effects)
        packets, count = packets + more, count + number
    packets += opening[0]
    count += opening[1]
    work.kept = client.session.transaction.held.get(work.host) is conn
    if atomic:
        packets += query_packet(b"SAVEPOINT " + _SAVEPOINT)
        count += 1
    conn.begun = client.begun
    pipeline = _Pipeline(client, work.parts, bool(opening[1]) or opens(client.session, conn))
    await pipeline.run(conn, packets, count)
    failed = any(part.error for part in work.parts)
    if not conn.closed and (pipeline.warnings or failed or effects is not None):
        work.parts[-1].diagnostics = await drain_diagnostics(client, conn, effects)


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


def _report(client: Exchange, parts: list[Part], failed: list[Part], *, undone: bool) -> None:
    """Tell the client which shards have done their part and which have not."""
    worst = min(failed, key=_failed_row)  # one server stops at the first row that it cannot write
    first = _told(worst)
    done = [part for part in parts if part.error is None]
    unsure = [one for one in failed if isinstance(one.error, ProxyError) and one.error.unsure]
    if undone or not (done or len(failed) > len(unsure) > 0):
        if isinstance(first, ProxyError):
            first.shards = [load for one in failed if one.error is first for load in one.loads]
        client.fail(lease.refused_by_master(client, worst.statement.host, first))
        if len(worst.diagnostics) > 1:
            found = [_of_row(worst.inserted, one)[1] for one in worst.diagnostics]
            say_state(found, first)
            client.session.apply(Outcome(diagnostics=logical_rows(client, found)))
        return
    text = logical(client, first.text()) if isinstance(first, Err) else first.text
    again = _INSERT_AGAIN if worst.inserted is not None else _WRITE_AGAIN
    refused = [one for one in failed if one not in unsure]
    error = ProxyError(
        "partial_write",
        outcome=in_parts(*map(_shards, (done, refused, unsure))),
        reason=f"{text.removesuffix('.')} (error {first.code})",
        advice=_LOOK_FIRST if unsure else again,
    )
    client.fail(error)


def _told(part: Part) -> Err | ProxyError:
    """The error of a statement, in the client's terms."""
    error = part.error
    assert error is not None
    if not isinstance(error, Err) or part.inserted is None:
        return error
    _, told = _of_row(part.inserted, Diagnostic("Error", error.code, error.text()))
    return replace(error, message=told.message.encode())


def _failed_row(part: Part) -> int:
    """The index of the row of the client's INSERT that a shard could not write, as far as it says."""
    inserted, error = part.inserted, part.error
    if inserted is None or not inserted.numbers or not isinstance(error, Err):
        return 0
    row, _ = _of_row(inserted, Diagnostic("Error", error.code, error.text()))
    return row - 1 if row else inserted.first


def _shards(parts: list[Part]) -> str:
    """`shards 3, 17 on 127.0.0.1:3306`."""
    by_host: dict[str, list[int]] = {}
    for part in parts:
        by_host.setdefault(part.statement.host, []).extend(part.statement.shards)
    texts = []
    for host, shards in by_host.items():
        numbers = sorted(set(shards))
        shown = ", ".join(map(str, numbers[:20])) + (
            f" and {len(numbers) - 20} more" if len(numbers) > 20 else ""
        )
        texts.append(f"shard{'s' if len(numbers) > 1 else ''} {shown} on {host}")
    return "; ".join(texts)


def _answer_rows(
    client: Exchange, bound: Bound, parts: list[Part], column_metadata: ColumnMetadata | None
) -> None:
    """The rows of RETURNING: those of an INSERT in the order of its own."""
    rows: list[tuple[int, bytes]] = []
    for part in parts:
        numbers = part.inserted.numbers if part.inserted is not None else ()
        told = len(numbers) == len(part.rows)
        rows += [(numbers[at] if told else 0, row) for at, row in enumerate(part.rows)]
    rows.sort(key=lambda pair: pair[0])
    diagnostics, _ = _all_diagnostics(parts)
    found = logical_rows(client, diagnostics) + notices(bound.warnings)
    client.session.apply(Outcome(diagnostics=found, tables=True))
    columns = parts[0].columns
    if column_metadata is not None:
        columns = changed(columns, place_of(column_metadata, client.snapshot.topology))
    write_result(client, columns, [row for _, row in rows], len(found))


def _answer(client: Exchange, bound: Bound, parts: list[Part]) -> None:
    affected = sum(part.ok.affected for part in parts if part.ok is not None)
    insert_id, generated = first_id(parts)
    diagnostics, repeated = _all_diagnostics(parts)
    warnings = sum(part.ok.warnings for part in parts if part.ok is not None) - repeated
    found = logical_rows(client, diagnostics) + notices(bound.warnings)
    made = insert_id if generated else None
    info = summed_info(parts, warnings + len(bound.warnings))
    matched = client.session.matched(info)
    client.session.apply(Outcome(affected, made, matched, diagnostics=found, tables=True))
    client.reply_ok(
        affected=affected, insert_id=insert_id, warnings=warnings + len(bound.warnings), info=info
    )


def _diagnostics(rows: list[bytes]) -> list[Diagnostic]:
    """The rows of SHOW WARNINGS; none when they cannot be read."""
    try:
        values = [decode_row(row, 3) for row in rows]
    except ProtocolError:
        return []
    return [
        Diagnostic((level or b"").decode("latin-1"), int(code or 0), (text or b"").decode("utf-8", "replace"))
        for level, code, text in values
    ]


def _all_diagnostics(parts: list[Part]) -> tuple[list[Diagnostic], int]:
    """What all shards have warned of, with the numbers of the rows of the client's own INSERT, in order; and
    how many of them only repeat what another shard has said of the statement.
    """
    found: list[tuple[int, Diagnostic]] = []
    repeated = 0
    said: set[Diagnostic] = set()
    for part in parts:
        mine: set[Diagnostic] = set()
        for one in part.diagnostics:
            if one.code in _OF_STATEMENT and one in said:
                repeated += 1
                continue
            mine.add(one)
            found.append(_of_row(part.inserted, one))
        said |= mine
    found.sort(key=lambda pair: pair[0])
    return [one for _, one in found], repeated


def _of_row(inserted: Inserted | None, one: Diagnostic) -> tuple[int, Diagnostic]:
    """A warning with the client's number of the row, and that (0: none is told)."""
    if inserted is None or not inserted.numbers:
        return 0, one
    text, number = inserted.told(one.code, one.message), 0
    row = _AT_ROW.search(text)
    if row is not None and 0 < int(row[1]) <= len(inserted.numbers):
        number = inserted.numbers[int(row[1]) - 1] + 1
        text = text[: row.start()] + str(number)
    return number, Diagnostic(one.level, one.code, text)
