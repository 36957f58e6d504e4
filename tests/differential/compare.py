"""What differs between two answers. Pure.

The plain server's answer is right. Rows must be the same: as a multiset without ORDER BY, else in the order
that the keys give, in which rows with equal keys may stand in any order and LIMIT may take any of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tests.differential.answers import Answer, ColumnInfo, RawRow
from tests.differential.parts import Statement

UNSIGNED, ENUM, SET = 32, 256, 2048
COMPARED_FLAGS = UNSIGNED | ENUM | SET


@dataclass(frozen=True)
class Difference:
    """One difference: which aspect, and how it shows."""

    aspect: str
    detail: str

    def __str__(self) -> str:
        return f"{self.aspect}: {self.detail}"


Ranked = Callable[[], Sequence[RawRow] | None]
"""All rows before LIMIT, each with its class in the order as one more column; None when not to be had."""


def compare(statement: Statement, expected: Answer, got: Answer, ranked: Ranked) -> list[Difference]:
    """How `got` differs from `expected`."""
    if expected.error is not None or got.error is not None:
        return _errors(expected, got)
    if bool(expected.columns) != bool(got.columns):
        return [Difference("kind of answer", f"columns {len(expected.columns)}, got {len(got.columns)}")]
    found = _warnings(statement, expected, got)
    if not expected.columns:
        return found + _outcome(expected, got)
    found += _columns(expected.columns, got.columns, loose=statement.kind == "groups")
    if len(expected.columns) == len(got.columns):
        found += _rows(statement, expected, got, ranked)
    return found


#: ER_DATA_OUT_OF_RANGE
_OUT_OF_RANGE = 1690


def _errors(expected: Answer, got: Answer) -> list[Difference]:
    """Errors must have the same code. But of `id = -1 AND id % 10 > 1` MariaDB computes `-1 MOD 10` and says
    out of range, where shardgate answers that no row has such an ID, with its warning (docs/sql.md).
    """
    if expected.error is not None and expected.error.code == _OUT_OF_RANGE and not got.error and got.warnings:
        return []
    one = expected.error.code if expected.error else 0
    two = got.error.code if got.error else 0
    if one == two:
        return []
    return [Difference("error", f"expected {expected.error or 'none'}; got {got.error or 'none'}")]


def _outcome(expected: Answer, got: Answer) -> list[Difference]:
    """Of a statement without result set."""
    found = []
    if expected.affected != got.affected:
        found.append(Difference("affected rows", f"expected {expected.affected}, got {got.affected}"))
    if expected.insert_id != got.insert_id:
        found.append(Difference("insert id", f"expected {expected.insert_id}, got {got.insert_id}"))
    if expected.info and _said(expected.info) != _said(got.info):  # it is "" where WHERE cannot be true
        found.append(Difference("info", f"expected {expected.info!r}, got {got.info!r}"))
    return found


def _said(info: bytes) -> bytes:
    """The info text without the number of warnings, which is compared by itself."""
    return info.partition(b"Warnings")[0].strip()


def _warnings(statement: Statement, expected: Answer, got: Answer) -> list[Difference]:
    """Every shard warns by itself, so over several only whether there are warnings is compared."""
    one, two = expected.warnings, got.warnings
    if statement.extra_warnings:
        return []
    if one != two and (statement.exact_warnings or not one or not two):
        return [Difference("warnings", f"expected {one}, got {two}")]
    return []


def _same_type(one: ColumnInfo) -> ColumnInfo:
    """Servers show expressions in these types as it comes, by whether they needed a temporary table."""
    blobs = {250: 252, 251: 252}
    type_ = {13: 3}.get(one.type, blobs.get(one.type, one.type))
    if type_ == 245:
        return replace(one, charset=63, decimals=0)
    return replace(one, type=type_, decimals=0 if one.decimals in (31, 39) and type_ > 245 else one.decimals)


def _columns(expected: Sequence[ColumnInfo], got: Sequence[ColumnInfo], *, loose: bool) -> list[Difference]:
    names = [one.name.decode() for one in expected], [one.name.decode() for one in got]
    if names[0] != names[1]:
        return [Difference("column names", f"expected {names[0]}, got {names[1]}")]
    found = []
    for one, two in zip(expected, got, strict=True):
        if loose:
            one, two = _same_type(one), _same_type(two)
        for aspect, left, right in (
            ("type", one.type, two.type),
            ("flags", one.flags & COMPARED_FLAGS, two.flags & COMPARED_FLAGS),
            ("character set", one.charset, two.charset),
            ("decimals", one.decimals, two.decimals),
        ):
            if left != right:
                detail = f"of {one.name.decode()!r}: expected {left}, got {right}"
                found.append(Difference(f"column {aspect}", detail))
    return found


def _rows(statement: Statement, expected: Answer, got: Answer, ranked: Ranked) -> list[Difference]:
    if expected.rows == got.rows:
        return []
    select = statement.select
    if select is None or not select.ordered:
        found = _multisets(expected.rows, got.rows)
        if statement.total and not found:
            pair = next((one, two) for one, two in zip(expected.rows, got.rows, strict=True) if one != two)
            found = [Difference("order of rows", f"expected {pair[0]}, got {pair[1]}")]
        return found
    if len(expected.rows) != len(got.rows):
        return [Difference("number of rows", f"expected {len(expected.rows)}, got {len(got.rows)}")]
    pool = ranked()
    if pool is None:
        return [Difference("order of rows", "and the plain server cannot say which rows are ties")]
    return ordered(got.rows, pool, select.offset or 0)


def _multisets(expected: Sequence[RawRow], got: Sequence[RawRow]) -> list[Difference]:
    one, two = Counter(expected), Counter(got)
    if one == two:
        return []
    missing, extra = list((one - two).elements()), list((two - one).elements())
    if len(expected) != len(got):
        detail = f"expected {len(expected)}, got {len(got)}; missing {missing[:3]}, extra {extra[:3]}"
        return [Difference("number of rows", detail)]
    return [Difference("rows", f"missing {missing[:3]}, extra {extra[:3]}")]


def ordered(rows: Sequence[RawRow], pool: Sequence[RawRow], offset: int) -> list[Difference]:
    """Whether `rows` may be those behind the first `offset` of `pool`, whose rows end with their class."""
    in_order = sorted(int(row[-1] or 0) for row in pool)
    classes: dict[int, Counter[RawRow]] = {}
    for row in pool:
        classes.setdefault(int(row[-1] or 0), Counter())[row[:-1]] += 1
    for place, row in enumerate(rows):
        if offset + place >= len(in_order):
            return [Difference("number of rows", f"row {place} is beyond the {len(in_order)} there are")]
        ties = classes[in_order[offset + place]]
        if not ties[row]:
            where = [number for number, one in classes.items() if one[row]]
            detail = f"row {place} {row} should be one of class {in_order[offset + place]}, is of {where}"
            return [Difference("order of rows" if where else "rows", detail)]
        ties[row] -= 1
    return []


def contents(table: str, expected: Counter[RawRow], got: Counter[RawRow]) -> list[Difference]:
    """Of a whole table, after writes."""
    if expected == got:
        return []
    missing, extra = list((expected - got).elements()), list((got - expected).elements())
    return [Difference(f"contents of {table}", f"missing {missing[:3]}, extra {extra[:3]}")]
