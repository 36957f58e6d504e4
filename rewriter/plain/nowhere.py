"""Statements of a session without a database that name none either: those of a whole server run on the
default host, those of a database's objects have MySQL's answer.
"""

from __future__ import annotations

from rewriter.plan import Plan
from rewriter.plans import Reject
from rewriter.route.context import Statement
from rewriter.sql.statements.forms import Kind, Objects, State
from rewriter.sql.statements.table import name_of, recognize

from .unsharded import About, Place, Text


def plan_nowhere(statement: Statement, about: About) -> Plan | None:
    """The plan while there is no current database; None when there is one, or for other statements. Prepared
    statements, handlers and an XA transaction that has begun can be used in any database: the proxy knows
    which host has them.
    """
    source, names, form = statement.source, statement.names, statement.form
    anywhere = bool(form.uses) and State.XA not in form.leaves
    if names.topology.default is None or not (names.env.database is None or anywhere):
        return None
    if _of_server(statement):
        return Text(statement).plan(Place(("",)), about)
    if statement.form.kind is Kind.CALL or statement.form.objects.belongs_to_database:
        name = name_of(source, recognize(source))
        if not source.is_op(name + 1, "."):
            return Reject(error="no_database", arguments={})
    return None


def _of_server(statement: Statement) -> bool:
    """Whether a statement means the same in whatever database it runs."""
    source, form = statement.source, statement.form
    if form.words in ("GRANT", "REVOKE"):
        at = next((at for at in range(len(source.tokens)) if source.is_word(at, "ON")), None)
        return at is None or (source.is_op(at + 1, "*") and source.is_op(at + 2, "."))
    if form.kind is Kind.SERVER and form.objects is Objects.TABLES:  # FLUSH TABLES, of all or by name
        return len(source.tokens) == 2 or source.is_word(2, "WITH")
    return form.of_server
