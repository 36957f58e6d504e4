"""`ImportedTable`: what plan, schema and both servers say of one table together, and the SQL of its columns.

A row of the source is read as: its key as SQL literals, the numbers in its columns with IDs, what orders it
(mapping tables), and all other columns as one text of SQL literals that the server itself has written. So no
value is converted on the way, and the same text of both servers is equal when the rows are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from config.columns import LOCAL_ID
from config.document import Document
from config.keys import may_count
from config.schema import SEQUENCE_TYPE, KeyType, Kind, Schema, Table, quote
from config.topology import Topology
from fleet.filling import literal_of
from fleet.importing.definitions import SourceColumn, SourceTable
from fleet.importing.plan import HASH, Dangling, Plan, PlannedTable

PADDING: Final = 10**25
"""Behind the milliseconds of a sequence with 38 digits."""
_DATES: Final = ("datetime", "timestamp", "date")
_OWN_TEXT: Final = ("json", "float", "double")
"""What the servers write in different ways: compared here when they are of two kinds."""


@dataclass(frozen=True)
class Copied:
    """A column that is copied as it is. `kind`: its type in the source, as information_schema calls it;
    `becomes`: in the target.
    """

    source: str
    target: str
    kind: str
    becomes: str

    @property
    def apart(self) -> bool:
        """Whether two kinds of servers write it in different ways."""
        return self.kind in _OWN_TEXT or self.becomes in _OWN_TEXT


@dataclass(frozen=True)
class Foreign:
    """A column with IDs of objects of the table `of`. What is done where there is no such row: `dangling`."""

    source: str
    target: str
    of: str
    dangling: Dangling = "fail"


@dataclass(frozen=True)
class ImportedTable:
    """One table. `key`: the columns of the source that tell its rows apart, in the order of an index. `id`:
    the old ID's, of an object table. `foreign` includes no `id`. `order`: SQL of what orders a mapping, whose
    value is written into `sequence` after multiplying by `padding`. `follow`: the column whose object's shard
    a new one shares.
    """

    table: Table
    source: str
    key: tuple[str, ...]
    id: str
    foreign: tuple[Foreign, ...]
    copied: tuple[Copied, ...]
    sequence: str = ""
    order: str = ""
    padding: int = 1
    follow: str = ""
    strict: bool = False

    @property
    def name(self) -> str:
        """The schema's."""
        return self.table.name

    def parent(self) -> Foreign | None:
        """Of which table's objects the shard is shared."""
        return next((one for one in self.foreign if one.source == self.follow), None)

    def kind_of(self, column: str) -> str:
        """The type of a column of the source; of an ID: bigint."""
        return next((one.kind for one in self.copied if one.source == column), "bigint")

    @property
    def bounds(self) -> tuple[str, ...]:
        """SQL of the key's columns that is ordered as its index is: of ENUM and SET that is by number."""
        return tuple(
            f"{quote(one)} + 0" if self.kind_of(one) in ("enum", "set") else quote(one) for one in self.key
        )


@dataclass(frozen=True)
class Import:
    """The whole of it: the tables in the order in which they are imported."""

    tables: tuple[ImportedTable, ...]
    map: Table

    def table(self, name: str) -> ImportedTable:
        """The table of that name in the schema."""
        return next(one for one in self.tables if one.name == name)


def joined(
    plan: Plan, document: Document, schema: Schema, topology: Topology, source: Mapping[str, SourceTable]
) -> Import | None:
    """What is to be imported; None after noting what cannot be, at its place in the plan's `document`."""
    checker = _Joining(plan, document, schema, topology, source)
    made = list(checker.tables())
    ids = checker.map()
    ordered = _ordered(made)
    if ordered is None:
        document.refuse(
            ("tables",), "objects that share each other's shard make a circle: `place: hash` for one"
        )
    if document.problems or ids is None or ordered is None:
        return None
    return Import(tuple(ordered), ids)


