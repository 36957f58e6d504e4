"""What `shardgate propose` writes: a schema and a plan for the import, for a person to edit.

Definitions are spliced, not made anew: what a column was, it is, but for IDs, which become BIGINT UNSIGNED.
What cannot hold over shards is said where it stood.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from config.columns import SEQUENCE, TEXT_KEY
from config.definitions import Key
from config.schema import Kind
from fleet.importing.definitions import SourceColumn, without_references
from fleet.importing.kinds import Proposal, Proposed
from fleet.importing.names import renamed

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_ ().]*")
_WORDS: Final = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")
_TYPE: Final = re.compile(r"(\w+(?:\s*\((?:[^)']|'(?:[^'\\]|\\.|'')*')*\))?)(.*)", re.DOTALL)


@dataclass(frozen=True)
class Names:
    """What the documents call things."""

    database: str
    source: str
    main: str = "main"
    lookup: str = "lookup"
    single: str = "global"
    map: str = "imported_ids"
    first_type: int = 1
    others: Sequence[str] = ()
    """What the source has beside tables."""


def scalar(text: str) -> str:
    """As YAML has it."""
    plain = _PLAIN.fullmatch(text) and text == text.strip() and text.lower() not in _WORDS
    return text if plain else json.dumps(text, ensure_ascii=False)


def _flow(pairs: dict[str, str]) -> str:
    return "{" + ", ".join(f"{scalar(key)}: {scalar(value)}" for key, value in pairs.items()) + "}"


# --- the schema ------------------------------------------------------------------------------------


def schema_text(proposal: Proposal, names: Names) -> str:
    """The schema document."""
    lines = [
        f"# Proposed by `shardgate propose` from {names.source}: look through it, edit it, then see",
        "# docs/importing.md for what comes next.",
        f"# The table that others are to be near to is {proposal.root or 'none'} (--root takes another).",
        *([f"# Not tables, and not imported: {', '.join(names.others)}."] if names.others else []),
        "",
        "databases:",
        f"  {scalar(names.database)}:",
        f"    others: {{keyspace: {scalar(names.single)}}}",
        "    tables:",
        "",
        "      # The new IDs of old ones, of user 123 by `users:123`: the import's, and yours for old links.",
        f"      {scalar(names.map)}:",
        "        kind: hashed",
        f"        keyspace: {scalar(names.lookup)}",
        "        key: old",
        "        columns: {old: VARCHAR(100) PRIMARY KEY, id: BIGINT UNSIGNED NOT NULL}",
    ]
    number = names.first_type
    for one in proposal.tables.values():
        lines += ["", *_table(one, names, number)]
        number += one.kind is Kind.OBJECT
    return "\n".join(lines) + "\n"


def _table(one: Proposed, names: Names, number: int) -> Iterator[str]:
    yield f"      # {one.kind}: {one.why}"
    if one.skip:
        yield f"      # {scalar(one.name)} is not imported."
        return
    lost: list[str] = []
    columns = list(_columns(one, lost))
    indexes, per_shard = _indexes(one, lost)
    if one.target != one.name:
        lost.insert(0, f"{one.name} is called {one.target} here: statements that name it are to be changed")
    lost[:0] = [
        f"{old} is called {new} here: statements that name it are to be changed"
        for old, new in one.renames.items()
    ]
    if one.doubts:
        lost.append(f"its definition can be read in two ways: look at {', '.join(one.doubts)} twice")
    for text in lost:
        yield f"      # {text}"
    yield f"      {scalar(one.target)}:"
    yield f"        kind: {one.kind}"
    keyspace = {Kind.OBJECT: names.main, Kind.MAPPING: names.main, Kind.HASHED: names.lookup}
    yield f"        keyspace: {scalar(keyspace.get(one.kind, names.single))}"
    if one.kind is Kind.OBJECT:
        yield f"        type: {number}"
        if one.follow:
            others = f"  # or {', '.join(map(one.column, one.others))}" if one.others else ""
            yield f"        colocate: {scalar(one.column(one.follow))}{others}"
    if one.kind is Kind.MAPPING:
        yield f"        from: {scalar(one.column(one.routing))}"
        yield f"        to: {scalar(one.column(one.to))}"
    if one.kind is Kind.HASHED:
        yield f"        key: {scalar(one.column(one.routing))}"
    if per_shard:
        listed = ", ".join(f"{scalar(each)}: per_shard" for each in per_shard)
        yield f"        unique: {{{listed}}}"
    yield "        columns:"
    for name, definition in columns:
        yield f"          {scalar(one.column(name))}: {scalar(renamed(definition, one.renames))}"
    if indexes:
        yield "        indexes:"
        yield from (f"          - {scalar(each)}" for each in indexes)


def _columns(one: Proposed, lost: list[str]) -> Iterator[tuple[str, str]]:
    table = one.table
    if one.kind is Kind.REFERENCE and table.counted:
        lost.append(f"rows that are inserted must give {table.counted}: every host has the same rows")
    for column in table.columns:
        if one.kind is Kind.OBJECT and (column.name,) == table.primary:
            if column.name != "id":
                lost.append(f"clients see {column.name} as `id`: statements that name it are to be changed")
            continue
        if not _anew(one, column):
            yield column.name, _kept(one, column)
        elif column.name in one.ids or one.kind is Kind.MAPPING:
            yield column.name, _id_column(column)
        else:
            lost += _folded(one, column)
            yield column.name, _key_column(column)
    if one.kind is Kind.MAPPING:
        lost.append("`sequence` orders the list; rows that are inserted without get the time of now")
        yield "sequence", SEQUENCE


def _anew(one: Proposed, column: SourceColumn) -> bool:
    """Whether its definition is another than in the source: an ID, or the text key of a hashed table."""
    if column.name in one.ids or (one.kind is Kind.MAPPING and column.name == one.to):
        return True
    return one.kind is Kind.HASHED and column.name == one.routing and not column.facts.type.integer


def _id_column(column: SourceColumn) -> str:
    return "BIGINT UNSIGNED NOT NULL" if column.facts.not_null else "BIGINT UNSIGNED"


def _key_column(column: SourceColumn) -> str:
    """Binary and without padding, as the key of a hashed table has to be."""
    kind = column.facts.type
    if kind.binary:
        return f"VARBINARY({kind.length}) NOT NULL"
    return f"VARCHAR({kind.length or 1}) {TEXT_KEY} NOT NULL"


def _folded(one: Proposed, column: SourceColumn) -> Iterator[str]:
    """What changes for a key that was compared by a collation."""
    kind, table = column.facts.type, one.table
    collation = (*kind.collations, "" if kind.charset else table.collation)[0]
    if not kind.binary and not collation.endswith("_bin"):
        yield (
            f"{column.name} was compared by {collation or 'its collation'}: here by its bytes, so 'A' is not "
            "'a', neither in conditions nor for the PRIMARY KEY"
        )


def _kept(one: Proposed, column: SourceColumn) -> str:
    """As it was, with the collation that it had from its table, and without REFERENCES."""
    kind, table = column.facts.type, one.table
    text = without_references(column.definition)
    if not kind.textual or kind.kind == "json" or kind.charset or kind.collations:
        return text
    match = _TYPE.match(text)
    if match is None:
        return text
    if table.collation and not table.collation.startswith("utf8mb4_0900_ai_ci"):
        return f"{match[1]} COLLATE {table.collation}{match[2]}"
    if table.charset and table.charset != "utf8mb4":
        return f"{match[1]} CHARACTER SET {table.charset}{match[2]}"
    return text


def _indexes(one: Proposed, lost: list[str]) -> tuple[list[str], list[str]]:
    """The keys as they were, and the columns of those that hold on each shard only."""
    table, kept, per_shard = one.table, [], []
    own = table.primary[0].lower() if one.kind is Kind.OBJECT else ""
    names = {**one.renames, own: "local_id"} if own else one.renames
    starts = set()
    for key in table.keys:
        if key.unique and not _holds(one, key, own):
            per_shard.append(", ".join(_columns_of(one, key)))
            lost.append(
                f"UNIQUE ({', '.join(key.columns)}) holds on each shard only: what must be unique everywhere "
                "belongs in a hashed table with that key"
            )
        starts.add(key.columns[:1])
    kept += [  # columns that are written anew lose what their definition said of keys
        f"{'PRIMARY' if column.facts.primary else 'UNIQUE'} KEY (`{one.column(column.name)}`)"
        for column in table.columns
        if _anew(one, column) and (column.facts.primary or column.facts.unique)
    ]
    lost += [
        f"FOREIGN KEY ({', '.join(reference.columns)}) to {reference.table} is not kept"
        for reference in table.references
    ]
    for element in table.elements:
        if element.found.references or any(key.columns == (own,) for key in element.found.keys):
            continue
        kept.append(renamed(element.text, names))
    if one.kind is Kind.MAPPING:
        kept.append(f"KEY (`{one.column(one.routing)}`, sequence, `{one.column(one.to)}`)")
    kept += [f"KEY (`{one.column(name)}`)" for name in one.ids if (name.lower(),) not in starts]
    return kept, per_shard


def _holds(one: Proposed, key: Key, own: str) -> bool:
    if one.kind in (Kind.SINGLE, Kind.REFERENCE):
        return True
    routing = own or one.routing.lower()
    return any((part.column or "").lower() == routing and part.whole for part in key.parts)


def _columns_of(one: Proposed, key: Key) -> list[str]:
    names = {old.lower(): new for old, new in one.renames.items()}
    return [names.get(each, each) for each in key.columns]


# --- the plan --------------------------------------------------------------------------------------


def plan_text(proposal: Proposal, names: Names) -> str:
    """The plan's document."""
    lines = [
        f"# How `shardgate fleet import` fills the tables from {names.source}.",
        "# Each table is named as the schema names it. docs/importing.md has every field.",
        "",
        f"database: {scalar(names.database)}",
        f"map: {scalar(names.map)}",
        "tables:",
    ]
    targets = {name: one.target for name, one in proposal.tables.items()}
    for one in proposal.tables.values():
        if not one.skip:
            lines += _planned(one, targets)
    skipped = [scalar(one.name) for one in proposal.tables.values() if one.skip]
    lines.append(f"skip: [{', '.join(skipped)}]" + ("  # no PRIMARY KEY" if skipped else ""))
    return "\n".join(lines) + "\n"


