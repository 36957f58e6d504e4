"""CALL of an orderable mapping's procedure: a row of a list is put between two others.

The statements go by the ordinary way, so planning, rights, routing and transactions are not written twice. A
first read, which locks nothing, tells where the rows stand; then the one that the moved row is to be beside
is locked with its neighbours, and only what is seen then counts. What another client has moved in between is
looked for again, with and without locks in turn. One row is written; more only where two rows have no
room between them (they have the same sequence, say): then those around make room first.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from config.topology import Keyspace
from proxy.engine.result import Failed, ResultSink
from proxy.engine.run import Steps, run
from proxy.errors import ProxyError
from proxy.reordering.respacing import Job, rows_of
from proxy.reordering.room import Row, Wish, make_room
from proxy.reordering.spacing import between, narrowest
from proxy.session.outcome import RESULT_SET, Diagnostic, Outcome
from proxy.session.transaction import PLAINLY
from proxy.wire.packets import parse_ok
from proxy.wire.resultset import decode_row
from rewriter.plans.reorder import LOOKED_AT, Asked, Move, OrderedRows, Reorder

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from rewriter.plan import Values

_SAVEPOINT: Final = b"shardgate_reorder"
_READ_COMMITTED: Final = b"SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
"""Whatever the session's completion_type is."""

_DEADLOCK: Final = 1213
_NOT_IN_STATEMENTS: Final = 1665
"""binlog_format = STATEMENT takes no changes in READ COMMITTED."""
_LOOKS: Final = 6
"""So often is looked for rows that others move meanwhile."""
_ATTEMPTS: Final = 10
"""A transaction of the CALL's own that a server has rolled back for a deadlock is run so often."""


def reorder(client: Exchange, plan: Reorder, values: Values) -> None:
    """Run a Reorder as the client's work. Raises BindError."""
    Steps(client).start(_reorder(client, plan, plan.asked(values)))


class _Done(NamedTuple):
    """What was done. `row`: the moved one with its new sequence; None: it stood there already. `narrow`: it
    has little room. `warning`: a name of the registry; "" for none.
    """

    row: Row | None
    narrow: bool = False
    warning: str = ""


class _Stale(Exception):
    """Something has moved since it was looked at. `error`: or this is the caller's."""

    def __init__(self, error: ProxyError | None = None) -> None:
        super().__init__()
        self.error = error


async def _reorder(client: Exchange, plan: Reorder, asked: Asked) -> None:
    session, move = client.session, _Move(client, plan, asked)
    transaction = session.transaction
    if transaction.explicit or not session.autocommit:
        done = await move.run(within=True)
    elif transaction.locks_tables:  # which a transaction of its own would end
        done = await move.run(within=False)
    else:
        done = await _by_itself(client, move)
    diagnostics = []
    if done.warning:
        error = move.error(done.warning)
        diagnostics.append(Diagnostic("Warning", error.code, str(error)))
    affected = int(done.row is not None)
    session.apply(Outcome(affected, diagnostics=diagnostics))
    if done.row is not None and done.narrow:
        _want_room(client, plan, asked.source, done.row)
    client.reply_ok(affected=affected, warnings=len(diagnostics))


async def _by_itself(client: Exchange, move: _Move) -> _Done:
    """In a transaction of its own. It is READ COMMITTED where the server's binary log allows that: then locks
    are on rows alone, and who waits for one is in nobody's way. With locks on gaps, too, two callers between
    the same neighbours were a deadlock each time: the second waits for the gap that the first writes into.
    """
    lenient, attempt = True, 0
    while True:
        attempt += 1
        try:
            if lenient:
                await run(client, _READ_COMMITTED, ResultSink(client))
            await run(client, b"START TRANSACTION", ResultSink(client))
            done = await move.run(within=False)
        except Exception as error:
            diagnostics = client.session.diagnostics
            with suppress(Failed, ProxyError):  # the first error is what is told
                await run(client, b"ROLLBACK" + PLAINLY, ResultSink(client), steady=True)
            client.session.apply(Outcome(RESULT_SET, diagnostics=diagnostics))
            code = int.from_bytes(error.error[1:3], "little") if isinstance(error, Failed) else 0
            if attempt == _ATTEMPTS or code not in (_DEADLOCK, _NOT_IN_STATEMENTS):
                raise
            lenient = lenient and code != _NOT_IN_STATEMENTS
            continue
        await run(client, b"COMMIT" + PLAINLY, ResultSink(client), steady=True)
        return done


