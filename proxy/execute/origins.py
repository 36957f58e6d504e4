"""What a client is told of where the columns of a plan on sharded tables come from."""

from __future__ import annotations

from config.topology import Topology
from proxy.wire.origins import Origin, Place
from rewriter.origins import Origins


def place_of(origins: Origins, topology: Topology) -> Place:
    """How a plan's column definitions are changed: logical databases for shards, and `id` is a column."""

    def place(name: bytes, was: Origin, bare: int) -> Origin | None:
        if bare >= 0:
            virtual = origins.virtual.get(bare)
            if virtual is None or virtual.label.lower() != name.lower():
                return None
            return Origin(virtual.database, virtual.table, virtual.stored, b"id")
        if not was.schema or topology.physical(was.schema) is None:
            return None
        database = origins.databases.get(was.org_table) or next(iter(origins.databases.values()))
        return was._replace(schema=database)

    return place
