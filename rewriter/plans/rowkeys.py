"""What names one row of a table, so that a SELECT can find it and a write can name it again."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from config.column_type import ColumnType
from config.schema import Kind, Table
from rewriter.text.tokens import quote_name

_UNIQUE: Final = re.compile(
    r"\s*(PRIMARY\s+KEY|UNIQUE(?:\s+(?:KEY|INDEX))?)\s*`?\w*`?\s*\(([^()]+)\)\s*\Z", re.IGNORECASE
)
_COMPARED: Final = ("integer", "exact", "real", "day", "time", "moment")
"""The families of types whose values are equal when, and only when, their texts are."""


class RowKey(NamedTuple):
    """`columns` as SQL for a table called `label`, whose values name a row; the first is its routing column,
    if it has one. `whole`: they are all that there is of a row, and several rows may be alike.
    """

    columns: tuple[bytes, ...]
    whole: bool = False


def row_key(table: Table, label: str) -> RowKey | None:
    """What names a row of `table`; None when nothing that can be read and compared exactly does."""
    prefix = quote_name(label) + b"."
    if table.kind in (Kind.OBJECT, Kind.TIMED):
        return RowKey((prefix + b"`id`",))
    names = _key_columns(table)
    if names is not None:
        routing = () if not table.routing or table.routing.lower() in names else (table.routing.lower(),)
        ordered = sorted(names, key=lambda name: name != table.routing.lower())
        return RowKey(tuple(prefix + quote_name(name) for name in (*routing, *ordered)))
    if not table.columns:
        return None
    columns = sorted(table.columns, key=lambda one: one.name.lower() != table.routing.lower())
    shown = [_exact(prefix + quote_name(one.name), one.type) for one in columns]
    found = [one for one in shown if one is not None]
    return RowKey(tuple(found), whole=True) if len(found) == len(shown) else None


def _key_columns(table: Table) -> tuple[str, ...] | None:
    """The columns (lower case) of a key that is unique on a shard and has no NULLs; None: there is none."""
    for column in table.columns:
        if column.facts.primary or (column.facts.unique and column.facts.not_null):
            return (column.name.lower(),)
    found = [one for index in table.indexes if (one := _UNIQUE.match(index)) is not None]
    for one in sorted(found, key=lambda match: match[1][0].upper() != "P"):
        names = tuple(part.strip().strip("`").lower() for part in one[2].split(","))
        columns = [table.column(name) for name in names]
        primary = one[1][0].upper() == "P"
        if all(column is not None and (primary or column.facts.not_null) for column in columns):
            return names
    return None


def _exact(name: bytes, type_: ColumnType) -> bytes | None:
    """A column as an expression that is equal only for equal values; None for what has none."""
    if type_.kind == "json":
        return b"HEX(CAST(" + name + b" AS CHAR CHARACTER SET utf8mb4))"
    if type_.textual or type_.binary or type_.kind in ("uuid", "inet6"):
        return b"HEX(" + name + b")"
    if type_.kind == "bit":
        return b"(" + name + b" + 0)"
    if type_.rounded:
        return b"(" + name + b" * 1e0)"  # its own text has too few digits
    return name if type_.family in _COMPARED else None
