"""What each table of an unsharded database could be over shards: pure, by its keys and references.

    object      its PRIMARY KEY counts itself (AUTO_INCREMENT), and it is not small
    reference   small, and refers to nothing
    mapping     its PRIMARY KEY begins with an object's ID, and goes on with another ID or number
    hashed      its PRIMARY KEY is a text, or begins with an object's ID
    single      everything else

Where there are no FOREIGN KEYs, columns that are called like a table (`user_id`, `users`), or like another's
own ID, are taken for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from config.schema import Kind
from fleet.importing.definitions import SourceColumn, SourceTable
from fleet.importing.names import renames

SMALL: Final = 1000
"""Rows of what may be a reference table."""
_NARROW: Final = 5
"""Columns of it."""


@dataclass
class Proposed:
    """What a table could be. `ids`: tables by the columns that have their objects' IDs; `guessed` of these
    by name. `follow`: the column whose object's shard a new one shares; `others` would do as well. `routing`:
    the key of a hashed table, the from-column of a mapping; `to`: its other. `target`: what the schema calls
    the table; `renames`: other names of columns there. All others are the source's. `doubts`: what
    two readers of the definition see in different ways.
    """

    table: SourceTable
    kind: Kind
    why: str
    ids: dict[str, str] = field(default_factory=dict)
    guessed: set[str] = field(default_factory=set)
    follow: str = ""
    others: tuple[str, ...] = ()
    routing: str = ""
    to: str = ""
    skip: bool = False
    target: str = ""
    renames: dict[str, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The table's in the source."""
        return self.table.name

    def column(self, name: str) -> str:
        """What the schema calls a column of the source."""
        return self.renames.get(name, name)


