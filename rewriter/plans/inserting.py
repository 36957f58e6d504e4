"""The plan of an INSERT into a sharded table: rows to shards, one statement a shard."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

from config.topology import Host, Keyspace, Topology
from rewriter.bound import BindError, Bound, HostStatement, Inserted
from rewriter.plan import Access, Choose, Execution, Plan, Values
from rewriter.route.binding import host, keyspace_of, shard_missing, some_shard, why_not
from rewriter.route.by_id import RowById, member_of, quoted_member, row_by_id
from rewriter.route.column_metadata import ColumnMetadata
from rewriter.route.routing import Key
from rewriter.route.values import Value
from rewriter.rows import Folded, Repeat
from rewriter.splice import Template
from rewriter.sql.statements.effects import ConnectionState, Effects
from rewriter.text.literals import NotPlain

from .insert_rows import Hint, Row, Strict
from .sharded import assigned_by_several
from .unchanged import Stays, same_text

_VALUES: Final = re.compile(rb"VALUES?\s*$", re.IGNORECASE)


class _Placed(NamedTuple):
    """A row on its way to a shard: its place in the statement, its values, and the id or local id that was
    given or made for it (b"": none).
    """

    number: int
    row: Row
    values: Values
    id: bytes


_COMING: Final = (b"", b"0", b"NULL")
"""In the place of a local id, which the server makes then."""


class Alone(NamedTuple):
    """An INSERT of one row. `id`: the local id that the client gave (b"": none)."""

    host: Host
    shard: int
    sql: bytes
    database: bytes
    id_offset: int | None
    id: bytes

    @property
    def generated(self) -> bool:
        """Whether the server makes the local id."""
        return self.id in _COMING


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Insert(Plan):
    """INSERT or REPLACE into a sharded table: one statement a shard, `Bound.inserted` says what each adds.

    `before`, the rows and `behind` make a shard's statement. Behind the literals and session values their
    holes are: the shard's database, K, and (in a row) the row's local id. `type` is that of an object table.

    `timed`: a row without an `id` gets one that the proxy makes, and the hole is for the whole `id`. Ask
    `wanted_ids` how many each shard needs, and give them to `bind`. `returning`: it has a RETURNING clause,
    whose columns have these `column_metadata`. `ignore`: it says IGNORE. `asks`: see `Inserted`. `repeat`:
    the statement has many rows of the kinds in `rows` (rows.py). `strict`: that of the table. `same`:
    constants that ON DUPLICATE KEY UPDATE assigns, by column: every row must have these very values. `stays`:
    see unchanged.py. `dated`: the hole is for the row's number among those of its from-ID, in case it
    has no sequence.

    `short` is the whole statement, when it has one row, for which a shard is all that is to be found out;
    `by_id`: which one ID tells.
    """

    kind: ClassVar[str] = "insert"
    title: ClassVar[str] = "rows to shards"
    binds: ClassVar[bool] = True
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = True
    executed_as: ClassVar[Execution] = Execution.WITH_VALUES
    learns_columns: ClassVar[bool] = False
    lists_columns: ClassVar[bool] = True
    captures: ClassVar[ConnectionState] = ConnectionState.VARIABLES
    access: Access = Access.WRITE
    keyspace: str
    table: str
    type: int | None
    rows: tuple[Row, ...]
    before: Template
    behind: Template
    backslashes: bool = True
    timed: bool = False
    dated: bool = False
    returning: bool = False
    column_metadata: ColumnMetadata | None = None
    ignore: bool = False
    asks: bool = False
    repeat: Repeat | None = None
    strict: Strict | None = None
    same: tuple[tuple[str, Value], ...] = ()
    stays: tuple[Stays, ...] = ()
    short: Template | None = field(init=False, repr=False)
    by_id: RowById | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        odd = self.timed or self.dated or self.strict is not None or self.same or self.stays or self.effects
        alone = self.rows[0] if len(self.rows) == 1 and self.repeat is None and not odd else None
        parts = () if alone is None else (*self.before.parts, *alone.template.parts, *self.behind.parts)
        object.__setattr__(self, "short", None if alone is None else Template(parts))
        object.__setattr__(self, "by_id", None if alone is None else _by_id(alone.hints, self.type))

    def leaving(self, effects: Effects) -> Insert:
        kept = effects.of_one_shard()
        return self if kept is None else replace(self, effects=kept)

    @property
    def tables(self) -> tuple[str, ...]:
        """Its table, as `database.table`."""
        return (self.table,)

    @property
    def sharded_keyspace(self) -> str:
        return self.keyspace

    @property
    def sharded_tables(self) -> tuple[str, ...]:
        return (self.table,)

    @property
    def has_returning(self) -> bool:
        return self.returning

    def takes_rows(self, folded: Folded) -> bool:
        return len(self.rows) == len(folded.repeat.widths)

    def with_rows(self, folded: Folded) -> Insert:
        return replace(self, repeat=folded.repeat)

    def each(self, values: Values) -> Iterator[tuple[Row, Values]]:
        """The rows of one statement, each with the values that its template means."""
        if self.repeat is None:
            return ((row, values) for row in self.rows)
        views = self.repeat.views(values, len(self.session_slots))
        return ((self.rows[kind], view) for kind, view in views)

    def wanted_ids(self, values: Values, topology: Topology) -> dict[int, int]:
        """For each shard, how many rows of a timed table have no `id` of their own. Raises BindError."""
        keyspace = keyspace_of(topology, self.keyspace)
        wanted: dict[int, int] = {}
        for row, view in self.each(values):
            shard, id = self._place_timed(row, view, keyspace)
            if not id:
                wanted[shard] = wanted.get(shard, 0) + 1
        return wanted

    def bind(
        self,
        values: Values,
        topology: Topology,
        choose: Choose,
        ids: Mapping[int, Sequence[int]] = MappingProxyType({}),
        *,
        spread: bool = False,
    ) -> Bound:
        """`ids`: what was made for each shard. Without (to explain) an `id` that is to come is NULL.
        `spread`: rows that may be anywhere are not put together on one shard.
        """
        alone = self.at_one(values, topology, choose)
        if alone is not None:
            inserted = Inserted(
                alone.shard, alone.id_offset, 1, 0, 0, alone.generated, (0,),
                self.ignore, self.asks, _integer(alone.id),
            )  # fmt: skip
            return Bound((HostStatement(alone.host, (alone.shard,), alone.sql),), inserted=(inserted,))
        return self._bind_rows(values, topology, choose, ids, spread=spread)

    def at_one(self, values: Values, topology: Topology, choose: Choose) -> Alone | None:
        """The statement that `short` is; None: ask `bind`. Raises BindError."""
        if self.short is None:
            return None
        keyspace = keyspace_of(topology, self.keyspace)
        by_id = self.by_id
        if by_id is not None:
            found = row_by_id(values[by_id.literal], values, by_id, keyspace.places, self.short)
            if found is not None:
                return Alone(*found, b"")
        shard, id = self._place(self.rows[0], values, keyspace)
        if shard is None:
            shard = self._choose(keyspace, choose)
        place = keyspace.places.get(shard)
        if place is None:
            return None
        host, database = place
        id_offset = self._id_offset(keyspace, shard)
        sql = self.short.render((*values, database, b"%d" % (id_offset or 0), id))
        return Alone(host, shard, sql, database, id_offset, id)

    def _bind_rows(
        self,
        values: Values,
        topology: Topology,
        choose: Choose,
        ids: Mapping[int, Sequence[int]],
        *,
        spread: bool,
    ) -> Bound:
        keyspace = keyspace_of(topology, self.keyspace)
        by_shard: dict[int, list[_Placed]] = {}
        anywhere = -1
        generated: set[int] = set()
        coming = {shard: iter(made) for shard, made in ids.items()}
        lists: Counter[int | None] = Counter()
        for number, (row, view) in enumerate(self.each(values)):
            if self.same:
                self._check_same(row, view)
            if self.timed:
                home, id = self._place_timed(row, view, keyspace)
                if not id:
                    id = self._made(coming.get(home), first=home not in generated)
                    generated.add(home)
                by_shard.setdefault(home, []).append(_Placed(number, row, view, id))
                continue
            shard, local = self._place(row, view, keyspace)
            if self.strict is not None:
                shard = self._place_strictly(self.strict, row, view, keyspace, shard)
            if shard is None:
                if anywhere < 0 or spread:
                    anywhere = self._choose(keyspace, choose)
                shard = anywhere
            if local in _COMING:
                generated.add(shard)
            if self.dated:
                source = self._number(row.hints[-1], view)
                local = b"%d" % lists[source]
                lists[source] += 1
            by_shard.setdefault(shard, []).append(_Placed(number, row, view, local))
        for one in self.stays:
            one.check(values, list(by_shard), keyspace)
        if len(by_shard) > 1 and self.effects is not None and self.effects.variables:
            raise assigned_by_several("this INSERT", "Insert the rows of one shard at a time, or use SET.")
        alone = sum(map(len, by_shard.values())) == 1
        statements, inserted = [], []
        for shard in sorted(by_shard):
            id_offset = self._id_offset(keyspace, shard)
            placed = by_shard[shard]
            selects = not alone and len(placed) == 1 and placed[0].row.single_row
            sql = self._text(placed, keyspace.database_of(shard), id_offset, selects=selects)
            statements.append(HostStatement(host(keyspace, shard), (shard,), sql))
            numbers = tuple([one.number for one in placed])
            inserted.append(
                Inserted(
                    shard, id_offset, len(placed), numbers[0], numbers[-1], shard in generated, numbers,
                    self.ignore, self.asks, 0 if self.dated else _integer(placed[-1].id),
                )
            )  # fmt: skip
        whole = self._to_resolve(by_shard, values, keyspace)
        return Bound(tuple(statements), reference=whole, inserted=tuple(inserted))

    def to_prepare(self, values: Values, topology: Topology) -> HostStatement:
        """As `Sharded.to_prepare`."""
        keyspace = keyspace_of(topology, self.keyspace)
        return self._whole(values, keyspace, some_shard(keyspace))

    def _to_resolve(
        self, by_shard: dict[int, list[_Placed]], values: Values, keyspace: Keyspace
    ) -> HostStatement | None:
        """The whole statement for one of several shards: a server must be able to prepare it before any of
        them gets its rows, as a row might have an error of syntax or an unknown name. None: there is none.
        """
        if len(by_shard) < 2 or all(row.spellings == () for row in self.rows):
            return None
        if all(row.is_known(view) for row, view in self.each(values)):
            return None
        return self._whole(values, keyspace, min(by_shard))

    def _whole(self, values: Values, keyspace: Keyspace, shard: int) -> HostStatement:
        """All rows as a statement for one shard, of which a server may say what is wrong with it."""
        placed = []
        for number, (row, view) in enumerate(self.each(values)):
            given = next((hint.value for hint in row.hints if hint.form == "id"), None)
            known = given is not None and given.kind == "parameter"
            id = view[given.index] if given is not None and known else b"1"
            placed.append(_Placed(number, row, view, id))
        sql = self._text(placed, keyspace.database_of(shard), self._id_offset(keyspace, shard))
        return HostStatement(host(keyspace, shard), (shard,), sql)

    def _text(
        self, placed: list[_Placed], database: bytes, id_offset: int | None, *, selects: bool = False
    ) -> bytes:
        """A shard's statement. `selects`: its row is a SELECT."""
        common: list[bytes] = []
        last: Values = ()
        rows = []
        for _, row, view, id in placed:
            if view is not last:
                common, last = [*view, database, b"%d" % (id_offset or 0), b""], view
            common[-1] = id  # in place: a copy of all values for each row would be quadratic
            rows.append(row.template.render(common))
        before, text = self.before.render(common), b", ".join(rows)
        if selects:
            before, text = _VALUES.sub(b"", before), b"SELECT " + text.strip()[1:-1]
        return before + text + self.behind.render(common)

    def _id_offset(self, keyspace: Keyspace, shard: int) -> int | None:
        if self.type is None or keyspace.layout is None:
            return None
        return keyspace.layout.base(shard, self.type)

    def _choose(self, keyspace: Keyspace, choose: Choose) -> int:
        if not keyspace.open_shards:
            raise BindError("no_open_shard", keyspace=keyspace.name)
        return choose(keyspace.open_shards)

    def _made(self, coming: Iterator[int] | None, *, first: bool) -> bytes:
        """An `id` that the proxy has made. By LAST_INSERT_ID the server reports the first one of a statement
        as if it had made it itself.
        """
        made = next(coming, None) if coming is not None else None
        if made is None:
            return b"NULL"
        return b"LAST_INSERT_ID(%d)" % made if first else b"%d" % made

    def _place_timed(self, row: Row, values: Values, keyspace: Keyspace) -> tuple[int, bytes]:
        """The shard of a timed row, and the `id` that the client gave (b"": none). The ID, the shard key and
        a hint must lead to one shard, or the row would be looked for on another.
        """
        found: dict[int, str] = {}
        id = b""
        for hint in row.hints:
            if hint.form == "shard":
                found.setdefault(hint.shard, str(hint.shard))
                continue
            number = self._number(hint, values)
            if number is None or (hint.form == "id" and number == 0):
                continue
            if hint.form == "id":
                id = b"%d" % number
            found.setdefault(self._shard(hint, number, keyspace), str(number))
        if len(found) > 1:
            shards = " and ".join(map(str, found))
            raise self._invalid(list(found.values())[-1], f"its row belongs to shards {shards}")
        if not found:
            raise BindError(
                "unroutable_write",
                what=f"a row of {self.table}",
                reason="neither its id nor its shard key is given",
                alternative="Give one of them.",
            )
        return next(iter(found)), id

    def _place(self, row: Row, values: Values, keyspace: Keyspace) -> tuple[int | None, bytes]:
        """The shard of a row (None: any), and the local id that the client gave (b"": none)."""
        local = b""
        for hint in row.hints:
            if hint.form == "shard":
                return hint.shard, local
            if hint.column and hint.is_null(values):
                if not self.ignore:
                    raise BindError("key_null", column=hint.column)
                hint = replace(hint, value=Value("empty"))  # which the server makes of it
            if hint.form == "key" and hint.key.takes_text:
                return self._text_key(hint, values, keyspace), local
            number = self._number(hint, values)
            if number is None:
                local = b"NULL" if hint.form == "id" else local
                continue
            if hint.form == "id":
                if number == 0:  # as NULL does, it asks for the next number
                    local = b"0"
                    continue
                local = b"%d" % (number & (keyspace.layout.local_mask if keyspace.layout is not None else 0))
            return self._shard(hint, number, keyspace), local
        return None, local

    def _place_strictly(
        self, strict: Strict, row: Row, values: Values, keyspace: Keyspace, shard: int | None
    ) -> int | None:
        """The shard of the ID in the row's strict column, which must be `shard`, if that is known."""
        for hint in row.hints:
            if hint.form != "same":
                continue
            number = self._number(hint, values)
            if number is None:
                break
            found = self._shard(hint, number, keyspace)
            if shard is not None and shard != found:
                reason = f"its ID {number} is of shard {found}, the row would be on shard {shard}"
                table = self.table.partition(".")[2]
                raise BindError("strict_colocation", table=table, column=strict.column, reason=reason)
            return found
        else:
            return shard
        if not strict.nullable:
            raise BindError("key_null", column=strict.column)
        return shard

    def _check_same(self, row: Row, values: Values) -> None:
        """Raises BindError when ON DUPLICATE KEY UPDATE would change what places a row."""
        for column, value in self.same:
            form = "id" if column == "id" else "key"
            hint = next((one for one in row.hints if one.form == form), None)
            try:
                given = hint.value if hint is not None else None
                if hint is None or given is None:
                    alike = False
                elif hint.key.takes_text:
                    alike = same_text(given, value, values, hint.key)
                else:
                    alike = given.integer(values) == value.integer(values)
            except NotPlain:
                alike = False
            if not alike:
                name = self.table.partition(".")[2]
                raise BindError("routing_column_update", column=column, table=name)

    def ids(self, values: Values) -> list[int | None]:
        """The ID that places each row; None for one that no ID does. Raises BindError."""
        found: list[int | None] = []
        for row, view in self.each(values):
            numbers = (
                self._number(hint, view)
                for hint in row.hints
                if hint.key.rule in ("id", "object") and not hint.key.takes_text
            )
            found.append(next((one for one in numbers if one), None))
        return found

    def _number(self, hint: Hint, values: Values) -> int | None:
        """The integer that a hint gives; None when the row does not have it."""
        if hint.value is None or hint.is_null(values):
            return None
        if hint.form == "json":
            return self._json(hint, values)
        try:
            return hint.value.integer(values)
        except NotPlain:
            raise self._invalid("given", "it is no plain number", hint) from None

    def _json(self, hint: Hint, values: Values) -> int | None:
        if hint.value is None:
            return None
        quick = None
        if hint.value.kind in ("string", "parameter"):
            quick = _in_object(values[hint.value.index], hint.path)
        if quick is not None:
            return quick
        try:
            found = json.loads(hint.value.text(values, self.backslashes))
            for step in hint.path:
                found = found[step]
        except (NotPlain, ValueError, KeyError, IndexError, TypeError, RecursionError):
            return None  # the server will say what is wrong with the text
        if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 60:
            return int(found)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int):
            raise self._invalid(json.dumps(found)[:60], "it is no plain number")
        return found

    def _text_key(self, hint: Hint, values: Values, keyspace: Keyspace) -> int:
        """The shard of a row by its hashed key, which must be stored as it is sent: IGNORE, or a sql_mode
        that is not strict, would have it cut or mended, and so be another's.
        """
        assert hint.value is not None
        key = hint.key
        try:
            if key.longest:
                text = hint.value.text(values, key.backslashes)
                self._check_stored(text, key, "binary" if hint.value.is_bytes else key.text)
            return key.shard_of_value(hint.value, values, keyspace)
        except NotPlain:
            charset = hint.key.text not in ("utf-8", "binary")
            raise BindError(
                "unroutable_write",
                what="the row",
                reason="its key is no plain text" + " in UTF-8" * charset,
                alternative="SET NAMES utf8mb4." if charset else "Give the key as a quoted string.",
            ) from None

    def _check_stored(self, text: bytes, key: Key, encoding: str) -> None:
        """Raises BindError when the column would not hold the text as it is, and NotPlain when that cannot be
        told.
        """
        size = len(text)
        if size <= key.longest and text.isascii():
            return
        table = self.table.partition(".")[2]
        try:
            if key.text != "binary":
                size = len(text.decode("utf-8" if encoding == "binary" else encoding))
        except LookupError:
            raise NotPlain from None
        except UnicodeDecodeError:
            raise BindError("invalid_key", table=table) from None
        if size > key.longest:
            raise BindError("key_too_long", table=table, size=str(size), limit=str(key.longest))

    def _shard(self, hint: Hint, number: int, keyspace: Keyspace) -> int:
        key = hint.key
        if key.bounds is not None and not key.bounds[0] <= number <= key.bounds[1]:
            raise self._invalid(str(number)[:60], "its column holds no such number", hint)
        shard = key.shard_of_integer(number, keyspace)
        if shard is None:
            raise self._invalid(str(number), why_not(number, key), hint)
        if keyspace.host_of(shard) is None:
            raise shard_missing(number, shard, keyspace)
        return shard

    def _invalid(self, number: str, reason: str, hint: Hint | None = None) -> BindError:
        """`hint`: the column that the number is for."""
        what, remedy = "ID", "Leave out the id, or give one of this table."
        if hint is not None and hint.column:  # which the row must have
            hashed = hint.key.rule == "hash"
            what = "Key" if hashed else "ID"
            remedy = f"Give another '{hint.column}': it says where the row is."
        table = self.table.partition(".")[2]
        return BindError("invalid_id", what=what, id=number, table=table, reason=reason, alternative=remedy)


def _integer(id: bytes) -> int:
    return int(id) if id.isdigit() else 0


def _by_id(hints: tuple[Hint, ...], type: int | None) -> RowById | None:
    """How one row is placed by its only hint, when that is an ID that is written out."""
    if len(hints) != 1:
        return None
    hint, value, key = hints[0], hints[0].value, hints[0].key
    if value is None or key.layout is None or key.rule not in ("id", "object") or key.bounds is not None:
        return None
    member = b""
    if hint.form == "json":
        member = quoted_member(hint.path)
        if not member or value.kind not in ("string", "parameter"):
            return None
    elif hint.form not in ("key", "same") or value.kind not in ("integer", "parameter"):
        return None
    id_offset = None if type is None else key.layout.base(0, type)
    return RowById(value.index, member, key.bits(key.layout, 0), id_offset)


def _in_object(raw: bytes, path: tuple[str | int, ...]) -> int | None:
    """The integer at `path` of a JSON text as a literal has it; None when the text must be read to tell."""
    member = quoted_member(path)
    found = member_of(raw, member) if member else None
    return None if found is None else int(found)
