"""Which expressions give JSON, whose values have an order that only a server knows."""

from __future__ import annotations

import re
from typing import Final

from .context import Splicer
from .facts import Block, Span

_COLUMN: Final = re.compile(r"\s*json\b", re.IGNORECASE)
_WORDS: Final = """
JSON_EXTRACT JSON_OBJECT JSON_ARRAY JSON_SET JSON_INSERT JSON_REPLACE JSON_REMOVE JSON_MERGE JSON_MERGE_PATCH
JSON_MERGE_PRESERVE JSON_KEYS JSON_SEARCH JSON_ARRAY_APPEND JSON_ARRAY_INSERT JSON_OBJECTAGG JSON_ARRAYAGG
JSON_QUERY
"""
_OTHERS: Final = "JSON_UNQUOTE JSON_VALUE JSON_LENGTH JSON_TYPE JSON_VALID JSON_DEPTH LENGTH"
_GIVING: Final = tuple(_WORDS.split())
_TAKING: Final = tuple(_OTHERS.split())
"""Functions that give something else of it."""


def is_json(splicer: Splicer, block: Block, span: Span) -> bool:
    """Whether this may be JSON."""
    source = splicer.source
    if _COLUMN.match(splicer.columns.definition(block, span) or ""):
        return True
    if not any(source.is_op(at, "->") or source.is_word(at, *_GIVING) for at in range(*span)):
        return False
    whole = source.closing.get(span.first + 1) == span.end - 1
    return not (whole and source.is_word(span.first, *_TAKING))
