"""Planning UPDATE and DELETE."""

from __future__ import annotations

from config.schema import Kind
from rewriter.plain.unsharded import on_one_host, only_sharded, plan_unsharded
from rewriter.plan import Plan, Reject
from rewriter.plans.sharded import ShardWrite
from rewriter.plans.unchanged import Keeping
from rewriter.reads.select import may_fail, point
from rewriter.route.binding import Routing
from rewriter.route.columns import Extra
from rewriter.route.context import Splicer, Statement, not_yet, refused
from rewriter.route.outer import strengthen
from rewriter.route.scope import Refuse, Scope, Unsupported
from rewriter.route.slot_filling import take_hints
from rewriter.text.edits import Edits
from rewriter.text.facts import TableRef
from rewriter.text.parse_write import Change, WriteParser, changes_behind_with

from .everywhere import alias_deleted, plan_everywhere
from .found import Target, plan_found, targets_of
from .returning import edit_returning


def change(statement: Statement) -> Plan | None:
    """The rule for UPDATE and DELETE. Raises Unreadable and Refuse."""
    source = statement.source
    if not source.is_word(0, "UPDATE", "DELETE") and not changes_behind_with(source):
        return None
    found = WriteParser(source).change()
    if found.verb == "UPDATE" and found.several and not statement.names.env.flavour.limits_joined_updates:
        for clause, given in (("ORDER BY", found.block.order_span), ("LIMIT", found.block.limit)):
            if given is not None:
                return Reject(error="wrong_usage", arguments={"verb": "UPDATE", "clause": clause})
    scope = Scope(source)
    scope.add_query(statement.names, found.whole)
    plan: Plan
    try:
        if not scope.sharded():
            return _unsharded(statement, found, scope)
        only_sharded(scope)
        strengthen(statement, scope, found.whole.all_blocks())
        plan = plan_change(statement, found, scope)
    except Refuse as refusal:
        plan = refused(refusal)
    return _or_found(statement, found, scope, plan)


def _unsharded(statement: Statement, found: Change, scope: Scope) -> Plan:
    """The plan of a change of reference tables, or of what is on one host. Raises Refuse."""
    blocks = tuple(found.whole.all_blocks())
    references = any(
        one.table is not None and one.table.kind is Kind.REFERENCE for one in scope.targets.values()
    )
    single = any(one.form == "single" for one in scope.targets.values())
    refs = [one.ref for one in targets_of(found, scope)] if references or (single and found.targets) else []
    deleted = list(zip(found.targets, refs, strict=False))
    written = [scope.targets[ref].table for ref in refs] if references else []
    everywhere = plan_everywhere(statement, found, blocks, scope, written, deleted)
    plan = everywhere or plan_unsharded(statement, blocks, scope, deleted)
    return on_one_host(statement, plan, scope)


def _or_found(statement: Statement, found: Change, scope: Scope, plan: Plan) -> Plan:
    """`plan`; in its place, or for what it cannot do, finding the rows first where that is possible."""
    source = statement.source
    may_scatter = statement.names.env.scatter_writes or take_hints(source, Edits(source)).scatter
    refusal = plan.refusal
    try:
        if refusal is not None and refusal.error in ("not_supported_yet", "scatter_denied"):
            first = plan_found(statement, found, scope, may_scatter=may_scatter)
            return first or _unless_scattered(statement, found, scope, refusal, may_scatter=may_scatter)
        if plan.scatter_refusal is not None:
            return plan.with_alternative(plan_found(statement, found, scope, may_scatter=True))
    except Refuse as error:
        return plan.with_alternative(refused(error)) if refusal is None else refused(error)
    return plan


def _unless_scattered(
    statement: Statement, found: Change, scope: Scope, plan: Reject, *, may_scatter: bool
) -> Reject:
    """`plan`; or that the statement names no ID, where it could run if it said that it may scatter."""
    if may_scatter or plan.error != "not_supported_yet":
        return plan
    if plan_found(statement, found, scope, may_scatter=True) is None:
        return plan
    sharded = [target.ref for target in targets_of(found, scope) if target.ref in scope.sharded()]
    return _denied(statement, found, scope, sharded[0]) if sharded else plan


