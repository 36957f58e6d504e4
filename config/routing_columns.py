"""The columns that say on which shard a row is, and what each of them must be.

    hashed key          an integer, VARBINARY(n), or VARCHAR(n) whose texts are equal when their bytes are
    ID of a row         BIGINT (object, mapping, timed, strict colocation)
    shard key           an integer

Judged here for everybody: the schema document, definitions that clients send, and the columns that servers
have. The values must also be those that the client gives, so no server computes or counts them, but the
`local_id` of an object.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from config.column_type import ColumnType, Definition, read_definition
from config.schema import KeyType, Kind, Table

SOUND_COLLATIONS: Final = ("utf8mb4_0900_bin", "utf8mb4_nopad_bin")
"""MySQL's and MariaDB's collation without padding under which only equal bytes are equal."""


class ServerColumn(NamedTuple):
    """A column as information_schema has it. `default`: None also for NULL; `extra`: AUTO_INCREMENT and what
    else a server says there.
    """

    database: str
    table: str
    name: str
    type: str
    collation: str
    default: str | None
    extra: str

    @property
    def definition(self) -> Definition:
        """The column as a definition writes it."""
        extra = self.extra.upper()
        return replace(
            read_definition(self.type),
            default=self.default,
            generated="GENERATED" in extra.replace("DEFAULT_GENERATED", ""),
            auto_increment="AUTO_INCREMENT" in extra,
        )

    def __str__(self) -> str:
        return " ".join(part for part in (self.type, self.collation and f"COLLATE {self.collation}") if part)


def routing_columns(table: Table) -> tuple[str, ...]:
    """The stored columns (lower case) whose values place the rows of `table`, or lead to others."""
    names = [table.routing, table.shard_key, table.to_column, table.strict]
    if table.kind is Kind.OBJECT:
        names[0] = "local_id"
    return tuple(dict.fromkeys(name.lower() for name in names if name))


def column_problem(table: Table, name: str, column: Definition, collations: Sequence[str] = ()) -> str | None:
    """Why `table` cannot have its routing column `name` as `column` defines it, as a sentence; None when it
    can, and for other columns. `collations`: those of a text that names none and no character set.
    """
    wanted = name.lower()
    if wanted not in routing_columns(table):
        return None
    if wanted == "local_id" and table.kind is Kind.OBJECT:
        return None if column.type.kind == "bigint" else "It must be BIGINT."
    if table.kind is Kind.HASHED:
        problem = None if _is_key(table, column.type, collations) else f"It must be {_key(table)}."
    elif table.shard_key is not None and wanted == table.shard_key.lower() and wanted != "id":
        problem = None if column.type.integer else "It must be an integer."
    else:
        problem = None if column.type.kind == "bigint" else "It must be BIGINT."
    if problem is None and is_computed(column):
        problem = "It is given, not computed."
    if problem is None and table.strict is not None and wanted == table.strict.lower():
        problem = None if has_no_default(column) else "It may have no DEFAULT but NULL."
    return problem


def is_computed(column: Definition) -> bool:
    """Whether a server makes the column's values."""
    return column.generated or column.auto_increment


def has_no_default(column: Definition) -> bool:
    """Whether a row that is given no value for the column has none, or NULL."""
    return column.default in (None, "NULL")


def is_sound(collations: Sequence[str]) -> bool:
    """Whether texts that are equal under any of these collations have the same bytes. False for none."""
    return bool(collations) and all(one.lower() in SOUND_COLLATIONS for one in collations)


def _is_key(table: Table, type: ColumnType, collations: Sequence[str]) -> bool:
    if table.key_type is KeyType.INTEGER:
        return type.integer
    longest = table.key_length or 0
    if table.key_type is KeyType.BINARY:
        return type.kind == "varbinary" and (type.length or 0) >= longest
    named = type.collations or (collations if type.charset is None else ())
    return type.kind == "varchar" and not type.bytewise and (type.length or 0) >= longest and is_sound(named)


def _key(table: Table) -> str:
    if table.key_type is KeyType.INTEGER:
        return "an integer"
    if table.key_type is KeyType.BINARY:
        return f"VARBINARY({table.key_length})"
    return f"VARCHAR({table.key_length}) with the collation {' or '.join(SOUND_COLLATIONS)}"
