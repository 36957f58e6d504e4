"""What the generator knows about a world: its tables' columns by family, the IDs and values that occur."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from config.schema import Kind, Table
from config.topology import Topology

Value = int | float | str | bytes | Decimal | None
Row = tuple[Value, ...]
Rows = dict[str, list[Row]]
"""Logical rows by table, in the order of `Table.logical_columns`."""

MOST_VALUES = 40


class Family(StrEnum):
    """Columns and expressions that can stand in each other's place."""

    INTEGER = "integer"
    WIDE = "wide"  # 64-bit integers and IDs: arithmetic may overflow
    DECIMAL = "decimal"
    FLOAT = "float"
    TEXT = "text"
    BINARY = "binary"
    ENUM = "enum"
    SET = "set"
    DATE = "date"
    DATETIME = "datetime"
    TIME = "time"
    YEAR = "year"
    BIT = "bit"
    JSON = "json"
    BOOLEAN = "boolean"


NUMBERS = (Family.INTEGER, Family.DECIMAL, Family.FLOAT, Family.YEAR)
TEXTS = (Family.TEXT,)
MOMENTS = (Family.DATE, Family.DATETIME)

_FAMILIES = (
    (r"TINYINT|SMALLINT|MEDIUMINT|INT|INTEGER|BOOL|BOOLEAN", Family.INTEGER),
    (r"BIGINT", Family.WIDE),
    (r"DECIMAL|NUMERIC|DEC", Family.DECIMAL),
    (r"FLOAT|DOUBLE|REAL", Family.FLOAT),
    (r"VARCHAR|CHAR|TINYTEXT|MEDIUMTEXT|LONGTEXT|TEXT", Family.TEXT),
    (r"VARBINARY|BINARY|TINYBLOB|MEDIUMBLOB|LONGBLOB|BLOB", Family.BINARY),
    (r"ENUM", Family.ENUM),
    (r"SET", Family.SET),
    (r"DATETIME|TIMESTAMP", Family.DATETIME),
    (r"DATE", Family.DATE),
    (r"TIME", Family.TIME),
    (r"YEAR", Family.YEAR),
    (r"BIT", Family.BIT),
    (r"JSON", Family.JSON),
)


def family_of(definition: str) -> Family:
    """The family of a column by its SQL definition. ValueError when it is not known."""
    for names, family in _FAMILIES:
        if re.match(rf"(?:{names})\b", definition, re.I):
            return family
    raise ValueError(f"the generator does not know columns like {definition!r}")


@dataclass(frozen=True)
class JsonPath:
    """A scalar that occurs in a JSON column."""

    path: str
    family: Family
    values: tuple[Value, ...]


@dataclass(frozen=True)
class ColumnModel:
    """A logical column, with some of the values it holds."""

    name: str
    family: Family
    nullable: bool
    values: tuple[Value, ...]
    paths: tuple[JsonPath, ...] = ()


@dataclass(frozen=True)
class TableModel:
    """A logical table. `keys` are the values of its routing column that occur, or else of its first column.

    `total` are columns that together order its rows totally; () when it may hold equal rows.
    """

    name: str
    kind: Kind
    keyspace: str
    type: int
    columns: tuple[ColumnModel, ...]
    routing: str
    keys: tuple[Any, ...]
    total: tuple[str, ...]
    colocate: str | None = None

    def column(self, name: str) -> ColumnModel:
        """The column of that name."""
        return next(one for one in self.columns if one.name == name)

    def of(self, *families: Family) -> list[ColumnModel]:
        """The columns of these families."""
        return [one for one in self.columns if one.family in families]


@dataclass(frozen=True)
class Catalog:
    """All tables of one logical database, and the shards their IDs may name.

    `refers` says, for a table's column that holds IDs, whose they are.
    """

    database: str
    tables: Mapping[str, TableModel]
    shards: tuple[int, ...]
    mysql: bool
    refers: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def kinds(self, *kinds: Kind) -> list[TableModel]:
        """The tables of these kinds that hold rows, by name."""
        return [one for one in self.tables.values() if one.kind in kinds and one.keys]


