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

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from config.layout import Layout

Host = str
"""The address of one server: `name:port`, `[v6]:port` or `unix:/path`."""

HashName = Literal["md5", "modulo"]


class State(StrEnum):
    """What the shards of a range may be used for now."""

    SERVING = "serving"
    FROZEN = "frozen"
    READ_ONLY = "read_only"
    OFFLINE = "offline"


@dataclass(frozen=True)
class Range:
    """The shards `first` to `last`, both included, and the pair that holds them.

    `open`: new objects may be made there.
    """

    first: int
    last: int
    master: Host
    slave: Host | None = None
    open: bool = True
    state: State = State.SERVING


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
    ranges: tuple[Range, ...] = ()
    master: Host | None = None
    slave: Host | None = None
    database: str = ""

    sharded: bool = field(init=False)
    all_shards: tuple[int, ...] = field(init=False, repr=False)
    """Every shard of every range, ascending."""
    open_shards: tuple[int, ...] = field(init=False, repr=False)
    """Where new objects may go: open and serving; when none serves, open and frozen (they wait)."""
    signature: Hashable = field(init=False, repr=False)
    """What plans depend on: all but the hosts and ranges."""
    places: Mapping[int, tuple[Host, bytes]] = field(init=False, repr=False)
    """The master and the physical database of every shard that a range holds."""
    _ranges: dict[int, Range] = field(init=False, repr=False)
    _hosts: dict[int | None, Host] = field(init=False, repr=False)
    _databases: dict[int | None, bytes] = field(init=False, repr=False)
    _bases: dict[int, dict[int, bytes]] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        put = object.__setattr__
        sharded = self.layout is not None or self.hash is not None
        put(self, "sharded", sharded)
        if not sharded and not self.database:
            put(self, "database", self.name)
        ordered = sorted(self.ranges, key=lambda one: one.first)
        by_shard = {shard: one for one in ordered for shard in range(one.first, one.last + 1)}
        put(self, "_ranges", by_shard)
        put(self, "_hosts", {shard: one.master for shard, one in by_shard.items()})
        put(self, "_databases", {shard: self._format(shard) for shard in by_shard})
        put(self, "places", {shard: (one.master, self._databases[shard]) for shard, one in by_shard.items()})
        put(self, "all_shards", tuple(sorted(by_shard)))
        put(self, "open_shards", self._open(State.SERVING) or self._open(State.FROZEN))
        put(self, "signature", (self.name, self.layout, self.hash, self.shards, self.pattern, self.database))

    def _open(self, state: State) -> tuple[int, ...]:
        opened = self._ranges.items()
        return tuple(shard for shard, one in opened if one.state is state and (one.open or self.hash))

    def _format(self, shard: int) -> bytes:
        return self.pattern.format(shard=shard).encode()

    def host_of(self, shard: int | None) -> Host | None:
        """The master that holds `shard`; None when no range does."""
        if self.sharded:
            return self._hosts.get(shard)
        return self.master

    def range_of(self, shard: int) -> Range | None:
        """The range that holds `shard`; None when none does."""
        return self._ranges.get(shard)

    def database_of(self, shard: int | None) -> bytes:
        """The physical database of `shard`, e.g. b"db03429", whether a range holds it or not.

        Raises ValueError for shard None of a sharded keyspace.
        """
        if not self.sharded:
            return self.database.encode()
        known = self._databases.get(shard)
        if known is None:
            if shard is None:
                raise ValueError(f"keyspace {self.name} is sharded: its databases have a shard number")
            return self._format(shard)
        return known

    def databases_of(self, shards: Sequence[int]) -> list[bytes]:
        """The physical database of each shard, as `database_of`."""
        known = self._databases
        try:
            return [known[shard] for shard in shards]
        except KeyError:
            return [self.database_of(shard) for shard in shards]

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
            return int.from_bytes(hashlib.md5(text, usedforsecurity=False).digest(), "big") % self.shards
        if isinstance(key, bytes):
            raise ValueError(f"keyspace {self.name} hashes by modulo: the key must be an integer")
        return key % self.shards


@dataclass(frozen=True, eq=False)
class Topology:
    """One version of the map; compared by identity.

    `default` is the host of the databases that the schema does not name, or None. `digest`
    identifies the document's content, whatever its formatting.
    """

    version: int
    keyspaces: Mapping[str, Keyspace]
    default: Host | None = None
    default_slave: Host | None = None
    digest: str = ""

    hosts: tuple[Host, ...] = field(init=False, repr=False)
    """All masters, in order of first use."""
    slaves: tuple[Host, ...] = field(init=False, repr=False)
    """All slaves, in order of first use."""
    signature: Hashable = field(init=False, repr=False)
    """What plans depend on: the keyspaces' signatures and whether there is a default host."""
    _physical: dict[bytes, tuple[Keyspace, int | None]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        masters: list[Host | None] = []
        slaves: list[Host | None] = []
        physical: dict[bytes, tuple[Keyspace, int | None]] = {}
        for keyspace in self.keyspaces.values():
            masters += [keyspace.master, *(one.master for one in keyspace.ranges)]
            slaves += [keyspace.slave, *(one.slave for one in keyspace.ranges)]
            for shard in keyspace.all_shards if keyspace.sharded else (None,):
                physical[keyspace.database_of(shard)] = (keyspace, shard)
        put = object.__setattr__
        put(self, "hosts", tuple(dict.fromkeys(one for one in [*masters, self.default] if one)))
        put(self, "slaves", tuple(dict.fromkeys(one for one in [*slaves, self.default_slave] if one)))
        signatures = tuple(one.signature for one in self.keyspaces.values())
        put(self, "signature", (signatures, self.default is not None))
        put(self, "_physical", physical)

    def physical(self, database: bytes | str) -> tuple[Keyspace, int | None] | None:
        """The keyspace and shard of a physical database (db03429: main, 3429); None when unknown.

        The database of an unsharded keyspace gives shard None.
        """
        name = database.encode() if isinstance(database, str) else database
        return self._physical.get(name)