def _want_room(client: Exchange, plan: Reorder, source: int, row: Row) -> None:
    """Have more room made beside a row, in the background."""
    keyspace, table = client.snapshot.topology.keyspaces.get(plan.keyspace), plan.table.partition(".")
    named = client.snapshot.schema.table(table[0], table[2])
    shard = _shard_of(keyspace, source)
    if keyspace is None or named is None or shard is None:
        return
    rows = OrderedRows.of(named, keyspace.database_of(shard).decode())
    account = client.session.user.account
    client.services.respacing.want(Job(plan.keyspace, shard, rows, source, row, account))


def _shard_of(keyspace: Keyspace | None, source: int) -> int | None:
    layout = keyspace.layout if keyspace is not None else None
    return layout.shard_of(source) if layout is not None else None


class _Found(ResultSink):
    """The rows of a statement, or how many it has written."""

    __slots__ = ("affected", "read")

    def __init__(self, client: Exchange) -> None:
        super().__init__(client)
        self.read: list[Row] = []
        self.affected = 0

    def rows(self, rows: list[bytes]) -> None:
        self.read += rows_of([decode_row(payload, 2) for payload in rows])

    def end(self, payload: bytes) -> None:
        if payload[:1] == b"\0":
            self.affected = parse_ok(payload).affected


