"""Planning a SELECT for several shards: what each shard adds, and how it is merged."""

from __future__ import annotations

from typing import Final

from rewriter.bound import Aggregate, SortKey
from rewriter.plan import Reject
from rewriter.plans.sharded import Scatter
from rewriter.route.columns import Extra
from rewriter.route.context import Splicer
from rewriter.route.scope import Refuse, chain_at, chains
from rewriter.route.slot_filling import drop_statement_hints, names_query_blocks
from rewriter.route.values import Value, slot_at
from rewriter.splice import Part, Template
from rewriter.text.aggregates import is_aggregate
from rewriter.text.edits import Edits, original
from rewriter.text.facts import Block, Limit, Projection, SortItem, Span
from rewriter.text.literals import column_number
from rewriter.text.tokens import OPERATOR, VARIABLE

from .column_types import Cannot, by_value, constant, enumerated, is_exact, position, refuse_json
from .digits import perhaps_rounded, rounded, show_all, whole
from .per_shard import per_shard
from .shard_local import keyed, shard_local
from .together import outside

_MERGED: Final = {"COUNT": "count", "SUM": "sum", "MIN": "min", "MAX": "max"}
_NOT_IN_UNION: Final = frozenset({"HIGH_PRIORITY", "SQL_NO_CACHE", "SQL_CACHE", "SQL_BUFFER_RESULT"})
_ONE_SHARD: Final = "Name the shard by an ID."


def plan_scatter(splicer: Splicer, block: Block, exact: str) -> Scatter | Reject:
    """How the query that this block is runs on several shards, or why it cannot. Each shard can answer it for
    its own rows: see together.py. `exact`: see `Env`.
    """
    try:
        aggregates = [] if _check(splicer, block) else _aggregates(splicer, block)
        if aggregates:
            return _aggregated(splicer, block, aggregates, exact)
        return _ordered(splicer, block, exact)
    except Cannot as cannot:
        return cannot.plan


def _check(splicer: Splicer, block: Block) -> bool:
    """Refuse what is not merged. Whether each row of the result is one shard's own, groups included."""
    source = splicer.source
    whole = shard_local(splicer, block)
    if not whole and {"DISTINCT", "DISTINCTROW"} & set(block.modifiers):
        raise Cannot("DISTINCT", "the rows of several shards are not compared", _ONE_SHARD)
    if not whole and block.group:
        raise Cannot("GROUP BY", "groups of several shards are not combined here", _ONE_SHARD)
    if not whole and block.having is not None:
        raise Cannot("HAVING", "it is not evaluated over several shards", _ONE_SHARD)
    for clause, span in block.expressions():
        for at in outside(block, span):
            if source.is_word(at, "OVER") and not source.is_op(at - 1, ",", "("):
                raise Cannot("a window function", "a window does not reach over shards", _ONE_SHARD)
            if not whole and clause != "field list" and is_aggregate(splicer.source, at):
                raise Cannot("an aggregate function here", f"it stands in the {clause}", _ONE_SHARD)
    return whole


# aggregates


def _aggregates(splicer: Splicer, block: Block) -> list[Projection]:
    """The projections with an aggregate: all, or none."""
    found = [
        projection
        for projection in block.projections
        if any(is_aggregate(splicer.source, at) for at in outside(block, projection.span))
    ]
    if found and len(found) != len(block.projections):
        reason = "what is not aggregated is of no certain row"
        raise Cannot("a select list with and without aggregates", reason, _ONE_SHARD)
    return found


