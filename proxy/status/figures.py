"""What the status page makes of counters: totals, means, quantiles."""

from __future__ import annotations

from proxy import load
from proxy.stats import BUCKETS

from .snapshot import Query, Statements


def total(statements: Statements) -> int:
    """How many statements that is."""
    return sum(statements["buckets"])


def mean(statements: Statements) -> float:
    """Their mean time in seconds; 0 without any."""
    count = total(statements)
    return statements["seconds"] / count if count else 0.0


def quantile(statements: Statements, share: float) -> float:
    """The time in seconds within which `share` (0 to 1) of them were answered, as well as the buckets tell.

    Linear within a bucket; what is above the last bound counts as that bound. 0 without any statement.
    """
    wanted = share * total(statements)
    below = 0
    for index, count in enumerate(statements["buckets"][: len(BUCKETS)]):
        if count and below + count >= wanted:
            lower = BUCKETS[index - 1] if index else 0.0
            return lower + (BUCKETS[index] - lower) * (wanted - below) / count
        below += count
    return BUCKETS[-1] if below < total(statements) else 0.0


def within(query: Query, share: float) -> float:
    """The time in seconds within which `share` (0 to 1) of the runs of a statement were answered."""
    return load.quantile(query["buckets"], share, query["longest"], BUCKETS)
