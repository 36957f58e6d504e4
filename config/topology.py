"""Which host holds which shard: what the data path looks up, precomputed.

A `Topology` is one version of the map, never changed once made: a running proxy swaps one for the
next. `read_topology.py` makes it from the document and refuses what does not hold together, so
these classes only compute.

A keyspace is one of three:

    layout      the shard is in the ID (`layout`); `shards`, when given, is their fixed number
    hashed      the shard is the hash of a key (`hash`) modulo `shards`
    unsharded   one host (`master`), one physical database (`database`)
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Final, Literal

from config.layout import Layout
from config.ranges import Host, Range, Ranges, Runs, State, outside

__all__ = ["HashName", "Host", "Keyspace", "Range", "Ranges", "State", "Topology"]

HashName = Literal["md5", "modulo"]

_NAMES_AT_ONCE: Final = 1024
"""Databases' names are made for so many shards, or a multiple."""

_DIGITS: Final = 40
"""More a shard's number never has in a database's name."""


@cache
def _md5() -> Callable[..., Any]:
    """Imported when a key is hashed: hashlib has OpenSSL with it, which a planning process does without."""
    import hashlib

    return hashlib.md5


@dataclass(frozen=True, eq=False)
class Keyspace:
    """A family of shards with one naming pattern and one routing rule; compared by identity.

    Look-ups are one dict access each; `places` has host and database of a shard in one. For an unsharded
    keyspace `host_of` and `database_of` give its one host and database whatever the shard (None is
    customary), and the shard tuples are empty.
    """

    name: str
    layout: Layout | None = None
    hash: HashName | None = None
    shards: int | None = None
    pattern: str = ""
    ranges: Sequence[Range] = ()
    master: Host | None = None
    slave: Host | None = None
    database: str = ""

    sharded: bool = field(init=False)
    signature: Hashable = field(init=False, repr=False)
    """What plans depend on: all but the hosts and ranges."""
    _bases: dict[int, dict[int, bytes]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        sharded = self.layout is not None or self.hash is not None
        put(self, "sharded", sharded)
        if not sharded and not self.database:
            put(self, "database", self.name)
        if not isinstance(self.ranges, Ranges):
            put(self, "ranges", Ranges.of(self.ranges))
        put(self, "signature", (self.name, self.layout, self.hash, self.shards, self.pattern, self.database))

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.name, self.layout, self.hash, self.shards, self.pattern, self.ranges
        return Keyspace, (*given, self.master, self.slave, self.database)

    @property
    def columns(self) -> Ranges:
        """The ranges, as what they are kept in."""
        assert isinstance(self.ranges, Ranges)
        return self.ranges

    # --- what the data path looks up: made when it is asked for ----------------------------------------

    @cached_property
    def places(self) -> Mapping[int, tuple[Host, bytes]]:
        """The master and the physical database of every shard that a range holds."""
        shards = self.all_shards
        databases = map(_names(self.pattern, _bound(shards)).__getitem__, shards)
        return dict(zip(shards, zip(self.columns.masters_of(), databases, strict=True), strict=True))

    @cached_property
    def all_shards(self) -> tuple[int, ...]:
        """Every shard of every range, ascending."""
        return self.columns.shards()

    @cached_property
    def open_shards(self) -> tuple[int, ...]:
        """Where new objects may go: open and serving; when none serves, open and frozen (they wait)."""
        closed = self.hash is not None  # which uses all its shards
        found = self.columns.shards_in(State.SERVING, closed=closed)
        return found or self.columns.shards_in(State.FROZEN, closed=closed)

    @cached_property
    def open_by_host(self) -> Mapping[Host, tuple[int, ...]]:
        """The same by their master."""
        found: dict[Host, list[int]] = {}
        for shard in self.open_shards:
            found.setdefault(self.places[shard][0], []).append(shard)
        return {host: tuple(shards) for host, shards in found.items()}

    def take_over(self, old: Keyspace) -> None:
        """Use what `old`, the same keyspace before a change, has made for its shards, where they are the same
        ones. For one that nobody else knows yet.
        """
        if self.signature != old.signature:
            return
        put, mine, others = object.__setattr__, self.columns, old.columns
        put(self, "_bases", old._bases)
        made, known = vars(self), vars(old)
        if mine.runs == others.runs:
            made["all_shards"] = old.all_shards
            if mine.marks == others.marks and mine.at == others.at and "open_shards" in known:
                made["open_shards"] = old.open_shards
        changed = mine.changed(others, len(mine.at) // 4) if "places" in known else None
        if changed is not None:
            places = dict(old.places)
            for shard, _, now in changed:
                if now is None:
                    del places[shard]
                else:
                    place = places.get(shard)
                    places[shard] = now[0], self.named(shard) if place is None else place[1]
            made["places"] = places

    def named(self, shard: int) -> bytes:
        """The physical database that `shard` has, or would have: `database_of`, made anew."""
        return self.pattern.format(shard=shard).encode()

    def host_of(self, shard: int | None) -> Host | None:
        """The master that holds `shard`; None when no range does."""
        if self.sharded:
            place = None if shard is None else self.places.get(shard)
            return None if place is None else place[0]
        return self.master

    def range_of(self, shard: int) -> Range | None:
        """The range that holds `shard`; None when none does."""
        number = self.columns.number_of(shard)
        return None if number is None else self.ranges[number]

    def database_of(self, shard: int | None) -> bytes:
        """The physical database of `shard`, e.g. b"db03429", whether a range holds it or not.

        Raises ValueError for shard None of a sharded keyspace.
        """
        if not self.sharded:
            return self.database.encode()
        if shard is None:
            raise ValueError(f"keyspace {self.name} is sharded: its databases have a shard number")
        place = self.places.get(shard)
        return self.named(shard) if place is None else place[1]

    def databases_of(self, shards: Sequence[int]) -> list[bytes]:
        """The physical database of each shard, as `database_of`."""
        places = self.places
        try:
            return [places[shard][1] for shard in shards]
        except KeyError:
            return [self.database_of(shard) for shard in shards]

    def shard_named(self, database: bytes) -> int | None:
        """The shard, held by a range, whose physical database that is; None when it is none's."""
        before, behind = self._around
        digits = database[before : len(database) - behind]
        if not digits.isdigit() or len(digits) > _DIGITS:
            return None
        shard = int(digits)
        place = self.places.get(shard)
        return shard if place is not None and place[1] == database else None

    @cached_property
    def _around(self) -> tuple[int, int]:
        """So many bytes are before the number in a database's name, and behind it."""
        before, _, rest = self.pattern.partition("{shard")
        return len(before), len(rest.partition("}")[2])

    def bases_of(self, shards: Sequence[int], type_: int) -> list[bytes]:
        """The K of an object table on each shard, in digits. The keyspace must have a layout."""
        known = self._bases.get(type_)
        if known is None:
            known = self._bases[type_] = {}
        try:
            return [known[shard] for shard in shards]
        except KeyError:
            assert self.layout is not None
            base = self.layout.base
            known.update([(shard, b"%d" % base(shard, type_)) for shard in shards])
            return [known[shard] for shard in shards]

    def shard_of_key(self, key: bytes | int) -> int:
        """The shard of a hashed key, 0 to shards - 1.

        md5: the 128-bit digest of the key's bytes, big-endian, modulo shards; an integer is hashed
        as its decimal digits. modulo: of an integer, never negative. Raises ValueError for an
        unhashed keyspace and for bytes under modulo.
        """
        if self.hash is None or self.shards is None:
            raise ValueError(f"keyspace {self.name} is not hashed")
        if self.hash == "md5":
            text = key if isinstance(key, bytes) else b"%d" % key
            return int.from_bytes(_md5()(text, usedforsecurity=False).digest(), "big") % self.shards
        if isinstance(key, bytes):
            raise ValueError(f"keyspace {self.name} hashes by modulo: the key must be an integer")
        return key % self.shards


@dataclass(frozen=True, eq=False)
class Topology:
    """One version of the map; compared by identity.

    `default` is the host of the databases that the schema does not name, or None. `digest`
    identifies the document's content, whatever its formatting. `dropped` lists by keyspace the shards
    that were given up: the one sign that shards of the topology before may be missing in this one.
    `dropped_keyspaces` has the names of the unsharded ones that were given up, `dropped_default` says that
    the default host was.
    """

    version: int
    keyspaces: Mapping[str, Keyspace]
    default: Host | None = None
    default_slave: Host | None = None
    digest: str = ""
    dropped: Mapping[str, Runs] = field(default_factory=dict)
    dropped_keyspaces: tuple[str, ...] = ()
    dropped_default: bool = False

    hosts: tuple[Host, ...] = field(init=False, repr=False)
    """All masters, in order of first use."""
    slaves: tuple[Host, ...] = field(init=False, repr=False)
    """All slaves, in order of first use."""
    signature: Hashable = field(init=False, repr=False)
    """What plans depend on: the keyspaces' signatures and whether there is a default host."""
    _whole: dict[bytes, Keyspace] = field(init=False, repr=False)
    """The unsharded keyspaces, by their physical database."""
    _sharded: tuple[Keyspace, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        masters: list[Host | None] = []
        slaves: list[Host | None] = []
        for keyspace in self.keyspaces.values():
            masters += [keyspace.master, *keyspace.columns.masters]
            slaves += [keyspace.slave, *keyspace.columns.slaves]
        put = object.__setattr__
        put(self, "hosts", tuple(dict.fromkeys(one for one in [*masters, self.default] if one)))
        put(self, "slaves", tuple(dict.fromkeys(one for one in [*slaves, self.default_slave] if one)))
        signatures = tuple(one.signature for one in self.keyspaces.values())
        put(self, "signature", (signatures, self.default is not None))
        whole = [one for one in self.keyspaces.values() if not one.sharded]
        put(self, "_whole", {one.database_of(None): one for one in whole})
        put(self, "_sharded", tuple(one for one in self.keyspaces.values() if one.sharded))

    def __reduce__(self) -> tuple[Any, ...]:
        return _topology, (
            self.version, dict(self.keyspaces), self.default, self.default_slave, self.digest,
            dict(self.dropped), self.dropped_keyspaces, self.dropped_default,
        )  # fmt: skip

    @property
    def size(self) -> int:
        """So many ranges it has."""
        return sum(len(one.columns) for one in self._sharded)

    def warm(self) -> None:
        """Make what the data path looks up, before somebody waits for it."""
        for keyspace in self._sharded:
            keyspace.places  # noqa: B018 - it is kept

    def same_shards(self, other: Topology) -> bool:
        """Whether both have the same shards, in the same databases."""
        mine, others = ([(one.signature, one.columns.runs) for one in two._sharded] for two in (self, other))
        return mine == others

    def lacks(self, old: Topology) -> dict[str, Runs]:
        """The shards by keyspace that `old` has, and that this one neither has nor lists as dropped."""
        found = {}
        for keyspace in old._sharded:
            left = self.gone(keyspace)
            if left:
                left = outside(left, self.dropped.get(keyspace.name, ()))
            if left:
                found[keyspace.name] = left
        return found

    def hidden_keyspaces(self, old: Topology) -> tuple[Keyspace, ...]:
        """The unsharded keyspaces of `old` whose databases no statement finds by this topology, whether it
        lists them as dropped or not. A database on the default host is found there by its name.
        """
        kept = {one.database_of(None) for one in self.keyspaces.values() if not one.sharded}
        return tuple(
            one
            for one in old.keyspaces.values()
            if not one.sharded and one.database_of(None) not in kept and one.master != self.default
        )

    def gone(self, keyspace: Keyspace) -> Runs:
        """The shards of a keyspace of another topology that this one does not have."""
        mine = self.keyspaces.get(keyspace.name)
        return outside(keyspace.columns.runs, mine.columns.runs if mine is not None else ())

    def take_over(self, old: Topology) -> None:
        """Use what `old`, the version before this one, has made for shards that are the same. For a topology
        that nobody else knows yet.
        """
        for name, keyspace in self.keyspaces.items():
            before = old.keyspaces.get(name)
            if before is not None:
                keyspace.take_over(before)

    def physical(self, database: bytes | str) -> tuple[Keyspace, int | None] | None:
        """The keyspace and shard of a physical database (db03429: main, 3429); None when unknown.

        The database of an unsharded keyspace gives shard None.
        """
        name = database.encode("utf-8", "surrogateescape") if isinstance(database, str) else database
        for keyspace in self._sharded:
            shard = keyspace.shard_named(name)
            if shard is not None:
                return keyspace, shard
        found = self._whole.get(name)
        return None if found is None else (found, None)

    def range_with(self, database: str) -> Range | None:
        """The range that holds the shard whose physical database this is; None when none does."""
        keyspace, shard = self.physical(database) or (None, None)
        return None if keyspace is None or shard is None else keyspace.range_of(shard)


def _topology(version: int, keyspaces: dict[str, Keyspace], *others: Any) -> Topology:
    """What was pickled."""
    return Topology(version, MappingProxyType(keyspaces), *others)


def _bound(shards: Sequence[int]) -> int:
    """One more than the highest shard."""
    return shards[-1] + 1 if shards else 0


def _names(pattern: str, shards: int) -> Sequence[bytes]:
    """The physical databases of that many shards from 0 on, or of more."""
    return _many_names(pattern, -(-shards // _NAMES_AT_ONCE))


@lru_cache(maxsize=64)  # a keyspace's databases never have other names
def _many_names(pattern: str, blocks: int) -> Sequence[bytes]:
    return [pattern.format(shard=shard).encode() for shard in range(blocks * _NAMES_AT_ONCE)]
