"""Values of merged rows: how they sort, and how partial ones combine, as MySQL does it.

A value is compared by the bytes that `sort_keys` makes of it for its column's type. Of text only a server
knows the order; it comes as the weight of a WEIGHT_STRING column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Context, Decimal
from math import isfinite

from proxy.errors import ProxyError
from proxy.wire.constants import BINARY_COLLATION, ColumnFlag, ColumnType
from proxy.wire.resultset import NUMERIC, TEMPORAL, Column, decode_row
from proxy.wire.rows import first_row
from proxy.wire.sort_keys import (
    BYTES,
    DOUBLE,
    NUMBER,
    PADDED,
    TIME,
    OtherName,
    Part,
    keyed,
    value_key,
)
from proxy.wire.wide import ASCII, Form
from rewriter.plans import Aggregate, SortKey

_FLOATS = frozenset({ColumnType.FLOAT, ColumnType.DOUBLE})
_BINARY = b"binary"
"""The collation of bytes, whose values are compared themselves."""
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


class _Collation:
    """That of a text key: the first row names it, and all shards must have the same."""

    def __init__(self, column: Column, pads: Mapping[bytes, bytes], form: Form) -> None:
        self._column = column
        self._pads = pads
        self._form = form
        self._name: bytes | None = None

    def choose(self, name: bytes | None) -> tuple[bytes, bytes]:
        """The name, in ASCII, and the weight of a space, b"" in a NO PAD collation. `name`: as in a row."""
        return self.named(self._form.read(name or b""))

    def named(self, name: bytes) -> tuple[bytes, bytes]:
        """As `choose`, for a name in ASCII."""
        if name != self._name and self._name is not None:
            where = self._column.name.decode("utf-8", "replace")
            reason = f"the collation of {where} is not the same on all shards"
            raise ProxyError("merge_failed", reason=reason)
        if name not in self._pads:
            text = name.decode("utf-8", "replace")
            raise ProxyError("merge_failed", reason=f"no order is known for collation {text}")
        self._name = name
        return name, self._pads[name]


class RowKeys:
    """Makes keys of rows, bytes that sort as MySQL's ORDER BY does: NULL first, or last descending."""

    def __init__(
        self,
        keys: Sequence[SortKey],
        columns: Sequence[Column],
        shown: int,
        pads: Mapping[bytes, bytes],
        form: Form = ASCII,
    ) -> None:
        """`shown`: so many columns are the client's. `form`: that of names and numbers in the rows."""
        for key in keys:
            if columns[key.column].flags & (ColumnFlag.ENUM | ColumnFlag.SET):
                raise _no_order(columns[key.column])  # ENUM and SET are sorted by number, and these are texts
        self._count = len(columns)
        self._shown = shown
        self._keys = keys
        self._form = form
        self._collations = [_collation(key, columns, pads, form) for key in keys]
        self._columns = columns
        self._parts: list[Part] | None = None

    def of(self, block: bytes) -> tuple[list[bytes], list[bytes]]:
        """Of each row in a row block its key, and its visible columns as a packet to be numbered."""
        if not block:
            return [], []
        if self._parts is None:
            self._parts = self._make_parts(first_row(block, 0)[0])
        try:
            return keyed(block, self._count, self._shown, self._parts, self._form)
        except OtherName as other:
            collation = self._collations[self._parts.index(other.part)]
            assert collation is not None
            collation.named(other.name or b"")
            raise AssertionError("the name is that of the part") from None

    def _make_parts(self, row: bytes) -> list[Part]:
        """With the collations that the first row names."""
        values = decode_row(row, self._count)
        parts = []
        for key, collation in zip(self._keys, self._collations, strict=True):
            if collation is None or key.weight is None or key.collation is None:
                kind = kind_of(self._columns[key.column])
                assert kind is not None
                parts.append(Part(kind, key.descending, key.column % self._count))
            else:
                named = key.collation % self._count
                name, pad = collation.choose(values[named])
                column = key.column if name == _BINARY else key.weight
                kind = PADDED if pad else BYTES
                parts.append(Part(kind, key.descending, column % self._count, pad, named, name))
        return parts


