"""The map of old to new IDs: a hashed table of the target, `users:123` → the new ID of user 123.

The first who needs a new ID makes it: the row's own import, or that of a row that refers to it. It says
the shard once and for all; the local part is the old number. So it does not matter who comes first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from config.layout import Layout
from config.schema import quote
from config.topology import Host, Keyspace, Topology
from fleet.core.errors import Failed
from fleet.core.hosts import Hosts
from fleet.importing.source import Source
from fleet.importing.tables import Import, ImportedTable
from fleet.importing.writing import transaction, unions

_CACHED: Final = 500_000
"""New IDs that are kept in memory: some 60 MB."""
_MOST: Final = 1000
"""Old IDs in one condition."""


def key_of(name: str, old: int) -> str:
    """What a row of the map is found by."""
    return f"{name}:{old}"


class Ids:
    """The map, by the names of object tables. `reader`: the source's connections."""

    def __init__(self, work: Import, topology: Topology, hosts: Hosts, source: Source, reader: Hosts) -> None:
        self._work, self._topology, self._hosts = work, topology, hosts
        self._source, self._reader = source, reader
        self._map = topology.keyspaces[work.map.keyspace]
        self._old = work.map.routing
        self._new = next(one.name for one in work.map.columns if one.name.lower() != self._old.lower())
        self._known: dict[tuple[str, int], int] = {}

    def forget(self) -> None:
        """What is in memory."""
        self._known.clear()

    def table(self, name: str) -> ImportedTable:
        """The table of that name."""
        return self._work.table(name)

    def keyspace(self, table: ImportedTable) -> tuple[Keyspace, Layout, int]:
        """Of an object table: with its layout, and its type."""
        found = self._topology.keyspaces[table.table.keyspace]
        assert found.layout is not None
        assert table.table.type is not None
        return found, found.layout, table.table.type

    def place(self, old: Iterable[str]) -> dict[tuple[Host, str], list[str]]:
        """Keys of the map by host and database."""
        found: dict[tuple[Host, str], list[str]] = {}
        for key in old:
            host, database = self._map.places[self._map.shard_of_key(key.encode())]
            found.setdefault((host, database.decode()), []).append(key)
        return found

    async def lookup(self, name: str, olds: Collection[int], *, anew: bool = False) -> dict[int, int]:
        """New IDs by the old, of those that have one. `anew`: not from memory."""
        found, asked = {}, []
        for old in olds:
            new = None if anew else self._known.get((name, old))
            if new is None:
                asked.append(old)
            else:
                found[old] = new
        for at in range(0, len(asked), _MOST * 4):
            keys = [key_of(name, old) for old in asked[at : at + _MOST * 4]]
            selects: dict[Host, list[str]] = {}
            for (host, database), some in self.place(keys).items():
                listed = ",".join(f"'{key}'" for key in some)
                selects.setdefault(host, []).append(
                    f"SELECT {quote(self._old)}, {quote(self._new)} FROM {quote(database)}."
                    f"{quote(self._work.map.name)} WHERE {quote(self._old)} IN ({listed})"
                )
            for rows in (await unions(self._hosts, selects)).values():
                for key, new in rows:
                    text = key.decode() if isinstance(key, bytes) else str(key)
                    found[int(text.rpartition(":")[2])] = self._sound(name, text, int(new))
        if len(self._known) + len(asked) > _CACHED:
            self._known.clear()
        self._known.update({(name, old): found[old] for old in asked if old in found})
        return found

    def _sound(self, name: str, key: str, new: int) -> int:
        """An ID of the map, which somebody else might have written. Failed."""
        keyspace, layout, type_ = self.keyspace(self.table(name))
        shard = layout.shard_of(new)
        wanted = None if shard is None else layout.base(shard, type_) | int(key.rpartition(":")[2])
        if new != wanted or shard not in keyspace.places:
            raise Failed(
                f"{self._work.map.name}: the ID of {key} is {new}, which is none of {name} (type {type_}) "
                "with this number: the table is the import's own, --undo takes its rows out"
            )
        return new

    async def ensure(
        self,
        name: str,
        olds: Collection[int],
        followed: Mapping[int, int | None] | None = None,
        trail: frozenset[int] = frozenset(),
    ) -> dict[int, int]:
        """New IDs by the old, made where there are none; not of those that the source does not have.
        `followed`: of rows that were read already, the old ID in the column that says the shard. `trail`:
        rows of the table that wait for these.
        """
        found = await self.lookup(name, olds)
        missing = [old for old in olds if old not in found]
        if not missing:
            return found
        table = self._work.table(name)
        if followed is None:
            followed = await self._read(table, missing)
        rows = {old: followed[old] for old in missing if old in followed}
        shards = await self._shards(table, rows, trail)
        await self._make(table, shards)
        return found | await self.lookup(name, list(shards), anew=True)

    async def _read(self, table: ImportedTable, olds: Collection[int]) -> dict[int, int | None]:
        """What rows of the source follow."""
        found: dict[int, int | None] = {}
        follow = quote(table.follow) if table.follow else "NULL"
        where = f"{quote(self._source.database)}.{quote(table.source)}"
        listed = list(olds)
        for at in range(0, len(listed), _MOST):
            some = ",".join(map(str, listed[at : at + _MOST]))
            rows = await self._reader.query(
                self._source.address,
                f"SELECT {quote(table.id)}, {follow} FROM {where} WHERE {quote(table.id)} IN ({some})",
            )
            found |= {int(old): None if parent is None else int(parent) for old, parent in rows}
        return found

    async def _shards(
        self, table: ImportedTable, rows: Mapping[int, int | None], trail: frozenset[int]
    ) -> dict[int, int]:
        """The shard of each new object: its parent's, or by hash over the shards that are open."""
        keyspace, layout, _ = self.keyspace(table)
        parent = table.parent()
        known: dict[int, int] = {}
        if parent is not None:
            wanted = {one for one in rows.values() if one is not None}
            if parent.of == table.name:
                wanted -= rows.keys() | trail
                known = await self.ensure(parent.of, wanted, trail=trail | rows.keys())
            else:
                known = await self.ensure(parent.of, wanted)
        found: dict[int, int] = {}
        followed = {old: layout.shard_of(new) for old, new in known.items()}
        left = dict(rows)
        while left:
            # within one table a row may follow another of these
            ready = [old for old, one in left.items() if one is None or one not in left or one == old]
            for old in ready or list(left):
                by = left.pop(old)
                inner = found.get(by) if by is not None and parent and parent.of == table.name else None
                shard = inner if inner is not None else None if by is None else followed.get(by)
                found[old] = self._spread(keyspace, table, old) if shard is None else shard
        return found

    @staticmethod
    def _spread(keyspace: Keyspace, table: ImportedTable, old: int) -> int:
        shards = keyspace.open_shards
        if not shards:
            raise Failed(f"keyspace {keyspace.name} has no shard that is open for new objects")
        hashed = hashlib.md5(key_of(table.name, old).encode(), usedforsecurity=False).digest()
        return shards[int.from_bytes(hashed, "big") % len(shards)]

    async def _make(self, table: ImportedTable, shards: Mapping[int, int], *, anew: bool = False) -> None:
        """Write them into the map, unless somebody else has; with `anew`: in any case. Failed."""
        _, layout, type_ = self.keyspace(table)
        values: dict[str, int] = {}
        for old, shard in shards.items():
            if not 0 < old <= layout.local_mask:
                raise Failed(
                    f"{self._source.name}: {table.source}: the ID {old} cannot be a local ID, which is 1 to "
                    f"{layout.local_mask}: give it another, or leave the row out"
                )
            values[key_of(table.name, old)] = layout.base(shard, type_) | old
        by_host: dict[Host, list[str]] = {}
        verb = "REPLACE" if anew else "INSERT IGNORE"
        for (host, database), keys in self.place(values).items():
            rows = ",".join(f"('{key}',{values[key]})" for key in keys)
            by_host.setdefault(host, []).append(
                f"{verb} INTO {quote(database)}.{quote(self._work.map.name)} "
                f"({quote(self._old)}, {quote(self._new)}) VALUES {rows}"
            )
        await transaction(self._hosts, by_host)

    async def move(self, name: str, shards: Mapping[int, int]) -> dict[int, int]:
        """Objects that are to be on other shards than they are: their new IDs."""
        await self._make(self._work.table(name), shards, anew=True)
        return await self.lookup(name, list(shards), anew=True)

    async def drop(self, name: str, olds: Collection[int]) -> None:
        """Forget rows that are not there any more."""
        by_host: dict[Host, list[str]] = {}
        for (host, database), keys in self.place(key_of(name, old) for old in olds).items():
            listed = ",".join(f"'{key}'" for key in keys)
            by_host.setdefault(host, []).append(
                f"DELETE FROM {quote(database)}.{quote(self._work.map.name)} "
                f"WHERE {quote(self._old)} IN ({listed})"
            )
        await transaction(self._hosts, by_host)
        for old in olds:
            self._known.pop((name, old), None)
