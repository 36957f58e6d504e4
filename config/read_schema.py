"""The schema document to a `Schema`, defaults filled in.

    databases:
      demo:
        tables:
          pins:           {kind: object, keyspace: main, type: 1, colocate: "data:$.board_id"}
          board_has_pins: {kind: mapping, keyspace: main, from: board_id, to: pin_id, orderable: true}
          photos:         {kind: timed, keyspace: media, shard_key: user_id, columns: {...}}
          email_to_user:  {kind: hashed, keyspace: lookup, key: email, columns: {...}}
          usernames:      {kind: single, keyspace: global}
      legacy: {keyspace: legacy}          # passes through: every table single

`columns` is an ordered mapping of names to the SQL that follows the name in CREATE TABLE (or a list of
mappings with one entry each, for tools that sort keys). The fields by themselves are checked by the models
below, which also take what was wrong out; what is asked of several fields is asked of the document as it was
given, so that nothing is said twice. What each kind needs of its columns is checked in `columns.py`; what it
needs of its keyspace, in `checks.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, Strict

from config import columns
from config.caches import CacheFields, check_leases, read_cache
from config.column_sql import index_problem
from config.columns import Draft
from config.document import Document, Spot
from config.fields import Entries, Text, check_name, like, within
from config.reserved import reserved
from config.schema import IDENTIFIER, Cache, Colocation, Database, Kind, Schema, SoftDelete, Table
from config.table_checks import check_references, check_table
from config.validation import Part, validated

MAX_TYPE: Final = 1023

_FIELDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.OBJECT: ("type", "colocate", "unique", "soft_delete", "cache"),
    Kind.MAPPING: ("from", "to", "sequence", "orderable", "procedure", "unique", "soft_delete", "cache"),
    Kind.TIMED: ("shard_key", "unique", "soft_delete"),
    Kind.HASHED: ("key", "unique", "soft_delete"),
    Kind.SINGLE: (),
    Kind.REFERENCE: (),
}
_NEEDED: Final = {"type", "from", "to", "key"}

_INDEX: Final = re.compile(r"(PRIMARY|UNIQUE|INDEX|KEY|FULLTEXT|SPATIAL|CONSTRAINT|CHECK|FOREIGN)\b", re.I)
_JSON_PATH: Final = r'\$(?:\.(?:[A-Za-z_$][0-9A-Za-z_$]*|"[^"\\]+")|\[[0-9]+\])+'


# --- the fields by themselves --------------------------------------------------------------------


def _version(value: Any) -> Any:
    if (type(value) is int and value >= 0) or (isinstance(value, str) and value):
        return value
    raise ValueError("must be a text or a whole number of 0 or more")


def _unique(value: Any) -> Any:
    """`per_shard` is short for all keys, here {}."""
    if value != "per_shard" and not isinstance(value, dict):
        raise ValueError("must be per_shard, or keys by their columns: {email: per_shard, 'a, b': per_shard}")
    return {} if value == "per_shard" else value


def _colocate(value: Any) -> Any:
    """`data:$.board_id` is short for `{column: data, path: $.board_id}`."""
    if isinstance(value, dict):
        return value
    column, colon, path = value.partition(":") if isinstance(value, str) else ("", "", "")
    if not IDENTIFIER.fullmatch(column) or (colon and not re.fullmatch(_JSON_PATH, path)):
        message = "must be a column, or a column and a JSON path like data:$.board_id"
        raise ValueError(f"{message}, not {value!r:.60}")
    return {"column": column, "path": path if colon else None}


def _soft_delete(value: Any) -> Any:
    """`$.active` is short for `data:$.active`, and that for `{column: data, path: $.active}`."""
    if isinstance(value, dict):
        return value
    text = f"data:{value}" if isinstance(value, str) and value.startswith("$") else value
    column, colon, path = text.partition(":") if isinstance(text, str) else ("", "", "")
    if not IDENTIFIER.fullmatch(column) or (colon and not re.fullmatch(_JSON_PATH, path)):
        message = "must be a JSON path like $.active, a column and a path like data:$.active, or a column"
        raise ValueError(f"{message}, not {value!r:.60}")
    return {"column": column, "path": path if colon else None}


_Column = Annotated[str, like(IDENTIFIER.pattern, "must be a column's name: 1 to 64 letters, digits, _ or $")]

_Procedure = Annotated[
    str, like(IDENTIFIER.pattern, "must be a procedure's name: 1 to 64 letters, digits, _ or $")
]


class ColocateFields(Part):
    """Where a column's ID says which shard a new object goes to."""

    column: _Column | None
    path: Annotated[str, like(_JSON_PATH, "must be a JSON path like $.board_id")] | None = None
    strict: bool = False
    stored: bool = True


