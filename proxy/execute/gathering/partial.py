"""Groups of the shards in the place of rows: the tables for them, and whether they combine exactly.

The scratch host is asked once, over empty tables, in one network write: the statement as the client wrote it
(its column definitions are the client's, its error is the answer), the types of the groups' columns (CREATE
TABLE … AS SELECT), and the statement over these. Where that shows that sums are floating point numbers, or a
result column of another type, the rows are gathered after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from proxy.backends.collect import ServerError
from proxy.wire.constants import ColumnType
from proxy.wire.resultset import Column, decode_column
from rewriter.plan import Values
from rewriter.plans.gather import FIRST, SCRATCH, Gather, Groups, Piece, quoted

from .batch import Result
from .scratch import Scratch, shape_of

_MOST_DIGITS: Final = 30
"""Behind the point; where more are cut off, a sum of sums is another number."""
_INTEGERS: Final = frozenset(
    {ColumnType.TINY, ColumnType.SHORT, ColumnType.INT24, ColumnType.LONG, ColumnType.LONGLONG}
)
_TEXTS: Final = frozenset(
    {ColumnType.VARCHAR, ColumnType.VAR_STRING, ColumnType.STRING, ColumnType.TINY_BLOB, ColumnType.BLOB}
    | {ColumnType.MEDIUM_BLOB, ColumnType.LONG_BLOB}
)


UNFIT: Final = frozenset({1062, 1264, 1265, 1292, 1366, 1406})
"""Errors of values that do not fit the columns: a server gives ABS(n) the type of n, even if n is -2^31."""


class Making:
    """The tables of one statement whose plan has groups. `creates` are to be sent first, for loading, then
    `asked` with the session's own settings, then `shown` for loading again; `decide` reads the answers.
    """

    def __init__(self, plan: Gather, values: Values, names: tuple[bytes, ...], tables: list[Scratch]) -> None:
        assert plan.full is not None
        self._plan, self._full = plan, plan.full
        self._names, self._tables = names, tables
        numbered = enumerate(zip(plan.pieces, names, strict=True), 1)
        self._all = tuple(
            name if piece.groups is None else quoted(f"b{number}") for number, (piece, name) in numbered
        )
        #: Both kinds of tables of what has groups.
        self.bases = tuple(set(names) ^ set(self._all))
        self.creates = [
            scratch.create(base, real=piece.real)
            for scratch, base, piece in zip(tables, self._all, plan.pieces, strict=True)
        ]
        #: What to run with all rows instead: the plan, the names of its tables, and these.
        self.rows = self._full, self._all, tables
        self.asked = [self._full.rest_sql(values, self._all)]
        self.shown: list[bytes] = []
        for piece, name, base in zip(plan.pieces, names, self._all, strict=True):
            if piece.groups is not None:
                table = SCRATCH + b"." + name
                key = b" (PRIMARY KEY (" + FIRST + b"))" if piece.groups.first else b""
                create = b"CREATE TEMPORARY TABLE " + table + key + b" ENGINE=InnoDB AS "
                self.asked.append(create + piece.typed(values, SCRATCH + b"." + base))
                self.shown.append(b"SHOW CREATE TABLE " + table)
        self.asked.append(plan.rest_sql(values, names))

    def decide(
        self, results: Sequence[Result], *, binary: bool
    ) -> tuple[Gather, tuple[bytes, ...], list[Scratch], list[bytes] | None]:
        """The plan to run, the names of its tables, these, and the column definitions for the client (None:
        the rest's own). `results` are those of `asked`, of the change of settings, and of `shown`. `binary`:
        the rest's rows are, so that its types must be the same. Raises ServerError when the statement is not
        in order.
        """
        count = len(self.asked)
        reference, combined, shown = results[0], results[count - 1], results[count + 1 :]
        if reference.err is not None:
            raise ServerError(reference.err)
        tables = _tables(self._plan.pieces, self._tables, shown)
        if tables is None or not _agree(reference, combined, binary=binary):
            return *self.rows, None
        return self._plan, self._names, tables, reference.columns


def _tables(
    pieces: Sequence[Piece], bases: Sequence[Scratch], shown: Sequence[Result]
) -> list[Scratch] | None:
    """The tables of all pieces; None when the groups of one do not combine exactly."""
    found = []
    answers = iter(shown)
    for piece, base in zip(pieces, bases, strict=True):
        if piece.groups is None:
            found.append(base)
            continue
        answer = next(answers)
        if answer.err is not None:
            return None
        create = (answer.rows[0][1] or b"").decode("utf-8", "surrogateescape")
        scratch = shape_of(create, is_object=False, routing=None).select(None)
        if not _exact(piece.groups, scratch, base):
            return None
        found.append(scratch)
    return found


def _exact(groups: Groups, scratch: Scratch, base: Scratch) -> bool:
    """Whether the columns' types are such that partial values combine exactly."""
    types = {column.name: column.type for column in scratch.columns}
    for name in groups.decimals:
        if types[name].kind != "decimal" or (types[name].decimals or 0) >= _MOST_DIGITS:
            return False
    if not all(types[name].kind == "bigint" for name in groups.integers):
        return False
    return not any(column.name.lower() in groups.absent for column in base.columns)


def _agree(reference: Result, combined: Result, *, binary: bool) -> bool:
    """Whether the values of the combined statement are, as texts or as binary ones, those of the client's."""
    if combined.err is not None or len(combined.columns) != len(reference.columns):
        return False
    pairs = zip(reference.columns, combined.columns, strict=True)
    columns = [(decode_column(one), decode_column(two)) for one, two in pairs]
    if binary and any(one.type != two.type and not {one.type, two.type} <= _TEXTS for one, two in columns):
        return False
    return all(_alike(one, two) for one, two in columns)


def _alike(one: Column, two: Column) -> bool:
    """Whether a value of the second is, as text, that of the first."""
    if one.name != two.name:
        return False
    if {one.type, two.type} <= _TEXTS:
        return one.collation == two.collation
    if one.type == two.type:
        return one.decimals == two.decimals or one.type in _INTEGERS or one.type == ColumnType.JSON
    whole = {one.type, two.type} <= _INTEGERS | {ColumnType.NEWDECIMAL, ColumnType.YEAR}
    return whole and one.decimals == two.decimals == 0
