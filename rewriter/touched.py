"""Tables that have a cache, and which rows of them a statement may change."""

from __future__ import annotations

from typing import NamedTuple

from config.schema import Cache, Table


class CachedTable(NamedTuple):
    """A table with a cache. `name`: `database.table`."""

    name: str
    keyspace: str
    cache: Cache

    @classmethod
    def of(cls, table: Table) -> CachedTable | None:
        """The cache of a table, if it has one."""
        if table.cache is None:
            return None
        return cls(f"{table.database}.{table.name}", table.keyspace, table.cache)


class Touched(NamedTuple):
    """The rows of one table that a write may change: these groups; or all of these shards; or (both empty)
    all.
    """

    table: CachedTable
    groups: tuple[int, ...] = ()
    shards: tuple[int, ...] = ()
