"""What kind of statement it is, by its words: for what a session notes of it besides its rows.

Only the words of the statement itself count: what is quoted, and comments, do not.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from config.flavour import Flavour

from .statement import WRITES
from .tokens import WORD, Source


class Nature(NamedTuple):
    """`words`: the first one, or two, in capitals. `opens`: it opens a transaction, of its own at least, as
    any that touches a table. `keeps_warnings`: on MariaDB SHOW WARNINGS shows what it did before, if it gives
    none. `touches`: what it does to tables, if it gives no rows: "W" for a write, "RW" for one with a query.
    """

    words: str = ""
    opens: bool = True
    keeps_warnings: bool = False
    touches: str = ""


UNREAD: Final = Nature()
"""Of a statement that the rewriter has not read."""

_TABLELESS: Final = frozenset({"SELECT", "DO", "VALUES", "COMMIT", "ROLLBACK"})
"""These touch no table without naming it."""
_KEEPING: Final = frozenset({"DEALLOCATE", "UNLOCK", "HELP", "XA", "GET", "RESET"})
_WITHOUT_TABLES: Final = ("PROCEDURE", "FUNCTION", "DATABASE", "SCHEMA")
_WITH_TABLES: Final = ("TRIGGER", "EVENT", "VIEW")
_QUIETLY_SHOWN: Final = (
    *("PRIVILEGES", "ENGINE", "PROFILES", "BINLOG", "RELAYLOG", "REPLICA", "REPLICAS", "SLAVE", "MASTER"),
    *("PROCESSLIST", "GRANTS"),
)


def nature_of(source: Source, *, flavour: Flavour, prepared: Source | None = None) -> Nature:
    """The nature of a statement that has tokens. `prepared`: the text that PREPARE prepares, where it is
    written out; a text that is not known is taken for one without tables.
    """
    first = 0
    while source.is_op(first, "("):
        first += 1
    words = [token.text for token in (source.at(first), source.at(first + 1)) if token.kind == WORD]
    verb = words[0] if words and first == 0 else ""
    named = {token.text for token in source.tokens if token.kind == WORD and token.text in _NAMING}
    tableless = verb in _TABLELESS and named.isdisjoint(("FROM", "INTO", "TABLE"))
    if verb == "PREPARE":
        opens, clears = _at_prepare(prepared) if prepared is not None else (False, False)
        return Nature(" ".join(words), opens, not clears)
    return Nature(
        " ".join(words),
        not (tableless or _opens_none(source, verb, flavour=flavour)),
        tableless or _keeps_warnings(source, verb, named),
        _touched(source, verb),
    )


def _at_prepare(text: Source) -> tuple[bool, bool]:
    """Whether PREPARE of a text opens its tables, and whether it clears the warnings on MariaDB."""
    reads = text.at(0).text in WRITES or any(text.is_word(at, "FROM") for at in range(len(text.tokens)))
    return reads or text.is_word(0, "CALL"), reads or text.is_word(0, "SHOW")


def _touched(source: Source, verb: str) -> str:
    if verb not in WRITES and verb != "LOAD":
        return ""
    return "RW" if any(source.is_word(at, "SELECT") for at in range(len(source.tokens))) else "W"


_NAMING: Final = frozenset({"FROM", "INTO", "TABLE", "OUTFILE", "DUMPFILE"})


def _opens_none(source: Source, verb: str, *, flavour: Flavour) -> bool:
    """Statements on no rows, and those that look at tables and open no transaction for it. MySQL's most do:
    they read its dictionary.
    """
    if verb in ("DEALLOCATE", "UNLOCK", "HELP"):
        return True
    if verb == "DROP":
        return source.is_word(1, "PREPARE")
    if verb == "SHOW":
        scope = 2 if source.is_word(1, "GLOBAL", "SESSION", "LOCAL") else 1
        return flavour.looks_open_nothing or source.is_word(scope, "CREATE", "VARIABLES", "STATUS")
    described = verb in ("DESC", "DESCRIBE") and not source.is_word(1, "SELECT", "WITH", "FORMAT")
    return described and flavour.looks_open_nothing


def _keeps_warnings(source: Source, verb: str, named: set[str]) -> bool:
    """Whether it is without tables in MariaDB's sense."""
    if verb in _KEEPING:
        return True
    if verb == "SELECT":
        return named <= {"INTO"}
    if verb == "FLUSH":
        return not source.is_word(1, "TABLE", "TABLES") or len(source.tokens) == 2
    if verb in ("CREATE", "ALTER", "DROP"):
        return source.is_word(_defined(source), *_WITHOUT_TABLES, "PREPARE")
    if verb == "SHOW":
        created = source.is_word(1, "CREATE") and source.is_word(2, *_WITHOUT_TABLES, "USER", "EVENT")
        return created or source.is_word(1, *_QUIETLY_SHOWN)
    return verb == "EXPLAIN" and source.is_word(1, "SELECT") and "FROM" not in named


def _defined(source: Source) -> int:
    """The place of what a definition is of, behind OR REPLACE and DEFINER = account."""
    at = 1
    if source.is_word(at, "OR") and source.is_word(at + 1, "REPLACE"):
        at += 2
    if source.is_word(at, "DEFINER") and source.is_op(at + 1, "="):
        at += 3
        while at < len(source.tokens) and not source.is_word(at, *_WITHOUT_TABLES, *_WITH_TABLES):
            at += 1
    return at
