"""What running a statement means over shards: the way, and how many shards one execution reads or writes.

The numbers are those of the plan with the values that the statement has. An application that is not sharded
yet has IDs that lie on no shard: then each different ID counts as a shard of its own, which is what it will
be at most, and `estimated` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from config.layout import Layout
from config.topology import Keyspace, Topology
from rewriter.env import Env
from rewriter.plan import Plan, Reject, Values
from rewriter.planner import Rewriter
from rewriter.plans import (
    BindError,
    Bound,
    Builtin,
    Ddl,
    Everywhere,
    LoadLocal,
    MultiStatement,
    Notice,
    NotSupported,
    OneHost,
    Opened,
    ReadThenWrite,
    Reorder,
    SetStatement,
)
from rewriter.plans.gather import Gather
from rewriter.plans.inserting import Insert
from rewriter.plans.sharded import Sharded, ShardSelect, ShardWrite
from rewriter.plans.variants import by_variant
from rewriter.route.binding import keyspace_of
from rewriter.route.routing import Comparison, Placed
from rewriter.text.literals import NotPlain


class Way(StrEnum):
    """How a statement runs, from the best to the worst."""

    PROXY = "proxy"  # answered by the proxy itself
    HOST = "host"  # tables that are not sharded: one host
    POINT = "point"  # one shard, by one ID or key
    ONE = "one shard"
    LIST = "list"  # the shards of a list of IDs or keys
    JOIN = "join"  # two reads, joined by the proxy
    EVERYWHERE = "every host"  # a reference table is written
    DEFINITION = "definition"  # DDL: every shard, once
    SCATTER = "scatter"  # every shard
    GATHER = "gather"  # rows are copied to one server, which runs the statement
    REFUSED = "refused"


RANK: Final = {way: number for number, way in enumerate(Way)}

TO_ONE: Final = frozenset({Way.PROXY, Way.HOST, Way.POINT, Way.ONE})
"""The ways that reach one server, or none."""


_WORDS: Final = {
    Way.PROXY: "the proxy",
    Way.HOST: "one host",
    Way.POINT: "one shard",
    Way.ONE: "one shard",
    Way.JOIN: "two reads by ID",
    Way.EVERYWHERE: "every host",
    Way.GATHER: "gathered",
    Way.REFUSED: "refused",
}


class Cost(NamedTuple):
    """`shards`: so many are read or written by one execution, of the `of` that there are; 0 where nothing is
    sharded. `hosts`: on so many servers. `listed`: for each value of a list. `estimated`: see above. `error`:
    why it is refused. `pieces`: of a gathered statement, the tables of which all shards are read.
    """

    way: Way
    shards: int = 0
    of: int = 0
    hosts: int = 0
    listed: bool = False
    estimated: bool = False
    error: Notice | None = None
    pieces: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Whether there is nothing to advise."""
        return self.way not in (Way.SCATTER, Way.GATHER, Way.REFUSED)

    @property
    def words(self) -> str:
        """For people."""
        match self.way:
            case Way.SCATTER:
                return f"all {self.of} shards"
            case Way.LIST:
                return "the shards of a list" if self.shards != 1 else "one shard"
            case Way.DEFINITION:
                return f"all {self.of} shards, once"
        return _WORDS[self.way]

    def better(self, other: Cost) -> bool:
        """Whether this one is reason enough to change something."""
        if self.way is other.way:
            return self.shards < other.shards
        return self.way is not Way.REFUSED and RANK[self.way] < RANK[other.way]


def slot(name: str) -> bytes:
    """What a session would have said: of a parameter a text, which is a number, too, another one for each."""
    if not name.startswith("?") or name.startswith("?L"):
        return b"1"
    return b"'%d'" % (int(name[1:]) + 1 if name[1:].isdigit() else 1)


def cost_of(rewriter: Rewriter, sql: bytes, env: Env) -> Cost:
    """What `sql` would cost. Never raises."""
    plan, literals = rewriter.plan(sql, env)
    if plan.sanitized is not None:
        plan, literals = rewriter.plan(plan.sanitized, env)
    inner = plan.inner_text(literals)
    if inner is not None:
        return cost_of(rewriter, inner, env)
    values = literals + tuple(slot(name) for name in plan.session_slots)

    def read(sql: bytes, groups: bool) -> Cost:
        return cost_of(rewriter, sql, replace(env, each_shard=True) if groups else env)

    return _Costing(rewriter.topology, literals, read).of(plan, values)


