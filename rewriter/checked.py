"""What every plan goes through at last, whichever rule made it: what its user must be allowed, and what no
rule may overlook.
"""

from __future__ import annotations

from dataclasses import replace

from .plan import Access, Plan, Reject
from .plans import Builtin, LoadLocal, OneHost
from .route.context import Statement, not_yet
from .route.reach import functions
from .route.rights import rights_of
from .text.calls import hidden_call, sequences
from .text.prefixes import behind_explain, is_explain


def checked(statement: Statement, plan: Plan) -> Plan:
    """The plan, with the rights that the statement asks for, or the one that refuses it."""
    if isinstance(plan, Reject):
        return plan
    overlooked = _overlooked(statement, plan)
    if overlooked is not None:
        return overlooked
    rights = rights_of(statement)
    databases = tuple(dict.fromkeys(plan.databases + rights.databases + functions(statement.source)))
    access = max(plan.access, rights.access)
    if rights.reserved:
        return replace(
            plan,
            access=Access.ADMIN,
            listed_access=access,
            databases=databases,
            reserved=rights.reserved,
            unseen=rights.unseen,
        )
    if access == plan.access and databases == plan.databases and not rights.unseen:
        return plan
    return replace(plan, access=access, databases=databases, unseen=rights.unseen)


def _overlooked(statement: Statement, plan: Plan) -> Plan | None:
    """The refusal of what the rules do not look for; None for nothing of that kind."""
    source, mariadb = statement.source, statement.names.env.mariadb
    if mariadb:
        hidden = hidden_call(source)
        if hidden:
            reason = "it is the session's, and is known by its own name only"
            return not_yet(hidden, reason, "Write the function's name alone.")
        if not _places_sequences(statement, plan):
            reason = "a sequence is on one host, and nothing else in the statement says on which"
            return not_yet("a sequence here", reason, "USE the sequence's database first.")
    elif is_explain(source, 0) and behind_explain(source, 0).database is not None:
        reason = "its names are those of another database"
        return not_yet("EXPLAIN FOR SCHEMA", reason, "USE that database first.")
    return None


def _places_sequences(statement: Statement, plan: Plan) -> bool:
    """Whether the plan goes where the statement's sequences are."""
    found = sequences(statement.source)
    if not found:
        return True
    if isinstance(plan, LoadLocal):
        plan = plan.statement
    elif isinstance(plan, Builtin):
        if plan.name == "explain_route":
            return True
        plan = plan.home or plan
    if not isinstance(plan, OneHost):
        return False
    names = statement.names
    here = plan.database is not None and plan.database == names.env.database
    for at in found:
        database = statement.source.tokens[at].name
        if not statement.source.is_op(at + 1, "."):
            known = here
        elif database in names.schema.databases or names.physical(database) is not None:
            known = database in plan.databases
        else:  # where the current database is, as far as anybody knows
            known = here or database in plan.databases
        if not known:
            return False
    return True
