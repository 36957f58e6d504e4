"""Raw literals to Python's integers and bytes, as the cutter, the session and parameters give them."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Final

HUGE: Final = 1 << 200
"""Stands for an integer of more digits than anything stored has."""

ENCODINGS: Final = {
    "utf8": "utf-8",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "ascii": "ascii",
    "latin1": "cp1252",
}
"""Python's names of character sets whose texts can be made UTF-8."""

_WIDE: Final = Context(prec=200)
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1  # of BIGINT, signed and unsigned

_CONVERTED: Final = re.compile(rb"CONVERT\(x'([0-9a-fA-F]*)' USING (\w+)\)\Z", re.IGNORECASE)
_DIGITS: Final = re.compile(rb"-?[0-9]{1,60}\Z")
_UNSIGNED: Final = re.compile(rb"CAST\(([0-9]{1,20}) AS UNSIGNED\)\Z")
"""How the session writes a user variable that a server has set to an unsigned number."""


class NotPlain(Exception):
    """A value is not plainly an integer (or not plainly a text): it cannot be used for routing."""


_LONG: Final = 60


def plain_integer(raw: bytes) -> int:
    """The integer of decimal digits, with a sign or without; HUGE when they are too many to matter."""
    if len(raw) < _LONG:
        return int(raw)
    digits = raw.lstrip(b"-0") or b"0"
    if len(digits) >= _LONG:
        return HUGE
    return -int(digits) if raw[:1] == b"-" else int(digits)


_NUMERIC: Final = re.compile(
    rb"[ \t-\r]*([+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?)[ \t-\r]*\Z"
)


def quoted_integer(raw: bytes) -> int:
    """The integer that a string (raw, with its closing quote) is when it is compared with a BIGINT column.

    Raises NotPlain for a text that the server would not take for one.
    """
    digits = raw[:-1]
    if raw[-1:] not in (b"'", b'"'):
        raise NotPlain
    return plain_integer(digits) if digits.isdigit() else _stored_integer(digits)


def _stored_integer(text: bytes) -> int:
    """The integer that a number in a text becomes in a BIGINT column, rounded as there.

    Servers compare the column with that integer if it equals the text as a double, else both as doubles, for
    which large IDs are equal that differ: of such a text nothing is said (NotPlain).
    """
    found = _NUMERIC.match(text)
    if found is None:
        raise NotPlain
    exact = Decimal(found[1].decode())
    with localcontext(_WIDE):
        number = int(exact.to_integral_value(ROUND_HALF_UP))
    if not _LEAST <= number <= _MOST or float(number) != float(exact):
        raise NotPlain
    return number


def slot_integer(raw: bytes) -> int:
    """The integer of an SQL literal that the session gave. Raises NotPlain."""
    if raw[:1] == b"'":
        return quoted_integer(raw[1:])
    return exact_integer(raw)


def slot_text(raw: bytes) -> bytes:
    """The text, in UTF-8, or the bytes of an SQL literal that the session gave. Raises NotPlain.

    The session writes what is not plain ASCII as `_binary x'…'`, or as `CONVERT(x'…' USING charset)`.
    """
    if raw[:1] == b"'" and len(raw) > 1 and b"\\" not in raw:
        return unquote(raw[1:], False)
    if raw[:10] == b"_binary x'":
        return from_hex(raw[10:-1])
    found = _CONVERTED.match(raw)
    if found is None:
        raise NotPlain
    try:
        return from_hex(found[1]).decode(ENCODINGS[found[2].decode().lower()]).encode()
    except (KeyError, UnicodeDecodeError):
        raise NotPlain from None


_DOUBLE: Final = re.compile(rb"-?[0-9]{1,17}(?:\.[0-9]+)?e[-+]?[0-9]{1,3}\Z")
_EXACT: Final = 1 << 53
"""Doubles below it that are whole numbers equal just one integer."""


def parameter_integer(raw: bytes) -> int:
    """The integer of a parameter, written as an SQL literal. Raises NotPlain.

    Also that of a double that is a whole number, as JavaScript's numbers come.
    """
    if _DIGITS.match(raw):
        return int(raw)
    if raw[:1] == b"'":
        return quoted_integer(raw[1:])
    if _DOUBLE.match(raw):
        number = float(raw)
        if number.is_integer() and abs(number) < _EXACT:
            return int(number)
    if raw[-1:] == b"." and _DIGITS.match(raw[:-1]):
        return int(raw[:-1])
    raise NotPlain


def parameter_text(raw: bytes, backslashes: bool) -> bytes:
    """The bytes of a text parameter, in the session's character set, or of one that is none. Raises NotPlain
    for what is no text.
    """
    if raw[:10] == b"_binary x'":
        return from_hex(raw[10:-1])
    raw = raw.removeprefix(b"_binary")
    if raw[:1] != b"'":
        raise NotPlain
    return unquote(raw[1:], backslashes)


def exact_integer(raw: bytes) -> int:
    """The integer of a value of the session's or of a parameter that is one. Raises NotPlain for a text,
    which in some places makes the server compare doubles.
    """
    found = _UNSIGNED.match(raw)
    digits = raw if found is None else found[1]
    if not _DIGITS.match(digits):
        raise NotPlain
    return int(digits)


_CAST: Final = re.compile(rb"['\"]?([0-9]{1,19})['\"]?\Z")


def column_number(digits: str) -> int | None:
    """The number of a column that an integer in ORDER BY or GROUP BY stands for, of which servers take 32
    bits; None for one that is no integer of a server, so a constant.
    """
    digits = digits.lstrip("0")
    value = int(digits or "0") if len(digits) <= 20 else _MOST + 1
    return value & 0xFFFFFFFF if value <= _MOST else None


def cast_integer(raw: bytes) -> int:
    """What CAST(… AS SIGNED) and AS UNSIGNED make of digits: a literal, raw, or a parameter. Raises NotPlain
    for other texts, of which servers take the beginning, and for numbers that differ by sign.
    """
    found = _CAST.match(raw)
    if found is None or int(found[1]) >> 63:
        raise NotPlain
    return int(found[1])


def from_hex(digits: bytes) -> bytes:
    """The bytes of hexadecimal digits, an odd number of which begins with 0. Raises NotPlain."""
    try:
        return bytes.fromhex((b"0" * (len(digits) % 2) + digits).decode())
    except ValueError:
        raise NotPlain from None


_ESCAPES: Final = {
    b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a", b"%": b"\\%", b"_": b"\\_"
}  # fmt: skip


def unquote(raw: bytes, backslashes: bool) -> bytes:
    """The bytes that a quoted string means; `raw` is its inside with the closing quote.

    `backslashes`: they escape. Raises NotPlain when the quote is missing.
    """
    quote, inside = raw[-1:], raw[:-1]
    if quote not in (b"'", b'"'):
        raise NotPlain
    if quote in inside:
        inside = inside.replace(quote * 2, quote) if not backslashes or b"\\" not in inside else inside
    if not backslashes or b"\\" not in inside:
        return inside
    pattern = rb"\\(.)|" + quote * 2
    return re.sub(
        pattern,
        lambda found: quote if found[1] is None else _ESCAPES.get(found[1], found[1]),
        inside,
        flags=re.DOTALL,
    )


def quoted(text: bytes, backslashes: bool) -> bytes:
    """`text` as a quoted SQL string."""
    if backslashes:
        text = text.replace(b"\\", b"\\\\")
    return b"'" + text.replace(b"'", b"''") + b"'"
