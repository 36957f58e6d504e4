"""LOCK TABLES and ALTER TABLE … DISABLE KEYS on tables of sharded databases, as dumps have them.

Single tables of one host are locked there. Sharded tables cannot be: the statement is accepted, locks nothing
and leaves a warning that says so.
"""

from __future__ import annotations

from rewriter.plan import Plan
from rewriter.plans.builtins import LockTables, SwitchKeys
from rewriter.route.context import Statement
from rewriter.route.scope import Scope, Unsupported
from rewriter.text.facts import Span, TableRef
from rewriter.text.tokens import Unreadable

from .builtins import Words
from .unsharded import About, Place, Text


def lock(statement: Statement) -> Plan | None:
    """LOCK TABLES of tables that the schema describes. Raises Unreadable and Refuse."""
    words = Words(statement.source)
    if not (words.take("LOCK", "TABLES") or words.take("LOCK", "TABLE")):
        return None
    scope = Scope(statement.source)
    while True:
        ref = _locked(words)
        scope.targets[ref] = statement.names.target(ref)
        if not words.op(","):
            break
    words.finish()
    forms = {target.form for target in scope.targets.values()}
    if not forms <= {"sharded", "single"}:
        if forms & {"sharded", "single"}:
            raise Unsupported(
                what="LOCK TABLES",
                reason="its tables are kept in different ways",
                alternative="Lock the databases' tables one after another.",
            )
        return None
    commits = statement.form.commits_before(statement.names.env.flavour)
    databases = tuple(dict.fromkeys(target.database for target in scope.targets.values()))
    keyspaces = tuple(dict.fromkeys(target.keyspace for target in scope.targets.values()))
    if forms == {"single"} and len(keyspaces) == 1:
        text = Text(statement)
        for ref, target in scope.targets.items():
            name = b"`%b`.%b" % (target.physical, statement.source.text(ref.span.end - 1, ref.span.end))
            alias = (
                b""
                if ref.alias is not None
                else b" AS " + statement.source.text(ref.span.end - 1, ref.span.end)
            )
            text.edits.replace(ref.span, name + alias)
        return text.plan(Place(keyspaces), About(databases))
    tables = ", ".join(ref.name for ref, target in scope.targets.items() if target.form == "sharded")
    return LockTables(
        implicit_commit=commits,
        databases=databases,
        tables=tables or ", ".join(ref.name for ref in scope.targets),
    )


def _locked(words: Words) -> TableRef:
    """One table with its alias, and over the kind of lock."""
    first = words.at
    database, name = None, words.name()
    if words.op("."):
        database, name = name, words.name()
    ref = TableRef("table", Span(first, words.at), name, database)
    if words.take("AS") or not words.source.is_word(words.at, "READ", "WRITE", "LOW_PRIORITY"):
        ref.alias = words.name()
    if words.take("READ"):
        words.take("LOCAL")
    else:
        words.take("LOW_PRIORITY")
        if not words.take("WRITE"):
            raise Unreadable("expected READ or WRITE")
    return ref


def switch_keys(statement: Statement) -> Plan | None:
    """ALTER TABLE … DISABLE KEYS and ENABLE KEYS, which InnoDB does not know either: nothing is done."""
    words = Words(statement.source)
    if not words.take("ALTER", "TABLE"):
        return None
    first = words.at
    database, name = None, words.name()
    if words.op("."):
        database, name = name, words.name()
    if not (words.take("DISABLE", "KEYS") or words.take("ENABLE", "KEYS")) or not words.done:
        return None
    target = statement.names.target(TableRef("table", Span(first, words.at), name, database))
    if target.form not in ("sharded", "single"):
        return None
    commits = statement.form.commits_before(statement.names.env.flavour)
    return SwitchKeys(implicit_commit=commits, databases=(target.database,))