def _aggregated(splicer: Splicer, block: Block, projections: list[Projection], exact: str) -> Scatter:
    source = splicer.source
    edits = splicer.edits.copy()
    for modifier in _NOT_IN_UNION & set(block.modifiers):
        edits.remove(Span(block.modifiers[modifier], block.modifiers[modifier] + 1))
    aggregates = []
    weights: list[int] = []
    hidden: list[Part] = []
    for column, projection in enumerate(projections):
        span = projection.span
        name = source.tokens[span.first].text
        whole = is_aggregate(splicer.source, span.first) and source.closing[span.first + 1] == span.end - 1
        if not whole or name not in _MERGED or source.is_word(span.first + 2, "DISTINCT"):
            text = source.text(*span).decode("utf-8", "replace")
            raise Cannot(text, "only plain COUNT, SUM, MIN and MAX are combined yet", _ONE_SHARD)
        argument = Span(span.first + 2, span.end - 1)
        if name == "SUM" and not is_exact(splicer, block, argument):
            reason = "the sum of floating point numbers depends on their order"
            raise Cannot("this sum", reason, _ONE_SHARD)
        if name in ("MIN", "MAX"):
            refuse_json(splicer, block, argument)
            if splicer.columns.type_of(block, argument).kind == "bit":
                raise Cannot(f"{name} of a BIT column", "MariaDB gives it another form than a column's")
        weigh = name in ("MIN", "MAX") and not by_value(splicer, block, argument)
        if weigh:
            weights.append(column)
            merged_text = edits.inside(span)
            hidden += [*_weight(merged_text), b", COLLATION(", *merged_text, b")"]
        aggregates.append((column, _MERGED[name], weigh))
    total = 2 * len(weights)
    merged = tuple(
        Aggregate(column, function, *(_pair(2 * weights.index(column) - total) if weigh else (None, None)))
        for column, function, weigh in aggregates
    )
    edits.insert_behind(block.select_end - 1, *hidden)
    _show_all(splicer, block, edits, exact)
    reference = splicer.edits.copy()
    for clause in (block.order_span, block.limit.span if block.limit else None):
        if clause is not None:
            edits.remove(clause)
    _cut(reference, block)
    rows, offset = _limit(splicer, block.limit)
    return Scatter(
        part=edits.template(),
        next_part=_next_part(splicer, edits),
        reference=reference.template(),
        hidden=total,
        rows=rows,
        offset=offset,
        aggregates=merged,
        exact=bool(exact),
        values=_values(splicer, block),
        per_shard=per_shard(splicer, block) or _names_query_blocks(splicer),
    )


def _next_part(splicer: Splicer, edits: Edits) -> Template | None:
    """A shard's SELECT behind the first one of a UNION, if it is to lack hints that the first one has."""
    if not splicer.statement.names.env.flavour.set_var_hints:
        return None
    edits = edits.copy()
    return edits.template() if drop_statement_hints(splicer.source, edits) else None


def _names_query_blocks(splicer: Splicer) -> bool:
    return splicer.statement.names.env.flavour.set_var_hints and names_query_blocks(splicer.source)


def _show_all(splicer: Splicer, block: Block, edits: Edits, exact: str) -> None:
    if exact and not show_all(splicer, block, edits, exact):
        raise Cannot("FLOAT columns in this statement", "their text has too few digits", _ONE_SHARD)


def _weight(text: Parts) -> Parts:
    """A comma and an expression's weight. The cast keeps a UNION from taking numbers' weights for text."""
    return (b", ", b"CAST(WEIGHT_STRING(", *text, b") AS BINARY)")


def _pair(first: int) -> tuple[int, int]:
    """The indexes of a weight and of the collation behind it."""
    return first, first + 1


# rows


def _ordered(splicer: Splicer, block: Block, exact: str) -> Scatter:
    rows, offset = _limit(splicer, block.limit)
    edits = splicer.edits.copy()
    for modifier in _NOT_IN_UNION & set(block.modifiers):
        edits.remove(Span(block.modifiers[modifier], block.modifiers[modifier] + 1))
    items = [item for item in block.order if not constant(splicer, item.span)]
    keys = [_key(splicer, block, item, number) for number, item in enumerate(items)]
    hidden = [column for key in keys for column in key.hidden]
    order = []
    for key, item in zip(keys, items, strict=True):
        column = key.visible
        if column is None:
            column = hidden.index(key.hidden[0]) - len(hidden)
        pair: tuple[int | None, int | None] = (None, None)
        if key.weighed:
            pair = _pair(hidden.index(key.hidden[-2]) - len(hidden))
        order.append(SortKey(column, item.descending, *pair))
        edits.replace(item.span, *key.inner)
    for parts in hidden:
        edits.insert_behind(block.select_end - 1, b", ", *parts)
    if block.limit is not None:
        edits.replace(block.limit.span, splicer.extras.index(Extra("limit")))
    _show_all(splicer, block, edits, exact)
    reference = splicer.edits.copy()
    _cut(reference, block)
    outer = [
        key.outer + (b" DESC" if item.descending else b"") for key, item in zip(keys, items, strict=True)
    ]
    return Scatter(
        part=edits.template(),
        next_part=_next_part(splicer, edits),
        reference=reference.template(),
        tail=b" ORDER BY " + b", ".join(outer) if outer else b"",
        order=tuple(order),
        hidden=len(hidden),
        rows=rows,
        offset=offset,
        exact=bool(exact),
        values=_values(splicer, block),
        per_shard=per_shard(splicer, block) or _names_query_blocks(splicer),
    )


