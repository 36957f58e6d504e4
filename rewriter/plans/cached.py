"""Plans on tables that have a cache: reads that it may answer, and writes after which it must not.

Both are the plans that they would be without a cache, of a class of their own: so what runs them is found by
the class, as for any other plan, and a statement on other tables pays nothing. What is kept together in a
cache is a *group*: an object row, by its ID, or a mapping list, by its from-ID. See
docs/decisions/caching.md.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from config.topology import Topology
from rewriter.bound import BindError
from rewriter.plan import Access, Plan, TextRights, Values
from rewriter.route.routing import Comparison
from rewriter.splice import Template
from rewriter.text.literals import NotPlain
from rewriter.touched import CachedTable, Touched

from . import AnyHost, Ddl, Everywhere, LoadLocal, Passthrough, Physical
from .builtins import Builtin, SetVariables
from .inserting import Insert
from .maintenance import TableMaintenance
from .sharded import ShardSelect, ShardWrite

MOST_GROUPS: Final = 1000
"""A write on more groups is one on their shards."""
MOST_READ: Final = 100
"""The answer to a read of more groups is not kept."""
MOST_SHARDS: Final = 64
"""And one on more shards is one on the whole table."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CachedSelect(ShardSelect):
    """A SELECT whose answer depends only on the groups of `cached` that `own` names. `empty`: an answer
    without rows may be kept, too. `columns`: those of the table, when the statement was planned.
    """

    repeats: ClassVar[bool] = False  # the cache may answer it
    cached: CachedTable
    own: Comparison
    empty: bool = False
    columns: bytes = b""

    @cached_property
    def mark(self) -> bytes:
        """The client's statement without its literals: what of it the servers do not get, too."""
        return repr(self.template.parts).encode()

    def asked_first(self, values: Values) -> tuple[CachedTable, tuple[int, ...]] | None:
        return self.cached, self.groups(values)

    def groups(self, values: Values) -> tuple[int, ...]:
        """The IDs; () when there are too many, or they are no plain constants."""
        try:
            found = tuple(dict.fromkeys(self.own.integers(values)))
        except NotPlain:
            return ()
        return found if len(found) <= MOST_READ else ()


@dataclass(frozen=True, kw_only=True, eq=False)
class Touching(Plan):
    """What changes, or may change, rows of `touched`.

    `by`: what tells which: "groups" (`comparison` has the IDs of a change), "rows" (those of an INSERT),
    "shards" (those that it runs on), "places" (the shards of physical databases), "tables" (nothing: all).
    """

    invalidates: ClassVar[bool] = True
    touched: tuple[CachedTable, ...] = ()
    by: Literal["groups", "rows", "shards", "places", "tables"] = "tables"
    comparison: Comparison | None = None

    def touches(self, values: Values, topology: Topology) -> tuple[Touched, ...]:
        return tuple(Touched(table) for table in self.touched)


@dataclass(frozen=True, kw_only=True, eq=False)
class TouchingWrite(ShardWrite, Touching):
    """UPDATE or DELETE of tables with a cache."""

    def touches(self, values: Values, topology: Topology) -> tuple[Touched, ...]:
        if self.by == "groups" and self.comparison is not None:
            try:
                groups = tuple(dict.fromkeys(self.comparison.integers(values)))
            except NotPlain:
                groups = ()
            if 0 < len(groups) <= MOST_GROUPS:
                return tuple(Touched(table, groups) for table in self.touched)
        shards: set[int] = set()
        if self.by in ("groups", "shards"):
            try:
                bound = self.bind(values, topology, lambda shards: shards[0])
                shards = {shard for one in bound.statements for shard in one.shards}
            except BindError:
                shards = set()  # the statement's own error, or it goes another way
        if not 0 < len(shards) <= MOST_SHARDS:
            shards = set()
        return tuple(Touched(table, (), tuple(sorted(shards))) for table in self.touched)


