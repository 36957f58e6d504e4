"""Writes that have to read first: INSERT … SELECT over shards, and changes of rows that a SELECT must find.

All statements run by the ordinary way, so each goes where it belongs, whatever its kind. The rows are bounded
by `gather_bytes`. Over several shards a write is like any other: atomic in a transaction, else each shard
commits by itself.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from proxy.engine.loading import every_row
from proxy.engine.result import Failed, ResultSink, ToClient
from proxy.engine.run import Steps, run
from proxy.engine.work import Writing
from proxy.errors import ProxyError
from proxy.execute.strict_mode import strict_error
from proxy.session.outcome import RESULT_SET, Diagnostic, Diagnostics, Outcome
from proxy.session.transaction import PLAINLY
from proxy.session.values import quote
from proxy.wire.constants import BINARY_COLLATION, ColumnType
from proxy.wire.packets import lenenc_bytes, ok_packet, parse_ok, read_lenenc_bytes
from proxy.wire.resultset import NUMERIC, Column, decode_column, decode_row
from rewriter.plans.read_write import FillIn

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from rewriter.plan import Values
    from rewriter.plans import ReadThenWrite
    from rewriter.plans.read_write import Row

_SAVEPOINT: Final = b"shardgate_several"
_BYTES: Final = frozenset({ColumnType.BIT, ColumnType.GEOMETRY})
_STRINGS: Final = frozenset(
    {
        ColumnType.VARCHAR,
        ColumnType.VAR_STRING,
        ColumnType.STRING,
        ColumnType.TINY_BLOB,
        ColumnType.MEDIUM_BLOB,
        ColumnType.LONG_BLOB,
        ColumnType.BLOB,
    }
)


def read_first(client: Exchange, plan: ReadThenWrite, values: Values) -> None:
    """Run a ReadThenWrite as the client's work."""
    Steps(client).start(_read_first(client, plan, values))


async def _read_first(client: Exchange, plan: ReadThenWrite, values: Values) -> None:
    session = client.session
    strict = plan.strict and not plan.ignore and session.strict
    before = session.found_rows
    try:
        with every_row(client, warnings=strict):
            found = await run(client, plan.select.render(values), _Found(client))
    finally:
        if not plan.rows:  # the client knows of no SELECT
            session.apply(Outcome(found=before))
    error = strict_error(found.diagnostics, session.env.flavour) if strict else None
    if error is not None:
        client.fail(error)
        return
    if not found.width:
        raise ProxyError("merge_failed", reason="the SELECT gave no result set")
    chunk = client.services.settings.limits.in_list or len(found.read)
    writes = plan.writes.statements(values, found.read, chunk)
    client.writing = Writing(len(found.read), isinstance(plan.writes, FillIn))
    try:
        if not writes:
            _nothing(client, plan, found.diagnostics)
        elif plan.on_duplicate:
            await _insert_or_update(client, plan, writes[0], found)
        elif len(writes) == 1 and not found.diagnostics and (plan.rows or not plan.assigns_id):
            alone = plan.rows and len(found.read) == 1
            told = await run(client, writes[0], _Inserted(client, plan) if alone else ToClient(client))
            client.finish(told.outcome)
        else:
            total = await _write_all(client, writes, found.diagnostics)
            if plan.assigns_id and not plan.rows:  # the SELECT has assigned it
                total.insert_id = total.insert_id or session.last_insert_id
            total.tell(plan if plan.rows and len(found.read) == 1 else None)
    finally:
        client.writing = None


class _Found(ResultSink):
    """The SELECT's rows, as literals."""

    __slots__ = ("_columns", "_limit", "_size", "read")

    def __init__(self, client: Exchange) -> None:
        super().__init__(client)
        self.read: list[Row] = []
        self._columns: list[Column] = []
        self._limit = client.services.settings.limits.gather_bytes
        self._size = 0

    @property
    def width(self) -> int:
        """How many columns; 0: there was no result set."""
        return len(self._columns)

    def columns(self, definitions: list[bytes]) -> None:
        self._columns = [decode_column(one) for one in definitions]

    def rows(self, rows: list[bytes]) -> None:
        for payload in rows:
            values = decode_row(payload, len(self._columns))
            row = tuple([_literal(self.client, *pair) for pair in zip(values, self._columns, strict=True)])
            self._size += sum(map(len, row)) + 2 * len(row) + 2
            if self._limit and self._size > self._limit:
                self.read.clear()
                raise ProxyError("gather_limit", limit=self._limit, unit="bytes", setting="gather_bytes")
            self.read.append(row)


