"""Durations and sizes as operators write them.

>>> parse_duration("500ms"), parse_duration("1h30m"), parse_duration(2)
(0.5, 5400.0, 2.0)
>>> parse_size("64MB"), parse_size(512)
(67108864, 512)
"""

from __future__ import annotations

import re
from math import inf
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator

_SECONDS: Final = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART: Final = r"([0-9]{1,20}(?:\.[0-9]{1,20})?) *(ms|s|m|h|d)"
_DURATION: Final = re.compile(rf"{_PART}(?: *{_PART})*\Z")
_DURATION_PART: Final = re.compile(_PART)

_BYTES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE: Final = re.compile(r"([0-9]{1,20})(?: *(?=[A-Z])([KMGT]?)(?:i?B)?)?\Z", re.I)

LONGEST: Final = 366 * 86400.0
"""Seconds: more than a year is none's intention, and more than some timers take."""
LARGEST: Final = 1 << 50
"""Bytes."""


def parse_duration(value: object) -> float:
    """Seconds: a number of them, or a text like 500ms, 30s, 1h30m. Raises ValueError."""
    found = -1.0
    if isinstance(value, int | float) and not isinstance(value, bool):
        found = value
    elif isinstance(value, str) and _DURATION.match(value):
        found = sum(float(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(value))
    if LONGEST < found < inf:
        raise ValueError("must be at most 366d")
    if not 0 <= found < inf:  # nor is a NaN
        raise ValueError("must be a number of seconds, or a text like 500ms, 30s or 1h30m")
    return float(found)


def parse_size(value: object) -> int:
    """Bytes: a number of them, or a text like 512KB, 64MB, 1GiB (units of 1024). Raises ValueError."""
    found = -1
    match = _SIZE.match(value) if isinstance(value, str) else None
    if match:
        found = int(match[1]) * _BYTES[(match[2] or "").upper()]
    elif isinstance(value, int) and not isinstance(value, bool):
        found = value
    if found > LARGEST:
        raise ValueError("must be at most 1024TB")
    if found < 0:
        raise ValueError("must be a number of bytes, or a text like 512KB, 64MB or 1GB")
    return found


def duration_text(seconds: float) -> str:
    """As it is written, in the largest unit of which it is a whole number.

    >>> duration_text(3600.0), duration_text(90.0), duration_text(0.01)
    ('1h', '90s', '10ms')
    """
    for unit in ("d", "h", "m", "s"):
        count = seconds / _SECONDS[unit]
        if count >= 1 and count == int(count):
            return f"{int(count)}{unit}"
    return f"{seconds / _SECONDS['ms']:g}ms"


def size_text(size: int) -> str:
    """As it is written, in the largest unit of which it is a whole number.

    >>> size_text(1 << 30), size_text(1500 << 10), size_text(1001)
    ('1GB', '1500KB', '1001B')
    """
    unit = next((unit for unit, of in reversed(_BYTES.items()) if size >= of and size % of == 0), "")
    return f"{size // _BYTES[unit]}{unit}B"


def at_least(low: float, *, or_zero: bool = False) -> AfterValidator:
    """A duration of no less than `low` seconds, or 0."""
    message = f"must be {'0 or ' if or_zero else ''}at least {duration_text(low)}"

    def check(value: float) -> float:
        if value < low and not (or_zero and value == 0):
            raise ValueError(message)
        return value

    return AfterValidator(check)


Duration = Annotated[float, BeforeValidator(parse_duration)]
"""A pydantic type: seconds."""

Size = Annotated[int, BeforeValidator(parse_size)]
"""A pydantic type: bytes."""
