"""What a UNION changes: values whose digits depend on whether a server keeps a result in a temporary table.

Servers show what a user variable gives as it is, and MySQL what IF and CASE give: `IF(n > 1, price, 0)` is
`9.90` or `0`. In a UNION, whose rows go through a table, the same is `0.00`; and what is longer than a server
expects is cut: `REPLACE('ab', 'a', 'ab')` is `ab` (MySQL), and what JSON_SET gives no JSON (MariaDB). And an
average within an expression has all its digits only until it is kept, as ORDER BY does. So such a SELECT is
sent for each shard by itself, as the client wrote it. (What MariaDB cuts besides is known by the types of a
result's columns only: see `Bound.per_shard`.)
"""

from __future__ import annotations

from typing import Final

from config.column_type import ColumnType
from config.flavour import Flavour
from rewriter.route.context import Splicer
from rewriter.route.scope import Refuse, chains
from rewriter.text.aggregates import is_aggregate
from rewriter.text.facts import Block, Span
from rewriter.text.spans import unwrapped
from rewriter.text.tokens import NUMBER, SYSTEM, VARIABLE

_PERHAPS: Final = ("exact", "bits", "shape", "other", "")
"""The families of types of which a DECIMAL is made without arithmetic, or may be."""
_PASSING: Final = (
    "IF",
    "IFNULL",
    "COALESCE",
    "NULLIF",
    "CASE",
    "GREATEST",
    "LEAST",
    "ANY_VALUE",
    "MIN",
    "MAX",
)
_LONGER: Final = {
    "mariadb": frozenset(
        {
            "JSON_ARRAY",
            "JSON_ARRAY_APPEND",
            "JSON_ARRAY_INSERT",
            "JSON_INSERT",
            "JSON_MERGE",
            "JSON_MERGE_PATCH",
        }
        | {"JSON_MERGE_PRESERVE", "JSON_OBJECT", "JSON_QUOTE", "JSON_REPLACE", "JSON_SET", "JSON_UNQUOTE"}
        | {"AES_DECRYPT", "AES_ENCRYPT", "FROM_UNIXTIME", "ORD"}
    ),
    "mysql": frozenset({"FORMAT", "MAKE_SET", "REPLACE", "YEAR"}),
}
"""Functions that give more than servers expect of them, by the flavour: the column that a UNION
makes for them is too short, or of too few digits."""
_DECIMAL: Final = ("SUM", "AVG", "ROUND", "TRUNCATE", "CAST", "CONVERT", "STDDEV", "VARIANCE")


def per_shard(splicer: Splicer, block: Block) -> bool:
    """Whether each shard must get a statement of its own."""
    flavour = splicer.statement.names.env.flavour
    kept = "DISTINCT" in block.modifiers or "DISTINCTROW" in block.modifiers
    for one in block.projections:
        if one.star:
            continue
        span = unwrapped(splicer.source, one.span)
        shown = _chosen(splicer, span) if flavour.chosen_decimals_differ else _is_variable(splicer, span)
        if shown and not kept and _decimal(splicer, block, span):
            return True
        if _remade(splicer, block, span, flavour=flavour):
            return True
        if _averaged(splicer, span, flavour=flavour):
            return True
    return False


def _remade(splicer: Splicer, block: Block, span: Span, *, flavour: Flavour) -> bool:
    """Whether a server makes a column of it that does not hold the value: of some functions one that is too
    short, as of a FLOAT's or DOUBLE's digits; of a BIT or YEAR that is passed on one of that type.
    """
    source = splicer.source
    if any(source.is_word(at, *_LONGER[flavour.name]) and source.is_op(at + 1, "(") for at in range(*span)):
        return True
    passing = any(source.is_word(at, *_PASSING) for at in range(*span))
    whole = is_aggregate(source, span.first) and source.closing[span.first + 1] == span.end - 1
    computed = not whole and any(source.is_op(at, "(", "*", "+", "-", "/", "%") for at in range(*span))
    if not passing and not computed:
        return False
    types = _types(splicer, block, span)
    if passing and any(one.kind in ("bit", "year") for one in types):
        return True
    return computed and any(one.floating for one in types)


def _types(splicer: Splicer, block: Block, span: Span) -> list[ColumnType]:
    """The types of the columns that are named."""
    found = []
    for chain in chains(splicer.source, span, block):
        try:
            found.append(splicer.columns.type_of(block, Span(chain.first, chain.end)))
        except Refuse:
            continue
    return found


def _averaged(splicer: Splicer, span: Span, *, flavour: Flavour) -> bool:
    """Whether this is an expression with an average in it, or one of numbers that MariaDB thinks shorter."""
    source = splicer.source
    if flavour.averages_in_bits and any(source.is_word(at, "ASCII", "BIT_COUNT") for at in range(*span)):
        return any(source.is_word(at, "AVG") and is_aggregate(source, at) for at in range(*span))
    if is_aggregate(source, span.first) and source.closing[span.first + 1] == span.end - 1:
        return False
    return any(source.is_word(at, "AVG") and is_aggregate(source, at) for at in range(*span))


def _is_variable(splicer: Splicer, span: Span) -> bool:
    return span.end - span.first == 1 and splicer.source.tokens[span.first].kind == VARIABLE


def _chosen(splicer: Splicer, span: Span) -> bool:
    """Whether this is a user variable, IF(…), NULLIF(…) or CASE … END."""
    source = splicer.source
    if _is_variable(splicer, span):
        return True
    if source.is_word(span.first, "CASE"):
        return source.is_word(span.end - 1, "END")
    called = source.is_word(span.first, "IF", "NULLIF") and source.is_op(span.first + 1, "(")
    return called and source.closing[span.first + 1] == span.end - 1


def _decimal(splicer: Splicer, block: Block, span: Span) -> bool:
    """Whether the values may be of type DECIMAL (or BIT)."""
    source = splicer.source
    for at in range(*span):
        token = source.tokens[at]
        if token.kind in (NUMBER, VARIABLE, SYSTEM) or token.text == "?":
            return True
        if source.is_op(at, "/") or source.is_word(at, *_DECIMAL):
            return True
    for chain in chains(source, span, block):
        try:
            ref = splicer.scope.table_of(chain, block)
        except Refuse:
            return True
        target = None if ref is None else splicer.scope.targets[ref]
        if target is None or target.table is None:
            continue
        if target.is_object and chain.column == "ID":
            continue
        column = target.table.column(chain.column)
        if column is None or column.type.family in _PERHAPS:
            return True
    return False