def describe(
    database: str,
    tables: Iterable[Table],
    rows: Mapping[str, Sequence[Row]],
    topology: Topology,
    *,
    mysql: bool,
    refers: Mapping[tuple[str, str], str] | None = None,
) -> Catalog:
    """The catalog of tables that hold these rows."""
    models = {table.name: _table(table, rows.get(table.name, ())) for table in tables if table.columns}
    sharded = [one for one in topology.keyspaces.values() if one.layout is not None and one.layout.has_local]
    return Catalog(database, models, sharded[0].all_shards if sharded else (), mysql, refers or {})


def _table(table: Table, rows: Sequence[Row]) -> TableModel:
    columns = []
    for index, name in enumerate(table.logical_columns):
        stored = table.column(name)
        definition = stored.definition if stored else "BIGINT UNSIGNED NOT NULL"
        columns.append(_column(name, definition, [row[index] for row in rows]))
    routing = table.routing or table.logical_columns[0]
    place = table.logical_columns.index(routing)
    path = table.colocate.path if table.colocate else None
    colocate = f"{table.colocate.column}{':' + path if path else ''}" if table.colocate else None
    return TableModel(
        table.name,
        table.kind,
        table.keyspace,
        table.type or 0,
        tuple(columns),
        routing,
        tuple(dict.fromkeys(row[place] for row in rows)),
        _total(table),
        colocate,
    )


def _total(table: Table) -> tuple[str, ...]:
    for name in table.logical_columns:
        stored = table.column(name)
        if stored is None or "PRIMARY KEY" in stored.definition.upper():
            return (name,)
    for index in table.indexes:
        match = re.match(r"PRIMARY KEY\s*\((.*)\)", index, re.I)
        if match:
            return tuple(one.strip(" `") for one in match[1].split(","))
    return ()


def _column(name: str, definition: str, values: list[Value]) -> ColumnModel:
    family = family_of(definition)
    nullable = not re.search(r"NOT NULL|PRIMARY KEY", definition, re.I)
    texts = [one for one in values if isinstance(one, str)]
    paths = tuple(_paths(texts)) if family in (Family.JSON, Family.TEXT) else ()
    return ColumnModel(name, family, nullable, _some(values), paths)


def _some(values: Iterable[Value]) -> tuple[Value, ...]:
    """At most MOST_VALUES different values, spread over all."""
    distinct = list(dict.fromkeys(values))
    step = max(1, len(distinct) // MOST_VALUES)
    return tuple(distinct[::step][:MOST_VALUES])


def _paths(texts: Iterable[str]) -> list[JsonPath]:
    """The scalars in JSON objects; a text that is none gives none."""
    found: dict[str, list[Value]] = {}
    for text in texts:
        try:
            document = json.loads(text)
        except ValueError:
            return []
        if isinstance(document, dict):
            _collect("$", document, found)
    return [JsonPath(path, _json_family(values), _some(values)) for path, values in found.items()]


def _collect(path: str, document: dict[str, Any], found: dict[str, list[Value]]) -> None:
    for name, value in document.items():
        if isinstance(value, dict):
            _collect(f"{path}.{name}", value, found)
        elif isinstance(value, str | int | float | None):
            found.setdefault(f"{path}.{name}", []).append(value)


def _json_family(values: Iterable[Value]) -> Family:
    kinds = {type(one) for one in values if one is not None}
    if kinds <= {int}:
        return Family.WIDE if any(abs(int(one or 0)) > 1 << 31 for one in values) else Family.INTEGER
    return Family.FLOAT if kinds <= {int, float} else Family.TEXT


def literal(value: Value) -> str:
    """The value as an SQL literal, in the default sql_mode."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0") + "'"
    return format(value, "f") if isinstance(value, Decimal) else str(value)
