"""Values of merged rows: how they sort, and how partial ones combine, as MySQL does it.

A value's text is compared by what its column's type makes of it. Of text only a server knows the order; it
comes as the weight of a WEIGHT_STRING column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal
from functools import total_ordering
from math import isfinite
from typing import Any

from proxy.errors import ProxyError
from proxy.wire.constants import BINARY_COLLATION, ColumnFlag, ColumnType
from proxy.wire.resultset import NUMERIC, TEMPORAL, Column
from rewriter.plans import Aggregate, SortKey

_FLOATS = frozenset({ColumnType.FLOAT, ColumnType.DOUBLE})
#: A DECIMAL has up to 65 digits, a sum of them a few more: none may be rounded off.
_EXACT = Context(prec=200)
#: `decimals` of a DOUBLE that has no fixed number of them, and where its text goes over to an exponent.
_NOT_FIXED, _LONGEST = 31, 15


@contextmanager
def readable() -> Iterator[None]:
    """A server's value that is not of its column's type is an error for the client, not a bug."""
    try:
        yield
    except (ValueError, ArithmeticError) as problem:
        raise ProxyError("merge_failed", reason=f"a value is not of its type ({problem})") from None


# -- comparing
# ----------------------------------------------------------------------------------------------------------


class _Descending:
    """A value that sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Descending) -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(self.value == other.value)

    __hash__ = None  # type: ignore[assignment]


@total_ordering
class _Padded:
    """A weight in a PAD SPACE collation: the shorter of two goes on with the weight of a space."""

    __slots__ = ("pad", "weight")

    def __init__(self, weight: bytes, pad: bytes) -> None:
        self.weight = weight
        self.pad = pad

    def _pair(self, other: _Padded) -> tuple[bytes, bytes]:
        a, b = self.weight, other.weight
        longest = max(len(a), len(b))
        fill = self.pad * (longest // len(self.pad) + 1)
        return (a + fill)[:longest], (b + fill)[:longest]

    def __lt__(self, other: _Padded) -> bool:
        a, b = self._pair(other)
        return a < b

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Padded):
            return NotImplemented
        a, b = self._pair(other)
        return a == b

    __hash__ = None  # type: ignore[assignment]


Reader = Callable[[bytes], Any]


def sort_key(
    keys: Sequence[SortKey], columns: Sequence[Column], pads: Mapping[bytes, bytes]
) -> Callable[[list[bytes | None]], Any]:
    """A function from a row's values to something that sorts as MySQL's ORDER BY does: NULL first, or last
    descending.
    """
    for key in keys:
        if columns[key.column].flags & (ColumnFlag.ENUM | ColumnFlag.SET):
            raise _no_order(columns[key.column])  # ENUM and SET are sorted by number, and these are texts
    parts = [(_reader(key, columns, pads), key.descending) for key in keys]

    def of(row: list[bytes | None]) -> Any:
        out: list[Any] = []
        for read, descending in parts:
            value = read(row)
            if value is None:
                out.append((1, 0) if descending else (0, 0))
            elif descending:
                out.append((0, _Descending(value)))
            else:
                out.append((1, value))
        return out

    return of


def _reader(
    key: SortKey | Aggregate, columns: Sequence[Column], pads: Mapping[bytes, bytes]
) -> Callable[[list[bytes | None]], Any]:
    """A function from a row to the key's value, None for NULL."""
    column = key.column
    convert = value_reader(columns[column])
    if convert is None:
        if key.weight is None or key.collation is None or columns[column].type == ColumnType.JSON:
            raise _no_order(columns[column])
        return _Weigher(columns[column], key.weight, key.collation, pads)

    def read(row: list[bytes | None]) -> Any:
        value = row[column]
        return None if value is None else convert(value)

    return read


