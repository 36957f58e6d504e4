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
mappings with one entry each, for tools that sort keys). What each
kind needs of them is checked here, in `columns.py`; what a kind needs of its keyspace, in `checks.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from config import columns
from config.column_sql import index_problem
from config.columns import Draft
from config.document import Document
from config.node import Node
from config.schema import IDENTIFIER, Colocation, Database, Kind, Schema, Table
from config.table_checks import check_references, check_table

MAX_TYPE: Final = 1023

_COMMON: Final = ("kind", "keyspace", "columns", "indexes")
_FIELDS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.OBJECT: ("type", "colocate", "unique"),
    Kind.MAPPING: ("from", "to", "sequence", "orderable", "unique"),
    Kind.TIMED: ("shard_key", "unique"),
    Kind.HASHED: ("key", "unique"),
    Kind.SINGLE: (),
    Kind.REFERENCE: (),
}
_SYSTEM: Final = ("information_schema", "mysql", "performance_schema", "sys")

_INDEX: Final = re.compile(r"(PRIMARY|UNIQUE|INDEX|KEY|FULLTEXT|SPATIAL|CONSTRAINT|CHECK|FOREIGN)\b", re.I)
_JSON_PATH: Final = re.compile(r'\$(?:\.(?:[A-Za-z_$][0-9A-Za-z_$]*|"[^"\\]+")|\[[0-9]+\])+\Z')


def read_schema(document: Document, *, whole: bool = True) -> Schema | None:
    """The schema in `document`; None after noting problems there. Not `whole`: what could be read of one that
    has problems, to check it against others.
    """
    root = Node.root(document)
    if not root.mapping(("version", "databases")):
        return None
    version: int | str | None = None
    given = root.get("version")
    if given:
        version = given.text() if isinstance(given.value, str) else given.integer(0)
    names = _Names()
    databases: dict[str, Database] = {}
    listed = root.need("databases")
    for name, node in listed.items("databases by name") if listed else ():
        databases[name] = _read_database(name, node, names)
    if document.problems and whole:
        return None
    return Schema(document.digest if version is None else version, MappingProxyType(databases))


@dataclass
class _Names:
    """What must be unique in a keyspace: type numbers and physical tables; value: where it was first."""

    types: dict[tuple[str, int], str] = field(default_factory=dict)
    tables: dict[tuple[str, str], str] = field(default_factory=dict)

    def check(self, node: Node, keyspace: str, type_: int | None) -> None:
        database, table = str(node.path[-3]), str(node.path[-1])
        name = f"{database}.{table}"
        other = self.tables.setdefault((keyspace, table), name)
        if other != name:
            node.refuse(f"keyspace {keyspace} already has a table of this name: {other}")
        if type_ is not None:
            other = self.types.setdefault((keyspace, type_), name)
            if other != name:
                (node.get("type") or node).refuse(f"type {type_} of keyspace {keyspace} is {other} already")


def _read_database(name: str, node: Node, names: _Names) -> Database:
    if not IDENTIFIER.fullmatch(name):
        node.refuse("a database's name has 1 to 64 letters, digits, _ or $")
    elif name.lower() in _SYSTEM:
        node.refuse("is one of the servers' own databases")
    if not node.mapping(("keyspace", "tables", "others")):
        return Database(name)
    keyspace, listed = node.get("keyspace"), node.get("tables")
    others = _read_others(node)
    if keyspace:
        if others:
            node.refuse("has 'keyspace' and 'others': all tables of one that passes through are single")
        if listed:
            node.refuse("has 'keyspace' and 'tables': a database passes through, or lists its tables")
        return Database(name, keyspace.text())
    if listed is None:
        node.refuse("field 'tables' is missing (or 'keyspace', for a database that passes through)")
        return Database(name)
    tables: dict[str, Table] = {}
    drafts: dict[str, Draft] = {}
    for table_name, table_node in listed.items("tables by name"):
        table = _read_table(name, table_name, table_node, names, drafts)
        if table:
            tables[table_name] = table
    for table_name, draft in drafts.items():
        check_references(tables[table_name], draft, tables)
    return Database(name, None, MappingProxyType(tables), others)


def _read_others(node: Node) -> str | None:
    """`others: {keyspace: global}`: where the tables are that the schema does not name."""
    found = node.get("others")
    if found is None or not found.mapping(("keyspace",)):
        return None
    keyspace = found.need("keyspace")
    return keyspace.text() if keyspace else None


def _read_table(
    database: str, name: str, node: Node, names: _Names, drafts: dict[str, Draft]
) -> Table | None:
    """One table, as far as the document gives it; None when not even its kind is known."""
    if not IDENTIFIER.fullmatch(name):
        node.refuse("a table's name has 1 to 64 letters, digits, _ or $")
    if not isinstance(node.value, Mapping):
        node.mapping(_COMMON)
        return None
    kind_node, keyspace_node = node.need("kind"), node.need("keyspace")
    keyspace = keyspace_node.text() if keyspace_node else None
    text = kind_node.choice([str(one) for one in Kind]) if kind_node else None
    if text is None:
        node.mapping([*_COMMON, *(one for fields in _FIELDS.values() for one in fields)])
        return None
    kind = Kind(text)
    _check_fields(node, kind)
    draft = Draft(node, _read_columns(node), _read_indexes(node))
    per_shard = _read_unique(draft)
    table = _READERS[kind](Table(database, name, kind, keyspace or "", per_shard=per_shard), draft)
    table = check_table(table, draft)
    drafts[name] = draft
    if keyspace:
        names.check(node, keyspace, table.type)
    return table


def _check_fields(node: Node, kind: Kind) -> None:
    """Note unknown fields; those of another kind are named as such."""
    known = {*_COMMON, *_FIELDS[kind]}
    foreign = {one for fields in _FIELDS.values() for one in fields} - known
    node.mapping([*_COMMON, *_FIELDS[kind], *sorted(foreign)])
    for name in sorted(foreign & set(node.value if isinstance(node.value, Mapping) else ())):
        owner = next(other for other, fields in _FIELDS.items() if name in fields)
        node.child(name, None).refuse(f"is a field of {owner} tables, and this one is {kind}")


def _read_columns(node: Node) -> dict[str, tuple[str, Node]] | None:
    """Name to definition and its place, in order; None when not declared."""
    listed = node.get("columns")
    if listed is None:
        return None
    made: dict[str, tuple[str, Node]] = {}
    seen: dict[str, str] = {}
    for name, definition_node in listed.ordered("column definitions by name, like {data: JSON NOT NULL}"):
        if not IDENTIFIER.fullmatch(name):
            definition_node.refuse("a column's name has 1 to 64 letters, digits, _ or $")
        elif seen.setdefault(name.lower(), name) != name:
            definition_node.refuse(f"is the same column as {seen[name.lower()]}: names ignore case")
        definition = definition_node.text()
        made[name] = (" ".join(definition.split()) if definition else "", definition_node)
    if not listed.value and isinstance(listed.value, dict | list):
        listed.refuse("needs at least one column")
    return made


def _read_indexes(node: Node) -> tuple[tuple[str, Node], ...] | None:
    """Each definition and its place; None when not declared."""
    listed = node.get("indexes")
    if listed is None:
        return None
    made = []
    for one in listed.elements("index definitions, like KEY (name)"):
        text = one.text()
        problem = index_problem(text.strip()) if text else None
        if text and not _INDEX.match(text.strip()):
            one.refuse(f"must be an index or a constraint like 'KEY (name)', not {text[:40]!r}")
        elif problem is not None:
            one.refuse(problem)
        elif text:
            made.append((text.strip(), one))
    return tuple(made)


def _read_unique(draft: Draft) -> tuple[tuple[str, ...], ...]:
    """`unique: per_shard` of all keys, or of those listed by their columns: `{"a, b": per_shard}`."""
    found = draft.node.get("unique")
    if found is None:
        return ()
    if not isinstance(found.value, Mapping):
        if found.value != "per_shard":
            found.refuse("must be per_shard, or keys by their columns: {email: per_shard, 'a, b': per_shard}")
        return ((),)
    keys = []
    for name, node in found.items("keys by their columns"):
        columns = tuple(sorted(part.strip().lower() for part in name.split(",")))
        node.choice(("per_shard",))
        for column in columns:
            stored = draft.find(column) is not None or draft.places is None
            if not IDENTIFIER.fullmatch(column):
                node.refuse(f"must be the names of columns with commas between them, not {name[:40]!r}")
            elif not stored:
                node.refuse(f"there is no column {column!r}")
        keys.append(columns)
    return tuple(keys)


# --- one reader per kind -------------------------------------------------------------------------


def _name(node: Node, field_name: str) -> str | None:
    """A needed field that holds a column's name."""
    found = node.need(field_name)
    text = found.text() if found else None
    if found and text and not IDENTIFIER.fullmatch(text):
        found.refuse(f"must be a column's name, not {text[:40]!r}")
        return None
    return text


def _read_object(table: Table, draft: Draft) -> Table:
    type_node = draft.node.need("type")
    return columns.object_table(
        table,
        draft,
        type_=type_node.integer(1, MAX_TYPE) if type_node else None,
        colocate=_read_colocation(draft),
    )


def _read_colocation(draft: Draft) -> Colocation | None:
    """`user_id` (a column that holds an ID), `data:$.board_id` (a path in a JSON column), or the long form
    `{column: user_id, strict: true}`, `{column: user_id, stored: false}`, `{column: data, path: $.board_id}`.
    """
    found = draft.node.get("colocate")
    if found is None:
        return None
    if isinstance(found.value, Mapping):
        return _read_long_colocation(found)
    text = found.text()
    if text is None:
        return None
    column, colon, path = text.partition(":")
    if not IDENTIFIER.fullmatch(column) or (colon and not _JSON_PATH.match(path)):
        found.refuse(f"must be a column, or a column and a JSON path like data:$.board_id, not {text[:60]!r}")
        return None
    return Colocation(column, path if colon else None)


def _read_long_colocation(found: Node) -> Colocation | None:
    found.mapping(("column", "path", "strict", "stored"))
    column = _name(found, "column")
    path_node, strict, stored = found.get("path"), found.get("strict"), found.get("stored")
    path = path_node.text() if path_node else None
    if path_node and path and not _JSON_PATH.match(path):
        path_node.refuse(f"must be a JSON path like $.board_id, not {path[:60]!r}")
    is_strict = bool(strict and strict.boolean())
    is_stored = not (stored and stored.boolean() is False)
    if strict and is_strict and path_node:
        strict.refuse("strict colocation is by a column of its own, not by a path in a JSON text")
    elif strict and is_strict and not is_stored:
        strict.refuse("strict colocation needs a column that is stored")
    return None if column is None else Colocation(column, path, is_stored, is_strict)


def _read_mapping(table: Table, draft: Draft) -> Table:
    sequence = draft.node.get("sequence")
    orderable = draft.node.get("orderable")
    return columns.mapping_table(
        table,
        draft,
        from_=_name(draft.node, "from"),
        to=_name(draft.node, "to"),
        sequence=_name(draft.node, "sequence") if sequence else "sequence",
        orderable=bool(orderable and orderable.boolean()),
    )


def _read_timed(table: Table, draft: Draft) -> Table:
    shard_key = draft.node.get("shard_key")
    return columns.timed_table(table, draft, _name(draft.node, "shard_key") if shard_key else None)


def _read_hashed(table: Table, draft: Draft) -> Table:
    return columns.hashed_table(table, draft, _name(draft.node, "key"))


_READERS: Final[Mapping[Kind, Callable[[Table, Draft], Table]]] = {
    Kind.OBJECT: _read_object,
    Kind.MAPPING: _read_mapping,
    Kind.TIMED: _read_timed,
    Kind.HASHED: _read_hashed,
    Kind.SINGLE: columns.single_table,
    Kind.REFERENCE: columns.reference_table,
}
