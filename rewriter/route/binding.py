"""Values to shards, shards to statements: what the plans on sharded tables do at every binding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from config.topology import Host, Keyspace, Topology
from rewriter.bound import BindError, Notice
from rewriter.text.literals import NotPlain

from .columns import Extra
from .routing import Between, Comparison, Key, Offset, Placed, Route
from .values import Value

CHUNK: Final = 64
"""So many shards at most go into one UNION ALL."""

UNION_BYTES: Final = 1 << 19
"""And so many bytes at most, unless a single shard's SELECT is longer: servers may take as little as 1 MB at
once (max_allowed_packet)."""

MAX_ROWS: Final = 18446744073709551615
"""MySQL's largest LIMIT."""


@dataclass(frozen=True, slots=True)
class Routing:
    """How a statement finds its shards, and what is computed for each.

    `routes` has one route for each reference to a sharded table. With `one_shard` they must all lead to one
    and the same shard. `extras` are computed in this order. `naming`: the comparisons (indexes) whose
    constants name the rows that are wanted, which must be on shards that there are.
    """

    keyspace: str
    tables: tuple[str, ...]
    comparisons: tuple[Comparison, ...]
    ranges: tuple[Between, ...]
    offsets: tuple[Offset, ...]
    routes: tuple[Route, ...]
    extras: tuple[Extra, ...]
    in_list: int
    naming: tuple[int, ...] = ()

    def place(self, values: tuple[bytes, ...], keyspace: Keyspace) -> list[Placed]:
        """Each comparison's constants by shard. Raises NotPlain, also for what is only compared."""
        for offset in self.offsets:
            offset.value.integer(values)
        for one in self.comparisons:
            size = one.size(values)
            if size > self.in_list:
                raise BindError("in_list_too_long", size=str(size), limit=str(self.in_list))
        return [one.place(values, keyspace) for one in self.comparisons]

    def shards(
        self, placed: list[Placed], values: tuple[bytes, ...], keyspace: Keyspace
    ) -> list[set[int] | None]:
        """The shards of each route, whether they exist or not; None for all. Raises NotPlain."""
        between = [one.shards(values, keyspace) for one in self.ranges]
        return [route.shards(placed, between) for route in self.routes]

    def refuse_missing(self, placed: list[Placed], values: tuple[bytes, ...], keyspace: Keyspace) -> None:
        """Raise BindError when a constant names a row, or a range names rows, of a shard that the topology
        lacks: such rows are not found, and without the error nobody would know. Raises NotPlain.
        """
        places = keyspace.places
        for number in self.naming:
            for shard in placed[number]:
                if shard not in places:
                    raise self._missing(number, shard, values, keyspace)
        for number in {number for route in self.routes for number in route.indexes("between")}:
            for shard in self.ranges[number].shards(values, keyspace) or ():
                if shard not in places:
                    raise shard_missing(self.ranges[number].low.integer(values), shard, keyspace)

    def _missing(self, number: int, shard: int, values: tuple[bytes, ...], keyspace: Keyspace) -> BindError:
        """The error that a constant of a comparison is of a shard that the topology lacks."""
        one = self.comparisons[number]
        named = () if one.key.takes_text else one.integers(values)
        of_shard = (id for id in named if one.key.shard_of_integer(id, keyspace) == shard)
        return shard_missing(next(of_shard, None), shard, keyspace)

    def columns(
        self,
        shards: Sequence[int],
        placed: list[Placed],
        values: tuple[bytes, ...],
        keyspace: Keyspace,
        rows: bytes = b"",
    ) -> list[list[bytes]]:
        """For each extra, its value on every shard. `rows` is a shard's own LIMIT."""
        return [self._column(extra, shards, placed, values, keyspace, rows) for extra in self.extras]

    def _column(
        self,
        extra: Extra,
        shards: Sequence[int],
        placed: list[Placed],
        values: tuple[bytes, ...],
        keyspace: Keyspace,
        rows: bytes,
    ) -> list[bytes]:
        """One extra for all shards."""
        if extra.kind == "database":
            return keyspace.databases_of(shards)
        if extra.kind == "base":
            return keyspace.bases_of(shards, extra.number)
        if extra.kind == "constants":
            comparison, mine = self.comparisons[extra.number], placed[extra.number]
            return comparison.write(mine, shards, values)
        if extra.kind == "offset":
            assert keyspace.layout is not None
            offset, layout = self.offsets[extra.number], keyspace.layout
            return [offset.write(shard, values, layout) for shard in shards]
        return [rows] * len(shards)

    def probe(self, values: tuple[bytes, ...], keyspace: Keyspace, shard: int) -> tuple[bytes, ...]:
        """Each extra on some shard, with parameters left as they are in `values`: for a server to prepare."""
        found = []
        for extra in self.extras:
            if extra.kind == "constants":
                found.append(self.comparisons[extra.number].probe(values))
            elif extra.kind == "offset":
                value = self.offsets[extra.number].value
                found.append(values[value.index] if value.kind == "parameter" else b"1")
            else:
                found.append(self._column(extra, [shard], [], values, keyspace, b"1")[0])
        return tuple(found)

    def unmatched(self, values: tuple[bytes, ...], keyspace: Keyspace) -> tuple[Notice, ...]:
        """The warning that some ID matches nothing; none when the conditions merely contradict each other."""
        for one in self.comparisons:
            if one.key.takes_text or one.key.rule not in ("object", "id"):
                continue
            for number in one.integers(values):
                if one.key.shard_of_integer(number, keyspace) is None:
                    reason = why_not(number, one.key)
                    return (
                        Notice(
                            "id_matches_nothing",
                            {"id": str(number), "table": self.tables[0].partition(".")[2], "reason": reason},
                        ),
                    )
        return ()


