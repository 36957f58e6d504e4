"""Numbers in words, for people."""

from __future__ import annotations


def count(number: float, what: str) -> str:
    """A number of things.

    >>> count(1, "kind"), count(1234, "kind")
    ('1 kind', '1,234 kinds')
    """
    return f"{number:,.0f} {what}{'' if round(number) == 1 else 's'}"


def seconds(number: float) -> str:
    """A time.

    >>> [seconds(one) for one in (0.00012, 0.034, 2.5, 7200.0)]
    ['0.12 ms', '34 ms', '2.5 s', '2.0 h']
    """
    if number < 0.001:
        return f"{number * 1000:.2g} ms"
    if number < 1:
        return f"{number * 1000:.0f} ms"
    if number < 600:
        return f"{number:.1f} s"
    return f"{number / 60:.0f} min" if number < 7200 else f"{number / 3600:.1f} h"


def size(number: int) -> str:
    """Bytes.

    >>> [size(one) for one in (900, 12_345, 7_654_321)]
    ['900 B', '12 KB', '7.7 MB']
    """
    if number < 1000:
        return f"{number} B"
    if number < 1_000_000:
        return f"{number / 1000:.0f} KB"
    return f"{number / 1_000_000:.1f} MB" if number < 1_000_000_000 else f"{number / 1_000_000_000:.1f} GB"


def mean(number: float) -> str:
    """A mean number of shards."""
    return f"{number:.0f}" if abs(number - round(number)) < 0.05 else f"{number:.1f}"
