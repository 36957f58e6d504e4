"""A logical database with its rows, and where each row belongs.

The shard of a row is worked out here by hand, from the definition of the scheme, so that the comparison does
not lean on the code that it is there to check.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from config.load import load_schema, load_topology
from config.schema import Kind, Schema, Table
from config.topology import Host, Topology
from demo.documents import SCHEMA as DEMO_SCHEMA
from demo.documents import topology_document as demo_topology_document
from demo.sample import generate
from tests.differential import wide
from tests.differential.catalog import Catalog, Row, Rows, Value, describe

SHARD_SHIFT, SHARD_MASK = 46, 0xFFFF
TYPE_SHIFT = 36
LOCAL_MASK = (1 << 36) - 1
PHOTO_SHIFT, PHOTO_MASK = 10, 0x1FFF


@dataclass(frozen=True)
class World:
    """`documents`: those that the proxy reads, by file name. `rows` are logical ones."""

    database: str
    schema: Schema
    topology: Topology
    rows: Rows
    documents: Mapping[str, Any]
    refers: Mapping[tuple[str, str], str] = field(default_factory=dict)

    @property
    def tables(self) -> Mapping[str, Table]:
        return self.schema.databases[self.database].tables

    def catalog(self, *, mysql: bool) -> Catalog:
        """What the generator may know. `mysql`: the servers are MySQL, else MariaDB."""
        return describe(
            self.database, self.tables.values(), self.rows, self.topology, mysql=mysql, refers=self.refers
        )

    def shard_of(self, table: Table, key: Value) -> int | None:
        """The shard that holds the rows whose routing column has the value `key`; None when unsharded."""
        keyspace = self.topology.keyspaces[table.keyspace]
        if table.kind in (Kind.SINGLE, Kind.REFERENCE):
            return None
        if table.kind is Kind.HASHED:
            assert keyspace.shards is not None
            if keyspace.hash == "modulo":
                assert isinstance(key, int)
                return key % keyspace.shards
            text = key if isinstance(key, bytes) else str(key).encode()
            return int(hashlib.md5(text).hexdigest(), 16) % keyspace.shards
        assert isinstance(key, int)
        if table.kind is Kind.TIMED:
            return key >> PHOTO_SHIFT & PHOTO_MASK
        return key >> SHARD_SHIFT & SHARD_MASK

    def physical(self, table: Table, key: Value) -> list[tuple[Host, str]]:
        """The hosts and physical databases that hold the rows with this key."""
        keyspace = self.topology.keyspaces[table.keyspace]
        shard = self.shard_of(table, key)
        hosts = self.topology.hosts if table.kind is Kind.REFERENCE else (keyspace.host_of(shard),)
        return [(host, keyspace.database_of(shard).decode()) for host in hosts if host is not None]

    def stored(self, table: Table, row: Row) -> Row:
        """The row as a shard stores it."""
        if table.kind is not Kind.OBJECT:
            return row
        assert isinstance(row[0], int)
        return (row[0] & self.local_mask(table), *row[1:])

    def base(self, table: Table, shard: int) -> int:
        """What a local id of an object table on this shard lacks of the ID."""
        return shard << SHARD_SHIFT | (table.type or 0) << TYPE_SHIFT

    def local_mask(self, table: Table) -> int:
        """The bits of an object's ID that are its local id."""
        return LOCAL_MASK

    def inserted(self, table: Table) -> list[int]:
        """Which columns of a logical row an INSERT names: all but generated ones."""
        return list(range(len(table.logical_columns)))

    def routing_index(self, table: Table) -> int:
        """Which column of a logical row says where it is; the first one for unsharded tables."""
        return table.logical_columns.index(table.routing) if table.routing else 0


def wide_world(hosts: Sequence[Host], shards: int, *, seed: int = 2012, scale: float = 1.0) -> World:
    """The world of wide.py on these hosts."""
    schema = load_schema(wide.SCHEMA)
    document = wide.topology_document(shards, hosts)
    topology = load_topology(document, schema=schema)
    documents = {"schema.yaml": wide.SCHEMA, "topology.json": document}
    rows = wide.make_rows(shards, seed, scale)
    return World(wide.DATABASE, schema, topology, rows, documents, wide.REFERS)


def demo_world(hosts: Sequence[Host], shards: int = 64) -> World:
    """The demo's tables and sample rows, as `shardgate demo` puts them on its hosts."""
    schema = load_schema(DEMO_SCHEMA)
    document = demo_topology_document(shards, [(host, None) for host in hosts])
    topology = load_topology(document, schema=schema)
    rows = {name: list(sample.rows) for name, sample in generate(schema, topology).items()}
    return World(
        "demo",
        schema,
        topology,
        rows,
        {"schema.yaml": yaml.safe_load(DEMO_SCHEMA.read_text()), "topology.json": document},
    )
