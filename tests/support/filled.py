"""Rows for any schema: as the types of the columns allow, with references to rows that are there."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tests.support.servers import Connection


class Column(NamedTuple):
    """As information_schema has it."""

    name: str
    kind: str
    definition: str
    null: str
    extra: str
    length: int | None
    key: str


References = Mapping[tuple[str, str], tuple[str, str]]
"""Tables and columns that others refer to, by those that refer."""


def fill(connection: Connection, database: str, rows: int, seed: int = 1) -> None:
    """So many rows, about, in each table that has none."""
    pick = random.Random(seed)
    with connection.cursor() as cursor:
        cursor.execute(f"USE {database}")
        cursor.execute("SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0")
        cursor.execute(
            "SELECT table_name, column_name, referenced_table_name, referenced_column_name FROM"
            f" information_schema.key_column_usage WHERE table_schema = '{database}'"
            " AND referenced_table_name IS NOT NULL"
        )
        references = {(row[0], row[1]): (row[2], row[3]) for row in cursor.fetchall()}
        cursor.execute(
            "SELECT table_name, column_name, data_type, column_type, is_nullable, extra,"
            " character_maximum_length, column_key FROM information_schema.columns"
            f" WHERE table_schema = '{database}' ORDER BY table_name, ordinal_position"
        )
        tables: dict[str, list[Column]] = {}
        for name, *column in cursor.fetchall():
            tables.setdefault(name, []).append(Column(*column))
        held: dict[tuple[str, str], list[Any]] = {}
        for name in _ordered(tables, references):
            names = ", ".join(f"`{one.name}`" for one in tables[name])
            marks = ", ".join(["%s"] * len(tables[name]))
            cursor.execute(f"SELECT 1 FROM `{name}` LIMIT 1")
            for number in () if cursor.fetchone() else range(1, rows + 1):
                values = [
                    _reference(one, held.get(references[name, one.name], []), pick)
                    if (name, one.name) in references
                    else _value(one, number, pick)
                    for one in tables[name]
                ]
                cursor.execute(f"INSERT IGNORE INTO `{name}` ({names}) VALUES ({marks})", values)
            for one in tables[name]:
                cursor.execute(f"SELECT `{one.name}` FROM `{name}` WHERE `{one.name}` IS NOT NULL")
                held[name, one.name] = [value for (value,) in cursor.fetchall()]
        cursor.execute("SET SESSION foreign_key_checks = 1")


def _ordered(tables: Mapping[str, list[Column]], references: References) -> Iterator[str]:
    left = sorted(tables)
    while left:
        waiting = {name for (name, _), (of, _) in references.items() if of in left and of != name}
        name = next((one for one in left if one not in waiting), left[0])
        left.remove(name)
        yield name


def _reference(column: Column, there: list[Any], pick: random.Random) -> Any:
    if column.null == "YES" and (not there or pick.random() < 0.3):
        return None
    return pick.choice(there)


def _value(column: Column, number: int, pick: random.Random) -> Any:
    kind = column.kind
    if column.null == "YES" and pick.random() < 0.2:
        return None
    if "int" in kind:
        return number if column.key == "PRI" else pick.randrange(2)
    if kind in ("decimal", "float", "double"):
        return pick.randrange(1000) / 8
    if kind in ("date", "datetime", "timestamp"):
        return f"20{pick.randrange(10, 30)}-02-03 04:05:06"
    if kind in ("enum", "set"):
        return pick.choice(re.findall(r"'([^']*)'", column.definition))
    return f"{number} {pick.choice(('ä', 'b', 'c'))}"[: column.length or 99]
