"""The plans that run on sharded tables.

They are listed, with all the others, in plans/__init__.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Final, NamedTuple, TypeGuard

from config.topology import Host, Keyspace, Topology
from rewriter.bound import (
    Aggregate,
    BindError,
    Bound,
    HostStatement,
    Merge,
    Notice,
    NotSupported,
    PerShard,
    Reference,
    SortKey,
)
from rewriter.plan import Access, Choose, Execution, Plan, Reject, Values
from rewriter.route.binding import (
    CHUNK,
    MAX_ROWS,
    UNION_BYTES,
    Routing,
    by_host,
    keyspace_of,
    limit_number,
    some_shard,
)
from rewriter.route.binding import host as host_of
from rewriter.route.column_metadata import ColumnMetadata
from rewriter.route.id_lists import Bits, Most, Texts, texts_by_host
from rewriter.route.point import Point, at_point
from rewriter.route.routing import Placed
from rewriter.route.values import Value
from rewriter.splice import Template
from rewriter.sql.statements.effects import ConnectionState, Effects
from rewriter.text.literals import NotPlain

from .gather import Gather
from .read_write import ReadThenWrite
from .unchanged import Same, Stays

UNION: Final = b") UNION ALL ("

LIMIT: Final = -4
"""In the place of an index, where a shard's text has its LIMIT."""


class Spread(NamedTuple):
    """`Listed`, of a statement whose rows are the client's as they come, and whose text has no values."""

    keyspace: str
    literal: int
    bits: Bits
    pieces: tuple[bytes | int, ...]
    most: Most


Groups = dict[Host, list[int]]
"""Shards by the host that has them."""


