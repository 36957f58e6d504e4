"""What moving shards to another pair is, as data: the topology's documents on the way. Pure."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from config.topology import Host, Keyspace, Range, State, Topology
from fleet.core.errors import Refused
from fleet.document import Document, with_range


@dataclass(frozen=True)
class Part:
    """The shards `first` to `last` of a keyspace, which lie within one range of the topology."""

    keyspace: str
    first: int
    last: int
    held: Range


@dataclass(frozen=True)
class Move:
    """The shards of some keyspaces that go from one pair to another."""

    keyspaces: tuple[str, ...]
    first: int
    last: int
    master: Host
    slave: Host | None = None

    @property
    def what(self) -> str:
        """For people."""
        return f"{','.join(self.keyspaces)} {self.first}-{self.last}"

    def parts(self, topology: Topology) -> list[Part]:
        """What is to be moved. Refused when some of the shards are not there, or not all on one master."""
        found = [part for name in self.keyspaces for part in self._parts(_sharded(topology, name))]
        masters = list(dict.fromkeys(part.held.master for part in found))
        if len(masters) > 1:
            listed = ", ".join(f"{one.keyspace} {one.first}-{one.last} on {one.held.master}" for one in found)
            raise Refused(f"{self.what} is not on one master: {listed}. Move what one master has at a time")
        return found

    def _parts(self, keyspace: Keyspace) -> Iterator[Part]:
        at = self.first
        for one in sorted(keyspace.ranges, key=lambda one: one.first):
            if one.last < self.first or one.first > self.last:
                continue
            if one.first > at:
                break
            last = min(one.last, self.last)
            yield Part(keyspace.name, at, last, one)
            at = last + 1
        if at <= self.last:
            there = ", ".join(f"{one.first}-{one.last}" for one in keyspace.ranges)
            raise Refused(
                f"shard {at} of {keyspace.name} is in no range: there are {there}; "
                "new shards are made by `shardgate fleet open`"
            )

    def databases(self, topology: Topology) -> list[str]:
        """The physical ones."""
        return [
            topology.keyspaces[name].database_of(shard).decode()
            for name in self.keyspaces
            for shard in range(self.first, self.last + 1)
        ]

    # --- the documents ---------------------------------------------------------------------------

    def frozen(self, document: Document, parts: Sequence[Part]) -> Document:
        """The next version, with the shards frozen where they are."""
        return _changed(document, parts, {"state": str(State.FROZEN)})

    def serving(self, document: Document, parts: Sequence[Part]) -> Document:
        """The next version, with the shards serving where they are."""
        return _changed(document, parts, {"state": None})

    def moved(self, document: Document, parts: Sequence[Part]) -> Document:
        """The next version, with the shards serving on the new pair."""
        return _changed(document, parts, {"state": None, "master": self.master, "slave": self.slave})


def _sharded(topology: Topology, name: str) -> Keyspace:
    found = topology.keyspaces.get(name)
    if found is None or not found.sharded:
        listed = ", ".join(one.name for one in topology.keyspaces.values() if one.sharded)
        why = "is not there" if found is None else "has no shards"
        raise Refused(f"keyspace {name} {why}: shards are in {listed or 'none'}")
    return found


def _changed(document: Document, parts: Sequence[Part], fields: Mapping[str, Any]) -> Document:
    made = copy.deepcopy(document)
    for one in parts:
        made = with_range(made, one.keyspace, one.first, one.last, fields)
    return made | {"version": int(document["version"]) + 1}