def _literal(client: Exchange, value: bytes | None, column: Column) -> bytes:
    """A value as it is written in VALUES."""
    if value is None:
        return b"NULL"
    if column.type == ColumnType.FLOAT:
        raise ProxyError(
            "not_supported_yet",
            what="writing by a SELECT of a FLOAT column",
            reason="its text has fewer digits than its value",
            alternative="Select it as (column + 0e0).",
        )
    if column.type == ColumnType.DOUBLE and b"e" not in value:
        return value + b"e0"  # a number with a point alone would be DECIMAL, and rounded otherwise
    if column.type in NUMERIC:
        return value
    if column.type in _BYTES:
        return b"x'" + value.hex().encode() + b"'"
    if column.type in _STRINGS and column.collation == BINARY_COLLATION:
        return b"_binary x'" + value.hex().encode() + b"'"  # not a number, whatever the column
    session = client.session
    if not value.isascii() and not _writes_utf8(client):
        return b"_utf8mb4 x'" + value.hex().encode() + b"'"
    return quote(value, session.no_backslash_escapes)


def _writes_utf8(client: Exchange) -> bool:
    """Whether statements are written in utf8mb4, and a literal keeps all its letters."""
    settings = client.session.settings
    return all(
        settings.get(name) in (b"utf8mb4", b"'utf8mb4'")
        for name in ("character_set_client", "character_set_connection")
    )


def _nothing(client: Exchange, plan: ReadThenWrite, diagnostics: list[Diagnostic]) -> None:
    """Answer the client where there is no row to write: with the warnings of the SELECT."""
    session = client.session
    session.apply(Outcome(0, found=session.matched(plan.nothing), diagnostics=diagnostics))
    warnings = session.warning_count
    text = plan.nothing.replace(b"Warnings: 0", b"Warnings: %d" % warnings)
    client.reply_ok(warnings=warnings, info=lenenc_bytes(text) if text else b"")


class _Inserted(ToClient):
    """The reply to an INSERT of a single row: of a SELECT's, too, the client is told how many there were."""

    __slots__ = ("_ignore",)

    def __init__(self, client: Exchange, plan: ReadThenWrite) -> None:
        super().__init__(client)
        self._ignore = plan.ignore

    def write(self, data: bytes | bytearray | memoryview) -> None:
        super().write(self._counted(bytes(data)))

    def _counted(self, data: bytes) -> bytes:
        if data[4:5] != b"\0":
            return data
        ok = parse_ok(data[4:])
        if ok.info:
            return data
        return ok_packet(
            data[3],
            ok.status,
            affected=ok.affected,
            insert_id=ok.insert_id,
            warnings=ok.warnings,
            info=_of_one_row(ok.affected, ok.warnings, ignore=self._ignore),
        )


def _of_one_row(affected: int, warnings: int, *, ignore: bool) -> bytes:
    """The info text of an INSERT … SELECT of one row, encoded as in an OK packet."""
    duplicates = not affected if ignore else max(affected - 1, 0)
    return lenenc_bytes(b"Records: 1  Duplicates: %d  Warnings: %d" % (duplicates, warnings))


async def _insert_or_update(client: Exchange, plan: ReadThenWrite, sql: bytes, found: _Found) -> None:
    """Run the INSERT of a SELECT's rows that says ON DUPLICATE KEY UPDATE, and answer the client. The insert
    id is one that LAST_INSERT_ID() has from now on: a server tells an id that was given for VALUES only.
    """
    session = client.session
    before = session.last_insert_id
    total = _Total(client, found.diagnostics)
    await total.run(sql)
    kept = session.last_insert_id
    made = kept == total.insert_id and (plan.assigns_id or kept != before)
    total.insert_id = kept if made else 0
    total.tell(plan if len(found.read) == 1 else None)


def spreads(client: Exchange) -> bool:
    """Whether the INSERT at work has so many rows from a SELECT that each finds a shard by itself."""
    if client.writing is None:
        return False
    session = client.session
    if session.transaction_mode == "single" and (session.transaction.explicit or not session.autocommit):
        return False  # it would be refused
    return client.writing.rows > client.services.settings.placement.together


