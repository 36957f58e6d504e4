"""Planning a write to reference tables, which have the same rows on every host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from config.schema import Kind, Table
from rewriter.plain.unsharded import Text, mixed, name_targets, whole
from rewriter.plan import Plan
from rewriter.plans import Everywhere
from rewriter.route.context import Statement
from rewriter.route.scope import Scope, Unsupported
from rewriter.text.facts import Block, TableRef
from rewriter.text.parse_write import Change, Insertion
from rewriter.text.tokens import Source

_OWN: Final = frozenset({"RAND", "UUID", "UUID_SHORT", "SYSDATE", "RANDOM_BYTES", "ROW_COUNT", "FOUND_ROWS"})
"""Functions that give another value on every host. NOW() and its kin are given the same time."""


def plan_everywhere(
    statement: Statement,
    found: Insertion | Change,
    blocks: Sequence[Block],
    scope: Scope,
    written: Sequence[Table | None],
    deleted: Sequence[tuple[TableRef, TableRef]] = (),
) -> Plan | None:
    """The plan of an INSERT, UPDATE or DELETE that changes reference tables; None when it changes none of
    `written`. `deleted`: the targets of a DELETE of several tables, as named there and where they stand for
    tables.

    Raises Refuse: other tables take part, or the hosts would not all do the same.
    """
    tables = [target.table for target in scope.targets.values() if target.form != "inner"]
    references = [table for table in tables if table is not None and table.kind is Kind.REFERENCE]
    if not any(table in references for table in written):
        return None
    if len(references) < len(tables):
        raise mixed(scope)
    reason = _differs(statement.source, found, blocks, references[0])
    if reason:
        raise Unsupported(
            what=f"this {found.verb} of a reference table",
            reason=f"its rows must be the same on every host, and {reason}",
            alternative="Give the values themselves.",
        )
    text = Text(statement, parameters=True)
    text.blocks(blocks, scope)
    if name_targets(text, scope, deleted) is not None:
        raise alias_deleted()
    return Everywhere(
        verb=found.verb,
        session_slots=tuple(text.slots.names),
        databases=tuple(dict.fromkeys(target.database for target in scope.targets.values())),
        template=text.edits.template() if text.edits else whole(statement.source),
    )


def alias_deleted() -> Unsupported:
    """The refusal of an alias as the target of DELETE."""
    return Unsupported(  # servers look for it in the current database, and there is none
        what="an alias as the target of DELETE",
        reason="its database cannot be told",
        alternative="Name the table.",
    )


def differs_at(source: Source, at: int) -> str:
    """Why what begins with the token at `at` may have another value on each host; "" when it has not."""
    token = source.tokens[at]
    if token.kind == "word" and token.text in _OWN and source.is_op(at + 1, "("):
        return f"{token.text}() gives each host another value"
    if token.kind == "variable" or token.text == ":=":
        return "a user variable may change while it runs"
    return ""


def _differs(source: Source, found: Insertion | Change, blocks: Sequence[Block], table: Table) -> str:
    """Why the hosts might not all do the same; "" when they do."""
    for at in range(len(source.tokens)):
        reason = differs_at(source, at)
        if reason:
            return reason
    if any(block.limit is not None and not block.order for block in blocks):
        return "LIMIT without ORDER BY lets each host choose its rows"
    if isinstance(found, Insertion):
        return _counts(source, found, table)
    return ""


def _counts(source: Source, found: Insertion, table: Table) -> str:
    counted = next((one for one in table.columns if one.facts.auto_increment), None)
    if counted is None:
        return ""
    names = [one.name.lower() for one in found.assigned]
    if found.columns is not None:
        names = [source.tokens[span.end - 1].name.lower() for span in found.columns]
    elif not found.assigned:
        names = [one.name.lower() for one in table.columns]
    if counted.name.lower() in names:
        return ""
    return f"each host would count its own '{counted.name}'"
