"""A join of two tables by an ID: rows of the one, then those of the other that they name, put together here.

Both reads are ordinary SELECTs of the proxy's own, and run where a transaction has its rows. The column
definitions are those of the client's statement on one shard, where it finds no row; they are asked for when
the reads' own ones have not been seen yet.

LIMIT goes to the first read as it is, though rows of it may find no partner: if too few are left, the first
table is read again, further. Without LIMIT the rows leave for the client in batches, so that of the second
table only one is held.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import chain, compress, groupby, pairwise, zip_longest
from typing import TYPE_CHECKING, Final

from proxy.backends.collect import ServerError
from proxy.engine.column_metadata import place_of
from proxy.engine.definitions import MOST_DEFINITIONS, JoinDefinitions
from proxy.engine.loading import limits_rows, results_form
from proxy.engine.naming import logical_rows
from proxy.engine.transcode import exact_sink
from proxy.errors import ProxyError
from proxy.session.outcome import RESULT_SET, ROWS_SENT, Diagnostics, Outcome
from proxy.wire.column_metadata import changed
from proxy.wire.constants import MAX_PAYLOAD, ColumnFlag, ColumnType
from proxy.wire.packets import eof_packet, frame
from proxy.wire.resultset import Column, decode_column, header_packets, value_offsets
from proxy.wire.rows import split_rows
from rewriter.plans import BindError, Bound, Plan
from rewriter.plans.sharded import is_routed

from .reading import Reading, planned_read, reads_of

if TYPE_CHECKING:
    from proxy.engine.exchange import Exchange
    from rewriter.plan import Choose, Values
    from rewriter.plans import Gather
    from rewriter.plans.join import Join, Shown

    from .gather_work import GatherWork

_MANY: Final = 200
"""So many rows of the first table are joined at first, at most _MOST, so that about _HELD bytes of the second
are held."""
_MOST: Final = 2000
_HELD: Final = 4 << 20
_FURTHER: Final = 8
"""So many times as many rows are read of the first table when too few of them have found a partner."""
_FAR: Final = 5000
"""Behind so many rows LIMIT is left out."""
_INTEGERS: Final = frozenset(
    {ColumnType.TINY, ColumnType.SHORT, ColumnType.INT24, ColumnType.LONG, ColumnType.LONGLONG}
)
_NULL: Final = b"\xfb"
_NO_COLUMN: Final = 1054


_ODD: Final = frozenset(
    {ColumnType.BIT, ColumnType.FLOAT, ColumnType.DOUBLE, ColumnType.YEAR, ColumnType.GEOMETRY}
)


class Unfit(Exception):
    """What was found is no case for this way; nothing was sent to the client."""


class _Rows(Reading):
    """Rows as they are on the wire, with their column definitions."""

    def __init__(self, client: Exchange, work: GatherWork, told: Diagnostics) -> None:
        super().__init__(client, work, client.session.settings, told=told)
        self.columns: list[bytes] = []
        self.payloads: list[bytes] = []
        self.size = 0

    @property
    def width(self) -> int:
        """How many columns they have."""
        return len(self.columns)

    def rows(self, host: str, columns: list[bytes], block: bytes) -> int:
        """Keep them."""
        if self.columns and len(columns) != len(self.columns):
            raise ProxyError("merge_failed", reason=f"{host} has other columns than the others")
        self.columns = columns
        found = split_rows(block)
        self.payloads += found
        self.size += len(block)
        return len(found)


async def answered_by_join(
    client: Exchange, gather: Gather, values: Values, choose: Choose, work: GatherWork
) -> bool:
    """Answer the client by two reads; False when that is no way, and nothing was sent."""
    plan = gather.join
    if plan is None or exact_sink(client) is not None or limits_rows(client):
        return False
    if results_form(client.session).codec:  # links are read as ASCII
        return False
    joining = _Joining(client, gather, plan, values, choose, work)
    try:
        await joining.run()
    except Unfit:
        work.release(work.rows, work.bytes)
        return False
    except ServerError as error:
        client.fail(error.err, joining.seq)
    except ProxyError as error:
        client.fail(error, joining.seq)
    return True


class _Joining:
    """One join at work. The rows of either side are cut where the other side's columns come between."""

    def __init__(
        self, client: Exchange, gather: Gather, plan: Join, values: Values, choose: Choose, work: GatherWork
    ) -> None:
        self.client = client
        self.gather = gather
        self.plan = plan
        self.values = values
        self.choose = choose
        self.work = work
        self.told = Diagnostics()
        self.seq: int | None = None  # of the next packet, once something was sent
        self._sent = 0
        self._skip = self._offset = 0
        self._left: int | None = None
        self._many = _MANY
        self._shard = 0  # the first one that was read
        self._definitions: JoinDefinitions | None = None
        self._fresh = False  # they have just been asked for
        self._apart = False  # a UNION would change the second read's values
        self._cuts: tuple[list[int], list[int]] = ([], [])  # of each side: the columns of its parts
        self._readable = asyncio.Event()

    async def run(self) -> None:
        """Raises Unfit, ServerError and ProxyError."""
        try:
            self._left, self._skip = self.plan.window(self.values)
        except BindError as error:
            raise ProxyError(error.name, **error.arguments) from None
        self._offset = self._skip
        limit = None if self._left is None else self._left + self._skip
        self.work.rest = self
        while not await self._answered(limit):
            limit = None if limit is None or limit > _FAR else limit * _FURTHER
        self._finish()

    async def _answered(self, limit: int | None) -> bool:
        """Join so many rows of the first table; whether the client has all that it gets."""
        self.told = Diagnostics()
        try:
            first = await self._first(limit)
        except ServerError as error:
            if error.err.code == _NO_COLUMN:  # in which clause is for the client's own text to say
                await self._asked()
            raise
        await self._define(first)
        rows = first.payloads
        # whether a row of the first table that is cut off cannot be wanted
        certain = limit is None or self.plan.outer or len(rows) < limit
        wanted, found = limit or 0, list[bytes]()
        at = 0
        while at < len(rows) and (certain or len(found) < wanted) and self._left != 0:
            batch = rows[at : at + self._many]
            at += len(batch)
            second = await self._second(first, batch)
            found += self._joined(first, batch, second)
            self.work.release(len(second.payloads), second.size)
            if certain:
                await self._give(found)
                found.clear()
        if not certain and len(found) < wanted:
            self.work.release(len(rows), first.size)
            return False
        await self._give(found)
        return True

    # -- reading
    # ----------------------------------------------------------------------------------------------------

    async def _first(self, limit: int | None) -> _Rows:
        """Rows of the first table, in their order."""
        sql = self.plan.first_sql(self.values, limit)
        try:
            plan, bound = await planned_read(self.client, sql, self.client.session.env, self.choose)
        except ProxyError as error:
            if error.kind.name == "not_supported_yet":  # as the order of JSON values of several shards
                raise Unfit from None
            raise
        merged = bound.merge is not None and (bound.merge.hidden or bound.merge.order)
        if merged or bound.scatter or not bound.statements[0].shards:
            raise Unfit
        self._shard = bound.statements[0].shards[0]
        found = await self._read(plan, bound if bound.per_shard is None else bound.per_shard.make())
        if not _joinable(found):
            raise Unfit
        return found

    async def _second(self, first: _Rows, batch: Sequence[bytes]) -> _Rows:
        """The rows of the second table that these of the first name."""
        links = {_link(payload, value_offsets(payload, first.width)) for payload in batch}
        ids = b", ".join([b"%d" % one for one in sorted(one for one in links if one is not None)])
        found = _Rows(self.client, self.work, self.told)
        if ids:
            sql = self.plan.second_sql(self.values, ids)
            plan, bound = await planned_read(self.client, sql, self.client.session.env, self.choose)
            if bound.scatter or (bound.merge is not None and bound.merge.hidden):
                raise Unfit
            if self._apart and bound.per_shard is not None:
                bound = bound.per_shard.make()
            found = await self._read(plan, bound)
            if not _joinable(found):
                raise Unfit
            await self._check(first, found)
            if found.payloads:
                most = self.client.services.settings.limits.in_list or _MOST
                self._many = max(1, min(_MOST, most, _HELD * len(found.payloads) // found.size))
        return found

    async def _read(self, plan: Plan, bound: Bound) -> _Rows:
        self.work.check()
        found = _Rows(self.client, self.work, self.told)
        await found.run(reads_of(self.client, plan, bound))
        return found

    # -- column definitions
    # -----------------------------------------------------------------------------------------

    async def _define(self, first: _Rows) -> None:
        """Know the column definitions that the client gets; asked once for those that the reads have."""
        session = self.client.session
        known = self.client.services.definitions.of_join(self.gather)
        listed = self.plan.listed.render(self.values)
        key = session.settings.system, session.extended, listed, tuple(first.columns)
        found = known.get(key)
        if found is None:
            if len(known) >= MOST_DEFINITIONS:
                known.clear()
            found = known[key] = JoinDefinitions(await self._asked())
            self._fresh = True
        self._definitions = found
        widths = first.width - 1, len(found.shown) - first.width + 1
        self._cuts, sides = _layout(self.plan.shown, widths)
        self._apart = any(_odd(decode_column(one)) for one in compress(found.shown, sides))

    async def _check(self, first: _Rows, second: _Rows) -> None:
        """See that these definitions go with those of the second read."""
        found = self._definitions
        assert found is not None
        if second.columns in found.seen:
            return
        if not self._fresh:
            self._fresh = True
            shown = await self._asked()
            if shown != found.shown:
                if self.seq is not None:
                    raise ProxyError("merge_failed", reason="the tables' columns have changed meanwhile")
                found.shown, found.seen = shown, []
                await self._define(first)
        if second.width - 1 != len(found.shown) - first.width + 1:
            self.client.services.definitions.of_join(self.gather).clear()
            raise Unfit
        found.seen = [*found.seen[-MOST_DEFINITIONS:], second.columns]

    async def _asked(self) -> list[bytes]:
        """The column definitions of the client's statement, as one shard gives them."""
        sql = self.plan.reference_sql(self.values, self._shard)
        plan, bound = await planned_read(self.client, sql, self.client.session.env, self.choose)
        found = await self._read(plan, bound)
        column_metadata = plan.column_metadata if is_routed(plan) else None
        if column_metadata is None:
            return found.columns
        return changed(found.columns, place_of(column_metadata, self.client.snapshot.topology))

    # -- joining
    # ----------------------------------------------------------------------------------------------------

    def _joined(self, first: _Rows, batch: Sequence[bytes], second: _Rows) -> list[bytes]:
        """The rows of the result."""
        partners: dict[int, list[list[bytes]]] = {}
        for payload in second.payloads:
            offsets = value_offsets(payload, second.width)
            link = _link(payload, offsets)
            if link is not None:
                partners.setdefault(link, []).append(_parts(payload, offsets, self._cuts[1]))
        alone = [[_NULL * (end - start) for start, end in pairwise(self._cuts[1])]] if self.plan.outer else []
        begins_with = self.plan.shown[0].side
        found = []
        for payload in batch:
            offsets = value_offsets(payload, first.width)
            link = _link(payload, offsets)
            mine = _parts(payload, offsets, self._cuts[0])
            for other in alone if link is None else partners.get(link, alone):
                pair = (other, mine) if begins_with else (mine, other)
                found.append(b"".join(chain.from_iterable(zip_longest(*pair, fillvalue=b""))))
        return found

    # -- the client
    # -------------------------------------------------------------------------------------------------

    async def _give(self, rows: list[bytes]) -> None:
        """Rows to the client, as far as OFFSET and LIMIT let them."""
        client, session = self.client, self.client.session
        if self._skip:
            skipped = min(self._skip, len(rows))
            self._skip -= skipped
            rows = rows[skipped:]
        if self._left is not None:
            rows = rows[: self._left]
            self._left -= len(rows)
        head = b""
        if self.seq is None:
            assert self._definitions is not None
            head, self.seq = header_packets(
                self._definitions.shown, session.status(), client.seq + 1, extended=session.extended
            )
        packets = [head]
        for payload in rows:
            packets.append(frame(payload, self.seq))
            self.seq = (self.seq + 1 + len(payload) // MAX_PAYLOAD) & 0xFF
        self._sent += len(rows)
        client.transport.write(b"".join(packets))
        while client.writing_paused and not client.closed:
            self._readable.clear()
            await self._readable.wait()

    def flow(self) -> None:
        """The client reads slowly, or goes on reading."""
        if not self.client.writing_paused:
            self._readable.set()

    def _finish(self) -> None:
        client, session = self.client, self.client.session
        assert self.seq is not None
        total = self.told.total
        diagnostics = Diagnostics(logical_rows(client, self.told))
        found = self._sent + self._offset - self._skip
        session.apply(Outcome(RESULT_SET, None, found, diagnostics, tables=True, touched=ROWS_SENT))
        client.transport.write(eof_packet(self.seq, session.status(), total))
        client.finish("ok")


def _odd(column: Column) -> bool:
    """Whether values of it are others in a UNION: their zeros or digits, or bits as a number."""
    return column.type in _ODD or bool(column.flags & ColumnFlag.ZEROFILL)


def _joinable(rows: _Rows) -> bool:
    """Whether the last column has integers."""
    return bool(rows.columns) and decode_column(rows.columns[-1]).type in _INTEGERS


def _link(payload: bytes, offsets: Sequence[int]) -> int | None:
    """The last value of a row, which is an integer."""
    at = offsets[-2]
    return None if payload[at] == _NULL[0] else int(payload[at + 1 :])


def _parts(payload: bytes, offsets: Sequence[int], cuts: Sequence[int]) -> list[bytes]:
    return [payload[offsets[start] : offsets[end]] for start, end in pairwise(cuts)]


def _layout(shown: Sequence[Shown], widths: tuple[int, int]) -> tuple[tuple[list[int], list[int]], list[int]]:
    """Where each side's columns are cut, whose numbers are `widths`; and the side of each column of the
    result. Raises Unfit if they do not add up.
    """
    cuts: tuple[list[int], list[int]] = ([0], [0])
    sides: list[int] = []
    stars = [0, 0]
    for side in (0, 1):
        mine = [one for one in shown if one.side == side]
        star = sum(one.star for one in mine)
        stars[side], rest = divmod(widths[side] - len(mine) + star, max(star, 1))
        if rest or stars[side] < 0 or (not star and stars[side]):
            raise Unfit
    for side, group in groupby(shown, key=lambda one: one.side):
        width = sum(stars[side] if one.star else 1 for one in group)
        cuts[side].append(cuts[side][-1] + width)
        sides += [side] * width
    return cuts, sides
