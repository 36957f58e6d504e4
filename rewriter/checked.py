"""What every plan goes through at last, whichever rule made it: what its user must be allowed, and what no
rule may overlook.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, assert_never

from config.flavour import Flavour

from .plain.views import VIEWS
from .plan import Access, Plan, Reject, TextRights
from .plans import is_one_host
from .route.context import Statement, not_yet
from .route.scope import INFORMATION_SCHEMA
from .sql.privileges.beyond import EVERY_DATABASE
from .sql.privileges.reachable import functions, qualifiers
from .sql.privileges.rights import Rights, readings, rights_of
from .sql.statements.calls import hidden_call, previous_value, sequences
from .sql.statements.effects import defines_routine
from .sql.statements.inner import behind_explain, behind_set_statement, is_explain
from .text.tokens import HINT, Source


def checked(statement: Statement, plan: Plan) -> Plan:
    """The plan, with the rights that the statement asks for, or the one that refuses it."""
    if plan.refusal is not None:
        return plan
    overlooked = _overlooked(statement, plan)
    if overlooked is not None:
        return overlooked
    rights = _of_text(statement, plan)
    rights |= _of_who_asks(statement, plan)
    databases = tuple(dict.fromkeys(plan.databases + _named(statement, rights)))
    access = max(plan.access, rights.access)
    if rights.reserved:
        return replace(
            plan,
            access=Access.ADMIN,
            listed_access=access,
            databases=databases,
            reserved=rights.reserved,
            unseen=rights.unseen,
            hidden=rights.hidden,
        )
    if access == plan.access and databases == plan.databases and not (rights.unseen or rights.hidden):
        return plan
    return replace(plan, access=access, databases=databases, unseen=rights.unseen, hidden=rights.hidden)


def judged(statement: Statement, plan: Reject) -> Reject:
    """The refusal with the rights that its statement asks for, which are judged first: whether a statement
    can run must not tell what there is in a database that its user may not name. A text that could not be
    read needs no role, because it may be no SQL.
    """
    try:
        rights = rights_of(statement)
    except RecursionError:
        rights = Rights(Access.NONE, qualifiers(statement.source))
    databases = _named(statement, rights)
    if plan.probe:
        databases = tuple(database for database in databases if database != EVERY_DATABASE)
        return replace(plan, databases=databases, reserved=rights.reserved)
    access = Access.ADMIN if rights.reserved else rights.access
    return replace(
        plan, access=access, listed_access=rights.access, databases=databases, reserved=rights.reserved
    )


def _named(statement: Statement, rights: Rights) -> tuple[str, ...]:
    """The databases that the statement's text names, whatever there is by these names."""
    return tuple(dict.fromkeys(rights.databases + functions(statement.source)))


def _of_text(statement: Statement, plan: Plan) -> Rights:
    """The rights that the statement's text asks for, as far as the plan needs them."""
    rights = rights_of(statement)
    match plan.text_rights:
        case TextRights.ALL:
            return rights
        case TextRights.NO_ROUTINES:
            return rights._replace(unseen="", hidden="")
        case TextRights.OWN_ACCESS:
            databases = tuple(database for database in rights.databases if database != EVERY_DATABASE)
            return rights._replace(access=plan.access, databases=databases)
    assert_never(plan.text_rights)


def _of_who_asks(statement: Statement, plan: Plan) -> Rights:
    """What views of information_schema need whose rows the proxy chooses by who asks, where it does not: a
    server tells all that the connection's account may see.
    """
    found = Rights(Access.NONE)
    if plan.filters_views:
        return found
    inside = (statement.names.env.database or "").lower() == INFORMATION_SCHEMA
    for source in readings(statement):
        rows = inside and any(source.is_word(at, "SELECT", "TABLE") for at in range(len(source.tokens)))
        for at, token in enumerate(source.tokens):
            named = source.is_op(at - 1, ".") and source.at(at - 2).name.lower() == INFORMATION_SCHEMA
            bare = rows and not source.is_op(at + 1, ".", "(") and not source.is_op(at - 1, ".")
            if not source.is_name(at) or not (named or bare) or token.name.upper() not in VIEWS:
                continue
            access = Access.ADMIN if VIEWS[token.name.upper()].of_users else Access.NONE
            found |= Rights(access, (EVERY_DATABASE,))
    return found


