"""A world of a random schema: where its rows are is worked out here, from the documents alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from config.schema import Kind, Table
from tests.differential.anyschema.columns import Type
from tests.differential.catalog import Value
from tests.differential.world import World


@dataclass(frozen=True)
class Column:
    """A logical column. `family`: see columns.Type. `refers`: the object table whose IDs it holds."""

    name: str
    type: Type
    nullable: bool = True
    refers: str = ""
    generated: str = ""
    default: str = ""
    hidden: bool = False

    @property
    def family(self) -> str:
        return "n" if self.refers else self.type.family


@dataclass(frozen=True)
class Model:
    """A logical table. `total`: columns that order its rows totally. `number`: its type in IDs."""

    name: str
    kind: Kind
    keyspace: str
    columns: tuple[Column, ...]
    routing: str = ""
    total: tuple[str, ...] = ()
    number: int = 0
    keys: tuple[Value, ...] = ()
    shard_key: str = ""
    colocate: str = ""

    def column(self, name: str) -> Column:
        return next(one for one in self.columns if one.name == name)

    @property
    def given(self) -> list[Column]:
        """Those that an INSERT may name."""
        return [one for one in self.columns if not one.generated]


Bits = Mapping[str, tuple[int, int]]
"""Of a layout: field to (shift, mask)."""


def cut(fields: Mapping[str, int]) -> Bits:
    """The places of a layout's fields, given from bit 63 down."""
    shift, found = 64, {}
    for name, width in fields.items():
        shift -= width
        found[name] = (shift, (1 << width) - 1)
    return found


@dataclass(frozen=True)
class AnyWorld(World):
    """`layouts`: the bits of each keyspace that has a layout. `models`: the tables as the generator sees them."""

    layouts: Mapping[str, Bits] = field(default_factory=dict)
    models: Mapping[str, Model] = field(default_factory=dict)
    shards: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def shard_of(self, table: Table, key: Value) -> int | None:
        if table.kind in (Kind.SINGLE, Kind.REFERENCE):
            return None
        keyspace = self.topology.keyspaces[table.keyspace]
        if table.kind is Kind.HASHED:
            assert keyspace.shards is not None
            if keyspace.hash == "modulo":
                assert isinstance(key, int)
                return key % keyspace.shards
            text = key if isinstance(key, bytes) else str(key).encode()
            return int(hashlib.md5(text).hexdigest(), 16) % keyspace.shards
        assert isinstance(key, int)
        shift, mask = self.layouts[table.keyspace]["shard"]
        return key >> shift & mask

    def base(self, table: Table, shard: int) -> int:
        bits = self.layouts[table.keyspace]
        number = (table.type or 0) << bits["type"][0] if "type" in bits else 0
        return shard << bits["shard"][0] | number

    def local_mask(self, table: Table) -> int:
        return self.layouts[table.keyspace]["local"][1]

    def inserted(self, table: Table) -> list[int]:
        model = self.models[table.name]
        return [index for index, one in enumerate(model.columns) if not one.generated]