class Proposal:
    """All tables of a database. `rows`: how many they have, about, where that is known. `root`: the table
    that others are to be near to, "" for the one that most refer to.
    """

    def __init__(self, tables: Mapping[str, SourceTable], rows: Mapping[str, int], root: str = "") -> None:
        self._tables, self._rows = tables, rows
        self._links = {name: dict(self._referred(one)) for name, one in tables.items()}
        self._objects = {name for name, one in tables.items() if self._counts(one) and not self._small(one)}
        self.root = root or self._most_referred()
        self.tables = {name: self._proposed(one) for name, one in tables.items()}
        self._colocate()
        names = renames(tables)
        for name, one in self.tables.items():
            one.target = names.get(name, name)
            own = one.table.primary[0] if one.kind is Kind.OBJECT else ""
            columns = [each.name for each in one.table.columns if each.name != own]
            one.renames = renames(columns, ("id", "local_id") if own else ())

    # --- what refers to what -----------------------------------------------------------------------

    def _referred(self, table: SourceTable) -> Iterator[tuple[str, tuple[str, str, bool]]]:
        """By column: the table and column that it refers to, and whether that is a guess."""
        sure = set()
        for reference in table.references:
            other = self._tables.get(reference.table)
            wanted = reference.wanted or (other.primary if other is not None else ())
            for column, theirs in zip(reference.columns, wanted, strict=False):
                found = table.column(column)
                if other is not None and found is not None and found.name not in sure:
                    sure.add(found.name)
                    yield found.name, (other.name, theirs, False)
        for one in table.columns:
            if one.name in sure or not one.facts.type.integer or (one.name,) == table.primary:
                continue
            guess = self._guess(one.name.lower())
            if guess is not None:
                yield one.name, (guess.name, guess.primary[0], True)

    def _guess(self, column: str) -> SourceTable | None:
        """The table whose IDs a column of that name seems to have: `user_id` those of users, or of the one
        that calls its own ID so.
        """
        stem = column.removesuffix("_id")
        for one in self._tables.values() if stem != column else ():
            if _called(one.name, stem) and self._counts(one):
                return one
        same = [
            one for one in self._tables.values() if self._counts(one) and one.primary[0].lower() == column
        ]
        return same[0] if len(same) == 1 and column != "id" else None

    def _object_of(self, name: str, column: str, seen: frozenset[tuple[str, str]] = frozenset()) -> str:
        """The object table whose IDs the column has, through other tables that have them; "" for none."""
        table = self._tables[name]
        found = table.column(column)
        if found is None or (name, found.name) in seen:
            return ""
        if name in self._objects and table.primary == (found.name,):
            return name
        link = self._links[name].get(found.name)
        return self._object_of(link[0], link[1], seen | {(name, found.name)}) if link is not None else ""

    @staticmethod
    def _counts(table: SourceTable) -> bool:
        column = table.column(table.counted) if table.counted else None
        return column is not None and table.primary == (column.name,)

    def _small(self, table: SourceTable) -> bool:
        """Whether it could be a reference table."""
        if self._links[table.name] or len(table.columns) > _NARROW:
            return False
        if any(one.facts.type.long for one in table.columns):
            return False
        rows = self._rows.get(table.name, None if table.counter is None else table.counter - 1)
        return rows is not None and rows <= SMALL

    def _most_referred(self) -> str:
        """The object table that most others refer to, and that itself refers to no other first."""
        counts = dict.fromkeys(sorted(self._objects), 0)
        for links in self._links.values():
            for other in {one for one, _, _ in links.values()} & counts.keys():
                counts[other] += 1

        def weight(name: str) -> tuple[int, int]:
            outwards = {one for one, _, _ in self._links[name].values()} & self._objects - {name}
            return counts[name], -len(outwards)

        return max(counts, key=weight, default="")

    # --- what it could be ----------------------------------------------------------------------------

    def _proposed(self, table: SourceTable) -> Proposed:
        made = self._kind(table)
        own = table.primary[0] if made.kind is Kind.OBJECT else ""
        for column in table.columns:
            of = self._object_of(table.name, column.name) if column.name != own else ""
            if of:
                made.ids[column.name] = of
                if self._links[table.name][column.name][2]:
                    made.guessed.add(column.name)
        return made

    def _kind(self, table: SourceTable) -> Proposed:
        primary = table.primary
        if not primary:
            text = "has no PRIMARY KEY, so its rows cannot be told apart: give it one to import it"
            return Proposed(table, Kind.SINGLE, text, skip=True)
        if table.name in self._objects:
            return Proposed(table, Kind.OBJECT, f"{primary[0]} counts itself")
        if self._small(table) and len(primary) == 1:
            return Proposed(table, Kind.REFERENCE, "small, and refers to nothing")
        columns = [one for one in map(table.column, primary) if one is not None]
        ids = [one.name for one in columns if self._object_of(table.name, one.name)]
        if ids and (mapping := self._mapping(table, columns, ids)) is not None:
            return mapping
        if ids:
            return Proposed(table, Kind.HASHED, f"its key has the ID {ids[0]}", routing=ids[0])
        if len(columns) == 1 and columns[0].facts.type.kind in ("varchar", "char", "varbinary"):
            return Proposed(table, Kind.HASHED, f"found by {primary[0]}", routing=primary[0])
        if len(columns) == 1 and columns[0].facts.type.integer:
            return Proposed(table, Kind.HASHED, f"{primary[0]} is given, not counted", routing=primary[0])
        return Proposed(table, Kind.SINGLE, "its key names no object, and is of several columns")

    @staticmethod
    def _mapping(table: SourceTable, columns: list[SourceColumn], ids: list[str]) -> Proposed | None:
        """From its first ID to the next, or to the next number."""
        rest = [one for one in columns if one.name != ids[0]]
        to = next((one.name for one in rest if one.name in ids), "")
        to = to or next((one.name for one in rest if one.facts.type.integer), "")
        if not to or table.column("sequence") is not None:
            return None
        return Proposed(table, Kind.MAPPING, f"lists {to} by {ids[0]}", routing=ids[0], to=to)

    # --- which shard ---------------------------------------------------------------------------------

    def _colocate(self) -> None:
        """Each object follows one column, and nobody follows himself in a circle."""
        for one in self.tables.values():
            if one.kind is not Kind.OBJECT or one.name == self.root:
                continue
            ranked = sorted(
                (column for column, of in one.ids.items() if of != one.name),
                key=lambda column, one=one: self._rank(one, column),  # type: ignore[misc]
            )
            one.follow = next((each for each in ranked if not self._circle(one.name, one.ids[each])), "")
            one.others = tuple(each for each in ranked if each != one.follow)

    def _rank(self, one: Proposed, column: str) -> tuple[bool, bool, bool, bool, int]:
        """The best first: what is never NULL, goes with its parent, is of the root, and was no guess."""
        found = one.table.column(column)
        cascades = any(
            column in reference.columns and any(act.endswith("DELETE CASCADE") for act in reference.acts)
            for reference in one.table.references
        )
        null = found is None or not found.facts.not_null
        names = [each.name for each in one.table.columns]
        return null, not cascades, one.ids[column] != self.root, column in one.guessed, names.index(column)

    def _circle(self, name: str, parent: str) -> bool:
        seen = {name}
        while parent:
            if parent in seen:
                return True
            seen.add(parent)
            above = self.tables[parent]
            parent = above.ids[above.follow] if above.follow else ""
        return False


def _called(table: str, stem: str) -> bool:
    """Whether a table is called like what a column is of: `user` of users, `category` of categories."""
    name = table.lower()
    plural = f"{stem[:-1]}ies" if stem.endswith("y") else f"{stem}s"
    return name in (stem, plural, f"{stem}es")
