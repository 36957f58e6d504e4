"""Planning a SELECT on sharded tables."""

from __future__ import annotations

from config.layout import ID_MAX
from rewriter.plan import Access, Plan, Reject
from rewriter.plans.sharded import LIMIT, Listed, Scatter, ShardSelect
from rewriter.route.binding import CHUNK, UNION_BYTES, Routing
from rewriter.route.column_metadata import column_metadata_of
from rewriter.route.columns import Extra
from rewriter.route.context import Splicer, Statement, keyspace_of, not_yet, table_names
from rewriter.route.hidden import hide, hiding
from rewriter.route.id_lists import BASE, CONSTANTS, DATABASE, Most
from rewriter.route.point import Point
from rewriter.route.routing import Route
from rewriter.route.scope import Scope, Unsupported
from rewriter.splice import Label, Template
from rewriter.sql.statements.effects import Effects, assigns_insert_id
from rewriter.text.facts import Block, Query, TableRef

from .determined import seen_alike
from .scatter import plan_scatter
from .through import Through
from .together import both_ways, together


def plan_select(statement: Statement, query: Query, scope: Scope, *, explain: bool = False) -> Plan:
    """The plan of a SELECT, some of whose tables are sharded and none are anywhere else.

    `explain`: the query stands behind EXPLAIN, so that one shard stands for all. Raises Refuse.
    """
    refs = scope.sharded()
    keyspace_of(scope, refs)  # refuses several, before anything else is wrong with them
    _check(statement, query)
    splicer = Splicer(statement, scope)
    splicer.columns.blocks(query.all_blocks())
    if not explain:
        _check_groups(splicer, query)
    both_ways(splicer, query)
    if splicer.hides:
        _hide(splicer, query)
    through = Through(statement.source, scope, {}, statement.second)
    routes = splicer.routes(refs, None if explain else through.kept)
    block = together(splicer, query, refs)
    scattered = _scattered(splicer, block, refs, explain=explain)
    unrouted = any(route.unbounded for route in routes)
    if unrouted and not isinstance(scattered, Scatter):
        return scattered
    template = splicer.edits.template()
    routing = splicer.routing(refs, routes)
    kept = Effects(insert_id="ask") if assigns_insert_id(statement.source) and not explain else None
    locks = any(block.lock is not None for block in query.all_blocks())
    return ShardSelect(
        access=Access.WRITE if locks else Access.READ,
        session_slots=tuple(splicer.slots.names),
        databases=tuple(dict.fromkeys(scope.targets[ref].database for ref in refs)),
        routing=routing,
        template=template,
        scattered=scattered,
        sample=explain,
        exact=bool(statement.names.env.exact) and not explain,
        unrouted=unrouted,
        together=isinstance(scattered, Scatter),
        column_metadata=None if explain else column_metadata_of(query, scope),
        point=None if kept else point(routing, template, splicer.slots.end),
        listed=None if kept or explain else listed(routing, scattered, splicer.slots.end),
        effects=kept,
        fallback=None if statement.strict else _fallback(statement, query, scope, routing, explain=explain),
    )


def _fallback(
    statement: Statement, query: Query, scope: Scope, routing: Routing, *, explain: bool
) -> Plan | None:
    """The plan for values that are no plain constants; None when that cannot happen."""
    if not may_fail(routing):
        return None
    return plan_select(statement.strictly(), query, scope, explain=explain)


def may_fail(routing: Routing) -> bool:
    """Whether placing the statement's constants may raise NotPlain."""
    values = [offset.value for offset in routing.offsets]
    values += [value for one in routing.ranges for value in (one.low, one.high)]
    return any(one.may_fail for one in routing.comparisons) or any(value.may_fail for value in values)


def _check(statement: Statement, query: Query) -> None:
    source = statement.source
    for block in query.all_blocks():
        if any(ref.form == "odd" for ref in block.tables):
            raise Unsupported(
                what="a table function",
                reason="its texts have the character set of the current database",
                alternative="",
            )
        if block.into is not None:
            raise Unsupported(
                what="SELECT … INTO",
                reason="the rows come from shards",
                alternative="Fetch the rows and keep them in the application.",
            )
        if "SQL_CALC_FOUND_ROWS" in block.modifiers:
            raise Unsupported(
                what="SQL_CALC_FOUND_ROWS",
                reason="the rows of shards are not counted yet",
                alternative="Use SELECT COUNT(*).",
            )
        if block.odd is not None:
            raise Unsupported(
                what=source.tokens[block.odd.first].text,
                reason="it is not looked into",
                alternative="Use LIMIT.",
            )
    if any(token.text == ":=" for token in source.tokens):
        raise Unsupported(
            what="assigning a user variable in a SELECT",
            reason="the rows come from shards",
            alternative="Use SET.",
        )