class Listed(NamedTuple):
    """How what one list of IDs routes, written out, is bound without further ado.

    `literal` is the list. `pieces`: a shard's text as `texts_by_host` takes it, if it is not `open`: then
    integers are indexes of values, too, and LIMIT.
    """

    literal: int
    bits: Bits
    pieces: tuple[bytes | int, ...]
    open: bool
    most: Most

    def filled(self, values: Values, within: bytes) -> tuple[bytes | int, ...]:
        """The pieces with these values. `within`: a shard's LIMIT."""
        if not self.open:
            return self.pieces
        filled: list[bytes | int] = []
        for piece in self.pieces:
            if isinstance(piece, int) and piece >= 0:
                piece = values[piece]
            filled.append(within if piece == LIMIT else piece)
        return tuple(filled)


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Sharded(Plan):
    """What plans on sharded tables have in common.

    `routing` finds the shards; `template` is the statement for one of them. `fallback` is the plan when a
    value turns out to be no plain constant. `unrouted`: nothing narrows it. `column_metadata`: those of its
    result's columns, if it has one. `together`: rows of its tables that belong together are on one shard, so
    it may run on several shards, each for itself.
    """

    binds: ClassVar[bool] = True
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = True
    executed_as: ClassVar[Execution] = Execution.WITH_VALUES
    routed: ClassVar[bool] = True
    lists_columns: ClassVar[bool] = True
    narrowed: ClassVar[bool] = True
    routing: Routing
    template: Template
    fallback: Plan | None = None
    point: Point | None = None
    unrouted: bool = False
    column_metadata: ColumnMetadata | None = None
    together: bool = False

    @property
    def keyspace(self) -> str:
        """The name of the keyspace of its tables."""
        return self.routing.keyspace

    @property
    def tables(self) -> tuple[str, ...]:
        """Its sharded tables, as `database.table`."""
        return self.routing.tables

    @property
    def scatter(self) -> bool:
        return self.unrouted

    @property
    def routing_literal(self) -> int | None:
        point = self.point
        return None if point is None or point.parameter else point.literal

    @property
    def sharded_keyspace(self) -> str:
        return self.keyspace

    @property
    def sharded_tables(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.tables))

    def at_point(self, values: Values, topology: Topology) -> tuple[Host, int, bytes, bytes] | None:
        """Host, shard, SQL and the shard's database of a statement that one ID routes to a shard that exists;
        None: ask `bind`.
        """
        return at_point(self.point, values, topology)

    def bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        found = self.at_point(values, topology)
        if found is not None:
            host, shard, sql, _ = found
            return Bound((HostStatement(host, (shard,), sql),))
        return self._bind(values, topology, choose)

    def _bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        """Bind when there is more to do than to look at one ID."""
        keyspace = keyspace_of(topology, self.routing.keyspace)
        try:
            placed = self.routing.place(values, keyspace)
            found = self.routing.shards(placed, values, keyspace)
            self.routing.refuse_missing(placed, values, keyspace)
        except NotPlain:
            if self.fallback is None:
                raise BindError("internal", reason="a value is no plain constant") from None
            return self.fallback.bind(values, topology, choose)
        if len(found) == 1:
            shards = found[0]
            groups = by_host(keyspace, keyspace.all_shards if shards is None else shards)
        else:
            shards = None if None in found else set().union(*(one for one in found if one is not None))
            groups = by_host(keyspace, keyspace.all_shards if shards is None else shards)
            if sum(map(len, groups.values())) > 1 and not self.together:
                raise self.not_one_shard()
        return self.run_on(groups, placed, values, keyspace, scatter=shards is None)

    def not_one_shard(self) -> BindError:
        """The error that the tables of a statement are on more than one shard."""
        return NotSupported(
            what="this statement",
            reason=f"it joins rows of {', '.join(self.tables)} that are on different shards",
            alternative="Give every table an ID of the same shard.",
        )

    def run_on(
        self, groups: Groups, placed: list[Placed], values: Values, keyspace: Keyspace, *, scatter: bool
    ) -> Bound:
        """The statements for these shards. `scatter`: they are all, because nothing narrows them."""
        raise self.not_one_shard()

    def to_prepare(self, values: Values, topology: Topology) -> HostStatement:
        """The statement for some shard, for a server that only prepares it: `values` has a `?` for each
        parameter. Raises BindError.
        """
        keyspace = keyspace_of(topology, self.routing.keyspace)
        shard = some_shard(keyspace)
        sql = self.template.render(values + self.routing.probe(values, keyspace, shard))
        return HostStatement(host_of(keyspace, shard), (shard,), sql)

    def on_one(self, shard: int, placed: list[Placed], values: Values, keyspace: Keyspace) -> HostStatement:
        """The statement for one shard."""
        columns = self.routing.columns([shard], placed, values, keyspace)
        sql = self.template.render(values + tuple([column[0] for column in columns]))
        return HostStatement(host_of(keyspace, shard), (shard,), sql)


def is_routed(plan: Plan) -> TypeGuard[Sharded]:
    """Whether the statement's conditions say on which shards it runs."""
    return plan.routed


def repeats(plan: Plan) -> TypeGuard[ShardSelect]:
    """Whether it is a SELECT, and an EXECUTE of it as a point query may take the way of the one before."""
    return plan.repeats