class SoftDeleteFields(Part):
    """The flag that hides rows where it is false."""

    column: _Column | None
    path: Annotated[str, like(_JSON_PATH, "must be a JSON path like $.active")] | None = None


class TableFields(Part):
    """A table. Which of the fields it may have, and needs, depends on its kind."""

    kind: Annotated[Kind, Strict(False)] | None
    keyspace: Text | None
    columns: Annotated[
        Entries[Text] | None, Field(description="column definitions by name, like {data: JSON NOT NULL}")
    ] = None
    indexes: Annotated[list[Text] | None, Field(description="index definitions, like KEY (name)")] = None
    unique: Annotated[dict[str, Literal["per_shard"]], BeforeValidator(_unique)] | None = None
    type: Annotated[int, within(1, MAX_TYPE)] | None = None
    colocate: Annotated[ColocateFields, BeforeValidator(_colocate)] | None = None
    soft_delete: Annotated[SoftDeleteFields, BeforeValidator(_soft_delete)] | None = None
    from_: _Column | None = Field(default=None, alias="from")
    to: _Column | None = None
    sequence: _Column | None = None
    orderable: bool = False
    procedure: _Procedure | None = None
    shard_key: _Column | None = None
    key: _Column | None = None
    cache: CacheFields | None = None


class OthersFields(Part):
    """Where the tables are that the schema does not name."""

    keyspace: Text | None


class DatabaseFields(Part):
    """A logical database: it passes through (`keyspace`), or lists its tables."""

    keyspace: Text | None = None
    tables: Annotated[dict[str, TableFields] | None, Field(description="tables by name")] = None
    others: OthersFields | None = None


class SchemaFields(Part):
    """The whole document."""

    version: Annotated[int | str, BeforeValidator(_version)] | None = None
    databases: Annotated[dict[str, DatabaseFields] | None, Field(description="databases by name")]


# --- what they mean together ---------------------------------------------------------------------


def read_schema(document: Document, *, whole: bool = True) -> Schema | None:
    """The schema in `document`; None after noting problems there. Not `whole`: what could be read of one that
    has problems, to check it against others.
    """
    fields = validated(SchemaFields, document)
    if fields is None:
        return None
    names = _Names()
    databases = {}
    for name, spot in Spot(document, ("databases",)).entries():
        check_name(spot, "database")
        entry = (fields.databases or {}).get(name)
        databases[name] = _read_database(name, entry, spot, names) if entry else Database(name)
    check_leases(names.caches)
    if document.problems and whole:
        return None
    version = document.digest if fields.version is None else fields.version
    return Schema(version, MappingProxyType(databases))


@dataclass
class _Names:
    """What must be unique in a keyspace: type numbers and physical tables; value: where it was first. And the
    caches, each with its place.
    """

    types: dict[tuple[str, int], str] = field(default_factory=dict)
    tables: dict[tuple[str, str], str] = field(default_factory=dict)
    caches: list[tuple[Cache, Spot]] = field(default_factory=list)

    def check(self, spot: Spot, keyspace: str, type_: int | None) -> None:
        database, table = str(spot.path[-3]), str(spot.path[-1])
        name = f"{database}.{table}"
        other = self.tables.setdefault((keyspace, table), name)
        if other != name:
            spot.refuse(f"keyspace {keyspace} already has a table of this name: {other}")
        if type_ is not None:
            other = self.types.setdefault((keyspace, type_), name)
            if other != name:
                spot.field("type").refuse(f"type {type_} of keyspace {keyspace} is {other} already")