@dataclass(frozen=True, kw_only=True, eq=False)
class TouchingInsert(Insert, Touching):
    """INSERT or REPLACE into a table with a cache."""

    def touches(self, values: Values, topology: Topology) -> tuple[Touched, ...]:
        groups: dict[int | None, None] = {}
        if self.by == "rows":
            try:
                for row, view in self.each(values):
                    groups[self._number(row.hints[-1], view)] = None
                    if len(groups) > MOST_GROUPS:
                        break
            except BindError:
                groups = {}
        known = tuple(one for one in groups if one is not None)
        if not 0 < len(known) == len(groups) <= MOST_GROUPS:
            known = ()
        return tuple(Touched(table, known) for table in self.touched)


@dataclass(frozen=True, kw_only=True, eq=False)
class TouchingPhysical(Physical, Touching):
    """A statement with names of physical databases, which changes something there."""

    def touches(self, values: Values, topology: Topology) -> tuple[Touched, ...]:
        if self.by != "places":
            return super().touches(values, topology)
        found = []
        for table in self.touched:
            places = [shard for keyspace, shard in self.locations if keyspace == table.keyspace]
            shards = tuple(shard for shard in places if shard is not None)
            if shards:
                found.append(Touched(table, (), shards))
        return tuple(found)


@dataclass(frozen=True, kw_only=True, eq=False)
class TouchingPassthrough(Passthrough, Touching):
    """A statement on tables that are not sharded, which may run code that changes others."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TouchingAnyHost(AnyHost, Touching):
    """A statement without tables that may run such code: EXECUTE, a function."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TouchingSet(SetVariables, Touching):
    """SET with a function that is none of the servers' own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TouchingDdl(Ddl, Touching):
    """A definition of a table with a cache."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TouchingMaintenance(TableMaintenance, Touching):
    """REPAIR TABLE and the like of a table with a cache."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TouchingEverywhere(Everywhere, Touching):
    """A write to reference tables."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TouchingLoad(LoadLocal, Touching):
    """A file that is loaded into a physical database."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FlushCache(Builtin):
    """FLUSH CACHE FOR table [id, …]: what the cache holds of the table, or of these groups, is old."""

    title: ClassVar[str] = "flush cache"
    text_rights: ClassVar[TextRights] = TextRights.OWN_ACCESS
    access: Access = Access.WRITE
    cached: CachedTable
    groups: Template | None = None

    def touched(self, values: Values) -> Touched:
        """What is old. Raises BindError."""
        if self.groups is None:
            return Touched(self.cached)
        texts = [one.strip().strip(b"'") for one in self.groups.render(values).split(b",")]
        if not all(text.isdigit() and len(text) < 40 for text in texts):
            raise BindError("cache_ids", table=self.cached.name)
        return Touched(self.cached, tuple(dict.fromkeys(map(int, texts))))


TOUCHING: Final[dict[type[Plan], type[Touching]]] = {
    ShardWrite: TouchingWrite,
    Insert: TouchingInsert,
    Physical: TouchingPhysical,
    Passthrough: TouchingPassthrough,
    AnyHost: TouchingAnyHost,
    SetVariables: TouchingSet,
    Ddl: TouchingDdl,
    TableMaintenance: TouchingMaintenance,
    Everywhere: TouchingEverywhere,
    LoadLocal: TouchingLoad,
}
"""The class of a plan that touches cached tables, by the one that it would have."""


def as_touching(
    plan: Plan,
    touched: tuple[CachedTable, ...],
    by: Literal["groups", "rows", "shards", "places", "tables"] = "tables",
    comparison: Comparison | None = None,
) -> Plan:
    """The plan as one that touches these tables."""
    variant = TOUCHING[plan.__class__]
    return variant(**_values(plan), touched=touched, by=by, comparison=comparison)


def as_cached(
    plan: ShardSelect, cached: CachedTable, own: Comparison, *, empty: bool, columns: bytes
) -> CachedSelect:
    """The plan as one that the cache may answer."""
    return CachedSelect(**_values(plan), cached=cached, own=own, empty=empty, columns=columns)


def _values(plan: Plan) -> dict[str, Any]:
    return {one.name: getattr(plan, one.name) for one in fields(plan) if one.init}
