"""Groups that no two shards share: those whose keys have the table's routing column among them.

All rows of such a group are on one shard, which then gives the finished row: `SELECT user_id, COUNT(*) FROM
user_likes_pins GROUP BY user_id HAVING COUNT(*) > 5 ORDER BY 2 DESC LIMIT 10` is merged like rows of a table.
The same holds for distinct rows that show the routing column.
"""

from __future__ import annotations

from rewriter.route.context import Splicer
from rewriter.route.scope import Refuse, chain_at, chains
from rewriter.text.aggregates import is_aggregate
from rewriter.text.facts import Block, Span
from rewriter.text.literals import column_number

from .together import outside


def shard_local(splicer: Splicer, block: Block) -> bool:
    """Whether each row of the block's result is made of one shard's rows, and no two shards give equal rows
    that are to be one. Each shard can answer the block for its own rows.
    """
    distinct = "DISTINCT" in block.modifiers or "DISTINCTROW" in block.modifiers
    if not (block.group or distinct) or "ROLLUP" in block.modifiers:
        return False
    if block.group and distinct:
        return (
            False  # (MariaDB 10.11 computes AVG wrongly there, over an expression such as the virtual `id`)
        )
    shown = [one.span for one in block.projections if not one.star]
    if distinct and not (any(_routes(splicer, block, span) for span in shown) and _shown(splicer, block)):
        return False
    if block.group:
        return any(_keyed(splicer, block, item.span) for item in block.group) and not _of_bits(splicer, block)
    source = splicer.source
    return not any(is_aggregate(source, at) for _, span in block.expressions() for at in outside(block, span))


def _keyed(splicer: Splicer, block: Block, span: Span) -> bool:
    """Whether an item of GROUP BY is the routing column, by its name or its number."""
    token = splicer.source.tokens[span.first]
    if span.end - span.first == 1 and token.kind == "integer":
        splicer.statement.guard(span)
        number = column_number(token.text) or 0
        if not 0 < number <= len(block.projections) or any(one.star for one in block.projections):
            return False
        return _routes(splicer, block, block.projections[number - 1].span)
    return _routes(splicer, block, span)


def _routes(splicer: Splicer, block: Block, span: Span) -> bool:
    """Whether this is the routing column of a table that is routed by numbers: equal texts may be on
    different shards.
    """
    chain = chain_at(splicer.source, span.first)
    if chain is None or chain.end != span.end:
        return False
    try:
        ref = splicer.scope.table_of(chain, block)
    except Refuse:
        return False
    table = None if ref is None else splicer.scope.targets[ref].table
    if ref is None or ref not in block.tables or block.tables.index(ref) in block.nullable:
        return False  # rows of NULLs are everywhere
    return table is not None and splicer.conditions.groups_by(table, chain.column)


def _shown(splicer: Splicer, block: Block) -> bool:
    """Whether ORDER BY names only what the select list has."""
    source = splicer.source

    def text(span: Span) -> list[object]:
        return [source.text(at, at + 1).lower() for at in range(*span)]

    shown = [text(one.span) for one in block.projections]
    aliases = {one.alias.lower() for one in block.projections if one.alias is not None}
    for item in block.order:
        one = source.tokens[item.span.first]
        if item.span.end - item.span.first == 1 and (one.kind == "integer" or one.name.lower() in aliases):
            continue
        if text(item.span) not in shown:
            return False
    return True


def _of_bits(splicer: Splicer, block: Block) -> bool:
    """Whether an aggregate is one of a BIT column, which has another form in a UNION."""
    source = splicer.source
    for _, span in block.expressions():
        for at in range(*span):
            chain = chain_at(source, at + 2) if is_aggregate(source, at) else None
            ref = splicer.scope.table_of(chain, block) if chain is not None else None
            table = None if ref is None else splicer.scope.targets[ref].table
            column = table.column(chain.column) if table is not None and chain is not None else None
            if column is not None and column.type.kind == "bit":
                return True
    return False


def keyed(splicer: Splicer, block: Block, span: Span) -> bool:
    """Whether an expression is an aggregate, a key of the groups, or made of keys that are columns."""
    source = splicer.source

    def text(part: Span) -> bytes:
        return b" ".join(source.text(at, at + 1).lower() for at in range(*part))

    if is_aggregate(source, span.first) and source.closing[span.first + 1] == span.end - 1:
        return True
    keys = {text(_meant(splicer, block, item.span)) for item in block.group}
    named = [Span(chain.first, chain.end) for chain in chains(source, span, block)]
    return text(span) in keys or all(text(one) in keys for one in named)


def _meant(splicer: Splicer, block: Block, span: Span) -> Span:
    """The expression that a key is: the select list's, for its number or alias."""
    token = splicer.source.tokens[span.first]
    if span.end - span.first > 1:
        return span
    if token.kind == "integer":
        number = (column_number(token.text) or 0) - 1
        return block.projections[number].span if 0 <= number < len(block.projections) else span
    named = [one for one in block.projections if (one.alias or "").lower() == token.name.lower()]
    return named[0].span if named else span