def _read_database(name: str, fields: DatabaseFields, spot: Spot, names: _Names) -> Database:
    whose = reserved(name)
    if whose is not None:
        spot.refuse(f"is {whose}")
    if spot.given("keyspace") is not None:
        if spot.given("others") is not None:
            spot.refuse("has 'keyspace' and 'others': all tables of one that passes through are single")
        if spot.given("tables") is not None:
            spot.refuse("has 'keyspace' and 'tables': a database passes through, or lists its tables")
        return Database(name, fields.keyspace)
    if spot.given("tables") is None:
        spot.refuse("field 'tables' is missing (or 'keyspace', for a database that passes through)")
        return Database(name)
    tables: dict[str, Table] = {}
    drafts: dict[str, Draft] = {}
    for table_name, place in spot.inner("tables").entries():
        check_name(place, "table")
        entry = (fields.tables or {}).get(table_name)
        if entry is None or entry.kind is None:
            continue
        draft = _draft(place)
        table = Table(name, table_name, entry.kind, entry.keyspace or "", per_shard=_read_unique(draft))
        tables[table_name], drafts[table_name] = _read_table(table, entry, draft), draft
        cache = tables[table_name].cache
        if cache is not None:
            names.caches.append((cache, place.inner("cache")))
        if entry.keyspace:
            names.check(place, entry.keyspace, tables[table_name].type)
    _check_procedures(tables, drafts)
    for table_name, draft in drafts.items():
        check_references(tables[table_name], draft, tables)
    others = fields.others.keyspace if fields.others else None
    return Database(name, None, MappingProxyType(tables), others)


def _check_procedures(tables: Mapping[str, Table], drafts: Mapping[str, Draft]) -> None:
    """A procedure is called by its name alone, so that is one table's."""
    found: dict[str, str] = {}
    for name, table in tables.items():
        other = found.setdefault(table.procedure.lower(), name) if table.procedure else name
        if other != name:
            spot = drafts[name].spot
            place = spot.inner("orderable") if spot.given("procedure") is None else spot.inner("procedure")
            place.refuse(f"{table.procedure} reorders {other} already: name another `procedure`")


def _read_table(table: Table, fields: TableFields, draft: Draft) -> Table:
    """One table, as far as the document gives it."""
    spot = draft.spot
    _check_fields(spot, table.kind)
    if spot.given("cache") is not None:
        table = replace(table, cache=read_cache(fields.cache, spot.inner("cache")))
    match table.kind:
        case Kind.OBJECT:
            colocate = _read_colocation(fields, spot)
            table = columns.object_table(table, draft, type_=fields.type, colocate=colocate)
        case Kind.MAPPING:
            sequence = "sequence" if spot.given("sequence") is None else fields.sequence
            if fields.procedure is not None and not fields.orderable:
                spot.inner("procedure").refuse("is what reorders a table: write `orderable: true`, too")
            table = columns.mapping_table(
                table,
                draft,
                from_=fields.from_,
                to=fields.to,
                sequence=sequence,
                orderable=fields.orderable,
                procedure=fields.procedure,
            )
        case Kind.TIMED:
            table = columns.timed_table(table, draft, fields.shard_key)
        case Kind.HASHED:
            table = columns.hashed_table(table, draft, fields.key)
        case Kind.SINGLE:
            table = columns.single_table(table, draft)
        case Kind.REFERENCE:
            table = columns.reference_table(table, draft)
    return check_table(replace(table, soft_delete=_read_soft_delete(table, fields, spot)), draft)


def _check_fields(spot: Spot, kind: Kind) -> None:
    """Note the fields that tables of this kind lack, and those of another kind."""
    for name in _FIELDS[kind]:
        if name in _NEEDED and spot.given(name) is None:
            spot.refuse(f"field {name!r} is missing")
    for name in spot.value:
        owner = next((other for other, fields in _FIELDS.items() if name in fields), None)
        if owner is not None and name not in _FIELDS[kind]:
            spot.inner(name).refuse(f"is a field of {owner} tables, and this one is {kind}")


