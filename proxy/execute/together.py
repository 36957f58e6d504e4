"""A write over several shards with transaction_mode = 'xa', outside of a transaction: one of its own, so that
it is done on all of them or on none. On one host that is an ordinary transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from proxy.engine.outside_transaction import write_result
from proxy.engine.result import Failed, ResultSink
from proxy.engine.run import Steps, run, run_by
from proxy.errors import ProxyError
from proxy.session.outcome import Outcome
from proxy.session.transaction import PLAINLY
from proxy.wire.packets import parse_ok

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange


def alone(client: Exchange) -> bool:
    """Whether a write over several shards needs a transaction of its own. Under LOCK TABLES, which that would
    end, each shard commits by itself.
    """
    session = client.session
    transaction = session.transaction
    return (
        session.distributes and session.autocommit and not (transaction.explicit or transaction.locks_tables)
    )


def write_together(client: Exchange, start: Callable[[], None]) -> None:
    """Run the write that `start` begins as the client's work, in a transaction of its own."""
    Steps(client).start(_write_together(client, start))


async def _write_together(client: Exchange, start: Callable[[], None]) -> None:
    session = client.session
    await run(client, b"START TRANSACTION", ResultSink(client))
    try:
        result = await run_by(client, start, _Result(client))
    except Exception:
        kept = _kept(client)
        with suppress(Failed, ProxyError):  # the first error is what is told
            await run(client, b"ROLLBACK" + PLAINLY, ResultSink(client), steady=True)
        session.apply(kept)
        raise
    kept = _kept(client)
    done = await run(client, b"COMMIT" + PLAINLY, _Result(client), steady=True)
    later = session.diagnostics if parse_ok(done.last).warnings else []
    session.apply(kept._replace(diagnostics=[*(kept.diagnostics or ()), *later]))
    result.tell(len(later))


def _kept(client: Exchange) -> Outcome:
    """What the session tells of the statement, and ROLLBACK or COMMIT would change."""
    session = client.session
    return Outcome(session.row_count, session.last_insert_id, session.found_rows, session.diagnostics)


class _Result(ResultSink):
    """What the client is told as soon as it is committed."""

    __slots__ = ("_columns", "_rows", "last")

    def __init__(self, client: Exchange) -> None:
        super().__init__(client)
        self._columns: list[bytes] = []
        self._rows: list[bytes] = []
        self.last = b""

    def columns(self, definitions: list[bytes]) -> None:
        self._columns = definitions

    def rows(self, rows: list[bytes]) -> None:
        self._rows += rows

    def end(self, payload: bytes) -> None:
        self.last = payload

    def tell(self, later: int) -> None:
        """Answer. `later`: so many warnings of COMMIT come to its own."""
        if self._columns:  # RETURNING
            warnings = int.from_bytes(self.last[1:3], "little")
            write_result(self.client, self._columns, self._rows, warnings + later)
            return
        ok = parse_ok(self.last)
        warnings = ok.warnings + later
        self.client.reply_ok(affected=ok.affected, insert_id=ok.insert_id, warnings=warnings, info=ok.info)