def shard_missing(id: int | None, shard: int, keyspace: Keyspace) -> BindError:
    """The error that an ID, or a key (None), is of a shard that the topology lacks."""
    named = "A key" if id is None else f"ID {id}"
    return BindError("shard_missing", named=named, shard=str(shard), keyspace=keyspace.name)


def why_not(number: int, key: Key) -> str:
    """Why an ID can be no row's, in words."""
    layout = key.layout
    if number < 0:
        return "it is negative"
    if number >> 64:
        return "it has more than 64 bits"
    if layout is None:
        return "it is no ID"
    if number & layout.reserved_bits:
        return "its reserved bits are set"
    return f"its type is {layout.decompose(number)['type']}, this table's is {key.type}"


def host(keyspace: Keyspace, shard: int) -> Host:
    """The master of a shard. Raises BindError when no range holds it."""
    found = keyspace.host_of(shard)
    if found is None:
        raise BindError("unknown_database", database=keyspace.database_of(shard).decode())
    return found


def by_host(keyspace: Keyspace, shards: Iterable[int]) -> dict[Host, list[int]]:
    """Those shards that exist by their master, in ascending order."""
    found: dict[Host, list[int]] = {}
    places = keyspace.places
    for shard in sorted(shards):
        place = places.get(shard)
        if place is None:
            continue
        if place[0] in found:
            found[place[0]].append(shard)
        else:
            found[place[0]] = [shard]
    return found


def some_shard(keyspace: Keyspace) -> int:
    """A shard to ask when none can hold a match: the first that there is. Raises BindError."""
    for shard in keyspace.all_shards:
        return shard
    raise BindError("no_open_shard", keyspace=keyspace.name)


def keyspace_of(topology: Topology, name: str) -> Keyspace:
    """The keyspace; BindError when the topology lost it."""
    keyspace = topology.keyspaces.get(name)
    if keyspace is None:
        raise BindError("unknown_database", database=name)
    return keyspace


def limit_number(value: Value, values: tuple[bytes, ...]) -> int:
    """A number of LIMIT. Raises BindError when it is none."""
    try:
        number = max(value.integer(values), 0)
    except NotPlain:
        raise BindError("syntax_error", reason="LIMIT must be a number") from None
    if number > MAX_ROWS and value.kind == "integer":
        reason = f"You have an error in your SQL syntax near '{number}': LIMIT has more than 64 bits"
        raise BindError("syntax_error", reason=reason)
    return min(number, MAX_ROWS)
