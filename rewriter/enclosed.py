"""What stands around the one literal that most statements have, found without cutting them.

A statement that has been cut, and whose only literal was a string or a list of integers, is known from then
on by the texts before and behind it: another string or list in that place is cut in the same way, as long as
nothing in it means something to the cutter (fingerprint.py).
"""

from __future__ import annotations

from typing import Final

from .route.id_lists import is_list

Enclosed = tuple[tuple[bytes, ...], bytes]
"""The texts and the literal, as `lift` would give them if that is the only one."""

_NUMBERS: Final = b"xXbB"
"""What stands before the quotes of a number."""
_QUOTE, _ESCAPE, _COMMA = b"'\\,"
"""As integers: Python looks for bytes within bytes by way of an exception, which costs 1,900 instructions."""
_NOTHING: Final[Enclosed] = ((), b"")


def enclosed(sql: bytes) -> Enclosed:
    """What may be the statement's only literal, and the texts around it; nothing where that is not plain."""
    return _string(sql) if _QUOTE in sql else _list(sql)


def _string(sql: bytes) -> Enclosed:
    """A string in single quotes. Nothing where there are more quotes, or what the string has in it may be cut
    in another way: what is escaped, a NUL byte, which no name has (`@'a'` is one, not a string), and what is
    no digit (`x'41'`, `b'1'`).
    """
    before, _, rest = sql.partition(b"'")
    inside, quote, behind = rest.rpartition(b"'")
    if not quote or _QUOTE in inside or _ESCAPE in inside or 0 in inside:
        return _NOTHING
    if not before or before[-1] in _NUMBERS:
        return _NOTHING
    return (before + b"'", behind + b"\0"), inside + b"'"


def _list(sql: bytes) -> Enclosed:
    """Integers in the last parentheses, at least two: they are lifted as one only where they are a list."""
    before, opened, rest = sql.rpartition(b"(")
    inside, closed, behind = rest.partition(b")")
    if not opened or not closed or _COMMA not in inside or not is_list(inside):
        return _NOTHING
    return (before + b"(", b")" + behind + b"\0"), inside
