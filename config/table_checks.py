"""What is checked of a table of the schema document when its columns and indexes are known.

Definitions that no server would take, keys of columns that are not there, and what cannot hold over shards
(`keys.py`): each noted at its own place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from config.column_sql import definition_problem
from config.columns import Draft
from config.definitions import Found, Key, Reference, read_column, read_element
from config.document import Spot
from config.keys import (
    counting_problem,
    key_holds,
    may_count,
    reference_holds,
    reference_problem,
    unique_problem,
)
from config.schema import Kind, Table
from config.sqltext import SqlError, tokens_of


def check_table(table: Table, draft: Draft) -> Table:
    """`table` with its unique keys, after noting what is wrong with its columns and indexes."""
    for definition, place in (draft.places or {}).values():
        problem = definition_problem(definition) if definition else None
        if problem is not None:
            place.refuse(problem)
    elements = [*_of_columns(table, draft), *_of_indexes(draft)]
    named = {one.name.lower() for one in table.columns}
    primary = 0
    counted: list[str] = []
    names: set[str] = set()
    for found, place in elements:
        for key in found.keys:
            primary += key.kind == "primary"
            if key.kind == "primary" and primary > 1:
                place.refuse("is a second PRIMARY KEY")
            if key.name and found.column is None:
                if key.name.lower() in names:
                    place.refuse(f"there is an index of the name {key.name} already")
                names.add(key.name.lower())
            _check_key(table, key, named, place)
        for reference in found.references:
            for name in reference.columns:
                if named and name.lower() not in named:
                    place.refuse(f"there is no column {name!r}")
        if found.counts and found.column is not None:
            if table.kind is Kind.TIMED and found.column.lower() == "id":
                continue  # refused already, as the column it is
            counted.append(found.column.lower())
            if not may_count(table, found.column):
                place.refuse(counting_problem(found.column))
            elif len(counted) > 1:
                place.refuse(f"'{counted[0]}' has AUTO_INCREMENT already: a table has one such column")
    keys = [key for found, _ in elements for key in found.keys]
    firsts = {key.columns[0] for key in keys if key.columns and key.kind in ("primary", "unique", "index")}
    for found, place in elements:
        name = (found.column or "").lower()
        if found.counts and name in counted and may_count(table, name) and name not in firsts:
            place.refuse("AUTO_INCREMENT needs a key that begins with this column: PRIMARY KEY")
    return replace(table, unique_keys=tuple(key.columns for key in keys if key.unique))


def check_references(table: Table, draft: Draft, tables: Mapping[str, Table]) -> None:
    """Note the FOREIGN KEYs that cannot hold. `tables`: those of the database, by name."""
    for found, place in [*_of_columns(table, draft), *_of_indexes(draft)]:
        for reference in found.references:
            mine = reference.database in (None, table.database)
            other = tables.get(reference.table) if mine else None
            if not reference_holds(table, other, reference):
                place.refuse(_of_reference(table, other, reference))


def _of_reference(table: Table, other: Table | None, reference: Reference) -> str:
    if other is None and table.kind in (Kind.SINGLE, Kind.REFERENCE):
        return f"the schema has no table {reference.table!r} in the database {table.database}"
    return reference_problem(reference)


def _of_columns(table: Table, draft: Draft) -> Iterator[tuple[Found, Spot]]:
    """What each column's definition says, and where it stands (the table, when it is a default one)."""
    for column in table.columns:
        found = draft.find(column.name)
        definition = found[0] if found is not None else column.definition
        try:
            yield read_column(column.name, tokens_of(definition)), found[1] if found else draft.spot
        except SqlError:
            continue


def _of_indexes(draft: Draft) -> Iterator[tuple[Found, Spot]]:
    for text, place in draft.listed or ():
        yield read_element(tokens_of(text)), place


def _check_key(table: Table, key: Key, named: set[str], place: Spot) -> None:
    if not key.parts:
        place.refuse("has no columns")
    seen: set[str] = set()
    for part in key.parts:
        name = (part.column or "").lower()
        if name and name in seen:
            place.refuse(f"has the column {part.column!r} twice")
        seen.add(name)
        if name == "id" and table.kind is Kind.OBJECT:
            place.refuse("'id' is not stored: an index is on 'local_id', which is the primary key already")
        elif name and named and name not in named:
            place.refuse(f"there is no column {part.column!r}")
        column = table.column(part.column) if part.column is not None else None
        if column is not None and column.type.long and part.whole and key.kind not in ("fulltext", "spatial"):
            place.refuse(f"{part.column!r} is too long for a key: give the length of its beginning, (191)")
    if not key_holds(table, key):
        place.refuse(unique_problem(table, key))
