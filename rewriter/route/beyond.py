"""Statements that reach beyond a list of databases, judged by their words.

An administrator with a list of databases defines objects within them. Statements that act on a whole server
(accounts, global variables, files, replication), and those that run a text that the proxy does not judge, are
found here. What is not known to stay within databases counts as reaching beyond them.
"""

from __future__ import annotations

from typing import Final

from config.flavour import Flavour
from rewriter.text.effects import runs_anything
from rewriter.text.prefixes import tail
from rewriter.text.statement import PRIVILEGED
from rewriter.text.tokens import SYSTEM, VARIABLE, WORD, Source

EVERY_DATABASE: Final = "*"
"""Stands among the databases of a statement that shows what is in any of them, or acts on a whole server."""

_MODIFIERS: Final = (
    *("OR", "REPLACE", "TEMPORARY", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "ONLINE", "OFFLINE"),
    *("IGNORE", "AGGREGATE", "JSON", "RELATIONAL", "DUALITY"),
)
_WITH_BODIES: Final = ("TRIGGER", "PROCEDURE", "FUNCTION", "EVENT", "PACKAGE", "LIBRARY")
_OBJECTS: Final = ("TABLE", "TABLES", "VIEW", "INDEX", "DATABASE", "SCHEMA", "SEQUENCE", *_WITH_BODIES)
"""What CREATE, ALTER and DROP may be of within a database."""
_OF_TABLES: Final = ("RENAME", "OPTIMIZE", "REPAIR", "CHECK", "ANALYZE")
_ENGINES: Final = frozenset(
    {"INNODB", "MYISAM", "ARIA", "MEMORY", "HEAP", "CSV", "ARCHIVE", "BLACKHOLE", "MERGE", "MRG_MYISAM"}
    | {"ROCKSDB", "PARTITION"}
)
"""Engines whose tables have no rows but their own, or those of tables that the statement names."""
_BEFORE_COLUMN: Final = ("ADD", "COLUMN", "CHANGE", "MODIFY", "DROP", "AFTER", "RENAME", "TO", "EXISTS", "BY")


def stays_within(source: Source, first: int) -> bool:
    """Whether a statement for administrators, at `first`, acts on objects in databases alone."""
    verb = source.at(first).text
    if verb in ("CREATE", "ALTER", "DROP"):
        kind, at = _defined(source, first)
        if kind == "FUNCTION" and _is_of_servers_function(source, verb, at):
            return False
        return kind in _OBJECTS and not (kind == "TABLE" and _reads_elsewhere(source, at))
    if verb in _OF_TABLES:
        at = first + 1
        while source.is_word(at, "LOCAL", "NO_WRITE_TO_BINLOG"):
            at += 1
        return source.is_word(at, "TABLE", "TABLES", "VIEW")
    return verb in ("TRUNCATE", "SIGNAL", "RESIGNAL")


def hidden_text(source: Source, first: int) -> str:
    """The text that a statement for administrators, at `first`, has a server run though the proxy has not
    judged it, in words; "" when there is none. A body may hold anything, prepared texts among it.
    """
    verb = source.at(first).text if source.at(first).kind == WORD else ""
    if verb == "PREPARE" or (verb == "EXECUTE" and source.is_word(first + 1, "IMMEDIATE")):
        return "a prepared text that is not written out"
    if verb in ("CREATE", "ALTER"):
        kind, at = _defined(source, first)
        has_body = kind in _WITH_BODIES and (verb == "CREATE" or kind == "LIBRARY")
        changes_body = kind == "EVENT" and any(
            source.is_word(one, "DO") for one in range(at, len(source.tokens))
        )
        return f"the body of {kind}" if has_body or changes_body else ""
    return "a compound statement" if runs_anything(tail(source, first)) else ""


def named_as_database(source: Source) -> str:
    """The database that a statement names where only a database's name may stand: USE, and definitions of
    databases. "" for none.
    """
    if source.is_word(0, "USE"):
        return source.at(1).name
    if not source.is_word(0, "CREATE", "ALTER", "DROP"):
        return ""
    kind, at = _defined(source, 0)
    if kind not in ("DATABASE", "SCHEMA"):
        return ""
    at += 1
    while source.is_word(at, "IF", "NOT", "EXISTS"):
        at += 1
    return source.at(at).name


def sets_for_all(source: Source, *, flavour: Flavour) -> bool:
    """Whether SET, which stands in a prepared text, sets more than the session's own variables."""
    if not source.is_word(0, "SET"):
        return False
    if source.is_word(1, "PASSWORD", "ROLE", "DEFAULT", "RESOURCE"):
        return True
    for at, token in enumerate(source.tokens):
        name = token.name.lower()
        if token.kind == SYSTEM and name.lstrip("@").startswith(("global", "persist")):
            return True
        if source.is_word(at, "GLOBAL", "PERSIST", "PERSIST_ONLY"):
            return True
        if name.rpartition(".")[2].lstrip("@") in PRIVILEGED[flavour.name]:
            return True
    return False


def _defined(source: Source, first: int) -> tuple[str, int]:
    """What CREATE, ALTER or DROP at `first` is of, in upper case, and where that word stands."""
    at = first + 1
    while at < len(source.tokens):
        if source.is_word(at, "DEFINER", "ALGORITHM") and source.is_op(at + 1, "="):
            at += 3
            at = source.closing[at] + 1 if source.is_op(at, "(") else at
            at += source.at(at).kind == VARIABLE  # @host
        elif source.is_word(at, "SQL") and source.is_word(at + 1, "SECURITY"):
            at += 3
        elif source.is_word(at, *_MODIFIERS):
            at += 1
        else:
            break
    return (source.at(at).text if source.at(at).kind == WORD else ""), at


def _is_of_servers_function(source: Source, verb: str, at: int) -> bool:
    """Whether CREATE or DROP FUNCTION may be of a loadable function, which is in no database."""
    if verb == "CREATE":
        return any(source.is_word(one, "SONAME") for one in range(at, len(source.tokens)))
    at += 1
    while source.is_word(at, "IF", "EXISTS"):
        at += 1
    return verb == "DROP" and not source.is_op(at + 1, ".")


def _reads_elsewhere(source: Source, at: int) -> bool:
    """Whether options of a table, named behind `at`, let it have rows of files or of other servers."""
    for one in range(at + 1, len(source.tokens)):
        if source.is_op(one - 1, "."):
            continue
        if source.is_word(one, "DIRECTORY") and source.is_word(one - 1, "DATA", "INDEX"):
            return True
        if not source.is_word(one, "ENGINE", "TYPE"):
            continue
        given = source.is_op(one + 1, "=")
        if not given and (source.is_word(one, "TYPE") or _is_column(source, one)):
            continue
        value = source.at(one + 1 + given)
        if value.name.strip("'\"").upper() not in _ENGINES:
            return True
    return False


def _is_column(source: Source, at: int) -> bool:
    """Whether the word at `at`, without `=` behind it, is the name of a column."""
    if source.is_op(at - 1, ","):
        return any(opened < at < close for opened, close in source.closing.items())
    return source.is_word(at - 1, *_BEFORE_COLUMN) or source.is_op(at - 1, "(")
