"""Writes of what a SELECT gives: the plan, and what becomes of its rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from itertools import repeat
from typing import Any, ClassVar, Final, NamedTuple, Protocol

from rewriter.plan import Access, Execution, Plan, Values
from rewriter.splice import Template
from rewriter.sql.statements.effects import ConnectionState

from .rowkeys import RowKey

_FRACTION: Final = re.compile(r"-?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]{1,3})?|-?[0-9]+\.")
_LARGE: Final = 1 << 64

Row = tuple[bytes, ...]
"""A row of the SELECT, as SQL literals."""


class Writes(Protocol):
    """What becomes of the rows that the SELECT has given."""

    def statements(self, values: Values, rows: Sequence[Row], chunk: int) -> list[bytes]:
        """The statements to run, one after another. `chunk`: so many keys may be in one."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadThenWrite(Plan):
    """A write of what a SELECT gives: `select` is planned and run by itself, then the `writes`, each by the
    ordinary way.

    `nothing`: what the client is told when there is no row. `rows`: the writes insert its rows, whose number
    the client is told. `ignore`: it says IGNORE. `strict`: strict mode makes errors of the SELECT's
    warnings, unless the statement says IGNORE. `on_duplicate`: it inserts and says ON DUPLICATE KEY UPDATE.
    `assigns_id`: LAST_INSERT_ID(value) stands in it.
    """

    kind: ClassVar[str] = "read_write"
    title: ClassVar[str] = "read by a SELECT, then written"
    binds: ClassVar[bool] = False
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = True
    executed_as: ClassVar[Execution] = Execution.WITH_VALUES
    learns_columns: ClassVar[bool] = False
    lists_columns: ClassVar[bool] = True
    captures: ClassVar[ConnectionState] = ConnectionState.ALL  # each statement is planned by itself
    access: Access = Access.WRITE
    select: Template
    writes: Writes
    nothing: bytes = b""
    rows: bool = False
    ignore: bool = False
    strict: bool = True
    on_duplicate: bool = False
    assigns_id: bool = False

    @property
    def is_expensive(self) -> bool:
        return True

    @property
    def changes(self) -> bool:
        """Whether it is an UPDATE or DELETE."""
        return isinstance(self.writes, ChangeRows | SeveralChanges)

    def example(self, values: Values) -> list[bytes]:
        """The statements for a row that stands for all."""
        row = _Anything()
        row.width = len(self.writes.forms) if isinstance(self.writes, FillIn) else 1
        return self.writes.statements(values, [row], 1)


class _Anything(tuple[bytes, ...]):
    """A row with … in every place."""

    width = 1

    def __getitem__(self, index: object) -> Any:
        if isinstance(index, slice):
            return ("…".encode(),) * (index.stop - index.start)
        return "…".encode()

    def __iter__(self) -> Iterator[bytes]:
        return repeat("…".encode(), self.width)


@dataclass(frozen=True, slots=True)
class InsertRows:
    """INSERT … SELECT: `head` VALUES rows `tail`."""

    head: Template
    tail: Template

    def statements(self, values: Values, rows: Sequence[Row], chunk: int) -> list[bytes]:
        del chunk
        if not rows:
            return []
        joined = b", ".join([b"(" + b", ".join(row) + b")" for row in rows])
        return [self.head.render(values) + b" VALUES " + joined + self.tail.render(values)]


class Setting(NamedTuple):
    """`column` = of an UPDATE: an expression for the write itself, or the index in a row of what was read."""

    column: Template
    value: Template | int


