"""Which expressions give JSON, whose values have an order that only a server knows."""

from __future__ import annotations

from typing import Final

from rewriter.route.context import Splicer
from rewriter.route.scope import Refuse, chains
from rewriter.text.facts import Block, Span
from rewriter.text.spans import unwrapped

_WORDS: Final = """
JSON_EXTRACT JSON_OBJECT JSON_ARRAY JSON_SET JSON_INSERT JSON_REPLACE JSON_REMOVE JSON_MERGE JSON_MERGE_PATCH
JSON_MERGE_PRESERVE JSON_KEYS JSON_SEARCH JSON_ARRAY_APPEND JSON_ARRAY_INSERT JSON_OBJECTAGG JSON_ARRAYAGG
JSON_QUERY JSON_COMPACT JSON_LOOSE JSON_DETAILED
"""
_GIVING: Final = tuple(_WORDS.split())
_PASSING: Final = (
    "IF",
    "IFNULL",
    "COALESCE",
    "NULLIF",
    "GREATEST",
    "LEAST",
    "MIN",
    "MAX",
    "ANY_VALUE",
    "ELT",
)
"""Functions whose value may be one of their arguments."""


def is_json(splicer: Splicer, block: Block, span: Span) -> bool:
    """Whether this may be JSON."""
    source = splicer.source
    span = unwrapped(source, span)
    if source.is_op(span.first + 1, "(") and source.closing[span.first + 1] == span.end - 1:
        if source.is_word(span.first, "CAST", "CONVERT", "JSON_VALUE"):
            return any(source.is_word(at, "JSON") for at in range(*span))
        if not source.is_word(span.first, *_GIVING, *_PASSING):
            return False
    if any(source.is_op(at, "->") or source.is_word(at, "JSON", *_GIVING) for at in range(*span)):
        return True
    for chain in chains(source, span, block):
        try:
            declared = splicer.columns.type_of(block, Span(chain.first, chain.end))
        except Refuse:
            continue
        if declared.kind == "json" and not source.is_op(chain.end, "->>"):
            return True
    return False
