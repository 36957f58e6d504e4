"""The one place that decides what becomes of the state that a statement leaves on a server's connection.

Sessions share connections. So each plan gets the effects of its statement, which are read off the tokens, and
its variant says which kinds of state its way of running reads back (`Plan.captures`). A statement that would
leave another kind is refused, whichever rule has planned it.
"""

from __future__ import annotations

from typing import Final

from .plan import Plan, Reject
from .route.context import Statement, not_yet
from .sql.statements.effects import LOCKING, ConnectionState

_BESIDE: Final = "runs where its sharded or reference tables are"
_ELSEWHERE: Final = "runs on another host"


def with_effects(statement: Statement, plan: Plan) -> Plan:
    """The plan with the effects of its statement, or the plan that refuses it."""
    effects = statement.effects
    if effects is None:
        return plan
    lost = effects.state & ~plan.captures
    if ConnectionState.LOCKS in lost:
        return lock_elsewhere(statement, _BESIDE)
    if effects.locks and not plan.at_lock_host(statement.names.topology):
        return lock_elsewhere(statement)
    if lost:
        reason = "it leaves something on a server's connection, which sessions share"
        return not_yet("this statement", reason, "Do that in a statement without sharded tables.")
    return plan.leaving(effects)


def lock_elsewhere(statement: Statement, where: str = _ELSEWHERE) -> Reject:
    """The refusal of a function of named locks in a statement that does not run on their host."""
    source = statement.source
    called = next(
        token.text
        for at, token in enumerate(source.tokens)
        if source.is_word(at, *LOCKING) and source.is_op(at + 1, "(")
    )
    return Reject(error="lock_elsewhere", arguments={"function": called, "where": where})
