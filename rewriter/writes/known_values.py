"""Values of a row that hold no error of syntax and no unknown name, whatever a server makes of them.

The rows of an INSERT go to their shards as statements of their own. A server that reads the whole statement
finds an error of syntax, an unknown column or function, or an aggregate in any row before it writes one. So
rows that have more than such values are first resolved as a whole (`Insert.to_resolve`).
"""

from __future__ import annotations

import re
from typing import Final

from rewriter.plans.insert_rows import Spelling
from rewriter.text.facts import Span
from rewriter.text.tokens import HEX, INTEGER, NUMBER, PREFIXED, STRING, VARIABLE, Source

_CONSTANTS: Final = ("NULL", "TRUE", "FALSE", "DEFAULT", "CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME")
_CALLS: Final = ("NOW", "CURRENT_TIMESTAMP", "UTC_TIMESTAMP", "SYSDATE")
"""Functions of the servers' own that take no argument, or a number of digits."""
_BARE_CALLS: Final = (
    "CURDATE",
    "CURRENT_DATE",
    "UTC_DATE",
    "UUID",
    "UNIX_TIMESTAMP",
    "RAND",
    "LAST_INSERT_ID",
)
"""Functions of the servers' own that take no argument."""

_HEX: Final = re.compile(rb"(?:[0-9A-Fa-f]{2})*'")
_BITS: Final = re.compile(rb"[01]*'")
_DIGITS: Final = re.compile(rb"[0-6]")
_SPELLED: Final = {"x": _HEX, "b": _BITS}


def known(source: Source, value: Span) -> tuple[Spelling, ...] | None:
    """How the literals of a known value must be spelt; None for a value that a server has to resolve."""
    first = value.first
    while first < value.end and source.is_op(first, "+", "-"):
        first += 1
    size = value.end - first
    token = source.at(first)
    if size == 1 and (token.kind in (STRING, INTEGER, HEX, VARIABLE) or first in source.marks):
        return ()
    if size == 1 and token.kind == NUMBER:
        return None if "e" in token.text.lower() else ()  # 1e999 is no number
    if size == 1 and token.kind == PREFIXED and token.literal >= 0:
        pattern = _SPELLED.get(token.text[:1].lower())
        return None if pattern is None else (Spelling(token.literal, pattern),)
    if size > 1 and all(source.at(at).kind == STRING for at in range(first, value.end)):
        return ()
    if first > value.first:
        return None
    return () if size == 1 and source.is_word(first, *_CONSTANTS) else _call(source, value)


def _call(source: Source, value: Span) -> tuple[Spelling, ...] | None:
    """The same of a call such as NOW(6). With a blank before the parenthesis it may be another function."""
    first, size = value.first, value.end - value.first
    if not source.is_op(first + 1, "(") or source.at(first).end != source.at(first + 1).start:
        return None
    if not source.is_op(value.end - 1, ")"):
        return None
    if size == 3:
        return () if source.is_word(first, *_CALLS, *_BARE_CALLS) else None
    digits = source.at(first + 2)
    if size == 4 and source.is_word(first, *_CALLS) and digits.kind == INTEGER and digits.literal >= 0:
        return (Spelling(digits.literal, _DIGITS),)
    return None