def _hide(splicer: Splicer, query: Query) -> None:
    """Have the statement see no hidden rows: behind all else that is written behind conditions. Both readers
    must see the same clauses there.
    """
    for block in query.all_blocks():
        if not hiding(splicer.scope, block.tables):
            continue
        if not splicer.statement.second.agreed(block):
            reason = "where its clauses end is not certain, and some tables have hidden rows"
            raise Unsupported(what="this statement", reason=reason, alternative="")
        hide(block, splicer.scope, splicer.edits)


def _check_groups(splicer: Splicer, query: Query) -> None:
    """Refuse what MySQL would refuse on a shard, and not where `id` is a column."""
    env, hints = splicer.statement.names.env, splicer.hints
    placed = hints.shard is not None or hints.same_shard_as is not None
    if not env.flavour.groups_are_checked or env.each_shard or placed:
        return
    if not all(seen_alike(splicer, block) for block in query.all_blocks()):
        reason = "which columns its groups determine is for a server to say that has the column `id`"
        raise Unsupported(what="this statement", reason=reason, alternative="")


def _scattered(
    splicer: Splicer, block: Block | None, refs: list[TableRef], *, explain: bool
) -> Scatter | Reject:
    if splicer.statement.names.env.each_shard and splicer.colocated(refs):
        template = splicer.edits.template()
        return Scatter(part=template, reference=template)
    if block is not None:
        found = plan_scatter(splicer, block, "" if explain else splicer.statement.names.env.exact)
    elif len(refs) > 1:
        reason = f"it joins rows of {' and '.join(table_names(splicer.scope, refs))}"
        found = not_yet("this statement", reason, "Give every table an ID of the same shard.")
    else:
        reason = "it has subqueries, joins or set operations"
        found = not_yet("this statement", reason, "Name the shard by an ID.")
    if explain and not isinstance(found, Scatter):
        reason = "the rows of several shards are gathered before they are worked on"
        return not_yet("EXPLAIN", reason, "Use EXPLAIN ROUTE, or name one ID.")
    return found


def point(routing: Routing, template: Template, first: int) -> Point | None:
    """The short way of binding, for a statement whose one route is one ID: one literal, or one parameter."""
    if len(routing.comparisons) != 1 or routing.ranges or routing.offsets:
        return None
    if routing.routes != (Route("in", 0),):
        return None
    comparison = routing.comparisons[0]
    key, layout = comparison.key, comparison.key.layout
    if len(comparison.values) != 1 or layout is None:
        return None
    kind = comparison.values[0].kind
    if kind not in ("integer", "parameter"):
        return None
    if key.rule not in ("object", "id"):
        return None
    places: dict[int, int] = {}
    for number, extra in enumerate(routing.extras):
        if first + number not in template.parts:
            continue
        if extra.kind not in ("database", "constants", "base"):
            return None
        if extra.kind == "base" and (key.rule != "object" or extra != Extra("base", key.type)):
            return None
        places[first + number] = first + ("database", "constants", "base").index(extra.kind)
    parts = [places.get(part, part) if isinstance(part, int) else part for part in template.parts]
    return Point(
        keyspace=routing.keyspace,
        literal=comparison.values[0].index,
        bits=key.bits(layout, layout.local_mask),
        template=Template(parts, integers=(first + 1, first + 2)),
        parameter=kind == "parameter",
    )


def listed(routing: Routing, scattered: Scatter | Reject, first: int) -> Listed | None:
    """The short way of binding for several shards, for a statement whose one route is a list of IDs, written
    out. `first` is the index of the first value that binding computes.
    """
    if not isinstance(scattered, Scatter) or scattered.per_shard or scattered.next_part is not None:
        return None
    if routing.routes != (Route("in", 0),):
        return None
    if len(routing.comparisons) != 1 or routing.ranges or routing.offsets:
        return None
    comparison = routing.comparisons[0]
    key, layout = comparison.key, comparison.key.layout
    if comparison.list_kind != "integer" or comparison.several or layout is None or key.takes_text:
        return None
    if key.rule not in ("object", "id"):
        return None
    kinds = {"database": DATABASE, "base": BASE, "constants": CONSTANTS, "limit": LIMIT}
    pieces: list[bytes | int] = []
    for part in scattered.part.parts:
        if isinstance(part, Label):
            return None
        if isinstance(part, int) and part >= first:
            extra = routing.extras[part - first]
            if extra.kind not in kinds or (
                extra.kind == "base" and (key.rule, extra.number) != ("object", key.type)
            ):
                return None
            part = kinds[extra.kind]
        pieces.append(part)
    stored = layout.local_mask if key.local else ID_MAX
    bits = key.bits(layout, stored)
    plain = all(isinstance(piece, bytes) or CONSTANTS <= piece < 0 for piece in pieces)
    most = Most(routing.in_list, CHUNK, UNION_BYTES)
    return Listed(comparison.list_index, bits, tuple(pieces), not plain, most)