def _draft(spot: Spot) -> Draft:
    """What the document declares of a table's columns and indexes."""
    listed, given = spot.given("indexes"), spot.given("columns")
    indexes = tuple(_indexes(spot.inner("indexes"), listed)) if isinstance(listed, list) else None
    if given is None:
        return Draft(spot, None, indexes)
    if given in ({}, []):
        spot.inner("columns").refuse("needs at least one column")
    made: dict[str, tuple[str, Spot]] = {}
    seen: dict[str, str] = {}
    for name, place in _columns(spot.inner("columns")):
        if name in made:
            place.refuse("is given twice")
            continue
        check_name(place, "column")
        if seen.setdefault(name.lower(), name) != name:
            place.refuse(f"is the same column as {seen[name.lower()]}: names ignore case")
        made[name] = (" ".join(place.value.split()) if isinstance(place.value, str) else "", place)
    return Draft(spot, made, indexes)


def _columns(spot: Spot) -> Iterator[tuple[str, Spot]]:
    """The columns, each with its place: entries of a mapping, or of mappings with one entry each."""
    yield from spot.entries()
    for index, one in enumerate(spot.value if isinstance(spot.value, list) else ()):
        if isinstance(one, dict) and len(one) == 1:
            yield from spot.inner(index).entries()


def _indexes(spot: Spot, listed: list[Any]) -> Iterator[tuple[str, Spot]]:
    """The definitions that can be read, each with its place."""
    for index, one in enumerate(listed):
        text, place = one.strip() if isinstance(one, str) else "", spot.inner(index)
        problem = index_problem(text)
        if one and isinstance(one, str) and not _INDEX.match(text):
            place.refuse(f"must be an index or a constraint like 'KEY (name)', not {text[:40]!r}")
        elif text and problem is not None:
            place.refuse(problem)
        elif text:
            yield text, place


def _read_unique(draft: Draft) -> tuple[tuple[str, ...], ...]:
    """`unique: per_shard` of all keys, or of those listed by their columns: `{"a, b": per_shard}`."""
    spot = draft.spot.inner("unique")
    if not isinstance(spot.value, dict):
        return () if spot.value is None else ((),)
    keys = []
    for name, place in spot.entries():
        key = tuple(sorted(part.strip().lower() for part in name.split(",")))
        for column in key:
            if not IDENTIFIER.fullmatch(column):
                place.refuse(f"must be the names of columns with commas between them, not {name[:40]!r}")
            elif draft.places is not None and draft.find(column) is None:
                place.refuse(f"there is no column {column!r}")
        keys.append(key)
    return tuple(keys)


def _read_soft_delete(table: Table, fields: TableFields, spot: Spot) -> SoftDelete | None:
    """The flag, whose column must hold texts (with a path) or integers."""
    found = fields.soft_delete
    if found is None or found.column is None or "soft_delete" not in _FIELDS[table.kind]:
        return None
    place, column = spot.inner("soft_delete"), table.column(found.column)
    if column is None:
        place.refuse(f"there is no column {found.column!r}")
    elif found.path is not None and column.type.family not in ("json", "text", "string"):
        place.refuse(f"the path {found.path} needs a column of JSON or text, and {found.column!r} is none")
    elif found.path is None and not column.type.integer:
        place.refuse(f"column {found.column!r} is no integer: a flag is BOOLEAN, or a path in a JSON text")
    return SoftDelete(found.column, found.path)


def _read_colocation(fields: TableFields, spot: Spot) -> Colocation | None:
    found = fields.colocate
    if found is None or found.column is None:
        return None
    strict = spot.inner("colocate", "strict")
    if found.strict and found.path is not None:
        strict.refuse("strict colocation is by a column of its own, not by a path in a JSON text")
    elif found.strict and not found.stored:
        strict.refuse("strict colocation needs a column that is stored")
    return Colocation(found.column, found.path, found.stored, found.strict)
