"""The plan's document: which table of the schema gets the rows of which table of the source, and how.

database: forum
map: imported_ids                # a hashed table of the schema: old ID → new ID
tables:
  users: {}                      # from the table of the same name, by its primary key
  posts:
    from: posts                  # the source's table, if it has another name
    key: [id]                    # what its rows are told apart by, if not its primary key
    id: id                       # the column with the old ID (object tables), if not the primary key
    ids: {topic_id: topics, user_id: users}
    place: topic_id              # whose shard a new object shares; `hash`: spread. Else the schema's colocate
    rename: {body: text}         # a column that is called otherwise now
    leave: [old_flags]           # columns that are not imported
    dangling: {user_id: keep}    # an ID of a row that is not there: fail, null, keep or skip
  likes: {ids: {user_id: users, post_id: posts}, sequence: created_at}
skip: [migrations]               # tables that are not imported
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal

from pydantic import Field

from config.document import ConfigError, Document
from config.fields import Text
from config.validation import Part, validated

Dangling = Literal["fail", "null", "keep", "skip"]
HASH: Final = "hash"


class TableFields(Part):
    """How one table of the schema is filled."""

    from_: Text | None = Field(default=None, alias="from")
    key: list[Text] | None = None
    id: Text | None = None
    ids: Annotated[dict[str, Text], Field(description="tables by the columns with their IDs")] = Field(
        default_factory=dict
    )
    place: Text | None = None
    sequence: Text | None = None
    rename: dict[str, Text] = Field(default_factory=dict)
    leave: list[Text] = Field(default_factory=list)
    dangling: Annotated[dict[str, Dangling], Field(description="what is done by the columns")] = Field(
        default_factory=dict
    )


class PlanFields(Part):
    """The whole document."""

    database: Text | None
    map: Text | None
    tables: Annotated[dict[str, TableFields] | None, Field(description="tables of the schema by name")]
    skip: list[Text] = Field(default_factory=list)


@dataclass(frozen=True)
class PlannedTable:
    """See `TableFields`; `name`: the schema's."""

    name: str
    source: str
    key: tuple[str, ...] = ()
    id: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    place: str = ""
    sequence: str = ""
    rename: Mapping[str, str] = field(default_factory=dict)
    leave: tuple[str, ...] = ()
    dangling: Mapping[str, Dangling] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The plan; what it says is not compared with any server yet."""

    database: str
    map: str
    tables: Mapping[str, PlannedTable]
    skip: frozenset[str] = frozenset()


def read_plan(document: Document) -> Plan:
    """The plan in `document`. ConfigError with all that is wrong."""
    fields = validated(PlanFields, document)
    if fields is None or document.problems or not (fields.database and fields.map and fields.tables):
        if not document.problems:
            document.refuse((), "needs the fields database, map and tables")
        raise ConfigError(document.problems)
    tables = {
        name: PlannedTable(
            name,
            one.from_ or name,
            tuple(one.key or ()),
            one.id or "",
            one.ids,
            one.place or "",
            one.sequence or "",
            one.rename,
            tuple(one.leave),
            one.dangling,
        )
        for name, one in fields.tables.items()
    }
    return Plan(fields.database, fields.map, tables, frozenset(fields.skip))