class _Costing:
    """`read` gives what a further statement costs; its second argument: as groups of each shard."""

    def __init__(self, topology: Topology, literals: Values, read: Callable[[bytes, bool], Cost]) -> None:
        self._topology = topology
        self._literals = literals
        self._read = read

    def of(self, plan: Plan, values: Values) -> Cost:
        try:
            return self._of(plan, values)
        except BindError as error:
            return _refused(error.name, error.arguments)
        except NotPlain:
            return Cost(Way.ONE, 1)

    def _of(self, plan: Plan, values: Values) -> Cost:
        return _COSTS[plan.__class__](self, plan, values)

    def refused(self, plan: Plan, values: Values) -> Cost:
        """Raises the error that it is refused with."""
        bound = plan.bind(values, self._topology, _first)
        raise AssertionError(bound)

    def by_proxy(self, plan: Plan, values: Values) -> Cost:
        del plan, values
        return Cost(Way.PROXY)

    def on_one_host(self, plan: OneHost | LoadLocal, values: Values) -> Cost:
        return Cost(Way.HOST, hosts=_reached(plan.bind(values, self._topology, _first))[1])

    def everywhere(self, plan: Everywhere, values: Values) -> Cost:
        return Cost(Way.EVERYWHERE, hosts=_reached(plan.bind(values, self._topology, _first))[1])

    def definition(self, plan: Ddl, values: Values) -> Cost:
        shards, hosts = _reached(plan.bind(values, self._topology, _first))
        return Cost(Way.DEFINITION, shards, shards, hosts)

    # rows of shards

    def reorder(self, plan: Reorder, values: Values) -> Cost:
        del plan, values
        return Cost(Way.POINT, 1, 0, 1)

    def write(self, plan: ShardWrite, values: Values) -> Cost:
        def check(shards: int | None) -> None:
            if shards is None and plan.denied is not None:
                raise plan.denied.failure
            try:
                plan.bind(values, self._topology, _first)  # what it must not change, it must not change here
            except BindError as error:
                if not isinstance(error, NotSupported) and error.name != "shard_missing":
                    raise

        return self.sharded(plan, values, check)

    def sharded(
        self, plan: Sharded, values: Values, check: Callable[[int | None], None] = lambda shards: None
    ) -> Cost:
        """`check` raises the error of a statement on so many shards, of which None is all."""
        keyspace = keyspace_of(self._topology, plan.routing.keyspace)
        try:
            shards, estimated = _shards(plan, values, keyspace)
        except NotPlain:
            return self.of(plan.fallback, values) if plan.fallback is not None else Cost(Way.ONE, 1)
        every = keyspace.all_shards
        if not estimated:
            return self._bound(plan, values, keyspace)
        count = len(every) if shards is None else max(1, min(shards, len(every)))
        if count > 1:
            other = self._not_as_it_is(plan, values)
            if other is not None:
                return other
        check(shards)
        way = Way.SCATTER if shards is None else self._way(plan, count)
        hosts = min(count, _hosts(keyspace))
        return Cost(
            way, count, len(every), hosts, listed=shards is not None and _listed(plan), estimated=True
        )

    def _bound(self, plan: Sharded, values: Values, keyspace: Keyspace) -> Cost:
        """With IDs that there are."""
        try:
            bound = plan.bind(values, self._topology, _first)
        except NotSupported as error:
            if plan.alternative is None:
                raise error
            return self._of(plan.alternative, values)
        shards, hosts = _reached(bound)
        of = len(keyspace.all_shards)
        if bound.scatter:
            return Cost(Way.SCATTER, of, of, _hosts(keyspace))
        return Cost(self._way(plan, shards), max(shards, 1), of, max(hosts, 1), listed=_listed(plan))

    def _way(self, plan: Sharded, count: int) -> Way:
        if count > 1:
            return Way.LIST
        routes = plan.routing.routes
        by_one = len(routes) == 1 and routes[0].kind == "in" and not _listed(plan)
        return Way.POINT if by_one else Way.ONE

    def _not_as_it_is(self, plan: Sharded, values: Values) -> Cost | None:
        """What is done when it is more than one shard, and one statement a host cannot do it."""
        if plan.scatter_refusal is None:
            return None
        if plan.alternative is None:
            raise plan.scatter_refusal.failure
        return self._of(plan.alternative, values)

    def insert(self, plan: Insert, values: Values) -> Cost:
        keyspace = keyspace_of(self._topology, plan.keyspace)
        of = len(keyspace.all_shards)
        ids = plan.ids(values)
        if any(one is not None and _is_old(one, keyspace) for one in ids):
            count = min(len({one for one in ids if one is not None}) + ids.count(None), of)
            return Cost(_of_rows(count), count, of, min(count, _hosts(keyspace)), estimated=True)
        shards, hosts = _reached(plan.bind(values, self._topology, _spread()))
        return Cost(_of_rows(shards), shards, of, hosts)

    # several steps

    def gather(self, plan: Gather, values: Values) -> Cost:
        values = self._literals + tuple(slot(name) for name in plan.session_slots)
        if plan.join is not None:
            rows, offset = plan.join.window(values)
            first = plan.join.first_sql(values, None if rows is None else rows + offset)
            found = self._read(first, False)
            if found.way is Way.REFUSED:
                return found
            if found.way is not Way.SCATTER:
                return found._replace(way=Way.JOIN, listed=True)
            return found
        shards = of = hosts = 0
        every: list[str] = []
        estimated = False
        for piece in plan.pieces:
            if piece.link is not None and piece.link.bounded:
                continue  # the shards of the values that another piece has
            cost = self._read(piece.sql(values, piece.shown), piece.each_shard)
            if cost.way is Way.REFUSED:
                return cost
            estimated = estimated or cost.estimated
            shards, of, hosts = shards + cost.shards, max(of, cost.of), max(hosts, cost.hosts)
            if cost.way is Way.SCATTER:
                every.append(piece.label)
        return Cost(Way.GATHER, shards, of, hosts, estimated=estimated, pieces=tuple(every))

    def read_then_write(self, plan: ReadThenWrite, values: Values) -> Cost:
        """A SELECT, and writes of what it gives."""
        values = self._literals + tuple(slot(name) for name in plan.session_slots)
        cost = self._read(plan.select.render(values), False)
        return cost._replace(way=Way.LIST) if cost.way in TO_ONE else cost


