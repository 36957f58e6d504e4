"""The logical tables: what a client sees, and how each row is routed.

A `Table` has one of six kinds:

    object      stored as local_id, data, ts; clients see the virtual 64-bit `id` (local_id + K)
    mapping     from-ID, to-ID, sequence; lives on the from-ID's shard
    timed       the whole ID is stored; routed by it, or by the shard key modulo the shards
    hashed      routed by the hash of its key column
    single      on one host, unsharded
    reference   the same rows on every host

The models are frozen and compared by identity. `read_schema.py` makes them from a document and
fills the defaults in, so that everybody else finds complete tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from config.column_type import ColumnType, Definition, read_definition

SEQUENCE_TYPE: Final = ("decimal", 38, 0)
"""Kind, digits and decimals of a sequence with room between any two."""


class Kind(StrEnum):
    """How the rows of a table are placed."""

    OBJECT = "object"
    MAPPING = "mapping"
    TIMED = "timed"
    HASHED = "hashed"
    SINGLE = "single"
    REFERENCE = "reference"


class KeyType(StrEnum):
    """What a routing column holds, which decides the constants that may narrow to one shard.

    `TEXT` is UTF-8 (utf8mb4), compared byte by byte without padding: hash the UTF-8 bytes.
    `BINARY` is bytes: hash them as they are. `INTEGER`: MySQL's integers.
    """

    INTEGER = "integer"
    TEXT = "text"
    BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Column:
    """One stored column; `definition` is the SQL after the name, e.g. `JSON NOT NULL`, and `facts` what it
    says.
    """

    name: str
    definition: str
    facts: Definition = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", read_definition(self.definition))

    @property
    def type(self) -> ColumnType:
        """The type; of the kind "" where it is not known."""
        return self.facts.type


@dataclass(frozen=True, slots=True)
class Colocation:
    """Where an INSERT without `id` finds the ID whose shard the new object shares.

    `path` is a JSON path (`$.board_id`) inside the column; None: the column itself holds the ID.
    `stored` False: the table has no such column, which only routes and is dropped before the INSERT is sent.
    `strict`: every row is on the shard of the ID in the column, so that conditions on it route.
    """

    column: str
    path: str | None = None
    stored: bool = True
    strict: bool = False


@dataclass(frozen=True, slots=True)
class SoftDelete:
    """The flag by which rows are hidden from reads: where it is false they are.

    `path` is a JSON path (`$.active`) inside the column; None: the column itself is the flag, an integer.
    """

    column: str
    path: str | None = None

    def __str__(self) -> str:
        return self.column if self.path is None else f"{self.column}:{self.path}"


@dataclass(frozen=True, slots=True)
class Cache:
    """A table's cache. `kind` is memcached or redis; `ttl` and `lease` are seconds; `prefix` begins all
    keys.
    """

    kind: str
    address: str
    ttl: float = 3600.0
    lease: float = 3.0
    prefix: str = "shardgate"

    @property
    def server(self) -> tuple[str, str, str]:
        """What tables share that are in one cache."""
        return self.kind, self.address, self.prefix


@dataclass(frozen=True, eq=False)
class Table:
    """One logical table. Fields that its kind does not have are None, False or empty.

    `columns` are the stored ones, in order (an object table's begin with `local_id`); empty when a
    single table's were not declared. `type` is the type number in an object's ID. `routing` names the
    logical routing column: `id` (object, timed), the from-column (mapping), the key column (hashed),
    '' (single, reference). `key_type` is the type of that column, and `key_length` the largest
    length of a text key in characters or of a binary key in bytes. `unique_keys` are the columns (lower case)
    of the unique keys that were declared, and `per_shard` those of which the schema says `unique: per_shard`,
    each in order of their names; one without columns: all of them. `procedure`: what an orderable mapping is
    reordered by (CALL), "" for other tables. `soft_delete`: reads do not see rows whose flag is false.
    `learnt`: the schema does not name it, the servers have it (see `Database.others`). `cache`: where its
    rows are kept besides.
    """

    database: str
    name: str
    kind: Kind
    keyspace: str
    type: int | None = None
    columns: tuple[Column, ...] = ()
    routing: str = ""
    key_type: KeyType | None = None
    key_length: int | None = None
    colocate: Colocation | None = None
    from_column: str | None = None
    to_column: str | None = None
    sequence_column: str | None = None
    orderable: bool = False
    procedure: str = ""
    shard_key: str | None = None
    indexes: tuple[str, ...] = ()
    unique_keys: tuple[tuple[str, ...], ...] = ()
    per_shard: tuple[tuple[str, ...], ...] = ()
    soft_delete: SoftDelete | None = None
    learnt: bool = False
    cache: Cache | None = None
    logical_columns: tuple[str, ...] = field(init=False)
    """What `SELECT *` shows: the stored columns, with `id` in the place of an object's `local_id`."""

    def __post_init__(self) -> None:
        names = tuple(one.name for one in self.columns)
        if self.kind is Kind.OBJECT:
            names = tuple("id" if name.lower() == "local_id" else name for name in names) or ("id",)
        object.__setattr__(self, "logical_columns", names)

    @property
    def strict(self) -> str | None:
        """The column by whose ID every row of an object table is placed (strict colocation), or None."""
        return self.colocate.column if self.colocate is not None and self.colocate.strict else None

    def unique_per_shard(self, columns: tuple[str, ...]) -> bool:
        """Whether the schema says that these columns (lower case) need be unique on each shard only."""
        return () in self.per_shard or tuple(sorted(columns)) in self.per_shard

    def column(self, name: str) -> Column | None:
        """The stored column of that name (case-insensitive), or None."""
        wanted = name.lower()
        return next((one for one in self.columns if one.name.lower() == wanted), None)

    @property
    def dated(self) -> bool:
        """Whether a row without a sequence gets the time of now for one: a mapping whose sequence has 38
        digits and no DEFAULT of its own.
        """
        found = self.column(self.sequence_column) if self.sequence_column is not None else None
        if found is None or (found.type.kind, found.type.length, found.type.decimals or 0) != SEQUENCE_TYPE:
            return False
        return found.facts.default in (None, "NULL") and not found.facts.generated

    def create_sql(self, database: str) -> str:
        """`CREATE TABLE IF NOT EXISTS` for the physical table in the physical database.

        Valid on MySQL and on MariaDB. Raises ValueError when no columns were declared.
        """
        if not self.columns:
            raise ValueError(f"the columns of {self.database}.{self.name} are not declared in the schema")
        lines = [f"{quote(one.name)} {one.definition}" for one in self.columns]
        lines += self.indexes
        body = ",\n  ".join(lines)
        return (
            f"CREATE TABLE IF NOT EXISTS {quote(database)}.{quote(self.name)} (\n  {body}\n)"
            " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
        )


@dataclass(frozen=True, eq=False)
class Database:
    """One logical database.

    With `keyspace` set it is a pass-through database: every table in it is single, its physical
    name is its logical name, and `tables` is empty. Otherwise `tables` lists all there are; with `others`,
    any further table is a single one in that keyspace (those that the servers were found to have are in
    `tables`, too).
    """

    name: str
    keyspace: str | None = None
    tables: Mapping[str, Table] = field(default_factory=lambda: MappingProxyType({}))
    others: str | None = None

    def reordered_by(self, procedure: str) -> Table | None:
        """The orderable table with a procedure of that name (in any case), or None."""
        name = procedure.lower()
        found = (one for one in self.tables.values() if one.procedure and one.procedure.lower() == name)
        return next(found, None)

    @property
    def passes_through(self) -> bool:
        """True when every statement on this database goes to its host untouched."""
        return self.keyspace is not None


@dataclass(frozen=True, eq=False)
class Schema:
    """All logical databases. `version` is the document's, or else a digest of its content."""

    version: int | str
    databases: Mapping[str, Database]
    cached: tuple[Table, ...] = field(init=False)
    """The tables that have a cache."""

    def __post_init__(self) -> None:
        tables = (table for database in self.databases.values() for table in database.tables.values())
        object.__setattr__(self, "cached", tuple(table for table in tables if table.cache is not None))

    def table(self, database: str, name: str) -> Table | None:
        """The table of that name (both names case-sensitive), or None."""
        found = self.databases.get(database)
        return None if found is None else found.tables.get(name)

    def with_others(self, found: Mapping[str, Iterable[str]]) -> Schema:
        """This schema with these tables: all that there are in the `others` of its databases, by the names
        of these; itself when it has them already.
        """
        changed: dict[str, Database] = {}
        for name, tables in found.items():
            database = self.databases[name]
            wanted = {
                table for table in tables if table not in database.tables or database.tables[table].learnt
            }
            have = {one.name for one in database.tables.values() if one.learnt}
            if wanted == have or database.others is None:
                continue
            kept = {table: one for table, one in database.tables.items() if table not in have - wanted}
            for table in sorted(wanted - have):
                kept[table] = Table(name, table, Kind.SINGLE, database.others, learnt=True)
            changed[name] = replace(database, tables=MappingProxyType(kept))
        if not changed:
            return self
        return replace(self, databases=MappingProxyType({**self.databases, **changed}))

    def with_columns(self, found: Mapping[Table, tuple[Column, ...]]) -> Schema:
        """This schema with other stored columns for these of its tables; itself when they are the same."""
        changed = {table: columns for table, columns in found.items() if table.columns != columns}
        if not changed:
            return self
        databases = {
            database.name: replace(
                database,
                tables=MappingProxyType(
                    {
                        name: replace(table, columns=changed.get(table, table.columns))
                        for name, table in database.tables.items()
                    }
                ),
            )
            for database in self.databases.values()
        }
        return replace(self, databases=MappingProxyType(databases))


SEQUENCES: Final = Table(
    database="",
    name="shardgate_sequences",
    kind=Kind.SINGLE,
    keyspace="",
    columns=(
        Column("name", "VARCHAR(64) NOT NULL PRIMARY KEY"),
        Column("value", "BIGINT UNSIGNED NOT NULL"),
    ),
)
"""In every physical database with timed tables: for each of them, the last time and sequence number that an
ID was made of there (`time << bits of the sequence | sequence`)."""


def quote(name: str) -> str:
    """`name` as a quoted SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


IDENTIFIER: Final = re.compile(r"[0-9A-Za-z_$]{1,64}")
"""The names the documents may use for databases, tables and columns (whole match)."""