class _Joining:
    """Compares the plan with schema and source."""

    def __init__(
        self,
        plan: Plan,
        document: Document,
        schema: Schema,
        topology: Topology,
        source: Mapping[str, SourceTable],
    ) -> None:
        self._plan, self._document, self._topology, self._source = plan, document, topology, source
        found = schema.databases.get(plan.database)
        self._tables: Mapping[str, Table] = found.tables if found is not None else {}
        if found is None or found.passes_through:
            document.refuse(("database",), f"the schema has no database {plan.database!r} with tables")

    def map(self) -> Table | None:
        """The table of old and new IDs."""
        table = self._tables.get(self._plan.map)
        if table is None or table.kind is not Kind.HASHED or table.key_type is not KeyType.TEXT:
            self._document.refuse(
                ("map",),
                f"the schema has no hashed table {self._plan.map!r} with a text key and a column for the new "
                "ID: {kind: hashed, keyspace: …, key: old, columns: {old: VARCHAR(100) PRIMARY KEY, "
                "id: BIGINT UNSIGNED NOT NULL}}",
            )
            return None
        others = [one for one in table.columns if one.name.lower() != table.routing.lower()]
        if [one.type.kind for one in others] != ["bigint"] or self._plan.map in self._plan.tables:
            self._document.refuse(("map",), "is a table of its own, with a key and one BIGINT for the new ID")
            return None
        return table

    def tables(self) -> Iterator[ImportedTable]:
        """Those that can be imported; notes what is wrong with the others."""
        for name, planned in self._plan.tables.items():
            table, source = self._tables.get(name), self._source.get(planned.source)
            if table is None:
                self._refuse(name, f"the schema has no table {self._plan.database}.{name}")
            elif table.kind is Kind.TIMED:
                self._refuse(name, "is a timed table: its IDs are times, and none are made for old rows")
            elif not table.columns:
                self._refuse(name, "the schema declares no columns for it")
            elif source is None:
                self._refuse(name, f"the source has no table {planned.source!r}", "from")
            else:
                before = len(self._document.problems)
                made = self._table(planned, table, source)
                if len(self._document.problems) == before:
                    yield made
        named = {one.source for one in self._plan.tables.values()} | self._plan.skip
        for name in self._source.keys() - named:
            self._document.refuse(("tables",), f"says nothing of {name!r}: name it, or `skip` it")
        for name in sorted(self._plan.skip - self._source.keys()):
            self._document.refuse(("skip",), f"the source has no table {name!r}")

    def _refuse(self, name: str, message: str, field: str = "") -> None:
        place: tuple[str | int, ...] = ("tables", name)
        self._document.refuse((*place, field) if field else place, message)

    def _table(self, planned: PlannedTable, table: Table, source: SourceTable) -> ImportedTable:
        for field in ("key", "leave", "ids", "rename", "dangling"):
            for column in getattr(planned, field):
                found = source.column(column)
                if found is not None and found.name != column:
                    self._refuse(table.name, f"{column!r} is written {found.name!r} there", field)
                if found is None:
                    self._refuse(table.name, f"{source.name} has no column {column!r}", field)
        key = planned.key or source.primary
        if not key:
            self._refuse(table.name, f"{source.name} has no PRIMARY KEY: say `key`, or `skip` it")
        elif planned.key and not _is_unique(source, planned.key):
            self._refuse(table.name, "is no unique key without NULLs", "key")
        own = planned.id or (key[0] if len(key) == 1 else "")
        if table.kind is not Kind.OBJECT:
            own = ""
        elif (of := source.column(own)) is None or not of.facts.type.integer or tuple(key) != (own,):
            self._refuse(table.name, "the rows of an object table are told apart by their `id`, an integer")
        foreign = tuple(self._foreign(planned, table, own))
        copied = tuple(self._copied(planned, table, source, own))
        order, padding = self._order(planned, table, source)
        follow = self._follow(planned, table, foreign)
        self._complete(table, key, own, foreign, copied)
        return ImportedTable(
            table,
            source.name,
            tuple(key),
            own,
            foreign,
            copied,
            table.sequence_column or "" if order else "",
            order,
            padding,
            follow,
            bool(follow) and table.strict == _target(planned, follow),
        )

    def _foreign(self, planned: PlannedTable, table: Table, own: str) -> Iterator[Foreign]:
        for column, of in planned.ids.items():
            other = self._plan.tables.get(of)
            if other is None or of not in self._tables or self._tables[of].kind is not Kind.OBJECT:
                self._refuse(table.name, f"{column}: {of!r} is no object table that is imported", "ids")
                continue
            target = table.column(_target(planned, column))
            if column == own or column in planned.leave:
                self._refuse(table.name, f"{column!r} is not copied as an ID", "ids")
            elif target is None or target.type.kind != "bigint":
                self._refuse(
                    table.name, f"{_target(planned, column)!r} holds 64-bit IDs: must be BIGINT", "ids"
                )
            else:
                yield Foreign(column, target.name, of, planned.dangling.get(column, "fail"))
                if planned.dangling.get(column) == "null" and target.facts.not_null:
                    self._refuse(table.name, f"{column!r} is NOT NULL", "dangling")
        for column in planned.dangling.keys() - planned.ids.keys():
            self._refuse(table.name, f"{column!r} is none of the `ids`", "dangling")

    def _copied(self, planned: PlannedTable, table: Table, source: SourceTable, own: str) -> Iterator[Copied]:
        for column in source.columns:
            if column.name == own or column.name in planned.ids or column.name in planned.leave:
                continue
            target = table.column(_target(planned, column.name))
            if target is None:
                if not column.facts.generated:
                    text = f"has no column {_target(planned, column.name)!r}: `rename` or `leave` it"
                    self._refuse(table.name, text)
            elif not target.facts.generated:
                yield Copied(column.name, target.name, column.facts.type.kind, target.type.kind)

    def _order(self, planned: PlannedTable, table: Table, source: SourceTable) -> tuple[str, int]:
        """SQL of what orders the rows of a mapping, unless the source has such a column."""
        name = table.sequence_column
        if name is None or source.column(name) is not None or name in planned.rename.values():
            if planned.sequence:
                self._refuse(table.name, "is for mapping tables whose source has no such column", "sequence")
            return "", 1
        to = [one.name for one in source.columns if _target(planned, one.name) == table.to_column]
        by = planned.sequence or "".join(to)
        column = source.column(by)
        kind = table.column(name)
        padded = (
            kind is not None and (kind.type.kind, kind.type.length, kind.type.decimals or 0) == SEQUENCE_TYPE
        )
        if column is None or not (column.facts.type.integer or column.facts.type.kind in _DATES):
            self._refuse(table.name, f"{by!r} is neither a number nor a date: say `sequence`", "sequence")
        elif column.facts.type.kind in _DATES:
            since = f"TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {quote(by)}) DIV 1000"
            return f"IFNULL({since}, 0)", PADDING if padded else 1
        return f"IFNULL({quote(by)}, 0)", PADDING if padded else 1

    def _follow(self, planned: PlannedTable, table: Table, foreign: Sequence[Foreign]) -> str:
        if table.kind is not Kind.OBJECT:
            if planned.place:
                self._refuse(table.name, "is for object tables: others go by their keys", "place")
            return ""
        if planned.place == HASH:
            return ""
        colocate = table.colocate
        if not planned.place and (colocate is None or colocate.path is not None or not colocate.stored):
            return ""
        wanted = planned.place or (colocate.column if colocate is not None else "")
        for one in foreign:
            if one.source == planned.place or (not planned.place and one.target.lower() == wanted.lower()):
                keyspaces = {self._tables[one.of].keyspace, table.keyspace}
                if len(keyspaces) == 1:
                    return one.source
        text = f"{wanted!r} is none of the `ids` with objects of keyspace {table.keyspace}: say `place: hash`"
        self._refuse(table.name, text, "place" if planned.place else "")
        return ""

    def _complete(
        self, table: Table, key: Sequence[str], own: str, foreign: Sequence[Foreign], copied: Sequence[Copied]
    ) -> None:
        """Every column of the table gets a value, and its rows can be told apart."""
        names = {one.source: one.target.lower() for one in foreign}
        if table.kind is Kind.MAPPING and (table.from_column or "").lower() not in names.values():
            self._refuse(table.name, f"{table.from_column!r} says the shard: it is to be one of `ids`")
        names |= {one.source: one.target.lower() for one in copied}
        given = {*names.values(), (table.sequence_column or "").lower(), "local_id" if own else ""}
        for column in table.columns:
            facts = column.facts
            itself = facts.generated or facts.auto_increment or facts.default is not None
            if facts.not_null and not itself and column.name.lower() not in given:
                self._refuse(table.name, f"nothing gives a value for the column {column.name!r}")
        if missing := [one for one in key if one != own and one not in names]:
            self._refuse(table.name, f"{missing[0]!r} is of the key, and is not imported")
            return
        if table.kind is Kind.OBJECT:
            return
        wanted = {names[one] for one in key}
        if not any(set(columns) <= wanted for columns in table.unique_keys):
            listed = ", ".join(names[one] for one in key)
            self._refuse(table.name, f"has no UNIQUE KEY ({listed}) in the schema to find its rows by")
        for column in table.columns:
            if column.facts.auto_increment and not may_count(table, column.name):
                self._refuse(table.name, f"{column.name!r} cannot count over shards: {LOCAL_ID}")


