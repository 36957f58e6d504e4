"""CALL of the procedure of an orderable mapping: the plan, and the statements that it takes.

The list of a from-ID is shown newest first: by the sequence, descending, and rows of equal sequences by the
to-ID, descending, as the index (from, sequence, to) has them. Behind means further down that list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from config.schema import Table, quote
from rewriter.bound import BindError
from rewriter.plan import Access, Execution, Plan, TextRights, Values
from rewriter.route.values import Value
from rewriter.sql.statements.effects import ConnectionState
from rewriter.text.literals import NotPlain, quoted_integer

_NULL: Final = re.compile(rb"NULL\Z|CAST\(NULL AS ")
_TEXT: Final = re.compile(rb"_\w+ ?(?:x'([0-9a-fA-F]*)'|'([^'\\]*)') COLLATE \w+\Z")
"""How the session writes a user variable that is a text."""


class Asked(NamedTuple):
    """The arguments of a CALL. `before`: the to-ID of the row that `moved` is to stand behind, `after`: of
    the one that it is to stand ahead of; None: there is none.
    """

    source: int
    moved: int
    before: int | None
    after: int | None

    @property
    def targets(self) -> list[int]:
        """The rows that it names."""
        return [one for one in (self.moved, self.before, self.after) if one is not None]


class Move(NamedTuple):
    """A row with its old sequence and its new one."""

    target: int
    old: int
    new: int


@dataclass(frozen=True, slots=True)
class OrderedRows:
    """The statements on one table; `name` is the table as they name it. All are about one from-ID. `hint`:
    they see rows that are hidden from reads, which have their place in the list, too.
    """

    name: str
    from_column: str
    to_column: str
    sequence_column: str
    hint: str = ""

    @classmethod
    def of(cls, table: Table, database: str) -> OrderedRows:
        """Those on an orderable table, in a logical or physical database."""
        columns = table.from_column, table.to_column, table.sequence_column
        hidden = table.soft_delete is not None and database == table.database
        hint = "/*+ with_deleted */ " if hidden else ""
        from_column, to_column, sequence = [quote(one or "") for one in columns]
        return cls(f"{quote(database)}.{quote(table.name)}", from_column, to_column, sequence, hint)

    def find(self, source: int, targets: Iterable[int], *, lock: bool = False) -> bytes:
        """Reads to-ID and sequence of some rows."""
        listed = ", ".join(map(str, dict.fromkeys(targets)))
        where = f"{self.to_column} IN ({listed})"
        every = f"LIMIT {(1 << 64) - 1}"  # whatever sql_select_limit says
        return f"{self._select(source)} AND {where} {every}{' FOR UPDATE' if lock else ''}".encode()

    def behind(self, source: int, sequence: int, target: int, rows: int, *, at_once: bool = False) -> bytes:
        """Reads and locks the row `target` of that sequence and those behind it, `rows` in all. `at_once`: it
        fails rather than wait for a lock.
        """
        return self._from(source, ("<", "DESC"), sequence, target, rows, at_once=at_once)

    def ahead(self, source: int, sequence: int, target: int, rows: int, *, at_once: bool = False) -> bytes:
        """The same with those ahead of it, the nearest first."""
        return self._from(source, (">", "ASC"), sequence, target, rows, at_once=at_once)

    def move(self, source: int, one: Move) -> bytes:
        """Gives one row its new sequence, if it still has its old one."""
        column = self.sequence_column
        where = f"{self.from_column} = {source} AND {column} = {one.old} AND {self.to_column} = {one.target}"
        return f"UPDATE {self.name} SET {column} = {one.new} WHERE {where}".encode()

    def spread(self, source: int, moves: Sequence[Move]) -> bytes:
        """Gives rows, which are locked, their new sequences."""
        column = self.sequence_column
        cases = "".join(
            f" WHEN {self.to_column} = {one.target} AND {column} = {one.old} THEN {one.new}" for one in moves
        )
        pairs = ", ".join(f"({one.old}, {one.target})" for one in moves)
        low, high = min(one.old for one in moves), max(one.old for one in moves)
        return (
            f"UPDATE {self.name} SET {column} = CASE{cases} ELSE {column} END"
            f" WHERE {self.from_column} = {source} AND {column} BETWEEN {low} AND {high}"
            f" AND ({column}, {self.to_column}) IN ({pairs})"
        ).encode()

    def _select(self, source: int) -> str:
        columns = f"{self.to_column}, {self.sequence_column}"
        return f"SELECT {self.hint}{columns} FROM {self.name} WHERE {self.from_column} = {source}"

    def _from(
        self, source: int, way: tuple[str, str], sequence: int, target: int, rows: int, *, at_once: bool
    ) -> bytes:
        (beyond, direction), column, to_column = way, self.sequence_column, self.to_column
        from_here = f"({column} {beyond} {sequence} OR {to_column} {beyond}= {target})"
        order = f"{column} {direction}, {to_column} {direction} LIMIT {rows}"
        end = " NOWAIT" if at_once else ""
        return (
            f"{self._select(source)} AND {column} {beyond}= {sequence} AND {from_here}"
            f" ORDER BY {order} FOR UPDATE{end}"
        ).encode()


@dataclass(frozen=True, kw_only=True, eq=False)
class Reorder(Plan):
    """CALL of an orderable mapping's procedure. `arguments`: None stands for a NULL."""

    kind: ClassVar[str] = "reorder"
    title: ClassVar[str] = "one row of a list moved between two others"
    binds: ClassVar[bool] = False
    on_one_host: ClassVar[bool] = False
    without_functions: ClassVar[bool] = False
    executed_as: ClassVar[Execution] = Execution.WITH_VALUES
    learns_columns: ClassVar[bool] = False
    text_rights: ClassVar[TextRights] = TextRights.NO_ROUTINES
    captures: ClassVar[ConnectionState] = ConnectionState.ALL  # servers get its arguments as numbers
    access: Access = Access.WRITE
    keyspace: str
    table: str
    procedure: str
    rows: OrderedRows
    arguments: tuple[Value | None, ...]

    @property
    def sharded_keyspace(self) -> str:
        return self.keyspace

    @property
    def sharded_tables(self) -> tuple[str, ...]:
        return (self.table,)

    def asked(self, values: Values) -> Asked:
        """The arguments as numbers. Raises BindError."""
        names = ("the from-ID", "the row to move", "the row before it", "the row after it")
        named = zip(names, self.arguments, strict=True)
        source, moved, before, after = [self._id(name, one, values) for name, one in named]
        if source is None or moved is None:
            raise self._wrong(f"{names[0] if source is None else names[1]} is NULL")
        if moved in (before, after) or (before is not None and before == after):
            raise self._wrong("the three rows are not different ones")
        return Asked(source, moved, before, after)

    def example(self, values: Values) -> list[bytes]:
        """The statements, with … for what only the rows tell. Raises BindError."""
        asked = self.asked(values)
        near = asked.before if asked.before is not None else asked.after
        found = [self.rows.find(asked.source, asked.targets)]
        if near is not None:
            side = self.rows.behind if asked.before is not None else self.rows.ahead
            found.append(_open(side(asked.source, _UNKNOWN, near, LOOKED_AT)))
        found.append(_open(self.rows.move(asked.source, Move(asked.moved, _UNKNOWN, _UNKNOWN))))
        return found

    def _id(self, name: str, value: Value | None, values: Values) -> int | None:
        if value is None or (value.kind in ("slot", "parameter") and _NULL.match(values[value.index])):
            return None
        text = _TEXT.match(values[value.index]) if value.kind == "slot" else None
        try:
            if text is not None:  # it becomes a BIGINT here: nothing is compared with a column as a text
                digits = text[2] if text[1] is None else bytes.fromhex(text[1].decode())
                number = quoted_integer(digits + b"'")
            else:
                number = value.integer(values)
        except NotPlain:
            raise self._wrong(f"{name} is no whole number") from None
        if not -(1 << 63) <= number < 1 << 64:
            raise self._wrong(f"{name} is out of the range of BIGINT")
        return number

    def _wrong(self, reason: str) -> BindError:
        return BindError("reorder_arguments", procedure=self.procedure, reason=reason)


LOOKED_AT = 3
"""So many rows tell what stands next to one, whichever of the two others is the one that is moved."""

_UNKNOWN = 10**39
"""Stands for a sequence that is not known: one of more digits than any has."""


def _open(sql: bytes) -> bytes:
    return sql.replace(b"%d" % _UNKNOWN, "…".encode())