def _planned(one: Proposed, targets: Mapping[str, str]) -> Iterator[str]:
    table = one.table
    yield f"  {scalar(one.target)}:"
    before = True
    if one.target != one.name:
        before = False
        yield f"    from: {scalar(one.name)}"
    if one.renames:
        before = False
        yield f"    rename: {_flow(one.renames)}"
    if one.kind is Kind.OBJECT:
        before = False
        yield f"    id: {scalar(table.primary[0])}"
    for name in sorted(one.guessed):
        yield f"    # {name} is taken for an ID of {one.ids[name]} by its name: there is no FOREIGN KEY"
    suspects = [
        column.name
        for column in table.columns
        if column.name.lower().endswith("_id")
        and column.facts.type.integer
        and column.name not in one.ids
        and (column.name,) != table.primary
    ]
    for name in suspects:
        yield f"    # {name} is copied as it is: if it holds IDs of objects, name it in `ids`"
    if one.ids:
        before = False
        yield f"    ids: {_flow({name: targets[of] for name, of in one.ids.items()})}"
    if one.kind is Kind.OBJECT and one.follow:
        yield f"    # goes to the shard of its {one.follow}, as `colocate` says; `place: hash` spreads"
    if one.kind is Kind.MAPPING:
        dates = [each.name for each in table.columns if each.facts.type.kind in ("datetime", "timestamp")]
        before = False
        yield f"    sequence: {scalar(dates[0] if dates else one.to)}"
    if one.guessed:
        yield "    # dangling: {column: keep}: what is done with IDs of rows that are not there"
    if before:
        yield f"    from: {scalar(table.name)}"