def _target(planned: PlannedTable, column: str) -> str:
    return planned.rename.get(column, column)


def _is_unique(source: SourceTable, key: Sequence[str]) -> bool:
    wanted = {one.lower() for one in key}
    columns: list[SourceColumn | None] = [source.column(one) for one in key]
    sound = all(one is not None and one.facts.not_null for one in columns)
    return sound and any(one.unique and set(one.columns) <= wanted for one in source.keys)


def _ordered(tables: Sequence[ImportedTable]) -> list[ImportedTable] | None:
    """Tables whose shard is shared come first; then those that others refer to, as far as there is an order.
    None when tables share each other's shards.
    """
    left, made = list(tables), []

    def waits(one: ImportedTable, *, follows: bool = False) -> int:
        parents = {each.of for each in one.foreign if not follows or each.source == one.follow}
        return sum(other.name in parents for other in left if other is not one)

    while left:
        free = [one for one in left if not waits(one, follows=True)]
        if not free:
            return None
        ready = min(free, key=lambda one: (waits(one) > 0, not one.id, waits(one)))
        left.remove(ready)
        made.append(ready)
    return made


# --- the SQL of its columns ------------------------------------------------------------------------


def literals(columns: Sequence[tuple[str, str]]) -> str:
    """One text of the literals of columns, each with its kind."""
    return f"CONCAT_WS(',', {', '.join(literal_of(*one) for one in columns)})" if columns else "''"


def digest(columns: Sequence[tuple[str, str]]) -> str:
    """Stands for them when rows are compared. (Not every server has MD5() any more.)"""
    return f"SHA2({literals(columns)}, 256)"


def after(columns: Sequence[str], values: Sequence[str], *, last: bool = False) -> str:
    """The condition of being behind these values, in the order of `columns`, which are SQL; with `last`: of
    being them or before. So written that both servers read one range of an index.
    """
    sign, (name, value) = "<" if last else ">", (columns[0], values[0])
    if len(columns) == 1:
        return f"{name} {sign}{'=' if last else ''} {value}"
    rest = after(columns[1:], values[1:], last=last)
    return f"({name} {sign}= {value} AND ({name} {sign} {value} OR ({name} = {value} AND {rest})))"


def among(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The condition of being one of these rows."""
    if len(columns) == 1:
        return f"{quote(columns[0])} IN ({','.join(row[0] for row in rows)})"
    names = ", ".join(map(quote, columns))
    first = ",".join(dict.fromkeys(row[0] for row in rows))
    listed = ",".join(f"({','.join(row)})" for row in rows)
    return f"({quote(columns[0])} IN ({first}) AND ({names}) IN ({listed}))"
