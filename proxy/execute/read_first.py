"""Writes that have to read first: INSERT … SELECT over shards, and changes of rows that a SELECT must find.

All statements run by the ordinary way, so each goes where it belongs, whatever its kind: a sink takes the
SELECT's rows instead of the client, and then has the writes follow. The rows are bounded by `gather_bytes`.
Over several shards a write is like any other: atomic in a transaction, else each shard commits by itself.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from proxy.engine.sinks import CommandSink
from proxy.errors import ProxyError
from proxy.session.outcome import RESULT_SET, Diagnostic, Outcome
from proxy.session.values import quote
from proxy.wire.constants import BINARY_COLLATION, ColumnType
from proxy.wire.packets import (
    Err,
    PacketReader,
    ProtocolError,
    frame,
    lenenc_bytes,
    ok_packet,
    parse_ok,
    read_lenenc_bytes,
)
from proxy.wire.resultset import NUMERIC, Column, decode_column, decode_row

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

_STRICT: Final = {
    1260: "HY000", 1264: "22003", 1265: "01000", 1292: "22007", 1366: "HY000", 1406: "22001", 1411: "HY000",
    1441: "22008", 1916: "HY000", 3020: "2201E",
}  # fmt: skip
"""Warnings that strict mode makes errors, with their SQLSTATEs."""


class ReadFirst(CommandSink):
    """The statement at work: it takes the SELECT's rows, then runs the writes.

    The reply to one write passes through. Of several the counts are summed, and they are one: outside a
    transaction they get one of their own, inside of one a savepoint.
    """

    __slots__ = (
        "affected", "columns", "count", "diagnostics", "error", "failure", "info", "own", "plan", "queue",
        "reader", "rows", "savepoint", "seq", "size", "state", "total", "values",
    )  # fmt: skip

    def __init__(self, client: Exchange, plan: ReadThenWrite, values: Values) -> None:
        super().__init__(client)
        self.plan = plan
        self.values = values
        self.seq = client.seq
        self.reader: PacketReader | None = PacketReader(1 << 32)
        self.state = "count"  # of the SELECT's reply: count, columns, rows, over; then "writes", "end"
        self.count = 0
        self.columns: list[Column] = []
        self.rows: list[Row] = []
        self.size = 0
        self.error: bytes | ProxyError | None = None
        self.queue: list[bytes] = []  # the writes to come, when there are several
        self.total = Counter[str]()
        self.affected = 0
        self.diagnostics: list[Diagnostic] = []
        self.failure: tuple[bytes, str] | None = None  # of a write: its ERR payload, and the outcome
        self.own = False  # a transaction of the statement's own
        self.savepoint = False

    @property
    def writing(self) -> bool:
        """Whether the SELECT is done."""
        return self.reader is None or self.state in ("writes", "end")

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.reader is None:
            self.below.write(self._reply(bytes(data)))
            return
        for _, payload in self.reader.feed(bytes(data)):
            self._take(payload)

    def _take(self, payload: bytes) -> None:
        """A packet of the SELECT's reply, or the reply to one of several writes."""
        if self.state in ("writes", "end"):
            self._count(payload)
        elif payload[:1] == b"\xff":
            self.error = payload
        elif self.state == "count":
            self.count = payload[0] if payload[0] < 251 else int.from_bytes(payload[1:3], "little")
            self.state = "columns" if self.count else "over"
        elif self.state == "columns" and len(self.columns) < self.count:
            self.columns.append(decode_column(payload))
        elif self.state == "columns":
            self.state = "rows"  # the EOF packet behind the definitions
        elif payload[:1] == b"\xfe" and len(payload) < 9:
            self.state = "over"
        elif self.error is None:
            self._row(payload)

    def _row(self, payload: bytes) -> None:
        try:
            values = decode_row(payload, self.count)
            literals = [self._literal(*pair) for pair in zip(values, self.columns, strict=True)]
        except ProtocolError:
            self.error = ProxyError("merge_failed", reason="a row that cannot be read")
            return
        except ProxyError as error:
            self.error = error
            return
        self.size += sum(map(len, literals)) + 2 * len(literals) + 2
        limit = self.client.services.settings.limits.gather_bytes
        if limit and self.size > limit:
            self.error = ProxyError("gather_limit", limit=limit, unit="bytes", setting="gather_bytes")
            self.rows.clear()
        else:
            self.rows.append(tuple(literals))

    def _literal(self, value: bytes | None, column: Column) -> bytes:
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
        session = self.client.session
        if not value.isascii() and (session.unsafe_charset or not _same_charset(self.client)):
            raise ProxyError("charset_refused", charset=session.env.charset)
        return quote(value, session.no_backslash_escapes)

    def _reply(self, data: bytes) -> bytes:
        """An INSERT's reply: of a single row, too, the client is told how many there were."""
        if data[4:5] != b"\0" or len(self.rows) != 1 or not self.plan.rows:
            return data
        ok = parse_ok(data[4:])
        if ok.info:
            return data
        duplicates = not ok.affected if self.plan.ignore else max(ok.affected - 1, 0)
        info = b"Records: 1  Duplicates: %d  Warnings: %d" % (duplicates, ok.warnings)
        return ok_packet(
            data[3],
            ok.status,
            affected=ok.affected,
            insert_id=ok.insert_id,
            warnings=ok.warnings,
            info=lenenc_bytes(info),
        )

    def answered(self, outcome: str) -> None:
        if self.reader is None:
            super().answered(outcome)
        elif self.state in ("writes", "end"):
            self._written(outcome)
        else:
            self._found(outcome)

    def _found(self, outcome: str) -> None:
        """The SELECT is answered."""
        error: bytes | ProxyError | Err | None = self.error
        if error is None:
            error = self._strict_error()
        if error is None and not self.columns:
            error = ProxyError("merge_failed", reason="the SELECT gave no result set")
        writes: list[bytes] = []
        if error is None:
            chunk = self.client.services.settings.limits.in_list or len(self.rows)
            writes = self.plan.writes.statements(self.values, self.rows, chunk)
        if len(writes) > 1:
            self._begin(writes)
            return
        self.reader = None
        if isinstance(error, ProxyError | Err):
            self.client.fail(error)  # which comes back here
        elif error is not None:
            self.below.write(frame(error, self.seq + 1))
            super().answered(outcome)
        elif not writes:
            self._nothing()
            super().answered(outcome)
        else:
            self.client.go_on(self.seq, writes[0])

    def _strict_error(self) -> Err | None:
        """The SELECT's first warning that in strict mode is an error, as it is in a statement that writes.

        (MariaDB begins to be strict when an UPDATE or DELETE has sorted its rows.)
        """
        session = self.client.session
        if self.plan.ignore or not session.strict or (self.plan.changes and session.env.mariadb):
            return None
        for one in session.diagnostics:
            if one.level == "Warning" and one.code in _STRICT:
                return Err(one.code, _STRICT[one.code], one.message.encode())
        return None

    def _nothing(self) -> None:
        """There was no row to write: what the SELECT has warned of is all there is to tell."""
        session = self.client.session
        session.apply(Outcome(0))
        warnings = len(session.diagnostics)
        text = self.plan.nothing.replace(b"Warnings: 0", b"Warnings: %d" % warnings)
        info = lenenc_bytes(text) if text else b""
        self.below.write(ok_packet(self.seq + 1, session.status(), warnings=warnings, info=info))

    # several writes

    def _begin(self, writes: list[bytes]) -> None:
        self.state, self.queue = "writes", writes
        session = self.client.session
        if session.transaction.explicit or not session.autocommit:
            self.savepoint = True
            self._next(b"SAVEPOINT " + _SAVEPOINT)
        elif session.transaction_mode != "single":
            self.own = True
            self._next(b"START TRANSACTION")
        else:
            self._next(self.queue.pop(0))

    def _next(self, sql: bytes) -> None:
        self.client.go_on(self.seq, sql)

    def _count(self, payload: bytes) -> None:
        """The reply to one of the statements."""
        if payload[:1] == b"\xff":
            self.failure = self.failure or (payload, "")
            return
        ok = parse_ok(payload)
        self.affected += ok.affected
        info = read_lenenc_bytes(ok.info, 0)[0] if ok.info else b""
        for part in (info or b"").decode("latin-1").split("  "):
            name, colon, number = part.rpartition(": ")
            if colon and number.isdigit():
                self.total[name] += int(number)

    def _written(self, outcome: str) -> None:
        """One of the statements is answered."""
        session = self.client.session
        if self.state == "end":
            self._tell()
        elif self.failure is not None:
            self.failure = (self.failure[0], outcome)
            self.diagnostics = session.diagnostics
            self.state, self.affected = "end", 0
            if self.own:
                self._next(b"ROLLBACK")
            elif self.savepoint and not session.transaction.lost and session.transaction.open:
                self._next(b"ROLLBACK TO SAVEPOINT " + _SAVEPOINT)
            else:
                self._tell()
        else:
            self.diagnostics += session.diagnostics
            if self.queue:
                self._next(self.queue.pop(0))
            elif self.own:
                self.state = "end"
                self._next(b"COMMIT")
            elif self.savepoint:
                self.state = "end"
                self._next(b"RELEASE SAVEPOINT " + _SAVEPOINT)
            else:
                self._tell()

    def _tell(self) -> None:
        """Tell the client what became of them all."""
        session = self.client.session
        self.reader = None
        affected = RESULT_SET if self.failure is not None else self.affected
        session.apply(Outcome(affected, diagnostics=self.diagnostics))
        if self.failure is not None:
            payload, outcome = self.failure[0], self.failure[1] or "error"
            self.below.write(frame(payload, self.seq + 1))
            super().answered(outcome)
            return
        info = b""
        if self.total:
            self.total["Warnings"] = len(self.diagnostics)
            texts = (f"{name}: {number}" for name, number in self.total.items())
            info = lenenc_bytes("  ".join(texts).encode())
        self.below.write(
            ok_packet(
                self.seq + 1,
                session.status(),
                affected=self.affected,
                warnings=len(self.diagnostics),
                info=info,
            )
        )
        super().answered("ok")


def writing(client: Exchange) -> ReadFirst | None:
    """The statement that has read, and has the one at work run to write."""
    sink = client.sink
    while sink is not None and not isinstance(
        sink, ReadFirst
    ):  # a long statement has a sink of its own on top
        sink = sink.under
    return sink if sink is not None and sink.writing else None


def spreads(client: Exchange) -> bool:
    """Whether the INSERT at work has so many rows from a SELECT that each finds a shard by itself."""
    sink = writing(client)
    if sink is None:
        return False
    session = client.session
    if session.transaction_mode == "single" and (session.transaction.explicit or not session.autocommit):
        return False  # it would be refused
    return len(sink.rows) > client.services.settings.placement.together


def _same_charset(client: Exchange) -> bool:
    """Whether text comes in the character set that statements are written in."""
    settings = client.session.settings
    return settings.get("character_set_results") == settings.get("character_set_client")