def _values(splicer: Splicer, block: Block) -> tuple[int, ...]:
    """The literals and user variables in the select list: its columns' definitions are made of them."""
    source = splicer.source
    found: list[int] = []
    for projection in block.projections:
        tokens = source.tokens[projection.span.first : projection.span.end]
        found += [part for part in original(source, tokens[0].start, tokens[-1].end) if isinstance(part, int)]
        for at in range(*projection.span):
            mark = slot_at(source, at) if source.tokens[at].kind in (VARIABLE, OPERATOR) else None
            if mark is not None:
                found.append(splicer.slots.index(mark[0]))
    return tuple(dict.fromkeys(found))


def _cut(edits: Edits, block: Block) -> None:
    """Make it the reference: no rows, no order and no locks, only the column definitions are wanted."""
    for clause in (block.order_span, block.lock):
        if clause is not None:
            edits.remove(clause)
    if block.limit is not None:
        edits.replace(block.limit.span, b"LIMIT 0")
    else:
        edits.insert_behind(block.end - 1, b" LIMIT 0")


def _limit(splicer: Splicer, limit: Limit | None) -> tuple[Value | None, Value | None]:
    if limit is None:
        return None, None
    found: list[Value | None] = []
    for span in (limit.rows, limit.offset):
        if span is None:
            found.append(None)
            continue
        token = splicer.source.tokens[span.first]
        mark = slot_at(splicer.source, span.first)
        if mark is not None and mark[0][0] == "?" and mark[1] == span.end:
            found.append(Value("parameter", splicer.slots.index(mark[0])))
            continue
        if span.end - span.first != 1 or token.kind != "integer" or token.literal < 0:
            raise Cannot("this LIMIT", "it is no plain number", "Write the number.")
        found.append(Value("integer", token.literal))
    return found[0], found[1]


Parts = tuple[Part, ...]


class _Key:
    """One sort key.

    `inner` is written in each shard's ORDER BY, `outer` in that of a host's UNION; `visible` is the index of
    the column that shows it, or None: then the first of `hidden` does. With `weighed` the last two of
    `hidden` are its weight and the name of its collation.
    """

    def __init__(
        self, inner: Parts, outer: bytes, visible: int | None, hidden: list[Parts], *, weighed: bool = False
    ) -> None:
        self.inner = inner
        self.outer = outer
        self.visible = visible
        self.hidden = hidden
        self.weighed = weighed


def _key(splicer: Splicer, block: Block, item: SortItem, number: int) -> _Key:
    span, visible = item.span, None
    place = _place(splicer, block, item)
    if place is not None:
        span, visible = block.projections[place[0]].span, place[1]
    refuse_json(splicer, block, span)
    name = b"`sg_key_%d`" % number
    expression = splicer.edits.inside(span)
    if enumerated(splicer, block, span):
        return _Key((name,), name, None, [(b"(", *expression, b" + 0) AS " + name)])
    if rounded(splicer, block, span):
        return _Key(splicer.edits.inside(item.span), name, None, [(*whole(expression), b" AS " + name)])
    if perhaps_rounded(splicer, block, span):
        raise Cannot("ordering by an expression of FLOAT", "its text has too few digits to be compared")
    if visible is not None:
        key = _Key(splicer.edits.inside(item.span), b"%d" % (visible + 1), visible, [])
    else:
        _refuse_aliases(splicer, block, span)
        _refuse_unshown(splicer, block, span)
        full = _full_id(splicer, block, span)
        inner = expression if full else (name,)
        expression = full or expression
        key = _Key(inner, name, None, [(*expression, b" AS " + name)])
    if not by_value(splicer, block, span):
        if block.group and not _whole(splicer, span):
            reason = "MySQL does not take an expression of a key for one in a function of it"
            raise Cannot("ordering groups by an expression", reason)
        key.hidden.append((*_weight(expression)[1:], b" AS `sg_weight_%d`" % number))
        key.hidden.append((b"COLLATION(", *expression, b") AS `sg_collation_%d`" % number))
        key.weighed = True
    return key