def _collation(
    key: SortKey | Aggregate, columns: Sequence[Column], pads: Mapping[bytes, bytes], form: Form
) -> _Collation | None:
    """What a key's weights are read by, None when its values are compared.

    A text's definition has the collation of the client's results, not that of its values: the rows name it.
    """
    column = columns[key.column]
    named = key.weight is not None and key.collation is not None
    if named and column.type != ColumnType.JSON and _by_type(column) is None:
        return _Collation(column, pads, form)
    if kind_of(column) is None:
        raise _no_order(column)
    return None


def _no_order(column: Column) -> ProxyError:
    name = column.name.decode("utf-8", "replace")
    return ProxyError("merge_failed", reason=f"no order is known for column {name}")


def kind_of(column: Column) -> bytes | None:
    """How a column's values are compared, as a kind of `sort_keys`; None for text, which only a server can
    weigh, and for JSON.
    """
    found = _by_type(column)
    if found is None and column.collation == BINARY_COLLATION and column.type != ColumnType.JSON:
        return BYTES
    return found


def _by_type(column: Column) -> bytes | None:
    """As `kind_of`, None also for bytes, which only their collation tells from texts."""
    kind = column.type
    if kind in _FLOATS:
        return DOUBLE
    if kind in NUMERIC:
        return NUMBER
    if kind in TEMPORAL:
        return BYTES
    if kind == ColumnType.TIME:
        return TIME
    return BYTES if kind == ColumnType.NULL else None


# -- combining
# ----------------------------------------------------------------------------------------------------------


def combine(
    aggregate: Aggregate,
    columns: Sequence[Column],
    partials: Sequence[list[bytes | None]],
    pads: Mapping[bytes, bytes],
    form: Form = ASCII,
) -> bytes | None:
    """One aggregate over the shards' partial values. `form`: that of names and numbers in the rows."""
    present = [row for row in partials if row[aggregate.column] is not None]
    values = [row[aggregate.column] or b"" for row in present]
    if aggregate.function == "count":
        count = sum(int(form.read(value)) for value in values)
        return form.computed(str(count).encode(), ColumnType.LONGLONG)
    if not present:
        return None
    if aggregate.function == "sum":
        column = columns[aggregate.column]
        return form.computed(_sum([form.read(value) for value in values], column), column.type)
    of = _rank(aggregate, columns, pads, form)
    ranked = ((of(row), value) for row, value in zip(present, values, strict=True))
    pick = min if aggregate.function == "min" else max
    picked = pick(ranked, key=lambda pair: pair[0])[1]
    kind = columns[aggregate.column].type
    return form.computed(form.read(picked), kind) if kind in NUMERIC else picked


def _rank(
    aggregate: Aggregate, columns: Sequence[Column], pads: Mapping[bytes, bytes], form: Form
) -> Callable[[list[bytes | None]], bytes]:
    """A function from a row to bytes that sort as the aggregated value does."""
    collation = _collation(aggregate, columns, pads, form)
    kind = kind_of(columns[aggregate.column]) or BYTES

    def of(row: list[bytes | None]) -> bytes:
        if collation is None or aggregate.weight is None or aggregate.collation is None:
            value = row[aggregate.column]
            return value_key(value if value is None or kind == BYTES else form.read(value), kind)
        name, pad = collation.choose(row[aggregate.collation])
        column = aggregate.column if name == _BINARY else aggregate.weight
        return value_key(row[column], PADDED if pad else BYTES, pad)

    return of


def _sum(values: Sequence[bytes], column: Column) -> bytes:
    if column.type in _FLOATS:
        return float_text(sum(float(value) for value in values), column.decimals)
    total = Decimal(0)
    for value in values:
        total = _EXACT.add(total, _decimal(value))
    return format(total, "f").encode()


def _decimal(text: bytes) -> Decimal:
    return Decimal(text.decode("ascii"))


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