def _overlooked(statement: Statement, plan: Plan) -> Plan | None:
    """The refusal of what the rules do not look for; None for nothing of that kind."""
    source, flavour = statement.source, statement.names.env.flavour
    if _has_auto_is_null(source, flavour=flavour):
        return Reject(error="auto_is_null")
    if flavour.set_var_hints and not plan.on_one_host and _limits_parts(source):
        reason = "each server would stop at so many rows of its own"
        return not_yet("SET_VAR(sql_select_limit)", reason, "Write LIMIT, or SET sql_select_limit before.")
    if flavour.sequences:
        hidden = hidden_call(source)
        if hidden:
            reason = "it is the session's, and is known by its own name only"
            return not_yet(hidden, reason, "Write the function's name alone.")
        asked = "" if defines_routine(source) else previous_value(source)
        if asked:
            reason = "a server's connection knows the number, and sessions share connections"
            return not_yet(asked, reason, "Keep the number that NEXTVAL() gives, or use INSERT … RETURNING.")
        if not _places_sequences(statement, plan):
            reason = "a sequence is on one host, and nothing else in the statement says on which"
            return not_yet("a sequence here", reason, "USE the sequence's database first.")
    if (
        flavour.explains_for_schema
        and is_explain(source, 0)
        and behind_explain(source, 0).database is not None
    ):
        reason = "its names are those of another database"
        return not_yet("EXPLAIN FOR SCHEMA", reason, "USE that database first.")
    return None


_AUTO_IS_NULL: Final = re.compile(
    r"\bset_var\s*\(\s*sql_auto_is_null\s*=(?!\s*'?(?:0+|off|false)'?\s*\))", re.IGNORECASE
)


_SELECT_LIMIT: Final = re.compile(r"\bset_var\s*\(\s*`?sql_select_limit\b", re.IGNORECASE)


def _limits_parts(source: Source) -> bool:
    """Whether a hint limits the rows of every SELECT that a server gets."""
    return any(token.kind == HINT and _SELECT_LIMIT.search(token.text) for token in source.tokens)


def _has_auto_is_null(source: Source, *, flavour: Flavour) -> bool:
    """Whether the statement is to read its connection's last insert id, which may be another session's."""
    if flavour.set_var_hints:
        return any(token.kind == HINT and _AUTO_IS_NULL.search(token.text) for token in source.tokens)
    if not source.is_word(0, "SET") or not source.is_word(1, "STATEMENT"):
        return False
    names = range(2, behind_set_statement(source))
    return any(
        source.is_name(at)
        and source.at(at).name.lower() == "sql_auto_is_null"
        and source.is_op(at + 1, "=", ":=")
        and source.at(at + 2).text not in ("OFF", "FALSE")  # of a number the plan does not know the value
        for at in names
    )


def _places_sequences(statement: Statement, plan: Plan) -> bool:
    """Whether the plan goes where the statement's sequences are."""
    found = sequences(statement.source)
    if not found or not plan.evaluates:
        return True
    place = plan.runs_at
    if place is None or not is_one_host(place):
        return False
    names = statement.names
    here = place.database is not None and place.database == names.env.database
    for at in found:
        database = statement.source.tokens[at].name
        if not statement.source.is_op(at + 1, "."):
            known = here
        elif database in names.schema.databases or names.physical(database) is not None:
            known = database in place.databases
        else:  # where the current database is, as far as anybody knows
            known = here or database in place.databases
        if not known:
            return False
    return True
