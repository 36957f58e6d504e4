"""A second reading of the definitions that `propose` goes by: sqlglot's.

The proposal is made from the tokens that `definitions` has read, whose places are needed to keep columns as
they stand. sqlglot reads each statement on its own; where it sees other columns, keys, references or numbers
that count themselves, a person is told to look. It does not read all that servers write (partitions, DESC in
keys, uuid and inet6, system versioning): of such statements nothing is said.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from fleet.importing.definitions import SourceTable

Names = tuple[str, ...]
_LOG: Final = "sqlglot"


class Reading(NamedTuple):
    """What one reader sees in a statement, in lower case: the columns; those of the PRIMARY KEY; those that
    refer, each with the table that it refers to; those that count themselves.
    """

    columns: Names
    primary: Names
    references: tuple[tuple[Names, str], ...]
    counted: Names


_WHAT: Final[Mapping[str, str]] = {
    "columns": "columns",
    "primary": "the PRIMARY KEY",
    "references": "FOREIGN KEYs",
    "counted": "AUTO_INCREMENT",
}


def differences(table: SourceTable, text: str) -> list[str]:
    """Of one CREATE TABLE as it was read: what sqlglot sees otherwise; nothing when it cannot read it."""
    other = _read(text)
    if other is None:
        return []
    pairs = zip(Reading._fields, _of(table), other, strict=True)
    return [_WHAT[field] for field, one, two in pairs if one != two]


def _of(table: SourceTable) -> Reading:
    primary: Names = next((key.columns for key in table.keys if key.kind == "primary"), ())
    return Reading(
        tuple(one.name.lower() for one in table.columns),
        primary,
        _sorted((tuple(map(str.lower, one.columns)), one.table.lower()) for one in table.references),
        tuple(one.name.lower() for one in table.columns if one.facts.auto_increment),
    )


def _sorted(found: Iterator[tuple[Names, str]]) -> tuple[tuple[Names, str], ...]:
    return tuple(sorted(set(found)))


def _read(text: str) -> Reading | None:
    logging.getLogger(_LOG).setLevel(logging.ERROR)  # it warns of what it does not know
    try:
        tree = parse_one(text, read="mysql")
    except (SqlglotError, RecursionError):
        return None
    if not isinstance(tree, exp.Create) or not isinstance(tree.this, exp.Schema):
        return None
    columns = [one for one in tree.this.expressions if isinstance(one, exp.ColumnDef)]
    return Reading(
        tuple(one.name.lower() for one in columns),
        next(_primaries(tree.this, columns), ()),
        _sorted(_references(tree.this, columns)),
        tuple(one.name.lower() for one in columns if _has(one, exp.AutoIncrementColumnConstraint)),
    )


def _has(column: exp.ColumnDef, kind: type[exp.ColumnConstraintKind]) -> bool:
    return any(isinstance(one.kind, kind) for one in column.constraints)


def _primaries(schema: exp.Schema, columns: list[exp.ColumnDef]) -> Iterator[Names]:
    for one in columns:
        if _has(one, exp.PrimaryKeyColumnConstraint):
            yield (one.name.lower(),)
    for key in schema.find_all(exp.PrimaryKey):
        yield tuple(one.name.lower() for one in key.expressions)


def _references(schema: exp.Schema, columns: list[exp.ColumnDef]) -> Iterator[tuple[Names, str]]:
    for key in schema.find_all(exp.ForeignKey):
        yield tuple(one.name.lower() for one in key.expressions), _table(key.args["reference"])
    for one in columns:
        for constraint in one.constraints:
            if isinstance(constraint.kind, exp.Reference):
                yield (one.name.lower(),), _table(constraint.kind)


def _table(reference: exp.Expression) -> str:
    found = reference.find(exp.Table)
    return "" if found is None else found.name.lower()
