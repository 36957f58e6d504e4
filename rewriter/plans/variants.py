"""All variants of `Plan`, and tables that have an entry for each of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Final, TypeVar

from rewriter.plan import Plan

from . import OneHost
from .builtins import Builtin, EndTransaction, Listing, OfSavepoint, Show, ShowDiagnostics, ShowOfTable
from .cached import Touching
from .sharded import Sharded

Entry = TypeVar("Entry")

MIDDLE: Final[frozenset[type[Plan]]] = frozenset(
    {
        OneHost,  # the statement goes whole to one host
        Sharded,  # its conditions find the shards
        Builtin,  # the proxy answers it
        EndTransaction,
        OfSavepoint,
        Show,
        Listing,
        ShowDiagnostics,
        ShowOfTable,
        Touching,  # mixed into those that change rows in caches
    }
)
"""Classes that only variants inherit from: no plan is of one of them."""


def variants() -> Iterator[type[Plan]]:
    """Every class of which there are plans."""
    for variant in _below(Plan):
        if variant not in MIDDLE:
            yield variant


def by_variant(table: Mapping[type[Plan], Entry]) -> dict[type[Plan], Entry]:
    """The entry for each variant: its own in `table`, or that of the next class that it inherits from. Raises
    LookupError if a variant has none.
    """
    found: dict[type[Plan], Entry] = {}
    for variant in variants():
        above = next((one for one in variant.__mro__ if one in table), None)
        if above is None:
            raise LookupError(f"the table has no entry for {variant.__qualname__}")
        found[variant] = table[above]
    return found


def _below(parent: type[Plan]) -> Iterator[type[Plan]]:
    seen: dict[type[Plan], None] = {}
    pending = [parent]
    while pending:
        for child in pending.pop().__subclasses__():
            pending.append(child)
            seen[child] = None
    for one in seen:
        # a class with slots is made anew from the one that was written, which may still be there; classes of
        # tests are nobody's plans
        home = sys.modules[one.__module__]
        if one.__module__.startswith("rewriter.") and getattr(home, one.__name__, None) is one:
            yield one