class _Weigher:
    """Reads a weight as its collation compares it. All shards must have the same collation."""

    def __init__(self, column: Column, weight: int, collation: int, pads: Mapping[bytes, bytes]) -> None:
        self._column = column
        self._weight = weight
        self._collation = collation
        self._pads = pads
        self._name: bytes | None = None
        self._pad = b""

    def __call__(self, row: list[bytes | None]) -> Any:
        name = row[self._collation]
        if name != self._name:
            self._choose(name or b"")
        weight = row[self._weight]
        return _Padded(weight, self._pad) if self._pad and weight is not None else weight

    def _choose(self, name: bytes) -> None:
        if self._name is not None:
            where = self._column.name.decode("utf-8", "replace")
            reason = f"the collation of {where} is not the same on all shards"
            raise ProxyError("merge_failed", reason=reason)
        if name not in self._pads:
            text = name.decode("utf-8", "replace")
            raise ProxyError("merge_failed", reason=f"no order is known for collation {text}")
        self._name = name
        self._pad = self._pads[name]


def _no_order(column: Column) -> ProxyError:
    name = column.name.decode("utf-8", "replace")
    return ProxyError("merge_failed", reason=f"no order is known for column {name}")


def value_reader(column: Column) -> Reader | None:
    """How to compare a column's text by value; None for text, which only a server can weigh, and for JSON."""
    kind = column.type
    if kind in _FLOATS:
        return float
    if kind in (ColumnType.NEWDECIMAL, ColumnType.DECIMAL):
        return _decimal
    if kind in NUMERIC:
        return int
    if kind in TEMPORAL:
        return bytes
    if kind == ColumnType.TIME:
        return _time
    if kind == ColumnType.NULL or (column.collation == BINARY_COLLATION and kind != ColumnType.JSON):
        return bytes
    return None


def _decimal(text: bytes) -> Decimal:
    return Decimal(text.decode("ascii"))


def _time(text: bytes) -> float:
    """`-12:34:56.789` in seconds."""
    sign = -1 if text.startswith(b"-") else 1
    hours, minutes, seconds = text.lstrip(b"-").decode("ascii").split(":")
    return sign * (int(hours) * 3600 + int(minutes) * 60 + float(seconds))


# -- combining
# ----------------------------------------------------------------------------------------------------------


def combine(
    aggregate: Aggregate,
    columns: Sequence[Column],
    partials: Sequence[list[bytes | None]],
    pads: Mapping[bytes, bytes],
) -> bytes | None:
    """One aggregate over the shards' partial values."""
    present = [row for row in partials if row[aggregate.column] is not None]
    values = [row[aggregate.column] or b"" for row in present]
    if aggregate.function == "count":
        return str(sum(map(int, values))).encode()
    if not present:
        return None
    if aggregate.function == "sum":
        return _sum(values, columns[aggregate.column])
    read = _reader(aggregate, columns, pads)
    ranked = ((read(row), value) for row, value in zip(present, values, strict=True))
    pick = min if aggregate.function == "min" else max
    return pick(ranked, key=lambda pair: pair[0])[1]


def _sum(values: Sequence[bytes], column: Column) -> bytes:
    if column.type in _FLOATS:
        return float_text(sum(float(value) for value in values), column.decimals)
    total = Decimal(0)
    for value in values:
        total = _EXACT.add(total, _decimal(value))
    return format(total, "f").encode()


def float_text(value: float, decimals: int = _NOT_FIXED) -> bytes:
    """A DOUBLE as MySQL prints it: the fewest digits that read back the same, in plain notation for numbers
    from 1e-15 up to 1e15 and for longer ones that have a fraction; or with a fixed number of decimals.
    """
    if not isfinite(value):
        raise ProxyError("merge_failed", reason="the sum is out of range for a DOUBLE")
    if decimals < _NOT_FIXED:
        return format(value, f".{decimals}f").encode()
    exact = Decimal(repr(value)).normalize()
    digits = "".join(map(str, exact.as_tuple().digits))
    point = exact.adjusted() + 1  # how many digits stand before the decimal point
    if not value or (-_LONGEST < point <= _LONGEST) or (point > _LONGEST and len(digits) > point):
        return format(exact, "f").encode()
    sign = "-" if value < 0 else ""
    fraction = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1}".encode()