def _refuse_aliases(splicer: Splicer, block: Block, span: Span) -> None:
    """An alias inside an expression: beside it in the select list, where the key is put, nobody knows it."""
    aliases = {one.alias.lower() for one in block.projections if one.alias is not None}
    known: set[str] = set()
    for ref in block.tables:
        known.update(name.lower() for name in splicer.scope.targets[ref].columns or ())
    for chain in chains(splicer.source, span, block):
        name = chain.parts[-1].lower()
        if len(chain.parts) == 1 and name in aliases and name not in known:
            raise Cannot("ORDER BY an expression with an alias", "the shards do not know it", "Repeat it.")


def _refuse_unshown(splicer: Splicer, block: Block, span: Span) -> None:
    """What is no key of the groups: MariaDB orders by it, but does not show it under ONLY_FULL_GROUP_BY."""
    if (
        block.group
        and splicer.statement.names.env.flavour.orders_by_hidden
        and not keyed(splicer, block, span)
    ):
        raise Cannot("ordering groups by something else than their keys", "no shard need show it")


def _whole(splicer: Splicer, span: Span) -> bool:
    """Whether this is a column, or an aggregate."""
    source = splicer.source
    if is_aggregate(source, span.first):
        return source.closing[span.first + 1] == span.end - 1
    chain = chain_at(source, span.first)
    return chain is not None and chain.end == span.end


def _full_id(splicer: Splicer, block: Block, span: Span) -> tuple[Part, ...]:
    """The virtual `id` that `span` names, as an expression; () when it is something else."""
    chain = chain_at(splicer.source, span.first)
    if chain is None or chain.end != span.end or chain.column != "ID":
        return ()
    ref = splicer.scope.table_of(chain, block)
    if ref is None or not splicer.scope.targets[ref].is_object:
        return ()
    return (b"(" + splicer.columns.qualifier(chain) + b"local_id + ", splicer.columns.id_offset(ref), b")")


def _place(splicer: Splicer, block: Block, item: SortItem) -> tuple[int, int] | None:
    """The projection that an ORDER BY key names by its number or alias, and that projection's column."""
    source, span = splicer.source, item.span
    token = source.tokens[span.first]
    if source.is_op(span.first, "+", "-", "(") and position(source, span):
        raise Cannot("ORDER BY a signed number", "it may be a column's number", "Leave the sign out.")
    if source.is_op(span.first, "+") or (span.end - span.first == 1 and token.text in ("TRUE", "FALSE")):
        raise Cannot("ORDER BY a constant", "a server may take it for a column's number", "Leave it out.")
    if span.end - span.first != 1:
        return None
    if token.kind == "integer":
        splicer.statement.guard(span)
        wanted = column_number(token.text)
        if wanted is None:
            return None
        column = 0
        for number, projection in enumerate(block.projections):
            width = splicer.columns.width(block, projection)
            if column + 1 <= wanted <= column + width:
                if projection.star:
                    raise Cannot("ORDER BY a number", "the column is one of *", "Write the column's name.")
                return number, column
            column += width
        clause = splicer.statement.names.env.flavour.order_clause
        raise Refuse("unknown_column", column=token.text, clause=clause)
    aliased = splicer.columns.aliased(span, block)
    if aliased is None:
        return None
    number = block.projections.index(aliased)
    return number, sum(splicer.columns.width(block, one) for one in block.projections[:number])
