"""Statements of a session without a database that name none either: those of a whole server run on the
default host, those of a database's objects have MySQL's answer.
"""

from __future__ import annotations

from typing import Final

from rewriter.plan import Plan
from rewriter.plans import Reject
from rewriter.route.context import Statement
from rewriter.text.tokens import Source

from .unsharded import About, Place, Text

_ACCOUNTS: Final = frozenset({"USER", "ROLE"})
_SERVERS: Final = frozenset({"SERVER", "LOGFILE", "TABLESPACE", "UNDO", "RESOURCE", "INSTANCE"})
#: Verbs that are about the server, or about what a session has there.
_WHOLE: Final = frozenset(
    {"INSTALL", "UNINSTALL", "RESET", "PURGE", "CHANGE", "START", "STOP", "BINLOG", "SIGNAL", "XA"}
)
_OBJECTS: Final = frozenset({"VIEW", "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "SEQUENCE"})


def plan_nowhere(statement: Statement, about: About) -> Plan | None:
    """The plan while there is no current database; None when there is one, or for anything else."""
    source, names = statement.source, statement.names
    if names.env.database is not None or names.topology.default is None:
        return None
    if _of_server(source):
        return Text(statement).plan(Place(("",)), about)
    verb = source.tokens[0].text
    if (verb == "CALL" and not source.is_op(2, ".")) or (
        verb in ("CREATE", "ALTER", "DROP") and _is_unqualified_object(source)
    ):
        return Reject(error="no_database", arguments={})
    return None


def _of_server(source: Source) -> bool:
    """Whether a statement means the same in whatever database it runs."""
    verb, second = source.tokens[0].text, source.at(1).text
    if verb in ("CREATE", "ALTER", "DROP"):
        return second in _ACCOUNTS | _SERVERS or (
            second == "OR" and source.is_word(3, "USER", "ROLE", "SERVER")
        )
    if verb == "RENAME":
        return second == "USER"
    if verb in ("GRANT", "REVOKE"):
        at = next((at for at in range(len(source.tokens)) if source.is_word(at, "ON")), None)
        return at is None or (source.is_op(at + 1, "*") and source.is_op(at + 2, "."))
    if verb == "FLUSH":
        plain = len(source.tokens) == 2 or source.is_word(2, "WITH")
        return plain or not source.is_word(1, "TABLE", "TABLES", "LOCAL", "NO_WRITE_TO_BINLOG")
    if verb == "HANDLER":
        return source.is_word(2, "READ", "CLOSE")
    if verb in ("EXECUTE", "DEALLOCATE"):  # what was prepared knows its database
        return second != "IMMEDIATE"
    return verb in _WHOLE or (verb == "SET" and second == "PASSWORD")


def _is_unqualified_object(source: Source) -> bool:
    """Whether a view, a routine or its like is defined that must be in the current database."""
    for at in range(1, min(len(source.tokens), 16)):
        if source.is_word(at, "TABLE", "INDEX"):
            return False
        if source.is_word(at, *_OBJECTS):
            name = at + 1
            while source.is_word(name, "IF", "NOT", "EXISTS"):
                name += 1
            return not source.is_op(name + 1, ".")
    return False
