"""Parameters with the types that MySQL gives them.

Since 8.0.22 MySQL derives a parameter's type from where it stands, and takes its values as values of that:
`price * ?` with the integer 2 is a product of DECIMALs with 30 decimals. The reply to COM_STMT_PREPARE tells
the types. A statement that is executed as text has to say them with its literals.

Source: "Prepared Statements" in MySQL's reference manual, and `Prepared_statement::check_parameter_types`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from proxy.backends.settings import TYPED_NULL
from proxy.wire.constants import ColumnFlag, ColumnType
from proxy.wire.resultset import decode_column

UNSIGNED: Final = ColumnType.LONGLONG | 1 << 8
"""The type of a parameter that is a BIGINT UNSIGNED."""
_INTEGERS: Final = {int(ColumnType.LONGLONG): b"SIGNED", int(UNSIGNED): b"UNSIGNED"}
_WHOLE: Final = frozenset(
    {ColumnType.TINY, ColumnType.SHORT, ColumnType.INT24, ColumnType.LONG, ColumnType.LONGLONG}
    | {ColumnType.YEAR}
)
_CASTS: Final = {
    int(ColumnType.NEWDECIMAL): b"DECIMAL(65,30)",
    int(ColumnType.DOUBLE): b"DOUBLE",
    int(ColumnType.DATETIME): b"DATETIME(6)",
    int(ColumnType.TIME): b"TIME(6)",
    int(ColumnType.DATE): b"DATE",
}
_TIMES: Final = (ColumnType.DATETIME, ColumnType.TIME, ColumnType.DATE)
_FITS: Final = re.compile(rb"'?[-+]?(?:[0-9]{1,35}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})'?\Z")
_FRACTION: Final = re.compile(rb"'?[-+]?[0-9]{1,35}\.[0-9]{0,29}[1-9]'?\Z")
_DIGITS: Final = re.compile(rb"'(?:0|[1-9][0-9]{0,17})'\Z")
_MOMENT: Final = re.compile(
    rb"(?:TIMESTAMP|DATE)?'[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    rb"( (?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?)?'\Z"
)
_CLOCK: Final = re.compile(rb"(?:TIME)?'-?[0-9]{2,3}:[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?'\Z")


def derived_types(parameters: Sequence[bytes]) -> tuple[int, ...]:
    """The types of parameters by their definitions; () when literals are of these by themselves."""
    columns = [decode_column(one) for one in parameters]
    types = tuple(
        UNSIGNED if one.type == ColumnType.LONGLONG and one.flags & ColumnFlag.UNSIGNED else one.type
        for one in columns
    )
    return types if any(one in _CASTS or one in _INTEGERS for one in types) else ()


def keeps_integers(derived: Sequence[int]) -> bool:
    """Whether `as_derived` leaves the literals of integers what they are."""
    return not any(one in _CASTS for one in derived)


def as_derived(literals: Sequence[bytes], derived: Sequence[int], types: bytes) -> tuple[bytes, ...]:
    """The literals of parameters with the types they were bound with (two bytes each), as what they are
    `derived` to be.
    """
    return tuple(
        _as(literal, type_, types[2 * number])
        for number, (literal, type_) in enumerate(zip(literals, derived, strict=True))
    )


def _as(literal: bytes, derived: int, bound: int) -> bytes:
    cast = _CASTS.get(derived)
    if derived in _INTEGERS:
        if literal == b"NULL":
            return TYPED_NULL + _INTEGERS[derived] + b")"
        if bound not in _WHOLE and _FRACTION.match(literal):
            return b"CAST(" + literal + b" AS DECIMAL(65,30))"
        return literal[1:-1] if _DIGITS.match(literal) else literal
    if cast is None:
        return literal
    if literal == b"NULL":
        return TYPED_NULL + cast + b")"
    if derived in _TIMES:
        fits = _MOMENT.match(literal)
        if fits is not None and fits[1]:
            cast = _CASTS[ColumnType.DATETIME]  # whatever is expected there
        elif derived == ColumnType.TIME:
            fits = _CLOCK.match(literal)
        elif derived == ColumnType.DATETIME:
            fits = None
    else:
        fits = _FITS.match(literal)  # also a string
    return literal if fits is None else b"CAST(" + literal + b" AS " + cast + b")"
