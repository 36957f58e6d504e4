"""Changes of the schema, each as text and as a schema that has it, and statements planned again with one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from config.document import from_value
from config.read_schema import read_schema
from config.schema import Colocation, Database, Kind, Schema, Table
from rewriter.env import Env
from rewriter.planner import Rewriter

from .cost import Cost, cost_of

MAX_KEPT: Final = 32
"""So many schemas with a change are kept with the plans that were made for them."""


@dataclass(frozen=True)
class Change:
    """What to change: `title` in a few words, equal for equal changes. `lines` of the schema's document, in
    the tables of `database`; `tables` those that are new or other then.
    """

    title: str
    database: str
    lines: tuple[str, ...]
    tables: tuple[Table, ...] = field(compare=False)
    others: str | None = None
    """The keyspace of all further tables."""


class Trials:
    """Plans statements for the schema with a change."""

    def __init__(self, rewriter: Rewriter) -> None:
        self.rewriter = rewriter
        self._with: dict[Change, Rewriter] = {}

    def cost(self, sql: bytes, env: Env, change: Change | None = None) -> Cost:
        """What a statement costs, with the change."""
        if change is None:
            return cost_of(self.rewriter, sql, env)
        made = self._with.get(change)
        if made is None:
            if len(self._with) >= MAX_KEPT:
                self._with.clear()
            schema = with_change(self.rewriter.schema, change)
            limits = self.rewriter.limits
            made = self._with[change] = Rewriter(
                schema,
                self.rewriter.topology,
                cache_size=100,
                in_list=limits.in_list,
                parse_depth=limits.parse_depth,
            )
        return cost_of(made, sql, env)


def with_change(schema: Schema, change: Change) -> Schema:
    """The schema with a change."""
    database = schema.databases.get(change.database) or Database(change.database)
    tables = {**database.tables, **{one.name: one for one in change.tables}}
    made = replace(
        database, tables=MappingProxyType(tables), others=change.others or database.others, keyspace=None
    )
    return Schema(schema.version, MappingProxyType({**schema.databases, change.database: made}))


def new_table(name: str, database: str, fields: Mapping[str, object]) -> tuple[str, Table] | None:
    """A table as a line of the document, and as what that means; None if it is not sound after all."""
    document = {"databases": {database: {"tables": {name: dict(fields)}}}}
    schema = read_schema(from_value(document, "advice"))
    table = None if schema is None else schema.table(database, name)
    return None if table is None else (f"{name}: {_flow(fields)}", table)


def _flow(value: object) -> str:
    """As YAML has it on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_flow(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(f'"{one}"' for one in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    return f'"{text}"' if set(text) & set(",:{}[]$") else text


def strict(table: Table, column: str) -> Change:
    """Every row of an object table on the shard of the ID in a column."""
    where = Colocation(column, None, stored=True, strict=True)
    return Change(
        title=f"{table.name}: every row on the shard of its `{column}`",
        database=table.database,
        lines=(f"{table.name}: {{…, colocate: {{column: {column}, strict: true}}}}",),
        tables=(replace(table, colocate=where),),
    )


def reference(table: Table) -> Change:
    """A single table on every host."""
    return Change(
        title=f"{table.name} as a reference table",
        database=table.database,
        lines=(f"{table.name}: {{kind: reference, keyspace: {table.keyspace}, columns: {{…}}}}",),
        tables=(replace(table, kind=Kind.REFERENCE),),
    )


def others(database: str, keyspace: str) -> Change:
    """Further tables of a sharded database as single ones."""
    return Change(
        title=f"`others` in database {database}",
        database=database,
        lines=(f"others: {{keyspace: {keyspace}}}",),
        tables=(),
        others=keyspace,
    )
