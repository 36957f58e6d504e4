"""What a client is told of where result columns come from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from config.topology import Topology
from proxy.wire.column_metadata import Origin, Place, Placed
from rewriter.plans.gather import SCRATCH, Piece
from rewriter.route.column_metadata import ColumnMetadata

_SCRATCH = SCRATCH.strip(b"`")
#: A piece's table, or that of its rows where it is groups: numbered from 1, see `gather` and `partial`.
_NUMBERED = re.compile(rb"[gb]([0-9]+)(?:_[0-9a-f]+)?")


def place_of(column_metadata: ColumnMetadata, topology: Topology) -> Place:
    """For a plan on sharded tables: logical databases for shards, and `id` is a column."""

    def place(name: bytes, was: Origin, bare: int) -> Placed | None:
        if bare >= 0:
            virtual = column_metadata.virtual.get(bare)
            if virtual is None or virtual.label.lower() != name.lower():
                return None
            return Placed(Origin(virtual.database, virtual.table, virtual.stored, b"id"), key=True)
        if not was.schema or topology.physical(was.schema) is None:
            return None
        database = column_metadata.databases.get(was.org_table) or next(
            iter(column_metadata.databases.values())
        )
        return Placed(was._replace(schema=database))

    return place


def gathered_place(pieces: Sequence[Piece]) -> Place:
    """For what is gathered: the tables of the pieces for those on the scratch host."""

    def place(name: bytes, was: Origin, bare: int) -> Placed | None:
        del name, bare
        found = _NUMBERED.fullmatch(was.org_table)
        if was.schema != _SCRATCH:
            if was.schema or found is None or int(found[1]) > len(pieces):
                return None
            # a derived table's column, for which MariaDB names the table behind it
            table = pieces[int(found[1]) - 1].home.table.encode("utf-8", "surrogateescape")
            return Placed(was._replace(org_table=table))
        if found is None or int(found[1]) > len(pieces):  # a column of a derived table, as MariaDB tells it
            return Placed(was._replace(schema=pieces[0].database))
        piece = pieces[int(found[1]) - 1]
        table = piece.home.table.encode("utf-8", "surrogateescape")
        key = piece.is_object and was.org_name == b"id"
        return Placed(was._replace(schema=piece.database, org_table=table), key)

    return place