class _Move:
    """One CALL within a transaction."""

    def __init__(self, client: Exchange, plan: Reorder, asked: Asked) -> None:
        self.client = client
        self.plan = plan
        self.rows = plan.rows
        self.asked = asked
        self._doubt: ProxyError | None = None

    def error(self, name: str, **details: object) -> ProxyError:
        """An error or warning about it."""
        asked, anchor = self.asked, self.asked.before if self.asked.before is not None else self.asked.after
        told = {
            "table": self.plan.table,
            "procedure": self.plan.procedure,
            "from_column": self.rows.from_column.strip("`"),
            "to_column": self.rows.to_column.strip("`"),
            "source": asked.source,
            "moved": asked.moved,
            "before": asked.before,
            "after": asked.after,
            "anchor": anchor,
        }
        return ProxyError(name, **(told | details))

    async def run(self, *, within: bool) -> _Done:
        """Move the row. `within`: in the client's transaction. Raises ProxyError, Failed."""
        self._doubt = None
        for attempt in range(_LOOKS):
            try:
                return await self._run(await self._find(lock=attempt % 2 > 0), within=within)
            except _Stale as stale:
                # A plain read may show what was long ago; one that locks may pass by a row that is moved
                # under its eyes, where no gaps are locked. What both say is so.
                if stale.error is not None and self._doubt is not None:
                    raise stale.error from None
                self._doubt = stale.error
        raise self.error("reorder_moved")

    async def _ask(self, sql: bytes) -> list[Row]:
        return (await run(self.client, sql, _Found(self.client))).read

    async def _find(self, *, lock: bool) -> dict[int, int]:
        """The sequences of the rows that are named."""
        asked = self.asked
        found = await self._ask(self.rows.find(asked.source, asked.targets, lock=lock))
        for target in asked.targets:
            count = sum(one[0] == target for one in found)
            if count != 1:
                name = "reorder_several" if count else "reorder_missing"
                raise _Stale(self.error(name, target=target, count=count))
        return dict(found)

    async def _run(self, found: dict[int, int], *, within: bool) -> _Done:
        asked = self.asked
        if asked.before is not None:
            anchor, below = asked.before, True
        elif asked.after is not None:
            anchor, below = asked.after, False
        else:
            return await self._alone(found)
        near, beyond = await self._beside(anchor, found[anchor], below=below)
        warning = ""
        other = asked.after if below else None
        if beyond is None or beyond[0] != other:
            if other is not None:
                below, beyond, warning = await self._apart(found, near, beyond)
            elif beyond is not None:
                warning = "reorder_no_end"
        above, under = (near, beyond) if below else (beyond, near)
        if self._stands(found, above, under):
            return _Done(None, warning=warning)
        sequence = between(above and above[1], under and under[1])
        if sequence is None:
            await self._make_room(near, within=within)
            return await self._run(await self._find(lock=True), within=within)
        if not await self._write(Move(asked.moved, found[asked.moved], sequence)):
            raise _Stale
        least = self.client.services.respacing.wish.least
        narrow = narrowest(above and above[1], sequence, under and under[1]) < least
        return _Done((asked.moved, sequence), narrow, warning)

    async def _alone(self, found: dict[int, int]) -> _Done:
        """Neither neighbour is given: there must be none."""
        asked = self.asked
        row = asked.moved, found[asked.moved]
        for side in (self.rows.behind, self.rows.ahead):
            beside = await self._ask(side(asked.source, row[1], row[0], LOOKED_AT))
            if not beside or beside[0] != row:
                raise _Stale
            if len(beside) > 1:
                raise self.error("reorder_alone")
        return _Done(None)

    async def _beside(self, target: int, sequence: int, *, below: bool) -> tuple[Row, Row | None]:
        """A row, and the one behind it (or ahead of it), the moved one left out. Both are locked."""
        side = self.rows.behind if below else self.rows.ahead
        found = await self._ask(side(self.asked.source, sequence, target, LOOKED_AT))
        if not found or found[0] != (target, sequence):
            raise _Stale
        rest = [one for one in found[1:] if one[0] != self.asked.moved]
        return found[0], rest[0] if rest else None

    async def _apart(
        self, found: dict[int, int], before: Row, beyond: Row | None
    ) -> tuple[bool, Row | None, str]:
        """Both neighbours are given, and are none: what the row goes beside all the same, and how the caller
        is told. `beyond`: the row behind `before`.
        """
        assert self.asked.after is not None
        after, _ = await self._beside(self.asked.after, found[self.asked.after], below=False)
        if _place(after) < _place(before):
            return True, beyond, "reorder_between"
        _, ahead = await self._beside(before[0], before[1], below=False)
        if ahead == after:
            return False, ahead, "reorder_swapped"
        raise self.error("reorder_moved")

    def _stands(self, found: dict[int, int], above: Row | None, under: Row | None) -> bool:
        """Whether the row is there already, apart from its neighbours."""
        place = found[self.asked.moved], self.asked.moved
        over = above is None or (_place(above) > place and above[1] > place[0])
        return over and (under is None or (_place(under) < place and under[1] < place[0]))

    async def _write(self, move: Move) -> bool:
        """Whether the row was still there."""
        sql = self.rows.move(self.asked.source, move)
        return bool((await run(self.client, sql, _Found(self.client))).affected)

    async def _make_room(self, near: Row, *, within: bool) -> None:
        """Spread the rows around one that has no room beside it. Raises ProxyError, Failed."""
        client, wish = self.client, self.client.services.respacing.wish
        if within:
            await run(client, b"SAVEPOINT " + _SAVEPOINT, ResultSink(client))
        try:
            forced = Wish(wish.wanted, wish.wanted)
            written = await make_room(self._ask, self.rows, self.asked.source, near, forced, beyond=True)
        except (ProxyError, Failed):
            if within and client.session.transaction.open and not client.session.transaction.lost:
                with suppress(Failed, ProxyError):
                    undo = b"ROLLBACK TO SAVEPOINT " + _SAVEPOINT
                    await run(client, undo, ResultSink(client), steady=True)
            raise
        if not written:
            raise _Stale
        if within:
            await run(client, b"RELEASE SAVEPOINT " + _SAVEPOINT, ResultSink(client))


def _place(row: Row) -> tuple[int, int]:
    """By which rows are in order: the larger, the further ahead."""
    return row[1], row[0]