def assigned_by_several(what: str, alternative: str) -> BindError:
    """The error that a statement which assigns user variables would run on several shards."""
    reason = "each shard would assign the user variable by itself"
    return NotSupported(what=what, reason=reason, alternative=alternative)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scatter:
    """How a SELECT runs on several shards.

    `part` is each shard's SELECT inside a UNION ALL, with the `hidden` columns at its end that `order` and
    `aggregates` need; `tail` orders a host's result. `next_part`: `part` behind the first one, without hints
    for the whole statement. `rows`, `offset`: those of LIMIT; a shard gives the first `rows` + `offset`.
    `reference` has the column definitions that the client must get. `exact`: some columns of `part` come as
    DOUBLEs, so that these must always be asked for (`Env.exact`). `per_shard`: each shard gets a statement of
    its own, see per_shard.py. `values`: the literals and user variables (indexes) that the columns'
    definitions depend on.
    """

    part: Template
    reference: Template
    next_part: Template | None = None
    tail: bytes = b""
    order: tuple[SortKey, ...] = ()
    hidden: int = 0
    rows: Value | None = None
    offset: Value | None = None
    aggregates: tuple[Aggregate, ...] = ()
    exact: bool = False
    per_shard: bool = False
    values: tuple[int, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the shards' rows are all that there is to it."""
        more = self.tail or self.order or self.hidden or self.aggregates
        return not (more or self.rows or self.offset or self.exact or self.per_shard or self.next_part)

    def united(self, values: Values, columns: Sequence[Sequence[bytes]]) -> bytes:
        """The SELECTs of some shards, with UNION ALL between them."""
        if self.next_part is None:
            return self.part.render_many(values, columns, UNION)
        first = self.part.render((*values, *(column[0] for column in columns)))
        if len(columns[0]) == 1:
            return first
        return first + UNION + self.next_part.render_many(values, [column[1:] for column in columns], UNION)


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class ShardSelect(Sharded):
    """A SELECT on sharded tables: on one shard as the client wrote it, on several by UNION ALL and merge.

    `scattered` is how, or why it cannot; then `gather`, when there is one, is what can. `sample`: one shard
    stands for all (EXPLAIN). `exact`: the answer is to have all digits, see `Env.exact`. `spread`: how its
    list of IDs is bound, where the rows need no merging.
    """

    kind: ClassVar[str] = "select"
    title: ClassVar[str] = "read from shards"
    learns_columns: ClassVar[bool] = True
    repeats: ClassVar[bool] = True
    scattered: Scatter | Reject
    gather: Gather | None = None
    sample: bool = False
    exact: bool = False
    listed: Listed | None = None
    spread: Spread | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        listed, how, spread = self.listed, self.scattered, None
        if listed is not None and not listed.open and isinstance(how, Scatter) and how.plain:
            spread = Spread(self.keyspace, listed.literal, listed.bits, listed.pieces, listed.most)
        object.__setattr__(self, "spread", spread)

    @property
    def merging(self) -> Scatter | None:
        """How it runs on several shards by one statement a host; None: `scatter_refusal` says why not."""
        return self.scattered if isinstance(self.scattered, Scatter) else None

    @property
    def scatter_refusal(self) -> Reject | None:
        return None if isinstance(self.scattered, Scatter) else self.scattered

    @property
    def alternative(self) -> Plan | None:
        return self.gather

    def with_alternative(self, other: Plan | None) -> ShardSelect:
        if other is None or isinstance(other, Gather):
            return replace(self, gather=other)
        return self if other.refusal is None else replace(self, scattered=other.refusal)

    @property
    def rounds_columns(self) -> bool:
        return not self.exact

    def run_on(
        self, groups: Groups, placed: list[Placed], values: Values, keyspace: Keyspace, *, scatter: bool
    ) -> Bound:
        if not groups:
            nowhere = self.on_one(some_shard(keyspace), placed, values, keyspace)
            return Bound((nowhere,), warnings=self.routing.unmatched(values, keyspace))
        if len(groups) == 1:
            (group,) = groups.values()
            if len(group) == 1 and not (scatter and self.exact):
                return Bound((self.on_one(group[0], placed, values, keyspace),), scatter=scatter)
        if not isinstance(self.scattered, Scatter):
            raise self.scattered.failure
        if self.sample:
            shard, count = next(iter(groups.values()))[0], sum(map(len, groups.values()))
            told = {"shard": str(shard), "shards": str(count), "keyspace": keyspace.name}
            one = self.on_one(shard, placed, values, keyspace)
            return Bound((one,), warnings=(Notice("one_shard_explained", told),))
        return self._fan_out(self.scattered, groups, placed, values, keyspace)._replace(scatter=scatter)

    def _bind(self, values: Values, topology: Topology, choose: Choose) -> Bound:
        found = self._bind_list(values, topology) if self.listed is not None else None
        return Sharded._bind(self, values, topology, choose) if found is None else found

    def _bind_list(self, values: Values, topology: Topology) -> Bound | None:
        """Bind what one list of IDs routes to several shards; None: there is more to it."""
        listed, how = self.listed, self.merging
        if listed is None or how is None:
            return None
        keyspace = keyspace_of(topology, self.routing.keyspace)
        try:
            window = _Window.of(how, values)
        except BindError:  # which one shard does not have
            return None
        pieces = listed.filled(values, window.within)
        texts = texts_by_host(
            values[listed.literal], listed.bits, keyspace.places, pieces, UNION, listed.most
        )
        if texts is None or (len(texts) < 2 and (not texts or len(texts[0][1]) == 1)):
            return None
        each = partial(self._list_per_shard, how, values, keyspace)
        return _united(
            how, texts, window, partial(self._reference_of_list, how, texts, values, keyspace), each
        )

    def _list_per_shard(self, how: Scatter, values: Values, keyspace: Keyspace) -> Bound:
        placed = self.routing.place(values, keyspace)
        groups = by_host(keyspace, placed[0])
        return self._fan_out(how, groups, placed, values, keyspace, per_shard=True)

    def _reference_of_list(
        self, how: Scatter, texts: Texts, values: Values, keyspace: Keyspace
    ) -> HostStatement:
        return self._reference(how, texts, self.routing.place(values, keyspace), values, keyspace)

    def _fan_out(
        self,
        how: Scatter,
        groups: Groups,
        placed: list[Placed],
        values: Values,
        keyspace: Keyspace,
        *,
        per_shard: bool = False,
    ) -> Bound:
        per_shard = per_shard or how.per_shard
        window = _Window.of(how, values)
        size = 1 if per_shard else CHUNK
        texts: Texts = []
        for host, every in groups.items():
            for at in range(0, len(every), size):
                group = every[at : at + size]
                columns = self.routing.columns(group, placed, values, keyspace, window.within)
                if how.part.size_of_many(values, columns) <= UNION_BYTES:
                    texts.append((host, tuple(group), how.united(values, columns)))
                else:
                    texts += [(host, tuple(some), sql) for some, sql in _split(how, group, values, columns)]
        each = partial(self._fan_out, how, groups, placed, values, keyspace, per_shard=True)
        reference = partial(self._reference, how, texts, placed, values, keyspace)
        return _united(how, texts, window, reference, None if per_shard else each)

    def _reference(
        self, how: Scatter, texts: Texts, placed: list[Placed], values: Values, keyspace: Keyspace
    ) -> HostStatement:
        """What is asked for the definitions of the columns: of the first shard."""
        host, (first, *_), _ = texts[0]
        columns = self.routing.columns([first], placed, values, keyspace)
        sql = how.reference.render(values + tuple([column[0] for column in columns]))
        return HostStatement(host, (first,), sql)


class _Window(NamedTuple):
    """LIMIT: of the whole (None: all rows), and as text, that of each shard (b"": none)."""

    rows: int | None
    offset: int
    within: bytes

    @classmethod
    def of(cls, how: Scatter, values: Values) -> _Window:
        """That of a statement. Raises BindError."""
        rows = None if how.rows is None else limit_number(how.rows, values)
        offset = 0 if how.offset is None else limit_number(how.offset, values)
        if rows is None or how.aggregates:
            return cls(rows, offset, b"")
        if rows == 0:  # nothing is to be read, and nothing warned of, wherever it begins
            offset = 0
        return cls(rows, offset, b"LIMIT %d" % min(rows + offset, MAX_ROWS))


def _united(
    how: Scatter,
    texts: Texts,
    window: _Window,
    reference: Callable[[], HostStatement],
    each: Callable[[], Bound] | None,
) -> Bound:
    """The texts, each of them the SELECTs of some shards without anything around, as statements. `each` gives
    one for each shard, unless these are that.
    """
    rows, offset, within = window
    alone = len(texts) == 1 and not how.aggregates
    tail = how.tail + (b" " + within if within else b"")
    if alone and rows is not None:
        tail = how.tail + b" LIMIT %d, %d" % (offset, rows)
    if alone:
        merge = Merge(hidden=how.hidden) if how.hidden else None
    else:
        merge = Merge(how.order, rows, offset, how.hidden, how.aggregates)
    single = True
    statements = []
    for host, shards, sql in texts:
        if len(shards) > 1:  # a single shard's own SELECT has all that `tail` says
            single = False
            sql = b"(" + sql + b")" + tail
        statements.append(HostStatement(host, shards, sql))
    if single and not how.exact:
        return Bound(tuple(statements), merge)
    return Bound(
        tuple(statements), merge, Reference(reference), per_shard=None if each is None else PerShard(each)
    )


def _split(
    how: Scatter, group: Sequence[int], values: Values, columns: Sequence[Sequence[bytes]]
) -> Iterator[tuple[Sequence[int], bytes]]:
    """The SELECTs of a host's shards in as few texts as UNION_BYTES allows."""
    begin, size = 0, 0
    for at, _ in enumerate(group):
        length = how.part.size_of_many(values, [column[at : at + 1] for column in columns])
        if at > begin and size + length > UNION_BYTES:
            yield group[begin:at], how.united(values, [column[begin:at] for column in columns])
            begin, size = at, 0
        size += length
    yield group[begin:], how.united(values, [column[begin:] for column in columns])


@dataclass(frozen=True, kw_only=True, eq=False)
class ShardWrite(Sharded):
    """UPDATE or DELETE (`verb`) on a sharded table: one statement a shard.

    `denied` is the error when it would run on all shards, None when it may. `found` is how it runs on several
    when `scattered` says that it cannot. `returning`: it has a RETURNING clause. `same`, `stays`: assignments
    that must leave a row where it is, see unchanged.py.
    """

    kind: ClassVar[str] = "write"
    title: ClassVar[str] = "write to shards"
    learns_columns: ClassVar[bool] = False
    captures: ClassVar[ConnectionState] = ConnectionState.VARIABLES
    access: Access = Access.WRITE
    verb: str
    scattered: Reject | None = None
    denied: Reject | None = None
    found: ReadThenWrite | None = None
    returning: bool = False
    same: tuple[Same, ...] = ()
    stays: tuple[Stays, ...] = ()

    @property
    def scatter_refusal(self) -> Reject | None:
        return self.scattered

    @property
    def alternative(self) -> Plan | None:
        return self.found

    def with_alternative(self, other: Plan | None) -> ShardWrite:
        if other is None or isinstance(other, ReadThenWrite):
            return replace(self, found=other)
        return self if other.refusal is None else replace(self, scattered=other.refusal)

    @property
    def has_returning(self) -> bool:
        return self.returning

    @property
    def updates(self) -> bool:
        return self.verb == "UPDATE"

    def leaving(self, effects: Effects) -> ShardWrite:
        kept = effects.of_one_shard()
        return self if kept is None else replace(self, effects=kept, point=None)

    def run_on(
        self, groups: Groups, placed: list[Placed], values: Values, keyspace: Keyspace, *, scatter: bool
    ) -> Bound:
        if scatter and self.denied is not None:
            raise self.denied.failure
        if self.scattered is not None and sum(map(len, groups.values())) > 1:
            raise self.scattered.failure
        for one in self.same:
            one.check(values, self.routing.comparisons)
        for other in self.stays:
            other.check(values, [shard for group in groups.values() for shard in group], keyspace)
        if not groups:
            warnings = self.routing.unmatched(values, keyspace)
            nowhere = self.on_one(some_shard(keyspace), placed, values, keyspace)
            if self.returning:
                return Bound((nowhere,), warnings=warnings)
            return Bound((), reference=nowhere, warnings=warnings)
        statements = []
        for host, group in groups.items():
            columns = self.routing.columns(group, placed, values, keyspace)
            for shard, *extras in zip(group, *columns, strict=True):
                sql = self.template.render((*values, *extras))
                statements.append(HostStatement(host, (shard,), sql))
        return Bound(tuple(statements), scatter=scatter)