_COSTS: Final[Mapping[type[Plan], Callable[[_Costing, Any, Values], Cost]]] = by_variant(
    {
        OneHost: _Costing.on_one_host,
        LoadLocal: _Costing.on_one_host,
        ShardSelect: _Costing.sharded,
        ShardWrite: _Costing.write,
        Gather: _Costing.gather,
        Everywhere: _Costing.everywhere,
        Ddl: _Costing.definition,
        Insert: _Costing.insert,
        ReadThenWrite: _Costing.read_then_write,
        Reorder: _Costing.reorder,
        Builtin: _Costing.by_proxy,
        Opened: _Costing.refused,
        SetStatement: _Costing.refused,
        MultiStatement: _Costing.refused,
        Reject: _Costing.refused,
    }
)
"""What each variant costs."""


def _refused(name: str, arguments: object) -> Cost:
    return Cost(Way.REFUSED, error=Notice(name, dict(arguments) if isinstance(arguments, dict) else {}))


def _reached(bound: Bound) -> tuple[int, int]:
    """How many shards, and hosts."""
    shards = {shard for one in bound.statements for shard in one.shards}
    return len(shards), len({one.host for one in bound.statements})


def _hosts(keyspace: Keyspace) -> int:
    return len({one.master for one in keyspace.ranges})


def _of_rows(shards: int) -> Way:
    return Way.LIST if shards > 1 else Way.ONE


def _first(shards: Sequence[int]) -> int:
    return shards[0]


def _spread() -> Callable[[Sequence[int]], int]:
    """Rows that go anywhere, one after another to each shard."""
    turn = iter(range(1 << 30))
    return lambda shards: shards[next(turn) % len(shards)]


def _listed(plan: Sharded) -> bool:
    """Whether one of its conditions is a list."""
    return any(one.list_index >= 0 or len(one.values) > 1 for one in plan.routing.comparisons)


def _shards(plan: Sharded, values: Values, keyspace: Keyspace) -> tuple[int | None, bool]:
    """How many shards hold what is asked for (None: all), if some of its IDs are those of an application that
    is not sharded yet; whether there are such. Raises NotPlain and BindError.
    """
    routing = plan.routing
    if not any(_has_old(one, values, keyspace) for one in routing.comparisons):
        return None, False
    placed = routing.place(values, keyspace)
    for number, one in enumerate(routing.comparisons):
        if _by_id(one):
            placed[number] = _each(one, values)
    found = routing.shards(placed, values, keyspace)
    if None in found:
        return None, True
    return max((len(one) for one in found if one is not None), default=1), True


def _by_id(one: Comparison) -> bool:
    return one.key.rule in ("id", "object") and not one.key.takes_text


def _has_old(one: Comparison, values: Values, keyspace: Keyspace) -> bool:
    return _by_id(one) and any(_is_old(number, keyspace) for number in one.integers(values))


def _each(one: Comparison, values: Values) -> Placed:
    """Every value, as if it were a shard."""
    return {number: [] for number in one.integers(values)}


def _is_old(number: int, keyspace: Keyspace) -> bool:
    """Whether no shard has ever made this ID: a number counted from 1 on, or one of a shard that there is
    not.
    """
    layout = keyspace.layout
    if layout is None:
        return False
    shard = layout.shard_of(number)
    return 0 <= number < _least(layout) or (shard is not None and keyspace.host_of(shard) is None)


def _least(layout: Layout) -> int:
    """The least ID that there can be: types and times are never 0."""
    if layout.has_type:
        return 1 << layout.type_shift
    return 1 << (layout.time_shift if layout.has_time else layout.local_shift)
