"""Literals for parameters with the types that MySQL derives for them."""

from __future__ import annotations

import pytest

from proxy.execute.prepared.derived import UNSIGNED, as_derived, derived_types
from proxy.wire.constants import ColumnType as T
from proxy.wire.resultset import Column


@pytest.mark.parametrize(
    ("literal", "bound", "derived", "expected"),
    [
        (b"2", T.LONGLONG, T.NEWDECIMAL, b"CAST(2 AS DECIMAL(65,30))"),
        (b"-2.5", T.NEWDECIMAL, T.NEWDECIMAL, b"CAST(-2.5 AS DECIMAL(65,30))"),
        (b"2.5e0", T.DOUBLE, T.NEWDECIMAL, b"2.5e0"),
        (b"'2.5'", T.VAR_STRING, T.NEWDECIMAL, b"CAST('2.5' AS DECIMAL(65,30))"),
        (b"'2.5'", T.VAR_STRING, T.DOUBLE, b"CAST('2.5' AS DOUBLE)"),
        (b"'2.5'", T.VAR_STRING, T.LONGLONG, b"CAST('2.5' AS DECIMAL(65,30))"),
        (b"'25'", T.VAR_STRING, T.LONGLONG, b"25"),
        (b"' 25'", T.VAR_STRING, T.LONGLONG, b"' 25'"),
        (b"'two'", T.VAR_STRING, T.NEWDECIMAL, b"'two'"),
        (b"1" * 36, T.NEWDECIMAL, T.NEWDECIMAL, b"1" * 36),
        (b"2", T.TINY, T.DOUBLE, b"CAST(2 AS DOUBLE)"),
        (b"NULL", T.NULL, T.DOUBLE, b"CAST(NULL AS DOUBLE)"),
        (b"7", T.LONGLONG, T.LONGLONG, b"7"),
        (b"7.", T.NEWDECIMAL, T.LONGLONG, b"7."),
        (b"7.5", T.NEWDECIMAL, T.LONGLONG, b"CAST(7.5 AS DECIMAL(65,30))"),
        (b"NULL", T.LONGLONG, T.LONGLONG, b"CAST(NULL AS SIGNED)"),
        (b"NULL", T.NULL, UNSIGNED, b"CAST(NULL AS UNSIGNED)"),
        (b"'25'", T.VAR_STRING, UNSIGNED, b"25"),
        (b"'x'", T.VAR_STRING, UNSIGNED, b"'x'"),
        (b"'x'", T.VAR_STRING, T.VAR_STRING, b"'x'"),
        (b"'2012-02-23 10:11:12'", T.VAR_STRING, T.DATETIME, b"CAST('2012-02-23 10:11:12' AS DATETIME(6))"),
        (b"'2012-02-23'", T.VAR_STRING, T.DATETIME, b"'2012-02-23'"),
        (b"'never'", T.VAR_STRING, T.DATETIME, b"'never'"),
        (b"'2012-02-23'", T.VAR_STRING, T.DATE, b"CAST('2012-02-23' AS DATE)"),
        (b"'2012-02-23 10:11:12'", T.VAR_STRING, T.DATE, b"CAST('2012-02-23 10:11:12' AS DATETIME(6))"),
        (b"TIME'-01:00:00'", T.TIME, T.TIME, b"CAST(TIME'-01:00:00' AS TIME(6))"),
    ],
)
def test_as_derived(literal: bytes, bound: int, derived: int, expected: bytes) -> None:
    assert as_derived((literal,), (derived,), bytes((bound, 0))) == (expected,)


def test_only_what_matters_is_remembered() -> None:
    def of(*types: int) -> tuple[int, ...]:
        return derived_types([Column(b"?", type_).encode() for type_ in types])

    assert of(T.VAR_STRING, T.DOUBLE) == (T.VAR_STRING, T.DOUBLE)
    assert of(T.VAR_STRING, T.VAR_STRING) == ()
    assert of() == ()
