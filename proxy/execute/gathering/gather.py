"""A statement over rows that are gathered from the shards first, run by a real MySQL.

In steps: a connection of the scratch host; the definitions of the tables; a temporary table for each piece;
the pieces' rows, some pieces at a time and each from all its hosts at once, put in by INSERTs of bounded size
while they come; then the rest of the statement, whose reply the client gets.

The scratch connection is outside of the session's transaction: it holds nothing but copies. The pieces are
read on the session's own connections, so that a transaction sees its own rows.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from proxy.backends.collect import Collector, ServerError
from proxy.backends.connection import BackendConnection
from proxy.backends.settings import FRESH, Settings
from proxy.engine import lease
from proxy.engine.admission import scatter_ceiling
from proxy.engine.column_metadata import gathered_place
from proxy.engine.diagnostics import fetch_warnings
from proxy.engine.left_behind import ask_left_behind, counts, read_variables
from proxy.engine.loading import FITTING, LOADING, reading_settings, resting_settings
from proxy.engine.naming import logical_rows
from proxy.engine.preparing import columns_of, execution
from proxy.engine.rest import Rest
from proxy.engine.session_sync import preparing
from proxy.engine.transcode import exact_sink
from proxy.engine.warned import of_text, repeated, without_phantoms
from proxy.errors import ProxyError
from proxy.session.outcome import Diagnostics, Outcome
from proxy.session.values import quote
from proxy.wire.column_metadata import changed
from proxy.wire.packets import Err, query_packet
from rewriter.plan import Choose, Values
from rewriter.plans import BindError
from rewriter.plans.gather import SCRATCH, Gather, Piece, quoted

from .batch import Batch, Result
from .gather_work import GatherWork
from .gathered import Filling, Loading
from .join import answered_by_join
from .partial import UNFIT, Making
from .reading import planned_read, reads_of
from .scratch import Scratch, Shape, shape_of, shape_of_columns
from .scratch_host import CREATE_DATABASE, begin, in_own_words

if TYPE_CHECKING:
    from proxy.engine.exchange import Describe, Exchange


_NO_DATABASE: Final = 1049
_AT_ONCE: Final = 4
"""So many pieces are read at a time."""
_NOT_PREPARED: Final = (1295, 1390)
"""Errors of PREPARE itself: a statement that it does not know, and one that is too much for it."""


def start_gather(
    client: Exchange, plan: Gather, values: Values, choose: Choose, told: Describe | None = None
) -> None:
    """Run a Gather as the client's work, or prepare it (`told`). `values`: the literals and the session's."""
    if client.session.transaction.pins:
        _refuse_temporary(client, plan)
    work = GatherWork(client)
    plan = plan if told is None else plan.full or plan
    if told is None and plan.join is not None:
        work.start(_join(client, plan, values, choose, work))
    else:
        work.start(_Gathering(client, plan, values, choose, work).run(told))


async def _join(client: Exchange, plan: Gather, values: Values, choose: Choose, work: GatherWork) -> None:
    """Answer by two reads, or else by gathering."""
    if not await answered_by_join(client, plan, values, choose, work):
        await _Gathering(client, plan, values, choose, work).run(None)


def _refuse_temporary(client: Exchange, plan: Gather) -> None:
    """Refuse a table that the session has a temporary one instead of: the copy is of what everybody sees.
    Raises ProxyError.
    """
    for piece in plan.pieces:
        if piece.routing is not None:
            continue
        host, _ = _home(piece, client.snapshot.topology)
        kept = client.session.transaction.pins.get(host, ())
        names = {name.rpartition("\0")[2] for kind, name in kept if kind == "table"}
        if piece.home.table.lower() in names or "" in names:
            raise ProxyError(
                "not_supported_yet",
                what="a temporary table in a statement with tables that are elsewhere",
                reason=f"'{piece.home.table}' may be one, which its own connection alone can read",
                alternative="SELECT its rows first, or INSERT them into a table.",
            )


class _Gathering:
    """One Gather at work."""

    def __init__(
        self, client: Exchange, plan: Gather, values: Values, choose: Choose, work: GatherWork
    ) -> None:
        self.client = client
        self.plan = plan
        self.values = values
        self.choose = choose
        self.work = work
        mark = secrets.token_hex(8)
        self.names = tuple(
            quoted(f"g{number}_{mark}" if piece.real else f"g{number}")
            for number, piece in enumerate(plan.pieces, 1)
        )
        self.tables: list[Scratch] = []
        #: The values that other pieces follow from: of a piece, and its column. None: too many to be of use.
        self.found: dict[tuple[int, str], set[bytes] | None] = {}
        #: What goes to the scratch connection together with its next statement.
        self.pending: list[bytes] = []
        #: Further tables, from which only types and errors are learnt.
        self.bases: tuple[bytes, ...] = ()
        #: What to run with rows in the place of groups, if they do not fit.
        self.rows: tuple[Gather, tuple[bytes, ...], list[Scratch]] | None = None
        #: The column definitions of the client's statement, where those of the rest are others.
        self.definitions: list[bytes] | None = None
        #: Warnings of what only the shards compute.
        self.told = Diagnostics()
        #: Warnings of the shards that the rest repeats for the rows that it gets.
        self.read = Diagnostics()
        self.rested = False  # the client's own expressions were at work on the scratch connection

    async def run(self, told: Describe | None) -> None:
        services = self.client.services
        topology = self.client.snapshot.topology
        host = topology.default or topology.hosts[0]
        conn = await lease.scratch(self.client, host, LOADING)
        self.work.conns.add(conn)
        try:
            await self._ready(conn)
            await self._define(conn)
            await (self._answer(conn) if told is None else self._tell(conn, told))
        except ServerError as error:
            self.client.fail(in_own_words(error.err, self.names, self.plan.pieces))
        finally:
            self.work.conns.discard(conn)
            if conn.receiver is not None:
                lease.discard(self.client, conn)
            services.spawn(self._clean(conn), "scratch tables")

    async def _answer(self, conn: BackendConnection) -> None:
        if self.plan.full is not None:
            await self._make_groups(conn)
        else:
            await self._make(conn)
        await self._fill_all(conn)
        self.work.check()
        conn.unclean = False  # so far all was the proxy's own
        self.rested = True
        await self._rest(conn)

    async def _tell(self, conn: BackendConnection, told: Describe) -> None:
        """Have the rest prepared over empty tables, with its parameters: the reply to COM_STMT_PREPARE."""
        for name, scratch, piece in zip(self.names, self.tables, self.plan.pieces, strict=True):
            self.pending.append(scratch.create(name, real=piece.real))
        session, facts = self.client.session, self.plan.facts
        self._set(conn, resting_settings(self.client))
        await self._put(conn)
        sql = self.plan.rest_sql(self.values, self.names)
        parameters, columns = await columns_of(session, conn, sql, facts)
        warnings = of_text(await fetch_warnings(conn)) if conn.scanner.warnings else 0
        if facts.assigns:
            await read_variables(session, conn, facts.assigns)
            conn.settings = resting_settings(self.client)
        place = gathered_place(self.plan.pieces)
        self.client.transport.write(told(parameters, changed(columns, place), warnings))
        self.client.finish("ok")

    # -- the scratch tables
    # -----------------------------------------------------------------------------------------

    async def _ready(self, conn: BackendConnection) -> None:
        """Bring the scratch connection into the state for loading."""
        if conn.settings is FRESH:
            await begin(conn)
        self._set(conn, LOADING)

    def _set(self, conn: BackendConnection, settings: Settings) -> None:
        self.pending += settings.statements_from(conn.settings)
        conn.has(settings)

    async def _put(self, conn: BackendConnection, *statements: bytes) -> list[Result]:
        """Send what is pending, then these statements, in one write; the results of these. ServerError when
        something that was pending fails.
        """
        pending, self.pending = self.pending, []
        results = await Batch().run(conn, [*pending, *statements])
        for sql, result in zip(pending, results, strict=False):
            if result.err is None:
                continue
            if result.err.code == _NO_DATABASE and sql[:7] == b"CREATE ":
                (made,) = await Batch().run(conn, [CREATE_DATABASE])
                if made.err is None:
                    self.pending = pending  # all that follows it has failed
                    return await self._put(conn, *statements)
            if sql[:4] == b"SET ":
                conn.close()  # nobody knows what it has now
            raise ServerError(result.err)
        return results[len(pending) :]

    async def _define(self, conn: BackendConnection) -> None:
        """Learn the tables' definitions: each time, so that an ALTER TABLE takes effect at once."""
        topology = self.client.snapshot.topology
        places = [_home(piece, topology) for piece in self.plan.pieces]
        created: dict[bytes, str] = {}
        views: dict[bytes, Shape] = {}
        for host in sorted({host for host, _ in places}):
            names = list(dict.fromkeys(name for at, name in places if at == host))
            asked = [b"SHOW CREATE TABLE " + name for name in names]
            if host == conn.host:
                results = await self._put(conn, *asked)
            else:
                async with lease.asking(self.client, host, LOADING) as other:
                    results = await Batch().run(other, asked)
            for name, result in zip(names, results, strict=True):
                if result.err is not None:
                    raise ServerError(result.err)
                created[name] = (result.rows[0][1] or b"").decode("utf-8", "surrogateescape")
                if len(result.rows[0]) > 2:  # with character set and collation: a view
                    views[name] = await self._view(host, conn, name)
        for piece, (_, name) in zip(self.plan.pieces, places, strict=True):
            shape = views.get(name) or shape_of(
                created[name], is_object=piece.is_object, routing=piece.routing
            )
            self.tables.append(shape.select(piece.wanted, in_order=piece.in_order))

    async def _view(self, host: str, conn: BackendConnection, name: bytes) -> Shape:
        """A view's columns."""
        asked = b"SHOW FULL COLUMNS FROM " + name
        if host == conn.host:
            (result,) = await self._put(conn, asked)
        else:
            async with lease.asking(self.client, host, LOADING) as other:
                (result,) = await Batch().run(other, [asked])
        if result.err is not None:
            raise ServerError(result.err)
        return shape_of_columns(result.rows)

    async def _make(self, conn: BackendConnection) -> None:
        """Make the tables. Before a scatter, have the rest prepared: an error shall come at once."""
        for number, piece in enumerate(self.plan.pieces):
            self.pending.append(self.tables[number].create(self.names[number], real=piece.real))
        if all(piece.bounded for piece in self.plan.pieces):
            return
        session = self.client.session
        self._set(conn, resting_settings(self.client))
        text = quote(self.plan.rest_sql(self.values, self.names), session.no_backslash_escapes)
        preparing(session, conn, self.plan.facts)
        prepared, _ = await self._put(
            conn, b"PREPARE shardgate_rest FROM " + text, b"DEALLOCATE PREPARE shardgate_rest"
        )
        if prepared.err is not None and prepared.err.code not in _NOT_PREPARED:
            raise ServerError(prepared.err)
        self._set(conn, LOADING)

    async def _make_groups(self, conn: BackendConnection) -> None:
        """Make the tables of a statement that is combined from groups, if it is."""
        making = Making(self.plan, self.values, self.names, self.tables)
        self.bases, self.rows = making.bases, making.rows
        self.pending += making.creates
        resting = resting_settings(self.client)
        self._set(conn, resting)
        back = LOADING.statement_from(resting)
        results = await self._put(conn, *making.asked, back, *making.shown)
        if results[len(making.asked)].err is None:
            conn.settings = LOADING
        found = making.decide(results, binary=exact_sink(self.client) is not None)
        self.plan, self.names, self.tables, self.definitions = found

    async def _clean(self, conn: BackendConnection) -> None:
        """Drop the tables and give the connection back."""
        if any(sql[:4] == b"SET " for sql in self.pending) or (conn.unclean and self.rested):
            conn.close()  # it is not in the state that it is taken to be in
        conn.unclean = False
        real = [name for name, piece in zip(self.names, self.plan.pieces, strict=True) if piece.real]
        made = [name for name in {*self.names, *self.bases} if name not in real]
        try:
            if conn.closed:
                if not real:
                    return
                conn = await lease.scratch_again(self.client, conn, LOADING)
            for kind, names in ((b"TEMPORARY ", made), (b"", real)):
                if names:
                    tables = b", ".join(SCRATCH + b"." + name for name in names)
                    reply = await Collector().query(conn, b"DROP " + kind + b"TABLE IF EXISTS " + tables)
                    if reply.err is not None or conn.unclean:
                        conn.close()
                        return
        except ProxyError:
            return  # the host is away, and temporary tables with the connection
        lease.free(conn)

    # -- the pieces
    # -------------------------------------------------------------------------------------------------

    async def _fill_all(self, conn: BackendConnection) -> None:
        """Gather the rows of all pieces; those of groups that do not fit their table once more as rows."""
        filled: set[int] = set()
        while len(filled) < len(self.plan.pieces):
            now = self._ready_pieces(filled)
            unfit = await self._fill_at_once(conn, now)
            filled.update(now)
            if unfit and self.rows is not None:
                filled -= {at for at, one in enumerate(self.plan.pieces) if one.groups is not None}
                self.plan, self.names, self.tables = self.rows
                self.definitions, self.told, self.read = None, Diagnostics(), Diagnostics()
        self._set(conn, LOADING)

    def _ready_pieces(self, filled: set[int]) -> list[int]:
        """The pieces that can be read now. A transaction has one connection on each host: there one piece is
        read after the other.
        """
        pieces = enumerate(self.plan.pieces)
        ready = [
            number
            for number, piece in pieces
            if number not in filled and (piece.link is None or piece.link.source in filled)
        ]
        session = self.client.session
        alone = session.transaction.explicit or not session.autocommit or session.transaction.held
        return ready[: 1 if alone else _AT_ONCE]

    async def _fill_at_once(self, conn: BackendConnection, numbers: Sequence[int]) -> bool:
        """Gather the rows of these pieces; whether groups did not fit. The first error ends the others."""
        loading = Loading(partial(self._load, conn))
        errors: list[ServerError | ProxyError] = []
        unfit: list[int] = []

        async def fill(number: int) -> None:
            self.work.check()
            piece = self.plan.pieces[number]
            try:
                await self._fill(loading, number, piece)
            except ServerError as error:
                if piece.groups is not None and self.rows is not None and error.err.code in UNFIT:
                    unfit.append(number)
                    return
                errors.append(error)
                all_of_them.cancel()
            except ProxyError as error:
                errors.append(error)
                all_of_them.cancel()

        all_of_them = asyncio.gather(*map(fill, numbers))
        try:
            await all_of_them
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not errors or (task is not None and task.cancelling()):
                raise
        if errors:
            raise errors[0]
        return bool(unfit)

    async def _load(self, conn: BackendConnection, settings: Settings, sql: bytes) -> list[Result]:
        self._set(conn, settings)
        return await self._put(conn, sql)

    async def _fill(self, loading: Loading, number: int, piece: Piece) -> None:
        """Gather the rows of one piece."""
        scratch = self.tables[number]
        wanted = {
            link.values: scratch.place(link.values)
            for link in (one.link for one in self.plan.pieces)
            if link is not None and link.source == number and _linkable(scratch, link.values)
        }
        found: dict[str, set[bytes]] = {column: set() for column in wanted}
        each, env = piece.each_shard, self.client.session.env
        env = replace(env, each_shard=True) if each else env
        selects = self._selects(number, piece)
        planned = [await planned_read(self.client, sql, env, self.choose) for sql in selects]
        ceiling = scatter_ceiling(self.client) if any(bound.scatter for _, bound in planned) else None
        reads = [read for plan, bound in planned for read in reads_of(self.client, plan, bound)]
        if reads:
            filling = Filling(
                self.client,
                self.work,
                reading_settings(self.client),
                loading,
                scratch,
                [(place, found[column]) for column, place in wanted.items()],
                put_with=LOADING if piece.groups is None else FITTING,
                insert=scratch.insert(self.names[number]),
                ceiling=ceiling,
                told=self.read if piece.groups is None else self.told,
            )
            await filling.run(reads)
        for column, values in found.items():
            self.found[number, column] = values

    def _selects(self, number: int, piece: Piece) -> list[bytes]:
        """The SELECTs that give the piece's rows, each of them once."""
        columns = self.tables[number].selected
        link = piece.link
        ids = None if link is None else self.found.get((link.source, link.values))
        if link is None or ids is None:
            return [piece.sql(self.values, columns)]
        most = self.client.services.settings.limits.in_list
        if len(ids) > most and not link.bounded:
            return [piece.sql(self.values, columns)]
        sorted_ids = sorted(ids, key=int)
        chunks = [sorted_ids[at : at + most] for at in range(0, len(sorted_ids), most)]
        return [piece.sql(self.values, columns, b", ".join(chunk)) for chunk in chunks]

    # -- the rest
    # ---------------------------------------------------------------------------------------------------

    async def _rest(self, conn: BackendConnection) -> None:
        """Run the rest and answer the client."""
        if self.pending:
            await self._put(conn)
        client, effects = self.client, self.plan.effects
        settings = resting_settings(client)
        packets, count = b"", 0
        if conn.settings is not settings:
            packets, count = settings.packets_from(conn.settings)
            conn.has(settings)
        rest = self.work.rest = Rest(client, gathered_place(self.plan.pieces), self.definitions)
        text = self.plan.rest_sql(self.values, self.names)
        sink = exact_sink(client)
        if sink is None:
            await rest.run(conn, packets + query_packet(text), count)
        else:
            found = await execution(client.session, conn, text, self.plan.facts, packets, count)
            sink.passes = True
            await rest.run(conn, found, 0)
        if rest.err is not None:
            err = rest.err
            if isinstance(err, Err):
                err = in_own_words(err, self.names, self.plan.pieces)
                if effects is not None and effects.variables:  # what was assigned before the error stays
                    await ask_left_behind(client.session, conn, effects, counted=True)
                    conn.settings = resting_settings(client)
            client.fail(err, rest.next_seq)
            return
        warned = Diagnostics()
        if rest.warnings:
            warned = without_phantoms(await fetch_warnings(conn, rest.warnings))
        diagnostics = repeated(self.read, warned)
        diagnostics[:] = logical_rows(client, diagnostics)
        diagnostics.total += self.told.total
        diagnostics[:0] = logical_rows(client, self.told)
        rest.warnings = diagnostics.total
        client.session.apply(Outcome(found=rest.rows))
        if effects is not None:
            asks = counts(client.session, effects, rest.ok, rest.rows, self.values)
            await ask_left_behind(client.session, conn, effects, counted=not asks)
            conn.settings = resting_settings(client)
        rest.finish(diagnostics)


def _linkable(scratch: Scratch, column: str) -> bool:
    """Whether a column has whole numbers, to look for in a routing column."""
    return any(one.name.lower() == column and one.type.integer for one in scratch.columns)


def _home(piece: Piece, topology: object) -> tuple[str, bytes]:
    try:
        return piece.home.place(topology)  # type: ignore[arg-type]
    except BindError as error:
        raise ProxyError(error.name, **error.arguments) from None
