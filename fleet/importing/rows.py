"""One range of a table's rows: copied, or compared with what the shards have and mended.

Rows are read from the source in the order of their key, their IDs are looked up in the map, and each then
has one place, or every host for a reference table. Writing is REPLACE by the row's key: to do it again does
no harm.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from config.schema import KeyType, Kind, quote
from config.topology import Host, Topology
from fleet.core.errors import Failed
from fleet.core.hosts import Hosts, Row
from fleet.filling import literal_of
from fleet.importing.ids import Ids
from fleet.importing.source import Source
from fleet.importing.tables import Copied, ImportedTable, among, digest, literals
from fleet.importing.writing import pieces, transaction, unions

Place = tuple[Host, str]
"""A host and a database there."""
Values = tuple[int | str, ...]
_BATCH: Final = 2000
_BATCH_BYTES: Final = 8 << 20
_SHOWN: Final = 5
_ATTEMPTS: Final = 3
"""To see a row together with those that it refers to."""


@dataclass(frozen=True)
class Range:
    """Rows behind `after`, up to `upto` and with it: the literals of their keys; None: no bound."""

    after: tuple[str, ...] | None = None
    upto: tuple[str, ...] | None = None


@dataclass
class Outcome:
    """What came of a range. `rows` of the source, `skipped` of them by the plan, `changed` that were not as
    they are in the source; `dangling`: how many IDs of rows that are not there, by column; `refused` rows
    have some that may not be. `sums` are digests of all rows: as they should be, and as they are.
    """

    rows: int = 0
    skipped: int = 0
    changed: int = 0
    refused: int = 0
    dangling: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    sums: tuple[int, int] = (0, 0)

    def add(self, other: Outcome) -> None:
        """Both together."""
        self.rows += other.rows
        self.skipped += other.skipped
        self.changed += other.changed
        self.refused += other.refused
        for column, count in other.dangling.items():
            self.dangling[column] = self.dangling.get(column, 0) + count
        self.examples = [*self.examples, *other.examples][:_SHOWN]
        self.sums = (self.sums[0] ^ other.sums[0], self.sums[1] ^ other.sums[1])


@dataclass(frozen=True)
class _Read:
    """A row of the source: `text` has its other columns, as literals or their digest."""

    key: tuple[str, ...]
    old: int | None
    foreign: tuple[int | None, ...]
    order: int | None
    routing: Any
    apart: tuple[Any, ...]
    text: str


@dataclass(frozen=True)
class _Row:
    """A row as it is to be. `key`: its values in the target; `new`: its own ID."""

    read: _Read
    key: Values
    new: int | None
    foreign: tuple[int | None, ...]
    order: int | None
    places: tuple[Place, ...]


class Rows:
    """All of a table's rows, a range at a time. `canonical`: source and target are of two kinds."""

    def __init__(
        self,
        table: ImportedTable,
        source: Source,
        reader: Hosts,
        topology: Topology,
        hosts: Hosts,
        ids: Ids,
        *,
        canonical: bool,
    ) -> None:
        self.table, self._source, self._reader = table, source, reader
        self._topology, self._hosts, self._ids = topology, hosts, ids
        self._keyspace = topology.keyspaces[table.table.keyspace]
        self._apart = [one for one in table.copied if canonical and one.apart]
        self._plain = [one for one in table.copied if one not in self._apart]
        self._where = f"{quote(source.database)}.{quote(table.source)}"
        routed = [one for one in table.copied if one.target.lower() == table.table.routing.lower()]
        self._routed = routed[0] if routed and table.table.kind is Kind.HASHED else None

    # --- the source --------------------------------------------------------------------------------

    def _select(self, *, whole: bool) -> str:
        table = self.table
        wanted = [literal_of(one, table.kind_of(one)) for one in table.key]
        wanted += [quote(table.id)] if table.id else []
        wanted += [quote(one.source) for one in table.foreign]
        wanted += [table.order] if table.order else []
        wanted += [_routing(self._routed, table.table.key_type)] if self._routed else []
        wanted += [] if whole else [_apart(one.source, one.kind) for one in self._apart]
        if whole:
            wanted.append(literals([(one.source, one.kind) for one in table.copied]))
        else:
            wanted.append(digest([(one.source, one.kind) for one in self._plain]))
        return f"SELECT {', '.join(wanted)} FROM {self._where}"

    def _read(self, row: Row, *, whole: bool) -> _Read:
        table, values = self.table, list(row)
        text = values.pop()
        if text is None:
            raise Failed(
                f"{self._source.name}: a row of {table.source} is larger than max_allowed_packet there, as "
                "literals, of which those of BLOBs are twice as long: raise it there and on the masters"
            )
        key = tuple(map(str, values[: len(table.key)]))
        rest = iter(values[len(table.key) :])
        old = int(next(rest)) if table.id else None
        foreign = tuple(None if one is None else int(one) for one in (next(rest) for _ in table.foreign))
        order = int(next(rest)) if table.order else None
        routing = next(rest) if self._routed else None
        return _Read(key, old, foreign, order, routing, () if whole else tuple(rest), str(text))

    async def _batches(self, condition: str, *, whole: bool) -> AsyncIterator[list[_Read]]:
        """Rows of the source, not too many at a time."""
        order = ", ".join(map(quote, self.table.key))
        sql = f"{self._select(whole=whole)} WHERE {condition} ORDER BY {order}"
        batch: list[_Read] = []
        size = 0
        async for row in self._reader.stream(self._source.address, sql):
            read = self._read(row, whole=whole)
            if batch and (len(batch) >= _BATCH or size + len(read.text) > _BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(read)
            size += len(read.text)
        if batch:
            yield batch

    # --- IDs and places ------------------------------------------------------------------------------

    async def _resolved(self, batch: Sequence[_Read], outcome: Outcome, *, whole: bool) -> list[_Row]:
        """The rows as they are to be; those that the plan skips, and those that may not be, are left out.
        A row that refers to one that is not there is read again: both may be gone by now.
        """
        for left in reversed(range(_ATTEMPTS)):
            made, refused, found = await self._judged(batch)
            if not refused or not left:
                break
            condition = among(self.table.key, [one.key for one in refused])
            again = [one async for some in self._batches(condition, whole=whole) for one in some]
            batch = [*(one for one in batch if one not in refused), *again]
        found.rows = len(batch)
        outcome.add(found)
        return made

    async def _judged(self, batch: Sequence[_Read]) -> tuple[list[_Row], list[_Read], Outcome]:
        """The rows as they are to be, those that may not be, and what is to be told of them."""
        table, outcome, refused = self.table, Outcome(), []
        news = await self._own(batch)
        known = []
        for index, one in enumerate(table.foreign):
            wanted = {old for row in batch if (old := row.foreign[index]) is not None}
            known.append(await self._ids.ensure(one.of, wanted))
        made = []
        for row in batch:
            before = outcome.refused
            foreign, left_out = self._foreign(row, known, outcome)
            if outcome.refused > before:
                refused.append(row)
            elif not left_out:
                new = None if row.old is None else news[row.old]
                made.append(self._row(row, new, foreign))
        return made, refused, outcome

    async def _own(self, batch: Sequence[_Read]) -> dict[int, int]:
        """The new IDs of an object table's rows."""
        table = self.table
        if not table.id:
            return {}
        at = next((index for index, one in enumerate(table.foreign) if one.source == table.follow), None)
        followed = {row.old: None if at is None else row.foreign[at] for row in batch if row.old is not None}
        news = await self._ids.ensure(table.name, list(followed), followed)
        parent = table.parent()
        if table.strict and parent is not None:
            _, layout, _ = self._ids.keyspace(table)
            parents = await self._ids.ensure(parent.of, [one for one in followed.values() if one is not None])
            shards = {
                old: shard
                for old, by in followed.items()
                if by in parents
                and (shard := layout.shard_of(parents[by])) is not None
                and shard != layout.shard_of(news[old])
            }
            if shards:
                news |= await self._ids.move(table.name, shards)
        return news

    def _foreign(
        self, row: _Read, known: Sequence[Mapping[int, int]], outcome: Outcome
    ) -> tuple[tuple[int | None, ...], bool]:
        """The new IDs in its columns, and whether the row is left out."""
        found: list[int | None] = []
        for one, old, news in zip(self.table.foreign, row.foreign, known, strict=True):
            new = None if old is None else news.get(old)
            if old is not None and new is None:
                outcome.dangling[one.source] = outcome.dangling.get(one.source, 0) + 1
                if one.dangling in ("skip", "fail"):
                    outcome.skipped += one.dangling == "skip"
                    outcome.refused += one.dangling == "fail"
                    if one.dangling == "fail" and len(outcome.examples) < _SHOWN:
                        outcome.examples.append(f"({', '.join(row.key)}): {one.source} = {old}")
                    return (), True
                new = old if one.dangling == "keep" else None
            found.append(new)
        return tuple(found), False

    def _row(self, read: _Read, new: int | None, foreign: tuple[int | None, ...]) -> _Row:
        table = self.table
        by_column = dict(zip((one.source for one in table.foreign), foreign, strict=True))
        key: list[int | str] = []
        for column, literal in zip(table.key, read.key, strict=True):
            if column == table.id:
                key.append(read.old or 0)
            elif column in by_column:
                key.append(by_column[column] or 0)
            else:
                key.append(_key_value(literal, table.kind_of(column)))
        order = None if read.order is None else read.order * table.padding
        return _Row(read, tuple(key), new, foreign, order, self._places(read, new, foreign))

    def _places(self, read: _Read, new: int | None, foreign: tuple[int | None, ...]) -> tuple[Place, ...]:
        table, keyspace = self.table.table, self._keyspace
        if table.kind is Kind.REFERENCE:
            return tuple((host, keyspace.database) for host in self._topology.hosts)
        if table.kind is Kind.SINGLE:
            assert keyspace.master is not None
            return ((keyspace.master, keyspace.database),)
        routing: Any = new if table.kind is Kind.OBJECT else read.routing
        for one, value in zip(self.table.foreign, foreign, strict=True):
            if one.target.lower() == table.routing.lower():
                routing = value
        if table.kind is Kind.HASHED:
            key = routing.encode() if isinstance(routing, str) else routing
            shard = None if key is None else keyspace.shard_of_key(key)
        else:
            assert keyspace.layout is not None
            shard = None if routing is None else keyspace.layout.shard_of(int(routing))
        if shard is None or shard not in keyspace.places:
            raise Failed(
                f"{self._source.name}: the row ({', '.join(read.key)}) of {self.table.source} belongs to no "
                f"shard of {keyspace.name}: its {table.routing} is {routing!r}"
            )
        host, database = keyspace.places[shard]
        return ((host, database.decode()),)

    # --- the target ----------------------------------------------------------------------------------

    @property
    def _key_columns(self) -> list[str]:
        """The key's columns in the target."""
        names = {one.source: one.target for one in self.table.foreign}
        names |= {one.source: one.target for one in self.table.copied}
        return ["local_id" if one == self.table.id else names[one] for one in self.table.key]

    def _values(self, row: _Row) -> str:
        table = self.table
        values = [str(row.read.old)] if table.id else []
        values += ["NULL" if one is None else str(one) for one in row.foreign]
        values += [str(row.order)] if table.order else []
        values += [row.read.text] if table.copied else []
        return f"({','.join(values)})"

    async def _write(self, rows: Sequence[_Row]) -> None:
        table = self.table
        columns = ["local_id"] if table.id else []
        columns += [one.target for one in table.foreign]
        columns += [table.sequence] if table.order else []
        columns += [one.target for one in table.copied]
        listed = ", ".join(map(quote, columns))
        by_place: dict[Place, list[str]] = {}
        for row in rows:
            for place in row.places:
                by_place.setdefault(place, []).append(self._values(row))
        statements: dict[Host, list[str]] = {}
        for (host, database), values in by_place.items():
            head = f"REPLACE INTO {quote(database)}.{quote(table.name)} ({listed}) VALUES "
            statements.setdefault(host, []).extend(head + ",".join(some) for some in pieces(values))
        await transaction(self._hosts, statements)

    def _target_select(self, place: Place) -> str:
        """What is compared of rows there: the key, IDs, order, and the digest of the rest."""
        table = self.table
        copied = {one.source: one for one in table.copied}
        columns = [
            literal_of(target, copied[one].kind) if one in copied else quote(target)
            for one, target in zip(table.key, self._key_columns, strict=True)
        ]
        columns += [quote(one.target) for one in table.foreign]
        columns += [quote(table.sequence)] if table.order else []
        columns += [_apart(one.target, one.becomes) for one in self._apart]
        columns.append(digest([(one.target, one.kind) for one in self._plain]))
        return f"SELECT {', '.join(columns)} FROM {quote(place[1])}.{quote(table.name)}"

    async def _there(self, rows: Sequence[_Row]) -> dict[tuple[Host, Values], Values]:
        """What the target has of these rows, by host and key."""
        by_place: dict[Place, list[Sequence[str]]] = {}
        for row in rows:
            for place in row.places:
                by_place.setdefault(place, []).append([str(one) for one in row.key])
        selects: dict[Host, list[str]] = {}
        for place, keys in by_place.items():
            condition = among(self._key_columns, keys)
            selects.setdefault(place[0], []).append(f"{self._target_select(place)} WHERE {condition}")
        found = {}
        for host, held in (await unions(self._hosts, selects)).items():
            for one in held:
                key, value = self._compared(one)
                found[host, key] = value
        return found

    def _compared(self, row: Row) -> tuple[Values, Values]:
        """Key and value of a row of the target, as `_expected` has them."""
        table, width = self.table, len(self.table.key)
        copied = {one.source for one in table.copied}
        key = tuple(
            _key_value(value, table.kind_of(one)) if one in copied else int(value or 0)
            for one, value in zip(table.key, row[:width], strict=True)
        )
        first = width + len(table.foreign) + bool(table.order)
        numbers = tuple("NULL" if one is None else int(one) for one in row[width:first])
        kinds = [_kind_of(one) for one in self._apart]
        apart = tuple(_canonical(one, kind) for one, kind in zip(row[first:-1], kinds, strict=True))
        return key, (*numbers, *apart, str(row[-1]))

    def _expected(self, row: _Row) -> Values:
        """The value of a row: its IDs, what orders it, and the digest of the rest."""
        numbers = ["NULL" if one is None else one for one in row.foreign]
        order = [] if row.order is None else [row.order]
        kinds = [_kind_of(one) for one in self._apart]
        apart = [_canonical(one, kind) for one, kind in zip(row.read.apart, kinds, strict=True)]
        return (*numbers, *order, *apart, row.read.text)

    # --- what is done with a range -------------------------------------------------------------------

    async def copy(self, condition: str) -> Outcome:
        """Write all of them, whatever is there."""
        outcome = Outcome()
        async for batch in self._batches(condition, whole=True):
            rows = await self._resolved(batch, outcome, whole=True)
            await self._write(rows)
            outcome.changed += len(rows)
        return outcome

    async def compare(self, condition: str, *, mend: bool) -> Outcome:
        """Look which rows are not as in the source; `mend`: write those."""
        outcome = Outcome()
        async for batch in self._batches(condition, whole=False):
            rows = await self._resolved(batch, outcome, whole=False)
            found = await self._there(rows)
            wrong = []
            wanted = there = 0
            for row in rows:
                expected = self._expected(row)
                held = [found.get((host, row.key)) for host, _ in row.places]
                if any(one != expected for one in held):
                    wrong.append(row)
                wanted ^= _sum(row.key, expected)
                there ^= _sum(row.key, held[0]) if held[0] is not None else 0
            outcome.sums = (outcome.sums[0] ^ wanted, outcome.sums[1] ^ there)
            outcome.changed += len(wrong)
            if len(outcome.examples) < _SHOWN and not mend:
                outcome.examples += [f"({', '.join(row.read.key)})" for row in wrong[:_SHOWN]]
            if mend and wrong:
                await self._mend(wrong)
        return outcome

    async def _mend(self, wrong: Sequence[_Row]) -> None:
        """Write these rows, read again in full. One that is gone by now is left for the next pass."""
        keys = [row.read.key for row in wrong]
        for at in range(0, len(keys), _BATCH):
            condition = among(self.table.key, keys[at : at + _BATCH])
            async for batch in self._batches(condition, whole=True):
                await self._write(await self._resolved(batch, Outcome(), whole=True))

    async def count(self) -> dict[Place, int]:
        """How many rows each database has."""
        selects: dict[Host, list[str]] = {}
        for host, database in self.places():
            selects.setdefault(host, []).append(
                f"SELECT '{database}', COUNT(*) FROM {quote(database)}.{quote(self.table.name)}"
            )
        counted = await unions(self._hosts, selects)
        return {(host, str(name)): int(count) for host, rows in counted.items() for name, count in rows}

    def places(self) -> list[Place]:
        """All databases that have the table."""
        keyspace = self._keyspace
        if self.table.table.kind is Kind.REFERENCE:
            return [(host, keyspace.database) for host in self._topology.hosts]
        if not keyspace.sharded:
            assert keyspace.master is not None
            return [(keyspace.master, keyspace.database)]
        return [(host, name.decode()) for host, name in keyspace.places.values()]

    async def extras(self, place: Place, *, mend: bool) -> int:
        """How many rows a database has that the source has not, or that belong elsewhere; `mend`: delete
        them.
        """
        columns, count = self._key_columns, 0
        order = ", ".join(map(quote, columns))
        held: list[Values] = []
        shown = self._target_select(place)
        async for row in self._hosts.stream(place[0], f"{shown} ORDER BY {order}"):
            held.append(self._compared(row)[0])
            if len(held) >= _BATCH:
                count += await self._extra(place, held, mend=mend)
                held = []
        return count + (await self._extra(place, held, mend=mend) if held else 0)

    async def _extra(self, place: Place, keys: Collection[Values], *, mend: bool) -> int:
        """Of these rows of a database."""
        olds = {self._old_key(key): key for key in keys}
        condition = among(self.table.key, list(olds))
        right: set[Values] = set()
        async for batch in self._batches(condition, whole=False):
            for row in await self._resolved(batch, Outcome(), whole=False):
                if place in row.places:
                    right.add(row.key)
        wrong = [key for key in keys if key not in right]
        if mend and wrong:
            listed = among(self._key_columns, [[str(one) for one in key] for key in wrong])
            sql = f"DELETE FROM {quote(place[1])}.{quote(self.table.name)} WHERE {listed}"
            await transaction(self._hosts, {place[0]: [sql]})
            await self._forget(wrong)
        return len(wrong)

    async def _forget(self, gone: Sequence[Values]) -> None:
        """The map has no rows that the source has not any more."""
        if not self.table.id:
            return
        olds = [int(key[0]) for key in gone]
        listed = among([self.table.id], [[str(one)] for one in olds])
        sql = f"SELECT {quote(self.table.id)} FROM {self._where} WHERE {listed}"
        kept = {int(one) for (one,) in await self._reader.query(self._source.address, sql)}
        await self._ids.drop(self.table.name, [one for one in olds if one not in kept])

    def _old_key(self, key: Values) -> tuple[str, ...]:
        """The key in the source of a row of the target: an ID has the old one in it."""
        found = []
        foreign = {one.source: one.of for one in self.table.foreign}
        for column, value in zip(self.table.key, key, strict=True):
            if column in foreign and isinstance(value, int):
                _, layout, _ = self._ids.keyspace(self._ids.table(foreign[column]))
                value &= layout.local_mask
            found.append(str(value))
        return tuple(found)


def _key_value(value: object, kind: str) -> str:
    """A literal of a key: of floating point numbers one that is the same of all servers."""
    return repr(float(str(value))) if kind in ("float", "double") else str(value)


def _routing(column: Copied, key_type: KeyType | None) -> str:
    """SQL that gives what a hashed row is routed by."""
    return (
        f"CONVERT({quote(column.source)} USING utf8mb4)" if key_type is KeyType.TEXT else quote(column.source)
    )


def _apart(column: str, kind: str) -> str:
    return f"{quote(column)} + 0e0" if kind in ("float", "double") else quote(column)


def _kind_of(column: Copied) -> str:
    return "json" if "json" in (column.kind, column.becomes) else column.becomes


def _canonical(value: Any, kind: str) -> str:
    """The same for equal values of two kinds of servers."""
    if value is None:
        return "NULL"
    if kind == "json":
        try:
            return json.dumps(json.loads(value), sort_keys=True)
        except ValueError:
            return str(value)
    return repr(value)


def _sum(key: Values, value: Values) -> int:
    """Stands for a row in the sum of all."""
    text = repr((key, value)).encode()
    return int.from_bytes(hashlib.md5(text, usedforsecurity=False).digest(), "big")
