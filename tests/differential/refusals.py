"""What shardgate may refuse: its documented errors, recognised by their texts in the registry.

A statement of the supported kinds must be answered. What goes beyond carries a feature listed here, and may
be refused with one of that feature's errors; answered it must be right as well.
"""

from __future__ import annotations

import re

from proxy.errors import REGISTRY
from tests.differential.answers import Failure

NOT_YET = frozenset({"not_supported_yet"})

REFUSABLE: dict[str, frozenset[str]] = {
    # what MySQL does and one shard cannot
    "routing column update": frozenset({"routing_column_update"}),
    "scatter write": frozenset({"scatter_denied"}),
    "insert of an impossible id": frozenset({"invalid_id"}),
    # of rows that have to be gathered
    "lock": NOT_YET,
    # not yet: each goes when it is there
    "limit of a write": NOT_YET,
    "insert ignore": NOT_YET,
    "on duplicate key": NOT_YET,
    "replace": NOT_YET,
    "timed insert": frozenset({"unroutable_write", "invalid_id", "shard_missing"}),
}

_NAMES = (
    "not_supported_yet",
    "unroutable_write",
    "scatter_denied",
    "scatter_limit",
    "routing_column_update",
    "invalid_id",
    "partial_write",
    "no_open_shard",
    "shard_missing",
    "charset_refused",
)


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, re.split(r"\{\w+\}", text))), re.DOTALL)


_PATTERNS = {name: (REGISTRY[name].code, _pattern(REGISTRY[name].text)) for name in _NAMES}


def refusal(failure: Failure) -> str | None:
    """The registry's name of a documented refusal; None for any other error."""
    for name, (code, pattern) in _PATTERNS.items():
        if failure.code == code and pattern.match(failure.message):
            return name
    return None


def allowed(features: frozenset[str]) -> frozenset[str]:
    """The refusals that a statement with these features may meet."""
    return frozenset().union(*(REFUSABLE.get(feature, frozenset()) for feature in features))