@dataclass(frozen=True, slots=True)
class ChangeRows:
    """An UPDATE or DELETE of one table's rows by their key.

    `head` stands before the settings (of an UPDATE) or before WHERE. The key's values stand in a row from
    `first` on. `tail`: a condition that must still be true. `limited`: the SELECT has chosen among rows that
    may be alike.
    """

    head: Template
    settings: tuple[Setting, ...]
    key: RowKey
    first: int
    tail: Template
    limited: bool = False

    def statements(self, values: Values, rows: Sequence[Row], chunk: int) -> list[bytes]:
        width = len(self.key.columns)
        found: dict[Row, Row] = {}
        counts: dict[Row, int] = {}
        for row in rows:
            key = row[self.first : self.first + width]
            if key[0] == b"NULL":
                continue  # an outer join has found none
            found.setdefault(key, row)
            counts[key] = counts.get(key, 0) + 1
        keys = list(found)
        head, tail = self.head.render(values), self.tail.render(values)
        if self.limited and self.key.whole:
            return [
                head + self._set(values, [key], found) + b" WHERE " + self._where([key]) + tail
                + b" LIMIT %d" % counts[key]
                for key in keys
            ]  # fmt: skip
        if width > 1 or not keys:  # what one statement changes could look like what the next one looks for
            chunk = max(len(keys), 1)
        parts = [keys[at : at + chunk] for at in range(0, len(keys), chunk)]
        return [
            head + self._set(values, part, found) + b" WHERE " + self._where(part) + tail for part in parts
        ]

    def _set(self, values: Values, keys: list[Row], found: dict[Row, Row]) -> bytes:
        parts = []
        for one in self.settings:
            if isinstance(one.value, Template):
                value = one.value.render(values)
            else:
                value = self._value(keys, [found[key][one.value] for key in keys])
            parts.append(one.column.render(values) + b" = " + value)
        return b", ".join(parts)

    def _value(self, keys: list[Row], values: list[bytes]) -> bytes:
        """One value for all rows, or each row's own by its key."""
        if len(set(values)) == 1:
            return values[0]
        if len(self.key.columns) == 1:
            cases = [b" WHEN %b THEN %b" % (key[0], value) for key, value in zip(keys, values, strict=True)]
            return b"CASE " + self.key.columns[0] + b"".join(cases) + b" END"
        cases = [
            b" WHEN " + self._one(key) + b" THEN " + value for key, value in zip(keys, values, strict=True)
        ]
        return b"CASE" + b"".join(cases) + b" END"

    def _where(self, keys: list[Row]) -> bytes:
        columns = self.key.columns
        listed = b", ".join(dict.fromkeys(key[0] for key in keys))
        narrowed = columns[0] + b" IN (" + listed + b")"
        if len(columns) == 1:
            return narrowed
        if self.key.whole:
            return narrowed + b" AND (" + b" OR ".join(map(self._one, keys)) + b")"
        tuples = b", ".join([b"(" + b", ".join(key) + b")" for key in keys])
        return narrowed + b" AND (" + b", ".join(columns) + b") IN (" + tuples + b")"

    def _one(self, key: Row) -> bytes:
        """The condition that names one row."""
        pairs = zip(self.key.columns, key, strict=True)
        return b"(" + b" AND ".join([column + b" <=> " + value for column, value in pairs]) + b")"


@dataclass(frozen=True, slots=True)
class FillIn:
    """An INSERT with values that a server was asked for: `template` has a hole for each behind the plan's own
    values. `forms`: "integer" for one that an integer column will hold.
    """

    template: Template
    forms: tuple[str, ...]

    def statements(self, values: Values, rows: Sequence[Row], chunk: int) -> list[bytes]:
        del chunk
        if not rows:
            return []
        told = [
            _whole_number(value) if form == "integer" else value
            for value, form in zip(rows[0], self.forms, strict=True)
        ]
        return [self.template.render((*values, *told))]


def _whole_number(literal: bytes) -> bytes:
    """A number as an integer column stores it: exact ones are rounded half up, others half to even. One that
    no such column holds becomes one, too, that no such column holds: else it would be asked for again.
    """
    text = literal.decode("latin-1")
    if not _FRACTION.fullmatch(text) or len(text) > 300:
        return literal
    exact = "e" not in text.lower()
    rounded = Decimal(text).to_integral_value(ROUND_HALF_UP if exact else ROUND_HALF_EVEN)
    return b"%d" % int(max(Decimal(-_LARGE), min(rounded, Decimal(_LARGE))))


@dataclass(frozen=True, slots=True)
class SeveralChanges:
    """Changes of several tables by one SELECT."""

    parts: tuple[ChangeRows, ...]

    def statements(self, values: Values, rows: Sequence[Row], chunk: int) -> list[bytes]:
        return [one for part in self.parts for one in part.statements(values, rows, chunk)]