def plan_change(statement: Statement, found: Change, scope: Scope) -> Plan:
    """The plan of an UPDATE or DELETE of a sharded table. Raises Refuse."""
    refs = scope.sharded()
    targets = targets_of(found, scope)
    _check(found, scope, targets)
    splicer = Splicer(statement, scope)
    keeping = Keeping(splicer, found.block)
    for target in targets:
        changed = scope.targets[target.ref].table
        if changed is not None:
            keeping.before(target.ref, changed, target.assigned)
    for block in found.whole.all_blocks():
        splicer.columns.block(block)
    keeping.after()
    for written, target in zip(found.targets, targets, strict=False):
        _edit_target(splicer, written, target.ref)
    table = scope.targets[targets[0].ref].table
    column_metadata = None
    if found.returning is not None and table is not None:
        column_metadata = edit_returning(
            statement.source, splicer.edits, found.returning, table, _id_offset(splicer, targets[0].ref)
        )
    routes = splicer.routes(refs)
    routing = splicer.routing(refs, routes)
    unrouted = any(route.unbounded for route in routes)
    may_scatter = splicer.hints.scatter or statement.names.env.scatter_writes
    denied = None if may_scatter else _denied(statement, found, scope, refs[0])
    together = splicer.colocated(refs)
    scattered = _scattered(statement, found, routing, together=together)
    if unrouted and scattered is not None and _assigns(statement):
        return scattered  # a condition that assigns names no shard
    if unrouted and (denied or scattered):
        return denied or scattered or _denied(statement, found, scope, refs[0])
    template = splicer.edits.template()
    fallback = None
    if may_fail(routing) and not statement.strict:
        fallback = _fallback(statement, found, scope)
    return ShardWrite(
        verb=found.verb,
        session_slots=tuple(splicer.slots.names),
        databases=tuple(dict.fromkeys(scope.targets[ref].database for ref in refs)),
        routing=routing,
        template=template,
        scattered=scattered,
        denied=denied,
        unrouted=unrouted,
        together=together,
        returning=found.returning is not None,
        column_metadata=column_metadata,
        point=None if keeping.same or keeping.stays else point(routing, template, splicer.slots.end),
        fallback=fallback,
        same=tuple(keeping.same),
        stays=tuple(keeping.stays),
    )


def _fallback(statement: Statement, found: Change, scope: Scope) -> Plan:
    """The plan when a value turns out to be no plain constant."""
    try:
        return plan_change(statement.strictly(), found, scope)
    except Refuse as refusal:
        return refused(refusal)


def _check(found: Change, scope: Scope, targets: list[Target]) -> None:
    for target in targets:
        table = scope.targets[target.ref].table
        if table is None or scope.targets[target.ref].form != "sharded":
            raise Unsupported(
                what=f"this {found.verb}",
                reason=f"'{target.ref.name}' is not on the shards",
                alternative="Write the tables one by one.",
            )


def _id_offset(splicer: Splicer, ref: TableRef) -> int:
    """The index of an object table's K; of no meaning for others."""
    return splicer.columns.id_offset(ref) if splicer.scope.targets[ref].is_object else -1


def _edit_target(splicer: Splicer, written: TableRef, ref: TableRef) -> None:
    """Name a target of a DELETE of several tables as the shard knows it."""
    if ref.alias is not None:
        raise alias_deleted()
    name = splicer.source.text(ref.span.end - 1, ref.span.end)
    splicer.edits.replace(written.span, b"`", splicer.extras.index(Extra("database")), b"`." + name)


def _scattered(statement: Statement, found: Change, routing: Routing, *, together: bool) -> Reject | None:
    """Why the statement cannot run on several shards; None when it can."""
    if not together:
        reason = f"it joins rows of {' and '.join(routing.tables)}"
        return not_yet("this statement", reason, "Give every table an ID of the same shard.")
    if found.block.limit is not None:
        reason = "LIMIT counts the rows of one shard"
        return not_yet(f"{found.verb} with LIMIT", reason, "Name the IDs.")
    if _assigns(statement):
        where, source = found.block.where, statement.source
        if where is not None and any(source.is_op(at, ":=") for at in range(*where)):
            reason = "a condition that assigns a user variable names no shard"
            return not_yet(f"this {found.verb}", reason, "Assign it in SET, or by a SELECT before.")
        reason = "each shard would assign the user variable by itself"
        return not_yet(f"this {found.verb}", reason, "Name one ID.")
    return None


def _assigns(statement: Statement) -> bool:
    """Whether the statement assigns user variables."""
    return statement.effects is not None and bool(statement.effects.variables)


def _denied(statement: Statement, found: Change, scope: Scope, ref: TableRef) -> Reject:
    table = scope.targets[ref].table
    keyspace = statement.names.topology.keyspaces.get(table.keyspace) if table is not None else None
    return Reject(
        error="scatter_denied",
        arguments={
            "statement": found.verb,
            "shards": str(len(keyspace.all_shards)) if keyspace is not None else "",
            "reason": "a write does not scatter unless it says so",
            "column": f"'{table.routing}'" if table is not None else "",
            "alternative": "write /*+ scatter */ behind the first word, or SET scatter_writes = 1",
        },
    )
