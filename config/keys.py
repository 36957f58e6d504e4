"""Which keys of a table hold over all shards, when each server knows only its own.

A unique key holds when rows that are alike in it are on one shard: it has the column that says on which
shard a row is, whole. Only that shard counts an AUTO_INCREMENT up, so it is for an object's `local_id`. A
FOREIGN KEY holds when a row and the one that it refers to are on one shard, which the columns must say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from config.definitions import Key, Reference
from config.schema import Kind, Table

ORMS: Final = (
    "Django db_constraint=False, SQLAlchemy no ForeignKey() but relationship(primaryjoin=…, foreign_keys=…),"
    " Sequelize constraints: false, Rails foreign_key: false, TypeORM createForeignKeyConstraints: false,"
    " gorm DisableForeignKeyConstraintWhenMigrating, Prisma relationMode = 'prisma', Hibernate NO_CONSTRAINT"
)
"""How to leave the constraint out and keep the relation."""

_FORGETS: Final = ("SET NULL", "SET DEFAULT")


def routes_of(table: Table) -> Mapping[str, str]:
    """The stored columns (lower case) that say on which shard a row is, and the rule of each: equal values of
    columns with one rule are on one shard of a keyspace.
    """
    found: dict[str, str] = {}
    if table.kind is Kind.OBJECT:
        found["local_id"] = "object"
        if table.colocate is not None and table.colocate.strict:
            found[table.colocate.column.lower()] = "id"
    elif table.kind is Kind.HASHED:
        found[table.routing.lower()] = f"hash of {table.key_type}"
    elif table.routing:
        found[table.routing.lower()] = "id"
    if table.shard_key is not None:
        found.setdefault(table.shard_key.lower(), "modulo")
    return found


def is_sharded(table: Table) -> bool:
    """Whether its rows are on shards."""
    return table.kind not in (Kind.SINGLE, Kind.REFERENCE)


def key_holds(table: Table, key: Key) -> bool:
    """Whether a key promises no more than the shards can keep; `unique: per_shard` says so."""
    if not is_sharded(table) or not key.unique:
        return True
    routes = routes_of(table)
    virtual = "id" if table.kind is Kind.OBJECT else ""
    columns = [part.column.lower() for part in key.parts if part.column is not None and part.whole]
    if any(column in routes or column == virtual for column in columns):
        return True
    return table.unique_per_shard(key.columns)


def may_count(table: Table, column: str) -> bool:
    """Whether the column may have AUTO_INCREMENT."""
    if not is_sharded(table):
        return True
    name = column.lower()
    if table.kind is Kind.OBJECT and name in ("local_id", "id"):
        return True
    return table.unique_per_shard((name,))


def reference_holds(table: Table, other: Table | None, reference: Reference) -> bool:
    """Whether a FOREIGN KEY of `table` that refers to `other` (None: not in the schema) can hold."""
    if other is None or table.keyspace != other.keyspace:
        return False
    if not is_sharded(table) or not is_sharded(other):
        return table.kind is other.kind
    if any(act.endswith(_FORGETS) for act in reference.acts) or other.kind is Kind.OBJECT:
        return False
    mine, theirs = routes_of(table), routes_of(other)
    pairs = zip(reference.columns, reference.wanted, strict=False)
    return any(
        one.lower() in mine and mine[one.lower()] == theirs.get(wanted.lower()) for one, wanted in pairs
    )


def unique_problem(table: Table, key: Key) -> str:
    """What to say of a unique key that does not hold."""
    by = " or ".join("'id'" if name == "local_id" else f"'{name}'" for name in routes_of(table))
    return (
        f"{key} cannot hold over shards, each of which knows only its own rows: put {by} into it, or keep"
        " what must be unique in a hashed or single table; if each shard by itself is enough, write"
        f" {_declared(key.columns)} in the schema"
    )


def counting_problem(column: str) -> str:
    """What to say of an AUTO_INCREMENT that is none over shards."""
    return (
        f"AUTO_INCREMENT of '{column}' cannot hold over shards, each of which counts by itself: leave it out"
        " and give the values; if numbers of each shard by itself are enough, write"
        f" {_declared((column.lower(),))} in the schema"
    )


def _declared(columns: tuple[str, ...]) -> str:
    if "" in columns:
        return "unique: per_shard"
    named = columns[0] if len(columns) == 1 else f"'{', '.join(columns)}'"
    return f"unique: {{{named}: per_shard}}"


def reference_problem(reference: Reference) -> str:
    """What to say of a FOREIGN KEY that does not hold."""
    columns, wanted = ", ".join(reference.columns), ", ".join(reference.wanted)
    head = f"FOREIGN KEY ({columns}) REFERENCES {reference.table} ({wanted})"
    return (
        f"{head} cannot hold: its rows may be on different shards. Leave the constraint out and have an index"
        f" on {columns}; an ORM keeps the relation without it: {ORMS}"
    )