# -- several writes


async def _write_all(client: Exchange, writes: list[bytes], diagnostics: list[Diagnostic]) -> _Total:
    """Run several writes as one, and add up their counts and `diagnostics`. Outside of a transaction they
    have one of their own, inside of one a savepoint. Under LOCK TABLES, which a transaction would end, each
    is by itself. Raises Failed or ProxyError when nothing of them is done.
    """
    session, total = client.session, _Total(client, diagnostics)
    transaction = session.transaction
    before = after = undo = b""
    within = transaction.explicit or not session.autocommit
    if len(writes) == 1:
        within = False
    elif within:
        before, after = b"SAVEPOINT " + _SAVEPOINT, b"RELEASE SAVEPOINT " + _SAVEPOINT
        undo = b"ROLLBACK TO SAVEPOINT " + _SAVEPOINT
    elif session.transaction_mode != "single" and not transaction.locks_tables:
        before, after, undo = b"START TRANSACTION", b"COMMIT" + PLAINLY, b"ROLLBACK" + PLAINLY
    try:
        if before:
            await run(client, before, ResultSink(client))
        for sql in writes:
            await total.run(sql)
    except Exception:
        diagnostics = session.diagnostics
        if undo and not (within and (transaction.lost or not transaction.open)):
            with suppress(Failed, ProxyError):  # the first error is what is told
                await run(client, undo, ResultSink(client), steady=True)
        session.apply(Outcome(RESULT_SET, diagnostics=diagnostics))
        raise
    if after:
        await run(client, after, ResultSink(client), steady=True)
    return total


class _Total:
    """The sums of the counts of several writes, and their warnings behind the `diagnostics` of the SELECT."""

    def __init__(self, client: Exchange, diagnostics: list[Diagnostic]) -> None:
        self.client = client
        self.affected = 0
        self.insert_id = 0
        self.counts = Counter[str]()
        self._read = diagnostics
        self._written: list[Diagnostic] = []

    async def run(self, sql: bytes) -> None:
        """Run one of them."""
        done = await run(self.client, sql, _Written(self.client))
        ok = parse_ok(done.ok)
        self.affected += ok.affected
        self.insert_id = ok.insert_id or self.insert_id  # what LAST_INSERT_ID(value) had for the last row
        info = read_lenenc_bytes(ok.info, 0)[0] if ok.info else b""
        for part in (info or b"").decode("latin-1").split("  "):
            name, colon, number = part.rpartition(": ")
            if colon and number.isdigit():
                self.counts[name] += int(number)
        self._written += done.diagnostics

    def tell(self, of_one_row: ReadThenWrite | None) -> None:
        """Answer the client. `of_one_row`: the plan that has inserted one row of its SELECT."""
        session = self.client.session
        kept = session.settings.get("max_error_count") or b""
        shown = _both(self._read, self._written, int(kept) if kept.isdigit() else None)
        session.apply(Outcome(self.affected, diagnostics=shown))
        warnings = session.warning_count
        info = b""
        if self.counts:
            self.counts["Warnings"] = warnings
            texts = (f"{name}: {number}" for name, number in self.counts.items())
            info = lenenc_bytes("  ".join(texts).encode())
            session.apply(Outcome(found=session.matched(info)))
        elif of_one_row is not None:
            info = _of_one_row(self.affected, warnings, ignore=of_one_row.ignore)
        self.client.reply_ok(affected=self.affected, insert_id=self.insert_id, warnings=warnings, info=info)


def _both(read: list[Diagnostic], written: list[Diagnostic], most: int | None) -> Diagnostics:
    """The warnings of the SELECT and of the writes; `most`: the number of those that are kept. A condition
    that a write repeats warns once more of rows that the SELECT has warned of.
    """
    found, repeated = Diagnostics(read), Counter(read)
    for one in written:
        if repeated[one]:
            repeated[one] -= 1
        else:
            found.append(one)
    found.total = len(found) + max(getattr(read, "total", 0) - len(read), 0)
    del found[len(found) if most is None else most :]
    return found


class _Written(ResultSink):
    """The OK packet of a write."""

    __slots__ = ("ok",)

    def end(self, payload: bytes) -> None:
        self.ok = payload
