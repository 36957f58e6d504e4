"""What is not gathered, and why."""

from __future__ import annotations

from typing import Final

from rewriter.plan import Reject
from rewriter.route.context import Statement, not_yet
from rewriter.route.scope import Scope
from rewriter.sql.statements.effects import Effects
from rewriter.text.facts import Query, TableRef

TABLES: Final = ("sharded", "single", "passthrough", "physical", "default")
"""What a table may be that pieces are read of."""


def refusal(statement: Statement, query: Query, scope: Scope, refs: list[TableRef]) -> Reject | None:
    """Why a statement that does more than read, or needs what temporary tables do not have, is refused."""
    source = statement.source
    what = "this statement"
    if any(target.form == "system" for target in scope.targets.values()):
        return not_yet(
            what, "it needs rows of shards and tables of the server's own", "Read them one by one."
        )
    for block in query.all_blocks():
        if block.lock is not None and not block.tables:
            reason = "it locks the rows of several SELECTs at once"
            return not_yet("this locking read", reason, "Put FOR UPDATE behind each SELECT, in parentheses.")
        if block.into is not None and source.is_word(block.into.first + 1, "OUTFILE", "DUMPFILE"):
            return not_yet("INTO OUTFILE", "its rows come from several servers", "Fetch them.")
        named = [ref for ref in block.tables if ref in scope.targets and scope.targets[ref].form in TABLES]
        places = {(ref.label, scope.targets[ref].database) for ref in named if ref.alias is None}
        if len({label for label, _ in places}) < len(places):
            return not_yet(what, "two of its tables have one name", "Give them aliases.")
    if any(source.is_word(ref.span.end, "PARTITION") and source.is_op(ref.span.end + 1, "(") for ref in refs):
        return not_yet("PARTITION", "its rows have to be gathered, and copies have none", "Use WHERE.")
    effects = statement.effects or Effects()
    leaves = effects.pins or effects.unpins or effects.routine or effects.insert_id
    if leaves and not effects.locks:  # named locks have an error of their own, see connection_state.py
        reason = "it leaves something on a server's connection, and its rows come from several"
        return not_yet(what, reason, "Do that in a statement of its own.")
    return None
