"""Aggregate functions, by their names."""

from __future__ import annotations

from typing import Final

from .tokens import Source

AGGREGATES: Final = frozenset(
    {"COUNT", "SUM", "MIN", "MAX", "AVG", "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP"}
    | {"VAR_SAMP", "BIT_AND", "BIT_OR", "BIT_XOR", "GROUP_CONCAT", "JSON_ARRAYAGG", "JSON_OBJECTAGG"}
    | {"ANY_VALUE", "ST_COLLECT"}
)


def is_aggregate(source: Source, at: int) -> bool:
    """Whether an aggregate function is called here."""
    return source.is_word(at, *AGGREGATES) and source.is_op(at + 1, "(")
